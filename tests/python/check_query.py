"""What `query` answers is what DuckDB finds in the same files. Usage: check_query.py PROGRAM FOLDER ARCHIVE DATASET"""

import datetime
import json
import subprocess
import sys

import duckdb

program, folder, archive, dataset = sys.argv[1:5]
duckdb.sql("set timezone = 'UTC'")
files = f"{archive}/*=*"
told = f"""
    select ticker, period, regime, date, signal, confidence, change,
        observed_at at time zone 'UTC' as known_from,
        lead(observed_at at time zone 'UTC') over (partition by ticker, period, regime, date order by observed_at) as known_until
    from read_parquet('{files}/signals.parquet', hive_partitioning = false)
"""
tables = {
    "dataset": f"select * from read_parquet('{dataset}')",
    "observations": told,
    "signals": f"select * from ({told}) where known_until is null and change <> 'withdrawn'",
    "articles": f"select * from read_parquet('{files}/articles.parquet', hive_partitioning = false)",
    "requests": f"select * from read_parquet('{files}/requests.parquet', hive_partitioning = false)",
    "rejects": f"select * from read_parquet('{files}/rejects.parquet', hive_partitioning = false, union_by_name = true)",
}
for name, text in tables.items():
    duckdb.sql(f"create temp view {name} as {text}")

statements = [
    "select count(*) as rows, count(distinct ticker) as tickers, sum(confidence) as total from dataset",
    "select ticker, min(date) as oldest, max(date) as newest, avg(confidence) as mean from dataset group by ticker order by ticker",
    "select signal, count(*) as rows from signals group by signal order by signal",
    "select ticker, date, confidence, known_from, known_until from observations where change <> 'withdrawn' "
    "order by ticker, date, known_from",
    "select ticker, count(*) as told from observations where change = 'withdrawn' group by ticker order by ticker",
    "select d.ticker, count(*) as said from dataset d join observations o on d.ticker = o.ticker and d.date = o.date "
    "group by d.ticker order by d.ticker",
    "select ticker, count(*) as articles, min(score) as lowest from articles group by ticker order by ticker",
    "select request, sum(rows) as rows from requests group by request order by request",
    "select ticker, count(*) as rejected from rejects group by ticker order by ticker",
    "select upper(title) as title, date from articles where title like 'a%' order by date, title",
    "with t as (select ticker, confidence, row_number() over (partition by ticker order by confidence desc) as place "
    "from signals) select ticker, confidence from t where place = 1 order by ticker",
    "select ticker from signals union select ticker from articles order by ticker",
    "select case when confidence > 2 then 'high' else 'low' end as kind, count(*) as rows from signals group by kind order by kind",
    "select ticker, confidence - lag(confidence) over (partition by ticker order by date) as step from dataset order by ticker, date",
]


def plain(value):
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.removesuffix("Z"))
        except ValueError:
            return value
    return value.isoformat() if isinstance(value, datetime.datetime) else value


compared = 0
for statement in statements:
    command = [program, "query", "it", statement, "--format", "json", "--output", "-"]
    asked = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if asked.returncode:
        sys.exit(f"{statement}\n{asked.stderr}")
    answer = [json.loads(line) for line in asked.stdout.splitlines()]
    rows = duckdb.sql(statement)
    expected = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]
    found = [{name: plain(value) for name, value in row.items()} for row in answer]
    wanted = [{name: plain(value) for name, value in row.items()} for row in expected]
    if found != wanted or not wanted:
        sys.exit(f"{statement}\n{found[:6]}\n{wanted[:6]}")
    compared += len(wanted)
print(f"{compared} rows of {len(statements)} statements agree")
