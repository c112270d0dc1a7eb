"""Reads a dataset with other tools and recomputes it, by brute force, from the service's raw answers.

usage: check_dataset.py DATASET_FOLDER DEFINITION BASE_URL SENTIMENT_BASE_URL KEY

The definition gives sectors, periods, regimes, lag, windows and sort. Every row and every feature is compared.
"""

import functools
import json
import sys
import tomllib
from pathlib import Path
from urllib.parse import quote, urlencode
from urllib.request import urlopen

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet

folder, definition_path, base, sentiment_base, key = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:6]
definition = tomllib.loads(definition_path.read_text())
name = definition_path.stem
parquet = folder / f"{name}.parquet"
join = definition.get("join", {})
windows = [int(window[:-1]) for window in join.get("windows", ["1d", "7d", "30d"])]
lag = int(join.get("lag", "1d")[:-1])
sort = definition.get("output", {}).get("sort", [])
sort = sort + [column for column in ["ticker", "date", "period", "regime"] if column not in sort]


def get(address, **query):
    with urlopen(f"{address}?{urlencode(query | {'api_key': key})}") as response:
        return json.load(response)


def expected_rows():
    """The unsorted rows: one per signal, with features from a comparison of every date with every article."""
    signals = definition["signals"]
    histories = []
    for sector in signals["sectors"]:
        for period in signals.get("periods", ["15d"]):
            for regime in signals.get("regimes", ["neutral"]):
                answer = get(f"{base}/signals-history-all", sector=sector, period=period, regime=regime)
                histories += [{**history, "sector": sector} for history in answer.values()]
    features = {}
    for ticker in sorted({history["ticker"] for history in histories}):
        articles = get(f"{sentiment_base}/news_articles/{quote(ticker)}")
        dates = {entry["date"] for history in histories if history["ticker"] == ticker for entry in history["predictions"]}
        features[ticker] = features_of(sorted(dates), articles)
    for history in histories:
        for entry in history["predictions"]:
            yield {
                "ticker": history["ticker"],
                "date": naive(entry["date"]),
                "period": history["period"],
                "regime": history["regime"],
                "signal": entry["signal"],
                "confidence": entry["confidence"],
                "score": entry["confidence"] if entry["signal"] == "buy" else -entry["confidence"],
                **features[history["ticker"]][entry["date"]],
                "sector": history["sector"],
            }


@functools.cache
def naive(text):
    """A date of the service as naive UTC."""
    return pandas.Timestamp(text).tz_convert("UTC").tz_localize(None) if "+" in text else pandas.Timestamp(text)


def features_of(dates, articles):
    published = numpy.array([naive(article["date"]).normalize() for article in articles], dtype="datetime64[D]")
    scores = numpy.array([float(article["score"]) for article in articles])
    found = {}
    for date in dates:
        day = numpy.datetime64(naive(date).normalize(), "D")
        end = day - lag
        # An article has a day but no time: a signal with an instant may use it once the day is over.
        is_known = (published <= end) & ((published < day) if "+" in date else True)
        row = {}
        for window in windows:
            seen = scores[is_known & (published > end - window)]
            # Lists may be cut off: what was on the oldest day and before is unknown.
            if len(published) and end - window < published.min():
                row |= {f"news_{name}_{window}d": None for name in ["count", "mean", "min", "max"]}
                continue
            row[f"news_count_{window}d"] = len(seen)
            row[f"news_mean_{window}d"] = seen.mean() if len(seen) else None
            row[f"news_min_{window}d"] = seen.min() if len(seen) else None
            row[f"news_max_{window}d"] = seen.max() if len(seen) else None
        known = numpy.flatnonzero(is_known)
        # Newest date first, and of one date the first listed.
        last = known[published[known].argmax()] if len(known) else None
        row["news_last_score"] = None if last is None else scores[last]
        row["news_last_date"] = None if last is None else pandas.Timestamp(published[last])
        found[date] = row
    return found


def check_types(frame):
    assert frame.schema["ticker"] == polars.String, frame.schema
    for column in ["date", "news_last_date"]:
        assert frame.schema[column] == polars.Datetime("us", None), frame.schema
    for column in ["period", "regime", "signal"]:
        assert frame.schema[column] in (polars.Categorical, polars.Enum), frame.schema
    assert frame.schema["confidence"] == polars.Float64
    for window in windows:
        assert frame.schema[f"news_count_{window}d"] == polars.Int32
        assert frame.schema[f"news_mean_{window}d"] == polars.Float64

    table = pyarrow.parquet.read_table(parquet)
    assert table.schema.field("date").type == pyarrow.timestamp("us"), table.schema
    assert table.schema.field("ticker").type == pyarrow.string()
    columns = pyarrow.parquet.read_metadata(parquet).row_group(0).sorting_columns
    assert [frame.columns[column.column_index] for column in columns] == sort

    pandas_frame = pandas.read_parquet(parquet)
    assert str(pandas_frame["date"].dtype) == "datetime64[us]", pandas_frame.dtypes
    assert pandas_frame["date"].dt.tz is None
    assert len(pandas_frame) == len(frame)

    described = duckdb.sql(f"describe select * from '{parquet}'").fetchall()
    types = {column: kind for column, kind, *_ in described}
    assert types["date"] == "TIMESTAMP" and types["ticker"] == "VARCHAR", types
    assert types["period"] in ("VARCHAR",) or types["period"].startswith("ENUM"), types


def check_keys():
    repeated = duckdb.sql(
        f"select ticker, date, period, regime from '{parquet}' group by all having count(*) > 1"
    ).fetchall()
    assert not repeated, repeated[:5]


def check_rows(frame):
    text = frame.with_columns(polars.col("period", "regime", "signal").cast(polars.String))
    assert text.equals(text.sort(sort)), "the rows are not in the order of the definition"
    expected = polars.DataFrame(list(expected_rows()), schema=text.schema, strict=False).sort(sort)
    assert text.height == expected.height, (text.height, expected.height)
    for column in text.columns:
        if column.startswith("news_mean"):
            # Sums of floats depend on the order of addition.
            difference = (text[column] - expected[column]).abs().max()
            assert (difference or 0.0) < 1e-12, (column, difference)
            assert (text[column].is_null() == expected[column].is_null()).all(), column
        else:
            assert text[column].equals(expected[column], null_equal=True), column


def check_other_formats(frame):
    formats = definition.get("output", {}).get("format", "parquet")
    if "csv" in formats:
        overrides = {column: frame.schema[column] for column in ["news_last_date", "date"]}
        text = polars.read_csv(folder / f"{name}.csv", schema_overrides=overrides)
        for column in frame.columns:
            same = frame[column].cast(polars.String).equals(text[column].cast(polars.String), null_equal=True)
            assert same, f"csv: {column}"
    if "arrow" in formats:
        arrow = polars.read_ipc(folder / f"{name}.arrow")
        for column in frame.columns:
            same = frame[column].cast(polars.String).equals(arrow[column].cast(polars.String), null_equal=True)
            assert same, f"arrow: {column}"


frame = polars.read_parquet(parquet)
record = json.loads((folder / "dataset.json").read_text())
assert [column["name"] for column in record["columns"]] == frame.columns
assert record["files"][0]["rows"] == frame.height
check_types(frame)
check_keys()
check_rows(frame)
check_other_formats(frame)
