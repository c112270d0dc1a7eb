//! The only way for text to leave the program.
//!
//! Text is escaped (see [`escape`](bellwether::text::escape)), and keys are masked in everything that goes to standard error.
//! Datasets and rows on standard output are data: they are written unchanged, through [`data`].

use super::outcome::{Failure, Result};
use super::wrap::{columns_of_stderr, wrap};
use bellwether::error::{Context, ErrorKind};
use bellwether::key::without_keys;
use bellwether::text::escape::laid_out;
use std::borrow::Cow;
use std::io::{self, BufRead as _, IsTerminal, Write};

/// Writes text, with its own line endings, to standard output.
pub(super) fn say(text: &str) -> Result<()> {
    let mut out = data().lock();
    out.write_all(spell(laid_out(text)).as_bytes()).and_then(|()| out.flush()).map_err(Failure::of_stdout)
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
    let sign = |sign: char| match sign {
        '…' => "...".to_owned(),
        '×' => "x".to_owned(),
        '▁' | '▂' => "_".to_owned(),
        '▃' | '▄' => "-".to_owned(),
        '▅' | '▆' => "=".to_owned(),
        '▇'..='▋' => "#".to_owned(),
        '▌'..='▏' => "|".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(sign).collect::<String>().into()
}

/// Decides about colors as the help does: an empty `NO_COLOR` counts as not set.
pub(super) fn decide_on_colors() {
    if std::env::var_os("NO_COLOR").is_some_and(|value| value.is_empty()) {
        console::set_colors_enabled(data().is_terminal());
        console::set_colors_enabled_stderr(stderr().is_terminal());
    }
}

/// A color on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Color {
    Plain,
    Green,
    Yellow,
    Red,
    Cyan,
}

impl Color {
    /// A text in the color. The text is escaped already.
    fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Green => "32",
            Self::Yellow => "1;33",
            Self::Red => "1;31",
            Self::Cyan => "1;36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Writes text in pieces to standard output, in color on a terminal.
pub(super) fn say_in_color(pieces: &[(Color, String)]) -> Result<()> {
    let is_colored = console::colors_enabled();
    let piece = |(color, text): &(Color, String)| {
        let text = spell(laid_out(text));
        if is_colored { color.paint(&text) } else { text.into_owned() }
    };
    let text: String = pieces.iter().map(piece).collect();
    let mut out = data().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::of_stdout)
}

/// What begins a line that says why something failed.
const BECAUSE: &str = "  because:";

/// The words that begin a line of a message, with their colors.
const HEADS: [(&str, Color); 3] = [("error:", Color::Red), ("warning:", Color::Yellow), ("hint:", Color::Cyan)];

/// A message whose lines fit the terminal: those with a head are wrapped, under what follows the head.
fn fit(text: &str) -> String {
    let columns = columns_of_stderr();
    let indent = |line: &str| {
        let is_head = |head: &&str| line.starts_with(*head);
        let head = HEADS.iter().map(|(head, _)| *head).chain([BECAUSE]).find(is_head)?;
        Some(head.len() + 1)
    };
    let fitted = |line| indent(line).map_or_else(|| line.to_owned(), |indent| wrap(line, indent, columns));
    text.lines().map(fitted).collect::<Vec<_>>().join("\n")
}

/// A message with its heads in color.
fn with_colors(text: &str) -> String {
    let painted = |line: &str| match HEADS.iter().find(|(head, _)| line.starts_with(head)) {
        Some((head, color)) => format!("{}{}", color.paint(head), &line[head.len()..]),
        None => line.to_owned(),
    };
    text.lines().map(painted).collect::<Vec<_>>().join("\n")
}

/// Writes a line to standard error, with its heads in color on a terminal.
pub(super) fn note(text: &str) {
    let line = fit(&laid_out(&without_keys(text)));
    let mut line = if console::colors_enabled_stderr() { with_colors(&line) } else { line };
    line.push('\n');
    // If standard error is closed, the error cannot be reported.
    let _ = stderr().write_all(line.as_bytes());
}

/// Asks a question on the terminal. The answer is without white space around it.
pub(super) fn ask(question: &str) -> Result<String> {
    let _ = write!(stderr(), "{}", laid_out(question)).and_then(|()| stderr().flush());
    let mut answer = String::new();
    let answered = match io::stdin().lock().read_line(&mut answer) {
        Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Ok(_) => Ok(answer.trim().to_owned()),
        Err(source) => Err(source),
    };
    Ok(answered.context(ErrorKind::Read, || "cannot read the answer".to_owned())?)
}

/// Whether there is somebody to ask.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && stderr().is_terminal()
}

/// Standard output, for data.
#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
pub(super) fn data() -> io::Stdout {
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
