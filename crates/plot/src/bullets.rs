//! Values against targets: per row a bar (or a dot on a log axis) for the value and a tick for the target.

use crate::axis::{Axis, Ends, Resolved, Scale};
use crate::page::figure;
use crate::rows::{Needs, Rows, open_rows};
use crate::text;
use crate::xml::Xml;

const ROW_PX: f64 = 22.0;

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were added.
    Given,
    /// Largest value per target first; unbounded before all; ties as added.
    TightestFirst,
}

/// One value with its target per row: a latency bound and its SLO. A value is met when it does not exceed its target.
/// Of more than 64 rows, the 40 tightest stand open, the others behind a fold, so that none that misses its target
/// hides behind one that meets it.
#[derive(Debug, Clone)]
pub struct Bullets {
    title: String,
    axis: Axis,
    words: (String, String),
    rows: Vec<Row>,
    order: Order,
    note: String,
}

#[derive(Debug, Clone)]
struct Row {
    name: String,
    value: f64,
    target: f64,
}

impl Row {
    /// Value per target; unbounded and unknown values are the tightest.
    fn tightness(&self) -> f64 {
        let ratio = self.value / self.target;
        if ratio.is_nan() { f64::INFINITY } else { ratio }
    }

    /// Unknown values are not met.
    fn is_met(&self) -> bool {
        self.value <= self.target
    }
}

impl Bullets {
    /// Without rows. `words` say what a value and a target are: `("bound", "SLO")`. On a linear axis values are bars
    /// from zero, on a log axis dots.
    pub fn new(title: impl Into<String>, axis: Axis, (value, target): (&str, &str)) -> Self {
        let axis = if axis.scale == Scale::Linear { axis.zero() } else { axis };
        let words = (value.to_owned(), target.to_owned());
        Self { title: title.into(), axis, words, rows: Vec::new(), order: Order::Given, note: String::new() }
    }

    /// Appends a row. An infinite value is shown as unbounded.
    #[must_use]
    pub fn row(mut self, name: impl Into<String>, value: f64, target: f64) -> Self {
        self.rows.push(Row { name: name.into(), value, target });
        self
    }

    /// Sets the order of rows.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// A sentence under the chart.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    pub(crate) fn write(&self, xml: &mut Xml, width: f64) {
        figure::write(xml, &self.title, &[self.note.clone(), self.left_out()], |xml| {
            let values = self.rows.iter().flat_map(|r| [r.value, r.target]);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A small positive number.
            let count = ((width / 110.0) as usize).clamp(3, 8);
            match self.axis.resolve(values, Ends::Nice, count) {
                None => figure::no_data(xml),
                Some(axis) => self.write_rows(xml, &axis, width),
            }
        });
    }

    fn write_rows(&self, xml: &mut Xml, axis: &Resolved, width: f64) {
        self.write_legend(xml);
        let open = open_rows(self.rows.len());
        let mut order: Vec<&Row> = self.rows.iter().collect();
        if self.order == Order::TightestFirst || open < order.len() {
            order.sort_by(|a, b| b.tightness().total_cmp(&a.tightness()));
        }
        self.write_some(xml, axis, width, &order[..open]);
        if open < order.len() {
            xml.within("details", &[], |xml| {
                xml.text("summary", &[], &format!("{} more rows, less tight", order.len() - open));
                self.write_some(xml, axis, width, &order[open..]);
            });
        }
    }

    fn write_legend(&self, xml: &mut Xml) {
        let missed = self.rows.iter().filter(|r| !r.is_met()).count();
        xml.within("ul", &[("class", "legend".into())], |xml| {
            xml.within("li", &[], |xml| {
                write_key(xml, |xml| self.write_value(xml, "s0", (2.0, 18.0), 6.0));
                xml.words(&self.words.0);
            });
            if missed > 0 {
                xml.within("li", &[], |xml| {
                    write_key(xml, |xml| self.write_value(xml, "over", (2.0, 18.0), 6.0));
                    xml.words(&format!(
                        "✕ {} above {}: {missed} of {}",
                        self.words.0,
                        self.words.1,
                        self.rows.len()
                    ));
                });
            }
            xml.within("li", &[], |xml| {
                write_key(xml, |xml| write_target(xml, 13.0, 6.0, ""));
                xml.words(&self.words.1);
            });
        });
    }

    fn write_some(&self, xml: &mut Xml, axis: &Resolved, width: f64, rows: &[&Row]) {
        let names = rows.iter().map(|r| r.name.as_str()).collect();
        let number_px = rows.iter().map(|r| text::bold_width(&self.number(r))).fold(0.0, f64::max);
        let title = format!("{} / {}", self.words.0, self.words.1);
        let frame =
            Rows::new(axis.clone(), &Needs { names, number_px, row_px: ROW_PX, number_title: &title, width });
        let missed = rows.iter().filter(|r| !r.is_met()).count();
        let (value, target) = &self.words;
        let description = format!("{} rows: {value} against {target}. {missed} above {target}.", rows.len());
        figure::svg(xml, (frame.width, frame.height), &self.title, &description, |xml| {
            frame.write_grid(xml);
            for (place, row) in rows.iter().enumerate() {
                frame.write_name(xml, place, &row.name);
                self.write_row(xml, &frame, place, row);
                let class = if row.is_met() { "end value" } else { "end bad-value" };
                frame.write_number(xml, class, place, &self.number(row));
            }
            frame.write_axis(xml);
        });
    }

    fn write_row(&self, xml: &mut Xml, frame: &Rows, place: usize, row: &Row) {
        let middle = frame.top_of(place) + ROW_PX / 2.0;
        let class = if row.is_met() { "s0" } else { "over" };
        let end = match row.value {
            v if self.axis.accepts(v) => Some(frame.x_px(v)),
            f64::INFINITY => Some(frame.right),
            _ => None,
        };
        let tooltip = format!("{}: {}", row.name, self.number(row));
        xml.within("g", &[("class", class.into())], |xml| {
            xml.text("title", &[], &tooltip);
            if let Some(end) = end {
                let start = frame.x_px(frame.axis.baseline());
                self.write_value(xml, class, (start.min(end), start.max(end)), middle);
            }
            if self.axis.accepts(row.target) {
                write_target(xml, frame.x_px(row.target), middle, "");
            }
        });
    }

    /// A bar on a linear axis, a dot on a stem on a log axis, where the length of a bar means nothing.
    fn write_value(&self, xml: &mut Xml, class: &str, (from, to): (f64, f64), y: f64) {
        xml.within("g", &[("class", class.into())], |xml| match self.axis.scale {
            Scale::Linear => figure::bar(xml, 0, (from, y - 4.0, to - from, 8.0), ""),
            Scale::Log => {
                crate::chart::frame_line(xml, "stem", (from, y), (to, y));
                xml.shape(
                    "circle",
                    &[("class", "mark".into()), ("cx", to.into()), ("cy", y.into()), ("r", 4.5.into())],
                    "",
                );
            }
        });
    }

    /// Value and target in words.
    fn number(&self, row: &Row) -> String {
        let word =
            |v: f64| if v == f64::INFINITY { "unbounded".to_owned() } else { self.axis.unit.format(v) };
        let mark = if row.is_met() { "" } else { "✕ " };
        format!("{mark}{} / {}", word(row.value), word(row.target))
    }

    fn left_out(&self) -> String {
        let drawn = |v: f64| self.axis.accepts(v) || v == f64::INFINITY;
        match self.rows.iter().filter(|r| !drawn(r.value) || !drawn(r.target)).count() {
            0 => String::new(),
            count => format!("{count} rows have values that cannot be drawn on this axis."),
        }
    }
}

/// The tick that stands for a target.
pub(crate) fn write_target(xml: &mut Xml, x: f64, y: f64, tooltip: &str) {
    let attributes = [("class", "bar-target".into()), ("x", (x - 1.25).into()), ("y", (y - 7.0).into())];
    let [a, b, c] = attributes;
    xml.shape("rect", &[a, b, c, ("width", 2.5.into()), ("height", 14.0.into())], tooltip);
}

fn write_key(xml: &mut Xml, content: impl FnOnce(&mut Xml)) {
    let attributes = [
        ("viewBox", "0 -2 26 16".into()),
        ("width", 26.0.into()),
        ("height", 16.0.into()),
        ("aria-hidden", "true".into()),
    ];
    xml.within("svg", &attributes, content);
}
