"""Arguments in the form that the compiled part expects.

Each argument is checked once: here for its type, in the compiled part for what it says. Both name it as it is called.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict, runtime_checkable

from . import _bellwether, _definition
from ._errors import UsageError

__all__ = [
    "ArrowStream",
    "Day",
    "Definition",
    "GetOptions",
    "Include",
    "Instant",
    "LoadOptions",
    "Missing",
    "Names",
    "Part",
    "PathLike",
    "Prices",
    "RunOptions",
    "Stamp",
    "Subject",
    "TableColumns",
    "Vintage",
]

PathLike = str | os.PathLike[str]
#: A name in `pipelines/`, a path, or the definition itself.
Definition = str | os.PathLike[str] | Mapping[str, Any]
#: `"2026-03-31"`, a date, or a datetime at midnight.
Day = str | datetime.date
#: `"2026-03-31"` or a date for the end of that day in UTC, `"2026-03-31T18:00:00Z"`, or a datetime with a time zone.
Instant = str | datetime.date | datetime.datetime
#: One name, or several.
Names = str | Iterable[str]



@runtime_checkable
class ArrowStream(Protocol):
    """Rows with the Arrow C stream interface: a frame of Polars or pandas, a table of pyarrow, or one of this package."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows."""


#: Files, which may have a `*` in their names, or rows.
Prices = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | ArrowStream

#: Whether names without rows are an error, or left out.
Missing = Literal["fail", "ignore"]
Stamp = Literal["date", "session"]

#: As revised, or as first published.
Vintage = Literal["latest", "first"]

#: What counts that the definition leaves out: what was imported.
Include = Literal["claimed"]


class Part(TypedDict):
    """A part of a dataset."""

    columns: list[str] | None
    tickers: list[str] | None
    sectors: list[str] | None
    periods: list[str] | None
    regimes: list[str] | None
    start: str | None
    end: str | None


class Subject(TypedDict):
    """What a call is about: a definition, or all that is known of a service, in its folders; and which data of it."""

    definition: str | tuple[str, str] | None
    service: str | None
    data: Path
    archive: Path
    as_of: str | None
    vintage: str | None
    claimed: bool


class LoadOptions(TypedDict):
    """How to load a dataset."""

    layout: str | None
    by_session: bool
    ignores_missing: bool
    add: list[str]
    labels: list[str]
    lag: int | None


class GetOptions(TypedDict):
    """What a service is asked, besides the part of its signals."""

    last: str
    news: bool
    demo: bool
    keep: bool


class TableColumns(TypedDict):
    """What the columns of a table are."""

    ticker: str
    date: str
    decided_at: str | None
    at: str | None
    period: str | None
    regime: str | None
    features: bool


class RunOptions(TypedDict):
    """The options of a run."""

    fresh: bool
    wait: float | None
    today: str | None


def subject(
    definition: str | tuple[str, str] | None,
    folders: tuple[Path, Path],
    *,
    as_of: str | None = None,
    vintage: Vintage | None = None,
    include: Include | None = None,
    service: str | None = None,
) -> Subject:
    """What a call is about."""
    return {
        "definition": definition,
        "service": optional_text("service", service),
        "data": folders[0],
        "archive": folders[1],
        "as_of": as_of,
        "vintage": optional_text("vintage", vintage),
        "claimed": include is not None and choice("include", include, ["claimed"]) == "claimed",
    }


def part(
    columns: Names | None,
    tickers: Names | None,
    start: Day | None,
    end: Day | None,
    *,
    sectors: Names | None = None,
    periods: Names | None = None,
    regimes: Names | None = None,
) -> Part:
    """A part of a dataset."""
    return {
        "columns": names("columns", columns),
        "tickers": names("tickers", tickers),
        "sectors": names("sectors", sectors),
        "periods": names("periods", periods),
        "regimes": names("regimes", regimes),
        "start": day("start", start),
        "end": day("end", end),
    }


def text(argument: str, value: str) -> str:
    """Text. What an enumeration holds counts, not its name."""
    if not isinstance(value, str):
        raise invalid(argument, value, "it is not text", "use text")
    if not value:
        raise invalid(argument, value, "it is empty", "name something, or leave it out")
    return str.__str__(value)


def optional_text(argument: str, value: str | None) -> str | None:
    """Text, or none."""
    return None if value is None else text(argument, value)


def choice(argument: str, value: str, choices: list[str]) -> str:
    """One of a few texts."""
    found = text(argument, value)
    if found not in choices:
        listed = " nor ".join(f"`{name}`" for name in choices)
        refusal, hint = f"it is neither {listed}", "choose one of them"
        if len(choices) == 1:
            refusal, hint = f"it is not {listed}", f"leave it out, or use {listed}"
        raise invalid(argument, value, refusal, hint)
    return found


def is_by_session(argument: str, value: Stamp) -> bool:
    """Whether the session of its entry dates a row, and not its date."""
    return choice(argument, value, ["date", "session"]) == "session"


def one_name(argument: str, value: Names | None) -> str | None:
    """One name, or none."""
    found = names(argument, value)
    if found is not None and len(found) != 1:
        raise invalid(argument, value, "it is not one name", "choose one")
    return None if found is None else found[0]


def names(argument: str, value: Names | None) -> list[str] | None:
    """One name, or several."""
    if value is None:
        return None
    if isinstance(value, str):
        return [str.__str__(value)]
    if isinstance(value, (bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise invalid(argument, value, "it is neither a name nor several", "use a name, or a list of names")
    listed = list(value)
    for name in listed:
        if not isinstance(name, str):
            raise invalid(argument, name, "it is not a name", "names are text")
    return [str.__str__(name) for name in listed]


def needed_names(argument: str, value: Names) -> list[str]:
    """One name, or several, at least one."""
    found = names(argument, value)
    if not found:
        raise invalid(argument, value, "it names nothing", "use a name, or a list of names")
    return found


def instant(argument: str, value: Instant | None) -> str | None:
    """An instant."""
    value = _of_numpy(argument, value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise invalid(argument, value, "it has no time zone", "add one, such as `tzinfo=datetime.timezone.utc`")
        return value.isoformat()
    return day(argument, value)


def day(argument: str, value: Day | None) -> str | None:
    """A day."""
    value = _of_numpy(argument, value)
    if isinstance(value, datetime.datetime):
        if value.time() != datetime.time():
            raise invalid(argument, value, "it is not a day", "use a date")
        return value.date().isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if value is None or isinstance(value, str):
        return None if value is None else str.__str__(value)
    raise invalid(argument, value, "it is not a day", "use a date, or text such as `2026-03-31`")


def _of_numpy(argument: str, value: Any) -> Any:
    """A `datetime64` of NumPy, which frames have as dates, as a datetime. What is no time in a frame is none here."""
    if type(value).__name__ == "NaTType":
        raise invalid(argument, value, "it is not a time", "leave it out, or use a date")
    if type(value).__module__ != "numpy" or type(value).__name__ != "datetime64":
        return value
    found = value.astype("datetime64[us]").item()
    if found is None:
        raise invalid(argument, value, "it is not a time", "leave it out, or use a date")
    return found


def flag(argument: str, value: bool) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise invalid(argument, value, "it is neither true nor false", "use `True` or `False`")
    return value


def seconds(argument: str, value: float | None) -> float | None:
    """A number of seconds."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise invalid(argument, value, "it is not a number", "use a number of seconds, such as 900")
    return float(value)


def whole(argument: str, value: int | None) -> int | None:
    """A whole number of 64 bits."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value < 2**64:
        raise invalid(argument, value, "it is not a whole number", "use a number from 0 to 2**64 - 1")
    return int(value)


def count(argument: str, value: int) -> int:
    """A number of rows."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value < 2**63:
        raise invalid(argument, value, "it is not a number of rows", "use a whole number, such as 20")
    return int(value)


def sessions(argument: str, value: int) -> int:
    """A number of sessions."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value < 2**16:
        raise invalid(argument, value, "it is not a number of sessions", "use a whole number, such as 1")
    return int(value)


def prices(argument: str, value: Prices | None) -> list[Path] | ArrowStream | None:
    """Rows, or files."""
    if value is None or isinstance(value, ArrowStream):
        return value
    if isinstance(value, (str, os.PathLike)):
        return [path(argument, value)]
    # A frame without the interface would be taken for the names of its columns.
    if isinstance(value, (bytes, bytearray, Mapping)) or hasattr(value, "columns") or not isinstance(value, Iterable):
        hint = "use a frame of Polars, pandas or pyarrow, or the path of a file"
        raise invalid(argument, value, "it is neither rows nor files", hint)
    files = [path(argument, file) for file in value]
    if not files:
        raise invalid(argument, value, "it names no file", "leave it out for the files of the definition")
    return files


def table(argument: str, value: PathLike | ArrowStream) -> list[Path] | ArrowStream:
    """Rows, or a file."""
    if isinstance(value, ArrowStream):
        return value
    if isinstance(value, (str, os.PathLike)):
        return [path(argument, value)]
    hint = "use a frame of Polars, pandas or pyarrow, or the path of a file"
    raise invalid(argument, value, "it is neither rows nor a file", hint)


def progress(value: bool | Callable[[Any], object]) -> bool | Callable[[Any], object]:
    """Whether to show progress, or the function to call."""
    if not isinstance(value, bool) and not callable(value):
        raise invalid("progress", value, "it is not a function", "use `True`, `False`, or a function of an event")
    return value


def path(argument: str, value: PathLike) -> Path:
    """A path, absolute as of now: the current folder may change before it is used."""
    given = value if isinstance(value, str) else os.fspath(value) if isinstance(value, os.PathLike) else None
    if not isinstance(given, str):
        raise invalid(argument, value, "it is not a path", "use text, or a `pathlib.Path`")
    if not given:
        raise invalid(argument, given, "it is empty", "name a file or a folder, or leave it out")
    return Path(given).absolute()


def data(folder: PathLike | None) -> Path:
    """The folder of the datasets and the archive. Default: `BELLWETHER_DATA`, or that of the project, found like the program does."""
    return _bellwether.data_folder().absolute() if folder is None else path("data", folder)


def folders(folder: PathLike | None, archive: PathLike | None) -> tuple[Path, Path]:
    """The data folder, and the archive: by default `BELLWETHER_ARCHIVE`, or the one in the data folder."""
    of_data = data(folder)
    archive = os.environ.get("BELLWETHER_ARCHIVE") or None if archive is None else archive
    return of_data, of_data / "archive" if archive is None else path("archive", archive)


def target_folders(
    given: str | tuple[str, str], folder: PathLike | None, archive: PathLike | None
) -> tuple[Path, Path]:
    """The data folder in which a definition is published, and the archive."""
    return folders(_bellwether.data_folder(given).absolute() if folder is None else folder, archive)


def definition(value: Definition, argument: str = "definition") -> str | tuple[str, str]:
    """A definition by name or path, or its name and text."""
    if isinstance(value, Mapping):
        return _definition.to_toml(value)
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str):
        raise invalid(argument, value, "it is not a definition", "use a name, a path, or the definition as a dict")
    return text(argument, given)


def named_definition(value: Definition) -> str | tuple[str, str]:
    """A definition whose dataset is published, for which a dict needs a name."""
    if isinstance(value, Mapping) and value.get("name") is None:
        raise UsageError("the definition has no name to publish its dataset by", 'add one, such as `"name": "mine"`')
    return definition(value)


def invalid(argument: str, value: object, refusal: str, hint: str) -> UsageError:
    """The refusal of an argument, in the words of the compiled part."""
    shown = str(value) if isinstance(value, (str, datetime.date)) else repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
    return UsageError(f"invalid value `{shown}` for `{argument}`: {refusal}", hint)
