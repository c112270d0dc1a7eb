//! What cannot be known is `None` or refused, and never zero.

use std::num::NonZeroUsize;

use bellwether_statistics::calibration::Calibration;
use bellwether_statistics::mean::mean;
use bellwether_statistics::multiple::{benjamini_hochberg, effective_number, expected_best, holm};
use bellwether_statistics::ranks::correlation;
use bellwether_statistics::{OverlappingSeries, Ranks, Refusal, Share, Windows, rank_correlation};

fn horizon(dates: usize) -> NonZeroUsize {
    NonZeroUsize::new(dates).expect("a horizon")
}

#[test]
fn a_correlation_needs_two_different_values_on_either_side() {
    let cases: [(&[f64], &[f64]); 5] = [
        (&[], &[]),
        (&[1.0], &[2.0]),
        (&[1.0, 1.0], &[1.0, 2.0]),
        (&[1.0, 2.0], &[0.3, 0.3]),
        (&[0.0, -0.0], &[1.0, 2.0]),
    ];
    for (x, y) in cases {
        assert_eq!((rank_correlation(x, y), correlation(x, y)), (None, None), "{x:?} {y:?}");
    }
    // A constant whose mean rounds to another number is constant all the same.
    assert_eq!(correlation(&[0.1; 3], &[1.0, 2.0, 3.0]), None);
}

#[test]
fn what_is_not_a_number_has_no_rank() {
    let values = [1.0, f64::NAN, 2.0];
    assert_eq!(rank_correlation(&values, &[1.0, 2.0, 3.0]), None);
    assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &values), None);
    assert_eq!(correlation(&values, &[1.0, 2.0, 3.0]), None);
    assert_eq!((Ranks::new(values.to_vec()).count(), Ranks::new(values.to_vec()).fifths()), (2, vec![1, 5, 3]));
    // Infinity has a rank, but no distance from a mean.
    assert_eq!(rank_correlation(&[1.0, f64::INFINITY, 2.0], &[1.0, 3.0, 2.0]), Some(1.0));
    assert_eq!(correlation(&[1.0, f64::INFINITY, 2.0], &[1.0, 3.0, 2.0]), None);
}

#[test]
fn every_test_refuses_a_series_that_is_too_short_or_constant() {
    let tests = [OverlappingSeries::cosine_test, OverlappingSeries::disjoint_test];
    for dates in [1, 5, 21, 63, 126] {
        let needed = 5 * dates;
        let series = |length: usize, value: &dyn Fn(usize) -> f64| {
            let windows = Windows::of_horizon(length, horizon(dates));
            OverlappingSeries::new((0..length).map(value).collect(), windows)
        };
        for test in tests {
            let short = test(&series(needed - 1, &|date| date as f64));
            assert_eq!(short, Err(Refusal::TooShort { observations: needed - 1, needed }));
            assert_eq!(test(&series(needed, &|_| 0.1)), Err(Refusal::Constant));
            assert!(test(&series(needed, &|date| (date as f64).sin())).is_ok(), "{needed} dates are enough");
        }
        assert_eq!(tests[0](&series(0, &|_| 0.0)), Err(Refusal::TooShort { observations: 0, needed }));
    }
    let longest = OverlappingSeries::new(vec![1.0, 2.0], Windows::of_horizon(2, NonZeroUsize::MAX));
    assert!(tests.iter().all(|test| test(&longest).is_err()));
}

#[test]
fn nothing_is_known_of_no_cases() {
    let none = Share::default();
    assert_eq!(none.rate(), None);
    assert_eq!(OverlappingSeries::of_shares([], Windows::of_horizon(0, horizon(1))), None);
    assert_eq!(OverlappingSeries::of_shares([(none, 0.5); 9], Windows::of_horizon(9, horizon(1))), None);
    assert_eq!(mean(&[]), None);
    assert!(Ranks::new(Vec::new()).fifths().is_empty());
    assert_eq!(effective_number(&[]), None);
    assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
    assert_eq!(expected_best(0.0), 0.0);
}

#[test]
fn the_effective_number_needs_dates_in_common() {
    let (early, late) = ([Some(1.0), Some(2.0), None, None], [None, None, Some(1.0), Some(2.0)]);
    assert_eq!(effective_number(&[&early, &late]), None);
    assert_eq!(effective_number(&[&early]), Some(1.0));
    let both = effective_number(&[&early, &early]).expect("two dates in common");
    assert!((both - 1.0).abs() < 1e-12, "{both}");
}

#[test]
fn a_forecast_is_a_probability() {
    for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        assert_eq!(Calibration::new(&[0.5, bad], &[true, false]), None);
    }
    assert_eq!(Calibration::new(&[], &[]), None);
    let certain = Calibration::new(&[0.0, 1.0], &[false, true]).expect("probabilities");
    assert_eq!((certain.brier, certain.miscalibration, certain.discrimination), (0.0, 0.0, 0.25));
    let band: Vec<(f64, f64)> =
        certain.consistency_band().iter().map(|point| (point.interval.lower, point.interval.upper)).collect();
    assert_eq!(band, [(0.0, 0.0), (1.0, 1.0)]);
}
