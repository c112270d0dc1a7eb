//! Skill: whether signals predicted, as published and as they stand today. Only where the definition has prices.

mod news;

use std::fmt::Display;

use super::{Html, Interval, Topic};
use crate::audit::skill::{Hindsight, Measure, PairSkill, ReliabilityPoint, Skill, State};
use crate::report::Report;
use crate::report::svg::{Area, Canvas, Plot};
use crate::text::human::{count_of, group_digits, percent, round};

/// What pages with this section add to the style.
pub(super) const STYLE: &str = include_str!("../skill.css");

/// The most pairs shown: those with the most dates as published, then today.
const PAIRS: usize = 4;

/// The most points of a line.
const POINTS: usize = 240;

/// The columns of a plot over time that say their values.
const COLUMNS: usize = 24;

/// The ends of the scale of hit rates.
const RATES: (f64, f64) = (0.3, 0.7);

/// The states that are drawn, with their classes.
const STATES: [(State, &str); 2] = [(State::Published, "published"), (State::Today, "today")];

impl Report {
    pub(super) fn skill(&self, html: &mut Html) {
        let Some(skill) = &self.skill else { return };
        let (finding, asides) = match skill {
            Ok(skill) => (skill.finding(), skill.remarks()),
            Err(why) => ("Signals were not measured against prices".to_owned(), vec![format!("{why}.")]),
        };
        html.section(&Topic::new("skill", "Skill", finding).with_asides(&asides), |html| {
            let Ok(skill) = skill else { return };
            let pairs = skill.drawn_pairs();
            if pairs.is_empty() {
                return;
            }
            cumulative(html, &pairs);
            hit_rates(html, &pairs, &skill.hindsight);
            reliability(html, &pairs);
            decay(html, &pairs);
            news::by_news(html, pairs[0]);
            news::features(html, skill, pairs[0].period);
            let measured = skill.pairs.iter().filter(|pair| is_measured(pair)).count();
            if measured > pairs.len() {
                html.cut(format_args!("Showing the {} of {measured} pairs with the most dates.", pairs.len()));
            }
        });
    }
}

impl Skill {
    /// The pairs that are shown.
    fn drawn_pairs(&self) -> Vec<&PairSkill> {
        let mut pairs: Vec<&PairSkill> = self.pairs.iter().filter(|pair| is_measured(pair)).collect();
        pairs.sort_by_key(|pair| {
            std::cmp::Reverse([State::Published, State::Today].map(|state| of(pair, state).ranks.dates))
        });
        pairs.truncate(PAIRS);
        pairs
    }

    /// The finding: the first sentence of the verdict.
    pub(in crate::report) fn finding(&self) -> String {
        self.verdict.first().map_or("", |first| first.trim_end_matches('.')).to_owned()
    }

    /// What belongs to the finding: the rest of the verdict, and what the best shows by luck.
    pub(in crate::report) fn remarks(&self) -> Vec<String> {
        let mut remarks = self.verdict[self.verdict.len().min(1)..].to_vec();
        let best =
            self.best.iter().find(|best| best.state == State::Today && best.feature.is_none() && best.tested > 1);
        remarks.extend(best.map(|best| {
            format!(
                "The best of {} today is {} with z {:.1}; without skill the best would show {:.1}.",
                best.tested,
                best.name(),
                best.z,
                best.expected
            )
        }));
        remarks
    }
}

/// The measure of a pair in a state.
fn of(pair: &PairSkill, state: State) -> &Measure {
    pair.measures.iter().find(|measure| measure.state == state).expect("every state is measured")
}

fn is_measured(pair: &PairSkill) -> bool {
    STATES.iter().any(|(state, _)| of(pair, *state).ranks.dates > 0)
}

/// A plot for each pair, side by side.
fn multiples(html: &mut Html, pairs: &[&PairSkill], mut plot: impl FnMut(&mut Html, &PairSkill)) {
    html.element("div", &[("class", &"pair")], |html| {
        for pair in pairs {
            html.element("div", &[("class", &"multiple")], |html| {
                html.leaf("b", &[], format_args!("{} {}", pair.period, pair.regime));
                plot(html, pair);
            });
        }
    });
}

/// The sums of the correlations up to each date.
fn sums(measure: &Measure) -> Vec<(i32, f64)> {
    let known = measure.ranks.by_date.iter().filter_map(|date| Some((date.day, date.correlation?)));
    known
        .scan(0.0, |sum, (day, correlation)| {
            *sum += correlation;
            Some((day, *sum))
        })
        .collect()
}

fn cumulative(html: &mut Html, pairs: &[&PairSkill]) {
    const HEIGHT: f64 = 120.0;
    let note = "The sum of the rank correlations of all dates so far: dark as published, green as it stands today. The \
                steeper, the better; neighbouring dates share most of their returns.";
    html.figure("Cumulative rank correlation", note, |html| {
        multiples(html, pairs, |html, pair| {
            let lines = STATES.map(|(state, class)| (sums(of(pair, state)), class));
            let all = || lines.iter().flat_map(|(line, _)| line);
            let (Some(first), Some(last)) = (all().map(|it| it.0).min(), all().map(|it| it.0).max()) else { return };
            let low = all().map(|it| it.1).fold(0.0, f64::min);
            let high = all().map(|it| it.1).fold(0.0, f64::max).max(low + f64::MIN_POSITIVE);
            let x = |day: i32| f64::from(day - first) / f64::from((last - first).max(1));
            let y = |sum: f64| HEIGHT * (high - sum) / (high - low);
            let (period, regime) = (pair.period, pair.regime);
            let label = format!("Cumulative rank correlation of {period} {regime}");
            let id = format!("plot-skill-{period}-{regime}");
            Plot { id: &id, label: &label, height: HEIGHT + 18.0, columns: COLUMNS }.draw(html, |canvas| {
                canvas.rule("base", y(0.0));
                for (line, class) in &lines {
                    let step = line.len().div_ceil(POINTS).max(1);
                    let kept =
                        line.iter().enumerate().filter(|(index, _)| index % step == 0 || index + 1 == line.len());
                    let points: Vec<_> = kept.map(|(_, (day, sum))| Some((x(*day), y(*sum)))).collect();
                    canvas.line(&format!("line {class}"), 0.0, HEIGHT, &points);
                }
                for column in 0..COLUMNS {
                    let until = first + (f64::from(last - first) * (column + 1) as f64 / COLUMNS as f64) as i32;
                    let sum =
                        |line: &[(i32, f64)]| line.iter().rev().find(|(day, _)| *day <= until).map(|(_, sum)| *sum);
                    let shown = lines.iter().filter_map(|(line, class)| Some(format!("\n{class} {:.2}", sum(line)?)));
                    let shown: String = shown.collect();
                    let area =
                        Area { x: column as f64 / COLUMNS as f64, width: 1.0 / COLUMNS as f64, y: 0.0, height: HEIGHT };
                    canvas.mark("hover", area, format_args!("{}{shown}", day(until)));
                }
                canvas.below(0.0, HEIGHT + 14.0, day(first));
                canvas.below(1.0, HEIGHT + 14.0, format_args!("{}, {high:.1}", day(last)));
            });
        });
    });
}

fn day(day: i32) -> impl Display {
    chrono::NaiveDate::default() + chrono::TimeDelta::days(day.into())
}

fn hit_rates(html: &mut Html, pairs: &[&PairSkill], hindsight: &Hindsight) {
    let note = "Share of signals after which the return went their way, relative to the median of the date, with its 95 % \
                interval by date; the line is at one half, the scale from 30 to 70 %. What was rewritten once part of the \
                return was known, of all pairs, counts by the direction that it speaks for.";
    let place = |rate: f64| ((rate - RATES.0) / (RATES.1 - RATES.0)).clamp(0.0, 1.0);
    let hits = |name: String, id: &str, class, (rate, signals): (f64, u64), ends: Option<[f64; 2]>| Interval {
        id: format!("plot-hits-{id}"),
        class,
        place: place(rate),
        ends: ends.map(|ends| ends.map(place)),
        value: percent(rate),
        label: format!("{name}: {} of {}", percent(rate), group_digits(signals)),
        name,
    };
    let mut all = Vec::new();
    for (pair, (state, class)) in pairs.iter().flat_map(|pair| STATES.map(|state| (pair, state))) {
        let measure = of(pair, state);
        let sides = [("buys", &measure.buys), ("sells", &measure.sells), ("surest", &measure.confident)];
        for (side, of_side) in sides {
            let Some(rate) = of_side.hit_rate else { continue };
            let name = format!("{} {} {}, {side}", pair.period, pair.regime, state.as_str());
            let id = format!("{}-{}-{}-{side}", pair.period, pair.regime, state.as_str());
            let ends = of_side.test.as_ref().map(|test| [test.interval.lower, test.interval.upper]);
            let luck = of_side.luck_rate().unwrap_or(0.5);
            let ends = ends.map(|ends| ends.map(|end| luck + end));
            all.push(hits(name, &id, class, (rate, of_side.side.signals), ends));
        }
    }
    all.extend(hindsight.share.map(|rate| {
        let name = "all pairs, rewritten with returns known".to_owned();
        hits(name, "turned", "today", (rate, hindsight.rewrites), hindsight.interval())
    }));
    html.figure("Came true", note, |html| html.intervals(all));
}

fn reliability(html: &mut Html, pairs: &[&PairSkill]) {
    let drawn = |pair: &PairSkill| {
        let measures = STATES.map(|(state, class)| (of(pair, state), class)).into_iter();
        measures.filter_map(|(measure, class)| Some((measure.confidence.as_ref()?.reliability.clone(), class))).next()
    };
    let with_points: Vec<&PairSkill> = pairs.iter().copied().filter(|pair| drawn(pair).is_some()).collect();
    if with_points.is_empty() {
        return;
    }
    let note = "The share of signals that came true at each confidence, of dates whose windows do not overlap: as published, or \
                today if nothing is. In the grey band 95 % of the time if confidences are probabilities; the straight line is \
                the confidence itself.";
    html.figure("Reliability", note, |html| {
        multiples(html, &with_points, |html, pair| {
            let Some((reliability, class)) = drawn(pair) else { return };
            let what = format!(
                "{} {} {class}: {} of {}",
                pair.period,
                pair.regime,
                count_of(reliability.signals, "signal", "signals"),
                count_of(reliability.dates, "date", "dates")
            );
            let id = format!("plot-reliability-{}-{}", pair.period, pair.regime);
            let points = &reliability.points;
            Plot { id: &id, label: &what, height: 178.0, columns: points.len() }.draw(html, |canvas| {
                diagram(canvas, points, class);
            });
            html.leaf("small", &[], &what);
        });
    });
}

fn diagram(canvas: &mut Canvas<'_>, points: &[ReliabilityPoint], class: &str) {
    const HEIGHT: f64 = 160.0;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let width = (last.confidence - first.confidence).max(f64::MIN_POSITIVE);
    let x = |confidence: f64| (confidence - first.confidence) / width;
    let ends =
        || points.iter().flat_map(|point| [point.frequency, point.band.lower, point.band.upper, point.confidence]);
    let (low, high) = (ends().fold(1.0, f64::min), ends().fold(0.0, f64::max));
    let y = |share: f64| HEIGHT * (high - share) / (high - low).max(f64::MIN_POSITIVE);
    for (index, point) in points.iter().enumerate() {
        let next = points.get(index + 1).map_or(1.0, |next| x(next.confidence));
        let area = Area { x: x(point.confidence), width: next - x(point.confidence), y: 0.0, height: 0.0 };
        canvas.ground("band", area.between(y(point.band.upper), y(point.band.lower)));
    }
    let line = |of: &dyn Fn(&ReliabilityPoint) -> f64| -> Vec<_> {
        points.iter().map(|point| Some((x(point.confidence), y(of(point))))).collect()
    };
    canvas.line("line diagonal", 0.0, HEIGHT, &line(&|point| point.confidence));
    canvas.line(&format!("line {class}"), 0.0, HEIGHT, &line(&|point| point.frequency));
    for (index, point) in points.iter().enumerate() {
        let area = Area::column(index, points.len()).between(0.0, HEIGHT);
        let (lower, upper) = (percent(point.band.lower), percent(point.band.upper));
        let frequency = percent(point.frequency);
        canvas.mark(
            "hover",
            area,
            format_args!("confidence {:.3}\n{frequency} came true\n{lower} to {upper} if calibrated", point.confidence),
        );
    }
    canvas.below(0.0, HEIGHT + 14.0, format_args!("{:.2}", first.confidence));
    canvas.below(1.0, HEIGHT + 14.0, format_args!("{:.2}", last.confidence));
}

fn decay(html: &mut Html, pairs: &[&PairSkill]) {
    const HEIGHT: f64 = 90.0;
    let note = "Mean rank correlation with the return over the horizon, over the horizon after it, and so on; no two share a \
                session. Dark as published, green as it stands today.";
    html.figure("Decay", note, |html| {
        multiples(html, pairs, |html, pair| {
            let values: Vec<(u64, &str, f64)> = STATES
                .iter()
                .flat_map(|(state, class)| {
                    let lags = of(pair, *state).ranks.by_lag.iter();
                    lags.filter_map(move |of| Some((of.lag, *class, of.measure.correlation?)))
                })
                .collect();
            let lags = values.iter().map(|(lag, ..)| lag + 1).max().unwrap_or(1) as usize;
            let (low, high) =
                values.iter().fold((0.0, 0.0), |(low, high): (f64, f64), it| (low.min(it.2), high.max(it.2)));
            let y = |value: f64| HEIGHT * (high - value) / (high - low).max(f64::MIN_POSITIVE);
            let label = format!("Decay of {} {}", pair.period, pair.regime);
            let id = format!("plot-decay-{}-{}", pair.period, pair.regime);
            Plot { id: &id, label: &label, height: HEIGHT + 18.0, columns: values.len() }.draw(html, |canvas| {
                for (lag, class, value) in &values {
                    let second = usize::from(*class == "today");
                    let area = Area::column(2 * *lag as usize + second, 2 * lags);
                    let (top, bottom) = (y(value.max(0.0)), y(value.min(0.0)));
                    let area = area.between(top, bottom.max(top + 0.5));
                    canvas.mark(
                        &format!("dot {class}"),
                        area,
                        format_args!("lag {lag}, {class}\n{}", round(*value, 4)),
                    );
                }
                canvas.rule("base", y(0.0));
                for lag in 0..lags {
                    canvas.below((lag as f64 + 0.5) / lags as f64, HEIGHT + 14.0, lag);
                }
            });
        });
    });
}
