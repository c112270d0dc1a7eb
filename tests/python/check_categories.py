"""Categories are the names that occur, in Arrow files and streams, read with pandas and Polars.

    check_categories.py FOLDER
"""

import sys
from pathlib import Path

import polars
import pyarrow
import pyarrow.ipc

folder = Path(sys.argv[1])
file = folder / "output/datasets/it/latest/it.arrow"
piped = folder / "piped.arrow"
expected = {
    "period": {"1m", "5d"},
    "regime": {"bull"},
    "signal": {"buy", "sell"},
    "source": {"signals-history-all"},
}
tables = {"file": pyarrow.ipc.open_file(file).read_all(), "pipe": pyarrow.ipc.open_stream(piped).read_all()}
assert tables["file"].num_rows == tables["pipe"].num_rows > 10_000
frames = {"file": polars.read_ipc(file), "pipe": polars.read_ipc_stream(piped)}
for what, table in tables.items():
    frame = table.to_pandas()
    for column, names in expected.items():
        assert set(frame[column].cat.categories) == names, (what, column, frame[column].cat.categories)
        assert set(frames[what][column].unique()) == names, (what, column)
