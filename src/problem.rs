//! What is wrong with a file that a person wrote, shown at its place.
//!
//! Problems are gathered, never thrown at the first: a person who fixes a file wants all of them in one go.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One thing that is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong: lower case, no final stop.
    pub message: String,
    /// The bytes of the file that it is about.
    pub span: Range<usize>,
    /// An action that mends it.
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

/// Every problem of one file, with the text that they point into.
#[derive(Clone, Debug)]
pub struct Problems {
    path: PathBuf,
    text: String,
    list: Vec<Problem>,
}

impl Problems {
    /// The problems of a file, in the order of their places.
    pub fn new(path: &Path, text: &str, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(|problem| (problem.span.start, problem.span.end));
        list.dedup();
        Self { path: path.to_owned(), text: text.to_owned(), list }
    }

    /// The problems, first place first.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    fn write_one(&self, formatter: &mut fmt::Formatter<'_>, problem: &Problem) -> fmt::Result {
        let place = Place::of(&self.text, &problem.span);
        let line = without_secrets(place.line);
        let margin = " ".repeat(place.line_number.to_string().len());
        writeln!(formatter, "error: {}", problem.message)?;
        writeln!(formatter, "{margin}--> {}:{}:{}", self.path.display(), place.line_number, place.column)?;
        writeln!(formatter, "{margin} |")?;
        writeln!(formatter, "{} | {line}", place.line_number)?;
        write!(formatter, "{margin} | {}{}", place.indent, "^".repeat(place.width.min(line.chars().count()).max(1)))?;
        match &problem.hint {
            Some(hint) => write!(formatter, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.list.iter().enumerate() {
            if position > 0 {
                formatter.write_str("\n\n")?;
            }
            self.write_one(formatter, problem)?;
        }
        Ok(())
    }
}

/// The line as it may be shown: a key that somebody wrote into it is left out, and so is what stands after it.
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

/// Where a span lies, for people: lines and columns count from one, columns in characters.
struct Place<'a> {
    line_number: usize,
    column: usize,
    line: &'a str,
    /// White space as wide as the text before the span, tabs kept so that the carets stand below it.
    indent: String,
    width: usize,
}

impl<'a> Place<'a> {
    fn of(text: &'a str, span: &Range<usize>) -> Self {
        let start = floor_char_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let before = &text[line_start..start.min(line_start + line.len())];
        let end = floor_char_boundary(text, span.end).clamp(start, line_start + line.len().max(before.len()));
        Self {
            line_number: text[..line_start].matches('\n').count() + 1,
            column: before.chars().count() + 1,
            line,
            indent: before.chars().map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect(),
            width: text[start.min(end)..end].chars().count().max(1),
        }
    }
}

fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// The candidate that somebody who typed `given` most likely meant.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&given, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Problem, Problems, nearest};

    #[test]
    fn a_problem_is_shown_below_its_line_with_a_caret_for_each_character() {
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
    fn a_span_outside_the_text_or_over_lines_is_shown_all_the_same() {
        for span in [0..0, 0..9, 3..4, 5..100, 100..200] {
            let shown = Problems::new(Path::new("a"), "ab\ncd\n", vec![Problem::new("x", span)]).to_string();
            assert!(shown.contains('^'), "{shown}");
        }
        let empty = Problems::new(Path::new("a"), "", vec![Problem::new("x", 0..0)]).to_string();
        assert!(empty.contains("a:1:1"), "{empty}");
    }

    #[test]
    fn the_nearest_name_is_offered_only_when_it_is_near() {
        assert_eq!(nearest("perods", ["periods", "regimes"]), Some("periods"));
        assert_eq!(nearest("xyz", ["periods", "regimes"]), None);
    }
}
