"""chDB, ClickHouse in a process: threads fetch the answers to a temporary folder, everything after that is SQL.

    chdb_peer.py BASE_URL OUT_FOLDER SIZE
"""

import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import urllib3
from chdb.session import Session

import work

CONNECTIONS = 8

# An answer is an object with a member for each series, which is what `JSONObjectEachRow` reads.
SIGNALS = """
    create table signals engine = MergeTree order by (ticker, date, period, regime) as
    select ticker, entry.1 as date, period, regime, entry.2 as signal, entry.3 as confidence
    from file('{folder}/history-*.json', JSONObjectEachRow,
        'ticker LowCardinality(String), period LowCardinality(String), regime LowCardinality(String),
         predictions Array(Tuple(date DateTime64(6), signal LowCardinality(String), confidence Float64))')
    array join predictions as entry
"""

# Scores are numbers or decimal strings. If several articles have the same date, the first one listed is the last one.
ARTICLES = """
    create table articles engine = Memory as
    select substring(_file, 1, -5 + length(_file)) as ticker, date, rowNumberInBlock() as place, toFloat64(score) as score
    from file('{folder}/*.json', JSONEachRow, 'date Date, score String')
"""

# Features do not depend on period and regime, so they are computed once per ticker and day.
FEATURES = """
    create table features engine = Memory as
    with days as (select distinct ticker, date from signals),
    events as (
        select ticker, toDate(date) as day, null::Nullable(Float64) as score, 1 as asked from days
        union all
        select ticker, date, score, 0 from articles
    ),
    windows as (
        select ticker, day, asked, count(score) over past as news_count_7d, avgOrNull(score) over past as news_mean_7d,
            minOrNull(score) over past as news_min_7d, maxOrNull(score) over past as news_max_7d
        from events
        window past as (partition by ticker order by day range between 7 preceding and 1 preceding)
    ),
    last as (select ticker, date, argMin(score, place)::Nullable(Float64) as news_last_score from articles group by ticker, date)
    select w.ticker as ticker, w.day as day, news_count_7d, news_mean_7d, news_min_7d, news_max_7d, news_last_score
    from (select * from windows where asked = 1) w asof left join last l on w.ticker = l.ticker and w.day > l.date
    settings join_use_nulls = 1
"""

DATASET = """
    select s.ticker as ticker, date, period, regime, signal, confidence,
        news_count_7d, news_mean_7d, news_min_7d, news_max_7d, news_last_score
    from signals s join features f on s.ticker = f.ticker and toDate(s.date) = f.day
    order by ticker, date, period, regime
"""


def fetch(service, targets, folder):
    """Fetches each target into a file with the given name."""

    def save(target, name):
        file = folder / f"{name}.json"
        with service.request("GET", target, preload_content=False) as answer, file.open("wb") as out:
            if answer.status != 200:
                raise RuntimeError(f"{target} was answered with {answer.status}")
            shutil.copyfileobj(answer, out, 1 << 20)

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(save, targets.keys(), targets.values()))


def load(session, statement, service, targets, out):
    with tempfile.TemporaryDirectory(dir=out) as folder:
        fetch(service, targets, Path(folder))
        session.query(statement.format(folder=folder))


def main(base_url, out, size):
    service = urllib3.connection_from_url(base_url, maxsize=CONNECTIONS)
    with Session(str(out / "database")) as session:
        session.query("create database job")
        session.query("use job")
        session.query(
            "set session_timezone = 'UTC', date_time_input_format = 'best_effort',"
            " output_format_parquet_compression_method = 'zstd', format_csv_null_representation = ''"
        )
        histories = {target: f"history-{number}" for number, target in enumerate(work.histories(size))}
        load(session, SIGNALS, service, histories, out)
        load(session, ARTICLES, service, {work.articles(ticker): ticker for ticker in work.TICKERS}, out)
        session.query(FEATURES)
        session.query(f"insert into function file('{out}/dataset.parquet', Parquet) {DATASET}")
        session.query(
            f"insert into function file('{out}/dataset.csv', CSVWithNames) select * from file('{out}/dataset.parquet')"
            " order by ticker, date, period, regime"
        )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
