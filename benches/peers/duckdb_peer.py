"""DuckDB: threads fetch the answers to a temporary folder, everything after that is SQL.

    duckdb_peer.py BASE_URL OUT_FOLDER SIZE

`read_json` of a URL would need the extension `httpfs`, which is not in the package index. The fetched files stay in the page
cache.
"""

import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import urllib3

import work

CONNECTIONS = 8

SIGNALS = f"""
    create table signals as
    select
        history.ticker, entry.date, history.period::enum {tuple(work.PERIODS)} as period,
        history.regime::enum {tuple(work.REGIMES)} as regime, entry.signal, entry.confidence
    from (
        select unnest(map_values(json)) as history
        from read_json($files, records = false, maximum_object_size = 268435456, columns = {{json: 'map(varchar, struct(
            ticker varchar, period varchar, regime varchar,
            predictions struct(date timestamp, signal varchar, confidence double)[]))'}})
    ), unnest(history.predictions) as each(entry)
"""

ARTICLES = """
    create table articles as
    select parse_filename(filename, true) as ticker, date, row_number() over () as place, score
    from read_json($files, format = 'array', filename = true, columns = {date: 'date', score: 'double'})
"""


def fetch(service, targets, folder):
    """Fetches each target into a file with the given name, and returns the paths."""

    def save(target, name):
        file = folder / f"{name}.json"
        with service.request("GET", target, preload_content=False) as answer, file.open("wb") as out:
            if answer.status != 200:
                raise RuntimeError(f"{target} was answered with {answer.status}")
            shutil.copyfileobj(answer, out, 1 << 20)
        return str(file)

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        return list(threads.map(save, targets.keys(), targets.values()))


def load(database, statement, service, targets, out):
    with tempfile.TemporaryDirectory(dir=out) as folder:
        database.execute(statement, {"files": fetch(service, targets, Path(folder))})


def main(base_url, out, size):
    service = urllib3.connection_from_url(base_url, maxsize=CONNECTIONS)
    with duckdb.connect() as database:
        histories = {target: f"history-{number}" for number, target in enumerate(work.histories(size))}
        load(database, SIGNALS, service, histories, out)
        load(database, ARTICLES, service, {work.articles(ticker): ticker for ticker in work.TICKERS}, out)
        database.execute((Path(__file__).parent / "join.sql").read_text())
        database.execute(f"copy (from dataset) to '{out}/dataset.parquet' (format parquet, compression zstd)")
        database.execute(f"copy (from '{out}/dataset.parquet') to '{out}/dataset.csv' (header)")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
