"""Definitions as dicts.

A key whose value is none is left out, wherever it is.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from ._errors import UsageError

__all__: list[str] = []

#: What a definition is called that is not published, if it has no name.
NAMELESS = "definition"


def to_toml(definition: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a definition, and its text as TOML."""
    sections = _without_none(definition)
    name = sections.pop("name", NAMELESS)
    if not isinstance(name, str):
        raise UsageError(f"a definition cannot be named `{name}`", "use text in `name`")
    lines = [_line(key, value) for key, value in sections.items() if not isinstance(value, Mapping)]
    for section, values in sections.items():
        if isinstance(values, Mapping):
            lines += ["", f"[{_key(section)}]"]
            lines += [_line(key, value) for key, value in _without_none(values).items()]
    return str.__str__(name), "\n".join(lines).lstrip("\n") + "\n"


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that have a value."""
    return {key: value for key, value in values.items() if value is not None}


def _line(key: str, value: object) -> str:
    return f"{_key(key)} = {_value(value)}"


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise UsageError(f"a definition cannot have the key `{key!r}`", "keys are text")
    is_bare = key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
    return str.__str__(key) if is_bare else _text(key)


def _value(value: object) -> str:
    # Numbers and texts of other types, such as those of NumPy and of enumerations, are written as what they hold.
    kind = type(value)
    if isinstance(value, bool) or (kind.__module__ == "numpy" and kind.__name__ in {"bool", "bool_"}):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if kind.__name__ == "NaTType":
        raise UsageError("a definition cannot contain NaT", "leave the key out, or use a date")
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return _text(value.date().isoformat())
    if isinstance(value, datetime.date):
        return _text(value.isoformat())
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_line(key, inner) for key, inner in _without_none(value).items()) + " }"
    if isinstance(value, (set, frozenset)):
        # Sets have no order of their own, and the same definition has the same text.
        return "[" + ", ".join(sorted(_value(element) for element in value)) + "]"
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return "[" + ", ".join(_value(element) for element in value) + "]"
    hint = "use strings, numbers, booleans, dates, lists and dicts"
    raise UsageError(f"a definition cannot contain a value of type {kind.__name__}", hint)


def _text(text: str) -> str:
    """A TOML string: a JSON string, except for one character."""
    return json.dumps(str.__str__(text), ensure_ascii=False).replace("\x7f", "\\u007f")
