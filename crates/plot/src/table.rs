//! Tables with aligned numbers, sorted by clicking a heading where JavaScript runs.

use crate::status::Status;
use crate::unit::Unit;
use crate::xml::Xml;

/// A heading and how its column is set.
#[derive(Debug, Clone)]
pub struct Column {
    heading: String,
    setting: Setting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    Words,
    Name,
    Number,
}

impl Column {
    /// A column of words, set left.
    pub fn text(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), setting: Setting::Words }
    }

    /// A column of short names, set left and never broken over lines.
    pub fn name(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), setting: Setting::Name }
    }

    /// A column of numbers, set right.
    pub fn number(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), setting: Setting::Number }
    }
}

/// Text in a table, with what it sorts by and what it means.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    key: Option<f64>,
    status: Option<Status>,
}

impl Cell {
    /// Words; sorted as words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), key: None, status: None }
    }

    /// A number as `unit` writes it, sorted by value.
    pub fn number(value: f64, unit: Unit) -> Self {
        Self { text: unit.format(value), key: Some(value), status: None }
    }

    /// Text sorted by `key` instead of by its letters.
    pub fn keyed(text: impl Into<String>, key: f64) -> Self {
        Self { text: text.into(), key: Some(key), status: None }
    }

    /// Colours the cell and puts a mark (✓ ! ✕) before its text.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }

    fn write(&self, xml: &mut Xml, setting: Setting) {
        let class = format!("{} {}", setting.class(), self.status.map_or("", Status::class));
        let mut attributes = vec![("class", class.trim().into())];
        if let Some(key) = self.key.filter(|k| !k.is_nan()) {
            let key = if key.is_infinite() { "Infinity".to_owned() } else { key.to_string() };
            attributes.push(("data-key", key.into()));
        }
        xml.within("td", &attributes, |xml| {
            if let Some(status) = self.status {
                xml.text("span", &[("class", "mark-of".into())], status.mark());
            }
            xml.words(&self.text);
        });
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    caption: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { caption: String::new(), columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// A title above the table.
    #[must_use]
    pub fn caption(mut self, text: impl Into<String>) -> Self {
        self.caption = text.into();
        self
    }

    /// Appends a row.
    ///
    /// # Panics
    /// When the row does not have one cell per column.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.push(cells);
        self
    }

    /// Appends a row in place.
    ///
    /// # Panics
    /// When the row does not have one cell per column.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let row: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(row.len(), self.columns.len(), "a row has one cell per column");
        self.rows.push(row);
    }

    pub(crate) fn write(&self, xml: &mut Xml) {
        xml.within("div", &[("class", "table".into())], |xml| {
            xml.within("table", &[], |xml| {
                if !self.caption.is_empty() {
                    xml.text("caption", &[], &self.caption);
                }
                self.write_head(xml);
                xml.within("tbody", &[], |xml| self.rows.iter().for_each(|row| self.write_row(xml, row)));
            });
            if self.rows.is_empty() {
                xml.text("p", &[("class", "note".into())], "no data");
            }
        });
    }

    fn write_head(&self, xml: &mut Xml) {
        xml.within("thead", &[], |xml| {
            xml.within("tr", &[], |xml| {
                for column in &self.columns {
                    let class = column.setting.class();
                    xml.text("th", &[("class", class.into()), ("scope", "col".into())], &column.heading);
                }
            });
        });
    }

    fn write_row(&self, xml: &mut Xml, row: &[Cell]) {
        xml.within("tr", &[], |xml| {
            for (cell, column) in row.iter().zip(&self.columns) {
                cell.write(xml, column.setting);
            }
        });
    }
}

impl Setting {
    fn class(self) -> &'static str {
        match self {
            Self::Words => "word",
            Self::Name => "name",
            Self::Number => "num",
        }
    }
}
