//! Queries of the archive and of published versions. Results are rows, and totals as JSON.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Date32Array, ListBuilder, RecordBatch, StringArray,
    StringBuilder, TimestampMicrosecondArray, UInt64Array,
};
use arrow::compute::{cast, filter};
use arrow::datatypes::{DataType, Date32Type, SchemaRef};
use arrow::error::ArrowError;
use bellwether::archive::{ListedRun, RunListing};
use bellwether::audit;
use bellwether::audit::skill::WhenMissing;
use bellwether::audit::table::{TableInput, TableSource};
use bellwether::error::{Error, Result};
use bellwether::export::{self, ListedVersion, PublishedReader};
use bellwether::load::Dataset;
#[cfg(feature = "query")]
use bellwether::load::query::Question;
use bellwether::plan::{Claims, Plan};
use bellwether::prices::PriceRows;
use bellwether::project::Project;
use bellwether::run::{
    AuditOptions, Control, DEMO_SEED, FetchItem, OfferOptions, PriceInput, ReportOptions, SkillOptions, audit_quality,
    audit_revisions, audit_skill, audit_table as audit_of_table, offered_sectors, offered_tickers,
};
use bellwether::serve::{Universe, price_schema};
use bellwether::time::Clock;
use chrono::{DateTime, NaiveDate, Utc};
use pyo3::prelude::*;
use pyo3::types::PyList;
use tokio_util::sync::CancellationToken;

use crate::arguments::{DataState, Part, claims, day, instant, service_value, time_of_day};
use crate::definition::DefinitionArgument;
use crate::fault::exception;
use crate::publish::{Key, block_on, take_key};
use crate::rows::{Rows, batches_of};
use crate::store;
use crate::supervise::{json, quietly};

/// The subject of an audit: the definition, if any, the data folder and the archive, and what counts that the definition
/// leaves out.
type AuditTarget = (Option<DefinitionArgument>, PathBuf, PathBuf, Option<String>);

/// Collects the rows of an audit.
fn gather<T>(
    schema: SchemaRef,
    ask: impl FnOnce(&mut dyn FnMut(&RecordBatch) -> Result<()>) -> Result<T>,
) -> Result<(Rows, T)> {
    let mut batches = Vec::new();
    let found = ask(&mut |batch| {
        batches.push(batch.clone());
        Ok(())
    })?;
    Ok((Rows::in_memory(schema, batches), found))
}

fn plan_of(subject: &AuditTarget, service: Option<&str>) -> Result<Option<Plan>> {
    let (definition, data, _, include) = subject;
    if definition.is_some() && service.is_some() {
        return Err(Error::usage("a service beside a definition, which has its own", "leave out one of them"));
    }
    match (definition, claims(include.as_deref())?) {
        (None, Claims::LeftOut) => Ok(None),
        (None, Claims::Included) => Err(Error::usage(
            "claims included without a definition",
            "name a definition, or audit the claims alone with `service=\"SERVICE.claimed\"`",
        )),
        (Some(definition), claims) => Ok(Some(with_claims(definition.plan_or_published(data)?, claims))),
    }
}

/// Asks an archive, with the runs that only its store has, as of an instant.
fn asked<T>(
    subject: &AuditTarget,
    service: Option<&str>,
    as_of: Option<DateTime<Utc>>,
    stop: &CancellationToken,
    question: impl FnOnce(AuditOptions<'_>) -> Result<T>,
) -> Result<T> {
    let plan = plan_of(subject, service)?;
    store::fetch(plan.as_ref(), (&subject.1, &subject.2), &[FetchItem::Runs(as_of)], stop)?;
    let control = Control { stop: stop.clone(), ..Control::default() };
    question(AuditOptions { archive: &subject.2, service, plan: plan.as_ref(), as_of, control: &control })
}

fn with_claims(plan: Plan, claims: Claims) -> Plan {
    if claims == Claims::Included { plan.with_claims() } else { plan }
}

/// The vendor's rewrites after one instant, up to another.
#[pyfunction]
pub(crate) fn revisions(
    py: Python<'_>,
    subject: AuditTarget,
    service: Option<String>,
    after: Option<String>,
    until: Option<String>,
) -> PyResult<(Rows, String)> {
    quietly(py, move |stop| {
        let (after, until) = (instant("after", after.as_deref())?, instant("until", until.as_deref())?);
        asked(&subject, service.as_deref(), until, stop, |options| {
            let (rows, found) = gather(audit::revisions::schema(), |deliver| audit_revisions(options, after, deliver))?;
            Ok((rows, json(&found)))
        })
    })
}

/// Gaps, stale series, repeated articles, unusual values, rejected records and unknown fields.
#[pyfunction]
pub(crate) fn quality(
    py: Python<'_>,
    subject: AuditTarget,
    service: Option<String>,
    as_of: Option<String>,
) -> PyResult<(Rows, String)> {
    quietly(py, move |stop| {
        asked(&subject, service.as_deref(), instant("as_of", as_of.as_deref())?, stop, |options| {
            let (rows, found) = gather(audit::quality::schema(), |deliver| audit_quality(options, deliver))?;
            Ok((rows, json(&found)))
        })
    })
}

/// The prices of an audit of skill, as a Python argument: files, or an object with an Arrow C stream.
#[derive(FromPyObject)]
pub(crate) enum PriceArgument<'py> {
    /// A frame of pandas gives the names of its columns as items.
    Files(Bound<'py, PyList>),
    Stream(Bound<'py, PyAny>),
}

/// The prices that an argument stands for.
pub(crate) fn price_input(prices: Option<PriceArgument<'_>>) -> PyResult<PriceInput> {
    Ok(match prices {
        None => PriceInput::OfDefinition,
        Some(PriceArgument::Files(files)) => PriceInput::Files(files.extract()?),
        Some(PriceArgument::Stream(stream)) => {
            let (schema, batches) = batches_of(&stream)?;
            PriceInput::Rows(PriceRows { schema, batches })
        }
    })
}

/// How skill is measured, as a Python argument.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct HowSkill {
    as_of: Option<String>,
    after: Option<String>,
    lag: u32,
    allow_missing: bool,
}

/// The columns of the parts of an audit of skill, after those of a series.
const OF_PAIRS: &str = "names correlation mean_return buys buy_hits buy_excess sells sell_hits sell_excess confidents \
                        confident_hits confident_excess spread dates horizon windows positive standard_error \
                        degrees_of_freedom lower upper p p_holm p_benjamini_hochberg disjoint_correlation disjoint_p flips";
const OF_DATES: &str = "date names correlation mean_return buys buy_hits buy_excess sells sell_hits sell_excess confidents \
                        confident_hits confident_excess spread";
const OF_LAGS: &str = "lag names correlation dates horizon windows standard_error degrees_of_freedom lower upper p";
const OF_FEATURES: &str = "feature names correlation dates horizon windows positive standard_error degrees_of_freedom lower \
                           upper p p_holm p_benjamini_hochberg disjoint_correlation disjoint_p";

/// The parts of an audit of skill, each with the columns that its rows have: of each pair and state over all dates, of its
/// dates, of its lags, and of the features of the news.
fn parts_of_skill(rows: &Rows) -> Result<Vec<Rows>> {
    let none = RecordBatch::new_empty(audit::skill::schema());
    let part = |number: usize, columns: &str| -> Result<Rows, ArrowError> {
        let mut found = Vec::new();
        for batch in std::iter::once(&none).chain(rows.held()) {
            let named = |name: &str| batch.column_by_name(name).expect("an audit of skill has the column");
            let (feature, date, by) = (named("feature"), named("date"), named("by").as_string::<i32>());
            let part_of = |row: usize| match (feature.is_valid(row), date.is_valid(row), by.is_valid(row)) {
                (false, false, false) => Some(0),
                (false, true, _) => Some(1),
                (false, false, true) if by.value(row) == "lag" => Some(2),
                (true, false, false) => Some(3),
                _ => None,
            };
            let taken: BooleanArray = (0..batch.num_rows()).map(|row| Some(part_of(row) == Some(number))).collect();
            let mut parts = Vec::new();
            for name in ["period", "regime", "state"].into_iter().chain(columns.split(' ')) {
                let column = match name {
                    "lag" => cast(&filter(named("group"), &taken)?, &DataType::Int64)?,
                    name => filter(named(name), &taken)?,
                };
                parts.push((name, column, true));
            }
            found.push(RecordBatch::try_from_iter_with_nullable(parts)?);
        }
        Ok(Rows::in_memory(found[0].schema(), found))
    };
    let parts = [OF_PAIRS, OF_DATES, OF_LAGS, OF_FEATURES].into_iter().enumerate();
    parts.map(|(number, columns)| part(number, columns).map_err(Error::frame)).collect()
}

/// Whether signals predicted: a row for each date, pair of period and regime, and state; the parts of these rows; what it
/// comes to as JSON, and in words.
#[pyfunction]
pub(crate) fn skill(
    py: Python<'_>,
    subject: AuditTarget,
    prices: Option<PriceArgument<'_>>,
    how: HowSkill,
) -> PyResult<(Rows, Vec<Rows>, String, String)> {
    let prices = price_input(prices)?;
    let when_missing = if how.allow_missing { WhenMissing::Allow } else { WhenMissing::Refuse };
    let options = SkillOptions {
        prices,
        lag: how.lag,
        when_missing,
        from: instant("after", how.after.as_deref()).map_err(|error| exception(py, &error))?,
    };
    quietly(py, move |stop| {
        asked(&subject, None, instant("as_of", how.as_of.as_deref())?, stop, |of| {
            let (rows, found) = gather(audit::skill::schema(), |deliver| audit_skill(of, &options, deliver))?;
            let text = bellwether_cli::skill_in_words(&found);
            let parts = parts_of_skill(&rows)?;
            Ok((rows, parts, serde_json::to_string(&found).expect("it is text"), text))
        })
    })
}

/// What the columns of a table are, as a Python argument.
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
    as_of: Option<String>,
}

/// Which values of a table had been published by the time of decision: a row for each that was not the latest one.
#[pyfunction]
pub(crate) fn audit_table(
    py: Python<'_>,
    table: PriceArgument<'_>,
    subject: AuditTarget,
    service: Option<String>,
    columns: TableColumns,
) -> PyResult<(Rows, String)> {
    let source = match table {
        PriceArgument::Files(files) => TableSource::File(files.get_item(0)?.extract()?),
        PriceArgument::Stream(stream) => {
            let (schema, batches) = batches_of(&stream)?;
            TableSource::Rows(schema, batches)
        }
    };
    quietly(py, move |stop| {
        let TableColumns { ticker, date, decided_at, at, period, regime, features, as_of } = columns;
        let as_of = instant("as_of", as_of.as_deref())?;
        let decided_time = at.as_deref().map(|text| time_of_day("at", text)).transpose()?;
        let period = period.as_deref().map(|text| service_value("period", text)).transpose()?;
        let regime = regime.as_deref().map(|text| service_value("regime", text)).transpose()?;
        let with_features = features;
        let input = TableInput { source, ticker, date, decided_at, decided_time, period, regime, with_features };
        asked(&subject, service.as_deref(), as_of, stop, |options| {
            let (rows, found) = gather(audit::table::schema(), |deliver| audit_of_table(options, &input, deliver))?;
            Ok((rows, json(&found)))
        })
    })
}

/// The closing prices of the demo universe.
#[pyfunction]
pub(crate) fn demo_prices(py: Python<'_>, today: Option<String>, seed: Option<u64>) -> PyResult<Rows> {
    quietly(py, move |_| {
        let today = today.map_or_else(|| Ok(Clock::System.now().date_naive()), |text| day("today", &text))?;
        let universe = Universe::new(seed.unwrap_or(DEMO_SEED), today);
        Ok(Rows::in_memory(price_schema(), universe.price_rows().collect()))
    })
}

/// The rows that differ between two versions.
#[pyfunction]
pub(crate) fn diff(py: Python<'_>, datasets: PathBuf, before: String, after: String) -> PyResult<(Rows, String)> {
    quietly(py, move |stop| {
        let find = |given: &str| PublishedReader::find(&datasets, given).map(|version| version.until(stop.clone()));
        let (before, after) = (find(&before)?, find(&after)?);
        let schema = audit::diff::schema(&before);
        let (rows, found) = gather(schema, |deliver| audit::diff::diff(&before, &after, deliver))?;
        Ok((rows, json(&found)))
    })
}

/// The news about the tickers of a definition, as known at an instant.
#[pyfunction]
pub(crate) fn articles(
    py: Python<'_>,
    subject: (DefinitionArgument, PathBuf, PathBuf, Option<String>),
    as_of: Option<String>,
    part: Part,
) -> PyResult<Rows> {
    quietly(py, move |stop| {
        let (definition, data, archive, include) = subject;
        let plan = with_claims(definition.plan_or_published(&data)?, claims(include.as_deref())?);
        let as_of = instant("as_of", as_of.as_deref())?;
        store::fetch(Some(&plan), (&data, &archive), &[FetchItem::Runs(as_of)], stop)?;
        let articles = Dataset::articles(&plan, &archive, as_of)?.select(part.selection()?)?;
        Ok(Rows::of_dataset(articles))
    })
}

/// Every value that the signals of a definition had, with when it was known.
#[pyfunction]
pub(crate) fn history(
    py: Python<'_>,
    subject: (DefinitionArgument, PathBuf, PathBuf, Option<String>),
    as_of: Option<String>,
    date: Option<String>,
    part: Part,
) -> PyResult<Rows> {
    quietly(py, move |stop| {
        let mut selection = part.selection()?;
        if let Some(date) = date.as_deref().map(|text| day("date", text)).transpose()? {
            (selection.from, selection.to) = (Some(date), date.succ_opt());
        }
        let (definition, data, archive, include) = subject;
        let plan = definition.plan_or_published(&data)?;
        let state = DataState { as_of, vintage: None, include };
        let (plan, ad_hoc, _) = state.find(plan, (&data, &archive), stop)?;
        store::fetch(Some(&plan), (&data, &archive), &[FetchItem::Runs(ad_hoc.as_of)], stop)?;
        let values = Dataset::history(&plan, &archive, &ad_hoc)?.select(selection)?;
        Ok(Rows::of_dataset(values))
    })
}

/// The rows that a statement in SQL selects from a dataset and the archive behind it.
#[pyfunction]
pub(crate) fn query(
    py: Python<'_>,
    subject: (DefinitionArgument, PathBuf, PathBuf, Option<String>),
    sql: String,
    as_of: Option<String>,
) -> PyResult<Rows> {
    quietly(py, move |stop| answer(subject, &sql, as_of, stop))
}

#[cfg(feature = "query")]
fn answer(
    (definition, data, archive, include): (DefinitionArgument, PathBuf, PathBuf, Option<String>),
    sql: &str,
    as_of: Option<String>,
    stop: &CancellationToken,
) -> Result<Rows> {
    let plan = definition.plan_or_published(&data)?;
    let state = DataState { as_of, vintage: None, include };
    let (plan, ad_hoc, _) = state.find(plan, (&data, &archive), stop)?;
    store::fetch(Some(&plan), (&data, &archive), &[FetchItem::Runs(ad_hoc.as_of)], stop)?;
    let question = Question { plan, datasets: data.join("datasets"), archive, ad_hoc, stop: stop.clone() };
    let rows = question.rows(sql)?;
    Ok(Rows::in_memory(rows.schema(), vec![rows]))
}

#[cfg(not(feature = "query"))]
fn answer(
    _: (DefinitionArgument, PathBuf, PathBuf, Option<String>),
    _: &str,
    _: Option<String>,
    _: &CancellationToken,
) -> Result<Rows> {
    let hint = "install a wheel that is released, or build this one with `MATURIN_PEP517_ARGS=\"--features query\" pip install .`";
    Err(Error::usage("this build has no SQL engine", hint))
}

/// The sectors that the service of a definition has signals of, as JSON.
#[pyfunction]
pub(crate) fn sectors(py: Python<'_>, definition: DefinitionArgument, key: Option<Py<Key>>) -> PyResult<String> {
    offered(py, definition, key, async |plan, options| Ok(json(&offered_sectors(plan, options).await?)))
}

/// The tickers that the service of a definition lists, as JSON.
#[pyfunction]
pub(crate) fn tickers(py: Python<'_>, definition: DefinitionArgument, key: Option<Py<Key>>) -> PyResult<String> {
    offered(py, definition, key, async |plan, options| Ok(json(&offered_tickers(plan, options).await?)))
}

/// Asks the service of a definition.
fn offered(
    py: Python<'_>,
    definition: DefinitionArgument,
    key: Option<Py<Key>>,
    question: impl AsyncFnOnce(&Plan, &OfferOptions) -> Result<String> + Send + 'static,
) -> PyResult<String> {
    let key = key.map(|key| key.get().0.clone());
    quietly(py, move |stop| {
        let mut plan = definition.plan()?;
        take_key(&mut plan, key);
        let control = Control { stop: stop.clone(), ..Control::default() };
        let options = OfferOptions { data: Project::find()?.data(), clock: Clock::System, control };
        block_on(question(&plan, &options))
    })
}

/// The sealed runs of an archive.
#[pyfunction]
pub(crate) fn runs(py: Python<'_>, archive: PathBuf) -> PyResult<Rows> {
    quietly(py, move |_| {
        let rows = ListedRun::rows(&RunListing::of(&archive)?.runs)?;
        Ok(Rows::in_memory(rows.schema(), vec![rows]))
    })
}

/// The published versions in a folder of datasets.
#[pyfunction]
pub(crate) fn datasets(py: Python<'_>, datasets: PathBuf) -> PyResult<Rows> {
    quietly(py, move |_| {
        let versions = export::published_versions(&datasets)?;
        let count =
            |of: fn(&ListedVersion) -> u64| -> ArrayRef { Arc::new(versions.iter().map(of).collect::<UInt64Array>()) };
        let text = |of: fn(&ListedVersion) -> String| texts(versions.iter().map(|version| Some(of(version))));
        let date = |of: fn(&ListedVersion) -> Option<NaiveDate>| -> ArrayRef {
            Arc::new(
                versions.iter().map(|version| of(version).map(Date32Type::from_naive_date)).collect::<Date32Array>(),
            )
        };
        let mut pins = ListBuilder::new(StringBuilder::new());
        versions.iter().for_each(|of| pins.append_value(of.pins.iter().map(Some)));
        table([
            ("name", text(|of| of.name.clone())),
            ("dataset", text(|of| of.dataset.clone())),
            ("version", text(|of| of.version.clone())),
            ("kind", text(|of| of.kind.as_str().to_owned())),
            ("pins", Arc::new(pins.finish())),
            ("shape", text(|of| of.shape.as_str().to_owned())),
            ("rows", count(|of| of.rows)),
            ("first_date", date(|of| of.first_date)),
            ("last_date", date(|of| of.last_date)),
            ("bytes", count(|of| of.bytes)),
            ("as_of", instants(versions.iter().map(|of| of.as_of))),
            ("built_at", instants(versions.iter().map(|of| of.built_at))),
            ("path", text(|of| of.path.display().to_string())),
        ])
    })
}

/// The report of a dataset: its name, its page, and its text.
#[pyfunction]
pub(crate) fn report(
    py: Python<'_>,
    name: Option<String>,
    data: PathBuf,
    archive: PathBuf,
    as_of: Option<String>,
) -> PyResult<(String, String, String)> {
    /// Width of the text, in columns.
    const WIDTH: usize = 100;
    quietly(py, move |stop| {
        let as_of = instant("as_of", as_of.as_deref())?;
        if let Some(name) = &name {
            store::fetch_version(name, (&data, &archive), &[FetchItem::Runs(as_of)], stop)?;
        }
        let control = Control { stop: stop.clone(), ..Control::default() };
        let root = Project::find()?.root().to_owned();
        let options = ReportOptions { name, data, archive, root, as_of, clock: Clock::System, control };
        let report = block_on(bellwether::run::report(options))?;
        Ok((report.identity.name.clone(), report.page(), report.text(WIDTH)))
    })
}

fn texts(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn instants(values: impl Iterator<Item = impl Into<Option<DateTime<Utc>>>>) -> ArrayRef {
    let micros = values.map(|instant| instant.into().map(|instant| instant.timestamp_micros()));
    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}

fn table<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<Rows> {
    let rows = RecordBatch::try_from_iter(columns).map_err(Error::frame)?;
    Ok(Rows::in_memory(rows.schema(), vec![rows]))
}
