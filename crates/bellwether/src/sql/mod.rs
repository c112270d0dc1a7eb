//! The dataset of a plan as one SQL statement over the Parquet files of the archive.
//!
//! The statement is the specification of a dataset, which people can read and other engines can run: the observations known
//! as of an instant (`view`, as the archive documents it), the signals that the definition selects (`signals`), the news that
//! each signal may use (`news`), and the order of the rows. Its result equals a build, row for row. Means and deviations are
//! equal to the last bit, because windows add integers (billionths of a score) and divide at the end, in 64-bit floats.
//!
//! The statement names the instant, the operation and the requests, so it computes the same rows after the archive has grown.
//! It reads only sealed folders (`sealed`).
//! The dialects share one text and differ only in what `dialect` holds. A dataset that not all of them can express is refused.
//!
//! If two runs observed different values of a cell in the same microsecond, the statement may pick another one than a build:
//! it orders only by the kind of change.

mod dialect;
mod news;
mod refusal;
mod signals;
mod view;

use std::collections::BTreeSet;

use crate::archive::View;
use crate::error::{Error, ErrorKind, Result};
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Column, DatasetPlan};
use crate::time::to_record;

pub use dialect::Dialect;
pub(crate) use refusal::{check, path_text};

/// The inputs of a statement.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    /// The name of the dataset.
    pub(crate) name: &'a str,
    /// The dataset.
    pub(crate) plan: &'a DatasetPlan,
    /// The operation that returned its signals.
    pub(crate) source: Endpoint,
    /// The requests, as text, whose latest answers list its series.
    pub(crate) requests: &'a BTreeSet<String>,
    /// The tickers that do not count, whatever lists them.
    pub(crate) excluded: &'a BTreeSet<Ticker>,
    /// The tickers whose news is asked for; none for those of the signals.
    pub(crate) news: Option<&'a BTreeSet<Ticker>>,
    /// What is known of the archive, and as of when.
    pub(crate) view: &'a View,
    /// The folders or URLs of the service's archive, as the engine addresses them: one, unless claims are included.
    pub(crate) archive: &'a [String],
    pub(crate) dialect: Dialect,
}

impl Question<'_> {
    /// The statement, ending with a newline.
    pub(crate) fn statement(&self) -> Result<String> {
        let Self { plan, dialect, .. } = *self;
        check(plan)?;
        if dialect == Dialect::Spark && self.archive.len() > 1 {
            return Err(Error::new(ErrorKind::Data, "a statement for Spark cannot include claims")
                .with_hint("build it, or use DuckDB"));
        }
        // It takes a backslash for a separator wherever it matches patterns.
        if let Some(folder) = self.archive.iter().find(|it| dialect == Dialect::DuckDb && it.contains('\\')) {
            let what = format!("DuckDB takes `\\` in `{folder}` for a separator of folders");
            return Err(Error::usage(what, refusal::RENAME));
        }
        let relations = [self.signal_relations(), self.news_relations()].concat();
        let relations: Vec<String> =
            relations.into_iter().map(|(name, body)| format!("{name} as (\n{}\n)", indent(&body))).collect();
        let mut columns = Vec::new();
        for field in plan.written.schema().fields() {
            let own = plan.written.names().own(field.name());
            let feature = plan.features.iter().find(|feature| feature.to_string() == own);
            let column = plan.columns.iter().find(|column| column.name() == own);
            let expression = feature.map(|feature| self.feature(feature));
            let Some(expression) = expression.or_else(|| Some(self.column(*column?))) else { continue };
            columns.push(match expression.strip_suffix(field.name().as_str()) {
                Some(alias) if alias.len() == 2 => expression,
                _ => format!("{expression} as {}", dialect.identifier(field.name())),
            });
        }
        // The columns that every dataset has are on the first line.
        let base =
            plan.columns.iter().filter(|column| Column::BASE.contains(column)).map(|column| self.column(*column));
        let base = base.zip(&columns).take_while(|(one, other)| one == *other).count();
        let mut lines: Vec<String> = (base > 0).then(|| columns[..base].join(", ")).into_iter().collect();
        lines.extend_from_slice(&columns[base..]);
        let order: Vec<String> = plan.sort.iter().map(|column| format!("s.{}", column.name())).collect();
        let from = [vec!["from selected s".to_owned()], self.signal_joins(), self.news_joins()].concat();
        Ok(format!(
            "-- The dataset `{}` as of {}, computed from the files of the archive alone, for {}\n{}with {}\nselect {}\n{}\n\
             order by {}\n",
            self.name,
            to_record(self.view.as_of()),
            dialect.engine(),
            self.view.notes_on_runs().iter().map(|note| format!("-- {note}\n")).collect::<String>(),
            relations.join(",\n"),
            lines.join(",\n    "),
            from.join("\n"),
            order.join(", "),
        ))
    }
}

/// A string literal.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Lines indented by one more step.
fn indent(lines: &str) -> String {
    lines.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// Values separated by commas, wrapped to lines.
fn wrap(values: impl IntoIterator<Item = String>) -> String {
    /// The width at which lists wrap.
    const WIDTH: usize = 110;
    let (mut text, mut line) = (String::new(), 0);
    for value in values {
        if !text.is_empty() {
            let is_full = line + value.len() > WIDTH;
            text.push_str(if is_full { ",\n" } else { ", " });
            line = if is_full { 0 } else { line + 2 };
        }
        line += value.len();
        text.push_str(&value);
    }
    text
}

/// Wrapped values between a beginning and an end; on lines of their own if they need several.
fn block(before: &str, values: &str, after: &str) -> String {
    if values.contains('\n') {
        format!("{before}\n{}\n{after}", indent(values))
    } else {
        format!("{before}{values}{after}")
    }
}

/// `column in (values)`, on several lines if needed.
fn one_of(column: &str, values: impl IntoIterator<Item = String>) -> String {
    let values = wrap(values);
    if values.is_empty() { "false".to_owned() } else { block(&format!("{column} in ("), &values, ")") }
}

/// A named relation of some columns.
fn relation(name: &str, columns: &str, rows: impl IntoIterator<Item = String>) -> String {
    let rows = wrap(rows.into_iter().map(|row| format!("({row})")));
    let before = if rows.contains('\n') { "(values" } else { "(values " };
    block(before, &rows, &format!(") as {name}({columns})"))
}
