//! Runs that are taken back: on every machine, in every view, and never silently.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether::plan::StoreUrl;
use serde_json::Value;

use crate::support::days::Day;
use crate::support::program::{Outcome, Place};
use crate::support::python;
use crate::support::service::day;

/// A machine with the definition of [`Day`], a clock of its own, and a store.
struct Machine {
    place: Place,
    url: String,
}

impl Machine {
    fn new(store: &Place) -> Self {
        let url = format!("file://{}", store.file("store").display());
        Self { place: Place::new(), url }
    }

    /// Runs on the evening of a day.
    fn run_on(&self, days: &Day) -> String {
        let store: StoreUrl = self.url.parse().expect("an address");
        let summary = days.run_with(&self.place.file("output"), Some(store));
        name_of(&summary.fetched.expect("it asked the service").run)
    }

    fn command(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(self.place.command(arguments).env("BELLWETHER_STORE", &self.url))
    }

    /// A store that no other machine has.
    fn alone(&self) -> StoreUrl {
        format!("file://{}", self.place.file("alone").display()).parse().expect("an address")
    }

    /// The definition of the days, for the program.
    fn define(&self) {
        let record = self.place.file("output/datasets/days/latest/dataset.json");
        let record: Value = serde_json::from_slice(&fs::read(record).expect("a record")).expect("JSON");
        self.place.define("days", record["definition"].as_str().expect("text"));
    }

    fn csv(&self, options: &[&str]) -> String {
        let build = ["build", "days", "-q", "--format", "csv", "--output", "-"];
        self.command(&[&build, options].concat()).expect_success().stdout
    }

    fn folders(&self) -> Vec<PathBuf> {
        let files = self.place.files().into_iter();
        files.filter(|path| path.ends_with("run.json")).filter_map(|path| Some(path.parent()?.to_owned())).collect()
    }
}

/// The name of a run by its folder.
fn name_of(folder: &Path) -> String {
    let name = folder.file_name().expect("a name").to_string_lossy();
    name.strip_prefix("run=").expect("the folder of a run").to_owned()
}

#[test]
fn the_digest_of_the_past_stands_for_every_run_and_its_text_can_be_hashed_by_anyone() {
    let (store, days) = (Place::new(), [18, 19].map(|today| Day::new(day(2026, 11, today))));
    let machine = Machine::new(&store);
    let past = || {
        let listed = machine.command(&["list", "runs", "--json"]).expect_success().stdout;
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let [past] = &listed["past"].as_array().expect("a list")[..] else { panic!("{listed}") };
        assert_eq!(past["service"], "vendor");
        let [statement, digest] = ["statement", "sha256"].map(|name| past[name].as_str().expect("text").to_owned());
        let text = machine.command(&["list", "runs"]).expect_success().stdout;
        assert!(text.ends_with(&format!("\npast: SHA-256 {digest}\n")), "{text}");
        fs::write(machine.place.file("past.txt"), &statement).unwrap();
        let hashed = Outcome::of(Command::new("sha256sum").arg(machine.place.file("past.txt"))).expect_success().stdout;
        assert_eq!(hashed.split(' ').next(), Some(&digest[..]));
        (statement, digest)
    };
    let of_run = |run: &str| {
        let seal = fs::read(machine.place.file(&format!("output/archive/vendor/run={run}/run.json"))).unwrap();
        let seal: Value = serde_json::from_slice(&seal).unwrap();
        format!("bellwether archive vendor\nrun {run} {}\n", seal["seal"].as_str().unwrap())
    };
    let first = machine.run_on(&days[0]);
    let of_first = past();
    assert_eq!(of_first.0, of_run(&first));
    // The seal of the second run names that of the first.
    let second = machine.run_on(&days[1]);
    let of_both = past();
    assert_eq!(of_both.0, of_run(&second));
    assert_ne!(of_first.1, of_both.1);
    machine.command(&["forget", &second, "--reason", "a test"]).expect_success();
    assert_eq!(past(), of_both);
}

#[test]
fn a_forgotten_run_counts_nowhere_and_every_page_says_so() {
    let (store, days) = (Place::new(), [18, 19, 20].map(|today| Day::new(day(2026, 11, today))));
    let machine = Machine::new(&store);
    machine.run_on(&days[0]);
    machine.define();
    let before = machine.csv(&[]);
    let bad = machine.run_on(&days[1]);
    let during = machine.csv(&[]);
    assert_ne!(before, during);
    let forget = ["forget", &bad, "--reason", "the vendor answered for another customer"];
    let message = machine.command(&forget).expect_success().stdout;
    assert!(message.starts_with(&format!("run `{bad}` is forgotten: the vendor answered ")), "{message}");
    let again = machine.command(&forget).expect_success().stdout;
    assert!(again.starts_with(&format!("run `{bad}` is forgotten already: ")), "{again}");

    // As if it had never been, also as of an instant when it counted.
    assert_eq!(machine.csv(&[]), before);
    assert_eq!(machine.csv(&["--as-of", "2026-11-19T23:00:00Z"]), before);
    assert_eq!(machine.csv(&["--vintage", "first"]).lines().count(), before.lines().count());

    let note = format!("run `{bad}` is left out, forgotten at ");
    let why = ": the vendor answered for another customer";
    for command in [
        &["build", "days"][..],
        &["build", "days", "--ticker", "XOM", "--format", "csv", "--output", "-"],
        &["build", "days", "--as-of", "2026-11-19T23:00:00Z"],
        &["verify"],
        &["list", "runs"],
        &["sql", "days"],
        &["report", "--text", "days"],
        &["audit", "quality", "days"],
        &["audit", "revisions"],
        &["audit", "sources"],
        &["audit", "leak", "days"],
    ] {
        let Outcome { stdout, stderr, .. } = machine.command(command).expect_success();
        let said = format!("{stdout}{stderr}").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&note) && said.contains(why), "{command:?}: {stdout}{stderr}");
    }
    machine.command(&["report", "days"]).expect_success();
    let page = fs::read_to_string(machine.place.file("output/reports/days.html")).unwrap();
    assert!(page.contains("is left out, forgotten at "), "{page}");

    let listed = machine.command(&["list", "runs"]).expect_success().stdout;
    assert!(!listed.contains("bellwether prune"), "a forgotten run is not packed: {listed}");

    // The next run goes on from what still counts.
    let next = machine.run_on(&days[2]);
    let seal = machine.place.file(&format!("output/archive/vendor/run={next}/run.json"));
    let seal: Value = serde_json::from_slice(&fs::read(seal).unwrap()).unwrap();
    assert_ne!(seal["basis"][0]["run"], bad.as_str());
    machine.command(&["verify"]).expect_success();
    machine.command(&["verify", "--store"]).expect_success();

    // The same as on a machine that never had the run.
    let elsewhere = Place::new();
    let other = Machine::new(&elsewhere);
    for day in [&days[0], &days[2]] {
        other.run_on(day);
    }
    other.define();
    assert_eq!(machine.csv(&[]), other.csv(&[]));

    // In DuckDB, too, and when the run is in a pack.
    for is_packed in [false, true] {
        if is_packed {
            machine.place.pack();
            machine.place.prune_packed();
            assert!(!machine.folders().iter().any(|path| path.ends_with(format!("run={bad}"))));
        }
        machine.command(&["build", "days", "-q"]).expect_success();
        let statement = machine.place.file("days.sql");
        fs::write(&statement, machine.command(&["sql", "days"]).expect_success().stdout).unwrap();
        let dataset = machine.place.file("output/datasets/days/latest/days.parquet");
        let cases = machine.place.file("cases.json");
        fs::write(&cases, serde_json::json!([{ "sql": statement, "dataset": dataset }]).to_string()).unwrap();
        python::check("check_sql.py", ["duckdb", cases.to_str().unwrap()]);
        assert_eq!(machine.csv(&[]), other.csv(&[]));
        machine.command(&["verify"]).expect_success();
    }
}

#[test]
fn a_version_built_from_a_forgotten_run_is_the_latest_nowhere() {
    let store = Place::new();
    let [first, second, third] = [(); 3].map(|()| Machine::new(&store));
    first.run_on(&Day::new(day(2026, 11, 18)));
    first.define();
    let bad = first.run_on(&Day::new(day(2026, 11, 19)));
    second.command(&["store", "pull"]).expect_success();
    first.command(&["forget", &bad, "--reason", "a test"]).expect_success();
    let reason = format!("built from run `{bad}`, which was forgotten since; build it again");
    let says_so = || first.command(&["status", "--json"]).stdout.contains(&reason);
    assert!(says_so());
    first.command(&["build", "days", "-q"]).expect_success();
    assert!(!says_so());
    let latest_of =
        |machine: &Machine| fs::read_link(machine.place.file("output/datasets/days/latest")).expect("a link");
    let good = latest_of(&first);
    assert_ne!(latest_of(&second), good);
    second.command(&["store", "pull"]).expect_success();
    assert_eq!(latest_of(&second), good, "what was withdrawn is replaced, though it is of a later day");

    let latest = store.file("store/datasets/days/latest.json");
    fs::write(&latest, "damaged").expect("a file");
    third.command(&["verify", "--store", "--repair"]).expect_success();
    assert!(fs::read_to_string(&latest).expect("a record").contains(good.to_str().expect("a name")));
    fs::remove_file(first.place.file("output/datasets/days/latest")).expect("a link");
    first.command(&["verify", "--repair"]).expect_success();
    assert_eq!(latest_of(&first), good);
}

#[test]
fn a_note_reaches_every_machine_and_what_is_based_on_the_run_goes_with_it() {
    let store = Place::new();
    let machines = [(); 3].map(|()| Machine::new(&store));
    let [first, second, third] = &machines;
    let (today, ahead, further) = (Day::new(day(2026, 11, 20)), Day::new(day(2130, 1, 15)), Day::new(day(2130, 1, 16)));
    first.run_on(&today);
    first.define();
    let before = first.csv(&[]);
    let bad = first.run_on(&ahead);
    for machine in [second, third] {
        machine.command(&["store", "pull"]).expect_success();
        machine.define();
    }
    // The clock of the third is ahead as well, and it is offline.
    further.run_with(&third.place.file("output"), Some(third.alone()));

    first.command(&["forget", &bad, "--reason", "the clock was ahead"]).expect_success();
    let sent = first.command(&["store", "push"]).expect_success().stdout;
    assert!(sent.contains("1 note on a forgotten run"), "{sent}");
    assert_eq!(first.command(&["store", "push"]).expect_success().stdout, "already up to date\n");

    // Fetched by whatever looks at the store.
    assert_eq!(second.csv(&[]), before);
    assert_eq!(second.command(&["store", "pull"]).expect_success().stdout, "already up to date\n");
    second.command(&["build", "days", "-q"]).expect_success();
    let latest = fs::read(store.file("store/datasets/days/latest.json")).unwrap();
    let latest: Value = serde_json::from_slice(&latest).unwrap();
    assert!(latest["as_of"].as_str().unwrap().starts_with("2026-"), "the version of the forgotten run does not count");

    // The third brings a run that is based on it.
    third.command(&["store", "push"]).expect_success();
    for machine in &machines {
        assert_eq!(machine.csv(&[]), before);
        let listed = machine.command(&["list", "runs"]).expect_success().stdout;
        assert!(listed.contains(&format!("it is based on `{bad}`, which is forgotten")), "{listed}");
        machine.command(&["verify", "--store"]).expect_success();
        let status = machine.command(&["verify", "--store", "--sizes", "--json"]).expect_success().stdout;
        let status = serde_json::from_str::<Value>(&status).unwrap()["difference"].clone();
        assert_eq!((status["only_here"].to_string(), status["only_there"].to_string()), ("[]".into(), "[]".into()));
    }
    // A machine with an empty disk gets the same.
    let fresh = Machine::new(&store);
    fresh.command(&["store", "pull"]).expect_success();
    fresh.define();
    assert_eq!(fresh.csv(&[]), before);
}

/// The dataset of three machines that did not know each other's runs, with or without a bad one that is forgotten.
fn known_together(bad: Option<&Day>, days: &[Day; 3]) -> String {
    let store = Place::new();
    let [first, second, third] = [(); 3].map(|()| Machine::new(&store));
    first.run_on(&days[0]);
    for machine in [&second, &third] {
        machine.command(&["store", "pull"]).expect_success();
    }
    let offline = |machine: &Machine, day: &Day| {
        let alone = machine.alone();
        let run = day.run_with(&machine.place.file("output"), Some(alone)).fetched.expect("it asked the service").run;
        machine.command(&["store", "push"]).expect_success();
        name_of(&run)
    };
    let forgotten = bad.map(|bad| offline(&second, bad));
    offline(&third, &days[2]);
    days[1].run_with(&first.place.file("output"), Some(first.alone()));
    first.define();
    first.command(&["store", "pull"]).expect_success();
    first.csv(&[]);
    assert!(first.folders().iter().any(|path| path.to_string_lossy().contains("merge=")));
    if let Some(run) = &forgotten {
        first.command(&["forget", run, "--reason", "of another account"]).expect_success();
    }
    let csv = first.csv(&[]);
    first.command(&["verify"]).expect_success();
    csv
}

#[test]
fn histories_that_meet_are_merged_without_a_forgotten_run() {
    let days = [17, 19, 20].map(|today| Day::new(day(2026, 11, today)));
    let bad = Day::new(day(2026, 11, 18));
    assert_eq!(known_together(Some(&bad), &days), known_together(None, &days));
}

#[test]
fn histories_that_meet_are_observed_since_the_first_answer_of_either() {
    let store = Place::new();
    let [first, second] = [(); 2].map(|()| Machine::new(&store));
    first.run_on(&Day::new(day(2026, 11, 20)));
    Day::new(day(2026, 11, 17)).run_with(&second.place.file("output"), Some(second.alone()));
    second.define();
    second.command(&["store", "pull"]).expect_success();
    second.command(&["build", "days", "-q"]).expect_success();
    let summary = second.command(&["report", "--text", "days"]).expect_success().stdout;
    assert!(summary.contains("Observed since 2026-11-17 in 2 runs, over 3 days"), "{summary}");
}

#[test]
fn only_a_run_that_no_other_is_based_on_is_forgotten_and_only_for_a_reason() {
    let store = Place::new();
    let machine = Machine::new(&store);
    let runs = [19, 20].map(|today| machine.run_on(&Day::new(day(2026, 11, today))));
    machine.define();
    let forget = |run: &str, reason: &str| machine.command(&["forget", run, "--reason", reason]);
    let message = forget(&runs[0], "bad").failed_with(2).stderr;
    assert!(message.starts_with(&format!("error: 1 run is based on `{}`: {}\n", runs[0], runs[1])), "{message}");
    let message = forget("20200101T000000Z-aaaa", "bad").failed_with(1).stderr;
    assert!(message.starts_with("error: no run `20200101T000000Z-aaaa` in "), "{message}");
    for reason in ["", "  ", "two\nlines", "\u{1b}[31mred", &"long".repeat(300)] {
        forget(&runs[1], reason).failed_with(2);
    }
    assert!(!machine.command(&["list", "runs"]).expect_success().stdout.contains("forgotten"));
    forget(&runs[1], "bad").expect_success();
    let shown = machine.command(&["list", "runs", &runs[1]]).failed_with(1).stderr;
    assert!(shown.contains(&format!("error: run `{}` is left out, forgotten at ", runs[1])), "{shown}");
    let refused = machine.command(&["build", "days", "--as-of", &runs[1]]).failed_with(1).stderr;
    assert!(refused.starts_with("error: cannot rebuild"), "{refused}");
    let both = ["forget", &format!("run={}", runs[0]), &runs[1], "--reason", "both are"];
    let told = machine.command(&both).expect_success().stdout;
    let expected = format!("run `{}` is forgotten: both are\nrun `{}` is forgotten already: bad\n", runs[0], runs[1]);
    assert!(told.starts_with(&expected), "{told}");
    let message = machine.command(&["build", "days"]).failed_with(1).stderr;
    assert!(message.contains("no sealed runs in"), "{message}");

    // A note that was changed is damage.
    let note = machine.place.file(&format!("output/archive/vendor/forgotten={}/run.json", runs[1]));
    let text = fs::read_to_string(&note).unwrap();
    fs::write(&note, text.replace("bad", "good")).unwrap();
    let message = machine.command(&["list", "runs"]).failed_with(1).stderr;
    assert!(message.contains("its BLAKE3 checksum is"), "{message}");
    // The store has it, or gets it again.
    fs::write(&note, &text).unwrap();
    machine.command(&["store", "push"]).expect_success();
    let there = store.file(&format!("store/archive/vendor/forgotten={}/run.json", runs[1]));
    for (path, repair, word) in
        [(&note, &["verify", "--repair"][..], "fetched `"), (&there, &["verify", "--store", "--repair"], "sent `")]
    {
        for damaged in [text.replace("bad", "good"), text[..40].to_owned()] {
            fs::write(path, damaged).unwrap();
            let message = machine.command(repair).expect_success().stdout;
            assert!(message.contains(word), "{message}");
            assert_eq!(fs::read_to_string(path).unwrap(), text);
        }
    }
    // Without a store, the run counts again, which is said.
    fs::write(&note, text.replace("bad", "good")).unwrap();
    let message = machine.place.run(["verify", "--repair"]).expect_success().stdout;
    assert!(message.contains("the run counts again until it is forgotten again"), "{message}");
}
