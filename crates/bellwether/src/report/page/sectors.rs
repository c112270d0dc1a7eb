//! The split by sector.

use bellwether_statistics::CONFIDENCE;

use super::{Heading, Html, Topic};
use crate::report::Report;
use crate::report::facts::{SectorExtremes, SectorFacts, ShareDifference};
use crate::text::human::{group_digits, percent, portion};

/// The most sectors listed.
const SECTORS: usize = 24;

impl Report {
    /// The sectors, if any is known.
    pub(super) fn by_sector(&self, html: &mut Html) {
        let Some(finding) = self.split() else { return };
        let whole = "Each ticker counts in the sector that the service lists it in, as of the report.".to_owned();
        let asides: Vec<String> = self.sector_test().into_iter().chain([whole]).collect();
        html.section(&Topic::new("sectors", "Sectors", finding).with_asides(&asides), |html| {
            let columns = [
                Heading::Text("sector"),
                Heading::Number("tickers"),
                Heading::Number("signals"),
                Heading::Number("buys"),
                Heading::Number("confidence"),
                Heading::Number("flips"),
            ];
            html.figure("By sector", "Share of signals that are buys, and share followed by their opposite.", |html| {
                html.comparison(&columns, self.sectors.len().min(SECTORS), |html, row, column| {
                    let SectorFacts { tickers, totals, flips, .. } = &self.sectors[row];
                    match column {
                        0 => html.text(self.sectors[row].display_name()),
                        1 => html.text(group_digits(*tickers)),
                        2 => html.text(group_digits(totals.rows)),
                        3 => html.text(portion(totals.buys, totals.rows)),
                        4 => html.text(format_args!("{:.3}", totals.mean_confidence().unwrap_or_default())),
                        _ => html.text(flips.share().map_or_else(|| "-".to_owned(), percent)),
                    }
                });
            });
        });
    }

    /// The finding: how far sectors are apart; `None` if none is known.
    pub(in crate::report) fn split(&self) -> Option<String> {
        let only = self.sectors.iter().find(|sector| sector.name.is_some())?;
        Some(match SectorExtremes::of(&self.sectors) {
            None => format!("Every ticker with a sector is in {}", only.display_name()),
            Some(SectorExtremes { test: None, .. }) => {
                "There are too few tickers to tell whether sectors differ in their share of buys".to_owned()
            }
            Some(SectorExtremes { lowest, highest, test: Some(test) }) if test.p < 1.0 - CONFIDENCE => {
                format!("Buys are {} and {}", lowest.buying(), highest.buying())
            }
            Some(_) => "Sectors differ in their share of buys by no more than noise".to_owned(),
        })
    }

    /// The sectors that are furthest apart, and whether that is more than noise; nothing with fewer than two.
    pub(in crate::report) fn sector_test(&self) -> Vec<String> {
        let Some(SectorExtremes { lowest, highest, test }) = SectorExtremes::of(&self.sectors) else {
            return Vec::new();
        };
        let judged = test.map(|ShareDifference { p, comparisons, .. }| {
            let p = if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") };
            let chosen = match comparisons {
                1 => String::new(),
                many => format!(", for the widest of {} differences", group_digits(many)),
            };
            format!("Welch's test with tickers as clusters gives {p}{chosen}.")
        });
        let apart = format!("Lowest: {}. Highest: {}.", lowest.buying(), highest.buying());
        [Some(apart), judged].into_iter().flatten().collect()
    }
}

impl SectorFacts {
    /// Its share of buys, with its name.
    fn buying(&self) -> String {
        format!("{} in {}", portion(self.totals.buys, self.totals.rows), self.display_name())
    }

    /// Its name, or `no sector`.
    pub(in crate::report) fn display_name(&self) -> &str {
        self.name.as_ref().map_or("no sector", |name| name.as_str())
    }
}
