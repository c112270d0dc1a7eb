//! Bundles: what many runs observed that found little, once more and in one place.
//!
//! A run of a day has a row or none of each series, and after a year there are hundreds of such runs. So a run that comes
//! after enough of them repeats what they observed, in files beside its own. Whoever reads all of these runs reads the
//! bundle in their stead, and whoever looks at an instant before it was made reads the runs themselves. So what a run
//! costs follows what is known, and not how many runs it took to know it.
//!
//! A bundle says what its runs say and nothing else: a dataset is the same whether it is read out of the one or the others.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use super::by_ticker::ByTicker;
use super::cells::Cells;
use super::index::{Archive, SealedRun};
use super::merged::{Merged, Tickers};
use super::rowfile::Rowfile;
use super::seal::Seal;
use crate::error::{Error, Result};
use crate::file::FileRecord;
use crate::tables::Table;
use crate::trace::work;

/// How many runs are worth a bundle.
const ENOUGH_RUNS: usize = 32;

/// How many rows of a table are few. Those of runs that have no more, and stand in no bundle, are in memory while they
/// are read.
pub(super) const FEW_ROWS: u64 = 1 << 15;

/// A file with observations of a table.
pub(super) struct Part<'a> {
    pub(super) run: &'a SealedRun,
    pub(super) file: String,
    pub(super) rows: u64,
}

impl<'a> Part<'a> {
    /// What a run observed itself.
    fn own(run: &'a SealedRun, table: Table) -> Self {
        Self::of(run, table.file())
    }

    /// What the runs observed that a run bundles.
    fn bundle(run: &'a SealedRun, table: Table) -> Self {
        Self::of(run, bundled_file(table))
    }

    fn of(run: &'a SealedRun, file: String) -> Self {
        Self { run, rows: run.seal().rows(&file), file }
    }

    /// All that a run says: what the runs observed that it bundles, of which it is one, or what it observed itself.
    pub(super) fn all(run: &'a SealedRun, table: Table) -> Self {
        if run.seal().bundles.is_empty() { Self::own(run, table) } else { Self::bundle(run, table) }
    }
}

/// The name of the file of a table in a bundle.
fn bundled_file(table: Table) -> String {
    format!("bundle-{}", table.file())
}

/// The files that say what some runs observed, each observation once.
pub(super) fn parts<'a>(runs: &[&'a SealedRun], table: Table) -> Vec<Part<'a>> {
    let bundled = bundled(runs);
    let part = |run: &&'a SealedRun| match bundled.get(run.name()) {
        None => Some(Part::own(run, table)),
        Some(bundle) => (*bundle == run.name()).then(|| Part::bundle(run, table)),
    };
    runs.iter().filter_map(part).filter(|part| part.rows > 0).collect()
}

/// Those of some runs that are read out of the bundle of one of them, each with that one.
pub(super) fn bundled<'a>(runs: &[&'a SealedRun]) -> HashMap<&'a str, &'a str> {
    let names: HashSet<&str> = runs.iter().map(|run| run.name()).collect();
    let mut bundled: HashMap<&str, &str> = HashMap::new();
    for run in runs {
        let members = || run.seal().bundles.iter().map(String::as_str);
        // A bundle of runs that are not all asked for says too much.
        if members().all(|name| names.contains(name) && !bundled.contains_key(name)) {
            bundled.extend(members().map(|name| (name, run.name())));
        }
    }
    bundled
}

/// The runs that are bundled with one that is sealed after all others, this one with them, where they are enough: the
/// newest that found little and are in no bundle yet. None is left out between them. Who reads a bundle for what one of
/// its runs said would not see that another took back what an older one had said.
pub(super) fn due<'a>(before: &'a [SealedRun], last: &'a SealedRun) -> Vec<&'a SealedRun> {
    let found_little = |run: &&SealedRun| Table::ALL.iter().all(|table| run.seal().rows(&table.file()) <= FEW_ROWS);
    let mut runs: Vec<&SealedRun> = before.iter().collect();
    let bundled = bundled(&runs);
    runs.push(last);
    let is_left = |run: &&&SealedRun| !bundled.contains_key(run.name()) && found_little(run);
    let due = runs.iter().rev().take_while(is_left).count();
    if due > ENOUGH_RUNS { runs.split_off(runs.len() - due) } else { Vec::new() }
}

/// Writes a bundle of some runs.
pub(super) fn write(runs: &[&SealedRun], folder: &Path) -> Result<Vec<FileRecord>> {
    let _work = work!("bundle runs");
    let tables = Table::ALL.into_iter().filter(|table| !parts(runs, *table).is_empty());
    tables.map(|table| write_all(runs, table, &folder.join(bundled_file(table)))).collect()
}

/// Writes every observation of a table that some runs made into one file.
pub(super) fn write_all(runs: &[&SealedRun], table: Table, path: &Path) -> Result<FileRecord> {
    let mut out = Rowfile::create(path, table.schema(), table.key_columns())?;
    for rows in observations(runs, table)? {
        out.write(Ok(rows?))?;
    }
    out.finish()
}

/// Every observation of a table that some runs made, some whole tickers at a time.
fn observations(runs: &[&SealedRun], table: Table) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
    let mut merged = Merged::open(table, runs)?;
    Ok(std::iter::from_fn(move || {
        let tickers = merged.next().transpose()?;
        let all = |tickers: Tickers| Cells::of(table, &tickers.batches)?.all();
        Some(tickers.and_then(|tickers| all(tickers).map_err(|error| Error::Settle { source: error.into() })))
    }))
}

/// The tables of which a run's bundle does not say what the runs say that are in it. Of runs that were merged into
/// another one since, nobody can tell.
pub(super) fn faults(archive: &Archive, run: &SealedRun) -> Result<Vec<PathBuf>> {
    let alone = SealedRun::new(run.path().to_owned(), Seal { bundles: Vec::new(), ..run.seal().clone() });
    let mut members = Vec::new();
    for name in &run.seal().bundles {
        match &archive.runs()[archive.place(name)?] {
            member if member.name() == run.name() => members.push(&alone),
            member if member.name() == name => members.push(member),
            _ => return Ok(Vec::new()),
        }
    }
    let mut faults = Vec::new();
    for table in Table::ALL {
        let Part { file, rows, .. } = Part::bundle(run, table);
        let found = if rows > 0 { Some(ByTicker::open(run, &file, &table.schema())?.take_rest()?) } else { None };
        let expected = observations(&members, table)?.collect::<Result<Vec<_>>>()?;
        let expected = concat_batches(&table.schema(), &expected);
        let expected = expected.map_err(|error| Error::Settle { source: error.into() })?;
        if found.is_some_and(|found| found != expected) || (rows == 0 && expected.num_rows() > 0) {
            faults.push(run.path().join(file));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::tempdir;

    use super::*;
    use crate::archive::samples::{key, observed, seal};
    use crate::archive::seal::sealed_path;
    use crate::tables::Change;

    fn run(name: &str, bundles: &[&str], files: &[(&str, u64)]) -> SealedRun {
        let record =
            |&(name, rows): &(&str, u64)| FileRecord { name: name.to_owned(), rows, bytes: 0, blake3: String::new() };
        let bundles = bundles.iter().map(|name| (*name).to_owned()).collect();
        let seal = Seal { bundles, files: files.iter().map(record).collect(), ..seal(name) };
        SealedRun::new(name.into(), seal)
    }

    #[test]
    fn a_bundle_is_read_in_the_stead_of_its_runs_where_all_are_asked_for() {
        let own = ("signals.parquet", 1);
        let all = [
            run("a", &[], &[own]),
            run("b", &[], &[own]),
            run("c", &["a", "b", "c"], &[("signals.parquet", 0), ("bundle-signals.parquet", 2)]),
            run("d", &[], &[own]),
            // Another machine bundled one of them, too.
            run("e", &["b", "e"], &[own, ("bundle-signals.parquet", 2)]),
        ];
        let read = |runs: &str| {
            let runs: Vec<&SealedRun> = all.iter().filter(|run| runs.contains(run.name())).collect();
            let parts = parts(&runs, Table::Signals);
            parts.iter().map(|part| format!("{} {} {}", part.run.name(), part.file, part.rows)).collect::<Vec<_>>()
        };
        assert_eq!(read("abcde"), ["c bundle-signals.parquet 2", "d signals.parquet 1", "e signals.parquet 1"]);
        assert_eq!(read("abd"), ["a signals.parquet 1", "b signals.parquet 1", "d signals.parquet 1"]);
        assert_eq!(read("bcd"), ["b signals.parquet 1", "d signals.parquet 1"]);
        assert_eq!(read("be"), ["e bundle-signals.parquet 2"]);
        let runs: Vec<&SealedRun> = all.iter().collect();
        assert!(parts(&runs, Table::Articles).is_empty());
    }

    #[test]
    fn runs_are_bundled_when_enough_of_them_found_little_one_after_another() {
        let little: Vec<SealedRun> =
            (0..70).map(|number| run(&format!("{number:02}"), &[], &[("articles.parquet", FEW_ROWS)])).collect();
        let names = |due: Vec<&SealedRun>| due.iter().map(|run| run.name().to_owned()).collect::<Vec<_>>();
        assert!(due(&little[..31], &little[31]).is_empty());
        let first = names(due(&little[..32], &little[32]));
        assert_eq!((first.len(), &*first[0], &*first[32]), (33, "00", "32"));
        // Those that are in a bundle are done with.
        let bundle = || run("32", &first.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
        let after = |last: usize| [&little[..32], &[bundle()], &little[33..last]].concat();
        assert!(due(&after(64), &little[64]).is_empty());
        let second = names(due(&after(65), &little[65]));
        assert_eq!((second.len(), &*second[0], &*second[32]), (33, "33", "65"));
        // So are those before one that found much.
        let much = run("much", &[], &[("articles.parquet", FEW_ROWS + 1)]);
        assert!(due(&little[..40], &much).is_empty());
        let mixed = |last: usize| [&little[..20], std::slice::from_ref(&much), &little[20..last]].concat();
        assert!(due(&mixed(51), &little[51]).is_empty());
        assert_eq!(names(due(&mixed(52), &little[52]))[0], "20");
    }

    #[test]
    fn a_bundle_that_says_something_else_than_its_runs_is_told() {
        let place = tempdir().unwrap();
        let sealed = |name: &str, rows: RecordBatch, of: &[&SealedRun]| {
            let folder = sealed_path(place.path(), name);
            fs::create_dir(&folder).unwrap();
            let mut out = Rowfile::create(&folder.join("signals.parquet"), Table::Signals.schema(), 4).unwrap();
            out.write(Ok(rows)).unwrap();
            let mut seal = seal(name);
            seal.files.push(out.finish().unwrap());
            let alone = SealedRun::new(folder.clone(), seal.clone());
            if !of.is_empty() {
                seal.files.extend(write(&[of, &[&alone]].concat(), &folder).unwrap());
                seal.bundles = of.iter().map(|run| run.name().to_owned()).chain([name.to_owned()]).collect();
            }
            seal.write(&folder).unwrap();
            SealedRun::new(folder, seal)
        };
        let first = sealed("a", observed(&key(), 1, Change::Added, &[(0, 0.5)]), &[]);
        let second = sealed("b", observed(&key(), 2, Change::Revised, &[(0, 0.25)]), &[]);
        let bundle = sealed("c", observed(&key(), 3, Change::Added, &[(1, 0.75)]), &[&first, &second]);
        let rows = Part::bundle(&bundle, Table::Signals).rows;
        let archive = Archive::open(place.path()).unwrap();
        assert_eq!((rows, faults(&archive, &bundle).unwrap()), (3, Vec::new()));
        let mut seal = bundle.seal().clone();
        seal.bundles.remove(0);
        let wrong = SealedRun::new(bundle.path().to_owned(), seal);
        let found = faults(&archive, &wrong).unwrap();
        assert_eq!(found, [bundle.path().join("bundle-signals.parquet")]);
    }
}
