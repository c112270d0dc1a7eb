"""What a service says now."""

from __future__ import annotations

from . import _bellwether, _values
from ._table import Table
from ._values import Definition, Names, PathLike

__all__ = ["Now", "get"]


class Now(Table):
    """The signals of some tickers as a service says them now. `get` returns it.

    `len()` is the number of rows.
    """

    __slots__ = ("news",)

    #: The articles about the tickers, if news was asked for.
    news: Table | None

    def __init__(self, rows: _bellwether.Rows, news: _bellwether.Rows | None) -> None:
        super().__init__(rows)
        self.news = None if news is None else Table(news)

    def __len__(self) -> int:
        return self._rows.count or 0


def get(
    tickers: Names,
    *,
    periods: Names | None = None,
    regimes: Names | None = None,
    last: str = "30d",
    news: bool = False,
    definition: Definition | None = None,
    demo: bool = False,
    key: str | None = None,
    keep: bool = False,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Now:
    """Asks a service for the signals of some tickers now, and keeps nothing, like `bellwether get`.

    The service is that of `definition`, of the demo, of the only definition of the project, or of the environment. `last` is how
    far back to go: `30d`, `6m` or `2y`. With `news`, the features of the news are joined to the signals, and the articles are
    `news` of the result. `keep` seals the answers in the archive of the service, as a run does.

    >>> import bellwether as bw
    >>> bw.get("XOM", periods="5d", demo=True).columns[:2]
    ['ticker', 'date']
    """
    # The key is in no local variable that a traceback would show.
    key = None if key is None else _bellwether.Key(key)  # type: ignore[assignment]
    options: _values.GetOptions = {
        "last": _values.text("last", last),
        "news": _values.flag("news", news),
        "demo": _values.flag("demo", demo),
        "keep": _values.flag("keep", keep),
    }
    part = _values.part(None, _values.needed_names("tickers", tickers), None, None, periods=periods, regimes=regimes)
    given = None if definition is None else _values.definition(definition)
    return Now(*_bellwether.get(_values.subject(given, _values.folders(data, archive)), part, options, key))  # type: ignore[arg-type]
