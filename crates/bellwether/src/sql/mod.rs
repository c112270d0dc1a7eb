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
mod text;
mod view;

use std::collections::BTreeSet;

use arrow::datatypes::FieldRef;
use chrono::{DateTime, Utc};

use crate::archive;
use crate::error::Result;
use crate::interface::{Endpoint, Ticker};
use crate::plan::{Column, DatasetPlan};
use crate::tables::ClaimedUntil;
use crate::time::to_record;

pub use dialect::Dialect;
pub(crate) use refusal::{check, path_text};

use news::NewsQuery;
use signals::SignalQuery;
use text::indent;
use view::View;

/// The inputs of a statement.
#[derive(Clone, Copy, Debug)]
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
    /// Runs sealed later are ignored.
    pub(crate) as_of: DateTime<Utc>,
    /// The notes on runs that are forgotten, when they were sealed, and the merges of them.
    pub(crate) forgotten: &'a ForgottenRuns,
    /// The folders or URLs of the service's archive, as the engine addresses them: one, unless claims are included.
    pub(crate) archive: &'a [String],
    /// Until when rows rest on claims; none if none does.
    pub(crate) claimed: Option<ClaimedUntil>,
    pub(crate) dialect: Dialect,
}

/// What a statement leaves out because it is forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForgottenRuns {
    notes: Vec<String>,
    sealed: Vec<DateTime<Utc>>,
    merges: Vec<String>,
}

impl ForgottenRuns {
    /// The forgotten runs of a view.
    pub(crate) fn of(view: &archive::View) -> Self {
        let merges = view.archive().left_out_merges().collect();
        Self { notes: view.notes_on_runs(), sealed: view.left_out(), merges }
    }
}

/// The statement, ending with a newline.
pub(crate) fn statement(question: &Question<'_>) -> Result<String> {
    let Question { name, plan, news: asked, as_of, archive, dialect, .. } = *question;
    check(plan)?;
    if dialect == Dialect::Spark && archive.len() > 1 {
        return Err(refusal::claims());
    }
    let literal = |folder: &String| {
        let folder = folder.trim_end_matches('/');
        dialect.literal(folder).ok_or_else(|| refusal::misread_path(folder))
    };
    let literals = archive.iter().map(literal).collect::<Result<Vec<String>>>()?;
    let ForgottenRuns { notes, sealed, merges } = question.forgotten;
    let view = View { dialect, archive: &literals, as_of, left_out: sealed, left_out_merges: merges };
    let news = NewsQuery { plan, asked, view: &view };
    let signals = SignalQuery { question, view: &view, news: &news };
    let relations = [signals.relations(), news.relations()].concat();
    let relations = relations.into_iter().map(|(name, body)| format!("{name} as (\n{}\n)", indent(&body)));
    let named = |expression: String, name: &str| match expression.strip_suffix(name) {
        Some(alias) if alias.len() == 2 => expression,
        _ => format!("{expression} as {}", dialect.identifier(name)),
    };
    let written = |field: &FieldRef| {
        let own = plan.written.names().own(field.name());
        let feature =
            plan.features.iter().find(|feature| feature.to_string() == own).map(|feature| news.feature(feature));
        let column = || plan.columns.iter().find(|column| column.name() == own).map(|column| signals.column(*column));
        Some(named(feature.or_else(column)?, field.name()))
    };
    let columns: Vec<String> = plan.written.schema().fields().iter().filter_map(written).collect();
    // The columns that every dataset has are on the first line.
    let base = plan.columns.iter().filter(|column| Column::BASE.contains(column)).map(|column| signals.column(*column));
    let base = base.zip(&columns).take_while(|(one, other)| one == *other).count();
    let mut lines: Vec<String> = (base > 0).then(|| columns[..base].join(", ")).into_iter().collect();
    lines.extend_from_slice(&columns[base..]);
    let order: Vec<String> = plan.sort.iter().map(|column| format!("s.{}", column.name())).collect();
    let mut from = vec!["from selected s".to_owned()];
    from.extend(signals.joins());
    from.extend(news.joins());
    Ok(format!(
        "-- The dataset `{name}` as of {}, computed from the files of the archive alone, for {}\n{}with {}\nselect {}\n{}\norder by {}\n",
        to_record(as_of),
        dialect.engine(),
        notes.iter().map(|note| format!("-- {note}\n")).collect::<String>(),
        relations.collect::<Vec<_>>().join(",\n"),
        lines.join(",\n    "),
        from.join("\n"),
        order.join(", "),
    ))
}
