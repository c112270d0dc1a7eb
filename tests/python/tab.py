"""Completes lines in a real shell with the Tab key, and prints what they became, as a JSON list.

    tab.py SETUP LINES SHELL [ARGUMENT...]

SETUP is a line that the shell runs first, LINES a JSON list.
"""

import json
import os
import pty
import re
import select
import sys
import time

MARK = "@@"


def main() -> None:
    setup, lines = sys.argv[1], json.loads(sys.argv[2])
    process, terminal = pty.fork()
    if process == 0:
        os.execvp(sys.argv[3], sys.argv[3:])
    seen = ""

    def printed(count: int) -> list[str]:
        """The lines with the mark, once there are as many."""
        nonlocal seen
        deadline = time.monotonic() + 60
        while True:
            # The shell repeats what is typed, after a prompt; only what `printf` writes begins a line.
            found = re.findall(rf"(?:^|\r){MARK}(.*?)\r*\n", seen, re.MULTILINE)
            if len(found) >= count:
                return found
            if time.monotonic() > deadline or not select.select([terminal], [], [], 60)[0]:
                raise SystemExit(f"the shell says nothing more: {seen}")
            seen += os.read(terminal, 65536).decode(errors="replace")

    os.write(terminal, f"{setup}; printf '%s\\n' {MARK}ready\n".encode())
    printed(1)
    for count, line in enumerate(lines, 2):
        # Tab, to the beginning of the line, and print it instead of running it.
        os.write(terminal, f"{line}\t\x01printf '%s|' {MARK}; printf '%s|' \x05; echo\n".encode())
        printed(count)
    answers = [answer.strip("|").split("|") for answer in printed(len(lines) + 1)[1:]]
    os.close(terminal)
    print(json.dumps(answers))


main()
