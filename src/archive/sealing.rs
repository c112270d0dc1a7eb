//! Seals a run: what its answers changed is worked out, written down in order, and renamed to its place.
//!
//! Series are settled some tickers at a time, so memory follows the size of these and not of the run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use rayon::prelude::*;

use super::answer::{Answer, AnswerRecord, Batches, Rows};
use super::bundle;
use super::index::{Archive, SealedRun};
use super::lanes::Files;
use super::levels;
use super::listings::{self, LISTINGS, Listing};
use super::past::{Observed, Past};
use super::remembered::{self, Extent, Memory, NEW, Name, Remembered, SERIES};
use super::rowfile::Rowfile;
use super::seal::{Counts, Definition, LAYOUT, Origin, Seal, sealed_path};
use super::settling::{Compared, Settled};
use super::spool::{Repeated, Spool, Told};
use super::tables::Tables;
use super::{REJECTS, REQUESTS};
use crate::error::{Error, Result};
use crate::file::{self, FileRecord};
use crate::interface::Ticker;
use crate::tables::{self, Change, Changes, Reject, RequestRecord, SeriesKey, Table};
use crate::trace::work;

/// How many series are settled at a time, at least, but for the last.
const SERIES_AT_ONCE: usize = 64;

/// The rows that are put together at once.
const PIECE_ROWS: usize = 1 << 15;

/// How many groups may be ready while another is written.
const GROUPS_AHEAD: usize = 2;

/// Seals a run: writes its files into a folder of the unfinished run, and renames the folder.
pub(super) fn seal(
    archive: &Path,
    unfinished: &Path,
    origin: &Origin,
    answers: &[Answer],
    sealed_at: DateTime<Utc>,
) -> Result<SealedRun> {
    let folder = unfinished.join("sealed");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    }
    fs::create_dir(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    // Only now, and not when the run began: another run may have been sealed in between.
    let before = Archive::open(archive)?;
    let heads = before.heads();
    let (extent, since) = levels::extent(&before, &heads)?;
    let spool = Spool::of(answers, origin.run.as_str().into());
    let (mut files, changes, repeated) = settle(&before, &heads, &folder, extent, spool)?;
    files.push(write_rejects(&folder.join(REJECTS), answers, &repeated)?);
    files.push(write_requests(&folder.join(REQUESTS), answers)?);
    let mut drift = Vec::new();
    answers.iter().flat_map(|answer| answer.record.oddities.drift.clone()).for_each(|field| field.add_to(&mut drift));
    let definition = Definition { name: origin.definition.clone(), digest: origin.definition_digest.clone() };
    let mut seal = Seal {
        layout: LAYOUT,
        run: origin.run.clone(),
        bellwether: env!("CARGO_PKG_VERSION").to_owned(),
        definition: Some(definition),
        started_at: origin.started_at,
        sealed_at,
        after: heads.iter().map(|run| run.name().to_owned()).collect(),
        since,
        replaces: Vec::new(),
        bundles: Vec::new(),
        changes,
        drift,
        files,
        seal: Seal::undigested(),
    };
    let run = SealedRun::new(folder.clone(), seal.clone());
    let due = bundle::due(before.runs(), &run);
    if !due.is_empty() {
        seal.files.extend(bundle::write(&due, &folder)?);
        seal.bundles = due.iter().map(|run| run.name().to_owned()).collect();
    }
    seal.write(&folder)?;
    let path = sealed_path(archive, &origin.run);
    file::rename_durably(&folder, &path)?;
    Ok(SealedRun::new(path, seal))
}

/// The requests that were answered, and when.
type Answered = HashMap<Name, DateTime<Utc>>;

/// Settles every series, and writes down what became of it in the files of a folder. The next tickers are read and
/// compared while the last are written.
fn settle<'a>(
    archive: &'a Archive,
    heads: &[&SealedRun],
    folder: &Path,
    extent: Extent,
    spool: Spool<'a>,
) -> Result<(Vec<FileRecord>, Counts, Vec<Repeated>)> {
    let answered: Answered = spool.answered().collect();
    let remembered = Remembered::open(archive, heads)?;
    let mut settling = Settling { past: Past::of(archive), spool };
    let mut writing = Writing::begin(folder, extent, &answered)?;
    thread::scope(|scope| {
        let (ready, groups) = mpsc::sync_channel(GROUPS_AHEAD);
        // Nobody receives any more once a group could not be written.
        scope.spawn(move || settling.settle(remembered, |group| ready.send(group).is_ok()));
        groups.into_iter().try_for_each(|group| writing.write(group?))
    })?;
    writing.finish()
}

/// Some whole tickers whose series are settled.
#[derive(Default)]
struct Group {
    /// What became of their cells, by table and in order.
    changes: Vec<(Table, tables::Rows)>,
    counts: Counts,
    /// What the next run must know of them, each with the requests whose answers listed it now.
    series: Vec<(SeriesKey, Memory, BTreeSet<Name>)>,
    repeated: Vec<Repeated>,
}

/// What was heard of a series that is told.
enum Heard {
    /// Its rows, held against what is remembered of it.
    Rows(Compared, Vec<Repeated>),
    /// That it is there, and no more than that.
    Listed(Memory),
}

/// Works out what the answers of a run changed.
struct Settling<'a> {
    past: Past<'a>,
    spool: Spool<'a>,
}

impl Settling<'_> {
    /// Hands out the series of all tickers, until somebody has had enough or a group fails. What is remembered of the
    /// next tickers is read while these are settled.
    fn settle(&mut self, mut remembered: Remembered<'_>, mut send: impl FnMut(Result<Group>) -> bool) {
        let told = self.spool.told();
        let mut rest = &told[..];
        let mut known = remembered.until(last_ticker(rest));
        while !rest.is_empty() {
            let (some, others) = rest.split_at(whole_tickers(rest));
            let group = || known.and_then(|known| self.group(some, known));
            let (group, next) = rayon::join(group, || remembered.until(last_ticker(others)));
            let is_whole = group.is_ok();
            if !send(group) || !is_whole {
                return;
            }
            (rest, known) = (others, next);
        }
        send(known.map(|known| Group { series: unheard(known).collect(), ..Group::default() }));
    }

    /// Settles the series of some tickers, those that were answered and those that are only remembered.
    fn group(&mut self, told: &[Told], mut known: BTreeMap<SeriesKey, Memory>) -> Result<Group> {
        let _work = work!("settle tickers");
        let memories = told.iter().map(|one| known.remove(&one.key).unwrap_or_else(Memory::empty)).collect();
        let mut group = Group::default();
        let mut compared = Vec::with_capacity(told.len());
        for (one, heard) in told.iter().zip(self.heard(told, memories)?) {
            let listing = self.spool.listing(one);
            match heard {
                Heard::Rows(series, repeated) => {
                    compared.push((listing, series));
                    group.repeated.extend(repeated);
                }
                Heard::Listed(memory) => group.series.push((one.key.clone(), memory, listing)),
            }
        }
        let past = self.past(compared.iter().map(|(_, series)| series))?;
        let settle = |(listing, compared): (BTreeSet<Name>, Compared)| {
            let observed = past.get(compared.key()).map_or(&[][..], Vec::as_slice);
            (listing, compared.key().clone(), compared.settle(observed))
        };
        let settled = {
            let _work = work!("settle series");
            compared.into_par_iter().map(settle).collect::<Vec<_>>()
        };
        let failed = |error: ArrowError| Error::Settle { source: error.into() };
        let mut changed: Vec<Changes> = Vec::new();
        for (listing, key, settled) in settled {
            let Settled { changes, memory } = settled.map_err(failed)?;
            group.series.push((key, memory, listing));
            changed.extend(changes);
        }
        changed.iter().for_each(|changes| group.counts += counted(&changes.kinds));
        group.changes = written(changed).map_err(failed)?;
        group.series.extend(unheard(known));
        Ok(group)
    }

    /// What was heard of some series, each with what is remembered of it.
    fn heard(&mut self, told: &[Told], memories: Vec<Memory>) -> Result<Vec<Heard>> {
        self.spool.open(told)?;
        let spool = &self.spool;
        let heard = |(one, memory): (&Told, Memory)| {
            let _work = work!("compare series");
            Ok(match spool.said(one)? {
                Some((said, repeated)) => Heard::Rows(said.compare(memory), repeated),
                None => Heard::Listed(memory),
            })
        };
        told.par_iter().zip(memories).map(heard).collect()
    }

    /// The old rows that are needed.
    fn past<'c>(&mut self, compared: impl Iterator<Item = &'c Compared>) -> Result<Observed> {
        let mut needed: BTreeMap<(Table, &Ticker), HashMap<&SeriesKey, BTreeSet<Name>>> = BTreeMap::new();
        for one in compared {
            let runs = one.needed();
            if !runs.is_empty() {
                needed.entry((one.table(), &one.key().ticker)).or_default().insert(one.key(), runs);
            }
        }
        let mut observed = Observed::new();
        for (of, needed) in needed {
            self.past.read(of, &needed, &mut observed)?;
        }
        Ok(observed)
    }
}

/// Changes as rows of their tables, each table's in the order in which they are given.
fn written(changes: Vec<Changes>) -> Result<Vec<(Table, tables::Rows)>, ArrowError> {
    let mut by_table: BTreeMap<Table, Vec<Changes>> = BTreeMap::new();
    for changes in changes {
        if let Some(table) = Table::of(changes.key.source) {
            by_table.entry(table).or_default().push(changes);
        }
    }
    let mut pieces: Vec<(Table, Vec<Changes>)> = Vec::new();
    for (table, changes) in by_table {
        let mut rows = PIECE_ROWS;
        for changes in changes {
            if rows >= PIECE_ROWS {
                pieces.push((table, Vec::new()));
                rows = 0;
            }
            rows += changes.kinds.len();
            pieces.last_mut().expect("the first changes begin a piece").1.push(changes);
        }
    }
    let rows = |(table, changes): (Table, Vec<Changes>)| Ok((table, table.batch(&changes)?.into()));
    pieces.into_par_iter().map(rows).collect()
}

/// What is remembered of series that no answer lists.
fn unheard(known: BTreeMap<SeriesKey, Memory>) -> impl Iterator<Item = (SeriesKey, Memory, BTreeSet<Name>)> {
    known.into_iter().map(|(key, memory)| (key, memory, BTreeSet::new()))
}

/// The files of a run that is being sealed.
struct Writing<'a> {
    answered: &'a Answered,
    extent: Extent,
    tables: Tables,
    series: Rowfile,
    listings: Rowfile,
    counts: Counts,
    repeated: Vec<Repeated>,
}

impl<'a> Writing<'a> {
    fn begin(folder: &Path, extent: Extent, answered: &'a Answered) -> Result<Self> {
        Ok(Self {
            answered,
            extent,
            tables: Tables::create(folder)?,
            series: Rowfile::create(&folder.join(SERIES), remembered::schema(), 5)?,
            listings: Rowfile::create(&folder.join(LISTINGS), listings::schema(), 4)?,
            counts: Counts::default(),
            repeated: Vec::new(),
        })
    }

    fn write(&mut self, group: Group) -> Result<()> {
        self.repeated.extend(group.repeated);
        {
            let _work = work!("write changes");
            self.counts += group.counts;
            group.changes.into_iter().try_for_each(|(table, rows)| self.tables.write(table, &rows))?;
        }
        self.remember(group.series)
    }

    /// Writes down what the next run must know of some series.
    fn remember(&mut self, mut series: Vec<(SeriesKey, Memory, BTreeSet<Name>)>) -> Result<()> {
        let _work = work!("remember series");
        series.sort_by(|one, other| one.0.cmp(&other.0));
        let mut listings = Vec::new();
        for (key, memory, listing) in &mut series {
            listings.extend(memory.listed(key, std::mem::take(listing), self.answered));
        }
        for listing in &listings {
            match listing.change {
                Change::Withdrawn => self.counts.delisted += 1,
                Change::Added | Change::Revised => self.counts.listed += 1,
            }
        }
        if !listings.is_empty() {
            self.listings.write(listings::batch(&listings))?;
        }
        let memories = series.iter().map(|(key, memory, _)| (key, memory));
        self.series.write(remembered::batch(memories, self.extent))
    }

    fn finish(self) -> Result<(Vec<FileRecord>, Counts, Vec<Repeated>)> {
        let mut files = self.tables.finish()?;
        files.push(self.listings.finish()?);
        files.push(self.series.finish()?);
        Ok((files, self.counts, self.repeated))
    }
}

impl Memory {
    /// Takes note of which answers list the series now; what came of it.
    fn listed(&mut self, key: &SeriesKey, listing: BTreeSet<Name>, answered: &Answered) -> Vec<Listing> {
        let one = |request: &Name, change: Change| Listing {
            key: key.clone(),
            request: Arc::clone(request),
            change,
            observed_at: answered[request],
        };
        let gone = |request: &&Name| answered.contains_key(*request) && !listing.contains(*request);
        let mut changes: Vec<Listing> =
            self.requests.iter().filter(gone).map(|request| one(request, Change::Withdrawn)).collect();
        changes.extend(listing.difference(&self.requests).map(|request| one(request, Change::Added)));
        if !changes.is_empty() {
            self.requests.retain(|request| !answered.contains_key(request));
            self.requests.extend(listing);
            self.buckets.get_mut(&None).expect("every series has the bucket of what has no date").level = NEW;
        }
        changes
    }
}

/// The last of the next tickers that are settled at once; none at the end.
fn last_ticker(told: &[Told]) -> Option<&Ticker> {
    let last = whole_tickers(told).checked_sub(1)?;
    Some(&told[last].key.ticker)
}

/// How many of the next series are those of whole tickers, and enough.
fn whole_tickers(told: &[Told]) -> usize {
    let (first, others) = told.split_at(SERIES_AT_ONCE.min(told.len()));
    let Some(last) = first.last() else { return 0 };
    first.len() + others.iter().take_while(|series| series.key.ticker == last.key.ticker).count()
}

fn counted(kinds: &[Change]) -> Counts {
    let count = |kind: Change| kinds.iter().filter(|other| **other == kind).count() as u64;
    Counts {
        added: count(Change::Added),
        revised: count(Change::Revised),
        withdrawn: count(Change::Withdrawn),
        ..Counts::default()
    }
}

/// Writes the rejects of some answers, and some more.
pub(super) fn write_rejects(path: &Path, answers: &[Answer], more: &[(Reject, DateTime<Utc>)]) -> Result<FileRecord> {
    let mut out = Rowfile::create(path, Reject::schema(), 0)?;
    for answer in answers.iter().filter(|answer| answer.record.request.rejects > 0) {
        let Some(batches) = Batches::open(answer, Rows::Rejects, &mut Files::default())? else { continue };
        for index in 0..batches.count() {
            out.write(seen(&batches.get(index)?, answer.record.request.observed_at))?;
        }
    }
    for (reject, observed_at) in more {
        out.write(Reject::batch(std::slice::from_ref(reject)).and_then(|rows| seen(&rows, *observed_at)))?;
    }
    out.finish()
}

/// Rows with the instant at which they were seen.
fn seen(rows: &RecordBatch, observed_at: DateTime<Utc>) -> Result<RecordBatch, ArrowError> {
    let seen = std::iter::repeat_n(observed_at.timestamp_micros(), rows.num_rows());
    let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
    columns.push(Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")));
    RecordBatch::try_new(Reject::schema(), columns)
}

fn write_requests(path: &Path, answers: &[Answer]) -> Result<FileRecord> {
    let record = |AnswerRecord { request, oddities, .. }: &AnswerRecord| RequestRecord {
        unknown_fields: oddities.drift.clone(),
        ..request.clone()
    };
    let records: Vec<RequestRecord> = answers.iter().map(|answer| record(&answer.record)).collect();
    let mut out = Rowfile::create(path, RequestRecord::schema(), 0)?;
    out.write(RequestRecord::batch(&records))?;
    out.finish()
}
