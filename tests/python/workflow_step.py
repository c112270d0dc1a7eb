"""Prints the commands of a workflow that run what is due."""

import sys
from pathlib import Path

import yaml

steps = yaml.safe_load(Path(sys.argv[1]).read_text())["jobs"]["schedule"]["steps"]
[commands] = [step["run"] for step in steps if "schedule --once" in step.get("run", "")]
print(commands)
