"""Reads every layout of a dataset with Polars, pandas, pyarrow and DuckDB, and compares the values.

    check_layouts.py FOLDER

The folder has output/datasets/{long,folders,each,indexed,wide}/latest, and piped.arrow and piped.csv.
"""

import gzip
import sys
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.dataset
from polars.testing import assert_frame_equal

KEY = ["ticker", "date", "period", "regime"]


def texts(frame):
    """Closed sets as text, dates unchanged: the types common to all formats."""
    return frame.with_columns(polars.col(polars.Categorical, polars.Enum).cast(polars.String)).sort(KEY)


def read_csv(path):
    return polars.read_csv(path, try_parse_dates=True, infer_schema_length=None).with_columns(polars.col(polars.Datetime).cast(polars.Datetime("us")))


def read_texts(path):
    """Without a guess at types, which takes Polars seconds."""
    return polars.read_csv(path, infer_schema=False)


folder = Path(sys.argv[1])
datasets = folder / "output/datasets"
long = texts(polars.read_parquet(datasets / "long/latest/long.parquet"))
assert long.height > 10_000 and long.select(KEY).is_unique().all()

# The same rows from every format, and from a pipe.
for other in (
    polars.read_ipc(datasets / "long/latest/long.arrow"),
    read_csv(datasets / "long/latest/long.csv"),
    polars.from_arrow(pyarrow.ipc.open_stream(folder / "piped.arrow").read_all()),
):
    other = texts(other).cast(dict(long.schema))
    assert_frame_equal(long, other, check_exact=True)

# The same text, piped and compressed.
csv = read_texts(datasets / "long/latest/long.csv")
for other in (
    folder / "piped.csv",
    *(datasets / f"long/latest/long.csv.{coding}" for coding in ("gz", "zst")),
    *(folder / f"piped.csv.{coding}" for coding in ("gz", "zst")),
):
    assert_frame_equal(csv, read_texts(other))
text = (datasets / "long/latest/long.csv").read_bytes()
assert gzip.decompress((datasets / "long/latest/long.csv.gz").read_bytes()) == text
for coding in ("gz", "zst"):
    file = datasets / f"long/latest/long.csv.{coding}"
    assert file.stat().st_size < len(text) / 3, file
    assert duckdb.sql(f"select count(*) from read_csv('{file}')").fetchall() == [(long.height,)], file

# A frame for factor tools, and its types in pandas.
frame = pandas.read_parquet(datasets / "long/latest/long.parquet")
factors = frame[(frame["period"] == "5d")].set_index(["date", "ticker"])["confidence"].unstack()
assert str(frame["date"].dtype) == "datetime64[us]" and str(frame["period"].dtype) == "category"

# An index of pandas, which others read as columns.
indexed = pandas.read_parquet(datasets / "indexed/latest/indexed.parquet")
assert indexed.index.names == ["date", "ticker"], indexed.index.names
assert indexed.xs("XOM", level="ticker").index.dtype == "datetime64[us]"
pandas.testing.assert_frame_equal(indexed, frame.set_index(["date", "ticker"]))
assert_frame_equal(texts(polars.read_parquet(datasets / "indexed/latest/indexed.parquet")), long)

# A file for each ticker, without folders.
each = datasets / "each/latest/tickers"
assert {file.stem for file in each.glob("*.parquet")} == set(long["ticker"]), list(each.iterdir())
of_xom = pandas.read_parquet(each / "XOM.parquet")
assert of_xom.index.name == "date" and set(of_xom["ticker"]) == {"XOM"}
assert_frame_equal(texts(polars.read_parquet(each / "*.parquet")).select(long.columns), long)
assert polars.read_csv(each / "XOM.csv", try_parse_dates=True).height == len(of_xom)

# Hive folders.
root = datasets / "folders/latest"
names = {path.name for path in root.iterdir() if path.is_dir()}
assert names == {"period=5d", "period=1m"}, names
hive = pyarrow.dataset.dataset(
    [str(path) for path in sorted(root.rglob("*.parquet"))],
    format="parquet",
    partition_base_dir=str(root),
    partitioning=pyarrow.dataset.partitioning(flavor="hive"),
).to_table()
assert hive.num_rows == long.height
count = duckdb.sql(
    f"select count(*), count(distinct ticker), sum(confidence) from read_parquet('{root}/**/*.parquet', hive_partitioning = true)"
).fetchall()[0]
assert count[:2] == (long.height, long["ticker"].n_unique())
assert abs(count[2] - long["confidence"].sum()) < 1e-6
scanned = polars.read_parquet(f"{root}/**/*.parquet", hive_partitioning=True)
assert_frame_equal(long.select(KEY + ["confidence"]), texts(scanned.select(KEY + ["confidence"]).cast({"ticker": polars.String, "period": polars.String})), check_exact=True)

# Matrices.
for period in ("5d", "1m"):
    matrix = pandas.read_parquet(datasets / f"wide/latest/{period}-neutral/confidence.parquet")
    assert isinstance(matrix.index, pandas.DatetimeIndex) and matrix.index.name == "date"
    expected = frame[frame["period"] == period].pivot(index="date", columns="ticker", values="confidence")
    pandas.testing.assert_frame_equal(matrix, expected, check_names=False, check_column_type=False, check_exact=True)
    signs = pandas.read_parquet(datasets / f"wide/latest/{period}-neutral/signal.parquet")
    own = frame[frame["period"] == period].assign(sign=lambda rows: rows["signal"].astype(str).map({"buy": 1, "sell": -1}))
    expected = own.pivot(index="date", columns="ticker", values="sign")
    assert (signs.astype("float64").fillna(0) == expected.astype("float64").fillna(0)).all().all()
assert factors.shape == matrix.shape
print("every layout says the same")
