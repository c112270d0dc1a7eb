"""A project whose commands are disturbed, and what must hold after each of them, whatever met it.

Shared by `walk_calls.py` and `cut_power.py`.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

FORMS = "[output]\nformat = [\"csv\", \"parquet\"]\nkeep = 2\n"
ONE_FORM = "[output]\nformat = \"csv\"\nkeep = 1\n"
MORE_FORMS = "[output]\nformat = [\"csv\", \"arrow\"]\npartition_by = [\"ticker\", \"regime\"]\nkeep = 2\n"
SCHEDULE = "[schedule]\ncron = \"* * * * * *\"\n"

UNIQUE = r"\d{8}T\d{6}Z-[0-9a-f]{4}"
# Everything that commands leave on purpose. Whatever else is there after `prune`, no command would ever clear.
KEPT = re.compile(
    r"archive|archive/\.locks|archive/\.locks/[^/]+|archive/vendor|archive/vendor/\.locks|archive/vendor/\.locks/\.seal"
    r"|archive/vendor/\.partial|archive/vendor/\.damaged(/.*)?"
    rf"|archive/vendor/(run|pack|merge|forgotten)={UNIQUE}(/[a-z_]+\.(parquet|json))?"
    rf"|datasets|datasets/it|datasets/it/latest|datasets/it/builds|datasets/it/(builds/)?{UNIQUE}(-[^/.]+)?"
    rf"|datasets/it/(builds/)?{UNIQUE}(-[^/]+)?/(ticker=[A-Z]+(/regime=[a-z]+(/it\.(csv|arrow))?)?|it\.(csv|parquet|arrow)"
    r"|dataset\.json|facts\.json|report\.html)"
    r"|journal|journal/it(\.\d+)?\.jsonl|reports|reports/it\.html|mine\.txt|schedule(/it\.json|/\.locks|/\.locks/[^/]+)?"
)
KEPT_IN_STORE = re.compile(r"[^#]*")


@dataclass
class Command:
    """A command that writes: its words, and what was done before it, from an empty folder."""

    name: str
    words: list[str]
    before: list[list[str]] = field(default_factory=list)
    # What of the state it exists for, besides the rows: it must be so after a success, even after a power cut.
    promises: tuple[str, ...] = ("latest",)
    # What it removes: it must be so after a success. A power cut may bring it back.
    removes: tuple[str, ...] = ()
    forms: str = FORMS


ONCE = ["schedule", "--once"]
ADD_HOC, REPORT = ["build", "it", "-q", "--ticker", "XOM"], ["report", "it"]
STORED_RECORDS = ("archive/vendor/*/run.json", "datasets/it/*/dataset.json")
REPAIR = ["verify", "--repair", "--store", "STORE"]
ARCHIVE = "output/archive/vendor"
STORED = ("run with a store", "store push", "store pull", "prune --store", "verify --store --repair")
SCHEDULED = ("schedule --once",)
RUN, PUSH, PULL = ["run", "it", "-q"], ["store", "push", "--store", "STORE"], ["store", "pull", "--store", "STORE"]
VERIFY_STORE = ["verify", "--store", "STORE"]
SECOND = ["day", "2"]
# A run packs as soon as there are sixteen folders.
MANY_RUNS = [RUN] * 14
COMMANDS = [
    Command("run", RUN),
    Command("run again", RUN, [RUN, RUN, SECOND]),
    Command("run with a store", [*RUN, "--store", "STORE"], [RUN, PUSH, SECOND], ("latest", "stored")),
    Command("build", ["build", "it", "-q"], [RUN, SECOND, RUN, ["define", MORE_FORMS]], ("latest",)),
    Command("ad hoc build", ADD_HOC, [RUN], ("latest", "builds")),
    Command("run that packs", RUN, [*MANY_RUNS, SECOND, RUN], ("latest", "packs")),
    Command(
        "prune",
        ["prune", "--older-than", "1d"],
        [*MANY_RUNS, SECOND, RUN, RUN, REPORT, ["define", ONE_FORM], ["age"]],
        ("packs",),
        ("runs", "versions", "reports"),
    ),
    Command(
        "verify --repair",
        ["verify", "--repair"],
        [*MANY_RUNS, SECOND, RUN, RUN, ["damage here"]],
        removes=("runs",),
    ),
    Command("forget", ["forget", "NEWEST", "--reason", "bad"], [RUN, SECOND, RUN], ("forgotten",)),
    Command("report", REPORT, [RUN], ("reports",)),
    Command("prune a version", ["prune", "it/OLDEST"], [RUN, SECOND, RUN], removes=("versions",)),
    Command("store push", PUSH, [RUN, PUSH, *MANY_RUNS, SECOND, RUN], ("stored",)),
    Command("store pull", PULL, [RUN, PUSH, ["aside"], SECOND, RUN, PUSH, ["back"]], ("latest", "runs")),
    Command(
        "prune --store",
        ["prune", "--store", "STORE"],
        [*MANY_RUNS, SECOND, RUN, RUN, PUSH, ["define", ONE_FORM], ["age"]],
        removes=("stored",),
    ),
    Command("verify --store --repair", REPAIR, [RUN, PUSH, ["damage"]], ("latest", "stored")),
    Command("schedule --once", ONCE, [RUN, SECOND, ["define", FORMS + SCHEDULE], ONCE]),
]


class Broken(Exception):
    """What should hold and does not."""


class Project:
    """A folder with definitions, an archive, datasets, a store, and files that are not ours."""

    def __init__(self, binary: str, root: Path, services: list[str]):
        self.binary, self.root, self.services = binary, root, services
        self.place, self.kept = root / "place", root / "before"
        self.environment = {"BELLWETHER_API_KEY": "demo", "PATH": os.environ["PATH"], "TMPDIR": str(root)}

    def arguments(self, words: list[str]) -> list[str]:
        store = f"file://{self.place}/store"
        dataset = self.place / "output/datasets/it"
        # Names of the same second are in any order.
        latest = os.path.realpath(dataset / "latest")
        versions = [path.parent for path in sorted(dataset.glob("2*/dataset.json"))]
        oldest = next((version.name for version in versions if os.path.realpath(version) != latest), "OLDEST")
        seals = [json.loads(path.read_text()) for path in (self.place / ARCHIVE).glob("run=*/run.json")]
        newest = max(((seal["sealed_at"], seal["run"]) for seal in seals), default=("", "NEWEST"))[1]
        names = {"STORE": store, "OLDEST": oldest, "NEWEST": newest}
        return [self.binary, *(re.sub("|".join(names), lambda found: names[found[0]], word) for word in words)]

    def run(self, words: list[str]) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.arguments(words),
            cwd=self.place,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def succeed(self, words: list[str], what: str) -> None:
        outcome = self.run(words)
        if outcome.returncode != 0:
            message = f"{outcome.returncode}: {outcome.stdout}{outcome.stderr}"
            raise Broken(f"{what}: `{' '.join(words)}` ends with {message}")

    def define(self, forms: str, day: int) -> None:
        folder = self.place / "pipelines"
        folder.mkdir(exist_ok=True)
        source = f"[source]\n{self.services[day - 1]}"
        signals = "[signals]\ntickers = [\"XOM\", \"CVX\"]\nperiods = [\"15d\"]\n"
        (folder / "it.toml").write_text(source + signals + forms)

    def prepare(self, command: Command) -> None:
        """Makes the state before a command, and keeps it."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.place.mkdir(parents=True)
        for name in ("foreign/notes.txt", "foreign/.hidden/run.json", "output/mine.txt", "store/mine.txt"):
            path = self.place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"mine: {name}")
        day, forms = 1, command.forms
        self.define(forms, day)
        for words in command.before:
            match words:
                case ["day", number]:
                    day = int(number)
                case ["define", forms]:
                    pass
                case ["age"]:
                    age(self.place)
                case ["damage"]:
                    damaged = min((self.place / "store/archive").rglob("run=*/*.parquet"))
                    damaged.write_bytes(damaged.read_bytes()[:-1])
                case ["damage here"]:
                    damaged = min((self.place / ARCHIVE).glob("run=*/signals.parquet"))
                    damaged.write_bytes(damaged.read_bytes()[:-1])
                case ["aside"]:
                    shutil.copytree(self.place / "output", self.root / "aside", symlinks=True)
                case ["back"]:
                    shutil.rmtree(self.place / "output")
                    (self.root / "aside").rename(self.place / "output")
                case _:
                    self.succeed(words, "before")
            self.define(forms, day)
        shutil.copytree(self.place, self.kept, symlinks=True)
        self.words = self.arguments(command.words)[1:]
        self.command, self.foreign = command, self.strangers()
        # What a day's work clears: a publication, an ad hoc build, a report, the scheduler, an upload, and `prune`.
        others = [self.words] if command.name in SCHEDULED else [PUSH] if command.name in STORED else []
        self.later = [RUN, ADD_HOC, REPORT, *others, ["prune"]]
        self.before, self.unchanged = self.state(), self.listed()
        self.wait_until_due()
        # What the command gives if nothing meets it.
        self.succeed(self.words, "undisturbed")
        self.after = self.state()
        self.rows_after = self.rows()
        if self.rows_after is None:
            raise Broken("the undisturbed command leaves no rows")
        self.restore()

    def wait_until_due(self) -> None:
        """What is scheduled is due every second."""
        if self.command.name in SCHEDULED:
            time.sleep(1.1)

    def restore(self) -> None:
        shutil.rmtree(self.place)
        shutil.copytree(self.kept, self.place, symlinks=True)

    def strangers(self) -> dict[str, str]:
        files = [*(self.place / "foreign").rglob("*"), self.place / "output/mine.txt", self.place / "store/mine.txt"]
        files += (self.place / "pipelines").rglob("*")
        digest = lambda path: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"
        return {str(path): digest(path) for path in files}

    def listed(self) -> dict[str, tuple]:
        """Every file and link, but for those that each command rewrites."""
        found = {}
        for path in sorted(self.place.rglob("*")):
            name = str(path.relative_to(self.place))
            if "/.locks" in name or name.startswith("output/journal"):
                continue
            status = path.lstat()
            is_file = path.is_file() and not path.is_symlink()
            target = os.readlink(path) if path.is_symlink() else ""
            found[name] = (target, status.st_size if is_file else 0, status.st_mtime_ns if is_file else 0)
        return found

    def content(self, version: Path) -> "str | None":
        record = version / "dataset.json"
        return json.loads(record.read_text())["content"] if record.exists() else None

    def state(self) -> dict[str, object]:
        """What commands exist for, in terms that do not depend on their names and times."""
        archive, dataset = self.place / ARCHIVE, self.place / "output/datasets/it"
        contents = lambda folders: sorted(filter(None, (self.content(folder) for folder in folders)))
        store = self.place / "store"
        return {
            "latest": self.content(dataset / "latest"),
            "builds": sorted(set(contents(dataset.glob("builds/2*")))),
            "versions": len(contents(dataset.glob("2*"))),
            "packs": len(list(archive.glob("pack=*/run.json"))),
            "runs": len(list(archive.glob("run=*/run.json"))),
            "forgotten": len(list(archive.glob("forgotten=*/run.json"))),
            "reports": len(list(self.place.glob("output/reports/*.html"))),
            "stored": [len(list(store.glob(form))) for form in STORED_RECORDS],
        }

    def rows(self) -> "bytes | None":
        """What the archive knows, by an ad hoc build into a file."""
        target = self.root / "check.csv"
        outcome = self.run(["build", "it", "-q", "--output", str(target), "--force"])
        return target.read_bytes() if outcome.returncode == 0 else None

    def check_untouched(self) -> None:
        found = self.strangers()
        if found != self.foreign:
            raise Broken(f"foreign files changed: {sorted(set(found.items()) ^ set(self.foreign.items()))}")

    def check_success(self, promises: tuple[str, ...]) -> None:
        """After exit 0: everything that was asked for is there."""
        state = self.state()
        for promise in promises:
            if state[promise] != self.after[promise]:
                raise Broken(f"it succeeded, but {promise} are {state[promise]}, not {self.after[promise]}")

    def check_whole(self) -> None:
        """The previous version or the new one is there whole, and everything is as its record says."""
        self.check_untouched()
        latest = self.state()["latest"]
        if latest not in (self.before["latest"], self.after["latest"]):
            raise Broken(f"the latest version is {latest}, not {self.before['latest']} or {self.after['latest']}")
        verified = self.run(["verify"])
        is_empty = self.before["runs"] == 0 and "error: no archive" in verified.stderr
        if verified.returncode != 0 and not is_empty and self.command.name != "verify --repair":
            raise Broken(f"`verify` ends with {verified.returncode}: {verified.stdout}{verified.stderr}")
        # Until a repair succeeds, the damage is there.
        if "STORE" in self.command.words and self.command.words != REPAIR:
            self.succeed(VERIFY_STORE, "afterwards")

    def check_next(self) -> None:
        """The same command again gives what it would have given, and nothing is left that no command clears."""
        once = {"prune a version": "versions", "forget": "forgotten"}.get(self.command.name)
        is_done = once is not None and self.state()[once] == self.after[once]
        self.wait_until_due()
        if not is_done:
            self.succeed(self.words, "the next time")
        state = self.state()
        for promise in ("latest", *self.command.promises):
            # A run that ended after its seal is followed by another one.
            is_met = state[promise] == self.after[promise] or promise in ("runs", "stored", "versions")
            if not is_met:
                raise Broken(f"the next time, {promise} are {state[promise]}, not {self.after[promise]}")
        if self.rows() != self.rows_after:
            raise Broken("the next time, the archive knows something else")
        self.succeed(["verify"], "the next time")
        if "STORE" in self.command.words:
            self.succeed(VERIFY_STORE, "the next time")
        age(self.place)
        for words in self.later:
            self.succeed(words, "ten days later")
        self.check_left()
        self.check_untouched()

    def check_left(self) -> None:
        left = []
        for folder, kept in (("output", KEPT), ("store", KEPT_IN_STORE)):
            base = self.place / folder
            names = (str(path.relative_to(base)) for path in sorted(base.rglob("*")))
            left += [f"{folder}/{name}" for name in names if not kept.fullmatch(name)]
        if left:
            raise Broken(f"no command clears {left}")


def age(place: Path) -> None:
    """Everything was last changed ten days ago, and interrupted runs began then."""
    then = time.time() - 10 * 86_400
    for path in place.rglob("*"):
        os.utime(path, (then, then), follow_symlinks=False)
    for record in place.glob("output/archive/*/.partial/*/unfinished.json"):
        text = record.read_text()
        began = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(then))
        record.write_text(re.sub(r'("started_at": )"[^"]*"', rf'\1"{began}"', text))
        os.utime(record, (then, then))


def each_command(work: "Callable[[int], Result]", wanted: "str | None") -> "list[Result]":
    """Calls a function with the index of each command, or of one of them, several at once: each in a process, since a tracer
    waits for any child."""
    indices = [index for index, command in enumerate(COMMANDS) if wanted in (None, command.name)]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(work, indices))
