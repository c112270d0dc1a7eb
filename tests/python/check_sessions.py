"""Compares the list of closed days and early closes of the New York Stock Exchange with `exchange_calendars`, day by day.

    check_sessions.py
"""

import exchange_calendars
import pandas

from sessions import LIST

calendar = exchange_calendars.get_calendar("XNYS", start="1990-01-01", end="2045-12-31").schedule
sessions = set(calendar.index.date)
expected = [f"{day} closed" for day in pandas.bdate_range("1990-01-01", "2045-12-31").date if day not in sessions]
closes = calendar["close"].dt.tz_convert("America/New_York").dt.strftime("%H:%M")
expected += [f"{day.date()} {close}" for day, close in closes.items() if close != "16:00"]
listed = LIST.read_text().splitlines()
assert set(calendar["open"].dt.tz_convert("America/New_York").dt.strftime("%H:%M")) == {"09:30"}
assert listed == sorted(expected), set(listed) ^ set(expected)
print(f"{len(sessions)} sessions are the same, and {len(listed)} days without one or with an early close")
