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
    {"source": {"connections": 0}},
    {"source": {"connections": 65}},
    {"source": {"requests_per_second": 0}},
    {"source": {"base_url": "ftp://a.example"}},
    {"source": {"base_url": "$A-B"}},
    {"signals": {"pairs": ["5d neutrl"]}},
    {"signals": {"pairs": ["31d bull"]}},
    {"filter": {"min_confidence": 0}},
    {"filter": {"signal": "hold"}},
    {"output": {"level": 0}},
    {"output": {"level": 23}},
    {"output": {"keep": 0}},
    {"output": {"row_group_rows": 999}},
    {"store": {}},
    {"schedule": {"timezone": "UTC"}},
]:
    assert list(validator.iter_errors(wrong)), wrong

for fine in [
    {"source": {"base_url": "$VENDOR_URL", "sentiment_base_url": "https://a.example/v1"}},
    {"signals": {"pairs": ["5d bull", "30d bear", "1m neutral"], "exclude": "XOM"}},
    {"filter": {"signal": "buy", "min_confidence": 0.6}},
    {"output": {"format": ["csv.gz", "csv.zst"]}},
    {"join": {"stats": ["sum", "median", "decay"], "half_lives": ["3d"]}},
]:
    assert not list(validator.iter_errors(fine)), fine


def parts(part):
    """Every part of a schema that is a schema of its own, or may be one."""
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else []:
        yield from parts(inner)


assert schema["$id"].startswith("urn:bellwether:definition:"), schema["$id"]
sets = [part["oneOf"] for part in parts(schema) if "oneOf" in part]
assert len(sets) > 10, sets
for choice in (choice for of_set in sets for choice in of_set):
    assert choice["const"] and choice["description"].endswith("."), choice
for part in parts(schema):
    assert "enum" not in part, part
    if part.get("type") in ("integer", "number"):
        assert "minimum" in part or "exclusiveMinimum" in part, part
    if part.get("type") == "string":
        limits = {"pattern", "format", "oneOf", "examples", "minLength"}
        assert limits & part.keys() or part.keys() <= {"type", "description", "default"}, part
    for name, key in part.get("properties", {}).items():
        if isinstance(key, dict):
            assert key.get("description"), name
