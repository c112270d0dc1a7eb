"""Computes what `audit skill` says from the files of the archive and the prices, with pandas, scipy and statsmodels."""

import glob
import json
import sys

import numpy
import pandas
import scipy.fft
import scipy.optimize
import scipy.stats
from statsmodels.stats.multitest import multipletests

DOCUMENT, ROWS, ARCHIVE, PRICES, LAG, FROM = sys.argv[1:7]
LAG = int(LAG)
FROM = pandas.Timestamp(FROM) if FROM else None
LAGS = 5
EULER = 0.5772156649015329
DAY = pandas.Timedelta(days=1)
compared = 0


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


def read_cells():
    """A row per cell: first and latest value, and when."""
    rows = pandas.concat(
        pandas.read_parquet(path, partitioning=None) for path in glob.glob(f"{ARCHIVE}/*=*/signals.parquet")
    )
    for name in ["ticker", "period", "regime", "signal", "change"]:
        rows[name] = rows[name].astype(object)
    rows["seen"] = rows["observed_at"].dt.tz_localize(None)
    rows = rows.sort_values("seen", kind="stable")
    cells = []
    for (ticker, period, regime), series in rows.groupby(["ticker", "period", "regime"]):
        listed = series[series["change"] != "withdrawn"]
        for date, cell in series.groupby("date"):
            values = [
                (row.signal == "sell", (-1 if row.signal == "sell" else 1) * row.confidence, row.seen)
                for row in cell.itertuples() if row.change != "withdrawn"
            ]
            first_sell, first, first_seen = values[0]
            known = [row for row in cell.itertuples() if FROM is not None and row.seen <= FROM]
            is_known = bool(known) and known[-1].change != "withdrawn"
            then_sell = known[-1].signal == "sell" if is_known else None
            then = (-1 if then_sell else 1) * known[-1].confidence if is_known else None
            is_withdrawn = cell["change"].iloc[-1] == "withdrawn"
            turned = first_seen
            for before, after in zip(values, values[1:]):
                if before[0] != after[0]:
                    turned = after[2]
            earlier = listed[listed["seen"] < first_seen]["date"]
            cells.append(dict(
                ticker=ticker, period=period, regime=regime, date=date.normalize(), first=first, first_sell=first_sell,
                first_seen=first_seen, latest=None if is_withdrawn else values[-1][1],
                latest_sell=None if is_withdrawn else values[-1][0], turned=turned.normalize(), withdrawn=is_withdrawn,
                late=bool((earlier < date).any() and (earlier > date).any()), then=then, then_sell=then_sell,
                sector="energy" if ticker < "G" else "utilities",
            ))
    cells = pandas.DataFrame(cells)
    # Trading days after the date, up to the day on which it was seen.
    ages = numpy.busday_count(
        (cells["date"] + DAY).values.astype("datetime64[D]"), (cells["first_seen"].dt.normalize() + DAY).values.astype("datetime64[D]")
    )
    cells["live"] = ages <= 2
    cells["altered"] = ~cells["withdrawn"] & ((cells["latest"] != cells["first"]) | (cells["latest_sell"] != cells["first_sell"]))
    return cells


def sessions_after(sessions, days):
    return sessions.searchsorted(days, side="right")


def exit_of(sessions, entry, period):
    count, unit = int(period[:-1]), period[-1]
    if unit == "d":
        return entry + count
    return int(sessions.searchsorted(sessions[entry] + pandas.DateOffset(months=count)))


def dated_entry(sessions, date):
    return int(sessions.searchsorted(date, side="right")) + LAG - 1 if LAG else int(sessions.searchsorted(date))


def measure_cells(cells, prices):
    """Adds what became of each cell, and its return."""
    sessions = prices.index
    what, returns, ends, lagged = [], [], [], [[] for _ in range(LAGS)]
    for cell in cells.itertuples():
        entry = dated_entry(sessions, cell.date)
        if cell.live:
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
        returns.append(value)
        ends.append(last)
        lagged[0].append(value)
        for of_lag in lagged[1:]:
            begin, end = end, exit_of(sessions, end, cell.period) if end < len(sessions) else end
            is_complete = fate == "measured" and end < len(sessions)
            of_lag.append(closes.iloc[end] / closes.iloc[begin] - 1 if is_complete else numpy.nan)
    return cells.assign(fate=what, value=returns, end=ends, **{f"lag{lag}": of for lag, of in enumerate(lagged)})


def mean(numbers):
    numbers = [number for number in numbers if number is not None and not numpy.isnan(number)]
    return float(numpy.mean(numbers)) if numbers else None


def rank_correlation(x, y):
    if len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return float(scipy.stats.spearmanr(x, y).statistic)


def fifths(values):
    return numpy.searchsorted(numpy.quantile(values, [0.2, 0.4, 0.6, 0.8]), values, side="left")


def side(frame, direction):
    goes = numpy.where(frame["sell"], -1, 1) * frame["excess"]
    excess = (frame["excess"] * direction(frame)).mean() if len(frame) else None
    return dict(signals=len(frame), hits=int((goes > 0).sum()), excess=excess)


def measure_date(frame):
    """Figures of a date from columns `signed`, `sell`, `value`, `excess`."""
    one = lambda frame: numpy.ones(len(frame))
    own = lambda frame: numpy.where(frame["sell"], -1, 1)
    place = fifths(frame["signed"].values)
    high, low = frame["value"][place == 4], frame["value"][place == 0]
    return dict(
        names=len(frame),
        correlation=rank_correlation(frame["signed"], frame["value"]),
        buys=side(frame[~frame["sell"]], one),
        sells=side(frame[frame["sell"]], one),
        confident=side(frame[fifths(frame["signed"].abs().values) == 4], own),
        spread=high.mean() - low.mean() if len(high) and len(low) else None,
    )


def view(frame, which):
    frame = frame[frame["live"]] if which == "first" else frame[~frame["withdrawn"]]
    signed, sell = ("first", "first_sell") if which == "first" else ("latest", "latest_sell")
    # Relative to the mean of the names that this state has on the date.
    excess = frame["value"] - frame["value"].mean()
    return frame.assign(signed=frame[signed].astype(float), sell=frame[sell].astype(bool), excess=excess)


def overlap(days, period, sessions, lag=0):
    spans = []
    for day in days:
        entry = dated_entry(sessions, day)
        for _ in range(lag):
            entry = exit_of(sessions, entry, period) if entry < len(sessions) else entry
        if entry < len(sessions) and exit_of(sessions, entry, period) < len(sessions):
            spans.append((entry, exit_of(sessions, entry, period)))
    return max([1] + [sum(entry < end for entry, _ in spans[place:]) for place, (_, end) in enumerate(spans)])


def check_test(found, values, horizon, where):
    values = numpy.array(values)
    # With fewer than eight windows the variance is made up for; see tests of the crate.
    assert not 5 * horizon <= len(values) < 8 * horizon, where
    if len(values) < 5 * horizon or len(set(values)) < 2:
        assert found["test"] is None and found["refusal"], where
        return None
    count = len(values)
    cosines = max(4, min(int(0.41 * count ** (2 / 3)), count // horizon // 2))
    coefficients = scipy.fft.dct(values, type=2, norm="ortho")[1 : cosines + 1]
    error = numpy.sqrt((coefficients**2).mean() / count)
    t = values.mean() / error
    test = found["test"]
    same(test["cosines"], cosines, where)
    same(test["standard_error"], error, where)
    same(test["t"], t, where)
    p = 2 * scipy.stats.t.sf(abs(t), cosines)
    same(test["p"], p, where)
    same(test["lower"], values.mean() - error * scipy.stats.t.isf(0.025, cosines), where)
    disjoint = scipy.stats.ttest_1samp(values[::horizon], 0)
    same(found["disjoint"]["p"], disjoint.pvalue, where)
    return p


def check_measure(found, dates, flips, period, sessions, rows, where):
    """Compares a measure with the figures of its dates, a dict by date; returns its p-value and series."""
    figures = {day: figure for day, figure in dates.items() if figure["names"] >= 5}
    known = {day: figure["correlation"] for day, figure in figures.items() if figure["correlation"] is not None}
    same(found["dates"], len(known), f"{where} dates")
    same(found["constant_dates"], len(figures) - len(known), f"{where} constant")
    same(found["thin_dates"], sum(0 < figure["names"] < 5 for figure in dates.values()), f"{where} thin")
    same(found["correlation"], mean(known.values()), f"{where} correlation")
    same(found["positive"], mean([float(value > 0) for value in known.values()]), f"{where} positive")
    same(found["names"], mean([figures[day]["names"] for day in known]), f"{where} names")
    horizon = overlap(list(known), period, sessions)
    same(found["horizon"], horizon, f"{where} horizon")
    same(found["windows"], len(known) // horizon, f"{where} windows")
    of_dates = rows[rows["date"].notna()].set_index("date")
    assert list(of_dates.index) == list(figures), where
    for day, figure in figures.items():
        same(of_dates.loc[day, "correlation"], figure["correlation"], f"{where} {day}")
        same(of_dates.loc[day, "names"], figure["names"], f"{where} {day}")
    if flips is not None:
        same(found["flips"], flips, f"{where} flips")
        same(found["spread"], mean([figure["spread"] for figure in figures.values()]), f"{where} spread")
        for name in ["buys", "sells", "confident"]:
            sides = [figure[name] for figure in figures.values()]
            same(found[name]["signals"], sum(one["signals"] for one in sides), f"{where} {name}")
            same(found[name]["hits"], sum(one["hits"] for one in sides), f"{where} {name}")
            check_shares(found[name], sides, horizon, f"{where} {name}")
            same(found[name]["excess"], mean([one["excess"] for one in sides]), f"{where} {name}")
    return check_test(found, list(known.values()), horizon, where), known


def check_series(found, series, period, sessions, where, lag=0):
    """The mean of some correlations, a pair of names and correlation by date."""
    known = {day: pair for day, pair in series.items() if pair[1] is not None}
    values = numpy.array([correlation for _, correlation in known.values()])
    same(found["dates"], len(known), f"{where} dates")
    same(found["correlation"], mean(values), f"{where} correlation")
    same(found["names"], mean([names for names, _ in known.values()]), f"{where} names")
    horizon = overlap(list(known), period, sessions, lag)
    same(found["horizon"], horizon, f"{where} horizon")
    same(found["windows"], len(known) // horizon, f"{where} windows")
    if len(values) < 5 * horizon or len(set(values)) < 2:
        assert found["test"] is None, where
    elif len(values) >= 8 * horizon:
        cosines = max(4, min(int(0.41 * len(values) ** (2 / 3)), len(values) // horizon // 2))
        coefficients = scipy.fft.dct(values, type=2, norm="ortho")[1 : cosines + 1]
        error = numpy.sqrt((coefficients**2).mean() / len(values))
        same(found["test"]["standard_error"], error, where)
        same(found["test"]["p"], 2 * scipy.stats.t.sf(abs(values.mean() / error), cosines), where)


def correlation_of(frame, column="value"):
    frame = frame[frame[column].notna()]
    return len(frame), rank_correlation(frame["signed"], frame[column]) if len(frame) >= 5 else None


def difference_of(frame):
    """The difference of the correlations of the latest and the first values."""
    if len(frame) < 5:
        return len(frame), None
    first, latest = (rank_correlation(frame[name].astype(float), frame["value"]) for name in ("first", "latest"))
    return len(frame), None if None in (first, latest) else latest - first


def check_groups(found, frames, period, sessions, rows, where):
    """By lag, year and sector, from the cells of each date with enough names."""
    for lag, of_lag in enumerate(found["by_lag"]):
        assert of_lag["lag"] == lag, where
        series = {day: correlation_of(frame, f"lag{lag}") for day, frame in frames.items()}
        check_series(of_lag, series, period, sessions, f"{where} lag {lag}", lag)
    assert len(found["by_lag"]) == LAGS, where
    check_years_and_sectors(found, frames, correlation_of, period, sessions, where)
    groups = [("lag", str(one["lag"]), one) for one in found["by_lag"]]
    groups += [("year", str(one["year"]), one) for one in found["by_year"]]
    groups += [("sector", one["sector"], one) for one in found["by_sector"]]
    rows = rows[rows["by"].notna()].set_index(["by", "group"])
    assert len(rows) == len(groups), where
    for by, group, one in groups:
        row = rows.loc[(by, group)]
        for name in ["names", "correlation", "dates", "horizon", "windows"]:
            same(row[name], one[name], f"{where} {by} {group} {name}")
        same(row["p"], one["test"]["p"] if one["test"] else None, f"{where} {by} {group} p")


def check_years_and_sectors(found, frames, correlation, period, sessions, where):
    years = sorted({day.year for day in frames})
    assert [one["year"] for one in found["by_year"]] == years, where
    for one in found["by_year"]:
        series = {day: correlation(frame) for day, frame in frames.items() if day.year == one["year"]}
        check_series(one, series, period, sessions, f"{where} {one['year']}")
    sectors = {sector: {} for sector in ("energy", "utilities")}
    for day, frame in frames.items():
        for sector, names in frame.groupby("sector"):
            sectors[sector][day] = correlation(names)
    measured = [sector for sector, series in sectors.items() if any(pair[1] is not None for pair in series.values())]
    assert [one["sector"] for one in found["by_sector"]] == measured, where
    for one in found["by_sector"]:
        check_series(one, sectors[one["sector"]], period, sessions, f"{where} {one['sector']}")


def check_reliability(found, frames, horizon, where):
    """The share of hits at each confidence, of one date a horizon, and what calibrated confidences would show."""
    chosen = list(frames.values())[::horizon]
    signed = pandas.concat(chosen)
    same(found["dates"], len(chosen), where)
    same(found["signals"], len(signed), where)
    side = numpy.where(signed["sell"], -1, 1)
    forecast, hit = side * signed["signed"].values, (side * signed["excess"].values > 0).astype(float)
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


def check_shares(found, sides, horizon, where):
    """The test of a pooled share, whose influence by date is that of the ratio of two sums."""
    hits, cases = (numpy.array([side[name] for side in sides], dtype=float) for name in ("hits", "signals"))
    if not cases.sum():
        assert found["test"] is None, where
        return
    rate = hits.sum() / cases.sum()
    values = rate - 0.5 + (hits - rate * cases) / cases.mean()
    if len(values) < 5 * horizon:
        assert found["test"] is None, where
        return
    cosines = max(4, min(int(0.41 * len(values) ** (2 / 3)), len(values) // horizon // 2))
    coefficients = scipy.fft.dct(values, type=2, norm="ortho")[1 : cosines + 1]
    error = numpy.sqrt((coefficients**2).mean() / len(values))
    same(found["test"]["mean"], rate - 0.5, where)
    same(found["test"]["standard_error"], error, where)
    same(found["test"]["p"], 2 * scipy.stats.t.sf(abs(rate - 0.5) / error, cosines), where)


def check_confidence(found, frames, where):
    """Brier's score and its parts, by isotonic regression."""
    signed = pandas.concat(frames) if frames else pandas.DataFrame(columns=["signed", "sell", "excess"])
    same(found["signals"] if found else 0, len(signed), where)
    if not len(signed):
        return
    side = numpy.where(signed["sell"], -1, 1)
    forecast, hit = side * signed["signed"].values, (side * signed["excess"].values > 0).astype(float)
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


def clustered(gains):
    """The share of flips of the clusters whose sum is as far from zero."""
    gains = [abs(gain) for gain in gains if gain], abs(sum(gains))
    sizes, net = gains
    if not sizes:
        return None
    sums = {0: 1}
    for size in sizes:
        after = {}
        for total, ways in sums.items():
            for sign in (1, -1):
                after[total + sign * size] = after.get(total + sign * size, 0) + ways
        sums = after
    return sum(ways for total, ways in sums.items() if abs(total) >= net) / 2 ** len(sizes)


def check_hindsight(found, cells, days, horizon, where):
    cluster_days = 2 * days
    votes = cells[cells["altered"] & (cells["latest_sell"] != cells["first_sell"]) & (cells["turned"] > cells["end"])]
    goes = numpy.sign(votes["excess"]) * numpy.where(votes["latest_sell"].astype(bool), -1, 1)
    new, old = int((goes > 0).sum()), int((goes < 0).sum())
    same(found["agree"], new, where)
    same(found["turned"], new + old, where)
    same(found["p"], scipy.stats.binomtest(new, new + old).pvalue if new + old else None, where)
    same(found["cluster_days"], cluster_days, where)
    first = cells["date"].min()
    clusters = ((votes["date"] - first).dt.days // cluster_days) if len(votes) else pandas.Series(dtype=int)
    same(found["p_clustered"], clustered(list(goes.groupby(clusters).sum().astype(int))), where)
    net = goes.groupby(votes["date"]).sum().reindex(sorted(cells["date"].unique()), fill_value=0).values.astype(float)
    windows = len(net) // horizon
    if windows < 5 or len(set(net)) < 2:
        assert found["test"] is None, where
    elif windows >= 8:
        cosines = max(4, min(int(0.41 * len(net) ** (2 / 3)), windows // 2))
        coefficients = scipy.fft.dct(net, type=2, norm="ortho")[1 : cosines + 1]
        error = numpy.sqrt((coefficients**2).mean() / len(net))
        same(found["test"]["mean"], net.mean(), where)
        same(found["test"]["p"], 2 * scipy.stats.t.sf(abs(net.mean() / error), cosines), where)
    if len(votes):
        assert found["since"] == str(votes["turned"].min().date()), where
        live = cells[cells["live"] & (cells["date"] >= votes["turned"].min())]
        hits = (numpy.where(live["first_sell"], -1, 1) * live["excess"] > 0).sum()
        same(found["live_after"], len(live), where)
        same(found["live_after_hits"], int(hits), where)
    return new + old


def check_best(found, series, p_values, state, pairs):
    tested = [pair for pair in pairs if p_values[state, pair] is not None]
    same(found["tested"], len(tested), state)
    normal = {pair: scipy.stats.norm.isf(p_values[state, pair] / 2) for pair in tested}
    best = max(tested, key=lambda pair: normal[pair])
    assert (found["period"], found["regime"]) == best, state
    same(abs(found["z"]), normal[best], state)
    isf = scipy.stats.norm.isf
    expected = lambda k: (1 - EULER) * isf(1 / k) + EULER * isf(1 / (k * numpy.e)) if k > 1 else 0.0
    same(found["expected"], max(0.0, expected(len(tested))), state)
    matrix = pandas.DataFrame({pair: series[state, pair] for pair in tested}).corr().values
    weights = numpy.linalg.eigvalsh(matrix)
    weights = weights[weights > 0] / weights[weights > 0].sum()
    effective = numpy.exp(-(weights * numpy.log(weights)).sum())
    same(found["effective"], effective, state)


def main():
    with open(DOCUMENT) as file:
        found = json.load(file)
    rows = pandas.read_parquet(ROWS)
    rows["date"] = pandas.to_datetime(rows["date"])
    prices = read_prices()
    cells = measure_cells(read_cells(), prices)
    same(found["prices"]["sessions"], len(prices), "sessions")
    same(found["prices"]["closes"], int(prices.notna().sum().sum()), "closes")
    fates = ["measured", "incomplete", "without_price", "before_prices"]
    for fate in fates:
        same(found["signals"][fate], int((cells["fate"] == fate).sum()), fate)
    same(found["signals"]["all"], len(cells), "all")
    same(found["signals"]["live"], int(cells["live"].sum()), "live")
    whole, cells = cells, cells[cells["fate"] == "measured"]
    groups = cells.groupby(["period", "regime", "date"])["value"]
    cells = cells.assign(excess=cells["value"] - groups.transform("mean"))
    p_values, series, by_pair, turned = {}, {}, {}, 0
    for pair in found["pairs"]:
        key = (pair["period"], pair["regime"])
        of_pair = cells[(cells["period"] == key[0]) & (cells["regime"] == key[1])]
        of_whole = whole[(whole["period"] == key[0]) & (whole["regime"] == key[1])]
        for fate in fates:
            same(pair["signals"][fate], int((of_whole["fate"] == fate).sum()), f"{key} {fate}")
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
            both = frame[frame["live"] & ~frame["withdrawn"]]
            if len(both):
                correlations = [rank_correlation(both[name].astype(float), both["value"]) for name in ("first", "latest")]
                difference = None if None in correlations else correlations[1] - correlations[0]
                dates["difference"][day] = dict(names=len(both), correlation=difference)
                if len(both) >= 5:
                    frames["difference"][day] = both
        flips = {
            "published": share_of_flips(of_whole[of_whole["live"]], "first_sell"),
            "today": share_of_flips(of_whole[~of_whole["withdrawn"]], "latest_sell"),
            "difference": None,
        }
        for state, measure in measures.items():
            of_state = of_rows[of_rows["state"] == state]
            p_values[state, key], series[state, key] = check_measure(
                measure, dates[state], flips[state], key[0], prices.index, of_state, f"{key} {state}"
            )
            where = f"{key} {state}"
            if state == "difference":
                assert not measure["by_lag"] and measure["confidence"] is None, where
                check_years_and_sectors(measure, frames[state], difference_of, key[0], prices.index, where)
                continue
            check_confidence(measure["confidence"], list(frames[state].values()), f"{where} confidence")
            check_groups(measure, frames[state], key[0], prices.index, of_state, where)
            if measure["confidence"]:
                reliability = measure["confidence"]["reliability"]
                check_reliability(reliability, frames[state], measure["horizon"], f"{where} reliability")
        check_kinds(pair["rewritten"], of_pair if FROM is None else since(of_pair), f"{key} rewritten")
        count = int(key[0][:-1])
        days = count * 31 if key[0].endswith("m") else -(-count // 5) * 2 + count
        by_pair[key]["days"] = days
        by_pair[key]["horizon"] = max(measure["horizon"] for measure in measures.values() if isinstance(measure, dict))
        turned += check_hindsight(pair["hindsight"], of_pair, days, by_pair[key]["horizon"], f"{key} hindsight")
    longest = [max(pair[name] for pair in by_pair.values()) for name in ("days", "horizon")]
    check_hindsight(found["hindsight"], cells, *longest, "hindsight")
    for state in ("published", "today", "difference"):
        tested = [key for key in by_pair if p_values[state, key] is not None]
        for name, method in [("p_holm", "holm"), ("p_benjamini_hochberg", "fdr_bh")]:
            adjusted = multipletests([p_values[state, key] for key in tested], method=method)[1] if tested else []
            for key, p in zip(tested, adjusted):
                same(by_pair[key][state][name], p, f"{key} {state} {name}")
    for best in found["best"]:
        check_best(best, series, p_values, best["state"], list(by_pair))
    print(json.dumps(dict(
        compared=compared, turned=turned, late=int(cells["late"].sum()), withdrawn=int(cells["withdrawn"].sum()),
        altered=int(cells["altered"].sum()), live=int(cells["live"].sum()),
        tested=sum(p is not None for p in p_values.values()),
        rewritten=sum(pair["rewritten"][kind] for pair in found["pairs"] for kind in ("altered", "removed", "added")),
        constant=sum(pair["published"]["constant_dates"] for pair in by_pair.values()),
    )))


main()
