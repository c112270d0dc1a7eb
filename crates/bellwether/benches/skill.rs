//! How often what `audit skill` tests rejects where there is nothing, and how often it tells hindsight.
//!
//! Run with `cargo bench -p bellwether --bench skill`; `-- --worlds 400` simulates more than a hundred. The product's own code
//! measures worlds whose returns have a market, sectors and a skew, and whose signals persist and know nothing.
//!
//! The exit code is 1 if hit rates are rejected in less than 3.5 % or more than 7 % of the cases at nominal 5, if an honest
//! vendor is accused in more than 7 % of the worlds, or if one with hindsight is not told.

#![expect(clippy::print_stdout, reason = "the table is what the benchmark is run for")]

use std::process::ExitCode;

use bellwether::audit::skill::worlds::{Vendor, World};

const PERIODS: [&str; 4] = ["5d", "15d", "1m", "3m"];

fn main() -> ExitCode {
    let worlds = std::env::args().skip_while(|argument| argument != "--worlds").nth(1);
    let worlds: u64 = worlds.map_or(100, |worlds| worlds.parse().expect("a number"));
    let mut counts = [[0_u64; 6]; PERIODS.len()];
    let mut told = [0_u64; Vendor::WITH_HINDSIGHT.len()];
    for seed in 0..worlds {
        let world = World::new(seed);
        for (period, counts) in PERIODS.iter().zip(&mut counts) {
            let period = period.parse().expect("a period");
            let published = world.published(period);
            let ranks = &published.ranks;
            let neutral = [&ranks.within_sectors, &ranks.given_beta].map(|of| of.as_ref().and_then(|of| of.test));
            let tests = [published.buys.test, published.sells.test, ranks.test, neutral[0], neutral[1]];
            for (test, count) in tests.into_iter().zip(&mut *counts) {
                *count += u64::from(test.is_some_and(|test| test.p <= 0.05));
            }
            counts[5] += u64::from(world.hindsight(period, Vendor::Honest).is_told());
        }
        let period = "5d".parse().expect("a period");
        for (vendor, count) in Vendor::WITH_HINDSIGHT.into_iter().zip(&mut told) {
            *count += u64::from(world.hindsight(period, vendor).is_told());
        }
    }
    let percent = |count: u64| 100.0 * count as f64 / worlds as f64;
    println!("Rejections in % of {worlds} worlds at nominal 5; an honest vendor that is accused of hindsight\n");
    println!(
        "| horizon | buys | sells | correlation | within sectors | given beta | honest |\n|---|---|---|---|---|---|---|"
    );
    for (period, counts) in PERIODS.iter().zip(&counts) {
        let cells = counts.map(|count| format!("{:.1}", percent(count)));
        println!("| {period} | {} |", cells.join(" | "));
    }
    println!("\n| vendor with hindsight | told, in % |\n|---|---|");
    for (vendor, count) in Vendor::WITH_HINDSIGHT.into_iter().zip(told) {
        println!("| {vendor:?} | {:.1} |", percent(count));
    }
    let all = |column: usize| counts.iter().map(|counts| percent(counts[column])).sum::<f64>() / PERIODS.len() as f64;
    let is_calibrated = [0, 1].iter().all(|column| (3.5..=7.0).contains(&all(*column)));
    let is_told = told.iter().all(|count| *count == worlds);
    if is_calibrated && all(5) <= 7.0 && is_told { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
