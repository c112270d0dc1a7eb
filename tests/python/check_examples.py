"""Reads the datasets of the shipped definitions as users would.

    check_examples.py DATASETS
"""

import sys
from pathlib import Path

import pandas
import polars

datasets = Path(sys.argv[1])
seen = set()


def file(name, ending="parquet"):
    seen.add(name)
    return datasets / name / "latest" / f"{name}.{ending}"


key = ["ticker", "date", "period", "regime"]
for name in ["demo", "nightly"]:
    frame = polars.read_parquet(file(name))
    assert frame.height > 100_000 and not frame.select(key).is_duplicated().any(), name
    assert frame["news_count_7d"].sum() > 0, name
assert polars.read_parquet(file("nightly"))["ticker"].n_unique() > 400

notebook = pandas.read_csv(file("notebook", "csv"), parse_dates=["date"])
assert notebook["date"].is_monotonic_increasing and notebook["news_mean_7d"].notna().any()

# A study across tickers ranks the confidences of each day.
batched = polars.read_parquet(file("batched"))
assert batched["ticker"].n_unique() > 400 and not batched.select(["ticker", "date"]).is_duplicated().any()
assert batched["source"].unique().to_list() == ["signals-history-batched-all"]
ranks = batched.with_columns(polars.col("confidence").rank().over("date").alias("rank"))
assert ranks["date"].is_sorted() and ranks["rank"].max() > 400

watchlist = polars.read_parquet(file("watchlist"))
assert watchlist["ticker"].unique().sort().to_list() == ["CVX", "JPM", "LLY", "UNH", "XOM"]
assert watchlist.height == polars.read_csv(file("watchlist", "csv")).height
assert {"news_std_7d", "news_days_since", "summary_avg_score"} <= set(watchlist.columns)

latest = pandas.read_csv(file("latest", "csv"))
assert sorted(latest["ticker"]) == ["CVX", "JPM", "LLY", "UNH", "XOM"], "one row a ticker"
assert latest["first_observed_at"].notna().all()

news = polars.read_parquet(file("news"))
assert not news.select(["ticker", "date", "title", "link", "copy"]).is_duplicated().any()
assert sorted(news["sector"].unique().to_list()) == ["energy", "financials"]
assert news["title"].str.len_chars().min() > 0

# The dates are the index, and a position is the score.
seen.add("wide")
matrices = {
    value: pandas.read_parquet(datasets / f"wide/latest/5d-neutral/{value}.parquet")
    for value in ["score", "news_mean_7d"]
}
positions = matrices["score"]
assert isinstance(positions.index, pandas.DatetimeIndex) and positions.shape == matrices["news_mean_7d"].shape
assert positions.abs().max().max() <= 1

# alphalens expects a series indexed by date and asset, and a series of groups.
factor = pandas.read_parquet(file("factor"))
assert list(factor.columns) == ["date", "asset", "factor", "session", "group"]
assert (factor["session"].dropna() > factor["date"][factor["session"].notna()]).all() and factor["factor"].min() < 0
series = factor.set_index(["date", "asset"])["factor"]
assert series.index.is_unique and series.index.get_level_values("date").is_monotonic_increasing
assert set(factor["group"]) == {"energy", "financials"}

vintages = polars.read_parquet(file("vintages"))
assert vintages["revisions"].sum() == 0, "one run has seen nothing change"
live = vintages.filter(~polars.col("backfilled"))
assert 0 < live.height < vintages.height

assert seen == {path.name for path in datasets.iterdir()}, seen
