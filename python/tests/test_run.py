"""Runs and builds: definitions as dicts, keys, interrupting, threads, forks."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import bellwether as bw
from conftest import Service

SIGNALS = {"sectors": ["energy"], "periods": ["5d"]}
KEY = "a-key-that-nobody-may-see-4711"


def test_an_unchanged_build_publishes_no_further_version(place: Path) -> None:
    first = bw.run("demo", today="2026-11-19", progress=False)
    # The run is the newest, and so is its version.
    for _ in range(7):
        again = bw.build("demo", progress=False)
        assert again.path == first.path and again.rows == first.rows and again["content"] == first["content"]
        assert "already built and unchanged since" in again.notes
    assert list(bw.datasets()) == [f"demo/{first.path.name}"]
    # Something new is a version: another definition, another run, or the old definition again.
    file = place / "pipelines/demo.toml"
    text = file.read_text()
    file.write_text(text + 'filter.tickers = ["XOM"]\n')
    narrow = bw.build("demo", progress=False)
    assert narrow.path != first.path and narrow.rows < first.rows
    file.write_text(text)
    back = bw.build("demo", progress=False)
    assert back.path not in (first.path, narrow.path) and back.rows == first.rows
    bw.run("demo", today="2026-11-20", progress=False)
    assert len(bw.datasets()) == 4
    # A file that somebody changed is written again.
    damaged = bw.load("demo").path / "demo.parquet"
    damaged.unlink()
    damaged.write_bytes(b"edited")
    mended = bw.build("demo", progress=False)
    assert mended.path != damaged.parent and len(mended.load()) == mended.rows


def test_a_run_publishes_and_returns_a_summary(place: Path) -> None:
    summary = bw.run("demo", progress=False, today="2026-11-20")
    assert summary.rows == summary.load().to_polars().height
    assert summary.path == Path(summary["dataset"])
    assert "rows" in repr(summary) and "<table" in summary._repr_html_()
    assert json.loads((summary.path / "dataset.json").read_text())["rows"] == summary.rows
    again = bw.run("demo", progress=False, today="2026-11-21")
    assert again["as_of"] > summary["as_of"]


def test_a_progress_line_never_wraps(place: Path) -> None:
    drawn = subprocess.run(
        [sys.executable, "-c", "import sys, bellwether as bw; sys.stderr.isatty = lambda: True; bw.run('demo')"],
        env={**os.environ, "COLUMNS": "30"},
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    lines = drawn.replace("\n", "\r").split("\r")
    assert max(len(line.removeprefix("\x1b[K")) for line in lines) == 29


def test_a_progress_function_gets_each_event(place: Path) -> None:
    events: list[bw.Event] = []
    summary = bw.run("demo", progress=events.append)
    finished = [event for event in events if event["event"] == "finished"]
    assert [event["stage"] for event in finished] == ["signals", "articles", "archive", "dataset"]
    assert finished[0]["done"] == finished[0]["total"] == 8
    assert finished[-1]["rows"] == summary.rows
    assert {"started", "finished"} <= {event["event"] for event in events}


def test_a_function_that_raises_stops_the_run(place: Path) -> None:
    def follow(event: bw.Event) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        bw.run("demo", progress=follow)
    assert not Path("output/datasets/demo/latest").exists()


def test_bars_are_only_for_terminals_and_notebooks(place: Path, capfd) -> None:
    bw.run("demo")
    assert "".join(capfd.readouterr()) == ""


def test_a_terminal_shows_a_line_for_each_stage(place: Path) -> None:
    import pty

    main, other = pty.openpty()
    script = 'import bellwether as bw; bw.run("demo")'
    process = subprocess.Popen([sys.executable, "-c", script], stdout=other, stderr=other, stdin=other)
    os.close(other)
    shown = b""
    try:
        while chunk := os.read(main, 4096):
            shown += chunk
    except OSError:  # The other end is closed.
        pass
    assert process.wait(timeout=60) == 0, shown
    lines = [line.rsplit("\r", 1)[-1].removeprefix("\x1b[K") for line in shown.decode().split("\r\n")]
    assert [line.split()[0] for line in lines if line] == ["signals", "articles", "archive", "dataset"], lines
    assert "8/8" in lines[0] and "rows" in lines[0]


def test_a_warning_is_a_python_warning(place: Path, service: Service) -> None:
    Path("key.txt").write_text("demo")
    Path("key.txt").chmod(0o644)
    definition = {"name": "mine", "source": {**service.source, "api_key_file": "key.txt"}, "signals": SIGNALS}
    with pytest.warns(bw.BellwetherWarning, match="other users can read the API key"):
        bw.run(definition, progress=False)


def test_a_definition_is_a_dict_and_needs_no_file(place: Path) -> None:
    definition = {"name": "mine", "source": {"service": "demo"}, "signals": SIGNALS, "output": {"format": ["parquet"]}}
    checked = bw.check(definition)
    assert (checked["ok"], checked["problems"], checked["path"]) == (True, [], "mine.toml")
    assert [column["name"] for column in checked["plan"]["columns"]][:2] == ["ticker", "date"]
    summary = bw.run(definition, progress=False)
    assert summary.path.parent == place / "output/datasets/mine"
    # Without a file, the definition is that of the published version.
    assert bw.load("mine", vintage="latest").to_polars().height == summary.rows
    assert bw.build("mine", progress=False)["content"] == summary["content"]


@pytest.mark.parametrize(
    "definition",
    [
        {"description": 'quotes " and \\ and \n and ü and \x7f', "source": {"service": "demo"}, "signals": SIGNALS},
        {"source": {"service": "demo"}, "signals": SIGNALS, "checks": {"universe": 0.5}, "output": {"keep": 9}},
        {"source": {"service": "demo"}, "signals": SIGNALS, "filter": {"from": datetime.date(2026, 1, 1)}},
    ],
    ids=["texts", "numbers", "dates"],
)
def test_every_value_of_a_dict_reaches_the_plan(definition: dict) -> None:
    tomllib = pytest.importorskip("tomllib")
    read = tomllib.loads(bw.check(definition)["plan"]["text"])
    assert read == json.loads(json.dumps(definition, default=str))


def test_the_problems_of_a_dict_have_locations() -> None:
    signals = {**SIGNALS, "periods": ["5d", "45d"], "regime": ["bull"]}
    definition = {"name": "mine", "source": {"service": "demo"}, "signals": signals}
    checked = bw.check(definition)
    assert (checked["ok"], checked["plan"]) == (False, None)
    problems = [bw.Problem(**problem) for problem in checked["problems"]]
    assert [problem.message for problem in problems] == ["unknown period `45d`", "unknown key `regime` in `[signals]`"]
    assert problems[0].hint == "periods are 1d to 30d and 1m to 6m"
    assert all(problem.line > 1 and problem.column >= 1 for problem in problems)
    with pytest.raises(bw.DefinitionError, match="unknown period `45d`") as caught:
        bw.run(definition, progress=False)
    assert caught.value.problems == problems
    assert isinstance(caught.value, ValueError)


def test_the_key_is_an_argument_and_is_never_shown(place: Path, service: Service, capfd) -> None:
    definition = {"name": "mine", "source": service.source, "signals": SIGNALS}
    with pytest.raises(bw.ServiceError, match="no API key"):
        bw.run(definition, progress=False)
    assert bw.run(definition, key=service.key, progress=False).rows > 0

    def leak(secret: str) -> str:
        try:
            bw.run(definition, key=secret, progress=False)
        except bw.ServiceError as error:
            frames = traceback.TracebackException.from_exception(error, capture_locals=True)
            own = [line for line in frames.format() if "in leak" not in line]
            return "".join(own) + repr(error) + str(error.__dict__)
        raise AssertionError("the service took a wrong key")

    shown = leak(KEY)
    assert "refused the API key" in shown
    assert KEY not in shown
    assert KEY not in "".join(capfd.readouterr())
    for file in place.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_a_run_uses_the_key_of_the_environment(place: Path, service: Service, monkeypatch) -> None:
    monkeypatch.setenv("BELLWETHER_API_KEY", service.key)
    bw.run({"name": "mine", "source": service.source, "signals": SIGNALS}, progress=False)


def test_today_is_only_for_the_demo_service(place: Path, service: Service) -> None:
    with pytest.raises(bw.UsageError, match="`today` is for the demo service"):
        bw.run({"name": "mine", "source": service.source, "signals": SIGNALS}, key="demo", today="2026-03-31")


def test_ctrl_c_stops_a_run_at_once_and_the_next_one_resumes(place: Path, service: Service) -> None:
    definition = {
        "name": "mine",
        "source": {"name": "vendor", **service.source, "requests_per_second": 10},
        "signals": {"sectors": ["energy", "utilities", "materials"], "periods": ["5d", "1m", "15d"]},
    }
    script = f"""
        import os, signal, threading, time
        import bellwether as bw
        sent = []
        def interrupt():
            time.sleep(1.5)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            bw.run({definition!r}, key="demo", progress=False)
        except KeyboardInterrupt as error:
            print(f"{{(time.monotonic() - sent[0]) * 1000:.0f}}", error)
    """
    # The best of three: the machine may be busy.
    times = []
    for _ in range(3):
        command = [sys.executable, "-c", textwrap.dedent(script)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        milliseconds, said = ended.stdout.split(maxsplit=1)
        assert "the next run of the definition resumes it" in said
        times.append(int(milliseconds))
        if times[-1] < 500:
            break
    assert min(times) < 500, f"{times} ms"
    assert not Path("output/datasets/mine").exists() or not any(Path("output/datasets/mine").iterdir())
    unfinished = list(Path("output/archive/vendor/.partial").iterdir())
    assert len(unfinished) == 1
    events: list[bw.Event] = []
    assert bw.run(definition, key="demo", progress=events.append).rows > 0
    assert [event["answers"] > 0 for event in events if event["event"] == "resumed"] == [True]
    assert not list(Path("output/archive/vendor/.partial").iterdir())


def test_other_threads_continue_during_a_run(place: Path) -> None:
    ticks = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    bw.run("demo", progress=False)
    bw.load("demo").to_polars()
    done.set()
    thread.join()
    gaps = [after - before for before, after in zip(ticks, ticks[1:])]
    assert max(gaps) < 1.0, f"other threads waited for {max(gaps):.1f} s"


def test_two_concurrent_runs_both_publish(place: Path) -> None:
    definitions = [{"name": name, "source": {"service": "demo"}, "signals": SIGNALS} for name in ("one", "other")]
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda definition: bw.run(definition, progress=False).rows, definitions))
    assert rows[0] == rows[1] > 0


def test_a_second_run_of_a_definition_names_the_lock_holder(place: Path, service: Service) -> None:
    slow = {"name": "mine", "source": {**service.source, "requests_per_second": 5}, "signals": SIGNALS}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(bw.run, slow, key="demo", progress=False)
        time.sleep(0.5)
        with pytest.raises(bw.TemporaryError, match="another run of `mine` is in progress") as caught:
            bw.run(slow, key="demo", progress=False)
        assert "`--wait`" in (caught.value.hint or "")
        assert first.result().rows > 0


def test_a_run_that_waits_says_for_whom(place: Path, service: Service) -> None:
    slow = {"name": "mine", "source": {**service.source, "requests_per_second": 5}, "signals": SIGNALS}
    with ThreadPoolExecutor(1) as pool:
        events: list[bw.Event] = []
        first = pool.submit(bw.run, slow, key="demo", progress=False)
        time.sleep(0.5)
        assert bw.run(slow, key="demo", wait=60, progress=events.append).rows == first.result().rows
    held = [event["message"] for event in events if event["event"] == "held"]
    assert len(held) == 1 and f"process {os.getpid()} on" in held[0] and held[0].endswith("for up to 1 min 00 s"), held


def test_ctrl_c_ends_a_run_on_a_thread_of_asyncio(place: Path, service: Service) -> None:
    definition = {
        "name": "mine",
        "source": {"name": "vendor", **service.source, "requests_per_second": 10},
        "signals": {"sectors": ["energy", "utilities", "materials"], "periods": ["5d", "1m", "15d"]},
    }
    page = (Path(__file__).parents[2] / "docs/notebooks.md").read_text()
    recipe = next(block for block in page.split("```python\n") if "asyncio.run" in block).split("```")[0]
    interrupted = f"""
        def interrupt():
            import os, pathlib, signal, time

            while not any(pathlib.Path("output/archive/vendor/.partial").glob("*/*")):
                time.sleep(0.05)
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        asyncio.run(run({definition!r}))
    """
    Path("recipe.py").write_text(recipe.replace('asyncio.run(run("demo"))', textwrap.dedent(interrupted)))
    environment = {**os.environ, "BELLWETHER_API_KEY": "demo"}
    ended = subprocess.run([sys.executable, "recipe.py"], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt"), ended.stderr
    assert len(list(Path("output/archive/vendor/.partial").iterdir())) == 1
    assert not list(Path("output/datasets").glob("mine/*/dataset.json"))


def test_an_interrupt_that_comes_too_late_says_that_the_run_is_complete(place: Path) -> None:
    def interrupt(event: bw.Event) -> None:
        if (event["event"], event.get("stage")) == ("finished", "dataset"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        bw.run("demo", progress=interrupt, today="2026-11-20")
    has_published = (place / "output/datasets/demo/latest").exists()
    assert ("nothing was published" in str(caught.value)) != has_published
    assert ("it was complete" in str(caught.value)) == has_published


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_raises_with_a_hint_to_spawn(published: Path, python) -> None:
    script = """
        import multiprocessing, warnings
        warnings.simplefilter("ignore")
        import bellwether as bw
        dataset = bw.load("demo")
        dataset.to_arrow()
        dataset.to_polars()
        def work(method):
            try:
                {"load": lambda: bw.load("demo"), "read": dataset.to_arrow, "polars": dataset.to_polars}[method]()
            except bw.ForkedError as error:
                return error
        with multiprocessing.get_context("fork").Pool(1) as pool:
            for method in ("load", "read", "polars"):
                error = pool.apply_async(work, (method,)).get(timeout=20)
                print(type(error).__name__, "spawn" in error.hint)
    """
    ended = python(textwrap.dedent(script))
    assert ended.stdout.splitlines() == ["ForkedError True"] * 3, ended.stdout + ended.stderr


def _height(tickers: str) -> int:
    return bw.load("demo", tickers=tickers).to_polars().height


def test_a_spawned_worker_loads(published: Path) -> None:
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(_height, ("XOM",)).get(timeout=60) == _height("XOM")


def test_the_program_of_the_wheel_matches_the_binary(place: Path, program) -> None:
    assert program("--version").stdout.startswith(b"bellwether ")
    assert program("check", "demo").stdout.startswith(b"pipelines/demo.toml: ok\n")
    wrong = program("check", "demmo")
    assert (wrong.returncode, b"did you mean `demo`?" in wrong.stderr) == (2, True)
    ran = program("run", "demo", "--log", "json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["rows"] == bw.load("demo").to_polars().height
    assert pl.read_parquet("output/datasets/demo/latest/demo.parquet").height > 0


def test_ctrl_c_stops_the_program_with_its_exit_code(place: Path, service: Service) -> None:
    text = f"""
        [source]
        base_url = "{service.base_url}"
        sentiment_base_url = "{service.sentiment_base_url}"
        requests_per_second = 1
        [signals]
        sectors = ["energy", "utilities"]
    """
    Path("pipelines/slow.toml").write_text(textwrap.dedent(text))
    command = [Path(sys.executable).with_name("bellwether"), "run", "slow"]
    environment = {**os.environ, "BELLWETHER_API_KEY": service.key}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    began = time.monotonic()
    while not Path("output/archive").exists() and time.monotonic() < began + 15:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130, said
    assert b"error: interrupted" in said


def test_a_definition_from_elsewhere_takes_no_dataset_over(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The name of a definition of the project is taken, whether by a file or by a dict."""
    text = (place / "pipelines/demo.toml").read_text()
    file = tmp_path_factory.mktemp("elsewhere") / "demo.toml"
    file.write_text(text)
    for work in (bw.run, bw.build):
        with pytest.raises(bw.UsageError, match="is not one of the project's definitions"):
            work(str(file), progress=False)
        with pytest.raises(bw.UsageError, match="the project has a definition `demo`"):
            work({"name": "demo", "source": {"service": "demo"}, "signals": {"sectors": ["energy"]}}, progress=False)
    assert bw.run(str(file), data=place / "other", progress=False).rows > 0


def test_a_sector_that_is_missing_and_may_be_is_a_warning(place: Path) -> None:
    definition: bw.DefinitionDict = {
        "source": {"service": "demo"},
        "signals": {"sectors": ["energy", "no such sector"]},
        "checks": {"missing": "warn"},
    }
    with pytest.warns(bw.BellwetherWarning, match="no such sector"):
        bw.run({"name": "partly", **definition}, progress=False)
    with pytest.warns(bw.BellwetherWarning, match="no such sector"):
        bw.build({"name": "partly", **definition}, progress=False)
