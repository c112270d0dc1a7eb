//! The basis of a dataset: a document of everything that determines its rows, its files and its facts.
//!
//! A version whose basis has the same digest as the one before reuses its files. So the document is declared here, value by
//! value and in the spellings of definitions, and does not follow the names of types and fields. It has the definition's
//! text, which is in Parquet files, and what the definition means once defaults and the options of a build are applied.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate};
use serde::Serialize;

use super::builder::Builder;
use super::names::in_words;
use crate::archive::Scope;
use crate::disk::digest;
use crate::error::Result;
use crate::interface::Ticker;
use crate::plan::{Codec, Column, DatasetPlan, Feature, FilesPlan, Filter, FormulaGuard, Plan, RowKind, Shape};
use crate::time::to_record;

/// The version of the document. Raise it when the same document would stand for other rows, files or facts than before: when
/// a rule of the dataset or the form of a file changes and no value here does. A release need not: the document names the
/// version of the program, as the files do. A field that is added or spelled in another way makes another document anyway.
const VERSION: u32 = 3;

/// What writes the files.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Writer {
    /// This program.
    Program,
    /// A Spark cluster, which splits files in other places.
    #[cfg(feature = "spark")]
    Spark,
}

/// The document.
#[derive(Debug, Serialize)]
struct Basis<'a> {
    version: u32,
    /// The version of the program.
    bellwether: &'static str,
    writer: Writer,
    name: &'a str,
    definition: &'a str,
    service: &'a str,
    /// The operation that gave the signals.
    source: String,
    /// The requests whose answers list its series.
    requests: &'a BTreeSet<String>,
    /// The tickers that do not count.
    excluded: Vec<String>,
    /// When the news that features are computed from was watched, by ticker.
    watched: BTreeMap<String, WatchedBasis>,
    dataset: DatasetBasis<'a>,
    files: FilesBasis,
    /// The files of the archive: the run, the name and the digest of each.
    observations: &'a [String],
}

/// When the news of a ticker was watched; null where that makes no difference.
#[derive(Debug, Serialize)]
struct WatchedBasis {
    from: Option<String>,
    until: Option<String>,
}

/// The rows and their columns.
#[derive(Debug, Serialize)]
struct DatasetBasis<'a> {
    rows: &'static str,
    dates: String,
    made_at: Option<String>,
    news_delay_secs: u64,
    /// The digest of the calendar; null for Monday to Friday.
    calendar: &'a str,
    /// The digest of the names that ids come from; null without a column of ids.
    identity: Option<&'a str>,
    trade_at: String,
    lag: String,
    availability: String,
    duplicates: String,
    complete: bool,
    features: Vec<String>,
    /// The other columns that are built.
    columns: Vec<&'static str>,
    /// The columns that are written, each by its own name and by the one that it has there.
    written: Vec<[&'a str; 2]>,
    sort: Vec<&'static str>,
    filter: FilterBasis,
    vintage: String,
    live_within: String,
    /// The lag of entries, in sessions, and the digests of the prices, if there are any.
    entry_lag: u32,
    prices: Vec<String>,
    /// The columns that are matrices; null if the dataset is long.
    matrices: Option<&'a [String]>,
}

/// What is selected; null for all.
#[derive(Debug, Serialize)]
struct FilterBasis {
    tickers: Option<Vec<String>>,
    sectors: Option<Vec<String>>,
    periods: Option<Vec<String>>,
    regimes: Option<Vec<String>>,
    pairs: Option<Vec<String>>,
    signals: Option<Vec<String>>,
    min_confidence: Option<String>,
    from: Option<String>,
    to: Option<String>,
    /// The digest of the file of members.
    universe: Option<String>,
}

/// The files.
#[derive(Debug, Serialize)]
struct FilesBasis {
    formats: Vec<String>,
    compression: String,
    row_group_rows: usize,
    partition_by: Vec<&'static str>,
    index: Vec<&'static str>,
    csv_guard: bool,
}

impl Builder<'_> {
    /// The digest of the basis of the dataset.
    pub(super) fn basis(&self, writer: Writer) -> Result<String> {
        let mut observations = self.view.drawn_from();
        if self.plan.dataset.columns.contains(&Column::WatchedUntil) {
            let series = self.view.watched_series(self.scope)?.into_iter();
            let mut watched: Vec<String> =
                series.map(|(key, watch)| format!("{} until {}", in_words(&key), watch.until)).collect();
            watched.sort_unstable();
            observations.append(&mut watched);
        }
        let mut basis = Basis::of(self.plan, self.scope, &observations, writer);
        if let Some(prices) = self.prices(&self.plan.dataset)? {
            basis.dataset.prices = prices.summary.files.into_iter().map(|file| file.blake3).collect();
        }
        if !self.plan.dataset.features.is_empty() {
            basis.watched = self.watched_lists()?;
        }
        Ok(digest::of(&serde_json::to_vec(&basis).expect("it has only texts and numbers")))
    }

    fn watched_lists(&self) -> Result<BTreeMap<String, WatchedBasis>> {
        let (asked, watched) = (self.view.news_tickers(self.scope)?, self.view.watched_tickers(self.scope)?);
        let instant = |micros: i64| DateTime::from_timestamp_micros(micros).map(to_record);
        let of_ticker = |ticker: Ticker| {
            let watched = watched.get(&ticker);
            let from = watched.and_then(|watched| instant(watched.from));
            let until = watched.and_then(|watched| instant(watched.until?));
            (ticker.to_string(), WatchedBasis { from, until })
        };
        Ok(asked.into_iter().map(of_ticker).collect())
    }
}

impl<'a> Basis<'a> {
    fn of(plan: &'a Plan, scope: &'a Scope, observations: &'a [String], writer: Writer) -> Self {
        // Every field is listed, so that a new one is not forgotten.
        let Plan {
            name,
            text,
            service,
            dataset,
            files,
            // They determine what is archived, not what is built from it.
            source: _,
            names_service: _,
            address_variables: _,
            excluded: _,
            alternatives: _,
            further: _,
            of_each_ticker: _,
            news_tickers: _,
            limits: _,
            max_reject_share: _,
            keep_extra: _,
            // They are among the observations, and the rows have a column.
            claims: _,
            // They decide whether and when something is built, and what happens with it.
            checks: _,
            schedule: _,
            store: _,
            hooks: _,
            // They are not in the files.
            description: _,
            license: _,
            path: _,
            root: _,
            prices: _,
            conventions: _,
            author: _,
        } = plan;
        // The filter is part of the plan.
        let Scope { source, requests, excluded, filter: _, news: _ } = scope;
        Self {
            version: VERSION,
            bellwether: env!("CARGO_PKG_VERSION"),
            writer,
            name,
            definition: text,
            service: &service.name,
            source: source.to_string(),
            requests,
            excluded: excluded.iter().map(Ticker::to_string).collect(),
            watched: BTreeMap::new(),
            dataset: DatasetBasis::of(dataset),
            files: FilesBasis::of(files),
            observations,
        }
    }
}

impl<'a> DatasetBasis<'a> {
    fn of(plan: &'a DatasetPlan) -> Self {
        let DatasetPlan {
            rows,
            dates,
            made_at,
            news_delay,
            sessions,
            identity,
            trade_at,
            lag,
            availability,
            duplicates,
            are_lists_complete,
            features,
            columns,
            // It follows from the columns and features.
            schema: _,
            written,
            sort,
            // Rows are in the same order wherever they are sorted.
            sort_memory: _,
            filter,
            vintage,
            live_within,
            shape,
            labels,
        } = plan;
        let names = written.schema().fields().iter().map(|field| field.name().as_str());
        Self {
            rows: match rows {
                RowKind::Signal => "signals",
                RowKind::Article => "articles",
                RowKind::Observation => "observations",
            },
            dates: dates.to_string(),
            made_at: made_at.map(|made_at| made_at.to_string()),
            news_delay_secs: news_delay.as_secs(),
            calendar: sessions.digest(),
            identity: identity.digest().filter(|_| columns.contains(&Column::Id)),
            trade_at: trade_at.to_string(),
            lag: lag.to_string(),
            availability: availability.to_string(),
            duplicates: duplicates.to_string(),
            complete: *are_lists_complete,
            features: features.iter().map(Feature::to_string).collect(),
            columns: columns.iter().map(|column| column.name()).collect(),
            written: names.map(|name| [written.names().own(name), name]).collect(),
            sort: sort.iter().map(|column| column.name()).collect(),
            filter: FilterBasis::of(filter),
            vintage: vintage.to_string(),
            live_within: live_within.to_string(),
            entry_lag: labels.lag,
            prices: Vec::new(),
            matrices: match shape {
                Shape::Long => None,
                Shape::Wide(values) => Some(values),
            },
        }
    }
}

impl FilterBasis {
    fn of(filter: &Filter) -> Self {
        fn texts<T: ToString>(values: &Option<BTreeSet<T>>) -> Option<Vec<String>> {
            values.as_ref().map(|values| values.iter().map(T::to_string).collect())
        }
        let Filter { tickers, sectors, periods, regimes, pairs, signals, min_confidence, from, to, universe } = filter;
        Self {
            tickers: texts(tickers),
            sectors: texts(sectors),
            periods: texts(periods),
            regimes: texts(regimes),
            pairs: pairs
                .as_ref()
                .map(|pairs| pairs.iter().map(|(period, regime)| format!("{period} {regime}")).collect()),
            signals: texts(signals),
            min_confidence: min_confidence.map(|least| least.to_string()),
            from: from.as_ref().map(NaiveDate::to_string),
            to: to.as_ref().map(NaiveDate::to_string),
            universe: universe.as_ref().map(|universe| universe.digest().to_owned()),
        }
    }
}

impl FilesBasis {
    fn of(plan: &FilesPlan) -> Self {
        // The files do not depend on how many versions are kept.
        let FilesPlan { formats, codec, row_group_rows, partition_by, index, guard, keep: _, report: _ } = plan;
        Self {
            formats: formats.iter().map(|format| format.to_string()).collect(),
            compression: match codec {
                Codec::Zstd(level) => format!("zstd {level}"),
                Codec::Snappy => "snappy".to_owned(),
                Codec::None => "none".to_owned(),
            },
            row_group_rows: *row_group_rows,
            partition_by: partition_by.iter().map(|column| column.name()).collect(),
            index: index.iter().map(|column| column.name()).collect(),
            csv_guard: *guard == FormulaGuard::Formulas,
        }
    }
}

#[cfg(test)]
mod tests;
