//! Cells that were measured several times, and what they say together.

use crate::cell::{Cell, Compared};
use std::time::Duration;

/// Factor by which a price may be off.
pub(crate) const TOLERANCE: f64 = 1.2;

/// Repeats of a cell that have to be measured before it says anything.
const MEASURED_MIN: usize = 3;

/// A cell, measured several times.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    measured: Vec<Compared>,
    /// Reasons of the repeats that were not measured.
    pub(crate) failed: Vec<String>,
}

/// Result of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Within,
    /// Every repeat is off in the same direction.
    Off,
    /// The median is off, and repeats differ too much to tell.
    Noise,
    /// The replay gives a range for most of the repeats.
    NoNumber,
    NotMeasured,
}

impl Row {
    pub(crate) fn measure(cell: Cell, repeats: u64, time: Duration) -> Self {
        let mut row = Self { cell, measured: Vec::new(), failed: Vec::new() };
        for repeat in 0..repeats {
            match cell.compare(time, 100 + repeat) {
                Ok(compared) => row.measured.push(compared),
                Err(reason) => row.failed.push(reason),
            }
        }
        row
    }

    /// Predicted ÷ measured where the replay gives a number, the smallest first.
    pub(crate) fn ratios(&self) -> Vec<f64> {
        let ratio = |compared: &Compared| Some(compared.predicted.known()? as f64 / compared.without as f64);
        sorted(self.measured.iter().filter_map(ratio))
    }

    fn without(&self) -> Vec<f64> {
        sorted(self.measured.iter().map(|compared| compared.without as f64))
    }

    /// The median prediction over the median measurement.
    pub(crate) fn ratio(&self) -> f64 {
        let predicted =
            sorted(self.measured.iter().filter_map(|compared| Some(compared.predicted.known()? as f64)));
        median(&predicted) / median(&self.without())
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let ratios = self.ratios();
        let is_off = |ratio: f64| !(1.0 / TOLERANCE..=TOLERANCE).contains(&ratio);
        if self.measured.len() < MEASURED_MIN {
            Verdict::NotMeasured
        } else if ratios.len() * 2 < self.measured.len() {
            Verdict::NoNumber
        } else if !is_off(self.ratio()) {
            Verdict::Within
        } else if self.is_beyond(TOLERANCE) {
            Verdict::Off
        } else {
            Verdict::Noise
        }
    }

    /// Tells if every repeat is off by more than this factor, in the same direction.
    pub(crate) fn is_beyond(&self, factor: f64) -> bool {
        let ratios = self.ratios();
        let ends = ratios.first().zip(ratios.last());
        ends.is_some_and(|(first, last)| *first > factor || *last < 1.0 / factor)
    }

    /// A row of the table in results.
    pub(crate) fn line(&self) -> String {
        let Cell { injected, server, connections } = self.cell;
        let [with, least, most] = [
            |compared: &Compared| compared.with,
            |compared: &Compared| compared.predicted.least,
            |compared: &Compared| compared.predicted.most,
        ]
        .map(|figure| median(&sorted(self.measured.iter().map(|compared| figure(compared) as f64))) / 1e3);
        let without = self.without();
        let [first, last] =
            [without.first(), without.last()].map(|end| end.map_or(f64::NAN, |end| *end / 1e3));
        let predicted = if self.verdict() == Verdict::NoNumber {
            format!("{least:.0} to {most:.0}")
        } else {
            format!("{:.0}", f64::midpoint(least, most))
        };
        format!(
            "| {} | {} | {connections} | {with:.0} | {predicted} | {:.0} ({first:.0} to {last:.0}) | {:.2} | {} of {} | {} |",
            injected.name(),
            server.name(),
            median(&without) / 1e3,
            self.ratio(),
            self.measured.len() - self.ratios().len(),
            self.measured.len() + self.failed.len(),
            match self.verdict() {
                Verdict::Within => "within 20 %",
                Verdict::Off => "off",
                Verdict::Noise => "too noisy",
                Verdict::NoNumber => "no number",
                Verdict::NotMeasured => "not measured",
            }
        )
    }
}

pub(crate) const HEAD: &str = "| cause | server | connections | p99 with it, µs | predicted without | measured without \
    (least to most) | ratio | without a number | verdict |\n|---|---|---|---|---|---|---|---|---|";

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle value; of two, their geometric mean.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    (sorted[last / 2] * sorted[last.div_ceil(2)]).sqrt()
}
