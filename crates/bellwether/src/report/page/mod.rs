//! The page: an introduction, then a section per question that people ask of a dataset.
//!
//! Each section states its finding in a sentence before it shows any plot.

mod agreement;
mod contents;
mod coverage;
mod head;
mod news;
mod persistence;
mod revisions;
mod sectors;
mod signals;
mod skill;
mod work;

pub(super) use revisions::highest_rate;

use std::fmt::Display;
use std::sync::LazyLock;

use super::html::Html;
use super::policy::policy;
use super::svg::{Area, Plot};
use super::{Report, STYLE};

const SCRIPT: &str = include_str!("../script.js");

impl Report {
    /// Renders the report as one HTML file.
    pub fn page(&self) -> String {
        let mut html = Html::page();
        html.element("html", &[("lang", &"en")], |html| {
            html.element("head", &[], |html| {
                html.void("meta", &[("charset", &"utf-8")]);
                let style = self.style();
                let policy = policy(style, SCRIPT);
                html.void("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &policy)]);
                html.void("meta", &[("name", &"referrer"), ("content", &"no-referrer")]);
                html.void("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
                html.leaf("title", &[], format_args!("{} · Bellwether", self.identity.name));
                html.style(style);
            });
            html.element("body", &[], |html| {
                self.head(html);
                html.element("main", &[], |html| {
                    // A dataset of news has no signals.
                    if !self.facts.pairs.is_empty() {
                        self.coverage(html);
                        self.signals(html);
                        self.confidence(html);
                        self.persistence(html);
                        self.agreement(html);
                        self.by_sector(html);
                    }
                    self.skill(html);
                    self.articles(html);
                    self.rewrites(html);
                    self.contents(html);
                    self.rejects(html);
                    self.timings(html);
                });
                self.foot(html);
                html.element("div", &[("id", &"tip"), ("role", &"status"), ("hidden", &"")], |_| ());
                html.script(SCRIPT);
            });
        });
        html.into_string()
    }

    /// The style of the page.
    fn style(&self) -> &'static str {
        static WITH_SKILL: LazyLock<String> = LazyLock::new(|| format!("{STYLE}{}", skill::STYLE));
        if self.skill.is_some() { &WITH_SKILL } else { STYLE }
    }
}

/// The heading of a section, its finding, and notes on it.
struct Topic<'a> {
    id: &'static str,
    heading: &'static str,
    finding: String,
    asides: &'a [String],
}

/// Renders a section.
fn section(html: &mut Html, topic: &Topic<'_>, body: impl FnOnce(&mut Html)) {
    html.element("section", &[("id", &topic.id)], |html| {
        html.element("div", &[], |html| {
            html.leaf("h2", &[], topic.heading);
            html.element("p", &[("class", &"finding")], |html| phrase(html, &topic.finding));
            for aside in topic.asides {
                html.element("p", &[("class", &"aside")], |html| phrase(html, aside));
            }
        });
        html.element("div", &[("class", &"body")], body);
    });
}

/// A sentence whose dates and percentages are not broken across lines.
fn phrase(html: &mut Html, text: &str) {
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let is_number = word.starts_with(|letter: char| letter.is_ascii_digit());
        match words.next_if(|next| is_number && next.starts_with('%')) {
            Some(sign) => html.leaf("span", &[("class", &"whole")], format_args!("{word} {sign}")),
            None if is_number && word.contains('-') => html.leaf("span", &[("class", &"whole")], word),
            None => html.text(word),
        }
        if words.peek().is_some() {
            html.text(" ");
        }
    }
}

/// A figure with a title and a note on how to read it.
fn figure(html: &mut Html, title: impl Display, note: impl Display, content: impl FnOnce(&mut Html)) {
    html.element("figure", &[], |html| {
        html.element("figcaption", &[], |html| {
            html.leaf("b", &[], title);
            html.leaf("span", &[], note);
        });
        content(html);
    });
}

/// A line that says what was left out.
fn cut(html: &mut Html, text: impl Display) {
    html.leaf("p", &[("class", &"cut")], text);
}

/// A horizontal bar with its name and value.
struct Bar<'a> {
    id: &'a dyn Display,
    name: &'a dyn Display,
    class: &'static str,
    /// Its share of the width, from zero to one.
    share: f64,
    value: &'a dyn Display,
}

fn level(html: &mut Html, level: &Bar<'_>) {
    let Bar { id, name, class, share, value } = level;
    html.leaf("span", &[], name);
    let label = format!("{name}: {value}");
    Plot { id, label: &label, height: 12.0, columns: 1 }.draw(html, |canvas| {
        let whole = Area { x: 0.0, width: 1.0, y: 1.0, height: 10.0 };
        canvas.ground("track", whole);
        canvas.mark(class, Area { width: share.clamp(0.0, 1.0), ..whole }, &label);
    });
    html.leaf("span", &[], value);
}

/// The heading of a column; numbers are aligned to the right.
#[derive(Clone, Copy)]
enum Heading {
    Text(&'static str),
    Number(&'static str),
}

/// A table whose cells are rendered one by one; on a narrow screen each row becomes a few lines.
fn table(html: &mut Html, columns: &[Heading], rows: usize, cell: impl Fn(&mut Html, usize, usize)) {
    table_of(html, "wide", (columns, rows), cell);
}

/// A table of a few short columns, which stays one on a narrow screen, so that its rows can be compared.
fn compared(html: &mut Html, columns: &[Heading], rows: usize, cell: impl Fn(&mut Html, usize, usize)) {
    table_of(html, "compared", (columns, rows), cell);
}

fn table_of(
    html: &mut Html,
    class: &'static str,
    (columns, rows): (&[Heading], usize),
    cell: impl Fn(&mut Html, usize, usize),
) {
    html.element("table", &[("class", &class)], |html| {
        html.element("thead", &[], |html| {
            html.element("tr", &[], |html| {
                columns.iter().for_each(|column| match column {
                    Heading::Text(name) => html.leaf("th", &[("scope", &"col")], name),
                    Heading::Number(name) => html.leaf("th", &[("scope", &"col"), ("class", &"number")], name),
                });
            });
        });
        html.element("tbody", &[], |html| {
            for row in 0..rows {
                html.element("tr", &[], |html| {
                    for (place, column) in columns.iter().enumerate() {
                        let content = |html: &mut Html| cell(html, row, place);
                        match column {
                            Heading::Text(name) => html.element("td", &[("data-head", name)], content),
                            Heading::Number(name) => {
                                html.element("td", &[("class", &"number"), ("data-head", name)], content);
                            }
                        }
                    }
                });
            }
        });
    });
}
