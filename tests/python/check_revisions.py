"""The audit lists exactly the changed cells that DuckDB finds in the files of the archive."""

import sys

import duckdb

archive, changes = sys.argv[1:3]


def query(table, identity, values):
    """Every change of a table, as the words of the audit define it."""
    cell = ", ".join(["ticker", *identity])
    series = ", ".join(["ticker", *(name for name in ("period", "regime") if name in identity)])
    olds = ", ".join(f"lag({value}) over w as old_{value}" for value in values)
    differs = " or ".join(f"{value} is distinct from old_{value}" for value in values)
    told = f"select *, row_number() over w as turn, lag(change) over w as before, lag(observed_at) over w as seen, {olds} " \
        f"from (select distinct * from read_parquet('{archive}/*=*/{table}.parquet', hive_partitioning = false)) where date is not null " \
        f"window w as (partition by {cell} order by observed_at)"

    def same(one, other):
        return " and ".join(f"{one}.{name} = {other}.{name}" for name in series.split(", "))

    return f"""
        with told as ({told}),
        answers as (
            select {series}, observed_at, min(date) as oldest, max(date) as newest
            from told where change <> 'withdrawn' group by all
        ),
        earlier as (
            select b.*, min(a.oldest) as covered_from, max(a.newest) as covered_to
            from answers as b join answers as a on {same("a", "b")} and a.observed_at < b.observed_at
            group by all
        ),
        covering as (
            select e.*, min(a.observed_at) as newest_seen
            from earlier as e join answers as a on {same("a", "e")} and a.newest = e.covered_to
            group by all
        ),
        covered as (
            select told.*, coalesce(covered_from < told.date and (covered_to > told.date or (
                covered_to = told.date and newest_seen::date > told.date::date)), false) as is_covered
            from told left join covering as c on {same("c", "told")} and c.observed_at = told.observed_at
        )
        select source, {cell}, observed_at::varchar,
            case change when 'added' then 'added_late' else change end as kind,
            date_diff('day', date::date, (observed_at at time zone 'UTC')::date) as days
        from covered
        where (change = 'withdrawn' and before <> 'withdrawn')
            or (change = 'revised' and ({differs}))
            or (change = 'added' and (turn > 1 or is_covered))
    """


def audited(identity, is_wanted):
    columns = ", ".join(["source", "ticker", *identity])
    return f"select {columns}, observed_at::varchar, kind, age_days as days from read_parquet('{changes}') where {is_wanted}"


duckdb.sql("set timezone = 'UTC'")
total = 0
for table, identity, values, is_wanted in [
    ("signals", ["period", "regime", "date"], ["signal", "confidence"], "period is not null"),
    ("articles", ["date", "title", "link"], ["score"], "period is null"),
]:
    expected = sorted(map(repr, duckdb.sql(query(table, identity, values)).fetchall()))
    found = sorted(map(repr, duckdb.sql(audited(identity, is_wanted)).fetchall()))
    assert found == expected, (table, [row for row in found if row not in expected][:3], [row for row in expected if row not in found][:3])
    total += len(found)
assert total > 0
rows = duckdb.sql(f"select count(*) from read_parquet('{changes}')").fetchall()[0][0]
assert rows == total, (rows, total)
