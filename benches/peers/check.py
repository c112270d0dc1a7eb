"""Compares a result with a reference, joined by key, and its CSV file with its Parquet file.

    check.py EXPECTED.parquet ACTUAL.parquet ACTUAL.csv

The key is ticker, date, period and regime. Signal, confidence and count must be equal, other numbers equal within 1e-9. Both
files must be sorted by key; periods may be sorted as declared (1d, 2d, 10d, 1m) or alphabetically (10d, 1d, 1m, 2d).
"""

import sys

import duckdb

import work

KEY = ["ticker", "date", "period", "regime"]
EXACT = ["signal", "confidence", "news_count_7d"]
CLOSE = ["news_mean_7d", "news_min_7d", "news_max_7d", "news_last_score"]

TYPES = {name: "varchar" for name in ["ticker", "period", "regime", "signal"]}
TYPES |= {"date": "timestamp", "confidence": "double", "news_count_7d": "integer"}
TYPES |= {name: "double" for name in CLOSE} | {"news_last_date": "timestamp"}

COLUMNS = ", ".join(f"{name}::{TYPES[name]} as {name}" for name in KEY + EXACT + CLOSE)
DIFFERENT = [f"e.{name} is distinct from a.{name}" for name in EXACT]
DIFFERENT += [f"(e.{name} is null) <> (a.{name} is null) or abs(e.{name} - a.{name}) > 1e-9" for name in CLOSE]

KEYED = f"""
    select count(*) from expected e full join actual a using ({", ".join(KEY)})
    where e.signal is null or a.signal is null or {" or ".join(DIFFERENT)}
"""

POSITIONED = f"""
    select count(*) from (select {COLUMNS} from read_csv($csv, header = true, types = $types)) e
    positional join actual a
    where {" or ".join([f"e.{name} is distinct from a.{name}" for name in KEY] + DIFFERENT)}
"""

UNORDERED = f"""
    with keys as (
        select
            file_row_number as place,
            row(ticker, date, period::enum {tuple(work.PERIODS)}, regime::enum {tuple(work.REGIMES)}) as declared,
            row(ticker, date, period::varchar, regime::varchar) as lettered
        from read_parquet($parquet, file_row_number = true)
    ), beside as (
        select *, lag(declared) over (order by place) as declared_before, lag(lettered) over (order by place) as lettered_before
        from keys
    )
    select least(count(*) filter (declared <= declared_before), count(*) filter (lettered <= lettered_before)) from beside
"""


def main(expected, parquet, csv):
    database = duckdb.connect()
    database.execute("set memory_limit = '8GB'")
    for name, file in [("expected", expected), ("actual", parquet)]:
        database.execute(f"create view {name} as select {COLUMNS} from '{file}'")

    def count(question, **parameters):
        return database.execute(question, parameters).fetchone()[0]

    columns = {row[0] for row in database.execute(f"describe from '{csv}'").fetchall()}
    types = {name: kind for name, kind in TYPES.items() if name in columns}
    faults = {
        "rows differ or are on one side only": count(KEYED),
        "rows are repeated or out of order": count(UNORDERED, parquet=parquet),
        "rows of the CSV file differ from those of the Parquet file": count(POSITIONED, csv=csv, types=types),
    }
    for fault, rows in faults.items():
        if rows:
            print(f"{rows} {fault}")
    if any(faults.values()):
        return 1
    print(f"{count('select count(*) from actual')} rows agree")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
