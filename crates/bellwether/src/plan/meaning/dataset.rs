//! The dataset of a plan: its signals, features, columns and sort order.

use std::path::Path;
use std::time::Duration;

use arrow::datatypes::Schema;

use super::columns::{ChosenColumns, constant, is_wide};
use super::kinds::{of_join, row_kind};
use super::{Validator, repetition};
use crate::definition::{
    Availability, DatasetKind, DayCount, Days, Definition, Duplicates, JoinSection, LabelsSection, List, NaiveRule,
    NewsSource, OutputSection, Placed, SentimentSection, Statistic, TradeAt, Vintage, Vintages,
};
use crate::plan::columns::{self, Column, Feature, Reference, RowKind};
use crate::plan::written::{ColumnChoice, WrittenColumns};
use crate::plan::{DatasetPlan, Labels, Shape};
use crate::text::problem::{Problem, suggestion};

const DEFAULT_LAG: DayCount = DayCount::Calendar(Days::new(1));
const DEFAULT_WINDOWS: [Days; 3] = [Days::new(1), Days::new(7), Days::new(30)];
const DEFAULT_STATISTICS: [Statistic; 5] =
    [Statistic::Count, Statistic::Mean, Statistic::Min, Statistic::Max, Statistic::Last];
const DEFAULT_LIVE_WITHIN: DayCount = DayCount::Trading(Days::new(2));
/// Enough for two million rows with the default columns.
const SORT_MEMORY: usize = 256 << 20;
const DEFAULT_VALUES: [&str; 1] = ["score"];

impl Validator {
    /// The dataset of a definition.
    pub(super) fn dataset(&mut self, definition: &Definition, root: &Path) -> DatasetPlan {
        let kind = self.kind(definition);
        let rows = row_kind(definition);
        let JoinSection { lag, availability, .. } = &*definition.join;
        let features = match kind {
            DatasetKind::Joined => self.features(&definition.join, &definition.sentiment),
            DatasetKind::Signals | DatasetKind::News => Vec::new(),
        };
        let ChosenColumns { columns, features, written } = self.choose_columns(definition, rows, features);
        if let (Some(_), true, DatasetKind::Joined) = (&definition.dataset.columns, features.is_empty(), kind) {
            for (key, span) in of_join(definition).into_iter().filter_map(|(key, span)| Some((key, span?))) {
                let problem =
                    Problem::new(format!("`{key}` has no effect: `columns` has no feature of the news"), span);
                self.object(problem.with_hint(format!("add one to `columns` in `[dataset]`, or remove `{key}`")));
            }
        }
        let schema = columns::long(&columns, &features, rows);
        let names = self.names(&definition.dataset, &written);
        let sort = self.sort(&definition.output, rows);
        let (key, constant) = (rows.key(), constant(definition, rows));
        let choice = ColumnChoice { columns: &written, names, key, sort: &sort, constant: &constant };
        let written = WrittenColumns::of(&schema, choice);
        let shape = self.shape(definition, &schema);
        // An audit of skill measures live signals.
        let is_used = columns.contains(&Column::Backfilled) || !definition.prices.is_empty();
        if let Some(typed) = definition.output.live_within.as_ref().filter(|_| !is_used) {
            let problem = Problem::new("`live_within` has no effect without `backfilled` or prices", typed.span());
            let hint =
                "add `\"backfilled\"` to `add` in `[dataset]`, name prices in `[prices]`, or remove `live_within`";
            self.object(problem.with_hint(hint));
        }
        let made_at = self.made_at(definition, &features, &columns);
        let sessions = self.sessions(definition, &columns, root);
        let identity = self.identity(definition, rows, &columns, root);
        let labels = self.labels(definition, rows);
        DatasetPlan {
            rows,
            dates: definition.dates.naive.as_deref().copied().unwrap_or(NaiveRule::Utc),
            made_at,
            news_delay: definition.sentiment.delay.as_deref().map_or(Duration::ZERO, |delay| delay.duration()),
            sessions,
            identity,
            trade_at: definition.calendar.trade_at.as_deref().copied().unwrap_or(TradeAt::Either),
            lag: match lag.as_deref().copied().unwrap_or(DEFAULT_LAG) {
                // Without a lag, trading days and calendar days are the same.
                DayCount::Trading(days) if days.count() == 0 => DayCount::Calendar(days),
                lag => lag,
            },
            availability: availability.as_deref().copied().unwrap_or(Availability::Dated),
            duplicates: definition.sentiment.duplicates.as_deref().copied().unwrap_or(Duplicates::Once),
            are_lists_complete: definition.sentiment.complete.as_deref().copied().unwrap_or(false),
            filter: self.filter(definition, root),
            vintage: match definition.output.vintage.as_deref() {
                Some(Vintages::First) => Vintage::First,
                Some(Vintages::Latest | Vintages::All) | None => Vintage::Latest,
            },
            live_within: definition.output.live_within.as_deref().copied().unwrap_or(DEFAULT_LIVE_WITHIN),
            sort,
            sort_memory: SORT_MEMORY,
            features,
            columns,
            schema,
            written,
            shape,
            labels: Labels::default(),
        }
        .with_labels(labels)
    }

    /// The returns that are columns.
    fn labels(&mut self, definition: &Definition, rows: RowKind) -> Labels {
        let Some(section) = &definition.labels else { return Labels::default() };
        let LabelsSection { horizons, lag } = &**section;
        if rows != RowKind::Signal || is_wide(definition) {
            let problem = Problem::new("`[labels]` has no effect without rows of signals", section.span());
            self.object(problem.with_hint("remove it, or set `kind = \"signals\"` and a long `layout`"));
        }
        let horizons = self.distinct("horizon", horizons.as_ref()).unwrap_or_default();
        if horizons.is_empty() {
            let problem = Problem::new("no horizons of labels", section.span());
            self.miss("labels", problem.with_hint("list them in `[labels]`: `horizons = [\"5d\"]`"));
        }
        if definition.prices.is_empty() && definition.source.service.is_none() {
            let problem = Problem::new("`[labels]` needs prices", section.span());
            self.miss(
                "prices",
                problem.with_hint("name files with closing prices in `[prices]`: `file = \"prices.parquet\"`"),
            );
        }
        Labels { horizons, lag: lag.as_deref().map_or(1, |lag| u32::from(*lag)) }
    }

    fn features(&mut self, section: &Placed<JoinSection>, sentiment: &SentimentSection) -> Vec<Feature> {
        let JoinSection { lag, availability, sources, windows, stats, half_lives, historical } = &**section;
        let is_fetched = |source: NewsSource| match source {
            NewsSource::Articles => sentiment.articles.as_deref().copied().unwrap_or(true),
            NewsSource::Summary => sentiment.summary.as_deref().copied().unwrap_or(false),
            NewsSource::Historical => sentiment.historical.as_deref().copied().unwrap_or(false),
        };
        let is_source = |source| match sources {
            Some(sources) => sources.iter().any(|other| **other == source),
            None => source == NewsSource::Articles && is_fetched(NewsSource::Articles),
        };
        let (of_articles, of_any) = (is_source(NewsSource::Articles), NewsSource::ALL.iter().copied().any(is_source));
        let keys = [
            ("complete", sentiment.complete.as_ref().map(Placed::span), is_fetched(NewsSource::Articles)),
            ("windows", windows.as_ref().map(Placed::span), of_articles),
            ("stats", stats.as_ref().map(Placed::span), of_articles),
            ("half_lives", half_lives.as_ref().map(Placed::span), of_articles),
            ("lag", lag.as_ref().map(Placed::span), of_any),
            ("availability", availability.as_ref().map(Placed::span), of_any),
            ("duplicates", sentiment.duplicates.as_ref().map(Placed::span), of_articles),
            ("delay", sentiment.delay.as_ref().map(Placed::span), of_articles || is_source(NewsSource::Historical)),
        ];
        for (key, span) in keys.into_iter().filter_map(|(key, span, is_used)| Some((key, span.filter(|_| !is_used)?))) {
            let problem = Problem::new(format!("`{key}` has no effect without articles"), span);
            let remedy = match sources {
                Some(_) => "add `\"articles\"` to `sources`",
                None => "set `articles = true` in `[sentiment]`",
            };
            self.object(problem.with_hint(format!("{remedy}, or remove `{key}`")));
        }
        for source in sources.iter().flat_map(|sources| sources.iter()).filter(|source| !is_fetched(***source)) {
            let key = match **source {
                NewsSource::Articles => "articles",
                NewsSource::Summary => "summary",
                NewsSource::Historical => "historical",
            };
            let problem = Problem::new(format!("features of `{}` need it to be fetched", **source), source.span());
            self.object(problem.with_hint(format!("set `{key} = true` in `[sentiment]`")));
        }
        for window in windows.iter().flat_map(|windows| windows.iter()).filter(|window| window.count() == 0) {
            let problem = Problem::new("empty window", window.span());
            self.object(problem.with_hint("the shortest window is `1d`"));
        }
        let is_of_window = |typed: &Placed<Statistic>| !matches!(**typed, Statistic::Last | Statistic::DaysSince);
        let has_windows = stats.as_ref().is_none_or(|stats| stats.iter().any(is_of_window));
        if let Some(windows) = windows.as_ref().filter(|_| of_articles && !has_windows) {
            let problem = Problem::new("`windows` has no effect on the last article", windows.span());
            self.object(problem.with_hint("add a statistic such as `count` to `stats`, or remove `windows`"));
        }
        let windows = self.distinct("window", windows.as_ref()).unwrap_or_else(|| DEFAULT_WINDOWS.to_vec());
        let statistics = self.distinct("statistic", stats.as_ref()).unwrap_or_else(|| DEFAULT_STATISTICS.to_vec());
        self.distinct("source", sources.as_ref());
        let half_lives = self.half_lives(section, of_articles);
        let mut features =
            if of_articles { Feature::of_articles(&windows, &statistics, &half_lives) } else { Vec::new() };
        if is_source(NewsSource::Summary) {
            features.extend(Reference::ALL.map(Feature::Summary));
            features.push(Feature::SummaryDaysSince);
        }
        let fields = self.distinct("field", historical.as_ref()).unwrap_or_default();
        match (is_source(NewsSource::Historical), historical) {
            (true, None) => {
                let problem = Problem::new("no fields of historical sentiment to join", section.span());
                self.miss("join", problem.with_hint("list them in `[join]`: `historical = [\"score\"]`"));
            }
            (false, Some(typed)) => {
                let problem = Problem::new("`historical` has no effect without its source", typed.span());
                self.object(problem.with_hint("add `\"historical\"` to `sources`, or remove `historical`"));
            }
            _ => features.extend(fields.into_iter().map(|field| Feature::Historical(field.into()))),
        }
        features
    }

    /// The half-lives of a decaying mean.
    fn half_lives(&mut self, section: &Placed<JoinSection>, of_articles: bool) -> Vec<Days> {
        let JoinSection { stats, half_lives, .. } = &**section;
        let decay = stats.iter().flat_map(|stats| stats.iter()).find(|typed| ***typed == Statistic::Decay);
        match (decay.filter(|_| of_articles), half_lives) {
            (Some(decay), None) => {
                let problem = Problem::new("`decay` needs a half-life", decay.span());
                let hint = "add one to `[join]`, such as `half_lives = \"3d\"`";
                self.miss("join", problem.with_hint(hint));
            }
            (None, Some(typed)) if of_articles => {
                let problem = Problem::new("`half_lives` has no effect without `decay`", typed.span());
                self.object(problem.with_hint("add `\"decay\"` to `stats`, or remove `half_lives`"));
            }
            _ => {}
        }
        for half_life in half_lives.iter().flat_map(|typed| typed.iter()).filter(|days| days.count() == 0) {
            let problem = Problem::new("a half-life of no days", half_life.span());
            self.object(problem.with_hint("the shortest half-life is `1d`"));
        }
        self.distinct("half-life", half_lives.as_ref()).unwrap_or_default()
    }

    fn sort(&mut self, section: &OutputSection, rows: RowKind) -> Vec<Column> {
        let mut sort = self.columns("sort by", section.sort.as_ref(), rows.base());
        // With the key columns appended no two rows are equal, so the sort order is unique.
        sort.extend(rows.key().iter().filter(|column| !sort.contains(column)).collect::<Vec<_>>());
        sort
    }

    /// Some of the columns by name, without duplicates.
    pub(super) fn columns(
        &mut self,
        what: &str,
        typed: Option<&Placed<List<String>>>,
        possible: &[Column],
    ) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for name in typed.iter().flat_map(|typed| typed.iter()) {
            let Some(&column) = possible.iter().find(|column| column.name() == name.as_str()) else {
                let names: Vec<&str> = possible.iter().map(|column| column.name()).collect();
                let problem = Problem::new(format!("no column `{}` to {what}", name.as_str()), name.span());
                self.object(problem.with_hint(suggestion(name, &names, "the columns are")));
                continue;
            };
            if columns.contains(&column) {
                self.object(repetition("column", &column.name(), name.span()));
            } else {
                columns.push(column);
            }
        }
        columns
    }

    fn shape(&mut self, definition: &Definition, schema: &Schema) -> Shape {
        let OutputSection { sort, values, partition_by, index, .. } = &*definition.output;
        if !is_wide(definition) {
            if let Some(values) = values {
                let problem = Problem::new("`values` has no effect on a long dataset", values.span());
                self.object(problem.with_hint("a long dataset has all columns: set `layout = \"wide\"`, or remove it"));
            }
            return Shape::Long;
        }
        let spans = [("sort", sort), ("partition_by", partition_by), ("index", index)]
            .map(|(key, typed)| (key, typed.as_ref().map(Placed::span)));
        for (key, span) in spans.into_iter().filter_map(|(key, span)| Some((key, span?))) {
            let problem = Problem::new(format!("`{key}` has no effect on a wide dataset"), span);
            self.object(problem.with_hint("it has a row per date and a file per period and regime: remove it"));
        }
        for column in Column::KEY.iter().filter(|column| **column != Column::Date) {
            let renamed = definition.dataset.rename.as_ref().and_then(|names| names.get(column.name()));
            if let Some(name) = renamed {
                let what = format!("a wide dataset has no column `{}` to rename", column.name());
                self.object(Problem::new(what, name.span()).with_hint("it has `date` and its `values`: remove it"));
            }
        }
        if let Some(claimed) = definition.archive.claimed.as_ref().filter(|claimed| ***claimed) {
            let problem = Problem::new("a wide dataset cannot mark what rests on claims", claimed.span());
            self.object(problem.with_hint("set `layout = \"long\"`, or remove `claimed`"));
        }
        let Some(typed) = values else { return Shape::Wide(DEFAULT_VALUES.map(str::to_owned).to_vec()) };
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let possible: Vec<&str> =
            names.filter(|name| Column::KEY.iter().all(|column| column.name() != *name)).collect();
        for value in typed.iter().filter(|value| !possible.contains(&value.as_str())) {
            let problem = Problem::new(format!("no column `{}` to write as a matrix", value.as_str()), value.span());
            self.object(problem.with_hint(suggestion(value, &possible, "the columns are")));
        }
        Shape::Wide(self.distinct("column", Some(typed)).unwrap_or_default())
    }
}
