//! Is everything what was written, and does it say what it should? Checksums and counts of every file, bundles held
//! against their runs, and every fingerprint, computed anew from the observations of the runs that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use rayon::prelude::*;

use super::bundle::{self, Part};
use super::by_ticker::ByTicker;
use super::cells::Cells;
use super::fingerprint::fingerprint;
use super::index::{Archive, SealedRun};
use super::keys;
use super::listings;
use super::past::Observed;
use super::quarter::Quarter;
use super::remembered::{Bucket, Level, Name, Names, SERIES};
use super::settling::in_quarter;
use crate::error::{Error, Result};
use crate::file::{self, FileRecord};
use crate::interface::Ticker;
use crate::tables::{SeriesKey, Table};

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// The files whose size, checksum and rows were compared.
    pub files: usize,
    /// The fingerprints that were held against what was observed.
    pub fingerprints: usize,
    /// What is not as it should be, a line each.
    pub faults: Vec<String>,
}

/// Looks over all runs of an archive. Fingerprints are computed when the files are what was written.
///
/// # Errors
///
/// When the archive cannot be opened.
pub fn verify(archive: &Archive) -> Result<Verified> {
    let mut verified = Verified::default();
    for run in archive.runs().iter().chain(archive.replaced()) {
        verified.files += run.seal().files.len();
        verified.faults.extend(run.seal().files.iter().filter_map(|file| fault(&run.path().join(&file.name), file)));
    }
    if verified.faults.is_empty() {
        for run in archive.runs() {
            let of_file = |path: PathBuf| format!("`{}` is not what the runs of the bundle say", path.display());
            verified.faults.extend(bundle::faults(archive, run)?.into_iter().map(of_file));
        }
        fingerprints(archive, &mut verified)?;
    }
    Ok(verified)
}

/// What runs tell of a quarter of a series.
type Told<'a> = Vec<(&'a SealedRun, Bucket)>;

/// Holds every fingerprint of every run against what was observed.
fn fingerprints(archive: &Archive, verified: &mut Verified) -> Result<()> {
    let mut tickers: BTreeSet<Ticker> = BTreeSet::new();
    for run in archive.runs() {
        tickers.extend(listings::read(run)?.into_iter().map(|listing| listing.key.ticker));
    }
    let mut levels = archive.runs().iter().map(|run| Level::open(run, 0)).collect::<Result<Vec<_>>>()?;
    let mut names = Names::of(archive);
    let mut observations = Observations::open(archive)?;
    for ticker in &tickers {
        let observed = observations.of(ticker)?;
        let mut told: BTreeMap<(SeriesKey, Option<Quarter>), Told<'_>> = BTreeMap::new();
        for (run, level) in archive.runs().iter().zip(&mut levels) {
            for (key, memory) in level.until(Some(ticker), &mut names)? {
                for (quarter, bucket) in memory.buckets {
                    if bucket.rows > 0 && bucket.digest.is_some() {
                        told.entry((key.clone(), quarter)).or_default().push((run, bucket));
                    }
                }
            }
        }
        verified.fingerprints += told.values().map(Vec::len).sum::<usize>();
        let of_one = |((key, quarter), told): (&(SeriesKey, Option<Quarter>), &Told<'_>)| {
            faults(key, *quarter, told, observed.get(key).map_or(&[], Vec::as_slice))
        };
        let found: Result<Vec<Vec<String>>, ArrowError> = told.par_iter().map(of_one).collect();
        verified.faults.extend(found.map_err(|error| Error::Settle { source: error.into() })?.concat());
    }
    Ok(())
}

/// The faults in what runs tell of a quarter of a series, given all that was observed of the series.
fn faults(
    key: &SeriesKey,
    quarter: Option<Quarter>,
    told: &Told<'_>,
    observed: &[(Name, RecordBatch)],
) -> Result<Vec<String>, ArrowError> {
    let observed = in_quarter(observed.iter(), quarter)?;
    let mut faults = Vec::new();
    let mut right: Option<&Bucket> = None;
    for (run, bucket) in told {
        // Runs repeat what the one before them told, as long as it holds.
        if right.is_some_and(|right| right.says(bucket)) {
            continue;
        }
        if is_right(key, bucket, &observed)? {
            right = Some(bucket);
        } else {
            faults.push(fault_of(run, key, quarter));
        }
    }
    Ok(faults)
}

/// Whether the observations of the runs that a fingerprint names make what it says.
fn is_right(key: &SeriesKey, bucket: &Bucket, observed: &[(Name, RecordBatch)]) -> Result<bool, ArrowError> {
    let Some(table) = Table::of(key.source) else { return Ok(false) };
    let rows = observed.iter().filter(|(run, _)| bucket.runs.contains(run)).map(|(_, rows)| rows);
    let latest = Cells::of(table, rows)?.latest()?;
    Ok(latest.num_rows() as u64 == bucket.rows && Some(fingerprint(&latest)) == bucket.digest)
}

fn fault_of(run: &SealedRun, key: &SeriesKey, quarter: Option<Quarter>) -> String {
    let SeriesKey { ticker, period, regime, source } = key;
    let period = period.map_or_else(String::new, |period| format!(" {period}"));
    let regime = regime.map_or_else(String::new, |regime| format!(" {regime}"));
    let quarter = quarter.map_or_else(String::new, |quarter| format!(" in the quarter from {}", quarter.first()));
    let path = run.path().join(SERIES);
    format!(
        "`{}`: the fingerprint of {source} {ticker}{period}{regime}{quarter} is not that of its rows",
        path.display()
    )
}

/// The observations of all runs, ticker by ticker.
struct Observations {
    files: Vec<(Name, ByTicker)>,
}

impl Observations {
    fn open(archive: &Archive) -> Result<Self> {
        let mut files = Vec::new();
        for run in archive.runs() {
            let name = Name::from(run.name());
            for table in Table::ALL {
                let Part { file, rows, .. } = Part::all(run, table);
                if rows > 0 {
                    files.push((Name::clone(&name), ByTicker::open(run, &file, &table.schema())?));
                }
            }
        }
        Ok(Self { files })
    }

    /// What each run observed of the series of a ticker.
    fn of(&mut self, ticker: &Ticker) -> Result<Observed> {
        let mut observed = Observed::new();
        for (name, file) in &mut self.files {
            let rows = file.take_only(ticker.as_str())?;
            for (key, range) in keys::ranges(&rows).map_err(|error| file.damaged(error))? {
                observed.entry(key).or_default().push((Name::clone(name), rows.slice(range.start, range.len())));
            }
        }
        Ok(observed)
    }
}

/// In what a file differs from its record.
pub fn fault(path: &Path, record: &FileRecord) -> Option<String> {
    let shown = path.display();
    let found = match FileRecord::of(path, &record.name, record.rows) {
        Ok(found) => found,
        Err(Error::Read { source, .. }) => return Some(format!("`{shown}` cannot be read: {source}")),
        Err(error) => return Some(error.to_string()),
    };
    if found.bytes != record.bytes {
        return Some(format!("`{shown}` has {} bytes and should have {}", found.bytes, record.bytes));
    }
    if found.blake3 != record.blake3 {
        return Some(format!("`{shown}` is not what was written: its BLAKE3 is {}", found.blake3));
    }
    let rows = rows_of(path)?;
    (rows != record.rows).then(|| format!("`{shown}` has {rows} rows and should have {}", record.rows))
}

/// The rows of a Parquet file; of another file nobody can tell without reading it.
fn rows_of(path: &Path) -> Option<u64> {
    let is_parquet = path.extension().is_some_and(|extension| extension == "parquet");
    let file = is_parquet.then(|| file::open(path).ok())??;
    let rows = SerializedFileReader::new(file).ok()?.metadata().file_metadata().num_rows();
    u64::try_from(rows).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::remembered::Runs;
    use crate::archive::samples::{key, observed, seal};
    use crate::tables::Change;

    fn run(name: &str) -> SealedRun {
        SealedRun::new(name.into(), seal(name))
    }

    #[test]
    fn each_fingerprint_is_that_of_the_rows_of_the_runs_that_it_names() {
        let key = key();
        let (first, second) = (run("first"), run("second"));
        let rows = [
            ("first".into(), observed(&key, 1, Change::Added, &[(0, 0.5), (1, 0.75), (100, 0.25)])),
            ("second".into(), observed(&key, 2, Change::Revised, &[(1, 0.125)])),
        ];
        let digest = |said: &[(i64, f64)]| {
            let rows = observed(&key, 3, Change::Added, said);
            Some(fingerprint(&Cells::of(Table::Signals, [&rows]).unwrap().latest().unwrap()))
        };
        let bucket = |runs: &[&str], rows: u64, said: &[(i64, f64)]| Bucket {
            rows,
            digest: digest(said),
            runs: Runs::new(runs.iter().map(|run| Name::from(*run)).collect()),
            level: 0,
        };
        let quarter = Some(Quarter::of_days(0));
        let before = bucket(&["first"], 2, &[(0, 0.5), (1, 0.75)]);
        let after = bucket(&["first", "second"], 2, &[(0, 0.5), (1, 0.125)]);
        let told = vec![(&first, before.clone()), (&second, before.clone()), (&second, after.clone())];
        assert_eq!(faults(&key, quarter, &told, &rows).unwrap(), [""; 0]);
        let others = [
            // Of other rows, so many of them, or without the run that changed them.
            Bucket { digest: digest(&[(0, 0.5), (1, 0.5)]), ..after.clone() },
            Bucket { rows: 3, ..after.clone() },
            bucket(&["first"], 2, &[(0, 0.5), (1, 0.125)]),
        ];
        for wrong in others {
            let told = vec![(&first, before.clone()), (&second, wrong), (&second, after.clone())];
            let faults = faults(&key, quarter, &told, &rows).unwrap();
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].starts_with("`second/series.parquet`: the fingerprint of "), "{faults:?}");
            assert!(faults[0].ends_with("in the quarter from 1970-01-01 is not that of its rows"), "{faults:?}");
        }
        let told = vec![(&first, bucket(&["first"], 1, &[(100, 0.25)]))];
        assert_eq!(faults(&key, Some(Quarter::of_days(100)), &told, &rows).unwrap(), [""; 0]);
    }
}
