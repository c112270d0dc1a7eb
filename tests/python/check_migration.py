"""Checks what a migrated archive knows at every instant against what the archive before it did.

Usage: check_migration.py ARCHIVE CASE SERVICE [NAME]

ARCHIVE is the folder of the migrated archive, CASE the description of the old one (`CASE.json`), SERVICE the folder of the
service in ARCHIVE, and NAME that of the service in CASE, if it has several. The rules are those of the documentation: as of an
instant, the rows of the runs that were sealed by then count, and the latest row of each cell by `observed_at` is its value.
"""

import datetime
import json
import pathlib
import sys

import pyarrow.parquet as parquet

CELLS = {
    "signals": ["ticker", "period", "regime", "date"],
    "articles": ["ticker", "date", "title", "link", "copy"],
    "summaries": ["ticker"],
    "sentiment_history": ["ticker", "record", "copy"],
}
# A null there says nothing.
OPTIONAL = {"utc_offset_minutes"} | {f"{one}_{what}" for one in ("low", "high", "avg") for what in ("date", "summary")}
CHANGES = ["added", "revised", "withdrawn"]


def text(value):
    """A value as the case spells it."""
    if not isinstance(value, datetime.datetime):
        return value
    if value.tzinfo is None:
        return value.strftime("%Y-%m-%dT%H:%M:%S")
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)


def order(values):
    return tuple((value is not None, value) for value in values)


def cells(folders, table):
    """The rows of each cell, by when they were observed."""
    cells = {}
    for folder in folders:
        for row in parquet.read_table(folder / f"{table}.parquet").to_pylist():
            cells.setdefault(tuple(row[name] for name in CELLS[table]), []).append(row)
    for rows in cells.values():
        rows.sort(key=lambda row: (row["observed_at"], CHANGES.index(row["change"])))
    return cells


def is_same(one, other, names):
    if one is None or other is None:
        return one is other
    return all(
        one[name] == other[name] or (name in OPTIONAL and (one[name] is None or other[name] is None)) for name in names
    )


def known(cells, table, columns, as_of):
    found = []
    for rows in cells.values():
        rows = [row for row in rows if row["sealed_at"] <= as_of and row["observed_at"] <= as_of]
        if not rows or rows[-1]["change"] == "withdrawn":
            continue
        values = [text(rows[-1][name]) for name in columns if name != "last_offset_minutes"]
        if "last_offset_minutes" in columns:
            last = None
            for row in rows:
                last = None if row["change"] == "withdrawn" else row["utc_offset_minutes"] if row["utc_offset_minutes"] is not None else last
            values.append(last)
        found.append(values)
    return sorted(found, key=order)


def first(cells, table, columns):
    found = []
    names = [name for name in columns if name not in CELLS[table] and name not in ("first_observed_at", "later_changes")]
    for rows in cells.values():
        values = [None if row["change"] == "withdrawn" else row for row in rows]
        begun = next((place for place, value in enumerate(values) if value is not None), None)
        if begun is None:
            continue
        later = sum(not is_same(values[place - 1], values[place], names) for place in range(begun + 1, len(values)))
        row = rows[begun]
        found.append([text(row[name]) for name in columns[:-2]] + [text(row["observed_at"]), later])
    return sorted(found, key=order)


def is_well_formed(cells, table):
    """In the order of their observation, the rows of a cell are added, revised and withdrawn in turn."""
    for key, rows in cells.items():
        is_known = False
        for row in rows:
            wanted = ("revised", "withdrawn") if is_known else ("added",)
            assert row["change"] in wanted, f"{table} {key}: {row['change']} at {row['observed_at']}"
            is_known = row["change"] != "withdrawn"


def compare(what, found, expected):
    if found != expected:
        missing = [row for row in expected if row not in found]
        more = [row for row in found if row not in expected]
        raise SystemExit(f"{what} differs\nmissing: {missing[:5]}\nmore: {more[:5]}")


def main():
    archive, case, service = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text()), sys.argv[3]
    one = case["services"][sys.argv[4]] if len(sys.argv) > 4 else case
    folders = sorted((archive / service).glob("run=*"))
    assert folders, f"no runs of {service}"
    columns = case["columns"]
    for table in CELLS:
        rows = cells(folders, table)
        is_well_formed(rows, table)
        for expected in one["known"]:
            found = known(rows, table, columns["known"][table], instant(expected["as_of"]))
            compare(f"{table} as of {expected['as_of']}", found, expected[table])
        compare(f"first {table}", first(rows, table, columns["first"][table]), one["first"][table])
    seals = sorted((json.loads((folder / "run.json").read_text()) for folder in folders), key=lambda seal: seal["sealed_at"])
    names = one["runs"] if len(sys.argv) > 4 else [run["run"] for run in case["runs"]]
    runs = {run["run"]: run for run in case["runs"]}
    assert [seal["run"] for seal in seals] == names, f"{[seal['run'] for seal in seals]}, expected {names}"
    before = []
    for seal in seals:
        run = runs[seal["run"]]
        assert seal["service"]["name"] == service and seal.get("basis", []) == before, seal
        before = [{"run": seal["run"], "seal": seal["seal"]}]
        for name in ("started_at", "sealed_at"):
            assert seal[name] == run[name], f"{seal['run']}: {name}"
        assert seal["definition"] == {"name": run["definition"], "digest": run["digest"]}, seal["definition"]
        assert seal["migrated"]["layout"] == 9 and len(seal["migrated"]["seal"]) == 64, seal["migrated"]
        folder = archive / service / f"run={seal['run']}"
        requests = parquet.read_table(folder / "requests.parquet").to_pylist()
        assert len(requests) == run["requests"], f"{seal['run']}: requests"
        assert sorted(seal["operations"]) == sorted({request["endpoint"] for request in requests}), seal["operations"]
        assert seal["drift"] == run.get("drift", []), f"{seal['run']}: drift"
        rejects = parquet.read_table(folder / "rejects.parquet").to_pylist()
        names = columns["rejected"]
        found = [[seal["run"] if name == "run" else text(row[name]) for name in names] for row in rejects]
        compare(f"rejected by {seal['run']}", sorted(found, key=order), [row for row in case["rejected"] if row[0] == seal["run"]])
    print(f"{len(seals)} runs, {len(one['known'])} instants")


main()
