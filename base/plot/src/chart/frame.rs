//! The frame of a chart: position of the plot inside the drawing, its grid and its axes.

use super::definition::{Chart, ReferenceAxis};
use crate::axis::{Axis, ResolvedAxis, Tick};
use crate::data;
use crate::figure::{self, PixelPosition};
use crate::text_width;
use crate::xml::Xml;

/// Maximum width of tick labels on the left, in pixels.
const LEFT_MAX: f64 = 90.0;
/// The height of a label in pixels.
const LABEL_PX: f64 = 12.0;
/// Maximum width of the names of reference lines on the right, in pixels.
const RIGHT_MAX: f64 = 130.0;

/// Returns the number of pixels that marks may extend beyond an axis.
fn overhang(axis: &Axis) -> f64 {
    if axis.is_pinned() { 0.0 } else { 6.0 }
}

/// A drawing with its plot area and axes. All lengths are pixels from the left and from the top.
#[derive(Debug)]
pub(crate) struct PlotFrame {
    pub(crate) x: ResolvedAxis,
    pub(crate) y: ResolvedAxis,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// Pixels that marks may extend beyond the plot in each direction: zero at a pinned end.
    overhang: (f64, f64),
}

impl PlotFrame {
    pub(crate) fn new(chart: &Chart, x: ResolvedAxis, y: ResolvedAxis, width: f64, height: f64) -> Self {
        let y_labels = y.ticks.iter().map(|tick| text_width::width(&tick.label));
        let left = y_labels.fold(0.0, f64::max).min(LEFT_MAX) + 12.0;
        let names = chart.references_on(ReferenceAxis::Y).map(|r| text_width::width(&r.label));
        let widest_name = names.fold(0.0, f64::max);
        let last_tick = x.ticks.last().map_or(0.0, |t| text_width::width(&t.label) / 2.0);
        let right = (widest_name.min(RIGHT_MAX.min(width * 0.25)) + 8.0).max(last_tick).max(14.0);
        let title_row = if y.title.is_empty() { 8.0 } else { 26.0 };
        let names_row = if chart.references_on(ReferenceAxis::X).next().is_some() { 18.0 } else { 0.0 };
        let below = if x.title.is_empty() { 26.0 } else { 44.0 };
        Self {
            left,
            right: width - right,
            top: title_row + names_row,
            bottom: height - below,
            overhang: (overhang(&chart.x), overhang(&chart.y)),
            x,
            y,
            width,
            height,
        }
    }

    pub(crate) fn x_px(&self, value: f64) -> f64 {
        self.left + self.x.fraction(value) * (self.right - self.left)
    }

    pub(crate) fn y_px(&self, value: f64) -> f64 {
        self.bottom - self.y.fraction(value) * (self.bottom - self.top)
    }

    pub(crate) fn position(&self, x: f64, y: f64) -> PixelPosition {
        (self.x_px(x), self.y_px(y))
    }

    /// Returns true if a position lies in the plot.
    pub(crate) fn contains(&self, (x, y): PixelPosition) -> bool {
        (self.left - 0.5..=self.right + 0.5).contains(&x) && (self.top - 0.5..=self.bottom + 0.5).contains(&y)
    }

    pub(crate) fn write_grid(&self, xml: &mut Xml) {
        for tick in &self.y.ticks {
            self.write_horizontal(xml, "grid", self.y_px(tick.value));
        }
        for &minor in &self.y.minor {
            self.write_horizontal(xml, "minor", self.y_px(minor));
        }
        Self::write_still(xml, |xml| {
            for tick in &self.x.ticks {
                self.write_vertical(xml, "grid", self.x_px(tick.value));
            }
            for &minor in &self.x.minor {
                self.write_vertical(xml, "minor", self.x_px(minor));
            }
        });
    }

    /// Writes content that the page's script replaces while the reader looks at a part of the x axis.
    pub(super) fn write_still(xml: &mut Xml, inside: impl FnOnce(&mut Xml)) {
        xml.element("g", &[("class", "still".into())], inside);
    }

    /// Returns the plot's edges (left, right, top, bottom), the range of its y axis, and the number of ticks to aim for on
    /// the x axis, for the page's script.
    pub(super) fn for_script(&self, x_ticks: usize) -> String {
        let numbers = [self.left, self.right, self.top, self.bottom, self.y.lo, self.y.hi, x_ticks as f64];
        numbers.map(data::number).join(" ")
    }

    /// Writes content that is clipped to the plot. A nested `svg` clips without an identifier, which
    /// would have to be unique in the page.
    pub(crate) fn write_clipped(&self, xml: &mut Xml, inside: impl FnOnce(&mut Xml)) {
        let x = self.left - self.overhang.0;
        let y = self.top - self.overhang.1;
        let width = self.right + self.overhang.0 - x;
        let height = self.bottom + self.overhang.1 - y;
        let view: Vec<String> = [x, y, width, height].into_iter().map(crate::xml::px).collect();
        let attributes = [
            ("x", x.into()),
            ("y", y.into()),
            ("width", width.into()),
            ("height", height.into()),
            ("viewBox", view.join(" ").into()),
        ];
        xml.element("svg", &attributes, inside);
    }

    pub(crate) fn write_axes(&self, xml: &mut Xml) {
        self.write_horizontal(xml, "axis", self.bottom);
        let extent = |tick: &Tick| {
            let y = self.y_px(tick.value);
            (y - LABEL_PX / 2.0, y + LABEL_PX / 2.0)
        };
        for tick in self.y.labelled(extent) {
            let label = text_width::fit(&tick.label, LEFT_MAX);
            let attributes = [
                ("class", "end".into()),
                ("x", (self.left - 7.0).into()),
                ("y", (self.y_px(tick.value) + 4.0).into()),
            ];
            xml.text_element("text", &attributes, &label);
        }
        Self::write_still(xml, |xml| self.write_x_labels(xml));
        if !self.y.title.is_empty() {
            let attributes = [("class", "title".into()), ("x", 2.0.into()), ("y", 12.0.into())];
            xml.text_element("text", &attributes, &text_width::fit(&self.y.title, self.width - 4.0));
        }
    }

    /// Writes the labels and the title of the x axis. Labels that would touch another are omitted; their grid lines
    /// remain.
    fn write_x_labels(&self, xml: &mut Xml) {
        let extent = |tick: &Tick| {
            let x = self.x_px(tick.value);
            let half = text_width::width(&tick.label) / 2.0;
            (x - half, x + half)
        };
        for tick in self.x.labelled(extent) {
            let x = self.x_px(tick.value);
            let y = self.bottom + 17.0;
            let attributes = [("class", "mid".into()), ("x", x.into()), ("y", y.into())];
            xml.text_element("text", &attributes, &tick.label);
        }
        if !self.x.title.is_empty() {
            let attributes = [
                ("class", "title mid".into()),
                ("x", ((self.left + self.right) / 2.0).into()),
                ("y", (self.height - 6.0).into()),
            ];
            let title = text_width::fit(&self.x.title, self.right - self.left);
            xml.text_element("text", &attributes, &title);
        }
    }

    pub(crate) fn write_horizontal(&self, xml: &mut Xml, class: &str, y: f64) {
        figure::line(xml, class, (self.left, y), (self.right, y));
    }

    pub(crate) fn write_vertical(&self, xml: &mut Xml, class: &str, x: f64) {
        figure::line(xml, class, (x, self.top), (x, self.bottom));
    }
}
