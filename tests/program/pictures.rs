//! The pictures of the documentation: plots of a report on the demo, which is the same every time.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use bellwether::serve::Universe;
use chrono::Days;

use crate::support::days::{Day, SEED};
use crate::support::program::Place;
use crate::support::service::day;

/// If set, the pictures are written, as the outputs of the pages are.
const BLESS: &str = "BELLWETHER_BLESS";

/// The Fridays on which the service is asked.
const WEEKS: u64 = 26;

/// What the picture shows.
const LABEL: &str = "Signals of the demo as published, and as its history shows them today: the sum of the rank correlations of \
                     five-day signals, how many of them came true, and how many of all that were turned after their horizon";

#[test]
#[ignore = "it asks for all sectors on 26 days; each night does"]
fn the_picture_of_skill_is_a_plot_of_the_report() {
    let place = Place::new();
    let first = day(2026, 3, 6);
    let universe = Universe::new(SEED, first + Days::new(7 * (WEEKS + 5)));
    let definition = format!(
        "[signals]\nsectors = {:?}\nperiods = [\"5d\", \"6d\", \"7d\", \"8d\", \"9d\", \"10d\"]\n[dataset]\nkind = \"signals\"\n\
         [checks]\nrewritten = 1\nrewritten_series = 1\n[prices]\nfile = {:?}\n[filter]\nfrom = 2026-03-02\n\
         [output]\nlive_within = \"7d\"\n",
        universe.sectors(),
        place.file("closes.csv")
    );
    for week in 0..WEEKS {
        let friday = Day::new(first + Days::new(7 * week));
        friday.run_definition(&place.file("output"), None, &definition);
    }
    let mut closes = "ticker,date,close\n".to_owned();
    for (ticker, prices) in universe.closing_prices() {
        for (session, close) in universe.trading_days().iter().zip(prices) {
            writeln!(closes, "{ticker},{session},{close}").expect("text");
        }
    }
    fs::write(place.file("closes.csv"), closes).expect("prices");
    let source = "source.name = \"vendor\"\nsource.base_url = \"http://127.0.0.1:9/a\"\n\
                  source.sentiment_base_url = \"http://127.0.0.1:9/b\"\n";
    place.define("days", &format!("{source}{definition}"));
    place.run(["report", "days", "--output", "report.html"]).expect_success();
    let page = fs::read_to_string(place.file("report.html")).expect("a page");
    is_current("docs/skill.svg", &picture(&page));
}

/// Plots of a report as a picture of its own: the sums of correlations, and below them what came true.
fn picture(page: &str) -> String {
    let (_, style) = page.split_once("<style>").expect("a style");
    let (style, _) = style.split_once("</style>").expect("the end of the style");
    let colors = &style[..style.find("*, *::before").expect("the colours come first")];
    let kinds = [".grid", ".line", ".tick", ".hover", ".track", ".interval", ".dot", ".base"];
    let rules: Vec<&str> = style.lines().filter(|line| kinds.iter().any(|kind| line.starts_with(kind))).collect();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"260\" viewBox=\"-8 0 736 260\" role=\"img\" \
         aria-label=\"{LABEL}\">\n<style>\n{colors}{}\ntext {{ font: 12px var(--sans); fill: var(--soft); }}\n</style>\n\
         <line class=\"line published\" x1=\"0\" x2=\"24\" y1=\"11\" y2=\"11\"/><text x=\"30\" y=\"15\">as published</text>\n\
         <line class=\"line today\" x1=\"130\" x2=\"154\" y1=\"11\" y2=\"11\"/>\
         <text x=\"160\" y=\"15\">as the history shows it today</text>\n\
         <svg x=\"0\" y=\"30\" width=\"720\" height=\"146\">\n{}\n</svg>\n\
         <text x=\"0\" y=\"196\">came true, relative to the mean of the date, with 95 % intervals</text>\n",
        rules.join("\n"),
        plot(page, "plot-skill-5d-neutral").0
    );
    let rates = [
        ("buys as published", "plot-hits-5d-neutral-published-buys"),
        ("sells as published", "plot-hits-5d-neutral-published-sells"),
        ("turned after the horizon", "plot-hits-turned"),
    ];
    for (y, (name, id)) in (204..).step_by(19).zip(rates) {
        let (plot, said) = plot(page, id);
        let (_, said) = said.split_once(": ").expect("a share of some signals");
        let baseline = y + 10;
        writeln!(
            svg,
            "<text x=\"0\" y=\"{baseline}\">{name}</text>\
             <svg x=\"160\" y=\"{y}\" width=\"450\" height=\"12\">\n{plot}\n</svg>\
             <text x=\"720\" y=\"{baseline}\" text-anchor=\"end\">{said}</text>"
        )
        .expect("text");
    }
    svg + "</svg>\n"
}

/// A plot of a page, and what it says.
fn plot<'p>(page: &'p str, id: &str) -> (&'p str, &'p str) {
    let Some(begin) = page.find(&format!("<svg id=\"{id}\"")) else {
        let section = &page[page.find("id=\"skill\"").expect("a section")..];
        panic!("no plot {id}: {section}")
    };
    let plot = &page[begin..];
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
    let (_, said) = plot.split_once("aria-label=\"").expect("a label");
    (plot, said.split('"').next().expect("a label"))
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
