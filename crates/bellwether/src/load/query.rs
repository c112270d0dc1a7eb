//! Questions in SQL, which Polars answers: about a dataset, and about what the archive behind it says.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use polars::prelude::{
    Column, DataFrame, DataType as Type, Int64Chunked, IntoColumn, IntoLazy, JoinType, NewChunkedArray, PlSmallStr,
    PolarsError, Scalar, TimeUnit,
};
use polars::sql::{SQLContext, extract_table_identifiers};

use super::Dataset;
use crate::archive::{ListedRun, SealedRun, View};
use crate::error::{Error, Result};
use crate::frames::{self, batch_of, frame_of, integers, join, stacked};
use crate::interface::{Period, Regime};
use crate::plan::{AdHoc, Claims, NaiveRule, Plan, Vintage};
use crate::process::cancel::CancellationToken;
use crate::run::{archived_scope, view_of_build};
use crate::tables::{self, Reject, RequestRecord, SeriesKey, Table};

/// The tables that a statement may name.
pub const TABLES: [&str; 7] = ["dataset", "signals", "articles", "observations", "runs", "requests", "rejects"];

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The definition.
    pub plan: Plan,
    /// The folder of published datasets.
    pub datasets: PathBuf,
    /// The archive.
    pub archive: PathBuf,
    /// The past that is asked about; none for the latest version, and all that the archive knows.
    pub ad_hoc: AdHoc,
    /// Cancels reading; the engine itself cannot be interrupted.
    pub stop: CancellationToken,
}

impl Question {
    /// The rows that a statement selects.
    ///
    /// Its tables are `dataset`: the latest version, or what is built as of an instant; `signals` and `articles`: what the
    /// archive knows of the definition's series and of the news about their tickers; `observations`: each value that a
    /// signal had, and since when and until when it was known; `runs`, `requests` and `rejects` of the definition's service.
    /// Only those are read that it names.
    ///
    /// # Errors
    ///
    /// When the statement cannot be understood or computed, and when the dataset or the archive cannot be read.
    pub fn rows(&self, statement: &str) -> Result<RecordBatch> {
        let named = extract_table_identifiers(statement, false, true).map_err(|error| refusal(&error, &[]))?;
        let mut engine = SQLContext::new();
        let mut columns = Vec::new();
        for name in TABLES.into_iter().filter(|name| named.iter().any(|other| other == name)) {
            let frame = with_texts(self.table(name)?)?;
            columns.push((name, frame.get_column_names_owned()));
            engine.register(name, frame.lazy());
        }
        let selected = engine.execute(statement).and_then(|rows| rows.collect());
        let selected = selected.map_err(|error| {
            let columns = columns.iter().map(|(table, names)| {
                let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
                format!("`{table}` has {}", names.join(", "))
            });
            refusal(&error, &columns.collect::<Vec<_>>())
        })?;
        arrow_of(selected)
    }

    fn table(&self, name: &str) -> Result<DataFrame> {
        let Self { plan, datasets, archive, ad_hoc, stop } = self;
        let is_latest = ad_hoc.as_of.is_none() && ad_hoc.version.is_none() && ad_hoc.claims == Claims::LeftOut;
        let dataset = match name {
            "dataset" if is_latest => Some(Dataset::find(datasets, &plan.name)?),
            "dataset" => Some(Dataset::from_archive(plan.clone(), archive, ad_hoc)?),
            "articles" => {
                let plan = Plan { dataset: plan.dataset.of_articles(), ..plan.clone() };
                Some(Dataset::from_archive(plan, archive, ad_hoc)?)
            }
            _ => None,
        };
        if let Some(dataset) = dataset {
            return dataset.until(stop.clone()).frame();
        }
        let mut plan = plan.clone();
        ad_hoc.apply(&mut plan)?;
        let view = view_of_build(&plan, archive, ad_hoc, stop)?;
        match name {
            "signals" => {
                let schema = Table::Signals.known_schema();
                let members = members(&plan, &view)?;
                let pieces = view.cells(Table::Signals, Vintage::Latest)?;
                let pieces = pieces.map(|piece| of_members(&frame_of(&schema, &[piece?])?, &members));
                naive(stacked(pieces.collect::<Result<Vec<_>>>()?)?, plan.dataset.dates)
            }
            "observations" => {
                let (members, mut pieces) = (members(&plan, &view)?, Vec::new());
                frames::each_observed(
                    &view,
                    Table::Signals,
                    |piece| of_members(piece, &members),
                    |piece| {
                        pieces.push(piece);
                        Ok(())
                    },
                )?;
                let mut all = naive(stacked(pieces)?, plan.dataset.dates)?;
                all.rename("observed_at", "known_from".into()).map_err(Error::frame)?;
                let instants = all.column("known_from").map_err(Error::frame)?.dtype().clone();
                let until = all.column("known_until").and_then(|until| until.cast(&instants)).map_err(Error::frame)?;
                all.with_column(until).map_err(Error::frame)?;
                Ok(all.drop_many(["series", "cell"]))
            }
            "runs" => {
                let runs = view.runs().map(|run| ListedRun::of(&plan.service.name, run)).collect::<Result<Vec<_>>>()?;
                let rows = ListedRun::rows(&runs)?;
                frame_of(&rows.schema(), &[rows])
            }
            "requests" => {
                each_run(&view, |run| Ok(vec![RequestRecord::batch(&run.requests()?).map_err(Error::frame)?]))
            }
            _ => each_run(&view, |run| match run.has_rejects() {
                true => run.rejects()?.collect(),
                false => Ok(vec![RecordBatch::new_empty(Reject::schema())]),
            }),
        }
    }
}

/// The frame with its categories as texts: the engine joins neither with the other.
fn with_texts(mut frame: DataFrame) -> Result<DataFrame> {
    for name in frame.get_column_names_owned() {
        let column = frame.column(&name).map_err(Error::frame)?;
        if matches!(column.dtype(), Type::Categorical(..)) {
            let texts = column.cast(&Type::String).map_err(Error::frame)?;
            frame.with_column(texts).map_err(Error::frame)?;
        }
    }
    Ok(frame)
}

/// The series of the definition, as keys to join by.
fn members(plan: &Plan, view: &View) -> Result<DataFrame> {
    let members = view.members(&archived_scope(plan, view)?)?;
    let name = |of: fn(&SeriesKey) -> Option<&str>| -> StringArray { members.iter().map(of).collect() };
    let ticker = name(|key| Some(key.ticker.as_str()));
    let period = name(|key| key.period.map(Period::as_str));
    let regime = name(|key| key.regime.map(Regime::as_str));
    let columns: [(&str, ArrayRef); 3] =
        [("ticker", Arc::new(ticker)), ("period", Arc::new(period)), ("regime", Arc::new(regime))];
    let schema = Table::Signals.schema();
    let columns = columns.map(|(name, texts)| {
        let field = schema.field_with_name(name).map_err(Error::frame)?;
        Ok((name, cast(&texts, field.data_type()).map_err(Error::frame)?))
    });
    let rows = RecordBatch::try_from_iter(columns.into_iter().collect::<Result<Vec<_>>>()?).map_err(Error::frame)?;
    frame_of(&rows.schema(), &[rows])
}

fn of_members(rows: &DataFrame, members: &DataFrame) -> Result<DataFrame> {
    join(rows, members, &["ticker", "period", "regime"], JoinType::Semi)
}

/// Signals with the dates that the dataset gives them.
fn naive(mut signals: DataFrame, rule: NaiveRule) -> Result<DataFrame> {
    if signals.width() == 0 {
        return Ok(signals);
    }
    let (dates, offsets) = (integers(&signals, "date")?, integers(&signals, "utc_offset_minutes")?);
    let faces =
        dates.iter().zip(offsets.iter()).map(|(date, offset)| Some(rule.face(date?, offset.map(|it| it as i16))));
    let faces = Int64Chunked::from_iter_options("date".into(), faces);
    let of_dates = signals.column("date").map_err(Error::frame)?.dtype().clone();
    let faces = faces.into_column().cast(&of_dates).map_err(Error::frame)?;
    signals.with_column(faces).map_err(Error::frame)?;
    Ok(signals)
}

/// Rows of each run, with its name.
fn each_run(view: &View, rows: impl Fn(&SealedRun) -> Result<Vec<RecordBatch>>) -> Result<DataFrame> {
    let mut frames = Vec::new();
    for run in view.runs() {
        for rows in rows(run)? {
            let mut frame = frame_of(&rows.schema(), std::slice::from_ref(&rows))?;
            let name = Column::new_scalar("run".into(), Scalar::from(PlSmallStr::from(run.name())), frame.height());
            frame.insert_column(0, name).map_err(Error::frame)?;
            frames.push(frame);
        }
    }
    stacked(frames)
}

/// What was selected, in the types that every reader takes.
fn arrow_of(mut selected: DataFrame) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    for name in selected.get_column_names_owned() {
        let column = selected.column(&name).map_err(Error::frame)?;
        let (cast, data_type) = match column.dtype() {
            Type::Boolean => (None, DataType::Boolean),
            Type::Date | Type::Datetime(_, None) => {
                (Some(Type::Datetime(TimeUnit::Microseconds, None)), tables::date())
            }
            Type::Datetime(_, zone) => (Some(Type::Datetime(TimeUnit::Microseconds, zone.clone())), tables::instant()),
            numbers if numbers.is_float() => (None, DataType::Float64),
            numbers if numbers.is_integer() => (None, DataType::Int64),
            Type::String | Type::Categorical(..) | Type::Null => (None, DataType::Utf8),
            other => {
                let what = format!("column `{name}` of the answer is of type {other}, which no file has");
                return Err(Error::usage(what, "cast it, to a number or to `varchar`"));
            }
        };
        fields.push(Field::new(name.as_str(), data_type, true));
        if let Some(data_type) = cast {
            let column = column.cast(&data_type).map_err(Error::frame)?;
            selected.with_column(column).map_err(Error::frame)?;
        }
    }
    batch_of(&selected, &Schema::new(fields).into())
}

/// What the engine says of a statement that it does not take.
fn refusal(error: &PolarsError, columns: &[String]) -> Error {
    let hint = match columns {
        [] => format!("the tables are {}", TABLES.map(|name| format!("`{name}`")).join(", ")),
        columns => columns.join("; "),
    };
    Error::usage(format!("this statement cannot be answered: {error}"), hint)
}
