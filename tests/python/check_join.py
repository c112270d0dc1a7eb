"""Recomputes a dataset from the raw answers by brute force, and compares row by row.

    check_join.py DATASET.parquet PARAMETERS.json

The parameters name the files of the raw answers, the lag and the windows. A window is unknown if the news of its ticker was not
answered, or if it begins by the day of the oldest article listed, unless lists are complete. The same join is computed by the
model in `tests/program/model` and, in other engines, by the statement of `bellwether sql`.
"""

import bisect
import json
import math
import statistics
import sys
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path

import polars

from sessions import of_new_york

NEVER = date(1, 1, 1)


def naive(text):
    """The UTC instant of a date with an offset; a date without one as written."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=None) - moment.utcoffset() if moment.tzinfo else moment


def read(parameters):
    signals, articles, seen = {}, [], set()
    for file in parameters["histories"]:
        for history in json.loads(Path(file).read_text()).values():
            for entry in history["predictions"]:
                key = history["ticker"], naive(entry["date"]), history["period"], history["regime"]
                # Of entries of one date, the first one listed counts.
                signals.setdefault(key, (entry["signal"], float(entry["confidence"])))
    for ticker, file in parameters["articles"].items():
        for position, article in enumerate(json.loads(Path(file).read_text())):
            score = article.get("score")
            score = None if score is None else float(score)
            text = article["title"], article["link"], article["date"], score
            # An exact duplicate counts once, at its first position, which is the latest.
            if parameters.get("duplicates") != "keep" and (ticker, text) in seen:
                continue
            seen.add((ticker, text))
            articles.append((ticker, date.fromisoformat(article["date"]), -position, score))
    return signals, sorted(articles, key=lambda article: article[:3])


def cutoffs(signals, parameters):
    """For each day, the last day whose articles a signal may use."""
    days = sorted({key[1].date() for key in signals})
    if parameters.get("trading_days") is None:
        return {day: day - timedelta(days=parameters["lag_days"]) for day in days}
    back = parameters["trading_days"]
    sessions = of_new_york(days[0] - timedelta(days=30), days[-1])
    return {day: sessions[bisect.bisect_left(sessions, day) - back] for day in days}


def rounded(number):
    return int(Decimal(number).quantize(Decimal(1), ROUND_HALF_UP))


def billionths(score):
    return rounded(score * 1e9)


def mean(scores):
    if not scores:
        return None
    found = float(sum(map(billionths, scores))) / (len(scores) * 1e9)
    exact = float(sum(map(Fraction, scores)) / len(scores))
    assert abs(found - exact) <= 0.5e-9 + sys.float_info.epsilon * max(map(abs, scores)), (found, exact)
    return min(max(found, min(scores)), max(scores))


def deviation(scores):
    if len(scores) < 2:
        return None
    count, whole = len(scores), [billionths(score) for score in scores]
    spread = count * sum(one * one for one in whole) - sum(whole) ** 2
    found = math.sqrt(float(spread) / float(count * (count - 1))) / 1e9
    assert math.isclose(found, statistics.stdev(scores), rel_tol=1e-6, abs_tol=1e-9)
    return found


def total(scores):
    if not scores:
        return None
    found = scores[0] if len(scores) == 1 else float(sum(map(billionths, scores))) / 1e9
    assert math.isclose(found, math.fsum(scores), rel_tol=1e-9, abs_tol=0.5e-9 * len(scores) + 1e-15), (found, scores)
    return found


def decaying(inside, limit, half_life):
    """The mean of scores, each with half the weight for each half-life that it is old."""
    inside = [article for article in inside if article[3] is not None and (limit - article[1]).days <= 20 * half_life]
    scored = [(rounded(2.0 ** (-(limit - article[1]).days / half_life) * 1e12), article[3]) for article in inside]
    weights = sum(weight for weight, _ in scored)
    if not weights:
        return None
    scores = [score for _, score in scored]
    found = float(sum(weight * billionths(score) for weight, score in scored)) / (weights * 1e9)
    exact = math.fsum(2.0 ** (-(limit - article[1]).days / half_life) * article[3] for article in inside)
    exact /= math.fsum(2.0 ** (-(limit - article[1]).days / half_life) for article in inside)
    assert math.isclose(found, exact, rel_tol=2e-6, abs_tol=1e-8), (found, exact)
    return min(max(found, min(scores)), max(scores))


def by_brute_force(signals, articles, limits, windows):
    rows = {}
    for key in signals:
        ticker, limit = key[0], limits[key[1].date()]
        known = [article for article in articles if article[0] == ticker and article[1] <= limit]
        row = {}
        for window in windows:
            begin = limit - timedelta(days=window) if limit > NEVER else NEVER
            inside = [article for article in known if article[1] > begin]
            scores = [article[3] for article in inside if article[3] is not None]
            row[f"news_count_{window}d"] = len(inside)
            row[f"news_mean_{window}d"] = mean(scores)
            row[f"news_min_{window}d"] = min(scores) if scores else None
            row[f"news_max_{window}d"] = max(scores) if scores else None
            row[f"news_std_{window}d"] = deviation(scores)
            row[f"news_sum_{window}d"] = total(scores)
            row[f"news_median_{window}d"] = statistics.median(scores) if scores else None
            for half_life in (2, 5):
                row[f"news_decay_{half_life}d_{window}d"] = decaying(inside, limit, half_life)
        last = known[-1] if known else None
        row["news_last_score"] = last and last[3]
        row["news_last_date"] = last and datetime.combine(last[1], datetime.min.time())
        row["news_days_since"] = last and (key[1].date() - last[1]).days
        rows[key] = row
    return rows


def without_unknown(rows, limits, windows, parameters):
    """The rows with null in each column of a window that the lists do not tell of."""
    lists = {ticker: json.loads(Path(file).read_text()) for ticker, file in parameters["articles"].items()}
    dates = {ticker: [date.fromisoformat(article["date"]) for article in articles] for ticker, articles in lists.items()}
    for key, row in rows.items():
        ticker, limit = key[0], limits[key[1].date()]
        for window in windows:
            is_known = ticker in dates and limit > NEVER
            if is_known and dates[ticker] and not parameters.get("complete"):
                is_known = limit - timedelta(days=window - 1) > min(dates[ticker])
            if not is_known:
                row |= {name: None for name in row if name.endswith(f"_{window}d")}
    return rows


def main():
    dataset, parameters = polars.read_parquet(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    signals, articles = read(parameters)
    limits, windows = cutoffs(signals, parameters), parameters["windows"]
    found = {}
    for row in dataset.with_columns(polars.col(polars.Categorical).cast(polars.String)).to_dicts():
        key = row["ticker"], row["date"], row["period"], row["regime"]
        assert key not in found, f"{key} stands twice"
        assert (row["signal"], row["confidence"]) == signals[key], (key, row, signals[key])
        found[key] = row
    assert found.keys() == signals.keys(), (len(found), len(signals))
    rows = without_unknown(by_brute_force(signals, articles, limits, windows), limits, windows, parameters)
    assert rows.keys() == found.keys()
    for key, row in rows.items():
        for name, value in row.items():
            assert value == found[key][name], (key, name, value, found[key][name])
    print(f"{len(rows)} rows are the same")


main()
