//! Compares with scipy, statsmodels, pandas and numpy, in the environment of `tests/requirements.txt`.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also outside of the function that is marked as one"
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};

use bellwether_statistics::calibration::Calibration;
use bellwether_statistics::distributions::{normal_tail, normal_tail_quantile, student_tails, student_tails_quantile};
use bellwether_statistics::mean::{MeanTest, Refusal};
use bellwether_statistics::multiple::{benjamini_hochberg, effective_number, holm};
use bellwether_statistics::ranks::correlation;
use bellwether_statistics::{
    ClusteredShare, Estimator, OverlappingSeries, PairedAnswers, Random, Ranks, Share, Windows, isotonic_regression,
    rank_correlation,
};

/// The lines that the script compares.
#[derive(Default)]
struct Comparison(String);

impl Comparison {
    fn add(&mut self, name: &str, columns: &[&[f64]]) {
        self.0.push_str(name);
        for column in columns {
            let numbers: Vec<String> = column.iter().map(|number| format!("{number:e}")).collect();
            write!(self.0, "\t{}", numbers.join(" ")).unwrap();
        }
        self.0.push('\n');
    }

    #[track_caller]
    fn check(&self) {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
        let python = tests.join(".venv/bin/python");
        if !python.exists() {
            let is_needed = std::env::var("BELLWETHER_TOOLS").is_ok_and(|needed| needed == "all");
            assert!(!is_needed, "{} is missing: `tests/run` installs it", python.display());
            return;
        }
        let mut command = Command::new(python);
        command.arg(tests.join("python/check_statistics.py"));
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("python starts");
        let fed = child.stdin.take().unwrap().write_all(self.0.as_bytes());
        let output = child.wait_with_output().expect("python ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fed.expect("the script reads everything");
    }
}

/// Normal numbers; or few different ones, with many ties.
fn numbers(random: &mut Random, count: usize, ties: Ties) -> Vec<f64> {
    let number = |random: &mut Random| match ties {
        Ties::None => random.normal(),
        Ties::Many => (random.normal() * 2.0).round() / 2.0,
    };
    (0..count).map(|_| number(random)).collect()
}

#[derive(Clone, Copy)]
enum Ties {
    None,
    Many,
}

/// A persistent series with a mean.
fn persistent(random: &mut Random, count: usize) -> Vec<f64> {
    let mut state = 0.0;
    let next = |_| {
        state = 0.9 * state + random.normal();
        0.3 + state
    };
    (0..count).map(next).collect()
}

fn outcome(test: Result<MeanTest, Refusal>) -> [f64; 6] {
    let test = test.expect("the series is long enough");
    [test.mean, test.standard_error, test.t, test.p, test.interval.lower, test.interval.upper]
}

fn compare_ranks(comparison: &mut Comparison, random: &mut Random) {
    for (count, ties) in [(2, Ties::None), (5, Ties::Many), (40, Ties::Many), (500, Ties::None), (501, Ties::Many)] {
        let (x, y) = (numbers(random, count, ties), numbers(random, count, ties));
        comparison.add("rank_correlation", &[&x, &y, &[rank_correlation(&x, &y).unwrap()]]);
        comparison.add("correlation", &[&x, &y, &[correlation(&x, &y).unwrap()]]);
        let fifths: Vec<f64> = Ranks::new(x.clone()).fifths().into_iter().map(|fifth| fifth as f64).collect();
        comparison.add("fifths", &[&x, &fifths]);
        let z = numbers(random, count, ties);
        let partial = Ranks::new(x.clone()).partial_correlation(&Ranks::new(y.clone()), &Ranks::new(z.clone()));
        if let Some(partial) = partial.rank_correlation.filter(|_| count > 5) {
            comparison.add("partial_correlation", &[&x, &y, &z, &[partial]]);
        }
    }
}

fn compare_distributions(comparison: &mut Comparison) {
    for z in [-8.0, -1.5, 0.0, 0.3, 1.999, 2.0, 2.001, 5.0, 20.0, 37.0] {
        comparison.add("normal_tail", &[&[z], &[normal_tail(z)]]);
    }
    for probability in [1e-300, 1e-20, 1e-9, 0.001, 0.025, 0.3, 0.499, 0.501, 0.9, 0.9999] {
        comparison.add("normal_tail_quantile", &[&[probability], &[normal_tail_quantile(probability)]]);
    }
    for freedom in [1.0, 2.0, 4.0, 5.0, 17.0, 33.0, 189.0, 748.0, 12_345.0] {
        for t in [0.001, 0.5, 1.0, 2.0, 2.776, 9.0, 40.0] {
            comparison.add("student_tails", &[&[t], &[freedom], &[student_tails(-t, freedom)]]);
        }
        for probability in [1e-9, 0.01, 0.05, 0.5, 0.99] {
            let quantile = student_tails_quantile(probability, freedom);
            comparison.add("student_tails_quantile", &[&[probability], &[freedom], &[quantile]]);
        }
    }
}

fn compare_means(comparison: &mut Comparison, random: &mut Random) {
    for (count, horizon) in [(5, 1), (20, 1), (39, 5), (40, 5), (315, 63), (750, 21), (751, 126), (2_500, 63)] {
        let values = persistent(random, count);
        let windows = Windows::of_horizon(count, NonZeroUsize::new(horizon).unwrap());
        let series = OverlappingSeries::new(values.clone(), windows);
        let test = series.cosine_test().unwrap();
        let Estimator::Cosine { cosines } = test.estimator else { panic!("{test:?}") };
        let computed = [&[cosines as f64][..], &outcome(Ok(test))].concat();
        comparison.add("cosine_test", &[&values, &[horizon as f64], &computed]);
        comparison.add("disjoint_test", &[&values, &[horizon as f64], &outcome(series.disjoint_test())]);
    }
}

fn compare_many_tests(comparison: &mut Comparison, random: &mut Random) {
    for count in [1, 2, 15, 108] {
        let p: Vec<f64> = (0..count).map(|_| random.uniform().powi(3)).collect();
        comparison.add("holm", &[&p, &holm(&p)]);
        comparison.add("benjamini_hochberg", &[&p, &benjamini_hochberg(&p)]);
    }
    for count in [2, 7, 108] {
        let common = numbers(random, 300, Ties::None);
        let series: Vec<Vec<f64>> =
            (0..count).map(|_| common.iter().map(|value| value + random.normal()).collect()).collect();
        let dates: Vec<Vec<Option<f64>>> =
            series.iter().map(|values| values.iter().copied().map(Some).collect()).collect();
        let dates: Vec<&[Option<f64>]> = dates.iter().map(Vec::as_slice).collect();
        let number = [effective_number(&dates).unwrap()];
        let mut columns: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
        columns.push(&number);
        comparison.add("effective_number", &columns);
    }
}

fn compare_counts(comparison: &mut Comparison, random: &mut Random) {
    let mut share = |_| {
        let of = random.bits() % 50 + 1;
        Share { hits: (0..of).map(|_| u64::from(random.uniform() < 0.55)).sum(), of }
    };
    let shares: Vec<Share> = (0..200).map(&mut share).collect();
    let windows = Windows::of_horizon(shares.len(), NonZeroUsize::new(10).unwrap());
    let luck = |share: &Share| 0.4 + (share.of % 7) as f64 / 40.0;
    let series = OverlappingSeries::of_shares(shares.iter().map(|share| (*share, luck(share))), windows).unwrap();
    let column = |number: fn(&Share) -> u64| shares.iter().map(|share| number(share) as f64).collect::<Vec<_>>();
    let (hits, cases) = (column(|share| share.hits), column(|share| share.of));
    let of_luck: Vec<f64> = shares.iter().map(luck).collect();
    comparison.add("share_test", &[&hits, &cases, &of_luck, &[10.0], &outcome(series.cosine_test())]);
    let [one, other] = [&shares[..9], &shares[9..30]];
    let clustered = |part: &[Share]| ClusteredShare::new(part.iter().copied()).unwrap();
    let found = clustered(one).difference(&clustered(other), 3).unwrap();
    let computed = [found.difference, found.standard_error, found.degrees_of_freedom, found.p];
    comparison.add("share_difference", &[&hits[..9], &cases[..9], &hits[9..30], &cases[9..30], &computed]);
    for [both_yes, one_yes, other_yes, both_no] in [[20, 5, 10, 15], [900, 3, 4, 20], [1, 40, 38, 2], [0, 7, 0, 1]] {
        let both = both_yes + one_yes + other_yes + both_no;
        let yes = [both_yes + one_yes, both_yes + other_yes];
        let answers = PairedAnswers { both, same: both_yes + both_no, yes };
        let table = [both_yes, one_yes, other_yes, both_no].map(|count| count as f64);
        comparison.add("kappa", &[&table, &[answers.kappa().unwrap()]]);
    }
}

fn compare_calibration(comparison: &mut Comparison, random: &mut Random) {
    for (count, ties) in [(1, Ties::None), (50, Ties::Many), (2_000, Ties::None)] {
        let values = numbers(random, count, ties);
        let weights: Vec<f64> = (0..count).map(|_| random.uniform() + 0.1).collect();
        comparison.add("isotonic_regression", &[&values, &weights, &isotonic_regression(&values, &weights)]);
        let digits = if matches!(ties, Ties::Many) { 10.0 } else { 1e6 };
        let forecasts: Vec<f64> = (0..count).map(|_| (random.uniform() * digits).round() / digits).collect();
        let outcomes: Vec<bool> = forecasts.iter().map(|forecast| random.uniform() < forecast * forecast).collect();
        let calibration = Calibration::new(&forecasts, &outcomes).unwrap();
        let mut computed =
            vec![calibration.brier, calibration.miscalibration, calibration.discrimination, calibration.uncertainty];
        computed.extend(calibration.levels.iter().map(|level| level.calibrated));
        let outcomes: Vec<f64> = outcomes.into_iter().map(|outcome| f64::from(u8::from(outcome))).collect();
        comparison.add("calibration", &[&forecasts, &outcomes, &computed]);
    }
}

#[test]
fn every_statistic_is_that_of_scipy_and_statsmodels() {
    let mut comparison = Comparison::default();
    let mut random = Random::new(2026);
    compare_ranks(&mut comparison, &mut random);
    compare_distributions(&mut comparison);
    compare_means(&mut comparison, &mut random);
    compare_many_tests(&mut comparison, &mut random);
    compare_counts(&mut comparison, &mut random);
    compare_calibration(&mut comparison, &mut random);
    comparison.check();
}
