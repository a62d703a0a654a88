//! Bullet charts, values against targets: each row has a bar (or a dot on a log axis) for the value and a tick for the
//! target.

use crate::axis::{Axis, AxisEnds, AxisScale, ResolvedAxis};
use crate::data;
use crate::figure;
use crate::row_frame::{RowFrame, RowFrameNeeds, tick_count, visible_rows};
use crate::text_width;
use crate::xml::Xml;

const ROW_PX: f64 = 22.0;
const TARGET_PX: f64 = 14.0;

/// The order of the rows of [`Bullets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// The rows stay in the order in which they were added.
    Given,
    /// The row with the largest ratio of value to target comes first, unbounded values before all others.
    /// Equal rows stay in the order in which they were added.
    TightestFirst,
}

/// A chart with one value and its target in each row, such as a latency bound and its SLO. A target is
/// met when the value does not exceed it. Of more than 64 rows the 40 tightest are visible at first, so
/// that no row that misses its target is hidden behind one that meets it.
#[derive(Debug, Clone)]
pub struct Bullets {
    title: String,
    axis: Axis,
    /// Name of a value in labels.
    value_name: String,
    /// Name of a target in labels.
    target_name: String,
    rows: Vec<BulletRow>,
    order: RowOrder,
    note: String,
}

#[derive(Debug, Clone)]
struct BulletRow {
    name: String,
    value: f64,
    target: f64,
}

impl BulletRow {
    /// Returns the ratio of value to target; unbounded and unknown values are the tightest.
    fn tightness(&self) -> f64 {
        let ratio = self.value / self.target;
        if ratio.is_nan() { f64::INFINITY } else { ratio }
    }

    /// Returns true if the target is met; an unknown value does not meet it.
    fn is_met(&self) -> bool {
        self.value <= self.target
    }
}

impl Bullets {
    /// Creates a chart without rows. The names of value and target, such as `("bound", "SLO")`, appear in
    /// labels. Values are bars from zero on a linear axis, and dots on a log axis.
    pub fn new(title: impl Into<String>, axis: Axis, (value, target): (&str, &str)) -> Self {
        let axis = if axis.scale == AxisScale::Linear { axis.zero() } else { axis };
        Self {
            title: title.into(),
            axis,
            value_name: value.to_owned(),
            target_name: target.to_owned(),
            rows: Vec::new(),
            order: RowOrder::Given,
            note: String::new(),
        }
    }

    /// Appends a row. An infinite value is shown as unbounded.
    #[must_use]
    pub fn row(mut self, name: impl Into<String>, value: f64, target: f64) -> Self {
        self.rows.push(BulletRow { name: name.into(), value, target });
        self
    }

    /// Sets the order of rows.
    #[must_use]
    pub fn order(mut self, order: RowOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the sentence under the chart.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    pub(crate) fn write(&self, xml: &mut Xml, width: f64) {
        figure::write(
            xml,
            &self.title,
            &self.document(),
            &[self.note.clone(), self.note_on_omissions()],
            |xml| {
                figure::for_screens(xml, width, |xml, width| {
                    let values = self.rows.iter().flat_map(|r| [r.value, r.target]);
                    match self.axis.resolve(values, AxisEnds::Nice, tick_count(width)) {
                        None => figure::no_data(xml),
                        Some(axis) => self.write_rows(xml, &axis, width),
                    }
                });
            },
        );
    }

    /// Returns the data for the page's script, in the order in which rows were added.
    fn document(&self) -> String {
        let names = [&self.value_name, &self.target_name];
        let columns = names.map(|name| data::csv_heading(name, self.axis.unit));
        let rows = self.rows.iter().map(|row| (row.name.clone(), vec![row.value, row.target]));
        data::rows_document(&self.title, &columns, rows, 0)
    }

    fn write_rows(&self, xml: &mut Xml, axis: &ResolvedAxis, width: f64) {
        self.write_legend(xml);
        let visible = visible_rows(self.rows.len());
        let mut order: Vec<&BulletRow> = self.rows.iter().collect();
        if self.order == RowOrder::TightestFirst || visible < order.len() {
            order.sort_by(|a, b| b.tightness().total_cmp(&a.tightness()));
        }
        self.write_drawing(xml, axis, width, &order[..visible]);
        if visible < order.len() {
            xml.element("details", &[], |xml| {
                xml.text_element("summary", &[], &format!("{} more rows, less tight", order.len() - visible));
                self.write_drawing(xml, axis, width, &order[visible..]);
            });
        }
    }

    fn write_legend(&self, xml: &mut Xml) {
        let missed = self.rows.iter().filter(|r| !r.is_met()).count();
        xml.element("ul", &[("class", "legend".into())], |xml| {
            xml.element("li", &[], |xml| {
                write_sample(xml, |xml| self.write_value(xml, "s0", (2.0, 18.0), 6.0));
                xml.text(&self.value_name);
            });
            if missed > 0 {
                xml.element("li", &[], |xml| {
                    write_sample(xml, |xml| self.write_value(xml, "over", (2.0, 18.0), 6.0));
                    xml.text(&format!(
                        "✕ {} above {}: {missed} of {}",
                        self.value_name,
                        self.target_name,
                        self.rows.len()
                    ));
                });
            }
            xml.element("li", &[], |xml| {
                write_sample(xml, |xml| figure::target(xml, (13.0, 6.0), TARGET_PX, ""));
                xml.text(&self.target_name);
            });
        });
    }

    fn write_drawing(&self, xml: &mut Xml, axis: &ResolvedAxis, width: f64, rows: &[&BulletRow]) {
        let names = rows.iter().map(|r| r.name.as_str()).collect();
        let number_px =
            rows.iter().map(|r| text_width::bold_width(&self.value_and_target(r))).fold(0.0, f64::max);
        let title = format!("{} / {}", self.value_name, self.target_name);
        let frame = RowFrame::new(
            axis.clone(),
            &RowFrameNeeds { names, number_px, row_px: ROW_PX, number_title: &title, width },
        );
        let missed = rows.iter().filter(|r| !r.is_met()).count();
        let value = &self.value_name;
        let target = &self.target_name;
        let description = format!("{} rows: {value} against {target}. {missed} above {target}.", rows.len());
        figure::svg(xml, (frame.width, frame.height), &self.title, &description, |xml| {
            frame.write_grid(xml);
            for (index, row) in rows.iter().enumerate() {
                frame.write_name(xml, index, &row.name);
                self.write_row(xml, &frame, index, row);
                let class = if row.is_met() { "end value" } else { "end bad-value" };
                frame.write_number(xml, class, index, &self.value_and_target(row));
            }
            frame.write_axis(xml);
        });
    }

    fn write_row(&self, xml: &mut Xml, frame: &RowFrame, index: usize, row: &BulletRow) {
        let middle = frame.top_of(index) + ROW_PX / 2.0;
        let class = if row.is_met() { "s0" } else { "over" };
        let end = match row.value {
            v if self.axis.accepts(v) => Some(frame.x_px(v)),
            f64::INFINITY => Some(frame.right),
            _ => None,
        };
        let tooltip = format!("{}: {}", row.name, self.value_and_target(row));
        xml.element("g", &[("class", class.into())], |xml| {
            xml.text_element("title", &[], &tooltip);
            if let Some(end) = end {
                let start = frame.x_px(frame.axis.baseline());
                self.write_value(xml, class, (start.min(end), start.max(end)), middle);
            }
            if self.axis.accepts(row.target) {
                figure::target(xml, (frame.x_px(row.target), middle), TARGET_PX, "");
            }
        });
    }

    /// Writes a bar on a linear axis, and a dot on a stem on a log axis, where the length of a bar has no meaning.
    fn write_value(&self, xml: &mut Xml, class: &str, (from, to): (f64, f64), y: f64) {
        xml.element("g", &[("class", class.into())], |xml| match self.axis.scale {
            AxisScale::Linear => figure::bar(xml, 0, (from, y - 4.0, to - from, 8.0), ""),
            AxisScale::Log => {
                figure::line(xml, "stem", (from, y), (to, y));
                xml.shape(
                    "circle",
                    &[("class", "mark".into()), ("cx", to.into()), ("cy", y.into()), ("r", 4.5.into())],
                    "",
                );
            }
        });
    }

    /// Formats the value and the target.
    fn value_and_target(&self, row: &BulletRow) -> String {
        let mark = if row.is_met() { "" } else { "✕ " };
        format!("{mark}{} / {}", self.format(row.value), self.format(row.target))
    }

    fn format(&self, value: f64) -> String {
        if value == f64::INFINITY { "unbounded".to_owned() } else { self.axis.unit.format(value) }
    }

    /// Returns true if the axis accepts the value, or it is shown as unbounded.
    fn can_show(&self, value: f64) -> bool {
        self.axis.accepts(value) || value == f64::INFINITY
    }

    /// Returns a sentence with the number of rows that cannot be drawn completely; empty if there are
    /// none.
    fn note_on_omissions(&self) -> String {
        match self.rows.iter().filter(|r| !self.can_show(r.value) || !self.can_show(r.target)).count() {
            0 => String::new(),
            count => format!("{count} rows have values that cannot be drawn on this axis."),
        }
    }
}

/// Writes a sample of the legend.
fn write_sample(xml: &mut Xml, content: impl FnOnce(&mut Xml)) {
    let attributes = [
        ("viewBox", "0 -2 26 16".into()),
        ("width", 26.0.into()),
        ("height", 16.0.into()),
        ("aria-hidden", "true".into()),
    ];
    xml.element("svg", &attributes, content);
}
