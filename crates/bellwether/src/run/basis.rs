//! The basis of a dataset: a document of everything that determines its rows, its files and its facts.
//!
//! A version whose basis has the same digest as the one before reuses its files. So the document is declared here, value by
//! value and in the spellings of definitions, and does not follow the names of types and fields. It has the definition's
//! text, which is in Parquet files, and what the definition means once defaults and the options of a build are applied.

use chrono::{DateTime, NaiveDate};
use serde_json::{Value, json};

use super::builder::Builder;
use super::missing::in_words;
use crate::archive::Scope;
use crate::disk::digest;
use crate::error::Result;
use crate::plan::{Codec, Column, DatasetPlan, FilesPlan, Filter, FormulaGuard, Plan, RowKind, Shape};
use crate::time::to_record;

/// The version of the document. Raise it when the same document would stand for other rows, files or facts than before: when
/// a rule of the dataset or the form of a file changes and no value here does. A release need not: the document names the
/// version of the program, as the files do. A field that is added or spelled in another way makes another document anyway.
const VERSION: u32 = 3;

impl Builder {
    /// The digest of the basis of the dataset, whose files are written by `program`, or by a `spark` cluster, which splits
    /// them in other places.
    pub(super) fn basis(&self, writer: &str) -> Result<String> {
        let mut observations = self.view.drawn_from();
        if self.plan.dataset.columns.contains(&Column::WatchedUntil) {
            let series = self.view.watched_series(&self.scope)?.into_iter();
            let mut watched: Vec<String> =
                series.map(|(key, watch)| format!("{} until {}", in_words(&key), watch.until)).collect();
            watched.sort_unstable();
            observations.append(&mut watched);
        }
        let mut basis = document(&self.plan, &self.scope, &observations, writer);
        if let Some(prices) = self.prices(&self.plan.dataset)? {
            basis["dataset"]["prices"] = prices.summary.files.into_iter().map(|file| file.blake3).collect();
        }
        // When the news that features are computed from was watched; null where that makes no difference.
        if !self.plan.dataset.features.is_empty() {
            let watched = self.view.watched_tickers(&self.scope)?;
            for ticker in self.view.news_tickers(&self.scope)? {
                let watched = watched.get(&ticker);
                let [from, until] = [watched.map(|it| it.from), watched.and_then(|it| it.until)]
                    .map(|micros| micros.and_then(DateTime::from_timestamp_micros).map(to_record));
                basis["watched"][ticker.as_str()] = json!({"from": from, "until": until});
            }
        }
        Ok(digest::of(basis.to_string().as_bytes()))
    }
}

/// The document, without the prices and when news was watched. Every field of what it is made of is listed, so that a new one
/// is not forgotten.
fn document(plan: &Plan, scope: &Scope, observations: &[String], writer: &str) -> Value {
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
    // The files do not depend on how many versions are kept.
    let FilesPlan { formats, codec, row_group_rows, partition_by, index, guard, keep: _, report: _ } = files;
    json!({
        "version": VERSION,
        "bellwether": env!("CARGO_PKG_VERSION"),
        "writer": writer,
        "name": name,
        "definition": text,
        "service": service.name,
        "source": source.to_string(),
        // Their answers list its series.
        "requests": requests,
        "excluded": texts(excluded),
        "watched": {},
        "dataset": dataset_document(dataset),
        "files": {
            "formats": texts(formats),
            "compression": match codec {
                Codec::Zstd(level) => format!("zstd {level}"),
                Codec::Snappy => "snappy".to_owned(),
                Codec::None => "none".to_owned(),
            },
            "row_group_rows": row_group_rows,
            "partition_by": partition_by.iter().map(|column| column.name()).collect::<Vec<_>>(),
            "index": index.iter().map(|column| column.name()).collect::<Vec<_>>(),
            "csv_guard": *guard == FormulaGuard::Formulas,
        },
        // The run, the name and the digest of each file of the archive.
        "observations": observations,
    })
}

fn dataset_document(plan: &DatasetPlan) -> Value {
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
    let Filter { tickers, sectors, periods, regimes, pairs, signals, min_confidence, from, to, universe } = filter;
    let names = written.schema().fields().iter().map(|field| field.name().as_str());
    json!({
        "rows": match rows {
            RowKind::Signal => "signals",
            RowKind::Article => "articles",
            RowKind::Observation => "observations",
        },
        "dates": dates.to_string(),
        "made_at": made_at.map(|made_at| made_at.to_string()),
        "news_delay_secs": news_delay.as_secs(),
        // Its digest.
        "calendar": sessions.digest(),
        // The digest of the names that ids come from; null without a column of ids.
        "identity": identity.digest().filter(|_| columns.contains(&Column::Id)),
        "trade_at": trade_at.to_string(),
        "lag": lag.to_string(),
        "availability": availability.to_string(),
        "duplicates": duplicates.to_string(),
        "complete": are_lists_complete,
        "features": texts(features),
        // The other columns that are built.
        "columns": columns.iter().map(|column| column.name()).collect::<Vec<_>>(),
        // Each column by its own name and by the one that it has in the files.
        "written": names.map(|name| [written.names().own(name), name]).collect::<Vec<_>>(),
        "sort": sort.iter().map(|column| column.name()).collect::<Vec<_>>(),
        // What is selected; null for all.
        "filter": {
            "tickers": tickers.as_ref().map(texts),
            "sectors": sectors.as_ref().map(texts),
            "periods": periods.as_ref().map(texts),
            "regimes": regimes.as_ref().map(texts),
            "pairs": pairs.as_ref().map(|pairs| {
                pairs.iter().map(|(period, regime)| format!("{period} {regime}")).collect::<Vec<_>>()
            }),
            "signals": signals.as_ref().map(texts),
            "min_confidence": min_confidence.map(|least| least.to_string()),
            "from": from.as_ref().map(NaiveDate::to_string),
            "to": to.as_ref().map(NaiveDate::to_string),
            "universe": universe.as_ref().map(|universe| universe.digest()),
        },
        "vintage": vintage.to_string(),
        "live_within": live_within.to_string(),
        "entry_lag": labels.lag,
        // The digests of the prices, if there are any.
        "prices": [],
        // The columns that are matrices; null if the dataset is long.
        "matrices": match shape {
            Shape::Long => None,
            Shape::Wide(values) => Some(values),
        },
    })
}

fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

#[cfg(test)]
mod tests;
