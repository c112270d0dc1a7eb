"""Fixtures: a folder with definitions, and one with a published dataset of the demo service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bellwether as bw

#: The current day of the demo service.
TODAY = "2026-11-20"

DEFINITION = """\
source.service = "demo"
signals.sectors = ["energy", "utilities"]
signals.periods = ["5d", "1m"]
signals.regimes = ["neutral", "bull"]
join.windows = ["7d"]
dataset.add = ["observed_at", "revisions", "backfilled"]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, with a definition `demo`, to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BELLWETHER_API_KEY", raising=False)
    define(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def _published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    define(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        bw.run("demo", today=TODAY, progress=False)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def published(_published: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shared folder with `demo` published. Tests only read it."""
    monkeypatch.chdir(_published)
    return _published


def define(folder: Path, text: str = DEFINITION, name: str = "demo") -> None:
    """Writes a definition."""
    pipelines = folder / "pipelines"
    pipelines.mkdir(exist_ok=True)
    (pipelines / f"{name}.toml").write_text(text)


@pytest.fixture(scope="session")
def program() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs the installed program."""
    path = Path(sys.executable).with_name("bellwether")

    def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([path, *arguments], capture_output=True, timeout=120, check=False)

    return run


@pytest.fixture(scope="session")
def python() -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs a script in another interpreter."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-c", script]
        return subprocess.run(command, capture_output=True, timeout=300, check=False, text=True)

    return run


@pytest.fixture
def service() -> Iterator[bw.DemoService]:
    """A demo service."""
    with bw.demo_service(today=TODAY) as running:
        yield running
