//! News: how many articles, their scores, and how many signals they reach.

use super::{Along, Bar, Columns, Html, Topic};
use crate::report::Report;
use crate::report::facts::{Axis, Facts, Headline, Histogram, News, Step, WindowFacts};
use crate::text::human::{count_of, group_digits, portion};

/// The most buckets of a plot.
const BUCKETS: usize = 72;

impl Report {
    pub(super) fn articles(&self, html: &mut Html) {
        let Some(news) = &self.facts.news else {
            let finding = "This dataset has no news".to_owned();
            return html.section(&Topic::new("news", "News", finding), |_| ());
        };
        let finding = self.facts.reach().unwrap_or_else(|| count_of(news.articles, "article", "articles"));
        let asides = [news.scope(&self.facts)];
        html.section(&Topic::new("news", "News", finding).with_asides(&asides), |html| {
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
    /// The share of signals that have news, and for how many that is unknown; `None` if it was not counted.
    pub(in crate::report) fn reach(&self) -> Option<String> {
        let window = self.windows.iter().max_by_key(|window| window.length.count())?;
        let (some, known) = self.with_news(window);
        let (length, share) = (window.in_words(), portion(some, known));
        Some(match window.unknown {
            0 => format!("{share} of signals have news within {length}"),
            unknown => {
                let unknown = portion(unknown, self.rows);
                format!("News is unknown for {unknown} of signals; {share} of the others have some within {length}")
            }
        })
    }

    /// Months, or longer, from the first article to the last day; empty without articles that are plotted.
    pub(in crate::report) fn news_axis(&self, most: usize) -> Axis {
        let days = self.news.iter().flat_map(|news| news.days.keys());
        let (first, last) = (days.clone().next(), days.chain(self.days.last()).max());
        Axis::of(&first.into_iter().chain(first.and(last)).copied().collect::<Vec<_>>(), Step::Month, most)
    }
}

impl WindowFacts {
    /// Its length: `1 day`, `30 days`.
    pub(in crate::report) fn in_words(&self) -> String {
        count_of(self.length.count().unsigned_abs().into(), "day", "days")
    }
}

impl News {
    /// A note on the articles that a plot leaves out, if there are any.
    pub(in crate::report) fn beyond(&self, drawn: &[u64]) -> Option<String> {
        let beyond = self.articles - drawn.iter().sum::<u64>();
        (beyond > 0).then(|| format!("{} dated outside this plot.", count_of(beyond, "article is", "articles are")))
    }

    /// What the counts cover.
    pub(in crate::report) fn scope(&self, facts: &Facts) -> String {
        let unscored = match self.unscored {
            0 => String::new(),
            count => format!(", {} without a score", group_digits(count)),
        };
        let (tickers, all) =
            (group_digits(self.tickers.len() as u64), count_of(facts.tickers.len() as u64, "ticker", "tickers"));
        let dated = match (self.days.keys().next(), self.days.keys().next_back()) {
            (Some(first), Some(last)) if first != last => format!(", dated {first} to {last}"),
            (Some(only), _) => format!(", dated {only}"),
            _ => String::new(),
        };
        let articles = count_of(self.articles, "article", "articles");
        format!("{articles} about {tickers} of {all}{unscored}{dated}, with their latest known scores.")
    }
}

fn windows(html: &mut Html, facts: &Facts) {
    let is_known = facts.windows.iter().all(|window| window.unknown == 0);
    let of_known = if is_known { "" } else { ", of the signals for which it is known" };
    let note = format!("By window length{of_known}. A window ends at the signal's date minus the lag of the join.");
    let bar = |window: &WindowFacts| {
        let (some, all) = facts.with_news(window);
        Bar {
            id: format!("plot-window-{}", window.length),
            name: window.in_words(),
            class: "bar",
            share: some as f64 / all.max(1) as f64,
            value: portion(some, all),
        }
    };
    html.figure("Signals with news", note, |html| html.bars(facts.windows.iter().map(bar)));
}

fn over_time(html: &mut Html, news: &News, facts: &Facts) {
    let axis = facts.news_axis(BUCKETS);
    if axis.is_empty() {
        return;
    }
    let counts = axis.sums(news.days.iter().map(|(day, count)| (*day, *count)));
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let beyond = news.beyond(&counts).map_or_else(String::new, |beyond| format!(" {beyond}"));
    let column = |(index, count): (usize, &u64)| {
        let articles = count_of(*count, "article", "articles");
        Some((*count as f64 / most as f64, format!("{}\n{articles}", axis.in_words(index))))
    };
    html.columns(&Columns {
        id: "plot-news".to_owned(),
        title: format!("Articles by {}", axis.step.as_str()),
        note: format!("Peak: {} in a {}.{beyond}", group_digits(most), axis.step.as_str()),
        class: "bar",
        height: 96.0,
        along: Along::Time(&axis),
        columns: counts.iter().enumerate().map(column).collect(),
    });
    let Some(window) = facts.windows.iter().max_by_key(|window| window.length.count()) else { return };
    let by_day = |counts: &[u64]| axis.sums(facts.days.iter().copied().zip(counts.iter().copied()));
    let known: Vec<u64> =
        facts.rows_by_day().iter().zip(&window.unknown_days).map(|(all, unknown)| all - unknown).collect();
    let (some, all) = (by_day(&window.days), by_day(&known));
    let column = |(index, (some, all)): (usize, (&u64, &u64))| {
        let shown = format!("{} of {}", portion(*some, *all), count_of(*all, "signal", "signals"));
        Some((*some as f64 / (*all).max(1) as f64, format!("{}\n{shown}", axis.in_words(index))))
    };
    html.columns(&Columns {
        id: "plot-reach".to_owned(),
        title: format!("Signals with news within {}, by {}", window.in_words(), axis.step.as_str()),
        note: "Full height: every signal for which it is known.".to_owned(),
        class: "bar",
        height: 96.0,
        along: Along::Time(&axis),
        columns: some.iter().zip(&all).enumerate().map(column).collect(),
    });
}

fn scores(html: &mut Html, news: &News) {
    let [bins] = Histogram::bins([&news.scores]);
    let left_out = match bins.left_out {
        0 => String::new(),
        count => format!(" {} fall outside the plotted range.", group_digits(count)),
    };
    let most = bins.counts.iter().copied().max().unwrap_or_default().max(1);
    let column = |(bin, count): (usize, &u64)| {
        let articles = count_of(*count, "article", "articles");
        Some((*count as f64 / most as f64, format!("score {}\n{articles}", bins.edges(bin))))
    };
    html.columns(&Columns {
        id: "plot-scores".to_owned(),
        title: "Article scores".to_owned(),
        note: format!("Articles by score, in steps of {}.{left_out}", bins.width),
        class: "bar",
        height: 116.0,
        along: Along::Scale(bins.range()),
        columns: bins.counts.iter().enumerate().map(column).collect(),
    });
}

fn headlines(html: &mut Html, title: &str, headlines: &[Headline]) {
    html.figure(title, "", |html| {
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
