//! Changes of the past, cell by cell.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use bellwether::time::to_record;
use chrono::NaiveDate;

use super::{articles, entries, run, sector};
use crate::support::days::{Day, evening};
use crate::support::program::Place;
use crate::support::python;
use crate::support::rows::{columns, numbers, read, texts};
use crate::support::scripted::{Scripted, json};
use crate::support::service::day;

fn days() -> [NaiveDate; 3] {
    [day(2026, 9, 28), day(2026, 10, 1), day(2026, 11, 6)]
}

/// A change: the cell, when it was observed, and the values before and after, numbers as bits.
type Change = ([String; 5], [String; 2], [u64; 2]);

fn seen_on(day: NaiveDate) -> String {
    evening(day).format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The rows of one operation.
fn changes_in(rows: &RecordBatch, source: &str, cell: [&str; 5], number: &str) -> BTreeSet<Change> {
    let sources = texts(rows, "source");
    let values = columns(rows, ["old_signal", "new_signal"]);
    let bits = |side: &str| -> Vec<u64> {
        numbers(rows, &format!("{side}_{number}")).map(|number| number.map_or(0, f64::to_bits)).collect()
    };
    let (old, new) = (bits("old"), bits("new"));
    let cells = columns(rows, cell).into_iter().zip(values).enumerate();
    let cells = cells.filter(|(row, _)| sources[*row].as_deref() == Some(source));
    cells.map(|(row, (cell, values))| (cell, values, [old[row], new[row]])).collect()
}

/// Three archived days of a service, and its known rewrites between them.
struct Rewritten {
    place: Place,
    services: Vec<Day>,
    signals: BTreeSet<Change>,
    scores: BTreeSet<Change>,
}

impl Rewritten {
    fn new() -> Self {
        let place = Place::new();
        let services: Vec<Day> = days().into_iter().map(Day::new).collect();
        let (mut signals, mut scores) = (BTreeSet::new(), BTreeSet::new());
        for (place_of_day, service) in services.iter().enumerate() {
            service.run(&place);
            let Some(earlier) = place_of_day.checked_sub(1).map(|before| days()[before]) else { continue };
            let seen = seen_on(days()[place_of_day]);
            let (before, after) = service.rewritten_signals(earlier);
            for (cell, (signal, confidence)) in after {
                let (old, was) = &before[&cell];
                let [ticker, period, regime, date] = cell;
                let cell = [ticker, period, regime, date, seen.clone()];
                signals.insert((cell, [old.clone(), signal], [was.to_bits(), confidence.to_bits()]));
            }
            let (before, after) = service.rewritten_scores(earlier);
            for (article, score) in after {
                let was = before[&article];
                let [ticker, date, link] = article;
                let cell = [ticker, date, link, String::new(), seen.clone()];
                scores.insert((cell, [String::new(), String::new()], [was.to_bits(), score.to_bits()]));
            }
        }
        Self { place, services, signals, scores }
    }

    fn audit(&self, arguments: &[&str]) -> (RecordBatch, String) {
        let _ = std::fs::remove_file(self.place.file("changes.parquet"));
        let arguments = ["audit", "revisions"].iter().chain(arguments).chain(&["--output", "changes.parquet"]);
        let stdout = self.place.run(arguments).expect_success().stdout;
        (read(&self.place.file("changes.parquet")), stdout)
    }

    #[track_caller]
    fn check(&self, rows: &RecordBatch, is_in_span: impl Fn(&str) -> bool) {
        let expected = |all: &BTreeSet<Change>| all.iter().filter(|one| is_in_span(&one.0[4])).cloned().collect();
        let signals: BTreeSet<Change> = expected(&self.signals);
        let scores: BTreeSet<Change> = expected(&self.scores);
        let cell = ["ticker", "period", "regime", "date", "observed_at"];
        assert_eq!(changes_in(rows, "signals-history-all", cell, "confidence"), signals);
        let article = ["ticker", "date", "link", "period", "observed_at"];
        assert_eq!(changes_in(rows, "news_articles", article, "score"), scores);
        assert_eq!(rows.num_rows(), signals.len() + scores.len());
    }

    /// The history cells of a day.
    fn known_cells(&self, place: usize) -> BTreeSet<[String; 4]> {
        self.services[place].cells(|_| true)
    }
}

/// The numbers of the first line that starts with `all`.
fn totals(stdout: &str) -> Vec<String> {
    let line = stdout.lines().find(|line| line.starts_with("all ")).expect("a line of totals");
    line.split_whitespace().map(|word| word.replace(',', "")).collect()
}

#[test]
fn the_audit_finds_exactly_the_rewritten_cells() {
    let rewritten = Rewritten::new();
    assert!(!rewritten.signals.is_empty() && !rewritten.scores.is_empty(), "the test has seen too little");
    let (all, stdout) = rewritten.audit(&[]);
    rewritten.check(&all, |_| true);
    assert!(texts(&all, "kind").iter().all(|kind| kind.as_deref() == Some("revised")));
    assert!(texts(&all, "sector").iter().all(|sector| sector.as_deref() == Some("energy")));
    let known: BTreeSet<_> = (0..3).flat_map(|place| rewritten.known_cells(place)).collect();
    let changed: BTreeSet<_> = rewritten.signals.iter().map(|(cell, ..)| &cell[..4]).collect();
    let flipped = rewritten.signals.iter().filter(|(_, [old, new], _)| old != new).count();
    let counts = [known.len(), changed.len()].map(|count| count.to_string());
    assert_eq!(totals(&stdout)[1..3], counts);
    let counts = [0, rewritten.signals.len(), 0, flipped].map(|count| count.to_string());
    assert_eq!(totals(&stdout)[5..9], counts);
    python::check(
        "check_revisions.py",
        [rewritten.place.file("output/archive/vendor"), rewritten.place.file("changes.parquet")],
    );

    // For a half-open span, and for a definition's part of the archive.
    let [first, second, third] = days().map(|day| to_record(evening(day)));
    let (rows, stdout) = rewritten.audit(&["--from", &second, "--to", &third]);
    rewritten.check(&rows, |seen| seen == seen_on(days()[2]));
    let known = rewritten.known_cells(0).union(&rewritten.known_cells(1)).cloned().collect::<BTreeSet<_>>();
    let late: Vec<_> = rewritten.signals.iter().filter(|(cell, ..)| cell[4] == seen_on(days()[2])).collect();
    let of_known = late.iter().filter(|(cell, ..)| known.contains(&cell[..4])).count();
    let line = format!("\n{of_known} of ");
    assert!(
        stdout.contains(&line) && stdout.contains("known at the start") && totals(&stdout)[2] == late.len().to_string(),
        "{stdout}"
    );
    assert_eq!(rewritten.audit(&["--from", &third]).0.num_rows(), 0);
    rewritten.check(&rewritten.audit(&["--from", &first]).0, |_| true);
    let definition = "source.name = \"vendor\"\nsource.base_url = \"http://127.0.0.1:9/a\"\n\
                      source.sentiment_base_url = \"http://127.0.0.1:9/b\"\nsignals.sectors = [\"energy\"]\nsignals.periods = [\"1d\"]\n\
                      signals.regimes = [\"bear\"]\n";
    rewritten.place.define("part", definition);
    let (part, _) = rewritten.audit(&["part"]);
    let expected = rewritten.signals.iter().filter(|(cell, ..)| cell[1] == "1d" && cell[2] == "bear").count();
    assert_eq!(part.num_rows(), expected + rewritten.scores.len());

    // The same after packing.
    rewritten.place.pack();
    rewritten.place.prune_packed();
    rewritten.check(&rewritten.audit(&[]).0, |_| true);
    rewritten.check(&rewritten.audit(&["--from", &second]).0, |seen| seen == seen_on(days()[2]));
    refusals(&rewritten.place, &second);
}

/// An exceeded limit has its own exit code; invalid options are refused with a hint.
fn refusals(place: &Place, from: &str) {
    let audit = |arguments: &[&str]| place.run(["audit", "revisions"].iter().chain(arguments));
    let above = audit(&["--from", from, "--fail-above", "0.001%"]).failed_with(3);
    assert!(above.stdout.contains("known at the start"), "the tables are shown: {}", above.stdout);
    assert!(
        above.stderr.starts_with("error: ") && above.stderr.contains(" above the limit of 0.0010 %\nhint: "),
        "{}",
        above.stderr
    );
    audit(&["--fail-above", "50%"]).expect_success();
    let refused = |arguments: &[&str], code: i32, expected: &str| {
        let outcome = audit(arguments).failed_with(code);
        assert!(outcome.stderr.contains(expected) && outcome.stderr.starts_with("error: "), "{}", outcome.stderr);
    };
    refused(&["--from", "2026-11-02", "--to", "2026-11-01"], 2, "hint: choose a `--to` later than `--from`");
    refused(&["--from", "2020-01-01"], 1, "no data as of 2020-01-01");
    refused(&["--to", "2020-01-01"], 1, "no data as of 2020-01-01");
    refused(&["nobody"], 2, "no definition `nobody`");
    refused(&["--fail-above", "150%"], 2, "use a percentage such as `0.5%`");
    refused(&["--format", "csv"], 2, "hint: add `--output FILE`, or `--output -`");
    refused(&["--output", "rows.txt"], 2, "hint: add `--format parquet`");
    refused(&["--output", "rows.parquet", "--format", "csv"], 2, "`--format csv` does not fit the name `rows.parquet`");
    refused(&["--output", "changes.parquet"], 1, "`changes.parquet` already exists");
    refused(&["--archive", "elsewhere"], 1, "no archive: `elsewhere` does not exist");
    let hidden = place.files().into_iter().filter(|file| file.to_string_lossy().contains(".rows")).count();
    assert_eq!(hidden, 0, "nothing half-written is left");
    let piped = audit(&["--format", "json", "--output", "-"]).expect_success().stdout;
    assert!(piped.lines().all(|line| line.starts_with("{\"source\":")) && piped.lines().count() > 10);
}

#[test]
fn late_additions_revisions_and_withdrawals_are_distinguished() {
    let turn = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&turn);
    let service = Scripted::start(move |request| {
        let turn = now.load(Ordering::SeqCst);
        let date = |day: &str| format!("2026-01-{day}T00:00:00");
        let signals: &[(&str, &str, f64)] = match turn {
            0 => &[("05", "buy", 0.5), ("06", "buy", 0.5), ("07", "sell", 0.5), ("09", "buy", 0.5)],
            // 06 flips, 07 is withdrawn, 12 is new.
            1 => &[("05", "buy", 0.5), ("06", "sell", 0.75), ("09", "buy", 0.5), ("12", "buy", 0.5)],
            // 07 is back, 08 is late, 02 is before all covered dates, and 06 changes again.
            _ => &[
                ("02", "buy", 0.5),
                ("05", "buy", 0.5),
                ("06", "sell", 0.25),
                ("07", "sell", 0.5),
                ("08", "sell", 0.5),
                ("09", "buy", 0.5),
                ("12", "buy", 0.5),
            ],
        };
        let news: &[(&str, &str, f64)] = match turn {
            0 => &[("2026-01-08", "b", 0.25), ("2026-01-05", "a", 0.1)],
            // `c` is late, `b` has another score.
            1 => &[("2026-01-08", "b", 0.5), ("2026-01-07", "c", 0.2), ("2026-01-05", "a", 0.1)],
            // `c` is withdrawn, `d` is of a day long past, and `e` is new.
            _ => &[
                ("2026-01-09", "e", 0.1),
                ("2026-01-08", "d", 0.3),
                ("2026-01-08", "b", 0.5),
                ("2026-01-05", "a", 0.1),
            ],
        };
        let dated: Vec<_> = signals.iter().map(|(day, signal, confidence)| (date(day), *signal, *confidence)).collect();
        let dated: Vec<_> = dated.iter().map(|(date, signal, it)| (date.as_str(), *signal, *it)).collect();
        match request.target.starts_with("/a/") {
            true => json("200 OK", &sector(&[("AA", entries(&dated))])),
            false => json("200 OK", &articles(news)),
        }
    });
    let place = Place::new();
    for _ in 0..3 {
        run(&place, &service, "it", "[signals]\nsectors = [\"energy\"]\n");
        turn.fetch_add(1, Ordering::SeqCst);
    }
    let stdout = place.run(["audit", "revisions", "--output", "changes.parquet"]).expect_success().stdout;
    let rows = read(&place.file("changes.parquet"));
    let mut found: Vec<String> =
        columns(&rows, ["source", "date", "title", "kind", "old_signal", "new_signal", "old_confidence", "new_score"])
            .into_iter()
            .map(|row| row.join(" "))
            .collect();
    found.sort();
    let expected = [
        "news_articles 2026-01-07T00:00:00 c added_late    0.2",
        "news_articles 2026-01-07T00:00:00 c withdrawn    ",
        "news_articles 2026-01-08T00:00:00 b revised    0.5",
        "news_articles 2026-01-08T00:00:00 d added_late    0.3",
        "signals-history-all 2026-01-06T00:00:00  revised buy sell 0.5 ",
        "signals-history-all 2026-01-06T00:00:00  revised sell sell 0.75 ",
        "signals-history-all 2026-01-07T00:00:00  added_late  sell  ",
        "signals-history-all 2026-01-07T00:00:00  withdrawn sell  0.5 ",
        "signals-history-all 2026-01-08T00:00:00  added_late  sell  ",
    ];
    assert_eq!(found, expected);
    // Of seven known cells three changed: one flipped, two moved by 0.25 and 0.5.
    let expected = ["all", "7", "3", "42.9", "%", "2", "2", "1", "1", "0.3750", "0.5000"];
    assert_eq!(totals(&stdout), expected);
    python::check("check_revisions.py", [place.file("output/archive/vendor"), place.file("changes.parquet")]);
}
