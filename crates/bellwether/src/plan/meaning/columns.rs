//! The columns of a dataset: those that it always has, those that `[dataset]` chooses and adds, and their names.

use std::collections::{BTreeMap, BTreeSet};

use super::signals::{form_of, named_pairs};
use super::{Validator, repetition};
use crate::definition::{Added, DatasetSection, Definition, HistoryForm, Layout, List, Placed, Tickers};
use crate::interface::{Period, Regime};
use crate::plan::columns::{Column, Feature, RowKind};
use crate::plan::written::ColumnNames;
use crate::text::problem::{Problem, suggestion};

/// The longest name of a column, in characters.
const LONGEST_NAME: usize = 64;

/// The columns to build, and those of them to write.
pub(super) struct ChosenColumns {
    /// The columns to build that are not features.
    pub(super) columns: Vec<Column>,
    /// The features to compute.
    pub(super) features: Vec<Feature>,
    /// The columns to write, by their own names.
    pub(super) written: Vec<String>,
}

impl Validator {
    /// The columns of a dataset that may have these features.
    pub(super) fn choose_columns(
        &mut self,
        definition: &Definition,
        kind: RowKind,
        features: Vec<Feature>,
    ) -> ChosenColumns {
        let DatasetSection { columns: typed, add, .. } = &*definition.dataset;
        let added = |added: Added| Some(Column::of(added)).filter(|column| !kind.base().contains(column));
        if let (Some(_), Some(add)) = (typed, add) {
            let problem = Problem::new("`add` has no effect together with `columns`", add.span());
            self.object(problem.with_hint("name the columns in `columns`, or remove `columns`"));
        }
        for typed in add.iter().flat_map(|add| add.iter()).filter(|typed| !kind.can_have(Column::of(***typed))) {
            let problem = Problem::new(format!("an article has no `{}`", **typed), typed.span());
            self.object(problem.with_hint("it is a column of signals: remove it"));
        }
        let extra = self.distinct("column", add.as_ref()).unwrap_or_default().into_iter().filter_map(added);
        let mut columns: Vec<Column> = kind.base().to_vec();
        // Where sectors are asked for, a row says which it is of.
        let is_of_sectors = typed.is_none() && kind == RowKind::Signal && definition.signals.sectors.is_some();
        columns.extend(is_of_sectors.then_some(Column::Sector));
        columns.extend(extra);
        with_assumption(&mut columns, Column::TradableAt, Column::Backfilled);
        let mut seen = BTreeSet::new();
        columns.retain(|column| seen.insert(column.name()));
        let names = |columns: &[Column]| columns.iter().map(|column| column.name().to_owned()).collect::<Vec<_>>();
        let of_features = features.iter().map(Feature::to_string);
        let Some(typed) = typed else {
            let (base, extra) = columns.split_at(kind.base().len());
            let written = names(base).into_iter().chain(of_features).chain(names(extra)).collect();
            return ChosenColumns { columns, features, written };
        };
        if is_wide(definition) {
            let problem = Problem::new("`columns` has no effect on a wide dataset", typed.span());
            self.object(problem.with_hint("name the columns to write as matrices in `values` of `[output]`"));
        }
        let possible = Added::ALL.iter().copied().filter_map(added);
        let possible: Vec<Column> = possible.filter(|column| kind.can_have(*column)).collect();
        let known: Vec<String> = names(kind.base()).into_iter().chain(of_features).chain(names(&possible)).collect();
        let typed_names = self.distinct("column", Some(typed)).unwrap_or_default();
        let renamed = |name: &String| {
            let names = definition.dataset.rename.as_ref()?;
            names.iter().find(|(own, new)| new.as_str() == name && known.contains(own)).map(|(own, _)| own.clone())
        };
        let mut unknown = typed.iter().filter(|name| !known.contains(&***name)).collect::<Vec<_>>();
        unknown.retain(|name| match renamed(name) {
            Some(own) => {
                let problem = Problem::new(format!("`{}` is the new name of `{own}`", name.as_str()), name.span());
                self.object(problem.with_hint(format!("`columns` has the columns' own names: write `\"{own}\"`")));
                false
            }
            None => true,
        });
        let possible_names: Vec<&str> = known.iter().map(String::as_str).collect();
        for name in unknown {
            let problem = Problem::new(format!("no column `{}`", name.as_str()), name.span());
            self.object(problem.with_hint(suggestion(name, &possible_names, "the columns are")));
        }
        let mut written: Vec<String> = typed_names.into_iter().map(|name| renamed(&name).unwrap_or(name)).collect();
        with_assumption(&mut written, Column::TradableAt.name().to_owned(), Column::Backfilled.name().to_owned());
        columns.extend(possible.into_iter().filter(|column| written.iter().any(|name| name == column.name())));
        let features = features.into_iter().filter(|feature| written.contains(&feature.to_string())).collect();
        ChosenColumns { columns, features, written }
    }

    /// What the columns that are written are called.
    pub(super) fn names(&mut self, section: &DatasetSection, written: &[String]) -> ColumnNames {
        let Some(typed) = &section.rename else { return ColumnNames::default() };
        let known: Vec<&str> = written.iter().map(String::as_str).collect();
        let kept = written.iter().filter(|name| !typed.contains_key(*name)).map(String::as_str);
        let mut taken: BTreeSet<&str> = kept.collect();
        let mut names = BTreeMap::new();
        for (column, name) in typed.iter() {
            if !known.contains(&column.as_str()) {
                let problem = Problem::new(format!("no column `{column}` to rename"), name.span());
                self.object(problem.with_hint(suggestion(column, &known, "the columns are")));
            } else if name.trim().is_empty() || name.chars().count() > LONGEST_NAME || name.contains(char::is_control) {
                let problem = Problem::new("no name for a column", name.span());
                self.object(problem.with_hint("use 1 to 64 characters, without line breaks"));
            } else if name.as_str() == Column::Claimed.name() {
                let problem = Problem::new("`claimed` is the column that marks rows that rest on claims", name.span());
                self.object(problem.with_hint("choose another name"));
            } else if !taken.insert(name) {
                self.object(repetition("column", &name.as_str(), name.span()));
            }
            names.insert(column.clone(), (**name).clone());
        }
        ColumnNames::new(names)
    }
}

/// Adds beside a column the one that says where it is an assumption, unless it is there.
fn with_assumption<T: PartialEq>(columns: &mut Vec<T>, column: T, assumed: T) {
    if let Some(index) = columns.iter().position(|other| *other == column)
        && !columns.contains(&assumed)
    {
        columns.insert(index + 1, assumed);
    }
}

/// Whether a definition asks for matrices.
pub(super) fn is_wide(definition: &Definition) -> bool {
    definition.output.layout.as_deref() == Some(&Layout::Wide)
}

/// The columns that have the same value in every row, as far as the definition tells.
pub(super) fn constant(definition: &Definition, kind: RowKind) -> Vec<Column> {
    fn is_one<T>(typed: &Option<Placed<List<T>>>) -> bool {
        typed.as_ref().is_some_and(|typed| typed.len() == 1)
    }
    let (signals, filter) = (&*definition.signals, &*definition.filter);
    let tickers = match kind {
        RowKind::Signal | RowKind::Observation => &signals.tickers,
        RowKind::Article => &definition.sentiment.tickers,
    };
    let is_one_ticker = matches!(tickers.as_deref(), Some(Tickers::Written(tickers)) if tickers.len() == 1);
    let is_batch = form_of(signals) == HistoryForm::Batched;
    let is_default = |is_typed: bool| !is_batch && !is_typed;
    let pairs = named_pairs(signals);
    let is_one_of_pairs =
        |count: fn(&BTreeSet<(Period, Regime)>) -> usize| pairs.as_ref().map(|pairs| count(pairs) == 1);
    let is_one_period = is_one_of_pairs(|pairs| pairs.iter().map(|pair| pair.0).collect::<BTreeSet<_>>().len())
        .unwrap_or_else(|| is_one(&signals.periods) || is_default(signals.periods.is_some()));
    let is_one_regime = is_one_of_pairs(|pairs| pairs.iter().map(|pair| pair.1).collect::<BTreeSet<_>>().len())
        .unwrap_or_else(|| is_one(&signals.regimes) || is_default(signals.regimes.is_some()));
    let constant = [
        (Column::Ticker, is_one_ticker || is_one(&filter.tickers)),
        (Column::Period, is_one_period || is_one(&filter.periods)),
        (Column::Regime, is_one_regime || is_one(&filter.regimes)),
        (Column::Signal, filter.signal.is_some()),
    ];
    constant.into_iter().filter_map(|(column, is_constant)| is_constant.then_some(column)).collect()
}
