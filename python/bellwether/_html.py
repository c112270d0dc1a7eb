"""Tables and sparklines for notebooks, and tables for terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

__all__: list[str] = []

#: Sparklines, in pixels.
_WIDTH, _HEIGHT = 240, 28

#: The width of a plot that stands alone, in pixels.
_PLOT = 720


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. Everything in it is text."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    head = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Facts, each a name and a piece of HTML."""
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{html}</td></tr>"
        for name, html in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def section(title: str, html: str) -> str:
    """HTML below a title."""
    return f"<div><strong>{escape(title)}</strong>{html}</div>"


def sparkline(values: Sequence[float | None], label: str, low: float | None = None, high: float | None = None) -> str:
    """A line over time. Missing values leave a gap."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = min(known) if low is None else low, max(known) if high is None else high
    span = (high - low) or 1.0
    step = _WIDTH / max(len(values) - 1, 1)
    path: list[str] = []
    is_down = False
    for index, value in enumerate(values):
        if value is not None:
            y = _HEIGHT - 2 - (value - low) / span * (_HEIGHT - 4)
            path.append(f"{'L' if is_down else 'M'}{index * step:.1f} {y:.1f}")
        is_down = value is not None
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' "
        f"aria-label='{escape(label, quote=True)}'><title>{escape(label)}</title>"
        f"<path d='{''.join(path)}' fill='none' stroke='currentColor' stroke-width='1.5'/></svg>"
    )


def figures(page: str) -> dict[str, str]:
    """The plots of a page by name, each a drawing that needs nothing else: with its size, and the style of the page."""
    style = re.search(r"<style[^>]*>(.*?)</style>", page, re.DOTALL)
    css = f"<style><![CDATA[{style[1]}]]></style>" if style else ""
    found: dict[str, str] = {}
    for start in re.finditer(r'<svg id="plot-([^"]+)" class="plot" width="100%"([^>]*)>', page):
        # A chart has drawings in it: it ends where as many have ended as began.
        depth, end = 1, start.end()
        while depth:
            tag = re.compile(r"<svg\b|</svg>").search(page, end)
            if tag is None:
                break
            depth, end = depth + (1 if tag[0] == "<svg" else -1), tag.end()
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" width="{_PLOT}"{start[2]}>'
        found[start[1]] = f"{head}{css}{page[start.end():end]}"
    return found


def align(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal."""
    lines = [columns, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def number(value: object) -> str:
    """A value in human-readable form."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def flat(totals: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """Nested totals with their names joined. Long lists of totals are left out."""
    for name, value in totals.items():
        if isinstance(value, Mapping):
            if not name.startswith("by_"):
                yield from flat(value, f"{above}{name} ")
        else:
            yield above + name.replace("_", " "), value
