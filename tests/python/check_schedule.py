"""Recomputes the times of cron expressions by brute force: every minute of a span, on the clock of its zone.

The file holds a list of objects with `cron`, `zone`, `from`, `to` (minutes, UTC) and `times`. The rule when clocks
change: a time is due at the first minute of its clock that shows it, or, if it is skipped, at the first minute after the
gap; a minute is due once for whatever it is due. An expression that names every hour is due whenever the clock shows its
time.
"""

import calendar
import json
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

NICKNAMES = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
             "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()


def number(word, names, first):
    return names.index(word.upper()) + first if word.upper() in names else int(word)


def marks(field):
    """The parts of a field of days that depend on the month."""
    return [part for part in field.lstrip("+").split(",") if part[-1] in "LW" or "#" in part]


def values(field, low, high, names=(), first=0):
    found = set()
    for part in field.lstrip("+").split(","):
        if part in marks(field):
            continue
        part, _, step = part.partition("/")
        if part == "*":
            begin, end = low, high
        elif "-" in part:
            begin, end = (number(word, names, first) for word in part.split("-"))
            if end < begin and names == DAYS and end == 0:
                end = 7
        else:
            begin = end = number(part, names, first)
        found.update(range(begin, end + 1, int(step or 1)))
    return found


def days_of_month(day):
    return [day.replace(day=number + 1) for number in range(calendar.monthrange(day.year, day.month)[1])]


def marked(mark, day):
    """The day of its month that a mark is about."""
    month = days_of_month(day)
    if mark == "L":
        return month[-1]
    wanted = len(month) if mark == "LW" else int(mark[:-1])
    workdays = [other for other in month if other.isoweekday() < 6]
    # A Saturday's neighbour is the Friday, a Sunday's the Monday.
    return min(workdays, key=lambda other: abs(other.day - wanted)) if wanted <= len(month) else None


def is_marked(mark, day):
    """Whether a mark of a weekday is about a day."""
    weekday, _, count = mark.partition("#") if "#" in mark else (mark[:-1], "#", "L")
    same = [other for other in days_of_month(day) if other.isoweekday() % 7 == number(weekday, DAYS, 0) % 7]
    return day in (same[-1:] if count == "L" else same[int(count) - 1:int(count)])


class Expression:
    def __init__(self, text):
        minute, hour, day, month, weekday = NICKNAMES.get(text, text).upper().split()
        self.minutes = values(minute, 0, 59)
        self.hours = values(hour, 0, 23)
        self.days = values(day, 1, 31)
        self.months = values(month, 1, 12, MONTHS, 1)
        self.weekdays = {number % 7 for number in values(weekday, 0, 7, DAYS)}
        self.marks, self.weekday_marks = marks(day), marks(weekday)
        self.either = day != "*" and weekday != "*" and not weekday.startswith("+")
        self.is_hourly = len(self.hours) == 24

    def has_day(self, day):
        of_month = day.day in self.days or day in {marked(mark, day) for mark in self.marks}
        of_week = day.isoweekday() % 7 in self.weekdays or any(is_marked(mark, day) for mark in self.weekday_marks)
        return day.month in self.months and (of_month or of_week if self.either else of_month and of_week)


def clocks(zone, begin, end):
    """What the clock shows in each minute: the instants by what is shown, and the other way round."""
    instants, shown = {}, []
    at = begin - timedelta(days=2)
    while at < end + timedelta(days=2):
        clock = at.astimezone(zone).replace(tzinfo=None)
        instants.setdefault(clock, []).append(at)
        shown.append((at, clock))
        at += timedelta(minutes=1)
    return instants, shown


def expected(expression, instants, shown, begin, end):
    due = set()
    # Also days that the clock skips altogether.
    first, last = min(instants).date(), max(instants).date()
    days = [first + timedelta(days=number) for number in range(1, (last - first).days)]
    for day in filter(expression.has_day, days):
        for hour in expression.hours:
            for minute in expression.minutes:
                clock = datetime(day.year, day.month, day.day, hour, minute)
                found = instants.get(clock, [])
                if expression.is_hourly:
                    due.update(found)
                elif found:
                    due.add(found[0])
                else:
                    due.add(next(at for at, there in shown if there > clock))
    return sorted(at for at in due if begin < at < end)


def main(path):
    cases = json.load(open(path))
    known = {}
    for case in cases:
        begin, end = (datetime.fromtimestamp(case[name], timezone.utc) for name in ("from", "to"))
        span = case["zone"], begin, end
        if span not in known:
            known = {span: clocks(ZoneInfo(case["zone"]), begin, end)}
        due = expected(Expression(case["cron"]), *known[span], begin, end)
        due = [int(at.timestamp()) for at in due]
        if due != case["times"]:
            both = sorted(set(due) ^ set(case["times"]))[:10]
            sys.exit(f"{case['cron']} in {case['zone']}: differs at "
                     f"{[(datetime.fromtimestamp(at, timezone.utc).isoformat(), at in due) for at in both]}")
    print(f"{len(cases)} expressions, {sum(len(case['times']) for case in cases)} times")


main(sys.argv[1])
