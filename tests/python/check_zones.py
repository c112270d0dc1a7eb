"""Recomputes datasets from the raw answers by instants, and compares row by row.

    check_zones.py PARAMETERS.json

The parameters name the files of the raw answers, and the datasets with the rule of their naive dates and their lag, and
where a definition states them, when signals are made, how late news is, and the trading days. A zone's clock is read every half minute; no date is converted by a formula.
"""

import json
import sys
from datetime import date, datetime, time, timedelta, timezone
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import polars

from sessions import of_new_york

STEP, DAY = timedelta(seconds=30), timedelta(days=1)
SCALE = 1_000_000_000


class Written:
    """A date as it was written: a clock face, and an offset where there is one."""

    def __init__(self, text):
        moment = datetime.fromisoformat(text)
        self.instant = moment.astimezone(timezone.utc).replace(tzinfo=None) if moment.tzinfo else None
        self.face = moment.replace(tzinfo=None)
        self.is_day = moment.tzinfo is None and self.face.time() == time.min

    def archived(self):
        return self.face if self.instant is None else self.instant


@cache
def shown(zone, instant):
    return instant.replace(tzinfo=timezone.utc).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


@cache
def readings(zone, face):
    """Every half minute in UTC around a time on a zone's clock, with what the clock shows."""
    start = face - timedelta(hours=26)
    return [(start + step * STEP, shown(zone, start + step * STEP)) for step in range(52 * 120)]


@cache
def first(zone, face):
    """The first instant at which a zone's clock shows a time or a later one."""
    return next(instant for instant, face_then in readings(zone, face) if face_then >= face)


@cache
def over(zone, day):
    """The instant from which on a zone's clock never shows a day again."""
    end = datetime.combine(day + DAY, time.min)
    return max(instant for instant, face in readings(zone, end) if face < end) + STEP


class Rule:
    def __init__(self, name, made_at=None, delay=0):
        self.name, self.zone = name, {"utc": "UTC", "wall": None}.get(name, name)
        self.made_at, self.delay = made_at, timedelta(seconds=delay)

    def naive(self, written):
        if written.instant is None or self.zone is None:
            return written.face
        return shown(self.zone, written.instant)

    def known(self, written):
        """From when on news is known: the instant, if there is one, and the clock face."""
        instant, face = self.dated(written)
        return instant and instant + self.delay, face + self.delay

    def dated(self, written):
        if written.instant is not None:
            return written.instant, self.naive(written)
        end = datetime.combine(written.face.date() + DAY, time.min)
        return (over(self.zone, written.face.date()) if self.zone else None), end

    def made(self, written):
        """When a signal was made."""
        is_midnight = written.is_day or (written.instant is not None and written.face.time() == time.min)
        if written.instant is not None and not (is_midnight and self.made_at):
            return written.instant, self.naive(written)
        if is_midnight and self.made_at:
            clock, zone = self.made_at
            face = datetime.combine(written.face.date(), time.fromisoformat(clock))
            instant = first(zone, face)
            return instant, shown(self.zone, instant) if self.zone else face
        if written.is_day:
            return self.dated(written)
        return (first(self.zone, written.face) if self.zone else None), written.face

    def knows(self, made, known):
        if made[0] is not None and known[0] is not None:
            return known[0] <= made[0]
        return known[1] <= made[1]


def read(parameters):
    signals, articles, records = [], [], []
    for history in json.loads(Path(parameters["histories"]).read_text()).values():
        for entry in history["predictions"]:
            signals.append((history["ticker"], history["regime"], Written(entry["date"]), entry))
    for ticker, file in parameters["articles"].items():
        for place, article in enumerate(json.loads(Path(file).read_text())):
            articles.append((ticker, Written(article["date"]), -place, article["score"]))
    for ticker, file in parameters["records"].items():
        for place, record in enumerate(json.loads(Path(file).read_text())):
            score = record["score"]
            records.append((ticker, Written(record["date"]), -place, None if score is None else float(score)))
    return signals, articles, records


def mean(scores):
    found = float(sum(round(score * SCALE) for score in scores)) / (len(scores) * 1e9)
    return min(max(found, min(scores)), max(scores))


def expected(rule, lag, sessions, window, signals, articles, records):
    # Of the signals of a series with one naive date the earliest one counts.
    rows = {}
    for ticker, regime, written, entry in sorted(signals, key=lambda signal: signal[2].archived()):
        rows.setdefault((ticker, rule.naive(written), regime), (written, entry))
    dated = sorted({rule.naive(written).date() for _, _, written, _ in signals})
    days = sessions or of_new_york(dated[0] - 30 * DAY, dated[-1])
    articles = [(ticker, rule.naive(at), at.archived(), place, rule.known(at), score) for ticker, at, place, score in articles]
    articles.sort(key=lambda article: article[1:4])
    records = [(ticker, rule.naive(at).date(), rule.known(at), place, score) for ticker, at, place, score in records]
    records.sort(key=lambda record: (record[1], record[2][0] or record[2][1], record[3]))
    found = {}
    for (ticker, naive, regime), (written, entry) in rows.items():
        if isinstance(lag, int):
            cutoff = naive.date() - lag * DAY
        else:
            before = [day for day in days if day < naive.date()]
            cutoff = before[-int(lag)] if len(before) >= int(lag) else date.min
        made = rule.made(written)
        known = [one for one in articles if one[0] == ticker and one[1].date() <= cutoff and rule.knows(made, one[4])]
        inside = [one for one in known if cutoff > date.min and one[1].date() > cutoff - window * DAY]
        scores = [one[5] for one in inside if one[5] is not None]
        # Articles of the oldest day, and earlier ones, may have been cut off.
        oldest = min(one[1].date() for one in articles if one[0] == ticker)
        is_known = cutoff > date.min and cutoff - (window - 1) * DAY > oldest
        of_records = [one for one in records if one[0] == ticker and one[1] <= cutoff and rule.knows(made, one[2])]
        found[ticker, naive, regime] = {
            "confidence": entry["confidence"],
            "count": len(inside) if is_known else None,
            "mean": mean(scores) if scores and is_known else None,
            "last_date": known[-1][1] if known else None,
            "last_score": known[-1][5] if known else None,
            "days_since": (naive.date() - known[-1][1].date()).days if known else None,
            "historical": of_records[-1][4] if of_records else None,
        }
    return found, len(signals) - len(rows)


def main():
    parameters = json.loads(Path(sys.argv[1]).read_text())
    raw = read(parameters)
    window = parameters["window"]
    names = {
        "confidence": "confidence",
        f"news_count_{window}d": "count",
        f"news_mean_{window}d": "mean",
        "news_last_date": "last_date",
        "news_last_score": "last_score",
        "news_days_since": "days_since",
        "historical_score": "historical",
    }
    for dataset in parameters["datasets"]:
        rule, lag = dataset["naive"], dataset["lag"]
        sessions = [date.fromisoformat(day) for day in dataset.get("sessions", [])]
        by = Rule(rule, dataset.get("made_at"), dataset.get("delay", 0))
        rows, repeated = expected(by, lag, sessions, window, *raw)
        found = {}
        for row in polars.read_parquet(dataset["file"]).with_columns(polars.col(polars.Categorical).cast(polars.String)).to_dicts():
            key = row["ticker"], row["date"], row["regime"]
            assert key not in found, f"{rule}, {lag}: {key} stands twice"
            found[key] = {name: row[column] for column, name in names.items()}
        assert found.keys() == rows.keys(), (rule, lag, found.keys() ^ rows.keys())
        for key, row in rows.items():
            assert row == found[key], (rule, lag, key, row, found[key])
        assert repeated == dataset["repeated"], (rule, lag, repeated, dataset["repeated"])
        print(f"{rule}, {lag}: {len(rows)} rows are the same, {repeated} signals left out")


main()
