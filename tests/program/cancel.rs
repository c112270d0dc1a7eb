//! Every operation can be cancelled at once, leaves nothing partial, and can be repeated later.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use arrow::error::ArrowError;
use bellwether::error::{Error, ErrorKind, Result};
use bellwether::harness::pack;
use bellwether::load::{AdHoc, Dataset};
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{
    self, AuditOptions, BuildOptions, CancellationToken, Control, Event, Options, Prunable, PruneOptions,
    ReportOptions, Summary,
};
use bellwether::time::Clock;
use chrono::{DateTime, Utc};
use tokio::runtime::{Builder, Runtime};

use crate::support::program::Place;

/// The event at which an observer cancels.
#[derive(Clone, Copy, Debug)]
enum At {
    Start(&'static str),
    Advance(&'static str),
    Never,
}

fn control(at: At) -> Control {
    let stop = CancellationToken::new();
    let token = stop.clone();
    let observer = move |event: &Event<'_>| {
        let is_it = match (event, at) {
            (Event::Started(progress), At::Start(stage)) => progress.stage == stage,
            (Event::Advanced(progress), At::Advance(stage)) => progress.stage == stage,
            _ => false,
        };
        if is_it {
            token.cancel();
        }
    };
    Control { stop, ..Control::observed_by(observer) }
}

/// A place with the demo service's energy sector.
struct Demo {
    place: Place,
    runtime: Runtime,
}

impl Demo {
    fn new(rest: &str) -> Self {
        let place = Place::new();
        let demo = "[source]\nservice = \"demo\"\n[signals]\nsectors = [\"energy\"]\n[join]\nwindows = [\"7d\"]\n";
        place.define("it", &format!("{demo}{rest}"));
        Self { place, runtime: Builder::new_current_thread().enable_all().build().expect("a runtime") }
    }

    fn plan(&self) -> Plan {
        Plan::find(self.place.file("pipelines/it.toml").to_str().expect("a path"), &Project::default())
            .expect("a definition")
    }

    fn run(&self, now: &str, at: At) -> Result<Summary> {
        let options = Options {
            clock: Clock::Fixed(now.parse::<DateTime<Utc>>().expect("an instant")),
            control: control(at),
            ..Options::new(self.place.file("output"))
        };
        self.runtime.block_on(run::run(self.plan(), options))
    }

    fn build(&self, ad_hoc: AdHoc, at: At) -> Result<Summary> {
        let (archive, clock) = (self.place.file("output/archive"), Clock::System);
        let options = BuildOptions { clock, ad_hoc, control: control(at), ..BuildOptions::new(archive) };
        self.runtime.block_on(run::build(self.plan(), self.place.file("output"), options))
    }
}

/// Every file in a folder, hidden or not, except locks, which stay behind empty.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with(".locks") {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            found.extend(files(&path));
        } else {
            found.insert(path.display().to_string());
        }
    }
    found
}

#[track_caller]
fn is_interrupted<T>(outcome: Result<T>, at: impl std::fmt::Debug) {
    assert!(outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted), "{at:?}: {:?}", outcome.err());
}

#[test]
fn a_run_cancelled_in_any_stage_publishes_nothing_and_the_next_one_completes() {
    // A run is sealed later than the one before.
    let evening = |minute: usize| format!("2026-11-20T22:{minute:02}:00Z");
    for sort in
        ["", "[output]\nsort = [\"date\", \"ticker\"]\n", "[output]\nlayout = \"wide\"\nvalues = [\"signal\"]\n"]
    {
        let undisturbed = Demo::new(sort).run(&evening(0), At::Never).expect("a dataset");
        let demo = Demo::new(sort);
        let stages = [
            At::Start("signals"),
            At::Advance("articles"),
            At::Start("archive"),
            At::Start("dataset"),
            At::Advance("dataset"),
        ];
        for (minute, at) in stages.into_iter().enumerate() {
            is_interrupted(demo.run(&evening(minute), at), at);
            assert_eq!(files(&demo.place.file("output/datasets/it")), BTreeSet::new(), "{sort} {at:?}");
        }
        let summary = demo.run(&evening(stages.len()), At::Never).expect("a dataset");
        assert_eq!((summary.rows, summary.content), (undisturbed.rows, undisturbed.content), "{sort}");
        for at in [At::Start("dataset"), At::Advance("dataset")] {
            let before = files(&demo.place.file("output/datasets"));
            is_interrupted(demo.build(AdHoc { as_of: Some(summary.as_of), ..AdHoc::default() }, at), at);
            assert_eq!(files(&demo.place.file("output/datasets/it")).difference(&before).count(), 0, "{sort} {at:?}");
        }
    }
}

#[test]
fn cancelled_upkeep_audits_and_reports_change_nothing() {
    let demo = Demo::new("");
    for day in ["2026-11-18", "2026-11-19", "2026-11-20"] {
        demo.run(&format!("{day}T22:00:00Z"), At::Never).expect("a dataset");
    }
    let (archive, output) = (demo.place.file("output/archive"), demo.place.file("output"));
    let scratch = output.join(".scratch-20261120T220000Z-0000");
    let plan = demo.plan();
    fn options<'a>(archive: &'a Path, plan: &'a Plan, control: &'a Control) -> AuditOptions<'a> {
        AuditOptions { archive, service: None, plan: Some(plan), as_of: None, control }
    }
    type Work<'a> = Box<dyn Fn(&Control) -> Result<()> + 'a>;
    let works: [(At, Work<'_>); 7] = [
        (At::Start("verify"), Box::new(|control| run::verify(&archive, &output, control).map(drop))),
        (At::Advance("verify"), Box::new(|control| run::verify(&archive, &output, control).map(drop))),
        (At::Start("leak"), Box::new(|control| run::audit_leak(&plan, &archive, &scratch, control).map(drop))),
        (
            At::Start("revisions"),
            Box::new(|control| run::audit_revisions(options(&archive, &plan, control), None, |_| Ok(())).map(drop)),
        ),
        (
            At::Start("sources"),
            Box::new(|control| run::audit_sources(options(&archive, &plan, control), |_| Ok(())).map(drop)),
        ),
        (
            At::Start("quality"),
            Box::new(|control| run::audit_quality(options(&archive, &plan, control), |_| Ok(())).map(drop)),
        ),
        (
            At::Start("report"),
            Box::new(|control| {
                let (data, archive, control) = (output.clone(), archive.clone(), control.clone());
                let (clock, root) = (Clock::System, data.clone());
                let options = ReportOptions { name: None, data, archive, root, as_of: None, clock, control };
                demo.runtime.block_on(run::report(options)).map(drop)
            }),
        ),
    ];
    for (at, work) in &works {
        let before = files(&output);
        is_interrupted(work(&control(*at)), at);
        assert_eq!(files(&output), before, "{at:?}");
        work(&control(At::Never)).unwrap_or_else(|error| panic!("{at:?}: {error}"));
    }
    let stopped = CancellationToken::new();
    stopped.cancel();
    let runs = files(&archive);
    is_interrupted(pack(&archive, 0, &stopped).map(drop), "pack");
    assert_eq!(files(&archive), runs);
    demo.place.pack();
    demo.place.age_packs();
    let packed = files(&archive);
    let (data, keep, older_than) = (output.clone(), BTreeMap::new(), PruneOptions::OLDER_THAN);
    let options = PruneOptions { data, archive: archive.clone(), keep, older_than, clock: Clock::System };
    let prune = |at| {
        let mut prunable = Prunable::of(&options)?;
        prunable.remove(&options, &control(at)).map(|()| prunable.all.len())
    };
    is_interrupted(prune(At::Start("prune")), "prune");
    assert_eq!(files(&archive), packed);
    assert_eq!(prune(At::Never).expect("a pack"), 3);
}

#[test]
fn reading_a_dataset_can_be_cancelled_and_repeated() {
    let demo = Demo::new("");
    demo.run("2026-11-20T22:00:00Z", At::Never).expect("a dataset");
    let published = Dataset::find(&demo.place.file("output/datasets"), "it").expect("a version");
    let built =
        Dataset::from_archive(demo.plan(), &demo.place.file("output/archive"), &AdHoc::default()).expect("an archive");
    for dataset in [published, built] {
        let stop = CancellationToken::new();
        let mut batches = dataset.until(stop.clone()).batches().expect("files");
        batches.next().expect("a batch").expect("rows");
        stop.cancel();
        let failure = batches.find_map(|batch| batch.err());
        if let Some(failure) = failure {
            let ArrowError::ExternalError(failure) = failure else { panic!("{failure}") };
            assert!(
                failure.downcast_ref::<Error>().is_some_and(|error| error.kind() == ErrorKind::Interrupted),
                "{failure}"
            );
        }
        let first = dataset.until(stop).batches().expect("files").next().expect("an item");
        assert!(first.is_err(), "a token that is cancelled stops reading before the first row");
        let rows: usize = dataset.batches().expect("files").map(|batch| batch.expect("rows").num_rows()).sum();
        assert_eq!(rows, 27_632);
    }
}

#[test]
fn an_interrupted_audit_exits_with_its_code_and_leaves_no_copies() {
    let demo = Demo::new("");
    demo.run("2026-11-20T22:00:00Z", At::Never).expect("a dataset");
    let before = files(&demo.place.file("output"));
    let mut command = demo.place.command(["audit", "leak", "it"]);
    let mut child = command.spawn().expect("the program");
    let is_scratch = |path: &Path| path.to_string_lossy().contains("/.scratch-");
    let entries = || fs::read_dir(demo.place.file("output")).into_iter().flatten().flatten();
    let is_begun = || entries().any(|entry| is_scratch(&entry.path()));
    while !is_begun() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended too soon");
        thread::sleep(Duration::from_millis(5));
    }
    let begun = Instant::now();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("a program");
    assert!(killed.success());
    let status = child.wait().expect("a child");
    assert_eq!(status.code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(files(&demo.place.file("output")), before);
    assert!(!is_begun());
}
