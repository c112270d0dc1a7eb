"""Queries of definitions, the archive and published versions."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from . import _bellwether, _dataset, _html, _values
from ._dataset import Dataset
from ._errors import UsageError
from ._progress import BellwetherWarning
from ._table import Answer, Skill, Table
from ._values import ArrowStream, Day, Definition, Include, Instant, Names, PathLike, Prices
from ._wide import Wide

__all__ = [
    "Catalog",
    "Report",
    "articles",
    "audit_table",
    "check",
    "datasets",
    "demo_prices",
    "diff",
    "history",
    "quality",
    "query",
    "report",
    "revisions",
    "runs",
    "sectors",
    "skill",
    "tickers",
]


def check(definition: Definition) -> dict[str, Any]:
    """What `bellwether check --json` says of a definition: its problems; without any, its plan, which has its requests and columns.

    >>> import bellwether as bw
    >>> checked = bw.check("demo")
    >>> checked["ok"], checked["problems"], checked["plan"]["signals"][0]["requests"][0]
    (True, [], 'signals-history-all?sector=energy&period=5d&regime=neutral')
    >>> wrong = {"source": {"service": "demo"}, "signals": {"sectors": ["energy"], "periods": ["45d"]}}
    >>> bw.check(wrong)["problems"][0]["hint"]
    'periods are 1d to 30d and 1m to 6m'
    """
    checked: dict[str, Any] = json.loads(_bellwether.check(_values.definition(definition)))
    for warning in checked["warnings"]:
        warnings.warn(warning, BellwetherWarning, stacklevel=2)
    return checked


def sectors(definition: Definition, *, key: str | None = None) -> list[str]:
    """The sectors that the service of a definition has signals of: of the usual names, and of those in the definition.

    >>> import bellwether as bw
    >>> "energy" in bw.sectors("demo")
    True
    """
    # The key is in no local variable that a traceback would show.
    key = None if key is None else _bellwether.Key(key)  # type: ignore[assignment]
    return list(json.loads(_bellwether.sectors(_values.definition(definition), key))["sectors"])  # type: ignore[arg-type]


def tickers(definition: Definition, *, key: str | None = None) -> list[str]:
    """The tickers that the service of a definition lists as available. It warns of entries that are no tickers.

    >>> import bellwether as bw
    >>> "XOM" in bw.tickers("demo")
    True
    """
    key = None if key is None else _bellwether.Key(key)  # type: ignore[assignment]
    offered = json.loads(_bellwether.tickers(_values.definition(definition), key))  # type: ignore[arg-type]
    if offered["rejected"]:
        warnings.warn(f"rejected {offered['rejected']:,} entries of the service's list: not a ticker", BellwetherWarning, stacklevel=2)
    return list(offered["tickers"])


def revisions(
    definition: Definition | None = None,
    *,
    after: Instant | None = None,
    until: Instant | None = None,
    include: Include | None = None,
    service: str | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Answer:
    """The vendor's rewrites: a row for each value that was added late, revised or withdrawn.

    Covers the dataset of a definition, or all that is known of a service, which need not be named if it is the only one.
    `after` and `until` are instants of observation. `include="claimed"` counts what was imported, too, as in the other queries.

    >>> import bellwether as bw
    >>> bw.revisions("demo").totals["signals"]["total"]["revised"]
    0
    """
    subject = _subject(definition, data, archive, include, _values.instant("until", until), service)
    rows, totals = _bellwether.revisions(subject, _values.instant("after", after))
    return Answer(rows, json.loads(totals))


def quality(
    definition: Definition | None = None,
    *,
    as_of: Instant | None = None,
    include: Include | None = None,
    service: str | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Answer:
    """Gaps, stale series, duplicate articles, unusual values, renamed tickers, rejected records and unknown fields: a row each.

    Covers the dataset of a definition, or all that is known of a service, which need not be named if it is the only one.

    >>> import bellwether as bw
    >>> bw.quality("demo").totals["rejected"]
    0
    """
    rows, totals = _bellwether.quality(_subject(definition, data, archive, include, _values.instant("as_of", as_of), service))
    return Answer(rows, json.loads(totals))


def skill(
    definition: Definition,
    *,
    prices: Prices | None = None,
    after: Instant | None = None,
    as_of: Instant | None = None,
    include: Include | None = None,
    lag: int = 1,
    allow_missing: bool = False,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Skill:
    """Whether signals predicted: as they were published, and as they stand today.

    A row for each date, pair of period and regime, and state; one without a date for all of them. Rows of a feature of the
    news have its name in `feature`. `pairs`, `by_date`, `by_lag` and `features` are these rows as tables of their own. `totals` is what `bellwether audit skill --json` prints, without `version`. `prices` are a frame of Polars, pandas or pyarrow, or files; columns that are
    not `ticker`, `date` and `close` are named in `[prices]`. Default: the files of the definition; the demo has its own.
    With `after`, what was rewritten is that since an instant, and not since it was published.
    A backfilled signal is entered `lag` sessions after its date. `allow_missing` measures the others if more than a fifth
    of the signals have no price.

    >>> import bellwether as bw
    >>> bw.skill("demo", prices=bw.demo_prices()).totals["signals"]["without_price"]
    0
    """
    rows, parts, totals, text = _bellwether.skill(
        _needed(definition, data, archive, include, as_of),
        _values.prices("prices", prices),
        _values.instant("after", after),
        _values.sessions("lag", lag),
        _values.flag("allow_missing", allow_missing),
    )
    return Skill(rows, parts, json.loads(totals), text)


def audit_table(
    table: PathLike | ArrowStream,
    definition: Definition | None = None,
    *,
    decided_at: str | None = None,
    at: str | None = None,
    ticker: str = "ticker",
    date: str = "date",
    period: str | None = None,
    regime: str | None = None,
    features: bool = False,
    as_of: Instant | None = None,
    include: Include | None = None,
    service: str | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Answer:
    """Look-ahead in a table of your own: a row for each value that was not the latest one by the time of decision.

    The table is a frame of Polars, pandas or pyarrow, or a file, with a ticker, a date, and columns named as in datasets:
    `signal`, `confidence` and `score` (the confidence, negative for a sell), or `title`, `link` and `score` of articles.
    `decided_at` is the column with the time of decision (default: `decided_at` if there is one, else the date). A day counts
    to its end in UTC, or to `at`, such as `"16:00 America/New_York"`. With `features`, features of the news are examined as
    well, for which the dataset is built as of the runs around each decision. `totals` is what `bellwether audit table --json` prints,
    without `version`.

    >>> import bellwether as bw
    >>> bw.audit_table(bw.load("demo"), "demo").totals["total"]["never"]
    0
    """
    columns: _values.TableColumns = {
        "ticker": _values.text("ticker", ticker),
        "date": _values.text("date", date),
        "decided_at": _values.optional_text("decided_at", decided_at),
        "at": _values.optional_text("at", at),
        "period": _values.optional_text("period", period),
        "regime": _values.optional_text("regime", regime),
        "features": _values.flag("features", features),
    }
    subject = _subject(definition, data, archive, include, _values.instant("as_of", as_of), service)
    rows, totals = _bellwether.audit_table(_values.table("table", table), subject, columns)
    return Answer(rows, json.loads(totals))


def demo_prices(*, today: Day | None = None, seed: int | None = None) -> Table:
    """The closing prices of the demo universe, which its signals predict a little: a row per ticker and session.

    >>> import bellwether as bw
    >>> bw.demo_prices().columns
    ['ticker', 'date', 'close']
    """
    return Table(_bellwether.demo_prices(_values.day("today", today), _values.whole("seed", seed)))


def diff(dataset: str, before: str, after: str = "latest", *, data: PathLike | None = None) -> Answer:
    """The rows that differ between two published versions of a dataset.

    `before` and `after` are names of versions, as listed by `datasets`.

    >>> import bellwether as bw
    >>> versions = bw.datasets().to_polars().filter(dataset="demo")["version"]
    >>> len(bw.diff("demo", versions[0], versions[0]))
    0
    """
    datasets, name = _values.data(data) / "datasets", _values.text("dataset", dataset)
    before, after = _values.text("before", before), _values.text("after", after)
    rows, totals = _bellwether.diff(datasets, f"{name}/{before}", f"{name}/{after}")
    return Answer(rows, json.loads(totals))


def articles(
    definition: Definition,
    *,
    as_of: Instant | None = None,
    include: Include | None = None,
    columns: Names | None = None,
    tickers: Names | None = None,
    start: Day | None = None,
    end: Day | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Table:
    """The news about the tickers of a definition, as of an instant or now.

    >>> import bellwether as bw
    >>> bw.articles("demo", tickers="XOM", columns=["date", "title", "score"]).columns
    ['date', 'title', 'score']
    """
    part = _values.part(columns, tickers, start, end)
    return Table(_bellwether.articles(_needed(definition, data, archive, include, as_of), part))


def history(
    definition: Definition,
    *,
    date: Day | None = None,
    as_of: Instant | None = None,
    include: Include | None = None,
    columns: Names | None = None,
    tickers: Names | None = None,
    periods: Names | None = None,
    regimes: Names | None = None,
    start: Day | None = None,
    end: Day | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Table:
    """Every value that the signals of a definition had: a row each, with `known_from` and `known_until`, null if it still is.

    `date` selects one date, `start` and `end` several.

    >>> import bellwether as bw
    >>> bw.history("demo", tickers="XOM", columns=["date", "confidence", "known_from", "known_until"]).columns
    ['date', 'confidence', 'known_from', 'known_until']
    """
    if date is not None and (start is not None or end is not None):
        raise UsageError("`date` beside `start` or `end`", "leave out `date`, or the others")
    part = _values.part(columns, tickers, start, end, periods=periods, regimes=regimes)
    subject = _needed(definition, data, archive, include, as_of)
    return Table(_bellwether.history(subject, _values.day("date", date), part))


def query(
    definition: Definition,
    sql: str,
    *,
    as_of: Instant | None = None,
    include: Include | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Table:
    """The rows that a statement in Polars' SQL selects, like `bellwether query`.

    Its tables are `dataset`, `signals`, `articles`, `observations` (with `known_from` and `known_until`), `runs`, `requests`
    and `rejects`. With `as_of`, an instant or the name of a version or of a run, they are those of the past.

    >>> import bellwether as bw
    >>> bw.query("demo", "select count(*) as rows from dataset where ticker = 'XOM'").columns
    ['rows']
    """
    return Table(_bellwether.query(_needed(definition, data, archive, include, as_of), _values.text("sql", sql)))


def runs(*, data: PathLike | None = None, archive: PathLike | None = None) -> Table:
    """The sealed runs of the archive, oldest first: the service of each, and its changes.

    >>> import bellwether as bw
    >>> bw.runs().columns[:3]
    ['run', 'service', 'definition']
    """
    return Table(_bellwether.runs(_values.folders(data, archive)[1]))


class Catalog(Table):
    """The published versions, oldest first. `datasets` returns it.

    `len()` is their number, iteration gives their names, `in` looks for a dataset or a version of one, and `catalog["demo"]` or
    `catalog["demo/20261120T213000Z-7f3a"]` loads it.
    """

    __slots__ = ("_data",)

    def __init__(self, rows: _bellwether.Rows, data: Path) -> None:
        super().__init__(rows)
        self._data = data

    def __len__(self) -> int:
        return self._rows.count or 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._column("name"))

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __getitem__(self, name: str) -> Dataset | Wide:
        return _dataset.of_version(_values.text("name", name), self._data)

    def _names(self) -> list[str]:
        """The datasets, and the versions of each."""
        return [*dict.fromkeys(self._column("dataset")), *self]

    def _column(self, name: str) -> list[str]:
        column = self.columns.index(name)
        return [row[column] for row in self._rows.text(len(self))]

    def _ipython_key_completions_(self) -> list[str]:
        return self._names()


def datasets(*, data: PathLike | None = None) -> Catalog:
    """The published versions, oldest first.

    >>> import bellwether as bw
    >>> "demo" in bw.datasets()
    True
    >>> bw.datasets()["demo"].columns[0]
    'ticker'
    """
    folder = _values.data(data)
    return Catalog(_bellwether.datasets(folder / "datasets"), folder)


class Report:
    """The report of a dataset. A notebook shows its page."""

    __slots__ = ("name", "page", "text")

    #: The name of the dataset.
    name: str
    #: The page: a single file that loads nothing.
    page: str
    #: The same for a terminal.
    text: str

    def __init__(self, name: str, page: str, text: str) -> None:
        self.name = name
        self.page = page
        self.text = text

    @property
    def figures(self) -> dict[str, str]:
        """The plots of the page by name, each a drawing of its own as SVG.

        >>> import bellwether as bw
        >>> bw.report("demo").figures["tickers"][:4]
        '<svg'
        """
        return _html.figures(self.page)

    def save(self, path: PathLike) -> None:
        """Writes the page to a file."""
        _values.path("path", path).write_text(self.page, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Report of {self.name}: {len(self.page):,} characters>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{escape(self.name, quote=True)}" sandbox="allow-scripts allow-popups" '
            f'style="width:100%;height:720px;border:0" srcdoc="{escape(self.page, quote=True)}"></iframe>'
        )


def report(
    dataset: str | None = None,
    *,
    as_of: Instant | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
) -> Report:
    """A report of a published dataset: its contents, and how the vendor revised it. Default: the dataset built last.

    >>> import bellwether as bw
    >>> bw.report("demo").name
    'demo'
    """
    name = _values.optional_text("dataset", dataset)
    subject = _values.subject(None, _values.folders(data, archive), as_of=_values.instant("as_of", as_of))
    return Report(*_bellwether.report(name, subject))


def _subject(
    definition: Definition | None,
    data: PathLike | None,
    archive: PathLike | None,
    include: Include | None,
    as_of: str | None,
    service: str | None = None,
) -> _values.Subject:
    """A definition, or all that is known of a service."""
    given = None if definition is None else _values.definition(definition)
    return _values.subject(given, _values.folders(data, archive), as_of=as_of, include=include, service=service)


def _needed(
    definition: Definition, data: PathLike | None, archive: PathLike | None, include: Include | None, as_of: Instant | None
) -> _values.Subject:
    """A definition, which is needed."""
    instant = _values.instant("as_of", as_of)
    return _values.subject(_values.definition(definition), _values.folders(data, archive), as_of=instant, include=include)
