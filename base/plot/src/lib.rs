//! Report pages: one self-contained HTML file with tables and inline SVG charts.
//!
//! This crate decides the presentation of a report: its layout, colours, ticks, legends and tooltips, and
//! the treatment of data that cannot be drawn. Callers decide the content.
//!
//! It draws charts itself because a report follows the reader's light or dark theme by CSS variables,
//! which tables and charts of the page share. SVG libraries write colours into the drawing, or need
//! JavaScript or external fonts. The charts here are simple enough to be written directly.
//!
//! Everything is a pure function to a `String`, with the same bytes for the same input. A page loads
//! nothing, is complete without JavaScript, prints, and is well-formed XML as well as HTML. All text is
//! escaped. Series differ by dash and mark as well as by a palette that colour-blind readers can tell
//! apart; a status has a text mark beside its colour. Values that cannot be drawn (not finite, zero on a
//! log axis) are omitted and counted in a note under the chart.
//!
//! A service can serve the same pages ([`Site`]): with links between them, forms, and content that is renewed while
//! the reader looks at it.
//!
//! With scripts, charts of two axes can be zoomed along x, have a crosshair that charts with the same x share, and
//! series that can be shown alone; every chart offers its data as CSV. One hand-written script does this, from data in
//! attributes of the figures. Pages without charts do not have it.
//!
//! It does not cover zoom along y, maps, pie charts, three dimensions, or exact measurement of text: the widths of labels
//! are estimated, and layouts leave room for the error.
//!
//! ```
//! use plot::{Axis, Chart, Page, Reference, Series, Unit};
//! let chart = Chart::new("Latency", Axis::linear("time", Unit::Seconds), Axis::log("p99", Unit::Seconds))
//!     .series(Series::line("storage", [(0.0, 0.010), (1.0, 0.040), (2.0, 0.020)]))
//!     .reference(Reference::y(0.150, "SLO 150ms"));
//! let html = Page::new("Report").lead("One line.").section("Latency over time", [chart.into()]).to_html();
//! assert!(html.starts_with("<!DOCTYPE html>"));
//! ```

mod axis;
mod bars;
mod bullets;
mod chart;
mod data;
mod decimate;
mod distribution;
mod dots;
mod escape;
mod figure;
mod page;
mod row_frame;
mod series;
mod status;
mod table;
mod text_width;
mod unit;
mod xml;

pub use axis::Axis;
pub use bars::Bars;
pub use bullets::{Bullets, RowOrder};
pub use chart::{Chart, Marker, Reference};
pub use distribution::Distribution;
pub use dots::Dots;
pub use page::{Block, Form, KeyFigure, Link, Page, Site};
pub use series::{Series, stack};
pub use status::Status;
pub use table::{Cell, Column, Table};
pub use unit::Unit;
