//! A figure as plain data: what was drawn, how it was read, what it claims.

use crate::Claim;
use serde::Serialize;
use sim::engine::Histogram;

/// The papers, and what else claims are held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Li, Sharma, Ports, Gribble: Tales of the Tail, SoCC '14.
    Tales,
    /// Gandhi, Suresh: Leveraging Queueing Theory and OS Profiling, Middleware '19.
    Variability,
    /// Ng et al.: TailClipper, SoCC '24.
    TailClipper,
    /// Zhu: Meeting tail latency SLOs in shared networked storage, CMU 2017.
    Thesis,
    /// No paper: what a real device did.
    Measured,
}

impl Paper {
    /// Short title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tales => "Tales of the Tail",
            Self::Variability => "Queueing theory and OS profiling",
            Self::TailClipper => "TailClipper",
            Self::Thesis => "Meeting tail latency SLOs in shared networked storage",
            Self::Measured => "Against a measured disk",
        }
    }
}

/// What an experiment found.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// How it was set up, and how what the paper leaves open was read; sentences.
    pub reading: String,
    /// To be drawn.
    pub plots: Vec<Plot>,
    /// With verdicts.
    pub claims: Vec<Claim>,
}

/// Lines over two axes.
#[derive(Debug, Clone, Serialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// In the order of the legend.
    pub lines: Vec<Line>,
}

/// What an axis counts.
#[derive(Debug, Clone, Serialize)]
pub struct Axis {
    /// Its name.
    pub label: String,
    /// Its unit.
    pub quantity: Quantity,
    /// Logarithmic.
    pub log: bool,
}

/// Units of axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Seconds.
    Seconds,
    /// Events per second.
    PerSecond,
    /// A share, 0 to 1, shown in percent.
    Share,
    /// A number.
    Number,
}

/// One series.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// In the axes' units.
    pub points: Vec<(f64, f64)>,
}

impl Plot {
    /// Complementary distribution functions of latencies.
    pub(crate) fn tails(title: &str, lines: Vec<Line>) -> Self {
        let x = Axis::log("latency", Quantity::Seconds);
        let y = Axis::log("share of requests at least as long", Quantity::Share);
        Self { title: title.to_owned(), x, y, lines }
    }
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, quantity: Quantity) -> Self {
        Self { label: label.to_owned(), quantity, log: false }
    }

    /// A logarithmic axis.
    pub fn log(label: &str, quantity: Quantity) -> Self {
        Self { log: true, ..Self::linear(label, quantity) }
    }
}

impl Line {
    /// The share of requests that take at least as long, seconds.
    pub(crate) fn ccdf(name: impl Into<String>, latencies: &Histogram) -> Self {
        Self::new(name, latencies.ccdf().into_iter().map(|(at, share)| (at.as_secs(), share)))
    }

    /// A series.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }
}
