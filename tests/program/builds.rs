//! Datasets built from the archive alone: as of an instant, filtered, in every layout; and refused options.

use std::fs;
use std::process::Command;

use arrow::compute::concat_batches;
use bellwether::archive::Archive;
use bellwether::load::Dataset;
use bellwether::time::to_record;
use chrono::{NaiveDate, Utc};

use crate::support::program::{DemoService, Outcome, Place, only_build};
use crate::support::python;
use crate::support::rows::{distinct, read, texts};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// Two archived days of two sectors; the service is stopped.
struct Archived {
    place: Place,
    /// The common part of all definitions.
    source: String,
}

impl Archived {
    fn new() -> Self {
        let place = Place::new();
        let rest = "[signals]\nsectors = [\"energy\", \"utilities\"]\nperiods = [\"5d\", \"1m\"]\n\
                    [sentiment]\nsummary = true\nhistorical = true\n";
        let mut source = String::new();
        for today in ["2026-11-18", "2026-11-20"] {
            let service = DemoService::start(&place, &["--today", today]);
            place.define("it", &format!("[source]\n{}{rest}", service.source));
            Outcome::of(place.command(["run", "it", "-q"]).envs([KEY])).expect_success();
            source = format!("[source]\n{}{rest}", service.source);
        }
        Self { place, source }
    }

    fn build(&self, name: &str, more: &str, arguments: &[&str]) -> Outcome {
        self.place.define(name, &format!("{}{more}", self.source));
        // Neither a key nor a service is needed.
        self.place.run(["build", name].iter().chain(arguments))
    }

    /// The `sealed_at` of each run.
    fn seal_times(&self) -> Vec<String> {
        let archive = Archive::open(&self.place.file("output/archive/vendor")).expect("an archive");
        archive.runs().iter().map(|run| to_record(run.seal().sealed_at)).collect()
    }
}

#[test]
fn offline_builds_are_identical_on_any_number_of_threads() {
    let archived = Archived::new();
    let latest = |name: &str| archived.place.file(&format!("output/datasets/{name}/latest"));
    let run = fs::read(latest("it").join("it.parquet")).unwrap();
    archived.build("it", "", &["-q"]).expect_success();
    assert!(run == fs::read(latest("it").join("it.parquet")).unwrap(), "run is fetch and build");
    for threads in ["1", "2", "7"] {
        let threads = [("RAYON_NUM_THREADS", threads)];
        // So that it is built instead of reused.
        fs::remove_dir_all(archived.place.file("output/datasets/it")).unwrap();
        Outcome::of(archived.place.command(["build", "it", "-q"]).envs(threads)).expect_success();
        assert!(run == fs::read(latest("it").join("it.parquet")).unwrap());
    }
    // As known after the first day, and before.
    let sealed = archived.seal_times();
    archived.build("it", "", &["-q", "--as-of", &sealed[0]]).expect_success();
    let rows = read(&only_build(&archived.place, "it").join("it.parquet"));
    assert_eq!(texts(&rows, "date").into_iter().flatten().max().unwrap(), "2026-11-18T00:00:00");
    let early = archived.build("it", "", &["--as-of", "2020-01-01"]).failed_with(1).stderr;
    assert!(early.starts_with("error: no data as of 2020-01-01T23:59:59.999999Z: the first run"), "{early}");
    // Versions beyond `keep` are removed.
    for _ in 0..5 {
        archived.build("it", "", &["-q"]).expect_success();
    }
    let versions = fs::read_dir(archived.place.file("output/datasets/it")).unwrap().count();
    assert_eq!(versions, 5 + 2, "five versions, `latest` and `builds`");
    archived.place.run(["verify"]).expect_success();
}

/// Files are reused while revisions are counted: on one thread, one of them must not wait for the other.
#[test]
fn a_build_that_reuses_files_and_audits_end_on_one_thread() {
    let archived = Archived::new();
    let on_one_thread = |arguments: &[&str]| {
        let program = archived.place.command(arguments.iter().copied());
        let mut command = Command::new("timeout");
        command.arg("300").arg(program.get_program()).args(program.get_args());
        command.current_dir(archived.place.path()).env("RAYON_NUM_THREADS", "1");
        Outcome::of(&mut command).expect_success().stdout
    };
    assert!(on_one_thread(&["build", "it"]).contains("files reused"));
    for audit in ["revisions", "quality", "sources"] {
        let several = archived.place.run(["audit", audit, "it", "--json"]).expect_success().stdout;
        assert_eq!(on_one_thread(&["audit", audit, "it", "--json"]), several, "{audit}");
    }
    on_one_thread(&["verify"]);
}

#[test]
fn filters_vintage_lineage_and_sources_work_as_documented() {
    let archived = Archived::new();
    // On any day, some dates were first seen late and some were not.
    let live_within = (Utc::now().date_naive() - NaiveDate::from_ymd_opt(2026, 11, 10).unwrap()).num_days();
    let more = format!(
        "[filter]\nperiods = [\"5d\"]\nfrom = \"2026-11-01\"\n[join]\nsources = [\"articles\", \"summary\", \"historical\"]\n\
         historical = [\"score\"]\nwindows = [\"7d\"]\n[output]\nvintage = \"first\"\nsort = [\"date\"]\n\
         live_within = \"{live_within}d\"\n\
         [dataset]\nadd = [\"first_observed_at\", \"observed_at\", \"revisions\", \"backfilled\", \"source\"]\n"
    );
    archived.build("some", &more, &["-q", "--sector", "energy", "--to", "2026-11-20"]).expect_success();
    let rows = read(&only_build(&archived.place, "some").join("some.parquet"));
    assert_eq!(distinct(&rows, "period"), ["5d"]);
    assert_eq!(distinct(&rows, "ticker").len(), 22);
    let dates: Vec<String> = texts(&rows, "date").into_iter().flatten().collect();
    assert!(dates.is_sorted() && dates[0] == "2026-11-02T00:00:00" && dates.last().unwrap() == "2026-11-19T00:00:00");
    assert_eq!(distinct(&rows, "source"), ["signals-history-all"]);
    assert_eq!(distinct(&rows, "backfilled"), ["false", "true"]);
    // A summary counts from the day on which it was observed, which is after all of these.
    assert!(texts(&rows, "summary_avg_score").iter().all(Option::is_none));
    assert!(texts(&rows, "historical_score").iter().all(Option::is_some));
    // Nothing had been observed by then, so nothing is known.
    let observed = "[join]\navailability = \"observed\"\nwindows = [\"7d\"]\n";
    archived.build("seen", observed, &["-q"]).expect_success();
    let rows = read(&archived.place.file("output/datasets/seen/latest/seen.parquet"));
    assert!(distinct(&rows, "news_count_7d").is_empty());
    let nobody = archived.build("it", "", &["--ticker", "AAPL"]).failed_with(2).stderr;
    assert!(nobody.starts_with("error: no signals for ticker `AAPL`\n"), "{nobody}");
    let nothing = archived.build("it", "", &["--to", "1999-01-01"]).failed_with(1).stderr;
    assert!(nothing.starts_with("error: `it` has no rows"), "{nothing}");
}

#[test]
fn compressed_text_is_read_verified_and_written_like_text() {
    let archived = Archived::new();
    let place = &archived.place;
    let rows = |name: &str| {
        let dataset = Dataset::find(&place.file("output/datasets"), name).expect("a version");
        let batches: Vec<_> = dataset.batches().expect("rows").map(|batch| batch.expect("a batch")).collect();
        concat_batches(batches[0].schema_ref(), &batches).expect("one schema")
    };
    archived.build("text", "[output]\nformat = \"csv\"\n", &["-q"]).expect_success();
    let expected = rows("text");
    for format in ["csv.gz", "csv.zst"] {
        let name = format.replace('.', "-");
        archived
            .build(&name, &format!("[output]\nformat = \"{format}\"\npartition_by = \"period\"\n"), &["-q"])
            .expect_success();
        let folder = place.file(&format!("output/datasets/{name}/latest"));
        assert!(folder.join(format!("period=5d/{name}.{format}")).is_file());
        assert_eq!(rows(&name).num_rows(), expected.num_rows(), "{format}");
        let shown = place.run(["show", &name, "--ticker", "XOM", "--head", "3"]).expect_success().stdout;
        assert!(shown.contains("XOM"), "{shown}");
        // One file, and the rows of an audit.
        let of_file = |file: &str| place.run(["build", "text", "--output", file]).expect_success();
        of_file(&format!("rows.{format}"));
        place.run(["audit", "revisions", "text", "--output", &format!("revisions.{format}")]).expect_success();
        let packed = fs::read(place.file(&format!("rows.{format}"))).unwrap();
        assert!(packed.starts_with(if format == "csv.gz" { &[0x1f, 0x8b] } else { &[0x28, 0xb5] }), "{format}");
        place.run(["verify"]).expect_success();
        let file = folder.join(format!("period=5d/{name}.{format}"));
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).unwrap();
        let damaged = place.run(["verify"]).failed_with(1).stdout;
        assert!(damaged.contains(&format!("{name}.{format}")), "{damaged}");
        fs::remove_dir_all(place.file(&format!("output/datasets/{name}"))).unwrap();
    }
    let guarded = "[output]\nformat = \"csv.gz\"\ncsv_guard = true\n";
    archived.build("guarded", guarded, &["-q"]).expect_success();
}

#[test]
fn other_tools_read_every_layout() {
    let archived = Archived::new();
    let folders = "[output]\nformat = [\"parquet\", \"csv\"]\npartition_by = [\"period\", \"ticker\"]\ncsv_guard = true\n\
                   compression = \"snappy\"\n";
    archived.build("folders", folders, &["-q"]).expect_success();
    archived
        .build("wide", "[output]\nlayout = \"wide\"\nvalues = [\"signal\", \"confidence\"]\n", &["-q"])
        .expect_success();
    let all = "[output]\nformat = [\"parquet\", \"csv\", \"csv.gz\", \"csv.zst\", \"arrow\"]\n";
    let each = "[output]\nformat = [\"parquet\", \"csv\"]\npartition_by = \"ticker\"\nindex = \"date\"\n";
    archived.build("each", each, &["-q"]).expect_success();
    archived.build("indexed", "[output]\nindex = [\"date\", \"ticker\"]\n", &["-q"]).expect_success();
    archived.build("long", all, &["-q"]).expect_success();
    for format in ["arrow", "csv", "csv.gz", "csv.zst"] {
        let out = fs::File::create(archived.place.file(&format!("piped.{format}"))).unwrap();
        let mut command = archived.place.command(["build", "it", "--format", format, "--output", "-"]);
        assert!(command.stdout(out).status().unwrap().success());
    }
    python::check("check_layouts.py", [archived.place.path()]);
    archived.place.run(["verify"]).expect_success();
}

#[test]
fn the_future_never_reaches_the_past_and_a_closed_pipe_is_fine() {
    let archived = Archived::new();
    let few = "[filter]\ntickers = [\"XOM\", \"CVX\", \"NEE\"]\n[join]\nwindows = [\"7d\"]\n";
    for (name, lag) in [("days", ""), ("trading", "lag = \"1 trading day\"\n")] {
        archived.place.define(name, &format!("{}{few}{lag}", archived.source));
        let message = archived.place.run(["audit", "leak", name]).expect_success().stdout;
        assert!(
            message.contains("canaries: ") && message.contains("dates: ") && message.contains("instants: "),
            "{message}"
        );
        assert!(message.ends_with("trials: no look-ahead found\n"), "{message}");
    }
    let program = env!("CARGO_BIN_EXE_bellwether");
    let script = format!("{program} build it --format csv --output - | head -n 2");
    let outcome =
        Outcome::of(Command::new("bash").args(["-o", "pipefail", "-c", &script]).current_dir(archived.place.path()));
    let outcome = outcome.expect_success();
    assert_eq!((outcome.stdout.lines().count(), outcome.stderr.as_str()), (2, ""));
}

#[test]
fn incompatible_options_are_refused_with_a_hint() {
    let archived = Archived::new();
    let refused = |more: &str, arguments: &[&str], expected: &str| {
        let outcome = archived.build("bad", more, arguments).failed_with(2);
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    };
    refused("[output]\nsort = [\"dat\"]\n", &[], "no column `dat` to sort by");
    refused("[output]\npartition_by = [\"a/b\"]\n", &[], "no column `a/b` to partition by");
    refused("[output]\nlayout = \"wide\"\nsort = [\"date\"]\n", &[], "`sort` has no effect on a wide dataset");
    refused("[output]\ncompression = \"snappy\"\nlevel = 3\n", &[], "`snappy` has no levels");
    refused(
        "[filter]\nfrom = \"2026-02-01\"\nto = \"2026-01-01\"\n",
        &[],
        "empty date range: 2026-02-01 to 2026-01-01",
    );
    refused("[join]\nlag = \"a day\"\n", &[], "`a day` is not a number of days");
    refused("", &["--output", "-", "--format", "csv", "--format", "arrow"], "standard output takes one format");
    refused("", &["--output", "x.parquet", "--format", "csv"], "`--format csv` does not fit the name `x.parquet`");
    refused("", &["--as-of", "yesterday"], "use a day");
    let nowhere = archived.build("bad", "", &["--output", "nowhere/x.csv"]).failed_with(1).stderr;
    assert!(
        nowhere.contains("cannot write `nowhere/x.csv`") && nowhere.contains("hint: create the folder `nowhere`"),
        "{nowhere}"
    );
    fs::write(archived.place.file("output/datasets/taken"), "a file").unwrap();
    let taken = archived.build("taken", "", &[]).failed_with(1).stderr;
    assert!(taken.starts_with("error: ") && taken.contains("output/datasets/taken"), "{taken}");
    let nothing = archived.place.run(["build", "it", "--archive", "elsewhere"]).failed_with(1).stderr;
    assert!(nothing.contains("hint: run it first"), "{nothing}");
}
