"""Every state of the disk that a power cut during a command may leave is opened, and what must hold then does.

The calls of a command are recorded with what they write. What was flushed is there: the content of a file after a flush
of the file, an entry after a flush of one of its folders. Of everything else, any part may be there: entries in any
subset, with a rename as one; writes in any subset, torn at a sector, with zeros where one is missing.

Takes the program, a folder, a file with the `[source]` of two days separated by an empty line, the states of each
command to open, chosen by a seed, and the seed. Prints the counts as JSON.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import stat
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tracer import Call, Fault, program
from walked import COMMANDS, Broken, Project, each_command

SECTOR = 512
# Subsets of what was not flushed, for each instant just before a flush and for the end, besides the extreme ones.
SUBSETS = 12


@dataclass
class Node:
    """A file, a link or a folder: its content on the disk before the command."""

    kind: str
    base: bytes = b""
    entries: dict[str, "Node"] = field(default_factory=dict)


@dataclass
class Write:
    """A write to a file, or a new length with nothing written."""

    node: Node
    offset: int
    data: "bytes | None"


@dataclass
class Entries:
    """Entries of folders that appear or vanish as one."""

    changes: list[tuple[Node, str, "Node | None"]]


@dataclass
class Flush:
    node: Node


def read_tree(path: Path) -> Node:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return Node("link", os.fsencode(os.readlink(path)))
    if stat.S_ISDIR(status.st_mode):
        return Node("folder", entries={entry.name: read_tree(entry) for entry in path.iterdir()})
    return Node("file", path.read_bytes())


class Record(Fault):
    """The changes that a command makes, in order, on a tree that follows them."""

    follows = True

    def __init__(self, root: Path):
        self.root, self.before = str(root), read_tree(root)
        # The same nodes, with the entries as the running program sees them.
        self.seen: dict[int, dict[str, Node]] = {}
        self.log: list[Write | Entries | Flush] = []
        self.pending: dict[int, object] = {}

    def entries(self, folder: Node) -> dict[str, Node]:
        return self.seen.setdefault(id(folder), dict(folder.entries))

    def find(self, path: str) -> "Node | None":
        if path != self.root and not path.startswith(self.root + "/"):
            return None
        node = self.before
        for name in path[len(self.root) :].strip("/").split("/"):
            if name and node is not None:
                if node.kind == "link":
                    return None
                node = self.entries(node).get(name)
        return node

    def parent(self, path: str) -> "Node | None":
        return self.find(os.path.dirname(path))

    def meets(self, number: int, call: Call) -> None:
        if call.kind != "write":
            return
        # What is written must be read before it may be gone.
        descriptor = call.arguments[2 if call.name == "copy_file_range" else 0] & 0xFFFFFFFF
        found = {}
        for line in Path(f"/proc/{call.thread}/fdinfo/{descriptor}").read_text().splitlines():
            name, _, value = line.partition(":")
            found[name] = value.strip()
        is_appended = int(found["flags"], 8) & os.O_APPEND
        offset = os.path.getsize(call.paths[0]) if is_appended else int(found["pos"])
        match call.name:
            case "write":
                self.pending[number] = (offset, call.memory(call.arguments[1], call.arguments[2]))
            case "pwrite64":
                self.pending[number] = (call.arguments[3], call.memory(call.arguments[1], call.arguments[2]))
            case "ftruncate" | "fallocate":
                self.pending[number] = (call.arguments[1], None)
            case "writev":
                data = b""
                for place in range(call.arguments[2]):
                    pair = call.memory(call.arguments[1] + 16 * place, 16)
                    data += call.memory(int.from_bytes(pair[:8], "little"), int.from_bytes(pair[8:], "little"))
                self.pending[number] = (offset, data)
            case name:
                raise NotImplementedError(name)

    def done(self, number: int, call: Call, result: int) -> None:
        pending = self.pending.pop(number, None)
        if result < 0:
            return
        match call.kind:
            case "write" if call.name != "fallocate" and (node := self.find(call.paths[0])):
                offset, data = pending
                self.log.append(Write(node, offset, None if data is None else data[:result]))
            case "flush" if node := self.find(call.paths[0]):
                self.log.append(Flush(node))
            case "open":
                self.open(call)
            case "mkdir":
                self.change([(self.parent(call.paths[0]), os.path.basename(call.paths[0]), Node("folder"))])
            case "unlink":
                self.change([(self.parent(call.paths[0]), os.path.basename(call.paths[0]), None)])
            case "rename":
                source, target = call.paths
                node = self.find(source)
                gone = (self.parent(source), os.path.basename(source), None)
                self.change([gone, (self.parent(target), os.path.basename(target), node)])
            case "link" if call.name in ("symlink", "symlinkat"):
                node = Node("link", os.fsencode(call.text(call.arguments[0])))
                self.change([(self.parent(call.paths[0]), os.path.basename(call.paths[0]), node)])
            case "link":
                source, target = call.paths
                self.change([(self.parent(target), os.path.basename(target), self.find(source))])

    def open(self, call: Call) -> None:
        path, flags = call.paths[0], call.arguments[2 if call.name == "openat" else 1]
        node = self.find(path)
        if node is None and flags & os.O_CREAT and self.parent(path) is not None:
            self.change([(self.parent(path), os.path.basename(path), Node("file"))])
        elif node is not None and node.kind == "file" and flags & os.O_TRUNC:
            self.log.append(Write(node, 0, None))

    def change(self, changes: list) -> None:
        changes = [change for change in changes if change[0] is not None]
        for folder, name, node in changes:
            if node is None:
                self.entries(folder).pop(name, None)
            else:
                self.entries(folder)[name] = node
        self.log.append(Entries(changes))


def durable(log: list) -> set[int]:
    """The changes in a log that flushes in it made durable, by their place."""
    found: set[int] = set()
    for at, flush in enumerate(log):
        if isinstance(flush, Flush):
            for place, change in enumerate(log[:at]):
                match change:
                    case Write(node=node) if node is flush.node:
                        found.add(place)
                    case Entries(changes=changes) if any(folder is flush.node for folder, _, _ in changes):
                        found.add(place)
    return found


def states(record: Record, chance: random.Random, end_only: bool = False):
    """What a power cut may leave: for each instant just before a flush, and for the end, choices of what is kept."""
    flushes = [at for at, change in enumerate(record.log) if isinstance(change, Flush)]
    for until in [len(record.log)] if end_only else [*flushes, len(record.log)]:
        log = record.log[:until]
        kept = durable(log)
        loose = [at for at, change in enumerate(log) if at not in kept and not isinstance(change, Flush)]
        writes = [at for at in loose if isinstance(log[at], Write)]
        last = writes[-1:]
        names = set(loose) - set(writes)
        yield until, kept, {}
        yield until, kept | names, {}
        yield until, kept | names | set(writes), {}
        # In order, with the last write torn.
        yield until, kept | set(loose), {at: chance.random() for at in last}
        for _ in range(SUBSETS if loose else 0):
            some = {at for at in loose if chance.random() < 0.5}
            torn = {at: chance.random() for at in some & set(writes) if chance.random() < 0.5}
            yield until, kept | some, torn


def disk(record: Record, until: int, kept: set[int], torn: dict[int, float]) -> tuple[dict, dict]:
    """The entries of every folder, and the content of every file, that such a state has."""
    folders: dict[int, dict[str, Node]] = {}
    contents: dict[int, bytearray] = {}
    for at, change in enumerate(record.log[:until]):
        if at not in kept:
            continue
        match change:
            case Write(node, offset, data):
                content = contents.setdefault(id(node), bytearray(node.base))
                if data is None:
                    del content[offset:]
                    content.extend(bytes(offset - len(content)))
                else:
                    end = len(data) if at not in torn else int(len(data) * torn[at]) // SECTOR * SECTOR
                    content.extend(bytes(max(0, offset - len(content))))
                    content[offset : offset + end] = data[:end]
            case Entries(changes):
                for folder, name, node in changes:
                    entries = folders.setdefault(id(folder), dict(folder.entries))
                    entries.pop(name, None)
                    if node is not None:
                        entries[name] = node
    return folders, contents


def write_tree(node: Node, path: Path, folders: dict, contents: dict, names: list) -> None:
    match node.kind:
        case "link":
            path.symlink_to(os.fsdecode(node.base))
        case "file":
            data = contents.get(id(node), node.base)
            path.write_bytes(data)
            names.append((str(path), hashlib.sha256(data).hexdigest()))
        case _:
            path.mkdir()
            for name, inside in sorted(folders.get(id(node), node.entries).items()):
                names.append(str(path / name))
                write_tree(inside, path / name, folders, contents, names)


def cut(project: Project, command, wanted: "int | None", chance: random.Random, report) -> None:
    """Opens states that a power cut during a command may leave."""
    project.prepare(command)
    record = Record(project.place)
    outcome = program(project.arguments(project.words), project.place, project.environment, record)
    if outcome.code != 0:
        raise Broken(f"{command.name}: {outcome.stderr}")
    possible = list(states(record, chance))
    if wanted is not None and len(possible) > wanted:
        at_the_end = [state for state in possible if state[0] == len(record.log)]
        possible = at_the_end[: wanted // 4] + chance.sample(possible, wanted - wanted // 4)
    known: set[str] = set()
    for until, kept, torn in possible:
        folders, contents = disk(record, until, kept, torn)
        shutil.rmtree(project.place)
        names: list = []
        write_tree(record.before, project.place, folders, contents, names)
        digest = hashlib.sha256(repr(names).encode()).hexdigest()
        if digest in known:
            continue
        known.add(digest)
        try:
            if until == len(record.log):
                project.check_success(command.promises)
            project.check_whole()
            project.check_next()
        except Broken as broken:
            lost = [describe(record, at) for at in range(until) if at not in kept]
            lost = [text for text in lost if text]
            last = describe(record, until) if until < len(record.log) else "the end"
            report(command, f"before {last}, torn {torn}, lost {lost[-12:]}", str(broken))
        else:
            report(command, None, None)


def describe(record: Record, at: int) -> str:
    names = {}

    def walk(node: Node, path: str) -> None:
        names[id(node)] = path
        for name, inside in record.entries(node).items() if node.kind == "folder" else ():
            walk(inside, f"{path}/{name}")

    walk(record.before, "")
    match record.log[at]:
        case Write(node, offset, data):
            return f"write {names.get(id(node), 'a file that is gone')} {offset}+{'' if data is None else len(data)}"
        case Entries(changes):
            sign = lambda node: "-" if node is None else "+"
            return " ".join(f"{sign(node)}{names.get(id(folder), '?')}/{name}" for folder, name, node in changes)
        case Flush(node):
            return f"flush {names.get(id(node), 'a file that is gone')}"


def cut_command(options: argparse.Namespace, sources: list[str], index: int) -> "tuple[str, int, list[str]]":
    """Cuts the power of one of the commands; the number of states, and what broke."""
    command = COMMANDS[index]
    count = 0
    broken: list[str] = []

    def report(command, state, what) -> None:
        nonlocal count
        count += 1
        if what is not None:
            broken.append(f"{command.name}, {state}: {what}".replace(str(options.folder), ""))
            print(broken[-1], file=sys.stderr, flush=True)

    wanted = None if options.states == "all" else int(options.states)
    project = Project(options.binary, options.folder / str(index), sources)
    cut(project, command, wanted, random.Random(options.seed), report)
    print(command.name, count, file=sys.stderr, flush=True)
    return command.name, count, broken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("folder", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("states")
    parser.add_argument("seed", type=int)
    parser.add_argument("--command")
    options = parser.parse_args()
    sources = [text.strip() + "\n" for text in options.sources.read_text().split("\n\n")]
    walked = each_command(partial(cut_command, options, sources), options.command)
    counts = {name: count for name, count, _ in walked}
    broken = sum(len(broken) for _, _, broken in walked)
    print(json.dumps({"states": counts, "total": sum(counts.values()), "broken": broken}))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
