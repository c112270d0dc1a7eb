//! Compares the articles that summaries refer to with the lists of articles.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Float64Type;

use super::{Comparing, Disagreement, SharedCell, SourceValue, Sources, Value};
use crate::archive::{Histories, History, StoredObservations};
use crate::audit::observed::{ObservedColumns, column, instant_of};
use crate::audit::subject::Subject;
use crate::error::Result;
use crate::interface::{Endpoint, Ticker};
use crate::plan::Reference;
use crate::process::in_order::in_order;
use crate::tables::{Change, Table};

/// The articles that a ticker's latest summary refers to, with their links.
type References = Vec<(Reference, String, SourceValue)>;

/// Compares every reference whose article is listed. Summaries are held in memory, a few rows per ticker; articles are
/// not.
pub(super) fn compare(
    subject: &Subject,
    take: &mut impl FnMut((Sources, Option<RecordBatch>)) -> Result<()>,
) -> Result<()> {
    let references = references(subject)?;
    if references.is_empty() {
        return Ok(());
    }
    let of_piece = |piece: StoredObservations| {
        let histories = piece.histories()?;
        let observed = ObservedColumns::of(&histories);
        let mut listed = Vec::new();
        for history in &histories.series {
            let of_ticker = references.get(&history.key.ticker).into_iter().flatten();
            listed.extend(of_ticker.filter_map(|reference| article(history, &observed, reference)));
        }
        Ok(listed)
    };
    // The articles of a ticker may come in several pieces.
    let mut found: BTreeMap<(Ticker, Reference), Disagreement> = BTreeMap::new();
    in_order(
        || subject.view().observations(Table::Articles),
        of_piece,
        |listed| {
            for ((ticker, reference), cell) in listed {
                let at = (ticker, reference);
                if found.get(&at).is_none_or(|before| before.statements[0].value != before.statements[1].value) {
                    found.insert(at, cell);
                }
            }
            Ok(())
        },
    )?;
    let mut comparing = Comparing::new();
    found.into_values().for_each(|cell| comparing.add(cell));
    take(comparing.finish()?)
}

/// The listed article that a summary refers to, beside what the summary says of it.
fn article(
    history: &History,
    observed: &ObservedColumns<'_>,
    (reference, link, summary): &(Reference, String, SourceValue),
) -> Option<((Ticker, Reference), Disagreement)> {
    let texts = observed.texts.expect("these are articles");
    let listed: Vec<usize> = observed.known_rows(history).filter(|&row| texts[1].value(row) == link).collect();
    // A link may be listed several times; one match is enough.
    let agrees = listed.iter().copied().find(|&row| observed.value(row) == summary.value);
    let row = agrees.or(listed.last().copied())?;
    let listed =
        SourceValue { source: Endpoint::NewsArticles, value: observed.value(row), observed_at: observed.instant(row) };
    let cell = Disagreement {
        ticker: history.key.ticker.clone(),
        period: None,
        regime: None,
        date: observed.dates.value(row),
        about: SharedCell::Article(*reference, link.clone()),
        statements: [*summary, listed],
    };
    Some(((history.key.ticker.clone(), *reference), cell))
}

fn references(subject: &Subject) -> Result<BTreeMap<Ticker, References>> {
    let mut references = BTreeMap::new();
    for piece in subject.view().observations(Table::Summaries)? {
        let histories = piece?.histories()?;
        for History { key, groups } in histories.series.iter().filter(|history| subject.has(&history.key)) {
            let last = groups.cells().map(|cell| cell.end - 1);
            for row in last.filter(|&row| histories.changes[row] != Change::Withdrawn) {
                references.insert(key.ticker.clone(), of_summary(&histories, row));
            }
        }
    }
    Ok(references)
}

fn of_summary(histories: &Histories, row: usize) -> References {
    let rows = &histories.rows;
    let of_reference = |reference: Reference| {
        let column = |what: &str| column(rows, &format!("{}_{what}", reference.as_str()));
        let (links, scores) = (column("link").as_string::<i32>(), column("score").as_primitive::<Float64Type>());
        let link = links.is_valid(row).then(|| links.value(row).to_owned())?;
        let number = scores.is_valid(row).then(|| scores.value(row));
        let value = Value { signal: None, number };
        let observed_at = instant_of(rows, row);
        Some((reference, link, SourceValue { source: Endpoint::SocialSentiment, value, observed_at }))
    };
    Reference::ALL.into_iter().filter_map(of_reference).collect()
}
