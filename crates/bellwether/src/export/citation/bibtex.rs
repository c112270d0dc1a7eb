//! The entry of a bibliography. `@misc` is the type that every style knows.

use std::fmt::Write as _;

use chrono::Datelike as _;

use super::Citation;
use crate::text::escape::is_hidden;

impl Citation {
    /// The entry.
    pub(super) fn bibtex(&self) -> String {
        let record = &self.record;
        let [as_of, content, _] = self.facts();
        let rebuild = format!(
            "Built again with bellwether {} by \\texttt{{{}}}",
            escape(&record.bellwether),
            escape(&self.rebuild())
        );
        let note = format!("{}. {}. {}. {rebuild}", escape(&as_of), escape(&self.rows()), escape(&content));
        let license = record.license.as_ref().map(|license| escape(&license.to_string()));
        let fields = [
            ("author", Some(format!("{{{}}}", escape(self.service())))),
            ("title", Some(format!("{{{}}}", escape(&self.title())))),
            ("year", Some(record.built_at.year().to_string())),
            ("version", Some(escape(&record.version))),
            ("howpublished", Some("Dataset".to_owned())),
            ("license", license),
            ("note", Some(note)),
        ];
        let mut entry = format!("@misc{{{},\n", key(&format!("{}-{}", record.name, record.version)));
        for (name, value) in fields.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            writeln!(entry, "  {name:12} = {{{value}}},").expect("a string takes any text");
        }
        entry.push_str("}\n");
        entry
    }
}

/// A key: styles take these characters alone.
fn key(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' })
        .collect()
}

/// A text as TeX reads it. BibTeX counts braces whatever is before them, so a brace has a name.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' => out.push_str("\\textbraceleft{}"),
            '}' => out.push_str("\\textbraceright{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '&' | '%' | '$' | '#' | '_' => out.extend(['\\', letter]),
            hidden if is_hidden(hidden) => out.push(' '),
            plain => out.push(plain),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{escape, key};

    #[test]
    fn what_tex_would_obey_is_spelled_out_and_braces_stay_balanced() {
        let text = "50 % of {a}_b & #1 \\input{x} ~^$\u{1b}[0m\n}";
        let out = escape(text);
        assert_eq!(
            out,
            "50 \\% of \\textbraceleft{}a\\textbraceright{}\\_b \\& \\#1 \\textbackslash{}input\\textbraceleft{}x\
             \\textbraceright{} \\textasciitilde{}\\textasciicircum{}\\$ [0m \\textbraceright{}"
        );
        assert_eq!(out.matches('{').count(), out.matches('}').count());
        assert_eq!(key("it-20261120T213000Z-7f3a-ticker-XOM,A=B"), "it-20261120T213000Z-7f3a-ticker-XOM-A-B");
    }
}
