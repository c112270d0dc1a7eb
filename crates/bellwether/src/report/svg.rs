//! SVG plots that scale with the page while their labels keep their size.
//!
//! Horizontal positions are shares of the width, vertical ones are pixels, so the same drawing serves phones and
//! desktops. A mark represents data and carries its label in `data-v`, where the page's script finds it. Every plot has
//! a label for screen readers and can be focused by keyboard.

use std::fmt::{self, Display};

use chrono::{Datelike, NaiveDate};

use super::facts::{Axis, Step};
use super::html::{Attributes, Html};

/// A plot.
pub(super) struct Plot<'a> {
    /// Its id, unique within the page.
    pub(super) id: &'a dyn Display,
    /// Its accessible label.
    pub(super) label: &'a dyn Display,
    /// Its height in pixels.
    pub(super) height: f64,
    /// Marks per row, for keyboard navigation; all marks if there is only one row.
    pub(super) columns: usize,
}

/// The drawing surface of a plot.
pub(super) struct Canvas<'a> {
    html: &'a mut Html,
}

/// A rectangle: horizontal extent as shares of the width, vertical extent in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) width: f64,
    pub(super) y: f64,
    pub(super) height: f64,
}

impl Area {
    /// One of several columns of equal width, with a small gap on the right.
    pub(super) fn column(index: usize, columns: usize) -> Self {
        let width = 1.0 / columns.max(1) as f64;
        Self { x: index as f64 * width, width: width * 0.88, y: 0.0, height: 0.0 }
    }

    /// The same area with another vertical extent.
    pub(super) fn between(self, top: f64, bottom: f64) -> Self {
        Self { y: top, height: bottom - top, ..self }
    }
}

/// Which point of a text is placed at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    /// A position at this end, or the middle, of a plot.
    pub(super) fn at(self, y: f64) -> TextPosition {
        let x = match self {
            Self::Start => 0.0,
            Self::Middle => 0.5,
            Self::End => 1.0,
        };
        TextPosition { x, y, anchor: self }
    }
}

/// The position of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextPosition {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) anchor: Anchor,
}

impl TextPosition {
    /// In the middle of an area.
    pub(super) fn within(area: Area, y: f64) -> Self {
        Self { x: area.x + area.width / 2.0, y, anchor: Anchor::Middle }
    }
}

impl Plot<'_> {
    /// Draws the plot.
    pub(super) fn draw(&self, html: &mut Html, content: impl FnOnce(&mut Canvas<'_>)) {
        let Self { id, label, height, columns } = self;
        html.element(
            "svg",
            &[
                ("id", id),
                ("class", &"plot"),
                ("width", &"100%"),
                ("height", &Pixels(*height)),
                ("role", &"img"),
                ("tabindex", &"0"),
                ("aria-label", label),
                ("data-columns", columns),
            ],
            |html| content(&mut Canvas { html }),
        );
    }
}

impl Canvas<'_> {
    /// A rectangle that represents data.
    pub(super) fn mark(&mut self, class: &str, area: Area, value: impl Display) {
        self.rectangle(class, area, &[("data-v", &value)]);
    }

    /// A rectangle of background.
    pub(super) fn ground(&mut self, class: &str, area: Area) {
        self.rectangle(class, area, &[]);
    }

    fn rectangle(&mut self, class: &str, area: Area, more: Attributes<'_>) {
        let Area { x, width, y, height } = area;
        let (x, width, y, height) = (WidthShare(x), WidthShare(width), Pixels(y), Pixels(height));
        let own: Attributes<'_> = &[("class", &class), ("x", &x), ("y", &y), ("width", &width), ("height", &height)];
        self.html.shape("rect", &[own, more].concat());
    }

    /// A line through points (x as a share, y in pixels from `top`). `None` breaks the line.
    pub(super) fn line(&mut self, class: &str, top: f64, height: f64, points: &[Option<(f64, f64)>]) {
        let view = format!("0 0 1000 {}", Pixels(height));
        let attributes: Attributes<'_> = &[
            ("y", &Pixels(top)),
            ("width", &"100%"),
            ("height", &Pixels(height)),
            ("viewBox", &view),
            ("preserveAspectRatio", &"none"),
            ("overflow", &"visible"),
        ];
        self.html.element("svg", attributes, |html| {
            for piece in points.split(Option::is_none).filter(|piece| !piece.is_empty()) {
                // A single point is drawn as a short stroke.
                let (x, y) = piece[0].expect("pieces are between the gaps");
                let last = [(x + 0.002, y)].into_iter().filter(|_| piece.len() == 1);
                let points = piece.iter().flatten().copied().chain(last);
                let points: Vec<String> =
                    points.map(|(x, y)| format!("{},{}", Pixels(x * 1000.0), Pixels(y))).collect();
                html.shape("polyline", &[("class", &class), ("points", &points.join(" "))]);
            }
        });
    }

    /// A horizontal line.
    pub(super) fn rule(&mut self, class: &'static str, y: f64) {
        let y = Pixels(y);
        self.html.shape("line", &[("class", &class), ("x1", &"0"), ("x2", &"100%"), ("y1", &y), ("y2", &y)]);
    }

    /// A vertical line.
    pub(super) fn upright(&mut self, class: &'static str, x: f64, (top, bottom): (f64, f64)) {
        let x = WidthShare(x);
        let (top, bottom) = (Pixels(top), Pixels(bottom));
        self.html.shape("line", &[("class", &class), ("x1", &x), ("x2", &x), ("y1", &top), ("y2", &bottom)]);
    }

    /// A text.
    pub(super) fn text(&mut self, class: &'static str, spot: TextPosition, text: impl Display) {
        let anchor = match spot.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.html.leaf(
            "text",
            &[("class", &class), ("x", &WidthShare(spot.x)), ("y", &Pixels(spot.y)), ("text-anchor", &anchor)],
            text,
        );
    }

    /// A tick label that is kept inside the plot.
    pub(super) fn below(&mut self, x: f64, y: f64, text: impl Display) {
        let anchor = match x {
            ..0.06 => Anchor::Start,
            ..0.94 => Anchor::Middle,
            _ => Anchor::End,
        };
        self.text("tick", TextPosition { x, y, anchor }, text);
    }

    /// Ticks of a time axis: years, or months if it is short.
    pub(super) fn times(&mut self, axis: &Axis, y: f64, most: usize) {
        let labels = labels(axis);
        let every = labels.len().div_ceil(most.max(1)).max(1);
        for (index, label) in labels.into_iter().step_by(every) {
            let x = index as f64 / axis.len() as f64;
            self.upright("grid", x, (y - 15.0, y - 11.0));
            self.below(x, y, label);
        }
    }
}

/// The buckets where a year starts (or a month, on a short axis), with their labels.
fn labels(axis: &Axis) -> Vec<(usize, String)> {
    let year = |start: NaiveDate| start.year();
    let of_years = || {
        let begins = |index: &usize| *index == 0 || year(axis.starts[*index]) != year(axis.starts[index - 1]);
        (0..axis.len()).filter(begins).map(|index| (index, year(axis.starts[index]).to_string())).collect::<Vec<_>>()
    };
    let years = of_years();
    if years.len() > 2 || axis.step > Step::Month {
        // The label of a partial first year would collide with the next.
        let is_cut = years.get(1).is_some_and(|(next, _)| *next * 8 < axis.len()) && axis.step <= Step::Month;
        return years.into_iter().skip(usize::from(is_cut)).collect();
    }
    let month = |index: usize| (year(axis.starts[index]), axis.starts[index].month());
    let begins = |index: &usize| *index == 0 || month(*index) != month(index - 1);
    (0..axis.len()).filter(begins).map(|index| (index, axis.starts[index].format("%b ’%y").to_string())).collect()
}

/// A share of the width.
#[derive(Clone, Copy)]
struct WidthShare(f64);

impl Display for WidthShare {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}%", short(self.0 * 100.0, 2))
    }
}

/// A length in pixels.
#[derive(Clone, Copy)]
struct Pixels(f64);

impl Display for Pixels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&short(self.0, 1))
    }
}

/// A number with at most `decimals` decimals and no trailing zeros.
fn short(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "" | "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}
