//! Python arguments as values of the library. A refusal names the argument, in the words of the program.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use bellwether::definition::{Layout, TimeOfDay};
use bellwether::error::{Error, Result};
use bellwether::interface::{Period, Regime, Unknown};
use bellwether::load::Selection;
use bellwether::plan::{AdHoc, Added, Claims, Column, Plan, Vintage};
use bellwether::run::{AsOf, FetchItem, Past, PastQuery};
use bellwether::time::{self, Clock};
use chrono::{DateTime, NaiveDate, Utc};
use pyo3::prelude::*;
use tokio_util::sync::CancellationToken;

use crate::store;

/// A part of a dataset, as a Python argument.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Part {
    columns: Option<Vec<String>>,
    tickers: Option<Vec<String>>,
    sectors: Option<Vec<String>>,
    periods: Option<Vec<String>>,
    regimes: Option<Vec<String>>,
    start: Option<String>,
    end: Option<String>,
}

impl Part {
    pub(crate) fn selection(&self) -> Result<Selection> {
        let date = |argument: &str, text: &Option<String>| text.as_deref().map(|text| day(argument, text)).transpose();
        Ok(Selection {
            columns: self.columns.clone(),
            tickers: each("tickers", self.tickers.as_deref())?,
            sectors: each("sectors", self.sectors.as_deref())?,
            periods: each("periods", self.periods.as_deref())?,
            regimes: each("regimes", self.regimes.as_deref())?,
            from: date("start", &self.start)?,
            to: date("end", &self.end)?,
        })
    }
}

/// How to load a dataset, as a Python argument.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LoadOptions {
    layout: Option<String>,
    as_of: Option<String>,
    vintage: Option<String>,
    include: Option<String>,
    missing: String,
    add: Vec<String>,
    labels: Vec<String>,
    lag: Option<u32>,
    stamp: Option<String>,
}

impl LoadOptions {
    /// Whether tickers without rows are left out, and not refused.
    pub(crate) fn ignores_missing(&self) -> Result<bool> {
        match self.missing.as_str() {
            "fail" => Ok(false),
            "ignore" => Ok(true),
            other => Err(invalid("missing", other, "it is neither `fail` nor `ignore`", "choose one of them")),
        }
    }

    /// The layout; none for that of the version.
    pub(crate) fn layout(&self) -> Result<Option<Layout>> {
        self.layout.as_deref().map(|text| definition_value("layout", text)).transpose()
    }

    /// The column that dates the rows of matrices.
    pub(crate) fn stamp(&self) -> Result<Column> {
        match self.stamp.as_deref() {
            None | Some("date") => Ok(Column::Date),
            Some("session") => Ok(Column::EntryAt),
            Some(other) => Err(invalid("stamp", other, "it is neither `date` nor `session`", "choose one of them")),
        }
    }

    /// Whether it has columns that a version may not have.
    pub(crate) fn adds(&self) -> Result<bool> {
        let stamps = self.layout()? == Some(Layout::Wide) && self.stamp()? == Column::EntryAt;
        Ok(stamps || !self.add.is_empty() || !self.labels.is_empty())
    }

    /// Which data it has; none for those of a published version.
    pub(crate) fn state(&self) -> Option<DataState> {
        let Self { as_of, vintage, include, .. } = self;
        let is_other = as_of.is_some() || vintage.is_some() || include.is_some();
        is_other.then(|| DataState { as_of: as_of.clone(), vintage: vintage.clone(), include: include.clone() })
    }

    /// The options of an ad hoc build that add columns.
    pub(crate) fn with_added(&self, ad_hoc: AdHoc) -> Result<AdHoc> {
        let mut add: Vec<Added> = self.add.iter().map(|text| definition_value("add", text)).collect::<Result<_>>()?;
        if self.layout()? == Some(Layout::Wide) && self.stamp()? == Column::EntryAt {
            add.push(Added::EntryAt);
        }
        let period = |text: &String| {
            text.parse().map_err(|_| invalid("horizons", text, "it is no period", "use `1d` to `30d`, or `1m` to `6m`"))
        };
        let labels = self.labels.iter().map(period).collect::<Result<_>>()?;
        Ok(AdHoc { add, labels, lag: self.lag, ..ad_hoc })
    }
}

/// Which data a dataset has, as Python arguments: as of an instant, a version or a run, of which vintage, and with what the
/// definition leaves out.
#[derive(Default)]
pub(crate) struct DataState {
    pub(crate) as_of: Option<String>,
    pub(crate) vintage: Option<String>,
    pub(crate) include: Option<String>,
}

impl DataState {
    /// The plan and the options of an ad hoc build, and what its user must know.
    pub(crate) fn find(
        &self,
        plan: Plan,
        (data, archive): (&Path, &Path),
        stop: &CancellationToken,
    ) -> Result<(Plan, AdHoc, Option<String>)> {
        let vintage: Option<Vintage> =
            self.vintage.as_deref().map(|text| definition_value("vintage", text)).transpose()?;
        let parsed =
            |text| AsOf::parse(text, Clock::System.now()).map_err(|refusal| invalid("as_of", text, refusal, PAST));
        let as_of = self.as_of.as_deref().map(parsed).transpose()?;
        // What the definition includes anyway is no option of the build.
        let included = claims(self.include.as_deref())?;
        let claims = if plan.claims == Claims::Included { Claims::LeftOut } else { included };
        let query = PastQuery { data, archive, claims };
        store::fetch(Some(&plan), (data, archive), &FetchItem::of_name(&plan.name, as_of.as_ref()), stop)?;
        let Past { plan, as_of, version, note } = query.find(plan, as_of.as_ref())?;
        Ok((plan, AdHoc { as_of, version, vintage, claims, ..AdHoc::default() }, note))
    }
}

/// Whether claims count that the definition leaves out.
pub(crate) fn claims(include: Option<&str>) -> Result<Claims> {
    match include {
        None => Ok(Claims::LeftOut),
        Some("claimed") => Ok(Claims::Included),
        Some(other) => Err(invalid("include", other, "it is not `claimed`", "leave it out, or use `claimed`")),
    }
}

/// The period or the regime of a factor, which a selection must not leave out.
pub(crate) fn choice<T>(argument: &str, text: Option<&str>, selected: &mut Option<BTreeSet<T>>) -> Result<()>
where
    T: FromStr<Err = Unknown> + Ord + Display,
{
    let Some(text) = text else { return Ok(()) };
    let wanted: T = service_value(argument, text)?;
    if selected.as_ref().is_some_and(|selected| !selected.contains(&wanted)) {
        let what = format!("the dataset was loaded without {} `{wanted}`", argument.trim_end_matches('s'));
        return Err(Error::usage(what, format!("add it to `{argument}` of `load`, or choose another one")));
    }
    *selected = Some(BTreeSet::from([wanted]));
    Ok(())
}

/// The period and the regime of a factor.
pub(crate) fn pair(selection: &mut Selection, period: Option<&str>, regime: Option<&str>) -> Result<()> {
    choice::<Period>("periods", period, &mut selection.periods)?;
    choice::<Regime>("regimes", regime, &mut selection.regimes)
}

/// Values of a closed set.
pub(crate) fn each<T: FromStr<Err = Unknown> + Ord>(
    argument: &str,
    texts: Option<&[String]>,
) -> Result<Option<BTreeSet<T>>> {
    texts.map(|texts| texts.iter().map(|text| service_value(argument, text)).collect()).transpose()
}

/// A value of a closed set of the service.
pub(crate) fn service_value<T: FromStr<Err = Unknown>>(argument: &str, text: &str) -> Result<T> {
    text.parse().map_err(|unknown: Unknown| invalid(argument, text, &unknown, unknown.hint))
}

/// A value of a closed set of definitions, whose refusal has the hint on a second line.
pub(crate) fn definition_value<T: FromStr<Err = String>>(argument: &str, text: &str) -> Result<T> {
    text.parse().map_err(|refusal: String| {
        let (what, hint) = refusal.split_once('\n').unwrap_or((&refusal, "choose another one"));
        invalid(argument, text, what, hint)
    })
}

/// A time of day in a time zone.
pub(crate) fn time_of_day(argument: &str, text: &str) -> Result<TimeOfDay> {
    definition_value(argument, text)
}

/// A calendar day.
pub(crate) fn day(argument: &str, text: &str) -> Result<NaiveDate> {
    time::day(text).map_err(|refusal| invalid(argument, text, refusal, "a day is a date, or text such as `2026-03-31`"))
}

/// The forms of an instant, a version or a run.
const PAST: &str =
    "use a day, a datetime with a time zone, text such as `2026-03-31T18:00:00Z`, or the name of a version or a run";

/// The forms of an instant.
const FORMS: &str = "an instant is a day, a datetime with a time zone, or text such as `2026-03-31T18:00:00Z`";

/// An instant, or the end of a day.
pub(crate) fn instant(argument: &str, text: Option<&str>) -> Result<Option<DateTime<Utc>>> {
    let parsed =
        |text| time::as_of(text, Clock::System.now()).map_err(|refusal| invalid(argument, text, refusal, FORMS));
    text.map(parsed).transpose()
}

/// The refusal of an argument.
pub(crate) fn invalid(argument: &str, given: impl Display, refusal: impl Display, hint: &str) -> Error {
    Error::usage(format!("invalid value `{given}` for `{argument}`: {refusal}"), hint)
}
