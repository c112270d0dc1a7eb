"""Printed SQL statements give the rows of the corresponding builds, in order and bit for bit.

    check_sql.py duckdb|spark CASES.json

The cases are a list of `{"sql": FILE, "dataset": PARQUET}`. If `dataset` is null, the statement gives no rows.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.parquet


def with_duckdb():
    import duckdb

    connection = duckdb.connect()
    # The statement itself says which times are in UTC.
    connection.execute("set timezone = 'America/New_York'")
    return lambda text: connection.sql(text).to_arrow_table()


def spark_settings(**more):
    """What statements need (UTC, and no broadcasts), and what keeps a session to itself."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.parquet.mergeSchema": "true",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def spark_session(master, **more):
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master)
    for name, value in spark_settings(**more).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def with_spark():
    # Small statements take half of the time if they are planned once and interpreted: the cluster compiles them.
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
    interpreted = {"spark_sql_codegen_wholeStage": "false", "spark_sql_codegen_factoryMode": "NO_CODEGEN"}
    session = spark_session(
        "local[2]", spark_sql_adaptive_enabled="false", spark_sql_shuffle_partitions="2", **interpreted
    )
    return lambda text: session.sql(text).toArrow()


def plain(table):
    """Names, types and values without what formats add: dictionaries, nullability and the width of offsets."""
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns):
        kind = field.type.value_type if pyarrow.types.is_dictionary(field.type) else field.type
        if pyarrow.types.is_large_string(kind):
            kind = pyarrow.string()
        if pyarrow.types.is_timestamp(kind) and kind.tz is not None:
            kind = pyarrow.timestamp("us", "UTC")
        columns.append(column.cast(kind).combine_chunks())
        fields.append(pyarrow.field(field.name, kind))
    return pyarrow.table(columns, schema=pyarrow.schema(fields))


def first_difference(found, expected):
    for name in expected.column_names:
        pairs = zip(found[name].to_pylist(), expected[name].to_pylist())
        for row, (one, other) in enumerate(pairs):
            if one != other:
                return f"row {row}, {name}: {one!r} instead of {other!r}: {expected.slice(row, 1).to_pylist()}"
    return "no value differs"


def zeros(column):
    return [str(zero) for zero in column.filter(pyarrow.compute.equal(column, 0.0)).to_pylist()]


def check(found, expected, text):
    found, expected = plain(found), plain(expected)
    assert found.schema == expected.schema, f"{found.schema}\ninstead of\n{expected.schema}\n{text}"
    assert found.num_rows == expected.num_rows, f"{found.num_rows} instead of {expected.num_rows} rows\n{text}"
    assert found.equals(expected), f"{first_difference(found, expected)}\n{text}"
    for name in (field.name for field in expected.schema if pyarrow.types.is_floating(field.type)):
        # Zeros of both signs are equal, but not the same bits.
        signs = [zeros(table[name]) for table in (found, expected)]
        assert signs[0] == signs[1], f"another sign in {name}\n{text}"


def main():
    run = {"duckdb": with_duckdb, "spark": with_spark}[sys.argv[1]]()
    rows = 0
    for case in json.loads(Path(sys.argv[2]).read_text()):
        text = Path(case["sql"]).read_text()
        found = run(text)
        if case["dataset"] is None:
            assert found.num_rows == 0, f"{found.num_rows} rows instead of none\n{text}"
        else:
            check(found, pyarrow.parquet.read_table(case["dataset"], partitioning=None), text)
            rows += found.num_rows
    assert rows > 0, "nothing was compared"
    print(f"{rows} rows are the same")


if __name__ == "__main__":
    main()
