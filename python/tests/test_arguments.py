"""Every argument of every public function is checked once, in the words of the program."""

from __future__ import annotations

import datetime
import enum
import inspect
import json
import os
import subprocess
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest

import bellwether as bw

SIGNALS = {"sectors": ["energy"], "periods": ["5d"]}
NAIVE = datetime.datetime(2026, 3, 31, 12, 30)

#: What is wrong for an argument, and what is said of it.
PATHS = [(5, "it is not a path"), (b"output", "it is not a path"), ("", "it is empty")]
INSTANTS = [
    ("2026-1-1", "write `2026-01-01`"),
    ("soon", "use a day"),
    ("2026-13-01", "there is no month 13"),
    (20260101, "it is not a day"),
    (NAIVE, "it has no time zone"),
]
DAYS = [("2026-1-1", "write `2026-01-01`"), ("soon", "use a day"), (20260101, "it is not a day"), (NAIVE, "it is not a day")]
DEFINITIONS = [(5, "it is not a definition"), (None, "it is not a definition"), (b"demo", "it is not a definition")]
TEXTS = [(5, "it is not text"), ("", "it is empty")]
NAMES = [(5, "it is neither a name nor several"), ([5], "it is not a name"), (b"XOM", "it is neither a name nor several")]
WRONG: dict[str, list[tuple[Any, str]]] = {
    "definition": DEFINITIONS,
    "dataset": DEFINITIONS,
    "data": PATHS,
    "archive": PATHS,
    "path": PATHS,
    "as_of": INSTANTS,
    "after": [*INSTANTS],
    "until": INSTANTS,
    "start": DAYS,
    "end": DAYS,
    "today": DAYS,
    "service": TEXTS,
    "before": TEXTS,
    "sql": [*TEXTS, (None, "it is not text")],
    "value": [*TEXTS, (None, "it is not text")],
    "layout": [("tall", "unknown layout `tall`"), ("Wide", "unknown layout `Wide`"), (None, "it is not text")],
    "missing": [("warn", "it is neither `fail` nor `ignore`"), (None, "it is not text")],
    "include": [("everything", "it is not `claimed`"), (1, "it is not text")],
    "vintage": [("newest", "unknown vintage `newest`"), (1, "it is not text")],
    "columns": NAMES,
    "tickers": [*NAMES, (" x", "unknown ticker ` x`")],
    "sectors": [*NAMES, (" x", "unknown sector ` x`")],
    "periods": [*NAMES, ("5D", "unknown period `5D`")],
    "regimes": [*NAMES, ("Bull", "unknown regime `Bull`")],
    "period": [("5D", "unknown period `5D`"), (5, "it is not text")],
    "regime": [("Bull", "unknown regime `Bull`"), (5, "it is not text")],
    "fresh": [(1, "it is neither true nor false"), (None, "it is neither true nor false")],
    "wait": [("900", "it is not a number"), (True, "it is not a number"), (-1, "cannot convert"), (float("nan"), "cannot convert")],
    "progress": [("yes", "it is not a function"), (None, "it is not a function")],
    "seed": [(-1, "it is not a whole number"), (1.5, "it is not a whole number"), (2**64, "it is not a whole number")],
    "key": [("", "it is empty"), (5, "it is not text")],
    "prices": [(5, "it is neither rows nor files"), (b"a.csv", "it is neither rows nor files"), ([5], "it is not a path")],
    "stamp": [("noon", "it is neither `date` nor `session`"), (None, "it is not text")],
    "add": NAMES,
    "lag": [(-1, "it is not a number of sessions"), (1.5, "it is not a number of sessions"), (True, "it is not a number")],
    "table": [(5, "it is neither rows nor a file"), (b"a.csv", "it is neither rows nor a file")],
    "ticker": TEXTS,
    "features": [(1, "it is neither true nor false"), (None, "it is neither true nor false")],
    "date": DAYS,
    "decided_at": TEXTS,
    "at": [("noon", "`noon` is not a time of day"), (5, "it is not text")],
    "last": [("soon", "`soon` is not a time"), (5, "it is not text"), (None, "it is not text")],
    "news": [(1, "it is neither true nor false"), (None, "it is neither true nor false")],
    "demo": [(1, "it is neither true nor false"), (None, "it is neither true nor false")],
    "keep": [(1, "it is neither true nor false"), (None, "it is neither true nor false")],
    "count": [(-1, "it is not a number of rows"), (1.5, "it is not a number of rows"), (True, "it is not a number")],
    "allow_missing": [(1, "it is neither true nor false"), (None, "it is neither true nor false")],
}
#: Arguments of one function that mean something else there.
TEXTS_OF = {("audit_table", "date"), ("diff", "dataset"), ("diff", "after"), ("report", "dataset")}


def _functions() -> dict[str, Callable[..., object]]:
    functions = {name: value for name in bw.__all__ if inspect.isfunction(value := getattr(bw, name))}
    return {**functions, "factor": bw.Dataset.factor, "head": bw.Dataset.head, "save": bw.Report.save}


def _arguments() -> list[tuple[str, str, Any, str]]:
    cases = []
    for name, function in _functions().items():
        for argument, parameter in inspect.signature(function).parameters.items():
            if argument != "self":
                wrong = TEXTS if (name, argument) in TEXTS_OF else WRONG[argument]
                # None may be the default.
                cases += [(name, argument, value, said) for value, said in wrong if value is not parameter.default]
    return cases


#: The arguments that each function needs.
NEEDED: dict[str, dict[str, Any]] = {
    "diff": {"dataset": "demo", "before": "latest"},
    "factor": {"value": "confidence"},
    **{name: {"definition": "demo"} for name in ("check", "articles", "history", "run", "build", "sectors", "skill", "tickers")},
    "get": {"tickers": "XOM"},
    "load": {"dataset": "demo"},
    "audit_table": {"table": "own.csv", "definition": "demo"},
    "query": {"definition": "demo", "sql": "select 1 as one"},
}


@pytest.mark.parametrize(("name", "argument", "value", "said"), _arguments(), ids=str)
def test_every_argument_is_refused_by_name(published: Path, name: str, argument: str, value: Any, said: str) -> None:
    call = _functions()[name]
    if name in ("factor", "head"):
        call = getattr(bw.load("demo"), name)
    if name == "save":
        call = bw.report("demo").save
    with pytest.raises(bw.UsageError) as caught:
        call(**{**NEEDED.get(name, {}), argument: value})
    message = str(caught.value)
    assert f"for `{argument}`" in message and said in message, message
    assert isinstance(caught.value, ValueError) and caught.value.hint
    assert "Part" not in message and "argument '" not in message, message


def test_every_public_function_is_among_those_that_are_tested() -> None:
    tested = {name for name, *_ in _arguments()}
    assert tested == {*_functions()}
    assert {"load", "run", "build", "factor"} <= tested


def test_a_wrong_day_is_refused_in_the_same_words_by_the_program_and_before_anything_is_read(
    published: Path, program
) -> None:
    with pytest.raises(bw.UsageError, match="invalid value `2026-1-1` for `start`: write `2026-01-01`"):
        bw.load("demo", start="2026-1-1")
    assert b"write `2026-01-01`" in program("show", "demo", "--from", "2026-1-1").stderr


@pytest.mark.parametrize("as_of", [None, "2026-11-20"], ids=["published", "built"])
def test_selections_apply_or_are_refused(published: Path, as_of) -> None:
    whole = bw.load("demo", as_of=as_of).to_polars().with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    for part, condition in [
        ({"tickers": "XOM"}, pl.col("ticker") == "XOM"),
        ({"periods": "5d"}, pl.col("period") == "5d"),
        ({"regimes": ["bull"]}, pl.col("regime") == "bull"),
        ({"periods": ["1m"], "regimes": "neutral", "tickers": ["CVX", "XOM"], "start": "2026-10-01"},
         (pl.col("period") == "1m") & (pl.col("regime") == "neutral") & pl.col("ticker").is_in(["CVX", "XOM"])
         & (pl.col("date") >= datetime.datetime(2026, 10, 1))),
    ]:
        dataset = bw.load("demo", as_of=as_of, **part)
        expected = whole.filter(condition)
        assert 0 < expected.height < whole.height
        for frame in (dataset.to_polars(), pl.DataFrame(dataset)):
            plain = frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
            polars.testing.assert_frame_equal(plain, expected)
    for part, said in [
        ({"sectors": "mining"}, "no signals for sector `mining`"),
        ({"columns": []}, "no columns are selected\nhint: leave out `--columns` for all columns"),
        ({"tickers": []}, "no tickers are selected\nhint: leave out `--ticker` for all tickers"),
        ({"columns": ["nope"]}, "no column `nope`; the columns are `ticker`, "),
        ({"periods": "6m"}, "no signals for period `6m`\nhint: the periods of the dataset are `5d`, `1m`"),
        ({"tickers": "XON"}, "no signals for ticker `XON` \\(did you mean `XOM`\\?\\)"),
        ({"start": "2026-03-02", "end": "2026-03-02"}, "empty date range: .*\nhint: `--to` is exclusive: choose a day after `--from`"),
    ]:
        for layout in ("long", "wide"):
            if layout == "wide" and part == {"columns": []}:
                said = "no column for the values of matrices"
            with pytest.raises(bw.UsageError, match=said):
                bw.load("demo", as_of=as_of, layout=layout, **part)


def test_a_dataset_without_a_column_selects_no_rows_by_it(published: Path) -> None:
    definition = {
        "name": "narrow",
        "source": {"service": "demo"},
        "signals": {"sectors": ["energy", "utilities"], "periods": ["5d", "1m"], "regimes": ["neutral", "bull"]},
        "dataset": {"columns": ["signal", "confidence"]},
    }
    with pytest.warns(bw.BellwetherWarning, match="leaves out a column that tells rows apart"):
        bw.build(definition, data="narrow", archive="output/archive", progress=False)
    for options in ({"dataset": "narrow"}, {"dataset": definition}):
        for part, column in [
            ({"tickers": "XOM"}, "ticker"),
            ({"start": "2026-03-01"}, "date"),
            ({"end": "2026-03-01"}, "date"),
            ({"periods": "5d"}, "period"),
            ({"regimes": "bull"}, "regime"),
        ]:
            with pytest.raises(bw.UsageError, match=f"the dataset has no column `{column}`"):
                bw.load(**options, data="narrow", archive="output/archive", **part)


def test_a_factor_keeps_to_what_was_loaded(published: Path) -> None:
    part = bw.load("demo", periods="5d", tickers="XOM")
    assert len(part.factor("confidence", regimes="bull")) == len(bw.load("demo", tickers="XOM").factor("confidence", periods="5d", regimes="bull"))
    with pytest.raises(bw.UsageError, match="the dataset was loaded without period `1m`"):
        part.factor("confidence", periods="1m", regimes="bull")
    with pytest.raises(bw.UsageError, match="no signals for period `6m`"):
        bw.load("demo").factor("confidence", periods="6m")
    with pytest.raises(bw.UsageError, match="no column `nope`"):
        bw.load("demo").factor("nope", periods="5d", regimes="bull")
    with pytest.raises(bw.UsageError, match="`ticker` is in the index"):
        bw.load("demo").factor("ticker")


def test_a_wide_version_is_selected_from_and_loaded_from_its_summary(published: Path) -> None:
    definition = {
        "name": "matrices",
        "source": {"service": "demo"},
        "signals": {"sectors": ["energy", "utilities"], "periods": ["5d", "1m"], "regimes": ["neutral", "bull"]},
        "output": {"layout": "wide"},
    }
    summary = bw.build(definition, data="matrices", archive="output/archive", progress=False)
    loaded = summary.load()
    assert isinstance(loaded, bw.Wide) and len(loaded) == 4

    def load(**part: Any) -> bw.Wide:
        return bw.load("matrices", layout="wide", data="matrices", **part)

    assert list(load(periods="5d", regimes="bull", columns="score")) == ["5d-bull/score"]
    for part, said in [
        ({"columns": ["nope"]}, "no matrices of column `nope`; there are those of `score`"),
        ({"columns": ["ticker"]}, "no column for the values of matrices"),
        ({"periods": "6m"}, "no signals for period `6m`"),
        ({"sectors": "energy"}, "cannot select sectors of a matrix"),
    ]:
        with pytest.raises(bw.UsageError, match=said):
            load(**part)
    with pytest.raises(bw.DataError, match='hint: build it with `layout = "long"`'):
        bw.load("matrices", data="matrices")


class Level(enum.IntEnum):
    NINE = 9


class Sector(str, enum.Enum):
    ENERGY = "energy"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"output": {"keep": np.int64(9)}}, {"output": {"keep": 9}}),
        ({"output": {"keep": Level.NINE}}, {"output": {"keep": 9}}),
        ({"checks": {"universe": np.float64(0.5)}}, {"checks": {"universe": 0.5}}),
        ({"checks": {"universe": np.float32(0.5)}}, {"checks": {"universe": 0.5}}),
        ({"signals": {"sectors": Sector.ENERGY}}, {"signals": {"sectors": "energy"}}),
        ({"signals": {"sectors": np.array(["energy"])}}, {"signals": {"sectors": ["energy"]}}),
        ({"signals": {"sectors": pd.Series(["energy"])}}, {"signals": {"sectors": ["energy"]}}),
        ({"signals": {"sectors": {"utilities", "energy"}}}, {"signals": {"sectors": ["energy", "utilities"]}}),
        ({"filter": {"from": pd.Timestamp("2026-01-01")}}, {"filter": {"from": "2026-01-01"}}),
        ({"description": None, "filter": {"from": None}}, {"filter": {}}),
        ({"name": None}, {}),
    ],
    ids=str,
)
def test_a_dict_says_what_its_values_hold(value: dict, expected: dict) -> None:
    tomllib = pytest.importorskip("tomllib")
    base = {"source": {"service": "demo"}, "signals": SIGNALS}
    assert tomllib.loads(bw.check({**base, **value})["plan"]["text"]) == {**base, **expected}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"name": "a/b"}, "a definition cannot be named `a/b`"),
        ({"name": "../b"}, "a definition cannot be named `../b`"),
        ({"name": ""}, "a definition cannot be named ``"),
        ({"name": "a.b"}, "a definition cannot be named `a.b`"),
        ({"name": 5}, "a definition cannot be named `5`"),
        ({5: "x"}, "a definition cannot have the key `5`"),
        ({"output": {"keep": b"9"}}, "a value of type bytes"),
        ({"output": {"keep": 1j}}, "a value of type complex"),
        ({"signals": {"sectors": [None]}}, "a value of type NoneType"),
    ],
    ids=str,
)
def test_a_dict_that_is_no_definition_is_refused(value: dict, said: str) -> None:
    with pytest.raises(bw.UsageError) as caught:
        bw.check({"source": {"service": "demo"}, "signals": SIGNALS, **value})
    assert said in str(caught.value)


@pytest.mark.parametrize("name", [{}, {"name": None}], ids=["nameless", "none"])
def test_a_definition_without_a_name_is_not_published(place: Path, name: dict) -> None:
    definition = {"source": {"service": "demo"}, "signals": SIGNALS, **name}
    for publish in (bw.run, bw.build):
        with pytest.raises(bw.UsageError, match="the definition has no name to publish its dataset by"):
            publish(definition, progress=False)
    assert not Path("output").exists()


def test_every_table_is_read_by_pandas_and_pyarrow_after_many_runs(place: Path) -> None:
    for day in ("2026-11-06", "2026-11-13", "2026-11-20"):
        bw.run("demo", today=day, progress=False)
    versions = bw.datasets().to_polars()["version"].to_list()
    news = {"source": {"service": "demo"}, "signals": SIGNALS, "dataset": {"kind": "news"}}
    tables = {
        "load": bw.load("demo"),
        "built": bw.load("demo", vintage="first"),
        "articles": bw.articles("demo"),
        "earlier articles": bw.articles("demo", as_of="2026-11-13"),
        "revisions": bw.revisions("demo"),
        "quality": bw.quality("demo"),
        "diff": bw.diff("demo", versions[0]),
        "runs": bw.runs(),
        "datasets": bw.datasets(),
    }
    assert bw.check({**news, "signals": {"sectors": ["energy"]}})["problems"] == []
    for name, table in tables.items():
        arrow = pa.RecordBatchReader.from_stream(table).read_all()
        frame = table.to_pandas()
        assert len(frame) == arrow.num_rows > 0, name
        for chunk in (chunk for column in arrow.columns for chunk in column.chunks if pa.types.is_dictionary(column.type)):
            values = chunk.dictionary.to_pylist()
            assert len(values) == len(set(values)), name
        if "ticker" in frame:
            assert frame["ticker"].dtype == bw.load("demo").to_pandas()["ticker"].dtype, name
        told, read = (
            pl.DataFrame(one).with_columns(pl.col(pl.List(pl.String)).list.join(",")).cast(pl.String)
            for one in (table, arrow)
        )
        polars.testing.assert_frame_equal(told, read)


def test_results_outlive_the_folder_that_they_were_made_in(place: Path, tmp_path_factory) -> None:
    summary = bw.run("demo", today="2026-11-20", progress=False)
    results = {
        "published": bw.load("demo"),
        "built": bw.load("demo", vintage="latest"),
        "by folders": bw.load("demo", data="output", archive="output/archive", as_of="2026-11-20"),
        "by path": bw.load("output/datasets/demo/latest"),
        "articles": bw.articles("demo"),
        "quality": bw.quality("demo"),
    }
    wide = bw.load("demo", layout="wide")
    before = {name: pl.DataFrame(table).height for name, table in results.items()}
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert {name: pl.DataFrame(table).height for name, table in results.items()} == before
    assert len(results["built"].factor("confidence", periods="5d", regimes="bull")) > 0
    assert all(matrix.to_polars().height > 0 for matrix in wide.values())
    loaded = summary.load()
    assert isinstance(loaded, bw.Dataset) and loaded.to_polars().height == summary.rows
    assert summary.path.is_absolute() and summary.path.is_dir()


@pytest.mark.parametrize("folder", ["p[1]", "p*", "p?", "p{1}", "p\\1", "p'1", "p 1"])
def test_a_path_is_never_a_pattern(place: Path, folder: str) -> None:
    energy = {"name": "it", "source": {"service": "demo"}, "signals": SIGNALS, "dataset": {"kind": "signals"}}
    utilities = {**energy, "signals": {**SIGNALS, "sectors": ["utilities"]}}
    for sibling in ("p1", "pa"):
        bw.run(utilities, data=sibling, progress=False)
    summary = bw.run(energy, data=folder, progress=False)
    dataset = bw.load("it", data=folder)
    by_stream = pl.DataFrame(dataset)
    assert by_stream.height == summary.rows and "XOM" in by_stream["ticker"]
    polars.testing.assert_frame_equal(dataset.to_polars(), by_stream)


def test_a_typed_definition_has_the_keys_and_choices_of_the_schema(
    program: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    schema = json.loads(program("schema").stdout)

    def resolved(value: dict[str, Any]) -> dict[str, Any]:
        return schema["$defs"][value["$ref"].rsplit("/", 1)[1]] if "$ref" in value else value

    def choices(value: dict[str, Any]) -> set[str]:
        one = resolved(next((it for it in value.get("anyOf", []) if "$ref" in it), value))
        return {it["const"] for it in one.get("oneOf", []) if "const" in it}

    def literals(hint: Any) -> set[str]:
        if typing.get_origin(hint) is Literal:
            return set(typing.get_args(hint))
        return set().union(*(literals(inner) for inner in typing.get_args(hint)))

    sections = typing.get_type_hints(bw.DefinitionDict)
    assert sections.keys() - {"name"} == schema["properties"].keys()
    for section, value in schema["properties"].items():
        typed = next((it for it in typing.get_args(sections[section]) if typing.is_typeddict(it)), None)
        keys = resolved(value).get("properties", {})
        hints = typing.get_type_hints(typed) if typed else {}
        assert hints.keys() == keys.keys(), section
        for key, hint in hints.items():
            assert literals(hint) in (set(), choices(keys[key])), (section, key)


def test_dates_of_a_frame_are_days_and_instants(published: Path) -> None:
    dates = bw.load("demo", tickers="XOM", columns="date").to_pandas()["date"].drop_duplicates().sort_values()
    first, last = dates.iloc[3], dates.iloc[9]
    expected = bw.load("demo", tickers="XOM", start=first.date(), end=last.date()).to_pandas()
    for start, end in [(first, last), (first.to_datetime64(), last.to_datetime64())]:
        found = bw.load("demo", tickers="XOM", start=start, end=end).to_pandas()
        pd.testing.assert_frame_equal(found, expected)
    tickers = pd.Series(["XOM", "CVX"])
    for several in [tickers, pd.Index(tickers), tickers.to_numpy()]:
        assert set(bw.load("demo", tickers=several, columns="ticker").to_polars()["ticker"]) == {"XOM", "CVX"}
    with pytest.raises(bw.UsageError, match="a definition cannot contain NaT"):
        bw.check({"source": {"service": "demo"}, "filter": {"from": pd.NaT}})
    for wrong in [np.datetime64("2026-11-20T12:00"), np.datetime64("NaT")]:
        with pytest.raises(bw.UsageError, match="`start`"):
            bw.load("demo", start=wrong)
