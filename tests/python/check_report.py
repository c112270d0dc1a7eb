"""Recomputes the numbers of a report with DuckDB, from the dataset and the archive.

    check_report.py FOLDER NAME

The folder has output/archive/vendor, output/datasets/NAME/latest, the page output/reports/NAME.html, and summary.txt, the output in
a terminal.
The archive may be packed and shared with other definitions; the definition determines which requests are its own.
"""

import bisect
import json
import re
import sys
import tomllib
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import scipy.stats

from sessions import of_new_york

folder, name = Path(sys.argv[1]), sys.argv[2]
version = folder / "output/datasets" / name / "latest"
archive = folder / "output/archive/vendor"
drawn_page = (folder / "output/reports" / f"{name}.html").read_text()

# Every run, oldest first: those with a folder of their own, and the members of packs, which repeat their rows.
sealed = [json.loads(path.read_text()) for path in archive.glob("*=*/run.json")]
seals = {run["run"]: run for seal in sealed for run in seal.get("members", [seal])}
seals = sorted(seals.values(), key=lambda seal: (seal["sealed_at"], seal["run"]))
for table in ("signals", "articles", "requests", "rejects"):
    duckdb.sql(f"create table {table}_of_all as select distinct * from read_parquet('{archive}/*=*/{table}.parquet', hive_partitioning = false)")
spans = ", ".join(f"('{seal['run']}', timestamptz '{seal['started_at']}', timestamptz '{seal['sealed_at']}')" for seal in seals)
duckdb.sql(f"create table spans as select * from (values {spans}) as spans(run, started_at, sealed_at)")

published = f"read_parquet('{version}/{name}.parquet')"
columns = [column for column, *_ in duckdb.sql(f"describe select * from {published}").fetchall() if column != "sector"]
duckdb.sql(f"create table rows as select {', '.join(columns)} from {published}")
# Plots over time go from 1900 to 2099.
duckdb.sql("create view drawn as select * from rows where year(date) between 1900 and 2099")
duckdb.sql("create view signals as select * from signals_of_all where (ticker, period, regime) in (select distinct (ticker, period, regime) from rows)")
duckdb.sql("create view article_cells as select * from articles_of_all where ticker in (select ticker from rows)")
duckdb.sql("""
    create table articles as
    select * from article_cells
    qualify row_number() over (partition by ticker, date, title, link, copy order by observed_at desc) = 1
    and change <> 'withdrawn' and date::date between (select min(date)::date from rows) and (select max(date)::date from rows)
""")

# The requests that the definition makes: the histories of its sectors, and the news of each ticker in them.
asked = tomllib.loads(json.loads((version / "dataset.json").read_text())["definition"])["signals"]
own = [
    f"signals-history-all sector={sector} period={period} regime={regime}"
    for sector in asked["sectors"] for period in asked["periods"] for regime in asked.get("regimes", ["neutral"])
]
own += [f"news_articles/{ticker}" for (ticker,) in duckdb.sql("select distinct ticker from rows").fetchall()]
duckdb.sql(f"create view requests as select *, dense_rank() over (partition by request order by observed_at desc) as back from requests_of_all join spans on observed_at between started_at and sealed_at where request in {tuple(own)}")


class Page(HTMLParser):
    """The values of the marks of each plot, the texts of elements with an id, the findings, and the rows of tables."""

    def __init__(self, text):
        super().__init__()
        self.plots, self.texts, self.findings, self.rows = {}, {}, {}, []
        self.plot, self.within, self.section, self.is_cell = None, None, None, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        kind = attributes.get("class", "").split()
        if tag == "section":
            self.section = attributes["id"]
        elif "plot" in kind:
            self.plot = self.plots.setdefault(attributes["id"], [])
        elif "id" in attributes:
            self.within = (self.texts, attributes["id"])
        elif "finding" in kind:
            self.within = (self.findings, self.section)
        elif tag == "tr":
            self.rows.append([self.section])
        elif tag == "td":
            self.rows[-1].append("")
            self.is_cell = True
        if "data-v" in attributes:
            self.plot.append(attributes["data-v"])

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag):
        self.is_cell = self.is_cell and tag != "td"
        if tag != "span":
            self.within = None

    def handle_data(self, text):
        if self.within:
            texts, place = self.within
            texts[place] = texts.get(place, "") + text
        elif self.is_cell:
            self.rows[-1][-1] += text.strip()


def ask(question):
    return duckdb.sql(question).fetchall()


def number(text):
    return int(text.replace(",", ""))


def share(some, whole):
    """A share in the report's notation: more decimals near 0 % and 100 %, and never rounded to either."""
    percent = 100 * some / whole if whole else 0
    rest = min(percent, 100 - percent)
    if some in (0, whole):
        return "0 %" if some == 0 else "100 %"
    if rest < 0.0001:
        return "<0.0001 %" if percent < 50 else ">99.9999 %"
    return f"{percent:.{4 if rest < 0.1 else 2 if rest < 10 else 1}f} %"


def some(count, one, many):
    return f"{count:,} {one if count == 1 else many}"


page = Page(drawn_page)
summary = (folder / "summary.txt").read_text()
told = " ".join(summary.split())
rows, tickers, days, pairs = ask("select count(*), count(distinct ticker), count(distinct date::date), count(distinct (period, regime)) from rows")[0]
article_count, all_days = ask("select count(*) from articles")[0][0], days
for figure, expected in (("rows", rows), ("tickers", tickers), ("days", days), ("pairs", pairs), ("articles", article_count)):
    assert number(page.texts[f"figure-{figure}"]) == expected, (figure, expected)
assert re.search(rf"^signals +{rows:,}$", summary, re.M) and re.search(rf"^tickers +{tickers:,}$", summary, re.M), summary
first, last = ask("select min(date)::date, max(date)::date from rows")[0]
assert re.search(rf"^days +{days:,}, {first} to {last}$", summary, re.M), summary

# First, what was observed: since when, and how much was seen within two trading days of its date.
span, began = ask("select epoch_us(max(observed_at)) - epoch_us(min(observed_at)), strftime(min(observed_at), '%Y-%m-%d') from requests where request not like 'news_articles/%'")[0]
seconds = span // 1_000_000
unit, length = next(((unit, length) for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)) if seconds >= length), ("", 1))
if unit:
    span = some(seconds // length, unit, f"{unit}s")
else:
    span = f"{span / 1e6:.1f} s" if seconds else f"{span // 1000} ms"
own_runs = ask("select count(distinct run) from requests")[0][0]


SESSIONS = of_new_york(date(1990, 1, 1), date(2030, 12, 31))


def trading_days(day, until):
    return sum(session > day for session in SESSIONS[bisect.bisect_left(SESSIONS, day) : bisect.bisect_right(SESSIONS, until)])


firsts = ask("""
    with firsts as (select ticker, period, regime, date, min(observed_at) as first from signals group by all)
    select date::date, (first at time zone 'UTC')::date, count(*) from rows join firsts using (ticker, period, regime, date) group by all
""")
live = sum(count for day, first, count in firsts if trading_days(day, first) <= 2)
standing = f"Observed since {began} in {some(own_runs, 'run', 'runs')}{f', over {span}' if own_runs > 1 else ''}."
if live == 0:
    standing += " All signals were first seen later than 2 trading days after their date."
elif live == rows:
    standing += " All signals were seen live, within 2 trading days of their date."
else:
    standing += f" {share(live, rows)} of signals were seen live, within 2 trading days of their date; {share(rows - live, rows)} were first seen later."
assert page.texts["standing"].startswith(standing), (page.texts["standing"], standing)
assert page.texts["standing"] in told and sum(count for *_, count in firsts) == rows, (told, page.texts["standing"])
document = json.loads((folder / "summary.json").read_text())
assert (document["observed"]["seen_live"], document["observed"]["seen_later"]) == (live, rows - live), document["observed"]
span = f" ({span} from the first answer to the last)"

# The page and the terminal summary both count the signals that plots over time leave out.
undrawn, undrawn_days = ask("select count(*), count(distinct date::date) from rows where year(date) not between 1900 and 2099")[0]
for text in (drawn_page, told):
    sentence = f"{some(undrawn, 'signal is', 'signals are')} dated before 1900 or after 2099, on {some(undrawn_days, 'day', 'days')}."
    assert (sentence in text) == (undrawn > 0), sentence

# Coverage, by month. A day counts once, however many signals it has, and a pair is due on the days that any ticker has it.
expected = ask("select strftime(date, '%Y-%m'), count(distinct ticker), count(distinct date::date) from drawn group by all order by 1")
found = [re.fullmatch(r"(\S+)\n([\d,]+) tickers?, ([\d,]+) days? with signals", value).groups() for value in page.plots["plot-tickers"]]
assert [(month, number(count), number(dates)) for month, count, dates in found] == expected, (found, expected)
cells = {(ticker, month): (said, could) for ticker, month, said, could in ask("""
    with months as (select distinct strftime(date, '%Y-%m') as month from drawn),
    of_pairs as (select strftime(date, '%Y-%m') as month, period, regime, count(distinct date::date) as days from drawn group by all),
    of_tickers as (select distinct ticker, period, regime from rows),
    due as (
        select ticker, month, coalesce(sum(days), 0)::bigint as due
        from of_tickers cross join months left join of_pairs using (month, period, regime) group by all
    ),
    said as (select ticker, strftime(date, '%Y-%m') as month, count(distinct (date::date, period, regime)) as said from drawn group by all)
    select ticker, month, coalesce(said, 0), due from due left join said using (ticker, month)
""")}
found = [re.fullmatch(r"(\S+), (\S+)\n([\d,]+) of ([\d,]+)", value).groups() for value in page.plots.get("plot-coverage", [])]
drawn = {(ticker, month): (number(said), number(could)) for ticker, month, said, could in found}
assert len(drawn) == len(found) and drawn.items() <= cells.items()
lacking = {ticker for (ticker, _), (said, could) in cells.items() if said < could}
# Only tickers with gaps have a row.
assert len({ticker for ticker, _ in drawn}) == min(48, len(lacking)) and {ticker for ticker, _ in drawn} <= lacking
finding = f"No gaps in {some(tickers, 'ticker', 'tickers')}"
if lacking:
    finding = f"{len(lacking):,} of {some(tickers, 'ticker', 'tickers')} {'has' if len(lacking) == 1 else 'have'} gaps"
assert page.findings["coverage"] == finding and finding in told, (page.findings, finding)

# Buys, sells and confidence, by pair, of all dates; and by stretch of time, of those that are drawn.
for period, regime in ask("select distinct period, regime from rows"):
    of_pair = f"period = '{period}' and regime = '{regime}'"
    buys, all, mean = ask(f"select count(*) filter (signal = 'buy'), count(*), avg(confidence) from rows where {of_pair}")[0]
    assert re.search(rf"^  {period} {regime} .* {re.escape(share(buys, all))} buy, {mean:.3f}$", summary, re.M), (period, regime, buys, all, mean)
    stretches = {value.split("\n")[0] for value in page.plots[f"plot-signals-{period}-{regime}"]}
    form = "'week of ' || strftime(date_trunc('week', date), '%Y-%m-%d')" if any("week" in it for it in stretches) else "strftime(date, '%Y-%m')"
    expected = ask(f"select {form}, count(*) filter (signal = 'buy'), count(*), avg(confidence) from drawn where {of_pair} group by all order by 1")
    found = [value.split("\n") for value in page.plots[f"plot-signals-{period}-{regime}"]]
    assert [(month, buys) for month, buys, _ in found] == [(month, f"{share(buys, all)} of {all:,} buy") for month, buys, all, _ in expected]
    for (_, _, shown), (_, _, _, mean) in zip(found, expected):
        assert abs(float(shown.removeprefix("confidence ")) - mean) <= 0.0005 + 1e-9
buys, mean = ask("select count(*) filter (signal = 'buy'), avg(confidence) from rows")[0]
assert page.findings["signals"] == f"{share(buys, rows)} of signals are buys" and page.findings["signals"] in told
assert page.findings["confidence"] == f"Mean confidence is {mean:.3f}" and page.findings["confidence"] in told


# How confidences and scores are distributed.
def bins(table, value, condition, first):
    counts = dict(ask(f"select least(floor({value} * 50), 49)::int, count(*) from {table} where {condition} group by all"))
    return [counts.get(bin, 0) for bin in range(*first)]


def tenths(table, value):
    """The bins from the lowest to the highest value, in whole tenths."""
    low, high = ask(f"select floor(min(least(floor({value} * 50), 49)) / 5)::int * 5, floor(max(least(floor({value} * 50), 49)) / 5)::int * 5 + 5 from {table}")[0]
    return low, high


shown = [number(value.split("\n")[1].split(" ")[0]) for value in page.plots["plot-confidence"]]
assert shown == bins("rows", "confidence", "signal = 'buy'", tenths("rows", "confidence")) + bins("rows", "confidence", "signal = 'sell'", tenths("rows", "confidence"))
shown = [number(value.split("\n")[1].split(" ")[0]) for value in page.plots["plot-scores"]]
assert shown == bins("articles", "score", "score is not null", tenths("articles", "score"))

# How often signals flip, by pair and by confidence: each signal against the next one of its series.
duckdb.sql("""
    create table followed as
    select *, lead(signal) over (partition by ticker, period, regime order by date) as next from rows
    qualify next is not null
""")
followed, flipped = ask("select count(*), count(*) filter (next <> signal) from followed")[0]
finding = f"{share(flipped, followed)} of signals are followed by their opposite" if followed else "No series has two signals"
assert page.findings["persistence"] == finding and finding in told, (page.findings["persistence"], finding)
expected = {f"{period}-{regime}": share(flipped, all) for period, regime, flipped, all in ask("select period, regime, count(*) filter (next <> signal), count(*) from followed group by all")}
shown = {plot.removeprefix("plot-flips-"): marks[0].split(": ")[1] for plot, marks in page.plots.items() if plot.startswith("plot-flips-")}
assert shown == expected, (shown, expected)
expected = {bin: (all, flipped) for bin, all, flipped in ask("select least(floor(confidence * 50), 49)::int, count(*), count(*) filter (next <> signal) from followed group by all")}
found = [re.fullmatch(r"confidence ([\d.]+) to [\d.]+\n(.+) of ([\d,]+) flip", value).groups() for value in page.plots.get("plot-persistence", [])]
assert {round(float(edge) * 50): (number(all), shown) for edge, shown, all in found} == {bin: (all, share(flipped, all)) for bin, (all, flipped) in expected.items()}


# The least and the most confident: as many whole bins as hold a fifth.
def end(bins):
    all = flipped = count = 0
    for bin in bins:
        count, all, flipped = count + 1, all + expected.get(bin, (0, 0))[0], flipped + expected.get(bin, (0, 0))[1]
        if all * 5 >= followed:
            break
    return count, share(all, followed), share(flipped, all)


low, high = end(range(50)), end(reversed(range(50)))
sentence = f"Of the least confident {low[1]} of signals, {low[2]} flip; of the most confident {high[1]}, {high[2]}."
assert (sentence in told) == (followed > 0 and low[0] + high[0] <= 50), sentence

# How often two pairs of period and regime agree, on the tickers and dates that both have a signal for.
def agreeing(both, same, one, other):
    chance = (one * other + (both - one) * (both - other)) / both**2
    beyond = "" if chance == 1 else f": {(same / both - chance) / (1 - chance):.2f} beyond it"
    return f"{share(same, both)} where chance gives {share(chance, 1)}{beyond}"


compared = ask("""
    with named as (select *, period || ' ' || regime as pair from rows)
    select one.pair, other.pair, count(*), count(*) filter (one.signal = other.signal),
        count(*) filter (one.signal = 'buy'), count(*) filter (other.signal = 'buy')
    from named as one join named as other using (ticker, date) where one.pair <> other.pair group by all
""")
expected = {(one, other): (both, agreeing(both, *counts)) for one, other, both, *counts in compared}
found = [re.fullmatch(r"(\S+ \S+) and (\S+ \S+)\nof ([\d,]+) signals? each, (.+)", value).groups() for value in page.plots.get("plot-agreement", [])]
assert len(found) * 2 == len(expected)
for one, other, both, shown in found:
    assert (number(both), shown) == expected[one, other], (one, other, shown, both)

# Whether two pairs agree more than others: a date counts as one observation.
kappas = []
for pair, other, both, same, buys, buys_of_other in compared:
    chance, rate = (buys * buys_of_other + (both - buys) * (both - buys_of_other)) / both**2, same / both
    if chance < 1 and pair < other:
        kappas.append(((rate - chance) / (1 - chance), (rate * (1 - rate) / min(all_days, both)) ** 0.5 / (1 - chance)))
if len(kappas) > 1:
    (low, error), (high, other_error) = min(kappas), max(kappas)
    error = (error**2 + other_error**2) ** 0.5
    p = 2 * scipy.stats.norm.sf((high - low) / error) * len(kappas) * (len(kappas) - 1) / 2 if error else float(high == low)
    finding = f"Agreement of pairs beyond chance is {low:.2f} to {high:.2f}"
    if p >= 0.05:
        finding = f"Agreement of pairs beyond chance is {sum(it[0] for it in kappas) / len(kappas):.2f}, and differs by no more than noise"
    assert page.findings["agreement"] == finding and finding in told, (page.findings["agreement"], finding, p)

# The split by sector: each ticker in the sector whose request listed it.
of_sector = lambda section: [tuple(row[1:]) for row in page.rows if row[0] == section and len(row) > 1]
listings = f"read_parquet('{archive}/*=*/listings.parquet', hive_partitioning = false)"
expected = ask(f"""
    with listed as (select distinct ticker, regexp_extract(request, 'sector=(\\S+)', 1) as sector from {listings} where request like '% sector=%'),
    of_rows as (select count(distinct ticker) as tickers, sector, count(*) as signals, count(*) filter (signal = 'buy') as buys, avg(confidence) as mean from rows join listed using (ticker) group by sector),
    of_flips as (select sector, count(*) filter (next <> signal) as flipped, count(*) as followed from followed join listed using (ticker) group by sector)
    select sector, tickers, signals, buys, mean, flipped, followed from of_rows left join of_flips using (sector) order by sector
""")
shown = of_sector("sectors")
assert len(shown) == len(expected), (shown, expected)
for row, (sector, count, signals, buys, mean, flipped, followed_of_it) in zip(shown, expected):
    flips = share(flipped, followed_of_it) if followed_of_it else "-"
    assert row[:4] + row[5:] == (sector, f"{count:,}", f"{signals:,}", share(buys, signals), flips), (row, sector)
    assert abs(float(row[4]) - mean) <= 0.0005 + 1e-9

# Whether sectors differ: the lowest share of buys against the highest, each with the variance of a ratio over its tickers.
def welch(lowest, highest, comparisons):
    variances = []
    for sector in (lowest, highest):
        tickers = ask(f"select count(*) filter (signal = 'buy'), count(*) from rows join listed_tickers using (ticker) where sector = '{sector}' group by ticker")
        buys, all = (sum(column) for column in zip(*tickers))
        count = len(tickers)
        if count < 2:
            return None
        squares = sum((buy - buys / all * of) ** 2 for buy, of in tickers) / all**2
        variances.append((buys / all, squares * count / (count - 1), count - 1))
    (low, one, some), (high, other, more) = variances
    if one + other == 0:
        return None
    freedom = (one + other) ** 2 / (one**2 / some + other**2 / more)
    return min(1, comparisons * 2 * scipy.stats.t.sf((high - low) / (one + other) ** 0.5, freedom))


if len(expected) > 1:
    duckdb.sql(f"create table listed_tickers as select distinct ticker, regexp_extract(request, 'sector=(\\S+)', 1) as sector from {listings} where request like '% sector=%'")
    by_share = sorted(expected, key=lambda row: row[3] / row[2])
    lowest, highest = by_share[0], by_share[-1]
    buying = lambda row: f"{share(row[3], row[2])} in {row[0]}"
    p = welch(lowest[0], highest[0], len(expected) * (len(expected) - 1) // 2)
    if p is None:
        finding = "There are too few tickers to tell whether sectors differ in their share of buys"
    elif p < 0.05:
        finding = f"Buys are {buying(lowest)} and {buying(highest)}"
    else:
        finding = "Sectors differ in their share of buys by no more than noise"
    assert page.findings["sectors"] == finding and finding in told, (page.findings["sectors"], finding, p)
    assert f"Lowest: {buying(lowest)}. Highest: {buying(highest)}." in told, (told, lowest, highest)
    assert p is None or re.search("gives p = " + re.escape(f"{p:.3f}") if p >= 0.001 else "gives p < 0.001", told), (told, p)

# News by month, from the first article on, and how many signals it reaches, of those for which that is known.
drawn_articles = "(select * from articles where year(date) between 1900 and 2099)"
begin = ask(f"select min(date)::date from {drawn_articles}")[0][0]
end = ask(f"select greatest(max(date)::date, (select max(date)::date from drawn)) from {drawn_articles}")[0][0]
expected = ask(f"""
    select strftime(month, '%Y-%m'), count(articles.date) from unnest(generate_series(date_trunc('month', date '{begin}'), date '{end}', interval 1 month)) as months(month)
    left join articles on date_trunc('month', articles.date) = month group by all order by 1
""")
found = [re.fullmatch(r"(\S+)\n([\d,]+) articles?", value).groups() for value in page.plots["plot-news"]]
assert [(month, number(count)) for month, count in found] == expected, (found, expected)
beyond = article_count - sum(count for _, count in expected)
# The page has it beside its plot, and the summary in a line.
assert (f"{some(beyond, 'article is', 'articles are')} dated outside this plot." in told) == (beyond > 0), beyond
reached = ask("select count(distinct ticker) from articles")[0][0]
assert f"{some(article_count, 'article', 'articles')} about {reached:,} of {some(tickers, 'ticker', 'tickers')}" in told
windows = [column for column, *_ in ask("describe rows") if column.startswith("news_count_")]
assert windows
for column in windows:
    days_of_window = column.removeprefix("news_count_")
    with_news, all = ask(f"select count(*) filter ({column} > 0), count({column}) from rows")[0]
    (value,) = page.plots[f"plot-window-{days_of_window}"]
    assert value.endswith(f": {share(with_news, all)}"), (value, with_news)
longest = max(windows, key=lambda column: int(column.removeprefix("news_count_").removesuffix("d")))
length = some(int(longest.removeprefix("news_count_").removesuffix("d")), "day", "days")
with_news, known, all = ask(f"select count(*) filter ({longest} > 0), count({longest}), count(*) from rows")[0]
finding = f"{share(with_news, known)} of signals have news within {length}"
assert document["observed"]["news_unknown"] == all - known
if known < all:
    unknown = share(all - known, all)
    assert f" News is unknown for {unknown} of signals" in page.texts["standing"], page.texts["standing"]
    finding = f"News is unknown for {unknown} of signals; {share(with_news, known)} of the others have some within {length}"
assert page.findings["news"] == finding and finding in told, (page.findings["news"], finding)
expected = ask(f"select strftime(date, '%Y-%m'), count(*) filter ({longest} > 0), count({longest}) from drawn where date >= date_trunc('month', date '{begin}') group by all order by 1")
# What is unknown is drawn on top, of all signals.
unknown_in = ask(f"select strftime(date, '%Y-%m'), count(*) - count({longest}), count(*) from drawn where date >= date_trunc('month', date '{begin}') group by all order by 1")
found = [value.split("\nunknown for ") for value in page.plots["plot-reach"] if "\nunknown for " in value]
assert found == [[month, share(missing, all)] for month, missing, all in unknown_in if missing], (found, unknown_in)
found = [re.fullmatch(r"(\S+)\n(.+) of ([\d,]+) signals?", value).groups() for value in page.plots["plot-reach"] if "\nunknown for " not in value]
found = [(month, shown, number(all)) for month, shown, all in found if all != "0"]
assert found == [(month, share(some, all), all) for month, some, all in expected if all], (found, expected)

# Changed signals and articles: those revised to another value, and those withdrawn. The services of these tests add nothing late.
tables = {
    "signals": ("signals", "ticker, period, regime, date", "(signal, confidence)"),
    "articles": ("article_cells", "ticker, date, title, link, copy", "(score,)"),
}
sentences, any_changed = [], 0
for what, (table, key, value) in tables.items():
    value = value.replace(",)", ")")
    duckdb.sql(f"""
        create table {what}_changes as
        with told as (select *, row({value.strip('()')}) as now, lag(row({value.strip('()')})) over (partition by {key} order by observed_at) as before from {table})
        select {key}, count(*) filter (change = 'revised' and now is distinct from before) as revised, count(*) filter (change = 'withdrawn') as withdrawn
        from told group by all
    """)
    known, changed, revised, withdrawn = ask(f"select count(*), count(*) filter (revised + withdrawn > 0), sum(revised)::bigint, sum(withdrawn)::bigint from {what}_changes")[0]
    if known == 0:
        continue
    any_changed += changed
    sentences.append(f"{share(changed, known)} of {what}" if changed else f"no {what}")
    # Signals flip only by chance here, so that part of the sentence is optional.
    tally = rf"{known:,} {what}: {some(revised, 'revision', 'revisions')}( \([\d,]+ flipped between buy and sell\))?, 0 added late, {withdrawn:,} withdrawn\."
    if changed == 0:
        assert f"plot-rewrites-{what}" not in page.plots
        continue
    assert re.search(tally, told), (tally, told)
    expected = ask(f"select strftime(date, '%Y-%m'), count(*) filter (revised + withdrawn > 0), count(*) from {what}_changes group by all order by 1")
    found = [re.fullmatch(r"(\S+)\n([\d,]+) of ([\d,]+) changed, (.+)", value).groups() for value in page.plots[f"plot-rewrites-{what}"]]
    found = [(month, number(changed), number(of), shown) for month, changed, of, shown in found if of != "0"]
    assert found == [(month, changed, of, share(changed, of)) for month, changed, of in expected], (what, found, expected)
    by_ticker = dict(ask(f"select ticker, count(*) from {what}_changes where revised + withdrawn > 0 group by all"))
    shown = [page.plots[plot][0] for plot in page.plots if plot.startswith(f"plot-rewritten-{what}-")]
    named = {ticker: number(count) for ticker, count in (re.match(r"(\S+): ([\d,]+),", value).groups() for value in shown)}
    assert named.items() <= by_ticker.items() and len(named) == min(10, len(by_ticker))
    assert sorted(named.values(), reverse=True) == sorted(by_ticker.values(), reverse=True)[: len(named)]
finding = " and ".join(sentences)
finding = f"{finding[0].upper()}{finding[1:]} changed after they were first seen{span}"
if any_changed == 0:
    finding = "Only one run so far: nothing to compare with" if own_runs == 1 else f"No revisions{span}"
assert page.findings["rewrites"] == finding and finding in told, (page.findings["rewrites"], finding)

# Rejected records and unknown fields: those of the latest answer to each of the dataset's requests, and those of them that
# the answer before did not have.
rejects = "select request, ticker, raw from rejects_of_all join requests using (request, observed_at)"
duckdb.sql(f"create table rejected as {rejects} where back = 1")
duckdb.sql(f"create table rejected_before as {rejects} where back = 2")
rejected = ask("select count(*) from rejected")[0][0]
new = ask("select count(*) from (from rejected except all from rejected_before)")[0][0]
duckdb.sql("create table unknown_of_answers as select back, unnest(from_json(unknown_fields, '[{\"endpoint\": \"VARCHAR\", \"field\": \"VARCHAR\", \"count\": \"BIGINT\"}]'), recursive := true) from requests where unknown_fields is not null")
unknown = ask("select endpoint, field, sum(count)::bigint from unknown_of_answers where back = 1 group by all")
before = set(ask("select distinct endpoint, field from unknown_of_answers where back = 2"))
of_which = lambda new: "" if own_runs == 1 else f" ({new or 'none'} new)"
finding = f"{some(rejected, 'rejected record', 'rejected records')}{of_which(new)}, " if rejected else "No rejected records, "
finding += some(len(unknown), "unknown field", "unknown fields") + of_which(len({it[:2] for it in unknown} - before)) if unknown else "no unknown fields"
assert page.findings["rejects"] == finding and finding in told, (page.findings["rejects"], finding)
of_section = lambda section: [row[1:] for row in page.rows if row[0] == section and len(row) > 1]
fields = [row for row in of_section("rejects") if (row[1], row[0]) in {it[:2] for it in unknown}]
assert len(fields) == min(12, len(unknown)) and {(row[1], row[0], number(row[3])) for row in fields} <= set(unknown)
reasons = [row for row in of_section("rejects") if row not in fields]
assert len(reasons) == 12 or sum(number(row[2]) for row in reasons) == rejected, reasons
if own_runs > 1:
    assert len(reasons) == 12 or sum(number(row[3]) for row in reasons) == new, reasons

# The runs that answered one of the dataset's requests, newest first, and nothing of the others.
expected = ask("select run, count(*), sum(rejects)::bigint from requests group by all")
expected = {run: (count, rejects) for run, count, rejects in expected}
shown = [(row[0], number(row[3]), number(row[7])) for row in of_section("timings")]
order = [seal["run"] for seal in reversed(seals) if seal["run"] in expected][:12]
assert shown == [(run, *expected[run]) for run in order], (shown, expected)
assert re.search(rf"^from +{some(own_runs, 'run', 'runs')}$", summary, re.M), (own_runs, summary)

# Duration of the latest run, and as many answers drawn as it received.
newest = next(seal for seal in seals if seal["run"] == order[0])
drawn_answers = [sum(number(value.split("\n")[1].split(" ")[0]) for value in page.plots[plot]) for plot in page.plots if plot.startswith("plot-answers-")]
assert sorted(drawn_answers) == sorted(count for count, _ in ask(f"select count(*), endpoint from requests where run = '{newest['run']}' group by endpoint"))
fetched = ask(f"select epoch(max(observed_at) - timestamptz '{newest['started_at']}') from requests where run = '{newest['run']}'")[0][0]
value, unit = re.fullmatch(r"The latest run was fetched in ([\d.]+) (ms|s)", page.findings["timings"]).groups()
seconds = float(value) / (1000 if unit == "ms" else 1)
assert abs(seconds - fetched) <= (0.001 if unit == "ms" else 0.051), (seconds, fetched)
assert page.findings["timings"] in told
print("the report says what the archive and the dataset say")
