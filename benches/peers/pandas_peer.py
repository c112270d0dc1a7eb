"""pandas: requests on threads, orjson to columns, `rolling` over days and `merge_asof`.

    pandas_peer.py BASE_URL OUT_FOLDER SIZE

The thread that fetched a body also turns it into a frame, so that only a few exist as Python objects at once. pyarrow writes
the CSV file, several times faster than `to_csv`.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pandas as pd
import pyarrow as pa
import requests
from pyarrow.csv import write_csv
from requests.adapters import HTTPAdapter

import work

CONNECTIONS = 8

TICKER = pd.CategoricalDtype(work.TICKERS, ordered=True)
PERIOD = pd.CategoricalDtype(work.PERIODS, ordered=True)
REGIME = pd.CategoricalDtype(work.REGIMES, ordered=True)
SIGNAL = pd.CategoricalDtype(["buy", "sell"])


def fetch(session, address):
    answer = session.get(address, timeout=60)
    answer.raise_for_status()
    return orjson.loads(answer.content)


def fetch_histories(session, address):
    histories = list(fetch(session, address).values())
    entries = [entry for history in histories for entry in history["predictions"]]
    lengths = [len(history["predictions"]) for history in histories]

    def repeated(field, kind):
        return pd.Series(pd.Categorical([history[field] for history in histories], dtype=kind)).repeat(lengths).array

    dates = pd.to_datetime([entry["date"] for entry in entries], format="ISO8601", utc=True)
    return pd.DataFrame(
        {
            "ticker": repeated("ticker", TICKER),
            "date": dates.tz_localize(None).as_unit("us"),
            "period": repeated("period", PERIOD),
            "regime": repeated("regime", REGIME),
            "signal": pd.Categorical([entry["signal"] for entry in entries], dtype=SIGNAL),
            "confidence": [entry["confidence"] for entry in entries],
        }
    )


def fetch_articles(session, base_url, ticker):
    articles = fetch(session, base_url + work.articles(ticker))
    return pd.DataFrame(
        {
            "ticker": pd.Categorical([ticker] * len(articles), dtype=TICKER),
            "date": pd.to_datetime([article["date"] for article in articles], format="%Y-%m-%d").as_unit("us"),
            # The score is a number or a decimal string.
            "score": [float(article["score"]) for article in articles],
        }
    )


def features(signals, articles):
    """What was known of each ticker before each of its dates: the same for all periods and regimes."""
    days = signals[["ticker", "date"]].drop_duplicates()
    events = pd.concat([days.assign(asked=True), articles.assign(asked=False)], ignore_index=True)
    events = events.sort_values(["ticker", "date"], ignore_index=True)
    past = events.groupby("ticker", observed=True).rolling("7D", on="date", closed="left")["score"]
    # Rows are in the order of `events`: by ticker, then date.
    windows = events[["ticker", "date"]].assign(
        news_count_7d=past.count().to_numpy(),
        news_mean_7d=past.mean().to_numpy(),
        news_min_7d=past.min().to_numpy(),
        news_max_7d=past.max().to_numpy(),
    )[events["asked"]]
    windows["news_count_7d"] = windows["news_count_7d"].fillna(0).astype("int32")
    # Of the articles of one date, the first one listed is the latest.
    articles = articles[::-1].sort_values("date", kind="stable").rename(columns={"score": "news_last_score"})
    return pd.merge_asof(
        windows.sort_values("date", kind="stable"), articles, on="date", by="ticker", allow_exact_matches=False
    )


def main(base_url, out, size):
    session = requests.Session()
    session.mount(base_url, HTTPAdapter(pool_maxsize=CONNECTIONS))
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        histories = threads.map(lambda target: fetch_histories(session, base_url + target), work.histories(size))
        articles = threads.map(lambda ticker: fetch_articles(session, base_url, ticker), work.TICKERS)
        signals, articles = pd.concat(histories, ignore_index=True), pd.concat(articles, ignore_index=True)
    dataset = signals.merge(features(signals, articles), on=["ticker", "date"], how="left")
    dataset = dataset.sort_values(["ticker", "date", "period", "regime"], ignore_index=True)
    dataset.to_parquet(out / "dataset.parquet", compression="zstd", index=False)
    write_csv(pa.Table.from_pandas(dataset, preserve_index=False), out / "dataset.csv")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
