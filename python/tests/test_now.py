"""`get`: what a service says now, compared with its own answers and with the program."""

from __future__ import annotations

import io
import json
import os
import pickle
import urllib.parse
import urllib.request
from pathlib import Path

import polars as pl
import polars.testing
import pytest

import bellwether as bw


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_signals_are_those_that_the_service_lists(place: Path, service, temporary: Path) -> None:
    files = _files(place)
    found = bw.get(["XOM", "CVX"], periods="5d", last="1y", definition={"source": service.source}, key=service.key)
    query = urllib.parse.urlencode({"api_key": service.key, "period": "5d", "regime": "neutral"})
    first = found.to_polars()["date"].min()
    expected = []
    for ticker in ("CVX", "XOM"):
        with urllib.request.urlopen(f"{service.base_url}/signals-history/{ticker}?{query}") as answer:
            listed = json.load(answer)["predictions"]
        rows = [(ticker, entry["date"][:10], entry["signal"], entry["confidence"]) for entry in listed]
        expected += sorted(row for row in rows if row[1] >= f"{first:%Y-%m-%d}")
    names = ["ticker", "date", "signal", "confidence"]
    rows = found.to_polars().select("ticker", pl.col("date").dt.strftime("%Y-%m-%d"), "signal", "confidence")
    rows = rows.with_columns(pl.col("ticker", "signal").cast(pl.String))
    polars.testing.assert_frame_equal(rows, pl.DataFrame(expected, schema=names, orient="row"))
    assert len(found) == len(expected) > 400 and found.news is None
    # Nothing is left, here or elsewhere.
    assert _files(place) == files and not list(temporary.iterdir())


def test_the_only_definition_is_asked_and_the_program_says_the_same(place: Path, program) -> None:
    found = bw.get("XOM", periods=["5d", "15d"], regimes=["bull", "neutral"], news=True)
    arguments = ["XOM", "--periods", "5d,15d", "--regimes", "bull,neutral", "--news", "--output", "x.csv"]
    printed = program("get", *arguments)
    assert printed.returncode == 0, printed.stderr
    for table, name in ((found, "x.csv"), (found.news, "x.news.csv")):
        assert table is not None
        file = pl.read_csv(io.BytesIO(Path(name).read_bytes()), infer_schema=False)
        assert file.columns == table.columns and file.height == table.to_polars().height > 0
        assert file["ticker"].to_list() == table.to_polars()["ticker"].cast(pl.String).to_list()
    assert found.news is not None and "title" in found.news.columns
    assert {"news_count_7d", "signal"} <= set(found.columns)
    assert found.to_polars().equals(pickle.loads(pickle.dumps(found)).to_polars())
    assert "XOM" in repr(found)


def test_answers_are_kept_where_that_is_asked_for(place: Path) -> None:
    assert not Path("output").exists()
    bw.get("XOM", keep=True)
    runs = bw.runs().to_polars()
    assert runs.select("service", "definition").rows() == [("demo", "get")]
    assert not Path("output/datasets").exists()
    bw.get("XOM", demo=True, keep=True, archive="elsewhere")
    assert bw.runs(archive="elsewhere").to_polars().height == 1


def test_questions_that_cannot_be_asked(place: Path, temporary: Path) -> None:
    with pytest.raises(bw.ChecksError, match="no signals for ticker `XMO`") as caught:
        bw.get(["XOM", "XMO"])
    assert str(caught.value.hint).startswith("nothing was kept")
    with pytest.raises(bw.ServiceError, match="the demo has none of the tickers"):
        bw.get("XMO")
    with pytest.raises(bw.UsageError, match="the demo beside a definition"):
        bw.get("XOM", demo=True, definition="demo")
    with pytest.raises(bw.UsageError, match="it names nothing"):
        bw.get([])
    os.remove("pipelines/demo.toml")
    with pytest.raises(bw.NotFoundError, match="no service to ask"):
        bw.get("XOM")
    assert not list(temporary.iterdir())
