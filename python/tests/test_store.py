"""Stores and folders that the environment or a definition names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import bellwether as bw

from conftest import DEFINITION, define

OPTIONS = {"progress": False, "today": "2026-11-20"}


def test_what_only_the_store_has_is_fetched_before_it_is_read(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    url = (tmp_path_factory.mktemp("store") / "store").as_uri()
    define(place, f'{DEFINITION}[store]\nurl = "{url}"\n')
    summary = bw.run("demo", **OPTIONS)
    other = tmp_path_factory.mktemp("other")
    define(other, f'{DEFINITION}[store]\nurl = "{url}"\n')
    os.chdir(other)
    assert bw.load("demo").to_polars().height == summary.rows
    assert bw.revisions("demo").totals["signals"]["total"]["known"] == summary.rows
    os.chdir(place)
    later = bw.run("demo", progress=False, today="2026-11-24")
    os.chdir(other)
    assert bw.load("demo").to_polars().height == later.rows > summary.rows
    assert bw.load("demo", as_of="2026-11-24").to_polars().height == later.rows
    assert bw.report("demo").text.count(later.path.name) > 0


def test_the_environment_names_folders_and_a_store_as_for_the_program(
    place: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, archive, store = (tmp_path_factory.mktemp(name) for name in ("data", "archive", "store"))
    monkeypatch.setenv("BELLWETHER_DATA", str(data))
    monkeypatch.setenv("BELLWETHER_ARCHIVE", str(archive))
    monkeypatch.setenv("BELLWETHER_STORE", store.as_uri())
    summary = bw.run("demo", **OPTIONS)
    assert summary.path.is_relative_to(data)
    assert summary["store"] is not None
    assert bw.load("demo").path == summary.path.resolve()
    assert bw.runs().to_polars().height == 1
    assert list(archive.glob("demo/*=*"))
    assert not (place / "output").exists()
    for name in ("DATA", "ARCHIVE", "STORE"):
        monkeypatch.setenv(f"BELLWETHER_{name}", "")
    assert bw.run("demo", **OPTIONS).path.is_relative_to(place / "output"), "empty counts as not set"
    assert bw.load("demo").path.is_relative_to(place / "output")
    monkeypatch.setenv("BELLWETHER_STORE", "nowhere")
    with pytest.raises(bw.UsageError, match="BELLWETHER_STORE"):
        bw.load("demo")


def test_runs_of_one_day_of_the_demo_follow_one_another_within_it(place: Path) -> None:
    instants = [bw.run("demo", **OPTIONS)["as_of"] for _ in range(3)]
    assert instants == sorted(set(instants))
    assert {instant[:10] for instant in instants} == {"2026-11-20"}
    assert bw.load("demo", as_of="2026-11-20").to_polars().height > 0
