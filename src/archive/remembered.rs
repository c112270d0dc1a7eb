//! What a run leaves to the next one: the fingerprints of each series, quarter by quarter, and who lists it.
//!
//! `series.parquet` of a run lists all fingerprints, or those that are not as an earlier run left them: the fingerprints are
//! read from a few files, one for each of the `levels`, however many runs there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, FixedSizeBinaryBuilder, Int64Array, ListBuilder, RecordBatch, StringBuilder,
};
use arrow::datatypes::{DataType, Date32Type, Field, Int64Type, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::bundle;
use super::by_ticker::ByTicker;
use super::fingerprint::Digest;
use super::index::{Archive, SealedRun};
use super::keys;
use super::levels::levels;
use super::quarter::Quarter;
use crate::error::Result;
use crate::interface::Ticker;
use crate::tables::{SeriesKey, choice, key_columns, symbol};

/// The name of the file of fingerprints.
pub(super) const SERIES: &str = "series.parquet";

/// The name of a run or of a request, which very many series share.
pub(super) type Name = Arc<str>;

/// The level that is being written.
pub(super) const NEW: usize = usize::MAX;

/// The runs that hold observations of some rows: the same ones for most, which share them.
pub(super) type Runs = Arc<BTreeSet<Name>>;

/// What is remembered of the rows of one quarter of a series, or of those without a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    /// How many cells there are.
    pub(super) rows: u64,
    /// The fingerprint of their latest values; none when runs that were made at once disagree.
    pub(super) digest: Option<Digest>,
    /// The runs that hold observations of them.
    pub(super) runs: Runs,
    /// The number of the highest level that lists it; [`NEW`] where that is the one that is being written.
    pub(super) level: usize,
}

impl Bucket {
    /// Whether another one says the same of the rows.
    pub(super) fn says(&self, other: &Self) -> bool {
        (self.rows, self.digest, &self.runs) == (other.rows, other.digest, &other.runs)
    }
}

/// What is remembered of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// The requests whose last answers listed it; none when it is gone.
    pub(super) requests: BTreeSet<Name>,
    /// Its quarters. The rows without a date come first, also where there are none.
    pub(super) buckets: BTreeMap<Option<Quarter>, Bucket>,
}

/// The columns of the file of fingerprints.
pub(super) fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let names = || DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, false)));
        Arc::new(Schema::new(vec![
            Field::new("ticker", symbol(), false),
            Field::new("period", choice(), true),
            Field::new("regime", choice(), true),
            Field::new("source", choice(), false),
            Field::new("quarter", DataType::Date32, true),
            Field::new("rows", DataType::Int64, false),
            Field::new("digest", DataType::FixedSizeBinary(16), true),
            Field::new("runs", names(), false),
            Field::new("requests", names(), true),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// Memories as rows of the file.
pub(super) fn batch<'a>(
    memories: impl Iterator<Item = (&'a SeriesKey, &'a Memory)>,
    extent: Extent,
) -> Result<RecordBatch, ArrowError> {
    let is_written = |bucket: &Bucket| match extent {
        Extent::Whole => true,
        Extent::Above(level) => bucket.level > level,
    };
    let rows: Vec<(&SeriesKey, &Memory, Option<Quarter>, &Bucket)> = memories
        .flat_map(|(key, memory)| memory.buckets.iter().map(move |(quarter, bucket)| (key, memory, *quarter, bucket)))
        .filter(|(.., bucket)| is_written(bucket))
        .collect();
    let mut digests = FixedSizeBinaryBuilder::with_capacity(rows.len(), 16);
    let field = || Field::new_list_field(DataType::Utf8, false);
    let mut runs = ListBuilder::new(StringBuilder::new()).with_field(field());
    let mut requests = ListBuilder::new(StringBuilder::new()).with_field(field());
    for (_, memory, quarter, bucket) in &rows {
        match bucket.digest {
            Some(digest) => digests.append_value(digest)?,
            None => digests.append_null(),
        }
        bucket.runs.iter().for_each(|run| runs.values().append_value(run));
        runs.append(true);
        if quarter.is_none() {
            memory.requests.iter().for_each(|request| requests.values().append_value(request));
        }
        requests.append(quarter.is_none());
    }
    let [ticker, period, regime, source] = key_columns(rows.iter().map(|(key, ..)| (*key, 1)));
    let columns: Vec<ArrayRef> = vec![
        ticker,
        period,
        regime,
        source,
        Arc::new(rows.iter().map(|(_, _, quarter, _)| quarter.map(Quarter::to_days)).collect::<Date32Array>()),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(.., bucket)| bucket.rows as i64))),
        Arc::new(digests.finish()),
        Arc::new(runs.finish()),
        Arc::new(requests.finish()),
    ];
    RecordBatch::try_new(schema(), columns)
}

/// How much of what is remembered a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All.
    Whole,
    /// What is not as a level has it.
    Above(usize),
}

/// What the newest runs of an archive remember, ticker by ticker.
pub(super) struct Remembered<'a> {
    /// For each of the newest runs the files that make up what it remembers, the lowest level first.
    heads: Vec<Vec<Level>>,
    names: Names<'a>,
}

impl<'a> Remembered<'a> {
    /// Opens what is remembered by some runs that were made at once, which is almost always one.
    pub(super) fn open(archive: &'a Archive, heads: &[&SealedRun]) -> Result<Self> {
        let opened = |head: &&SealedRun| {
            let levels = levels(archive, head)?.into_iter().enumerate();
            levels.map(|(number, run)| Level::open(run, number)).collect::<Result<Vec<_>>>()
        };
        let heads = heads.iter().map(opened).collect::<Result<_>>()?;
        Ok(Self { heads, names: Names::to_read(archive) })
    }

    /// What is remembered of the tickers up to one, with it; of all that are left where none is named.
    pub(super) fn until(&mut self, last: Option<&Ticker>) -> Result<BTreeMap<SeriesKey, Memory>> {
        let mut merged: BTreeMap<SeriesKey, Memory> = BTreeMap::new();
        for head in &mut self.heads {
            let mut own: BTreeMap<SeriesKey, Memory> = BTreeMap::new();
            for level in head {
                for (key, memory) in level.until(last, &mut self.names)? {
                    own.entry(key).or_default().overlay(memory);
                }
            }
            for (key, memory) in own {
                match merged.remove(&key) {
                    Some(other) => merged.insert(key, other.merged(memory)),
                    None => merged.insert(key, memory),
                };
            }
        }
        Ok(merged)
    }
}

/// One file of fingerprints.
pub(super) struct Level {
    file: ByTicker,
    number: usize,
}

impl Level {
    pub(super) fn open(run: &SealedRun, number: usize) -> Result<Self> {
        Ok(Self { file: ByTicker::open(run, SERIES, &schema())?, number })
    }

    /// What it lists of the tickers up to one, with it; of all that are left where none is named.
    pub(super) fn until(
        &mut self,
        last: Option<&Ticker>,
        names: &mut Names<'_>,
    ) -> Result<BTreeMap<SeriesKey, Memory>> {
        let rows = match last {
            Some(last) => self.file.take_until(last.as_str())?,
            None => self.file.take_rest()?,
        };
        let mut memories: BTreeMap<SeriesKey, Memory> = BTreeMap::new();
        for (key, range) in keys::ranges(&rows).map_err(|error| self.file.damaged(error))? {
            let memory = memories.entry(key).or_default();
            for row in range {
                let (quarter, bucket, requests) = self.entry(&rows, row, names)?;
                memory.buckets.insert(quarter, bucket);
                memory.requests.extend(requests);
            }
        }
        Ok(memories)
    }

    fn entry(
        &self,
        rows: &RecordBatch,
        row: usize,
        names: &mut Names<'_>,
    ) -> Result<(Option<Quarter>, Bucket, BTreeSet<Name>)> {
        let quarters = rows.column(4).as_primitive::<Date32Type>();
        let digests = rows.column(6).as_fixed_size_binary();
        let quarter = quarters.is_valid(row).then(|| Quarter::of_days(quarters.value(row)));
        let runs = names.of_runs(quarter, texts(rows, 7, row))?;
        let requests = texts(rows, 8, row).map(|name| names.name(name)).collect();
        let digest =
            digests.is_valid(row).then(|| *digests.value(row).first_chunk().expect("the column is 16 bytes wide"));
        let count = rows.column(5).as_primitive::<Int64Type>().value(row) as u64;
        Ok((quarter, Bucket { rows: count, digest, runs, level: self.number }, requests))
    }
}

/// The texts of a list in a row; none where there is no list.
fn texts(rows: &RecordBatch, column: usize, row: usize) -> impl Iterator<Item = &str> + Clone {
    let lists = rows.column(column).as_list::<i32>();
    let (texts, ends) = (lists.values().as_string::<i32>(), lists.value_offsets());
    let places = if lists.is_valid(row) { ends[row]..ends[row + 1] } else { 0..0 };
    places.map(|place| texts.value(place as usize))
}

/// Names, each of which is kept once.
pub(super) struct Names<'a> {
    archive: &'a Archive,
    /// Runs that are read out of the bundle of another one.
    bundled: HashMap<&'a str, &'a str>,
    known: BTreeSet<Name>,
    /// By quarter, the runs that were named last, and those that their rows are in now: mostly those of the next series,
    /// too.
    last: BTreeMap<Option<Quarter>, (Vec<String>, Runs)>,
}

impl<'a> Names<'a> {
    pub(super) fn of(archive: &'a Archive) -> Self {
        Self { archive, bundled: HashMap::new(), known: BTreeSet::new(), last: BTreeMap::new() }
    }

    /// Names the runs from which all rows that an archive has are read: that of a bundle in the place of those in it.
    pub(super) fn to_read(archive: &'a Archive) -> Self {
        let bundled = bundle::bundled(&archive.runs().iter().collect::<Vec<_>>());
        Self { bundled, ..Self::of(archive) }
    }

    /// The runs that the rows of some runs are in now, of a quarter: one that was compacted is in another one.
    fn of_runs<'n>(&mut self, quarter: Option<Quarter>, names: impl Iterator<Item = &'n str> + Clone) -> Result<Runs> {
        if let Some((last, runs)) = self.last.get(&quarter)
            && names.clone().eq(last)
        {
            return Ok(Arc::clone(runs));
        }
        let archive = self.archive;
        let now = |name| {
            let now = archive.runs()[archive.place(name)?].name();
            Ok(self.name(self.bundled.get(now).copied().unwrap_or(now)))
        };
        let now = Runs::new(names.clone().map(now).collect::<Result<_>>()?);
        self.last.insert(quarter, (names.map(str::to_owned).collect(), Arc::clone(&now)));
        Ok(now)
    }

    fn name(&mut self, name: &str) -> Name {
        match self.known.get(name) {
            Some(known) => Arc::clone(known),
            None => {
                let known: Name = name.into();
                self.known.insert(Arc::clone(&known));
                known
            }
        }
    }
}

impl Memory {
    /// Takes what a later file lists in the place of what is here.
    fn overlay(&mut self, later: Self) {
        // Who lists a series is said beside its rows without a date.
        if later.buckets.contains_key(&None) {
            self.requests = later.requests;
        }
        self.buckets.extend(later.buckets);
    }

    /// What two runs remember that were made at once. Where they disagree nothing is known but who holds the rows.
    fn merged(mut self, other: Self) -> Self {
        self.requests.extend(other.requests);
        for (quarter, bucket) in other.buckets {
            match self.buckets.get_mut(&quarter) {
                Some(own) if own.digest == bucket.digest && own.rows == bucket.rows => own.held_by_too(&bucket.runs),
                Some(own) => {
                    own.digest = None;
                    own.held_by_too(&bucket.runs);
                }
                None => {
                    self.buckets.insert(quarter, bucket);
                }
            }
        }
        self
    }
}
