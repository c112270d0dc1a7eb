"""Checks the output of `schedule print` with parsers and schemas: plists, Kubernetes objects, a workflow, DAGs."""

import ast
import plistlib
import re
import subprocess
import sys
from pathlib import Path

import yaml

folder = Path(sys.argv[1])

agent = plistlib.loads((folder / "launchd").read_bytes())
assert agent["ProgramArguments"][1] == "schedule" and agent["KeepAlive"] is True, agent
assert set(agent["EnvironmentVariables"]) == {"BELLWETHER_API_KEY_FILE"}

jobs = list(yaml.safe_load_all((folder / "kubernetes").read_text()))
jobs = [job for job in jobs if job]
names = [job["metadata"]["name"] for job in jobs]
assert re.fullmatch("bellwether-weekly-report-[0-9a-f]{6}", names[0]) and names[1:] == ["bellwether-nightly"], names
assert {job["spec"]["timeZone"] for job in jobs} == {"America/New_York"}
assert jobs[1]["spec"]["schedule"] == "30 18 * * 1-5", jobs[1]["spec"]["schedule"]
subprocess.run([Path(sys.executable).with_name("kubernetes-validate"), "--strict", folder / "kubernetes"], check=True)

workflow = folder / "workflow.yml"
workflow.write_text((folder / "github-actions").read_text())
check = Path(sys.executable).with_name("check-jsonschema")
subprocess.run([check, "--builtin-schema", "vendor.github-workflows", workflow], check=True)

dags = ast.parse((folder / "airflow").read_text())
calls = [node for node in ast.walk(dags) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "scheduled"]
assert [call.args[0].value for call in calls] == ["Weekly_report", "nightly"], "a DAG per definition"
