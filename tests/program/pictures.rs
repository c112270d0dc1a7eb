//! The pictures of the documentation: plots of a report on the demo, which is the same every time.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use bellwether::interface::Ticker;
use bellwether::serve::Universe;
use chrono::Days;

use crate::support::days::{Day, SECTOR, SEED};
use crate::support::program::Place;
use crate::support::service::day;

/// If set, the pictures are written, as the outputs of the pages are.
const BLESS: &str = "BELLWETHER_BLESS";

/// The Fridays on which the service is asked.
const WEEKS: u64 = 26;

#[test]
fn the_picture_of_skill_is_a_plot_of_the_report() {
    assert_eq!(SECTOR, "energy");
    let place = Place::new();
    let definition = format!(
        "[signals]\nsectors = [\"energy\"]\nperiods = [\"15d\"]\nregimes = [\"neutral\"]\n[dataset]\nkind = \"signals\"\n\
         [checks]\nrewritten = 1\nrewritten_series = 1\n[prices]\nfile = {:?}\n[filter]\nfrom = 2026-03-02\n\
         [output]\nlive_within = \"7d\"\n",
        place.file("closes.csv")
    );
    let first = day(2026, 3, 6);
    for week in 0..WEEKS {
        let friday = Day::new(first + Days::new(7 * week));
        friday.run_definition(&place.file("output"), None, &definition);
    }
    let universe = Universe::new(SEED, first + Days::new(7 * (WEEKS + 5)));
    let mut closes = "ticker,date,close\n".to_owned();
    let of_sector: HashSet<&Ticker> = universe.tickers_of(SECTOR).collect();
    for (ticker, prices) in universe.closing_prices().iter().filter(|(ticker, _)| of_sector.contains(ticker)) {
        for (session, close) in universe.trading_days().iter().zip(prices) {
            writeln!(closes, "{ticker},{session},{close}").expect("text");
        }
    }
    fs::write(place.file("closes.csv"), closes).expect("prices");
    let source = "source.name = \"vendor\"\nsource.base_url = \"http://127.0.0.1:9/a\"\n\
                  source.sentiment_base_url = \"http://127.0.0.1:9/b\"\n";
    place.define("days", &format!("{source}{definition}"));
    place.run(["report", "days", "--output", "report.html"]).succeeded();
    let page = fs::read_to_string(place.file("report.html")).expect("a page");
    is_current("docs/skill.svg", &picture(&page));
}

/// The plot of a report as a picture of its own.
fn picture(page: &str) -> String {
    let (_, style) = page.split_once("<style>").expect("a style");
    let (style, _) = style.split_once("</style>").expect("the end of the style");
    let colors = &style[..style.find("*, *::before").expect("the colours come first")];
    let rules =
        style.lines().filter(|line| [".grid", ".line", ".tick", ".hover"].iter().any(|of| line.starts_with(of)));
    let rules: Vec<&str> = rules.collect();
    let section = &page[page.find("id=\"skill\"").expect("a section")..];
    let Some(begin) = section.find("<svg id=\"plot-skill-15d-neutral\"") else {
        panic!("no plot of the pair: {section}")
    };
    let plot = &section[begin..];
    let mut depth = 0;
    let end = plot.match_indices("svg").find_map(|(at, _)| {
        if plot[..at].ends_with("</") {
            depth -= 1;
        } else if plot[..at].ends_with('<') {
            depth += 1;
        }
        (depth == 0).then_some(at + "svg>".len())
    });
    let plot = &plot[..end.expect("the end of the plot")];
    let label =
        "Sum of the rank correlations of 15-day signals of the demo: as published, and as its history shows them today";
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"176\" viewBox=\"-8 0 736 176\" role=\"img\" \
         aria-label=\"{label}\">\n<style>\n{colors}{}\ntext {{ font: 12px var(--sans); fill: var(--soft); }}\n</style>\n\
         <line class=\"line published\" x1=\"0\" x2=\"24\" y1=\"11\" y2=\"11\"/><text x=\"30\" y=\"15\">as published</text>\n\
         <line class=\"line today\" x1=\"130\" x2=\"154\" y1=\"11\" y2=\"11\"/>\
         <text x=\"160\" y=\"15\">as the history shows it today</text>\n\
         <svg x=\"0\" y=\"30\" width=\"720\" height=\"146\">\n{plot}\n</svg>\n</svg>\n",
        rules.join("\n")
    )
}

#[track_caller]
fn is_current(name: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os(BLESS).is_some() {
        fs::write(path, made).expect("a picture");
        return;
    }
    let shown = fs::read_to_string(path).expect("a picture");
    assert!(shown == made, "{name} is not what the report draws now; write it with `{BLESS}=1`");
}
