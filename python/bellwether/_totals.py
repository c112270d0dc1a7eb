"""The totals of answers, as `bellwether schema --for` describes them.

Written by `python/tests/totals.py`; a test compares it with the schemas.
"""

from __future__ import annotations

from typing import Literal, TypedDict

__all__ = ["DiffTotals", "QualityTotals", "RevisionTotals", "SkillTotals"]


class Cells(TypedDict):
    """Cells and their changes."""

    #: Cells that earlier answers did not have though they covered the date.
    added_late: int
    #: Those that changed, however often.
    changed: int
    #: Changes from `buy` to `sell` or back.
    flipped: int
    #: Cells known at the start of the span, or first seen in it.
    known: int
    #: The cells known at the start of the span.
    known_before: int
    #: The largest absolute change.
    moved_most: float | None
    #: The mean absolute change of confidence or score.
    moved_on_average: float | None
    #: The share that changed.
    rate: float | None
    #: Changes to another value.
    revised: int
    #: Those that were rewritten since, late additions included.
    rewritten: int
    #: The share of them.
    rewritten_share: float | None
    #: Cells that are no longer listed.
    withdrawn: int


class Rewrites(TypedDict):
    """Changed cells, and those of each group that has any."""

    by_age: dict[str, Cells]
    by_month: dict[str, Cells]
    by_period: dict[str, Cells]
    by_regime: dict[str, Cells]
    by_sector: dict[str, Cells]
    by_ticker: dict[str, Cells]
    total: Cells


class RevisionTotals(TypedDict):
    """A document: the output of a command, with the version of its shape."""

    #: Changes observed after this instant; none for all.
    after: str | None
    #: Scores of articles.
    articles: Rewrites
    #: Signals.
    signals: Rewrites
    #: Changes observed up to and including this instant.
    until: str


class CutOff(TypedDict):
    """A length at which lists of articles seem to be cut off: that of the longest, which many tickers
    have."""

    #: Tickers with articles.
    all: int
    #: Number of articles.
    articles: int
    #: Tickers with a list of that length.
    tickers: int


class Drift(TypedDict):
    """An unknown field."""

    #: Number of occurrences.
    count: int
    #: The operation that returned it.
    endpoint: str
    #: The first value seen, as JSON, truncated if it is long.
    example: str
    #: Its path, with `*` for a ticker or a position: `/*/predictions/*/model`.
    field: str


class NewsWindow(TypedDict):
    """The signals with news in a window."""

    signals: int
    #: The signals for which it is unknown what was in the window.
    unknown: int
    window: str
    with_news: int


#: Period
Period = Literal["1d", "2d", "3d", "4d", "5d", "6d", "7d", "8d", "9d", "10d", "11d", "12d", "13d", "14d", "15d", "16d", "17d", "18d", "19d", "20d", "21d", "22d", "23d", "24d", "25d", "26d", "27d", "28d", "29d", "30d", "1m", "2m", "3m", "4m", "5m", "6m"]


#: Regime
Regime = Literal["bear", "bull", "neutral"]


class RejectReason(TypedDict):
    """Why records were rejected."""

    #: Those that the previous answers did not have; none without previous answers.
    new: int | None
    operation: str
    reason: str
    records: int


class Rename(TypedDict):
    """A ticker that ends where another goes on with the same history."""

    #: The first date of the other.
    begins: str
    #: The last date of the first.
    ends: str
    #: Those of them on which both have the same signal and confidence.
    equal: int
    #: The id that the file of `[identity]` gives both; none if it does not, or there is none.
    id: str | None
    #: The dates that both have.
    overlap: int
    #: The horizon of the series that are compared.
    period: Period
    #: Their market regime.
    regime: Regime
    #: The one that goes on.
    successor: Ticker
    #: The ticker that ends.
    ticker: Ticker


class SplitDays(TypedDict):
    """Tickers whose signals are dated at other times of day than those of most others."""

    #: The number of all tickers.
    all: int
    #: How many there are.
    tickers: int
    #: A time of day of most tickers, and one of these.
    times: list[str]


#: Ticker
Ticker = str


class TickerQuality(TypedDict):
    """The quality of a ticker's data."""

    articles: int
    #: The trading days that the furthest of them is behind.
    behind: int
    #: The share of them with a signal.
    coverage: float | None
    #: Days on which a signal was due, from the first to the last of each series.
    due_days: int
    #: Articles that repeat another one.
    duplicates: int
    #: Runs of consecutive missing days.
    gaps: int
    #: Those without a signal.
    missing: int
    signals: int
    #: Series that end before the latest trading day.
    stale: int
    #: Confidences and scores outside their usual bounds.
    unusual: int


class QualityTotals(TypedDict):
    """A document: the output of a command, with the version of its shape."""

    #: The length at which lists of articles seem to be cut off; none if they do not.
    cut_off: CutOff | None
    #: Why records were rejected.
    reasons: list[RejectReason]
    #: The number of rejected records.
    rejected: int
    #: Tickers that end where another goes on with the same history: suspected renames.
    renames: list[Rename]
    #: The number of series of signals.
    series: int
    #: Tickers whose signals are dated at other times of day than those of most others; none if there are none.
    split_days: SplitDays | None
    #: The tickers with findings.
    tickers: dict[str, TickerQuality]
    total: TickerQuality
    unknown_fields: list[Drift]
    #: The signals with news in each window of a definition.
    windows: list[NewsWindow]


class Best(TypedDict):
    """The best pair or feature of a state."""

    #: The effective number of them, since their correlations go together; none if two of them share too few dates.
    effective: float | None
    #: What the best of as many independent ones without skill is expected to show.
    expected: float
    #: What the best of that many without skill is expected to show.
    expected_of_effective: float | None
    #: The feature; none if it is the confidence of a pair.
    feature: str | None
    #: The period of the pair, or of the feature.
    period: Period
    #: The regime.
    regime: Regime
    #: The state.
    state: State
    #: The pairs and features with a test.
    tested: int
    #: Its mean correlation, as a normal number.
    z: float


class Bin(TypedDict):
    """Neighbouring forecasts, about as many in each: the usual table, which changes with the number of
    bins."""

    #: Number of cases.
    cases: int
    #: The largest forecast.
    highest: float
    #: Number of cases that came true.
    hits: int
    #: The smallest forecast.
    lowest: float
    #: The mean forecast.
    mean_forecast: float


class ConfidenceMeasure(TypedDict):
    """Confidences as probabilities of a hit. What belongs to each single confidence is not kept: there may be
    as many as signals."""

    #: The mean square of the distance between confidence and outcome.
    brier: float
    #: About as many signals in each, by confidence.
    deciles: list[Bin]
    #: What these shares gain over the same confidence for all.
    discrimination: float
    #: What would be gained if each confidence were the share of hits at it.
    miscalibration: float
    #: The share of hits at each confidence, of dates whose windows do not overlap.
    reliability: Reliability
    #: Signals.
    signals: int
    #: The score of the same confidence for all.
    uncertainty: float


#: DayCount
DayCount = str


class FeatureMeasure(TypedDict):
    """The measure of a feature in a state."""

    #: One horizon after the other, from the entry on; not of the difference.
    by_lag: list[LagMeasure]
    #: By sector, if there are several.
    by_sector: list[SectorMeasure]
    #: By year of the date.
    by_year: list[YearMeasure]
    #: Dates on which all numbers or all returns are equal.
    constant_dates: int
    #: The mean rank correlation with the return: of the signed confidence of a signal, or of a feature.
    correlation: float | None
    #: Dates with a rank correlation.
    dates: int
    #: The same of every date whose window does not overlap with that of the one before; none if it is refused.
    disjoint: MeanTest | None
    #: The number of dates in the window of a return, on average.
    horizon: int
    #: Names per date, on average.
    names: float | None
    #: The p-value after Benjamini and Hochberg, among all pairs and features of the state.
    p_benjamini_hochberg: float | None
    #: The p-value after Holm, among all pairs and features of the state.
    p_holm: float | None
    #: What the feature adds to the signal: its partial rank correlation with the return, given the signed confidence
    #: of the same signals; none of the difference.
    partial: SeriesMeasure | None
    #: The share of dates with a correlation above zero.
    positive: float | None
    #: Why the test is refused.
    refusal: Refusal | None
    #: Which.
    state: State
    #: The test of the mean; none if it is refused.
    test: MeanTest | None
    #: Dates with too few names.
    thin_dates: int
    #: The whole windows that do not overlap, by the closes at which signals were entered.
    windows: int


class FeatureSkill(TypedDict):
    """A feature of the news at the horizon of a period."""

    #: Its column in the dataset.
    feature: str
    #: As published, as it stands today, and the difference on the same signals.
    measures: list[FeatureMeasure]
    #: The period.
    period: Period
    #: The regime at whose signals it is measured: of the period, the one with the most. Others have the same news.
    regime: Regime


class Hindsight(TypedDict):
    """The hindsight test of a pair, or of all."""

    #: Those of them whose new direction agrees with the return.
    agree: int
    #: The calendar days of a cluster: two of the longest horizons.
    cluster_days: int
    #: The clusters with more of one than of the other.
    clusters: int
    #: Signals whose return is the mean of its date, which say nothing.
    even: int
    #: Live signals dated from then on.
    live_after: int
    #: Those of them that the return agrees with.
    live_after_hits: int
    #: The share of them.
    live_after_share: float | None
    #: The p-value of McNemar's exact test, which takes votes for independent.
    p: float | None
    #: The p-value with windows of so many days as clusters.
    p_clustered: float | None
    #: The share of them.
    share: float | None
    #: The first day on which such a signal had turned.
    since: str | None
    #: The test of the votes for the new direction less those for the old one, by date; none if it is refused.
    test: MeanTest | None
    #: Signals that turned after their horizon was over, and whose return is not the mean of its date.
    turned: int


class LagMeasure(TypedDict):
    """The correlation with a return that begins some horizons after the entry."""

    #: The mean rank correlation.
    correlation: float | None
    #: Dates with a rank correlation.
    dates: int
    #: The number of dates in the window of a return, on average.
    horizon: int
    #: The horizons between the entry and the beginning of the return: the windows of successive lags do not overlap.
    lag: int
    #: Names per date, on average.
    names: float | None
    #: The test of the mean; none if it is refused.
    test: MeanTest | None
    #: The whole windows that do not overlap, by the closes at which signals were entered.
    windows: int


class MeanTest(TypedDict):
    """The test of a mean against zero."""

    #: Degrees of freedom of Student's distribution; infinitely many for the normal distribution.
    degrees_of_freedom: float
    #: Number of dates that a value looks ahead, on average.
    horizon: int
    #: The smallest of them.
    lower: float
    #: The mean.
    mean: float
    #: Number of values that the test uses.
    observations: int
    #: The probability of a mean at least so far from zero if the true mean is zero.
    p: float
    #: The standard error of the mean.
    standard_error: float
    #: The mean in standard errors.
    t: float
    #: The largest of them.
    upper: float
    #: Number of whole windows that do not overlap.
    windows: int


class Measure(TypedDict):
    """The measure of the signals of a pair in a state."""

    #: Buys.
    buys: SideMeasure
    #: One horizon after the other, from the entry on; not of the difference.
    by_lag: list[LagMeasure]
    #: By the number of articles in each window of the definition; not of the difference.
    by_news: list[NewsMeasure]
    #: By sector, if there are several.
    by_sector: list[SectorMeasure]
    #: By year of the date.
    by_year: list[YearMeasure]
    #: Confidences as probabilities of a hit; none without signals, of the difference, or if one is not between 0 and
    #: 1.
    confidence: ConfidenceMeasure | None
    #: The most confident fifth.
    confident: SideMeasure
    #: Dates on which all numbers or all returns are equal.
    constant_dates: int
    #: The mean rank correlation with the return: of the signed confidence of a signal, or of a feature.
    correlation: float | None
    #: Dates with a rank correlation.
    dates: int
    #: The same of every date whose window does not overlap with that of the one before; none if it is refused.
    disjoint: MeanTest | None
    #: The share of signals that are the opposite of the one before.
    flips: float | None
    #: The number of dates in the window of a return, on average.
    horizon: int
    #: Names per date, on average.
    names: float | None
    #: The p-value after Benjamini and Hochberg, among all pairs and features of the state.
    p_benjamini_hochberg: float | None
    #: The p-value after Holm, among all pairs and features of the state.
    p_holm: float | None
    #: The share of dates with a correlation above zero.
    positive: float | None
    #: Why the test is refused.
    refusal: Refusal | None
    #: Sells.
    sells: SideMeasure
    #: The mean over dates of the spread between the highest and the lowest fifth.
    spread: float | None
    #: Which.
    state: State
    #: The test of the mean; none if it is refused.
    test: MeanTest | None
    #: Dates with too few names.
    thin_dates: int
    #: The whole windows that do not overlap, by the closes at which signals were entered.
    windows: int


class NewsMeasure(TypedDict):
    """The correlation among the names with as many articles in a window, as far as was known when they were
    entered."""

    #: The number of articles: `0`, `1-2`, `3-9`, `10+`, or `unknown`.
    articles: str
    #: The mean rank correlation.
    correlation: float | None
    #: Dates with a rank correlation.
    dates: int
    #: The number of dates in the window of a return, on average.
    horizon: int
    #: Names per date, on average.
    names: float | None
    #: The test of the mean; none if it is refused.
    test: MeanTest | None
    #: The window, as in the name of its columns.
    window: str
    #: The whole windows that do not overlap, by the closes at which signals were entered.
    windows: int


class PairSkill(TypedDict):
    """A pair of period and regime."""

    #: The hindsight test.
    hindsight: Hindsight
    #: As published, as it stands today, and the difference on the same signals.
    measures: list[Measure]
    #: The period.
    period: Period
    #: The regime.
    regime: Regime
    #: What was rewritten.
    rewritten: Rewritten
    #: Its signals.
    signals: SignalCounts


class PriceFile(TypedDict):
    """Where prices were read from."""

    #: The BLAKE3 of its content.
    blake3: str
    #: A file, or the name of prices that are in no file.
    path: str


class PriceSummary(TypedDict):
    """What is known of the prices as a whole."""

    #: Whether they are adjusted for splits and dividends; none if the definition does not say.
    adjusted: bool | None
    #: Rows with a close.
    closes: int
    #: Where they were read from.
    files: list[PriceFile]
    #: The first session.
    first: str
    #: Missing closes between the first and the last close of each ticker.
    holes: int
    #: The last session.
    last: str
    #: Sessions.
    sessions: int
    #: Sessions on which fewer than half of the tickers that trade then have a close.
    thin_sessions: int
    #: Tickers.
    tickers: int


#: Why a series is not judged.
Refusal = dict[str, object]


class Reliability(TypedDict):
    """The share of hits at each confidence, of some dates whose windows do not overlap: signals of other
    dates share their returns, and a band that takes them for independent is too narrow."""

    #: The dates.
    dates: int
    #: At most a hundred confidences, ascending.
    points: list[ReliabilityPoint]
    #: Their signals.
    signals: int


class ReliabilityPoint(TypedDict):
    """The share of hits at a confidence."""

    #: The confidence.
    confidence: float
    #: The share of hits at it, by isotonic regression.
    frequency: float
    #: The smallest of them.
    lower: float
    #: The largest of them.
    upper: float


class Rewritten(TypedDict):
    """Rewritten cells, and the mean correlation with each kind of change applied alone."""

    #: Cells that were added after earlier answers had covered their date without them.
    added: int
    #: Cells with another value.
    altered: int
    #: The correlation as first published, without what was added late.
    base: float | None
    #: Cells with the value that they were published with.
    matched: int
    #: Cells that are no longer listed.
    removed: int
    #: With all of it.
    today: float | None
    #: Those of them with another direction.
    turned: int
    #: With added cells.
    with_added: float | None
    #: With the latest values of altered cells.
    with_altered: float | None
    #: Without removed cells.
    without_removed: float | None


class SectorMeasure(TypedDict):
    """The correlation among the names of a sector."""

    #: The mean rank correlation.
    correlation: float | None
    #: Dates with a rank correlation.
    dates: int
    #: The number of dates in the window of a return, on average.
    horizon: int
    #: Names per date, on average.
    names: float | None
    #: The sector; `-` if no history of a sector lists them.
    sector: str
    #: The test of the mean; none if it is refused.
    test: MeanTest | None
    #: The whole windows that do not overlap, by the closes at which signals were entered.
    windows: int


class SeriesMeasure(TypedDict):
    """The mean rank correlation of some dates."""

    #: The mean rank correlation.
    correlation: float | None
    #: Dates with a rank correlation.
    dates: int
    #: The number of dates in the window of a return, on average.
    horizon: int
    #: Names per date, on average.
    names: float | None
    #: The test of the mean; none if it is refused.
    test: MeanTest | None
    #: The whole windows that do not overlap, by the closes at which signals were entered.
    windows: int


class SideMeasure(TypedDict):
    """Signals of one side on all dates."""

    #: The mean over dates of the mean return relative to the mean of the date; of sells too, so that it should be
    #: negative. Of the most confident, it is turned into the direction of each signal.
    excess: float | None
    #: The share of hits.
    hit_rate: float | None
    #: Those after which the return went their way, relative to the mean of the date. A return equal to the mean does
    #: not.
    hits: int
    #: Signals.
    signals: int
    #: The test of the share of hits against a half, whose mean is that share less a half: by date, since the signals
    #: of a date share its return; none if it is refused.
    test: MeanTest | None


class SignalCounts(TypedDict):
    """What became of signals."""

    #: Those that are measured and whose return ends under another ticker of the same id.
    across_names: int
    #: Signals with a date.
    all: int
    #: Left out: dated before the first session.
    before_prices: int
    #: Left out: the horizon ends after the last session.
    incomplete: int
    #: Those that were first seen while their date was fresh.
    live: int
    #: Those that are measured.
    measured: int
    #: Those of them that are live.
    measured_live: int
    #: Further ones of a ticker on the same day, which count as one: as published, the one that was seen first.
    same_day: int
    #: Left out: without a direction or confidence.
    unclear: int
    #: Left out: of a ticker that the file of `[identity]` names, on a day for which it gives it no id.
    without_id: int
    #: Left out: no close at the entry or at the exit, or no prices at all for some time between its date and the
    #: exit.
    without_price: int


#: The state of a history that is measured.
State = Literal["published", "today", "difference"]


class WorstDay(TypedDict):
    """A day on which signals have no price."""

    #: The day.
    day: str
    #: Its signals with a complete horizon.
    signals: int
    #: Those of them without a price.
    without_price: int


class YearMeasure(TypedDict):
    """The correlation of the dates of a year."""

    #: The mean rank correlation.
    correlation: float | None
    #: Dates with a rank correlation.
    dates: int
    #: The number of dates in the window of a return, on average.
    horizon: int
    #: Names per date, on average.
    names: float | None
    #: The test of the mean; none if it is refused.
    test: MeanTest | None
    #: The whole windows that do not overlap, by the closes at which signals were entered.
    windows: int
    #: The year.
    year: int


#: A document: the output of a command, with the version of its shape.
SkillTotals = TypedDict(
    "SkillTotals",
    {
        "as_of": str,
        "best": "list[Best]",
        "dataset": str,
        "features": "list[FeatureSkill]",
        "from": "str | None",
        "hindsight": "Hindsight",
        "lag_sessions": int,
        "live_within": "DayCount",
        "pairs": "list[PairSkill]",
        "prices": "PriceSummary",
        "signals": "SignalCounts",
        "witnessed": "float | None",
        "worst_day": "WorstDay | None",
    },
)
SkillTotals.__doc__ = """A document: the output of a command, with the version of its shape."""


class ChangedColumn(TypedDict):
    """A column with other values."""

    #: Its name.
    name: str
    #: The number of rows.
    rows: int


class ChangedKey(TypedDict):
    """A key with another value, each as it was typed; none where it was not."""

    #: Its value after.
    after: str | None
    #: Its value before.
    before: str | None
    #: The key, with its section: `join.lag`.
    key: str


class Side(TypedDict):
    """One of two versions."""

    #: The instant as of which it was built.
    as_of: str
    #: Its name.
    name: str
    #: Its rows.
    rows: int


class DiffTotals(TypedDict):
    """A document: the output of a command, with the version of its shape."""

    #: Rows that only the later one has.
    added: int
    #: The later version.
    after: Side
    #: The earlier version.
    before: Side
    #: Rows with other values.
    changed: int
    #: The columns with other values, and in how many rows.
    columns: list[ChangedColumn]
    #: The keys of the definition that differ.
    definition: list[ChangedKey]
    #: Rows that only the earlier one has.
    removed: int
