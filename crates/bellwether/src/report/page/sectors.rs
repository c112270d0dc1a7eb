//! The split by sector.

use super::{Heading, Html, Topic, figure, section, table};
use crate::human::{grouped, percent, portion};
use crate::report::Report;
use crate::report::facts::SectorFacts;

/// The most sectors listed.
const SECTORS: usize = 24;

impl Report {
    /// The sectors, if any is known.
    pub(super) fn by_sector(&self, html: &mut Html) {
        let Some(finding) = self.split() else { return };
        let asides = ["Each ticker counts in the sector that the service lists it in, as of the report.".to_owned()];
        section(html, &Topic { id: "sectors", heading: "Sectors", finding, asides: &asides }, |html| {
            let columns = [
                Heading::Text("sector"),
                Heading::Number("tickers"),
                Heading::Number("signals"),
                Heading::Number("buys"),
                Heading::Number("confidence"),
                Heading::Number("flips"),
            ];
            figure(
                html,
                "By sector",
                "Share of signals that are buys, and share followed by their opposite.",
                |html| {
                    table(html, &columns, self.sectors.len().min(SECTORS), |html, row, column| {
                        let SectorFacts { tickers, totals, flips, .. } = &self.sectors[row];
                        match column {
                            0 => html.text(self.sectors[row].named()),
                            1 => html.text(grouped(*tickers)),
                            2 => html.text(grouped(totals.rows)),
                            3 => html.text(portion(totals.buys, totals.rows)),
                            4 => html.text(format_args!("{:.3}", totals.mean_confidence().unwrap_or_default())),
                            _ => html.text(flips.share().map_or_else(|| "-".to_owned(), percent)),
                        }
                    });
                },
            );
        });
    }

    /// The finding: how far sectors are apart; `None` if none is known.
    pub(in crate::report) fn split(&self) -> Option<String> {
        let known: Vec<&SectorFacts> = self.sectors.iter().filter(|sector| sector.name.is_some()).collect();
        let share = |sector: &SectorFacts| sector.totals.buy_share().unwrap_or_default();
        let least = known.iter().min_by(|one, other| share(one).total_cmp(&share(other)))?;
        let most = known.iter().max_by(|one, other| share(one).total_cmp(&share(other)))?;
        let shown = |sector: &SectorFacts| format!("{} in {}", percent(share(sector)), sector.named());
        Some(match known.len() {
            1 => format!("Every ticker with a sector is in {}", least.named()),
            _ => format!("Buys are {} and {}", shown(least), shown(most)),
        })
    }
}

impl SectorFacts {
    /// Its name, or `no sector`.
    pub(in crate::report) fn named(&self) -> &str {
        self.name.as_ref().map_or("no sector", |name| name.as_str())
    }
}
