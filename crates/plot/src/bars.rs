//! Horizontal bars: one row per name, one value per part, beside each other or stacked.

use crate::axis::{Axis, Ends, Resolved};
use crate::page::figure::{self, Key};
use crate::rows::{Needs, Rows, open_rows};
use crate::text;
use crate::unit::Unit;
use crate::xml::Xml;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    Grouped,
    Stacked,
}

/// Bars by row and part: load of each server by stage. Of more than 64 rows, the 40 with the longest bars stand open,
/// the others behind a fold in the given order.
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
    /// Parts of a row beside each other: parts that do not add up, such as loads of different resources.
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

    /// Parts of a row after each other: parts of a whole. The number on the right is the sum.
    pub fn stacked(
        title: impl Into<String>,
        axis: (&str, Unit),
        parts: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self { arrangement: Arrangement::Stacked, ..Self::grouped(title, axis, parts) }
    }

    /// Appends a row.
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

    /// A named line across all rows; numbers beyond it are marked.
    #[must_use]
    pub fn limit(mut self, value: f64, name: impl Into<String>) -> Self {
        self.limit = Some((value, name.into())).filter(|(v, _)| v.is_finite());
        self
    }

    /// A sentence under the chart.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    pub(crate) fn write(&self, xml: &mut Xml, width: f64) {
        let left_out = self.rows.iter().flat_map(|r| &r.1).filter(|v| !self.axis.accepts(**v)).count();
        let left_out =
            if left_out == 0 { String::new() } else { format!("{left_out} not drawn: not finite.") };
        figure::write(xml, &self.title, &[self.note.clone(), left_out], |xml| {
            let keys: Vec<_> =
                self.parts.iter().enumerate().map(|(i, p)| (p.as_str(), Key::Bar(i))).collect();
            if keys.len() > 1 {
                figure::legend(xml, &keys);
            }
            match self.resolve(width) {
                None => figure::no_data(xml),
                Some(axis) => self.write_rows(xml, &axis, width),
            }
        });
    }

    fn resolve(&self, width: f64) -> Option<Resolved> {
        if self.rows.is_empty() || self.parts.is_empty() {
            return None;
        }
        let ends = self.rows.iter().flat_map(|(_, values)| match self.arrangement {
            Arrangement::Grouped => values.clone(),
            Arrangement::Stacked => spans(&self.axis, values).iter().map(|s| s.1).collect(),
        });
        let limit = self.limit.iter().map(|l| l.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A small positive number.
        let count = ((width / 110.0) as usize).clamp(3, 8);
        self.axis.resolve(ends.chain(limit), Ends::Nice, count)
    }

    fn write_rows(&self, xml: &mut Xml, axis: &Resolved, width: f64) {
        let open = open_rows(self.rows.len());
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        if open < order.len() {
            order.sort_by(|&a, &b| self.longest(b).total_cmp(&self.longest(a)));
            order[open..].sort_unstable();
        }
        self.write_some(xml, axis, width, &order[..open]);
        if open < order.len() {
            xml.within("details", &[], |xml| {
                xml.text("summary", &[], &format!("{} more rows", order.len() - open));
                self.write_some(xml, axis, width, &order[open..]);
            });
        }
    }

    fn longest(&self, row: usize) -> f64 {
        self.rows[row].1.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max)
    }

    fn write_some(&self, xml: &mut Xml, axis: &Resolved, width: f64, order: &[usize]) {
        let names: Vec<&str> = order.iter().map(|&i| self.rows[i].0.as_str()).collect();
        let number_px = order.iter().map(|&i| text::bold_width(&self.number(i).0)).fold(0.0, f64::max);
        let frame = Rows::new(
            axis.clone(),
            &Needs { names, number_px, row_px: self.row_px(), number_title: self.number_title(), width },
        );
        let parts = self.parts.join(", ");
        let limit = self.limit.as_ref().map_or(String::new(), |l| format!(" Limit: {}.", l.1));
        let description = format!("{} rows of bars: {parts}.{limit}", order.len());
        figure::svg(xml, (frame.width, frame.height), &self.title, &description, |xml| {
            frame.write_grid(xml);
            for (place, &row) in order.iter().enumerate() {
                frame.write_name(xml, place, &self.rows[row].0);
                self.write_bars(xml, &frame, place, row);
                let (number, over) = self.number(row);
                frame.write_number(xml, if over { "end bad-value" } else { "end value" }, place, &number);
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

    fn write_bars(&self, xml: &mut Xml, frame: &Rows, place: usize, row: usize) {
        let (name, values) = &self.rows[row];
        let spans = match self.arrangement {
            Arrangement::Stacked => spans(&self.axis, values),
            Arrangement::Grouped => values.iter().map(|&v| (0.0, v)).collect(),
        };
        for (part, (from, to)) in spans.into_iter().enumerate().filter(|(_, (_, to))| self.axis.accepts(*to))
        {
            let (a, b) = (frame.x_px(from), frame.x_px(to));
            let (top, height) = match self.arrangement {
                Arrangement::Stacked => (frame.top_of(place) + 4.0, 16.0),
                Arrangement::Grouped => {
                    (frame.top_of(place) + 6.0 + part as f64 * self.bar_px(), self.bar_px() - 1.0)
                }
            };
            let tooltip = format!("{name}, {}: {}", self.parts[part], self.axis.unit.format(values[part]));
            xml.within("g", &[("class", figure::slot_class(part).into())], |xml| {
                figure::bar(xml, part, (a.min(b), top, (b - a).abs(), height), &tooltip);
            });
        }
    }

    /// What the numbers on the right are, where that is not evident.
    fn number_title(&self) -> &'static str {
        match self.arrangement {
            _ if self.parts.len() < 2 => "",
            Arrangement::Stacked => "sum",
            Arrangement::Grouped => "largest",
        }
    }

    /// The number on the right (sum of a stack, largest of a group) and whether it is beyond the limit.
    fn number(&self, row: usize) -> (String, bool) {
        let finite = self.rows[row].1.iter().copied().filter(|v| self.axis.accepts(*v));
        let value = match self.arrangement {
            Arrangement::Stacked => finite.sum(),
            Arrangement::Grouped => finite.reduce(f64::max).unwrap_or(f64::NAN),
        };
        let over = self.limit.as_ref().is_some_and(|(limit, _)| value > *limit);
        let text = rounded(self.axis.unit, value);
        (if over { format!("✕ {text}") } else { text }, over)
    }
}

/// Numbers beside bars: percentages to a tenth, others as elsewhere.
fn rounded(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Percent if value.is_finite() && value.abs() < 1e4 => format!("{:.1}%", value * 100.0),
        unit => unit.format(value),
    }
}

/// Where each part of a stack starts and ends: positive parts to the right of zero, negative to the left.
/// Parts that cannot be placed take no room.
fn spans(axis: &Axis, values: &[f64]) -> Vec<(f64, f64)> {
    let (mut up, mut down) = (0.0, 0.0);
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
            spans(&axis, &[1.0, -2.0, f64::NAN, 3.0]),
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
