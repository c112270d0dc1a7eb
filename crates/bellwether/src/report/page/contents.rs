//! What a version holds: its files and how to load them, its columns, which news its signals use, and what changed since
//! the version before.

use super::{Heading, Html, Topic};
use crate::report::facts::ColumnFacts;
use crate::report::{Report, Version};
use crate::text::human::{group_digits, portion};

impl Report {
    pub(super) fn contents(&self, html: &mut Html) {
        let asides = [self.identity.in_words.clone()];
        let finding = self.columns_with_nulls();
        html.section(&Topic::new("columns", "Columns", finding).with_asides(&asides), |html| {
            if !self.columns.is_empty() {
                columns(html, &self.columns, self.facts.rows);
            }
            let commands = self.commands();
            if !commands.is_empty() {
                html.figure("How to read it", "In Python, and in a shell.", |html| {
                    html.leaf("pre", &[], commands.join("\n"));
                    if let Some(version) = &self.identity.version {
                        html.cut(format_args!("The content is blake3:{}.", version.content));
                    }
                });
            }
        });
    }

    /// The finding: how many columns have nulls.
    pub(in crate::report) fn columns_with_nulls(&self) -> String {
        let with_nulls = self.columns.iter().filter(|column| column.nulls > 0).count();
        match (self.columns.len(), with_nulls) {
            (0, _) => "The columns were not counted".to_owned(),
            (all, 0) => format!("No nulls in {} columns", group_digits(all as u64)),
            (all, 1) => format!("1 of {} columns has nulls", group_digits(all as u64)),
            (all, some) => format!("{} of {} columns have nulls", group_digits(some as u64), group_digits(all as u64)),
        }
    }

    /// How to load the version, and how to see what changed since the one before.
    pub(in crate::report) fn commands(&self) -> Vec<String> {
        let Some(version) = &self.identity.version else { return Vec::new() };
        let (Version { reference, files, .. }, before) = (version, version.version_to_compare());
        let load = format!("bellwether.load(\"{reference}\")");
        let diff = before.map(|before| format!("bellwether diff {}/{before} {reference}", self.identity.name));
        let more =
            (files.len() > FILES).then(|| format!("… and {} more files", group_digits((files.len() - FILES) as u64)));
        files.iter().take(FILES).cloned().chain(more).chain([load]).chain(diff).collect()
    }
}

/// The most files named.
const FILES: usize = 4;

impl ColumnFacts {
    /// The lowest and the highest value: `-0.81 to 0.93`.
    pub(in crate::report) fn range_in_words(&self) -> Option<String> {
        let (low, high) = self.range?;
        Some(format!("{} to {}", short(low), short(high)))
    }
}

/// A number with at most four decimals.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn columns(html: &mut Html, columns: &[ColumnFacts], rows: u64) {
    let heads =
        [Heading::Text("column"), Heading::Number("null"), Heading::Number("lowest"), Heading::Number("highest")];
    let note = "Share of rows without a value, and the range of the others.";
    html.figure("Columns", note, |html| {
        html.comparison(&heads, columns.len(), |html, row, column| {
            let ColumnFacts { name, nulls, range } = &columns[row];
            match (column, range) {
                (0, _) => html.leaf("code", &[], name),
                (1, _) => html.text(portion(*nulls, rows)),
                (_, None) => html.text("-"),
                (2, Some((low, _))) => html.text(short(*low)),
                (_, Some((_, high))) => html.text(short(*high)),
            }
        });
    });
}
