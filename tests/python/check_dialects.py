"""Compares the times of schedules with those at which a platform would start what was printed for it.

The arguments are the platform and a file: a list of objects with `cron`, `zone`, `from` (UTC), `times`, the next ten
times, and `text`, what was printed. Airflow evaluates its expressions itself, croniter those of GitHub. Those of Kubernetes
are evaluated by the rules of robfig/cron, which are written out here. When clocks change, platforms differ; the text must
say so, and the times of these days are left out.
"""

import ast
import json
import os
import sys
import tempfile
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import yaml

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp())

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def robfig_field(text, low, high):
    """The values of a field, and whether it counts as a star, as `getField` and `getRange` of robfig/cron have it."""
    found, is_star = set(), False
    for part in text.split(","):
        bounds, _, step = part.partition("/")
        begin, _, end = bounds.partition("-")
        star = begin in ("*", "?")
        first = low if star else int(begin)
        last = high if star or (step and not end) else int(end or begin)
        count = int(step or 1)
        is_star |= star and count == 1
        assert low <= first <= last <= high and count > 0, text
        found.update(range(first, last + 1, count))
    return found, is_star


def kubernetes(text, after):
    """The starts of a CronJob: whenever the clock shows a time of the expression, so also twice, or not at all."""
    [job] = [job for job in yaml.safe_load_all(text) if job]
    zone = ZoneInfo(job["spec"]["timeZone"])
    fields = job["spec"]["schedule"].split(" ")
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = map(
        robfig_field, fields, (0, 0, 1, 1, 0), (59, 23, 31, 12, 6)
    )
    day = after.astimezone(zone).date() - DAY
    while day < date(2100, 1, 1):
        of_month, of_week = day.day in days, day.isoweekday() % 7 in weekdays
        is_named = of_month and of_week if any_day or any_weekday else of_month or of_week
        if day.month in months and is_named:
            starts = set()
            for hour in hours:
                for minute in minutes:
                    clock = datetime(day.year, day.month, day.day, hour, minute)
                    for fold in 0, 1:
                        at = clock.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc)
                        if at.astimezone(zone).replace(tzinfo=None) == clock and at > after:
                            starts.add(at)
            yield from sorted(starts)
        day += DAY


def airflow(text, after):
    import pendulum
    from airflow.timetables.trigger import CronTriggerTimetable

    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    [call] = [call for call in calls if getattr(call.func, "id", "") == "scheduled"]
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    timetable = CronTriggerTimetable(ast.literal_eval(given["cron"]), timezone=ast.literal_eval(given["timezone"]))
    timetable.validate()
    at = pendulum.instance(after)
    while True:
        at = timetable._get_next(at)
        yield datetime.fromtimestamp(at.timestamp(), timezone.utc)


def starts_of_a_day(line):
    from croniter import croniter

    minutes, hours = croniter(line).expanded[:2]
    return (60 if minutes == ["*"] else len(minutes)) * (24 if hours == ["*"] else len(hours))


def github_actions(lines, times):
    """The first start at or after each time."""
    from croniter import croniter

    for at in times:
        yield min(croniter(line, at - timedelta(minutes=1)).get_next(datetime) for line in lines)


def is_near_change(at, zone):
    return (at - DAY).astimezone(zone).utcoffset() != (at + DAY).astimezone(zone).utcoffset()


def check(platform, case):
    zone, after = ZoneInfo(case["zone"]), datetime.fromtimestamp(case["from"], timezone.utc)
    times = [datetime.fromtimestamp(at, timezone.utc) for at in case["times"]]
    if platform == "github-actions":
        lines = [line["cron"] for line in yaml.safe_load(case["text"])[True]["schedule"]]
        is_dense = "*/5 * * * *" in lines
        # In summer and in winter, and once to keep the cache.
        most = 2 * starts_of_a_day(" ".join([*case["cron"].split(" ")[-5:-3], "* * *"])) + 1
        assert is_dense or sum(map(starts_of_a_day, lines)) <= most, lines
        for at, start in zip(times, github_actions(lines, times)):
            late = 2 * HOUR if is_near_change(at, zone) else timedelta(minutes=5 if is_dense else 0)
            assert at <= start <= at + late, f"due at {at}, started at {start}"
        return
    is_hourly = case["cron"].split(" ")[-4] in ("*", "0-23")
    starts = []
    for start in {"kubernetes": kubernetes, "airflow": airflow}[platform](case["text"], after):
        if start > times[-1]:
            break
        starts.append(start)
    # Airflow is off by a change between two times of every hour of some days.
    offsets = [at.astimezone(zone).utcoffset() for at in [after, *times]]
    is_off = platform == "airflow" and is_hourly
    crossed = [at for at, before, offset in zip(times, offsets, offsets[1:]) if is_off and before != offset]

    def usual(all):
        is_left_out = lambda at: is_near_change(at, zone) or any(abs(at - time) <= 2 * HOUR for time in crossed)  # noqa: E731
        return [at for at in all if not is_left_out(at)]

    assert usual(starts) == usual(times), f"starts at {starts}, due at {times}"
    if starts != times:
        assert "# When clocks change, " in case["text"], f"starts at {starts}, due at {times}"


platform, path = sys.argv[1:]
for case in json.load(open(path)):
    try:
        check(platform, case)
    except Exception as error:
        sys.exit(f"{case['cron']} in {case['zone']} after {case['from']}: {error!r}\n{case['text']}")
