"""A dataset of all vintages has the values that DuckDB finds in the archive. Usage: check_vintages.py all|some ARCHIVE FILE"""

import sys

import duckdb
import polars as pl

which, archive, file = sys.argv[1:4]
duckdb.sql("set timezone = 'UTC'")
duckdb.sql(f"""
    create temp view told as
    select distinct ticker, date, period, regime, observed_at, change <> 'withdrawn' as has_value, signal, confidence
    from read_parquet('{archive}/*=*/signals.parquet', hive_partitioning = false)
""")
# A value begins where it differs from the one before, and ends where the next one begins or it is withdrawn.
expected = duckdb.sql("""
    with turns as (
        select *, min(observed_at) over cell as first_observed_at,
            row(has_value, signal, confidence) is distinct from lag(row(has_value, signal, confidence)) over told as is_turn
        from told
        window cell as (partition by ticker, period, regime, date),
            told as (partition by ticker, period, regime, date order by observed_at)
    ),
    spans as (
        select *, lead(observed_at) over (partition by ticker, period, regime, date order by observed_at) as known_until
        from turns where is_turn
    )
    select ticker, date, period, regime, observed_at as known_from, known_until, signal, confidence, first_observed_at
    from spans where has_value
""").pl()
found = pl.read_parquet(file)
order = ["ticker", "date", "period", "regime", "known_from"]
columns = [*order, "known_until", "signal", "confidence"]
if which == "all":
    columns.append("first_observed_at")
    if found["sector"].unique().to_list() != ["energy"] or found["backfilled"].n_unique() != 2:
        sys.exit(f"{found['sector'].unique()}, {found['backfilled'].unique()}")
else:
    begin, end = pl.datetime(2026, 1, 8), pl.datetime(2026, 1, 25)
    expected = expected.filter(signal="buy").filter(pl.col("date").is_between(begin, end, closed="left"))
    order = ["date", "confidence", "ticker", "period", "regime", "known_from"]


def plain(frame):
    texts = [pl.col(name).cast(pl.String) for name in ("ticker", "period", "regime", "signal")]
    instants = [pl.col(name).dt.cast_time_unit("us") for name in columns if name.startswith(("known", "first", "date"))]
    return frame.with_columns(texts).with_columns(instants).select(columns)


found, expected = plain(found), plain(expected)
if not found.equals(found.sort(order)):
    sys.exit("the rows are not in order")
if found.select(["ticker", "date", "period", "regime", "known_from"]).is_duplicated().any():
    sys.exit("a key is there twice")
if not found.equals(expected.sort(order)) or found.height < 60:
    sys.exit(f"{found.height} rows and not {expected.height}\n{found}\n{expected.sort(order)}")
revised = expected.group_by(["ticker", "date", "period", "regime"]).len().filter(pl.col("len") > 1).height
if which == "all" and revised < 20 or expected["known_until"].null_count() in (0, expected.height):
    sys.exit(f"too little: {revised}")
print(f"{found.height} values agree")
