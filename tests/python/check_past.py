"""Reads a served archive with pandas and DuckDB, and compares it with the documented query over the archive's files.

Arguments: the address of the server, the key, the folder of the service in the archive, and instants.
"""

import io
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

import duckdb
import fsspec
import pandas

server, key, archive, *instants = sys.argv[1:]

KNOWN = """
    select * exclude (newest) from (
        select *, row_number() over (partition by {cell} order by observed_at desc, change desc) as newest
        from read_parquet('{archive}/*=*/{table}.parquet', hive_partitioning = false)
        where sealed_at <= '{instant}'
    ) where newest = 1 and change <> 'withdrawn'
"""


class Served(fsspec.AbstractFileSystem):
    """Plain GET requests, for a DuckDB without its own client."""

    protocol = "served"

    def _open(self, path, mode="rb", **_):
        return io.BytesIO(urllib.request.urlopen(f"http://{path.split('://')[-1]}").read())

    def glob(self, path, **_):
        return [path]

    def info(self, path, **_):
        return {"name": path, "size": self._open(path).getbuffer().nbytes, "type": "file"}

    def created(self, path):
        return self.modified(path)

    def modified(self, path):
        return pandas.Timestamp("2026-01-01", tz="UTC").to_pydatetime()


def target(path, **parameters):
    return path + "?" + urllib.parse.urlencode({**parameters, "api_key": key})


duckdb.register_filesystem(Served())
compared = 0
for instant in instants:
    address = f"{server}/at/{instant}/archive/vendor"
    signals = duckdb.sql(
        f"select ticker, strftime(date, '%Y-%m-%d') as day, signal::varchar as signal, confidence from ("
        + KNOWN.format(cell="ticker, period, regime, date", archive=archive, table="signals", instant=instant)
        + ") order by ticker, day"
    ).fetchall()
    assert signals, instant

    # pandas, as anybody would call it.
    url = f"http://{address}/api/" + target("signals-history-all", sector="energy", period="5d")
    sector = pandas.read_json(url, orient="index")
    entries = pandas.json_normalize(sector.to_dict("records"), "predictions", ["ticker", "period", "regime"])
    entries["day"] = pandas.to_datetime(entries["date"], utc=True).dt.strftime("%Y-%m-%d")
    rows = entries.sort_values(["ticker", "day"])[["ticker", "day", "signal", "confidence"]]
    assert [tuple(row) for row in rows.itertuples(index=False)] == signals, instant

    # DuckDB, one ticker at a time.
    for ticker in sorted({row[0] for row in signals}):
        url = f"served://{address}/api/" + target(f"signals-history/{ticker}", period="5d")
        served = duckdb.sql(
            f"""
            select ticker, strftime((entry.date)::timestamptz at time zone 'UTC', '%Y-%m-%d') as day, entry.signal,
                   entry.confidence::double
            from (select ticker, unnest(predictions) as entry from read_json('{url}')) order by day
            """
        ).fetchall()
        assert served == [row for row in signals if row[0] == ticker], (instant, ticker)

    articles = duckdb.sql(
        "select ticker, title, link, score from ("
        + KNOWN.format(
            cell="ticker, date, title, link, copy", archive=archive, table="articles", instant=instant
        )
        + ") order by ticker, date desc, place desc"
    ).fetchall()
    for ticker in sorted({row[0] for row in articles}):
        with urllib.request.urlopen(f"http://{address}/sentiment/" + target(f"news_articles/{ticker}")) as answer:
            assert answer.headers["Bellwether-Watch"]
            served = [(ticker, one["title"], one["link"], one["score"]) for one in json.load(answer)]
        assert served == [row for row in articles if row[0] == ticker], (instant, ticker)
        compared += len(served)
    compared += len(signals)

try:
    urllib.request.urlopen(f"http://{server}/archive/vendor/api/" + target("signals-history/XOM", period="5d", as_of="x"))
    raise AssertionError("a misspelt parameter was answered")
except urllib.error.HTTPError as refusal:
    assert refusal.code == 400, refusal.code
assert compared > 100, compared
