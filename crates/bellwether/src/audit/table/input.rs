//! The rows of a table that somebody has: of which ticker and date they are, when they were decided, and their values.

use std::path::PathBuf;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type, SchemaRef, TimeUnit, TimestampMicrosecondType};

use crate::audit::subject::{ObservedColumns, day};
use crate::disk::table_file;
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{Period, Regime, Signal, Ticker};
use crate::plan::{ColumnNames, TimeOfDay};
use crate::tables::{Leniencies, SeriesKey, Table, dates};
use crate::text::escape::escape;
use crate::text::human::group_digits;
use crate::text::problem::choices;
use crate::time::MICROS_PER_DAY;

/// Where the rows come from.
#[derive(Clone, Debug)]
pub enum TableSource {
    /// A Parquet, CSV or Arrow file.
    File(PathBuf),
    /// Rows in memory.
    Rows(SchemaRef, Vec<RecordBatch>),
}

/// A table, and what its columns are.
#[derive(Clone, Debug)]
pub struct TableInput {
    /// The rows.
    pub source: TableSource,
    /// The column of the tickers.
    pub ticker: String,
    /// The column of the dates that the vendor gives the signals or articles.
    pub date: String,
    /// The column of the times of decision; none for `decided_at` if there is one, else the dates.
    pub decided_at: Option<String>,
    /// When a row is decided whose time of decision is a day; none for the end of the day in UTC.
    pub decided_time: Option<TimeOfDay>,
    /// The period of all rows, if no column says it.
    pub period: Option<Period>,
    /// The regime of all rows, if no column says it.
    pub regime: Option<Regime>,
    /// Whether features of the news are examined as well, for which the dataset is built as of each run.
    pub with_features: bool,
}

/// What a value of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// Buy or sell: 1 or -1.
    Signal,
    Confidence,
    /// The confidence, negative for a sell; or the score of an article.
    Score,
    /// A feature of the news, which no observation has.
    Feature,
}

/// A column of values that are looked up in the archive.
pub(super) struct ExaminedColumn {
    /// Its name in the table.
    pub(super) name: String,
    /// Its own name in a dataset.
    pub(super) own: String,
    pub(super) kind: ValueKind,
    pub(super) values: Vec<Option<f64>>,
    /// How far apart equal numbers may be, as a share: they may have been written with fewer digits.
    tolerance: f64,
}

impl ExaminedColumn {
    /// The value of an observation; none if it has none.
    pub(super) fn observed(&self, observed: &ObservedColumns<'_>, row: usize) -> Option<f64> {
        let value = Some(observed.value(row)).filter(|_| !observed.is_withdrawn(row))?;
        match self.kind {
            ValueKind::Signal => value.signal.map(side),
            ValueKind::Score if observed.texts.is_none() => Some(side(value.signal?) * value.number?),
            ValueKind::Confidence | ValueKind::Score => value.number,
            ValueKind::Feature => None,
        }
    }

    /// Whether two numbers are equal, as far as they were written.
    pub(super) fn are_equal(&self, one: f64, other: f64) -> bool {
        (one - other).abs() <= self.tolerance * other.abs().max(1.0)
    }

    pub(super) fn in_words(&self, value: f64) -> String {
        match [Signal::Buy, Signal::Sell].into_iter().find(|signal| side(*signal) == value) {
            Some(signal) if self.kind == ValueKind::Signal => signal.as_str().to_owned(),
            _ => value.to_string(),
        }
    }
}

/// The side of a signal.
fn side(signal: Signal) -> f64 {
    if signal == Signal::Buy { 1.0 } else { -1.0 }
}

/// A table that was read.
pub(super) struct Rows {
    /// Its name in messages.
    pub(super) name: String,
    /// What the rows are of.
    pub(super) table: Table,
    /// The ticker of each row, as it was written.
    pub(super) tickers: StringArray,
    /// The series of each row; none if no service can have such a ticker.
    pub(super) keys: Vec<Option<SeriesKey>>,
    /// The naive date of each row, in microseconds.
    pub(super) dates: Vec<i64>,
    /// Whether all dates are days, so that a signal of any time of the day is meant.
    pub(super) are_days: bool,
    /// The time of decision of each row, in microseconds since 1970.
    pub(super) decided: Vec<i64>,
    /// When that is, in words.
    pub(super) rule: String,
    /// The title and the link of each row, if they are articles.
    pub(super) texts: Option<[StringArray; 2]>,
    pub(super) columns: Vec<ExaminedColumn>,
    /// The other columns.
    pub(super) others: Vec<String>,
}

/// The periods and the regimes that a row without them may be of.
pub(super) type Pairs<'a> = (&'a [Period], &'a [Regime]);

/// Reads a table, whose columns may have the names of a dataset, and some of the features that it may have.
pub(super) fn read(input: &TableInput, names: &ColumnNames, pairs: Pairs<'_>, features: &[String]) -> Result<Rows> {
    let (name, rows) = match &input.source {
        TableSource::File(path) => {
            let reader = table_file::open(path)?;
            let schema = reader.schema();
            let whole = reader.collect::<Result<Vec<_>, _>>().and_then(|batches| concat_batches(&schema, &batches));
            (path.display().to_string(), whole.map_err(|error| table_file::unreadable(path, error))?)
        }
        TableSource::Rows(schema, batches) => {
            ("table".to_owned(), concat_batches(schema, batches).map_err(Error::frame)?)
        }
    };
    let reader = TableReader { name: &name, rows: &rows, names };
    let (ticker, date) = (reader.named(&input.ticker, "ticker")?, reader.named(&input.date, "date")?);
    let [title, link] = ["title", "link"].map(|own| reader.own(own));
    let are_articles = title.is_some() && link.is_some();
    let mut own = vec![("score", ValueKind::Score)];
    if !are_articles {
        own.splice(0..0, [("signal", ValueKind::Signal), ("confidence", ValueKind::Confidence)]);
    }
    own.extend(features.iter().map(|feature| (feature.as_str(), ValueKind::Feature)));
    let mut columns = Vec::new();
    for (own, kind) in own {
        if let Some(index) = reader.own(own) {
            columns.push(reader.values(index, own, kind)?);
        }
    }
    if columns.is_empty() {
        let what = format!("`{name}` has no column `signal`, `confidence` or `score`: it has {}", reader.columns());
        return Err(Error::new(ErrorKind::Data, what).with_hint(
            "give the columns the names that they have in datasets, or name the definition that renames them",
        ));
    }
    let (dates, are_zoned) = reader.moments(date)?;
    if are_zoned {
        let what = format!("column `{}` of `{name}` has instants in a zone, not the dates of signals", input.date);
        return Err(Error::new(ErrorKind::Data, what).with_hint(
            "write the date that the vendor gives each signal, without a zone; name the column with `--date`",
        ));
    }
    let decision = match &input.decided_at {
        Some(column) => reader.named(column, "decided-at")?,
        None => rows.schema().index_of("decided_at").unwrap_or(date),
    };
    let (decided, rule) = reader.decided(decision, input.decided_time)?;
    let [period, regime] = ["period", "regime"].map(|own| reader.own(own).filter(|_| !are_articles));
    let tickers = reader.texts(ticker)?;
    let table = if are_articles { Table::Articles } else { Table::Signals };
    let keys = reader.keys(&tickers, (table, period, regime), input, pairs)?;
    let used = [Some(ticker), Some(date), Some(decision), period, regime, title, link];
    let mut others = Vec::new();
    for (index, field) in rows.schema().fields().iter().enumerate() {
        if !used.contains(&Some(index)) && columns.iter().all(|column| column.name != *field.name()) {
            others.push(field.name().clone());
        }
    }
    let texts = match (title, link) {
        (Some(title), Some(link)) => Some([reader.texts(title)?, reader.texts(link)?]),
        _ => None,
    };
    Ok(Rows { table, tickers, keys, are_days: are_days(&dates), dates, decided, rule, texts, columns, others, name })
}

/// Whether all moments are days without a time.
fn are_days(micros: &[i64]) -> bool {
    micros.iter().all(|micros| micros.rem_euclid(MICROS_PER_DAY) == 0)
}

/// Reads the columns of a table.
struct TableReader<'a> {
    name: &'a str,
    rows: &'a RecordBatch,
    names: &'a ColumnNames,
}

impl TableReader<'_> {
    /// The columns in words.
    fn columns(&self) -> String {
        let schema = self.rows.schema();
        let names: Vec<_> = schema.fields().iter().take(20).map(|field| escape(field.name())).collect();
        if names.is_empty() { "none".to_owned() } else { choices(names.iter().map(AsRef::as_ref)) }
    }

    /// A column by its own name, under which a definition may write it otherwise.
    fn own(&self, own: &str) -> Option<usize> {
        let schema = self.rows.schema();
        let is_free = self.names.own(own) == own;
        schema.index_of(self.names.of(own)).ok().or_else(|| schema.index_of(own).ok().filter(|_| is_free))
    }

    /// A column that an option names.
    fn named(&self, name: &str, option: &str) -> Result<usize> {
        let found = self.rows.schema().index_of(name).ok().or_else(|| self.own(name));
        found.ok_or_else(|| {
            let what = format!("`{}` has no column `{}`: it has {}", self.name, escape(name), self.columns());
            Error::new(ErrorKind::Data, what).with_hint(format!("name the column with `--{option} COLUMN`"))
        })
    }

    fn problem(&self, row: usize, what: &str) -> Error {
        Error::new(ErrorKind::Data, format!("row {} of `{}`: {what}", group_digits(row as u64 + 1), self.name))
    }

    fn field(&self, column: usize) -> String {
        escape(self.rows.schema().field(column).name()).into_owned()
    }

    /// A column that is of another type than it should be.
    fn unexpected(&self, column: usize, expected: &str) -> Error {
        let (field, found) = (self.field(column), self.rows.column(column).data_type());
        Error::new(ErrorKind::Data, format!("column `{field}` of `{}` is {found}, not {expected}", self.name))
    }

    fn has_texts(&self, column: usize) -> bool {
        use DataType::{Dictionary, LargeUtf8, Utf8, Utf8View};
        matches!(self.rows.column(column).data_type(), Utf8 | LargeUtf8 | Utf8View | Dictionary(..))
    }

    /// A column of texts.
    fn texts(&self, column: usize) -> Result<StringArray> {
        let texts = cast(self.rows.column(column), &DataType::Utf8).map_err(Error::frame)?;
        Ok(texts.as_string::<i32>().clone())
    }

    /// A column of dates or times, which no row may lack: in UTC if they are in a zone, which is told, otherwise naive.
    fn moments(&self, column: usize) -> Result<(Vec<i64>, bool)> {
        use DataType::{Date32, Date64, Timestamp};
        let (values, field) = (self.rows.column(column), self.field(column));
        let missing = |row| self.problem(row, &format!("no value in `{field}`"));
        if !self.has_texts(column) {
            let zone = match values.data_type() {
                Timestamp(_, zone) => zone.clone(),
                Date32 | Date64 => None,
                _ => return Err(self.unexpected(column, "a date")),
            };
            let is_zoned = zone.is_some();
            let values = cast(values, &Timestamp(TimeUnit::Microsecond, zone)).map_err(Error::frame)?;
            let values = values.as_primitive::<TimestampMicrosecondType>().iter().enumerate();
            let micros = values.map(|(row, value)| value.ok_or_else(|| missing(row))).collect::<Result<_>>()?;
            return Ok((micros, is_zoned));
        }
        let texts = self.texts(column)?;
        let (mut micros, mut zoned) = (Vec::with_capacity(texts.len()), None);
        for (row, text) in texts.iter().enumerate() {
            let text = text.filter(|text| !text.is_empty()).ok_or_else(|| missing(row))?;
            let date = dates::read(text, &mut Leniencies::default())
                .map_err(|what| self.problem(row, &format!("`{}` {what}", escape(text))))?;
            let is_zoned = date.offset_minutes.is_some();
            if *zoned.get_or_insert(is_zoned) != is_zoned {
                let what = format!("`{}` in a column in which only some have a zone", escape(text));
                return Err(self.problem(row, &what));
            }
            micros.push(date.micros);
        }
        Ok((micros, zoned == Some(true)))
    }

    /// The times of decision, and when that is in words.
    fn decided(&self, column: usize, time: Option<TimeOfDay>) -> Result<(Vec<i64>, String)> {
        let ((mut micros, are_zoned), field) = (self.moments(column)?, self.field(column));
        let rule = match time {
            _ if are_zoned || !are_days(&micros) => {
                if time.is_some() {
                    let what = format!("`--at` has no effect: column `{field}` of `{}` has times", self.name);
                    return Err(Error::usage(what, "leave it out, or name a column of days with `--decided-at`"));
                }
                let rule = match are_zoned {
                    true => format!("at the instant in `{field}`"),
                    false => format!("at the time in `{field}`, which has no zone and is taken as UTC"),
                };
                return Ok((micros, rule));
            }
            Some(time) => format!("at {time} of the day in `{field}`"),
            None => format!("at the end of the day in `{field}`, in UTC"),
        };
        for micros in &mut micros {
            *micros = time.map_or(*micros + MICROS_PER_DAY - 1, |time| time.on(day(*micros)).timestamp_micros());
        }
        Ok((micros, rule))
    }

    /// The series of each row.
    fn keys(
        &self,
        tickers: &StringArray,
        (table, period, regime): (Table, Option<usize>, Option<usize>),
        input: &TableInput,
        (all_periods, all_regimes): Pairs<'_>,
    ) -> Result<Vec<Option<SeriesKey>>> {
        let (mut of_all, mut keys) = ((None, None), Vec::with_capacity(tickers.len()));
        if table == Table::Signals {
            of_all.0 = self.of_all_rows("period", period, input.period, all_periods)?;
            of_all.1 = self.of_all_rows("regime", regime, input.regime, all_regimes)?;
        }
        let [periods, regimes] = [period, regime].map(|column| column.map(|column| self.texts(column)).transpose());
        let (periods, regimes) = (periods?, regimes?);
        let text = |texts: &StringArray, row: usize| {
            if texts.is_valid(row) { texts.value(row).to_owned() } else { String::new() }
        };
        for row in 0..tickers.len() {
            let name = text(tickers, row);
            if name.is_empty() {
                return Err(self.problem(row, "no ticker"));
            }
            let (mut period, mut regime) = of_all;
            if let Some(periods) = &periods {
                let parsed = text(periods, row).parse::<Period>();
                let problem =
                    |error| self.problem(row, &format!("{error}")).with_hint("periods are 1d to 30d and 1m to 6m");
                period = Some(parsed.map_err(problem)?);
            }
            if let Some(regimes) = &regimes {
                let parsed = text(regimes, row).parse::<Regime>();
                regime = Some(parsed.map_err(|error| self.problem(row, &error.to_string()).with_hint(error.hint))?);
            }
            let ticker = name.parse::<Ticker>().ok();
            keys.push(ticker.map(|ticker| SeriesKey { table: Some(table), ticker, period, regime }));
        }
        Ok(keys)
    }

    /// The period or regime of all rows; none if a column says it.
    fn of_all_rows<T: Copy>(
        &self,
        what: &str,
        column: Option<usize>,
        given: Option<T>,
        known: &[T],
    ) -> Result<Option<T>> {
        let (refusal, hint) = match (column, given, known) {
            (Some(_), None, _) => return Ok(None),
            (None, Some(given), _) | (None, None, &[given]) => return Ok(Some(given)),
            (Some(_), Some(_), _) => (
                format!("`--{what}` beside the column `{what}` of `{}`", self.name),
                "leave out one of them".to_owned(),
            ),
            (None, None, _) => (
                format!("`{}` has no column `{what}`, and there are several", self.name),
                format!("say it with `--{what}`, or add the column"),
            ),
        };
        Err(Error::usage(refusal, hint))
    }

    /// A column of values, as numbers: a buy is 1, and a sell is -1.
    fn values(&self, column: usize, own: &str, kind: ValueKind) -> Result<ExaminedColumn> {
        let (values, name) = (self.rows.column(column), self.rows.schema().field(column).name().clone());
        let tolerance = if matches!(values.data_type(), DataType::Float16 | DataType::Float32) { 1e-6 } else { 1e-9 };
        let values = if self.has_texts(column) {
            let mut numbers = Vec::with_capacity(values.len());
            for (row, text) in self.texts(column)?.iter().enumerate() {
                let text = text.unwrap_or_default();
                numbers.push(match text.parse::<Signal>() {
                    _ if text.is_empty() => None,
                    Ok(signal) if kind == ValueKind::Signal => Some(side(signal)),
                    _ => Some(
                        text.parse()
                            .map_err(|_| self.problem(row, &format!("`{}` is no {own} of a signal", escape(text))))?,
                    ),
                });
            }
            numbers
        } else if values.data_type().is_numeric() {
            let numbers = cast(values, &DataType::Float64).map_err(Error::frame)?;
            // pandas writes what is missing as not a number.
            let numbers = numbers.as_primitive::<Float64Type>().iter();
            numbers.map(|number| number.filter(|number| !number.is_nan())).collect()
        } else {
            return Err(self.unexpected(column, "a number"));
        };
        Ok(ExaminedColumn { name, own: own.to_owned(), kind, values, tolerance })
    }
}
