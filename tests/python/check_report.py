"""Computes the numbers of a report anew with DuckDB, from the dataset and the archive, and compares.

    check_report.py FOLDER NAME

The folder has output/archive, output/datasets/NAME/latest with its report, and summary.txt, what the terminal was told.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import duckdb

folder, name = Path(sys.argv[1]), sys.argv[2]
version = folder / "output/datasets" / name / "latest"
archive = folder / "output/archive"
duckdb.sql(f"create table rows as select * from read_parquet('{version}/{name}.parquet')")
duckdb.sql(f"create table signals as select * from read_parquet('{archive}/run=*/signals.parquet')")
duckdb.sql(f"""
    create table articles as
    select * from (
        select *, row_number() over (partition by ticker, source, date, title, link, copy order by observed_at desc) as nth
        from read_parquet('{archive}/run=*/articles.parquet')
    ) where nth = 1 and change <> 'withdrawn' and ticker in (select ticker from rows)
        and date::date between (select min(date)::date from rows) and (select max(date)::date from rows)
""")


class Page(HTMLParser):
    """The values of the marks of each plot, and the texts of elements with an id."""

    def __init__(self, text):
        super().__init__()
        self.plots, self.texts, self.plot, self.within = {}, {}, None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "plot" in attributes.get("class", "").split():
            self.plot = self.plots.setdefault(attributes["id"], [])
        elif "id" in attributes:
            self.within = attributes["id"]
        if "data-v" in attributes:
            self.plot.append(attributes["data-v"])

    handle_startendtag = handle_starttag

    def handle_data(self, text):
        if self.within:
            self.texts.setdefault(self.within, text)
            self.within = None


def asked(question):
    return duckdb.sql(question).fetchall()


def number(text):
    return int(text.replace(",", ""))


def share(some, whole):
    """A share as the report writes it."""
    percent = 100 * some / whole if whole else 0
    if some in (0, whole):
        return "0 %" if some == 0 else "100 %"
    return "<0.1 %" if percent < 0.1 else ">99.9 %" if percent >= 99.9 else f"{percent:.1f} %"


def rate(some, whole):
    """A rate of rewriting as the report writes it, a small one with more digits."""
    percent = 100 * some / whole
    return f"{percent:.2f} %" if percent >= 1 or some == 0 else f"{percent:.4f} %"


page = Page((version / "report.html").read_text())
summary = (folder / "summary.txt").read_text()
rows, tickers, days, pairs = asked("select count(*), count(distinct ticker), count(distinct date::date), count(distinct (period, regime)) from rows")[0]
article_count = asked("select count(*) from articles")[0][0]
for figure, expected in (("rows", rows), ("tickers", tickers), ("days", days), ("pairs", pairs), ("articles", article_count)):
    assert number(page.texts[f"figure-{figure}"]) == expected, (figure, expected)
assert re.search(rf"^signals +{rows:,}$", summary, re.M) and re.search(rf"^tickers +{tickers:,}$", summary, re.M), summary

# Coverage, by month.
expected = asked("select strftime(date, '%Y-%m'), count(distinct ticker), count(distinct date::date) from rows group by all order by 1")
found = [re.fullmatch(r"(\S+)\n([\d,]+) tickers?, ([\d,]+) days? with signals", value).groups() for value in page.plots["plot-tickers"]]
assert [(month, number(count), number(dates)) for month, count, dates in found] == expected
cells = {(ticker, month): (said, could) for ticker, month, said, could in asked("""
    with full_months as (select strftime(date, '%Y-%m') as month, count(distinct date::date) as days from rows group by all),
    of_tickers as (select ticker, count(distinct (period, regime)) as pairs from rows group by all),
    said as (select ticker, strftime(date, '%Y-%m') as month, count(*) as said from rows group by all)
    select ticker, month, coalesce(said, 0), days * pairs from full_months cross join of_tickers left join said using (ticker, month)
""")}
found = [re.fullmatch(r"(\S+), (\S+)\n([\d,]+) of ([\d,]+)", value).groups() for value in page.plots["plot-coverage"]]
drawn = {(ticker, month): (number(said), number(could)) for ticker, month, said, could in found}
assert len(drawn) == len(found) and drawn.items() <= cells.items()
lacking = {ticker for (ticker, _), (said, could) in cells.items() if said < could}
assert len({ticker for ticker, _ in drawn}) == min(tickers, max(20, min(48, len(lacking))))
if len(lacking) <= 48:
    assert lacking <= {ticker for ticker, _ in drawn}

# Buys, sells and confidence, by pair and month.
for period, regime in asked("select distinct period, regime from rows"):
    expected = asked(f"""
        select strftime(date, '%Y-%m'), count(*) filter (signal = 'buy'), count(*), avg(confidence) from rows
        where period = '{period}' and regime = '{regime}' group by all order by 1
    """)
    found = [value.split("\n") for value in page.plots[f"plot-signals-{period}-{regime}"]]
    assert [(month, buys) for month, buys, _ in found] == [(month, f"{share(buys, all)} of {all:,} buy") for month, buys, all, _ in expected]
    for (_, _, told), (_, _, _, mean) in zip(found, expected):
        assert abs(float(told.removeprefix("confidence ")) - mean) <= 0.0005 + 1e-9
buys = asked("select count(*) filter (signal = 'buy') from rows")[0][0]
assert f"{share(buys, rows)} of the signals say buy" in summary

# How confidences and scores are distributed.
def bins(table, value, condition, first):
    counts = dict(asked(f"select least(floor({value} * 50), 49)::int, count(*) from {table} where {condition} group by all"))
    return [counts.get(bin, 0) for bin in range(first, 50)]


told = [number(value.split("\n")[1].split(" ")[0]) for value in page.plots["plot-confidence"]]
assert told == bins("rows", "confidence", "signal = 'buy'", 0) + bins("rows", "confidence", "signal = 'sell'", 0)
told = [number(value.split("\n")[1].split(" ")[0]) for value in page.plots["plot-scores"]]
assert told == bins("articles", "score", "score is not null", -50)

# News: by week, and how many signals it reaches.
first, last = asked("select date_trunc('week', min(date))::date, date_trunc('week', max(date))::date from rows")[0]
expected = asked(f"""
    select strftime(week, '%Y-%m-%d'), count(articles.date) from unnest(generate_series(date '{first}', date '{last}', interval 7 days)) as weeks(week)
    left join articles on date_trunc('week', articles.date) = week group by all order by 1
""")
found = [re.fullmatch(r"week of (\S+)\n([\d,]+) articles?", value).groups() for value in page.plots["plot-news"]]
assert [(week, number(count)) for week, count in found] == expected
reached = asked("select count(distinct ticker) from articles")[0][0]
assert f"{article_count:,} articles about {reached:,} of {tickers:,} tickers" in " ".join(summary.split())
windows = [column for column, *_ in asked("describe rows") if column.startswith("news_count_")]
assert windows
for column in windows:
    days_of_window = column.removeprefix("news_count_")
    with_news = asked(f"select count(*) filter ({column} > 0) from rows")[0][0]
    (told,) = page.plots[f"plot-window-{days_of_window}"]
    assert told.endswith(f": {share(with_news, rows)}"), (told, with_news)

# What was rewritten. The demo service revises and does nothing else to its past.
member = "(ticker, period, regime) in (select distinct (ticker, period, regime) from rows)"
assert not asked(f"select * from signals where change = 'withdrawn' and {member}")
expected = asked(f"""
    with cells as (select ticker, period, regime, date, bool_or(change = 'revised') as changed from signals where {member} group by all)
    select strftime(date, '%Y-%m'), count(*) filter (changed), count(*) from cells group by all order by 1
""")
changed, known = sum(row[1] for row in expected), sum(row[2] for row in expected)
assert changed > 0
found = [re.fullmatch(r"(\S+)\n([\d,]+) of ([\d,]+) changed, (.+)", value).groups() for value in page.plots["plot-rewrites"]]
assert [(month, number(some), number(of)) for month, some, of, _ in found] == expected
assert all(told == rate(some, of) for (_, _, _, told), (_, some, of) in zip(found, expected))
assert f"{rate(changed, known)} of the signals changed" in summary
by_ticker = dict(asked(f"select ticker, count(distinct (period, regime, date)) from signals where change = 'revised' and {member} group by all"))
told = [page.plots[plot][0] for plot in page.plots if plot.startswith("plot-rewritten-")]
named = {ticker: number(count) for ticker, count in (re.match(r"(\S+): ([\d,]+),", value).groups() for value in told)}
assert named.items() <= by_ticker.items() and len(named) == min(10, len(by_ticker))
assert sorted(named.values(), reverse=True) == sorted(by_ticker.values(), reverse=True)[: len(named)]

# Requests: as many marks' answers as were answered in the newest run.
newest = sorted(archive.glob("run=*"))[-1]
for count, endpoint in asked(f"select count(*), endpoint from read_parquet('{newest}/requests.parquet') group by all"):
    heads = [values for plot, values in page.plots.items() if plot.startswith("plot-answers-")]
    totals = [sum(number(value.split("\n")[1].split(" ")[0]) for value in values) for values in heads]
    assert count in totals, (endpoint, count, totals)
print("the report says what the archive and the dataset say")
