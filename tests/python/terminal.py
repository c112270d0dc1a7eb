"""Runs a program in a pseudo-terminal, and prints the visible text as JSON.

    terminal.py COLUMNS[,COLUMNS...] ANSWERS PROGRAM [ARGUMENT...]

The window starts with the first width and is then resized to each of the others. ANSWERS is a JSON list of lines, typed
one after each question.
"""

import codecs
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time

PIECE = re.compile("\x1b\\[([?0-9;]*)([A-Za-z])|[\x00-\x1a\x1c-\x1f]|[^\x00-\x1f]+")
BAR = re.compile(r"\[[=> ]{5,}\]")


class Screen:
    """What a terminal shows: as many lines as were ever written, each as wide as the window."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lines = [""]
        self.row = 0
        self.column = 0
        self.colors: set[str] = set()

    def put(self, text: str) -> None:
        for letter in text:
            if self.column >= self.columns:
                self.down()
                self.column = 0
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + letter + line[self.column + 1 :]
            self.column += 1

    def down(self) -> None:
        self.row += 1
        while len(self.lines) <= self.row:
            self.lines.append("")

    def control(self, code: int) -> None:
        if code == 13:
            self.column = 0
        elif code == 10:
            self.down()
        elif code == 8:
            self.column = max(self.column - 1, 0)
        elif code != 7:
            raise ValueError(f"control character {code}")

    def escape(self, numbers: str, letter: str) -> None:
        count = int(numbers) if numbers.isdigit() else None
        line = self.lines[self.row]
        if letter == "m":
            self.colors.add(numbers)
        elif letter == "A":
            self.row = max(self.row - (count or 1), 0)
        elif letter == "B":
            for _ in range(count or 1):
                self.down()
        elif letter == "C":
            self.column += count or 1
        elif letter == "D":
            self.column = max(self.column - (count or 1), 0)
        elif letter == "G":
            self.column = (count or 1) - 1
        elif letter == "K":
            self.lines[self.row] = {None: line[: self.column], 0: line[: self.column], 2: ""}[count]
        elif letter == "J" and not count:
            self.lines[self.row] = line[: self.column]
            del self.lines[self.row + 1 :]
        elif numbers not in ("?25", "?2026"):
            raise ValueError(f"escape sequence {numbers}{letter}")

    def feed(self, text: str) -> str:
        """Takes what was written; returns the beginning of what is not complete yet."""
        end = text.rfind("\x1b")
        end = end if end >= 0 and not PIECE.match(text, end) else len(text)
        for piece in PIECE.finditer(text[:end]):
            if piece.group(2):
                self.escape(piece.group(1), piece.group(2))
            elif piece.group() < " ":
                self.control(ord(piece.group()))
            else:
                self.put(piece.group())
        return text[end:]


def resize(terminal: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))


def main() -> None:
    widths = [int(width) for width in sys.argv[1].split(",")]
    answers = json.loads(sys.argv[2])
    process, terminal = pty.fork()
    if process == 0:
        # The window has its width before the program looks.
        resize(0, widths[0])
        os.execv(sys.argv[3], sys.argv[3:])
    columns = widths.pop(0)
    screen, rest, most_bars = Screen(columns), "", 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    deadline = time.monotonic() + 120
    changed = time.monotonic()
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.05)
        if ready:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            rest = screen.feed(rest + decoder.decode(data))
            most_bars = max(most_bars, sum(bool(BAR.search(line)) for line in screen.lines))
        if answers and screen.lines[screen.row].endswith(": ") and screen.column == len(screen.lines[screen.row]):
            os.write(terminal, answers.pop(0).encode() + b"\n")
            time.sleep(0.05)
        # What was drawn for the old width is read before the window changes.
        if widths and time.monotonic() - changed > 0.3 and not select.select([terminal], [], [], 0)[0]:
            changed = time.monotonic()
            resize(terminal, widths[0])
            screen.columns = max(screen.columns, widths[0])
            columns = widths.pop(0)
        # A line that was measured before the change is still on its way for a moment.
        if time.monotonic() - changed > 0.2:
            screen.columns = columns
    _, status = os.waitpid(process, 0)
    lines = [line.rstrip() for line in screen.lines]
    while lines and not lines[-1]:
        lines.pop()
    print(
        json.dumps(
            {
                "code": os.waitstatus_to_exitcode(status),
                "lines": lines,
                "most_bars": most_bars,
                "colors": sorted(screen.colors - {"", "0"}),
            }
        )
    )


main()
