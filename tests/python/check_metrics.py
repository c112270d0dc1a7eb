"""Reads metrics from a file or an address with the parser of prometheus_client, and has promtool check them.

Prints the samples as JSON: a list of name, labels and value.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

given = sys.argv[1]
if given.startswith("http"):
    with urlopen(given, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers["Content-Type"]
        text = answer.read().decode()
else:
    text = open(given, encoding="utf-8").read()

assert text.endswith("\n"), "the last line ends"
names, samples = set(), []
families = list(text_string_to_metric_families(text))
for family in families:
    assert family.name not in names, f"{family.name} is there twice"
    names.add(family.name)
    assert family.type in ("counter", "gauge"), f"{family.name} has no type"
    assert family.documentation and family.documentation.endswith("."), f"{family.name} has no help"
    assert re.fullmatch(r"bellwether_[a-z_]+", family.name), family.name
    assert not re.search(r"_(milliseconds|minutes|hours|ms|kilobytes|percent)$", family.name), "base units only"
    seen = set()
    for sample in family.samples:
        if family.type == "counter":
            assert sample.name == family.name + "_total", f"{sample.name} is a counter"
        else:
            assert not sample.name.endswith(("_total", "_count", "_sum", "_bucket")), f"{sample.name} is no counter"
        assert sample.timestamp is None, "the folder of the node exporter takes no timestamps"
        key = tuple(sorted(sample.labels.items()))
        assert key not in seen, f"{sample.name} {key} is there twice"
        seen.add(key)
        samples.append([sample.name, sample.labels, sample.value])
for line in text.splitlines():
    assert line.startswith(("# HELP ", "# TYPE ", "bellwether_")), line
assert families, "there are metrics"
promtool = shutil.which("promtool") or Path(sys.executable).with_name("promtool")
checked = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True)
assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", ""), checked
print(json.dumps(samples))
