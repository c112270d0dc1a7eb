"""Polars: httpx on threads, `read_json` with the whole schema declared, and a lazy plan on the streaming engine.

    polars_peer.py BASE_URL OUT_FOLDER SIZE

The thread that fetched a body also parses and flattens it; Polars releases the GIL meanwhile.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import polars as pl

import work

CONNECTIONS = 8

PERIOD, REGIME = pl.Enum(work.PERIODS), pl.Enum(work.REGIMES)

ENTRY = pl.Struct({"date": pl.String, "signal": pl.Enum(["buy", "sell"]), "confidence": pl.Float64})
HISTORY = pl.Struct({"ticker": pl.String, "period": PERIOD, "regime": REGIME, "predictions": pl.List(ENTRY)})
# Tickers outside the sector are null.
SECTOR = {ticker: HISTORY for ticker in work.TICKERS}
# The score is a number or a decimal string.
ARTICLE = {"date": pl.String, "score": pl.String}


def fetch(client, target):
    return client.get(target).raise_for_status().content


def fetch_histories(client, target):
    return (
        pl.read_json(fetch(client, target), schema=SECTOR)
        .unpivot(value_name="history")
        .drop_nulls("history")
        .select(pl.col("history").struct.unnest())
        .explode("predictions")
        .unnest("predictions")
        .with_columns(pl.col("date").str.to_datetime("%Y-%m-%dT%H:%M:%S%#z", time_unit="us").dt.replace_time_zone(None))
    )


def fetch_articles(client, ticker):
    return pl.read_json(fetch(client, work.articles(ticker)), schema=ARTICLE).select(
        pl.lit(ticker).alias("ticker"),
        pl.col("date").str.to_datetime("%Y-%m-%d", time_unit="us"),
        pl.col("score").cast(pl.Float64),
    )


def features(signals, articles):
    """What was known of each ticker before each of its dates: the same for all periods and regimes."""
    days = signals.select("ticker", "date").unique().sort("ticker", "date")
    # Of the articles of one date, the first one listed is the latest.
    articles = articles.reverse().sort("ticker", "date", maintain_order=True)
    windows = (
        pl.concat([days.with_columns(asked=True), articles.with_columns(asked=False)], how="diagonal")
        .sort("ticker", "date")
        .rolling("date", period="7d", closed="left", group_by="ticker")
        .agg(
            pl.col("score").count().alias("news_count_7d"),
            pl.col("score").mean().alias("news_mean_7d"),
            pl.col("score").min().alias("news_min_7d"),
            pl.col("score").max().alias("news_max_7d"),
        )
        .unique(["ticker", "date"])
    )
    last = days.join_asof(
        articles.rename({"score": "news_last_score"}),
        on="date",
        by="ticker",
        strategy="backward",
        allow_exact_matches=False,
    )
    return last.join(windows, on=["ticker", "date"])


def main(base_url, out, size):
    with httpx.Client(base_url=base_url, timeout=60) as client, ThreadPoolExecutor(CONNECTIONS) as threads:
        histories = threads.map(lambda target: fetch_histories(client, target), work.histories(size))
        articles = threads.map(lambda ticker: fetch_articles(client, ticker), work.TICKERS)
        signals, articles = pl.concat(histories).lazy(), pl.concat(articles).lazy()
    names = ["ticker", "date", "period", "regime", "signal", "confidence"]
    names += ["news_count_7d", "news_mean_7d", "news_min_7d", "news_max_7d", "news_last_score"]
    dataset = (
        signals.join(features(signals, articles), on=["ticker", "date"])
        .select(names)
        .sort("ticker", "date", "period", "regime")
    )
    dataset.sink_parquet(out / "dataset.parquet", compression="zstd", engine="streaming")
    pl.scan_parquet(out / "dataset.parquet").sink_csv(out / "dataset.csv", engine="streaming")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
