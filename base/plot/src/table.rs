//! Tables with aligned numbers. Clicking a heading sorts the table, where JavaScript runs.

use crate::status::Status;
use crate::unit::Unit;
use crate::xml::Xml;

/// Length in characters above which names are broken into lines: they would push all other columns off a
/// narrow screen.
const LONG_NAME: usize = 16;

/// A column of a table: its heading and alignment.
#[derive(Debug, Clone)]
pub struct Column {
    heading: String,
    alignment: ColumnAlignment,
}

/// Alignment and line breaking of the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnAlignment {
    Words,
    Name,
    Number,
}

impl Column {
    /// Creates a column of text, aligned left.
    pub fn text(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), alignment: ColumnAlignment::Words }
    }

    /// Creates a column of names, aligned left and broken into several lines only if they are long.
    pub fn name(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), alignment: ColumnAlignment::Name }
    }

    /// Creates a column of numbers, aligned right.
    pub fn number(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), alignment: ColumnAlignment::Number }
    }
}

/// A cell of a table: text, the number it sorts by, a status, and the address that it links to.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    sort_key: Option<f64>,
    status: Option<Status>,
    address: Option<String>,
}

impl Cell {
    /// Creates a cell of text, which sorts by its letters.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), sort_key: None, status: None, address: None }
    }

    /// Creates a cell with a number as `unit` writes it, which sorts by value.
    pub fn number(value: f64, unit: Unit) -> Self {
        Self { text: unit.format(value), sort_key: Some(value), status: None, address: None }
    }

    /// Creates a cell of text that sorts by `key` instead of by its letters.
    pub fn keyed(text: impl Into<String>, key: f64) -> Self {
        Self { text: text.into(), sort_key: Some(key), status: None, address: None }
    }

    /// Colours the cell and puts a mark (✓ ! ✕) before its text.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }

    /// Makes the text a link to this address. A page that loads nothing has none; see [`Site`](crate::Site).
    #[must_use]
    pub fn link(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    fn write(&self, xml: &mut Xml, alignment: ColumnAlignment) {
        let class = format!("{} {}", alignment.class(), self.status.map_or("", Status::class));
        let mut attributes = vec![("class", class.trim().into())];
        if let Some(key) = self.sort_key.filter(|k| !k.is_nan()) {
            let key = if key.is_infinite() { "Infinity".to_owned() } else { key.to_string() };
            attributes.push(("data-key", key.into()));
        }
        xml.element("td", &attributes, |xml| {
            if let Some(status) = self.status {
                xml.text_element("span", &[("class", "mark-of".into())], status.mark());
            }
            match &self.address {
                Some(address) => {
                    xml.element("a", &[("href", address.as_str().into())], |xml| {
                        self.write_text(xml, alignment);
                    });
                }
                None => self.write_text(xml, alignment),
            }
        });
    }

    fn write_text(&self, xml: &mut Xml, alignment: ColumnAlignment) {
        match alignment {
            ColumnAlignment::Name if self.text.chars().count() > LONG_NAME => {
                xml.text_element("span", &[("class", "long".into())], &self.text);
            }
            _ => xml.text(&self.text),
        }
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

/// A table of rows with one cell for each column.
#[derive(Debug, Clone)]
pub struct Table {
    caption: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { caption: String::new(), columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Sets the title above the table.
    #[must_use]
    pub fn caption(mut self, text: impl Into<String>) -> Self {
        self.caption = text.into();
        self
    }

    /// Appends a row and returns the table.
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
        xml.element("div", &[("class", "table".into())], |xml| {
            xml.element("table", &[], |xml| {
                if !self.caption.is_empty() {
                    xml.text_element("caption", &[], &self.caption);
                }
                self.write_head(xml);
                xml.element("tbody", &[], |xml| self.rows.iter().for_each(|row| self.write_row(xml, row)));
            });
            if self.rows.is_empty() {
                xml.text_element("p", &[("class", "note".into())], "no data");
            }
        });
    }

    fn write_head(&self, xml: &mut Xml) {
        xml.element("thead", &[], |xml| {
            xml.element("tr", &[], |xml| {
                for column in &self.columns {
                    let class = column.alignment.class();
                    xml.text_element(
                        "th",
                        &[("class", class.into()), ("scope", "col".into())],
                        &column.heading,
                    );
                }
            });
        });
    }

    fn write_row(&self, xml: &mut Xml, row: &[Cell]) {
        xml.element("tr", &[], |xml| {
            for (cell, column) in row.iter().zip(&self.columns) {
                cell.write(xml, column.alignment);
            }
        });
    }
}

impl ColumnAlignment {
    fn class(self) -> &'static str {
        match self {
            Self::Words => "word",
            Self::Name => "name",
            Self::Number => "num",
        }
    }
}
