//! Killed at any instant, the program loses no data and publishes nothing partial.
//!
//! Two archives follow the same service day by day. One is undisturbed; in the other, every run, packing and prune
//! is killed many times at random instants before it may finish. In the end, both have the same known state.
//!
//! `BELLWETHER_KILLS=500 cargo test --test program kills -- --nocapture` runs the long version. `BELLWETHER_SEED`
//! repeats the instants of a printed seed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bellwether::interface::ChangeSet;
use bellwether::serve::Universe;
use bellwether::tables::Table;
use chrono::{Days, Utc};
use serde_json::Value;

use crate::support::program::{Outcome, Place};
use crate::support::rows::{known_rows, read, texts};
use crate::support::scripted::{Scripted, ScriptedRequest, Step, json};
use crate::support::service::{KEY, Server, day};

/// The kills of a day: of runs, packing and prunes.
const KILLS: [(Work, u32); 3] = [(Work::Run, 9), (Work::Pack, 2), (Work::Prune, 1)];

/// The command to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Run,
    Pack,
    Prune,
}

/// The phase that a kill interrupted, judging by the files on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    NewRun,
    Fetching,
    Sealing,
    Publishing,
    Packing,
    Pruning,
}

/// Prints progress, visible with `--nocapture`.
#[expect(clippy::print_stdout, reason = "the long version is run to be read")]
fn tell(text: &str) {
    println!("{text}");
}

/// Instants to kill at, determined by the seed.
struct Instants(u64);

impl Instants {
    fn new() -> Self {
        let given = std::env::var("BELLWETHER_SEED").map(|seed| seed.parse().expect("a number"));
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_micros() as u64;
        let seed = given.unwrap_or_else(|_| now());
        tell(&format!("BELLWETHER_SEED={seed}"));
        Self(seed)
    }

    /// A number below a limit, by SplitMix64.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }

    fn within(&mut self, time: Duration) -> Duration {
        Duration::from_micros(self.below(time.as_micros() as u64))
    }
}

/// The demo service of one day, with cached answers.
struct CachedService {
    server: Server,
    answers: HashMap<String, Vec<u8>>,
}

impl CachedService {
    fn new(number: u64) -> Self {
        let universe = Universe::new(3, day(2026, 9, 28) + Days::new(20 * number));
        Self { server: Server::new(universe, ChangeSet::All), answers: HashMap::new() }
    }

    /// An answer that pauses halfway, to be killed there too.
    fn answer(&mut self, request: &ScriptedRequest) -> Vec<Step> {
        let target = request.target.replacen("/a/", "/api/", 1).replacen("/b/", "/sentiment/", 1);
        let body = self.answers.entry(target).or_insert_with_key(|target| self.server.request("GET", target).body);
        let Some(Step::Send(reply)) = json("200 OK", &String::from_utf8_lossy(body)).pop() else { return Vec::new() };
        let (first, rest) = reply.split_at(reply.len() / 2);
        vec![Step::Send(first.to_vec()), Step::Wait(Duration::from_millis(2)), Step::Send(rest.to_vec())]
    }
}

/// A target in the notation of the archive: without address, key and punctuation.
fn in_words(target: &str) -> String {
    let target = target.trim_start_matches("/a/").trim_start_matches("/b/");
    let target = target.split("api_key=").next().unwrap_or_default().replace(['?', '&'], " ");
    target.trim_end().to_owned()
}

fn names(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| is_wanted(name)).collect()
}

fn json_of(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An archive and a dataset kept up to date by a definition.
struct Pipeline {
    place: Place,
}

impl Pipeline {
    fn new(definition: &str) -> Self {
        let place = Place::new();
        place.define("it", definition);
        Self { place }
    }

    fn archive(&self) -> PathBuf {
        self.place.file("output/archive/vendor")
    }

    fn dataset(&self) -> PathBuf {
        self.place.file("output/datasets/it")
    }

    fn runs(&self) -> BTreeSet<String> {
        names(&self.archive(), |name| name.starts_with("run="))
    }

    fn versions(&self) -> BTreeSet<String> {
        names(&self.dataset(), |name| name != "latest" && !name.starts_with('.'))
    }

    fn command(&self, work: Work) -> std::process::Command {
        let arguments: &[&str] = match work {
            Work::Run => &["run", "it", "-q"],
            // Runs pack once there are many: this program packs in the place of one.
            Work::Pack => {
                let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
                command.args(["kills::packs_for_another_test", "--exact", "--ignored"]);
                command.env("BELLWETHER_ARCHIVE_TO_PACK", self.place.file("output/archive"));
                return command;
            }
            Work::Prune => {
                self.place.age_packs();
                &["prune"]
            }
        };
        let mut command = self.place.command(arguments);
        command.env("BELLWETHER_API_KEY", KEY);
        command
    }

    fn spawn(&self, work: Work) -> Child {
        self.command(work).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    }

    /// Runs a command undisturbed, and returns its duration.
    fn finish(&self, work: Work) -> Duration {
        let begun = Instant::now();
        Outcome::of(&mut self.command(work)).expect_success();
        begun.elapsed()
    }

    /// The interrupted runs that are not sealed.
    fn interrupted_runs(&self) -> impl Iterator<Item = PathBuf> {
        let folder = self.archive().join(".partial");
        let runs = self.runs();
        let open = names(&folder, |name| !name.starts_with('.') && !runs.contains(&format!("run={name}")));
        open.into_iter().map(move |name| folder.join(name)).filter(|path| path.join("unfinished.json").exists())
    }

    /// The requests already answered in a resumable run.
    fn answered_requests(&self) -> BTreeSet<String> {
        let of_run = |run: PathBuf| fs::read_to_string(run.join("answers.jsonl")).unwrap_or_default();
        let request = |line: &str| {
            // The last line may be truncated.
            let record: Value = serde_json::from_str(line).ok()?;
            Some(record["request"]["request"].as_str().expect("a request").to_owned())
        };
        self.interrupted_runs().flat_map(|run| of_run(run).lines().filter_map(request).collect::<Vec<_>>()).collect()
    }

    fn is_sealing(&self) -> bool {
        self.interrupted_runs().any(|path| path.join("sealed").exists())
    }

    /// Checks that every sealed run and every published version is complete, and that `latest` is one of the versions.
    fn check_whole(&self) {
        for run in self.runs() {
            let folder = self.archive().join(run);
            for file in json_of(&folder.join("run.json"))["files"].as_array().expect("files") {
                let path = folder.join(file["name"].as_str().expect("a name"));
                assert_eq!(fs::metadata(&path).ok().map(|it| it.len()), file["bytes"].as_u64(), "{}", path.display());
            }
            read(&folder.join("signals.parquet"));
        }
        for version in self.versions() {
            for file in json_of(&self.dataset().join(&version).join("dataset.json"))["files"].as_array().expect("files")
            {
                let path = self.dataset().join(&version).join(file["name"].as_str().expect("a name"));
                assert_eq!(fs::metadata(&path).ok().map(|it| it.len()), file["bytes"].as_u64(), "{}", path.display());
            }
        }
        if let Ok(latest) = fs::read_link(self.dataset().join("latest")) {
            assert!(self.versions().contains(&*latest.to_string_lossy()), "{} is not there", latest.display());
        }
    }

    /// The known state of every table, column by column, except observation times.
    fn all_known(&self) -> Vec<(String, Vec<Option<String>>)> {
        let of_table = |table: Table| {
            let cells = known_rows(&self.archive(), table, Utc::now());
            let schema = table.known_schema();
            let of_value = |name: &&str| !["observed_at", "first_observed_at", "backfilled"].contains(name);
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).filter(of_value).collect();
            let column = |name| (format!("{name} of {}", table.as_str()), texts(&cells, name));
            names.into_iter().map(column).collect::<Vec<_>>()
        };
        Table::ALL.into_iter().flat_map(of_table).collect()
    }

    fn csv(&self) -> Vec<u8> {
        fs::read(self.dataset().join("latest/it.csv")).expect("a dataset")
    }
}

/// Waits until a condition holds, or the child has ended.
fn wait_until(child: &mut Child, is_so: impl Fn() -> bool) {
    while child.try_wait().expect("a child has a status").is_none() && !is_so() {
        thread::sleep(Duration::from_micros(300));
    }
}

/// The requests of a run, and the durations of the commands.
struct Times {
    requests: BTreeSet<String>,
    sealing: Duration,
    publishing: Duration,
    packing: Duration,
    pruning: Duration,
}

impl Times {
    /// Measures an undisturbed run.
    fn take(&mut self, pipeline: &Pipeline, service: &Scripted) {
        let (runs, requested) = (pipeline.runs(), service.count());
        let mut child = pipeline.spawn(Work::Run);
        wait_until(&mut child, || pipeline.is_sealing());
        let sealing = Instant::now();
        wait_until(&mut child, || pipeline.runs() != runs);
        let publishing = Instant::now();
        assert!(child.wait().expect("it ended").success());
        self.requests = service.targets_after(requested).iter().map(|target| in_words(target)).collect();
        (self.sealing, self.publishing) = (publishing - sealing, publishing.elapsed());
    }
}

/// Starts a command and kills it. Returns the interrupted phase, unless it had ended.
fn kill(pipeline: &Pipeline, work: Work, service: &Scripted, times: &Times, instants: &mut Instants) -> Option<Phase> {
    let (runs, versions) = (pipeline.runs(), pipeline.versions());
    let requested = service.count();
    let remaining = times.requests.difference(&pipeline.answered_requests()).count();
    let mut child = pipeline.spawn(work);
    let wait = match (work, instants.below(3)) {
        (Work::Pack, _) => instants.within(times.packing),
        (Work::Prune, _) => instants.within(times.pruning),
        (Work::Run, 0) if remaining > 0 => {
            let count = instants.below(remaining as u64) as usize;
            wait_until(&mut child, || service.count() >= requested + count);
            instants.within(Duration::from_millis(10))
        }
        (Work::Run, 0 | 1) => {
            wait_until(&mut child, || pipeline.is_sealing());
            instants.within(times.sealing)
        }
        (Work::Run, _) => {
            wait_until(&mut child, || pipeline.runs() != runs);
            instants.within(times.publishing)
        }
    };
    thread::sleep(wait);
    child.kill().expect("it is there, or ended and not waited for");
    let has_ended = child.wait().expect("it ended").success();
    let is_published = pipeline.runs() != runs || pipeline.versions() != versions;
    match work {
        _ if has_ended => None,
        Work::Pack => Some(Phase::Packing),
        Work::Prune => Some(Phase::Pruning),
        Work::Run if is_published => Some(Phase::Publishing),
        Work::Run if pipeline.is_sealing() => Some(Phase::Sealing),
        Work::Run if pipeline.interrupted_runs().next().is_some() => Some(Phase::Fetching),
        Work::Run => Some(Phase::NewRun),
    }
}

/// Checks that no answered request was repeated after a number of requests.
#[track_caller]
fn check_not_repeated(service: &Scripted, count: usize, answered: &BTreeSet<String>) {
    let again = service.targets_after(count).iter().map(|target| in_words(target)).find(|it| answered.contains(it));
    assert_eq!(again, None, "it was answered and is requested again");
}

#[test]
#[ignore = "packs an archive for another test"]
fn packs_for_another_test() {
    let archive = std::env::var_os("BELLWETHER_ARCHIVE_TO_PACK").expect("an archive");
    bellwether::harness::pack(Path::new(&archive), 0, &bellwether::run::CancellationToken::new()).expect("a pack");
}

#[test]
fn a_run_killed_at_any_instant_resumes_to_the_same_result() {
    let today = Arc::new(Mutex::new(CachedService::new(0)));
    let of_script = Arc::clone(&today);
    let service = Scripted::start(move |request| of_script.lock().expect("no test panicked").answer(request));
    let definition = format!(
        "[source]\n{}[signals]\nsectors = [\"energy\"]\n\
         [sentiment]\nsummary = true\nhistorical = true\n[output]\nformat = \"csv\"\n",
        service.source()
    );
    let (pipeline, undisturbed) = (Pipeline::new(&definition), Pipeline::new(&definition));
    let wanted: u32 = std::env::var("BELLWETHER_KILLS").map_or(24, |count| count.parse().expect("a number"));
    let days = wanted.div_ceil(KILLS.iter().map(|(_, count)| count).sum());
    let mut instants = Instants::new();
    let unknown = Duration::from_millis(50);
    let (sealing, publishing, packing, pruning) = (unknown, unknown, unknown, unknown);
    let mut times = Times { requests: BTreeSet::new(), sealing, publishing, packing, pruning };
    let mut phases: BTreeMap<Phase, u32> = BTreeMap::new();
    for number in 0..days {
        *today.lock().expect("no test panicked") = CachedService::new(number.into());
        times.take(&undisturbed, &service);
        for (work, count) in KILLS {
            let mut done = 0;
            // Commands that end before the kill do not count; if that happens often, the work is too short.
            for _ in 0..4 * count {
                let (answered, requested) = (pipeline.answered_requests(), service.count());
                assert!(answered.is_subset(&times.requests), "{answered:?}");
                let phase = kill(&pipeline, work, &service, &times, &mut instants);
                check_not_repeated(&service, requested, &answered);
                pipeline.check_whole();
                let Some(phase) = phase else { continue };
                *phases.entry(phase).or_default() += 1;
                if phases.values().sum::<u32>().is_multiple_of(10) {
                    pipeline.place.run(["verify"]).expect_success();
                }
                done += 1;
                if done == count {
                    break;
                }
            }
            let (answered, requested) = (pipeline.answered_requests(), service.count());
            let took = pipeline.finish(work);
            check_not_repeated(&service, requested, &answered);
            match work {
                Work::Run => {}
                Work::Pack => times.packing = took,
                Work::Prune => times.pruning = took,
            }
            pipeline.check_whole();
            pipeline.place.run(["verify"]).expect_success();
        }
        assert!(pipeline.csv() == undisturbed.csv(), "day {number}: the datasets differ");
        let left = names(&pipeline.archive().join(".partial"), |name| !name.starts_with('.'));
        assert!(left.is_empty(), "day {number}: what was sealed is cleared away: {left:?}");
    }
    tell(&format!("{} kills: {phases:?}", phases.values().sum::<u32>()));
    assert!(phases.len() >= 4, "the kills were all alike: {phases:?}");
    for ((column, here), (_, there)) in pipeline.all_known().into_iter().zip(undisturbed.all_known()) {
        assert!(here == there, "the archives differ in {column}");
    }
}
