//! The rows of a table that somebody has: of which ticker and date they are, when they were decided, and their values.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type, SchemaRef, TimeUnit, TimestampMicrosecondType};

use super::ValueKind;
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

/// A column of values that are looked up in the archive.
pub(super) struct ExaminedColumn {
    /// Its name in the table.
    pub(super) name: String,
    /// Its own name in a dataset.
    pub(super) own: String,
    pub(super) kind: ValueKind,
    pub(super) values: Vec<Option<f64>>,
    /// How far apart equal numbers may be, as a share: they may have been written with fewer digits.
    pub(super) tolerance: f64,
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
    pub(super) keys: Vec<Option<Arc<SeriesKey>>>,
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
    let (name, rows) = whole(&input.source)?;
    let reader = TableReader { name: &name, rows: &rows, names };
    let (ticker, date) = (reader.named(&input.ticker, "ticker")?, reader.named(&input.date, "date")?);
    let [title, link] = ["title", "link"].map(|own| reader.own(own));
    let table = if title.is_some() && link.is_some() { Table::Articles } else { Table::Signals };
    let kinds: &[ValueKind] = match table {
        Table::Articles => &[ValueKind::ArticleScore],
        _ => &[ValueKind::Signal, ValueKind::Confidence, ValueKind::Score],
    };
    let own = kinds.iter().map(|kind| (kind.column(), *kind));
    let own = own.chain(features.iter().map(|feature| (feature.as_str(), ValueKind::Feature)));
    let columns = own.filter_map(|(name, kind)| reader.own(name).map(|index| (index, name, kind)));
    let columns = columns.map(|(index, name, kind)| reader.values(index, name, kind)).collect::<Result<Vec<_>>>()?;
    if columns.is_empty() {
        let what = format!("`{name}` has no column `signal`, `confidence` or `score`: it has {}", reader.columns());
        return Err(Error::new(ErrorKind::Data, what).with_hint(
            "give the columns the names that they have in datasets, or name the definition that renames them",
        ));
    }
    let dated = reader.moments(date)?;
    if dated.is_zoned {
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
    let [period, regime] = ["period", "regime"].map(|own| reader.own(own).filter(|_| table == Table::Signals));
    let tickers = reader.texts(ticker)?;
    let keys = reader.keys(&tickers, (table, [period, regime]), input, pairs)?;
    let used = [Some(ticker), Some(date), Some(decision), period, regime, title, link];
    let is_other = |(index, name): &(usize, &String)| {
        !used.contains(&Some(*index)) && !columns.iter().any(|column| column.name == **name)
    };
    let schema = rows.schema();
    let all = schema.fields().iter().map(|field| field.name()).enumerate();
    let others = all.filter(is_other).map(|(_, name)| name.clone()).collect();
    let texts = match (table, title, link) {
        (Table::Articles, Some(title), Some(link)) => Some([reader.texts(title)?, reader.texts(link)?]),
        _ => None,
    };
    let are_days = dated.are_days();
    Ok(Rows { table, tickers, keys, dates: dated.micros, are_days, decided, rule, texts, columns, others, name })
}

/// All rows of a table, and its name.
fn whole(source: &TableSource) -> Result<(String, RecordBatch)> {
    match source {
        TableSource::File(path) => {
            let reader = table_file::open(path)?;
            let schema = reader.schema();
            let batches = reader.collect::<Result<Vec<_>, _>>();
            let whole = batches.and_then(|batches| concat_batches(&schema, &batches));
            Ok((path.display().to_string(), whole.map_err(|error| table_file::unreadable(path, error))?))
        }
        TableSource::Rows(schema, batches) => {
            Ok(("table".to_owned(), concat_batches(schema, batches).map_err(Error::frame)?))
        }
    }
}

/// Dates or times as they were written.
struct Moments {
    /// In UTC if they are in a zone, otherwise naive.
    micros: Vec<i64>,
    is_zoned: bool,
}

impl Moments {
    /// Whether all are days without a time.
    fn are_days(&self) -> bool {
        !self.is_zoned && self.micros.iter().all(|micros| micros.rem_euclid(MICROS_PER_DAY) == 0)
    }
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
        let names: Vec<String> =
            schema.fields().iter().take(20).map(|field| escape(field.name()).into_owned()).collect();
        if names.is_empty() { "none".to_owned() } else { choices(names.iter().map(String::as_str)) }
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

    /// A column of texts.
    fn texts(&self, column: usize) -> Result<StringArray> {
        let texts = cast(self.rows.column(column), &DataType::Utf8).map_err(Error::frame)?;
        Ok(texts.as_string::<i32>().clone())
    }

    /// A column of dates or times, which no row may lack.
    fn moments(&self, column: usize) -> Result<Moments> {
        use DataType::{Date32, Date64, Dictionary, LargeUtf8, Timestamp, Utf8, Utf8View};
        let (values, field) = (self.rows.column(column), self.field(column));
        let missing = |row| self.problem(row, &format!("no value in `{field}`"));
        if let Timestamp(..) | Date32 | Date64 = values.data_type() {
            let zone = match values.data_type() {
                Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let is_zoned = zone.is_some();
            let values = cast(values, &Timestamp(TimeUnit::Microsecond, zone)).map_err(Error::frame)?;
            let values: &TimestampMicrosecondArray = values.as_primitive::<TimestampMicrosecondType>();
            if let Some(row) = (0..values.len()).find(|row| values.is_null(*row)) {
                return Err(missing(row));
            }
            return Ok(Moments { micros: values.values().to_vec(), is_zoned });
        }
        if !matches!(values.data_type(), Utf8 | LargeUtf8 | Utf8View | Dictionary(..)) {
            let what = format!("column `{field}` of `{}` is {}, not a date", self.name, values.data_type());
            return Err(Error::new(ErrorKind::Data, what));
        }
        let texts = self.texts(column)?;
        let (mut micros, mut zoned) = (Vec::with_capacity(texts.len()), None);
        for row in 0..texts.len() {
            let text = if texts.is_valid(row) { texts.value(row) } else { "" };
            if text.is_empty() {
                return Err(missing(row));
            }
            let date = dates::read(text, &mut Leniencies::default())
                .map_err(|what| self.problem(row, &format!("`{}` {what}", escape(text))))?;
            let is_zoned = date.offset_minutes.is_some();
            if *zoned.get_or_insert(is_zoned) != is_zoned {
                return Err(
                    self.problem(row, &format!("`{}` in a column in which only some have a zone", escape(text)))
                );
            }
            micros.push(date.micros);
        }
        Ok(Moments { micros, is_zoned: zoned == Some(true) })
    }

    /// The times of decision, and when that is in words.
    fn decided(&self, column: usize, time: Option<TimeOfDay>) -> Result<(Vec<i64>, String)> {
        let (moments, field) = (self.moments(column)?, self.field(column));
        if !moments.are_days() {
            if time.is_some() {
                let what = format!("`--at` has no effect: column `{field}` of `{}` has times", self.name);
                return Err(Error::usage(what, "leave it out, or name a column of days with `--decided-at`"));
            }
            let rule = match moments.is_zoned {
                true => format!("at the instant in `{field}`"),
                false => format!("at the time in `{field}`, which has no zone and is taken as UTC"),
            };
            return Ok((moments.micros, rule));
        }
        let rule = match time {
            Some(time) => format!("at {time} of the day in `{field}`"),
            None => format!("at the end of the day in `{field}`, in UTC"),
        };
        let mut ends: HashMap<i64, i64> = HashMap::new();
        let decided = moments.micros.into_iter().map(|start| {
            *ends.entry(start).or_insert_with(|| match time {
                Some(time) => time.on(super::day(start)).timestamp_micros(),
                None => start + MICROS_PER_DAY - 1,
            })
        });
        Ok((decided.collect(), rule))
    }

    /// The series of each row.
    fn keys(
        &self,
        tickers: &StringArray,
        (table, pair): (Table, [Option<usize>; 2]),
        input: &TableInput,
        (all_periods, all_regimes): Pairs<'_>,
    ) -> Result<Vec<Option<Arc<SeriesKey>>>> {
        let (mut period, mut regime) = (None, None);
        let [periods, regimes] = pair.map(|column| column.map(|column| self.texts(column)).transpose());
        let (periods, regimes) = (periods?, regimes?);
        if table == Table::Signals {
            period = self.whole("period", &periods, input.period, all_periods)?;
            regime = self.whole("regime", &regimes, input.regime, all_regimes)?;
        }
        let text = |texts: Option<&StringArray>, row: usize| -> Option<String> {
            texts.filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row).to_owned())
        };
        let mut known: HashMap<[Option<String>; 3], Option<Arc<SeriesKey>>> = HashMap::new();
        let mut keys = Vec::with_capacity(tickers.len());
        for row in 0..self.rows.num_rows() {
            let named = [text(Some(tickers), row), text(periods.as_ref(), row), text(regimes.as_ref(), row)];
            if let Some(key) = known.get(&named) {
                keys.push(key.clone());
                continue;
            }
            let name = named[0].as_deref().unwrap_or_default();
            if name.is_empty() {
                return Err(self.problem(row, "no ticker"));
            }
            let (mut period, mut regime) = (period, regime);
            if periods.is_some() {
                let text = named[1].as_deref().unwrap_or_default();
                let parsed = text.parse::<Period>().map_err(|error| self.problem(row, &error.to_string()));
                period = Some(parsed.map_err(|error| error.with_hint("periods are 1d to 30d and 1m to 6m"))?);
            }
            if regimes.is_some() {
                let text = named[2].as_deref().unwrap_or_default();
                let parsed = text.parse::<Regime>();
                regime = Some(parsed.map_err(|error| self.problem(row, &error.to_string()).with_hint(error.hint))?);
            }
            let ticker = name.parse::<Ticker>().ok();
            let key = ticker.map(|ticker| Arc::new(SeriesKey { table: Some(table), ticker, period, regime }));
            known.insert(named, key.clone());
            keys.push(key);
        }
        Ok(keys)
    }

    /// The period or regime of all rows, if no column says it.
    fn whole<T: Copy>(
        &self,
        what: &str,
        column: &Option<StringArray>,
        given: Option<T>,
        known: &[T],
    ) -> Result<Option<T>> {
        match (column, given, known) {
            (Some(_), Some(_), _) => {
                let refusal = format!("`--{what}` beside the column `{what}` of `{}`", self.name);
                Err(Error::usage(refusal, "leave out one of them"))
            }
            (Some(_), None, _) => Ok(None),
            (None, Some(given), _) => Ok(Some(given)),
            (None, None, [only]) => Ok(Some(*only)),
            _ => {
                let refusal = format!("`{}` has no column `{what}`, and there are several", self.name);
                Err(Error::usage(refusal, format!("say it with `--{what}`, or add the column")))
            }
        }
    }

    /// A column of values, as numbers: a buy is 1, and a sell is -1.
    fn values(&self, column: usize, own: &str, kind: ValueKind) -> Result<ExaminedColumn> {
        use DataType::{Float16, Float32, LargeUtf8, Utf8, Utf8View};
        let (values, name) = (self.rows.column(column), self.rows.schema().field(column).name().clone());
        let own = own.to_owned();
        let tolerance = if matches!(values.data_type(), Float16 | Float32) { 1e-6 } else { 1e-9 };
        let is_text =
            |values: &ArrayRef| matches!(values.data_type(), Utf8 | LargeUtf8 | Utf8View | DataType::Dictionary(..));
        if is_text(values) {
            let texts = self.texts(column)?;
            let parsed = (0..texts.len()).map(|row| {
                let text = if texts.is_valid(row) { texts.value(row) } else { "" };
                let number = match (text, text.parse::<Signal>()) {
                    ("", _) => return Ok(None),
                    (_, Ok(signal)) if kind == ValueKind::Signal => super::side(signal),
                    _ => text
                        .parse()
                        .map_err(|_| self.problem(row, &format!("`{}` is no {} of a signal", escape(text), own)))?,
                };
                Ok(Some(number))
            });
            let values = parsed.collect::<Result<Vec<_>>>()?;
            return Ok(ExaminedColumn { name, own, kind, values, tolerance });
        }
        if !values.data_type().is_numeric() {
            let what = format!("column `{}` of `{}` is {}, not a number", escape(&name), self.name, values.data_type());
            return Err(Error::new(ErrorKind::Data, what));
        }
        let numbers = cast(values, &DataType::Float64).map_err(Error::frame)?;
        let numbers: &Float64Array = numbers.as_primitive::<Float64Type>();
        // pandas writes what is missing as not a number.
        let values = numbers.iter().map(|number| number.filter(|number| !number.is_nan())).collect();
        Ok(ExaminedColumn { name, own, kind, values, tolerance })
    }
}
