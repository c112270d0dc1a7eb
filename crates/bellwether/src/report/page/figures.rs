//! The figures of several sections: bars one below another, columns along an axis, intervals on a scale, and a map with a
//! row for each of many things.

use super::Html;
use crate::report::facts::Axis;
use crate::report::svg::{Area, Canvas, Plot};

/// Height of a row of a map; must match the style of the names beside it.
const ROW_HEIGHT: f64 = 16.0;

/// Height of a bar, with the space around it.
const BAR_HEIGHT: f64 = 12.0;

/// The whole width of a bar.
const TRACK: Area = Area { x: 0.0, width: 1.0, y: 1.0, height: 10.0 };

/// Height of what stands below columns.
const TICKS_HEIGHT: f64 = 20.0;

/// Width of the dot in an interval.
const DOT: f64 = 0.012;

/// A horizontal bar with its name and value.
pub(super) struct Bar {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) class: &'static str,
    /// Its share of the width, from zero to one.
    pub(super) share: f64,
    pub(super) value: String,
}

/// A dot on a scale with the interval around it, if there is one, its name and its value. The line is in the middle.
pub(super) struct Interval {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) class: &'static str,
    /// The place of the dot, as a share of the width.
    pub(super) place: f64,
    /// The ends of the interval, as shares of the width.
    pub(super) ends: Option<[f64; 2]>,
    pub(super) value: String,
    /// What the dot stands for, in words.
    pub(super) label: String,
}

/// Columns along an axis.
pub(super) struct Columns<'a> {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) note: String,
    pub(super) class: &'static str,
    pub(super) height: f64,
    pub(super) along: Along<'a>,
    /// The height of each from zero to one, and what it stands for; none where nothing is.
    pub(super) columns: Vec<Option<(f64, String)>>,
}

/// What columns stand along.
pub(super) enum Along<'a> {
    /// Time.
    Time(&'a Axis),
    /// A scale of numbers.
    Scale((f64, f64)),
    /// Something between two ends.
    Ends([String; 2]),
}

/// A plot with a row for each of many things, over time.
pub(super) struct Map<'a> {
    pub(super) id: &'static str,
    pub(super) title: &'a str,
    pub(super) axis: &'a Axis,
    pub(super) rows: Vec<MapRow>,
}

/// A row of a map.
pub(super) struct MapRow {
    pub(super) name: String,
    /// The class of each cell, and what it stands for.
    pub(super) cells: Vec<(&'static str, String)>,
    pub(super) value: String,
}

impl Html {
    /// Bars, one below another.
    pub(super) fn bars(&mut self, bars: impl IntoIterator<Item = Bar>) {
        self.element("div", &[("class", &"rows")], |html| {
            for Bar { id, name, class, share, value } in bars {
                html.leaf("span", &[], &name);
                let label = format!("{name}: {value}");
                Plot { id: &id, label: &label, height: BAR_HEIGHT, columns: 1 }.draw(html, |canvas| {
                    canvas.ground("track", TRACK);
                    canvas.mark(class, Area { width: share.clamp(0.0, 1.0), ..TRACK }, &label);
                });
                html.leaf("span", &[], value);
            }
        });
    }

    /// Intervals on one scale, one below another.
    pub(super) fn intervals(&mut self, intervals: impl IntoIterator<Item = Interval>) {
        self.element("div", &[("class", &"rows")], |html| {
            for Interval { id, name, class, place, ends, value, label } in intervals {
                html.leaf("span", &[], &name);
                Plot { id: &id, label: &label, height: BAR_HEIGHT, columns: 1 }.draw(html, |canvas| {
                    canvas.ground("track", TRACK);
                    if let Some([from, to]) = ends {
                        canvas.ground(&format!("interval {class}"), Area { x: from, width: to - from, ..TRACK });
                    }
                    canvas.upright("base", 0.5, (0.0, BAR_HEIGHT));
                    let begin = (place - DOT / 2.0).clamp(0.0, 1.0 - DOT);
                    canvas.mark(&format!("dot {class}"), Area { x: begin, width: DOT, ..TRACK }, &label);
                });
                html.leaf("span", &[], value);
            }
        });
    }

    /// A figure of columns.
    pub(super) fn columns(&mut self, figure: &Columns<'_>) {
        let Columns { id, title, note, class, height, along, columns } = figure;
        let base = height - TICKS_HEIGHT;
        self.figure(title, note, |html| {
            Plot { id, label: title, height: *height, columns: columns.len() }.draw(html, |canvas| {
                for (index, column) in columns.iter().enumerate() {
                    let Some((share, label)) = column else { continue };
                    let area = Area::column(index, columns.len()).between(base * (1.0 - share), base);
                    canvas.mark(class, area, label);
                }
                canvas.rule("base", base);
                match along {
                    Along::Time(axis) => canvas.times(axis, height - 2.0, 7),
                    Along::Scale(range) => quarters(canvas, *range, height - 4.0),
                    Along::Ends([from, to]) => {
                        canvas.below(0.0, height - 4.0, from);
                        canvas.below(1.0, height - 4.0, to);
                    }
                }
            });
        });
    }

    /// A map: names, cells and values.
    pub(super) fn map(&mut self, map: &Map<'_>) {
        let Map { id, title, axis, rows } = map;
        let bottom = rows.len() as f64 * ROW_HEIGHT;
        self.element("div", &[("class", &"map")], |html| {
            html.element("ol", &[], |html| rows.iter().for_each(|row| html.leaf("li", &[], &row.name)));
            html.element("div", &[], |html| {
                Plot { id, label: title, height: bottom + 22.0, columns: axis.len() }.draw(html, |canvas| {
                    for (index, row) in rows.iter().enumerate() {
                        let top = index as f64 * ROW_HEIGHT;
                        for (index, (class, label)) in row.cells.iter().enumerate() {
                            let area = Area::column(index, axis.len()).between(top + 1.5, top + ROW_HEIGHT - 1.5);
                            canvas.mark(class, area, label);
                        }
                    }
                    canvas.times(axis, bottom + 18.0, 6);
                });
            });
            html.element("ol", &[], |html| rows.iter().for_each(|row| html.leaf("li", &[], &row.value)));
        });
    }
}

/// Labels at the ends, the middle and the quarters of a scale.
pub(super) fn quarters(canvas: &mut Canvas<'_>, (from, to): (f64, f64), y: f64) {
    for quarter in 0..=4 {
        let x = f64::from(quarter) / 4.0;
        // In hundredths, or finer where the scale is narrow: 0.525, not 0.5250000000000001.
        canvas.below(x, y, ((from + (to - from) * x) * 1e4).round() / 1e4);
    }
}
