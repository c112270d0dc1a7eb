"""Computes what `audit skill` says from the files of the archive and the prices, with pandas, scipy and statsmodels.

    check_skill.py ARCHIVE PRICES (DOCUMENT ROWS LAG FROM)...
"""

import functools
import glob
import json
import sys

import numpy
import pandas
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.stats
from check_statistics import fifths
from statsmodels.stats.multitest import multipletests

ARCHIVE, PRICES = sys.argv[1:3]
# Of the answer that is checked.
LAG, FROM = 1, None
LAGS = 5
WINDOWS = [5, 40]
# News is a day older than the signal that it serves.
NEWS_LAG = 1
FEATURES = [f"news_{statistic}_{days}d" for days in WINDOWS for statistic in ("count", "mean")]
FEATURES += ["news_last_score", "news_days_since"]
DAY = pandas.Timedelta(days=1)
EPOCH = pandas.Timestamp(0)
compared = 0
# Computed once, for the sessions of the prices.
entries, exits = {}, {}


def same(found, expected, where):
    """Both are null, or equal to the last digits."""
    global compared
    compared += 1
    if expected is None or (isinstance(expected, float) and numpy.isnan(expected)):
        assert found is None or (isinstance(found, float) and numpy.isnan(found)), f"{where}: {found}, expected none"
    else:
        assert found is not None, f"{where}: none, expected {expected}"
        close = numpy.isclose(found, expected, rtol=1e-9, atol=1e-12)
        assert close, f"{where}: {found}, expected {expected}"


def read_prices():
    frames = [pandas.read_csv(path) for path in sorted(glob.glob(PRICES))]
    prices = pandas.concat(frames).rename(columns={"symbol": "ticker", "adj_close": "close"})
    prices = prices.dropna(subset="close")
    prices = prices[~prices["ticker"].str.contains(" ")]
    prices["date"] = pandas.to_datetime(prices["date"])
    return prices.pivot(index="date", columns="ticker", values="close").sort_index()


def read_table(name):
    """The rows of a table of the archive, in the order in which they were seen."""
    paths = glob.glob(f"{ARCHIVE}/*=*/{name}.parquet")
    rows = pandas.concat(pandas.read_parquet(path, partitioning=None) for path in paths)
    for column in rows.columns.intersection(["ticker", "period", "regime", "signal", "change"]):
        rows[column] = rows[column].astype(object)
    rows["seen"] = rows["observed_at"].dt.tz_localize(None)
    # A pack holds the rows of the runs that it stands for once more.
    return rows.drop_duplicates().sort_values("seen", kind="stable")


def read_cells():
    """A row per cell: its values, when it was first seen, and whether it was added late."""
    series = {}
    for row in read_table("signals").itertuples():
        of_series = series.setdefault((row.ticker, row.period, row.regime), {})
        signed = None if row.change == "withdrawn" else (-1 if row.signal == "sell" else 1) * row.confidence
        of_series.setdefault(row.date, []).append((row.seen, signed))
    cells = []
    for (ticker, period, regime), of_series in series.items():
        begins = {date: next(seen for seen, signed in values if signed is not None) for date, values in of_series.items()}
        listed = [(seen, date) for date, values in of_series.items() for seen, signed in values if signed is not None]
        for date, values in sorted(of_series.items()):
            said = [(seen, signed) for seen, signed in values if signed is not None]
            turned = said[0][0]
            for (_, before), (seen, after) in zip(said, said[1:]):
                if (before < 0) != (after < 0):
                    turned = seen
            latest = values[-1][1]
            earlier = [other for seen, other in listed if seen < begins[date]]
            before = max((seen for seen, _ in listed if seen < begins[date]), default=None)
            cells.append(dict(
                ticker=ticker, period=period, regime=regime, date=date.normalize(), values=values, first=said[0][1],
                first_sell=said[0][1] < 0, first_seen=begins[date], latest=latest,
                latest_sell=None if latest is None else latest < 0, turned=turned.normalize(), withdrawn=latest is None,
                late=any(other < date for other in earlier) and any(other > date for other in earlier),
                sector="energy" if ticker < "G" else "utilities", before=before, newest=max(earlier, default=None),
            ))
    cells = pandas.DataFrame(cells)
    # Texts of pyarrow are slow one by one.
    texts = ["ticker", "period", "regime", "sector"]
    cells[texts] = cells[texts].astype(object)
    # Trading days after the date, up to the day on which it was seen.
    ages = numpy.busday_count(
        (cells["date"] + DAY).values.astype("datetime64[D]"), (cells["first_seen"].dt.normalize() + DAY).values.astype("datetime64[D]")
    )
    cells["live"] = ages <= 2
    # The answer before ended earlier, and came so shortly before that the signal was published in between.
    between = lambda cell: numpy.busday_count((cell.before + DAY).date(), (cell.first_seen + DAY).date())
    cells["tardy"] = [
        not cell.live and not cell.late and not pandas.isna(cell.before) and cell.date >= cell.newest.normalize()
        and cell.before.date() < cell.first_seen.date() and between(cell) <= 2
        for cell in cells.itertuples()
    ]
    cells["published"] = cells["live"] | cells["tardy"]
    cells["altered"] = ~cells["withdrawn"] & ((cells["latest"] != cells["first"]) | (cells["latest_sell"] != cells["first_sell"]))
    return with_features(cells)


def known_then(cells):
    """Adds what was known of each cell at the instant, if there is one."""
    def then(values):
        known = [signed for seen, signed in values if FROM is not None and seen <= FROM]
        return known[-1] if known else None

    signed = cells["values"].map(then).astype(object)
    signed = signed.where(signed.notna(), None)
    return cells.assign(then=signed, then_sell=signed.map(lambda value: None if value is None else value < 0))


def with_features(cells):
    """Adds the features of the news of each cell: what was seen by the run that first saw it, and what is listed now.

    The clock of a run stands still, so that all it saw has one instant. Scores have two decimals.
    """
    articles = {}
    for row in read_table("articles").itertuples():
        score = None if row.change == "withdrawn" else row.score
        observations = articles.setdefault(row.ticker, {}).setdefault((row.date - EPOCH).days, [])
        observations.append((row.seen, row.change != "withdrawn", None if pandas.isna(score) else round(100 * score)))
    for of_ticker in articles.values():
        for values in of_ticker.values():
            assert len({seen for seen, *_ in values}) == len(values), f"an article a day: {values}"
    numbers = []
    for cell in cells.itertuples():
        row = {}
        for name, seen_by in [("first", cell.first_seen if cell.published else None), ("latest", pandas.Timestamp.max)]:
            today, known = (cell.date - EPOCH).days, {}
            cutoff = today - NEWS_LAG
            for date, observations in articles.get(cell.ticker, {}).items():
                if seen_by is None or date > cutoff:
                    continue
                by_then = [one for one in observations if one[0] <= seen_by]
                if by_then and by_then[-1][1]:
                    known[date] = by_then[-1][2]
            is_of_state = cell.published if name == "first" else not cell.withdrawn
            for days in WINDOWS:
                within = [score for date, score in known.items() if date > cutoff - days]
                scores = [score for score in within if score is not None]
                row[f"{name} news_count_{days}d"] = len(within) if is_of_state else None
                row[f"{name} news_mean_{days}d"] = sum(scores) / len(scores) if scores and is_of_state else None
            last = max(known) if known and is_of_state else None
            row[f"{name} news_last_score"] = None if last is None else known[last]
            row[f"{name} news_days_since"] = None if last is None else today - last
        numbers.append(row)
    return pandas.concat([cells, pandas.DataFrame(numbers, dtype=float)], axis=1)


def sessions_after(sessions, days):
    return sessions.searchsorted(days, side="right")


def exit_of(sessions, entry, period):
    if (entry, period) not in exits:
        count, unit = int(period[:-1]), period[-1]
        end = sessions[entry] + pandas.DateOffset(months=count) if unit == "m" else None
        exits[entry, period] = entry + count if end is None else int(sessions.searchsorted(end))
    return exits[entry, period]


def dated_entry(sessions, date, lag):
    if (lag, date) not in entries:
        after = int(sessions.searchsorted(date, side="right")) + lag - 1
        entries[lag, date] = after if lag else int(sessions.searchsorted(date))
    return entries[lag, date]


def measure_cells(cells, prices):
    """Adds what became of each cell, and its return."""
    sessions = prices.index
    what, begins, returns, ends, lagged = [], [], [], [], [[] for _ in range(LAGS)]
    for cell in cells.itertuples():
        entry = dated_entry(sessions, cell.date, min(LAG, 1) if cell.published else LAG)
        if cell.published:
            entry = max(entry, int(sessions.searchsorted(cell.first_seen.normalize(), side="right")))
        end = exit_of(sessions, entry, cell.period) if entry < len(sessions) else len(sessions)
        value, last = numpy.nan, pandas.NaT
        if cell.date < sessions[0]:
            fate = "before_prices"
        elif end >= len(sessions):
            fate = "incomplete"
        else:
            last = sessions[end]
            if cell.ticker in prices.columns:
                closes = prices[cell.ticker]
                value = closes.iloc[end] / closes.iloc[entry] - 1
            fate = "without_price" if numpy.isnan(value) else "measured"
        what.append(fate)
        begins.append(entry)
        returns.append(value)
        ends.append(last)
        lagged[0].append(value)
        for of_lag in lagged[1:]:
            begin, end = end, exit_of(sessions, end, cell.period) if end < len(sessions) else end
            is_complete = fate == "measured" and end < len(sessions)
            of_lag.append(closes.iloc[end] / closes.iloc[begin] - 1 if is_complete else numpy.nan)
    return cells.assign(fate=what, entry=begins, value=returns, end=ends, **{f"lag{lag}": of for lag, of in enumerate(lagged)})


def betas_of(cells, prices):
    """How the returns of a name moved with the mean of all that are measured in the six steps of 21 sessions before that of its entry."""
    prices = prices[sorted(cells.loc[cells["fate"] == "measured", "ticker"].unique())]
    daily = (prices / prices.shift(1) - 1).to_numpy()
    market = numpy.full(len(prices), numpy.nan)
    market[1:] = numpy.nanmean(daily[1:], axis=1)
    place = {ticker: column for column, ticker in enumerate(prices.columns)}

    @functools.cache
    def beta(ticker, step):
        rows = slice(max(step - 6, 0) * 21, step * 21)
        if ticker not in place:
            return numpy.nan
        own, all_names = daily[rows, place[ticker]], market[rows]
        is_known = ~numpy.isnan(own)
        own, all_names = own[is_known], all_names[is_known]
        return float(numpy.float32(numpy.cov(own, all_names)[0, 1] / all_names.var(ddof=1))) if len(own) >= 60 else numpy.nan

    return [beta(cell.ticker, cell.entry // 21) for cell in cells.itertuples()]


def mean(numbers):
    numbers = [number for number in numbers if number is not None and not numpy.isnan(number)]
    return float(numpy.mean(numbers)) if numbers else None


@functools.cache
def centered_ranks(values):
    """Twice the distance of each rank from their mean, whole numbers; none if all are equal. The same values are ranked
    many times."""
    return 2 * scipy.stats.rankdata(values) - len(values) - 1 if len(set(values)) > 1 else None


def rank_correlation(x, y):
    x, y = (centered_ranks(tuple(numpy.asarray(values, dtype=float).tolist())) for values in (x, y))
    return None if x is None or y is None else float(x @ y / numpy.sqrt((x @ x) * (y @ y)))


def side(is_taken, sign, value, excess, direction):
    """What followed the signals that are taken, by the median of all of the date."""
    median = numpy.median(value)
    above, below = (value > median).sum(), (value < median).sum()
    decided = is_taken & (value != median)
    hits = int((decided & (sign * (value - median) > 0)).sum())
    luck = numpy.where(sign > 0, above, below)[decided].sum() / max(above + below, 1)
    excess = (excess * direction)[is_taken]
    return dict(
        signals=int(is_taken.sum()), hits=hits, even=int((is_taken & ~decided).sum()), luck=luck,
        excess=excess.mean() if len(excess) else None,
    )


def measure_date(frame):
    """Figures of a date from columns `signed`, `sell`, `value`, `excess`."""
    signed, sell, value, excess = (frame[name].to_numpy() for name in ("signed", "sell", "value", "excess"))
    sign, one, size = numpy.where(sell, -1, 1), numpy.ones(len(frame)), fifths(numpy.abs(signed))
    of_fifths = fifths(signed)
    means = [excess[of_fifths == fifth].mean() if (of_fifths == fifth).any() else None for fifth in range(5)]
    ends = [mean for mean in means if mean is not None]
    is_spread = of_fifths.min() < of_fifths.max()
    return dict(
        names=len(frame),
        correlation=rank_correlation(signed, value),
        buys=side(~sell, sign, value, excess, one),
        sells=side(sell, sign, value, excess, one),
        confident=side((size == size.max()) & (size.min() < size.max()), sign, value, excess, sign),
        fifths=means,
        spread=ends[-1] - ends[0] if is_spread else None,
        highest=set(frame["ticker"][of_fifths == of_fifths.max()]) if is_spread else None,
    )


def view(frame, which):
    frame = frame[frame["published"]] if which == "first" else frame[~frame["withdrawn"]]
    signed, sell = ("first", "first_sell") if which == "first" else ("latest", "latest_sell")
    # Relative to the mean of the names that this state has on the date.
    excess = frame["value"] - frame["value"].mean()
    return frame.assign(signed=frame[signed].astype(float), sell=frame[sell].astype(bool), excess=excess)


def windows_of(cells, period, sessions):
    """Gives of some dates, all of these cells: the dates of a window, the whole windows that do not overlap, and the places
    of dates that are apart. The window of a date lasts from its first entry to its last exit."""
    entries = cells.groupby("date")["entry"].agg(["min", "max"])

    def later(entry, lags):
        for _ in range(lags):
            entry = min(exit_of(sessions, entry, period), len(sessions)) if entry < len(sessions) else entry
        return entry

    def bounds(days, lag=0):
        return [(later(entries["min"][day], lag), later(entries["max"][day], lag + 1)) for day in days]

    windows = lambda days, lag=0: windows_among(bounds(days, lag))
    windows.bounds = bounds
    return windows


def windows_among(bounds):
    apart, ended = [], -1
    for place, (begin, end) in enumerate(bounds):
        if begin >= ended:
            apart.append(place)
            ended = end
    is_whole = bool(bounds) and ended <= max(begin for begin, _ in bounds) + 1
    sizes = numpy.diff(apart + [len(bounds)] if is_whole else apart)
    if not len(sizes):
        return max(len(bounds), 1), min(len(bounds), 1), apart
    # As many of equal size would make a mean vary as much.
    return int((sizes**2).sum() / sizes.sum() + 0.5), int(sizes.sum() ** 2 // (sizes**2).sum()), apart


def windows_by_state(cells, period, sessions):
    is_of_state = dict(published=cells["published"], today=~cells["withdrawn"], difference=cells["published"])
    is_of_state["left"] = cells["published"] & ~cells["withdrawn"]
    return {state: windows_of(cells[is_of], period, sessions) for state, is_of in is_of_state.items()}


def standard_error(values, horizon, whole):
    """The number of cosines, and the standard error of the mean."""
    count = len(values)
    cosines = max(4, min(int(0.41 * count ** (2 / 3)), whole // 2))
    variance = (scipy.fft.dct(values, type=2, norm="ortho")[1 : cosines + 1] ** 2).mean()
    if whole < 8:
        # What overlapping horizons leave of the variance, from the correlations of sums of as many numbers in a row.
        overlap = scipy.linalg.toeplitz(numpy.maximum(0, 1 - numpy.arange(count) / horizon))
        transform = scipy.fft.dct(numpy.eye(count), type=2, norm="ortho", axis=0)[: cosines + 1]
        expected = ((transform @ overlap) * transform).sum(axis=1)
        variance /= expected[1:].mean() / expected[0]
    return cosines, numpy.sqrt(variance / count)


def check_test(found, values, windows, where):
    values = numpy.array(values)
    horizon, whole, apart = windows
    if whole < 5 or len(set(values)) < 2:
        assert found["test"] is None and found["refusal"], where
        return None
    cosines, error = standard_error(values, horizon, whole)
    t = values.mean() / error
    test = found["test"]
    same(test["cosines"], cosines, where)
    same(test["standard_error"], error, where)
    same(test["t"], t, where)
    p = 2 * scipy.stats.t.sf(abs(t), cosines)
    same(test["p"], p, where)
    same(test["lower"], values.mean() - error * scipy.stats.t.isf(0.025, cosines), where)
    if found["disjoint"]:
        disjoint = scipy.stats.ttest_1samp(values[apart], 0)
        same(found["disjoint"]["p"], disjoint.pvalue, where)
    return p


def check_ranks(found, dates, windows, rows, where):
    """Compares rank correlations with the figures of dates; returns the figures of those with enough names, and the
    p-value and the series."""
    figures = {day: figure for day, figure in dates.items() if figure["names"] >= 5}
    known = {day: figure["correlation"] for day, figure in figures.items() if figure["correlation"] is not None}
    same(found["dates"], len(known), f"{where} dates")
    same(found["constant_dates"], len(figures) - len(known), f"{where} constant")
    same(found["thin_dates"], sum(0 < figure["names"] < 5 for figure in dates.values()), f"{where} thin")
    same(found["correlation"], mean(known.values()), f"{where} correlation")
    same(found["positive"], mean([float(value > 0) for value in known.values()]), f"{where} positive")
    same(found["names"], mean([figures[day]["names"] for day in known]), f"{where} names")
    same(found["horizon"], windows(list(known))[0], f"{where} horizon")
    same(found["windows"], windows(list(known))[1], f"{where} windows")
    of_dates = rows[rows["date"].notna()].set_index("date")
    assert list(of_dates.index) == list(figures), where
    for day, figure in figures.items():
        same(of_dates.loc[day, "correlation"], figure["correlation"], f"{where} {day}")
        same(of_dates.loc[day, "names"], figure["names"], f"{where} {day}")
    return figures, check_test(found, list(known.values()), windows(list(known)), where), known


def check_measure(found, dates, flips, windows, rows, where):
    """Compares a measure with the figures of its dates, a dict by date; returns its p-value and series."""
    figures, p, known = check_ranks(found, dates, windows, rows, where)
    if flips is not None:
        same(found["flips"], flips, f"{where} flips")
        same(found["spread"], mean([figure["spread"] for figure in figures.values()]), f"{where} spread")
        for fifth in range(5):
            same(found["fifths"][fifth], mean([figure["fifths"][fifth] for figure in figures.values()]), f"{where} {fifth}")
        check_turnover(found, figures, windows, where)
        for name in ["buys", "sells", "confident"]:
            sides = [figure[name] for figure in figures.values()]
            same(found[name]["signals"], sum(one["signals"] for one in sides), f"{where} {name}")
            for count in ("hits", "even", "luck"):
                same(found[name][count], sum(one[count] for one in sides), f"{where} {name} {count}")
            check_shares(found[name], sides, windows(list(figures)), f"{where} {name}")
            same(found[name]["excess"], mean([one["excess"] for one in sides]), f"{where} {name}")
    return p, known


def check_turnover(found, figures, windows, where):
    """The share of the highest fifth that was not in it one horizon before, and the cost that it pays for."""
    bounds = windows.bounds(list(figures))
    before, held, replaced, highest = [], 0, 0, []
    for (begin, end), figure in zip(bounds, figures.values()):
        highest += [next(mean for mean in reversed(figure["fifths"]) if mean is not None)]
        if figure["highest"] is None:
            continue
        known = [place for place, (left, _) in enumerate(before) if left <= begin]
        if known:
            before = before[known[-1] :]
            held += len(figure["highest"])
            replaced += len(figure["highest"] - before[0][1])
        before.append((end, figure["highest"]))
    share = replaced / held if held else None
    same(found["turnover"], share, f"{where} turnover")
    same(found["break_even"], mean(highest) / share / 2 if share else None, f"{where} cost")


def check_series(found, series, windows, where, lag=0):
    """The mean of some correlations, a pair of names and correlation by date."""
    known = {day: pair for day, pair in series.items() if pair[1] is not None}
    values = numpy.array([correlation for _, correlation in known.values()])
    same(found["dates"], len(known), f"{where} dates")
    same(found["correlation"], mean(values), f"{where} correlation")
    same(found["names"], mean([names for names, _ in known.values()]), f"{where} names")
    horizon, whole, _ = windows(list(known), lag)
    same(found["horizon"], horizon, f"{where} horizon")
    same(found["windows"], whole, f"{where} windows")
    if whole < 5 or len(set(values)) < 2:
        assert found["test"] is None, where
    else:
        cosines, error = standard_error(values, horizon, whole)
        same(found["test"]["standard_error"], error, where)
        same(found["test"]["p"], 2 * scipy.stats.t.sf(abs(values.mean() / error), cosines), where)


class Names:
    """The names of a date by column: what a frame is for, much faster."""

    def __init__(self, columns):
        self.columns = columns

    def __getitem__(self, column):
        return self.columns[column]

    def __len__(self):
        return len(self.columns["value"])

    def where(self, is_taken):
        return Names({name: values[is_taken] for name, values in self.columns.items()})


def by_names(frames):
    return {day: Names({name: frame[name].values for name in frame}) for day, frame in frames.items()}


def correlation_of(names, column="value"):
    signed, returns = names["signed"].astype(float), names[column]
    is_known = ~numpy.isnan(returns)
    count = int(is_known.sum())
    return count, rank_correlation(signed[is_known], returns[is_known]) if count >= 5 else None


def difference_of(names):
    """The difference of the correlations of the latest and the first values."""
    if len(names) < 5:
        return len(names), None
    latest = names["latest"].astype(float)
    is_left = ~numpy.isnan(latest)
    of_first = rank_correlation(names["first"].astype(float), names["value"])
    of_latest = rank_correlation(latest[is_left], names["value"][is_left]) if is_left.sum() >= 5 else None
    return len(names), None if None in (of_first, of_latest) else of_latest - of_first


def within_sectors_of(names):
    """Scores and returns less the means of their sectors, where these have a second name."""
    frame = pandas.DataFrame({name: names[name] for name in ("sector", "value")}).assign(signed=names["signed"].astype(float))
    frame = frame[frame.groupby("sector")["value"].transform("size") > 1]
    less_mean = lambda name: frame[name] - frame.groupby("sector")[name].transform("mean")
    # To nine decimals, so that what is equal stays so.
    own, value = (numpy.round(1e9 * less_mean(name)) for name in ("signed", "value"))
    return len(frame), rank_correlation(own, value) if len(frame) >= 5 else None


def given_beta_of(names):
    is_known = ~numpy.isnan(names["beta"])
    known = names.where(is_known)
    return partial_correlation_of(Names({**known.columns, "given": known["beta"]}))


def partial_correlation_of(names):
    """The correlation of what a line through the ranks of the confidences leaves of the ranks of feature and return."""
    if len(names) < 5:
        return len(names), None
    ranks = [centered_ranks(tuple(names[column].astype(float).tolist())) for column in ("signed", "value", "given")]
    if any(rank is None for rank in ranks):
        return len(names), None
    lines = numpy.column_stack([ranks[2], numpy.ones(len(names))])
    left = [own - lines @ numpy.linalg.lstsq(lines, own, rcond=None)[0] for own in ranks[:2]]
    scale = numpy.sqrt((left[0] @ left[0]) * (left[1] @ left[1]))
    return len(names), float(left[0] @ left[1] / scale) if scale > 1e-9 else None


def check_news(found, dates, which, windows, where):
    """By the number of articles in each window; returns the groups."""
    groups = []
    for days in WINDOWS:
        for name, low, high in [("0", 0, 0), ("1-2", 1, 2), ("3-9", 3, 9), ("10+", 10, 10**9)]:
            counts = f"{which} news_count_{days}d"
            is_taken = lambda names: (names[counts] >= low) & (names[counts] <= high)
            series = {day: correlation_of(names.where(is_taken(names))) for day, names in dates.items()}
            if any(pair[1] is not None for pair in series.values()):
                groups.append(((f"{days}d", name), series))
    assert [(one["window"], one["articles"]) for one in found] == [group for group, _ in groups], where
    for one, (group, series) in zip(found, groups):
        check_series(one, series, windows, f"{where} {group}")
    return [("news", f"{one['window']} {one['articles']}", one) for one in found]


def check_groups(found, dates, windows, rows, where, which=None):
    """By lag, year and sector, from the cells of each date with enough names; of signals also by news, of features also what
    they add to the signal."""
    for lag, of_lag in enumerate(found["by_lag"]):
        assert of_lag["lag"] == lag, where
        series = {day: correlation_of(names, f"lag{lag}") for day, names in dates.items()}
        check_series(of_lag, series, windows, f"{where} lag {lag}", lag)
    assert len(found["by_lag"]) == LAGS, where
    check_years_and_sectors(found, dates, correlation_of, windows, where)
    for name, correlation in [("within_sectors", within_sectors_of), ("given_beta", given_beta_of)]:
        series = {day: correlation(names) for day, names in dates.items()}
        check_series(found[name], series, windows, f"{where} {name}")
    groups = [("lag", str(one["lag"]), one) for one in found["by_lag"]]
    groups += [("year", str(one["year"]), one) for one in found["by_year"]]
    groups += [("sector", one["sector"], one) for one in found["by_sector"]]
    groups += [("within", "sectors", found["within_sectors"]), ("given", "beta", found["given_beta"])]
    if which is not None:
        groups += check_news(found["by_news"], dates, which, windows, f"{where} news")
    else:
        series = {day: partial_correlation_of(names) for day, names in dates.items()}
        check_series(found["partial"], series, windows, f"{where} partial")
        groups.append(("given", "signal", found["partial"]))
    rows = rows[rows["by"].notna()].set_index(["by", "group"])
    assert len(rows) == len(groups), where
    for by, group, one in groups:
        row = rows.loc[(by, group)]
        for name in ["names", "correlation", "dates", "horizon", "windows"]:
            same(row[name], one[name], f"{where} {by} {group} {name}")
        same(row["p"], one["test"]["p"] if one["test"] else None, f"{where} {by} {group} p")


def check_years_and_sectors(found, dates, correlation, windows, where):
    years = sorted({day.year for day in dates})
    assert [one["year"] for one in found["by_year"]] == years, where
    for one in found["by_year"]:
        series = {day: correlation(names) for day, names in dates.items() if day.year == one["year"]}
        check_series(one, series, windows, f"{where} {one['year']}")
    if correlation is difference_of:
        assert not found["by_sector"] and found["within_sectors"] is None and found["given_beta"] is None, where
        return
    sectors = {sector: {} for sector in ("energy", "utilities")}
    for day, names in dates.items():
        for sector in set(names["sector"]):
            sectors[sector][day] = correlation(names.where(names["sector"] == sector))
    measured = [sector for sector, series in sectors.items() if any(pair[1] is not None for pair in series.values())]
    assert [one["sector"] for one in found["by_sector"]] == measured, where
    for one in found["by_sector"]:
        check_series(one, sectors[one["sector"]], windows, f"{where} {one['sector']}")


def check_features(found, cells, windows, rows, where):
    """The rank correlation of a feature of the news, at the cells of the only regime; p-values and series by state."""
    name = found["feature"]
    of_feature = cells.assign(published=cells[f"first {name}"], today=cells[f"latest {name}"])
    p_values, series = {}, {}
    for measure in found["measures"]:
        state = measure["state"]
        columns = ["published", "today"] if state == "difference" else [state]
        of_state = of_feature.dropna(subset=columns)
        given = of_state["first" if state == "published" else "latest"].astype(float)
        of_state = of_state.assign(given=given, signed=of_state[columns[-1]], first=of_state[columns[0]], latest=of_state[columns[-1]])
        lags = [f"lag{lag}" for lag in range(LAGS)]
        of_state = of_state[["date", "sector", "given", "beta", "signed", "first", "latest", "value", *lags]]
        columns = {name: of_state[name].to_numpy() for name in of_state}
        dates, frames = {}, {}
        for day, rows_of_day in sorted(of_state.groupby("date").indices.items()):
            names = Names({name: values[rows_of_day] for name, values in columns.items()})
            if state == "difference":
                correlations = [rank_correlation(names[column], names["value"]) for column in ("first", "latest")]
                correlation = None if None in correlations else correlations[1] - correlations[0]
            else:
                correlation = rank_correlation(names["signed"], names["value"])
            dates[day] = dict(names=len(names), correlation=correlation)
            if len(names) >= 5:
                frames[day] = names
        of_rows = rows[rows["state"] == state]
        of_windows = windows["left" if state == "difference" else state]
        _, p_values[state], series[state] = check_ranks(measure, dates, of_windows, of_rows, f"{where} {state}")
        if state == "difference":
            assert not measure["by_lag"] and measure["partial"] is None, where
            check_years_and_sectors(measure, frames, difference_of, of_windows, f"{where} {state}")
        else:
            check_groups(measure, frames, windows[state], of_rows, f"{where} {state}")
    return p_values, series


def decided(frames):
    """The signals of some dates that went either way, with that way."""
    return pandas.concat([
        frame.assign(way=numpy.sign(frame["value"] - frame["value"].median()))[frame["value"] != frame["value"].median()]
        for frame in frames
    ])


def check_reliability(found, frames, apart, where):
    """The share of hits at each confidence, of one date a window, and what calibrated confidences would show."""
    chosen = [list(frames.values())[place] for place in apart]
    signed = decided(chosen)
    same(found["dates"], len(chosen), where)
    same(found["signals"], len(signed), where)
    side = numpy.where(signed["sell"], -1, 1)
    forecast, hit = side * signed["signed"].values, (side * signed["way"].values > 0).astype(float)
    levels = pandas.DataFrame(dict(forecast=forecast, hit=hit)).groupby("forecast")["hit"].agg(["mean", "size"])
    sizes = levels["size"].values
    isotonic = lambda rates: scipy.optimize.isotonic_regression(rates, weights=sizes).x
    # At every confidence, or at a hundred of them.
    points = min(len(levels), 100)
    same(len(found["points"]), points, where)
    shown = [point * (len(levels) - 1) // max(points - 1, 1) for point in range(points)]
    fitted = isotonic(levels["mean"].values)
    random = numpy.random.default_rng(7)
    drawn = random.binomial(sizes, levels.index.values, size=(2_000, len(sizes))) / sizes
    drawn = numpy.sort([isotonic(rates) for rates in drawn], axis=0)
    for place, point in zip(shown, found["points"]):
        same(point["confidence"], levels.index[place], where)
        same(point["frequency"], fitted[place], where)
        # The ends of 400 resamples lie between quantiles around 2.5 and 97.5 %.
        lower, upper = numpy.quantile(drawn[:, place], [[0.003, 0.06], [0.94, 0.997]])
        assert lower[0] - 1e-9 <= point["lower"] <= lower[1] + 1e-9, f"{where} {place} {point} {lower}"
        assert upper[0] - 1e-9 <= point["upper"] <= upper[1] + 1e-9, f"{where} {place} {point} {upper}"


def check_shares(found, sides, windows, where):
    """The test of a pooled share, whose influence by date is that of the ratio of two sums."""
    count = lambda name: numpy.array([side[name] for side in sides], dtype=float)
    hits, cases, luck = count("hits"), count("signals") - count("even"), count("luck")
    if not cases.sum():
        assert found["test"] is None, where
        return
    same(found["hit_rate"], hits.sum() / cases.sum(), where)
    rate = (hits - luck).sum() / cases.sum()
    values = rate + (hits - luck - rate * cases) / cases.mean()
    horizon, whole, _ = windows
    if whole < 5:
        assert found["test"] is None, where
        return
    cosines, error = standard_error(values, horizon, whole)
    same(found["test"]["mean"], rate, where)
    same(found["test"]["standard_error"], error, where)
    same(found["test"]["p"], 2 * scipy.stats.t.sf(abs(rate) / error, cosines), where)


def check_confidence(found, frames, where):
    """Brier's score and its parts, by isotonic regression."""
    signed = decided(frames) if frames else pandas.DataFrame(columns=["signed", "sell", "way"])
    same(found["signals"] if found else 0, len(signed), where)
    if not len(signed):
        return
    side = numpy.where(signed["sell"], -1, 1)
    forecast, hit = side * signed["signed"].values, (side * signed["way"].values > 0).astype(float)
    levels = pandas.DataFrame(dict(forecast=forecast, hit=hit)).groupby("forecast")["hit"].agg(["mean", "size"])
    fit = scipy.optimize.isotonic_regression(levels["mean"].values, weights=levels["size"].values).x
    fitted = dict(zip(levels.index, fit))
    calibrated = numpy.array([fitted[value] for value in forecast])
    score = lambda probability: ((probability - hit) ** 2).mean()
    same(found["brier"], score(forecast), where)
    same(found["miscalibration"], score(forecast) - score(calibrated), where)
    same(found["discrimination"], score(hit.mean()) - score(calibrated), where)
    same(found["uncertainty"], score(hit.mean()), where)
    assert sum(decile["cases"] for decile in found["deciles"]) == len(signed), where
    assert sum(decile["hits"] for decile in found["deciles"]) == hit.sum(), where


def share_of_flips(frame, column):
    flipped = []
    for _, series in frame.sort_values("date").groupby("ticker"):
        sells = series[column].astype(bool).values
        flipped.extend(sells[1:] != sells[:-1])
    return float(numpy.mean(flipped)) if flipped else None


def since(pair):
    """The cells that were known at an instant, or are now, as if what was known then were what was published."""
    pair = pair[pair["then"].notna() | ~pair["withdrawn"]]
    late = pair["then"].isna()
    first = pair["latest"].where(late, pair["then"]).astype(float)
    first_sell = pair["latest_sell"].where(late, pair["then_sell"]).astype(object)
    changed = (pair["latest"].astype(float) != first) | (pair["latest_sell"] != first_sell)
    return pair.assign(late=late, first=first, first_sell=first_sell, altered=~pair["withdrawn"] & ~late & changed)


def check_kinds(found, pair, where):
    base = pair[~pair["late"]]
    same(found["matched"], len(base[~base["altered"] & ~base["withdrawn"]]), where)
    same(found["altered"], int(base["altered"].sum()), where)
    same(found["turned"], int((base["altered"] & (base["latest_sell"] != base["first_sell"])).sum()), where)
    same(found["removed"], int(base["withdrawn"].sum()), where)
    same(found["added"], int((pair["late"] & ~pair["withdrawn"]).sum()), where)
    latest = pair["latest"].where(~pair["withdrawn"], pair["first"]).astype(float)
    pair = pair.assign(now=latest)
    variants = {
        "base": (pair[~pair["late"]], "first"),
        "with_altered": (pair[~pair["late"]], "now"),
        "without_removed": (pair[~pair["late"] & ~pair["withdrawn"]], "first"),
        "with_added": (pair, "first"),
        "today": (pair[~pair["withdrawn"]], "now"),
    }
    for name, (frame, column) in variants.items():
        of_dates = [rank_correlation(date[column], date["value"]) for _, date in frame.groupby("date") if len(date) >= 5]
        same(found[name], mean(of_dates), f"{where} {name}")


def votes_of(cell, sessions, end):
    """What was made of a cell between two closes once part of its return was known: which session that was, whether it speaks
    for a buy, when it was seen, and what it was."""
    said = []
    for seen, signed in cell.values:
        if (said or signed is not None) and (not said or said[-1][1] != signed):
            said.append((seen, signed))
    known = [min(int(sessions.searchsorted(seen.normalize())) - 1, end) for seen, _ in said]
    before, votes = said[0][1], []
    for place in range(1, len(said)):
        if place + 1 < len(said) and known[place + 1] == known[place]:
            continue
        seen, after = said[place]
        towards = (after or 0) - (before or 0)
        if before is None:
            what = "restored"
        elif after is None:
            what = "withdrawn"
        elif (before < 0) != (after < 0):
            what = "turned"
        else:
            what = "weakened" if abs(after) < abs(before) else "strengthened"
        if known[place] > cell.entry and towards:
            votes.append((known[place], towards > 0, seen, what))
        before = after
    return votes


def hindsight_of(cells, prices):
    """By date: the net votes, the window, and the published signals; and all votes."""
    sessions, by_date, all_votes = prices.index, {}, []
    closes = {ticker: prices[ticker].to_numpy() for ticker in prices.columns}
    for (period, _, date), frame in cells.groupby(["period", "regime", "date"]):
        of_date = list(frame.itertuples())
        ends = [exit_of(sessions, cell.entry, period) for cell in of_date]
        day = by_date.setdefault(date, dict(net=0.0, window=(10**9, 0), live=[]))
        day["window"] = (min(day["window"][0], frame["entry"].min()), max(day["window"][1], max(ends)))
        median = frame["value"].median()
        day["live"] += [
            cell.value != median and (cell.value < median) == cell.first_sell for cell in of_date if cell.published
        ]
        parts = {}
        for cell, end in zip(of_date, ends):
            if len(cell.values) < 2:
                continue
            for known, is_up, seen, what in votes_of(cell, sessions, end):
                if (cell.entry, known) not in parts:
                    values = {
                        other.ticker: closes[other.ticker][known] / closes[other.ticker][cell.entry] - 1 for other in of_date
                    }
                    parts[cell.entry, known] = values, numpy.nanmedian(list(values.values()))
                values, middle = parts[cell.entry, known]
                own = values[cell.ticker]
                if numpy.isnan(own):
                    continue
                if own == middle:
                    all_votes.append((date, None, seen, what, known < end))
                    continue
                alike = [values[other.ticker] for other in of_date if other.first_sell == cell.first_sell]
                alike = numpy.array([value for value in alike if not numpy.isnan(value) and value != middle])
                agrees = (own > middle) == is_up
                day["net"] += agrees - ((alike > middle) == is_up).mean()
                all_votes.append((date, bool(agrees), seen, what, known < end))
    return by_date, all_votes


def check_hindsight(found, cells, prices, where):
    by_date, votes = hindsight_of(cells, prices)
    counted = [vote for vote in votes if vote[1] is not None]
    same(found["rewrites"], len(counted), where)
    same(found["even"], len(votes) - len(counted), where)
    for kind in ("turned", "weakened", "strengthened", "withdrawn", "restored"):
        same(found[kind], sum(vote[3] == kind for vote in counted), f"{where} {kind}")
    same(found["within"], sum(vote[4] for vote in counted), where)
    same(found["agree"], sum(vote[1] for vote in counted), where)
    days = sorted(by_date)
    net = numpy.array([by_date[day]["net"] for day in days])
    horizon, windows, _ = windows_among([by_date[day]["window"] for day in days])
    if not counted or windows < 5 or len(set(net)) < 2:
        assert found["test"] is None, where
    else:
        same(found["luck"], sum(vote[1] for vote in counted) / len(counted) - net.sum() / len(counted), where)
        cosines, error = standard_error(net, horizon, windows)
        same(found["test"]["mean"], net.mean(), where)
        same(found["test"]["p"], 2 * scipy.stats.t.sf(abs(net.mean() / error), cosines), where)
    if counted:
        since = min(vote[2] for vote in counted).normalize()
        assert found["since"] == str(since.date()), where
        live = [hit for day in days if day >= since for hit in by_date[day]["live"]]
        same(found["live_after"], len(live), where)
        same(found["live_after_hits"], sum(live), where)
    return len(counted)


def check_gone(found, cells, period, sessions, where):
    gone = cells[cells["withdrawn"]]
    excess = gone["value"] - gone["date"].map(cells.groupby("date")["value"].mean())
    same(found["signals"], len(gone), where)
    same(found["names"], gone["ticker"].nunique(), where)
    same(found["mean_return"], mean(gone["value"]), where)
    same(found["excess"], mean(excess), where)
    days = sorted(cells["date"].unique())
    sums = excess.groupby(gone["date"]).sum().reindex(days, fill_value=0).to_numpy(dtype=float)
    horizon, whole, _ = windows_of(cells, period, sessions)(days)
    if whole < 5 or len(set(sums)) < 2:
        assert found["test"] is None, where
    else:
        cosines, error = standard_error(sums, horizon, whole)
        same(found["test"]["p"], 2 * scipy.stats.t.sf(abs(sums.mean() / error), cosines), where)


def check_best(found, series, p_values, state, pairs):
    tested = [pair for pair in pairs if p_values[state, pair] is not None]
    same(found["tested"], len(tested), state)
    normal = {pair: scipy.stats.norm.isf(p_values[state, pair] / 2) for pair in tested}
    best = max(tested, key=lambda pair: normal[pair])
    assert (found["feature"], found["period"], found["regime"]) == best, state
    same(abs(found["z"]), normal[best], state)
    above = lambda z: -numpy.expm1(len(tested) * numpy.log1p(-2 * scipy.stats.norm.sf(z))) if z > 0 else 1.0
    same(found["expected"], scipy.integrate.quad(above, 0, 40, epsabs=1e-12, limit=500)[0], state)
    matrix = pandas.DataFrame({pair: series[state, pair] for pair in tested}).corr().values
    weights = numpy.linalg.eigvalsh(matrix)
    weights = weights[weights > 0] / weights[weights > 0].sum()
    effective = numpy.exp(-(weights * numpy.log(weights)).sum())
    same(found["effective"], effective, state)


def rewritten(found):
    return sum(pair["rewritten"][kind] for pair in found["pairs"] for kind in ("altered", "removed", "added"))


def main():
    prices = read_prices()
    cells = read_cells()
    answers = sys.argv[3:]
    seen = [check_answer(cells, prices, *answers[begin : begin + 4]) for begin in range(0, len(answers), 4)]
    print(json.dumps({name: min(of[name] for of in seen if name in of) for name in seen[0]}))


def check_answer(cells, prices, document, rows, lag, instant):
    global LAG, FROM
    LAG, FROM = int(lag), pandas.Timestamp(instant) if instant else None
    with open(document) as file:
        found = json.load(file)
    rows = pandas.read_parquet(rows)
    rows["date"] = pandas.to_datetime(rows["date"])
    cells = measure_cells(known_then(cells), prices)
    cells["beta"] = betas_of(cells, prices)
    if FROM is not None:
        # Nothing else depends on the instant.
        measured = cells[cells["fate"] == "measured"]
        for pair in found["pairs"]:
            of_pair = measured[(measured["period"] == pair["period"]) & (measured["regime"] == pair["regime"])]
            check_kinds(pair["rewritten"], since(of_pair), f"{pair['period']} rewritten since")
        return dict(rewritten=rewritten(found))
    same(found["prices"]["sessions"], len(prices), "sessions")
    same(found["prices"]["closes"], int(prices.notna().sum().sum()), "closes")
    fates = ["measured", "incomplete", "without_price", "before_prices"]
    for fate in fates:
        same(found["signals"][fate], int((cells["fate"] == fate).sum()), fate)
    same(found["signals"]["all"], len(cells), "all")
    same(found["signals"]["live"], int(cells["live"].sum()), "live")
    same(found["signals"]["late"], int(cells["tardy"].sum()), "late")
    whole, cells = cells, cells[cells["fate"] == "measured"]
    groups = cells.groupby(["period", "regime", "date"])["value"]
    cells = cells.assign(excess=cells["value"] - groups.transform("mean"))
    p_values, series, by_pair, turned = {}, {}, {}, 0
    of_features = rows[rows["feature"].notna()]
    rows = rows[rows["feature"].isna()]
    for pair in found["pairs"]:
        key = (pair["period"], pair["regime"])
        of_pair = cells[(cells["period"] == key[0]) & (cells["regime"] == key[1])]
        of_whole = whole[(whole["period"] == key[0]) & (whole["regime"] == key[1])]
        for fate in fates:
            same(pair["signals"][fate], int((of_whole["fate"] == fate).sum()), f"{key} {fate}")
        windows = windows_by_state(of_pair, key[0], prices.index)
        measures = {measure["state"]: measure for measure in pair["measures"]}
        by_pair[key] = measures
        of_rows = rows[(rows["period"] == key[0]) & (rows["regime"] == key[1])]
        dates, frames = {state: {} for state in measures}, {state: {} for state in measures}
        for day, frame in of_pair.groupby("date"):
            for state, which in [("published", "first"), ("today", "latest")]:
                of_state = view(frame, which)
                if len(of_state):
                    dates[state][day] = measure_date(of_state)
                    if len(of_state) >= 5:
                        frames[state][day] = of_state
            both = frame[frame["published"]]
            if len(both):
                names = by_names({day: both})[day]
                dates["difference"][day] = dict(names=len(both), correlation=difference_of(names)[1])
                if len(both) >= 5:
                    frames["difference"][day] = both
        flips = {
            "published": share_of_flips(of_whole[of_whole["published"]], "first_sell"),
            "today": share_of_flips(of_whole[~of_whole["withdrawn"]], "latest_sell"),
            "difference": None,
        }
        for state, measure in measures.items():
            of_state = of_rows[of_rows["state"] == state]
            p_values[state, (None, *key)], series[state, (None, *key)] = check_measure(
                measure, dates[state], flips[state], windows[state], of_state, f"{key} {state}"
            )
            where = f"{key} {state}"
            if state == "difference":
                assert not measure["by_lag"] and not measure["by_news"] and measure["confidence"] is None, where
                check_years_and_sectors(measure, by_names(frames[state]), difference_of, windows[state], where)
                continue
            check_confidence(measure["confidence"], list(frames[state].values()), f"{where} confidence")
            which = "first" if state == "published" else "latest"
            check_groups(measure, by_names(frames[state]), windows[state], of_state, where, which)
            if measure["confidence"]:
                reliability = measure["confidence"]["reliability"]
                check_reliability(reliability, frames[state], windows[state](list(frames[state]))[2], f"{where} reliability")
        check_kinds(pair["rewritten"], of_pair, f"{key} rewritten")
        check_gone(pair["gone"], of_pair, key[0], prices.index, f"{key} gone")
        turned += check_hindsight(pair["hindsight"], of_pair, prices, f"{key} hindsight")
    check_hindsight(found["hindsight"], cells, prices, "hindsight")
    judged = {(None, *key): of_pair for key, of_pair in by_pair.items()}
    periods = sorted({period for period, _ in by_pair}, key=lambda period: (period[-1], int(period[:-1])))
    assert [(of["feature"], of["period"]) for of in found["features"]] == [
        (feature, period) for feature in FEATURES for period in periods
    ]
    for of in found["features"]:
        key = (of["feature"], of["period"], of["regime"])
        at = cells[(cells["period"] == key[1]) & (cells["regime"] == key[2])]
        of_rows = of_features[(of_features["feature"] == key[0]) & (of_features["period"] == key[1])]
        of_states = check_features(of, at, windows_by_state(at, key[1], prices.index), of_rows, str(key))
        for state in ("published", "today", "difference"):
            p_values[state, key], series[state, key] = (part[state] for part in of_states)
        judged[key] = {measure["state"]: measure for measure in of["measures"]}
    for state in ("published", "today", "difference"):
        for is_feature in (False, True):
            tested = [key for key in judged if p_values[state, key] is not None and (key[0] is not None) == is_feature]
            for name, method in [("p_holm", "holm"), ("p_benjamini_hochberg", "fdr_bh")]:
                adjusted = multipletests([p_values[state, key] for key in tested], method=method)[1] if tested else []
                for key, p in zip(tested, adjusted):
                    same(judged[key][state][name], p, f"{key} {state} {name}")
    for best in found["best"]:
        family = [key for key in judged if (key[0] is None) == (best["feature"] is None)]
        check_best(best, series, p_values, best["state"], family)
    return dict(
        compared=compared, turned=turned, late=int(cells["late"].sum()), withdrawn=int(cells["withdrawn"].sum()),
        altered=int(cells["altered"].sum()), live=int(cells["live"].sum()),
        tested=sum(p is not None for p in p_values.values()),
        rewritten=rewritten(found),
        constant=sum(pair["published"]["constant_dates"] for pair in by_pair.values()),
        renewed=int((cells[f"first {FEATURES[3]}"] != cells[f"latest {FEATURES[3]}"])[cells["published"]].sum()),
        tested_features=sum(p is not None for (_, key), p in p_values.items() if key[0]),
        news_groups=len({one["articles"] for of in by_pair.values() for one in of["published"]["by_news"]}),
    )


main()
