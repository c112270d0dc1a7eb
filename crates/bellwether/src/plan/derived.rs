//! What follows from the plan of a dataset: its description, and the plans of other datasets about the same signals.

use std::collections::BTreeSet;

use chrono::{NaiveDate, TimeDelta};

use super::columns::{Column, Meaning, RowKind};
use super::features::{Feature, long};
use super::written::WrittenColumns;
use super::{Availability, DatasetPlan, DayCount, Days, Duplicates, Filter, Labels, NaiveRule, Shape, Vintage};
use crate::interface::Endpoint;
use crate::text::human::{count_of, span};

impl DatasetPlan {
    /// Warnings about valid but unusual settings.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = Vec::new();
        if self.written.key.is_none() && self.shape == Shape::Long {
            let kept = match self.rows {
                RowKind::Signal => "`ticker`, `date`, `period` and `regime`, or filter for one value",
                RowKind::Article => "`ticker`, `date`, `title`, `link` and `copy`",
                RowKind::Observation => "`ticker`, `date`, `period`, `regime` and `known_from`",
            };
            warnings.push(format!("`columns` leaves out a column that tells rows apart: keep {kept}"));
        }
        let chosen = |name: &str| match &self.shape {
            Shape::Long => self.written.name_of(name).is_some(),
            Shape::Wide(values) => values.iter().any(|value| value == name),
        };
        if self.rows == RowKind::Signal && chosen("confidence") && !chosen("signal") && !chosen("score") {
            let text = "`confidence` alone does not tell a buy from a sell: add `score`, which is negative for a sell, or `signal`";
            warnings.push(text.to_owned());
        }
        let is_whole_day = self.is_same_day() && self.made_at.is_none() && !self.features.is_empty();
        let text = "with `lag = \"0d\"` a signal without a time uses all news of its own day, even later news, and one that is \
                    dated at midnight uses none of it: use `1d`, or say when signals are made with `made_at` in `[signals]`";
        warnings.extend(is_whole_day.then(|| text.to_owned()));
        warnings
    }

    /// What a column means, by the name that it is written under.
    pub fn meaning(&self, name: &str) -> Option<Meaning> {
        let own = self.written.names().own(name);
        let column = self.columns.iter().find(|column| column.name() == own);
        let feature = || self.features.iter().find(|feature| feature.to_string() == own);
        column.map(|column| column.meaning(self.rows)).or_else(|| feature().map(Feature::meaning))
    }

    /// That the calendar ends before a day, if it does.
    pub fn calendar_note(&self, today: NaiveDate) -> Option<String> {
        let end = self.sessions.end().filter(|end| *end < today)?;
        Some(format!(
            "the calendar ends on {end}: list later sessions, or each Monday to Friday counts as a trading day"
        ))
    }

    /// Whether a signal may use news of its own day.
    pub fn is_same_day(&self) -> bool {
        self.lag.count() == 0
    }

    /// Whether it matters at what time of a day signals are made and news is known.
    pub fn is_timed(&self) -> bool {
        let is_delayed = self.made_at.is_some() || !self.news_delay.is_zero();
        self.dates != NaiveRule::Utc || self.is_same_day() || is_delayed
    }

    /// Whether a signal uses only news that was known when it was first seen.
    pub fn is_as_lived(&self) -> bool {
        self.vintage == Vintage::First || self.availability == Availability::Observed
    }

    /// Whether its features depend on when the signals and everything else was first seen.
    pub fn has_a_past(&self) -> bool {
        !self.features.is_empty() && self.is_as_lived()
    }

    /// Whether it depends on the past of the archive: its features, the sectors of its tickers, or when the service was
    /// asked.
    pub fn needs_past(&self) -> bool {
        use Column::{Backfilled, Claimed, EntryAt, KnownAt, TradableAt, WatchedUntil};
        let has_any = |columns: &[Column]| columns.iter().any(|column| self.columns.contains(column));
        let is_live = has_any(&[Backfilled]) && !self.features.is_empty();
        let is_needed = has_any(&[KnownAt, TradableAt, EntryAt, WatchedUntil, Claimed]);
        self.has_a_past() || self.has_sectors() || is_live || is_needed
    }

    /// The operations that its features come from.
    pub fn inputs(&self) -> BTreeSet<Endpoint> {
        let input = |feature: &Feature| match feature {
            Feature::Summary(_) | Feature::SummaryDaysSince => Endpoint::SocialSentiment,
            Feature::Historical(_) => Endpoint::HistoricalSentiment,
            _ => Endpoint::NewsArticles,
        };
        self.features.iter().map(input).collect()
    }

    /// Whether the sectors of its tickers are a column.
    pub fn has_sectors(&self) -> bool {
        [Column::Sector, Column::SectorLatest].iter().any(|column| self.columns.contains(column))
    }

    /// The windows of its features, in their order.
    pub fn windows(&self) -> Vec<Days> {
        let mut windows: Vec<Days> = Vec::new();
        for days in self.features.iter().filter_map(Feature::window) {
            if !windows.contains(&days) {
                windows.push(days);
            }
        }
        windows
    }

    /// The same dataset, with further columns, of those that it does not have yet.
    #[must_use]
    pub(super) fn with_columns(mut self, columns: impl IntoIterator<Item = Column>) -> Self {
        for column in columns {
            if !self.columns.contains(&column) {
                self.columns.push(column);
                self.schema = long(&self.columns, &self.features, self.rows);
                self.written = self.written.with_last(&self.schema);
            }
        }
        self
    }

    /// The same dataset with returns beside its signals.
    #[must_use]
    pub(super) fn with_labels(mut self, labels: Labels) -> Self {
        let columns = labels.columns();
        self.labels = labels;
        self.with_columns(columns)
    }

    /// The same dataset without returns, which look ahead by design, if it has some.
    #[must_use]
    pub fn without_labels(self) -> Self {
        if self.labels.horizons.is_empty() {
            return self;
        }
        let is_kept = |column: &Column| !matches!(column, Column::EntryAt | Column::ExitAt(_) | Column::Return(_));
        let columns = self.columns.iter().copied().filter(is_kept).collect();
        self.with_rows(RowKind::Signal, columns)
    }

    /// How long after a day of news a signal may be dated that uses it; none if that is not limited.
    pub fn reach(&self) -> Option<TimeDelta> {
        let DayCount::Calendar(lag) = self.lag else { return None };
        let window = |feature: &Feature| feature.window().map(|days| i64::from(days.count()));
        let longest = self.features.iter().map(window).try_fold(0, |longest, days| Some(days?.max(longest)))?;
        Some(TimeDelta::days(longest + i64::from(lag.count())))
    }

    /// The plan of the same signals with nothing but the count of the articles in each window.
    #[must_use]
    pub fn of_counts(&self) -> Self {
        let features: Vec<Feature> = self.windows().into_iter().map(Feature::count).collect();
        Self { features, ..self.clone() }.with_rows(RowKind::Signal, Column::BASE.to_vec())
    }

    /// The plan of the same signals by a vintage, whatever they say, with their features and the count of the articles in each
    /// window. Rows of first vintages say when their signals were first seen.
    #[must_use]
    pub fn of_features(&self, vintage: Vintage) -> Self {
        let mut features = self.features.clone();
        for count in self.windows().into_iter().map(Feature::count) {
            if !features.contains(&count) {
                features.push(count);
            }
        }
        let seen = (vintage == Vintage::First).then_some(Column::FirstObservedAt);
        let columns = Column::BASE.into_iter().chain(seen).collect();
        let filter = Filter { signals: None, min_confidence: None, ..self.filter.clone() };
        Self { features, filter, vintage, shape: Shape::Long, ..self.clone() }.with_rows(RowKind::Signal, columns)
    }

    /// The plan of the same signals without the columns that say what became of them since, which later runs change by
    /// design.
    #[must_use]
    pub fn as_published(&self) -> Self {
        // A later run may ask for the news of a signal, still in time.
        let is_complete = self.inputs().is_empty();
        let is_final = |column: &Column| match column {
            Column::Revisions | Column::WatchedUntil | Column::SectorLatest => false,
            Column::EntryAt | Column::ExitAt(_) | Column::Return(_) => false,
            Column::Backfilled | Column::KnownAt | Column::TradableAt => is_complete,
            _ => true,
        };
        self.clone().with_rows(RowKind::Signal, self.columns.iter().copied().filter(is_final).collect())
    }

    /// The plan of rows of a kind with these columns beside the features, in the order of the key.
    fn with_rows(self, rows: RowKind, columns: Vec<Column>) -> Self {
        let schema = long(&columns, &self.features, rows);
        let written = WrittenColumns::all(&schema, rows.key(), rows.key());
        Self { rows, columns, schema, sort: rows.key().to_vec(), written, ..self }
    }

    /// The same plan with latest values, of all days, and without features.
    fn without_features(&self) -> Self {
        let filter = Filter { from: None, to: None, ..self.filter.clone() };
        Self { features: Vec::new(), filter, vintage: Vintage::Latest, shape: Shape::Long, ..self.clone() }
    }

    /// The plan of all values that the same signals had, whatever they said, with when each was known.
    #[must_use]
    pub fn of_observations(&self) -> Self {
        let claimed = self.columns.contains(&Column::Claimed).then_some(Column::Claimed);
        let columns = Column::OF_OBSERVATIONS.into_iter().chain(claimed).collect();
        let mut plan = self.without_features();
        (plan.filter.signals, plan.filter.min_confidence) = (None, None);
        plan.with_rows(RowKind::Observation, columns)
    }

    /// The plan of the articles about the same tickers: all of them, with their latest values.
    #[must_use]
    pub fn of_articles(&self) -> Self {
        let plan = Self { duplicates: Duplicates::Keep, ..self.without_features() };
        plan.with_rows(RowKind::Article, Column::OF_ARTICLES.to_vec())
    }

    /// Which value of a signal a row has, and which news it may use.
    pub fn in_words(&self) -> String {
        let rows = match self.rows {
            RowKind::Observation => return "Signals have a row for each value that they had.".to_owned(),
            RowKind::Article => "Articles",
            RowKind::Signal => "Signals",
        };
        let vintage = match self.vintage {
            Vintage::Latest => format!("{rows} are taken as they were last revised."),
            Vintage::First => format!("{rows} are taken as they were first published."),
        };
        if self.features.is_empty() {
            return vintage;
        }
        let (day, days) = match self.lag {
            DayCount::Calendar(_) => ("day", "days"),
            DayCount::Trading(_) => ("trading day", "trading days"),
        };
        let dated = match self.lag.count().unsigned_abs() {
            0 => "dated up to its own day".to_owned(),
            lag => format!("dated at least {} before it", count_of(lag.into(), day, days)),
        };
        let windows: Vec<String> = self.windows().iter().map(ToString::to_string).collect();
        let windows = match windows.as_slice() {
            [] => String::new(),
            [only] => format!(", in a window of {only}"),
            [most @ .., last] => format!(", in windows of {} and {last}", most.join(", ")),
        };
        let seen = match self.is_as_lived() {
            true => "that had been seen when the signal was, with the scores of that time",
            false => "whenever it was first seen, with its latest scores",
        };
        let made = self.made_at.map_or_else(String::new, |time| format!(" A signal without a time is made at {time}."));
        let mut words = format!("{vintage} Each uses news {dated}{windows}: {seen}.{made}");
        if !self.news_delay.is_zero() {
            words += &format!(" News is known {} after its date.", span(self.news_delay));
        }
        words
    }
}
