"""A document is valid by a schema, and the schema is one."""

import json
import sys
from pathlib import Path

import jsonschema

schema, document = (json.loads(Path(path).read_text()) for path in sys.argv[1:3])
jsonschema.Draft202012Validator.check_schema(schema)
jsonschema.Draft202012Validator(schema).validate(document)
# A member that the schema does not name would not be documented.
named = json.dumps(schema)
for name in document:
    assert f'"{name}"' in named, name
