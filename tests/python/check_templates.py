"""Checks the templates of docs/operations.md for platforms, in a folder of its own, and prints the commands that they call."""

import ast
import json
import os
import plistlib
import re
import subprocess
import sys
from pathlib import Path

import yaml

page, folder = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
[section] = re.findall(r"^## Other platforms\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
blocks = re.findall(r"^```(\w+)\n(.*?)^```\n", section, re.MULTILINE | re.DOTALL)
assert [language for language, _ in blocks] == ["yaml", "yaml", "python", "xml"], blocks
for _, text in blocks:
    assert len(text.splitlines()) <= 25, text
job, workflow, dag, agent = (text for _, text in blocks)


def tool(name, *arguments):
    subprocess.run([Path(sys.executable).with_name(name), *arguments], check=True, stdout=sys.stderr)


(folder / "job.yaml").write_text(job)
tool("kubernetes-validate", "--strict", folder / "job.yaml")
(folder / "workflow.yaml").write_text(workflow)
tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows", folder / "workflow.yaml")
[container] = yaml.safe_load(job)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
commands = [container["args"], plistlib.loads(agent.encode())["ProgramArguments"][1:]]
[command] = [node.value for node in ast.parse(dag).body if isinstance(node, ast.Assign)]
commands.append(ast.literal_eval(command)[1:])

# The step of the workflow, with a program that ends with one code after the other.
script = yaml.safe_load(workflow)["jobs"]["nightly"]["steps"][-1]["run"]
commands.append(re.search("bellwether (run .*?) \\|\\|", script)[1].split())
(folder / "sleep").write_text("#!/bin/sh\n")
(folder / "bellwether").write_text('#!/bin/sh\nread -r code rest < codes\necho "$rest" > codes\nexit "$code"\n')
for name in ["sleep", "bellwether"]:
    (folder / name).chmod(0o755)
for codes, expected in [("0", 0), ("75 75 0", 0), ("75 4 0", 4), ("75 75 75 75 75 0", 75)]:
    (folder / "codes").write_text(codes + "\n")
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    step = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=folder, env=environment)
    assert step.returncode == expected, (codes, step.returncode)

print(json.dumps(commands))
