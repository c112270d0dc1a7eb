"""Datasets."""

from __future__ import annotations

import datetime
import json
import warnings
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _bellwether, _html, _table, _values
from ._errors import BellwetherError, UsageError
from ._progress import BellwetherWarning
from ._table import Table, to_pandas, widened
from ._values import Day, Definition, Include, Instant, Missing, Names, PathLike, Prices, Stamp, Vintage
from ._wide import Matrix, Wide

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Dataset", "load"]

#: How a dataset was loaded: what was asked for, the options, the part, and prices.
Origin = tuple[_values.Subject, _values.LoadOptions, _values.Part, Any]


@overload
def load(
    dataset: Definition,
    *,
    layout: Literal["long"] = "long",
    as_of: Instant | None = None,
    vintage: Vintage | None = None,
    include: Include | None = None,
    columns: Names | None = None,
    tickers: Names | None = None,
    sectors: Names | None = None,
    periods: Names | None = None,
    regimes: Names | None = None,
    start: Day | None = None,
    end: Day | None = None,
    missing: Missing = "fail",
    add: Names | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Dataset: ...
@overload
def load(
    dataset: Definition,
    *,
    layout: Literal["wide"],
    as_of: Instant | None = None,
    vintage: Vintage | None = None,
    include: Include | None = None,
    columns: Names | None = None,
    tickers: Names | None = None,
    sectors: Names | None = None,
    periods: Names | None = None,
    regimes: Names | None = None,
    start: Day | None = None,
    end: Day | None = None,
    missing: Missing = "fail",
    stamp: Stamp = "date",
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Wide: ...
def load(
    dataset: Definition,
    *,
    layout: Literal["long", "wide"] = "long",
    as_of: Instant | None = None,
    vintage: Vintage | None = None,
    include: Include | None = None,
    columns: Names | None = None,
    tickers: Names | None = None,
    sectors: Names | None = None,
    periods: Names | None = None,
    regimes: Names | None = None,
    start: Day | None = None,
    end: Day | None = None,
    missing: Missing = "fail",
    add: Names | None = None,
    stamp: Stamp = "date",
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Dataset | Wide:
    """A dataset: a published version, or one built from the archive while it is read.

    `dataset` is the name of a dataset for its latest version, `NAME/VERSION`, `NAME/builds/VERSION`, or the folder of a version.

    With `as_of`, `vintage` or `include`, or a definition as a dict, the dataset is built from the archive each time it is read,
    and no file is written. `as_of` uses only observations up to that instant; a day means its end in UTC. The name of a version or of
    a run stands for what it was made from, and for the definition as it was then. `vintage="first"` uses each signal as it was
    first published. `include="claimed"` counts what was imported, too.

    `columns`, `tickers`, `sectors`, `periods`, `regimes`, `start` (inclusive) and `end` (exclusive) select a part; only that part
    is read. Rows are selected by the columns of the dataset: what it has no column for is refused, and so are names that it has
    no rows of. With `missing="ignore"`, tickers without rows are left out: a universe may be wider than the dataset.

    `add` names columns that a version may not have, such as `tradable_at` or `known_at`: it is built again, from its own runs.

    `layout="wide"` gives a matrix of dates by tickers for each period, regime and column, by name. The default column is
    `score`, the confidence, negative for a sell; or those of a version that was published wide. With `stamp="session"`, a row
    is that of the session at whose close its signals can be entered, and not of their date: prices at the same index are not
    those that a signal may know.

    >>> import bellwether as bw
    >>> dataset = bw.load("demo", tickers="XOM", columns=["date", "signal", "confidence"])
    >>> dataset.to_polars().columns
    ['date', 'signal', 'confidence']
    >>> wide = bw.load("demo", layout="wide", tickers=["CVX", "XOM"], stamp="session")
    >>> wide["5d-neutral/score"].to_pandas().columns
    Index(['CVX', 'XOM'], dtype='str', name='ticker')
    """
    options: _values.LoadOptions = {
        "layout": _values.text("layout", layout),
        "by_session": _values.is_by_session("stamp", stamp),
        "ignores_missing": _values.choice("missing", missing, ["fail", "ignore"]) == "ignore",
        "add": _values.names("add", add) or [],
        "labels": [],
        "lag": None,
    }
    selectors = {"sectors": sectors, "periods": periods, "regimes": regimes}
    part = _values.part(columns, tickers, start, end, **selectors)
    given, instant = _values.definition(dataset, "dataset"), _values.instant("as_of", as_of)
    subject = _values.subject(given, _values.folders(data, archive), as_of=instant, vintage=vintage, include=include)
    return of(subject, options, part)


def of(subject: _values.Subject, options: _values.LoadOptions, part: _values.Part, prices: Any = None) -> Dataset | Wide:
    """A part of a dataset; without a layout, in that of its version."""
    rows, matrices, record = _bellwether.load(subject, options, part, prices)
    identity = json.loads(record)
    if (note := identity.get("note")) is not None:
        warnings.warn(note, BellwetherWarning, stacklevel=3)
    # A published version stays what it is when `latest` is another one, and a definition in another folder.
    given = identity.get("path") or identity.get("definition") or subject["definition"]
    pinned = identity.get("pinned") or subject["as_of"]
    origin: Origin = (_values.Subject(**{**subject, "definition": given, "as_of": pinned}), options, part, prices)
    if rows is not None:
        return Dataset(rows, identity, origin)
    return Wide(identity["name"], {name: Matrix(name, matrix) for name, matrix in matrices}, (of, origin))


def of_version(name: str, data: Path) -> Dataset | Wide:
    """A published version, long or wide as it is."""
    options: _values.LoadOptions = {
        "layout": None,
        "by_session": False,
        "ignores_missing": False,
        "add": [],
        "labels": [],
        "lag": None,
    }
    return of(_values.subject(name, _values.folders(data, None)), options, _values.part(None, None, None, None))


class Dataset(Table):
    """A dataset that can be read any number of times. `load` returns it.

    It has the Arrow C stream interface: `polars.DataFrame(dataset)`, `pyarrow.RecordBatchReader.from_stream(dataset)` or
    `duckdb.sql("from dataset")` read its rows batch by batch, so it may be larger than memory.

    A notebook shows its first rows. `len()` is the number of rows; that of a part, or of a dataset that is built while it is read, is counted by reading it.
    A pickle has the version and the selection, and no rows: another process on the same files reads them again.
    """

    __slots__ = ("_identity", "_origin")

    def __init__(self, rows: _bellwether.Rows, identity: dict[str, Any], origin: Origin) -> None:
        super().__init__(rows)
        self._identity = identity
        self._origin = origin

    @property
    def _part(self) -> _values.Part:
        return self._origin[2]

    def __len__(self) -> int:
        return self._rows.counted()

    def __bool__(self) -> bool:
        """Always true: whether it has rows is another question, which may take long to answer."""
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return of, self._origin

    @property
    def name(self) -> str:
        """Its name, with its version if it is published."""
        return str(self._identity["name"])

    @property
    def as_of(self) -> str | None:
        """The instant as of which it was built; none for the latest state of the archive."""
        as_of: str | None = self._identity["as_of"]
        return as_of

    @property
    def path(self) -> Path | None:
        """The folder of a published version."""
        path = self._identity.get("path")
        return None if path is None else Path(path)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a frame of Polars, which reads a version that is one Parquet file by itself."""
        import polars

        scan = self._scan()
        if scan is None:
            return super().to_polars()
        try:
            return widened(scan.collect())
        except polars.exceptions.PolarsError:
            # Our reader has better error messages.
            return super().to_polars()

    def lazy(self) -> pl.LazyFrame:
        """The selected rows and columns as a lazy frame of Polars.

        A version that is one Parquet file is scanned when the frame is collected; any other dataset is read now.

        >>> import bellwether as bw
        >>> bw.load("demo", tickers="XOM", columns=["date", "confidence"]).lazy().collect_schema().names()
        ['date', 'confidence']
        """
        import polars

        scan = self._scan()
        return self.to_polars().lazy() if scan is None else scan.cast({polars.Int8: polars.Int64})

    def _scan(self) -> pl.LazyFrame | None:
        """A scan of the selected rows and columns; none unless they are in one Parquet file."""
        import polars

        # Polars would wait for threads that are not there.
        _bellwether.refuse_fork()
        if self.path is None or not (file := self.path / f"{self.name.split('/')[0]}.parquet").is_file():
            return None
        # A path is never a pattern.
        rows = polars.scan_parquet(file, glob=False)
        names, part = self._identity["names"], self._part
        for column, wanted in (
            ("ticker", part["tickers"]),
            ("sector", part["sectors"]),
            ("period", part["periods"]),
            ("regime", part["regimes"]),
        ):
            if wanted is not None:
                rows = rows.filter(polars.col(names[column]).is_in(wanted))
        date = polars.col(names["date"])
        if (start := part["start"]) is not None:
            rows = rows.filter(date >= datetime.datetime.fromisoformat(start))
        if (end := part["end"]) is not None:
            rows = rows.filter(date < datetime.datetime.fromisoformat(end))
        return rows.select(self.columns)

    def _is_part(self) -> bool:
        return any(value is not None for value in self._part.values())

    def with_returns(
        self, prices: Prices | None = None, *, horizons: Names = "5d", lag: int = 1, add: Names | None = None
    ) -> Dataset:
        """The same dataset, as it was built, with returns beside its signals: `entry_at`, and for each horizon `exit_at_5d` and
        `return_5d`.

        It is the join of `skill`: what was seen live is entered at the first close after it was known, and what was backfilled
        at the close `lag` sessions after its date. `prices` are a frame, or files; default: those of the definition, or the
        demo's. Returns look ahead by design: they are what a model is trained for, never what it is trained on.

        >>> import bellwether as bw
        >>> frame = bw.load("demo", periods="5d").with_returns(horizons="5d").to_pandas()
        >>> (frame["entry_at"] > frame["date"])[frame["entry_at"].notna()].all()
        np.True_
        """
        labels, more = _values.names("horizons", horizons) or [], _values.names("add", add) or []
        return self._built(labels, more, _values.sessions("lag", lag), _values.prices("prices", prices))

    def _built(self, labels: list[str], add: list[str], lag: int | None, prices: Any) -> Dataset:
        """The same dataset with more columns, built by the rules of `lag` from `prices`."""
        subject, options, part, _ = self._origin
        options = _values.LoadOptions(**{**options, "labels": labels, "lag": lag, "add": [*options["add"], *add]})
        dataset = of(subject, options, _values.Part(**{**part, "columns": None}), prices)
        assert isinstance(dataset, Dataset)
        return dataset

    def factor(
        self,
        value: str | None = None,
        *,
        periods: Names | None = None,
        regimes: Names | None = None,
        stamp: Stamp = "session",
        prices: Prices | None = None,
        lag: int = 1,
    ) -> pd.Series[Any]:
        """A column for factor tools: a series by date and ticker, sorted, with naive dates.

        The default is `score`: the confidence, negative for a sell. Each value is stamped with the session at whose close it can
        be entered, as `skill` does it, so that a tool that trades at the price of the stamp does not look ahead. Sessions are
        those of `prices`, or of the definition's, the demo's or the calendar; `lag` is that of signals that were backfilled.
        `stamp="date"` keeps the vendor's dates, on whose closes nobody could trade.

        A signal becomes 1 for buy and -1 for sell. A dataset of several periods or regimes takes a choice.

        >>> import bellwether as bw
        >>> factor = bw.load("demo").factor(periods="5d", regimes="neutral")
        >>> factor.index.names
        FrozenList(['date', 'ticker'])
        """
        names = self._identity["names"]
        chosen: str = names["score"] if value is None else _values.text("value", value)
        choices = {
            "period": _values.one_name("periods", periods),
            "regime": _values.one_name("regimes", regimes),
        }
        by_session = _values.is_by_session("stamp", stamp)
        lag, given_prices = _values.sessions("lag", lag), _values.prices("prices", prices)
        key = [names["date"], names["ticker"]]
        if chosen in key:
            raise UsageError(f"`{chosen}` is in the index of every factor", "name a column of values, such as `confidence`")
        part = _values.Part(**{**self._part, "columns": None})
        for column, wanted in choices.items():
            selected = part[f"{column}s"]  # type: ignore[literal-required]
            if wanted is not None and selected is not None and wanted not in selected:
                what = f"the dataset was loaded without {column} `{wanted}`"
                raise UsageError(what, f"add it to `{column}s` of `load`, or choose another one")
            part[f"{column}s"] = selected if wanted is None else [wanted]  # type: ignore[literal-required]
        rows, session = self._rows, names["entry_at"]
        if by_session and session not in self.columns:
            rows = self._built([], ["entry_at"], lag, given_prices)._rows
        # What tells the rows of several periods and regimes apart, if the dataset has it.
        known = {name for name, _ in rows.select(part).columns}
        of_pair = [names[column] for column in choices if names[column] in known and names[column] != chosen]
        part["columns"] = [*key, *of_pair, *([session] if by_session else []), chosen]
        frame = to_pandas(rows.select(part))
        for column, wanted in choices.items():
            # A dataset of one period or regime may leave out its column.
            if wanted is None and names[column] in frame.columns:
                found = sorted(frame[names[column]].astype(str).unique())
                if len(found) > 1:
                    what = f"the dataset has several {column}s: {', '.join(found)}"
                    raise UsageError(what, f"choose one with `{column}s=`")
        if by_session:
            # What has no session cannot be traded. Of two dates with one session, the later one counts.
            frame = frame.dropna(subset=[session]).sort_values(names["date"])
            frame = frame.drop_duplicates([session, names["ticker"]], keep="last")
            frame[names["date"]] = frame[session]
        series = frame.set_index(key)[chosen].sort_index()
        if chosen == names["signal"]:
            return series.astype(str).map({"buy": 1.0, "sell": -1.0})
        return series

    def _title(self) -> str:
        as_of = f", as of {self.as_of}" if self.as_of else ""
        part = "part of " if self._is_part() else ""
        if self.path is None:
            return f"Dataset {part}{self.name}{as_of}, built from the archive when it is read: {len(self.columns)} columns"
        return f"Dataset {part}{self.name}: {part}{self._identity['rows']:,} rows{as_of}, {len(self.columns)} columns"

    def __repr__(self) -> str:
        try:
            return super().__repr__()
        except BellwetherError as error:
            return f"{self._title()}\n{error}"

    def _repr_html_(self) -> str:
        try:
            rows = _html.table(self.columns, self._rows.text(self._shown))
        except BellwetherError as error:
            rows = f"<pre>{escape(str(error))}</pre>"
        return self._facts_html() + rows

    def _facts_html(self) -> str:
        """What is known of it."""
        facts = self._identity.get("facts")
        if not facts or self._is_part():
            return _html.section(self._title(), "")
        first, last = facts["dates"] or ("-", "-")
        rows = [
            ("rows", f"{self._identity['rows']:,}"),
            ("tickers", f"{facts['tickers']:,}"),
            ("dates", f"{first} to {last}"),
            ("as of", escape(self.as_of or "")),
            ("folder", escape(str(self.path))),
            ("signals", _html.sparkline(facts["over_time"], "signals over time", low=0)),
        ]
        return _html.section(f"Dataset {self.name}", _html.facts(rows))
