"""Runs a process within limits and measures it.

Wall time is from start to exit. Processor time is user and system time of the process and its children, as the kernel
counts them. Memory is the peak of the largest of these processes. Linux only.
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
    """The time and memory of a process; `fault` is the reason if it has no result."""

    wall: float
    cpu: float
    megabytes: float
    service_cpu: float
    fault: str | None


def fields(process):
    """The fields of `/proc/PID/stat` from the state on."""
    with open(f"/proc/{process}/stat") as stat:
        return stat.read().rpartition(")")[2].split()


def cpu_of(process):
    """Processor seconds of a process so far."""
    return sum(map(int, fields(process)[11:13])) / TICKS


def megabytes_of(group):
    """Current memory of a process group."""
    pages = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            own = fields(process)
        except OSError:
            continue  # It has just exited.
        if int(own[2]) == group:
            pages += int(own[21])
    return pages * PAGE / 1e6


class Watch(threading.Thread):
    """Kills a process group that exceeds the limits."""

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
    """Runs a command; its output goes to the file `log`."""
    os.sync()  # So that the command does not pay for earlier writes.
    served = cpu_of(service)
    begin = time.monotonic()
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True, **started)
    watch = Watch(process.pid, limits)
    watch.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)  # Leave nothing running when the comparison is interrupted.
        raise
    wall = time.monotonic() - begin
    watch.ended.set()
    watch.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    fault = watch.over or (f"failed, see {log}" if process.returncode else None)
    return Taken(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, cpu_of(service) - served, fault)
