//! SVG plots that scale with the page while their labels keep their size: rows of bars, charts along an axis, and maps.
//!
//! Horizontal positions are shares of the width, vertical ones are pixels, so the same drawing serves phones and
//! desktops. A mark represents data and carries its label in `data-v`, where the page's script finds it. Every plot has
//! a label for screen readers and can be focused by keyboard.

use chrono::{Datelike, NaiveDate};
use maud::{Markup, html};

use super::calendar::{Axis, Step};
use crate::text::human::group_digits;

/// Height of a row of bars, and of a row of a map, which must match the style of the names beside it.
const BAR_HEIGHT: f64 = 12.0;
const ROW_HEIGHT: f64 = 16.0;

/// Height of what stands below a chart.
const TICKS_HEIGHT: f64 = 18.0;

/// Width of the dot in an interval.
const DOT: f64 = 0.012;

/// A row: a name, a bar or an interval, and its value.
pub(super) struct Row {
    id: String,
    name: String,
    class: &'static str,
    mark: Mark,
    value: String,
    /// What the mark stands for, in words.
    label: String,
}

impl Row {
    pub(super) fn new(id: String, name: String, class: &'static str, mark: Mark, value: String) -> Self {
        Self { label: format!("{name}: {value}"), id, name, class, mark, value }
    }

    pub(super) fn with_label(self, label: String) -> Self {
        Self { label, ..self }
    }
}

/// The mark of a row, in shares of the width.
pub(super) enum Mark {
    /// A share of a whole, on a track from 0 to 100 %.
    Share(f64),
    /// A share of which some is unknown, which is drawn after it.
    ShareAndUnknown(f64, f64),
    /// A length relative to the longest.
    Length(f64),
    /// A dot with the interval around it, if there is one. The line is in the middle.
    Interval(f64, Option<[f64; 2]>),
}

/// What a chart is drawn along.
pub(super) enum Along<'a> {
    /// Time.
    Time(&'a Axis),
    /// A scale of numbers.
    Scale((f64, f64)),
    /// Labels at places from zero to one.
    Labels(Vec<(f64, String)>),
}

/// A layer of a chart. Heights are from zero at the bottom to one at the top, of what lies between its ends.
pub(super) enum Layer {
    /// Columns of a class, each from a height to another, and what it stands for, if it is a mark; none where nothing is.
    Columns(&'static str, Vec<Option<(f64, f64, String)>>),
    /// A line of a class through places and heights; none breaks it.
    Line(&'static str, Vec<Option<(f64, f64)>>),
    /// Columns that are not seen and say what the lines at their place are.
    Labels(Vec<String>),
    /// A horizontal line of a class at a height.
    Rule(&'static str, f64),
}

/// The line that columns stand on.
pub(super) const BASE: Layer = Layer::Rule("base", 0.0);

/// A row of a map: its name, the class of each cell with what it stands for, and its value.
pub(super) struct MapRow {
    pub(super) name: String,
    pub(super) cells: Vec<(&'static str, String)>,
    pub(super) value: String,
}

/// Rows of bars or intervals on one scale, whose labels are below them.
pub(super) fn rows(rows: impl IntoIterator<Item = Row>, scale: &[&str]) -> Markup {
    html! {
        div.rows {
            @for row in rows {
                span { (row.name) }
                (plot(&row.id, &row.label, BAR_HEIGHT, 1, &bar(row.class, &row.mark, &row.label)))
                span { (row.value) }
            }
            @if !scale.is_empty() {
                span {}
                svg.scale width="100%" height="14" aria-hidden="true" {
                    @for (index, text) in scale.iter().enumerate() {
                        (tick(index as f64 / (scale.len() - 1).max(1) as f64, 11.0, text))
                    }
                }
                span {}
            }
        }
    }
}

fn bar(class: &str, mark: &Mark, label: &str) -> Markup {
    let bar = |share: f64| rectangle(class, [0.0, share.clamp(0.0, 1.0)], [1.0, 11.0], Some(label));
    let track = rectangle("track", [0.0, 1.0], [1.0, 11.0], None);
    match *mark {
        Mark::Length(share) => bar(share),
        Mark::Share(share) => html! { (track) (bar(share)) },
        Mark::ShareAndUnknown(share, unknown) => html! {
            (track)
            (bar(share))
            @if unknown > 0.0 { (rectangle("unknown", [share, share + unknown], [1.0, 11.0], None)) }
        },
        Mark::Interval(place, ends) => {
            let begin = (place - DOT / 2.0).clamp(0.0, 1.0 - DOT);
            html! {
                (track)
                @if let Some(ends) = ends { (rectangle(&format!("interval {class}"), ends, [1.0, 11.0], None)) }
                line.base x1="50%" x2="50%" y1="0" y2=(short(BAR_HEIGHT, 1)) {}
                (rectangle(&format!("dot {class}"), [begin, begin + DOT], [1.0, 11.0], Some(label)))
            }
        }
    }
}

/// A chart of counts, the highest of which is as high as the chart.
pub(super) fn counts(
    id: &str,
    title: &str,
    height: f64,
    along: &Along<'_>,
    counts: &[u64],
    label: impl Fn(usize) -> String,
) -> Markup {
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let columns =
        counts.iter().enumerate().map(|(index, count)| Some((0.0, *count as f64 / most as f64, label(index))));
    chart(id, title, height, [&group_digits(most), "0"], along, &[Layer::Columns("bar", columns.collect()), BASE])
}

/// A chart whose area has a height in pixels, with what its top and its bottom stand for beside it, and its axis below.
pub(super) fn chart(
    id: &str,
    label: &str,
    height: f64,
    [top, bottom]: [&str; 2],
    along: &Along<'_>,
    layers: &[Layer],
) -> Markup {
    let columns = layers.iter().map(|layer| match layer {
        Layer::Columns(_, columns) => columns.len(),
        Layer::Labels(labels) => labels.len(),
        _ => 0,
    });
    let columns = columns.max().unwrap_or_default();
    let content = html! {
        @for layer in layers { (layer.draw(height)) }
        // A low chart is one of many, which are narrow.
        (axis(along, height + TICKS_HEIGHT - 3.0, if height < 40.0 { 3 } else { 6 }))
    };
    html! {
        div.chart {
            span.ends { span { (top) } span { (bottom) } }
            (plot(id, label, height + TICKS_HEIGHT, columns, &content))
        }
    }
}

impl Layer {
    /// The layer of a chart with a height.
    fn draw(&self, height: f64) -> Markup {
        let y = |share: f64| height * (1.0 - share);
        match self {
            Self::Columns(class, columns) => html! {
                @for (index, column) in columns.iter().enumerate() {
                    @if let Some((from, to, label)) = column {
                        @let label = Some(label.as_str()).filter(|label| !label.is_empty());
                        (rectangle(class, extent(index, columns.len(), class), [y(*to), y(*from)], label))
                    }
                }
            },
            Self::Labels(labels) => html! {
                @for (index, label) in labels.iter().enumerate() {
                    (rectangle("hover", extent(index, labels.len(), "flush"), [0.0, height], Some(label)))
                }
            },
            Self::Rule(class, share) => {
                let y = short(y(*share), 1);
                html! { line class=(class) x1="0" x2="100%" y1=(y) y2=(y) {} }
            }
            Self::Line(class, points) => html! {
                svg width="100%" height=(short(height, 1)) viewBox=(format!("0 0 1000 {}", short(height, 1)))
                    preserveAspectRatio="none" overflow="visible" {
                    @for piece in points.split(Option::is_none).filter(|piece| !piece.is_empty()) {
                        polyline class={ "line " (class) } points=(path(piece, y)) {}
                    }
                }
            },
        }
    }
}

/// The points of a piece of a line. A single point is drawn as a short stroke.
fn path(piece: &[Option<(f64, f64)>], y: impl Fn(f64) -> f64) -> String {
    let mut points: Vec<(f64, f64)> = piece.iter().flatten().copied().collect();
    if let [(x, height)] = points[..] {
        points.push((x + 0.002, height));
    }
    let points: Vec<String> =
        points.iter().map(|(x, height)| format!("{},{}", short(x * 1000.0, 1), short(y(*height), 1))).collect();
    points.join(" ")
}

/// Left and right of one of several columns, with a small gap unless they are flush.
fn extent(index: usize, columns: usize, class: &str) -> [f64; 2] {
    let width = 1.0 / columns.max(1) as f64;
    let from = index as f64 * width;
    // A little wider than its share, so that rounding leaves no line between two of them.
    let to = if class.contains("flush") { (from + width * 1.1).min(1.0) } else { from + width * 0.88 };
    [from, to]
}

/// A plot with a row of cells for each of many things, over time: names, cells and values.
pub(super) fn map(id: &str, label: &str, along: &Axis, rows: &[MapRow]) -> Markup {
    let bottom = rows.len() as f64 * ROW_HEIGHT;
    let content = html! {
        @for (index, row) in rows.iter().enumerate() {
            @let top = index as f64 * ROW_HEIGHT;
            @for (index, (class, label)) in row.cells.iter().enumerate() {
                (rectangle(class, extent(index, row.cells.len(), ""), [top + 1.5, top + ROW_HEIGHT - 1.5], Some(label)))
            }
        }
        (axis(&Along::Time(along), bottom + 16.0, 6))
    };
    html! {
        div.map {
            ol { @for row in rows { li { (row.name) } } }
            div { (plot(id, label, bottom + 20.0, along.starts.len(), &content)) }
            ol { @for row in rows { li { (row.value) } } }
        }
    }
}

/// A plot: marks per row are told for keyboard navigation.
pub(super) fn plot(id: &str, label: &str, height: f64, columns: usize, content: &Markup) -> Markup {
    html! {
        svg id=(id) class="plot" width="100%" height=(short(height, 1)) role="img" tabindex="0" aria-label=(label)
            data-columns=(columns) { (content) }
    }
}

/// A rectangle between shares of the width and heights in pixels; it is a mark if it has a label.
pub(super) fn rectangle(class: &str, [left, right]: [f64; 2], [top, bottom]: [f64; 2], label: Option<&str>) -> Markup {
    let (x, width) = (format!("{}%", short(left * 100.0, 2)), format!("{}%", short((right - left) * 100.0, 2)));
    let (y, height) = (short(top, 1), short((bottom - top).max(0.0), 1));
    html! { rect class=(class) x=(x) width=(width) y=(y) height=(height) data-v=[label] {} }
}

/// A text that is kept inside the plot.
pub(super) fn tick(x: f64, y: f64, text: &str) -> Markup {
    let anchor = match x {
        ..0.06 => "start",
        ..0.94 => "middle",
        _ => "end",
    };
    html! { text.tick x=(format!("{}%", short(x * 100.0, 2))) y=(short(y, 1)) text-anchor=(anchor) { (text) } }
}

/// The axis below a plot, with at most so many times.
fn axis(along: &Along<'_>, y: f64, most: usize) -> Markup {
    match along {
        Along::Labels(labels) => html! { @for (x, text) in labels { (tick(*x, y, text)) } },
        Along::Scale((from, to)) => html! {
            @for quarter in 0..=4 {
                @let x = f64::from(quarter) / 4.0;
                // In ten-thousandths: 0.525, not 0.5250000000000001.
                (tick(x, y, &(((from + (to - from) * x) * 1e4).round() / 1e4).to_string()))
            }
        },
        Along::Time(axis) => {
            let labels = times(axis);
            let every = labels.len().div_ceil(most).max(1);
            html! {
                @for (index, label) in labels.into_iter().step_by(every) {
                    @let x = index as f64 / axis.starts.len() as f64;
                    @let place = format!("{}%", short(x * 100.0, 2));
                    line.grid x1=(place) x2=(place) y1=(short(y - 15.0, 1)) y2=(short(y - 11.0, 1)) {}
                    (tick(x, y, &label))
                }
            }
        }
    }
}

/// The buckets where a year starts (or a month, on a short axis), with their labels.
fn times(axis: &Axis) -> Vec<(usize, String)> {
    let starts = &axis.starts;
    let begins = |of: fn(NaiveDate) -> (i32, u32)| -> Vec<usize> {
        (0..starts.len()).filter(|index| *index == 0 || of(starts[*index]) != of(starts[index - 1])).collect()
    };
    let years = begins(|start| (start.year(), 0));
    if years.len() > 2 || axis.step > Step::Month {
        // The label of a partial first year would collide with the next.
        let is_cut = years.get(1).is_some_and(|next| *next * 8 < starts.len()) && axis.step <= Step::Month;
        let years = years.into_iter().skip(usize::from(is_cut));
        return years.map(|index| (index, starts[index].year().to_string())).collect();
    }
    let months = begins(|start| (start.year(), start.month())).into_iter();
    months.map(|index| (index, starts[index].format("%b ’%y").to_string())).collect()
}

/// A number with at most `decimals` decimals and no trailing zeros.
fn short(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    match text.trim_end_matches('0').trim_end_matches('.') {
        "" | "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}
