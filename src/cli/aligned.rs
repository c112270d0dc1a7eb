//! Plain-text tables with aligned columns.

use std::fmt;

use bellwether::text::escape::escape;

use super::wrap::columns as terminal;

/// Rows under a header. The first columns are text, the others numbers.
#[derive(Clone, Debug)]
pub(super) struct Aligned {
    texts: usize,
    rows: Vec<Vec<String>>,
}

/// How many rows of a long list are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowLimit {
    /// The first rows, and the number of those left out.
    First(usize),
    /// All of it.
    All,
}

impl RowLimit {
    /// The part that `--all` adds.
    pub(super) fn of(all: bool) -> Self {
        if all { Self::All } else { Self::First(10) }
    }
}

impl Aligned {
    /// An empty table whose first `texts` columns are text.
    pub(super) fn new<'a>(texts: usize, heads: impl IntoIterator<Item = &'a str>) -> Self {
        Self { texts, rows: vec![heads.into_iter().map(str::to_owned).collect()] }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// A list within the table, under its own title.
    pub(super) fn list(&mut self, title: &str, rows: impl IntoIterator<Item = Vec<String>>, limit: RowLimit) {
        self.rows.push(Vec::new());
        self.rows.push(vec![title.to_owned()]);
        self.rest(rows, limit);
    }

    /// Rows, or the first of them and a line that says how to see the rest.
    pub(super) fn rest(&mut self, rows: impl IntoIterator<Item = Vec<String>>, limit: RowLimit) {
        let rows: Vec<Vec<String>> = rows.into_iter().collect();
        let count = rows.len();
        let most = match limit {
            RowLimit::All => count,
            RowLimit::First(most) => most,
        };
        self.rows.extend(rows.into_iter().take(most));
        if count > most {
            self.rows.push(vec![format!("… and {} more; `--all` shows them", count - most)]);
        }
    }
}

impl fmt::Display for Aligned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Vec<_>> = self.rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect()).collect();
        let columns = rows.first().map_or(0, Vec::len);
        // A row of one cell is a plain line.
        let whole = || rows.iter().filter(|row| row.len() == columns);
        let width = |column: usize| whole().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        // Columns move together where they would not fit the terminal.
        let is_wide = terminal().is_some_and(|room| widths.iter().map(|width| width + 2).sum::<usize>() > room + 2);
        let gap = if is_wide { " " } else { "  " };
        for row in &rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let (gap, width) = (if column > 0 { gap } else { "" }, widths[column]);
                match column < self.texts {
                    _ if row.len() < columns => line.push_str(cell),
                    true => line.push_str(&format!("{gap}{cell}{}", padding(cell, width))),
                    false => line.push_str(&format!("{gap}{}{cell}", padding(cell, width))),
                }
            }
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The blanks that a text needs to be so many characters wide. The width of a format is limited to 65,535, and text from
/// outside may be longer.
pub(super) fn padding(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::{Aligned, RowLimit};

    #[test]
    fn a_cell_may_be_longer_than_the_width_of_a_format() {
        let long = "x".repeat(70_000);
        let mut table = Aligned::new(1, ["a", "b"]);
        table.row([long.clone(), "1".to_owned()]);
        table.row(["y".to_owned(), long]);
        let lines: Vec<usize> = table.to_string().lines().map(|line| line.chars().count()).collect();
        assert_eq!(lines, [140_002; 3]);
    }

    #[test]
    fn columns_are_aligned_and_long_lists_are_truncated() {
        let mut table = Aligned::new(1, ["what", "cells"]);
        table.row(["all", "1,234"].map(str::to_owned));
        let rows = [["AAPL", "9"], ["XOM", "10"], ["ZTS", "1"]].map(|row| row.map(str::to_owned).to_vec());
        table.list("by ticker", rows, RowLimit::First(2));
        let expected =
            "what  cells\nall   1,234\n\nby ticker\nAAPL      9\nXOM      10\n… and 1 more; `--all` shows them\n";
        assert_eq!(table.to_string(), expected);
    }
}
