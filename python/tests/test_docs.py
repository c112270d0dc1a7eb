"""The examples of the docstrings and of the pages."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import bellwether as bw

MODULES = [f"bellwether.{module.name}" for module in pkgutil.iter_modules(bw.__path__) if module.name != "__main__"]


@pytest.mark.parametrize("name", ["bellwether", *(name for name in MODULES if name != "bellwether._bellwether")])
def test_the_examples_of_the_docstrings_run(name: str, place: Path) -> None:
    bw.run("demo", progress=False)
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


ROOT = Path(__file__).parents[2]
PAGES = {page.relative_to(ROOT).as_posix(): page.read_text() for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]}


# The others show what needs a server, a bucket or Airflow; the tests of the program run or read them.
@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in ("nightly", "backtest", "notebooks", "changes", "how-it-works"))])
def test_the_python_of_the_pages_runs(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    bw.run("demo", progress=False)
    # A block may go on from those before it.
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGES[page], re.DOTALL):
        # The packages of others warn of what they use.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_python_stands_in_blocks_that_are_run(page: str) -> None:
    outside = re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL)
    assert not re.findall(r"^    .*(?:\bbw\.|^    import |vectorbt\.|polars\.|pandas\.).*$", outside, re.MULTILINE)


def test_everything_public_has_a_docstring() -> None:
    for name in bw.__all__:
        thing = getattr(bw, name)
        assert thing.__doc__, name
        if isinstance(thing, type):
            public = {name: value for name, value in vars(thing).items() if not name.startswith("_")}
            for method, value in public.items():
                if callable(value) or isinstance(value, property):
                    assert value.__doc__, f"{name}.{method}"


def test_the_site_has_every_page_as_markdown(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "site/pages.py", "markdown", tmp_path], check=True)
    listed = re.findall(r"^- \[.+?\]\((.+?)\): .+\.$", (tmp_path / "llms.txt").read_text(), re.MULTILINE)
    assert sorted([*listed, "index.md"]) == sorted(page.name for page in tmp_path.glob("*.md"))
    assert {Path(page).name for page in PAGES} - {"README.md", "SUMMARY.md"} <= set(listed)
    for page in tmp_path.glob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        links = re.findall(r"(?<!!)\[[^\]]*\]\(([^()\s#]+)[^()]*\)", text)
        assert all(link.startswith("http") or (tmp_path / link).exists() for link in links), (page.name, links)
