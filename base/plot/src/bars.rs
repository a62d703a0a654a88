//! Bar charts: one row of horizontal bars for each name, with one value for each part, grouped or stacked.

use crate::axis::{Axis, AxisEnds, ResolvedAxis};
use crate::data;
use crate::figure::{self, LegendKey};
use crate::row_frame::{RowFrame, RowFrameNeeds, tick_count, visible_rows};
use crate::text_width;
use crate::unit::Unit;
use crate::xml::Xml;

/// Arrangement of the parts of a row: beside each other, or end to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    Grouped,
    Stacked,
}

/// A chart of bars by row and part, such as the load of each server by stage. Of more than 64 rows the 40 with the
/// longest bars are visible at first, the others on demand in the given order.
#[derive(Debug, Clone)]
pub struct Bars {
    title: String,
    axis: Axis,
    parts: Vec<String>,
    rows: Vec<(String, Vec<f64>)>,
    limit: Option<(f64, String)>,
    arrangement: Arrangement,
    note: String,
}

impl Bars {
    /// Creates a chart with the parts of a row beside each other. For parts that do not add up, such as
    /// loads of different resources.
    pub fn grouped(
        title: impl Into<String>,
        (label, unit): (&str, Unit),
        parts: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            title: title.into(),
            axis: Axis::linear(label, unit).zero(),
            parts: parts.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            limit: None,
            arrangement: Arrangement::Grouped,
            note: String::new(),
        }
    }

    /// Creates a chart with the parts of a row end to end, for parts of a whole. The number on the right
    /// is the sum.
    pub fn stacked(
        title: impl Into<String>,
        axis: (&str, Unit),
        parts: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self { arrangement: Arrangement::Stacked, ..Self::grouped(title, axis, parts) }
    }

    /// Appends a row with one value for each part.
    ///
    /// # Panics
    /// When the row does not have one value per part.
    #[must_use]
    pub fn row(mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        assert_eq!(values.len(), self.parts.len(), "a row has one value per part");
        self.rows.push((name.into(), values));
        self
    }

    /// Draws a limit with a name across all rows; numbers beyond it are marked.
    #[must_use]
    pub fn limit(mut self, value: f64, name: impl Into<String>) -> Self {
        self.limit = Some((value, name.into())).filter(|(v, _)| v.is_finite());
        self
    }

    /// Sets the sentence under the chart.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    pub(crate) fn write(&self, xml: &mut Xml, width: f64) {
        let left_out = self.rows.iter().flat_map(|r| &r.1).filter(|v| !self.axis.accepts(**v)).count();
        let left_out =
            if left_out == 0 { String::new() } else { format!("{left_out} not drawn: not finite.") };
        figure::write(xml, &self.title, &self.document(), &[self.note.clone(), left_out], |xml| {
            let keys: Vec<_> =
                self.parts.iter().enumerate().map(|(i, p)| (p.as_str(), LegendKey::Bar(i))).collect();
            if keys.len() > 1 {
                figure::legend(xml, &keys);
            }
            figure::for_screens(xml, width, |xml, width| match self.resolve(width) {
                None => figure::no_data(xml),
                Some(axis) => self.write_rows(xml, &axis, width),
            });
        });
    }

    /// Returns the data for the page's script.
    fn document(&self) -> String {
        let heading = |part: &String| match (part.as_str(), self.axis.label.as_str()) {
            (part, "") => data::csv_heading(part, self.axis.unit),
            ("", label) => data::csv_heading(label, self.axis.unit),
            (part, label) => data::csv_heading(&format!("{part}: {label}"), self.axis.unit),
        };
        let columns: Vec<String> = self.parts.iter().map(heading).collect();
        data::rows_document(&self.title, &columns, self.rows.iter().cloned(), self.parts.len())
    }

    fn resolve(&self, width: f64) -> Option<ResolvedAxis> {
        if self.rows.is_empty() || self.parts.is_empty() {
            return None;
        }
        let ends = self.rows.iter().flat_map(|(_, values)| match self.arrangement {
            Arrangement::Grouped => values.clone(),
            Arrangement::Stacked => stacked_spans(&self.axis, values).iter().map(|s| s.1).collect(),
        });
        let limit = self.limit.iter().map(|l| l.0);
        self.axis.resolve(ends.chain(limit), AxisEnds::Nice, tick_count(width))
    }

    fn write_rows(&self, xml: &mut Xml, axis: &ResolvedAxis, width: f64) {
        let visible = visible_rows(self.rows.len());
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        if visible < order.len() {
            order.sort_by(|&a, &b| self.longest(b).total_cmp(&self.longest(a)));
            order[visible..].sort_unstable();
        }
        self.write_drawing(xml, axis, width, &order[..visible]);
        if visible < order.len() {
            xml.element("details", &[], |xml| {
                xml.text_element("summary", &[], &format!("{} more rows", order.len() - visible));
                self.write_drawing(xml, axis, width, &order[visible..]);
            });
        }
    }

    fn longest(&self, row: usize) -> f64 {
        self.rows[row].1.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max)
    }

    fn write_drawing(&self, xml: &mut Xml, axis: &ResolvedAxis, width: f64, order: &[usize]) {
        let names: Vec<&str> = order.iter().map(|&i| self.rows[i].0.as_str()).collect();
        let number_px = order.iter().map(|&i| text_width::bold_width(&self.number(i).0)).fold(0.0, f64::max);
        let frame = RowFrame::new(
            axis.clone(),
            &RowFrameNeeds {
                names,
                number_px,
                row_px: self.row_px(),
                number_title: self.number_title(),
                width,
            },
        );
        let parts = self.parts.join(", ");
        let limit = self.limit.as_ref().map_or(String::new(), |l| format!(" Limit: {}.", l.1));
        let description = format!("{} rows of bars: {parts}.{limit}", order.len());
        figure::svg(xml, (frame.width, frame.height), &self.title, &description, |xml| {
            frame.write_grid(xml);
            for (index, &row) in order.iter().enumerate() {
                frame.write_name(xml, index, &self.rows[row].0);
                self.write_bars(xml, &frame, index, row);
                let (number, exceeds) = self.number(row);
                frame.write_number(xml, if exceeds { "end bad-value" } else { "end value" }, index, &number);
            }
            frame.write_axis(xml);
            if let Some((value, name)) = &self.limit {
                frame.write_limit(xml, *value, name);
            }
        });
    }

    fn row_px(&self) -> f64 {
        match self.arrangement {
            Arrangement::Stacked => 24.0,
            Arrangement::Grouped => self.bar_px() * self.parts.len() as f64 + 12.0,
        }
    }

    fn bar_px(&self) -> f64 {
        match self.parts.len() {
            0 | 1 => 14.0,
            2 => 10.0,
            _ if self.rows.len() <= 12 => 9.0,
            _ => 7.0,
        }
    }

    fn write_bars(&self, xml: &mut Xml, frame: &RowFrame, index: usize, row: usize) {
        let (name, values) = &self.rows[row];
        let spans = match self.arrangement {
            Arrangement::Stacked => stacked_spans(&self.axis, values),
            Arrangement::Grouped => values.iter().map(|&v| (0.0, v)).collect(),
        };
        for (part, (from, to)) in spans.into_iter().enumerate().filter(|(_, (_, to))| self.axis.accepts(*to))
        {
            let a = frame.x_px(from);
            let b = frame.x_px(to);
            let (top, height) = match self.arrangement {
                Arrangement::Stacked => (frame.top_of(index) + 4.0, 16.0),
                Arrangement::Grouped => {
                    (frame.top_of(index) + 6.0 + part as f64 * self.bar_px(), self.bar_px() - 1.0)
                }
            };
            let tooltip = format!("{name}, {}: {}", self.parts[part], self.axis.unit.format(values[part]));
            xml.element("g", &[("class", figure::slot_class(part).into())], |xml| {
                figure::bar(xml, part, (a.min(b), top, (b - a).abs(), height), &tooltip);
            });
        }
    }

    /// Returns the title of the numbers on the right if their meaning is not evident.
    fn number_title(&self) -> &'static str {
        match self.arrangement {
            _ if self.parts.len() < 2 => "",
            Arrangement::Stacked => "sum",
            Arrangement::Grouped => "largest",
        }
    }

    /// Returns the number on the right (sum of a stack, largest of a group), and true if it is beyond the
    /// limit.
    fn number(&self, row: usize) -> (String, bool) {
        let finite = self.rows[row].1.iter().copied().filter(|v| self.axis.accepts(*v));
        let value = match self.arrangement {
            Arrangement::Stacked => finite.sum(),
            Arrangement::Grouped => finite.reduce(f64::max).unwrap_or(f64::NAN),
        };
        let exceeds = self.limit.as_ref().is_some_and(|(limit, _)| value > *limit);
        let text = format_number(self.axis.unit, value);
        (if exceeds { format!("✕ {text}") } else { text }, exceeds)
    }
}

/// Formats a number beside a bar: percentages with one decimal, other units with their usual digits.
fn format_number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Percent if value.is_finite() && value.abs() < 1e4 => format!("{:.1}%", value * 100.0),
        unit => unit.format(value),
    }
}

/// Returns the start and end of each part of a stack: positive parts to the right of zero, negative ones
/// to the left. Parts that the axis does not accept have zero length.
fn stacked_spans(axis: &Axis, values: &[f64]) -> Vec<(f64, f64)> {
    let mut up = 0.0;
    let mut down = 0.0;
    let mut spans = Vec::new();
    for &value in values {
        let end = if value < 0.0 { &mut down } else { &mut up };
        let from = *end;
        *end += if axis.accepts(value) { value } else { 0.0 };
        spans.push((from, *end));
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_grow_away_from_zero() {
        let axis = Axis::linear("", Unit::Plain);
        assert_eq!(
            stacked_spans(&axis, &[1.0, -2.0, f64::NAN, 3.0]),
            [(0.0, 1.0), (0.0, -2.0), (1.0, 1.0), (1.0, 4.0)]
        );
    }

    #[test]
    fn rows_beyond_the_limit_are_marked() {
        let bars = Bars::grouped("load", ("", Unit::Percent), ["a", "b"])
            .row("x", [0.5, 1.2])
            .limit(1.0, "capacity");
        assert_eq!(bars.number(0), ("✕ 120.0%".to_owned(), true));
    }
}
