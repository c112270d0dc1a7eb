//! All vintages: a row for each value that a signal had, compared with DuckDB over the files of an archive that saw values
//! revised, withdrawn, listed again and added late.

use std::fs;

use crate::audits::table::lived;
use crate::support::program::Place;
use crate::support::python;

/// An archive of several evenings, and definitions of all its values.
fn of_all() -> Place {
    let place = lived();
    let text = fs::read_to_string(place.file("pipelines/it.toml")).expect("a definition");
    let define = |name: &str, rest: &str| {
        place.define(name, &format!("{text}[dataset]\nkind = \"signals\"\n{rest}"));
    };
    define("all", "add = [\"first_observed_at\", \"sector\", \"backfilled\"]\n[output]\nvintage = \"all\"\n");
    let sorted = "[output]\nvintage = \"all\"\nformat = [\"csv\", \"parquet\"]\nsort = [\"date\", \"confidence\"]\n";
    define("some", &format!("{sorted}[filter]\nsignal = \"buy\"\nfrom = 2026-01-08\nto = 2026-01-25\n"));
    place
}

#[test]
fn a_dataset_of_all_vintages_has_the_values_that_duckdb_finds_with_when_each_was_known() {
    let place = of_all();
    let archive = place.file("output/archive/vendor");
    for name in ["all", "some"] {
        place.run(["build", name, "-q"]).expect_success();
        let file = place.file(&format!("output/datasets/{name}/latest/{name}.parquet"));
        python::check("check_vintages.py", [name.as_ref(), archive.as_os_str(), file.as_os_str()]);
    }
    // It is a version like any other.
    place.run(["verify"]).expect_success();
    place.run(["report", "all", "--text"]).expect_success();
    place.run(["diff", "all", "all/latest"]).expect_success();
    let shown = place.run(["show", "all", "--head", "3"]).expect_success().stdout;
    assert!(shown.starts_with("ticker  date        period  regime  known_from "), "{shown}");
    let columns = place.run(["check", "all", "--json"]).expect_success().stdout;
    assert!(columns.contains("when an answer had another value, or no longer listed the signal"), "{columns}");
    // The same as of an instant, and after packing.
    let before = place.run(["build", "all", "--output", "-", "--format", "csv"]).expect_success().stdout;
    let then = place
        .run(["build", "all", "--as-of", "2026-01-25", "--output", "-", "--format", "csv"])
        .expect_success()
        .stdout;
    assert!(then.lines().count() > 100 && then.lines().count() < before.lines().count());
    assert!(!then.contains("2026-01-29T21:30:00"), "nothing of later runs");
    place.pack();
    place.prune_packed();
    assert_eq!(place.run(["build", "all", "--output", "-", "--format", "csv"]).expect_success().stdout, before);
}

#[test]
fn the_history_of_a_date_is_shown_for_any_definition_of_signals() {
    let place = of_all();
    let all = place.run(["build", "all", "--output", "-", "--format", "csv"]).expect_success().stdout;
    let wanted: Vec<String> = all
        .lines()
        .filter(|line| line.starts_with("AAA,2026-01-12T00:00:00,5d,"))
        .map(|line| line.split(',').take(9).collect::<Vec<_>>().join(","))
        .collect();
    assert!(wanted.len() > 1, "a date with several values: {wanted:?}");
    for name in ["it", "all"] {
        let words = ["show", name, "--history", "--ticker", "AAA", "--date", "2026-01-12", "--period", "5d"];
        let shown = place.run(words.iter().chain(&["--format", "csv"])).expect_success().stdout;
        assert_eq!(shown.lines().skip(1).collect::<Vec<_>>(), wanted, "{name}");
        assert!(
            shown.starts_with("ticker,date,period,regime,known_from,known_until,signal,confidence,score\n"),
            "{shown}"
        );
        let table = place.run(words).expect_success().stdout;
        assert_eq!(table.lines().count(), 1 + wanted.len(), "{table}");
        let then = place.run(words.iter().chain(&["--as-of", "2026-01-20"])).expect_success().stdout;
        assert_eq!(then.lines().filter(|line| line.ends_with("null") || line.contains(" null ")).count(), 1, "{then}");
    }
    let refused = place.run(["show", "it", "--history", "--date", "2026-01-12", "--from", "2026-01-01"]).failed_with(2);
    assert!(refused.stderr.contains("exclude each other"), "{}", refused.stderr);
    place.define("news", "source.service = \"demo\"\nsentiment.tickers = \"XOM\"\ndataset.kind = \"news\"\n");
    let refused = place.run(["show", "news", "--history"]).failed_with(2);
    assert!(refused.stderr.contains("has no signals whose values have a history"), "{}", refused.stderr);
}

#[test]
fn what_cannot_have_all_vintages_is_refused_with_a_remedy() {
    let place = of_all();
    let refused = |rest: &str, expected: [&str; 2]| {
        place.define("odd", &format!("source.service = \"demo\"\nsignals.sectors = \"energy\"\n{rest}"));
        let shown = place.run(["check", "odd"]).failed_with(2).stderr;
        assert!(expected.iter().all(|expected| shown.contains(expected)), "{shown}");
    };
    refused("output.vintage = \"all\"\n", ["no features of the news", "hint: set `kind = \"signals\"` in `[dataset]`"]);
    refused(
        "dataset.kind = \"signals\"\noutput.vintage = \"all\"\noutput.layout = \"wide\"\n",
        ["a dataset of all vintages cannot be wide", "hint: a date may have many values: set `layout = \"long\"`"],
    );
    refused(
        "dataset.kind = \"news\"\noutput.vintage = \"all\"\n",
        ["`all` has no effect on a dataset of news", "hint: choose"],
    );
    refused(
        "dataset.kind = \"signals\"\ndataset.add = \"revisions\"\noutput.vintage = \"all\"\n",
        ["`revisions`", "hint: "],
    );
    for (words, expected) in [
        (["audit", "leak", "all"], "nothing is joined to it"),
        (["sql", "all", "-q"], "SQL cannot compute a dataset with `vintage = \"all\"`"),
    ] {
        let words = words.iter().filter(|word| **word != "-q");
        let outcome = place.run(words);
        assert!(outcome.code != Some(0) && outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
    let refused = place.run(["build", "all", "--vintage", "first", "--output", "it.csv"]).failed_with(2).stderr;
    assert!(refused.contains("`--vintage first` has no effect: `all` has all vintages"), "{refused}");
}
