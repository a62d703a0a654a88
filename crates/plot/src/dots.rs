//! Several values per row against one target: what different models say of the same thing.

use crate::axis::{Axis, Ends, Resolved};
use crate::bullets::write_target;
use crate::page::figure::{self, Key};
use crate::rows::{Needs, Rows, open_rows};
use crate::text;
use crate::xml::Xml;

const ROW_PX: f64 = 22.0;

/// One mark per row and series on a shared axis, and a tick for the row's target: latencies by model and the SLO. A
/// value that is missing, or that the axis cannot show, has no mark. Of more than 64 rows the first 40 stand open.
#[derive(Debug, Clone)]
pub struct Dots {
    title: String,
    axis: Axis,
    series: Vec<String>,
    target: String,
    rows: Vec<Row>,
    note: String,
}

#[derive(Debug, Clone)]
struct Row {
    name: String,
    values: Vec<Option<f64>>,
    target: f64,
}

impl Dots {
    /// Without rows. `target` says what a target is: `"SLO"`.
    pub fn new<S: Into<String>>(
        title: impl Into<String>,
        axis: Axis,
        series: impl IntoIterator<Item = S>,
        target: impl Into<String>,
    ) -> Self {
        Self {
            title: title.into(),
            axis,
            series: series.into_iter().map(Into::into).collect(),
            target: target.into(),
            rows: Vec::new(),
            note: String::new(),
        }
    }

    /// Appends a row with one value per series.
    ///
    /// # Panics
    /// When there are more or fewer values than series.
    #[must_use]
    pub fn row(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = Option<f64>>,
        target: f64,
    ) -> Self {
        let values: Vec<Option<f64>> = values.into_iter().collect();
        assert_eq!(values.len(), self.series.len(), "a row has one value per series");
        self.rows.push(Row { name: name.into(), values, target });
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
            let values =
                self.rows.iter().flat_map(|row| row.values.iter().flatten().copied().chain([row.target]));
            match self.axis.resolve(values, Ends::Nice, 8) {
                None => figure::no_data(xml),
                Some(axis) => self.write_rows(xml, &axis, width),
            }
        });
    }

    fn write_rows(&self, xml: &mut Xml, axis: &Resolved, width: f64) {
        let keys: Vec<(&str, Key)> =
            self.series.iter().enumerate().map(|(slot, name)| (name.as_str(), Key::Mark(slot))).collect();
        figure::legend(xml, &keys);
        let open = open_rows(self.rows.len());
        self.write_some(xml, axis, width, &self.rows[..open]);
        if open < self.rows.len() {
            xml.within("details", &[], |xml| {
                xml.text("summary", &[], &format!("{} more rows", self.rows.len() - open));
                self.write_some(xml, axis, width, &self.rows[open..]);
            });
        }
    }

    fn write_some(&self, xml: &mut Xml, axis: &Resolved, width: f64, rows: &[Row]) {
        let names = rows.iter().map(|row| row.name.as_str()).collect();
        let number_px = rows.iter().map(|row| text::bold_width(&self.number(row))).fold(0.0, f64::max);
        let needs = Needs { names, number_px, row_px: ROW_PX, number_title: &self.target, width };
        let frame = Rows::new(axis.clone(), &needs);
        let description = format!("{} rows: {} against {}.", rows.len(), self.series.join(", "), self.target);
        figure::svg(xml, (frame.width, frame.height), &self.title, &description, |xml| {
            frame.write_grid(xml);
            for (place, row) in rows.iter().enumerate() {
                frame.write_name(xml, place, &row.name);
                self.write_row(xml, &frame, frame.top_of(place) + ROW_PX / 2.0, row);
                frame.write_number(xml, "end value", place, &self.number(row));
            }
            frame.write_axis(xml);
        });
    }

    fn write_row(&self, xml: &mut Xml, frame: &Rows, middle: f64, row: &Row) {
        if self.axis.accepts(row.target) {
            let tooltip = format!("{}: {} {}", row.name, self.target, self.number(row));
            write_target(xml, frame.x_px(row.target), middle, &tooltip);
        }
        for (slot, value) in row.values.iter().enumerate() {
            let Some(value) = value.filter(|value| self.axis.accepts(*value)) else { continue };
            let tooltip = format!("{}, {}: {}", row.name, self.series[slot], self.axis.unit.format(value));
            xml.within("g", &[("class", figure::slot_class(slot).into())], |xml| {
                figure::sized_mark(xml, slot, (frame.x_px(value), middle), 1.3, &tooltip);
            });
        }
    }

    fn number(&self, row: &Row) -> String {
        self.axis.unit.format(row.target)
    }

    fn left_out(&self) -> String {
        let drawn = |value: &Option<f64>| value.is_some_and(|value| self.axis.accepts(value));
        match self.rows.iter().flat_map(|row| &row.values).filter(|value| !drawn(value)).count() {
            0 => String::new(),
            1 => "1 value is missing.".to_owned(),
            count => format!("{count} values are missing."),
        }
    }
}
