"""Loads the output of `schedule print --for airflow` with Airflow's DagBag: no import errors, no warnings, a DAG per definition."""

import os
import sys
from pathlib import Path

dags, home = sys.argv[1:]
os.environ["AIRFLOW_HOME"] = home
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
Path(home).mkdir()

from airflow.dag_processing.dagbag import DagBag  # noqa: E402, it reads the variables

bag = DagBag(dag_folder=dags)
assert not bag.import_errors, bag.import_errors
assert not bag.captured_warnings, bag.captured_warnings
assert sorted(bag.dags) == ["bellwether-Weekly_report", "bellwether-nightly"], bag.dags
nightly = bag.dags["bellwether-nightly"]
assert nightly.timetable.serialize()["expression"] == "30 18 * * 1-5", nightly.timetable.serialize()
assert nightly.timetable.serialize()["timezone"] == "America/New_York", nightly.timetable.serialize()
assert (nightly.catchup, nightly.max_active_runs) == (False, 1)
[run] = nightly.tasks
assert (run.task_id, run.retries, run.execution_timeout) == ("run", 10, None)
