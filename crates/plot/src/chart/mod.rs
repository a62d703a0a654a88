//! Charts of two numeric axes.
//!
//! Names of series stand in a legend above the plot, reference lines are named in the margins, so that neither hides
//! data. A marker's label is placed beside it where it covers the fewest points.

mod frame;
mod labels;
mod marks;

use crate::axis::{Axis, Ends};
use crate::page::figure;
use crate::series::{Point, Series};
use crate::xml::Xml;
use frame::Frame;
pub(crate) use frame::line as frame_line;
use marks::Look;

/// A horizontal or vertical line with a name: an SLO, a capacity.
#[derive(Debug, Clone)]
pub struct Reference {
    pub(crate) across: Across,
    pub(crate) value: f64,
    pub(crate) label: String,
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Across {
    X,
    Y,
}

impl Reference {
    /// A vertical line at `value` on the x axis.
    pub fn x(value: f64, label: impl Into<String>) -> Self {
        Self { across: Across::X, value, label: label.into(), quiet: false }
    }

    /// A horizontal line at `value` on the y axis.
    pub fn y(value: f64, label: impl Into<String>) -> Self {
        Self { across: Across::Y, value, label: label.into(), quiet: false }
    }

    /// Grey instead of the colour of limits: a percentile, a mean.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }
}

/// A point that stands out, with a label: the chosen (r, b).
#[derive(Debug, Clone)]
pub struct Marker {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) label: String,
}

impl Marker {
    /// At (x, y) in the axes' base units.
    pub fn new(x: f64, y: f64, label: impl Into<String>) -> Self {
        Self { x, y, label: label.into() }
    }
}

/// A chart of series over two numeric axes.
#[derive(Debug, Clone)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) references: Vec<Reference>,
    pub(crate) markers: Vec<Marker>,
    note: String,
    height_px: Option<f64>,
}

impl Chart {
    /// An empty chart. The title stands above it.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let title = title.into();
        Self {
            title,
            x,
            y,
            series: vec![],
            references: vec![],
            markers: vec![],
            note: String::new(),
            height_px: None,
        }
    }

    /// Adds a series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds several series: the layers of [`stack`](crate::stack).
    #[must_use]
    pub fn all(mut self, series: impl IntoIterator<Item = Series>) -> Self {
        self.series.extend(series);
        self
    }

    /// Adds a named line. The axes include it.
    #[must_use]
    pub fn reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }

    /// Adds a labelled point. The axes include it.
    #[must_use]
    pub fn marker(mut self, marker: Marker) -> Self {
        self.markers.push(marker);
        self
    }

    /// A sentence under the chart: what it shows, where the numbers come from.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Height of the drawing in pixels, 120 to 2000; by default it follows the width.
    #[must_use]
    pub fn height(mut self, px: u32) -> Self {
        self.height_px = Some(f64::from(px.clamp(120, 2000)));
        self
    }

    /// The figure as HTML, `width` pixels wide when there is room.
    pub(crate) fn write(&self, xml: &mut Xml, width: f64) {
        let notes = [self.note.clone(), self.left_out()];
        figure::write(xml, &self.title, &notes, |xml| {
            let Some(frame) = self.frame(width) else { return figure::no_data(xml) };
            let series = self.series.iter().enumerate();
            let looks: Vec<Look> = series.map(|(i, s)| Look::of(self, &frame, s, i)).collect();
            self.legend(xml, &looks);
            self.draw(xml, &frame, &looks);
        });
    }

    fn frame(&self, width: f64) -> Option<Frame> {
        if self.series.iter().all(|s| s.points.iter().all(|p| !self.draws(p))) && self.markers.is_empty() {
            return None;
        }
        let height = self.height_px.unwrap_or_else(|| (width * 0.42).clamp(190.0, 340.0));
        let drawn = || self.series.iter().flat_map(|s| s.points.iter()).filter(|p| self.draws(p));
        let of = |across| self.references.iter().filter(move |r| r.across == across).map(|r| r.value);
        let xs = drawn().map(|p| p.x).chain(self.markers.iter().map(|m| m.x)).chain(of(Across::X));
        let ys = drawn().flat_map(|p| [p.y, p.base.unwrap_or(p.y)]).chain(self.markers.iter().map(|m| m.y));
        let y_axis =
            if self.series.iter().any(|s| s.filled) { self.y.clone().zero() } else { self.y.clone() };
        let x = self.x.resolve(xs, Ends::Tight, x_ticks(width))?;
        let y = y_axis.resolve(ys.chain(of(Across::Y)), Ends::Nice, y_ticks(height))?;
        Some(Frame::new(self, x, y, width, height))
    }

    fn draw(&self, xml: &mut Xml, frame: &Frame, looks: &[Look]) {
        figure::svg(xml, (frame.width, frame.height), &self.title, &self.describe(frame), |xml| {
            frame.write_grid(xml);
            frame.write_clipped(xml, |xml| {
                for (series, &look) in self.series.iter().zip(looks) {
                    marks::write(xml, self, frame, series, look);
                }
            });
            labels::write_references(xml, self, frame);
            labels::write_markers(xml, self, frame);
            frame.write_axes(xml);
        });
    }

    /// Whether both coordinates can be placed.
    pub(crate) fn draws(&self, point: &Point) -> bool {
        self.x.accepts(point.x) && self.y.accepts(point.y)
    }

    fn legend(&self, xml: &mut Xml, looks: &[Look]) {
        let named = self.series.iter().zip(looks).filter(|(s, _)| !s.name.is_empty());
        let keys: Vec<_> = named.map(|(series, look)| (series.name.as_str(), look.key(series))).collect();
        if self.series.len() > 1 && !keys.is_empty() {
            figure::legend(xml, &keys);
        }
    }

    /// What a reader who does not see the drawing gets.
    fn describe(&self, frame: &Frame) -> String {
        let mut parts = vec![format!(
            "{} from {} to {}, {} from {} to {}.",
            or(&self.x.label, "x"),
            self.x.unit.format(frame.x.lo),
            self.x.unit.format(frame.x.hi),
            or(&self.y.label, "y"),
            self.y.unit.format(frame.y.lo),
            self.y.unit.format(frame.y.hi)
        )];
        let names: Vec<&str> =
            self.series.iter().map(|s| s.name.as_str()).filter(|n| !n.is_empty()).collect();
        if !names.is_empty() {
            parts.push(format!("Series: {}.", names.join(", ")));
        }
        parts.extend(self.references.iter().map(|r| format!("Line: {}.", r.label)));
        parts.extend(self.markers.iter().map(|m| format!("Marked: {}.", m.label)));
        parts.join(" ")
    }

    /// Which data could not be drawn.
    fn left_out(&self) -> String {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let fits = |value: f64| value.abs() <= 1e250;
        let odd = points().filter(|p| !fits(p.x) || !fits(p.y)).count();
        let low = points().filter(|p| fits(p.x) && fits(p.y) && !self.draws(p)).count();
        let clause = |count: usize, why: &str| (count > 0).then(|| format!("{count} {why}"));
        let why = [clause(odd, "not finite"), clause(low, "at or below zero on a log axis")];
        let why: Vec<String> = why.into_iter().flatten().collect();
        match odd + low {
            0 => String::new(),
            1 => format!("1 point not drawn: {}.", why.join(", ")),
            many => format!("{many} points not drawn: {}.", why.join(", ")),
        }
    }
}

fn or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Small positive numbers.
fn x_ticks(width: f64) -> usize {
    ((width / 75.0) as usize).clamp(4, 12)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Small positive numbers.
fn y_ticks(height: f64) -> usize {
    ((height / 48.0) as usize).clamp(3, 10)
}
