"""Which mutants of the rooms the tests notice, as a map. See CONTRIBUTING.md.

All mutants are compiled into one copy of the sources, and a file says which is active. Each test first runs with none,
and records the mutants that it reaches; each mutant is then tried by the tests that reach it, the quickest first.
Mutants that no test can notice stand in `equivalent.toml`, each with the reason, and are not tried.
"""

import argparse
import json
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import sandbox
import schemata

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {
    "decode": ["crates/bellwether/src/decode/"],
    "fold": ["crates/bellwether/src/archive/fold/", "crates/bellwether/src/archive/settle/"],
    "join": ["crates/bellwether/src/dataset/"],
    "remove": ["crates/bellwether/src/disk/remove/"],
    "store": ["crates/bellwether/src/store/", "crates/bellwether/src/run/store/"],
}
# Program tests that take minutes, or measure the machine.
UNFIT = (
    "days::",
    "disks::",
    "docs::",
    "flushes::",
    "giants::",
    "kills::",
    "memory::",
    "promptness::",
    "reports::",
    "threads::",
    "walks::",
)


def room_of(file: str) -> "str | None":
    return next((room for room, starts in ROOMS.items() if file.startswith(tuple(starts))), None)


class Place:
    """The folder of a map: the copied sources, and what is known so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source, self.state = folder, folder / "source", folder / "state"
        for path in (self.source, self.state):
            path.mkdir(parents=True, exist_ok=True)

    def load(self, name: str, otherwise):
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else otherwise

    def save(self, name: str, value) -> None:
        path = self.folder / name
        path.with_suffix(".new").write_text(json.dumps(value, indent=1))
        path.with_suffix(".new").rename(path)


def identity(mutant: dict, seen: Counter) -> str:
    """What stays the same of a mutant while other lines change: its file, what it changes, which of several it is."""
    changed = [line for line in mutant["diff"].splitlines()[2:] if line.startswith(("+", "-"))]
    key = "\n".join([mutant["file"], mutant["replacement"], *changed])
    seen[key] += 1
    return f"{seen[key]} {key}"


def list_mutants(place: Place) -> list[dict]:
    """The mutants of all rooms. Those that were listed before have the same numbers as then."""
    command = ["cargo", "mutants", "--workspace", "--list", "--json", "--diff", "--dir", str(ROOT)]
    command += ["--exclude", "crates/bellwether/src/decode/harness/**"]
    for start in (start for starts in ROOMS.values() for start in starts):
        command += ["--file", f"{start}**"]
    mutants = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    numbers, seen = place.load("numbers.json", {}), Counter()
    for mutant in mutants:
        mutant["number"] = numbers.setdefault(identity(mutant, seen), len(numbers) + 1)
    place.save("numbers.json", numbers)
    return mutants


def name_equivalent(mutants: list[dict]) -> None:
    """Says of each mutant why no test can notice it, if that is so. What is said of no mutant is out of date."""
    listed = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())["mutant"]
    reasons = {(it["file"], it["line"], change): it["reason"] for it in listed for change in it["changes"]}
    found = set()
    for mutant in mutants:
        line = next(line for line in mutant["diff"].splitlines()[2:] if line.startswith("-"))
        key = (mutant["file"], line[1:].strip(), mutant["replacement"])
        mutant["equivalent"] = reasons.get(key)
        found.add(key)
    if outdated := reasons.keys() - found:
        sys.exit(f"equivalent.toml names mutants that there are not: {sorted(outdated)}")


def copy_sources(place: Place, written: set[str]) -> None:
    """Copies what git knows, but for what is written otherwise."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    tracked = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name in set(filter(None, tracked.split("\0"))) - written:
        target = place.source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.unlink(missing_ok=True)
            target.symlink_to((ROOT / name).readlink())
        elif not target.exists() or target.read_bytes() != (ROOT / name).read_bytes():
            shutil.copy2(ROOT / name, target)
    for name in ("tests/.venv", "tests/spark/.venv", "python/.venv"):
        if (ROOT / name).exists() and not (place.source / name).exists():
            (place.source / name).symlink_to((ROOT / name).resolve())


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def compile_all(place: Place, mutants: list[dict], kinds: list[str]) -> None:
    """Builds the tests of all mutants, without those that do not compile, whose reason it keeps in them."""
    copy_sources(place, {"crates/bellwether/src/lib.rs"} | {mutant["file"] for mutant in mutants})
    library = (ROOT / "crates/bellwether/src/lib.rs").read_text()
    allowed = "#![allow(warnings, arithmetic_overflow, unconditional_panic)]\n"
    library = library.replace("#[cfg(not(unix))]", f"{allowed}\n#[cfg(not(unix))]", 1)
    write(place.source / "crates/bellwether/src/lib.rs", library.replace("\n#[doc(hidden)]\npub mod address;", "\nmod active;\n#[doc(hidden)]\npub mod address;", 1))
    active = (Path(__file__).parent / "active.rs").read_text().replace("@STATE@", str(place.state))
    count = max(mutant["number"] for mutant in mutants) + 1
    write(place.source / "crates/bellwether/src/active.rs", active.replace("@COUNT@", str(count)))
    of_file = defaultdict(list)
    for mutant in mutants:
        of_file[mutant["file"]].append(mutant)
    originals = {file: (ROOT / file).read_text() for file in of_file}
    refused: dict[int, str] = {int(number): why for number, why in place.load("refused.json", {}).items()}
    for turn in range(1, 40):
        texts = {}
        for file, its in of_file.items():
            its = [mutant for mutant in its if mutant["number"] not in refused]
            texts[file], left_out = schemata.mutate(originals[file], its)
            refused |= dict.fromkeys(left_out, "is in a constant or a chain of `let`")
            write(place.source / file, texts[file])
        place.save("refused.json", refused)
        errors = build(place, kinds)
        if errors is None:
            break
        before = len(refused)
        for file, start, end, message in errors:
            if file in texts:
                text = texts[file].encode()
                numbers = schemata.culprits(text, start, end) or schemata.in_function(text, start)
                refused |= dict.fromkeys(numbers, message)
        more = len(refused) - before
        print(f"build {turn}: {more} more mutants do not compile", file=sys.stderr, flush=True)
        if len(refused) == before:
            sys.exit(f"does not compile: {errors[:5]}")
    for mutant in mutants:
        mutant["refused"] = refused.get(mutant["number"])


def build(place: Place, kinds: list[str]) -> "list | None":
    """Builds tests of these kinds; the errors with their bytes, or nothing."""
    targets = {
        "unit": ["--package", "bellwether", "--lib"],
        "program": ["--package", "bellwether-cli", "--test", "program"],
    }
    command = ["cargo", "test", "--no-run", "--locked", "--message-format", "json"]
    command += [word for kind in kinds for word in targets[kind]]
    outcome = subprocess.run(command, cwd=place.source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in outcome.stdout.splitlines() if line.startswith("{")]
    if outcome.returncode == 0:
        executables = (message for message in messages if message.get("executable") and message["profile"]["test"])
        built = {message["target"]["name"]: message["executable"] for message in executables}
        names = {"bellwether": "unit", "program": "program"}
        built = {names[name]: path for name, path in built.items() if name in names}
        binaries = place.load("binaries.json", {}) | built
        place.save("binaries.json", binaries)
        return None
    errors = []
    for message in messages:
        if message["reason"] == "compiler-message" and message["message"]["level"] == "error":
            for span in message["message"]["spans"]:
                if span["is_primary"]:
                    while span["expansion"]:
                        span = span["expansion"]["span"]
                    place_of_error = (span["file_name"], span["byte_start"], span["byte_end"])
                    errors.append((*place_of_error, message["message"]["message"]))
    if not errors:
        sys.exit(outcome.stderr)
    return errors


class Workers:
    """Sandboxes that take jobs side by side."""

    def __init__(self, place: Place, count: int) -> None:
        self.place, self.idle = place, queue.Queue()
        elsewhere = [str(path) for path in (ROOT, place.folder, place.source, Path.home())]
        elsewhere += ["/tmp", "/dev/shm", "/var/tmp"]
        elsewhere += [str(Path(place.load("binaries.json", None)["unit"]).parent)]
        for number in range(count):
            folder = place.folder / f"sandbox-{number}"
            (folder / "state").mkdir(parents=True, exist_ok=True)
            worker = subprocess.Popen(
                ["nice", "-n", "19", *sandbox.START, str(folder), str(place.state), *elsewhere],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            if worker.stdout.readline() != "ready\n":
                sys.exit("no sandbox")
            self.idle.put(worker)
        self.count = count

    def ask(self, job: dict) -> dict:
        worker = self.idle.get()
        try:
            worker.stdin.write(json.dumps(job | {"source": str(self.place.source)}) + "\n")
            worker.stdin.flush()
            return json.loads(worker.stdout.readline())
        finally:
            self.idle.put(worker)

    def for_each(self, items: list, work) -> None:
        """Calls `work` for each item, as many at once as there are sandboxes."""
        waiting = queue.Queue()
        for item in items:
            waiting.put(item)

        def loop() -> None:
            while True:
                try:
                    item = waiting.get_nowait()
                except queue.Empty:
                    return
                work(item)

        threads = [threading.Thread(target=loop) for _ in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def record(place: Place, workers: Workers, kind: str, fit, longest: float) -> dict:
    """Which mutants each test reaches, and its seconds. Tests that fail or take too long are of no use."""
    binary = place.load("binaries.json", None)[kind]
    command = [binary, "--list", "--format", "terse"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=place.source).stdout
    names = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
    known = place.load(f"tests-{kind}.json", {})
    built = Path(binary).stat().st_mtime
    tests = known["tests"] if known.get("built") == built else {}
    lock = threading.Lock()

    def one(name: str) -> None:
        outcome = workers.ask({"mutant": 0, "command": [binary, "--exact", name], "seconds": longest, "tail": 2000})
        with lock:
            passes, seconds, reached = outcome["code"] == 0, outcome["seconds"], outcome["reached"]
            tests[name] = {"passes": passes, "seconds": seconds, "reached": reached}
            if outcome["code"] not in (0, None):
                print(f"fails without a mutant: {name}\n{outcome['output']}", file=sys.stderr, flush=True)
            place.save(f"tests-{kind}.json", {"built": built, "tests": tests})

    workers.for_each([name for name in names if fit(name) and name not in tests], one)
    return tests


def attempt_all(place: Place, workers: Workers, kind: str, tests: dict, mutants: list[dict], options) -> None:
    """Tries each mutant with the tests that reach it, the quickest first, until one fails."""
    budget = options.budget
    binary = place.load("binaries.json", None)[kind]
    outcomes = place.load("outcomes.json", {})
    lock = threading.Lock()
    reaching = defaultdict(list)
    for name, test in tests.items():
        if test["passes"]:
            for number in test["reached"]:
                reaching[number].append(name)

    def one(mutant: dict) -> None:
        names = [name for name in reaching[mutant["number"]] if tests[name]["seconds"] <= 3 * budget]
        names.sort(key=lambda name: (tests[name]["seconds"], name))
        outcome, spent, tried = {"by": None}, 0.0, 0
        while names and spent < budget:
            batch, seconds = [], 0.0
            # Batches grow, as most mutants are caught by one of the first tests.
            while names and (not batch or (kind == "unit" and seconds + tests[names[0]]["seconds"] < 1 + spent)):
                name = names.pop(0)
                batch.append(name)
                seconds += tests[name]["seconds"]
            limit = 10 + 5 * seconds
            command = [binary, "--exact", *batch]
            result = workers.ask({"mutant": mutant["number"], "command": command, "seconds": limit, "tail": 200_000})
            spent += result["seconds"]
            tried += len(batch)
            if result["code"] != 0:
                failed = re.findall(r"^test (\S+) .*FAILED$", result["output"], re.MULTILINE)
                outcome = {"by": failed[0] if failed else batch[0], "timeout": result["code"] is None}
                break
        with lock:
            of = outcomes.setdefault(str(mutant["number"]), {})
            of[kind] = outcome | {"tried": tried, "left": len(names) if outcome["by"] is None else 0}
            place.save("outcomes.json", outcomes)

    def is_decided(mutant: dict) -> bool:
        outcome = outcomes.get(str(mutant["number"]), {}).get(kind)
        return outcome is not None and (outcome["by"] is not None or not options.again)

    todo = [mutant for mutant in mutants if not is_decided(mutant)]
    workers.for_each(todo, one)
    place.save("outcomes.json", outcomes)


def print_map(place: Place, mutants: list[dict]) -> None:
    outcomes = place.load("outcomes.json", {})
    rows: dict[tuple[str, str], Counter] = defaultdict(Counter)
    survivors, unreached = [], []
    for mutant in mutants:
        of = outcomes.get(str(mutant["number"]), {})
        if mutant["refused"]:
            what = "does not compile"
        elif mutant["equivalent"]:
            what = "equivalent"
        elif any(result.get("timeout") for result in of.values()):
            what = "timeout"
        elif of.get("unit", {}).get("by"):
            what = "unit tests"
        elif of.get("program", {}).get("by"):
            what = "program tests"
        elif not of:
            what = "not tried"
        elif not any(result["tried"] for result in of.values()):
            what = "not reached"
            unreached.append(mutant)
        else:
            what = "survived"
            survivors.append((mutant, sum(result["tried"] for result in of.values())))
        room = room_of(mutant["file"])
        for key in ((room, mutant["file"]), (room, "all"), ("all", "all")):
            rows[key][what] += 1
            rows[key]["mutants"] += what != "does not compile"
    columns = ["mutants", "unit tests", "program tests", "timeout", "survived"]
    columns += ["not reached", "not tried", "equivalent", "does not compile"]
    print("| room | file | " + " | ".join(columns) + " |")
    print("|---|---|" + "---|" * len(columns))
    for (room, file), counts in sorted(rows.items()):
        print(f"| {room} | {file} | " + " | ".join(str(counts[column]) for column in columns) + " |")
    for mutant in unreached:
        print(f"\n{mutant['number']} {mutant['name']} (no test reaches it)")
    for mutant, tried in survivors:
        changed = "\n".join(line for line in mutant["diff"].splitlines()[2:] if line.startswith(("+", "-", "@@")))
        print(f"\n{mutant['number']} {mutant['name']} (tried by {tried} tests)\n{changed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "target/mutants", help="where to work, and to go on")
    parser.add_argument("--room", action="append", choices=ROOMS, help="a room, instead of all")
    parser.add_argument("--file", default=".", help="a pattern of the files whose mutants to try")
    parser.add_argument("--unit", default=".", help="a pattern of the unit tests to use")
    parser.add_argument("--program", default=".", help="a pattern of the program tests to use")
    parser.add_argument("--sample", type=int, help="how many mutants of each room to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=60, help="seconds of tests of each kind for each mutant")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--again", action="store_true", help="try those that survived again, with tests that are new")
    parser.add_argument("--no-build", action="store_true", help="go on with what was built before")
    parser.add_argument("--until", choices=["build", "unit", "program"], default="program")
    options = parser.parse_args()
    place = Place(options.folder.resolve())
    mutants = list_mutants(place)
    name_equivalent(mutants)
    kinds = ["unit"] if options.until == "unit" else ["unit", "program"]
    if options.no_build:
        refused = place.load("refused.json", {})
        for mutant in mutants:
            mutant["refused"] = refused.get(str(mutant["number"]))
    else:
        compile_all(place, mutants, kinds)
    if options.until == "build":
        return
    mutants = [m for m in mutants if room_of(m["file"]) in (options.room or ROOMS) and re.search(options.file, m["file"])]
    chosen = [m for m in mutants if not m["refused"] and not m["equivalent"]]
    if options.sample:
        # Those that were tried before stay, so that a sample can grow.
        tried = place.load("outcomes.json", {})
        random.Random(options.seed).shuffle(chosen)
        chosen.sort(key=lambda mutant: str(mutant["number"]) not in tried)
        of_room = defaultdict(list)
        for mutant in chosen:
            of_room[room_of(mutant["file"])].append(mutant)
        chosen = [mutant for its in of_room.values() for mutant in its[: options.sample]]
    workers = Workers(place, options.workers)
    fit = lambda name: re.search(options.unit, name)
    tests = record(place, workers, "unit", fit, 3 * options.budget)
    attempt_all(place, workers, "unit", tests, chosen, options)
    if options.until == "program":
        outcomes = place.load("outcomes.json", {})
        left = [m for m in chosen if not outcomes[str(m["number"])]["unit"]["by"]]
        fit = lambda name: re.search(options.program, name) and not name.startswith(UNFIT)
        tests = record(place, workers, "program", fit, 3 * options.budget)
        attempt_all(place, workers, "program", tests, left, options)
    print_map(place, mutants)


if __name__ == "__main__":
    main()
