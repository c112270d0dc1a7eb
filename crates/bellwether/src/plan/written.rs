//! The columns of a dataset as they are written: which, in which order, under which names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};

use super::features::Feature;
use super::{Column, RowKind, Validator};
use crate::columns::Rows;
use crate::definition::{Added, Definition, HistoryForm, List, Tickers};
use crate::text::problem::suggestion;

/// The columns that are written, out of those that are built.
#[derive(Clone, Debug)]
pub struct WrittenColumns {
    /// Their indices among those that are built.
    indices: Vec<usize>,
    schema: SchemaRef,
    names: ColumnNames,
    /// The written columns that identify a row; `None` if they are not unique without the others.
    pub key: Option<Vec<String>>,
    /// The written columns that sort the rows.
    pub sort: Vec<String>,
}

/// What columns are called, by their own names; a column that is not renamed has its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNames(BTreeMap<String, String>);

impl ColumnNames {
    /// Names by own names.
    pub fn new(names: BTreeMap<String, String>) -> Self {
        Self(names)
    }

    /// What a column is called.
    pub fn of<'a>(&'a self, column: &'a str) -> &'a str {
        self.0.get(column).map_or(column, String::as_str)
    }

    /// What a column is called among some that are written; none if it is not one of them. Another column may have taken
    /// its name.
    pub fn find<'a>(&'a self, column: Column, schema: &Schema) -> Option<&'a str> {
        let name = self.of(column.name());
        let is_written = self.own(name) == column.name() && schema.column_with_name(name).is_some();
        is_written.then_some(name)
    }

    /// The own name of a column.
    pub fn own<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.iter().find(|(_, written)| *written == name).map_or(name, |(own, _)| own)
    }
}

impl WrittenColumns {
    /// All columns that are built, as they are.
    pub(crate) fn all(schema: &SchemaRef, key: &[Column], sort: &[Column]) -> Self {
        let columns: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        Self::new(schema, &columns, ColumnNames::default(), key, sort, &[])
    }

    /// Some of the columns that are built, by their own names, of which some have the same value in every row.
    pub(super) fn new(
        schema: &SchemaRef,
        columns: &[String],
        names: ColumnNames,
        key: &[Column],
        sort: &[Column],
        constant: &[Column],
    ) -> Self {
        let indices: Vec<usize> = columns.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let fields = indices.iter().map(|index| schema.field(*index));
        let fields: Vec<Field> = fields.map(|field| field.clone().with_name(names.of(field.name()))).collect();
        let has = |column: &Column| columns.iter().any(|name| name == column.name());
        let is_known = |column: &Column| has(column) || constant.contains(column);
        let written = |columns: &[Column]| -> Vec<String> {
            let columns = columns.iter().filter(|column| has(column));
            columns.map(|column| names.of(column.name()).to_owned()).collect()
        };
        let key = key.iter().all(is_known).then(|| written(key));
        // Without one of the columns, the order of those that follow it cannot be seen.
        let until = sort.iter().position(|column| !is_known(column)).unwrap_or(sort.len());
        let sort = written(&sort[..until]);
        Self { schema: Arc::new(Schema::new(fields)), indices, names, key, sort }
    }

    /// The same, and the last column that is built.
    #[must_use]
    pub(super) fn with_last(mut self, schema: &SchemaRef) -> Self {
        let index = schema.fields().len() - 1;
        let field = Arc::clone(&schema.fields()[index]);
        self.indices.push(index);
        self.schema = Arc::new(Schema::new(self.schema.fields().iter().cloned().chain([field]).collect::<Vec<_>>()));
        self
    }

    /// What a column that is built is called where it is written; none if it is not.
    pub fn name_of<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        let name = self.names.of(own);
        let is_written = self.names.own(name) == own && self.schema.column_with_name(name).is_some();
        is_written.then_some(name)
    }

    /// The columns as they are written.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What the columns are called.
    pub fn names(&self) -> &ColumnNames {
        &self.names
    }

    /// What a column that is written is called.
    pub fn name(&self, column: Column) -> &str {
        self.names.of(column.name())
    }

    /// Rows that were built, as they are written.
    pub fn part(&self, rows: &Rows) -> Rows {
        rows.project(&self.schema, &self.indices)
    }
}

/// The columns to build, and those of them to write.
pub(super) struct ChosenColumns {
    /// The columns to build that are not features.
    pub(super) columns: Vec<Column>,
    /// The features to compute.
    pub(super) features: Vec<Feature>,
    /// The columns to write, by their own names.
    pub(super) written: Vec<String>,
}

impl Validator<'_> {
    /// The columns of a dataset that may have these features: those that it always has, and those that `[dataset]` chooses
    /// or adds.
    pub(super) fn choose_columns(&mut self, rows: RowKind, features: Vec<Feature>) -> ChosenColumns {
        let section = &self.definition.dataset;
        if section.columns.is_some() {
            let hint = "name the columns in `columns`, or remove `columns`";
            self.without_effect(&["dataset.add"], "together with `columns`", hint);
        }
        let added = self.distinct("column", "dataset.add", section.add.as_ref()).unwrap_or_default();
        for (index, added) in added.iter().enumerate().filter(|(_, added)| !rows.can_have(Column::from(**added))) {
            let hint = "it is a column of signals: remove it";
            self.object(&format!("dataset.add.{index}"), format!("an article has no `{added}`"), hint);
        }
        let mut columns: Vec<Column> = rows.base().to_vec();
        // Where sectors are asked for, a row says which it is of.
        let has_sectors = rows == RowKind::Signal && self.definition.signals.sectors.is_some();
        if section.columns.is_none() && has_sectors {
            columns.push(Column::Sector);
        }
        columns.extend(added.into_iter().map(Column::from));
        with_assumption(&mut columns, Column::TradableAt, Column::Backfilled);
        let mut seen = BTreeSet::new();
        columns.retain(|column| seen.insert(column.name()));
        let feature_names: Vec<String> = features.iter().map(Feature::to_string).collect();
        let Some(typed) = &section.columns else {
            let (base, extra) = columns.split_at(rows.base().len());
            let written = names_of(base).chain(feature_names).chain(names_of(extra)).collect();
            return ChosenColumns { columns, features, written };
        };
        if self.is_wide() {
            let hint = "name the columns to write as matrices in `values` of `[output]`";
            self.without_effect(&["dataset.columns"], "on a wide dataset", hint);
        }
        let mut possible: Vec<Column> = Added::ALL.iter().map(|added| Column::from(*added)).collect();
        possible.retain(|column| rows.can_have(*column) && !rows.base().contains(column));
        let known: Vec<String> = names_of(rows.base()).chain(feature_names).chain(names_of(&possible)).collect();
        let mut written = self.distinct("column", "dataset.columns", Some(typed)).unwrap_or_default();
        for (index, name) in written.iter_mut().enumerate().filter(|(_, name)| !known.contains(name)) {
            let at = format!("dataset.columns.{index}");
            let mut renames = section.rename.iter().flatten();
            if let Some((own, _)) = renames.find(|(own, new)| *new == name && known.contains(own)) {
                let hint = format!("`columns` has the columns' own names: write `\"{own}\"`");
                self.object(&at, format!("`{name}` is the new name of `{own}`"), hint);
                name.clone_from(own);
            } else {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                self.object(&at, format!("no column `{name}`"), suggestion(name, &known, "the columns are"));
            }
        }
        with_assumption(&mut written, Column::TradableAt.name().to_owned(), Column::Backfilled.name().to_owned());
        columns.extend(possible.into_iter().filter(|column| written.iter().any(|name| name == column.name())));
        let features = features.into_iter().filter(|feature| written.contains(&feature.to_string())).collect();
        ChosenColumns { columns, features, written }
    }

    /// What the columns that are written are called.
    pub(super) fn names(&mut self, written: &[String]) -> ColumnNames {
        let typed = self.definition.dataset.rename.clone().unwrap_or_default();
        let known: Vec<&str> = written.iter().map(String::as_str).collect();
        let mut taken: BTreeSet<&str> = known.iter().copied().filter(|name| !typed.contains_key(*name)).collect();
        for (column, name) in &typed {
            let at = format!("dataset.rename.{column}");
            if !known.contains(&column.as_str()) {
                let hint = suggestion(column, &known, "the columns are");
                self.object(&at, format!("no column `{column}` to rename"), hint);
            } else if name.trim().is_empty() || name.chars().count() > 64 || name.contains(char::is_control) {
                self.object(&at, "no name for a column", "use 1 to 64 characters, without line breaks");
            } else if name == Column::Claimed.name() {
                let what = "`claimed` is the column that marks rows that rest on claims";
                self.object(&at, what, "choose another name");
            } else if !taken.insert(name) {
                self.repeated("column", &at, name);
            }
        }
        ColumnNames::new(typed)
    }

    /// The columns that have the same value in every row, as far as the definition tells.
    pub(super) fn constant_columns(&self, rows: RowKind) -> Vec<Column> {
        let Definition { signals, sentiment, filter, .. } = self.definition;
        let tickers = if rows == RowKind::Article { &sentiment.tickers } else { &signals.tickers };
        let is_one_ticker = matches!(tickers, Some(Tickers::Written(tickers)) if tickers.len() == 1);
        let is_batch = self.form() == HistoryForm::Batched;
        let (is_one_period, is_one_regime) = match self.named_pairs() {
            Some(pairs) => (
                pairs.iter().map(|pair| pair.0).collect::<BTreeSet<_>>().len() == 1,
                pairs.iter().map(|pair| pair.1).collect::<BTreeSet<_>>().len() == 1,
            ),
            // One is the default, but of a batch.
            None => (
                signals.periods.as_ref().map_or(!is_batch, |typed| typed.len() == 1),
                signals.regimes.as_ref().map_or(!is_batch, |typed| typed.len() == 1),
            ),
        };
        let constant = [
            (Column::Ticker, is_one_ticker || is_one(&filter.tickers)),
            (Column::Period, is_one_period || is_one(&filter.periods)),
            (Column::Regime, is_one_regime || is_one(&filter.regimes)),
            (Column::Signal, filter.signal.is_some()),
        ];
        constant.into_iter().filter_map(|(column, is_constant)| is_constant.then_some(column)).collect()
    }
}

fn is_one<T>(typed: &Option<List<T>>) -> bool {
    typed.as_ref().is_some_and(|typed| typed.len() == 1)
}

fn names_of(columns: &[Column]) -> impl Iterator<Item = String> {
    columns.iter().map(|column| column.name().to_owned())
}

/// Adds beside a column the one that says where it is an assumption, unless it is there.
fn with_assumption<T: PartialEq>(columns: &mut Vec<T>, column: T, assumed: T) {
    if let Some(index) = columns.iter().position(|other| *other == column)
        && !columns.contains(&assumed)
    {
        columns.insert(index + 1, assumed);
    }
}
