//! The list of versions, and their removal.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use crate::support::program::Place;

use super::commands::{DEMO, latest, published_place};

#[test]
fn datasets_are_listed_and_removed_unless_linked() {
    let place = published_place();
    let first = latest(&place);
    place.run(["build", "demo", "--ticker", "NEE", "-q"]).expect_success();
    let again = "dataset.add = [\"revisions\"]\n";
    place.define("demo", &format!("{DEMO}{again}"));
    place.run(["run", "demo", "-q"]).expect_success();
    let second = latest(&place);
    let builds = crate::support::program::builds(&place, "demo");
    let build = builds[0].file_name().unwrap().to_str().unwrap().to_owned();
    let listed = place.run(["list", "datasets"]).expect_success().stdout;
    let marked = |listed: &str, name: &str, mark: &str| {
        let row = listed.lines().map(|row| row.split_whitespace().collect::<Vec<_>>()).find(|row| row[0] == name);
        assert!(row.is_some_and(|row| row.contains(&mark)), "{name} {mark}: {listed}");
    };
    marked(&listed, &format!("demo/{second}"), "latest");
    let rows = crate::support::rows::read(&builds[0].join("demo.parquet")).num_rows();
    let rows = format!("{},{:03}", rows / 1000, rows % 1000);
    marked(&listed, &format!("demo/builds/{build}"), &rows);
    assert!(listed.contains(&format!("demo/{first} ")), "{listed}");
    assert!(listed.ends_with('\n') && listed.contains("\n3 versions, "), "{listed}");
    let one = place.run(["list", "datasets", "demo"]).expect_success().stdout;
    assert_eq!(one, listed, "there is no other");

    let refused = |name: &str, message: &str| {
        let shown = place.run(["prune", name]).failed_with(1).stderr;
        assert!(shown.contains(message), "{shown}");
    };
    refused(&format!("demo/{second}"), "the link `latest` points to it");
    refused("demo", "no version `demo`");
    refused("demo/../../..", "no version");
    symlink(&first, place.file("output/datasets/demo/paper")).unwrap();
    refused(&format!("demo/{first}"), "the link `paper` points to it");
    let listed = place.run(["list", "datasets"]).expect_success().stdout;
    marked(&listed, &format!("demo/{first}"), "paper");
    fs::remove_file(place.file("output/datasets/demo/paper")).unwrap();
    for (link, target) in [("paper", format!("builds/{build}")), ("builds/paper", build.clone())] {
        let path = place.file("output/datasets/demo").join(link);
        symlink(target, &path).unwrap();
        refused(&format!("demo/builds/{build}"), &format!("the link `{link}` points to it"));
        fs::remove_file(path).unwrap();
    }
    // An unknown name removes nothing.
    place.run(["prune", &format!("demo/{first}"), "demo/x"]).failed_with(1);
    assert!(place.file(&format!("output/datasets/demo/{first}")).is_dir());
    // A version with a foreign file is kept.
    let foreign = place.file(&format!("output/datasets/demo/{first}/mine.txt"));
    fs::write(&foreign, "mine").unwrap();
    place.run(["prune", &format!("demo/{first}")]).failed_with(1);
    assert!(foreign.is_file());
    fs::remove_file(&foreign).unwrap();

    // Files that the latest version also has are not freed.
    let alone = |path: &Path| {
        let files = fs::read_dir(path).unwrap().flatten().map(|file| file.metadata().unwrap());
        files.filter(|file| file.nlink() == 1).map(|file| file.len()).sum::<u64>()
    };
    let freed = alone(&place.file(&format!("output/datasets/demo/{first}"))) + alone(&builds[0]);
    let names = [format!("demo/{first}"), format!("demo/builds/{build}")];
    let removed = place.run(["prune", &names[0], &names[1], "--json"]).expect_success().stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&removed).unwrap()["freed"], freed, "{removed}");
    assert!(!place.file(&format!("output/datasets/demo/{first}")).exists() && !builds[0].exists());
    place.run(["verify"]).expect_success();
    assert_eq!(latest(&place), second);
}

#[test]
fn a_file_that_versions_share_counts_once() {
    let place = Place::new();
    let text = "source.service = \"demo\"\nsignals.tickers = \"NEE\"\ndataset.kind = \"signals\"\n";
    for name in ["one", "two"] {
        place.define(name, text);
        place.run(["run", name, "-q"]).expect_success();
    }
    // Nothing has changed: the next version has the same files.
    place.run(["build", "one", "-q"]).expect_success();
    let listed = |arguments: &[&str]| {
        let text = place.run(["list", "datasets"].iter().chain(arguments)).expect_success().stdout;
        let json = place.run(["list", "datasets", "--json"].iter().chain(arguments)).expect_success().stdout;
        (text, serde_json::from_str::<serde_json::Value>(&json).unwrap())
    };
    let size = |name: &str| fs::metadata(place.file(&format!("output/datasets/{name}/latest/{name}.parquet"))).unwrap();
    let (one, two) = (size("one"), size("two"));
    assert_eq!((one.nlink(), two.nlink()), (2, 1));
    let kilobytes = |bytes: u64| format!("{:.1} kB", bytes as f64 / 1000.0);
    let (text, json) = listed(&[]);
    let [all, saved] = [one.len() + two.len(), one.len()].map(kilobytes);
    assert!(text.ends_with(&format!("\n3 versions, {all}; sharing files saves {saved}\n")), "{text}");
    assert_eq!(json["bytes"], one.len() + two.len());
    let (text, json) = listed(&["two"]);
    assert!(text.ends_with(&format!("\n1 version, {}\n", kilobytes(two.len()))) && !text.contains("one/"), "{text}");
    assert_eq!((json["versions"].as_array().unwrap().len(), &json["bytes"]), (1, &two.len().into()));
    let unknown = place.run(["list", "datasets", "tow"]).failed_with(1).stderr;
    assert_eq!(unknown, "error: no dataset `tow`\nhint: did you mean `two`?\n");
    place.run(["list", "datasets", "two/x"]).failed_with(1);
    let version = json["versions"][0]["name"].as_str().expect("a name").to_owned();
    let (_, one) = listed(&[&version]);
    assert_eq!(one["versions"], json["versions"], "a version by its name");
}
