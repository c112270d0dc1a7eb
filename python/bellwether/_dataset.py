"""Datasets."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _bellwether, _html, _table, _values
from ._errors import UsageError
from ._table import Table, to_pandas
from ._values import Day, Definition, Instant, PathLike, Vintage
from ._wide import Matrix, Wide

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Dataset", "load"]


@overload
def load(
    dataset: Definition,
    *,
    layout: Literal["long"] = "long",
    as_of: Instant | None = None,
    vintage: Vintage | None = None,
    columns: Iterable[str] | None = None,
    tickers: str | Iterable[str] | None = None,
    start: Day | None = None,
    end: Day | None = None,
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
    columns: Iterable[str] | None = None,
    tickers: str | Iterable[str] | None = None,
    start: Day | None = None,
    end: Day | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Wide: ...
def load(
    dataset: Definition,
    *,
    layout: Literal["long", "wide"] = "long",
    as_of: Instant | None = None,
    vintage: Vintage | None = None,
    columns: Iterable[str] | None = None,
    tickers: str | Iterable[str] | None = None,
    start: Day | None = None,
    end: Day | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Dataset | Wide:
    """A dataset: a published version, or one built from the archive while it is read.

    `dataset` is the name of a dataset for its latest version, `NAME/VERSION`, `NAME/builds/VERSION`, or the folder of a version.

    With `as_of` or `vintage`, or a definition as a dict, the dataset is built from the archive each time it is read, and no
    file is written. `as_of` uses only observations up to that instant; a day means its end in UTC. `vintage="first"` uses each
    signal as it was first published.

    `columns`, `tickers`, `start` (inclusive) and `end` (exclusive) select a part; only that part is read.

    `layout="wide"` gives a matrix of dates by tickers for each period, regime and column, by name. The default columns are
    `signal` (1 for buy, -1 for sell) and `confidence`.

    >>> import bellwether as bw
    >>> dataset = bw.load("demo", tickers="XOM", columns=["date", "signal", "confidence"])
    >>> dataset.to_polars().columns
    ['date', 'signal', 'confidence']
    >>> wide = bw.load("demo", layout="wide", tickers=["CVX", "XOM"])
    >>> wide["5d-neutral/confidence"].to_pandas().columns
    Index(['CVX', 'XOM'], dtype='str', name='ticker')
    """
    definition = _values.definition(dataset)
    folder, archive = _values.folders(data, archive)
    is_published = as_of is None and vintage is None and isinstance(definition, str)
    names = None if columns is None else list(columns)
    part = _values.part(names, tickers, start, end)
    if layout == "wide" and is_published and isinstance(definition, str):
        if (found := _bellwether.published_wide(folder / "datasets", definition, part)) is not None:
            matrices, identity = found
            return Wide(json.loads(identity)["name"], {name: Matrix(name, matrix) for name, matrix in matrices})
    if layout == "wide":
        part["columns"] = None
    if is_published and isinstance(definition, str):
        rows, identity = _bellwether.published(folder / "datasets", definition, part)
    else:
        options = (_values.instant(as_of), vintage)
        rows, identity = _bellwether.built(definition, folder, archive, options, part)
    loaded = Dataset(rows, json.loads(identity), part)
    if layout == "long":
        return loaded
    matrices = _bellwether.matrices(rows, names)
    return Wide(loaded.name, {name: Matrix(name, matrix) for name, matrix in matrices})


class Dataset(Table):
    """A dataset that can be read any number of times. `load` returns it.

    It has the Arrow C stream interface: `polars.DataFrame(dataset)`, `pyarrow.RecordBatchReader.from_stream(dataset)` or
    `duckdb.sql("from dataset")` read its rows batch by batch, so it may be larger than memory.
    """

    __slots__ = ("_identity", "_part")

    def __init__(self, rows: _bellwether.Rows, identity: dict[str, Any], part: _values.Part) -> None:
        super().__init__(rows)
        self._identity = identity
        self._part = part

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

        if self.path is None or not (file := self.path / f"{self.name.split('/')[0]}.parquet").is_file():
            return super().to_polars()
        rows = polars.scan_parquet(file)
        ticker, date = (polars.col(self._identity["names"][column]) for column in ("ticker", "date"))
        if (tickers := self._part["tickers"]) is not None:
            rows = rows.filter(ticker.is_in(tickers))
        if (start := self._part["start"]) is not None:
            rows = rows.filter(date >= datetime.datetime.fromisoformat(start))
        if (end := self._part["end"]) is not None:
            rows = rows.filter(date < datetime.datetime.fromisoformat(end))
        try:
            return rows.select(self.columns).collect()
        except polars.exceptions.PolarsError:
            # Our reader has better error messages.
            return super().to_polars()

    def _is_part(self) -> bool:
        return any(value is not None for value in self._part.values())

    def factor(self, value: str, *, period: str | None = None, regime: str | None = None) -> pd.Series[Any]:
        """A column for factor tools: a series by date and ticker, sorted, with naive dates.

        A signal becomes 1 for buy and -1 for sell. A dataset of several periods or regimes takes a choice.

        >>> import bellwether as bw
        >>> factor = bw.load("demo").factor("confidence", period="5d", regime="neutral")
        >>> factor.index.names
        FrozenList(['date', 'ticker'])
        """
        names = self._identity["names"]
        key = [names["date"], names["ticker"]]
        # A dataset of one period or regime may leave out its column.
        choices = [(names[column], wanted) for column, wanted in (("period", period), ("regime", regime))]
        whole = [name for name, _ in self._rows.select({**self._part, "columns": None}).columns]
        choices = [(column, wanted) for column, wanted in choices if wanted is not None or column in whole]
        columns = list(dict.fromkeys([*key, *(column for column, _ in choices), value]))
        frame = to_pandas(self._rows.select({**self._part, "columns": columns}))
        for column, wanted in choices:
            found = sorted(frame[column].astype(str).unique())
            if wanted is None and len(found) > 1:
                raise UsageError(f"the dataset has several {column}s: {', '.join(found)}", f"choose one with `{column}=`")
            if wanted is not None:
                frame = frame[frame[column] == wanted]
        series = frame.set_index(key)[value].sort_index()
        if value == names["signal"]:
            return series.astype(str).map({"buy": 1, "sell": -1})
        return series

    def _title(self) -> str:
        as_of = f", as of {self.as_of}" if self.as_of else ""
        part = "part of " if self._is_part() else ""
        if self.path is None:
            return f"Dataset {part}{self.name}{as_of}, built from the archive when it is read: {len(self.columns)} columns"
        return f"Dataset {part}{self.name}: {part}{self._identity['rows']:,} rows{as_of}, {len(self.columns)} columns"

    def __repr__(self) -> str:
        return f"<{self._title()}>"

    def _repr_html_(self) -> str:
        facts = self._identity.get("facts")
        if not facts or self._is_part():
            return _html.titled(self._title(), _html.facts([("columns", escape(", ".join(self.columns)))]))
        first, last = facts["dates"] or ("-", "-")
        over_time = facts["over_time"]
        rows = [
            ("rows", f"{self._identity['rows']:,}"),
            ("tickers", f"{facts['tickers']:,}"),
            ("dates", f"{first} to {last}"),
            ("as of", escape(self.as_of or "")),
            ("signals", _html.sparkline(over_time["signals"], "signals over time", low=0)),
            ("share of buys", _html.sparkline(over_time["buys"], "share of buys over time", low=0, high=1)),
            ("confidence", _html.sparkline(over_time["confidence"], "mean confidence over time")),
        ]
        return _html.titled(f"Dataset {self.name}", _html.facts(rows))
