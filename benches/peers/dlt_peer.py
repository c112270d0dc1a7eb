"""dlt: two resources loaded into DuckDB with declared columns, joined there in SQL.

    dlt_peer.py BASE_URL OUT_FOLDER SIZE

dlt's own threads and session fetch both. They yield Arrow tables, which dlt loads unchanged: its documentation recommends
that for large loads, and plain records take more than ten times as long.
"""

import os
import sys
import tempfile
from pathlib import Path

import dlt
import duckdb
import orjson
import pandas  # dlt and pyarrow import it if it is installed, on several threads at once.
import pyarrow as pa
import pyarrow.compute as pc
from dlt.sources.helpers import requests

import work

os.environ.update(EXTRACT__WORKERS="8", RUNTIME__DLTHUB_TELEMETRY="false", RUNTIME__LOG_LEVEL="ERROR")

UTC, NAIVE = pa.timestamp("us", "UTC"), pa.timestamp("us")


def fetch(address):
    return orjson.loads(requests.get(address, timeout=60).content)


@dlt.source
def market(base_url, size):
    @dlt.resource
    def sectors():
        yield from work.histories(size)

    @dlt.resource
    def tickers():
        yield from work.TICKERS

    naive = {"date": {"data_type": "timestamp", "timezone": False}}

    @dlt.transformer(data_from=sectors, columns=naive, write_disposition="replace", parallelized=True)
    def signals(target):
        histories = fetch(base_url + target).values()
        entries = [entry for history in histories for entry in history["predictions"]]

        def repeated(field):
            return [history[field] for history in histories for _ in history["predictions"]]

        yield pa.table(
            {
                "ticker": pa.array(repeated("ticker"), pa.string()),
                "date": pc.cast(pa.array([entry["date"] for entry in entries]), UTC).cast(NAIVE),
                "period": pa.array(repeated("period"), pa.string()),
                "regime": pa.array(repeated("regime"), pa.string()),
                "signal": pa.array([entry["signal"] for entry in entries], pa.string()),
                "confidence": pa.array([entry["confidence"] for entry in entries], pa.float64()),
            }
        )

    @dlt.transformer(data_from=tickers, write_disposition="replace", parallelized=True)
    def articles(ticker):
        listed = fetch(base_url + work.articles(ticker))
        yield pa.table(
            {
                "ticker": pa.array([ticker] * len(listed), pa.string()),
                "date": pc.cast(pa.array([article["date"] for article in listed]), pa.date32()),
                "place": pa.array(range(len(listed)), pa.int64()),
                # The score is a number or a decimal string.
                "score": pa.array([float(article["score"]) for article in listed], pa.float64()),
            }
        )

    return signals, articles


def main(base_url, out, size):
    with tempfile.TemporaryDirectory(dir=out) as folder:
        database = f"{folder}/loaded.duckdb"
        pipeline = dlt.pipeline(
            "market", pipelines_dir=folder, destination=dlt.destinations.duckdb(database), dataset_name="market"
        )
        pipeline.run(market(base_url, size)).raise_on_failed_jobs()
        with duckdb.connect(database) as loaded:
            loaded.execute("use market")
            loaded.execute((Path(__file__).parent / "join.sql").read_text())
            loaded.execute(f"copy (from dataset) to '{out}/dataset.parquet' (format parquet, compression zstd)")
            loaded.execute(f"copy (from '{out}/dataset.parquet') to '{out}/dataset.csv' (header)")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
