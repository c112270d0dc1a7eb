"""Runs and builds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from . import _bellwether, _dataset, _html, _progress, _values
from ._dataset import Dataset
from ._values import Day, Definition, Include, Instant, PathLike, Vintage
from ._wide import Wide

__all__ = ["Summary", "build", "run"]


class Summary(Mapping[str, Any]):
    """The result of a run or a build, with the fields that `bellwether run --log json` prints at the end."""

    __slots__ = ("_facts", "_text")

    def __init__(self, facts: str, text: str) -> None:
        self._facts: dict[str, Any] = json.loads(facts)
        self._text = text

    def __getitem__(self, key: str) -> Any:
        return self._facts[key]

    def __iter__(self) -> Any:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self["rows"])

    @property
    def path(self) -> Path:
        """The folder of the version."""
        return Path(self["dataset"])

    @property
    def notes(self) -> list[str]:
        """Notes for the user."""
        return list(self["notes"])

    def load(self) -> Dataset | Wide:
        """The published version, long or wide as it is."""
        return _dataset.of_version(str(self.path), self.path)

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        lines = [line.split(maxsplit=1) for line in self._text.splitlines()]
        facts = [(words[0], escape(words[1] if len(words) > 1 else "")) for words in lines if words]
        return _html.section(self.path.parent.name, _html.facts(facts))


def run(
    definition: Definition,
    *,
    data: PathLike | None = None,
    archive: PathLike | None = None,
    key: str | None = None,
    fresh: bool = False,
    wait: float | None = None,
    progress: bool | Callable[[_progress.Event], object] = True,
    today: Day | None = None,
) -> Summary:
    """Fetches the data of a definition, archives it, and publishes its dataset, like `bellwether run`.

    `definition` is a name in `pipelines/`, a path, or the definition itself as a dict with a `name`.

    The API key is `key`, or else `BELLWETHER_API_KEY`, `api_key_file` or `api_key_command`, as for the program. `fresh` starts
    over instead of resuming an interrupted run. `wait` is how many seconds to wait for another run of the definition; whose it
    is, is an event. `progress` shows a bar, or is called with each event: what it raises interrupts the run, also on
    another thread, which Ctrl-C does not reach. `today` sets the current day of the demo service and of the run; other services
    refuse it.

    Ctrl-C interrupts it, and the next run of the definition resumes it. The run has a line in the journal, so `bellwether
    status` knows how it ended; hooks are not called.

    >>> import bellwether as bw
    >>> summary = bw.run("demo", progress=False)
    >>> summary.rows > 0
    True
    """
    # The key is in no local variable that a traceback would show.
    key = None if key is None else _bellwether.Key(key)  # type: ignore[assignment]
    options: _values.RunOptions = {
        "fresh": _values.flag("fresh", fresh),
        "wait": _values.seconds("wait", wait),
        "today": _values.day("today", today),
    }
    given = _values.named_definition(definition)
    try:
        with _progress.follow(_values.progress(progress)) as show:
            subject = _values.subject(given, _values.target_folders(given, data, archive))
            return Summary(*_bellwether.run(subject, options, key, show))  # type: ignore[arg-type]
    except KeyboardInterrupt as interrupt:
        if not interrupt.args:
            interrupt.args = ("interrupted: nothing was published, and the next run of the definition resumes it",)
        raise


def build(
    definition: Definition,
    *,
    as_of: Instant | None = None,
    vintage: Vintage | None = None,
    include: Include | None = None,
    data: PathLike | None = None,
    archive: PathLike | None = None,
    progress: bool | Callable[[_progress.Event], object] = True,
) -> Summary:
    """Builds and publishes the dataset of a definition from the archive, offline, like `bellwether build`.

    If the latest version has the same rows from the same runs, that is returned, and no further one is published.

    With `as_of`, `vintage` or `include`, the build is ad hoc: it is written to `datasets/NAME/builds/`. `as_of` is an instant, or
    the name of a version or of a run; `include="claimed"` counts what was imported, too. To read it without publishing, use `load`.

    >>> import bellwether as bw
    >>> summary = bw.build("demo", progress=False)
    >>> summary.path.parent.name
    'demo'
    """
    instant = _values.instant("as_of", as_of)
    given = _values.named_definition(definition)
    with _progress.follow(_values.progress(progress)) as show:
        folders = _values.target_folders(given, data, archive)
        subject = _values.subject(given, folders, as_of=instant, vintage=vintage, include=include)
        return Summary(*_bellwether.build(subject, show))
