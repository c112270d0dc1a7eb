"""Runs a program and stops it before each of its calls that change files, or open them, below a folder.

The calls are numbered in the order of their arrival, whichever thread makes them; `strace -e inject` counts for each
thread. A call goes on, fails with an error and is not carried out, is made for half of its bytes only, or ends the
process. Linux on x86-64, without privileges: ptrace, and a seccomp filter that stops at these calls alone.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
from dataclasses import dataclass, field
from pathlib import Path

assert platform.system() == "Linux" and platform.machine() == "x86_64", "this reads the registers of x86-64"

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.restype = ctypes.c_long
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

TRACEME, CONT, GETREGS, SETREGS, SYSCALL, SETOPTIONS = 0, 7, 12, 13, 24, 0x4200
# TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, TRACEEXEC, TRACESECCOMP, EXITKILL
OPTIONS = 1 | 2 | 4 | 8 | 16 | 128 | 1 << 20
EVENT_SECCOMP = 7
AT_CALL = signal.SIGTRAP | 0x80
ANY_THREAD = 0x40000000

NAMES = ["r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"]
NAMES += ["orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"]
CURRENT = 0xFFFFFF9C
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT

# The number of a call: its name, its class, and where its folders and paths are among the arguments.
CALLS = {
    1: ("write", "write", "f"),
    18: ("pwrite64", "write", "f"),
    20: ("writev", "write", "f"),
    40: ("sendfile", "write", "f"),
    77: ("ftruncate", "write", "f"),
    285: ("fallocate", "write", "f"),
    296: ("pwritev", "write", "f"),
    326: ("copy_file_range", "write", "__f"),
    74: ("fsync", "flush", "f"),
    75: ("fdatasync", "flush", "f"),
    82: ("rename", "rename", "pp"),
    264: ("renameat", "rename", "dpdp"),
    316: ("renameat2", "rename", "dpdp"),
    83: ("mkdir", "mkdir", "p"),
    258: ("mkdirat", "mkdir", "dp"),
    2: ("open", "open", "p"),
    257: ("openat", "open", "dp"),
    87: ("unlink", "unlink", "p"),
    263: ("unlinkat", "unlink", "dp"),
    84: ("rmdir", "unlink", "p"),
    86: ("link", "link", "pp"),
    265: ("linkat", "link", "dpdp"),
    88: ("symlink", "link", "_p"),
    266: ("symlinkat", "link", "_dp"),
}
CLASSES = ["write", "flush", "rename", "mkdir", "open", "read", "unlink", "link"]


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in NAMES]


@dataclass
class Call:
    """A call before it is carried out; `kind` is its class, where opening without writing is `read`."""

    name: str
    kind: str
    paths: list[str]
    arguments: list[int]
    thread: int

    def memory(self, address: int, length: int) -> bytes:
        with open(f"/proc/{self.thread}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(length)

    def text(self, address: int) -> str:
        found = b""
        while b"\0" not in found:
            # Never beyond a page, which need not be there.
            start = address + len(found)
            found += self.memory(start, 4096 - start % 4096)
        return os.fsdecode(found.split(b"\0")[0])

    def descriptor(self, place: int) -> str:
        try:
            return os.readlink(f"/proc/{self.thread}/fd/{self.arguments[place] & 0xFFFFFFFF}")
        except OSError:
            return ""


@dataclass
class Outcome:
    """How a program ended: its exit code, or minus the signal that ended it; and how many calls it made."""

    code: int
    calls: int
    stdout: str = ""
    stderr: str = ""


class Fault:
    """What a call meets; see `Once` and `FromThenOn`."""

    def meets(self, number: int, call: Call) -> "int | str | None":
        """The error of a call, `short`, `kill`, or nothing."""
        return None

    def done(self, number: int, call: Call, result: int) -> None:
        """Told after a call if `follows` says so."""

    follows = False


def program(arguments: list[str], root: Path, environment: dict[str, str], fault: Fault) -> Outcome:
    """Runs a program in a folder. Files of its process are those below `root`."""
    out, err = (os.memfd_create(name) for name in ("out", "err"))
    child = os.fork()
    if child == 0:
        try:
            os.chdir(root)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.setpgid(0, 0)
            LIBC.prctl(38, 1, 0, 0, 0)
            LIBC.ptrace(TRACEME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
            watch_calls()
            os.execve(arguments[0], arguments, environment)
        finally:
            os._exit(99)
    outcome = follow(child, str(root), fault)
    for name, file in (("stdout", out), ("stderr", err)):
        with os.fdopen(file, "rb") as stream:
            stream.seek(0)
            setattr(outcome, name, stream.read().decode())
    assert outcome.code != 99, "the program does not start"
    return outcome


def watch_calls() -> None:
    """A filter that stops at every call of `CALLS`."""
    count = len(CALLS)
    steps = [struct.pack("HBBI", 0x20, 0, 0, 0)]
    steps += [struct.pack("HBBI", 0x15, count - place, 0, number) for place, number in enumerate(CALLS)]
    steps += [struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000), struct.pack("HBBI", 0x06, 0, 0, 0x7FF00000)]
    text = b"".join(steps)
    buffer = ctypes.create_string_buffer(text, len(text))
    filter = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(buffer))
    assert LIBC.prctl(22, 2, ctypes.create_string_buffer(filter, len(filter)), 0, 0) == 0


def follow(child: int, root: str, fault: Fault) -> Outcome:
    os.waitpid(child, 0)
    LIBC.ptrace(SETOPTIONS, child, None, OPTIONS)
    LIBC.ptrace(CONT, child, None, None)
    known, within, count, code = {child}, {}, 0, None
    while True:
        try:
            thread, status = os.waitpid(-1, ANY_THREAD)
        except ChildProcessError:
            return Outcome(code, count)
        if not os.WIFSTOPPED(status):
            if thread == child:
                code = os.waitstatus_to_exitcode(status)
            continue
        stopped, event, deliver, request = os.WSTOPSIG(status), status >> 16, 0, CONT
        if event == EVENT_SECCOMP:
            registers = Registers()
            LIBC.ptrace(GETREGS, thread, None, ctypes.byref(registers))
            call = call_of(registers, thread, root)
            if call is not None:
                count += 1
                met = fault.meets(count, call)
                if met == "kill":
                    os.killpg(child, signal.SIGKILL)
                    continue
                if met == "short":
                    registers.rdx = max(1, registers.rdx // 2)
                elif met is not None:
                    registers.orig_rax, registers.rax = (1 << 64) - 1, (1 << 64) - met
                if met is not None:
                    LIBC.ptrace(SETREGS, thread, None, ctypes.byref(registers))
                if fault.follows:
                    within[thread], request = (count, call), SYSCALL
        elif stopped == AT_CALL:
            registers = Registers()
            LIBC.ptrace(GETREGS, thread, None, ctypes.byref(registers))
            if thread in within:
                number, call = within.pop(thread)
                fault.done(number, call, ctypes.c_longlong(registers.rax).value)
        elif event == 0 and not (stopped == signal.SIGSTOP and thread not in known):
            deliver = stopped
        known.add(thread)
        LIBC.ptrace(request, thread, None, deliver)


def call_of(registers: Registers, thread: int, root: str) -> "Call | None":
    """The call that a thread is about to make, if it is about anything below the folder."""
    name, kind, form = CALLS[registers.orig_rax]
    arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9]
    call = Call(name, kind, [], arguments, thread)
    folder = root
    for place, meaning in enumerate(form):
        match meaning:
            case "f":
                call.paths.append(call.descriptor(place))
            case "d":
                is_current = arguments[place] & 0xFFFFFFFF == CURRENT
                folder = root if is_current else call.descriptor(place)
            case "p":
                call.paths.append(os.path.normpath(os.path.join(folder, call.text(arguments[place]))))
                folder = root
    if not any(path == root or path.startswith(root + "/") for path in call.paths):
        return None
    if kind == "open" and not arguments[form.index("p") + 1] & WRITING:
        call.kind = "read"
    return call


@dataclass
class Once(Fault):
    """A call meets something, and no other does."""

    number: int
    what: "int | str"
    met: "Call | None" = None

    count: int = 0

    def meets(self, number: int, call: Call) -> "int | str | None":
        self.count += applies(self.what, call)
        if self.count != self.number or not applies(self.what, call):
            return None
        self.met = call
        return self.what


# A full disk still reads, flushes and removes.
NEEDS_SPACE = {"write", "rename", "mkdir", "open", "link"}


@dataclass
class FromThenOn(Fault):
    """Every call from one on meets something; with a full disk, only those that need space."""

    number: int
    what: "int | str"
    met: "Call | None" = None

    count: int = 0

    def meets(self, number: int, call: Call) -> "int | str | None":
        self.count += applies(self.what, call)
        if self.count < self.number or not applies(self.what, call):
            return None
        self.met = self.met or call
        return self.what


def applies(what: "int | str", call: Call) -> bool:
    """Whether a call can meet this at all."""
    match what:
        case errno.ENOSPC:
            return call.kind in NEEDS_SPACE
        case "short":
            return call.name == "write"
        case "kill":
            return call.kind != "read"
        case _:
            return True


@dataclass
class Listed(Fault):
    """Records the calls of an undisturbed run."""

    calls: list[Call] = field(default_factory=list)

    def meets(self, number: int, call: Call) -> None:
        self.calls.append(call)
