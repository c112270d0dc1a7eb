"""Prints the same rows of a dataset with Polars in Python, and compares the tables.

    check_show.py FOLDER FORMAT
"""

import sys
from datetime import datetime
from pathlib import Path

import polars

COLUMNS = ["ticker", "date", "period", "signal", "confidence", "observed_at"]


def main(folder, form):
    path = folder / f"output/datasets/it/latest/it.{form}"
    frame = polars.read_parquet(path) if form == "parquet" else polars.read_ipc(path)
    frame = frame.select(COLUMNS)
    xom = frame.filter(
        polars.col("ticker") == "XOM",
        polars.col("date") >= datetime(2026, 11, 1),
        polars.col("date") < datetime(2026, 11, 5),
    )
    for name, expected in [("head", frame.head(10)), ("tail", frame.tail(7)), ("some", xom.head(9))]:
        shown = (folder / name).read_text().rstrip("\n")
        assert shown == str(expected), f"{name} is\n{shown}\nand not\n{expected}"


main(Path(sys.argv[1]), sys.argv[2])
