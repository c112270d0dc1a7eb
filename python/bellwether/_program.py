"""The program `bellwether`: the same code as the binary, entered from Python."""

from __future__ import annotations

import signal
import sys

from . import _bellwether

__all__ = ["main"]


def main() -> None:
    """Runs the command line."""
    # Python's handler would only run once the program has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_bellwether.main(["bellwether", *sys.argv[1:]]))
