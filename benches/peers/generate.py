"""Writes each answer of the service to a file; the bytes are the same every time.

    generate.py FOLDER SIZE

Histories are daily with an offset, newest day first. Articles are newest first; a tenth of the scores are decimal
strings, as the interface allows, and many articles share their date.
"""

import json
import sys
from pathlib import Path

import numpy

import work

FIRST_DAY = "2021-11-22"


def trading_days():
    return numpy.busday_offset(FIRST_DAY, numpy.arange(work.DAYS)).astype(str).tolist()


def predictions(ticker, period, regime, opening):
    """The entries of a series; `opening` is the start of the entry of each day."""
    seed = [work.TICKERS.index(ticker), work.PERIODS.index(period), work.REGIMES.index(regime)]
    draw = numpy.random.default_rng(seed)
    signals = numpy.where(draw.random(work.DAYS) < 0.55, "buy", "sell").tolist()
    confidences = (draw.integers(5000, 10000, work.DAYS) / 10000).tolist()
    entries = [f'{day}{signal}","confidence":{confidence}}}' for day, signal, confidence in zip(opening, signals, confidences)]
    return ",".join(entries)


def sector_histories(target, opening):
    parameters = dict(pair.split("=") for pair in target.split("?")[1].split("&"))
    period, regime = parameters["period"], parameters["regime"]
    own = work.TICKERS[work.SECTORS.index(parameters["sector"]) :: len(work.SECTORS)]
    series = [
        f'"{ticker}":{{"ticker":"{ticker}","regime":"{regime}","period":"{period}",'
        f'"predictions":[{predictions(ticker, period, regime, opening)}]}}'
        for ticker in own
    ]
    return "{" + ",".join(series) + "}"


def ticker_articles(ticker, days):
    draw = numpy.random.default_rng([len(work.TICKERS), work.TICKERS.index(ticker)])
    # Weekends have news too; some days have a lot.
    calendar = numpy.arange(days[0], numpy.datetime64(days[-1]) + 1, dtype="datetime64[D]")
    busy = draw.gamma(0.7, size=len(calendar))
    dates = numpy.sort(draw.choice(calendar, work.ARTICLES, p=busy / busy.sum()))[::-1].astype(str).tolist()
    scores = draw.normal(0.05, 0.35, work.ARTICLES).clip(-1, 1).round(4).tolist()
    as_text = (draw.random(work.ARTICLES) < 0.1).tolist()
    articles = [
        {
            "date": date,
            "title": f"{ticker}: headline {number} about something that may move the price",
            "score": str(score) if text else score,
            "link": f"https://news.example.com/{date}/{ticker.lower()}-{number}",
        }
        for number, (date, score, text) in enumerate(zip(dates, scores, as_text))
    ]
    return json.dumps(articles, separators=(",", ":"))


def main(folder, size):
    days = trading_days()
    opening = [f'{{"date":"{day}T00:00:00+00:00","signal":"' for day in reversed(days)]
    for target in work.histories(size):
        place = work.file_of(folder, target)
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.write_text(sector_histories(target, opening))
    for ticker in work.TICKERS:
        place = work.file_of(folder, work.articles(ticker))
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.write_text(ticker_articles(ticker, days))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
