//! News: how many articles, their scores, and how many signals they reach.

use super::signals::quarters;
use super::{Html, Level, Topic, figure, level, section};
use crate::human::{counted, grouped, portion};
use crate::report::Report;
use crate::report::facts::{Axis, Facts, Headline, Histogram, InWindow, News, Step};
use crate::report::svg::{Area, Plot};

/// The most buckets of a plot: a little over five years of weeks.
const COLUMNS: usize = 300;

impl Report {
    pub(super) fn articles(&self, html: &mut Html) {
        let Some(news) = &self.facts.news else {
            let finding = "This dataset has no news".to_owned();
            return section(html, &Topic { id: "news", heading: "News", finding, asides: &[] }, |_| ());
        };
        let finding = self.facts.reach().unwrap_or_else(|| counted(news.articles, "article", "articles"));
        let asides = [news.scope(&self.facts)];
        section(html, &Topic { id: "news", heading: "News", finding, asides: &asides }, |html| {
            if !self.facts.windows.is_empty() {
                windows(html, &self.facts);
            }
            if news.articles > 0 {
                over_time(html, news, &self.facts);
                scores(html, news);
                html.element("div", &[("class", &"pair")], |html| {
                    headlines(html, "Lowest scores", &news.lowest);
                    headlines(html, "Highest scores", &news.highest);
                });
            }
        });
    }
}

impl Facts {
    /// The share of signals that have news; `None` if it was not counted.
    pub(in crate::report) fn reach(&self) -> Option<String> {
        let window = self.windows.iter().max_by_key(|window| window.days.count())?;
        let share = portion(window.with_news, self.rows);
        Some(format!("{share} of signals have news within {}", window.in_words()))
    }
}

impl InWindow {
    /// Its length: `1 day`, `30 days`.
    pub(in crate::report) fn in_words(&self) -> String {
        counted(self.days.count().unsigned_abs().into(), "day", "days")
    }
}

impl News {
    /// A note on the articles that a plot leaves out, if there are any.
    pub(in crate::report) fn beyond(&self, drawn: &[u64]) -> Option<String> {
        let beyond = self.articles - drawn.iter().sum::<u64>();
        (beyond > 0).then(|| format!("{} dated outside this plot.", counted(beyond, "article is", "articles are")))
    }

    /// What the counts cover.
    pub(in crate::report) fn scope(&self, facts: &Facts) -> String {
        let unscored = match self.unscored {
            0 => String::new(),
            count => format!(", {} without a score", grouped(count)),
        };
        let (tickers, all) =
            (grouped(self.tickers.len() as u64), counted(facts.tickers.len() as u64, "ticker", "tickers"));
        format!(
            "{} about {tickers} of {all}{unscored}, dated {}, with their latest known scores.",
            counted(self.articles, "article", "articles"),
            facts.range()
        )
    }
}

fn windows(html: &mut Html, facts: &Facts) {
    let note = "By window length. A window ends at the signal's date minus the lag of the join.";
    figure(html, "Signals with news", note, |html| {
        html.element("div", &[("class", &"rows")], |html| {
            for window in &facts.windows {
                level(
                    html,
                    &Level {
                        id: &format_args!("plot-window-{}", window.days),
                        name: &window.in_words(),
                        class: "bar",
                        share: window.with_news as f64 / facts.rows.max(1) as f64,
                        value: &portion(window.with_news, facts.rows),
                    },
                );
            }
        });
    });
}

fn over_time(html: &mut Html, news: &News, facts: &Facts) {
    let axis = Axis::of(&facts.days, Step::Week, COLUMNS);
    let counts = axis.sums(news.days.iter().map(|(day, count)| (*day, *count)));
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let title = format!("Articles by {}", axis.step.as_str());
    let beyond = news.beyond(&counts).map_or_else(String::new, |beyond| format!(" {beyond}"));
    let note = format!("Peak: {} in a {}.{beyond}", grouped(most), axis.step.as_str());
    figure(html, &title, note, |html| {
        Plot { id: &"plot-news", label: &title, height: 116.0, columns: axis.len() }.draw(html, |canvas| {
            for (place, count) in counts.iter().enumerate() {
                let area = Area::column(place, axis.len()).between(96.0 * (1.0 - *count as f64 / most as f64), 96.0);
                let (when, count) = (axis.in_words(place), counted(*count, "article", "articles"));
                canvas.mark("bar", area, format_args!("{when}\n{count}"));
            }
            canvas.rule("base", 96.0);
            canvas.times(&axis, 114.0, 7);
        });
    });
}

fn scores(html: &mut Html, news: &News) {
    let [bins] = Histogram::bins([&news.scores]);
    let title = "Article scores";
    let left_out = match bins.left_out {
        0 => String::new(),
        count => format!(" {} fall outside the plotted range.", grouped(count)),
    };
    let note = format!("Articles by score, in steps of {}.{left_out}", bins.width);
    figure(html, title, note, |html| {
        let count = bins.counts.len();
        Plot { id: &"plot-scores", label: &title, height: 116.0, columns: count }.draw(html, |canvas| {
            let most = bins.counts.iter().copied().max().unwrap_or_default().max(1);
            for (bin, articles) in bins.counts.iter().enumerate() {
                let area = Area::column(bin, count).between(96.0 * (1.0 - *articles as f64 / most as f64), 96.0);
                let articles = counted(*articles, "article", "articles");
                canvas.mark("bar", area, format_args!("score {}\n{articles}", bins.edges(bin)));
            }
            canvas.rule("base", 96.0);
            quarters(canvas, bins.range(), 112.0);
        });
    });
}

fn headlines(html: &mut Html, title: &str, headlines: &[Headline]) {
    figure(html, title, "", |html| {
        html.element("ul", &[("class", &"headlines")], |html| {
            for Headline { score, ticker, date, title, link } in headlines {
                html.element("li", &[], |html| {
                    html.leaf("span", &[], format_args!("{score:+.3}"));
                    html.element("span", &[], |html| {
                        html.link(link, title);
                        html.leaf("small", &[], format_args!("{ticker}, {date}"));
                    });
                });
            }
        });
    });
}
