"""A Spark cluster on this machine computes a large dataset from its printed statement: the rows that a build writes.

    tests/spark/.venv/bin/python tests/spark/cluster.py [--bellwether FILE] [--pairs 1..12] [--kill]

Starts a master and two workers on loopback, archives every sector of the demo service with some pairs of period and regime
(12 are 7.5 million rows), and lets Spark write the result of the statement, with `--kill` while an executor is killed in the
middle. DuckDB runs the statement of its dialect. `tests/run` installs what this needs, and runs small statements on Spark.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow.dataset
import pyarrow.parquet
import pyspark
from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "tests/python"))

import check_sql  # noqa: E402

PERIODS = ["5d", "10d", "15d", "1m"]
REGIMES = ["neutral", "bear", "bull"]
DEFINITION = """\
[source]
service = "demo"

[signals]
sectors = ["communication-services", "consumer-discretionary", "consumer-staples", "energy", "financials", "healthcare",
           "industrials", "materials", "real-estate", "technology", "utilities"]
periods = {periods}
regimes = {regimes}

[join]
windows = ["7d", "30d"]
stats = ["count", "mean", "min", "max", "std", "last"]
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bellwether", type=Path, default=PROJECT / "target/release/bellwether")
    parser.add_argument("--pairs", type=int, default=12, choices=[1, 2, 3, 4, 6, 8, 9, 12])
    parser.add_argument("--kill", action="store_true", help="kill an executor in the middle")
    return parser.parse_args()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    """A master and two workers of one core each."""

    def __init__(self, folder):
        self.folder, self.port, self.processes = folder, free_port(), []
        home = Path(pyspark.__file__).parent
        self.environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        self.environment |= {"SPARK_DAEMON_MEMORY": "512m", "SPARK_WORKER_DIR": str(folder / "work")}
        ports = ["--host", "127.0.0.1", "--webui-port", "0"]
        self.start("master", "master.Master", *ports, "--port", str(self.port))
        for number in (1, 2):
            self.start(f"worker-{number}", "worker.Worker", *ports, "--cores", "1", "--memory", "1536m", self.url)

    @property
    def url(self):
        return f"spark://127.0.0.1:{self.port}"

    def start(self, name, what, *options):
        command = [f"{self.environment['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{what}", *options]
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))

    def executors(self):
        """The processes that workers started."""
        workers = {process.pid for process in self.processes[1:]}
        found = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in found.splitlines()]
        return [int(pid) for pid, parent, text in rows if int(parent) in workers and "ExecutorBackend" in text]

    def stop(self):
        for process in self.processes[::-1]:
            process.terminate()
            process.wait()


def session(url):
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.sql.session.timeZone": "UTC",
        # Files of 2 bytes a row look small enough to broadcast, whatever they hold.
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.shuffle.partitions": "8",
        "spark.executor.memory": "1400m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(),
    }
    builder = SparkSession.builder.master(url)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write(spark, text, folder, kill):
    """Writes the result of a statement, and calls `kill` once some tasks of it are done."""
    failures = []

    def work():
        try:
            spark.sql(text).write.parquet(str(folder))
        except Exception as failure:  # It is raised again where it is waited for.
            failures.append(failure)

    begun = time.monotonic()
    writer = threading.Thread(target=work)
    writer.start()
    tracker = spark.sparkContext.statusTracker()
    while kill and writer.is_alive():
        time.sleep(0.2)
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if sum(stage.numCompletedTasks for stage in stages if stage) >= 2:
            kill()
            kill = None
    writer.join()
    if failures:
        raise failures[0]
    assert not kill, "the statement was done before an executor could be killed"
    assert (folder / "_SUCCESS").exists(), "the write is not complete"
    return time.monotonic() - begun


def main():
    given = arguments()
    periods = max(count for count in range(1, 5) if given.pairs % count == 0 and given.pairs // count <= 3)
    regimes = given.pairs // periods
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)

        def bellwether(*words):
            return subprocess.run([given.bellwether, *words], cwd=folder, check=True, capture_output=True, text=True).stdout

        (folder / "pipelines").mkdir()
        text = DEFINITION.format(periods=json.dumps(PERIODS[:periods]), regimes=json.dumps(REGIMES[:regimes]))
        (folder / "pipelines/large.toml").write_text(text)
        bellwether("run", "large", "--quiet")
        built = folder / "output/datasets/large/latest/large.parquet"
        print(f"built {pyarrow.parquet.read_metadata(built).num_rows:,} rows", flush=True)

        cluster = Cluster(folder)
        try:

            def kill():
                executor = cluster.executors()[0]
                os.kill(executor, signal.SIGKILL)
                print(f"killed executor {executor}", flush=True)

            statement = bellwether("sql", "large", "--dialect", "spark")
            spark = session(cluster.url)
            seconds = write(spark, statement, folder / "result", kill if given.kill else None)
            spark.stop()
        finally:
            cluster.stop()
        # Spark names the parts in the order of their rows.
        parts = sorted(str(path) for path in (folder / "result").glob("part-*.parquet"))
        found = pyarrow.dataset.dataset(parts).to_table()
        check_sql.check(found, pyarrow.parquet.read_table(built, partitioning=None), statement)
        print(f"Spark: {found.num_rows:,} rows are the same, {seconds:.0f} s", flush=True)

        begun = time.monotonic()
        (folder / "large.sql").write_text(bellwether("sql", "large"))
        (folder / "cases.json").write_text(json.dumps([{"sql": str(folder / "large.sql"), "dataset": str(built)}]))
        python, script = PROJECT / "tests/.venv/bin/python", PROJECT / "tests/python/check_sql.py"
        subprocess.run([python, script, "duckdb", folder / "cases.json"], check=True, stdout=subprocess.DEVNULL)
        print(f"DuckDB: the rows are the same, {time.monotonic() - begun:.0f} s with the comparison", flush=True)


if __name__ == "__main__":
    main()
