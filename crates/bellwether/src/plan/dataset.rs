//! The dataset of a plan: what it has a row for, its features, its order, and the calendar that it needs.

use std::time::Duration;

use arrow::datatypes::{Schema, SchemaRef};
use chrono::NaiveDate;

use super::Validator;
use super::columns::{Column, RowKind};
use super::features::{Feature, Reference, long};
use super::filter::Filter;
use super::written::{ChosenColumns, WrittenColumns};
use crate::definition::{
    Availability, CalendarSection, DatasetKind, DayCount, Days, Definition, Duplicates, Exchange, JoinSection,
    LabelsSection, Layout, List, NaiveRule, NewsSource, Statistic, TimeOfDay, TimeSpan, TradeAt, Vintage, Vintages,
};
use crate::identity::Identity;
use crate::interface::Period;
use crate::sessions::Sessions;
use crate::text::problem::suggestion;

/// The dataset: which signals, their features, its columns, its order.
#[derive(Clone, Debug)]
pub struct DatasetPlan {
    /// What a row is.
    pub rows: RowKind,
    /// How to convert a date with an offset to a naive date.
    pub dates: NaiveRule,
    /// When a signal is made whose date has neither a time nor an offset; none for the end of its day.
    pub made_at: Option<TimeOfDay>,
    /// How long after its date news is known.
    pub news_delay: Duration,
    /// The trading days.
    pub sessions: Sessions,
    /// Which tickers are the same security over time.
    pub identity: Identity,
    /// When a row may be traded on.
    pub trade_at: TradeAt,
    /// How much older than a signal its news must be.
    pub lag: DayCount,
    /// Which news can be joined to a signal.
    pub availability: Availability,
    /// How to count articles that are listed more than once.
    pub duplicates: Duplicates,
    /// Whether the lists of articles have all that there ever were, or may be cut off.
    pub are_lists_complete: bool,
    /// The features of the news, in the order of their columns.
    pub features: Vec<Feature>,
    /// The columns that are not features: those that every dataset of the kind has, then those that were added.
    pub columns: Vec<Column>,
    /// All columns that are built, under their own names.
    pub schema: SchemaRef,
    /// The columns of a long dataset, exactly as they are written.
    pub written: WrittenColumns,
    /// The sort columns; together they identify a row.
    pub sort: Vec<Column>,
    /// Bytes of rows that are sorted in memory. More are sorted in files.
    pub sort_memory: usize,
    /// The filter on the signals.
    pub filter: Filter,
    /// Which observation of a signal to use.
    pub vintage: Vintage,
    /// A signal that was first seen, or whose news was asked for, longer than this after its date is backfilled.
    pub live_within: DayCount,
    /// Rows or matrices.
    pub shape: Shape,
    /// How returns are measured, if they are columns.
    pub labels: Labels,
}

/// How returns beside signals are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The horizons.
    pub horizons: Vec<Period>,
    /// The sessions from the date of a backfilled signal to its entry; 0 is the close of the date itself.
    pub lag: u32,
}

impl Default for Labels {
    fn default() -> Self {
        Self { horizons: Vec::new(), lag: 1 }
    }
}

impl Labels {
    /// Their columns.
    pub(super) fn columns(&self) -> Vec<Column> {
        let of_each = self.horizons.iter().flat_map(|&horizon| [Column::ExitAt(horizon), Column::Return(horizon)]);
        self.horizons.first().map(|_| Column::EntryAt).into_iter().chain(of_each).collect()
    }
}

/// The layout of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A row for each signal.
    Long,
    /// A matrix of dates and tickers for each period, regime, and one of these columns.
    Wide(Vec<String>),
}

/// The keys about the sentiment of signals.
const OF_SENTIMENT: [&str; 7] = [
    "sentiment.articles",
    "sentiment.summary",
    "sentiment.historical",
    "sentiment.tickers",
    "sentiment.duplicates",
    "sentiment.complete",
    "sentiment.delay",
];

/// The keys about series of signals.
const OF_SERIES: [&str; 10] = [
    "signals.history",
    "signals.periods",
    "signals.regimes",
    "signals.pairs",
    "signals.complete",
    "signals.made_at",
    "filter.periods",
    "filter.regimes",
    "filter.signal",
    "filter.min_confidence",
];

/// The keys about features.
const OF_JOIN: [&str; 7] = [
    "join.lag",
    "join.availability",
    "join.sources",
    "join.windows",
    "join.stats",
    "join.half_lives",
    "join.historical",
];

/// Columns that need something say where they were asked for.
const COLUMN_KEYS: [&str; 2] = ["dataset.columns", "dataset.add"];

impl Validator<'_> {
    /// The kind of the dataset.
    pub(super) fn kind(&self) -> DatasetKind {
        self.definition.dataset.kind.unwrap_or(DatasetKind::Joined)
    }

    /// Whether the definition asks for matrices.
    pub(super) fn is_wide(&self) -> bool {
        self.definition.output.layout == Some(Layout::Wide)
    }

    /// The dataset of a definition.
    pub(super) fn dataset(&mut self) -> DatasetPlan {
        let Definition { join, sentiment, output, calendar, dates, .. } = self.definition;
        let kind = self.kind();
        let rows = match (kind, output.vintage) {
            (DatasetKind::Signals, Some(Vintages::All)) => RowKind::Observation,
            (DatasetKind::Joined | DatasetKind::Signals, _) => RowKind::Signal,
            (DatasetKind::News, _) => RowKind::Article,
        };
        self.check_kind(kind);
        let features = if kind == DatasetKind::Joined { self.features() } else { Vec::new() };
        let ChosenColumns { columns, features, written } = self.choose_columns(rows, features);
        if self.has("dataset.columns") && features.is_empty() && kind == DatasetKind::Joined {
            let hint = "add one to `columns` in `[dataset]`, or remove `{key}`";
            self.without_effect(&OF_JOIN, "where `columns` has no feature of the news", hint);
        }
        let schema = long(&columns, &features, rows);
        let names = self.names(&written);
        let typed = self.columns("sort by", "output.sort", output.sort.as_ref(), rows.base());
        let mut sort: Vec<Column> = typed.into_iter().map(|(_, column)| column).collect();
        // With the key columns appended no two rows are equal, so the sort order is unique.
        let others: Vec<Column> = rows.key().iter().copied().filter(|column| !sort.contains(column)).collect();
        sort.extend(others);
        let constant = self.constant_columns(rows);
        let written = WrittenColumns::new(&schema, &written, names, rows.key(), &sort, &constant);
        let shape = self.shape(&schema);
        // An audit of skill measures live signals.
        if !columns.contains(&Column::Backfilled) && self.definition.prices.is_empty() {
            let hint =
                "add `\"backfilled\"` to `add` in `[dataset]`, name prices in `[prices]`, or remove `live_within`";
            self.without_effect(&["output.live_within"], "without `backfilled` or prices", hint);
        }
        if features.is_empty() && !columns.contains(&Column::TradableAt) {
            let hint = "add `\"tradable_at\"` to `add` in `[dataset]`, or remove `made_at`";
            self.without_effect(&["signals.made_at"], "without features of the news or `tradable_at`", hint);
        }
        DatasetPlan {
            rows,
            dates: dates.naive.unwrap_or(NaiveRule::Utc),
            made_at: self.definition.signals.made_at,
            news_delay: sentiment.delay.map_or(Duration::ZERO, |TimeSpan(delay)| delay),
            sessions: self.sessions(&columns),
            identity: self.identity(rows, &columns),
            trade_at: calendar.trade_at.unwrap_or(TradeAt::Either),
            lag: match join.lag {
                None => DayCount::Calendar(Days::new(1)),
                // Without a lag, trading days and calendar days are the same.
                Some(DayCount::Trading(days)) if days.count() == 0 => DayCount::Calendar(days),
                Some(lag) => lag,
            },
            availability: join.availability.unwrap_or(Availability::Dated),
            duplicates: sentiment.duplicates.unwrap_or(Duplicates::Once),
            are_lists_complete: sentiment.complete.unwrap_or(false),
            filter: self.filter(),
            vintage: if output.vintage == Some(Vintages::First) { Vintage::First } else { Vintage::Latest },
            live_within: output.live_within.unwrap_or(DayCount::Trading(Days::new(2))),
            sort,
            // Enough for two million rows with the default columns.
            sort_memory: 256 << 20,
            features,
            columns,
            schema,
            written,
            shape,
            labels: Labels::default(),
        }
        .with_labels(self.labels(rows))
    }

    /// Reports keys that have no effect on a kind of dataset.
    fn check_kind(&mut self, kind: DatasetKind) {
        if self.definition.output.vintage == Some(Vintages::All) {
            let at = "output.vintage";
            if kind == DatasetKind::Joined {
                let hint = "set `kind = \"signals\"` in `[dataset]`, or choose `latest` or `first`";
                let what = "a dataset of all vintages has a row for each value, and no features of the news";
                self.object(at, what, hint);
            } else if kind == DatasetKind::News {
                let hint = "choose `latest` or `first`; only signals have a row for each value";
                self.object(at, "`all` has no effect on a dataset of news", hint);
            } else if self.is_wide() {
                let hint = "a date may have many values: set `layout = \"long\"`, or choose `latest` or `first`";
                self.object(at, "a dataset of all vintages cannot be wide", hint);
            }
        }
        let keys = match kind {
            DatasetKind::Joined => return,
            DatasetKind::Signals => &OF_SENTIMENT[..],
            DatasetKind::News => &OF_SERIES,
        };
        let hint = "remove `{key}`, or set `kind = \"joined\"` in `[dataset]`";
        self.without_effect(&[keys, &OF_JOIN].concat(), &format!("on a dataset of {kind}"), hint);
        if kind == DatasetKind::News && self.definition.sentiment.articles == Some(false) {
            self.object("sentiment.articles", "a dataset of news needs its articles", "remove `articles = false`");
        }
        if kind == DatasetKind::News && self.is_wide() {
            let hint = "a date may have many articles: remove `layout`";
            self.object("output.layout", "a dataset of news cannot be wide", hint);
        }
    }

    /// The returns that are columns.
    fn labels(&mut self, rows: RowKind) -> Labels {
        let Some(LabelsSection { horizons, lag }) = &self.definition.labels else { return Labels::default() };
        if rows != RowKind::Signal || self.is_wide() {
            let hint = "remove it, or set `kind = \"signals\"` and a long `layout`";
            self.object("labels", "`[labels]` has no effect without rows of signals", hint);
        }
        let horizons = self.distinct("horizon", "labels.horizons", horizons.as_ref()).unwrap_or_default();
        if horizons.is_empty() {
            let hint = "list them in `[labels]`: `horizons = [\"5d\"]`";
            self.miss("labels", "labels", "no horizons of labels", hint);
        }
        if self.definition.prices.is_empty() && self.definition.source.service.is_none() {
            let hint = "name files with closing prices in `[prices]`: `file = \"prices.parquet\"`";
            self.miss("prices", "labels", "`[labels]` needs prices", hint);
        }
        Labels { horizons, lag: lag.map_or(1, u32::from) }
    }

    /// The features of the news.
    fn features(&mut self) -> Vec<Feature> {
        let Definition { join, sentiment, .. } = self.definition;
        let is_fetched = |source: NewsSource| match source {
            NewsSource::Articles => sentiment.articles.unwrap_or(true),
            NewsSource::Summary => sentiment.summary.unwrap_or(false),
            NewsSource::Historical => sentiment.historical.unwrap_or(false),
        };
        let sources: Vec<NewsSource> = match &join.sources {
            Some(typed) => typed.to_vec(),
            None if is_fetched(NewsSource::Articles) => vec![NewsSource::Articles],
            None => Vec::new(),
        };
        let [of_articles, of_summaries, of_records] =
            [NewsSource::Articles, NewsSource::Summary, NewsSource::Historical].map(|source| sources.contains(&source));
        let remedy = match join.sources {
            Some(_) => "add `\"articles\"` to `sources`, or remove `{key}`",
            None => "set `articles = true` in `[sentiment]`, or remove `{key}`",
        };
        for (keys, is_used) in [
            (&["sentiment.complete"][..], is_fetched(NewsSource::Articles)),
            (&["join.windows", "join.stats", "join.half_lives", "sentiment.duplicates"][..], of_articles),
            (&["join.lag", "join.availability"][..], !sources.is_empty()),
            (&["sentiment.delay"][..], of_articles || of_records),
        ] {
            if !is_used {
                self.without_effect(keys, "without articles", remedy);
            }
        }
        for (index, source) in join.sources.iter().flat_map(|typed| typed.iter()).enumerate() {
            if !is_fetched(*source) {
                // A source has the name of its key.
                let hint = format!("set `{source} = true` in `[sentiment]`");
                let what = format!("features of `{source}` need it to be fetched");
                self.object(&format!("join.sources.{index}"), what, hint);
            }
        }
        let statistics = self.distinct("statistic", "join.stats", join.stats.as_ref()).unwrap_or_else(|| {
            vec![Statistic::Count, Statistic::Mean, Statistic::Min, Statistic::Max, Statistic::Last]
        });
        if of_articles && statistics.iter().all(|it| matches!(it, Statistic::Last | Statistic::DaysSince)) {
            let hint = "add a statistic such as `count` to `stats`, or remove `windows`";
            self.without_effect(&["join.windows"], "on the last article", hint);
        }
        let windows = self.positive_days("window", "join.windows", join.windows.as_ref(), "empty window");
        let windows = windows.unwrap_or_else(|| [1, 7, 30].map(Days::new).to_vec());
        self.distinct("source", "join.sources", join.sources.as_ref());
        let half_lives = self.half_lives(of_articles);
        let mut features =
            if of_articles { Feature::of_articles(&windows, &statistics, &half_lives) } else { Vec::new() };
        if of_summaries {
            features.extend(Reference::ALL.map(Feature::Summary));
            features.push(Feature::SummaryDaysSince);
        }
        let fields = self.distinct("field", "join.historical", join.historical.as_ref());
        match (of_records, fields) {
            (true, None) => {
                let hint = "list them in `[join]`: `historical = [\"score\"]`";
                self.miss("join", "join", "no fields of historical sentiment to join", hint);
            }
            (false, Some(_)) => {
                let hint = "add `\"historical\"` to `sources`, or remove `historical`";
                self.without_effect(&["join.historical"], "without its source", hint);
            }
            (_, fields) => {
                features.extend(fields.into_iter().flatten().map(|field| Feature::Historical(field.into())));
            }
        }
        features
    }

    /// The half-lives of a decaying mean.
    fn half_lives(&mut self, of_articles: bool) -> Vec<Days> {
        let JoinSection { stats, half_lives, .. } = &self.definition.join;
        let decay = stats.as_ref().and_then(|stats| stats.iter().position(|typed| *typed == Statistic::Decay));
        match decay {
            Some(index) if of_articles && half_lives.is_none() => {
                let hint = "add one to `[join]`, such as `half_lives = \"3d\"`";
                self.miss("join", &format!("join.stats.{index}"), "`decay` needs a half-life", hint);
            }
            None if of_articles => {
                let hint = "add `\"decay\"` to `stats`, or remove `half_lives`";
                self.without_effect(&["join.half_lives"], "without `decay`", hint);
            }
            _ => {}
        }
        let typed = self.positive_days("half-life", "join.half_lives", half_lives.as_ref(), "a half-life of no days");
        typed.unwrap_or_default()
    }

    /// Numbers of days, of which none may be zero.
    fn positive_days(&mut self, what: &str, key: &str, typed: Option<&List<Days>>, zero: &str) -> Option<Vec<Days>> {
        for (index, days) in typed.iter().flat_map(|typed| typed.iter()).enumerate() {
            if days.count() == 0 {
                self.object(&format!("{key}.{index}"), zero, format!("the shortest {what} is `1d`"));
            }
        }
        self.distinct(what, key, typed)
    }

    /// Some of the columns by name, without duplicates, each with the place of its name.
    pub(super) fn columns(
        &mut self,
        what: &str,
        key: &str,
        typed: Option<&List<String>>,
        possible: &[Column],
    ) -> Vec<(String, Column)> {
        let mut columns: Vec<(String, Column)> = Vec::new();
        for (index, name) in typed.iter().flat_map(|typed| typed.iter()).enumerate() {
            let at = format!("{key}.{index}");
            let Some(&column) = possible.iter().find(|column| column.name() == name) else {
                let names: Vec<&str> = possible.iter().map(|column| column.name()).collect();
                self.object(&at, format!("no column `{name}` to {what}"), suggestion(name, &names, "the columns are"));
                continue;
            };
            if columns.iter().any(|(_, other)| *other == column) {
                self.repeated("column", &at, name);
            } else {
                columns.push((at, column));
            }
        }
        columns
    }

    /// The layout of the dataset.
    fn shape(&mut self, schema: &Schema) -> Shape {
        if !self.is_wide() {
            let hint = "a long dataset has all columns: set `layout = \"wide\"`, or remove it";
            self.without_effect(&["output.values"], "on a long dataset", hint);
            return Shape::Long;
        }
        let hint = "it has a row per date and a file per period and regime: remove it";
        self.without_effect(&["output.sort", "output.partition_by", "output.index"], "on a wide dataset", hint);
        for column in Column::KEY.iter().filter(|column| **column != Column::Date) {
            let at = format!("dataset.rename.{}", column.name());
            if self.has(&at) {
                let what = format!("a wide dataset has no column `{}` to rename", column.name());
                self.object(&at, what, "it has `date` and its `values`: remove it");
            }
        }
        if self.definition.archive.claimed == Some(true) {
            let hint = "set `layout = \"long\"`, or remove `claimed`";
            self.object("archive.claimed", "a wide dataset cannot mark what rests on claims", hint);
        }
        let typed = self.definition.output.values.as_ref();
        let Some(values) = self.distinct("column", "output.values", typed) else {
            return Shape::Wide(vec!["score".to_owned()]);
        };
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let possible: Vec<&str> = names.filter(|name| Column::KEY.iter().all(|key| key.name() != *name)).collect();
        for (index, value) in values.iter().enumerate().filter(|(_, value)| !possible.contains(&value.as_str())) {
            let hint = suggestion(value, &possible, "the columns are");
            self.object(&format!("output.values.{index}"), format!("no column `{value}` to write as a matrix"), hint);
        }
        Shape::Wide(values)
    }

    /// The sessions of the market.
    fn sessions(&mut self, columns: &[Column]) -> Sessions {
        let CalendarSection { exchange, sessions, hours, holidays, .. } = &self.definition.calendar;
        let others = ["calendar.sessions", "calendar.hours", "calendar.holidays"];
        if let (Some(exchange), Some(other)) = (exchange, others.into_iter().find(|key| self.has(key))) {
            let hint = format!("the sessions of `{exchange}` are built in: keep one of them");
            self.without_effect(&[other], "together with `exchange`", &hint);
        }
        if sessions.is_some() {
            let hint = "the file lists the days and hours: keep one of them";
            self.without_effect(&others[1..], "together with `sessions`", hint);
        }
        let is_traded = columns.contains(&Column::TradableAt);
        if !is_traded {
            let hint = "add `\"tradable_at\"` to `add` in `[dataset]`, or remove `{key}`";
            self.without_effect(&["calendar.hours", "calendar.trade_at"], "without `tradable_at`", hint);
        }
        let closed = self.distinct("holiday", "calendar.holidays", holidays.as_ref()).unwrap_or_default();
        let closed: Vec<NaiveDate> = closed.into_iter().map(|day| day.0).collect();
        let given = match (sessions, exchange) {
            (Some(file), _) => match Sessions::read(&self.root.join(file)) {
                Ok(sessions) => sessions,
                Err(error) => {
                    let hint = "name a CSV file with a line per session: `date`, and `open` and `close` with an offset";
                    self.object("calendar.sessions", format!("`{file}` is no calendar: {error}"), hint);
                    return Sessions::default();
                }
            },
            _ if hours.is_some() || holidays.is_some() => Sessions::of_rule(*hours, &closed),
            (None, Some(Exchange::Weekdays)) => Sessions::of_rule(None, &[]),
            (None, Some(Exchange::Xnys) | None) => Sessions::default(),
        };
        if is_traded && !given.have_hours() {
            let hint = "set `hours = \"09:30-16:00 America/New_York\"` in `[calendar]`, or name a file of `sessions`; those of `XNYS` are built in";
            let at = self.first_of(&COLUMN_KEYS);
            self.miss("calendar", at, "`tradable_at` needs the hours of the market", hint);
        }
        given
    }

    /// Which tickers are the same security over time.
    fn identity(&mut self, rows: RowKind, columns: &[Column]) -> Identity {
        let has_ids = columns.contains(&Column::Id);
        let Some(file) = &self.definition.identity.file else {
            if has_ids {
                let hint = "name one in `[identity]`: `file = \"identity.csv\"`";
                let at = self.first_of(&COLUMN_KEYS);
                self.miss("identity", at, "`id` needs a file that says which tickers are one", hint);
            }
            return Identity::default();
        };
        if rows == RowKind::Article && !has_ids {
            let hint = "add `\"id\"` to `add` in `[dataset]`, or remove it";
            self.without_effect(&["identity.file"], "on news without `id`", hint);
        }
        Identity::read(&self.root.join(file)).unwrap_or_else(|error| {
            let hint = "name a CSV file with a line per ticker and id: `ticker`, `from`, `to` and `id`, with dates such as `2022-06-09`";
            self.object("identity.file", format!("`{file}` does not say who is who: {error}"), hint);
            Identity::default()
        })
    }
}
