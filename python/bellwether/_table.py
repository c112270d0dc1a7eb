"""Rows for data frame libraries."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from . import _html, _values
from ._bellwether import Rows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["Answer", "Skill", "Table"]

#: Rows in a repr.
_SHOWN = 10

#: Totals in a repr.
_FACTS = 30


class Table:
    """Rows for any data frame library, without a copy and without pyarrow.

    Any reader of Arrow C streams can read it, any number of times: `polars.DataFrame(table)`,
    `pyarrow.RecordBatchReader.from_stream(table)`, `duckdb.sql("from table")`.
    """

    __slots__ = ("_rows", "_shown")

    def __init__(self, rows: Rows, shown: int = _SHOWN) -> None:
        self._rows = rows
        self._shown = shown

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self._rows.columns]

    @property
    def types(self) -> dict[str, str]:
        """The columns and their types, in words."""
        return dict(self._rows.columns)

    def head(self, count: int = _SHOWN) -> Table:
        """The first rows, in memory. A notebook shows all of them."""
        count = _values.count("count", count)
        return Table(self._rows.head(count), count)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars DataFrame."""
        import polars

        return widened(polars.DataFrame(self._rows.read()))

    def to_arrow(self) -> pa.Table:
        """All rows as a pyarrow Table."""
        import pyarrow

        return pyarrow.table(self._rows.read())

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame. Needs pyarrow."""
        return to_pandas(self._rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow C stream, batch by batch. Each call reads them again."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns as an Arrow schema."""
        return self._rows.__arrow_c_schema__()

    def _title(self) -> str:
        count = self._rows.count
        rows = "" if count is None else f"{count:,} rows, "
        return f"{type(self).__name__}: {rows}{len(self.columns)} columns"

    def __repr__(self) -> str:
        return f"{self._title()}\n{_html.align(self.columns, self._rows.text(self._shown))}"

    def _repr_html_(self) -> str:
        return _html.section(self._title(), _html.table(self.columns, self._rows.text(self._shown)))


class Answer(Table):
    """The rows of a query in memory, and their totals.

    `len()` is the number of rows.
    """

    __slots__ = ("_text", "totals")

    #: What the program prints instead of the totals and the rows.
    _text: str | None
    #: The totals, by name; `bellwether schema --for` describes them.
    totals: dict[str, Any]

    def __init__(self, rows: Rows, totals: dict[str, Any], text: str | None = None) -> None:
        super().__init__(rows)
        self.totals = totals
        self._text = text

    def __len__(self) -> int:
        return self._rows.count or 0

    def _facts(self) -> list[tuple[str, str]]:
        """The totals that fit on a screen; `totals` has all of them."""
        facts = [(name, _html.number(value)) for name, value in _html.flat(self.totals) if not isinstance(value, list) or not value]
        more = [("and", f"{len(facts) - _FACTS:,} more in `totals`")] if len(facts) > _FACTS else []
        return facts[:_FACTS] + more

    def __repr__(self) -> str:
        if self._text is not None:
            return f"{self._text}\n{self._title()}"
        totals = "".join(f"{name}: {value}\n" for name, value in self._facts())
        return totals + super().__repr__()

    def _repr_html_(self) -> str:
        if self._text is not None:
            return _html.section(self._title(), f"<pre>{escape(self._text)}</pre>")
        totals = [[name, value] for name, value in self._facts()]
        facts = _html.table(["", ""], totals) if totals else ""
        return facts + super()._repr_html_()


class Skill(Answer):
    """Whether signals predicted. `skill` returns it; its rows are those that the program writes.

    The tables have the same rows by what they are of, each with the columns that they have.
    """

    __slots__ = ("by_date", "by_lag", "features", "pairs")

    #: A row for each pair of period and regime, and state, over all dates.
    pairs: Table
    #: A row for each of their dates.
    by_date: Table
    #: A row for each number of sessions after which the returns begin.
    by_lag: Table
    #: A row for each feature of the news.
    features: Table

    def __init__(self, rows: Rows, parts: Sequence[Rows], totals: dict[str, Any], text: str) -> None:
        super().__init__(rows, totals, text)
        self.pairs, self.by_date, self.by_lag, self.features = map(Table, parts)


def widened(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame with signals as numbers of 64 bits: those of eight would overflow at once."""
    import polars

    return frame.cast({polars.Int8: polars.Int64})


def to_pandas(rows: Rows) -> pd.DataFrame:
    """All rows as a pandas DataFrame. Signals of matrices have 64 bits, or are floats where some are missing."""
    import pyarrow

    table: pa.Table = pyarrow.table(rows.read())
    whole = [pyarrow.field(field.name, pyarrow.int64()) if field.type == pyarrow.int8() else field for field in table.schema]
    table = table.cast(pyarrow.schema(whole))
    # What is in one piece without nulls would be shared, and could not be written.
    pieces = [pyarrow.chunked_array([*column.chunks, column.slice(0, 0).combine_chunks()], column.type) for column in table.columns]
    table = pyarrow.table(pieces, schema=table.schema)
    del pieces
    # A block per column: each is freed when it is copied.
    frame: pd.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True)
    return frame
