"""Recomputes a dataset from the raw answers in three independent ways, and compares row by row.

    check_join.py DATASET.parquet PARAMETERS.json

The parameters name the files of the raw answers, the lag and the windows. A window is unknown, in all three ways, if the news
of its ticker was not answered, or if it begins by the day of the oldest article listed, unless lists are complete. The three ways are brute force in plain Python, pandas
(`rolling` on a daily grid, `merge_asof`), and DuckDB (windows by a range join, `ASOF JOIN`).
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

import duckdb
import pandas
import polars

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
    return {day: days[bisect.bisect_left(days, day) - back] if bisect.bisect_left(days, day) >= back else NEVER for day in days}


def billionths(score):
    return int(Decimal(score * 1e9).quantize(Decimal(1), ROUND_HALF_UP))


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
        last = known[-1] if known else None
        row["news_last_score"] = last and last[3]
        row["news_last_date"] = last and datetime.combine(last[1], datetime.min.time())
        row["news_days_since"] = last and (key[1].date() - last[1]).days
        rows[key] = row
    return rows


def by_pandas(signals, articles, limits, windows):
    frame = pandas.DataFrame(articles, columns=["ticker", "date", "order", "score"])
    frame["date"] = pandas.to_datetime(frame["date"])
    frame["score"] = frame["score"].astype("float64")
    left = pandas.DataFrame(list(signals), columns=["ticker", "at", "period", "regime"])
    left["limit"] = pandas.to_datetime([limits[at.date()] if limits[at.date()] > NEVER else date(1700, 1, 1) for at in left["at"]])
    pieces = []
    for ticker, own in left.groupby("ticker"):
        news = frame[frame["ticker"] == ticker]
        first = min([own["limit"].max(), *news["date"]]) if len(news) else own["limit"].max()
        grid = pandas.date_range(first, own["limit"].max(), freq="D")
        result = own.copy()
        for window in windows:
            daily = news.groupby("date")["score"].agg(["size", "count", "sum", "min", "max"]).reindex(grid)
            rolled = daily[["size", "count", "sum"]].fillna(0).rolling(window, min_periods=1).sum()
            rolled["min"] = daily["min"].rolling(window, min_periods=1).min()
            rolled["max"] = daily["max"].rolling(window, min_periods=1).max()
            at = rolled.reindex(own["limit"]).reset_index(drop=True)
            count = at["size"].fillna(0).round().astype(int)
            result[f"news_count_{window}d"] = count.to_numpy()
            result[f"news_mean_{window}d"] = (at["sum"] / at["count"].where(at["count"] > 0)).to_numpy()
            result[f"news_min_{window}d"] = at["min"].to_numpy()
            result[f"news_max_{window}d"] = at["max"].to_numpy()
        known = news.rename(columns={"date": "news_last_date", "score": "news_last_score"})
        known = known.assign(limit=known["news_last_date"]).sort_values(["limit", "order"], kind="stable")
        last = pandas.merge_asof(
            result.sort_values("limit", kind="stable"),
            known[["limit", "news_last_date", "news_last_score"]],
            on="limit",
        )
        pieces.append(last)
    rows = {}
    for row in pandas.concat(pieces).to_dict("records"):
        key = row.pop("ticker"), row.pop("at").to_pydatetime(), row.pop("period"), row.pop("regime")
        row.pop("limit")
        rows[key] = {name: None if pandas.isna(value) else value for name, value in row.items()}
    return rows


def by_duckdb(signals, articles, limits, windows):
    given = [(*key, str(limits[key[1].date()])) for key in signals]
    given = pandas.DataFrame(given, columns=["ticker", "moment", "period", "regime", "last_day"])
    news = pandas.DataFrame(articles, columns=["ticker", "day", "place", "score"])
    news["day"] = [str(day) for day in news["day"]]
    connection = duckdb.connect()
    connection.execute("create table signals as select ticker, moment, period, regime, last_day::date as last_day from given")
    connection.execute(
        """create table news as select ticker, day::date as day, place, score::double as score,
        round(score::double * 1e9)::hugeint as x from news"""
    )
    # In DuckDB, each window is one range join with aggregates.
    rows = {}
    for window in windows:
        result = connection.execute(
            f"""select s.ticker, s.moment, s.period, s.regime, count(n.day),
            least(greatest(sum(x)::double / (count(x) * 1e9), min(n.score)), max(n.score)), min(n.score), max(n.score),
            -- A text becomes the nearest float; of whole numbers beyond 64 bits not every engine says so.
            case when count(x) > 1 then
                sqrt((count(x) * sum(x * x) - sum(x) * sum(x))::varchar::double / (count(x) * (count(x) - 1))) / 1e9
            end
            from signals s left join news n
            on n.ticker = s.ticker and n.day <= s.last_day and n.day > s.last_day - {window}
            group by all"""
        ).fetchall()
        for *key, count, mean, low, high, deviation in result:
            row = rows.setdefault(tuple(key), {})
            row[f"news_count_{window}d"] = count
            row[f"news_mean_{window}d"], row[f"news_min_{window}d"] = mean, low
            row[f"news_max_{window}d"], row[f"news_std_{window}d"] = high, deviation
    # Of articles of one date, the one with the highest position is the latest.
    last = connection.execute(
        """with last as (select ticker, day, arg_max(struct_pack(score := score), place).score as score from news group by all)
        select s.ticker, s.moment, s.period, s.regime, l.day, l.score
        from signals s asof left join last l on s.ticker = l.ticker and s.last_day >= l.day"""
    ).fetchall()
    for *key, day, score in last:
        row = rows[tuple(key)]
        row["news_last_date"] = day and datetime.combine(day, datetime.min.time())
        row["news_last_score"] = score
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


def is_same(one, other, is_exact):
    if one is None or other is None:
        return one is None and other is None
    # Only pandas adds floats, and all of their decimals.
    if not is_exact and (isinstance(one, float) or isinstance(other, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


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
    for compute in (by_brute_force, by_pandas, by_duckdb):
        rows = without_unknown(compute(signals, articles, limits, windows), limits, windows, parameters)
        assert rows.keys() == found.keys(), compute.__name__
        for key, row in rows.items():
            for name, value in row.items():
                assert is_same(value, found[key][name], compute is not by_pandas), (compute.__name__, key, name, value, found[key][name])
        print(f"{compute.__name__}: {len(rows)} rows are the same")


main()
