"""Datasets as matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _html
from ._bellwether import Rows
from ._table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Matrix", "Wide"]


class Matrix(Table):
    """Values of one column by date and ticker: a column of dates, then a column per ticker."""

    __slots__ = ("name",)

    #: Its name: `5d-neutral/confidence`.
    name: str

    def __init__(self, name: str, rows: Rows) -> None:
        super().__init__(rows)
        self.name = name

    @property
    def tickers(self) -> list[str]:
        """The tickers, which are its columns."""
        return self.columns[1:]

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame with naive dates as its index and tickers as its columns. Needs pyarrow."""
        frame = super().to_pandas().set_index(self.columns[0])
        frame.columns.name = "ticker"
        return frame

    def _title(self) -> str:
        return f"Matrix {self.name}: {len(self.tickers)} tickers"


class Wide(Mapping[str, Matrix]):
    """The matrices of a dataset, one for each period, regime and column, by name: `wide["5d-neutral/confidence"]`.

    A pickle has the version and the selection, and no values: another process on the same files reads them again.
    """

    __slots__ = ("_matrices", "_origin", "name")

    #: The name of the dataset.
    name: str

    def __init__(self, name: str, matrices: dict[str, Matrix], origin: tuple[Any, ...]) -> None:
        self.name = name
        self._matrices = matrices
        self._origin = origin

    def __reduce__(self) -> tuple[Any, ...]:
        return self._origin

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __getitem__(self, key: str) -> Matrix:
        try:
            return self._matrices[key]
        except KeyError:
            raise KeyError(f"no matrix `{key}`; there are {', '.join(self._matrices)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._matrices)

    def __len__(self) -> int:
        return len(self._matrices)

    def __repr__(self) -> str:
        return f"<Wide {self.name}: {', '.join(self._matrices)}>"

    def _repr_html_(self) -> str:
        rows = [[name, f"{len(matrix.tickers):,}"] for name, matrix in self._matrices.items()]
        return _html.section(f"Wide {self.name}", _html.table(["matrix", "tickers"], rows))
