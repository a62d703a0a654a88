//! The frame of charts with one row per name: names on the left, a value axis, room for numbers on the right.

use crate::axis::Resolved;
use crate::chart::frame_line;
use crate::text;
use crate::xml::Xml;

/// Up to this many rows all stand open; of more, the first [`OPEN_ROWS`], the others behind a fold.
const ALL_OPEN_MAX: usize = 64;
const OPEN_ROWS: usize = 40;
/// Taller drawings repeat the axis above.
const AXIS_TWICE_PX: f64 = 700.0;
const TOP_PX: f64 = 20.0;

/// How many of `rows` stand open.
pub(crate) fn open_rows(rows: usize) -> usize {
    if rows <= ALL_OPEN_MAX { rows } else { OPEN_ROWS }
}

/// What the frame has to make room for.
#[derive(Debug)]
pub(crate) struct Needs<'a> {
    pub(crate) names: Vec<&'a str>,
    /// Width of the widest number at the right.
    pub(crate) number_px: f64,
    pub(crate) row_px: f64,
    /// What the numbers are; may be empty.
    pub(crate) number_title: &'a str,
    pub(crate) width: f64,
}

/// A drawing with rows.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) axis: Resolved,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) right: f64,
    row_px: f64,
    bottom: f64,
    number_title: String,
}

impl Rows {
    pub(crate) fn new(axis: Resolved, needs: &Needs<'_>) -> Self {
        let widest = needs.names.iter().map(|n| text::width(n)).fold(0.0, f64::max);
        let bottom = TOP_PX + needs.row_px * needs.names.len() as f64 + 2.0;
        let last_tick = axis.ticks.last().map_or(0.0, |t| text::width(&t.label) / 2.0);
        Self {
            left: widest.min(needs.width * 0.3) + 12.0,
            right: needs.width
                - (needs.number_px.max(text::width(needs.number_title).min(needs.width * 0.25)) + 14.0)
                    .max(last_tick),
            width: needs.width,
            height: bottom + if axis.title.is_empty() { 24.0 } else { 42.0 },
            row_px: needs.row_px,
            number_title: text::fit(needs.number_title, needs.width * 0.25),
            bottom,
            axis,
        }
    }

    /// Horizontal place of a value, kept inside the plot.
    pub(crate) fn x_px(&self, value: f64) -> f64 {
        self.left + self.axis.at(value).clamp(0.0, 1.0) * (self.right - self.left)
    }

    /// Upper end of a row.
    pub(crate) fn top_of(&self, row: usize) -> f64 {
        TOP_PX + row as f64 * self.row_px
    }

    pub(crate) fn write_grid(&self, xml: &mut Xml) {
        for &minor in &self.axis.minor {
            self.down(xml, "minor", self.x_px(minor));
        }
        for tick in &self.axis.ticks {
            self.down(xml, "grid", self.x_px(tick.value));
        }
    }

    /// The name of a row; shortened ones have the whole in a tooltip.
    pub(crate) fn write_name(&self, xml: &mut Xml, row: usize, name: &str) {
        let short = text::fit(name, self.left - 12.0);
        let y = self.top_of(row) + self.row_px / 2.0 + 4.0;
        xml.within(
            "text",
            &[("class", "name end".into()), ("x", (self.left - 8.0).into()), ("y", y.into())],
            |xml| {
                if short != name {
                    xml.text("title", &[], name);
                }
                xml.words(&short);
            },
        );
    }

    /// A number right of the plot.
    pub(crate) fn write_number(&self, xml: &mut Xml, class: &str, row: usize, number: &str) {
        let y = self.top_of(row) + self.row_px / 2.0 + 4.0;
        xml.text("text", &[("class", class.into()), ("x", self.width.into()), ("y", y.into())], number);
    }

    pub(crate) fn write_axis(&self, xml: &mut Xml) {
        let at = [("class", "end".into()), ("x", self.width.into()), ("y", 11.0.into())];
        xml.text("text", &at, &self.number_title);
        self.down(xml, "axis", self.x_px(self.axis.baseline()));
        self.write_labels(xml, self.bottom + 16.0);
        if self.bottom > AXIS_TWICE_PX {
            self.write_labels(xml, TOP_PX - 8.0);
        }
        if !self.axis.title.is_empty() {
            let middle = (self.left + self.right) / 2.0;
            let at = [("class", "title mid".into()), ("x", middle.into()), ("y", (self.height - 6.0).into())];
            xml.text("text", &at, &text::fit(&self.axis.title, self.width));
        }
    }

    /// A named limit across all rows.
    pub(crate) fn write_limit(&self, xml: &mut Xml, value: f64, name: &str) {
        let x = self.x_px(value);
        self.down(xml, "limit", x);
        if self.bottom > AXIS_TWICE_PX {
            return;
        }
        let short = text::fit(name, self.width / 2.0);
        let free_to = self.width - text::width(&self.number_title) - 10.0;
        let start = (x - text::width(&short) / 2.0).min(free_to - text::width(&short)).max(0.0);
        xml.text("text", &[("class", "limit-name".into()), ("x", start.into()), ("y", 11.0.into())], &short);
    }

    fn write_labels(&self, xml: &mut Xml, y: f64) {
        let mut free_from = f64::NEG_INFINITY;
        for tick in &self.axis.ticks {
            let (x, half) = (self.x_px(tick.value), text::width(&tick.label) / 2.0);
            if x - half >= free_from {
                free_from = x + half + 6.0;
                xml.text("text", &[("class", "mid".into()), ("x", x.into()), ("y", y.into())], &tick.label);
            }
        }
    }

    fn down(&self, xml: &mut Xml, class: &str, x: f64) {
        frame_line(xml, class, (x, TOP_PX - 4.0), (x, self.bottom));
    }
}
