//! Content of a chart: series, reference lines and markers over two axes.

use crate::axis::Axis;
use crate::series::{DataPoint, Series};

/// A horizontal or vertical reference line with a name, such as an SLO or a capacity.
#[derive(Debug, Clone)]
pub struct Reference {
    pub(crate) axis: ReferenceAxis,
    pub(crate) value: f64,
    pub(crate) label: String,
    pub(crate) quiet: bool,
}

/// The axis on which a reference line has its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceAxis {
    X,
    Y,
}

impl Reference {
    /// Creates a vertical line at `value` on the x axis.
    pub fn x(value: f64, label: impl Into<String>) -> Self {
        Self { axis: ReferenceAxis::X, value, label: label.into(), quiet: false }
    }

    /// Creates a horizontal line at `value` on the y axis.
    pub fn y(value: f64, label: impl Into<String>) -> Self {
        Self { axis: ReferenceAxis::Y, value, label: label.into(), quiet: false }
    }

    /// Draws the line in grey instead of the colour of limits: for a percentile or a mean.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }
}

/// A point that is emphasised by a ring and a label, such as the chosen (r, b).
#[derive(Debug, Clone)]
pub struct Marker {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) label: String,
}

impl Marker {
    /// Creates a marker at (x, y) in the base units of the axes.
    pub fn new(x: f64, y: f64, label: impl Into<String>) -> Self {
        Self { x, y, label: label.into() }
    }
}

/// A chart of series over two numeric axes.
#[derive(Debug, Clone)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) references: Vec<Reference>,
    pub(crate) markers: Vec<Marker>,
    pub(super) note: String,
    pub(super) height_px: Option<f64>,
}

impl Chart {
    /// Creates an empty chart with a title above it.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let title = title.into();
        Self {
            title,
            x,
            y,
            series: vec![],
            references: vec![],
            markers: vec![],
            note: String::new(),
            height_px: None,
        }
    }

    /// Adds a series to the chart.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds several series, such as the layers of [`stack`](crate::stack).
    #[must_use]
    pub fn all(mut self, series: impl IntoIterator<Item = Series>) -> Self {
        self.series.extend(series);
        self
    }

    /// Adds a reference line; the axes include it.
    #[must_use]
    pub fn reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }

    /// Adds a marker; the axes include it.
    #[must_use]
    pub fn marker(mut self, marker: Marker) -> Self {
        self.markers.push(marker);
        self
    }

    /// Sets the sentence under the chart, about its content and the origin of its numbers.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Sets the height of the drawing in pixels, 120 to 2000; the default depends on the width.
    #[must_use]
    pub fn height(mut self, px: u32) -> Self {
        self.height_px = Some(f64::from(px.clamp(120, 2000)));
        self
    }

    /// Returns true if the axes accept both coordinates of a point.
    pub(crate) fn can_draw(&self, point: &DataPoint) -> bool {
        self.x.accepts(point.x) && self.y.accepts(point.y)
    }

    /// Returns the reference lines with a value on this axis.
    pub(super) fn references_on(&self, axis: ReferenceAxis) -> impl Iterator<Item = &Reference> {
        self.references.iter().filter(move |reference| reference.axis == axis)
    }
}
