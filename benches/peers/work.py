"""The job of all tools: tickers, histories, and the files of their answers.

The service offers two operations of the vendor's interface. The tools are given the tickers; bellwether finds them in the
histories.
"""

from typing import NamedTuple

SECTORS = [f"sector-{number}" for number in range(11)]
TICKERS = [f"T{number:03d}" for number in range(500)]
DAYS = 1260
ARTICLES = 400

PERIODS = ["1d", "2d", "3d", "5d", "10d", "15d", "20d", "30d", "1m", "2m", "3m", "6m"]
REGIMES = ["neutral", "bear", "bull"]


class Size(NamedTuple):
    """The pairs of period and regime of a size."""

    periods: list[str]
    regimes: list[str]

    @property
    def rows(self):
        return len(self.periods) * len(self.regimes) * len(TICKERS) * DAYS


SIZES = {
    "S": Size(PERIODS[:1], REGIMES[:1]),
    "M": Size(PERIODS[:4], REGIMES),
    "L": Size(PERIODS, REGIMES),
}


def histories(size):
    """The target of each request for the histories of a sector."""
    pairs = [(period, regime) for period in SIZES[size].periods for regime in SIZES[size].regimes]
    return [
        f"/signals-history-all?sector={sector}&period={period}&regime={regime}"
        for period, regime in pairs
        for sector in SECTORS
    ]


def articles(ticker):
    """The target of the request for the articles of a ticker."""
    return f"/news_articles/{ticker}"


def file_of(folder, target):
    """The file of the answer to a target."""
    path, _, parameters = target.lstrip("/").partition("?")
    return folder / path / f"{parameters.replace('&', ',')}.json" if parameters else folder / f"{path}.json"
