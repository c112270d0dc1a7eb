"""Runs tests where they can write to one folder alone: mutants remove files that they should not.

Started by `unshare` in namespaces of its own, it makes every mount read-only but that folder, and stops if anything
else can be written. Then it reads jobs from its input, a line of JSON each,
and writes their outcomes to its output.
"""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

START = ["unshare", "--mount", "--pid", "--fork", "--net", "--mount-proc"]
START += [sys.executable, str(Path(__file__).resolve())]
# Of a test process: a mutant may allocate or write without end.
MEMORY, FILE = 6 << 30, 1 << 30
PR_CAPBSET_DROP, CAP_SYS_ADMIN = 24, 21


def mounts() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4].encode().decode("unicode_escape") for line in lines]


def confine(folder: Path, state: Path) -> None:
    """Makes everything read-only but `folder`, whose `state` appears at the place that the program was built with."""
    mount = lambda *words: subprocess.run(["mount", *map(str, words)], check=True)
    mount("--make-rprivate", "/")
    mount("--bind", folder, folder)
    mount("--bind", folder / "state", state)
    writable = {str(folder), str(state)}
    for point in mounts():
        if point not in writable and point != "/proc":
            subprocess.run(["mount", "-o", "remount,bind,ro", point], check=False, capture_output=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def check(folder: Path, elsewhere: list[str]) -> None:
    """Fails unless `folder` is the only place that can be written."""
    allowed = {"/proc", str(folder), sys.argv[2]}
    # Where one mount covers another, what is seen counts.
    writable = [point for point in set(mounts()) - allowed if not os.statvfs(point).f_flag & os.ST_RDONLY]
    (folder / "written").write_text("here")
    for place in elsewhere:
        try:
            path = Path(place) / f"written-by-{os.getpid()}"
            path.write_text("here")
        except OSError:
            continue
        path.unlink()
        writable.append(place)
    if writable:
        sys.exit(f"can be written from the sandbox: {writable}")


def limit() -> None:
    # Without this capability nothing can be mounted again.
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def clear(folder: Path) -> None:
    """Ends what a test left running, and removes what it left behind. This is process 1 of its namespace."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass
    for name in ("temporary", "home"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(exist_ok=True)


def attempt(job: dict, folder: Path) -> dict:
    """Runs a test binary with one mutant active."""
    (folder / "state/active").write_text(str(job["mutant"]))
    reached = folder / "state/reached"
    reached.unlink(missing_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "temporary"),
        "CARGO_MANIFEST_DIR": job["source"],
        "PYTHONDONTWRITEBYTECODE": "1",
        # A few of the random histories are enough, for each of very many mutants.
        "BELLWETHER_MODEL_SEQUENCES": "3",
    }
    started = time.monotonic()
    with open(folder / "state/output", "wb+") as output:
        process = subprocess.Popen(
            job["command"],
            cwd=job["source"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=limit,
            start_new_session=True,
        )
        try:
            code = process.wait(job["seconds"])
        except subprocess.TimeoutExpired:
            code = None
        seconds = time.monotonic() - started
        clear(folder)
        output.seek(0)
        text = output.read(1 << 20).decode(errors="replace")
    numbers = sorted(map(int, set(reached.read_text().split()))) if reached.exists() else []
    return {"code": code, "seconds": round(seconds, 3), "reached": numbers, "output": text[-job["tail"] :]}


def main() -> None:
    folder, state = Path(sys.argv[1]), Path(sys.argv[2])
    confine(folder, state)
    check(folder, sys.argv[3:])
    clear(folder)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(attempt(json.loads(line), folder)), flush=True)


if __name__ == "__main__":
    main()
