//! `[filter] universe`: only the members of an index on the date of each row, as a file lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::support::program::Place;

/// The first and the last day of each membership, by ticker.
type Members = BTreeMap<&'static str, Vec<(&'static str, &'static str)>>;

/// The demo with and without a universe: some tickers are members for a while, one twice, and one never existed.
fn place() -> (Place, Members) {
    let place = Place::new();
    let members = BTreeMap::from([
        ("XOM", vec![("2000-01-01", "9999-12-31")]),
        ("CVX", vec![("2026-03-02", "2026-06-30"), ("2026-09-01", "9999-12-31")]),
        ("NEE", vec![("2000-01-01", "2026-05-15")]),
        ("GONE", vec![("2020-01-01", "9999-12-31")]),
    ]);
    let mut text = "ticker,from,to\n".to_owned();
    for (ticker, spans) in &members {
        for (from, to) in spans {
            text += &format!("{ticker},{from},{}\n", if *to == "9999-12-31" { "" } else { *to });
        }
    }
    fs::write(place.file("index.csv"), text).expect("a file");
    let source = "source.service = \"demo\"\nsignals.sectors = [\"energy\", \"utilities\"]\n";
    let periods = "signals.periods = [\"5d\", \"1m\"]\n";
    place.define("whole", &format!("{source}{periods}output.format = \"csv\"\n"));
    place.define("part", &format!("{source}{periods}output.format = \"csv\"\nfilter.universe = \"index.csv\"\n"));
    place.define(
        "news",
        &format!("{source}dataset.kind = \"news\"\noutput.format = \"csv\"\nfilter.universe = \"index.csv\"\n"),
    );
    place.run(["run", "whole", "-q"]).expect_success();
    place.run(["run", "news", "-q"]).expect_success();
    (place, members)
}

#[test]
fn a_dataset_has_the_rows_of_members_on_their_dates_unchanged() {
    let (place, members) = place();
    let rows = |words: &[&str]| -> Vec<String> {
        let shown = place.run(words.iter().chain(&["--output", "-", "--format", "csv"])).expect_success().stdout;
        shown.lines().map(str::to_owned).collect()
    };
    let is_member = |line: &&String| {
        let (ticker, rest) = line.split_once(',').expect("columns");
        let is_then = |(from, to): &(&str, &str)| *from <= &rest[..10] && &rest[..10] <= *to;
        ticker == "ticker" || members.get(ticker).is_some_and(|spans| spans.iter().any(is_then))
    };
    let whole = rows(&["build", "whole"]);
    let wanted: Vec<String> = whole.iter().filter(is_member).cloned().collect();
    let tickers: BTreeSet<&str> = wanted[1..].iter().filter_map(|line| line.split(',').next()).collect();
    assert_eq!(tickers, BTreeSet::from(["CVX", "NEE", "XOM"]));
    assert!(wanted.len() > 500 && wanted.len() < whole.len() / 2);
    assert_eq!(rows(&["build", "part"]), wanted);
    let first: Vec<String> =
        rows(&["build", "whole", "--vintage", "first"]).iter().filter(is_member).cloned().collect();
    assert_eq!(rows(&["build", "part", "--vintage", "first"]), first);
    let news = rows(&["build", "news"]);
    assert!(news.len() > 100 && news.iter().filter(is_member).count() == news.len());
    // The report says how many members lack signals: one of three on the newest date, and one of four ever.
    place.run(["build", "part", "-q"]).expect_success();
    let report = place.run(["report", "part", "--text", "--json"]).expect_success().stdout;
    let newest = wanted[1..].iter().filter_map(|line| line.split(',').nth(1)).max().expect("a date");
    let note = format!(
        "universe: 1 of 3 members of {} have no signal of that day; 1 of 4 members of all dates have no row at all",
        &newest[..10]
    );
    assert!(report.contains(&note), "{note}: {report}");
    // The file is part of what the version is built from.
    let refused = place.run(["sql", "part"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("SQL cannot select the members of a file"));
    place.run(["audit", "skill", "part"]).expect_success();
    fs::write(place.file("index.csv"), "ticker,from,to\nXOM,2000-01-01,\n").expect("a file");
    assert!(rows(&["build", "part"])[1..].iter().all(|line| line.starts_with("XOM,")));
}

#[test]
fn a_file_that_lists_no_members_is_refused_with_its_line_and_a_remedy() {
    let (place, _) = place();
    fs::write(place.file("index.csv"), "ticker,from,to\nXOM,2000-01-01,\nCVX,yesterday,\n").expect("a file");
    let shown = place.run(["check", "part"]).failed_with(2).stderr;
    assert!(
        shown.contains("`index.csv` does not list members: line 3: `yesterday` is not a date: write `2026-11-20`"),
        "{shown}"
    );
    assert!(shown.contains("hint: name a CSV file with a line per ticker and membership"), "{shown}");
    fs::remove_file(place.file("index.csv")).expect("it was there");
    let shown = place.run(["check", "part"]).failed_with(2).stderr;
    assert!(shown.contains("`index.csv` does not list members: cannot read it"), "{shown}");
}
