"""The lines of Python that runs print read the dataset of the run, and no other.

    check_paths.py FOLDER CASES.json

The cases are a list of `{"line": PYTHON, "confidence": NUMBER}`; the lines are run in the folder.
"""

import json
import os
import sys
from pathlib import Path

import polars

os.chdir(sys.argv[1])
for case in json.loads(Path(sys.argv[2]).read_text()):
    frame = eval(case["line"], {"polars": polars})
    found = frame["confidence"].to_list()
    assert found == [case["confidence"]], f"{case['line']} gives {found} instead of {case['confidence']}"
