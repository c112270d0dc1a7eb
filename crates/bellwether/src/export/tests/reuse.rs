#![expect(clippy::disallowed_methods, reason = "tests remove what they made in folders of their own")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::tempdir;

use super::{moment, plan, provenance, publish_as, record, rows, signals, tree};
use crate::disk::digest;
use crate::export::{Dataset, Provenance, ReuseOutcome, Staged, reuse_latest};
use crate::plan::{Column, Format, Plan};
use crate::process::cancel::CancellationToken;

/// A later instant, after one more run that changed nothing.
fn later() -> Provenance {
    Provenance {
        runs: vec!["one".to_owned(), "two".to_owned(), "three".to_owned()],
        as_of: moment("2026-11-21T21:30:00Z"),
        built_at: moment("2026-11-22T08:00:00Z"),
        ..provenance()
    }
}

fn publish(folder: &Path, plan: &Plan, provenance: Provenance) -> Dataset {
    publish_as(folder, plan, provenance, &[rows(&signals(&["AAPL", "XOM"], 100))]).unwrap()
}

fn take_over(folder: &Path, plan: &Plan, provenance: &Provenance) -> Option<(Staged, String)> {
    match reuse_latest(folder, plan, provenance, &CancellationToken::new()).unwrap()? {
        ReuseOutcome::Reused { staged, from, facts } => {
            assert_eq!(facts, b"{}", "facts equal those that were written");
            Some((staged, from))
        }
        ReuseOutcome::Damaged(_) => None,
    }
}

/// The files of a dataset, by their paths below it, with their digests.
fn files(dataset: &Dataset) -> Vec<(String, String)> {
    let names = tree(&dataset.path).into_iter().filter(|name| name != "dataset.json");
    names.map(|name| (name.clone(), digest::of(&fs::read(dataset.path.join(&name)).unwrap()))).collect()
}

#[test]
fn reused_files_equal_a_fresh_build_byte_for_byte() {
    for partition_by in [vec![], vec![Column::Period, Column::Ticker]] {
        let mut plan = plan(&[Format::Parquet, Format::Csv, Format::Arrow]);
        plan.files.row_group_rows = 100;
        plan.files.partition_by = partition_by;
        let (folder, other) = (tempdir().unwrap(), tempdir().unwrap());
        let before = publish(folder.path(), &plan, provenance());
        let (staged, from) = take_over(folder.path(), &plan, &later()).unwrap();
        assert_eq!(Path::new(&from), Path::new(before.path.file_name().unwrap()));
        let same = staged.publish().unwrap();
        assert_eq!(same.rows, 800);
        let anew = publish(other.path(), &plan, later());
        assert_eq!(files(&same), files(&anew));
        assert_eq!(files(&same), files(&before), "files depend on neither the runs nor the instant");
        let (mut reused, mut rebuilt) = (record(&same), record(&anew));
        assert_eq!(reused["taken_over_from"].take(), from);
        for record in [&mut reused, &mut rebuilt] {
            record["version"].take();
            record["taken_over_from"].take();
        }
        assert_eq!(reused, rebuilt);
        let links = |dataset: &Dataset, name: &str| {
            let file = dataset.files.iter().find(|file| file.name.ends_with(name)).unwrap();
            fs::metadata(dataset.path.join(&file.name)).unwrap().nlink()
        };
        assert_eq!(["csv", "arrow", "parquet"].map(|name| links(&same, name)), [2, 2, 2]);
        // The previous version may be removed.
        fs::remove_dir_all(&before.path).unwrap();
        assert_eq!(files(&same), files(&anew));
        let (_, from) = take_over(folder.path(), &plan, &later()).unwrap();
        assert_eq!(Path::new(&from), Path::new(same.path.file_name().unwrap()));
    }
}

#[test]
fn files_of_another_basis_and_modified_files_are_not_reused() {
    let plan = plan(&[Format::Parquet, Format::Csv]);
    let folder = tempdir().unwrap();
    let taken = |provenance: &Provenance| take_over(folder.path(), &plan, provenance).is_some();
    assert!(!taken(&later()), "there is no version");
    let dataset = publish(folder.path(), &plan, provenance());
    assert!(taken(&later()));
    assert!(!taken(&Provenance { basis: "another".to_owned(), ..later() }));
    for name in ["demo.csv", "demo.parquet", "facts.json", "dataset.json"] {
        let path = dataset.path.join(name);
        let bytes = fs::read(&path).unwrap();
        let mut other = bytes.clone();
        other[0] ^= 1;
        fs::write(&path, other).unwrap();
        assert!(!taken(&later()), "{name} is damaged");
        fs::remove_file(&path).unwrap();
        assert!(!taken(&later()), "{name} is missing");
        fs::write(&path, bytes).unwrap();
        assert!(taken(&later()), "{name} is there again");
    }
    let text = fs::read_to_string(dataset.path.join("dataset.json")).unwrap();
    for (one, other) in [("\"name\": \"demo.csv\"", "\"name\": \"../demo.csv\""), ("\"layout\": 5", "\"layout\": 6")] {
        fs::write(dataset.path.join("dataset.json"), text.replace(one, other)).unwrap();
        assert!(!taken(&later()), "{other}");
    }
    let hidden = tree(&folder.path().join("demo")).into_iter().filter(|name| name.starts_with('.')).count();
    assert_eq!(hidden, 0, "abandoned folders are removed");
}
