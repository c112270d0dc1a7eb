//! The only way for text to leave the program: lines and tables that fit the terminal, documents, and how a command ends.
//!
//! Text is escaped (see [`escape`](bellwether::text::escape)), and keys are masked in everything that goes to standard error.
//! Datasets and rows on standard output are data: they are written unchanged, through [`stdout`]. `--json` prints one document
//! on standard output, and failures as one object on standard error. Each document has the version of its shape: new members
//! and new values of enumerations do not change it; a member that goes, or means something else, does.
//!
//! Exit code 0 means that everything requested is there; the program's help lists the meaning of the others.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead as _, IsTerminal, Write};

use bellwether::error::{Context, Error, ErrorKind};
use bellwether::key::without_keys;
use bellwether::text::escape::{escape, laid_out};
use console::{Style, Term};
use schemars::JsonSchema;
use serde::Serialize;

/// The exit code for invalid arguments and definitions.
pub(super) const USAGE: u8 = 2;

/// The exit code for findings that options turn into failures: versions differ, too much was rewritten, or data is stale.
pub(super) const FOUND: u8 = 3;

/// The result of a command.
pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// A command that did not succeed.
#[derive(Debug)]
pub(super) enum Failure {
    /// With an error to be told.
    Failed(Error),
    /// With an exit code, and nothing left to tell: what it found was printed.
    Told(u8),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        match error.io_source().map(io::Error::kind) {
            // Whoever read standard output has enough.
            Some(io::ErrorKind::BrokenPipe) if error.kind() == ErrorKind::Stream => Self::Told(0),
            _ => Self::Failed(error),
        }
    }
}

impl Failure {
    /// A failure to write to standard output.
    pub(super) fn of_stdout(source: io::Error) -> Self {
        Error::new(ErrorKind::Stream, "cannot write to standard output").with_source(source).into()
    }

    /// What an interrupted run, or one that failed, says.
    pub(super) fn of_run(error: Error) -> Self {
        if error.kind() != ErrorKind::Interrupted {
            return error.into();
        }
        let what = "interrupted; nothing was published, and what was fetched is kept for the next run";
        Error::new(ErrorKind::Interrupted, what).into()
    }
}

/// Writes text, with its own line endings, to standard output.
pub(super) fn say(text: &str) -> Result<()> {
    say_as_it_is(&spell(laid_out(text)))
}

/// Writes text in pieces to standard output, in color on a terminal.
pub(super) fn say_in_color(pieces: &[(Style, String)]) -> Result<()> {
    let colored = pieces.iter().map(|(style, text)| style.apply_to(spell(laid_out(text))).to_string());
    say_as_it_is(&colored.collect::<String>())
}

/// Writes text for a program to standard output.
pub(super) fn say_as_it_is(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::of_stdout)
}

/// Whether the user's locale has other characters than those of ASCII; so it is if none is set.
pub(super) fn is_utf8() -> bool {
    let mut locales = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    locales.find(|locale| !locale.is_empty()).is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_lowercase();
        locale.ends_with("utf-8") || locale.ends_with("utf8")
    })
}

/// A text with our own signs spelled in ASCII, where the locale has no others.
fn spell(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.is_ascii() || is_utf8() {
        return text;
    }
    let mut spelled = String::new();
    for sign in text.chars() {
        match sign {
            '…' => spelled.push_str("..."),
            '×' => spelled.push('x'),
            '▁' | '▂' => spelled.push('_'),
            '▃' | '▄' => spelled.push('-'),
            '▅' | '▆' => spelled.push('='),
            '▇'..='▋' => spelled.push('#'),
            '▌'..='▏' => spelled.push('|'),
            other => spelled.push(other),
        }
    }
    spelled.into()
}

/// Decides about colors as the help does: an empty `NO_COLOR` counts as not set.
pub(super) fn decide_on_colors() {
    if std::env::var_os("NO_COLOR").is_some_and(|value| value.is_empty()) {
        console::set_colors_enabled(stdout().is_terminal());
        console::set_colors_enabled_stderr(stderr().is_terminal());
    }
}

/// The words that begin a line of a message, with their colors.
const HEADS: [(&str, Style); 4] = [
    ("error:", Style::new().red().bold().for_stderr()),
    ("warning:", Style::new().yellow().bold().for_stderr()),
    ("hint:", Style::new().cyan().bold().for_stderr()),
    // Why something failed.
    ("  because:", Style::new().for_stderr()),
];

/// Writes lines to standard error. On a terminal, those with a head are wrapped under what follows the head, which is in
/// color.
pub(super) fn note(text: &str) {
    let columns = columns_of_stderr();
    let mut lines = Vec::new();
    for line in laid_out(&without_keys(text)).lines() {
        lines.push(match HEADS.iter().find(|(head, _)| line.starts_with(head)) {
            Some((head, style)) => {
                let line = wrap(line, head.len() + 1, columns);
                format!("{}{}", style.apply_to(head), &line[head.len()..])
            }
            None => line.to_owned(),
        });
    }
    // If standard error is closed, the error cannot be reported.
    let _ = stderr().write_all((lines.join("\n") + "\n").as_bytes());
}

/// Asks a question on the terminal. The answer is without white space around it.
pub(super) fn ask(question: &str) -> Result<String> {
    let _ = write!(stderr(), "{}", laid_out(question)).and_then(|()| stderr().flush());
    let answer = io::stdin().lock().lines().next().unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()));
    Ok(answer.context(ErrorKind::Read, || "cannot read the answer".to_owned())?.trim().to_owned())
}

/// Whether there is somebody to ask.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && stderr().is_terminal()
}

/// Standard output, for data.
#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
pub(super) fn stdout() -> io::Stdout {
    io::stdout()
}

/// Whether standard error is a terminal.
pub(super) fn is_terminal() -> bool {
    stderr().is_terminal()
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
fn stderr() -> io::Stderr {
    io::stderr()
}

/// The width of the terminal that is standard output.
pub(super) fn columns() -> Option<usize> {
    Term::stdout().size_checked().map(|(_, columns)| columns.into())
}

/// The width of the terminal that is standard error.
pub(super) fn columns_of_stderr() -> Option<usize> {
    Term::stderr().size_checked().map(|(_, columns)| columns.into())
}

/// A line, broken between words where it is wider than the terminal. Further lines are indented.
pub(super) fn wrap(line: &str, indent: usize, columns: Option<usize>) -> String {
    // A line is not wrapped into less room than twenty columns.
    let Some(columns) = columns.filter(|columns| *columns >= indent + 20) else { return line.to_owned() };
    let (mut text, mut width) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if width > indent && width + length > columns {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            width = indent;
        }
        text.push_str(word);
        width += word.chars().count();
    }
    text
}

/// Rows under a header. The first columns are text, the others numbers.
#[derive(Clone, Debug)]
pub(super) struct Aligned {
    texts: usize,
    rows: Vec<Vec<String>>,
}

/// How many rows of a long list are printed: the first ten, or with `--all` every one.
pub(super) fn row_limit(all: bool) -> usize {
    if all { usize::MAX } else { 10 }
}

/// A value in a cell, where it is known.
pub(super) fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

impl Aligned {
    /// An empty table whose first `texts` columns are text.
    pub(super) fn new<'a>(texts: usize, heads: impl IntoIterator<Item = &'a str>) -> Self {
        Self { texts, rows: vec![heads.into_iter().map(str::to_owned).collect()] }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// A list within the table, under its own title.
    pub(super) fn list(&mut self, title: &str, rows: impl IntoIterator<Item = Vec<String>>, limit: usize) {
        self.rows.extend([Vec::new(), vec![title.to_owned()]]);
        self.rest(rows, limit);
    }

    /// Rows, or the first of them and a line that says how to see the rest.
    pub(super) fn rest(&mut self, rows: impl IntoIterator<Item = Vec<String>>, limit: usize) {
        let mut rows = rows.into_iter();
        self.rows.extend(rows.by_ref().take(limit));
        match rows.count() {
            0 => {}
            more => self.row([format!("… and {more} more; `--all` shows them")]),
        }
    }
}

impl fmt::Display for Aligned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Vec<_>> = self.rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect()).collect();
        // A row of fewer cells than the header is a plain line.
        let count = rows[0].len();
        let mut widths = vec![0; count];
        for row in rows.iter().filter(|row| row.len() == count) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        // Columns move together where they would not fit the terminal.
        let is_wide = columns().is_some_and(|room| widths.iter().map(|width| width + 2).sum::<usize>() > room + 2);
        let gap = if is_wide { " " } else { "  " };
        for row in &rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let blanks = if row.len() == count { padding(cell, widths[column]) } else { String::new() };
                let [first, second] = if column < self.texts { [&**cell, &blanks] } else { [&*blanks, cell] };
                line += &format!("{}{first}{second}", if column > 0 { gap } else { "" });
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

/// Text or JSON.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct AsJson {
    /// Print JSON.
    ///
    /// `bellwether schema --for COMMAND` describes it.
    #[arg(long, global = true)]
    json: bool,
}

/// A document: the output of a command, with the version of its shape.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Document<T> {
    /// The version of the shape.
    version: u32,
    #[serde(flatten)]
    content: T,
}

impl AsJson {
    /// Whether to print JSON.
    pub(super) fn is_wanted(self) -> bool {
        self.json
    }

    /// Prints the output of a command as text or JSON.
    pub(super) fn say<T: Serialize>(self, content: impl FnOnce() -> T, text: impl FnOnce() -> String) -> Result<()> {
        if self.json { say(&document(content())) } else { say(&text()) }
    }
}

/// A document on its own line.
pub(super) fn document(content: impl Serialize) -> String {
    // The version of every shape.
    let document = Document { version: 1, content };
    serde_json::to_string(&document).expect("a document is text, numbers and lists") + "\n"
}

#[cfg(test)]
mod tests {
    use super::{Aligned, wrap};

    #[test]
    fn lines_wrap_between_words_and_never_within_one() {
        let line = "hint: set `missing = \"warn\"` in `[checks]`";
        assert_eq!(wrap(line, 6, Some(28)), "hint: set `missing = \"warn\"`\n      in `[checks]`");
        assert_eq!(
            wrap("a/very/long/path/of/a/file and more of it", 2, Some(22)),
            "a/very/long/path/of/a/file\n  and more of it"
        );
        assert_eq!(wrap(line, 6, None), line);
        assert_eq!(wrap("  two words", 2, Some(80)), "  two words");
    }

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
        table.list("by ticker", rows, 2);
        let expected =
            "what  cells\nall   1,234\n\nby ticker\nAAPL      9\nXOM      10\n… and 1 more; `--all` shows them\n";
        assert_eq!(table.to_string(), expected);
    }
}
