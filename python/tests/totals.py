"""Writes `python/bellwether/_totals.py`, the types of the totals of answers, from the schemas that the program prints.

    python/.venv/bin/python python/tests/totals.py > python/bellwether/_totals.py
"""

from __future__ import annotations

import json
import keyword
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

#: The commands whose totals Python has, and what the type of each is called.
COMMANDS = {
    "audit revisions": "RevisionTotals",
    "audit quality": "QualityTotals",
    "audit skill": "SkillTotals",
    "diff": "DiffTotals",
}

HEADING = '''\
"""The totals of answers, as `bellwether schema --for` describes them.

Written by `python/tests/totals.py`; a test compares it with the schemas.
"""

from __future__ import annotations

from typing import Literal, TypedDict

__all__ = [{names}]
'''

PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def main() -> None:
    def schema(command: str) -> Any:
        arguments = [sys.executable, "-m", "bellwether", "schema", "--for", command]
        return json.loads(subprocess.run(arguments, check=True, stdout=subprocess.PIPE).stdout)

    print(module(schema), end="")


def module(schema: Callable[[str], Any]) -> str:
    """The text of the module, from the schema of each command."""
    classes: dict[str, str] = {}
    for command, name in COMMANDS.items():
        document = schema(command)
        for part, described in document["$defs"].items():
            written = "\n".join(_type(part, described))
            assert classes.setdefault(part, written) == written, f"two types are called {part}"
        # It says which form the document has, and is of no use to somebody who has the package.
        properties = {key: value for key, value in document["properties"].items() if key != "version"}
        classes[name] = "\n".join(_type(name, {**document, "properties": properties}))
    names = ", ".join(f'"{name}"' for name in sorted(COMMANDS.values()))
    return "\n\n".join([HEADING.format(names=names), *(text + "\n" for text in classes.values())])


def _type(name: str, described: Any) -> Iterator[str]:
    """The lines of a type."""
    description = described.get("description")
    if "properties" not in described:
        yield from (f"#: {line}" for line in textwrap.wrap(description or name, 110))
        yield f"{name} = {_hint(described)}"
        return
    keys = described["properties"]
    if any(keyword.iskeyword(key) for key in keys):
        yield from (f"#: {line}" for line in textwrap.wrap(description or name, 110))
        yield f'{name} = TypedDict(\n    "{name}",\n    {{'
        yield from (f'        "{key}": {_hint(value, quoted=True)},' for key, value in keys.items())
        yield f'    }},\n)\n{name}.__doc__ = """{description or name}"""'
        return
    yield f"class {name}(TypedDict):"
    yield from textwrap.wrap(f'"""{description or name}"""', 110, initial_indent="    ", subsequent_indent="    ")
    yield ""
    for key, value in keys.items():
        lines = textwrap.wrap(value.get("description", ""), 110)
        yield from (f"    #: {line}" for line in lines)
        yield f"    {key}: {_hint(value)}"


def _hint(value: Any, *, quoted: bool = False) -> str:
    """The type of a value."""
    if "$ref" in value:
        name = value["$ref"].rsplit("/", 1)[1]
        return f'"{name}"' if quoted else name
    if "const" in value:
        return f"Literal[{value['const']!r}]".replace("'", '"')
    if choices := value.get("anyOf") or value.get("oneOf"):
        hints = [_hint(choice, quoted=quoted) for choice in choices]
        if all(hint.startswith("Literal[") for hint in hints):
            return f"Literal[{', '.join(hint[8:-1] for hint in hints)}]"
        joined = " | ".join(dict.fromkeys(hint.strip('"') for hint in hints))
        return f'"{joined}"' if quoted else joined
    kinds = value["type"] if isinstance(value["type"], list) else [value["type"]]
    joined = " | ".join(dict.fromkeys(_plain(kind, value) for kind in kinds))
    return f'"{joined}"' if quoted and not joined.isidentifier() else joined


def _plain(kind: str, value: Any) -> str:
    if kind == "array":
        return f"list[{_hint(value['items'])}]"
    if kind == "object":
        of = value.get("additionalProperties")
        return f"dict[str, {_hint(of) if isinstance(of, dict) else 'object'}]"
    return PLAIN[kind]


if __name__ == "__main__":
    main()
