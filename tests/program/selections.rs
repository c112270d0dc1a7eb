//! A selection applies or is refused: every selector of every kind of dataset, published and built while it is read.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use bellwether::error::{Error, ErrorKind};
use bellwether::interface::{Period, Regime, Sector, Ticker};
use bellwether::load::{AdHoc, Dataset, Published, Selection};
use bellwether::plan::Plan;
use bellwether::project::Project;
use chrono::NaiveDate;
use serde_json::{Value, json};

use crate::support::program::{Outcome, Place};
use crate::support::scripted::{Scripted, ScriptedRequest, json as answer};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// Two sectors of two tickers each, with ten days of signals and news.
fn service() -> Scripted {
    Scripted::start(|ScriptedRequest { target, .. }| {
        let days = (1..=10).map(|day| format!("2026-10-{day:02}"));
        if target.starts_with("/b/") {
            let article = |day: String| json!({ "date": day, "title": format!("of {day}"), "score": 0.5, "link": "l" });
            return answer("200 OK", &Value::Array(days.map(article).collect()).to_string());
        }
        let of = |name: &str| target.split(['?', '&']).find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        let [sector, period, regime] = ["sector", "period", "regime"].map(|name| of(name).expect("a parameter"));
        let tickers = if sector == "energy" { ["CVX", "XOM"] } else { ["DUK", "NEE"] };
        let signal = |day: String| json!({ "date": day, "signal": "buy", "confidence": 0.25 });
        let predictions: Vec<Value> = days.map(signal).collect();
        let history = |ticker: &str| {
            let of = json!({ "ticker": ticker, "period": period, "regime": regime, "predictions": predictions });
            (ticker.to_owned(), of)
        };
        answer("200 OK", &Value::Object(tickers.map(history).into_iter().collect()).to_string())
    })
}

/// The start of a definition of signals.
fn signals(service: &Scripted) -> String {
    let source: String = service.source().lines().map(|line| format!("source.{line}\n")).collect();
    format!(
        "{source}signals.sectors = [\"energy\", \"utilities\"]\nsignals.periods = [\"5d\", \"1m\"]\n\
         signals.regimes = [\"neutral\", \"bull\"]\n"
    )
}

/// The start of a definition of news.
fn news(service: &Scripted) -> String {
    signals(service)
        .lines()
        .filter(|line| !line.contains("periods") && !line.contains("regimes"))
        .fold("dataset.kind = \"news\"\n".to_owned(), |text, line| format!("{text}{line}\n"))
}

fn run(place: &Place, name: &str) {
    Outcome::of(place.command(["run", name, "-q"]).envs([KEY])).expect_success();
}

/// The columns that rows are selected by, in a dataset of signals that has all of them.
const BY: [&str; 5] = ["ticker", "date", "period", "regime", "sector"];

/// A dataset: its name, its definition, and what it calls the columns that rows are selected by, if it has them.
type Case = (String, String, [Option<String>; 5]);

fn cases(service: &Scripted) -> Vec<Case> {
    let joined = signals(service);
    let alone = format!("{joined}dataset.kind = \"signals\"\n");
    let all = || BY.map(|name| Some(name.to_owned()));
    let mut cases = Vec::new();
    for format in ["parquet", "csv", "arrow"] {
        let text = format!("{alone}dataset.add = \"sector\"\noutput.format = \"{format}\"\n");
        cases.push((format.to_owned(), text.clone(), all()));
        for by in BY {
            cases.push((format!("{format}-by-{by}"), format!("{text}output.partition_by = \"{by}\"\n"), all()));
        }
        let renamed = BY.map(|name| format!("dataset.rename.{name} = \"its {name}\"\n")).concat();
        let folders = "output.partition_by = [\"period\", \"sector\"]\n";
        let names = BY.map(|name| Some(format!("its {name}")));
        cases.push((format!("{format}-renamed"), format!("{text}{renamed}{folders}"), names));
    }
    let columns = [&BY[..], &["signal", "confidence"]].concat();
    for left_out in BY {
        let kept: Vec<&str> = columns.iter().copied().filter(|name| *name != left_out).collect();
        // Another column may take the name.
        for rename in ["", &format!("dataset.rename.confidence = \"{left_out}\"\n")] {
            let name = format!("without-{left_out}-{}", rename.len());
            let has = BY.map(|name| (name != left_out).then(|| name.to_owned()));
            cases.push((name, format!("{alone}dataset.columns = {kept:?}\n{rename}"), has));
        }
    }
    cases.push(("joined".to_owned(), joined, all()));
    let has = |has_sector: bool| [true, true, false, false, has_sector].map(|has| has.then(String::new));
    cases.push(("news".to_owned(), news(service), has(false)));
    cases.push(("news-of-sectors".to_owned(), format!("{}dataset.add = \"sector\"\n", news(service)), has(true)));
    for (_, _, names) in &mut cases {
        for (name, own) in names.iter_mut().zip(BY) {
            name.iter_mut().filter(|name| name.is_empty()).for_each(|name| own.clone_into(name));
        }
    }
    cases
}

/// The selections by one column each: the column, the options of `show`, and the texts or days that are selected.
fn selections(middle: &str) -> Vec<(usize, Vec<String>, Selection)> {
    fn of<T: FromStr<Err: std::fmt::Debug> + Ord>(names: &[&str]) -> Option<BTreeSet<T>> {
        Some(names.iter().map(|name| name.parse().expect("a name")).collect())
    }
    let day: Option<NaiveDate> = middle.parse().ok();
    let none = Selection::default;
    let options = |options: &[&str]| options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>();
    vec![
        (0, options(&["--ticker", "XOM,NEE"]), Selection { tickers: of::<Ticker>(&["XOM", "NEE"]), ..none() }),
        (1, options(&["--from", middle]), Selection { from: day, ..none() }),
        (1, options(&["--to", middle]), Selection { to: day, ..none() }),
        (2, options(&["--period", "5d"]), Selection { periods: of::<Period>(&["5d"]), ..none() }),
        (3, options(&["--regime", "bull"]), Selection { regimes: of::<Regime>(&["bull"]), ..none() }),
        (4, options(&["--sector", "energy"]), Selection { sectors: of::<Sector>(&["energy"]), ..none() }),
    ]
}

/// Whether the text of a cell is selected.
fn is_meant(selection: &Selection, column: usize, text: &str) -> bool {
    match column {
        0 => ["XOM", "NEE"].contains(&text),
        1 => {
            let day: NaiveDate = text[..10].parse().expect("a date");
            selection.from.is_none_or(|from| day >= from) && selection.to.is_none_or(|to| day < to)
        }
        2 => text == "5d",
        3 => text == "bull",
        _ => text == "energy",
    }
}

/// All rows as texts.
fn rows(dataset: &Dataset) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for batch in dataset.batches().expect("files") {
        let batch = batch.expect("rows");
        let texts = |column: &ArrayRef| -> Vec<String> {
            // Instants as numbers: their text needs the rules of time zones.
            let is_instant = matches!(column.data_type(), DataType::Timestamp(_, Some(_)));
            let column = if is_instant { cast(column, &DataType::Int64).expect("numbers") } else { Arc::clone(column) };
            let column = cast(&column, &DataType::Utf8).expect("texts");
            column.as_string::<i32>().iter().map(|text| text.unwrap_or("-").to_owned()).collect()
        };
        let columns: Vec<Vec<String>> = batch.columns().iter().map(texts).collect();
        rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()));
    }
    rows
}

fn of_archive(place: &Place, name: &str) -> Dataset {
    let plan = Plan::find(name, &Project::at(place.path()).expect("a project")).expect("a definition");
    Dataset::from_archive(plan, &place.file("output/archive"), &AdHoc::default()).expect("an archive")
}

fn refusal<T>(result: Result<T, Error>) -> (String, String) {
    let error = result.err().expect("a refusal");
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    let hint = error.hint().expect("a hint");
    (error.to_string(), hint.to_owned())
}

#[test]
fn every_selector_of_every_dataset_applies_or_is_refused_on_the_spot_and_published() {
    let (place, service) = (Place::new(), service());
    for (name, text, columns) in cases(&service) {
        place.define(&name, &text);
        // The others are built from what these have fetched.
        match &*name {
            "parquet" | "joined" | "news" => run(&place, &name),
            _ => drop(place.run(["build", &*name, "-q"]).expect_success()),
        }
        let version = Dataset::find(&place.file("output/datasets"), &name).expect("a version");
        let built = of_archive(&place, &name);
        let whole = rows(&version);
        for (by, options, selection) in selections("2026-10-06") {
            let arguments = ["show", &*name, "--head", "0"].into_iter().chain(options.iter().map(String::as_str));
            let Some(column) = &columns[by] else {
                let (what, hint) = refusal(version.select(selection.clone()));
                assert_eq!(refusal(built.select(selection)), (what.clone(), hint.clone()), "{name} {options:?}");
                let is_news = name.starts_with("news") && [2, 3].contains(&by);
                let reason = if is_news { "a dataset of news has none" } else { "the dataset has no column" };
                assert!(what.starts_with("cannot select ") && what.contains(reason), "{name} {options:?}: {what}");
                assert!(what.ends_with(&format!("`{}`", BY[by])) || is_news, "{name} {options:?}: {what}");
                assert!(hint.starts_with("leave out `--"), "{name} {options:?}: {hint}");
                let shown = place.run(arguments).failed_with(2).stderr;
                assert_eq!(shown, format!("error: {what}\nhint: {hint}\n"), "{name} {options:?}");
                continue;
            };
            if !name.contains("-by-") {
                place.run(arguments).expect_success();
            }
            let place_of_column = version.schema().index_of(column).expect("the column");
            let meant = |row: &&Vec<String>| is_meant(&selection, by, &row[place_of_column]);
            let expected: Vec<Vec<String>> = whole.iter().filter(meant).cloned().collect();
            assert!(!expected.is_empty() && expected.len() < whole.len(), "{name} {options:?}");
            assert!(rows(&version.select(selection.clone()).expect("a part")) == expected, "{name} {options:?}");
            // The rows of folders are in another order.
            let sorted = |mut rows: Vec<Vec<String>>| {
                rows.sort();
                rows
            };
            assert!(
                sorted(rows(&built.select(selection.clone()).expect("a part"))) == sorted(expected.clone()),
                "{name} {options:?}"
            );
            // Rows are selected by a column that is not.
            let other = version.schema().fields().iter().map(|field| field.name().clone()).find(|name| name != column);
            let alone = Selection { columns: other.map(|name| vec![name]), ..selection };
            for dataset in [&version, &built] {
                let part = rows(&dataset.select(alone.clone()).expect("a column"));
                assert_eq!((part.len(), part[0].len()), (expected.len(), 1), "{name} {options:?}");
            }
        }
    }
}

#[test]
fn names_and_ranges_that_select_nothing_are_refused_in_the_same_words() {
    let place = Place::new();
    let service = service();
    place.define("it", &format!("{}dataset.add = \"sector\"\n", signals(&service)));
    run(&place, "it");
    let datasets = [Dataset::find(&place.file("output/datasets"), "it").expect("a version"), of_archive(&place, "it")];
    let none = Selection::default;
    let day = |text: &str| Some(text.parse::<NaiveDate>().expect("a day"));
    let columns = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    let refusals = [
        (Selection { columns: columns(&[]), ..none() }, "no columns are selected"),
        (Selection { columns: columns(&["date", "signal", "date"]), ..none() }, "column `date` is named twice"),
        (Selection { columns: columns(&["dat"]), ..none() }, "no column `dat`; the columns are `ticker`, `date`, "),
        (Selection { tickers: Some(BTreeSet::new()), ..none() }, "no tickers are selected"),
        (Selection { sectors: Some(BTreeSet::new()), ..none() }, "no sectors are selected"),
        (Selection { periods: Some(BTreeSet::new()), ..none() }, "no periods are selected"),
        (Selection { regimes: Some(BTreeSet::new()), ..none() }, "no regimes are selected"),
        (
            Selection { tickers: Some(BTreeSet::from(["XON".parse().expect("a ticker")])), ..none() },
            "no signals for ticker `XON` (did you mean `XOM`?)",
        ),
        (
            Selection { sectors: Some(BTreeSet::from(["enrgy".parse().expect("a sector")])), ..none() },
            "no signals for sector `enrgy` (did you mean `energy`?)",
        ),
        (
            Selection { periods: Some(BTreeSet::from(["6m".parse().expect("a period")])), ..none() },
            "no signals for period `6m`",
        ),
        (Selection { regimes: Some(BTreeSet::from([Regime::Bear])), ..none() }, "no signals for regime `bear`"),
        (
            Selection { from: day("2026-03-02"), to: day("2026-03-02"), ..none() },
            "empty date range: 2026-03-02 to 2026-03-02",
        ),
    ];
    for (selection, expected) in refusals {
        let said = datasets.each_ref().map(|dataset| refusal(dataset.select(selection.clone())));
        assert_eq!(said[0], said[1]);
        assert!(said[0].0.starts_with(expected), "{said:?}");
    }
    for (options, expected) in [
        (["--period", "6m"], "error: no signals for period `6m`\nhint: the periods of the dataset are `5d`, `1m`\n"),
        (["--sector", "enrgy"], "error: no signals for sector `enrgy` (did you mean `energy`?)\n"),
        (["--columns", ""], "error: no column ``; the columns are"),
    ] {
        let shown = place.run(["show", "it"].into_iter().chain(options)).failed_with(2).stderr;
        assert!(shown.starts_with(expected), "{shown}");
    }
}

#[test]
fn every_selector_of_matrices_applies_or_is_refused() {
    let (place, service) = (Place::new(), service());
    let signals = signals(&service);
    for (name, format) in [("it", "parquet"), ("csv", "csv"), ("gz", "csv.gz"), ("zst", "csv.zst"), ("arrow", "arrow")]
    {
        let wide = "output.layout = \"wide\"\noutput.values = [\"signal\", \"confidence\"]\n";
        place.define(
            name,
            &format!("{signals}{wide}output.format = \"{format}\"\ndataset.rename.confidence = \"a/b\"\n"),
        );
        match name {
            "it" => run(&place, name),
            _ => drop(place.run(["build", name, "-q"]).expect_success()),
        }
        let version = Published::find(&place.file("output/datasets"), name).expect("a version");
        let names = |selection: Selection| match version.select(selection).expect("a part") {
            Published::Wide(matrices) => matrices.into_keys().collect::<Vec<String>>(),
            Published::Long(_) => panic!("the version is wide"),
        };
        let none = Selection::default;
        let columns = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let (period, regime) = (BTreeSet::from(["5d".parse().expect("a period")]), BTreeSet::from([Regime::Bull]));
        assert_eq!(names(none()).len(), 8);
        let of_period = names(Selection { periods: Some(period.clone()), ..none() });
        assert_eq!(of_period, ["5d-bull/a/b", "5d-bull/signal", "5d-neutral/a/b", "5d-neutral/signal"]);
        let of_pair =
            Selection { periods: Some(period), regimes: Some(regime), columns: columns(&["date", "a/b"]), ..none() };
        assert_eq!(names(of_pair), ["5d-bull/a/b"]);
        let Ok(Published::Wide(some)) = version.select(Selection {
            tickers: Some(BTreeSet::from(["XOM".parse().expect("a ticker")])),
            from: "2026-10-06".parse().ok(),
            ..none()
        }) else {
            panic!("matrices of a ticker");
        };
        for matrix in some.values() {
            let rows = rows(matrix);
            assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == 2 && &*row[0] >= "2026-10-06"));
        }
        let refusals = [
            (
                Selection { columns: columns(&["nope"]), ..none() },
                "no matrices of column `nope`; there are those of `a/b`, `signal`",
            ),
            (Selection { columns: columns(&["ticker", "date"]), ..none() }, "no column for the values of matrices"),
            (Selection { periods: Some(BTreeSet::new()), ..none() }, "no periods are selected"),
            (Selection { regimes: Some(BTreeSet::new()), ..none() }, "no regimes are selected"),
            (Selection { columns: columns(&[]), ..none() }, "no column for the values of matrices"),
            (
                Selection { periods: Some(BTreeSet::from(["6m".parse().expect("a period")])), ..none() },
                "no signals for period `6m`",
            ),
            (Selection { regimes: Some(BTreeSet::from([Regime::Bear])), ..none() }, "no signals for regime `bear`"),
            (
                Selection { sectors: Some(BTreeSet::from(["energy".parse().expect("a sector")])), ..none() },
                "cannot select sectors of a matrix",
            ),
            (
                Selection { tickers: Some(BTreeSet::from(["XON".parse().expect("a ticker")])), ..none() },
                "no signals for ticker `XON` (did you mean `XOM`?)",
            ),
        ];
        for (selection, expected) in refusals {
            assert_eq!(refusal(version.select(selection)).0, expected);
        }
    }
}
