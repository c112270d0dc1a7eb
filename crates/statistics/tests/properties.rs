//! What holds for all inputs, and what can be counted by hand.

use std::num::NonZeroUsize;

use bellwether_statistics::calibration::Calibration;
use bellwether_statistics::distributions::normal_tail;
use bellwether_statistics::multiple::{benjamini_hochberg, holm};
use bellwether_statistics::{
    CONFIDENCE, OverlappingSeries, Random, RankedCases, Ranks, Share, Windows, isotonic_regression, rank_correlation,
};

#[track_caller]
fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
}

fn shuffle<T>(random: &mut Random, values: &mut [T]) {
    for last in (1..values.len()).rev() {
        values.swap(last, (random.bits() % (last as u64 + 1)) as usize);
    }
}

/// A mean of an unsorted series had another t on each run (stefan-jansen/machine-learning-for-trading#385). Where order
/// means nothing, nothing depends on it.
#[test]
fn rows_may_be_in_any_order() {
    let mut random = Random::new(3);
    let mut rows: Vec<(f64, f64)> = (0..300).map(|_| ((random.normal() * 3.0).round(), random.normal())).collect();
    let statistics = |rows: &[(f64, f64)]| {
        let (x, y): (Vec<f64>, Vec<f64>) = rows.iter().copied().unzip();
        let forecasts: Vec<f64> = x.iter().map(|x| 1.0 / (1.0 + x.exp())).collect();
        let outcomes: Vec<bool> = y.iter().map(|y| *y > 0.0).collect();
        (rank_correlation(&x, &y), Calibration::new(&forecasts, &outcomes), Ranks::new(y).fifths().len())
    };
    let before = statistics(&rows);
    shuffle(&mut random, &mut rows);
    assert_eq!(statistics(&rows), before);
}

#[test]
fn a_rank_correlation_depends_on_order_alone() {
    let mut random = Random::new(4);
    for count in [2, 3, 10, 101] {
        let (x, y): (Vec<f64>, Vec<f64>) = (0..count).map(|_| (random.normal(), random.normal())).unzip();
        let grown: Vec<f64> = x.iter().map(|x| x.exp()).collect();
        let opposite: Vec<f64> = x.iter().map(|x| -x).collect();
        let between = rank_correlation(&x, &y).expect("two numbers");
        assert_eq!(rank_correlation(&grown, &y), Some(between));
        assert_eq!(rank_correlation(&y, &x), Some(between));
        assert_eq!(rank_correlation(&opposite, &y), Some(-between));
        assert_eq!((rank_correlation(&x, &grown), rank_correlation(&x, &opposite)), (Some(1.0), Some(-1.0)));
    }
}

/// Groups of any size, with ties, and places without a value on either side.
#[test]
fn ranks_are_those_of_each_group_as_if_it_were_sorted_by_itself() {
    let mut random = Random::new(11);
    for round in 0..300 {
        let count = random.bits() as usize % 40;
        let mut values = || -> Vec<f64> {
            let value = |random: &mut Random| match random.bits() % 4 {
                0 => f64::NAN,
                _ => (random.normal() * 2.0).round(),
            };
            (0..count).map(|_| value(&mut random)).collect()
        };
        let (x, y) = (values(), values());
        let groups: Vec<usize> = (0..count).map(|_| (random.bits() % 4) as usize).collect();
        let (of_x, of_y) = (Ranks::new(x.clone()), Ranks::new(y.clone()));
        let expected = |is_taken: &dyn Fn(usize) -> bool| {
            let is_known = |index: &usize| is_taken(*index) && !x[*index].is_nan() && !y[*index].is_nan();
            let both = (0..count).filter(is_known).map(|index| (x[index], y[index]));
            let (x, y): (Vec<f64>, Vec<f64>) = both.unzip();
            RankedCases { cases: x.len() as u64, rank_correlation: rank_correlation(&x, &y) }
        };
        assert_eq!(of_x.correlation(&of_y), expected(&|_| true), "round {round}");
        // The last group is none of those that are asked for.
        let found = of_x.correlations(&of_y, &groups, 3);
        let each: Vec<RankedCases> = (0..3).map(|group| expected(&|index| groups[index] == group)).collect();
        assert_eq!(found, each, "round {round}");
        assert_eq!(of_x.count(), x.iter().filter(|value| !value.is_nan()).count());
    }
}

/// A series of a mean and noise, its opposite, and ten times it.
#[test]
fn a_test_of_a_mean_follows_its_sign_and_not_its_scale() {
    let mut random = Random::new(5);
    let values: Vec<f64> = (0..200).map(|_| 0.2 + random.normal()).collect();
    let test = |factor: f64| {
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        let windows = Windows::of_horizon(scaled.len(), NonZeroUsize::new(10).expect("a horizon"));
        let series = OverlappingSeries::new(scaled, windows);
        series.cosine_test().expect("twenty windows")
    };
    let (plain, opposite, large) = (test(1.0), test(-1.0), test(8.0));
    assert_eq!((opposite.t, opposite.p, opposite.z()), (-plain.t, plain.p, -plain.z()));
    assert_eq!((large.t, large.interval.upper), (plain.t, plain.interval.upper * 8.0));
    // The interval holds zero if and only if the p-value is above 5 %.
    assert_eq!((plain.interval.lower..=plain.interval.upper).contains(&0.0), plain.p > 1.0 - CONFIDENCE);
    near(2.0 * normal_tail(plain.z().abs()), plain.p, 1e-15);
}

#[test]
fn adjusted_p_values_keep_their_order_and_are_not_smaller() {
    let mut random = Random::new(6);
    let p: Vec<f64> = (0..108).map(|_| (random.uniform() * 20.0).round() / 20.0).collect();
    for adjusted in [holm(&p), benjamini_hochberg(&p)] {
        for (one, adjusted_one) in p.iter().zip(&adjusted) {
            assert!(adjusted_one >= one && *adjusted_one <= 1.0);
            for (other, adjusted_other) in p.iter().zip(&adjusted) {
                assert!(one > other || adjusted_one <= adjusted_other);
            }
        }
    }
    assert!(holm(&p).iter().zip(benjamini_hochberg(&p)).all(|(holm, bh)| *holm >= bh));
}

/// The largest of the means to the left, each the smallest of the means to the right: the definition without an
/// algorithm.
#[test]
fn isotonic_regression_is_the_largest_of_the_smallest_means() {
    let mut random = Random::new(7);
    for count in [1, 2, 7, 40] {
        let values: Vec<f64> = (0..count).map(|_| (random.normal() * 2.0).round()).collect();
        let weights: Vec<f64> = (0..count).map(|_| random.uniform() + 0.5).collect();
        let mean = |from: usize, to: usize| {
            let sum: f64 = (from..=to).map(|index| values[index] * weights[index]).sum();
            sum / weights[from..=to].iter().sum::<f64>()
        };
        for (index, fitted) in isotonic_regression(&values, &weights).into_iter().enumerate() {
            let smallest = |from: usize| (index..count).map(|to| mean(from, to)).fold(f64::INFINITY, f64::min);
            near(fitted, (0..=index).map(smallest).fold(f64::NEG_INFINITY, f64::max), 1e-12);
        }
    }
}

/// The example of CORP's paper in small: its parts add up, and no forecast that is monotone in the given one is better
/// calibrated.
#[test]
fn the_parts_of_briers_score_add_up() {
    let mut random = Random::new(9);
    let forecasts: Vec<f64> = (0..5_000).map(|_| (random.uniform() * 50.0).round() / 50.0).collect();
    let outcomes: Vec<bool> = forecasts.iter().map(|forecast| random.uniform() < 0.3 + 0.4 * forecast).collect();
    let calibration = Calibration::new(&forecasts, &outcomes).expect("probabilities");
    let sum = calibration.miscalibration - calibration.discrimination + calibration.uncertainty;
    near(sum, calibration.brier, 1e-15);
    assert!(calibration.miscalibration > 0.01 && calibration.discrimination > 0.005, "{calibration:?}");
    let fitted: Vec<f64> = calibration.levels.iter().map(|level| level.calibrated).collect();
    assert!(fitted.is_sorted());
    // Recalibrated forecasts are calibrated, and discriminate as before.
    let at = |forecast: f64| calibration.levels.partition_point(|level| level.forecast < forecast);
    let recalibrated: Vec<f64> = forecasts.iter().map(|forecast| fitted[at(*forecast)]).collect();
    let again = Calibration::new(&recalibrated, &outcomes).expect("probabilities");
    near(again.miscalibration, 0.0, 1e-15);
    near(again.discrimination, calibration.discrimination, 1e-15);
}

#[test]
fn deciles_hold_a_tenth_each_and_never_split_a_forecast() {
    let forecasts: Vec<f64> = (0..1_000).map(|case| f64::from(case) / 1_000.0).collect();
    let outcomes: Vec<bool> = forecasts.iter().map(|forecast| *forecast >= 0.5).collect();
    let bins = Calibration::new(&forecasts, &outcomes).expect("probabilities").deciles();
    assert_eq!(bins.iter().map(|bin| (bin.cases, bin.hits)).collect::<Vec<_>>()[4..6], [(100, 0), (100, 100)]);
    assert_eq!((bins.len(), bins[3].lowest, bins[3].highest), (10, 0.3, 0.399));
    near(bins[3].mean_forecast, 0.3495, 1e-12);
    let two_levels: Vec<f64> = (0..1_000).map(|case| if case % 4 == 0 { 0.2 } else { 0.9 }).collect();
    let bins = Calibration::new(&two_levels, &outcomes).expect("probabilities").deciles();
    assert_eq!(bins.iter().map(|bin| (bin.lowest, bin.cases)).collect::<Vec<_>>(), [(0.2, 250), (0.9, 750)]);
}

/// Of calibrated forecasts, 95 % of the frequencies are within the band: counted over forecasts and seeds, in three
/// shapes: few forecasts with many cases, many with few, and all different.
#[test]
fn the_consistency_band_holds_calibrated_forecasts() {
    for (levels, cases) in [(10.0, 1_000), (50.0, 500), (1e9, 200)] {
        let mut within = Share::default();
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let forecasts: Vec<f64> = (0..cases).map(|_| ((random.uniform() * levels).ceil() - 0.5) / levels).collect();
            let outcomes: Vec<bool> = forecasts.iter().map(|forecast| random.uniform() < *forecast).collect();
            let calibration = Calibration::new(&forecasts, &outcomes).expect("probabilities");
            let band = calibration.consistency_band();
            assert_eq!(band, calibration.consistency_band());
            within += Share::new(band.iter().map(|point| {
                let level = calibration.levels.iter().find(|level| level.forecast == point.forecast).expect("a level");
                (point.interval.lower..=point.interval.upper).contains(&level.calibrated)
            }));
        }
        let rate = within.rate().expect("points");
        assert!((0.93..0.985).contains(&rate), "{rate} of {levels} levels");
    }
}

/// Overconfident forecasts leave the band.
#[test]
fn the_consistency_band_does_not_hold_overconfident_forecasts() {
    let mut random = Random::new(11);
    let forecasts: Vec<f64> = (0..5_000).map(|_| (random.uniform() * 20.0).round() / 20.0).collect();
    let outcomes: Vec<bool> = forecasts.iter().map(|forecast| random.uniform() < 0.25 + 0.5 * forecast).collect();
    let calibration = Calibration::new(&forecasts, &outcomes).expect("probabilities");
    let band = calibration.consistency_band();
    let outside = band
        .iter()
        .zip(&calibration.levels)
        .filter(|(point, level)| !(point.interval.lower..=point.interval.upper).contains(&level.calibrated));
    assert!(outside.count() >= 12, "{band:?}");
}
