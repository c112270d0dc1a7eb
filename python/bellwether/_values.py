"""Arguments in the form that the compiled part expects."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

from . import _bellwether, _definition
from ._errors import UsageError

__all__ = ["Day", "Definition", "Instant", "Part", "PathLike", "RunOptions", "Vintage"]

PathLike = str | os.PathLike[str]
#: A name in `pipelines/`, a path, or the definition itself.
Definition = str | os.PathLike[str] | Mapping[str, Any]
#: `"2026-03-31"`, a date, or a datetime at midnight.
Day = str | datetime.date
#: `"2026-03-31"` or a date for the end of that day in UTC, `"2026-03-31T18:00:00Z"`, or a datetime with a time zone.
Instant = str | datetime.date | datetime.datetime

#: As revised, or as first published.
Vintage = Literal["latest", "first"]


class Part(TypedDict):
    """A part of a dataset."""

    columns: list[str] | None
    tickers: list[str] | None
    start: str | None
    end: str | None


class RunOptions(TypedDict):
    """The options of a run."""

    fresh: bool
    wait: float | None
    today: str | None


def part(
    columns: Iterable[str] | None, tickers: str | Iterable[str] | None, start: Day | None, end: Day | None
) -> Part:
    """A part of a dataset."""
    return {
        "columns": None if columns is None else list(columns),
        "tickers": names(tickers),
        "start": day(start),
        "end": day(end),
    }


def instant(value: Instant | None) -> str | None:
    """An instant."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise UsageError(f"`{value}` has no time zone", 'add one, such as `tzinfo=datetime.timezone.utc`')
        return value.isoformat()
    return None if value is None else str(value)


def day(value: Day | None) -> str | None:
    """A day."""
    if isinstance(value, datetime.datetime):
        if value.time() != datetime.time():
            raise UsageError(f"`{value}` is not a day", "use a date")
        return value.date().isoformat()
    return None if value is None else str(value)


def names(value: str | Iterable[str] | None) -> list[str] | None:
    """One name, or several."""
    if value is None:
        return None
    return [value] if isinstance(value, str) else list(value)


def data(folder: PathLike | None) -> Path:
    """The folder of the datasets and the archive. Default: that of the project, found like the program does."""
    return _bellwether.data_folder() if folder is None else Path(folder)


def folders(folder: PathLike | None, archive: PathLike | None) -> tuple[Path, Path]:
    """The data folder, and the archive."""
    folder = data(folder)
    return folder, folder / "archive" if archive is None else Path(archive)


def definition(value: Definition) -> str | tuple[str, str]:
    """A definition by name or path, or its name and text."""
    return _definition.written(value) if isinstance(value, Mapping) else os.fspath(value)
