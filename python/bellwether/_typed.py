"""Definitions as dicts, for editors and type checkers.

The keys are those of the JSON Schema, which says what each means. Wherever a list is taken, so is one value.
`BELLWETHER_BLESS=1 cargo nextest run definitions` writes this file.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict

__all__ = ["DefinitionDict"]

#: One name, or several.
Names = str | Iterable[str]

Added = Literal[
    "sector",
    "sector_latest",
    "first_observed_at",
    "observed_at",
    "revisions",
    "backfilled",
    "known_at",
    "tradable_at",
    "entry_at",
    "source",
    "watched_until",
    "id",
]

Format = Literal["parquet", "csv", "csv.gz", "csv.zst", "arrow"]

NewsSource = Literal["articles", "summary", "historical"]

Regime = Literal["bear", "bull", "neutral"]

Statistic = Literal["count", "mean", "min", "max", "std", "sum", "median", "decay", "last", "days_since"]


class Archive(TypedDict, total=False):
    """Which part of the archive counts."""

    claimed: bool | None


class Calendar(TypedDict, total=False):
    """The trading days."""

    exchange: Literal["XNYS", "weekdays"] | None
    holidays: str | datetime.date | Iterable[str | datetime.date] | None
    hours: str | None
    sessions: str | None
    trade_at: Literal["open", "close", "either"] | None


class Checks(TypedDict, total=False):
    """The checks that must pass before a version is published."""

    dates: Literal["fail", "warn"] | None
    max_age: str | None
    missing: Literal["fail", "warn"] | None
    rewritten: float | str | None
    rewritten_series: float | str | None
    universe: float | str | None


class Dataset(TypedDict, total=False):
    """What the dataset has a row for, and its columns."""

    add: Added | Iterable[Added] | None
    columns: Names | None
    kind: Literal["joined", "signals", "news"] | None
    license: str | None
    rename: Mapping[str, str] | None


class Dates(TypedDict, total=False):
    """How to convert dates with an offset to naive dates."""

    naive: str | None
    per: Literal["date", "day"] | None


#: The signals to include in the dataset.
Filter = TypedDict(
    "Filter",
    {
        "from": str | datetime.date | None,
        "min_confidence": float | None,
        "periods": Names | None,
        "regimes": Regime | Iterable[Regime] | None,
        "sectors": Names | None,
        "signal": Literal["buy", "sell"] | None,
        "tickers": Names | None,
        "to": str | datetime.date | None,
        "universe": str | None,
    },
    total=False,
)


class Hooks(TypedDict, total=False):
    """What to call after a run."""

    on_failure: Sequence[str] | str | None
    on_later: Sequence[str] | str | None
    on_success: Sequence[str] | str | None
    ping: str | None
    timeout: str | None


class Identity(TypedDict, total=False):
    """Which tickers are the same security over time."""

    file: str | None


class Join(TypedDict, total=False):
    """The news features to join to each signal."""

    availability: Literal["dated", "observed"] | None
    half_lives: Names | None
    historical: Names | None
    lag: str | None
    sources: NewsSource | Iterable[NewsSource] | None
    stats: Statistic | Iterable[Statistic] | None
    windows: Names | None


class KeyPlace(TypedDict, total=False):
    """Where the key is in a request: one of the two."""

    header: str | None
    query: str | None


class Labels(TypedDict, total=False):
    """What to measure beside each signal: returns from the first close at which it could be entered."""

    horizons: Names | None
    lag: int | None


class Output(TypedDict, total=False):
    """The files to write."""

    compression: Literal["zstd", "snappy", "none"] | None
    csv_guard: bool | None
    format: Format | Iterable[Format] | None
    index: Names | None
    keep: int | None
    layout: Literal["long", "wide"] | None
    level: int | None
    live_within: str | None
    partition_by: Names | None
    report: bool | None
    row_group_rows: int | None
    sort: Names | None
    values: Names | None
    vintage: Literal["latest", "first", "all"] | None


class Prices(TypedDict, total=False):
    """The closing prices that `bellwether audit skill` measures signals against."""

    adjusted: bool | None
    columns: Mapping[str, str] | None
    file: Names | None


class Rejects(TypedDict, total=False):
    """How to handle rejected records and unknown fields."""

    keep_extra: bool | None
    max_share: float | str | None


class Schedule(TypedDict, total=False):
    """When a scheduler should run the definition."""

    catch_up: str | None
    cron: str | None
    deadline: str | None
    retry_after: str | None
    timezone: str | None


class Sentiment(TypedDict, total=False):
    """The news and sentiment to fetch."""

    articles: bool | None
    complete: bool | None
    delay: str | None
    duplicates: Literal["once", "keep"] | None
    historical: bool | None
    order: Literal["newest first", "oldest first"] | None
    summary: bool | None
    tickers: Names | None


class Signals(TypedDict, total=False):
    """The signals to fetch."""

    complete: bool | None
    exclude: Names | None
    history: Literal["sector", "batched", "ticker", "latest"] | None
    made_at: str | None
    pairs: Names | None
    periods: Names | None
    regimes: Regime | Iterable[Regime] | None
    sectors: Names | None
    tickers: Names | None
    tolerance: float | None


class Source(TypedDict, total=False):
    """The service, and the API key for it."""

    api_key_command: Names | None
    api_key_file: str | None
    base_url: str | None
    clock: Literal["service", "ours"] | None
    connections: int | None
    earlier_runs: int | None
    fields: Mapping[str, str] | None
    key: KeyPlace | None
    name: str | None
    paths: Mapping[str, str] | None
    patience: str | None
    query: Mapping[str, str] | None
    requests_per_second: int | None
    sentiment_base_url: str | None
    service: Literal["demo"] | None
    stall: str | None
    tickers: Mapping[str, str] | None
    unwrap: Names | None


class Store(TypedDict, total=False):
    """The object store that keeps the archive and the datasets."""

    url: str | None


class DefinitionDict(TypedDict, total=False):
    """A definition: what to fetch from the service, and the dataset to build from it."""

    #: The name that its dataset is published by.
    name: str | None
    archive: Archive | None
    calendar: Calendar | None
    checks: Checks | None
    dataset: Dataset | None
    dates: Dates | None
    description: str | None
    filter: Filter | None
    hooks: Hooks | None
    identity: Identity | None
    join: Join | None
    labels: Labels | None
    output: Output | None
    prices: Prices | None
    rejects: Rejects | None
    schedule: Schedule | None
    sentiment: Sentiment | None
    signals: Signals | None
    source: Source | None
    store: Store | None
