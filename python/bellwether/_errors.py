"""Exceptions. All derive from `BellwetherError`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "BellwetherError",
    "ChecksError",
    "DataError",
    "DefinitionError",
    "ForkedError",
    "Interrupted",
    "NotFoundError",
    "Problem",
    "ServiceError",
    "StorageError",
    "TemporaryError",
    "UsageError",
]


class Problem(NamedTuple):
    """A problem of a definition, with its location."""

    message: str
    hint: str | None
    #: Counted from one, in the file or in the TOML text of a dict.
    line: int
    #: Counted from one, in characters.
    column: int


class BellwetherError(Exception):
    """A failed operation of Bellwether.

    The message says what failed, why, and what to do about it.

    >>> import bellwether as bw
    >>> try:
    ...     bw.check("demmo")
    ... except bw.BellwetherError as error:
    ...     print(error.hint)
    did you mean `demo`?
    """

    #: What to do about it, in the words of the command line.
    hint: str | None
    #: The chain of causes, nearest first.
    reasons: list[str]
    #: The problems of a definition.
    problems: list[Problem]

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        reasons: Sequence[str] = (),
        problems: Sequence[tuple[str, str | None, int, int]] = (),
    ) -> None:
        self.hint = hint
        self.reasons = list(reasons)
        self.problems = [Problem(*problem) for problem in problems]
        lines = [message, *(f"  because: {reason}" for reason in self.reasons)]
        # The text of problems includes their hints.
        if self.hint is not None and not self.problems:
            lines.append(f"hint: {self.hint}")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (type(self), self.args, self.__dict__))


def _again(kind: type[BellwetherError], args: tuple[object, ...], state: dict[str, object]) -> BellwetherError:
    """Rebuilds an exception in another process."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class UsageError(BellwetherError, ValueError):
    """Invalid arguments, or an invalid combination of them."""


class DefinitionError(BellwetherError, ValueError):
    """A definition with problems; see `problems`."""


class NotFoundError(BellwetherError, FileNotFoundError):
    """A definition, a dataset, a version or an archive that does not exist, or has no rows."""


class ServiceError(BellwetherError):
    """A service that cannot be reached, refuses the key, or violates its interface."""


class TemporaryError(BellwetherError):
    """A temporary failure of the service, or another run of the same definition. The same call resumes later."""


class DataError(BellwetherError):
    """Data that does not allow the operation."""


class ChecksError(DataError):
    """Data that failed a check. Nothing was published; the archive keeps the fetched data."""


class StorageError(BellwetherError):
    """A file or folder that cannot be read or written, or that is damaged."""


class Interrupted(BellwetherError):
    """An operation that was cancelled, but not by a signal. The same call resumes."""


class ForkedError(BellwetherError):
    """A process that was forked after Bellwether was used. Start workers with `spawn`."""
