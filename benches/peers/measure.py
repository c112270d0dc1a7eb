"""Runs a process to its end, or to its limits, and says what it took.

Wall time is from the start of the process to its end; processor time is user and system of the process and of all that it
waited for, as the kernel counts them; memory is the peak of the largest of these processes. Linux alone.
"""

import os
import resource
import signal
import subprocess
import threading
import time
from typing import NamedTuple

PAGE = resource.getpagesize()
TICKS = os.sysconf("SC_CLK_TCK")


class Limits(NamedTuple):
    seconds: float
    megabytes: float


class Taken(NamedTuple):
    """What a process took; `fault` says why there is no result, if there is none."""

    wall: float
    cpu: float
    megabytes: float
    service_cpu: float
    fault: str | None


def fields(process):
    """What the kernel says of a process, from its state on."""
    with open(f"/proc/{process}/stat") as stat:
        return stat.read().rpartition(")")[2].split()


def cpu_of(process):
    """The processor seconds that a process has taken so far."""
    return sum(map(int, fields(process)[11:13])) / TICKS


def megabytes_of(group):
    """The memory that the processes of a group hold now."""
    pages = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            own = fields(process)
        except OSError:
            continue  # It has ended meanwhile.
        if int(own[2]) == group:
            pages += int(own[21])
    return pages * PAGE / 1e6


class Watch(threading.Thread):
    """Ends the processes of a group that go beyond the limits."""

    def __init__(self, group, limits):
        super().__init__(daemon=True)
        self.group, self.limits, self.over, self.ended = group, limits, None, threading.Event()

    def run(self):
        deadline = time.monotonic() + self.limits.seconds
        while not self.ended.wait(0.5):
            if time.monotonic() > deadline:
                self.over = f"over {self.limits.seconds:.0f} s"
            elif megabytes_of(self.group) > self.limits.megabytes:
                self.over = f"over {self.limits.megabytes:,.0f} MB"
            if self.over:
                os.killpg(self.group, signal.SIGKILL)
                return


def take(command, log, limits, service, **started):
    """Runs a command; what it says goes to the file `log`."""
    os.sync()  # What was written before is not paid for by this one.
    served = cpu_of(service)
    begin = time.monotonic()
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True, **started)
    watch = Watch(process.pid, limits)
    watch.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)  # Nothing goes on when the comparison is interrupted.
        raise
    wall = time.monotonic() - begin
    watch.ended.set()
    watch.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    fault = watch.over or (f"failed, see {log}" if process.returncode else None)
    return Taken(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, cpu_of(service) - served, fault)
