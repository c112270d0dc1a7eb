//! Completions in bash, whose words are not yet what the program would get: they are quoted, and split at `=`.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine;
use clap_complete::env::{Bash as Usual, EnvCompleter};

/// The variable with the index of the word that is completed.
pub(super) const INDEX: &str = "_CLAP_COMPLETE_INDEX";

/// What is between two candidates, as the script reads them.
const SEPARATOR: &str = "\u{b}";

pub(super) struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        Usual.name()
    }

    fn is(&self, name: &str) -> bool {
        Usual.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        Usual.write_registration(variable, name, program, completer, out)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        here: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (words, index) = join_assignments(&words);
        let candidates = engine::complete(command, words.into_iter().map(OsString::from).collect(), index, here)?;
        let values = candidates.iter().map(|candidate| quote(&candidate.get_value().to_string_lossy()));
        out.write_all(values.collect::<Vec<_>>().join(SEPARATOR).as_bytes())
    }
}

/// The words that the program would get, and the index of the one that is completed: without the `=` between an option and
/// its value, and without quotes.
pub(super) fn join_assignments(words: &[OsString]) -> (Vec<String>, usize) {
    let index: usize = env::var(INDEX).ok().and_then(|index| index.parse().ok()).unwrap_or_default();
    let words: Vec<String> = words.iter().map(|word| unquote(&word.to_string_lossy())).collect();
    let is_sign = |place: usize| place > 0 && words[place] == "=" && words[place - 1].starts_with("--");
    let is_left_out = |place: &usize| *place != index && is_sign(*place);
    let before = (0..index.min(words.len())).filter(is_left_out).count();
    let kept = words.iter().enumerate().filter(|(place, _)| !is_left_out(place)).map(|(_, word)| word.clone());
    (kept.collect(), index - before)
}

/// A word as the shell would read it.
pub(super) fn unquote(word: &str) -> String {
    let (mut text, mut open, mut letters) = (String::new(), None, word.chars());
    while let Some(letter) = letters.next() {
        match (letter, open) {
            ('\\', None | Some('"')) => text.extend(letters.next()),
            ('\'' | '"', None) => open = Some(letter),
            (quote, Some(other)) if quote == other => open = None,
            _ => text.push(letter),
        }
    }
    text
}

/// A word as it is typed.
fn quote(word: &str) -> String {
    let mut text = String::new();
    for letter in word.chars() {
        if !letter.is_alphanumeric() && !"-_./,:=@%+".contains(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{quote, unquote};

    #[test]
    fn a_quoted_word_is_read_as_it_was() {
        for (word, typed) in [("audit leak", "audit\\ leak"), ("--columns", "--columns"), ("a'b\"$c", "a\\'b\\\"\\$c")]
        {
            assert_eq!(quote(word), typed);
            assert_eq!(unquote(typed), word);
        }
        assert_eq!(unquote("'a b'\"c \\\" d\""), "a bc \" d");
        assert_eq!(unquote("\"audit l"), "audit l");
    }
}
