"""Selected and renamed columns equal those of the whole dataset, in every format, from files, pipes, folders and SQL.

    check_columns.py FOLDER
"""

import sys
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.parquet

folder = Path(sys.argv[1])
version = folder / "output/datasets/factor/latest"
duckdb.execute("set timezone = 'UTC'")
expected = duckdb.sql(f"""
    select date as timestamp, ticker as asset, news_mean_7d, confidence as factor, sector as "group", signal
    from '{folder}/output/datasets/all/latest/all.parquet' order by asset, timestamp
""").to_arrow_table()
names = expected.column_names
assert expected.num_rows > 10_000


def plain(table):
    fields = [(field.name, pyarrow.string() if pyarrow.types.is_dictionary(field.type) else field.type) for field in table.schema]
    return table.replace_schema_metadata(None).cast(pyarrow.schema(fields)).to_pylist()


def check(what, table):
    assert table.column_names == names, (what, table.column_names)
    assert plain(table) == plain(expected), what


def csv(path):
    return duckdb.sql(f"select * replace (cast(timestamp as timestamp) as timestamp) from read_csv('{path}', header = true)").to_arrow_table()


check("parquet", pyarrow.parquet.read_table(version / "factor.parquet"))
check("parquet by duckdb", duckdb.sql(f"from '{version}/factor.parquet'").to_arrow_table())
check("arrow", pyarrow.ipc.open_file(version / "factor.arrow").read_all())
check("csv", csv(version / "factor.csv"))
check("piped parquet", duckdb.sql(f"from '{folder}/piped.parquet'").to_arrow_table())
check("piped arrow", pyarrow.ipc.open_stream(folder / "piped.arrow").read_all())
check("piped csv", csv(folder / "piped.csv"))
check("sql", duckdb.sql((folder / "factor.sql").read_text()).to_arrow_table())

of_folders = duckdb.sql(f"""
    select {', '.join(f'"{name}"' for name in names)}
    from read_parquet('{folder}/output/datasets/folders/latest/group=*/asset=*/*.parquet', hive_partitioning = true)
    order by asset, timestamp
""").to_arrow_table()
check("folders", of_folders)
