"""Compares the statistics of the crate `bellwether-statistics` with scipy, statsmodels, pandas and numpy.

Reads lines of a name and columns of numbers, separated by tabs: the input and what the crate computed.
"""

import sys

import numpy
import pandas
import scipy.fft
import scipy.linalg
import scipy.optimize
import scipy.stats
import statsmodels.api
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests


def mean_test(values, error, freedom):
    mean = values.mean()
    t = mean / error
    reach = error * scipy.stats.t.isf(0.025, freedom)
    return [mean, error, t, 2 * scipy.stats.t.sf(abs(t), freedom), mean - reach, mean + reach]


def cosine_variance(values, horizon):
    """The number of cosines, and the long-run variance that they give.

    The projections are the coefficients of the orthogonal cosine transform but the first.
    """
    count = len(values)
    cosines = max(4, min(int(0.41 * count ** (2 / 3)), count // horizon // 2))
    variance = (scipy.fft.dct(values, type=2, norm="ortho")[1 : cosines + 1] ** 2).mean()
    if count // horizon < 8:
        # What overlapping horizons leave of the variance, from the correlations of sums of as many numbers in a row.
        overlap = scipy.linalg.toeplitz(numpy.maximum(0, 1 - numpy.arange(count) / horizon))
        transform = scipy.fft.dct(numpy.eye(count), type=2, norm="ortho", axis=0)[: cosines + 1]
        expected = ((transform @ overlap) * transform).sum(axis=1)
        variance /= expected[1:].mean() / expected[0]
    return cosines, variance


def cosine_test(values, horizon):
    cosines, variance = cosine_variance(values, int(horizon[0]))
    return [cosines, *mean_test(values, numpy.sqrt(variance / len(values)), cosines)]


def independent_test(values):
    result = scipy.stats.ttest_1samp(values, 0)
    interval = result.confidence_interval()
    error = values.std(ddof=1) / numpy.sqrt(len(values))
    return [values.mean(), error, result.statistic, result.pvalue, interval.low, interval.high]


def share_test(hits, cases, luck, horizon):
    """The share of all cases less luck; the value of a date is what it adds to the ratio of the two sums."""
    net = hits - luck * cases
    rate = net.sum() / cases.sum()
    values = rate + (net - rate * cases) / cases.mean()
    return cosine_test(values, horizon)[1:]


def partial_correlation(x, y, given):
    """The correlation of what a line through the given ranks leaves of the others."""
    x, y, given = (scipy.stats.rankdata(values) for values in (x, y, given))
    lines = numpy.column_stack([given, numpy.ones(len(given))])
    left = [own - lines @ numpy.linalg.lstsq(lines, own, rcond=None)[0] for own in (x, y)]
    return [numpy.corrcoef(left)[0, 1]]


def fifths(values):
    """By the average rank: equal values stay together."""
    return numpy.floor(5 * (scipy.stats.rankdata(values) - 0.5) / len(values))


def share_difference(hits, cases, other_hits, other_cases):
    """The difference of two weighted means of clusters, with Welch and Satterthwaite's degrees of freedom, of three pairs."""
    fits = [
        statsmodels.api.WLS(some / all, numpy.ones(len(some)), weights=all).fit(cov_type="HC1")
        for some, all in ((hits, cases), (other_hits, other_cases))
    ]
    difference, variances = fits[1].params[0] - fits[0].params[0], [fit.bse[0] ** 2 for fit in fits]
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / (len(hits) - 1) + variances[1] ** 2 / (len(other_hits) - 1))
    error = sum(variances) ** 0.5
    return [difference, error, freedom, min(1, 3 * 2 * scipy.stats.t.sf(abs(difference / error), freedom))]


def kappa(table):
    return [cohens_kappa(table.reshape(2, 2)).kappa]


def calibration(forecasts, outcomes):
    levels = pandas.DataFrame({"forecast": forecasts, "outcome": outcomes}).groupby("forecast")["outcome"]
    rates, cases = levels.mean(), levels.count()
    calibrated = scipy.optimize.isotonic_regression(rates.to_numpy(), weights=cases.to_numpy()).x
    at = pandas.Series(calibrated, index=rates.index)[forecasts].to_numpy()
    score = lambda probabilities: ((probabilities - outcomes) ** 2).mean()
    brier, uncertainty = score(forecasts), score(outcomes.mean())
    return [brier, brier - score(at), uncertainty - score(at), uncertainty, *calibrated]


def effective_number(*series):
    shares = numpy.linalg.eigvalsh(numpy.corrcoef(series))
    shares = shares[shares > 0] / shares[shares > 0].sum()
    return [numpy.exp(-(shares * numpy.log(shares)).sum())]


ORACLES = {
    "rank_correlation": lambda x, y: [scipy.stats.spearmanr(x, y).statistic],
    "correlation": lambda x, y: [scipy.stats.pearsonr(x, y).statistic],
    "normal_tail": scipy.stats.norm.sf,
    "normal_tail_quantile": scipy.stats.norm.isf,
    "student_tails": lambda t, freedom: 2 * scipy.stats.t.sf(abs(t), freedom),
    "student_tails_quantile": lambda p, freedom: scipy.stats.t.isf(p / 2, freedom),
    "cosine_test": cosine_test,
    "disjoint_test": lambda values, horizon: independent_test(values[:: int(horizon[0])]),
    "share_test": share_test,
    "holm": lambda p: multipletests(p, method="holm")[1],
    "benjamini_hochberg": lambda p: multipletests(p, method="fdr_bh")[1],
    "effective_number": effective_number,
    "share_difference": share_difference,
    "kappa": kappa,
    "isotonic_regression": lambda values, weights: scipy.optimize.isotonic_regression(values, weights=weights).x,
    "calibration": calibration,
    "fifths": fifths,
    "partial_correlation": partial_correlation,
}


def main():
    seen = set()
    for line in sys.stdin:
        name, *columns = line.rstrip("\n").split("\t")
        *arguments, computed = [numpy.array(column.split(), dtype=float) for column in columns]
        expected = numpy.asarray(ORACLES[name](*arguments), dtype=float)
        numpy.testing.assert_allclose(computed, expected, rtol=1e-11, atol=1e-13, err_msg=line)
        seen.add(name)
    assert seen == set(ORACLES), f"not compared: {set(ORACLES) - seen}"


if __name__ == "__main__":
    main()
