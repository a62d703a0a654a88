//! Dot plots, several values in each row against one target: for example predictions of different models.

use crate::axis::{Axis, AxisEnds, ResolvedAxis};
use crate::data;
use crate::figure::{self, LegendKey};
use crate::row_frame::{RowFrame, RowFrameNeeds, tick_count, visible_rows};
use crate::text_width;
use crate::xml::Xml;

const ROW_PX: f64 = 22.0;
const TARGET_PX: f64 = 14.0;

/// A chart with one mark for each row and series on a shared axis, and a tick for the row's target, such
/// as latencies by model and the SLO. A value that is missing or not accepted by the axis has no mark. Of
/// more than 64 rows the first 40 are visible at first.
#[derive(Debug, Clone)]
pub struct Dots {
    title: String,
    axis: Axis,
    series: Vec<String>,
    /// Name of a target in labels.
    target_name: String,
    rows: Vec<DotRow>,
    note: String,
    /// Sentence about missing values, in place of one that counts them.
    missing: Option<String>,
}

#[derive(Debug, Clone)]
struct DotRow {
    name: String,
    values: Vec<Option<f64>>,
    target: f64,
}

impl Dots {
    /// Creates a chart without rows. `target` names a target in labels, such as `"SLO"`.
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
            target_name: target.into(),
            rows: Vec::new(),
            note: String::new(),
            missing: None,
        }
    }

    /// Appends a row with one value for each series.
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
        self.rows.push(DotRow { name: name.into(), values, target });
        self
    }

    /// Sets the sentence under the chart.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Sets the sentence about missing values, in place of one that counts them. It may be empty.
    #[must_use]
    pub fn missing(mut self, sentence: impl Into<String>) -> Self {
        self.missing = Some(sentence.into());
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
                    let values = self
                        .rows
                        .iter()
                        .flat_map(|row| row.values.iter().flatten().copied().chain([row.target]));
                    match self.axis.resolve(values, AxisEnds::Nice, tick_count(width)) {
                        None => figure::no_data(xml),
                        Some(axis) => self.write_rows(xml, &axis, width),
                    }
                });
            },
        );
    }

    /// Returns the data for the page's script.
    fn document(&self) -> String {
        let names = self.series.iter().chain([&self.target_name]);
        let columns: Vec<String> = names.map(|name| data::csv_heading(name, self.axis.unit)).collect();
        let rows = self.rows.iter().map(|row| {
            let values = row.values.iter().map(|value| value.unwrap_or(f64::NAN)).chain([row.target]);
            (row.name.clone(), values.collect())
        });
        data::rows_document(&self.title, &columns, rows, self.series.len())
    }

    fn write_rows(&self, xml: &mut Xml, axis: &ResolvedAxis, width: f64) {
        let keys: Vec<(&str, LegendKey)> = self
            .series
            .iter()
            .enumerate()
            .map(|(slot, name)| (name.as_str(), LegendKey::Mark(slot)))
            .chain([(self.target_name.as_str(), LegendKey::Target)])
            .collect();
        figure::legend(xml, &keys);
        let visible = visible_rows(self.rows.len());
        self.write_drawing(xml, axis, width, &self.rows[..visible]);
        if visible < self.rows.len() {
            xml.element("details", &[], |xml| {
                xml.text_element("summary", &[], &format!("{} more rows", self.rows.len() - visible));
                self.write_drawing(xml, axis, width, &self.rows[visible..]);
            });
        }
    }

    fn write_drawing(&self, xml: &mut Xml, axis: &ResolvedAxis, width: f64, rows: &[DotRow]) {
        let names = rows.iter().map(|row| row.name.as_str()).collect();
        let number_px =
            rows.iter().map(|row| text_width::bold_width(&self.target_text(row))).fold(0.0, f64::max);
        let needs =
            RowFrameNeeds { names, number_px, row_px: ROW_PX, number_title: &self.target_name, width };
        let frame = RowFrame::new(axis.clone(), &needs);
        let description =
            format!("{} rows: {} against {}.", rows.len(), self.series.join(", "), self.target_name);
        figure::svg(xml, (frame.width, frame.height), &self.title, &description, |xml| {
            frame.write_grid(xml);
            for (index, row) in rows.iter().enumerate() {
                frame.write_name(xml, index, &row.name);
                self.write_row(xml, &frame, frame.top_of(index) + ROW_PX / 2.0, row);
                frame.write_number(xml, "end value", index, &self.target_text(row));
            }
            frame.write_axis(xml);
        });
    }

    fn write_row(&self, xml: &mut Xml, frame: &RowFrame, middle: f64, row: &DotRow) {
        if self.axis.accepts(row.target) {
            let tooltip = format!("{}: {} {}", row.name, self.target_name, self.target_text(row));
            figure::target(xml, (frame.x_px(row.target), middle), TARGET_PX, &tooltip);
        }
        for (slot, value) in row.values.iter().enumerate() {
            let Some(value) = value.filter(|value| self.axis.accepts(*value)) else { continue };
            let tooltip = format!("{}, {}: {}", row.name, self.series[slot], self.axis.unit.format(value));
            xml.element("g", &[("class", figure::slot_class(slot).into())], |xml| {
                figure::sized_mark(xml, slot, (frame.x_px(value), middle), 1.3, &tooltip);
            });
        }
    }

    fn target_text(&self, row: &DotRow) -> String {
        self.axis.unit.format(row.target)
    }

    /// Returns the sentence about missing values, or one with the number of values without a mark; empty
    /// if there are none.
    fn note_on_omissions(&self) -> String {
        if let Some(sentence) = &self.missing {
            return sentence.clone();
        }
        let values = self.rows.iter().flat_map(|row| &row.values);
        match values.filter(|value| !value.is_some_and(|value| self.axis.accepts(value))).count() {
            0 => String::new(),
            1 => "1 value has no point: it is unknown, infinite or off the scale.".to_owned(),
            count => format!("{count} values have no point: they are unknown, infinite or off the scale."),
        }
    }
}
