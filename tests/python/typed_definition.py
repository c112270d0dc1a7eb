"""Prints the types of a definition in Python, by the JSON Schema of definitions: `python/bellwether/_typed.py`."""

import json
import sys
from pathlib import Path

HEAD = '''"""Definitions as dicts, for editors and type checkers.

The keys are those of the JSON Schema, which says what each means. Wherever a list is taken, so is one value.
`BELLWETHER_BLESS=1 cargo nextest run definitions` writes this file.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict

__all__ = ["DefinitionDict"]

#: One name, or several.
Names = str | Iterable[str]
'''

schema = json.loads(Path(sys.argv[1]).read_text())


def resolved(value):
    return schema["$defs"][value["$ref"].rsplit("/", 1)[1]] if "$ref" in value else value


def is_choice(value):
    # There are many periods.
    return len(value.get("oneOf", [])) in range(1, 21)


def choices(value):
    return [json.dumps(it["const"]) for it in value["oneOf"]]


def hint(value):
    """The type of a value in Python."""
    name = value.get("$ref", "").rsplit("/", 1)[-1]
    if "properties" in resolved(value):
        return name.removesuffix("Section")
    if name in LISTED:
        return name
    value = resolved(value)
    if "anyOf" in value:
        kinds = [hint(it) for it in value["anyOf"]]
        # Any text may be the name of a ticker.
        kinds = [it for it in kinds if not (it.startswith("Literal") and "str" in kinds)]
        if "str | datetime.date" in kinds:
            kinds = [it for it in kinds if it != "str"]
        if kinds == ["str", "Iterable[str]"]:
            return "Names"
        return " | ".join(kinds)
    if "oneOf" in value:
        return f"Literal[{', '.join(choices(value))}]" if is_choice(value) else "str"
    match value["type"]:
        case "string":
            return "str | datetime.date" if value.get("format") == "date" else "str"
        case "array":
            # The words of a command are in order.
            kind = "Sequence" if value.get("minItems") and "type" in value["items"] else "Iterable"
            return f"{kind}[{hint(value['items'])}]"
        case "object":
            return f"Mapping[str, {hint(value['additionalProperties'])}]"
        case kind:
            return {"integer": "int", "number": "float", "boolean": "bool"}[kind]


def alias(name, value):
    """A closed set by name."""
    one_line = f"{name} = Literal[{', '.join(choices(value))}]"
    if len(one_line) <= 120:
        return f"\n{one_line}\n"
    lines = "".join(f"    {it},\n" for it in choices(value))
    return f"\n{name} = Literal[\n{lines}]\n"


def section(name, value, about):
    """The class of a section. A key may be a word of Python: then it is a call."""
    keys = {key: f"{hint(it)} | None" for key, it in value["properties"].items()}
    if "from" in keys:
        fields = "".join(f'        "{key}": {it},\n' for key, it in keys.items())
        return f'\n\n#: {about}\n{name} = TypedDict(\n    "{name}",\n    {{\n{fields}    }},\n    total=False,\n)\n'
    fields = "".join(f"    {key}: {it}\n" for key, it in keys.items())
    return f'\n\nclass {name}(TypedDict, total=False):\n    """{about}"""\n\n{fields}'


def listed(part):
    """The names of what stands in lists."""
    if isinstance(part, dict):
        yield part.get("items", {}).get("$ref", "").rsplit("/", 1)[-1] if "items" in part else ""
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else []:
        yield from listed(inner)


LISTED = {name for name in listed(schema) if name and is_choice(schema["$defs"][name])}
print(HEAD, end="")
for name in sorted(LISTED):
    print(alias(name, schema["$defs"][name]), end="")
abouts = {it["$ref"].rsplit("/", 1)[-1]: it["description"] for it in schema["properties"].values() if "$ref" in it}
for name, value in schema["$defs"].items():
    if "properties" in value:
        about = abouts.get(name, value["description"]).split(" Default:")[0]
        print(section(name.removesuffix("Section"), value, about), end="")
print("\n\nclass DefinitionDict(TypedDict, total=False):")
print('    """A definition: what to fetch from the service, and the dataset to build from it."""\n')
print("    #: The name that its dataset is published by.\n    name: str | None")
for key, value in schema["properties"].items():
    print(f"    {key}: {hint(value)} | None")
