"""Runs the lines of docs/more-definitions.md for what a definition leaves to others: in Polars, in DuckDB and in a shell.

    check_leftovers.py PAGE FOLDER

The folder has it.parquet, other.parquet, source.toml, energy.toml and a folder of definitions.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import polars

page = Path(sys.argv[1]).read_text()
os.chdir(sys.argv[2])
section = page.split("## What a definition leaves to others")[1].split("\n## ")[0]
rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ") and "`" in line]
frame = polars.read_parquet("it.parquet")
names = {"polars": polars, "frame": frame, "one": "it.parquet", "other": "other.parquet"}
found = {}
for purpose, how in rows:
    for code in re.findall(r"`([^`]+)`", how):
        if code.startswith(("polars.", "frame.")):
            found.setdefault(purpose, []).append(eval(code, names))
        elif code.startswith("select "):
            found.setdefault(purpose, []).append(duckdb.sql(code).pl())
        elif code.startswith("duckdb -c "):
            duckdb.sql(re.fullmatch(r'duckdb -c "(.+)"', code).group(1))
        elif code.startswith("cat "):
            subprocess.run(["sh", "-c", code], check=True)
        else:
            # Python's own package is not in this environment: that the line is Python is what can be seen here.
            assert code.startswith("bw.run("), code
            ast.parse(code)

both = polars.read_parquet("other.parquet")
assert len(rows) == 5 and found["use other settings for some sectors"][0].height == frame.height + both.height
formula, formula_in_sql = found["compute a formula"]
assert formula["edge"].to_list() == formula_in_sql["edge"].to_list() and formula.height == frame.height > 0
newest, newest_in_sql = found["have the newest rows first"]
expected = sorted(frame["date"].to_list(), reverse=True)
assert newest["date"].to_list() == newest_in_sql["date"].to_list() == expected
assert polars.read_ndjson("it.jsonl").height == frame.height == len(Path("it.json").read_text().splitlines())
assert Path("pipelines/energy.toml").read_text() == Path("source.toml").read_text() + Path("energy.toml").read_text()
