//! Charts of two numeric axes.
//!
//! The names of series are in a legend above the plot, and those of reference lines in the margins, so that neither
//! hides data. A marker's label is placed beside it where it covers the fewest points.

mod annotations;
mod definition;
mod document;
mod frame;
mod marks;

pub use definition::{Chart, Marker, Reference};

use crate::axis::AxisEnds;
use crate::figure;
use crate::xml::Xml;
use definition::ReferenceAxis;
use frame::PlotFrame;
use marks::SeriesStyle;

impl Chart {
    /// Writes the chart as an HTML figure, `width` pixels wide if there is room.
    pub(crate) fn write(&self, xml: &mut Xml, width: f64) {
        let notes = [self.note.clone(), self.note_on_omissions()];
        figure::write(xml, &self.title, &document::of(self, width), &notes, |xml| {
            figure::for_screens(xml, width, |xml, width| {
                let Some(frame) = self.frame(width) else { return figure::no_data(xml) };
                let series = self.series.iter().enumerate();
                let styles: Vec<SeriesStyle> =
                    series.map(|(i, s)| SeriesStyle::choose(self, &frame, s, i)).collect();
                self.write_legend(xml, &styles);
                self.write_drawing(xml, &frame, &styles);
            });
        });
    }

    /// Determines the axes and the position of the plot; `None` if there is nothing to draw.
    fn frame(&self, width: f64) -> Option<PlotFrame> {
        if self.series.iter().all(|s| s.points.iter().all(|p| !self.can_draw(p))) && self.markers.is_empty() {
            return None;
        }
        let height = self.height_px.unwrap_or_else(|| (width * 0.42).clamp(190.0, 340.0));
        let drawn = || self.series.iter().flat_map(|s| s.points.iter()).filter(|p| self.can_draw(p));
        let xs = drawn()
            .map(|p| p.x)
            .chain(self.markers.iter().map(|m| m.x))
            .chain(self.references_on(ReferenceAxis::X).map(|r| r.value));
        let ys = drawn()
            .flat_map(|p| [p.y, p.base.unwrap_or(p.y)])
            .chain(self.markers.iter().map(|m| m.y))
            .chain(self.references_on(ReferenceAxis::Y).map(|r| r.value));
        let y_axis =
            if self.series.iter().any(|s| s.filled) { self.y.clone().zero() } else { self.y.clone() };
        let x = self.x.resolve(xs, AxisEnds::Tight, x_ticks(width))?;
        let y = y_axis.resolve(ys, AxisEnds::Nice, y_ticks(height))?;
        Some(PlotFrame::new(self, x, y, width, height))
    }

    fn write_drawing(&self, xml: &mut Xml, frame: &PlotFrame, styles: &[SeriesStyle]) {
        let for_script = frame.for_script(x_ticks(frame.width));
        let size = (frame.width, frame.height);
        figure::framed_svg(xml, size, &self.title, &self.describe(frame), &for_script, |xml| {
            frame.write_grid(xml);
            frame.write_clipped(xml, |xml| {
                for (series, &style) in self.series.iter().zip(styles) {
                    marks::write(xml, self, frame, series, style);
                }
            });
            annotations::write_references(xml, self, frame);
            PlotFrame::write_still(xml, |xml| annotations::write_markers(xml, self, frame));
            frame.write_axes(xml);
        });
    }

    fn write_legend(&self, xml: &mut Xml, styles: &[SeriesStyle]) {
        let named = self.series.iter().zip(styles).filter(|(s, _)| !s.name.is_empty());
        let keys: Vec<_> =
            named.map(|(series, style)| (series.name.as_str(), style.legend_key(series))).collect();
        if self.series.len() > 1 && !keys.is_empty() {
            figure::legend(xml, &keys);
        }
    }

    /// Describes the drawing for readers who cannot see it.
    fn describe(&self, frame: &PlotFrame) -> String {
        let mut parts = vec![format!(
            "{} from {} to {}, {} from {} to {}.",
            non_empty_or(&self.x.label, "x"),
            self.x.unit.format(frame.x.lo),
            self.x.unit.format(frame.x.hi),
            non_empty_or(&self.y.label, "y"),
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

    /// Returns a sentence about the data that could not be drawn; empty if all were.
    fn note_on_omissions(&self) -> String {
        let mut odd = 0;
        let mut low = 0;
        for point in self.series.iter().flat_map(|s| &s.points) {
            if !(is_placeable(point.x) && is_placeable(point.y)) {
                odd += 1;
            } else if !self.can_draw(point) {
                low += 1;
            }
        }
        let mut why = Vec::new();
        if odd > 0 {
            why.push(format!("{odd} not finite"));
        }
        if low > 0 {
            why.push(format!("{low} at or below zero on a log axis"));
        }
        match odd + low {
            0 => String::new(),
            1 => format!("1 point not drawn: {}.", why.join(", ")),
            many => format!("{many} points not drawn: {}.", why.join(", ")),
        }
    }
}

/// Returns true if a linear axis accepts the value.
fn is_placeable(value: f64) -> bool {
    value.abs() <= 1e250
}

fn non_empty_or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}

/// The number of ticks to aim for on the x axis.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn x_ticks(width: f64) -> usize {
    ((width / 70.0) as usize).clamp(4, 12)
}

/// The number of ticks to aim for on the y axis.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn y_ticks(height: f64) -> usize {
    ((height / 48.0) as usize).clamp(3, 10)
}
