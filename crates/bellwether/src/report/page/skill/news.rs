//! Skill by the number of news, and that of the features of the news.

use super::super::{Html, Interval};
use super::{STATES, of};
use crate::audit::skill::{PairSkill, SeriesMeasure, Skill, State};
use crate::interface::Period;
use crate::text::human::{count_of, round};
use bellwether_statistics::MeanTest;

/// The least end of a scale of correlations.
const LEAST_END: f64 = 0.05;

/// A mean rank correlation.
struct Mean<'a> {
    name: String,
    /// The state, as published or today, which is also its class.
    class: &'static str,
    dates: u64,
    correlation: f64,
    test: Option<&'a MeanTest>,
}

/// The correlations of a pair by the number of news.
pub(super) fn by_news(html: &mut Html, pair: &PairSkill) {
    let groups = STATES.into_iter().flat_map(|(state, class)| {
        of(pair, state).by_news.iter().filter_map(move |group| {
            let SeriesMeasure { dates, correlation, ref test, .. } = group.measure;
            let name = format!("{} in {}, {}", group.articles, group.window, state.as_str());
            Some(Mean { name, class, dates, correlation: correlation?, test: test.as_ref() })
        })
    });
    let note = "Mean rank correlation among the names with as many articles in a window, as far as was known when they were \
                entered, with its 95 % interval.";
    means(html, (&format!("{} {} by number of articles", pair.period, pair.regime), note), &groups.collect::<Vec<_>>());
}

/// The correlations of the features at the horizon of a period.
pub(super) fn features(html: &mut Html, skill: &Skill, period: Period) {
    let features = skill.features.iter().filter(|feature| feature.period == period).flat_map(|feature| {
        let class = |state: State| STATES.iter().find(|(other, _)| *other == state).map(|(_, class)| *class);
        feature.measures.iter().filter_map(move |measure| {
            let (class, ranks) = (class(measure.state)?, &measure.ranks);
            let name = format!("{}, {}", feature.feature, measure.state.as_str());
            let alone =
                Mean { name, class, dates: ranks.dates, correlation: ranks.correlation?, test: ranks.test.as_ref() };
            let given = measure.partial.as_ref().and_then(|partial| {
                let (name, test) = (format!("{}, given the signal", alone.name), partial.test.as_ref());
                Some(Mean { name, class, dates: partial.dates, correlation: partial.correlation?, test })
            });
            Some([Some(alone), given].into_iter().flatten())
        })
    });
    let note = "Mean rank correlation of each feature of the news with the return over the horizon, with its 95 % interval: by \
                itself, and given the signal, which is what it adds.";
    means(html, (&format!("Features of the news over {period}"), note), &features.flatten().collect::<Vec<_>>());
}

fn means(html: &mut Html, (title, note): (&str, &str), means: &[Mean<'_>]) {
    if means.is_empty() {
        return;
    }
    let ends = means.iter().flat_map(|mean| {
        let interval = mean.test.map_or([mean.correlation; 2], |test| [test.interval.lower, test.interval.upper]);
        [interval[0], interval[1], mean.correlation]
    });
    let end = ends.map(f64::abs).fold(LEAST_END, f64::max);
    let place = |value: f64| (value / end + 1.0) / 2.0;
    let interval = |(index, mean): (usize, &Mean<'_>)| Interval {
        id: format!("plot-{}-{index}", title.to_lowercase().replace(' ', "-")),
        name: mean.name.clone(),
        class: mean.class,
        place: place(mean.correlation),
        ends: mean.test.map(|test| [test.interval.lower, test.interval.upper].map(place)),
        value: round(mean.correlation, 4),
        label: format!("{}: {} of {}", mean.name, round(mean.correlation, 4), count_of(mean.dates, "date", "dates")),
    };
    let note = format!("{note} The line is at zero, the scale from {:.2} to {end:.2}.", -end);
    html.figure(title, note, |html| html.intervals(means.iter().enumerate().map(interval)));
}
