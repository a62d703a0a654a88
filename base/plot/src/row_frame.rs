//! The frame of charts with one row for each name: names on the left, or above the rows where they do not fit
//! there, a value axis, numbers on the right.

use crate::axis::{ResolvedAxis, Tick};
use crate::figure;
use crate::text_width;
use crate::xml::Xml;

/// Maximum number of rows that are all visible.
const ALL_VISIBLE_MAX: usize = 64;
/// Number of visible rows of a larger chart; the others are behind a summary line.
const VISIBLE_ROWS: usize = 40;
/// The height in pixels beyond which a drawing repeats the axis labels above.
const AXIS_TWICE_PX: f64 = 700.0;
/// Height above the rows for the titles of numbers and limits, and for axis labels if they are repeated.
const TITLES_PX: f64 = 20.0;
const LABELS_PX: f64 = 18.0;

/// Maximum share of the width for names, and the width in pixels that they may take if that is more.
const NAMES_SHARE: f64 = 0.3;
const NAMES_PX: f64 = 110.0;
/// Height of a name above its row.
const NAME_ABOVE_PX: f64 = 16.0;

/// Maximum share of the width for the title of the numbers.
const TITLE_SHARE: f64 = 0.4;

/// Returns the number of rows that are visible at first.
pub(crate) fn visible_rows(rows: usize) -> usize {
    if rows <= ALL_VISIBLE_MAX { rows } else { VISIBLE_ROWS }
}

/// Returns the number of ticks to aim for on a value axis in a drawing of this width.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
pub(crate) fn tick_count(width: f64) -> usize {
    ((width / 110.0) as usize).clamp(3, 8)
}

/// Content that determines the margins of the frame.
#[derive(Debug)]
pub(crate) struct RowFrameNeeds<'a> {
    pub(crate) names: Vec<&'a str>,
    /// Width of the widest number on the right.
    pub(crate) number_px: f64,
    pub(crate) row_px: f64,
    /// The title of the numbers, which may be empty.
    pub(crate) number_title: &'a str,
    pub(crate) width: f64,
}

/// A drawing with rows and a horizontal axis. All lengths are pixels.
#[derive(Debug)]
pub(crate) struct RowFrame {
    pub(crate) axis: ResolvedAxis,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) right: f64,
    row_px: f64,
    /// Height of the names above the rows; zero if they are on the left.
    name_px: f64,
    top: f64,
    bottom: f64,
    number_title: String,
}

impl RowFrame {
    pub(crate) fn new(axis: ResolvedAxis, needs: &RowFrameNeeds<'_>) -> Self {
        let widest = needs.names.iter().map(|n| text_width::width(n)).fold(0.0, f64::max);
        let names_max = (needs.width * NAMES_SHARE).max(NAMES_PX);
        // Shortened names may no longer differ.
        let name_px = if widest > names_max { NAME_ABOVE_PX } else { 0.0 };
        let names_left = if name_px > 0.0 { 0.0 } else { widest + 12.0 };
        let rows_px = (needs.row_px + name_px) * needs.names.len() as f64 + 2.0;
        let top = TITLES_PX + if rows_px > AXIS_TWICE_PX { LABELS_PX } else { 0.0 };
        let bottom = top + rows_px;
        let half = |tick: Option<&Tick>| tick.map_or(0.0, |t| text_width::width(&t.label) / 2.0);
        let first_tick = half(axis.ticks.first());
        let last_tick = half(axis.ticks.last());
        Self {
            left: names_left.max(first_tick),
            right: needs.width
                - (needs.number_px.max(text_width::width(needs.number_title).min(needs.width * TITLE_SHARE))
                    + 14.0)
                    .max(last_tick),
            width: needs.width,
            height: bottom + if axis.title.is_empty() { 24.0 } else { 42.0 },
            row_px: needs.row_px,
            name_px,
            number_title: text_width::fit(needs.number_title, needs.width * TITLE_SHARE),
            top,
            bottom,
            axis,
        }
    }

    /// Returns the horizontal position of a value, limited to the plot.
    pub(crate) fn x_px(&self, value: f64) -> f64 {
        self.left + self.axis.fraction(value).clamp(0.0, 1.0) * (self.right - self.left)
    }

    /// Returns the vertical position of the upper end of a row, below a name above it.
    pub(crate) fn top_of(&self, row: usize) -> f64 {
        self.top + row as f64 * (self.row_px + self.name_px) + self.name_px
    }

    pub(crate) fn write_grid(&self, xml: &mut Xml) {
        for &minor in &self.axis.minor {
            self.write_vertical(xml, "minor", self.x_px(minor));
        }
        for tick in &self.axis.ticks {
            self.write_vertical(xml, "grid", self.x_px(tick.value));
        }
    }

    /// Writes the name of a row, shortened if it is wider than the drawing.
    pub(crate) fn write_name(&self, xml: &mut Xml, row: usize, name: &str) {
        if self.name_px > 0.0 {
            let position = (0.0, self.top_of(row) - 1.0);
            return figure::shortened_name(xml, "name", position, name, self.width);
        }
        let y = self.top_of(row) + self.row_px / 2.0 + 4.0;
        figure::shortened_name(xml, "name end", (self.left - 8.0, y), name, self.left - 12.0);
    }

    /// Writes the number of a row, right of the plot.
    pub(crate) fn write_number(&self, xml: &mut Xml, class: &str, row: usize, number: &str) {
        let y = self.top_of(row) + self.row_px / 2.0 + 4.0;
        xml.text_element(
            "text",
            &[("class", class.into()), ("x", self.width.into()), ("y", y.into())],
            number,
        );
    }

    pub(crate) fn write_axis(&self, xml: &mut Xml) {
        let at = [("class", "end".into()), ("x", self.width.into()), ("y", 11.0.into())];
        xml.text_element("text", &at, &self.number_title);
        self.write_vertical(xml, "axis", self.x_px(self.axis.baseline()));
        self.write_labels(xml, self.bottom + 16.0);
        if self.top > TITLES_PX {
            self.write_labels(xml, self.top - 8.0);
        }
        if !self.axis.title.is_empty() {
            let middle = (self.left + self.right) / 2.0;
            let at = [("class", "title mid".into()), ("x", middle.into()), ("y", (self.height - 6.0).into())];
            xml.text_element("text", &at, &text_width::fit(&self.axis.title, self.width));
        }
    }

    /// Writes a limit with its name across all rows.
    pub(crate) fn write_limit(&self, xml: &mut Xml, value: f64, name: &str) {
        let x = self.x_px(value);
        self.write_vertical(xml, "limit", x);
        let short = text_width::fit(name, self.width / 2.0);
        let free_to = self.width - text_width::width(&self.number_title) - 10.0;
        let start = (x - text_width::width(&short) / 2.0).min(free_to - text_width::width(&short)).max(0.0);
        xml.text_element(
            "text",
            &[("class", "limit-name".into()), ("x", start.into()), ("y", 11.0.into())],
            &short,
        );
    }

    fn write_labels(&self, xml: &mut Xml, y: f64) {
        let extent = |tick: &Tick| {
            let x = self.x_px(tick.value);
            let half = text_width::width(&tick.label) / 2.0;
            (x - half, x + half)
        };
        for tick in self.axis.labelled(extent) {
            let at = [("class", "mid".into()), ("x", self.x_px(tick.value).into()), ("y", y.into())];
            xml.text_element("text", &at, &tick.label);
        }
    }

    fn write_vertical(&self, xml: &mut Xml, class: &str, x: f64) {
        figure::line(xml, class, (x, self.top - 4.0), (x, self.bottom));
    }
}
