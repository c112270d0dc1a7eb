//! Questions about definitions, services, the archive and published versions. Results are rows, and totals as JSON.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Date32Array, ListBuilder, RecordBatch, StringArray,
    StringBuilder, TimestampMicrosecondArray, UInt64Array,
};
use arrow::compute::{cast, concat_batches, filter_record_batch};
use arrow::datatypes::{DataType, Date32Type, SchemaRef};
use arrow::error::ArrowError;
use bellwether::archive::{ListedRun, RunListing};
use bellwether::audit;
use bellwether::audit::skill::WhenMissing;
use bellwether::audit::table::{TableInput, TableSource};
use bellwether::error::{Error, Result};
use bellwether::export::{ListedVersion, PublishedReader, published_versions};
use bellwether::load::Dataset;
use bellwether::load::now::{Answer, Question};
use bellwether::plan::Plan;
use bellwether::project::Project;
use bellwether::run::{
    AuditOptions, CheckedDefinition, DEMO_SEED, FetchItem, OfferOptions, ReportOptions, SkillOptions, audit_quality,
    audit_revisions, audit_skill, audit_table as audit_of_table, offered_sectors, offered_tickers,
};
use bellwether::serve::{Universe, price_schema};
use bellwether::time::Clock;
use chrono::{DateTime, NaiveDate, Utc};
use pyo3::prelude::*;

use crate::arguments::{Given, Key, Part, Subject, day, instant, of_service, optional, take_key, value};
use crate::call::{block_on, call, json, raise};
use crate::rows::{GivenRows, Rows, batches_of, price_input};

/// What a check says of a definition, as JSON.
#[pyfunction]
pub(crate) fn check(definition: Given) -> PyResult<String> {
    let project = Project::find().map_err(raise)?;
    match definition.plan() {
        Ok(plan) => Ok(json(&CheckedDefinition::valid(&plan, &project.data(), Clock::System.now()))),
        Err(error) if error.problems().is_some() => {
            Ok(json(&CheckedDefinition::invalid(&definition.path(&project), &error)))
        }
        Err(error) => Err(raise(error)),
    }
}

/// Takes the rows of an audit.
type Deliver<'a> = &'a mut dyn FnMut(&RecordBatch) -> Result<()>;

/// Audits an archive, with the runs that only its store has, as of an instant. Returns the rows, and what they come to.
fn audit<T: Send + 'static>(
    py: Python<'_>,
    subject: Subject,
    as_of: Result<Option<DateTime<Utc>>>,
    schema: SchemaRef,
    question: impl FnOnce(AuditOptions<'_>, Deliver<'_>) -> Result<T> + Send + 'static,
) -> PyResult<(Rows, T)> {
    call(py, None, move |control| {
        let (as_of, service) = (as_of?, subject.service.as_deref());
        if subject.definition.is_some() && service.is_some() {
            return Err(Error::usage("a service beside a definition, which has its own", "leave out one of them"));
        }
        if subject.definition.is_none() && subject.claimed {
            let hint = "name a definition, or audit the claims alone with `service=\"SERVICE.claimed\"`";
            return Err(Error::usage("claims included without a definition", hint));
        }
        let plan = subject.definition.is_some().then(|| subject.plan_with_claims()).transpose()?;
        subject.fetch(plan.as_ref(), &[FetchItem::Runs(as_of)], control)?;
        let options = AuditOptions { archive: &subject.archive, service, plan: plan.as_ref(), as_of, control };
        let mut batches = Vec::new();
        let found = question(options, &mut |batch| {
            batches.push(batch.clone());
            Ok(())
        })?;
        Ok((Rows::in_memory(schema, batches), found))
    })
}

/// The vendor's rewrites after one instant, up to another.
#[pyfunction]
pub(crate) fn revisions(py: Python<'_>, subject: Subject, after: Option<String>) -> PyResult<(Rows, String)> {
    let until = instant("until", subject.as_of.as_deref());
    audit(py, subject, until, audit::revisions::schema(), move |options, deliver| {
        Ok(json(&audit_revisions(options, instant("after", after.as_deref())?, deliver)?))
    })
}

/// Gaps, stale series, repeated articles, unusual values, rejected records and unknown fields.
#[pyfunction]
pub(crate) fn quality(py: Python<'_>, subject: Subject) -> PyResult<(Rows, String)> {
    let as_of = instant("as_of", subject.as_of.as_deref());
    audit(py, subject, as_of, audit::quality::schema(), |options, deliver| Ok(json(&audit_quality(options, deliver)?)))
}

/// Whether signals predicted: a row for each date, pair of period and regime, and state; the parts of these rows; what it
/// comes to as JSON, and in words.
#[pyfunction]
pub(crate) fn skill(
    py: Python<'_>,
    subject: Subject,
    prices: Option<GivenRows<'_>>,
    after: Option<String>,
    lag: u32,
    allow_missing: bool,
) -> PyResult<(Rows, Vec<Rows>, String, String)> {
    let prices = price_input(prices)?;
    let when_missing = if allow_missing { WhenMissing::Allow } else { WhenMissing::Refuse };
    let as_of = instant("as_of", subject.as_of.as_deref());
    let (rows, (totals, text)) = audit(py, subject, as_of, audit::skill::schema(), move |options, deliver| {
        let from = instant("after", after.as_deref())?;
        let found = audit_skill(options, &SkillOptions { prices, lag, when_missing, from }, deliver)?;
        Ok((json(&found), bellwether_cli::skill_in_words(&found)))
    })?;
    let parts = py.detach(|| parts_of_skill(&rows)).map_err(|error| raise(Error::frame(error)))?;
    Ok((rows, parts, totals, text))
}

/// The columns of the parts of an audit of skill, after those of a series: of each pair and state over all dates, of its
/// dates, of its lags, and of the features of the news.
const PARTS: [&str; 4] = [
    "names correlation mean_return buys buy_hits buy_excess sells sell_hits sell_excess confidents confident_hits \
     confident_excess spread dates horizon windows positive standard_error degrees_of_freedom lower upper p p_holm \
     p_benjamini_hochberg disjoint_correlation disjoint_p flips",
    "date names correlation mean_return buys buy_hits buy_excess sells sell_hits sell_excess confidents confident_hits \
     confident_excess spread",
    "lag names correlation dates horizon windows standard_error degrees_of_freedom lower upper p",
    "feature names correlation dates horizon windows positive standard_error degrees_of_freedom lower upper p p_holm \
     p_benjamini_hochberg disjoint_correlation disjoint_p",
];

/// The parts of an audit of skill, each with the columns that its rows have.
fn parts_of_skill(rows: &Rows) -> Result<Vec<Rows>, ArrowError> {
    let all = concat_batches(&audit::skill::schema(), rows.held())?;
    let (feature, date, by) = (&all["feature"], &all["date"], all["by"].as_string::<i32>());
    let part_of = |row: usize| match (feature.is_valid(row), date.is_valid(row), by.is_valid(row)) {
        (false, false, false) => Some(0),
        (false, true, _) => Some(1),
        (false, false, true) if by.value(row) == "lag" => Some(2),
        (true, false, false) => Some(3),
        _ => None,
    };
    let mut parts = Vec::new();
    for (number, columns) in PARTS.into_iter().enumerate() {
        let taken: BooleanArray = (0..all.num_rows()).map(|row| Some(part_of(row) == Some(number))).collect();
        let rows = filter_record_batch(&all, &taken)?;
        let mut part = Vec::new();
        for name in ["period", "regime", "state"].into_iter().chain(columns.split(' ')) {
            part.push((
                name,
                if name == "lag" { cast(&rows["group"], &DataType::Int64)? } else { rows[name].clone() },
                true,
            ));
        }
        let part = RecordBatch::try_from_iter_with_nullable(part)?;
        parts.push(Rows::in_memory(part.schema(), vec![part]));
    }
    Ok(parts)
}

/// What the columns of a table are.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TableColumns {
    ticker: String,
    date: String,
    decided_at: Option<String>,
    at: Option<String>,
    period: Option<String>,
    regime: Option<String>,
    features: bool,
}

/// Which values of a table had been published by the time of decision: a row for each that was not the latest one.
#[pyfunction]
pub(crate) fn audit_table(
    py: Python<'_>,
    table: GivenRows<'_>,
    subject: Subject,
    columns: TableColumns,
) -> PyResult<(Rows, String)> {
    let source = match table {
        GivenRows::Files(files) => TableSource::File(files.get_item(0)?.extract()?),
        GivenRows::Stream(stream) => {
            let (schema, batches) = batches_of(&stream)?;
            TableSource::Rows(schema, batches)
        }
    };
    let as_of = instant("as_of", subject.as_of.as_deref());
    audit(py, subject, as_of, audit::table::schema(), move |options, deliver| {
        let TableColumns { ticker, date, decided_at, at, period, regime, features } = columns;
        let input = TableInput {
            source,
            ticker,
            date,
            decided_at,
            decided_time: optional("at", at.as_deref(), str::parse)?,
            period: optional("period", period.as_deref(), of_service)?,
            regime: optional("regime", regime.as_deref(), of_service)?,
            with_features: features,
        };
        Ok(json(&audit_of_table(options, &input, deliver)?))
    })
}

/// The closing prices of the demo universe.
#[pyfunction]
pub(crate) fn demo_prices(py: Python<'_>, today: Option<String>, seed: Option<u64>) -> PyResult<Rows> {
    call(py, None, move |_| {
        let today = optional("today", today.as_deref(), day)?.unwrap_or_else(|| Clock::System.now().date_naive());
        let universe = Universe::new(seed.unwrap_or(DEMO_SEED), today);
        Ok(Rows::in_memory(price_schema(), universe.price_rows().collect()))
    })
}

/// The rows that differ between two versions.
#[pyfunction]
pub(crate) fn diff(py: Python<'_>, datasets: PathBuf, before: String, after: String) -> PyResult<(Rows, String)> {
    call(py, None, move |control| {
        let before = PublishedReader::find(&datasets, &before)?.until(control.stop.clone());
        let after = PublishedReader::find(&datasets, &after)?.until(control.stop.clone());
        let (schema, mut batches) = (audit::diff::schema(&before), Vec::new());
        let found = audit::diff::diff(&before, &after, |batch| {
            batches.push(batch.clone());
            Ok(())
        })?;
        Ok((Rows::in_memory(schema, batches), json(&found)))
    })
}

/// The news about the tickers of a definition, as known at an instant.
#[pyfunction]
pub(crate) fn articles(py: Python<'_>, subject: Subject, part: Part) -> PyResult<Rows> {
    call(py, None, move |control| {
        let (plan, as_of) = (subject.plan_with_claims()?, instant("as_of", subject.as_of.as_deref())?);
        subject.fetch(Some(&plan), &[FetchItem::Runs(as_of)], control)?;
        Dataset::articles(&plan, &subject.archive, as_of)?.select(part.selection()?).map(Rows::of_dataset)
    })
}

/// Every value that the signals of a definition had, with when it was known.
#[pyfunction]
pub(crate) fn history(py: Python<'_>, subject: Subject, date: Option<String>, part: Part) -> PyResult<Rows> {
    call(py, None, move |control| {
        let mut selection = part.selection()?;
        if let Some(date) = optional("date", date.as_deref(), day)? {
            (selection.from, selection.to) = (Some(date), date.succ_opt());
        }
        let (plan, ad_hoc, _) = subject.past(control)?;
        subject.fetch(Some(&plan), &[FetchItem::Runs(ad_hoc.as_of)], control)?;
        Dataset::history(&plan, &subject.archive, &ad_hoc)?.select(selection).map(Rows::of_dataset)
    })
}

/// The rows that a statement selects.
#[cfg(feature = "query")]
#[pyfunction]
pub(crate) fn query(py: Python<'_>, subject: Subject, sql: String) -> PyResult<Rows> {
    call(py, None, move |control| {
        let (plan, ad_hoc, _) = subject.past(control)?;
        subject.fetch(Some(&plan), &[FetchItem::Runs(ad_hoc.as_of)], control)?;
        let (datasets, archive, stop) = (subject.data.join("datasets"), subject.archive, control.stop.clone());
        let rows = bellwether::load::query::Question { plan, datasets, archive, ad_hoc, stop }.rows(&sql)?;
        Ok(Rows::in_memory(rows.schema(), vec![rows]))
    })
}

/// The refusal of a statement.
#[cfg(not(feature = "query"))]
#[pyfunction]
pub(crate) fn query(subject: Subject, sql: String) -> PyResult<Rows> {
    let _ = (subject, sql);
    let hint = "install a wheel that is released, or build this one with `MATURIN_PEP517_ARGS=\"--features query\" pip install .`";
    Err(raise(Error::usage("this build has no SQL engine", hint)))
}

/// The sectors that the service of a definition has signals of, as JSON.
#[pyfunction]
pub(crate) fn sectors(py: Python<'_>, definition: Given, key: Option<Key>) -> PyResult<String> {
    offered(py, definition, key, async |plan, options| Ok(json(&offered_sectors(plan, options).await?)))
}

/// The tickers that the service of a definition lists, as JSON.
#[pyfunction]
pub(crate) fn tickers(py: Python<'_>, definition: Given, key: Option<Key>) -> PyResult<String> {
    offered(py, definition, key, async |plan, options| Ok(json(&offered_tickers(plan, options).await?)))
}

/// Asks the service of a definition.
fn offered(
    py: Python<'_>,
    definition: Given,
    key: Option<Key>,
    question: impl AsyncFnOnce(&Plan, &OfferOptions) -> Result<String> + Send + 'static,
) -> PyResult<String> {
    call(py, None, move |control| {
        let mut plan = definition.plan()?;
        take_key(&mut plan, key);
        let options = OfferOptions { data: Project::find()?.data(), clock: Clock::System, control: control.clone() };
        block_on(question(&plan, &options))
    })
}

/// What a service is asked, besides the part of its signals.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GetOptions {
    last: String,
    news: bool,
    demo: bool,
    keep: bool,
}

/// The signals of some tickers as a service says them now, and the articles if they are wanted. Nothing is kept unless that
/// is asked for.
#[pyfunction]
pub(crate) fn get(
    py: Python<'_>,
    subject: Subject,
    part: Part,
    options: GetOptions,
    key: Option<Key>,
) -> PyResult<(Rows, Option<Rows>)> {
    call(py, None, move |control| {
        let GetOptions { last, news, demo, keep } = options;
        if demo && subject.definition.is_some() {
            let what = "the demo beside a definition, which has its own service";
            return Err(Error::usage(what, "leave out one of them"));
        }
        let selection = part.selection()?;
        let question = Question {
            tickers: selection.tickers.unwrap_or_default(),
            periods: selection.periods.unwrap_or_default(),
            regimes: selection.regimes.unwrap_or_default(),
            last: value("last", &last, str::parse)?,
            news,
            demo,
        };
        let given = subject.definition.as_ref().map(Given::file).transpose()?;
        let mut plan = question.plan(given, &Project::find()?)?;
        take_key(&mut plan, key);
        let archive = keep.then_some(subject.archive);
        let Answer { signals, news, .. } = &block_on(question.ask(plan, archive, control.clone()))?;
        // In memory, since the folder that they are read from goes.
        let held = |rows: &Dataset| -> Result<Rows> {
            let batches = rows.batches()?.collect::<Result<Vec<_>, _>>().map_err(Error::of_stream)?;
            Ok(Rows::in_memory(rows.schema(), batches))
        };
        Ok((held(signals)?, news.as_ref().map(held).transpose()?))
    })
}

/// The sealed runs of an archive.
#[pyfunction]
pub(crate) fn runs(py: Python<'_>, archive: PathBuf) -> PyResult<Rows> {
    call(py, None, move |_| {
        let rows = ListedRun::rows(&RunListing::of(&archive)?.runs)?;
        Ok(Rows::in_memory(rows.schema(), vec![rows]))
    })
}

/// The published versions in a folder of datasets.
#[pyfunction]
pub(crate) fn datasets(py: Python<'_>, datasets: PathBuf) -> PyResult<Rows> {
    call(py, None, move |_| {
        let all = &published_versions(&datasets)?;
        let text = |of: fn(&ListedVersion) -> String| Arc::new(StringArray::from_iter_values(all.iter().map(of)));
        let count = |of: fn(&ListedVersion) -> u64| Arc::new(UInt64Array::from_iter_values(all.iter().map(of)));
        let date = |of: fn(&ListedVersion) -> Option<NaiveDate>| {
            Arc::new(Date32Array::from_iter(all.iter().map(|it| of(it).map(Date32Type::from_naive_date))))
        };
        let instant = |of: fn(&ListedVersion) -> DateTime<Utc>| {
            let micros = all.iter().map(|it| of(it).timestamp_micros());
            Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC"))
        };
        let mut pins = ListBuilder::new(StringBuilder::new());
        all.iter().for_each(|it| pins.append_value(it.pins.iter().map(Some)));
        let columns: [(&str, ArrayRef); 13] = [
            ("name", text(|it| it.name.clone())),
            ("dataset", text(|it| it.dataset.clone())),
            ("version", text(|it| it.version.clone())),
            ("kind", text(|it| it.kind.as_str().to_owned())),
            ("pins", Arc::new(pins.finish())),
            ("shape", text(|it| it.shape.as_str().to_owned())),
            ("rows", count(|it| it.rows)),
            ("first_date", date(|it| it.first_date)),
            ("last_date", date(|it| it.last_date)),
            ("bytes", count(|it| it.bytes)),
            ("as_of", instant(|it| it.as_of)),
            ("built_at", instant(|it| it.built_at)),
            ("path", text(|it| it.path.display().to_string())),
        ];
        let rows = RecordBatch::try_from_iter(columns).map_err(Error::frame)?;
        Ok(Rows::in_memory(rows.schema(), vec![rows]))
    })
}

/// The report of a dataset: its name, its page, and its text.
#[pyfunction]
pub(crate) fn report(py: Python<'_>, name: Option<String>, subject: Subject) -> PyResult<(String, String, String)> {
    call(py, None, move |control| {
        let as_of = instant("as_of", subject.as_of.as_deref())?;
        if let Some(name) = &name {
            subject.fetch_version(name, &[FetchItem::Runs(as_of)], control)?;
        }
        let (data, archive, control) = (subject.data, subject.archive, control.clone());
        let root = Project::find()?.root().to_owned();
        let options = ReportOptions { name, data, archive, root, as_of, clock: Clock::System, control };
        let report = block_on(bellwether::run::report(options))?;
        // The text is 100 columns wide.
        Ok((report.identity.name.clone(), report.page(), report.text(100)))
    })
}
