//! The numbers that other tools and papers publish.

use bellwether_statistics::multiple::{benjamini_hochberg, expected_best, holm};
use bellwether_statistics::rank_correlation;

#[track_caller]
fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
}

#[track_caller]
fn all_near(values: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(values.len(), expected.len());
    for (&value, &expected) in values.iter().zip(expected) {
        near(value, expected, tolerance);
    }
}

/// alphalens-reloaded, tests/test_performance.py, `test_information_coefficient`; groups are the halves.
#[test]
fn the_correlation_by_date_is_that_of_alphalens() {
    let dates = [[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]];
    for (date, factor) in dates.iter().enumerate() {
        assert_eq!(rank_correlation(factor, &dates[1 - date]), Some(-1.0));
        assert_eq!(rank_correlation(factor, factor), Some(1.0));
        assert_eq!(rank_correlation(&factor[..2], &factor[..2]), Some(1.0));
        assert_eq!(rank_correlation(&factor[2..], &factor[2..]), Some(1.0));
    }
}

/// numerai-tools, tests/test_scoring.py.
#[test]
fn ranks_with_ties_are_those_of_numerai() {
    let up_down = [1.0, 0.0, 1.0, 0.0, 1.0];
    assert_eq!(rank_correlation(&[0.0, 1.0, 2.0, 3.0, 4.0], &up_down), Some(0.0));
}

/// R's multtest, by statsmodels/stats/tests/test_multi.py: `res_multtest1`, raw p-value, Holm, BH.
const MULTTEST: [[f64; 3]; 10] = [
    [5.236_567_772_08e-05, 5.236_567_772_08e-04, 5.236_567_772_08e-04],
    [2.814_050_619_8e-04, 2.532_645_557_82e-03, 1.407_025_309_9e-03],
    [1.498_773_107_96e-02, 1.199_018_486_368e-01, 4.995_910_359_866_667e-02],
    [2.027_326_887_98e-02, 1.419_128_821_586e-01, 5.068_317_219_95e-02],
    [1.770_969_527_23e-01, 1.0, 3.541_939_054_46e-01],
    [6.421_939_237_95e-01, 1.0, 8.953_367_279_75e-01],
    [6.808_459_476_33e-01, 1.0, 8.953_367_279_75e-01],
    [7.162_693_823_8e-01, 1.0, 8.953_367_279_75e-01],
    [8.385_413_675_53e-01, 1.0, 9.317_126_306_144_445e-01],
    [9.678_338_243_09e-01, 1.0, 9.678_338_243_09e-01],
];

/// The same, `res0_large`.
const MULTTEST_LARGE: [[f64; 3]; 30] = [
    [0.00031612, 0.0094836, 0.0038949],
    [0.0003965, 0.0114985, 0.0038949],
    [0.00048442, 0.01356376, 0.0038949],
    [0.00051932, 0.01402164, 0.0038949],
    [0.00101436, 0.02637336, 0.0060753],
    [0.00121506, 0.0303765, 0.0060753],
    [0.0014516, 0.0348384, 0.006221142857142857],
    [0.00265684, 0.06110732, 0.00996315],
    [0.00430043, 0.09460946, 0.01433476666666667],
    [0.01743686, 0.36617406, 0.05231058],
    [0.02080285, 0.416057, 0.05673504545454545],
    [0.02785414, 0.52922866, 0.06963535],
    [0.0327198, 0.5889564, 0.07488597857142856],
    [0.03494679, 0.59409543, 0.07488597857142856],
    [0.04206808, 0.67308928, 0.08413616],
    [0.08067095, 1.0, 0.15125803125],
    [0.23882767, 1.0, 0.421460594117647],
    [0.28352304, 1.0, 0.4725384],
    [0.36140401, 1.0, 0.570637910526316],
    [0.43565145, 1.0, 0.6152972625],
    [0.44866768, 1.0, 0.6152972625],
    [0.45368782, 1.0, 0.6152972625],
    [0.48282088, 1.0, 0.6152972625],
    [0.49223781, 1.0, 0.6152972625],
    [0.55451638, 1.0, 0.665419656],
    [0.6207473, 1.0, 0.7162468846153845],
    [0.71847853, 1.0, 0.775972982142857],
    [0.72424145, 1.0, 0.775972982142857],
    [0.85950263, 1.0, 0.889140651724138],
    [0.89032747, 1.0, 0.89032747],
];

#[test]
fn adjusted_p_values_are_those_of_multtest() {
    for table in [&MULTTEST[..], &MULTTEST_LARGE[..]] {
        // From both ends, so that the result cannot depend on the order.
        for reversed in [false, true] {
            let mut rows = table.to_vec();
            if reversed {
                rows.reverse();
            }
            let column = |index: usize| rows.iter().map(|row| row[index]).collect::<Vec<f64>>();
            all_near(&holm(&column(0)), &column(1), 1e-14);
            all_near(&benjamini_hochberg(&column(0)), &column(2), 1e-14);
        }
    }
}

/// The example of Benjamini, Krieger and Yekutieli (2006): the step-up procedure rejects four.
#[test]
fn benjamini_and_hochberg_reject_four_of_fifteen() {
    let p = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.324, 0.4262, 0.5719, 0.6528, 0.759,
        1.0,
    ];
    assert_eq!(benjamini_hochberg(&p).iter().filter(|p| **p <= 0.05).count(), 4);
}

/// The mean of the largest size of N normal numbers: of two, 2/√π; the others by scipy's quadrature.
#[test]
fn the_best_of_many_is_expected_where_quadrature_puts_it() {
    near(expected_best(2.0), 2.0 / std::f64::consts::PI.sqrt(), 1e-9);
    for (tests, expected) in [
        (1.0, 0.797_884_560_802_865_4),
        (6.0, 1.653_996_311_254_828_8),
        (14.3, 2.031_281_049_948_491_5),
        (48.0, 2.495_066_863_044_782_8),
        (108.0, 2.772_293_129_512_443_8),
    ] {
        near(expected_best(tests), expected, 1e-7);
    }
}
