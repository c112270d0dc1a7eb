//! Is everything what was written, and does it say what it should? Checksums and counts of every file, and every
//! fingerprint, computed anew from the observations of the runs that it names.

use std::collections::BTreeSet;
use std::path::Path;

use arrow::error::ArrowError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::by_ticker::ByTicker;
use super::cells::Cells;
use super::fingerprint::fingerprint;
use super::index::{Archive, SealedRun};
use super::keys;
use super::listings;
use super::past::Observed;
use super::quarter::Quarter;
use super::remembered::{Bucket, Layer, Name, Names, SERIES};
use super::settling::of_quarter;
use crate::error::{Error, Result};
use crate::file::{self, FileRecord};
use crate::interface::Ticker;
use crate::tables::{SeriesKey, Table};

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// The files whose size, checksum and rows were compared.
    pub files: usize,
    /// The fingerprints that were computed anew.
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
        fingerprints(archive, &mut verified)?;
    }
    Ok(verified)
}

/// Computes every fingerprint of every run anew.
fn fingerprints(archive: &Archive, verified: &mut Verified) -> Result<()> {
    let mut tickers: BTreeSet<Ticker> = BTreeSet::new();
    for run in archive.runs() {
        tickers.extend(listings::read(run)?.into_iter().map(|listing| listing.key.ticker));
    }
    let mut layers = archive.runs().iter().map(Layer::open).collect::<Result<Vec<_>>>()?;
    let mut names = Names::of(archive);
    let mut observations = Observations::open(archive)?;
    for ticker in &tickers {
        let observed = observations.of(ticker)?;
        for (run, layer) in archive.runs().iter().zip(&mut layers) {
            for (key, memory) in layer.until(Some(ticker), &mut names)? {
                let buckets = memory.buckets.iter().filter(|(_, bucket)| bucket.rows > 0 && bucket.digest.is_some());
                for (quarter, bucket) in buckets {
                    verified.fingerprints += 1;
                    let is_right = is_right(&key, *quarter, bucket, &observed);
                    if !is_right.map_err(|error| Error::Settle { source: error.into() })? {
                        verified.faults.push(told(run, &key, *quarter));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether the observations of the runs that a fingerprint names make what it says.
fn is_right(
    key: &SeriesKey,
    quarter: Option<Quarter>,
    bucket: &Bucket,
    observed: &Observed,
) -> Result<bool, ArrowError> {
    let Some(table) = Table::of(key.source) else { return Ok(false) };
    let rows = observed.get(key).map_or(&[][..], Vec::as_slice);
    let rows = rows.iter().filter(|(run, _)| bucket.runs.contains(run));
    let rows = rows.map(|(_, rows)| of_quarter(rows, quarter)).collect::<Result<Vec<_>, _>>()?;
    let latest = Cells::of(table, &rows)?.latest()?;
    Ok(latest.num_rows() as u64 == bucket.rows && Some(fingerprint(&latest)) == bucket.digest)
}

fn told(run: &SealedRun, key: &SeriesKey, quarter: Option<Quarter>) -> String {
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
            for table in Table::ALL.into_iter().filter(|table| run.seal().rows(&table.file()) > 0) {
                files.push((Name::clone(&name), ByTicker::open(run, &table.file(), &table.schema())?));
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
