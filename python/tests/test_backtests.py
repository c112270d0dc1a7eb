"""The ways to join signals with prices: none that is offered looks ahead, and all agree with `skill`.

The correlations are computed here, from the frames that a user has, and compared with those of the audit and of alphalens.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path

import alphalens
import pandas as pd
import pytest

import bellwether as bw

PAIR = {"periods": "5d", "regimes": "neutral"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("backtests")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        # Of today alone: what was seen live is entered when it was seen, and `skill` takes today's history as of its dates.
        bw.run("demo", fresh=True, progress=False)
        yield folder


def of_rows(frame: pd.DataFrame, score: str, value: str) -> float:
    """The mean rank correlation of the dates."""
    frame = frame.dropna(subset=[score, value])
    by_date = frame.groupby("date").apply(lambda rows: rows[score].corr(rows[value], method="spearman"))
    return float(by_date.mean())


def closes() -> pd.DataFrame:
    return bw.demo_prices().to_pandas().pivot(index="date", columns="ticker", values="close")


def measured() -> float:
    today = [pair for pair in bw.skill("demo").totals["pairs"] if (pair["period"], pair["regime"]) == ("5d", "neutral")]
    (state,) = [measure for measure in today[0]["measures"] if measure["state"] == "today"]
    return float(state["correlation"])


def test_returns_beside_signals_are_those_of_skill(demo: Path) -> None:
    frame = bw.load("demo", **PAIR).with_returns(horizons="5d").to_pandas()
    assert of_rows(frame, "score", "return_5d") == pytest.approx(measured(), abs=1e-12)
    # By hand: the first close after the date, and the close five sessions later.
    prices, row = closes(), frame.dropna(subset=["return_5d"]).iloc[1234]
    entry = prices.index.searchsorted(row["date"], side="right")
    assert prices.index[entry] == row["entry_at"] and prices.index[entry + 5] == row["exit_at_5d"]
    expected = prices[row["ticker"]].iloc[entry + 5] / prices[row["ticker"]].iloc[entry] - 1
    assert row["return_5d"] == pytest.approx(expected, abs=1e-12)


def test_a_factor_in_alphalens_has_the_correlation_of_skill(demo: Path) -> None:
    factor = bw.load("demo").factor(**PAIR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = alphalens.utils.get_clean_factor_and_forward_returns(factor, closes(), periods=[5], quantiles=5, max_loss=1)
        correlation = alphalens.performance.factor_information_coefficient(data)["5D"].mean()
    assert correlation == pytest.approx(measured(), abs=1e-12)


def test_matrices_by_session_have_the_correlation_of_skill(demo: Path) -> None:
    scores = bw.load("demo", layout="wide", stamp="session", **PAIR)["5d-neutral/score"].to_pandas()
    prices = closes()
    returns = (prices.shift(-5) / prices - 1).reindex(scores.index)[scores.columns]
    correlation = scores.corrwith(returns, axis=1, method="spearman").mean()
    assert correlation == pytest.approx(measured(), abs=1e-12)
    assert {str(kind) for kind in scores.dtypes} == {"float64"}


def test_the_joins_that_come_first_to_mind_look_ahead(demo: Path) -> None:
    frame, prices = bw.load("demo", **PAIR).to_pandas(), closes()
    returns = (prices.shift(-5) / prices - 1).stack().rename("value").reset_index()
    by_date = frame.merge(returns, on=["date", "ticker"])
    assert of_rows(by_date, "score", "value") > 1.05 * measured()
    # The same dates, of somebody who asks for them.
    factor = bw.load("demo").factor(stamp="date", **PAIR).rename("factor").reset_index()
    assert of_rows(factor.merge(returns, on=["date", "ticker"]), "factor", "value") > 1.05 * measured()
    # Confidence alone does not say in which direction.
    assert abs(of_rows(by_date, "confidence", "value")) < measured() / 2


def test_what_is_dated_before_the_prices_has_no_entry_and_no_return(demo: Path) -> None:
    prices = bw.demo_prices().to_pandas()
    begin = prices["date"].max() - pd.Timedelta(days=200)
    frame = bw.load("demo", tickers="XOM", **PAIR).with_returns(prices[prices["date"] >= begin]).to_pandas()
    first = prices.loc[prices["date"] >= begin, "date"].min()
    before = frame[frame["date"] < first]
    assert len(before) > 500 and before[["entry_at", "exit_at_5d", "return_5d"]].isna().all(axis=None)
    assert frame.loc[frame["date"] >= first, "return_5d"].notna().sum() > 100


def test_a_factor_is_stamped_by_session_whatever_the_column_is_called(demo: Path) -> None:
    renamed = {"ticker": "asset", "date": "day", "score": "factor", "entry_at": "session"}
    signals = {"sectors": ["energy"], "periods": ["5d"]}
    dataset = {"kind": "signals", "add": ["entry_at"], "rename": renamed}
    bw.run({"name": "named", "source": {"service": "demo"}, "signals": signals, "dataset": dataset}, progress=False)
    factor = bw.load("named").factor()
    expected = bw.load("demo", sectors="energy", **PAIR).factor()
    assert factor.index.names == ["day", "asset"]
    pd.testing.assert_series_equal(factor, expected, check_names=False)
