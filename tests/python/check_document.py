"""Validates a document against a schema, and the schema itself."""

import json
import sys
from pathlib import Path

import jsonschema

schema, document = (json.loads(Path(path).read_text()) for path in sys.argv[1:3])
jsonschema.Draft202012Validator.check_schema(schema)
jsonschema.Draft202012Validator(schema).validate(document)
# Members outside the schema would be undocumented.
named = json.dumps(schema)
for name in document:
    assert f'"{name}"' in named, name
