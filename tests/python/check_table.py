"""What `audit table` says of each value is what a brute force over the archive's files says. Usage: check_table.py PROGRAM FOLDER ARCHIVE"""

import collections
import datetime
import json
import random
import subprocess
import sys
import zoneinfo

import duckdb
import polars as pl

program, folder, archive = sys.argv[1:4]
duckdb.sql("set timezone = 'UTC'")
draw = random.Random(66)
UTC = datetime.timezone.utc


def read(name):
    rows = duckdb.sql(f"select distinct * exclude (sealed_at) from read_parquet('{archive}/*=*/{name}.parquet', hive_partitioning = false)")
    return rows.pl().rows(named=True)


def told(rows, key):
    cells = collections.defaultdict(list)
    for row in sorted(rows, key=lambda row: row["observed_at"]):
        cells[tuple(row[name] for name in key)].append(row)
    return cells


signals = told(read("signals"), ["ticker", "period", "regime", "date"])
articles = told(read("articles"), ["ticker", "date", "title", "link"])
answers = collections.defaultdict(list)
for row in read("answers"):
    if row["source"] in ("signals-history-all", "news_articles"):
        answers[row["ticker"], row["period"], row["regime"]].append((row["observed_at"], row["covered_from"]))


def value_of(row, column):
    """The value of an observation."""
    if row["change"] == "withdrawn":
        return None
    if column == "signal":
        return row["signal"]
    if column == "confidence":
        return row["confidence"]
    if "confidence" in row:
        return row["confidence"] if row["signal"] == "buy" else -row["confidence"]
    return row["score"]


def judge(cell, series, column, value, decided, same, articles=False):
    """The outcome, the first time that the value was seen, and the value that was known by then."""
    if series not in answers or not any(key[0] == series[0] for key in (*signals, *globals()["articles"])):
        return "unknown", None, None
    before = [row for row in cell if row["observed_at"] <= decided]
    known = value_of(before[-1], column) if before else None
    first = next((row["observed_at"] for row in cell if value_of(row, column) is not None and same(value_of(row, column), value)), None)
    if first is None:
        return "never", None, known
    if first <= decided:
        return ("known" if known is not None and same(known, value) else "replaced"), first, known
    date = cell[0]["date"]
    lacked = [
        seen
        for seen, covered in answers[series]
        if covered is not None and decided <= seen < first and (covered < date if articles else covered <= date)
    ]
    return ("late" if lacked else "unclear"), first, known


def close(one, other):
    return one == other if isinstance(one, str) else abs(one - other) <= 1e-9


def close32(one, other):
    return one == other if isinstance(one, str) else abs(one - other) <= 1e-6


instants = sorted({row["observed_at"] for rows in signals.values() for row in rows})


def decision():
    at = draw.choice(instants) + datetime.timedelta(hours=draw.choice([-30, -1, 0, 0, 1, 40]))
    return at.astimezone(UTC)


def midnight(date):
    return datetime.datetime(date.year, date.month, date.day)


rows = []
keys = sorted(signals)
for _ in range(3_000):
    ticker, period, regime, date = draw.choice(keys)
    cell = signals[ticker, period, regime, date]
    if draw.random() < 0.05:
        date, cell = date + datetime.timedelta(days=400), []
    if draw.random() < 0.03:
        ticker, cell = "ZZZ", []
    seen = [row for row in cell if row["change"] != "withdrawn"]
    picked = draw.choice(seen) if seen else {"change": "added", "signal": "buy", "confidence": 0.25}
    if draw.random() < 0.05:
        picked = {**picked, "confidence": picked["confidence"] + 0.001}
    row = {"ticker": ticker, "date": date, "period": period, "regime": regime, "decided_at": decision()}
    for column in ("signal", "confidence", "score"):
        row[column] = None if draw.random() < 0.02 else value_of(picked, column)
    row["news_mean_7d"] = 0.5
    rows.append(row)

of_news = []
for _ in range(1_000):
    ticker, date, title, link = draw.choice(sorted(articles))
    cell = articles[ticker, date, title, link]
    seen = [row for row in cell if row["change"] != "withdrawn"]
    score = draw.choice(seen)["score"] if seen and draw.random() < 0.95 else 7.5
    of_news.append({"ticker": ticker, "date": date, "title": title, "link": link, "decided_at": decision(), "score": score})


def ask(name, rest):
    output = f"{folder}/told.csv"
    command = [program, "audit", "table", name, *rest, "--json", "--output", output, "--force"]
    asked = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if asked.returncode:
        sys.exit(asked.stderr)
    found = {(row["row"] - 1, row["column"]): row for row in pl.read_csv(output, infer_schema_length=None, schema_overrides={"value": pl.String, "known_then": pl.String}).iter_rows(named=True)}
    return json.loads(asked.stdout), found


def check(name, expected, columns, rest=("it",)):
    """`expected` has what is expected of each row and column."""
    document, found = ask(name, list(rest))
    counts = collections.Counter()
    for (row, column), (outcome, first, known) in expected.items():
        counts[column, outcome] += 1
        one = found.pop((row, column), None)
        if (one["outcome"] if one else "known") != outcome:
            sys.exit(f"{name}, row {row + 1}, {column}: {one} and not {outcome} ({first}, {known})")
        if one:
            instant = one["first_known"] and datetime.datetime.fromisoformat(one["first_known"]).replace(tzinfo=UTC)
            if instant != (first and first.astimezone(UTC)):
                sys.exit(f"{name}, row {row + 1}, {column}: {one} and not first known at {first}")
            if (one["known_then"] is None) != (known is None) or (known is not None and not close32(type(known)(one["known_then"]), known)):
                sys.exit(f"{name}, row {row + 1}, {column}: {one} and not {known}")
    if found:
        sys.exit(f"{name}: {len(found)} further rows")
    for told in document["columns"]:
        of = {outcome: told[outcome] for outcome in ("known", "replaced", "late", "unclear", "never", "unknown")}
        wanted = {outcome: counts[told["name"], outcome] for outcome in of}
        if of != wanted or told["values"] != sum(wanted.values()):
            sys.exit(f"{name}: {told} and not {wanted}")
    if [told["name"] for told in document["columns"]] != columns:
        sys.exit(f"{name}: {document['columns']}")
    late = sum(counts[column, "late"] for column in columns)
    said = document["verdict"][0]
    if late and not said.startswith(f"{late:,} of {sum(counts.values()):,} values"):
        sys.exit(f"{name}: {said}")
    return document, counts


def expected_of(rows, columns, decided, same=close, articles_too=False):
    cells = articles if articles_too else signals
    key = ("ticker", "date", "title", "link") if articles_too else ("ticker", "period", "regime", "date")
    answer = {}
    for number, row in enumerate(rows):
        series = (row["ticker"], None, None) if articles_too else (row["ticker"], row["period"], row["regime"])
        cell = cells.get(tuple(row[name] for name in key), [])
        for column in columns:
            if row[column] is not None:
                answer[number, column] = judge(cell, series, column, row[column], decided(row), same, articles_too)
    return answer


columns = ["signal", "confidence", "score"]
frame = pl.DataFrame(rows, infer_schema_length=None)
frame.write_parquet(f"{folder}/own.parquet")
frame.write_ipc(f"{folder}/own.arrow", compat_level=pl.CompatLevel.oldest())
frame.with_columns(pl.col("decided_at").dt.replace_time_zone(None)).write_parquet(f"{folder}/naive.parquet")
zone = zoneinfo.ZoneInfo("America/New_York")
frame.with_columns(pl.col("decided_at").dt.convert_time_zone("America/New_York")).write_parquet(f"{folder}/zoned.parquet")
expected = expected_of(rows, columns, lambda row: row["decided_at"])
seen = collections.Counter(outcome for outcome, _, _ in expected.values())
if any(seen[outcome] < 40 for outcome in ("known", "replaced", "late", "unclear", "never", "unknown")):
    sys.exit(f"too little of something: {seen}")
for name in ("own.parquet", "own.arrow", "naive.parquet", "zoned.parquet"):
    document, _ = check(name, expected, columns)
    if document["not_examined"] != ["news_mean_7d"]:
        sys.exit(f"{document['not_examined']}")
texts = [pl.col("date").dt.date().cast(pl.String), pl.col("decided_at").dt.strftime("%Y-%m-%dT%H:%M:%S%.6f%:z")]
frame.with_columns(texts).write_csv(f"{folder}/own.csv")
check("own.csv", expected, columns)

# Numbers with fewer digits, signals as numbers, and days that are decided at their end or at a time of day.
days = frame.drop("decided_at").with_columns(
    pl.col("confidence").cast(pl.Float32),
    pl.col("signal").replace_strict({"buy": 1, "sell": -1}, default=None),
    pl.col("date").dt.date(),
)
days.write_parquet(f"{folder}/days.parquet")
end = datetime.timedelta(days=1, microseconds=-1)
check("days.parquet", expected_of(rows, columns, lambda row: row["date"].replace(tzinfo=UTC) + end, close32), columns)


def close_of(row):
    return datetime.datetime.combine(row["date"].date(), datetime.time(16), zone)


check("days.parquet", expected_of(rows, columns, close_of, close32), columns, ["it", "--at", "16:00 America/New_York"])

# The whole archive, other names, and articles.
renamed = frame.rename({"ticker": "symbol", "date": "day", "decided_at": "when"})
renamed.write_parquet(f"{folder}/renamed.parquet")
check("renamed.parquet", expected, columns, ["--ticker", "symbol", "--date", "day", "--decided-at", "when"])
pl.DataFrame(of_news, infer_schema_length=None).write_parquet(f"{folder}/news.parquet")
expected = expected_of(of_news, ["score"], lambda row: row["decided_at"], articles_too=True)
seen = collections.Counter(outcome for outcome, _, _ in expected.values())
if any(seen[outcome] < 10 for outcome in ("known", "replaced", "late", "unclear", "never")):
    sys.exit(f"too little of something: {seen}")
check("news.parquet", expected, ["score"])

# Features of the news: what the dataset had as of the last run before the decision, the first one after it, and the newest.
listed = subprocess.run([program, "list", "runs", "--json"], cwd=folder, capture_output=True, text=True, check=True).stdout
sealed = sorted(run["sealed_at"] for run in json.loads(listed)["runs"])
features = ["news_count_7d", "news_mean_7d", "news_last_score"]
states = []
for instant in sealed:
    command = [program, "build", "it", "--as-of", instant, "--output", "-", "--format", "csv"]
    built = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
    state = pl.read_csv(built, try_parse_dates=True, infer_schema_length=None)
    states.append({(row["ticker"], row["period"], row["regime"], row["date"]): row for row in state.iter_rows(named=True)})
sealed = [datetime.datetime.fromisoformat(instant) for instant in sealed]
rows = []
for _ in range(3_000):
    key = draw.choice(sorted(states[-1]))
    row = {**dict(zip(("ticker", "period", "regime", "date"), key, strict=True)), "decided_at": decision()}
    picked = draw.choice(states).get(key)
    for feature in features:
        value = picked and picked[feature]
        row[feature] = value if value is None or draw.random() < 0.95 else float(value) + 5
    rows.append(row)
expected = {}
for number, row in enumerate(rows):
    known = sum(instant <= row["decided_at"] for instant in sealed)
    key = tuple(row[name] for name in ("ticker", "period", "regime", "date"))
    then, following = (states[at].get(key) if 0 <= at < len(states) else None for at in (known - 1, known))
    for feature in features:
        value = row[feature]
        if value is None:
            continue

        def has(state):
            return state is not None and state[feature] is not None and close(float(state[feature]), float(value))

        found = [name for name, state in (("known", then), ("unclear", following), ("late", states[-1][key])) if has(state)]
        known_then = then and then[feature]
        expected[number, feature] = ([*found, "never"][0], None, None if known_then is None else float(known_then))
seen = collections.Counter(outcome for outcome, _, _ in expected.values())
if any(seen[outcome] < 20 for outcome in ("known", "late", "unclear", "never")):
    sys.exit(f"too little of something: {seen}")
schema = {feature: pl.Float64 for feature in features}
pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None).write_parquet(f"{folder}/features.parquet")
check("features.parquet", expected, features, ["it", "--features"])
