//! A vendor, an archive of its answers, and the model of that archive.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use bellwether::archive::View;
use bellwether::archive::{Archive, Seal};
use bellwether::definition::DefinitionFile;
use bellwether::error::{Error, ErrorKind};
use bellwether::plan::{Plan, StoreUrl, Vintage};
use bellwether::run::{self, Control, Options, RemoteStore, StoreAccess, VerifyScope};
use bellwether::tables::Table;
use bellwether::time::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::runtime::Runtime;

use super::naive::{CellState, Changed, Model, Pull};
use super::vendor::{Answer, Form, Vendor};
use crate::support::program::Place;
use crate::support::random::Random;
use crate::support::scripted::{Scripted, json};

/// The folders of the machines that share a store.
pub(super) const MACHINES: [&str; 3] = ["output", "second", "third"];

/// The bodies of the service's answers; `None` is a 404.
type Bodies = Arc<Mutex<BTreeMap<String, Option<String>>>>;

/// What happens once.
type Interruption = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A vendor, an archive of its answers, and the model of that archive.
pub(super) struct World {
    pub(super) place: Arc<Place>,
    /// The service and its definition.
    pub(super) name: &'static str,
    pub(super) runtime: Runtime,
    pub(super) service: Scripted,
    pub(super) bodies: Bodies,
    /// Happens while the next request waits for its answer.
    pub(super) on_request: Interruption,
    /// Happens before the next request for news is answered.
    pub(super) on_news: Interruption,
    pub(super) random: Random,
    pub(super) vendor: Vendor,
    /// The operations that the service goes through.
    pub(super) forms: &'static [Form],
    /// The one that it offers now.
    form: Form,
    pub(super) model: Model,
    pub(super) now: DateTime<Utc>,
    /// The store that the machines share, if any.
    pub(super) store: Option<StoreUrl>,
    /// The folder of the machine that made the last pull.
    pub(super) machine: &'static str,
    /// A log of events, for debugging failures.
    pub(super) story: String,
}

impl World {
    pub(super) fn new(seed: u64, is_sliding: bool) -> Self {
        Self::at(Arc::new(Place::new()), "vendor", seed, is_sliding)
    }

    /// A service of several in one place.
    pub(super) fn at(place: Arc<Place>, name: &'static str, seed: u64, is_sliding: bool) -> Self {
        let mut random = Random::of(seed);
        let (bodies, on_request, on_news) = (Bodies::default(), Interruption::default(), Interruption::default());
        let answers = Arc::clone(&bodies);
        let (first, news) = (Arc::clone(&on_request), Arc::clone(&on_news));
        let service = Scripted::start(move |request| {
            let take = |interruption: &Interruption| interruption.lock().expect("no test panicked").take();
            let is_news = request.target.starts_with("/b/");
            take(&first).into_iter().chain(is_news.then(|| take(&news)).flatten()).for_each(|happen| happen());
            let target = request.target.split("api_key=").next().unwrap_or_default().trim_end_matches(['?', '&']);
            match answers.lock().expect("no test panicked").get(target) {
                Some(Some(body)) => json("200 OK", body),
                Some(None) => json("404 Not Found", "{}"),
                None => json("400 Bad Request", "{}"),
            }
        });
        fs::write(place.file("key"), "demo").expect("a key");
        Self {
            place,
            name,
            runtime: Runtime::new().expect("a runtime"),
            service,
            bodies,
            on_request,
            on_news,
            vendor: Vendor::of(random.between(1, 3), is_sliding, &mut random),
            random,
            forms: Form::ALL,
            form: Form::Sector,
            model: Model::default(),
            // A Saturday, the day after the last initial date.
            now: DateTime::from_timestamp(13_473 * 86_400, 0).expect("an instant of our time"),
            store: None,
            machine: "output",
            story: format!("sequence {seed}"),
        }
    }

    /// A world with several machines that share a store.
    pub(super) fn on_store(seed: u64, store: &str) -> Self {
        Self { store: Some(store.parse().expect("the address of a store")), ..Self::new(seed, true) }
    }

    /// Switches to one of the machines, which may have lost its disk.
    pub(super) fn change_machine(&mut self) {
        self.machine = self.random.pick(&MACHINES);
        self.story.push_str(&format!("\n  on `{}`", self.machine));
        if self.random.between(0, 4) == 0 {
            self.story.push_str(", which has lost its disk");
            let _ = fs::remove_dir_all(self.output());
        }
    }

    pub(super) fn output(&self) -> PathBuf {
        self.place.file(self.machine)
    }

    /// The archive of the service.
    pub(super) fn folder(&self) -> PathBuf {
        self.output().join("archive").join(self.name)
    }

    /// The definition; its last section is `[sentiment]`.
    pub(super) fn definition(&self) -> String {
        let source = self.service.source().replacen("vendor", self.name, 1);
        format!(
            "[source]\n{source}api_key_file = \"{}\"\n[signals]\n{}\
             [checks]\nmissing = \"warn\"\nuniverse = 1.0\nrewritten = 1.0\nrewritten_series = 1.0\ndates = \"warn\"\n[sentiment]\nsummary = true\nhistorical = true\n",
            self.place.file("key").display(),
            self.form.signals()
        )
    }

    pub(super) fn plan(&self) -> Plan {
        let rest = "[join]\nwindows = [\"1d\"]\nstats = [\"count\"]\n[output]\nformat = \"csv\"\n";
        let text = self.definition() + rest;
        Plan::of(DefinitionFile::new(PathBuf::from(self.name).with_extension("toml"), text).expect("a definition"))
            .expect("a plan")
    }

    pub(super) fn archive(&self) -> Archive {
        let path = self.folder();
        fs::create_dir_all(&path).expect("a folder");
        Archive::open(&path).expect("an archive")
    }

    /// Advances the vendor and the clock.
    pub(super) fn change(&mut self, changes: usize) {
        let steps = [
            TimeDelta::seconds(1),
            TimeDelta::days(1),
            TimeDelta::days(1),
            TimeDelta::minutes(1444),
            TimeDelta::days(40),
        ];
        self.now += self.random.pick(&steps);
        self.story.push_str(&format!("\npull {} at {}:", self.model.pulls.len(), self.now));
        let mut changed = if changes > 0 { self.vendor.go_on(&mut self.random) } else { Vec::new() };
        changed.extend((0..changes).map(|_| self.vendor.change(&mut self.random)));
        changed.iter().for_each(|changed| self.story.push_str(&format!("\n  {changed}")));
    }

    /// Lets the service give the current answers, by one of its operations.
    pub(super) fn answer(&mut self) -> Vec<Answer> {
        self.form = self.vendor.form(self.forms, &mut self.random);
        self.story.push_str(&format!("\n  answered by {:?}", self.form));
        let mut answers = self.vendor.answers(self.form, &mut self.random);
        if self.model.pulls.len() % 2 == 1 {
            answers.iter_mut().for_each(Answer::sign_zeros);
        }
        *self.bodies.lock().expect("no test panicked") =
            answers.iter().map(|answer| (answer.target.clone(), answer.body.clone())).collect();
        answers
    }

    /// Pulls the current answers. Returns the outcome of the run, and the changes that the archive recorded.
    pub(super) fn pull(&mut self) -> (Result<run::Summary, Error>, Seal) {
        let answers = self.answer();
        let at = self.now.timestamp_micros();
        self.model.pulls.push(Pull { began: at, at, answers });
        if self.store.is_some() {
            self.change_machine();
        }
        let clock = Clock::Fixed(self.now);
        let options = Options { clock, store: self.store.clone(), ..Options::new(self.output()) };
        let outcome = self.runtime.block_on(run::run(self.plan(), options));
        let archive = self.archive();
        assert_eq!(archive.runs().len(), self.model.pulls.len(), "{}: {outcome:?}", self.story);
        let seal = archive.runs().last().expect("a run").seal().clone();
        assert_eq!(seal.sealed_at, self.now, "{}", self.story);
        (outcome, seal)
    }

    #[track_caller]
    pub(super) fn check_changes(&self, seal: &Seal) {
        let expected = self.model.replay(i64::MAX).changed;
        let counts = seal.changes;
        let message = Changed {
            added: counts.added,
            revised: counts.revised,
            withdrawn: counts.withdrawn,
            listed: counts.listed,
            delisted: counts.delisted,
        };
        assert_eq!(message, expected, "{}", self.story);
        let rows: u64 = Table::ALL.iter().map(|table| seal.rows(&table.file())).sum();
        assert_eq!(rows, expected.added + expected.revised + expected.withdrawn, "{}", self.story);
        assert_eq!(seal.rows("listings.parquet"), expected.listed + expected.delisted, "{}", self.story);
    }

    /// Runs `verify` on the archive.
    #[track_caller]
    pub(super) fn verify(&self) {
        let (archive, output) = (self.output().join("archive"), self.output());
        let faults = run::verify(&archive, &output, &Control::default()).expect("it can be read").faults;
        assert!(faults.is_empty(), "{}\n{faults:#?}", self.story);
    }

    /// Verifies the contents of the store against its records.
    #[track_caller]
    pub(super) fn check_store(&self) {
        let url = self.store.as_ref().expect("there is a store");
        let (archive, output) = (self.output().join("archive"), self.output());
        let store =
            RemoteStore::open(url, StoreAccess::Write, &archive, &output, &Control::default()).expect("a store");
        let verified = self.runtime.block_on(store.verify(&VerifyScope::All)).expect("it can be read");
        assert!(verified.faults.is_empty() && verified.unfinished.is_empty(), "{}\n{verified:#?}", self.story);
        let runs = verified.difference.as_ref().map(|difference| difference.runs);
        assert_eq!(runs, Some(self.model.pulls.len()), "{}\n{verified:#?}", self.story);
    }

    /// Compares the archive as of an instant with the model.
    #[track_caller]
    pub(super) fn check_view(&self, archive: &Archive, as_of: DateTime<Utc>) {
        let replayed = self.model.replay(as_of.timestamp_micros());
        let view = View::of(archive.clone(), as_of);
        let vintages = [Vintage::Latest, Vintage::First];
        for (table, vintage) in Table::ALL.into_iter().flat_map(|table| vintages.map(|vintage| (table, vintage))) {
            let is_latest = vintage == Vintage::Latest;
            let cells = view.cells(table, vintage).expect("a view");
            let found: Vec<CellState> = cells.flat_map(|batch| cell_states(table, &batch.expect("cells"))).collect();
            let what = format!("{table:?} as of {as_of}, {vintage:?}");
            self.check_cells(table, found, replayed.cells(table, is_latest), &what);
            if table == Table::Articles {
                let cells = view.known_articles(vintage).expect("a view");
                let found: Vec<CellState> =
                    cells.flat_map(|batch| cell_states(table, &batch.expect("cells"))).collect();
                let what = format!("{what}, with their own revisions");
                self.check_cells(table, found, replayed.articles_shown(is_latest), &what);
            }
        }
    }

    #[track_caller]
    fn check_cells(&self, table: Table, mut found: Vec<CellState>, mut expected: Vec<CellState>, what: &str) {
        // Where machines met, one may know an offset that the operations of the other did not say.
        if self.vendor.has_steady_offsets {
            found.iter_mut().chain(&mut expected).for_each(|cell| cell.forget_offset(table));
        }
        found.sort();
        expected.sort();
        let missing: Vec<&CellState> = expected.iter().filter(|cell| !found.contains(cell)).collect();
        let wrong: Vec<&CellState> = found.iter().filter(|cell| !expected.contains(cell)).collect();
        assert!(found == expected, "{}\n{what}\nexpected {missing:#?}\nfound {wrong:#?}", self.story);
    }

    /// Pulls a few times and checks everything.
    pub(super) fn play(&mut self) {
        let pulls = self.random.between(1, 10);
        for pull in 0..pulls {
            self.go_on(pull);
            if pull == 0 {
                self.check_view(&self.archive(), self.now);
            }
        }
        self.check_views();
    }

    /// Makes changes, unless this is the first pull, and pulls.
    pub(super) fn go_on(&mut self, pull: usize) {
        let changes = if pull == 0 { 0 } else { self.random.pick(&[0, 1, 1, 2, 2, 6]) };
        self.change(changes);
        let (outcome, seal) = self.pull();
        assert!(
            outcome.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::NotFound),
            "{}: {outcome:?}",
            self.story
        );
        self.check_changes(&seal);
    }

    /// Compares the archive with the model as of every instant.
    pub(super) fn check_views(&self) {
        let archive = self.archive();
        for Pull { at, .. } in &self.model.pulls {
            let at = DateTime::from_timestamp_micros(*at).expect("an instant of our time");
            self.check_view(&archive, at - TimeDelta::microseconds(1));
            self.check_view(&archive, at);
        }
        self.check_view(&archive, self.now + TimeDelta::days(400));
    }
}

/// The columns that identify cells, and their value columns.
fn columns(table: Table) -> (&'static [&'static str], &'static [&'static str], &'static [&'static str]) {
    let of_ticker = &["ticker"];
    match table {
        Table::Signals => (&["ticker", "period", "regime"], &["date"], &["utc_offset_minutes", "signal", "confidence"]),
        Table::Articles => {
            (of_ticker, &["date", "title", "link", "copy"], &["place", "score", "utc_offset_minutes", "repeats"])
        }
        Table::Summaries => {
            let values = &[
                "debtor",
                "low_date",
                "low_score",
                "low_link",
                "low_summary",
                "high_date",
                "high_score",
                "high_link",
                "high_summary",
                "avg_date",
                "avg_score",
                "avg_link",
                "avg_summary",
            ];
            (of_ticker, &[], values)
        }
        Table::SentimentHistory => (of_ticker, &["record", "copy"], &["place"]),
    }
}

fn cell_states(table: Table, cells: &RecordBatch) -> Vec<CellState> {
    let (key, cell, value) = columns(table);
    let texts = |names: &[&str]| -> Vec<Vec<String>> { names.iter().map(|name| texts(cells, name)).collect() };
    let (key, cell, value) = (texts(key), texts(cell), texts(value));
    let known = texts(&["first_observed_at", "observed_at", "revisions"]);
    let number = |column: usize, row: usize| known[column][row].parse().expect("a number");
    let row = |row: usize| {
        let of_row = |columns: &[Vec<String>]| columns.iter().map(|column| column[row].clone()).collect();
        CellState {
            key: of_row(&key),
            cell: of_row(&cell),
            value: of_row(&value),
            first_observed_at: number(0, row),
            observed_at: number(1, row),
            revisions: number(2, row),
        }
    };
    (0..cells.num_rows()).map(row).collect()
}

/// A column as text; instants and dates as microseconds.
fn texts(cells: &RecordBatch, name: &str) -> Vec<String> {
    let column = cells.column_by_name(name).unwrap_or_else(|| panic!("no column `{name}`"));
    let column = match column.data_type() {
        DataType::Timestamp(..) => cast(column, &DataType::Int64).expect("it is a number"),
        _ => Arc::clone(column),
    };
    let texts = cast(&column, &DataType::Utf8).expect("every type has a text");
    texts.as_string::<i32>().iter().map(|text| text.unwrap_or("null").to_owned()).collect()
}
