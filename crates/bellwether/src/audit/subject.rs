//! The subject of an audit: a whole archive as of an instant, or the part that a definition's dataset uses; and its
//! observations by column.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::str::FromStr;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int8Array, Int16Array, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Int8Type;
use chrono::{DateTime, NaiveDate, Utc};

use crate::archive::{Histories, History, Scope, StoredObservations, View};
use crate::error::Result;
use crate::identity::Identity;
use crate::interface::{Endpoint, Period, Regime, Sector, Signal, Ticker};
use crate::plan::{DatasetPlan, NaiveRule};
use crate::process::in_order::in_order;
use crate::sessions::Sessions;
use crate::tables::{Change, SeriesKey, Table, TypedRows};

/// An archive, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(super) view: View,
    part: Option<DatasetSeries>,
    sectors: HashMap<Ticker, Sector>,
    /// The trading days of its definition, if it has one.
    pub(super) sessions: Option<Sessions>,
    /// Which tickers it says are the same.
    pub(super) identity: Identity,
    /// How its dataset dates signals.
    pub(super) dates: NaiveRule,
}

/// A dataset's series of signals, their tickers, and its range of dates.
#[derive(Clone, Debug)]
struct DatasetSeries {
    scope: Scope,
    series: HashSet<SeriesKey>,
    tickers: HashSet<Ticker>,
}

impl Subject {
    /// A whole archive.
    pub(crate) fn whole(view: View) -> Result<Self> {
        Ok(Self {
            sectors: view.sectors(None)?,
            view,
            part: None,
            sessions: None,
            identity: Identity::default(),
            dates: NaiveRule::Utc,
        })
    }

    /// The part of an archive that a dataset uses: the signals of a scope, and the news of their tickers. The trading days
    /// are those of its definition, and which tickers are the same.
    pub(crate) fn part(view: View, scope: Scope, plan: &DatasetPlan) -> Result<Self> {
        let series = view.members(&scope)?;
        let tickers = series.iter().map(|key| key.ticker.clone()).collect();
        let sectors = view.sectors(Some(&scope))?;
        let part = Some(DatasetSeries { scope, series, tickers });
        let (sessions, identity) = (Some(plan.sessions.clone()), plan.identity.clone());
        Ok(Self { sectors, view, part, sessions, identity, dates: plan.dates })
    }

    /// The signals of the part; none for a whole archive.
    pub(super) fn scope(&self) -> Option<&Scope> {
        self.part.as_ref().map(|part| &part.scope)
    }

    /// The pairs of period and regime of the part's signals; none for a whole archive.
    pub(super) fn pairs(&self) -> BTreeSet<(Period, Regime)> {
        let series = self.part.iter().flat_map(|part| &part.series);
        series.filter_map(|key| key.period.zip(key.regime)).collect()
    }

    /// Works on pieces of the archive, several at once, and takes the results in order.
    pub(super) fn each_piece<I: Iterator<Item = Result<StoredObservations>>, R: Send>(
        &self,
        pieces: impl FnOnce(&View) -> Result<I> + Send,
        work: impl Fn(&Histories, &ObservedColumns<'_>) -> Result<R> + Sync,
        take: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let work_on = |piece: StoredObservations| {
            let histories = piece.histories()?;
            work(&histories, &ObservedColumns::new(&histories))
        };
        in_order(|| pieces(&self.view), work_on, take)
    }

    /// The series that are in scope.
    pub(super) fn series<'h>(&self, histories: &'h Histories) -> impl Iterator<Item = &'h History> {
        histories.series.iter().filter(|history| self.has(&history.key))
    }

    /// Whether a series is in scope.
    pub(super) fn has(&self, key: &SeriesKey) -> bool {
        self.part.as_ref().is_none_or(|part| match key.table {
            Some(Table::Signals) => part.series.contains(key),
            _ => part.tickers.contains(&key.ticker),
        })
    }

    /// Whether the date of a row, as the dataset has it, is in scope; that of a row without a date is not.
    pub(super) fn has_date(&self, observed: &ObservedColumns<'_>, row: usize) -> bool {
        let is_in_scope = |date: i64| self.scope().is_none_or(|scope| scope.filter.dates().contains(&date));
        observed.naive_date(row, self.dates).is_some_and(is_in_scope)
    }

    /// Whether a ticker counts on a date that the dataset has, in naive microseconds.
    pub(super) fn has_member(&self, ticker: &Ticker, date: i64) -> bool {
        self.scope().is_none_or(|scope| scope.filter.has_member(ticker, date))
    }

    /// The sector of a ticker; `-` if no sector history lists it.
    pub(super) fn sector(&self, ticker: &Ticker) -> &str {
        self.sectors.get(ticker).map_or("-", Sector::as_str)
    }
}

/// An instant in microseconds.
pub(super) fn instant_of(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

/// The day of a naive timestamp in microseconds.
pub(super) fn day(micros: i64) -> NaiveDate {
    instant_of(micros).date_naive()
}

/// The value of a cell: the signal and confidence of a signal, or the score of an article.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    /// Buy or sell, for a signal.
    pub signal: Option<Signal>,
    /// Confidence or score.
    pub number: Option<f64>,
}

/// Columns of some histories.
pub(super) struct ObservedColumns<'a> {
    pub(super) dates: &'a TimestampMicrosecondArray,
    pub(super) seen: &'a TimestampMicrosecondArray,
    /// The titles and links of articles.
    pub(super) texts: Option<[&'a StringArray; 2]>,
    /// Of signals.
    offsets: Option<&'a Int16Array>,
    changes: &'a [Change],
    signals: Option<ChoiceColumn<'a, Signal>>,
    sources: ChoiceColumn<'a, Endpoint>,
    numbers: &'a Float64Array,
}

impl<'a> ObservedColumns<'a> {
    pub(super) fn new(histories: &'a Histories) -> Self {
        let rows = TypedRows(&histories.rows);
        let are_signals = histories.rows.column_by_name("signal").is_some();
        Self {
            dates: rows.instants("date"),
            seen: rows.instants("observed_at"),
            texts: (!are_signals).then(|| ["title", "link"].map(|name| rows.texts(name))),
            offsets: are_signals.then(|| rows.offsets()),
            changes: &histories.changes,
            signals: are_signals.then(|| ChoiceColumn::new(rows.column("signal"))),
            sources: ChoiceColumn::new(rows.column("source")),
            numbers: rows.reals(if are_signals { "confidence" } else { "score" }),
        }
    }

    pub(super) fn value(&self, row: usize) -> Value {
        let number = self.numbers.is_valid(row).then(|| self.numbers.value(row));
        Value { signal: self.signals.as_ref().and_then(|signals| signals.get(row)), number }
    }

    /// The date of a row as the service wrote it, on the clock of its offset if it has one.
    pub(super) fn written_date(&self, row: usize) -> Option<i64> {
        let offset = i64::from(self.offset(row).unwrap_or_default());
        self.dates.is_valid(row).then(|| self.dates.value(row) + offset * 60_000_000)
    }

    /// The naive date of a row by a rule.
    pub(super) fn naive_date(&self, row: usize, rule: NaiveRule) -> Option<i64> {
        self.dates.is_valid(row).then(|| rule.face(self.dates.value(row), self.offset(row)))
    }

    fn offset(&self, row: usize) -> Option<i16> {
        self.offsets.filter(|offsets| offsets.is_valid(row)).map(|offsets| offsets.value(row))
    }

    /// The operation that gave a row.
    pub(super) fn source(&self, row: usize) -> Option<Endpoint> {
        self.sources.get(row)
    }

    /// The rows with the latest known value of each cell of a series.
    pub(super) fn known_rows(&self, history: &History) -> impl Iterator<Item = usize> {
        history.groups.cells().map(|cell| cell.end - 1).filter(|&row| !self.is_withdrawn(row))
    }

    pub(super) fn is_withdrawn(&self, row: usize) -> bool {
        self.changes[row] == Change::Withdrawn
    }
}

/// A column of a closed set, decoded from its dictionary.
struct ChoiceColumn<'a, T> {
    codes: &'a Int8Array,
    spelled: Vec<Option<T>>,
}

impl<'a, T: FromStr + Copy> ChoiceColumn<'a, T> {
    fn new(column: &'a ArrayRef) -> Self {
        let column = column.as_dictionary::<Int8Type>();
        let spelled = column.values().as_string::<i32>().iter().map(|text| text?.parse().ok()).collect();
        Self { codes: column.keys(), spelled }
    }

    fn get(&self, row: usize) -> Option<T> {
        self.codes.is_valid(row).then(|| self.spelled[self.codes.value(row) as usize])?
    }
}
