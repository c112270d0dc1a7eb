//! Problems of a definition, shown at their place.
//!
//! All problems of a file are collected before any is reported. What is printed is bounded: the first twenty problems,
//! an excerpt of a long line around the place, and the beginning of a long message.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::text::escape::escape;
use crate::text::human::count_of;

/// How many problems are shown.
pub const SHOWN: usize = 20;

/// A problem, with a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong: lower case, no final stop.
    pub message: String,
    /// Its place in the file, in bytes.
    pub span: Range<usize>,
    /// An action that fixes it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem without a hint.
    pub fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, hint: None }
    }

    /// The same problem with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A problem as it is told to programs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacedProblem {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The line, from 1; none if it is about the whole file.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
}

/// All problems of one file, with its text.
#[derive(Clone, Debug)]
pub struct Problems {
    path: PathBuf,
    text: String,
    list: Vec<Problem>,
}

impl Problems {
    /// The problems of a file, sorted by place.
    pub fn new(path: &Path, text: &str, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(|problem| (problem.span.start, problem.span.end));
        list.dedup();
        Self { path: path.to_owned(), text: text.to_owned(), list }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The problems, first place first.
    pub fn list(&self) -> Vec<PlacedProblem> {
        let placed = |problem: &Problem| {
            let LinePlace { line_number, column, .. } = LinePlace::find(&self.text, &problem.span);
            let (message, hint) = (problem.message.clone(), problem.hint.clone());
            PlacedProblem { message, hint, line: Some(line_number), column: Some(column) }
        };
        self.list.iter().map(placed).collect()
    }

    fn write_one(&self, formatter: &mut fmt::Formatter<'_>, problem: &Problem) -> fmt::Result {
        let place = LinePlace::find(&self.text, &problem.span);
        let Excerpt { line, indent, carets } = Excerpt::around(&without_secrets(place.line), &place.span);
        let margin = " ".repeat(place.line_number.to_string().len());
        writeln!(formatter, "error: {}", escape(&clip(&problem.message)))?;
        let path = self.path.to_string_lossy();
        writeln!(formatter, "{margin}--> {}:{}:{}", escape(&path), place.line_number, place.column)?;
        writeln!(formatter, "{margin} |")?;
        writeln!(formatter, "{} | {line}", place.line_number)?;
        write!(formatter, "{margin} | {indent}{}", "^".repeat(carets))?;
        match &problem.hint {
            Some(hint) => write!(formatter, "\nhint: {}", escape(&clip(hint))),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.list.iter().take(SHOWN).enumerate() {
            if position > 0 {
                formatter.write_str("\n\n")?;
            }
            self.write_one(formatter, problem)?;
        }
        match self.list.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(formatter, "\n\nand {}", count_of(more as u64, "more problem", "more problems")),
        }
    }
}

/// A line without secrets: a key, and everything after it, is removed.
fn without_secrets(line: &str) -> Cow<'_, str> {
    const NAMES: [&str; 6] = ["api_key", "api-key", "apikey", "key", "token", "password"];
    let lower = line.to_ascii_lowercase();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let starts_a_value = |name: &str, at: usize| {
        let after = &lower[at + name.len()..];
        let opens = at == 0 || !is_word(lower.as_bytes()[at - 1]);
        let assigned = after.trim_start_matches(['"', '\'', ' ', '\t']);
        (opens && assigned.starts_with('=')).then(|| line.len() - assigned.len() + 1)
    };
    let places = NAMES.iter().flat_map(|name| lower.match_indices(name).map(move |(at, _)| (*name, at)));
    let credentials = lower.find("://").filter(|&at| lower[at..].contains('@')).map(|at| at + 3);
    match places.filter_map(|(name, at)| starts_a_value(name, at)).chain(credentials).min() {
        Some(cut) => format!("{} …", &line[..cut]).into(),
        None => line.into(),
    }
}

/// The place of a span: lines and columns count from one, columns in characters.
struct LinePlace<'a> {
    line_number: usize,
    column: usize,
    line: &'a str,
    /// The bytes of the span in the line.
    span: Range<usize>,
}

impl<'a> LinePlace<'a> {
    fn find(text: &'a str, span: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let before = &text[line_start..start.min(line_start + line.len())];
        let end = text.floor_char_boundary(span.end).clamp(start, line_start + line.len().max(before.len()));
        Self {
            line_number: text[..line_start].matches('\n').count() + 1,
            column: before.chars().count() + 1,
            line,
            span: before.len()..end - line_start,
        }
    }
}

/// An excerpt of a line, and the carets below it.
#[derive(Debug, PartialEq, Eq)]
struct Excerpt {
    line: String,
    /// Spaces as wide as the text before the span.
    indent: String,
    /// The number of carets.
    carets: usize,
}

impl Excerpt {
    /// The maximum width of an excerpt, in columns.
    const COLUMNS: usize = 100;

    /// How much of a long line is shown before the place.
    const BEFORE: usize = 30;

    /// An excerpt around a place, which may be past the end of a line without its secrets.
    fn around(line: &str, span: &Range<usize>) -> Self {
        let index = line.floor_char_boundary(span.start);
        let fits = reach(line.chars(), Self::COLUMNS) == line.len();
        let from = if fits { 0 } else { index - reach(line[..index].chars().rev(), Self::BEFORE) };
        let to = from + reach(line[from..].chars(), Self::COLUMNS);
        let end = line.floor_char_boundary(span.end).clamp(index, to.max(index));
        let ellipsis = |is_cut: bool| if is_cut { "…" } else { "" };
        let before = ellipsis(from > 0).chars().chain(line[from..index].chars()).map(columns).sum();
        Self {
            line: format!("{}{}{}", ellipsis(from > 0), expand_tabs(&line[from..to]), ellipsis(to < line.len())),
            indent: " ".repeat(before),
            carets: line[index..end].chars().map(columns).sum::<usize>().max(1),
        }
    }
}

/// The bytes of as many characters as fit into some columns. Zero-width characters count as one column, since there may
/// be any number of them.
fn reach(letters: impl Iterator<Item = char>, most: usize) -> usize {
    let mut taken = 0;
    let within = |letter: &char| {
        taken += columns(*letter).max(1);
        taken <= most
    };
    letters.take_while(within).map(char::len_utf8).sum()
}

/// A line as it is printed: a tab is four spaces.
fn expand_tabs(line: &str) -> String {
    escape(&line.replace('\t', "    ")).into_owned()
}

/// The width of a character, in columns.
fn columns(letter: char) -> usize {
    console::measure_text_width(&expand_tabs(letter.encode_utf8(&mut [0; 4])))
}

/// A message or a hint, which may repeat long input, cut to a readable length.
fn clip(text: &str) -> Cow<'_, str> {
    /// In characters.
    const LONGEST: usize = 400;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Likeness from which a guess is sure.
const SURE: f64 = 0.75;

/// The candidate that was most likely meant by `given`.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    likeliest(given, candidates).map(|(_, candidate)| candidate)
}

/// A hint for an unknown name: the one that was meant, and unless that is sure all the names, under a title.
pub fn suggestion(given: &str, names: &[&str], title: &str) -> String {
    match likeliest(given, names.iter().copied()) {
        Some((likeness, meant)) if likeness >= SURE => format!("did you mean `{meant}`?"),
        Some((_, meant)) => format!("did you mean `{meant}`? {title}: {}", choices(names.iter().copied())),
        None => format!("{title}: {}", choices(names.iter().copied())),
    }
}

/// Names in a row, each in backticks.
pub(crate) fn choices<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn likeliest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<(f64, &'a str)> {
    /// Longer input is near no candidate, and comparing takes the product of both lengths.
    const LONGEST: usize = 100;
    if given.len() > LONGEST {
        return None;
    }
    let given = given.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&given, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|left, right| left.0.total_cmp(&right.0))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Excerpt, Problem, Problems, SHOWN, columns, nearest, suggestion};

    #[test]
    fn a_problem_is_marked_by_carets_below_its_line() {
        let text = "[signals]\nperiods = [\"é\", \"45d\"]\n";
        let start = text.find("\"45d\"").unwrap();
        let problem = Problem::new("unknown period `45d`", start..start + 5).with_hint("periods are 1d to 30d");
        let shown = Problems::new(Path::new("a.toml"), text, vec![problem]).to_string();
        let expected = "\
error: unknown period `45d`
 --> a.toml:2:17
  |
2 | periods = [\"é\", \"45d\"]
  |                 ^^^^^
hint: periods are 1d to 30d";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_key_written_into_a_file_is_not_shown() {
        for text in [
            "api_key = \"S3CRET\"",
            "api_key = S3CRET",
            "source = { service = \"demo\", \"api_key\" = \"S3CRET\" }",
            "base_url = \"https://host/?api_key=S3CRET\"",
            "base_url = \"https://me:S3CRET@host/\"",
            "TOKEN=S3CRET",
        ] {
            let shown = Problems::new(Path::new("a"), text, vec![Problem::new("x", 0..text.len())]).to_string();
            assert!(!shown.contains("S3CRET"), "{shown}");
        }
        let text = "api_key_file = \"k.txt\"";
        let shown = Problems::new(Path::new("a"), text, vec![Problem::new("x", 0..3)]).to_string();
        assert!(shown.contains("k.txt"), "{shown}");
    }

    #[test]
    fn spans_out_of_range_or_across_lines_are_shown() {
        for span in [0..0, 0..9, 3..4, 5..100, 100..200] {
            let shown = Problems::new(Path::new("a"), "ab\ncd\n", vec![Problem::new("x", span)]).to_string();
            assert!(shown.contains('^'), "{shown}");
        }
        let empty = Problems::new(Path::new("a"), "", vec![Problem::new("x", 0..0)]).to_string();
        assert!(empty.contains("a:1:1"), "{empty}");
    }

    #[test]
    fn carets_line_up_with_letters_of_any_width() {
        let excerpt = |line: &str, what: &str| {
            let start = line.find(what).unwrap();
            Excerpt::around(line, &(start..start + what.len()))
        };
        let expected = |line: &str, indent: usize, carets: usize| Excerpt {
            line: line.to_owned(),
            indent: " ".repeat(indent),
            carets,
        };
        assert_eq!(excerpt("a = \"株式\" # x", "x"), expected("a = \"株式\" # x", 13, 1), "two columns a letter");
        assert_eq!(excerpt("a = \"株式\"", "株式"), expected("a = \"株式\"", 5, 4));
        assert_eq!(excerpt("e\u{301}x", "x"), expected("e\u{301}x", 1, 1), "an accent takes no column");
        let tabbed = excerpt("\ta\tb", "b");
        assert_eq!(tabbed, expected("    a    b", 9, 1), "a tab is four blanks");
    }

    #[test]
    fn long_lines_are_truncated_around_the_span_and_between_letters() {
        for letter in ["x", "é", "株", "😀", "\u{301}", "\t"] {
            let line = format!("{}HERE{}", letter.repeat(50_000), letter.repeat(50_000));
            let start = line.find("HERE").unwrap();
            for start in [0, 1, 40, start, line.len() - 2, line.len(), line.len() + 9] {
                let Excerpt { line: shown, indent, carets } = Excerpt::around(&line, &(start..start + 4));
                assert!(shown.chars().count() <= Excerpt::COLUMNS + 2, "{letter:?}: {shown}");
                assert!(shown.chars().map(columns).sum::<usize>() <= Excerpt::COLUMNS + 2, "{letter:?}: {shown}");
                assert!(
                    indent.chars().count() <= Excerpt::BEFORE + 1 && carets <= 16,
                    "{letter:?}: {indent:?} {carets}"
                );
            }
            let Excerpt { line: shown, indent, carets } = Excerpt::around(&line, &(start..start + 4));
            let before: usize = shown[..shown.find("HERE").unwrap()].chars().map(columns).sum();
            assert_eq!((indent.chars().map(columns).sum::<usize>(), carets), (before, 4), "{letter:?}: {shown}");
        }
    }

    #[test]
    fn at_most_twenty_problems_are_shown_and_the_rest_counted() {
        let text = format!("x = [{}]", "1, ".repeat(400_000));
        for count in [1, SHOWN, SHOWN + 1, 5_000] {
            let problem = |at: usize| Problem::new(format!("{at} {}", "y".repeat(9_000)), 5 + at * 3..6 + at * 3);
            let shown = Problems::new(Path::new("a"), &text, (0..count).rev().map(problem).collect()).to_string();
            assert_eq!(shown.matches("error: ").count(), count.min(SHOWN));
            assert!(shown.len() < SHOWN * 1_000, "{} bytes", shown.len());
            let more = match count - count.min(SHOWN) {
                0 => "^",
                1 => "\n\nand 1 more problem",
                _ => "\n\nand 4,980 more problems",
            };
            assert!(shown.ends_with(more), "{shown}");
        }
    }

    #[test]
    fn only_a_similar_name_is_suggested() {
        assert_eq!(nearest("perods", ["periods", "regimes"]), Some("periods"));
        assert_eq!(nearest("xyz", ["periods", "regimes"]), None);
    }

    #[test]
    fn every_name_is_listed_unless_the_guess_is_sure() {
        let hint = |given| suggestion(given, &["parquet", "csv", "arrow"], "formats");
        assert_eq!(hint("parqet"), "did you mean `parquet`?");
        assert_eq!(hint("parq"), "did you mean `parquet`? formats: `parquet`, `csv`, `arrow`");
        assert_eq!(hint("xls"), "formats: `parquet`, `csv`, `arrow`");
    }
}
