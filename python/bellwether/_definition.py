"""Definitions as dicts."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import UsageError

__all__: list[str] = []

#: The default name of a definition.
NAMELESS = "definition"


def written(definition: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a definition, and its text as TOML."""
    sections = dict(definition)
    name = sections.pop("name", NAMELESS)
    lines = [_line(key, value) for key, value in sections.items() if not isinstance(value, Mapping)]
    for section, values in sections.items():
        if isinstance(values, Mapping):
            lines += ["", f"[{_key(section)}]"]
            lines += [_line(key, value) for key, value in values.items() if value is not None]
    return str(name), "\n".join(lines).lstrip("\n") + "\n"


def _line(key: str, value: object) -> str:
    return f"{_key(key)} = {_value(value)}"


def _key(key: str) -> str:
    is_bare = key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
    return key if is_bare else _text(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, datetime.date):
        return _text(value.isoformat())
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_line(key, inner) for key, inner in value.items()) + " }"
    if isinstance(value, (Sequence, set, frozenset)):
        return "[" + ", ".join(_value(element) for element in value) + "]"
    hint = "use strings, numbers, booleans, dates, lists and dicts"
    raise UsageError(f"a definition cannot contain a value of type {type(value).__name__}", hint)


def _text(text: str) -> str:
    """A TOML string: a JSON string, except for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
