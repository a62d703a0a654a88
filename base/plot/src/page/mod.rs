//! A report page: a title, a lead sentence and sections of blocks, as one HTML document.

mod charts;
#[cfg(test)]
mod charts_browser;
mod site;
mod style;

pub use site::{Form, Link, Site};

use crate::bars::Bars;
use crate::bullets::Bullets;
use crate::chart::Chart;
use crate::dots::Dots;
use crate::figure;
use crate::status::Status;
use crate::table::Table;
use crate::xml::Xml;

/// The width of the page's text column in pixels.
const COLUMN_PX: f64 = 960.0;
/// The gap between charts beside each other in pixels.
const GAP_PX: f64 = 28.0;
/// Minimum number of sections with a heading for a list of contents.
const LISTED_MIN: usize = 3;

/// A number that answers the reader's first question: a value in large type over a label.
#[derive(Debug, Clone)]
pub struct KeyFigure {
    value: String,
    label: String,
    status: Option<Status>,
}

impl KeyFigure {
    /// Creates a key figure from a value and its meaning: `("6", "servers used")`.
    pub fn new(value: impl Into<String>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into(), status: None }
    }

    /// Sets the colour and mark of the value's status.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }
}

/// A piece of a section. Charts and tables convert with `into()`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Block {
    /// A paragraph of text; text between backticks is in a fixed-width font.
    Paragraph(String),
    /// Text in a fixed-width font with its line breaks, such as a derivation or a configuration.
    Preformatted(String),
    /// Numbers in large type beside each other.
    KeyFigures(Vec<KeyFigure>),
    /// A table of text and numbers.
    Table(Table),
    /// A chart of two numeric axes.
    Chart(Chart),
    /// A chart of horizontal bars.
    Bars(Bars),
    /// A chart of values against their targets.
    Bullets(Bullets),
    /// A chart of several values in each row against one target.
    Dots(Dots),
    /// Small multiples: blocks beside each other, in rows of `columns`.
    Grid {
        /// The number of blocks in a row, at least one.
        columns: usize,
        /// The blocks in reading order.
        blocks: Vec<Block>,
    },
    /// A form that sends fields to the service of the page.
    Form(Form),
    /// Links to other pages, in a row.
    Links(Vec<Link>),
    /// Blocks that are hidden until the reader opens the summary line above them.
    Fold {
        /// Summary line, which describes the blocks.
        summary: String,
        /// The hidden blocks in reading order.
        blocks: Vec<Block>,
    },
}

impl Block {
    /// Creates a paragraph of text.
    pub fn paragraph(text: impl Into<String>) -> Self {
        Self::Paragraph(text.into())
    }

    /// Creates small multiples in rows of `columns` (1 to 4).
    pub fn grid(columns: usize, blocks: impl IntoIterator<Item = Self>) -> Self {
        Self::Grid { columns, blocks: blocks.into_iter().collect() }
    }

    /// Creates blocks that are hidden behind a summary line.
    pub fn fold(summary: impl Into<String>, blocks: impl IntoIterator<Item = Self>) -> Self {
        Self::Fold { summary: summary.into(), blocks: blocks.into_iter().collect() }
    }

    /// Returns true if the block is or contains a chart.
    fn has_chart(&self) -> bool {
        match self {
            Self::Chart(_) | Self::Bars(_) | Self::Bullets(_) | Self::Dots(_) => true,
            Self::Grid { blocks, .. } | Self::Fold { blocks, .. } => blocks.iter().any(Self::has_chart),
            _ => false,
        }
    }

    /// Writes the block as an HTML fragment, `width` pixels wide if there is room. It needs the page's styles.
    fn write(&self, xml: &mut Xml, width: f64) {
        match self {
            Self::Paragraph(text) => write_paragraph(xml, text),
            Self::Preformatted(text) => xml.text_element("pre", &[], text),
            Self::KeyFigures(key_figures) => write_key_figures(xml, key_figures),
            Self::Table(table) => table.write(xml),
            Self::Chart(chart) => chart.write(xml, width),
            Self::Bars(bars) => bars.write(xml, width),
            Self::Bullets(bullets) => bullets.write(xml, width),
            Self::Dots(dots) => dots.write(xml, width),
            Self::Form(form) => form.write(xml),
            Self::Links(links) => site::write_links(xml, links, "More pages"),
            Self::Grid { columns, blocks } => write_grid(xml, (*columns).clamp(1, 4), blocks, width),
            Self::Fold { summary, blocks } => xml.element("details", &[], |xml| {
                xml.text_element("summary", &[], summary);
                blocks.iter().for_each(|block| block.write(xml, width));
            }),
        }
    }
}

macro_rules! block_from {
    ($($kind:ident),*) => {$(
        impl From<$kind> for Block {
            fn from(block: $kind) -> Self {
                Self::$kind(block)
            }
        }
    )*};
}
block_from!(Table, Chart, Bars, Bullets, Dots, Form);

impl From<Vec<KeyFigure>> for Block {
    fn from(key_figures: Vec<KeyFigure>) -> Self {
        Self::KeyFigures(key_figures)
    }
}

fn write_paragraph(xml: &mut Xml, text: &str) {
    xml.element("p", &[], |xml| {
        let mut rest = text;
        while let Some((before, (code, after))) =
            rest.split_once('`').and_then(|(before, after)| Some((before, after.split_once('`')?)))
        {
            xml.text(before);
            xml.text_element("code", &[], code);
            rest = after;
        }
        xml.text(rest);
    });
}

fn write_key_figures(xml: &mut Xml, key_figures: &[KeyFigure]) {
    xml.element("dl", &[("class", "facts".into())], |xml| {
        for fact in key_figures {
            xml.element("div", &[("class", fact.status.map_or("", Status::class).into())], |xml| {
                xml.text_element("dt", &[], &fact.label);
                let mark = fact.status.map_or(String::new(), |s| format!("{} ", s.mark()));
                xml.text_element("dd", &[], &format!("{mark}{}", fact.value));
            });
        }
    });
}

fn write_grid(xml: &mut Xml, columns: usize, blocks: &[Block], width: f64) {
    let cell = ((width - GAP_PX * (columns - 1) as f64) / columns as f64).floor();
    let class = format!("grid-of grid-{columns}");
    xml.element("div", &[("class", class.into())], |xml| {
        for block in blocks {
            xml.element("div", &[], |xml| block.write(xml, cell));
        }
    });
}

/// A part of a page under a heading.
#[derive(Debug, Clone)]
struct Section {
    heading: String,
    blocks: Vec<Block>,
}

/// Returns the name of a section in links.
fn section_id(number: usize) -> String {
    format!("section-{number}")
}

/// A report page, to be written as one HTML document.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<Section>,
    footer: Vec<String>,
}

impl Page {
    /// Creates a page with a title and without content.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), lead: String::new(), sections: Vec::new(), footer: Vec::new() }
    }

    /// Sets the sentence under the title, which states the answer.
    #[must_use]
    pub fn lead(mut self, text: impl Into<String>) -> Self {
        self.lead = text.into();
        self
    }

    /// Appends a section; an empty heading is left out.
    #[must_use]
    pub fn section(mut self, heading: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        self.sections.push(Section { heading: heading.into(), blocks: blocks.into_iter().collect() });
        self
    }

    /// Appends a line to the small print, about the program, its input and its seed.
    #[must_use]
    pub fn footer(mut self, text: impl Into<String>) -> Self {
        self.footer.push(text.into());
        self
    }

    /// Writes the whole document.
    pub fn to_html(&self) -> String {
        let mut xml = Xml::default();
        xml.markup("<!DOCTYPE html>\n");
        xml.element("html", &[("lang", "en".into())], |xml| {
            xml.element("head", &[], |xml| {
                xml.markup(style::HEAD);
                xml.text_element("title", &[], &self.title);
                xml.element("style", &[], |xml| {
                    xml.markup(style::CSS);
                    xml.markup(if self.has_chart() { charts::CSS } else { "" });
                });
            });
            xml.element("body", &[], |xml| {
                xml.markup(figure::TEXTURES);
                xml.element("main", &[], |xml| self.write_main(xml));
                xml.element("script", &[], |xml| {
                    xml.markup(&self.chart_script());
                    xml.markup(style::SCRIPT);
                });
            });
        });
        xml.into_string()
    }

    /// Writes the document as a page of a service.
    pub fn to_served_html(&self, site: &Site) -> String {
        let mut xml = Xml::default();
        xml.markup("<!DOCTYPE html>\n");
        xml.element("html", &[("lang", "en".into())], |xml| {
            xml.element("head", &[], |xml| {
                xml.markup(style::SERVED_HEAD);
                xml.text_element("title", &[], &self.title);
                xml.element("style", &[], |xml| {
                    xml.markup(style::CSS);
                    xml.markup(site::CSS);
                    xml.markup(if site.is_renewed() || self.has_chart() { charts::CSS } else { "" });
                });
            });
            xml.element("body", &site.attributes(), |xml| {
                xml.markup(figure::TEXTURES);
                site.write_header(xml);
                xml.element("main", &[], |xml| self.write_main(xml));
                xml.element("script", &[("nonce", site.nonce().into())], |xml| {
                    xml.markup(site::BEFORE_SCRIPT);
                    // A page that is renewed may get its first chart later.
                    xml.markup(&if site.is_renewed() { charts::script() } else { self.chart_script() });
                    xml.markup(style::SCRIPT);
                    xml.markup(site::SCRIPT);
                });
            });
        });
        xml.into_string()
    }

    fn has_chart(&self) -> bool {
        self.sections.iter().any(|section| section.blocks.iter().any(Block::has_chart))
    }

    /// Returns the script of charts; empty without charts.
    fn chart_script(&self) -> String {
        if self.has_chart() { charts::script() } else { String::new() }
    }

    fn write_main(&self, xml: &mut Xml) {
        xml.element("header", &[], |xml| {
            xml.text_element("h1", &[], &self.title);
            if !self.lead.is_empty() {
                xml.text_element("p", &[("class", "lead".into())], &self.lead);
            }
        });
        let mut sections = self.sections.iter().enumerate().peekable();
        // Sections without a heading belong to the answer at the top.
        while let Some((_, section)) = sections.next_if(|(_, section)| section.heading.is_empty()) {
            xml.element("section", &[], |xml| {
                section.blocks.iter().for_each(|block| block.write(xml, COLUMN_PX));
            });
        }
        self.write_contents(xml);
        for (number, section) in sections {
            xml.element("section", &[("id", section_id(number).into())], |xml| {
                if !section.heading.is_empty() {
                    xml.text_element("h2", &[], &section.heading);
                }
                section.blocks.iter().for_each(|block| block.write(xml, COLUMN_PX));
            });
        }
        self.write_footer(xml);
    }

    /// Writes links to the sections, unless there are few.
    fn write_contents(&self, xml: &mut Xml) {
        let headed = || self.sections.iter().enumerate().filter(|(_, section)| !section.heading.is_empty());
        if headed().count() < LISTED_MIN {
            return;
        }
        xml.element("nav", &[("class", "contents".into()), ("aria-label", "Contents".into())], |xml| {
            xml.element("ul", &[], |xml| {
                for (number, section) in headed() {
                    xml.element("li", &[], |xml| {
                        let target = format!("#{}", section_id(number));
                        xml.text_element("a", &[("href", target.into())], &section.heading);
                    });
                }
            });
        });
    }

    fn write_footer(&self, xml: &mut Xml) {
        if !self.footer.is_empty() {
            xml.element("footer", &[], |xml| {
                self.footer.iter().for_each(|line| xml.text_element("p", &[], line));
            });
        }
    }
}
