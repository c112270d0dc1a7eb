"""The compiled part."""

from pathlib import Path
from typing import Any, Callable, final

from ._values import ArrowStream, LoadOptions, Part, QuestionOptions, RunOptions, SkillOptions, TableColumns

__all__ = [
    "Key",
    "Rows",
    "__version__",
    "articles",
    "audit_table",
    "build",
    "check",
    "data_folder",
    "datasets",
    "demo_prices",
    "diff",
    "get",
    "history",
    "load",
    "main",
    "quality",
    "query",
    "refuse_fork",
    "report",
    "restore",
    "revisions",
    "run",
    "runs",
    "sectors",
    "skill",
    "tickers",
]

__version__: str

_Given = str | tuple[str, str]

@final
class Rows:
    @property
    def columns(self) -> list[tuple[str, str]]: ...
    @property
    def count(self) -> int | None: ...
    def counted(self) -> int: ...
    def factor(
        self, part: Part, value: str, pair_of: tuple[str | None, str | None], is_by_session: bool
    ) -> Rows: ...
    def head(self, count: int) -> Rows: ...
    def read(self) -> Rows: ...
    def text(self, count: int) -> list[list[str]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Key:
    def __new__(cls, text: str) -> Key: ...

def load(
    dataset: _Given, folders: tuple[Path, Path], options: LoadOptions, part: Part, prices: list[Path] | ArrowStream | None
) -> tuple[Rows | None, list[tuple[str, Rows]], str]: ...
def restore(stream: bytes) -> Rows: ...
def get(
    question: QuestionOptions, definition: _Given | None, demo: bool, key: Key | None, archive: Path | None
) -> tuple[Rows, Rows | None]: ...
def check(definition: _Given) -> str: ...
def sectors(definition: _Given, key: Key | None) -> str: ...
def tickers(definition: _Given, key: Key | None) -> str: ...
def run(
    definition: _Given,
    folders: tuple[Path, Path],
    options: RunOptions,
    key: Key | None,
    progress: Callable[[Any], object] | None,
) -> tuple[str, str]: ...
def build(
    definition: _Given,
    folders: tuple[Path, Path],
    state: tuple[str | None, str | None, str | None],
    progress: Callable[[Any], object] | None,
) -> tuple[str, str]: ...
def revisions(
    subject: tuple[_Given | None, Path, Path, str | None], service: str | None, after: str | None, until: str | None
) -> tuple[Rows, str]: ...
def quality(
    subject: tuple[_Given | None, Path, Path, str | None], service: str | None, as_of: str | None
) -> tuple[Rows, str]: ...
def skill(
    subject: tuple[_Given | None, Path, Path, str | None], prices: list[Path] | ArrowStream | None, how: SkillOptions
) -> tuple[Rows, list[Rows], str, str]: ...
def audit_table(
    table: list[Path] | ArrowStream,
    subject: tuple[_Given | None, Path, Path, str | None],
    service: str | None,
    columns: TableColumns,
) -> tuple[Rows, str]: ...
def demo_prices(today: str | None, seed: int | None) -> Rows: ...
def diff(datasets: Path, before: str, after: str) -> tuple[Rows, str]: ...
def query(subject: tuple[_Given, Path, Path, str | None], sql: str, as_of: str | None) -> Rows: ...
def articles(subject: tuple[_Given, Path, Path, str | None], as_of: str | None, part: Part) -> Rows: ...
def history(
    subject: tuple[_Given, Path, Path, str | None], as_of: str | None, date: str | None, part: Part
) -> Rows: ...
def runs(archive: Path) -> Rows: ...
def datasets(datasets: Path) -> Rows: ...
def data_folder(definition: _Given | None = None) -> Path: ...
def report(name: str | None, data: Path, archive: Path, as_of: str | None) -> tuple[str, str, str]: ...
def refuse_fork() -> None: ...
def main(arguments: list[str]) -> int: ...
