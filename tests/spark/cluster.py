"""A Spark cluster on this machine computes the same rows as a build.

    tests/spark/.venv/bin/python tests/spark/cluster.py [--bellwether FILE] [--dataset small|demo|large] [--kill]

Starts a master, two workers and a Spark Connect server on loopback, archives a sector of the demo service (small), the
definition `demo`, or every sector with 12 pairs of period and regime (large: 7.5 million rows), and builds the dataset on this
machine, with `build --engine`, and by the statement that `sql` prints, with DuckDB and in a session of its own on the cluster.
With `--kill` an executor is killed in the middle of each. The program must be built with `--features spark`. `tests/run`
installs what this needs, and builds the small dataset.
"""

import argparse
import json
import os
import re
import shutil
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

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "tests/python"))

import check_sql  # noqa: E402

LARGE = """\
[source]
service = "demo"

[signals]
sectors = ["communication-services", "consumer-discretionary", "consumer-staples", "energy", "financials", "healthcare",
           "industrials", "materials", "real-estate", "technology", "utilities"]
periods = ["5d", "10d", "15d", "1m"]
regimes = ["neutral", "bear", "bull"]

[join]
windows = ["7d", "30d"]
stats = ["count", "mean", "min", "max", "std", "last"]
"""
SMALL = """\
source.service = "demo"
signals.sectors = ["utilities"]
"""
# Executors of 1.4 GB on workers that have a little more.
SETTINGS = {"spark_executor_memory": "1400m", "spark_sql_shuffle_partitions": "8"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bellwether", type=Path, default=PROJECT / "target/release/bellwether")
    parser.add_argument("--dataset", default="large", choices=["small", "demo", "large"])
    parser.add_argument("--kill", action="store_true", help="kill an executor in the middle")
    given = parser.parse_args()
    given.bellwether = given.bellwether.resolve()
    return given


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(condition, what, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} after {seconds} s"
        time.sleep(0.1)


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Cluster:
    """A master and two workers of one core each."""

    def __init__(self, folder):
        self.folder, self.port, self.processes = folder, free_port(), {}
        home = Path(pyspark.__file__).parent
        self.environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        self.environment |= {"SPARK_DAEMON_MEMORY": "512m", "SPARK_WORKER_DIR": str(folder / "work")}
        ports = ["--host", "127.0.0.1", "--webui-port", "0"]
        daemon = ["spark-class", "org.apache.spark.deploy"]
        self.start("master", daemon[0], f"{daemon[1]}.master.Master", *ports, "--port", str(self.port))
        for name in ("worker-1", "worker-2"):
            size = ["--cores", "1", "--memory", "1536m"]
            self.start(name, daemon[0], f"{daemon[1]}.worker.Worker", *ports, *size, self.url)

    @property
    def url(self):
        return f"spark://127.0.0.1:{self.port}"

    def start(self, name, command, *options):
        command = [f"{self.environment['SPARK_HOME']}/bin/{command}", *options]
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes[name] = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    def connect(self):
        """Starts a Spark Connect server with executors on the workers, and returns its address."""
        port = free_port()
        settings = check_sql.spark_settings(**SETTINGS, spark_connect_grpc_binding_port=str(port))
        # What a session needs, the client must set.
        for name in ("session.timeZone", "autoBroadcastJoinThreshold", "parquet.mergeSchema"):
            del settings[f"spark.sql.{name}"]
        options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        self.start("connect", "spark-submit", "--master", self.url, *options, "--class", server, "spark-internal")
        wait_for(lambda: self.processes["connect"].poll() is not None or listens(port), "no Spark Connect server")
        assert self.processes["connect"].poll() is None, (self.folder / "connect.log").read_text()
        return f"spark://127.0.0.1:{port}"

    def executors(self):
        """The processes that workers started."""
        workers = {process.pid for name, process in self.processes.items() if name.startswith("worker")}
        found = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in found.splitlines()]
        return [int(pid) for pid, parent, text in rows if int(parent) in workers and "ExecutorBackend" in text]

    def kill_executor(self):
        executor = self.executors()[0]
        os.kill(executor, signal.SIGKILL)
        print(f"killed executor {executor}", flush=True)

    def stop(self, *names):
        for name in names or list(self.processes)[::-1]:
            process = self.processes.pop(name)
            process.terminate()
            process.wait()


def built_on(cluster, run, folder, kill):
    """Has the cluster build the dataset in a store, and returns the version there."""
    engine = cluster.connect()
    store = folder / "store"
    words = ["build", "it", "--engine", engine, "--output", f"file://{store}"]
    begun = time.monotonic()
    process = subprocess.Popen([*run, *words], cwd=folder, stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL)
    told = []
    for line in process.stderr:
        told.append(line)
        done = re.match(r"spark: (\d+) of \d+ tasks", line)
        if kill and done and int(done[1]) >= 2:
            cluster.kill_executor()
            kill = False
    assert process.wait() == 0, "".join(told)
    assert not kill, f"the dataset was built before an executor could be killed: {''.join(told)}"
    print(f"build --engine: {time.monotonic() - begun:.0f} s", flush=True)
    cluster.stop("connect")
    latest = json.loads((store / "datasets/it/latest.json").read_text())
    return store / "datasets/it" / latest["version"]


def written_by(cluster, statement, folder, kill):
    """Writes the result of a statement with a session on the cluster, and kills an executor once some tasks are done."""
    spark = check_sql.spark_session(cluster.url, **SETTINGS)
    failures = []

    def work():
        try:
            spark.sql(statement).write.parquet(str(folder))
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
            cluster.kill_executor()
            kill = False
    writer.join()
    if failures:
        raise failures[0]
    assert not kill, "the statement was done before an executor could be killed"
    assert (folder / "_SUCCESS").exists(), "the write is not complete"
    print(f"printed SQL on Spark: {time.monotonic() - begun:.0f} s", flush=True)
    spark.stop()


def rows(folder):
    # Spark names the parts in the order of their rows.
    return pyarrow.dataset.dataset(sorted(str(path) for path in folder.glob("part-*.parquet"))).to_table()


def main():
    given = arguments()
    run = [str(given.bellwether)]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)

        def bellwether(*words):
            return subprocess.run([*run, *words], cwd=folder, check=True, capture_output=True, text=True).stdout

        (folder / "pipelines").mkdir()
        definitions = {"small": SMALL, "demo": (PROJECT / "pipelines/demo.toml").read_text(), "large": LARGE}
        (folder / "pipelines/it.toml").write_text(definitions[given.dataset])
        bellwether("run", "it", "--quiet")
        built = folder / "output/datasets/it/latest"
        expected = pyarrow.parquet.read_table(built / "it.parquet", partitioning=None)
        print(f"built {expected.num_rows:,} rows", flush=True)
        statement = bellwether("sql", "it", "--dialect", "spark")

        cluster = Cluster(folder)
        try:
            version = built_on(cluster, run, folder, given.kill)
            written_by(cluster, statement, folder / "result", given.kill)
        finally:
            cluster.stop()
        check_sql.check(rows(version), expected, statement)
        check_sql.check(rows(folder / "result"), expected, statement)
        # The version is described as the one that was built here, but for where it comes from.
        records = [json.loads((version / "dataset.json").read_text()) for version in (built, version)]
        for name in ("content", "rows", "columns", "sort", "facts", "as_of", "runs"):
            assert records[0][name] == records[1][name], f"`{name}` differs: {records}"
        # A machine that fetches it reads and verifies it as any other.
        shutil.rmtree(folder / "output/datasets")
        bellwether("store", "pull", "--store", f"file://{folder / 'store'}")
        bellwether("verify", "--store", f"file://{folder / 'store'}")
        bellwether("verify")
        bellwether("show", "it", "--tail", "3")
        print(f"Spark: {expected.num_rows:,} rows are the same", flush=True)

        begun = time.monotonic()
        here = folder / "expected.parquet"
        pyarrow.parquet.write_table(expected, here)
        (folder / "it.sql").write_text(bellwether("sql", "it"))
        (folder / "cases.json").write_text(json.dumps([{"sql": str(folder / "it.sql"), "dataset": str(here)}]))
        python, script = PROJECT / "tests/.venv/bin/python", PROJECT / "tests/python/check_sql.py"
        subprocess.run([python, script, "duckdb", folder / "cases.json"], check=True, stdout=subprocess.DEVNULL)
        print(f"DuckDB: the rows are the same, {time.monotonic() - begun:.0f} s with the comparison", flush=True)


if __name__ == "__main__":
    main()
