"""Files of rows as other tools write them, and what `show --format csv` should print of each."""

import datetime
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

folder = Path(sys.argv[1])
DAYS = [datetime.date(2026, 11, 1), datetime.date(2026, 11, 2), datetime.date(2026, 11, 3)]
rows = pl.DataFrame(
    {"ticker": ["XOM", "CVX", "XOM"], "date": DAYS, "count": [1, 3, None], "score": [0.5, -0.25, None], "ok": [True, False, None]},
    schema_overrides={"count": pl.UInt16, "score": pl.Float32},
)
csv = "ticker,date,count,score,ok\n"
csv += "".join(
    f"{ticker},{date}T00:00:00,{'' if count is None else count},{'' if score is None else score},{'' if ok is None else str(ok).lower()}\n"
    for ticker, date, count, score, ok in rows.iter_rows()
)


def expect(name: str) -> Path:
    (folder / f"{name}.expected").write_text(csv)
    return folder / name


rows.write_parquet(expect("polars.parquet"))
rows.write_csv(expect("plain.csv"))
frame = rows.to_pandas()
frame["count"] = frame["count"].astype("Int64")
frame["date"] = pd.to_datetime(frame["date"]).astype("datetime64[ns]")
frame["ticker"] = frame["ticker"].astype("category")
frame.to_parquet(expect("pandas.parquet"), index=False)
table = rows.to_arrow()
with pa.ipc.new_stream(expect("stream.arrow"), table.schema) as stream:
    stream.write_table(table)
with pa.ipc.new_file(expect("file.arrow"), table.schema) as file:
    file.write_table(table)
nested = pa.table({"list": pa.array([[1, 2], None]), "big": pa.array([2**64 - 1, None], pa.uint64())})
pq.write_table(nested, folder / "nested.parquet")
