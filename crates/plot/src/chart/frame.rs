//! Where the plot lies inside the drawing, its grid and its axes.

use super::{Across, Chart};
use crate::axis::Resolved;
use crate::decimate::Place;
use crate::text;
use crate::xml::Xml;

/// Largest room for tick labels on the left and for names of lines on the right, in pixels.
const LEFT_MAX: f64 = 90.0;
const RIGHT_MAX: f64 = 130.0;

/// A drawing with its plot area and axes.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) x: Resolved,
    pub(crate) y: Resolved,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// How far marks may stick out of the plot: not at all over a pinned end.
    spill: (f64, f64),
}

impl Frame {
    pub(crate) fn new(chart: &Chart, x: Resolved, y: Resolved, width: f64, height: f64) -> Self {
        let widest = |labels: &mut dyn Iterator<Item = f64>| labels.fold(0.0, f64::max);
        let left = widest(&mut y.ticks.iter().map(|t| text::width(&t.label))).min(LEFT_MAX) + 12.0;
        let named = |across| chart.references.iter().filter(move |r| r.across == across);
        let names = widest(&mut named(Across::Y).map(|r| text::width(&r.label)));
        let last_tick = x.ticks.last().map_or(0.0, |t| text::width(&t.label) / 2.0);
        let right = (names.min(RIGHT_MAX.min(width * 0.25)) + 8.0).max(last_tick).max(14.0);
        let title_row = if y.title.is_empty() { 8.0 } else { 26.0 };
        let names_row = if named(Across::X).next().is_some() { 18.0 } else { 0.0 };
        let below = if x.title.is_empty() { 26.0 } else { 44.0 };
        let spill = |pinned: bool| if pinned { 0.0 } else { 6.0 };
        Self {
            left,
            right: width - right,
            top: title_row + names_row,
            bottom: height - below,
            spill: (spill(chart.x.is_pinned()), spill(chart.y.is_pinned())),
            x,
            y,
            width,
            height,
        }
    }

    pub(crate) fn x_px(&self, value: f64) -> f64 {
        self.left + self.x.at(value) * (self.right - self.left)
    }

    pub(crate) fn y_px(&self, value: f64) -> f64 {
        self.bottom - self.y.at(value) * (self.bottom - self.top)
    }

    pub(crate) fn place(&self, x: f64, y: f64) -> Place {
        (self.x_px(x), self.y_px(y))
    }

    /// Whether a place lies in the plot.
    pub(crate) fn holds(&self, (x, y): Place) -> bool {
        (self.left - 0.5..=self.right + 0.5).contains(&x) && (self.top - 0.5..=self.bottom + 0.5).contains(&y)
    }

    pub(crate) fn write_grid(&self, xml: &mut Xml) {
        for tick in &self.y.ticks {
            self.across(xml, "grid", self.y_px(tick.value));
        }
        for tick in &self.x.ticks {
            self.down(xml, "grid", self.x_px(tick.value));
        }
        for &minor in &self.y.minor {
            self.across(xml, "minor", self.y_px(minor));
        }
        for &minor in &self.x.minor {
            self.down(xml, "minor", self.x_px(minor));
        }
    }

    /// A nested drawing clips without needing an identifier that is unique in the page.
    pub(crate) fn write_clipped(&self, xml: &mut Xml, inside: impl FnOnce(&mut Xml)) {
        let (x, y) = (self.left - self.spill.0, self.top - self.spill.1);
        let (width, height) = (self.right + self.spill.0 - x, self.bottom + self.spill.1 - y);
        let view: Vec<String> = [x, y, width, height].into_iter().map(crate::xml::px).collect();
        let attributes = [
            ("x", x.into()),
            ("y", y.into()),
            ("width", width.into()),
            ("height", height.into()),
            ("viewBox", view.join(" ").into()),
        ];
        xml.within("svg", &attributes, inside);
    }

    pub(crate) fn write_axes(&self, xml: &mut Xml) {
        self.across(xml, "axis", self.bottom);
        for tick in &self.y.ticks {
            let label = text::fit(&tick.label, LEFT_MAX);
            let attributes = [
                ("class", "end".into()),
                ("x", (self.left - 7.0).into()),
                ("y", (self.y_px(tick.value) + 4.0).into()),
            ];
            xml.text("text", &attributes, &label);
        }
        self.write_x_labels(xml);
        let title = |class: &str, x: f64, y: f64| [("class", class.into()), ("x", x.into()), ("y", y.into())];
        let room = self.right - self.left;
        if !self.x.title.is_empty() {
            let at = title("title mid", (self.left + self.right) / 2.0, self.height - 6.0);
            xml.text("text", &at, &text::fit(&self.x.title, room));
        }
        if !self.y.title.is_empty() {
            xml.text("text", &title("title", 2.0, 12.0), &text::fit(&self.y.title, self.width - 4.0));
        }
    }

    /// Labels that would touch the one before are left out; their grid lines stay.
    fn write_x_labels(&self, xml: &mut Xml) {
        let mut free_from = f64::NEG_INFINITY;
        for tick in &self.x.ticks {
            let (x, half) = (self.x_px(tick.value), text::width(&tick.label) / 2.0);
            if x - half < free_from || x + half > self.width + 4.0 {
                continue;
            }
            free_from = x + half + 6.0;
            let attributes = [("class", "mid".into()), ("x", x.into()), ("y", (self.bottom + 17.0).into())];
            xml.text("text", &attributes, &tick.label);
        }
    }

    pub(crate) fn across(&self, xml: &mut Xml, class: &str, y: f64) {
        line(xml, class, (self.left, y), (self.right, y));
    }

    pub(crate) fn down(&self, xml: &mut Xml, class: &str, x: f64) {
        line(xml, class, (x, self.top), (x, self.bottom));
    }
}

pub(crate) fn line(xml: &mut Xml, class: &str, from: Place, to: Place) {
    let ends = [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)];
    let [a, b, c, d] = ends.map(|(name, value)| (name, value.into()));
    xml.shape("line", &[("class", class.into()), a, b, c, d], "");
}
