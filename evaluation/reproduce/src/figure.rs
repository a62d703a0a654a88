//! A figure as plain data: reading of the paper, plots, and claims.

use crate::claim::Claim;
use schemars::JsonSchema;
use serde::Serialize;
use sim::engine::Histogram;

/// Result of an experiment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReproducedFigure {
    /// Setup of the experiment, and our reading of points that the paper leaves open; sentences.
    pub reading: String,
    /// The plots in the order in which they are shown.
    pub plots: Vec<FigurePlot>,
    /// The paper's claims, each compared with what was found.
    pub claims: Vec<Claim>,
}

/// Series over two axes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FigurePlot {
    /// Title of the plot.
    pub title: String,
    /// Horizontal axis.
    pub x: FigureAxis,
    /// Vertical axis.
    pub y: FigureAxis,
    /// The series in the order of the legend.
    pub lines: Vec<FigureSeries>,
}

/// An axis.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FigureAxis {
    /// The text beside the axis.
    pub label: String,
    /// The quantity, which has a unit.
    pub quantity: AxisQuantity,
    /// True for a logarithmic scale.
    pub log: bool,
}

/// The quantities of axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AxisQuantity {
    /// A time in seconds.
    Seconds,
    /// A rate of events per second.
    PerSecond,
    /// A share from 0 to 1, shown in percent.
    Share,
    /// A number without a unit.
    Number,
}

/// One line of a plot.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FigureSeries {
    /// The name in the legend.
    pub name: String,
    /// Horizontal and vertical coordinates in the units of the axes.
    pub points: Vec<(f64, f64)>,
}

impl FigurePlot {
    /// A plot of these series over these axes.
    pub(crate) fn new(
        title: impl Into<String>,
        x: FigureAxis,
        y: FigureAxis,
        lines: Vec<FigureSeries>,
    ) -> Self {
        Self { title: title.into(), x, y, lines }
    }

    /// A plot of complementary distribution functions of latencies.
    pub(crate) fn tails(title: &str, lines: Vec<FigureSeries>) -> Self {
        let x = FigureAxis::log("latency", AxisQuantity::Seconds);
        let y = FigureAxis::log("share of requests at least as long", AxisQuantity::Share);
        Self::new(title, x, y, lines)
    }
}

impl FigureAxis {
    /// An axis with a linear scale.
    pub fn linear(label: &str, quantity: AxisQuantity) -> Self {
        Self { label: label.to_owned(), quantity, log: false }
    }

    /// An axis with a logarithmic scale.
    pub fn log(label: &str, quantity: AxisQuantity) -> Self {
        Self { log: true, ..Self::linear(label, quantity) }
    }
}

impl FigureSeries {
    /// The share of requests that take at least as long, over the latency in seconds.
    pub(crate) fn ccdf(name: impl Into<String>, latencies: &Histogram) -> Self {
        Self::new(name, latencies.ccdf().into_iter().map(|(latency, share)| (latency.as_secs(), share)))
    }

    /// A series through these points.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }
}
