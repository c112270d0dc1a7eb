//! The kinds of datasets, and the keys that have no effect on each.

use std::ops::Range;

use super::Validator;
use super::columns::is_wide;
use crate::definition::{DatasetKind, Definition, Placed, Vintages};
use crate::plan::columns::RowKind;
use crate::text::problem::Problem;

/// What the rows of a definition's dataset are.
pub(super) fn row_kind(definition: &Definition) -> RowKind {
    match (kind_of(definition), definition.output.vintage.as_deref()) {
        (DatasetKind::Signals, Some(Vintages::All)) => RowKind::Observation,
        (DatasetKind::Joined | DatasetKind::Signals, _) => RowKind::Signal,
        (DatasetKind::News, _) => RowKind::Article,
    }
}

/// The kind of a definition's dataset.
pub(super) fn kind_of(definition: &Definition) -> DatasetKind {
    definition.dataset.kind.as_deref().copied().unwrap_or(DatasetKind::Joined)
}

/// A key that was typed, and where.
type TypedKey = (&'static str, Option<Range<usize>>);

fn at<T>(typed: &Option<Placed<T>>) -> Option<Range<usize>> {
    typed.as_ref().map(Placed::span)
}

impl Validator {
    /// The kind of a dataset. Reports keys that have no effect on it.
    pub(super) fn kind(&mut self, definition: &Definition) -> DatasetKind {
        let kind = kind_of(definition);
        if let Some(vintage) = definition.output.vintage.as_ref().filter(|vintage| ***vintage == Vintages::All) {
            let refusal = match kind {
                DatasetKind::Joined => Some((
                    "a dataset of all vintages has a row for each value, and no features of the news",
                    "set `kind = \"signals\"` in `[dataset]`, or choose `latest` or `first`",
                )),
                DatasetKind::News => Some((
                    "`all` has no effect on a dataset of news",
                    "choose `latest` or `first`; only signals have a row for each value",
                )),
                DatasetKind::Signals => is_wide(definition).then_some((
                    "a dataset of all vintages cannot be wide",
                    "a date may have many values: set `layout = \"long\"`, or choose `latest` or `first`",
                )),
            };
            if let Some((what, hint)) = refusal {
                self.object(Problem::new(what, vintage.span()).with_hint(hint));
            }
        }
        let unused = match kind {
            DatasetKind::Joined => return kind,
            DatasetKind::Signals => [of_sentiment(definition), of_join(definition)].concat(),
            DatasetKind::News => [of_series(definition), of_join(definition)].concat(),
        };
        for (key, span) in unused.into_iter().filter_map(|(key, span)| Some((key, span?))) {
            let problem = Problem::new(format!("`{key}` has no effect on a dataset of {kind}"), span);
            self.object(problem.with_hint(format!("remove `{key}`, or set `kind = \"joined\"` in `[dataset]`")));
        }
        if kind == DatasetKind::News
            && let Some(articles) = definition.sentiment.articles.as_ref().filter(|articles| !***articles)
        {
            let problem = Problem::new("a dataset of news needs its articles", articles.span());
            self.object(problem.with_hint("remove `articles = false`"));
        }
        if kind == DatasetKind::News
            && is_wide(definition)
            && let Some(layout) = &definition.output.layout
        {
            let problem = Problem::new("a dataset of news cannot be wide", layout.span());
            self.object(problem.with_hint("a date may have many articles: remove `layout`"));
        }
        kind
    }
}

fn of_sentiment(definition: &Definition) -> Vec<TypedKey> {
    let section = &definition.sentiment;
    vec![
        ("articles", at(&section.articles)),
        ("summary", at(&section.summary)),
        ("historical", at(&section.historical)),
        ("tickers", at(&section.tickers)),
        ("duplicates", at(&section.duplicates)),
        ("complete", at(&section.complete)),
        ("delay", at(&section.delay)),
    ]
}

pub(super) fn of_join(definition: &Definition) -> Vec<TypedKey> {
    let section = &definition.join;
    vec![
        ("lag", at(&section.lag)),
        ("availability", at(&section.availability)),
        ("sources", at(&section.sources)),
        ("windows", at(&section.windows)),
        ("stats", at(&section.stats)),
        ("half_lives", at(&section.half_lives)),
        ("historical", at(&section.historical)),
    ]
}

/// The keys about series of signals.
fn of_series(definition: &Definition) -> Vec<TypedKey> {
    let (signals, filter) = (&definition.signals, &definition.filter);
    vec![
        ("history", at(&signals.history)),
        ("periods", at(&signals.periods)),
        ("regimes", at(&signals.regimes)),
        ("pairs", at(&signals.pairs)),
        ("complete", at(&signals.complete)),
        ("made_at", at(&signals.made_at)),
        ("periods", at(&filter.periods)),
        ("regimes", at(&filter.regimes)),
        ("signal", at(&filter.signal)),
        ("min_confidence", at(&filter.min_confidence)),
    ]
}
