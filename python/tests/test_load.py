"""`load` in every data frame library, compared with the files and with the program."""

from __future__ import annotations

import copy
import datetime
import io
import os
import pickle
import textwrap
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pyarrow.parquet
import pytest

import bellwether as bw

COLUMNS = ["ticker", "date", "period", "regime", "signal", "confidence", "score"]


DEFINITION = {
    "source": {"service": "demo"},
    "signals": {"sectors": ["energy", "utilities"], "periods": ["5d", "1m"], "regimes": ["neutral", "bull"]},
    "join": {"windows": ["7d"]},
}


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with strings instead of categories."""
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def _file(published: Path) -> Path:
    return published / "output/datasets/demo/latest/demo.parquet"


def test_a_published_version_equals_its_parquet_file(published: Path) -> None:
    file = pl.read_parquet(_file(published))
    frame = bw.load("demo").to_polars()
    assert frame.columns == file.columns
    polars.testing.assert_frame_equal(_plain(frame), _plain(file))


def test_a_build_equals_the_published_version(published: Path) -> None:
    built = bw.load("demo", vintage="latest").to_polars()
    polars.testing.assert_frame_equal(_plain(built), _plain(bw.load("demo").to_polars()))


def test_a_build_equals_the_build_of_the_program(published: Path, program) -> None:
    printed = program("build", "demo", "--format", "arrow", "--output", "-")
    assert printed.returncode == 0, printed.stderr
    with pa.ipc.open_stream(io.BytesIO(printed.stdout)) as stream:
        by_program = pl.DataFrame(stream.read_all())
    polars.testing.assert_frame_equal(_plain(bw.load("demo", vintage="latest").to_polars()), _plain(by_program))


@pytest.mark.parametrize("vintage", [None, "latest"], ids=["published", "built"])
def test_every_library_reads_the_same_rows(published: Path, vintage) -> None:
    dataset = bw.load("demo", vintage=vintage, tickers=["XOM", "CVX"])
    by_polars = _plain(pl.DataFrame(dataset))
    polars.testing.assert_frame_equal(_plain(dataset.to_polars()), by_polars)
    by_arrow = pa.RecordBatchReader.from_stream(dataset).read_all()
    assert dataset.to_arrow().equals(by_arrow)
    polars.testing.assert_frame_equal(_plain(pl.DataFrame(by_arrow)), by_polars)
    by_duckdb = duckdb.sql("from dataset").pl()
    assert by_duckdb.height == by_polars.height
    by_pandas = dataset.to_pandas()
    assert list(by_pandas["confidence"]) == by_polars["confidence"].to_list()
    assert len(pd.DataFrame.from_arrow(dataset)) == by_polars.height


@pytest.mark.parametrize("vintage", [None, "latest"], ids=["published", "built"])
def test_dates_are_naive_and_categories_are_those_that_occur(published: Path, vintage) -> None:
    dataset = bw.load("demo", vintage=vintage)
    frame = dataset.to_pandas()
    assert frame["date"].dtype == "datetime64[us]"
    assert str(frame["observed_at"].dtype) == "datetime64[us, UTC]"
    assert frame["confidence"].dtype == "float64"
    assert sorted(frame["period"].cat.categories) == ["1m", "5d"]
    assert sorted(frame["regime"].cat.categories) == ["bull", "neutral"]
    assert sorted(frame["signal"].cat.categories) == ["buy", "sell"]
    schema = dataset.to_polars().schema
    assert schema["date"] == pl.Datetime("us")
    assert schema["observed_at"] == pl.Datetime("us", "UTC")
    assert isinstance(schema["period"], pl.Categorical)
    types = {name: str(kind) for name, kind in zip(dataset.columns, duckdb.sql("from dataset").types)}
    assert types["date"] == "TIMESTAMP"


def test_a_selection_equals_a_filter_of_the_whole(published: Path) -> None:
    whole = bw.load("demo").to_polars()
    start, end = datetime.date(2026, 3, 2), datetime.date(2026, 3, 20)
    part = bw.load("demo", tickers="XOM", start=start, end=end, columns=["confidence", "date"])
    expected = whole.filter((pl.col("ticker") == "XOM") & (pl.col("date") >= start) & (pl.col("date") < end))
    assert expected.height > 0
    polars.testing.assert_frame_equal(part.to_polars(), expected.select("confidence", "date"))
    assert part.columns == ["confidence", "date"]


@pytest.mark.parametrize(
    "part",
    [{}, {"columns": ["regime", "date"]}, {"tickers": ["XOM"]}, {"start": "2026-01-02", "end": "2026-02-01"}],
    ids=["whole", "columns", "tickers", "dates"],
)
def test_to_polars_equals_the_stream(published: Path, part) -> None:
    dataset = bw.load("demo", **part)
    by_stream = pl.DataFrame(dataset)
    assert by_stream.height > 0
    polars.testing.assert_frame_equal(dataset.to_polars(), by_stream)


@pytest.mark.parametrize("output", [{"format": "csv"}, {"format": "arrow"}, {"partition_by": ["period", "regime"]}])
def test_a_version_reads_the_same_in_every_format(published: Path, output) -> None:
    definition = {**DEFINITION, "name": "formatted", "output": output}
    bw.build(definition, archive="output/archive", data="formatted", progress=False)
    order = ["ticker", "date", "period", "regime"]
    frame = _plain(bw.load("formatted", data="formatted").to_polars())
    expected = _plain(bw.load("demo", columns=frame.columns).to_polars())
    polars.testing.assert_frame_equal(frame.sort(order), expected.sort(order))


def test_a_damaged_version_is_reported(place: Path) -> None:
    path = bw.run({**DEFINITION, "name": "damaged"}, progress=False).path
    file = path / "damaged.parquet"
    file.write_bytes(file.read_bytes()[:5000])
    dataset = bw.load("damaged")
    for read in (dataset.to_polars, dataset.to_arrow, dataset.to_pandas):
        with pytest.raises(bw.StorageError, match="is damaged") as caught:
            read()
        assert "restore it from a backup" in (caught.value.hint or "")
    with pytest.raises(Exception, match="is damaged"):
        pl.DataFrame(dataset)


def test_seven_million_rows_are_streamed_in_less_memory_than_they_take(place: Path, python) -> None:
    path = bw.run({**DEFINITION, "name": "large"}, progress=False).path
    file = path / "large.parquet"
    schema = pa.schema(bw.load("large"))
    small = bw.load("large").to_arrow().slice(0, 65_536)
    copies = 107
    in_file = pa.parquet.read_schema(file)
    with pa.parquet.ParquetWriter(file, in_file) as writer:
        for _ in range(copies):
            writer.write_table(small.cast(in_file))
    assert schema == pa.schema(bw.load("large"))
    script = """
        import resource
        import bellwether as bw, pyarrow as pa
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        dataset = bw.load("large")
        next(iter(pa.RecordBatchReader.from_stream(dataset)))
        before, rows, size = peak(), 0, 0
        for batch in pa.RecordBatchReader.from_stream(dataset):
            rows, size = rows + batch.num_rows, size + batch.nbytes
        print(rows, size, peak() - before)
    """
    ended = python(textwrap.dedent(script))
    rows, size, grown = map(int, ended.stdout.split())
    assert rows == copies * small.num_rows > 7_000_000
    assert grown < size / 10, f"{grown / 1e6:.0f} MB more, for {size / 1e6:.0f} MB of rows"


def test_every_result_can_be_read_again(published: Path) -> None:
    for dataset in (bw.load("demo", tickers="XOM"), bw.load("demo", tickers="XOM", as_of="2026-11-20")):
        heights = {pl.DataFrame(dataset).height for _ in range(2)}
        repr(dataset), dataset._repr_html_()
        heights.add(duckdb.sql("from dataset").pl().height)
        heights.add(duckdb.sql("from dataset").pl().height)
        assert len(heights) == 1 and heights != {0}


def test_a_dataset_shows_its_first_rows(published: Path) -> None:
    for dataset in (bw.load("demo", tickers="XOM"), bw.load("demo", tickers="XOM", as_of="2026-11-20")):
        frame = dataset.to_polars()
        head = dataset.head(3)
        polars.testing.assert_frame_equal(_plain(head.to_polars()), _plain(frame.head(3)))
        assert repr(head).splitlines()[0].startswith("Table: 3 rows")
        lines = repr(dataset).splitlines()
        assert lines[1].split() == dataset.columns and len(lines) == 2 + 10
        assert lines[2:5] == repr(dataset.head(10)).splitlines()[2:5]
        shown = dataset._repr_html_()
        assert shown.count("<tr>") >= 1 + 10 and f"<td>{frame['confidence'][0]}" in shown
        assert len(repr(dataset.head(25)).splitlines()) == 2 + 25
        assert dataset.head(0).to_polars().height == 0 and len(repr(dataset.head()).splitlines()) == 2 + 10
    assert bw.load("demo").head(10**9).to_polars().height == len(bw.load("demo"))


def test_a_lazy_frame_keeps_the_selection_and_the_columns(published: Path) -> None:
    part = {"tickers": ["XOM", "CVX"], "periods": "5d", "start": "2026-03-01", "end": "2026-06-01"}
    for options in ({}, part, {**part, "columns": ["date", "confidence"]}):
        dataset = bw.load("demo", **options)
        lazy = dataset.lazy()
        assert isinstance(lazy, pl.LazyFrame) and lazy.collect_schema().names() == dataset.columns
        polars.testing.assert_frame_equal(_plain(lazy.collect()), _plain(dataset.to_polars()))
        assert "SCAN" in lazy.explain() and "demo.parquet" in lazy.explain()
        built = bw.load("demo", as_of="2026-11-20", **options).lazy()
        polars.testing.assert_frame_equal(_plain(built.collect()), _plain(lazy.select(dataset.columns).collect()))
    confident = bw.load("demo").lazy().filter(pl.col("confidence") > 0.6).select(pl.len()).collect().item()
    assert confident == bw.load("demo").to_polars().filter(pl.col("confidence") > 0.6).height > 0


def test_a_version_that_was_removed_says_so_with_the_remedy(place: Path) -> None:
    definition = {"name": "few", **DEFINITION, "output": {"keep": 1}}
    first = bw.run(definition, today="2026-11-19", progress=False).load()
    expected = first.to_polars()
    reference = first.name
    bw.run(definition, today="2026-11-20", progress=False)
    assert not first.path.exists()
    for read in (first.to_polars, first.to_pandas, lambda: first.head(3), lambda: first.lazy().collect()):
        with pytest.raises(bw.NotFoundError, match="is gone: .* was removed since it was opened") as caught:
            read()
    assert "was removed" in repr(first) and "was removed" in first._repr_html_()
    with pytest.raises(bw.NotFoundError, match=f"no version `{reference}`") as other:
        bw.load(reference)
    for error in (caught.value, other.value):
        assert "`keep` in `[output]` says how many versions stay" in str(error.hint)
        assert str(error.hint).endswith("what was known then is there as of 2026-11-19T12:00:01Z")
    again = bw.load("few", as_of="2026-11-19T12:00:01Z").to_polars()
    polars.testing.assert_frame_equal(_plain(again), _plain(expected))


def test_two_streams_of_one_dataset_do_not_disturb_each_other(published: Path) -> None:
    dataset = bw.load("demo")
    one, other = (pa.RecordBatchReader.from_stream(dataset) for _ in range(2))
    first = one.read_next_batch()
    assert other.read_all().slice(0, first.num_rows).combine_chunks().to_batches()[0].num_rows > 0
    assert one.read_all().num_rows + first.num_rows == dataset.to_arrow().num_rows


def test_a_stream_that_is_dropped_early_ends(published: Path) -> None:
    for _ in range(8):
        pa.RecordBatchReader.from_stream(bw.load("demo", vintage="latest")).read_next_batch()


def test_the_columns_are_known_without_reading(published: Path) -> None:
    dataset = bw.load("demo", vintage="latest")
    assert dataset.columns[: len(COLUMNS)] == COLUMNS
    assert pa.schema(dataset) == dataset.to_arrow().schema


def test_a_factor_is_a_series_by_date_and_ticker(published: Path) -> None:
    factor = bw.load("demo").factor("signal", periods="5d", regimes="neutral")
    assert factor.index.names == ["date", "ticker"]
    assert factor.index.is_unique and factor.index.is_monotonic_increasing
    assert factor.index.levels[0].tz is None
    assert set(factor.unique()) == {1, -1}
    with pytest.raises(bw.UsageError, match="several periods: 1m, 5d"):
        bw.load("demo").factor("confidence")


@pytest.mark.parametrize("as_of", [None, "2026-11-20"], ids=["published", "built"])
def test_matrices_equal_a_pivot(published: Path, as_of) -> None:
    wide = bw.load("demo", layout="wide", as_of=as_of, columns=["signal", "confidence", "news_count_7d"])
    assert len(wide) == 12
    long = bw.load("demo").to_polars().filter(period="1m", regime="bull")
    for column in ("confidence", "news_count_7d"):
        expected = long.pivot("ticker", index="date", values=column).sort("date")
        matrix = wide[f"1m-bull/{column}"]
        polars.testing.assert_frame_equal(matrix.to_polars(), expected.select("date", *sorted(expected.columns[1:])))
        assert matrix.tickers == sorted(expected.columns[1:])
    signs = long.with_columns(pl.col("signal").cast(pl.String).replace_strict({"buy": 1, "sell": -1}).cast(pl.Float64))
    expected = signs.pivot("ticker", index="date", values="signal").sort("date")
    signals = wide["1m-bull/signal"]
    polars.testing.assert_frame_equal(signals.to_polars(), expected.select("date", *sorted(expected.columns[1:])))
    frame = signals.to_pandas()
    # With eight bits a sum of hundreds would be -56.
    assert set((frame * 100 + frame * 100).stack().unique()) <= {200, -200}
    assert set((signals.to_polars().drop("date") * 100).unpivot()["value"].drop_nulls().unique()) <= {100, -100}
    assert isinstance(frame.index, pd.DatetimeIndex) and frame.index.tz is None and frame.index.is_monotonic_increasing
    with pytest.raises(KeyError, match="no matrix `9d/x`; there are 1m-bull"):
        wide["9d/x"]


def test_renamed_columns_are_the_key_of_matrices_and_factors(place: Path) -> None:
    definition = {
        "name": "renamed",
        "source": {"service": "demo"},
        "signals": {"sectors": ["energy"], "periods": ["5d"]},
        "dataset": {"rename": {"ticker": "symbol", "date": "day", "period": "horizon", "signal": "side"}},
    }
    bw.run(definition, progress=False)
    long = bw.load("renamed").to_polars().filter(pl.col("symbol").is_in(["CVX", "XOM"]))
    expected = long.pivot("symbol", index="day", values="confidence").sort("day").select("day", "CVX", "XOM")
    for as_of in (None, datetime.datetime.now(datetime.timezone.utc).date()):
        wide = bw.load("renamed", layout="wide", as_of=as_of, tickers=["CVX", "XOM"], columns=["confidence", "side"])
        assert list(wide) == ["5d-neutral/confidence", "5d-neutral/side"]
        polars.testing.assert_frame_equal(wide["5d-neutral/confidence"].to_polars(), expected)
        part = bw.load("renamed", layout="wide", as_of=as_of, tickers="XOM", columns=["symbol", "side"])
        assert list(part) == ["5d-neutral/side"]
        assert set(part["5d-neutral/side"].to_polars()["XOM"].drop_nulls()) == {1, -1}
    factor = bw.load("renamed", tickers="XOM").factor("side", periods="5d")
    assert factor.index.names == ["day", "symbol"]
    assert set(factor.unique()) == {1, -1}


def test_a_wide_version_is_read_as_matrices(place: Path) -> None:
    definition = {
        "name": "matrices",
        "source": {"service": "demo"},
        "signals": {"sectors": ["energy"], "periods": ["5d"]},
        "output": {"layout": "wide"},
    }
    path = bw.run(definition, progress=False).path
    wide = bw.load("matrices", layout="wide")
    assert wide.name == f"matrices/{path.resolve().name}" == bw.load(path, layout="wide").name
    files = sorted(path.glob("*/*.parquet"))
    assert list(wide) == [f"{file.parent.name}/{file.stem}" for file in files]
    for file, matrix in zip(files, wide.values()):
        polars.testing.assert_frame_equal(matrix.to_polars(), pl.read_parquet(file), check_dtypes=False)
    part = bw.load("matrices", layout="wide", columns=["score"], tickers="XOM", start="2026-10-01")
    assert list(part) == ["5d-neutral/score"]
    assert part["5d-neutral/score"].tickers == ["XOM"]
    with pytest.raises(bw.DataError, match="is wide"):
        bw.load("matrices")
    # `latest` may be another version when a pickle is read.
    pickled = pickle.dumps(wide)
    bw.run({**definition, "signals": {"sectors": ["utilities"], "periods": ["5d"]}}, progress=False)
    now = bw.load("matrices", layout="wide")
    for matrices, has_oil in ((now, False), (pickle.loads(pickled), True)):
        assert ("XOM" in matrices["5d-neutral/score"].tickers) == has_oil


def test_a_version_is_found_by_name_and_by_folder(published: Path) -> None:
    version = (published / "output/datasets/demo/latest").resolve()
    for given in ("demo", f"demo/{version.name}", version):
        assert bw.load(given).path == version


def test_missing_names_have_a_hint(published: Path) -> None:
    with pytest.raises(bw.NotFoundError, match="no version `nothing`") as caught:
        bw.load("nothing")
    assert isinstance(caught.value, FileNotFoundError)
    assert "demo" in (caught.value.hint or "")
    with pytest.raises(bw.NotFoundError, match="no data as of 2020") as caught:
        bw.load("demo", as_of="2020-01-01")
    assert caught.value.hint == "`bellwether list runs` lists the runs"
    with pytest.raises(bw.UsageError, match="no column `nope`"):
        bw.load("demo", columns=["nope"])
    with pytest.raises(ValueError, match="invalid value `soon` for `start`: use a day"):
        bw.load("demo", start="soon")
    with pytest.raises(bw.UsageError, match="has no time zone"):
        bw.load("demo", as_of=datetime.datetime(2026, 3, 31))


def test_a_catalog_knows_its_datasets_and_versions_and_loads_them(published: Path) -> None:
    catalog = bw.datasets()
    version = catalog.to_polars()["version"][0]
    assert len(catalog) == 1 and "demo" in catalog and f"demo/{version}" in catalog
    assert "other" not in catalog and 3 not in catalog
    assert catalog["demo"].to_polars().equals(bw.load("demo").to_polars())
    assert catalog[f"demo/{version}"].name == f"demo/{version}"
    with pytest.raises(bw.NotFoundError):
        catalog["other"]
    assert catalog._ipython_key_completions_() == ["demo", f"demo/{version}"]
    assert list(catalog) == [f"demo/{version}"] and [catalog[name].name for name in catalog] == list(catalog)
    assert pl.DataFrame(catalog).equals(catalog.to_polars()) and pa.table(catalog).num_rows == 1


def test_the_length_of_a_dataset_is_its_number_of_rows(published: Path) -> None:
    as_of = bw.load("demo").as_of
    for options in ({}, {"tickers": ["XOM"]}, {"as_of": as_of, "tickers": ["XOM"]}, {"start": "2100-01-01"}):
        dataset = bw.load("demo", **options)
        assert len(dataset) == dataset.to_polars().height and dataset, options
    assert len(bw.load("demo")) > len(bw.load("demo", tickers="XOM")) > 0


def test_a_pickle_names_a_version_and_a_selection(published: Path) -> None:
    as_of = bw.load("demo").as_of
    for options in ({}, {"tickers": ["XOM"], "columns": ["date", "confidence"]}, {"as_of": as_of, "tickers": ["XOM"]}):
        dataset = bw.load("demo", **options)
        pickled = pickle.dumps(dataset)
        assert len(pickled) < 2_000
        found = pickle.loads(pickled)
        assert found.name == dataset.name and found.to_polars().equals(dataset.to_polars())
    wide = bw.load("demo", layout="wide", tickers=["CVX", "XOM"])
    found = pickle.loads(pickle.dumps(wide))
    assert list(found) == list(wide) == wide._ipython_key_completions_()
    name = list(wide)[0]
    assert found[name].to_polars().equals(wide[name].to_polars())
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(len, bw.load("demo", tickers="XOM")).result() == len(bw.load("demo", tickers="XOM"))


def test_a_pickle_of_a_build_keeps_its_definition(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    bw.run("demo", progress=False)
    file = place / "pipelines/demo.toml"
    file.write_text(file.read_text() + 'filter.tickers = ["XOM"]\n')
    bw.run({**DEFINITION, "name": "written", "filter": {"tickers": ["XOM"]}}, progress=False)
    given = ("demo", "pipelines/demo.toml", {**DEFINITION, "filter": {"tickers": ["XOM"]}}, "written")
    datasets = [bw.load(one, vintage="first") for one in given]
    rows = len(datasets[0])
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    for dataset in datasets:
        for found in (dataset, copy.copy(dataset), pickle.loads(pickle.dumps(dataset))):
            assert len(found) == rows and set(found.to_polars()["ticker"]) == {"XOM"}
    wide = bw.load(given[2], layout="wide", data=place / "output")
    assert list(pickle.loads(pickle.dumps(wide))) == list(wide)


def test_a_frame_of_pandas_can_be_written(published: Path) -> None:
    dataset = bw.load("demo")
    frames = [dataset.to_pandas(), bw.load("demo", tickers="XOM").to_pandas()]
    frames += [matrix.to_pandas() for matrix in bw.load("demo", layout="wide").values()]
    for frame in frames:
        for column in range(frame.shape[1]):
            frame.iloc[0, column] = frame.iloc[1, column]


def test_a_universe_may_be_wider_than_the_dataset(published: Path) -> None:
    universe = ["XOM", "ZZZZ", "CVX"]
    with pytest.raises(bw.UsageError, match="ZZZZ"):
        bw.load("demo", tickers=universe)
    expected = bw.load("demo", tickers=["CVX", "XOM"]).to_polars()
    assert bw.load("demo", tickers=universe, missing="ignore").to_polars().equals(expected)
    built = bw.load("demo", tickers=universe, missing="ignore", as_of=bw.load("demo").as_of)
    assert built.to_polars().select(expected.columns).equals(expected)
    for matrix in bw.load("demo", layout="wide", tickers=universe, missing="ignore").values():
        assert matrix.tickers == ["CVX", "XOM"]
    with pytest.raises(bw.UsageError, match="neither `fail` nor `ignore`"):
        bw.load("demo", missing="warn")  # type: ignore[call-overload]


def test_dates_without_rows_give_empty_matrices_with_all_keys(published: Path) -> None:
    everything = bw.load("demo", layout="wide")
    empty = bw.load("demo", layout="wide", start="2100-01-01")
    assert list(empty) == list(everything) and len(everything) == 4
    assert all(len(matrix.to_pandas()) == 0 for matrix in empty.values())
    some = bw.load("demo", layout="wide", start="2100-01-01", periods="5d", columns="confidence")
    assert list(some) == ["5d-bull/confidence", "5d-neutral/confidence"]


def test_what_was_imported_counts_where_it_is_asked_for(place: Path, program) -> None:
    bw.run("demo", today="2026-11-20", progress=False)
    Path("old.csv").write_text("ticker,date,signal,confidence\nXOM,2001-01-02,buy,0.7\n")
    request = "signals-history-all?sector=energy&period=5d&regime=neutral"
    imported = program("import", "demo", "old.csv", "--request", request, "--observed-at", "2026-11-10")
    assert imported.returncode == 0, imported.stderr
    without = bw.load("demo", vintage="latest")
    with_claims = bw.load("demo", include="claimed").to_polars()
    assert "claimed" not in without.columns
    assert with_claims.filter(pl.col("claimed"))["date"].to_list() == [datetime.datetime(2001, 1, 2)]
    assert with_claims.height == without.to_polars().height + 1
    summary = bw.build("demo", include="claimed", progress=False)
    assert (summary.path.parent.name, summary.rows) == ("builds", with_claims.height)
    known = [bw.revisions("demo", include=it).totals["signals"]["total"]["known"] for it in (None, "claimed")]
    assert known[1] == known[0] + 1
    assert len(bw.articles("demo", include="claimed").to_polars()) == len(bw.articles("demo").to_polars())
    with pytest.raises(bw.UsageError, match="claims included without a definition"):
        bw.quality(include="claimed")
