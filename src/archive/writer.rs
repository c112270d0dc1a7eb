//! Writes one run: gathers what was decoded, orders it, seals it.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use chrono::{DateTime, Utc};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;

use super::seal::{LAYOUT, Seal};
use super::{ARTICLES, REJECTS, REQUESTS, SEAL, SIGNALS, SUMMARIES, SealedRun};
use crate::error::{Error, Result};
use crate::file::{self, FileRecord, Staging};
use crate::tables::{News, NewsTable, Reject, RequestRecord, Series, SeriesKey, SeriesTable};
use crate::time::{to_record, unique_name};

/// Rows of a row group: small enough to skip the tickers that are not wanted, large enough to compress.
const ROW_GROUP_ROWS: usize = 1 << 17;
/// How many series are put together before they are handed to the file.
const BATCH_SERIES: usize = 64;

/// A run that is being written.
#[derive(Debug)]
pub struct RunWriter {
    folder: PathBuf,
    name: String,
    staging: Staging,
    started_at: DateTime<Utc>,
    series: Vec<Series>,
    articles: Vec<News>,
    summaries: Vec<News>,
    rejects: Vec<Reject>,
    requests: Vec<RequestRecord>,
}

/// What a seal says of a run's origin.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The definition's name.
    pub definition: &'a str,
    /// The definition's text.
    pub text: &'a str,
    /// When the run was sealed.
    pub sealed_at: DateTime<Utc>,
}

impl RunWriter {
    /// Begins a run in an archive.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn create(archive: &Path, started_at: DateTime<Utc>) -> Result<Self> {
        let name = unique_name(started_at);
        let staging = Staging::create(archive, &name)?;
        Ok(Self {
            folder: archive.to_owned(),
            name,
            staging,
            started_at,
            series: Vec::new(),
            articles: Vec::new(),
            summaries: Vec::new(),
            rejects: Vec::new(),
            requests: Vec::new(),
        })
    }

    /// Adds series of signals.
    pub fn add_series(&mut self, series: Vec<Series>) {
        self.series.extend(series);
    }

    /// Adds articles or summaries.
    pub fn add_news(&mut self, table: NewsTable, news: Vec<News>) {
        match table {
            NewsTable::Articles => self.articles.extend(news),
            NewsTable::Summaries => self.summaries.extend(news),
        }
    }

    /// Adds records that were set aside.
    pub fn add_rejects(&mut self, rejects: Vec<Reject>) {
        self.rejects.extend(rejects);
    }

    /// Adds a request that was answered.
    pub fn add_request(&mut self, request: RequestRecord) {
        self.requests.push(request);
    }

    /// The records that were set aside so far.
    pub fn rejects(&self) -> usize {
        self.rejects.len()
    }

    /// Orders what was gathered, writes it, and seals the run.
    ///
    /// # Errors
    ///
    /// When a file cannot be written. Nothing of the run is left then.
    pub fn seal(mut self, origin: Origin<'_>) -> Result<SealedRun> {
        self.order();
        let series = self.series.chunks(BATCH_SERIES);
        let files = vec![
            self.write(SIGNALS, SeriesTable::schema(), &["ticker"], series.map(SeriesTable::batch))?,
            self.write_news(ARTICLES, NewsTable::Articles, &self.articles)?,
            self.write_news(SUMMARIES, NewsTable::Summaries, &self.summaries)?,
            self.write_records(REJECTS, Reject::batch(&self.rejects))?,
            self.write_records(REQUESTS, RequestRecord::batch(&self.requests))?,
        ];
        let seal = Seal {
            layout: LAYOUT,
            run: self.name.clone(),
            bellwether: env!("CARGO_PKG_VERSION").to_owned(),
            definition: origin.definition.to_owned(),
            definition_digest: file::digest(origin.text.as_bytes()),
            started_at: to_record(self.started_at),
            sealed_at: to_record(origin.sealed_at),
            files,
        };
        file::write_json(&self.staging.file(SEAL), &seal)?;
        let path = self.folder.join(format!("run={}", self.name));
        self.staging.publish(&path)?;
        Ok(SealedRun::new(path, seal))
    }

    /// Puts everything into an order that does not depend on when an answer came.
    fn order(&mut self) {
        self.series.sort_by(|left, right| left.key.cmp(&right.key));
        self.drop_repeated_series();
        self.articles.sort_by(|left, right| left.ticker.cmp(&right.ticker));
        self.summaries.sort_by(|left, right| left.ticker.cmp(&right.ticker));
        self.rejects.sort_by(|left, right| (&left.request, &left.pointer).cmp(&(&right.request, &right.pointer)));
        self.requests.sort_by(|left, right| left.request.cmp(&right.request));
    }

    /// Of a series that two answers gave, the one that was asked for first is kept.
    fn drop_repeated_series(&mut self) {
        let rejects = &mut self.rejects;
        self.series.dedup_by(|later, kept| {
            let is_repeated = later.key == kept.key;
            if is_repeated && later.rows != kept.rows {
                let SeriesKey { ticker, period, regime, source } = &later.key;
                rejects.push(Reject {
                    request: format!("{source}?period={period}&regime={regime}"),
                    ticker: Some(ticker.to_string()),
                    pointer: String::new(),
                    reason: "two answers give this series with different values; the first is kept".to_owned(),
                    raw: String::new(),
                });
            }
            is_repeated
        });
    }

    fn write_news(&self, name: &str, table: NewsTable, news: &[News]) -> Result<FileRecord> {
        self.write(name, table.schema(), &["ticker"], news.chunks(BATCH_SERIES).map(|some| table.batch(some)))
    }

    fn write_records(&self, name: &str, batch: Result<RecordBatch, ArrowError>) -> Result<FileRecord> {
        let batch = batch.map_err(|error| Error::Encode { path: self.staging.file(name), source: error.into() })?;
        self.write(name, batch.schema(), &[], [Ok(batch)])
    }

    fn write(
        &self,
        name: &str,
        schema: SchemaRef,
        sort: &[&str],
        batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    ) -> Result<FileRecord> {
        let path = self.staging.file(name);
        let failed = |source: crate::error::Reason| Error::Encode { path: path.clone(), source };
        let out = file::create(&path)?;
        let mut writer = ArrowWriter::try_new(out, schema.clone(), Some(properties(&schema, sort)))
            .map_err(|error| failed(error.into()))?;
        let mut rows = 0;
        for batch in batches {
            let batch = batch.map_err(|error| failed(error.into()))?;
            rows += batch.num_rows() as u64;
            writer.write(&batch).map_err(|error| failed(error.into()))?;
        }
        writer.finish().map_err(|error| failed(error.into()))?;
        file::sync(writer.inner(), &path)?;
        FileRecord::of(&path, name, rows)
    }
}

fn properties(schema: &SchemaRef, sort: &[&str]) -> WriterProperties {
    let place = |name: &&str| {
        schema.index_of(name).ok().map(|index| SortingColumn {
            column_idx: index as i32,
            descending: false,
            nulls_first: false,
        })
    };
    let sorting = sort.iter().map(place).collect::<Option<Vec<_>>>().filter(|columns| !columns.is_empty());
    WriterProperties::builder()
        .set_created_by(concat!("bellwether ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_sorting_columns(sorting)
        .build()
}
