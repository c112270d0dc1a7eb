//! The subject of an audit: a whole archive as of an instant, or the part that a definition's dataset uses.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use super::observed::ObservedColumns;
use crate::archive::{Histories, Scope, StoredObservations, View};
use crate::error::Result;
use crate::identity::Identity;
use crate::interface::{Period, Regime, Sector, Ticker};
use crate::plan::{DatasetPlan, NaiveRule};
use crate::process::in_order::in_order;
use crate::sessions::Sessions;
use crate::tables::{SeriesKey, Table};

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
    pub(super) fn pairs(&self) -> Option<BTreeSet<(Period, Regime)>> {
        let part = self.part.as_ref()?;
        Some(part.series.iter().filter_map(|key| key.period.zip(key.regime)).collect())
    }

    /// Works on pieces of the archive, several at once, and takes the results in order.
    pub(super) fn each_piece<I: Iterator<Item = Result<StoredObservations>>, R: Send>(
        &self,
        pieces: impl FnOnce(&View) -> Result<I> + Send,
        work: impl Fn(&Histories, &ObservedColumns<'_>) -> Result<R> + Sync,
        take: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        let of_piece = |piece: StoredObservations| {
            let histories = piece.histories()?;
            work(&histories, &ObservedColumns::new(&histories))
        };
        in_order(|| pieces(&self.view), of_piece, take)
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
        let [from, to] = self.part.as_ref().map_or([None; 2], |part| [part.scope.filter.from, part.scope.filter.to]);
        let start = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
        observed
            .naive_date(row, self.dates)
            .is_some_and(|date| from.is_none_or(|from| date >= start(from)) && to.is_none_or(|to| date < start(to)))
    }

    /// Whether a ticker counts on a date that the dataset has, in naive microseconds.
    pub(super) fn has_member(&self, ticker: &Ticker, date: i64) -> bool {
        self.part.as_ref().is_none_or(|part| part.scope.filter.has_member(ticker, date))
    }

    /// The sector of a ticker; `-` if no sector history lists it.
    pub(super) fn sector(&self, ticker: &Ticker) -> &str {
        self.sectors.get(ticker).map_or("-", Sector::as_str)
    }
}

/// The day of a naive timestamp in microseconds.
pub(super) fn day(micros: i64) -> NaiveDate {
    DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default().date_naive()
}
