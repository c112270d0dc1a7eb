//! The page: an introduction, then a section per question that people ask of a dataset.
//!
//! Each section states its finding in a sentence before it shows any plot.

mod agreement;
mod contents;
mod coverage;
mod figures;
mod head;
mod news;
mod persistence;
mod revisions;
mod sectors;
mod signals;
mod skill;
mod work;

pub(super) use revisions::highest_rate;

use std::sync::LazyLock;

use super::html::Html;
use super::parts::{Frame, Heading, Topic};
use super::{Report, STYLE};
use figures::{Along, Bar, Columns, Interval, Map, MapRow};

const SCRIPT: &str = include_str!("../script.js");

impl Report {
    /// Renders the report as one HTML file.
    pub fn page(&self) -> String {
        let frame = Frame {
            title: &self.identity.name,
            kind: "dataset report",
            heading: &self.identity.name,
            style: self.style(),
            script: SCRIPT,
            reload: None,
            foot: "This page is self-contained and loads nothing from the network. Hover over a plot, or focus it with Tab and \
                   use the arrow keys, to read its values.",
        };
        let main = |html: &mut Html| {
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
        };
        Html::page(&frame, |html| self.head(html), main)
    }

    /// The style of the page.
    fn style(&self) -> &'static str {
        static WITH_SKILL: LazyLock<String> = LazyLock::new(|| format!("{STYLE}{}", skill::STYLE));
        if self.skill.is_some() { &WITH_SKILL } else { STYLE }
    }
}
