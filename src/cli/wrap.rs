//! Lines that fit the terminal. In a pipe or a file, lines are as long as they are.

use console::Term;

/// A line is not wrapped into less room than this.
const NARROWEST: usize = 20;

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
    let Some(columns) = columns.filter(|columns| *columns >= indent + NARROWEST) else { return line.to_owned() };
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

#[cfg(test)]
mod tests {
    use super::wrap;

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
}
