"""The shipped definitions are valid under the schema that they name, and the schema rejects invalid ones."""

import json
import sys
import tomllib
from pathlib import Path

import jsonschema

folder = Path(sys.argv[1])
schema = json.loads((folder / "definition.schema.json").read_text())
validator = jsonschema.Draft202012Validator(schema)
validator.check_schema(schema)

definitions = {path.stem: tomllib.loads(path.read_text()) for path in folder.glob("*.toml")}
assert len(definitions) >= 3, definitions
for name, definition in definitions.items():
    assert not list(validator.iter_errors(definition)), name

for wrong in [
    {"sorce": {}},
    {"signals": {"periods": ["45d"]}},
    {"signals": {"periods": 15}},
    {"output": {"format": "xls"}},
    {"source": {"api_key": "x"}},
    {"sentiment": {"articles": None}},
]:
    assert list(validator.iter_errors(wrong)), wrong
