//! The page: a title, a lead, sections of blocks, all in one file.

pub(crate) mod figure;
mod style;

use crate::bars::Bars;
use crate::bullets::Bullets;
use crate::chart::Chart;
use crate::dots::Dots;
use crate::status::Status;
use crate::table::Table;
use crate::xml::Xml;

/// Width of the page's column and the gap between charts beside each other, in pixels.
const COLUMN_PX: f64 = 960.0;
const GAP_PX: f64 = 28.0;

/// A figure that answers the reader's first question: a value in large type over a label.
#[derive(Debug, Clone)]
pub struct Fact {
    value: String,
    label: String,
    status: Option<Status>,
}

impl Fact {
    /// A value and what it is: `("6", "servers used")`.
    pub fn new(value: impl Into<String>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into(), status: None }
    }

    /// Says whether it is as wanted.
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
    /// A paragraph of text.
    Paragraph(String),
    /// Text in a fixed-width font, line breaks kept: a derivation, a configuration.
    Preformatted(String),
    /// Large figures in a row.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// A chart of two numeric axes.
    Chart(Chart),
    /// Horizontal bars.
    Bars(Bars),
    /// Values against targets.
    Bullets(Bullets),
    /// Several values per row against a target.
    Dots(Dots),
    /// Small multiples: blocks in rows of `columns`.
    Grid {
        /// Blocks per row, at least one.
        columns: usize,
        /// The blocks in reading order.
        blocks: Vec<Block>,
    },
    /// Blocks behind a summary line that opens them.
    Fold {
        /// What is inside.
        summary: String,
        /// The blocks.
        blocks: Vec<Block>,
    },
}

impl Block {
    /// A paragraph.
    pub fn paragraph(text: impl Into<String>) -> Self {
        Self::Paragraph(text.into())
    }

    /// Small multiples in rows of `columns` (1 to 4).
    pub fn grid(columns: usize, blocks: impl IntoIterator<Item = Self>) -> Self {
        Self::Grid { columns, blocks: blocks.into_iter().collect() }
    }

    /// Blocks behind a summary line.
    pub fn fold(summary: impl Into<String>, blocks: impl IntoIterator<Item = Self>) -> Self {
        Self::Fold { summary: summary.into(), blocks: blocks.into_iter().collect() }
    }

    /// The block as an HTML fragment, `width` pixels wide when there is room. It needs the page's styles.
    fn write(&self, xml: &mut Xml, width: f64) {
        match self {
            Self::Paragraph(text) => xml.text("p", &[], text),
            Self::Preformatted(text) => xml.text("pre", &[], text),
            Self::Facts(facts) => write_facts(xml, facts),
            Self::Table(table) => table.write(xml),
            Self::Chart(chart) => chart.write(xml, width),
            Self::Bars(bars) => bars.write(xml, width),
            Self::Bullets(bullets) => bullets.write(xml, width),
            Self::Dots(dots) => dots.write(xml, width),
            Self::Grid { columns, blocks } => write_grid(xml, (*columns).clamp(1, 4), blocks, width),
            Self::Fold { summary, blocks } => xml.within("details", &[], |xml| {
                xml.text("summary", &[], summary);
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
block_from!(Table, Chart, Bars, Bullets, Dots);

impl From<Vec<Fact>> for Block {
    fn from(facts: Vec<Fact>) -> Self {
        Self::Facts(facts)
    }
}

fn write_facts(xml: &mut Xml, facts: &[Fact]) {
    xml.within("dl", &[("class", "facts".into())], |xml| {
        for fact in facts {
            xml.within("div", &[("class", fact.status.map_or("", Status::class).into())], |xml| {
                xml.text("dt", &[], &fact.label);
                let mark = fact.status.map_or(String::new(), |s| format!("{} ", s.mark()));
                xml.text("dd", &[], &format!("{mark}{}", fact.value));
            });
        }
    });
}

fn write_grid(xml: &mut Xml, columns: usize, blocks: &[Block], width: f64) {
    let cell = ((width - GAP_PX * (columns - 1) as f64) / columns as f64).floor();
    let class = format!("grid-of grid-{columns}");
    xml.within("div", &[("class", class.into())], |xml| {
        for block in blocks {
            xml.within("div", &[], |xml| block.write(xml, cell));
        }
    });
}

#[derive(Debug, Clone)]
struct Section {
    heading: String,
    blocks: Vec<Block>,
}

/// A report page.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<Section>,
    footer: String,
}

impl Page {
    /// A page with a title, without content.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), lead: String::new(), sections: Vec::new(), footer: String::new() }
    }

    /// The sentence under the title: the answer.
    #[must_use]
    pub fn lead(mut self, text: impl Into<String>) -> Self {
        self.lead = text.into();
        self
    }

    /// Appends a section. An empty heading is left out.
    #[must_use]
    pub fn section(mut self, heading: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        self.sections.push(Section { heading: heading.into(), blocks: blocks.into_iter().collect() });
        self
    }

    /// The small print: what made the page, from which input, with which seed.
    #[must_use]
    pub fn footer(mut self, text: impl Into<String>) -> Self {
        self.footer = text.into();
        self
    }

    /// The whole document.
    pub fn to_html(&self) -> String {
        let mut xml = Xml::default();
        xml.raw("<!DOCTYPE html>\n");
        xml.within("html", &[("lang", "en".into())], |xml| {
            xml.within("head", &[], |xml| {
                xml.raw(style::HEAD);
                xml.text("title", &[], &self.title);
                xml.within("style", &[], |xml| xml.raw(style::CSS));
            });
            xml.within("body", &[], |xml| {
                xml.raw(figure::TEXTURES);
                xml.within("main", &[], |xml| self.write_main(xml));
                xml.within("script", &[], |xml| xml.raw(style::SORT_JS));
            });
        });
        xml.into_string()
    }

    fn write_main(&self, xml: &mut Xml) {
        xml.within("header", &[], |xml| {
            xml.text("h1", &[], &self.title);
            if !self.lead.is_empty() {
                xml.text("p", &[("class", "lead".into())], &self.lead);
            }
        });
        for section in &self.sections {
            xml.within("section", &[], |xml| {
                if !section.heading.is_empty() {
                    xml.text("h2", &[], &section.heading);
                }
                section.blocks.iter().for_each(|block| block.write(xml, COLUMN_PX));
            });
        }
        if !self.footer.is_empty() {
            xml.text("footer", &[], &self.footer);
        }
    }
}
