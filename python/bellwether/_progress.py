"""Progress in a notebook or on a terminal."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import Any, Literal, TypeAlias, TypedDict, final

from . import _html

__all__ = ["BellwetherWarning", "Event"]

#: The width of a bar, in columns of a terminal.
_WIDTH = 32


class BellwetherWarning(UserWarning):
    """A problem to fix, although the operation can continue."""


@final
class NameEvent(TypedDict):
    """The run has its name."""

    event: Literal["named"]
    run: str


@final
class StageEvent(TypedDict):
    """A stage started, advanced or finished."""

    event: Literal["started", "advanced", "finished"]
    #: `signals`, `articles`, `archive`, `dataset` and so on.
    stage: str
    #: Answered requests.
    done: int
    #: Total requests, if the stage makes requests.
    total: int | None
    #: Rows so far.
    rows: int
    #: Bytes of complete answers.
    bytes: int
    #: Bytes received, including answers in progress.
    received: int
    #: Retries.
    retries: int
    #: How many requests wait to be retried, and why, if any do.
    waiting: dict[str, Any] | None
    #: Since the stage started.
    seconds: float


@final
class ResumeEvent(TypedDict):
    """An interrupted run is resumed."""

    event: Literal["resumed"]
    #: The answers that it has already.
    answers: int


@final
class MessageEvent(TypedDict):
    """Something to say: of another run that is waited for, on the result, or to fix."""

    event: Literal["held", "note", "warning"]
    message: str


#: An event of a run or a build, as `bellwether schema --for events` describes it.
Event: TypeAlias = NameEvent | StageEvent | ResumeEvent | MessageEvent


@contextmanager
def follow(progress: bool | Callable[[Event], object]) -> Generator[Callable[[str], None], None, None]:
    """The function to call with each event as JSON, while progress is shown."""
    bar: _Notebook | _Terminal | None = None
    if progress is True:
        bar = _Notebook() if _in_notebook() else _Terminal() if sys.stderr.isatty() else None
    listener = progress if callable(progress) else bar

    def observe(text: str) -> None:
        event: Event = json.loads(text)
        if event["event"] == "warning":
            warnings.warn(event["message"], BellwetherWarning, stacklevel=5)
        if listener is not None:
            listener(event)

    try:
        yield observe
    finally:
        if bar is not None:
            bar.close()


def _in_notebook() -> bool:
    """Whether this runs in a kernel that shows HTML."""
    python = sys.modules.get("IPython")
    shell = None if python is None else python.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _counts(event: StageEvent) -> str:
    """`1,750,725 rows, 126.8 MB, 0.2 s`."""
    parts = [f"{event['rows']:,} rows"] if event["rows"] else []
    if event["received"] and event["total"]:
        parts.append(f"{event['received'] / 1e6:.1f} MB")
    parts.append(f"{event['seconds']:.1f} s")
    if (waiting := event["waiting"]) is not None:
        parts.append(f"{waiting['requests']} waiting to retry: {waiting['reason']}")
    return ", ".join(parts)


class _Terminal:
    """A line for each stage; the last one is updated."""

    def __init__(self) -> None:
        self._is_open = False

    def __call__(self, event: Event) -> None:
        if event["event"] == "held":
            sys.stderr.write(f"{event['message']}\n")
        if "stage" not in event:
            return
        done, total = event["done"], event["total"]
        filled = _WIDTH * done // total if total else 0
        bar = f"[{'=' * filled:{_WIDTH}}] {done}/{total}  " if total else ""
        end = "\n" if event["event"] == "finished" else ""
        # A line that wraps could not be erased.
        line = f"{event['stage']:9} {bar}{_counts(event)}"[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r\x1b[K{line}{end}")
        sys.stderr.flush()
        self._is_open = not end

    def close(self) -> None:
        """Ends the last line, whether its stage finished or not."""
        if self._is_open:
            sys.stderr.write("\n")
            sys.stderr.flush()


class _Notebook:
    """A row of a table for each stage."""

    def __init__(self) -> None:
        self._ipython: Any = import_module("IPython.display")
        self._stages: dict[str, StageEvent] = {}
        self._held: str | None = None
        self._display = self._ipython.display(self._ipython.HTML(""), display_id=True)

    def __call__(self, event: Event) -> None:
        if event["event"] == "held":
            self._held = event["message"]
        elif "stage" in event:
            self._held = None
            self._stages[event["stage"]] = event
        else:
            return
        self._display.update(self._ipython.HTML(self._table()))

    def close(self) -> None:
        """Leaves the table as it is."""

    def _table(self) -> str:
        def bar(event: StageEvent) -> str:
            if event["total"]:
                return f"<progress max='{event['total']}' value='{event['done']}'></progress> {event['done']}/{event['total']}"
            return "<progress max='1' value='1'></progress>" if event["event"] == "finished" else "<progress></progress>"

        rows = [
            (stage, f"{bar(event)} &nbsp; {escape(_counts(event))}") for stage, event in self._stages.items()
        ]
        held = "" if self._held is None else f"<p>{escape(self._held)}</p>"
        return held + _html.facts(rows)
