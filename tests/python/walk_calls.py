"""Every call of every command that writes fails once, in every way, and what must hold then does.

Takes the program, a folder, a file with the `[source]` of two days separated by an empty line, and how many tries of
each command and fault there are, spread evenly over its calls: `all` for each of them. Prints the counts as JSON.
"""

import argparse
import errno
import json
import sys
from functools import partial
from pathlib import Path

from tracer import FromThenOn, Listed, Once, applies, program
from walked import COMMANDS, Broken, Project, each_command

# What a call meets, once or from then on. A signal that interrupts every call for ever would stop any program, and a
# killed process makes no more calls.
FAULTS = [
    ("ENOSPC", errno.ENOSPC, Once),
    ("ENOSPC from then on", errno.ENOSPC, FromThenOn),
    ("EIO", errno.EIO, Once),
    ("EIO from then on", errno.EIO, FromThenOn),
    ("EINTR", errno.EINTR, Once),
    ("a short write", "short", Once),
    ("short writes from then on", "short", FromThenOn),
    ("SIGKILL", "kill", Once),
]


def attempt(project: Project, fault, what: str) -> bool:
    """Disturbs the command; whether the fault was met."""
    project.restore()
    command = project.command
    outcome = program(project.arguments(project.words), project.place, project.environment, fault)
    if fault.met is None:
        return False
    expected = {-9} if what == "SIGKILL" else {0, 1, 75}
    if outcome.code not in expected or "panicked" in outcome.stderr:
        raise Broken(f"it ends with {outcome.code}: {outcome.stderr}")
    if what == "EINTR" and fault.met.kind in ("write", "flush") and outcome.code != 0:
        raise Broken(f"an interrupted call is not repeated: {outcome.stderr}")
    if "short" in what and outcome.code != 0:
        raise Broken(f"a short write is not continued: {outcome.stderr}")
    project.check_untouched()
    if outcome.code == 0:
        # What `prune` keeps, it says.
        removes = () if "kept " in outcome.stdout else command.removes
        project.check_success(command.promises + removes)
    if project.listed() != project.unchanged:
        project.check_whole()
        project.check_next()
    return True


def walk(project: Project, command, tries: "int | None", only: "str | None", report) -> None:
    """Disturbs a command at its calls, one after the other."""
    project.prepare(command)
    listed = Listed()
    program(project.arguments(project.words), project.place, project.environment, listed)
    for name, what, kind in FAULTS:
        if only and only != name:
            continue
        calls = sum(applies(what, call) for call in listed.calls)
        step = 1 if tries is None else max(1, calls // tries)
        # The last steps go on until a run ends untouched: their number differs a little from run to run.
        number = 1 + (len(command.name) * 7 + len(name)) % step
        while True:
            fault = kind(number, what)
            try:
                if not attempt(project, fault, name):
                    break
            except Broken as broken:
                report(command, name, number, fault.met, str(broken))
            else:
                report(command, name, number, fault.met, None)
            number += step


def walk_command(options: argparse.Namespace, sources: list[str], index: int) -> "tuple[str, dict[str, int], list[str]]":
    """Disturbs one of the commands; how often it met each fault, and what broke."""
    command = COMMANDS[index]
    counts: dict[str, int] = {}
    broken: list[str] = []

    def report(command, fault, number, met, what) -> None:
        counts[fault] = counts.get(fault, 0) + 1
        if what is not None:
            root = str(options.folder)
            call = f"{met.name} {' '.join(met.paths)}" if met else "nothing"
            broken.append(f"{command.name}, {fault} at {number}, {call}: {what}".replace(root, ""))
            print(broken[-1], file=sys.stderr, flush=True)

    tries = None if options.tries == "all" else int(options.tries)
    walk(Project(options.binary, options.folder / str(index), sources), command, tries, options.fault, report)
    print(command.name, counts, file=sys.stderr, flush=True)
    return command.name, counts, broken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("folder", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("tries")
    parser.add_argument("--command")
    parser.add_argument("--fault")
    options = parser.parse_args()
    sources = [text.strip() + "\n" for text in options.sources.read_text().split("\n\n")]
    walked = each_command(partial(walk_command, options, sources), options.command)
    counts = {name: of_command for name, of_command, _ in walked}
    broken = sum(len(broken) for _, _, broken in walked)
    total = sum(sum(of.values()) for of in counts.values())
    print(json.dumps({"tries": counts, "total": total, "broken": broken}))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
