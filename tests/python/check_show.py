"""Reads the same rows of a dataset with Polars in Python, and compares them with the tables.

    check_show.py FOLDER FORMAT
"""

import re
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
    for name, expected, all_rows in [("newest", frame.tail(10), frame), ("tail", frame.tail(7), frame), ("some", xom.head(9), xom)]:
        head, *lines = (folder / name).read_text().splitlines()
        if expected.height < all_rows.height:
            assert lines.pop() == f"{expected.height:,} of {all_rows.height:,} rows", name
        assert head.split() == COLUMNS, head
        # No value of these columns has two blanks in it.
        shown = [re.split("  +", line) for line in lines]
        assert len({len(line) for line in lines}) == 1 and len({line.rindex(".") for line in lines}) <= 2, name
        meant = [[text(value) for value in row] for row in expected.iter_rows()]
        assert shown == meant, f"{name} is\n{shown}\nand not\n{meant}"


def text(value):
    """A value as the program prints it: the days of `date`, the instants of `observed_at`."""
    if not isinstance(value, datetime):
        return str(value)
    if value.tzinfo is None:
        return f"{value:%Y-%m-%d}"
    fraction = f"{value:.%f}".removesuffix("000")
    return f"{value:%Y-%m-%d %H:%M:%S}{'' if fraction == '.000' else fraction} UTC"


main(Path(sys.argv[1]), sys.argv[2])
