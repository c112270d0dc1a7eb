//! What was known as of an instant: the latest value of every cell in the runs sealed by then, or the first.
//!
//! A view filters rows by `sealed_at` and folds the observations of each cell. It reads the archive a few whole tickers
//! at a time; articles a few whole dates at a time, unless all articles of a ticker are needed at once.
//!
//! The series of a dataset are those that its requests have listed, in a `Scope`.
//!
//! A ticker is in the sectors whose requests list it; the first by name counts, and once none lists it any more, the one
//! that did so last. Only the requests of the scope count, so that a listing that nobody asks for any more does not keep a
//! ticker in its old sector; a scope without requests for sectors takes those of all definitions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};
use chrono::{DateTime, Utc};

use super::fold::cells::{Cells, Revision};
use super::fold::histories::{EVER, FoldedObservations, Histories, StoredObservations};
use super::fold::merged::{Merged, Portion};
use super::merge_failed;
use super::sealed::answers::{LISTINGS, Listing, Listings, Name, read_listings};
use super::sealed::by_ticker::{Bound, Cuts};
use super::sealed::catalog::Archive;
use super::sealed::folder::Folder;
use super::sealed::rows::{self, are_added};
use super::sealed::sealed_run::SealedRun;
use super::upkeep::open_merged_part;
use crate::archive::sealed::seal::{CountedShare, Horizon};
use crate::error::Result;
use crate::interface::{Endpoint, Sector, Ticker};
use crate::plan::{Filter, Plan, Request, TickerSource, Vintage};
use crate::process::cancel::CancellationToken;
use crate::process::trace::work;
use crate::tables::{ArticlePieces, Change, Pieces, SeriesKey, Slab, Table};
use crate::text::human::count_of;
use crate::time::to_record;

/// The most articles of a slab to hold in memory.
const HELD_ARTICLES: usize = 1 << 17;

/// An archive as of an instant: what the runs say that were sealed by then.
#[derive(Clone, Debug)]
pub struct View {
    archive: Archive,
    horizon: Horizon,
    /// Read once, on first use.
    listings: Arc<OnceLock<Listings>>,
}

impl View {
    /// A view of an archive as of an instant.
    pub fn of(archive: Archive, as_of: DateTime<Utc>) -> Self {
        Self { horizon: archive.horizon(as_of), archive, listings: Arc::default() }
    }

    /// The same view, of some runs alone.
    pub(crate) fn of_runs(self, is_known: impl Fn(&str) -> bool) -> Result<Self> {
        let (known, others): (Vec<_>, Vec<_>) = self.archive.runs().iter().partition(|run| is_known(run.name()));
        let instants = |runs: Vec<&SealedRun>| -> BTreeSet<i64> {
            runs.into_iter().map(|run| run.seal().sealed_at.timestamp_micros()).collect()
        };
        let horizon = self.horizon.without(&instants(others) - &instants(known));
        Ok(Self { archive: open_merged_part(&self.archive, is_known)?, horizon, listings: Arc::default() })
    }

    /// The same view, read until a token is cancelled.
    pub(crate) fn until(&self, stop: &CancellationToken) -> Self {
        Self { archive: self.archive.clone().until(stop), ..self.clone() }
    }

    /// When runs were sealed that do not count although they were sealed by the instant, in order.
    pub(crate) fn left_out(&self) -> Vec<DateTime<Utc>> {
        self.horizon.left_out().filter_map(DateTime::from_timestamp_micros).collect()
    }

    /// Notes on the runs that do not count, and on claims that do.
    pub(crate) fn notes_on_runs(&self) -> Vec<String> {
        let claims: Vec<DateTime<Utc>> =
            self.runs().filter(|run| run.is_claimed()).map(|run| run.seal().started_at).collect();
        let mut notes: Vec<String> = self.archive.forgotten_runs().map(ToString::to_string).collect();
        if let (Some(first), Some(last)) = (claims.first(), claims.last()) {
            let count = count_of(claims.len() as u64, "claim counts", "claims count");
            let [first, last] = [first, last].map(|instant| to_record(*instant));
            notes.push(format!("{count} that nobody witnessed, of {first} to {last}"));
        }
        notes
    }

    /// The instant.
    pub fn as_of(&self) -> DateTime<Utc> {
        self.horizon.as_of()
    }

    /// The archive.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The runs sealed by then, in the order in which they were sealed.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &SealedRun> {
        self.archive.runs().iter().filter(|run| self.horizon.holds(run.seal().sealed_at))
    }

    /// Whether a run that was sealed at an instant counts.
    pub(super) fn counts(&self, sealed_at: DateTime<Utc>) -> bool {
        self.horizon.holds(sealed_at)
    }

    /// The runs that count.
    pub(super) fn horizon(&self) -> &Horizon {
        &self.horizon
    }

    /// The folders with rows that count.
    pub(super) fn folders(&self) -> Vec<&Arc<Folder>> {
        let counts = |folder: &&Arc<Folder>| self.horizon.share(folder.seal()) != CountedShare::None;
        self.archive.read().iter().filter(counts).collect()
    }

    /// Fingerprint of the view's contents: the digests of each run's observations and listings. Views with the same
    /// fingerprint have the same contents, however the runs are packed and merged.
    pub fn drawn_from(&self) -> Vec<String> {
        let files = || Table::ALL.into_iter().map(Table::file).chain([LISTINGS.to_owned()]);
        let of_run = |run: &SealedRun| -> Vec<String> {
            let changed = files().filter_map(|name| run.seal().file(&name).cloned()).filter(|file| file.rows > 0);
            changed.map(|file| format!("{} {} {}", run.name(), file.name, file.blake3)).collect()
        };
        self.runs().flat_map(of_run).collect()
    }

    /// The operations that gave signals.
    pub(crate) fn operations(&self) -> BTreeSet<Endpoint> {
        let operations = self.runs().flat_map(|run| run.seal().operations.iter().copied());
        operations.filter(|operation| Table::of(*operation) == Some(Table::Signals)).collect()
    }

    /// The listings as of the instant.
    pub(super) fn listings(&self) -> Result<&Listings> {
        if let Some(listings) = self.listings.get() {
            return Ok(listings);
        }
        let listings = Listings::of(self.archive.read(), &self.horizon)?;
        Ok(self.listings.get_or_init(|| listings))
    }

    /// The operations whose answers listed some series.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn sources_of(&self, series: &HashSet<SeriesKey>) -> Result<BTreeSet<Endpoint>> {
        let listed = self.listings()?.series().filter(|(key, _)| series.contains(*key));
        Ok(listed.flat_map(|(_, events)| events.iter().map(|event| event.source)).collect())
    }

    /// When one of some requests was last answered after an instant; `None` if none was.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn last_answered(&self, requests: &BTreeSet<String>, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        for run in self.runs().rev().take_while(|run| run.seal().sealed_at > after) {
            let answered = run.requests()?.into_iter().filter(|record| requests.contains(&record.request));
            let instants = answered.map(|record| record.observed_at);
            if let Some(last) = instants.filter(|&seen| seen > after).max() {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    /// Whether all of some requests were answered after an instant. Those of a run of a definition count as all: it asked for
    /// the others, which had no answer.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn are_all_answered(&self, requests: &BTreeSet<String>, after: DateTime<Utc>, of: &str) -> Result<bool> {
        let mut unanswered: BTreeSet<&str> = requests.iter().map(String::as_str).collect();
        for run in self.runs().rev().take_while(|run| run.seal().sealed_at > after) {
            let is_own = run.seal().definition.as_ref().is_some_and(|by| by.name == of);
            for record in run.requests()?.into_iter().filter(|record| record.observed_at > after) {
                let is_one = unanswered.remove(record.request.as_str());
                if is_one && is_own {
                    return Ok(true);
                }
            }
        }
        Ok(unanswered.is_empty())
    }

    /// The observations of a table's cells up to the view's instant, a few whole tickers at a time. The articles of a ticker
    /// may come in several pieces, of whole dates each.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn observations(&self, table: Table) -> Result<impl Iterator<Item = Result<StoredObservations>> + use<>> {
        self.observations_in(table, Cuts::of_cells(table))
    }

    /// The same, with all articles of a ticker in one piece.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn whole_observations(&self, table: Table) -> Result<impl Iterator<Item = Result<StoredObservations>> + use<>> {
        self.observations_in(table, Cuts::Tickers)
    }

    fn observations_in(
        &self,
        table: Table,
        cuts: Cuts,
    ) -> Result<impl Iterator<Item = Result<StoredObservations>> + use<>> {
        let mut merged = self.merge(table)?;
        let next = move || merged.next(cuts).transpose();
        Ok(std::iter::from_fn(next).map(move |piece| Ok(StoredObservations::of(table, piece?.batches))))
    }

    /// The known cells of a table in order, piece by piece, in the columns of [`Table::known_schema`]. The articles of a
    /// ticker may come in several pieces.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn cells(
        &self,
        table: Table,
        vintage: Vintage,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        self.known_cells(table, Revision::OfValue, vintage)
    }

    /// The known articles, as [`View::cells`] gives them, with the revisions of their own: not those that only moved an
    /// article in its list.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn known_articles(&self, vintage: Vintage) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        self.known_cells(Table::Articles, Revision::OfContent, vintage)
    }

    fn known_cells(
        &self,
        table: Table,
        revision: Revision,
        vintage: Vintage,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let mut merged = self.merge(table)?;
        let view = self.clone();
        Ok(std::iter::from_fn(move || {
            let piece = merged.next(Cuts::of_cells(table)).transpose()?;
            Some(piece.and_then(|piece| view.fold(table, &piece.batches)?.known_rows(EVER, revision, vintage)))
        }))
    }

    /// The values of the signals over time, a few whole tickers at a time, in the columns of [`Slab::news_schema`].
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn signals_over_time(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let mut merged = self.merge(Table::Signals)?;
        let view = self.clone();
        Ok(std::iter::from_fn(move || {
            let piece = merged.next(Cuts::Tickers).transpose()?;
            Some(piece.and_then(|piece| view.spans(Table::Signals, &piece)))
        }))
    }

    /// The signals of some series and the news of their tickers, slab by slab, in ticker order.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn slabs(&self, scope: &Scope, vintage: Vintage) -> Result<impl Iterator<Item = Result<Slab>> + use<>> {
        self.slabs_of(self.members(scope)?, scope, vintage)
    }

    /// The signals of some series of a scope and the news of their tickers, likewise.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn slabs_of(
        &self,
        series: HashSet<SeriesKey>,
        scope: &Scope,
        vintage: Vintage,
    ) -> Result<impl Iterator<Item = Result<Slab>> + use<>> {
        Ok(self.observed_slabs(series, scope, vintage)?.map(|observed| Ok(observed?.slab)))
    }

    /// Slabs with the observations that their signals are known by.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened.
    pub fn observed_slabs(
        &self,
        members: HashSet<SeriesKey>,
        scope: &Scope,
        vintage: Vintage,
    ) -> Result<impl Iterator<Item = Result<ObservedSlab>> + use<>> {
        let asked = Arc::new(self.news_tickers(scope)?);
        let watched = Arc::new(self.watched_tickers(scope)?);
        let mut signals = self.merge(Table::Signals)?;
        let mut articles = self.news(Table::Articles)?;
        let [mut summaries, mut records] = [self.news(Table::Summaries)?, self.news(Table::SentimentHistory)?];
        let view = self.clone();
        let mut begin = None;
        let mut slab = move || -> Result<Option<ObservedSlab>> {
            let _work = work!("read slab");
            let Some(tickers) = signals.next(Cuts::Tickers)? else { return Ok(None) };
            let observed = view.fold(Table::Signals, &tickers.batches)?;
            let signals = observed.known_rows(EVER, Revision::OfValue, vintage)?;
            let (mut held, mut rows) = (Vec::new(), 0);
            while let Some(piece) = articles.next_until(&tickers.end, Cuts::Dates)? {
                if rows <= HELD_ARTICLES {
                    let spans = of_tickers(&asked, view.spans(Table::Articles, &piece)?)?;
                    rows += spans.num_rows();
                    held.push(spans);
                }
            }
            let range = (begin.replace(tickers.end.clone()), tickers.end);
            let whole = |table: Table, merged: &mut Merged| -> Result<RecordBatch> {
                let mut pieces = Vec::new();
                while let Some(piece) = merged.next_until(&range.1, Cuts::Tickers)? {
                    pieces.push(of_tickers(&asked, view.spans(table, &piece)?)?);
                }
                concat_batches(&Slab::news_schema(table), &pieces).map_err(merge_failed)
            };
            let summaries = whole(Table::Summaries, &mut summaries)?;
            let records = whole(Table::SentimentHistory, &mut records)?;
            let articles = if rows <= HELD_ARTICLES {
                ArticlePieces::in_memory(held)
            } else {
                let (view, asked) = (view.clone(), Arc::clone(&asked));
                let stored = ArticlePieces::on_disk(move || view.articles_between(&range.0, range.1.clone()));
                stored.map(move |piece| of_tickers(&asked, piece))
            };
            let watched = Arc::clone(&watched);
            let signals = usable(&signals, &members)?;
            let slab = Slab { signals, articles, summaries, records, watched };
            Ok(Some(ObservedSlab { slab, signals: FoldedObservations(observed) }))
        };
        Ok(std::iter::from_fn(move || slab().transpose()))
    }

    /// The values of the articles between two cuts over time.
    fn articles_between(&self, begin: &Option<Bound>, end: Bound) -> Result<Pieces> {
        let mut articles = self.news(Table::Articles)?;
        if let Some(begin) = begin {
            articles.pass_over(begin)?;
        }
        let view = self.clone();
        let spans = move |piece: Portion| view.spans(Table::Articles, &piece);
        let mut next = move || articles.next_until(&end, Cuts::Dates)?.map(&spans).transpose();
        Ok(Box::new(std::iter::from_fn(move || next().transpose())))
    }

    pub(super) fn merge(&self, table: Table) -> Result<Merged> {
        Merged::open(table, &self.folders(), &self.horizon)
    }

    /// A table of news, with only the columns that a slab needs.
    fn news(&self, table: Table) -> Result<Merged> {
        let merged = self.merge(table)?;
        // Texts identify cells and are most of the bytes. If each row is a cell of its own, they are not needed.
        if !self.is_of_one_run(table) || !merged.are_added() {
            return Ok(merged);
        }
        let schema = Slab::news_schema(table);
        Ok(merged.narrow_to(|name| ["change", "observed_at"].contains(&name) || schema.index_of(name).is_ok()))
    }

    /// The cells of some batches, each sorted.
    pub(super) fn fold(&self, table: Table, batches: &[RecordBatch]) -> Result<Cells> {
        self.fold_columns(table, batches, |_| true)
    }

    /// The same with some of the columns. A run observes a cell once, and nearly all of what one run has is
    /// added.
    fn fold_columns(&self, table: Table, batches: &[RecordBatch], is_kept: impl Fn(&str) -> bool) -> Result<Cells> {
        let cells = match batches {
            [only] if self.is_of_one_run(table) && are_added(only) => Cells::observed_once(table, only.clone()),
            batches => Cells::with_columns(table, batches, is_kept),
        };
        cells.map_err(merge_failed)
    }

    /// Every value of the cells of a portion, and from when to when it was current.
    fn spans(&self, table: Table, portion: &Portion) -> Result<RecordBatch> {
        let schema = Slab::news_schema(table);
        let is_kept = |name: &str| !table.identity().contains(&name) || schema.index_of(name).is_ok();
        self.fold_columns(table, &portion.batches, is_kept)?.spans_of(EVER)
    }

    /// Whether only one run has rows of a table.
    fn is_of_one_run(&self, table: Table) -> bool {
        let mut folders = self.folders().into_iter().filter(|folder| folder.seal().rows(&table.file()) > 0);
        let (Some(folder), None) = (folders.next(), folders.next()) else { return false };
        !folder.seal().is_pack() && !folder.seal().is_merge()
    }
}

/// A slab, and the observations of its signals.
pub struct ObservedSlab {
    /// The slab.
    pub slab: Slab,
    signals: FoldedObservations,
}

impl ObservedSlab {
    /// The histories of its signals, of all series of its tickers.
    ///
    /// # Errors
    ///
    /// If the observations cannot be grouped.
    pub fn histories(&self) -> Result<Histories> {
        self.signals.histories()
    }
}

/// The rows of some tickers among others, which are sorted by ticker.
fn of_tickers(wanted: &BTreeSet<Ticker>, rows: RecordBatch) -> Result<RecordBatch> {
    let tickers = rows.column(0).as_dictionary::<Int32Type>();
    let names = tickers.values().as_string::<i32>().iter();
    let is_wanted: Vec<bool> = names
        .map(|name| name.and_then(|name| name.parse().ok()).is_some_and(|ticker| wanted.contains(&ticker)))
        .collect();
    if is_wanted.iter().all(|is_wanted| *is_wanted) {
        return Ok(rows);
    }
    let is_kept: BooleanArray = tickers.keys().values().iter().map(|key| Some(is_wanted[*key as usize])).collect();
    filter_record_batch(&rows, &is_kept).map_err(merge_failed)
}

/// The signals of some series that have a date.
fn usable(signals: &RecordBatch, members: &HashSet<SeriesKey>) -> Result<RecordBatch> {
    let ranges = rows::ranges(Table::Signals, signals).map_err(merge_failed)?;
    let kept: Vec<_> = ranges.iter().filter(|(key, _)| members.contains(key)).map(|(_, range)| range).collect();
    let dated = if kept.len() == ranges.len() {
        signals.clone()
    } else {
        let pieces: Vec<RecordBatch> = kept.iter().map(|range| signals.slice(range.start, range.len())).collect();
        concat_batches(signals.schema_ref(), &pieces).map_err(merge_failed)?
    };
    let dates = dated.column_by_name("date").expect("signals have dates").as_primitive::<TimestampMicrosecondType>();
    if dates.null_count() == 0 {
        return Ok(dated);
    }
    let has_date: BooleanArray = dates.iter().map(|date| Some(date.is_some())).collect();
    filter_record_batch(&dated, &has_date).map_err(merge_failed)
}

/// A selection of signal series.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The operation that returned them.
    pub source: Endpoint,
    /// The requests, as text, that have listed them.
    pub requests: BTreeSet<String>,
    /// The tickers that do not count, whatever lists them.
    pub excluded: BTreeSet<Ticker>,
    /// A filter on these.
    pub filter: Filter,
    /// The tickers whose news is asked for.
    pub news: TickerSource,
}

impl Scope {
    /// The series of a plan, by the operation and the requests that list them.
    pub fn of(plan: &Plan, source: Endpoint, mut requests: BTreeSet<String>) -> Self {
        requests.extend(plan.further.iter().map(Request::to_string));
        let (excluded, filter, news) = (plan.excluded.clone(), plan.dataset.filter.clone(), plan.news_tickers.clone());
        Self { source, requests, excluded, filter, news }
    }

    /// The series of all its requests, without the filter.
    #[must_use]
    pub fn without_filter(&self) -> Self {
        Self { filter: Filter::default(), ..self.clone() }
    }

    /// Whether the listings of a request tell sectors.
    fn counts_for_sectors(&self, request: &str) -> bool {
        self.requests.contains(request) || self.requests.iter().all(|own| Request::sector_of(own).is_none())
    }
}

impl View {
    /// The signal series in a scope: those that its requests have listed and that pass the filter, including those delisted
    /// since, whatever other requests list them now: what other definitions ask for must not take a ticker's past away.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn members(&self, scope: &Scope) -> Result<HashSet<SeriesKey>> {
        let listings = self.listings()?;
        let tickers = scope.filter.sectors.as_ref().map(|sectors| {
            let is_of_sector = |request: &str| {
                let sector = Request::sector_of(request);
                sector.is_some_and(|sector| sectors.iter().any(|wanted| wanted.as_str() == sector))
            };
            let by_sector = |events: &[Listing]| {
                let of_any = events.iter().filter(|event| Request::sector_of(&event.request).is_some());
                listed_last_by(of_any, is_of_sector)
            };
            let of_sectors = listings.series().filter(|(_, events)| by_sector(events));
            of_sectors.map(|(key, _)| &key.ticker).collect::<BTreeSet<&Ticker>>()
        });
        let is_own = |event: &Listing| scope.requests.contains(&*event.request);
        let is_member = |(key, events): &(&SeriesKey, &[Listing])| {
            key.table == Table::of(scope.source)
                && !scope.excluded.contains(&key.ticker)
                && scope.filter.takes(&key.ticker, key.period, key.regime)
                && tickers.as_ref().is_none_or(|tickers| tickers.contains(&key.ticker))
                && events.iter().any(is_own)
        };
        Ok(listings.series().filter(is_member).map(|(key, _)| key.clone()).collect())
    }

    /// The tickers that some requests have listed.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn tickers_listed_by(&self, requests: &BTreeSet<String>) -> Result<BTreeSet<Ticker>> {
        let is_listed = |events: &[Listing]| events.iter().any(|event| requests.contains(&*event.request));
        let listed = self.listings()?.series().filter(|(_, events)| is_listed(events));
        Ok(listed.map(|(key, _)| key.ticker.clone()).collect())
    }

    /// The series that the latest answer to each of some requests listed; a request that listed none has no entry.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn listing(&self, requests: &BTreeSet<String>) -> Result<BTreeMap<String, BTreeSet<SeriesKey>>> {
        let mut found: BTreeMap<String, BTreeSet<SeriesKey>> = BTreeMap::new();
        for (key, events) in self.listings()?.series() {
            let is_listed = |event: &&Listing| event.change == Change::Added && requests.contains(&*event.request);
            for event in events.iter().filter(is_listed) {
                found.entry(event.request.to_string()).or_default().insert(key.clone());
            }
        }
        Ok(found)
    }

    /// The sector of each ticker that a sector request lists, or listed last; the first by name if there are several. A
    /// scope that asks for sectors counts its own requests only.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn sectors(&self, scope: Option<&Scope>) -> Result<HashMap<Ticker, Sector>> {
        let first = |(ticker, sectors): (Ticker, BTreeSet<Sector>)| Some((ticker, sectors.into_iter().next()?));
        Ok(self.all_sectors(scope)?.into_iter().filter_map(first).collect())
    }

    /// All sectors of each ticker, likewise; the last one if none lists it any more.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub fn all_sectors(&self, scope: Option<&Scope>) -> Result<HashMap<Ticker, BTreeSet<Sector>>> {
        let mut sectors: HashMap<Ticker, BTreeSet<Sector>> = HashMap::new();
        let mut last: HashMap<&Ticker, (DateTime<Utc>, Reverse<Sector>)> = HashMap::new();
        let all = self.listings()?.series().flat_map(|(_, events)| events);
        for Listing { key, request, change, observed_at, .. } in
            all.filter(|listing| scope.is_none_or(|scope| scope.counts_for_sectors(&listing.request)))
        {
            let Some(sector) = Request::sector_of(request).and_then(|name| name.parse::<Sector>().ok()) else {
                continue;
            };
            if *change == Change::Added {
                sectors.entry(key.ticker.clone()).or_default().insert(sector);
            } else {
                let delisted = (*observed_at, Reverse(sector));
                let known = last.entry(&key.ticker).or_insert_with(|| delisted.clone());
                *known = delisted.max(known.clone());
            }
        }
        for (ticker, (_, Reverse(sector))) in last {
            sectors.entry(ticker.clone()).or_insert_with(|| [sector].into());
        }
        Ok(sectors)
    }

    /// The sectors of each ticker, each with the instant from which on it counts.
    pub(super) fn sectors_over_time(&self, scope: &Scope) -> Result<HashMap<Ticker, Vec<(i64, Sector)>>> {
        let mut of_tickers: HashMap<Ticker, Vec<(Sector, Listing)>> = HashMap::new();
        for listing in read_listings(self.archive().read())? {
            if !scope.counts_for_sectors(&listing.request) || !self.counts(listing.sealed_at) {
                continue;
            }
            if let Some(sector) = Request::sector_of(&listing.request).and_then(|name| name.parse::<Sector>().ok()) {
                of_tickers.entry(listing.key.ticker.clone()).or_default().push((sector, listing));
            }
        }
        Ok(of_tickers.into_iter().map(|(ticker, listings)| (ticker, steps(listings))).collect())
    }

    /// The sectors that some tickers are in, or were in.
    pub(crate) fn sectors_ever(&self, scope: &Scope, tickers: &HashSet<Ticker>) -> Result<BTreeSet<Sector>> {
        let over_time = self.sectors_over_time(scope)?.into_iter().filter(|(ticker, _)| tickers.contains(ticker));
        Ok(over_time.flat_map(|(_, steps)| steps).map(|(_, sector)| sector).collect())
    }
}

/// Whether an answer of another operation shows that the series of an operation were still watched.
pub(crate) fn watches(source: Endpoint, other: Endpoint) -> bool {
    other == source || (Table::of(other) == Table::of(source) && !other.is_latest())
}

/// Whether a request of some kind lists the series, or listed it last if none does any more.
fn listed_last_by<'e>(events: impl Iterator<Item = &'e Listing> + Clone, is_wanted: impl Fn(&str) -> bool) -> bool {
    let is_listed = events.clone().any(|event| event.change == Change::Added);
    let latest = events.clone().map(|event| event.observed_at).max();
    let is_last = |event: &&Listing| {
        if is_listed { event.change == Change::Added } else { Some(event.observed_at) == latest }
    };
    let mut last = events.filter(is_last);
    last.any(|event| is_wanted(&event.request))
}

/// The sectors that some listings of a ticker stand for.
fn steps(mut listings: Vec<(Sector, Listing)>) -> Vec<(i64, Sector)> {
    /// The latest listing by a request.
    type State = BTreeMap<(SeriesKey, Name), (DateTime<Utc>, Change, Sector)>;
    let current = |state: &State| -> Option<Sector> {
        let listing = state.values().filter(|(_, change, _)| *change == Change::Added).map(|(.., sector)| sector);
        let last = || state.values().max_by_key(|(at, _, sector)| (*at, Reverse(sector))).map(|(.., sector)| sector);
        listing.min().or_else(last).cloned()
    };
    listings.sort_by_key(|(_, listing)| listing.sealed_at);
    let (mut state, mut steps): (State, Vec<(i64, Sector)>) = (BTreeMap::new(), Vec::new());
    for of_run in listings.chunk_by(|one, next| one.1.sealed_at == next.1.sealed_at) {
        for (sector, listing) in of_run {
            let key = (listing.key.clone(), Name::clone(&listing.request));
            let said = (listing.observed_at, listing.change, sector.clone());
            let known = state.entry(key).or_insert_with(|| said.clone());
            if (known.0, known.1 as i8) <= (said.0, said.1 as i8) {
                *known = said;
            }
        }
        let sector = current(&state).expect("something was listed");
        if steps.last().is_none_or(|(_, before)| *before != sector) {
            steps.push((of_run[0].1.sealed_at.timestamp_micros(), sector));
        }
    }
    steps
}
