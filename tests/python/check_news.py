"""A dataset of news equals the documented query of the archive, in every format.

    check_news.py FOLDER
"""

import sys
from pathlib import Path

import duckdb
import polars
import pyarrow
import pyarrow.parquet

folder = Path(sys.argv[1])
duckdb.execute("set timezone = 'UTC'")
duckdb.execute(f"""
    create view articles as select * exclude (change, sealed_at, newest) from (
        select *, row_number() over (partition by ticker, date, title, link, copy
                                     order by observed_at desc, change desc) as newest
        from read_parquet('{folder}/output/archive/demo/*=*/articles.parquet', hive_partitioning = false)
    ) where newest = 1 and change <> 'withdrawn' and repeats = 0
""")
duckdb.execute(f"""
    create view sectors as select distinct ticker, regexp_extract(request, 'sector=(.*) period=', 1) as sector
    from read_parquet('{folder}/output/archive/demo/*=*/listings.parquet', hive_partitioning = false)
    where request like '%sector=%'
""")
expected = duckdb.sql("""
    select ticker, date, title, link, copy, score, observed_at as first_observed_at, observed_at, 0 as revisions, sector,
        observed_at at time zone 'UTC' > date + interval 3 day as backfilled
    from articles join sectors using (ticker) order by ticker, date, title, link, copy
""").to_arrow_table().to_pylist()
assert len(expected) > 1_000
version = folder / "output/datasets/news/latest"


def check(what, table):
    rows = table.to_pylist()
    assert rows == expected, (what, len(rows), len(expected), rows[0], expected[0])


check("parquet", pyarrow.parquet.read_table(version / "news.parquet"))
check("arrow", pyarrow.ipc.open_file(version / "news.arrow").read_all())
check("csv", duckdb.sql(f"""
    select * replace (cast(date as timestamp) as date, cast(observed_at as timestamptz) as observed_at,
        cast(first_observed_at as timestamptz) as first_observed_at, cast(copy as integer) as copy,
        cast(revisions as integer) as revisions)
    from read_csv('{version}/news.csv', header = true, all_varchar = false)
""").to_arrow_table())

frame = polars.read_parquet(folder / "output/datasets/sorted/latest/sorted.parquet")
assert frame.columns == ["date", "ticker", "score", "title"]
wanted = polars.DataFrame(expected).filter(
    (polars.col("sector") == "energy") & (polars.col("date") >= polars.datetime(2026, 1, 1))
)
wanted = wanted.sort(["score", "date", "ticker", "title", "link", "copy"], nulls_last=False).select(frame.columns)
assert frame.rows() == wanted.rows(), "sorted by score"
