"""The state as of an instant, from the documented query and DuckDB alone, equals the program's.

Takes the archive, the documented query for signals, an instant, and a folder with a file per table: the state at that
instant according to the program.
"""

import sys
from pathlib import Path

import duckdb

archive, query, as_of, known = sys.argv[1:5]

TABLES = {
    "signals": ["ticker", "period", "regime", "date"],
    "articles": ["ticker", "date", "title", "link", "copy"],
    "summaries": ["ticker"],
    "sentiment_history": ["ticker", "record", "copy"],
}
SIGNALS = ", ".join(TABLES["signals"])

duckdb.sql("set timezone = 'UTC'")
assert SIGNALS in query and "output/archive/acme/" in query and "2026-03-31T23:59:59Z" in query, query
total = 0
for table, identity in TABLES.items():
    told = query.replace(SIGNALS, ", ".join(identity)).replace("signals.parquet", f"{table}.parquet")
    told = told.replace("output/archive/acme/", f"{archive}/").replace("2026-03-31T23:59:59Z", as_of)
    names = [column[0] for column in duckdb.sql(told).description]
    columns = ", ".join(f"{name}::varchar as {name}" for name in names)
    expected = f"select {columns} from read_parquet('{Path(known) / table}.parquet')"
    found = f"select {columns} from ({told})"
    for one, other in [(found, expected), (expected, found)]:
        rows = duckdb.sql(f"({one}) except all ({other}) limit 3").fetchall()
        assert not rows, f"{table} as of {as_of}: {rows}"
    total += len(duckdb.sql(expected).fetchall())
assert total > 0, "nothing was compared"
