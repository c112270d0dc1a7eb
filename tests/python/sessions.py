"""The sessions of the New York Stock Exchange, by the list of its closed days that `check_sessions.py` compares with
`exchange_calendars`."""

from datetime import date, timedelta
from pathlib import Path

LIST = Path(__file__).parents[2] / "crates/bellwether/src/sessions/xnys.txt"


def of_new_york(first, last):
    """The days of its sessions, from one day to another."""
    closed = {line.split()[0] for line in LIST.read_text().splitlines() if line.endswith("closed")}
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return [day for day in days if day.weekday() < 5 and day.isoformat() not in closed]
