"""Fixtures: a folder with definitions, and one with a published dataset of the demo service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

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


class Service(NamedTuple):
    """A running demo service."""

    base_url: str
    sentiment_base_url: str
    #: The key that it accepts.
    key: str = "demo"

    @property
    def source(self) -> dict[str, str]:
        """Both addresses, as the `source` of a definition."""
        return {"base_url": self.base_url, "sentiment_base_url": self.sentiment_base_url}


@pytest.fixture
def service() -> Iterator[Service]:
    """A demo service on a free port."""
    path = Path(sys.executable).with_name("bellwether")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BELLWETHER_")}
    command = [path, "serve", "--demo", "--today", TODAY]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield Service(*(process.stdout.readline().split('"')[1] for _ in range(2)))
        finally:
            process.kill()
