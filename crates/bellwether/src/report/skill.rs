//! Skill: whether signals predicted, as published and as they stand today. Only where the definition has prices.

use std::cmp::Reverse;

use bellwether_statistics::MeanTest;
use bellwether_statistics::calibration::BandPoint;
use maud::{Markup, html};

use super::frame::{Section, figure, part};
use super::plots::{Along, Layer, Mark, Row, chart, rows};
use crate::audit::skill::{PairSkill, Skill, State};
use crate::text::human::{count_of, group_digits, percent, round};

const COLUMNS: usize = 24;

/// The ends of the scale of hit rates, and the least end of one of correlations.
const RATES: (f64, f64) = (0.3, 0.7);
const LEAST_END: f64 = 0.05;

/// The states that are drawn, with their classes.
const STATES: [(State, &str); 2] = [(State::Published, "published"), (State::Today, "today")];

/// A mean rank correlation: what of, its class, on how many dates, and its test.
type Mean<'a> = (String, &'static str, u64, f64, Option<&'a MeanTest>);

/// The section of what was measured, or of why it was not.
pub(super) fn section_of(skill: &Result<Skill, String>) -> Section {
    let skill = match skill {
        Ok(skill) => skill,
        Err(why) => {
            let finding = "Signals were not measured against prices";
            return part("skill", "Skill", finding, vec![format!("{why}.")], &html! {});
        }
    };
    let mut pairs: Vec<&PairSkill> = skill.pairs.iter().filter(|pair| is_measured(pair)).collect();
    let measured = pairs.len();
    pairs.sort_by_key(|pair| Reverse(STATES.map(|(state, _)| pair.measure(state).ranks.dates)));
    pairs.truncate(4);
    let body = html! {
        @if let Some(first) = pairs.first() {
            (multiples("Cumulative rank correlation", CUMULATIVE, &pairs, cumulative))
            (hit_rates(&pairs, skill))
            (multiples("Reliability", RELIABILITY, &pairs, reliability))
            (multiples("Decay", DECAY, &pairs, decay))
            (by_news(first))
            (features(skill, first))
            @if measured > pairs.len() {
                p.cut { "Showing the " (pairs.len()) " of " (measured) " pairs with the most dates." }
            }
        }
    };
    let mut remarks = skill.verdict();
    let finding = remarks.remove(0);
    part("skill", "Skill", finding.trim_end_matches('.'), remarks, &body)
}

const CUMULATIVE: &str = "The sum of the rank correlations of all dates so far: dark as published, green as it stands today. The \
                          steeper, the better; neighbouring dates share most of their returns.";
const RELIABILITY: &str = "The share of signals that came true at each confidence, of dates whose windows do not overlap: as \
                           published, or today if nothing is. In the grey band 95 % of the time if confidences are \
                           probabilities; the straight line is the confidence itself.";
const DECAY: &str = "Mean rank correlation with the return over the horizon, over the horizon after it, and so on; no two share a \
                     session. Dark as published, green as it stands today.";

/// The id of a plot of a pair.
fn id_of(plot: &str, pair: &PairSkill) -> String {
    format!("plot-{plot}-{}-{}", pair.period, pair.regime)
}

fn is_measured(pair: &PairSkill) -> bool {
    STATES.iter().any(|(state, _)| pair.measure(*state).ranks.dates > 0)
}

/// A plot for each pair that has one, side by side.
fn multiples(title: &str, note: &str, pairs: &[&PairSkill], plot: fn(&PairSkill) -> Option<Markup>) -> Markup {
    let plots: Vec<_> = pairs.iter().filter_map(|pair| Some((pair, plot(pair)?))).collect();
    let body = html! {
        div.pair {
            @for (pair, plot) in &plots { div.multiple { b { (pair.period.to_string()) " " (pair.regime.to_string()) } (plot) } }
        }
    };
    if plots.is_empty() {
        html! {}
    } else {
        figure(title, note, &body)
    }
}

fn cumulative(pair: &PairSkill) -> Option<Markup> {
    let lines = STATES.map(|(state, class)| {
        let (mut sum, mut line) = (0.0, Vec::new());
        for date in &pair.measure(state).ranks.by_date {
            if let Some(correlation) = date.correlation {
                sum += correlation;
                line.push((date.day, sum));
            }
        }
        (class, line)
    });
    let all: Vec<(i32, f64)> = lines.iter().flat_map(|(_, line)| line).copied().collect();
    let (first, last) = (all.iter().map(|it| it.0).min()?, all.iter().map(|it| it.0).max()?);
    let low = all.iter().map(|it| it.1).fold(0.0, f64::min);
    let high = all.iter().map(|it| it.1).fold(0.0, f64::max).max(low + f64::MIN_POSITIVE);
    let x = |day: i32| f64::from(day - first) / f64::from((last - first).max(1));
    let y = |sum: f64| (sum - low) / (high - low);
    let day = |day: i32| (chrono::NaiveDate::default() + chrono::TimeDelta::days(day.into())).to_string();
    let mut layers = vec![Layer::Rule("base", y(0.0))];
    for (class, line) in &lines {
        let step = line.len().div_ceil(240).max(1);
        let kept = line.iter().enumerate().filter(|(index, _)| index % step == 0 || index + 1 == line.len());
        layers.push(Layer::Line(class, kept.map(|(_, (day, sum))| Some((x(*day), y(*sum)))).collect()));
    }
    let labels = (0..COLUMNS).map(|column| {
        let until = first + (f64::from(last - first) * (column + 1) as f64 / COLUMNS as f64) as i32;
        let mut label = day(until);
        for (class, line) in &lines {
            if let Some((_, sum)) = line.iter().rev().find(|(day, _)| *day <= until) {
                label.push_str(&format!("\n{class} {sum:.2}"));
            }
        }
        label
    });
    layers.push(Layer::Labels(labels.collect()));
    let along = Along::Labels(vec![(0.0, day(first)), (1.0, day(last))]);
    let label = format!("Cumulative rank correlation of {} {}", pair.period, pair.regime);
    let ends = [&*format!("{high:.1}"), &*format!("{low:.1}")];
    Some(chart(&id_of("skill", pair), &label, 120.0, ends, &along, &layers))
}

fn hit_rates(pairs: &[&PairSkill], skill: &Skill) -> Markup {
    let note = "Share of signals after which the return went their way, relative to the mean of the date, with its 95 % \
                interval by date; the line is at one half. Signals that were turned once their horizon was over, of all pairs, \
                count as they stand today.";
    let place = |rate: f64| ((rate - RATES.0) / (RATES.1 - RATES.0)).clamp(0.0, 1.0);
    let hits = |name: String, id: &str, class, (rate, signals): (f64, u64), ends: Option<[f64; 2]>| {
        let label = format!("{name}: {} of {}", percent(rate), group_digits(signals));
        let mark = Mark::Interval(place(rate), ends.map(|ends| ends.map(place)));
        Row::new(format!("plot-hits-{id}"), name, class, mark, percent(rate)).with_label(label)
    };
    let mut all = Vec::new();
    for (pair, (state, class)) in pairs.iter().flat_map(|pair| STATES.map(|state| (pair, state))) {
        let measure = pair.measure(state);
        let sides = [("buys", &measure.buys), ("sells", &measure.sells), ("surest", &measure.confident)];
        for (side, of_side) in sides {
            let Some(rate) = of_side.hit_rate else { continue };
            let name = format!("{} {} {}, {side}", pair.period, pair.regime, state.as_str());
            let id = format!("{}-{}-{}-{side}", pair.period, pair.regime, state.as_str());
            let ends = of_side.test.as_ref().map(|test| [0.5 + test.interval.lower, 0.5 + test.interval.upper]);
            all.push(hits(name, &id, class, (rate, of_side.side.signals), ends));
        }
    }
    let hindsight = &skill.hindsight;
    if let Some(rate) = hindsight.share {
        let name = "all pairs, turned after the horizon".to_owned();
        all.push(hits(name, "turned", "today", (rate, hindsight.turned), hindsight.interval()));
    }
    figure("Came true", note, &rows(all, &["30 %", "50 %", "70 %"]))
}

fn reliability(pair: &PairSkill) -> Option<Markup> {
    let (reliability, class) = STATES
        .iter()
        .find_map(|(state, class)| Some((&pair.measure(*state).confidence.as_ref()?.reliability, *class)))?;
    let points = &reliability.points;
    let (first, last) = (points.first()?, points.last()?);
    let width = (last.forecast - first.forecast).max(f64::MIN_POSITIVE);
    let x = |confidence: f64| (confidence - first.forecast) / width;
    let of_point = |point: &BandPoint| [point.calibrated, point.interval.lower, point.interval.upper, point.forecast];
    let ends: Vec<f64> = points.iter().flat_map(of_point).collect();
    let (low, high) = (ends.iter().copied().fold(1.0, f64::min), ends.iter().copied().fold(0.0, f64::max));
    let y = |share: f64| (share - low) / (high - low).max(f64::MIN_POSITIVE);
    let line = |of: fn(&BandPoint) -> f64| -> Vec<_> {
        points.iter().map(|point| Some((x(point.forecast), y(of(point))))).collect()
    };
    let bands =
        points.iter().map(|point| Some((y(point.interval.lower), y(point.interval.upper), String::new()))).collect();
    let labels = points.iter().map(|point| {
        let (lower, upper) = (percent(point.interval.lower), percent(point.interval.upper));
        let frequency = percent(point.calibrated);
        format!("confidence {:.3}\n{frequency} came true\n{lower} to {upper} if calibrated", point.forecast)
    });
    let (signals, dates) =
        (count_of(reliability.signals, "signal", "signals"), count_of(reliability.dates, "date", "dates"));
    let what = format!("{} {} {class}: {signals} of {dates}", pair.period, pair.regime);
    let along = Along::Labels(vec![(0.0, format!("{:.2}", first.forecast)), (1.0, format!("{:.2}", last.forecast))]);
    let layers = [
        Layer::Columns("band flush", bands),
        Layer::Line("diagonal", line(|point| point.forecast)),
        Layer::Line(class, line(|point| point.calibrated)),
        Layer::Labels(labels.collect()),
    ];
    let ends = [&*percent(high), &*percent(low)];
    let chart = chart(&id_of("reliability", pair), &what, 160.0, ends, &along, &layers);
    Some(html! { (chart) small { (what) } })
}

fn decay(pair: &PairSkill) -> Option<Markup> {
    let mut values: Vec<(usize, &'static str, f64)> = Vec::new();
    for (state, class) in STATES {
        for lag in &pair.measure(state).ranks.by_lag {
            values.extend(lag.measure.correlation.map(|correlation| (lag.lag as usize, class, correlation)));
        }
    }
    let lags = values.iter().map(|(lag, ..)| lag + 1).max()?;
    let (low, high) = values.iter().fold((0.0, 0.0), |(low, high): (f64, f64), it| (low.min(it.2), high.max(it.2)));
    let y = |value: f64| (value - low) / (high - low).max(f64::MIN_POSITIVE);
    let mut layers = Vec::new();
    for (second, (_, class)) in STATES.iter().enumerate() {
        let mut columns = vec![None; 2 * lags];
        for (lag, _, value) in values.iter().filter(|(_, other, _)| other == class) {
            let label = format!("lag {lag}, {class}\n{}", round(*value, 4));
            columns[2 * lag + second] = Some((y(value.min(0.0)), y(value.max(0.0)).max(0.005), label));
        }
        let class = if second == 0 { "dot published" } else { "dot today" };
        layers.push(Layer::Columns(class, columns));
    }
    layers.push(Layer::Rule("base", y(0.0)));
    let along = Along::Labels((0..lags).map(|lag| ((lag as f64 + 0.5) / lags as f64, lag.to_string())).collect());
    let label = format!("Decay of {} {}", pair.period, pair.regime);
    let ends = [&*round(high, 3), &*round(low, 3)];
    Some(chart(&id_of("decay", pair), &label, 90.0, ends, &along, &layers))
}

/// The correlations of a pair by the number of news.
fn by_news(pair: &PairSkill) -> Markup {
    let mut means = Vec::new();
    for (state, class) in STATES {
        for group in &pair.measure(state).by_news {
            let name = format!("{} in {}, {}", group.articles, group.window, state.as_str());
            let measure = &group.measure;
            means.extend(measure.correlation.map(|mean| (name, class, measure.dates, mean, measure.test.as_ref())));
        }
    }
    let note = "Mean rank correlation among the names with as many articles in a window, as far as was known when they were \
                entered, with its 95 % interval.";
    intervals(&format!("{} {} by number of articles", pair.period, pair.regime), note, means)
}

/// The correlations of the features at the horizon of a pair.
fn features(skill: &Skill, pair: &PairSkill) -> Markup {
    let mut means = Vec::new();
    for feature in skill.features.iter().filter(|feature| feature.period == pair.period) {
        for measure in &feature.measures {
            let Some((_, class)) = STATES.into_iter().find(|(state, _)| *state == measure.state) else { continue };
            let (ranks, name) = (&measure.ranks, format!("{}, {}", feature.feature, measure.state.as_str()));
            let Some(alone) = ranks.correlation else { continue };
            means.push((name.clone(), class, ranks.dates, alone, ranks.test.as_ref()));
            let Some((partial, mean)) = measure.partial.as_ref().and_then(|it| Some((it, it.correlation?))) else {
                continue;
            };
            means.push((format!("{name}, given the signal"), class, partial.dates, mean, partial.test.as_ref()));
        }
    }
    let note = "Mean rank correlation of each feature of the news with the return over the horizon, with its 95 % interval: by \
                itself, and given the signal, which is what it adds.";
    intervals(&format!("Features of the news over {}", pair.period), note, means)
}

fn intervals(title: &str, note: &str, means: Vec<Mean<'_>>) -> Markup {
    if means.is_empty() {
        return html! {};
    }
    let mut end = LEAST_END;
    for (.., mean, test) in &means {
        let [lower, upper] = test.map_or([*mean; 2], |test| [test.interval.lower, test.interval.upper]);
        end = end.max(mean.abs()).max(lower.abs()).max(upper.abs());
    }
    let place = |value: f64| (value / end + 1.0) / 2.0;
    let id = title.to_lowercase().replace(' ', "-");
    let all = means.into_iter().enumerate().map(|(index, (name, class, dates, mean, test))| {
        let label = format!("{name}: {} of {}", round(mean, 4), count_of(dates, "date", "dates"));
        let ends = test.map(|test| [test.interval.lower, test.interval.upper].map(place));
        let mark = Mark::Interval(place(mean), ends);
        Row::new(format!("plot-{id}-{index}"), name, class, mark, round(mean, 4)).with_label(label)
    });
    figure(title, note, &rows(all, &[&round(-end, 2), "0", &round(end, 2)]))
}
