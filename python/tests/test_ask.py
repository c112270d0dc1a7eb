"""Queries, compared with the program and with the files."""

from __future__ import annotations

import datetime
import io
import json
import pickle
import re
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import polars.testing
import pytest

import bellwether as bw

#: Two days of the demo service, between which it rewrote some of its past.
EARLIER, LATER = "2026-11-06", "2026-11-20"


@pytest.fixture(scope="module")
def place_of_two_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import os

    from conftest import define

    folder = tmp_path_factory.mktemp("two-days")
    define(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        for day in (EARLIER, LATER):
            bw.run("demo", today=day, progress=False)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def two_days(place_of_two_days: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place_of_two_days)
    return place_of_two_days


def _csv(printed: bytes) -> pl.DataFrame:
    return pl.read_csv(io.BytesIO(printed), infer_schema=False)


def test_a_version_and_a_run_are_instants_with_their_definitions(two_days: Path) -> None:
    versions = bw.datasets().to_polars().filter(dataset="demo").sort("as_of")
    first = bw.load(f"demo/{versions['version'][0]}").to_polars()
    key = ["ticker", "date", "period", "regime"]
    for name in (versions["version"][0], bw.runs().to_polars()["run"][0]):
        dataset = bw.load("demo", as_of=name)
        assert dataset.as_of == bw.load(f"demo/{versions['version'][0]}").as_of
        polars.testing.assert_frame_equal(dataset.to_polars().sort(key), first.sort(key))
    assert not bw.load("demo").to_polars().sort(key).equals(first.sort(key))
    with pytest.raises(bw.UsageError, match="no version `20200101T000000Z-abcd` of `demo`, and no run of this name"):
        bw.load("demo", as_of="20200101T000000Z-abcd")
    with pytest.raises(bw.UsageError) as caught:
        bw.load("demo", as_of="last month")
    assert str(caught.value.hint).endswith("or the name of a version or a run")


def test_revisions_match_the_program(two_days: Path, program) -> None:
    found = bw.revisions("demo")
    printed = _csv(program("audit", "revisions", "demo", "--format", "csv", "--output", "-").stdout)
    assert len(found) == printed.height > 0
    assert found.columns == printed.columns
    assert {"version": 1, **found.totals} == json.loads(program("audit", "revisions", "demo", "--json").stdout)
    signals = found.totals["signals"]["total"]
    assert 0 < signals["changed"] < signals["known"]
    assert len(bw.revisions("demo", until=EARLIER)) == 0
    assert len(bw.revisions("demo", after=EARLIER)) == len(found)


def test_a_past_state_equals_the_version_published_then(two_days: Path) -> None:
    versions = bw.datasets().to_polars()["version"].to_list()
    earlier = bw.load("demo", as_of=EARLIER).to_polars()
    published = bw.load(f"demo/{versions[0]}").to_polars()
    polars.testing.assert_frame_equal(earlier.cast(pl.String), published.cast(pl.String))
    assert bw.load("demo").to_polars().height > earlier.height


def test_quality_matches_the_program(two_days: Path, program) -> None:
    found = bw.quality("demo")
    printed = _csv(program("audit", "quality", "demo", "--format", "csv", "--output", "-").stdout)
    assert len(found) == printed.height
    assert found.columns == printed.columns
    assert 0.9 < found.totals["total"]["coverage"] <= 1
    assert [window["window"] for window in found.totals["windows"]] == ["7d"]
    assert {"version": 1, **found.totals} == json.loads(program("audit", "quality", "demo", "--json").stdout)


def test_skill_matches_the_program(two_days: Path, program) -> None:
    found = bw.skill("demo")
    printed = _csv(program("audit", "skill", "demo", "--format", "csv", "--output", "-").stdout)
    assert len(found) == printed.height
    assert found.columns == printed.columns
    assert {"version": 1, **found.totals} == json.loads(program("audit", "skill", "demo", "--json").stdout)
    assert {pair["period"] for pair in found.totals["pairs"]} == {"5d", "1m"}
    # The features of the news are measured as the signals are, at the horizon of each period.
    features = [feature["feature"] for feature in found.totals["features"] if feature["period"] == "5d"]
    dataset = bw.load("demo").to_polars().columns
    assert features == [name for name in dataset if name.startswith("news_") and name != "news_last_date"]
    measured = found.to_polars()["feature"].drop_nulls().unique(maintain_order=True).to_list()
    assert measured == features
    groups = found.totals["pairs"][0]["measures"][1]["by_news"]
    assert {group["window"] for group in groups} == {"7d"}
    assert found.totals["signals"]["measured"] > 0
    # A notebook shows what the program prints.
    assert program("audit", "skill", "demo").stdout.decode().strip() in repr(found)
    assert len(repr(found)) < 10_000 and len(found._repr_html_()) < 30_000


def test_a_table_of_any_frame_or_file_is_judged_like_by_the_program(two_days: Path, program) -> None:
    frame = bw.load("demo").to_polars().drop("signal").head(2_000)
    frame.write_parquet("own.parquet")
    pandas = frame.to_pandas()
    given = {"polars": frame, "pandas": pandas, "a file": "own.parquet", "a path": Path("own.parquet"), "pyarrow": frame.to_arrow()}
    printed = _csv(program("audit", "table", "own.parquet", "demo", "--format", "csv", "--output", "-").stdout)
    document = json.loads(program("audit", "table", "own.parquet", "demo", "--json").stdout)
    for name, table in given.items():
        found = bw.audit_table(table, "demo")
        assert found.columns == printed.columns and len(found) == printed.height > 0, name
        told = {"version": 1, **found.totals}
        assert {**told, "table": None} == {**document, "table": None}, name
    assert document["not_examined"] and document["total"]["values"] == 4_000
    at_close = bw.audit_table(frame, "demo", at="16:00 America/New_York")
    assert at_close.totals["decided"] == "at 16:00 America/New_York of the day in `date`"
    with pytest.raises(bw.DataError, match="has no column `decided`"):
        bw.audit_table(frame, "demo", decided_at="decided")


def test_a_history_has_each_value_and_when_it_was_known(two_days: Path, program) -> None:
    found = bw.history("demo", periods="5d").to_polars()
    printed = program("show", "demo", "--history", "--period", "5d", "--format", "csv").stdout
    assert found.columns == _csv(printed).columns and found.height == _csv(printed).height
    cells = found.group_by("ticker", "date", "period", "regime").len()
    assert cells["len"].max() > 1
    now = found.filter(pl.col("known_until").is_null())
    latest = bw.load("demo", periods="5d").to_polars()
    key = ["date", "confidence"]
    polars.testing.assert_frame_equal(now.select(key).sort(key), latest.select(key).sort(key))
    ticker, day = cells.sort("len").row(-1)[:2]
    one = bw.history("demo", tickers=ticker, periods="5d", date=day.date())
    assert one.to_polars().height == found.filter(ticker=ticker, date=day).height > 1
    day = day.date()
    assert bw.history("demo", tickers=ticker, date=day, as_of=EARLIER).to_polars()["known_until"].null_count() > 0
    with pytest.raises(bw.UsageError, match="`date` beside `start`"):
        bw.history("demo", date=day, start=day)


def test_skill_takes_prices_from_any_frame_and_from_files(two_days: Path) -> None:
    prices = bw.demo_prices(today=LATER)
    frame = prices.to_polars()
    frame.write_parquet("closes.parquet")
    frame[: frame.height // 2].write_csv("closes-1.csv")
    frame[frame.height // 2 :].write_csv("closes-2.csv")
    pandas = prices.to_pandas()
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    given = {
        "this package": prices,
        "polars": frame.with_columns(pl.col("date").cast(pl.Date)),
        "pandas": pandas,
        "pandas with objects": pandas.assign(ticker=pandas["ticker"].astype(object), date=pandas["date"].dt.date),
        "pyarrow": prices.to_arrow(),
        "shuffled, with more columns": shuffled.with_columns(volume=pl.lit(1)),
        "a file": "closes.parquet",
        "a path": Path("closes.parquet"),
        "files": ["closes-1.csv", Path("closes-2.csv")],
        "a pattern": "closes-*.csv",
    }
    answers = {name: bw.skill("demo", prices=one) for name, one in given.items()}
    files = {name: answer.totals["prices"].pop("files") for name, answer in answers.items()}
    expected = answers["a file"]
    for name, answer in answers.items():
        assert answer.totals == expected.totals, name
        polars.testing.assert_frame_equal(answer.to_polars(), expected.to_polars())
    # The digest is that of the rows, whatever library holds them.
    assert [file["path"] for file in files["polars"]] == ["prices"]
    assert files["polars"] == files["pandas"] == files["pandas with objects"] == files["pyarrow"] == files["this package"]
    assert files["shuffled, with more columns"] != files["polars"]
    assert len(files["files"]) == len(files["a pattern"]) == 2


def test_prices_that_cannot_be_meant_are_refused_with_their_row(two_days: Path) -> None:
    frame = bw.demo_prices(today=LATER).to_polars()
    zero = frame.with_columns(close=pl.when(pl.int_range(pl.len()) == 7).then(0.0).otherwise("close"))
    with pytest.raises(bw.UsageError, match="`prices`: it names no file"):
        bw.skill("demo", prices=[])
    with pytest.raises(bw.UsageError, match="cannot read the rows"):
        bw.skill("demo", prices=frame["close"])
    with pytest.raises(bw.DataError, match="row 8 of `prices`: a close of 0"):
        bw.skill("demo", prices=zero)
    with pytest.raises(bw.DataError, match="`prices` has no column `close`: it has `ticker`, `date`, `last`"):
        bw.skill("demo", prices=frame.rename({"close": "last"}))
    with pytest.raises(bw.DataError, match="instants in the zone `UTC`"):
        bw.skill("demo", prices=frame.with_columns(pl.col("date").dt.replace_time_zone("UTC")))
    few = frame.filter(pl.col("ticker") == frame["ticker"][0])
    with pytest.raises(bw.DataError, match="have no price"):
        bw.skill("demo", prices=few)
    assert bw.skill("demo", prices=few, allow_missing=True).totals["signals"]["without_price"] > 0
    later = bw.skill("demo", prices=frame, lag=3, as_of=EARLIER).totals
    assert (later["lag_sessions"], later["as_of"][:10]) == (3, EARLIER)


def test_a_diff_matches_the_program(two_days: Path, program) -> None:
    before, after = bw.datasets().to_polars()["version"].to_list()
    found = bw.diff("demo", before, after)
    printed = program("diff", f"demo/{before}", f"demo/{after}", "--format", "csv", "--output", "-")
    assert len(found) == _csv(printed.stdout).height > 0
    told = program("diff", f"demo/{before}", f"demo/{after}", "--json").stdout
    assert {"version": 1, **found.totals} == json.loads(told)
    assert found.totals["added"] + found.totals["removed"] + found.totals["changed"] == len(found)
    assert len(bw.diff("demo", before)) == len(found)
    assert len(bw.diff("demo", after, after)) == 0


def _told(value: object) -> object:
    """A value of a row as JSON has it."""
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value.isoformat() if isinstance(value, datetime.date) else value


def test_what_the_program_tells_as_json_is_the_same_here(two_days: Path, program) -> None:
    def printed(*command: str) -> dict[str, object]:
        document = json.loads(program(*command, "--json").stdout)
        assert document.pop("version") == 1
        return document

    for rows, document in ((bw.runs(), printed("list", "runs")["runs"]), (bw.datasets(), printed("list", "datasets")["versions"])):
        given = [{name: _told(value) for name, value in row.items()} for row in rows.to_polars().iter_rows(named=True)]
        for row in (*given, *document):
            # The program tells the path that it was given.
            row["path"] = Path(row["path"]).absolute().as_posix() if "path" in row else None
        assert given == document
    assert [bw.check("demo")] == printed("check", "demo")["definitions"]
    assert bw.sectors("demo") == printed("list", "sectors", "demo")["sectors"]
    assert bw.tickers("demo") == printed("list", "tickers", "demo")["tickers"]


def test_runs_are_told_by_the_same_summary_and_events_as_by_the_program(place: Path, program) -> None:
    events: list[bw.Event] = []
    summary = bw.run("demo", progress=events.append)
    told = program("run", "demo", "--log", "json")
    assert {"version", *summary} == set(json.loads(told.stdout))
    kinds = {event["event"]: set(event) for event in events} | {"note": {"event", "message"}}
    for line in told.stderr.splitlines():
        event = json.loads(line)
        assert set(event) == kinds[event["event"]] | {"timestamp", "level", "run"}


def test_runs_and_datasets_are_listed(two_days: Path) -> None:
    runs = bw.runs().to_polars()
    assert runs["service"].to_list() == ["demo", "demo"]
    assert runs["definition"].to_list() == ["demo", "demo"]
    assert runs["sealed_at"].dt.date().cast(pl.String).to_list() == [EARLIER, LATER]
    seals = sorted(Path("output/archive/demo").glob("run=*/run.json"))
    assert runs["added"].to_list() == [json.loads(seal.read_text())["changes"]["added"] for seal in seals]
    datasets = bw.datasets().to_polars()
    assert datasets["kind"].to_list() == ["earlier", "latest"]
    assert datasets["rows"].to_list()[-1] == bw.load("demo").to_polars().height


def test_articles_match_the_archive(two_days: Path) -> None:
    articles = bw.articles("demo", tickers="XOM").to_polars()
    files = sorted(Path("output/archive/demo").glob("run=*/articles.parquet"))
    rows = pl.concat([pl.read_parquet(file) for file in files]).filter(pl.col("ticker").cast(pl.String) == "XOM")
    cells = rows.select("date", "title", "link", "copy").unique()
    assert articles.height == cells.height > 0
    early = bw.articles("demo", tickers="XOM", as_of=EARLIER, start="2026-10-01", columns=["date", "title"]).to_polars()
    assert early.columns == ["date", "title"]
    assert early["date"].min() >= pl.Series(["2026-10-01"]).str.to_datetime()[0]
    assert 0 < early.height < articles.height


def test_a_report_is_a_page_for_a_notebook_and_a_file(two_days: Path, tmp_path: Path) -> None:
    report = bw.report("demo")
    assert report.name == "demo"
    report.save(tmp_path / "demo.html")
    assert (tmp_path / "demo.html").read_text().lower().startswith("<!doctype html>")
    shown = report._repr_html_()
    assert shown.startswith("<iframe") and "srcdoc=" in shown
    assert "tickers" in report.text


def test_the_figures_of_a_report_are_drawings_of_their_own(two_days: Path) -> None:
    report = bw.report("demo")
    assert list(report.figures) == re.findall(r'<svg id="plot-([^"]+)"', report.page)
    assert {"tickers", "confidence"} <= set(report.figures)
    for name, figure in report.figures.items():
        root = ElementTree.fromstring(figure)
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.attrib["aria-label"], name
        assert float(root.attrib["width"]) > 0 and float(root.attrib["height"]) > 0, name
        marks = root.findall(".//{*}rect") + root.findall(".//{*}polyline") + root.findall(".//{*}line")
        assert marks and "--ink" in root.findtext("{*}style", ""), name


def test_the_tables_of_skill_are_its_rows_and_its_totals(two_days: Path) -> None:
    found = bw.skill("demo")
    rows = found.to_polars()
    signals = rows.filter(pl.col("feature").is_null())
    of_all = signals.filter(pl.col("date").is_null() & pl.col("by").is_null())
    for table, expected in [
        (found.pairs, of_all),
        (found.by_date, signals.filter(pl.col("date").is_not_null())),
        (found.by_lag, signals.filter(by="lag").with_columns(lag=pl.col("group").cast(pl.Int64))),
        (found.features, rows.filter(pl.col("feature").is_not_null() & pl.col("date").is_null() & pl.col("by").is_null())),
    ]:
        assert table.columns[:3] == ["period", "regime", "state"]
        polars.testing.assert_frame_equal(table.to_polars(), expected.select(table.columns))
        # What a table leaves out, none of its rows has, but for what says which rows they are.
        left_out = expected.drop(*table.columns, "by", "group", "feature", "date", strict=False)
        assert all(column.null_count() == len(column) for column in left_out), left_out.columns
    by_pair = {(pair["period"], pair["regime"], measure["state"]): measure for pair in found.totals["pairs"] for measure in pair["measures"]}
    assert {row[:3]: row[3] for row in found.pairs.to_polars().select("period", "regime", "state", "correlation").rows()} == {
        key: measure["ranks"]["correlation"] if "ranks" in measure else measure["correlation"] for key, measure in by_pair.items()
    }
    assert found.by_lag.to_polars().height > 0 and found.features.to_polars().height > 0


def test_every_answer_can_be_pickled(two_days: Path) -> None:
    version = bw.datasets().to_polars()["version"][0]
    answers = [
        *(bw.runs(), bw.datasets(), bw.articles("demo", tickers="XOM"), bw.demo_prices(), bw.revisions("demo"), bw.quality("demo")),
        *(bw.skill("demo"), bw.diff("demo", version), bw.query("demo", "select * from dataset limit 3"), bw.load("demo").head(3)),
        bw.load("demo", layout="wide")["5d-bull/score"],
    ]
    for answer in answers:
        found = pickle.loads(pickle.dumps(answer))
        assert type(found) is type(answer) and repr(found).splitlines()[1:] == repr(answer).splitlines()[1:]
        polars.testing.assert_frame_equal(found.to_polars(), answer.to_polars())
        assert getattr(found, "totals", None) == getattr(answer, "totals", None)
    skill = pickle.loads(pickle.dumps(answers[6]))
    assert skill.pairs.to_polars().equals(answers[6].pairs.to_polars())
    report = bw.report("demo")
    found = pickle.loads(pickle.dumps(report))
    assert (found.name, found.page, found.text) == (report.name, report.page, report.text)
    summary = bw.build("demo", progress=False)
    assert dict(pickle.loads(pickle.dumps(summary))) == dict(summary)


def test_html_in_notebooks_is_escaped(two_days: Path) -> None:
    evil = "<script>alert(1)</script>"
    from bellwether import _html

    for html in (
        _html.table([evil], [[evil]]),
        _html.section(evil, ""),
        _html.facts([(evil, "")]),
        _html.sparkline([1, 2], evil),
    ):
        assert "<script" not in html


def test_reprs_are_short_and_show_numbers(two_days: Path) -> None:
    assert repr(bw.load("demo")).count("\n") == 1 + 10
    assert "rows" in repr(bw.load("demo")) and "demo/" in repr(bw.load("demo"))
    html = bw.load("demo")._repr_html_()
    assert html.count("<svg") == 1 and "tickers" in html
    assert len(repr(bw.runs()).splitlines()) < 15
    for shown in (bw.runs(), bw.datasets(), bw.revisions("demo"), bw.quality("demo")):
        assert "<table" in shown._repr_html_()
