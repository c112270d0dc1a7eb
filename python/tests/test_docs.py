"""The examples of the docstrings and of the pages."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import bellwether as bw

MODULES = [f"bellwether.{module.name}" for module in pkgutil.iter_modules(bw.__path__) if module.name != "__main__"]


@pytest.mark.parametrize("name", ["bellwether", *(name for name in MODULES if name != "bellwether._bellwether")])
def test_the_examples_of_the_docstrings_run(name: str, place: Path) -> None:
    bw.run("demo", progress=False)
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


PAGES = ["README.md", *(f"docs/{name}.md" for name in ("datasets", "notebooks", "history"))]


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_the_pages_runs(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    bw.run("demo", progress=False)
    text = (Path(__file__).parents[2] / page).read_text()
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, page, "exec"), {})


def test_everything_public_has_a_docstring() -> None:
    for name in bw.__all__:
        thing = getattr(bw, name)
        assert thing.__doc__, name
        if isinstance(thing, type):
            public = {name: value for name, value in vars(thing).items() if not name.startswith("_")}
            for method, value in public.items():
                if callable(value) or isinstance(value, property):
                    assert value.__doc__, f"{name}.{method}"
