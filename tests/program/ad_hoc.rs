//! Ad hoc builds: a build with options has its own folder and is never read by accident.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bellwether::archive::Archive;
use bellwether::time::to_record;
use serde_json::{Value, json};

use crate::support::program::{DemoService, Outcome, Place, builds, only_build};
use crate::support::rows::{distinct, read};

const KEY: (&str, &str) = ("BELLWETHER_API_KEY", "demo");

/// A definition that ends with `[output]`, to be extended.
fn definition(service: &DemoService, output: &str) -> String {
    let signals = "[signals]\nsectors = [\"energy\", \"utilities\"]\nperiods = [\"5d\", \"1m\"]\n";
    format!("[source]\n{}{signals}[output]\n{output}", service.source)
}

fn run(place: &Place) -> Outcome {
    Outcome::of(place.command(["run", "it"]).envs([KEY])).expect_success()
}

fn build(place: &Place, arguments: &[&str]) -> Outcome {
    place.run(["build", "it"].iter().chain(arguments))
}

/// Everything in the folder of a dataset except ad hoc builds: targets of links and contents of files.
fn own(place: &Place) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = Path::new("output/datasets/it");
    let own =
        place.files().into_iter().filter(|path| path.starts_with(folder) && !path.starts_with(folder.join("builds")));
    let bytes = |path: &Path| match fs::read_link(place.file(path.to_str().expect("a name"))) {
        Ok(target) => target.into_os_string().into_encoded_bytes(),
        Err(_) => fs::read(place.file(path.to_str().expect("a name"))).expect("a file"),
    };
    own.map(|path| (path.clone(), bytes(&path))).collect()
}

fn record(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("dataset.json")).expect("a record")).expect("JSON")
}

/// The value of a line of a summary.
fn line<'a>(stdout: &'a str, name: &str) -> &'a str {
    let line = stdout.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("no {name}: {stdout}"))[10..].trim()
}

#[test]
fn a_build_with_options_never_moves_latest_or_counts_as_a_version() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &definition(&service, "keep = 2\n"));
    run(&place);
    run(&place);
    let before = own(&place);
    let sealed = {
        let archive = Archive::open(&place.file("output/archive/vendor")).expect("an archive");
        to_record(archive.runs()[0].seal().sealed_at)
    };
    let options: [(&[&str], Value); 9] = [
        (&["--ticker", "XOM"], json!({"ticker": ["XOM"]})),
        (&["--sector", "energy"], json!({"sector": ["energy"]})),
        (&["--period", "5d"], json!({"period": ["5d"]})),
        (&["--regime", "neutral"], json!({"regime": ["neutral"]})),
        (&["--from", "2026-01-01", "--to", "2026-02-01"], json!({"from": ["2026-01-01"], "to": ["2026-02-01"]})),
        (&["--vintage", "first"], json!({"vintage": ["first"]})),
        (&["--format", "csv", "--format", "arrow"], json!({"format": ["csv", "arrow"]})),
        (&["--as-of", &sealed], json!({"as-of": [sealed]})),
        (
            &["--ticker", "XOM", "--ticker", "CVX", "--as-of", &sealed],
            json!({"ticker": ["CVX", "XOM"], "as-of": [sealed]}),
        ),
    ];
    for (count, (arguments, request)) in options.iter().enumerate() {
        let known = builds(&place, "it");
        let stdout = build(&place, arguments).expect_success().stdout;
        assert_eq!(own(&place), before, "{arguments:?}");
        let made: Vec<PathBuf> = builds(&place, "it").into_iter().filter(|path| !known.contains(path)).collect();
        let [made] = &made[..] else { panic!("{arguments:?} makes one build: {made:?}") };
        assert_eq!(record(made)["ad_hoc"], *request);
        let name = made.file_name().expect("a name").to_str().expect("a text");
        let (option, value) = (arguments[0].trim_start_matches("--"), arguments[1].replace(':', "-"));
        assert!(name.contains(&format!("{option}-{value}")) || name.contains("as-of"), "{name} tells of {arguments:?}");
        let written = Path::new("output/datasets/it/builds").join(name);
        for path in stdout.lines().filter_map(|line| line.strip_prefix("dataset   ")) {
            assert!(Path::new(path).starts_with(&written) && place.file(path).is_file(), "{path}");
        }
        assert!(line(&stdout, "python").contains(&format!("\"{}/", written.display())), "{stdout}");
        assert!(line(&stdout, "note").starts_with("ad hoc build with `--"), "{stdout}");
        assert_eq!(builds(&place, "it").len(), count + 1);
    }
    // Retention of the definition's own versions ignores it.
    run(&place);
    assert_eq!(builds(&place, "it").len(), options.len());
    let versions = fs::read_dir(place.file("output/datasets/it")).expect("a dataset").count();
    assert_eq!(versions, 2 + 2, "two versions, `latest` and `builds`");
    // Commands on a dataset use the definition's own version.
    let summary = place.run(["report", "--text", "it"]).expect_success().stdout;
    assert!(!summary.contains("ad hoc"), "{summary}");

    let files = place.run(["verify"]).expect_success().stdout;
    let build = builds(&place, "it").remove(0);
    fs::write(build.join("it.parquet"), "damaged").expect("a file");
    let faults = place.run(["verify"]).failed_with(1).stdout;
    assert!(faults.contains(&format!("builds/{}", build.file_name().unwrap().to_str().unwrap())), "{files}{faults}");
}

#[test]
fn an_ad_hoc_build_needs_no_published_version_and_is_found_by_name() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &definition(&service, ""));
    run(&place);
    fs::remove_dir_all(place.file("output/datasets/it")).expect("it was there");
    build(&place, &["-q", "--ticker", "XOM"]).expect_success();
    let few = only_build(&place, "it");
    assert_eq!(distinct(&read(&few.join("it.parquet")), "ticker"), ["XOM"]);
    assert!(!place.file("output/datasets/it/latest").is_symlink());
    let nothing = place.run(["report", "--text", "it"]).failed_with(1).stderr;
    assert!(nothing.starts_with("error: no version `it`"), "{nothing}");

    // Its name is suggested and accepted.
    let few = format!("it/builds/{}", few.file_name().unwrap().to_str().unwrap());
    let refused = place.run(["diff", "it", &few]).failed_with(1).stderr;
    assert!(refused.contains(&format!("hint: known names: {few};")), "{refused}");
    build(&place, &["-q"]).expect_success();
    let message = place.run(["diff", &few, "it"]).expect_success().stdout;
    assert!(message.contains(&few), "{message}");
    let [few, all] = [&few, "it/latest"].map(|name| read(&place.file(&format!("output/datasets/{name}/it.parquet"))));
    let rows =
        |label: &str| message.lines().find(|line| line.starts_with(label)).expect("a line").split_whitespace().nth(1);
    let added = (all.num_rows() - few.num_rows()).to_string();
    assert_eq!(rows("added").map(|count| count.replace(',', "")), Some(added));
    assert_eq!((rows("removed"), rows("changed")), (Some("0"), Some("0")));

    // A link in its place is not followed.
    let elsewhere = tempfile::tempdir().expect("a folder");
    fs::remove_dir_all(place.file("output/datasets/it/builds")).expect("it was there");
    std::os::unix::fs::symlink(elsewhere.path(), place.file("output/datasets/it/builds")).expect("a link");
    let refused = build(&place, &["--ticker", "XOM"]).failed_with(1).stderr;
    assert!(refused.contains("builds` is a symbolic link, expected a folder"), "{refused}");
    assert_eq!(fs::read_dir(elsewhere.path()).expect("it is there").count(), 0);
}

#[test]
fn the_same_ad_hoc_build_runs_once_and_shares_no_file() {
    for output in
        ["format = [\"parquet\", \"csv\"]\n", "layout = \"wide\"\n", "partition_by = [\"period\", \"ticker\"]\n"]
    {
        let place = Place::new();
        let service = DemoService::start(&place, &["--today", "2026-11-20"]);
        place.define("it", &definition(&service, output));
        run(&place);
        let first = build(&place, &["--ticker", "XOM"]).expect_success().stdout;
        let made = only_build(&place, "it");
        let again = build(&place, &["--ticker", "XOM"]).expect_success().stdout;
        assert_eq!(only_build(&place, "it"), made, "{output}");
        assert!(again.contains("note      already built and unchanged since\n"), "{again}");
        for name in ["rows", "tickers", "dates", "size", "dataset", "python"] {
            assert_eq!(line(&again, name), line(&first, name), "{output}");
        }
        // Other options with the same rows make another build; each may be edited.
        build(&place, &["-q", "--ticker", "XOM", "--sector", "energy"]).expect_success();
        build(&place, &["-q", "--regime", "neutral"]).expect_success();
        build(&place, &["-q"]).expect_success();
        let folder = place.file("output/datasets/it");
        for path in place.files().into_iter().filter(|path| path.starts_with("output/datasets/it/builds")) {
            let path = place.file(path.to_str().expect("a name"));
            assert_eq!(
                std::os::unix::fs::MetadataExt::nlink(&fs::metadata(&path).expect("a file")),
                1,
                "{path:?} of {folder:?}"
            );
        }
        // A modified build is not reused.
        let file = place.file(line(&again, "dataset"));
        fs::write(&file, "edited").expect("a file");
        let anew = build(&place, &["--ticker", "XOM"]).expect_success().stdout;
        assert_ne!(line(&anew, "dataset"), line(&again, "dataset"));
        assert_eq!(fs::read_to_string(&file).expect("a file"), "edited", "what somebody edited stays");
        // A new run may have new data.
        run(&place);
        let later = build(&place, &["--ticker", "XOM"]).expect_success().stdout;
        assert_ne!(line(&later, "dataset"), line(&anew, "dataset"));
    }
}

#[test]
fn a_wide_dataset_describes_its_rows() {
    let place = Place::new();
    let service = DemoService::start(&place, &["--today", "2026-11-20"]);
    place.define("it", &definition(&service, "layout = \"wide\"\nformat = [\"parquet\", \"csv\"]\n"));
    let stdout = run(&place).stdout;
    let files: Vec<PathBuf> = place
        .files()
        .into_iter()
        .filter(|path| {
            path.starts_with("output/datasets/it") && path.extension().is_some_and(|ending| ending == "parquet")
        })
        .collect();
    let matrices: Vec<_> = files.iter().map(|path| read(&place.file(path.to_str().expect("a name")))).collect();
    let rows: usize = matrices.iter().map(|matrix| matrix.num_rows()).sum();
    assert_eq!(line(&stdout, "rows").replace(',', ""), format!("{rows} in 2 matrices"));
    // Each signal is a cell in the matrices of its period and regime, one per value.
    let cells = |matrix: &arrow::array::RecordBatch| -> usize {
        matrix.columns()[1..].iter().map(|column| column.len() - column.null_count()).sum()
    };
    let signals: usize = matrices.iter().map(cells).sum();
    assert_eq!(line(&stdout, "signals").replace(',', ""), signals.to_string());
    let latest = place.file("output/datasets/it/latest");
    assert_eq!(record(&latest)["rows"], rows);
}

#[test]
fn packing_does_not_change_the_bytes_of_a_dataset_as_of_an_instant() {
    let place = Place::new();
    let mut sealed = Vec::new();
    let mut nightly = Vec::new();
    for today in ["2026-11-16", "2026-11-18", "2026-11-20"] {
        let service = DemoService::start(&place, &["--today", today]);
        let columns =
            "[dataset]\nadd = [\"first_observed_at\", \"observed_at\", \"revisions\", \"backfilled\", \"source\"]\n";
        let formats = "format = [\"parquet\", \"csv\", \"arrow\"]\n";
        place.define("it", &definition(&service, &format!("{formats}{columns}")));
        run(&place);
        let archive = Archive::open(&place.file("output/archive/vendor")).expect("an archive");
        sealed = archive.runs().iter().map(|run| to_record(run.seal().sealed_at)).collect::<Vec<String>>();
        nightly.push(fs::canonicalize(place.file("output/datasets/it/latest")).expect("a version"));
    }
    let files = |instant: &str| -> BTreeMap<String, Vec<u8>> {
        let stdout = build(&place, &["--as-of", instant]).expect_success().stdout;
        let paths = stdout.lines().filter_map(|line| line.strip_prefix("dataset   "));
        let name = |path: &str| path.rsplit('/').next().expect("a name").to_owned();
        paths.map(|path| (name(path), fs::read(place.file(path)).expect("a file"))).collect()
    };
    let before: Vec<_> = sealed.iter().map(|instant| files(instant)).collect();
    place.pack();
    place.prune_packed();
    let archive = fs::read_dir(place.file("output/archive/vendor")).expect("an archive");
    let folders = archive.map(|it| it.expect("an entry").file_name().into_string().expect("a name"));
    assert_eq!(folders.filter(|name| name.contains('=')).count(), 1, "all runs are packed into one");
    // Otherwise the existing build would be reused.
    let built = place.file("output/datasets/it/builds");
    fs::rename(&built, place.file("built-before")).expect("the builds move away");
    let after: Vec<_> = sealed.iter().map(|instant| files(instant)).collect();
    assert_eq!(builds(&place, "it").len(), 3, "each was built anew");
    for (night, (before, after)) in before.iter().zip(&after).enumerate() {
        assert_eq!(before.keys().collect::<Vec<_>>(), ["it.arrow", "it.csv", "it.parquet"]);
        before.iter().for_each(|(name, bytes)| assert!(after[name] == *bytes, "night {night}, {name}"));
    }
    assert!(before[0] != before[1] && before[1] != before[2], "the nights differ");
    // A version published on a night equals a build as of that night. Only Parquet contains the definition, with the
    // address of the service, which differs each night.
    for (version, before) in nightly.iter().zip(&before) {
        for name in ["it.csv", "it.arrow"] {
            assert!(fs::read(version.join(name)).expect("a file") == before[name], "{version:?} {name}");
        }
    }
    assert!(fs::read(nightly[2].join("it.parquet")).expect("a file") == before[2]["it.parquet"]);
}
