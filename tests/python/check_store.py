"""Compares what DuckDB and Polars read from a bucket, using the documented examples, with the local folders.

usage: check_store.py ENDPOINT SECRET QUERY_OF_ARCHIVE QUERY_OF_LATEST POLARS STATEMENT OUTPUT
"""

import os
import sys
from pathlib import Path

import duckdb
import polars
from fsspec.implementations.arrow import ArrowFSWrapper
from pyarrow.fs import S3FileSystem

endpoint, secret, of_archive, of_latest, script, printed, output = sys.argv[1:]
output = Path(output)

# DuckDB has its own client of S3 as an extension that is not in its Python package; this one comes with Arrow's.
host = endpoint.removeprefix("http://")
bucket = S3FileSystem(
    access_key="tester", secret_key=secret, endpoint_override=host, scheme="http", region="us-east-1"
)


class Bucket(ArrowFSWrapper):
    protocol = "s3"


connection = duckdb.connect()
connection.register_filesystem(Bucket(bucket))

signals = duckdb.sql(
    f"select * from read_parquet('{output}/archive/vendor/run=*/signals.parquet', hive_partitioning = false) order by all"
).pl()
# The store also has a pack of these runs.
found = connection.sql(f"select * from ({of_archive}) order by all").pl()
assert found.equals(signals) and len(found) > 1000, f"{len(found)} rows, expected {len(signals)}"

expected = polars.read_parquet(output / "datasets/it/latest/it.parquet")
for statement in of_latest.split(";\n"):
    latest = connection.sql(statement)
assert latest.pl().equals(expected), "DuckDB reads another version"

computed = connection.sql(printed).pl()
assert len(computed) == len(expected), f"{len(computed)} rows of the printed statement, expected {len(expected)}"
texts = [name for name, kind in expected.schema.items() if kind == polars.Categorical]
differing = computed.join(expected.with_columns(polars.col(texts).cast(polars.String)), on=expected.columns, how="anti", nulls_equal=True)
assert differing.is_empty(), f"rows of the printed statement that were not built: {differing}"

os.environ.update(
    AWS_ACCESS_KEY_ID="tester",
    AWS_SECRET_ACCESS_KEY=secret,
    AWS_ENDPOINT_URL=endpoint,
    AWS_REGION="us-east-1",
    AWS_ALLOW_HTTP="true",
)
scope = {"polars": polars}
exec(script, scope)
assert scope["frame"].equals(expected), "Polars reads another version"
