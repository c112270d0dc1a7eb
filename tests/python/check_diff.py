"""Compares the output of `bellwether diff` with a full join of both versions in DuckDB."""

import sys

import duckdb

before, after, rows = sys.argv[1:4]
key = ["ticker", "date", "period", "regime"]
columns = [row[0] for row in duckdb.sql(f"describe select * from read_parquet('{before}')").fetchall()]
values = [column for column in columns if column not in key]
assert values[:2] == ["signal", "confidence"] and len(values) > 4, values

differs = {value: f"(a.{value} is distinct from b.{value})" for value in values}
names = ", ".join(f"case when {condition} then '{value}' end" for value, condition in differs.items())
query = f"""
    select case when a.ticker is null then 'added' when b.ticker is null then 'removed' else 'changed' end as change,
        {", ".join(f"coalesce(a.{name}, b.{name}) as {name}" for name in key)},
        case when a.ticker is not null and b.ticker is not null then concat_ws(',', {names}) end as columns,
        {", ".join(f"a.{value}::varchar, b.{value}::varchar" for value in values)}
    from read_parquet('{before}') as a full join read_parquet('{after}') as b
        on {" and ".join(f"a.{name} = b.{name}" for name in key)}
    where a.ticker is null or b.ticker is null or {" or ".join(differs.values())}
"""
written = f"""
    select change, {", ".join(key)}, columns,
        {", ".join(f"old_{value}::varchar, new_{value}::varchar" for value in values)}
    from read_parquet('{rows}')
"""
expected = sorted(map(repr, duckdb.sql(query).fetchall()))
found = sorted(map(repr, duckdb.sql(written).fetchall()))
assert found == expected, (len(found), len(expected), found[:1], expected[:1])
kinds = {row[0] for row in duckdb.sql(f"select distinct change from read_parquet('{rows}')").fetchall()}
assert {"added", "changed"} <= kinds, kinds
