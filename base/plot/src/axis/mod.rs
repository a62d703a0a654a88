//! Axes: as the caller specifies them ([`Axis`]), and as resolved for the data ([`ResolvedAxis`]).
//!
//! A value axis ends on nice ticks ([`AxisEnds::Nice`]); a horizontal axis of a curve ends with the data
//! ([`AxisEnds::Tight`]). Zero is included if the data are near it, and always for bars and areas.

pub(crate) mod ticks;

use crate::unit::{Unit, UnitPrefix, significant};
use ticks::{LinearTicks, ceil_log10, duration_ticks, floor_log10, log_minor, log_ticks};

/// Absolute values that an axis accepts; beyond them, arithmetic on ranges would overflow or underflow.
const ACCEPTED: std::ops::RangeInclusive<f64> = 1e-250..=1e250;

/// Minimum distance between two labels in pixels.
const LABEL_GAP_PX: f64 = 4.0;

/// Number of seconds from which a log axis has ticks at minutes, hours and days.
const LONG_S: f64 = 100.0;

/// Mapping of values to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AxisScale {
    Linear,
    Log,
}

/// An axis as the caller specifies it: a label, a unit, a scale and, optionally, pinned ends.
#[derive(Debug, Clone)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) unit: Unit,
    pub(crate) scale: AxisScale,
    min: Option<f64>,
    max: Option<f64>,
    zero: bool,
}

impl Axis {
    /// Creates a linear axis: equal distances are equal differences.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: AxisScale::Linear, min: None, max: None, zero: false }
    }

    /// Creates a logarithmic axis: equal distances are equal ratios. Values at or below zero are omitted
    /// and counted in a note.
    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self { scale: AxisScale::Log, ..Self::linear(label, unit) }
    }

    /// Pins the lower end; data below it are clipped. A value that the axis does not accept is ignored (zero on a log
    /// axis).
    #[must_use]
    pub fn min(mut self, value: f64) -> Self {
        self.min = Some(value).filter(|&v| self.accepts(v));
        self
    }

    /// Pins the upper end; data above it are clipped. A value that the axis does not accept is ignored (zero on a log
    /// axis).
    #[must_use]
    pub fn max(mut self, value: f64) -> Self {
        self.max = Some(value).filter(|&v| self.accepts(v));
        self
    }

    /// Includes zero on a linear axis even if the data are far from it.
    #[must_use]
    pub fn zero(mut self) -> Self {
        self.zero = true;
        self
    }

    /// Returns true if `value` has a position on the axis.
    pub(crate) fn accepts(&self, value: f64) -> bool {
        match self.scale {
            AxisScale::Linear => value.abs() <= *ACCEPTED.end(),
            AxisScale::Log => ACCEPTED.contains(&value),
        }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    /// Determines range and ticks for the accepted ones of `values`, with about `count` ticks; `None` if
    /// there are none.
    pub(crate) fn resolve(
        &self,
        values: impl Iterator<Item = f64>,
        ends: AxisEnds,
        count: usize,
    ) -> Option<ResolvedAxis> {
        let (lo, hi) = values.filter(|&v| self.accepts(v)).fold(None, |range: Option<(f64, f64)>, v| {
            Some(range.map_or((v, v), |(lo, hi)| (lo.min(v), hi.max(v))))
        })?;
        let (lo, hi) = self.widen(lo, hi);
        Some(match self.scale {
            AxisScale::Linear => self.resolve_linear(lo, hi, ends, count),
            AxisScale::Log => self.resolve_log(lo, hi, ends, count),
        })
    }

    /// Applies zero and the pins, and widens an empty range.
    fn widen(&self, lo: f64, hi: f64) -> (f64, f64) {
        let near_zero = lo > 0.0 && lo < 0.4 * hi;
        let linear = self.scale == AxisScale::Linear;
        let lo_auto = if linear && lo > 0.0 && (self.zero || near_zero) { 0.0 } else { lo };
        let hi_auto = if linear && self.zero { hi.max(0.0) } else { hi };
        let lo = flush_to_zero(self.min.unwrap_or(lo_auto));
        let hi = flush_to_zero(self.max.unwrap_or(hi_auto));
        let wide = hi > lo && (hi - lo) > 1e-9 * lo.abs().max(hi.abs());
        match self.scale {
            _ if wide => (lo, hi),
            AxisScale::Linear if lo == 0.0 => (0.0, 1.0),
            AxisScale::Linear => (lo - 0.5 * lo.abs(), lo + 0.5 * lo.abs()),
            AxisScale::Log => (lo / 3.0, self.within_whole(lo, lo * 3.0)),
        }
    }

    /// Limits the upper end of an axis: shares of a whole end at 100 %.
    fn within_whole(&self, largest: f64, end: f64) -> f64 {
        if self.unit == Unit::Percent && largest <= 1.0 { end.min(1.0) } else { end }
    }

    fn resolve_linear(&self, lo: f64, hi: f64, ends: AxisEnds, count: usize) -> ResolvedAxis {
        let mut prefix = self.unit.prefix(lo.abs().max(hi.abs()));
        let power = power_beyond_digits(lo.abs().max(hi.abs()) / prefix.size);
        prefix.size *= 10f64.powi(power);
        let nice = LinearTicks::new(lo / prefix.size, hi / prefix.size, self.steps_at_most(count, hi - lo));
        let extend = ends == AxisEnds::Nice;
        let lo = if extend && self.min.is_none() { nice.below * prefix.size } else { lo };
        let hi = if extend && self.max.is_none() { nice.above * prefix.size } else { hi };
        let on_ticks = self.unit.suffix_on_ticks() || self.label.is_empty();
        let suffix = if on_ticks { prefix.suffix.as_str() } else { "" };
        let label = |tick: f64| match tick {
            0.0 if matches!(self.unit, Unit::Plain | Unit::Count) => "0".to_owned(),
            tick => format!("{tick:.*}{suffix}", nice.decimals),
        };
        let ticks = nice.within(lo / prefix.size, hi / prefix.size);
        let ticks = ticks.into_iter().map(|t| Tick { value: t * prefix.size, label: label(t) }).collect();
        let factor = if power == 0 { String::new() } else { format!("×10{} ", superscript(power)) };
        let in_title = format!("{factor}{}", if on_ticks { "" } else { &prefix.suffix });
        ResolvedAxis {
            scale: self.scale,
            lo,
            hi,
            ticks,
            minor: Vec::new(),
            title: titled(&self.label, in_title.trim()),
        }
    }

    /// Returns the number of steps to aim for on a linear axis of this length. Counts have no steps below
    /// one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not larger than the count")]
    fn steps_at_most(&self, count: usize, length: f64) -> usize {
        let whole = if self.unit == Unit::Count { length.ceil().max(1.0) } else { f64::INFINITY };
        if whole < count as f64 { whole as usize } else { count }
    }

    fn resolve_log(&self, lo: f64, hi: f64, ends: AxisEnds, count: usize) -> ResolvedAxis {
        let (lo, hi) = match ends {
            AxisEnds::Tight => (lo, hi),
            AxisEnds::Nice => (
                self.min.unwrap_or_else(|| nice_log(lo, hi).0),
                self.max.unwrap_or_else(|| self.within_whole(hi, nice_log(lo, hi).1)),
            ),
        };
        let mut values = match self.unit {
            Unit::Seconds if hi > LONG_S => duration_ticks(lo, hi, count),
            _ => log_ticks(lo, hi, count),
        };
        if values.len() < 2 {
            values = LinearTicks::new(lo, hi, count).within(lo, hi);
            values.retain(|&t| t > 0.0);
        }
        let common = self.common_prefix(&values);
        let suffix = common.as_ref().map_or("", |prefix| prefix.suffix.as_str());
        let (on_ticks, in_title) = if self.label.is_empty() { (suffix, "") } else { ("", suffix) };
        let label = |value: f64| match &common {
            Some(prefix) => format!("{}{on_ticks}", significant(value / prefix.size)),
            None => self.log_label(value),
        };
        let ticks = values.into_iter().map(|value| Tick { value, label: label(value) }).collect();
        ResolvedAxis {
            scale: self.scale,
            lo,
            hi,
            ticks,
            minor: log_minor(lo, hi),
            title: titled(&self.label, in_title),
        }
    }

    /// Returns the prefix in which all ticks of a log axis have few digits: that of the tick in the middle,
    /// or the nearest; `None` if the range is too wide for one, or the unit has none. Ticks at minutes, hours
    /// and days keep their own.
    fn common_prefix(&self, ticks: &[f64]) -> Option<UnitPrefix> {
        const SHORT: std::ops::RangeInclusive<f64> = 0.0009..=10_000.1;
        if !matches!(self.unit, Unit::Seconds | Unit::Bytes | Unit::BytesPerSec | Unit::PerSec) {
            return None;
        }
        let last = *ticks.last()?;
        if self.unit == Unit::Seconds && last >= 60.0 {
            return None;
        }
        let middle = ticks.len() / 2;
        let candidates = ticks[middle..].iter().chain(ticks[..middle].iter().rev());
        let mut prefixes = candidates.map(|tick| self.unit.prefix(*tick));
        prefixes.find(|prefix| ticks.iter().all(|tick| SHORT.contains(&(tick / prefix.size))))
    }

    /// Returns the label of a tick of a log axis.
    fn log_label(&self, value: f64) -> String {
        let exponent = floor_log10(value);
        let is_power = (value / 10f64.powi(exponent) - 1.0).abs() < 1e-6;
        match self.unit {
            Unit::Plain if is_power && !(-3..15).contains(&exponent) => {
                format!("10{}", superscript(exponent))
            }
            Unit::Seconds if value >= 60.0 => duration_label(value),
            // Powers below 0.01 % as `1 in N`: long rows of zeros are hard to read.
            Unit::Percent if is_power && exponent < -4 => format!("1 in {}", count_of(-exponent)),
            unit => unit.format(value),
        }
    }
}

/// Ends of an axis: on ticks or with the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AxisEnds {
    Nice,
    Tight,
}

/// A labelled position on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// An axis with its range and ticks determined.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedAxis {
    scale: AxisScale,
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) minor: Vec<f64>,
    /// Label of the axis, with the unit if tick labels do not contain it.
    pub(crate) title: String,
}

impl ResolvedAxis {
    /// Returns the position of an accepted value: 0 is the lower end and 1 the upper one; other values
    /// lie outside.
    pub(crate) fn fraction(&self, value: f64) -> f64 {
        match self.scale {
            AxisScale::Linear => (value - self.lo) / (self.hi - self.lo),
            // Not the logarithm of a ratio: ratios overflow before the values do.
            AxisScale::Log => (value.ln() - self.lo.ln()) / (self.hi.ln() - self.lo.ln()),
        }
    }

    /// Returns the ticks whose labels fit beside each other, main ones first. `extent` returns the ends
    /// of a label in pixels.
    pub(crate) fn labelled(&self, extent: impl Fn(&Tick) -> (f64, f64)) -> Vec<&Tick> {
        let (main, other): (Vec<&Tick>, Vec<&Tick>) =
            self.ticks.iter().partition(|tick| self.scale == AxisScale::Linear || is_main(tick.value));
        let mut taken: Vec<(f64, f64)> = Vec::new();
        let mut labelled = Vec::new();
        for tick in main.into_iter().chain(other) {
            let (from, until) = extent(tick);
            if taken.iter().all(|(start, end)| until + LABEL_GAP_PX <= *start || *end + LABEL_GAP_PX <= from)
            {
                taken.push((from, until));
                labelled.push(tick);
            }
        }
        labelled
    }

    /// Returns the value at which bars and areas start: zero, or the nearest end.
    pub(crate) fn baseline(&self) -> f64 {
        match self.scale {
            AxisScale::Linear => 0f64.clamp(self.lo, self.hi),
            AxisScale::Log => self.lo,
        }
    }
}

/// Returns true if the tick of a log axis is a power of ten or a customary duration.
fn is_main(value: f64) -> bool {
    let digits = value / 10f64.powi(floor_log10(value));
    (digits - 1.0).abs() < 1e-6 || ticks::is_duration(value)
}

/// Joins the label of an axis and its unit.
fn titled(label: &str, unit: &str) -> String {
    match (label, unit) {
        (label, "") => label.to_owned(),
        ("", unit) => unit.to_owned(),
        (label, unit) => format!("{label} ({unit})"),
    }
}

/// Returns the power of ten to factor out so that ticks have few digits: a multiple of three, zero in the
/// usual range.
fn power_beyond_digits(largest: f64) -> i32 {
    if largest == 0.0 || (1e-3..1e6).contains(&largest) {
        return 0;
    }
    floor_log10(largest).div_euclid(3) * 3
}

/// Returns the ends of a log axis: powers of ten, or 1, 2, 5 times them for ranges below a decade and a
/// half.
fn nice_log(lo: f64, hi: f64) -> (f64, f64) {
    let below = 10f64.powi(floor_log10(lo));
    let above = 10f64.powi(ceil_log10(hi));
    if (hi / lo).log10() > 1.5 {
        return (below, if above > below { above } else { below * 10.0 });
    }
    let candidates = || [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0].into_iter();
    let low = candidates().map(|m| m * below).filter(|&c| c <= lo * (1.0 + 1e-9)).fold(below, f64::max);
    let high = candidates().map(|m| m * above).filter(|&c| c >= hi * (1.0 - 1e-9)).fold(above, f64::min);
    if low < high { (low, high) } else { (low / 2.0, high * 2.0) }
}

/// Rounds values too small for an axis to zero.
fn flush_to_zero(value: f64) -> f64 {
    if value.abs() < *ACCEPTED.start() { 0.0 } else { value }
}

/// Formats a duration of at least a minute in the largest unit of which it is a whole multiple.
fn duration_label(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min")];
    let whole = units.into_iter().find(|(size, _)| seconds >= *size && (seconds / size).fract() < 1e-9);
    whole.map_or_else(|| Unit::Seconds.format(seconds), |(size, name)| format!("{}{name}", seconds / size))
}

/// Formats a power of ten with a suffix: `100k`, `1M`.
fn count_of(power: i32) -> String {
    Unit::Plain.format(10f64.powi(power))
}

fn superscript(power: i32) -> String {
    significant(f64::from(power)).chars().map(superscript_digit).collect()
}

fn superscript_digit(digit: char) -> char {
    match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: &Axis, values: &[f64]) -> (Vec<String>, String) {
        let resolved = axis.resolve(values.iter().copied(), AxisEnds::Nice, 5).unwrap();
        (resolved.ticks.into_iter().map(|t| t.label).collect(), resolved.title)
    }

    #[test]
    fn labels_carry_their_unit_once() {
        let (ticks, title) = labels(&Axis::linear("latency", Unit::Seconds), &[0.0, 0.1]);
        assert_eq!((ticks.join(" "), title.as_str()), ("0 20 40 60 80 100".to_owned(), "latency (ms)"));
        let (ticks, title) = labels(&Axis::linear("load", Unit::Percent), &[0.0, 1.0]);
        assert_eq!((ticks.join(" "), title.as_str()), ("0% 20% 40% 60% 80% 100%".to_owned(), "load"));
        let (ticks, _) = labels(&Axis::linear("requests", Unit::Plain), &[0.0, 50_000.0]);
        assert_eq!(ticks.join(" "), "0 10k 20k 30k 40k 50k");
        let (ticks, title) = labels(&Axis::linear("p", Unit::Plain), &[0.0, 1e-6]);
        assert_eq!((ticks.join(" "), title.as_str()), ("0 0.2 0.4 0.6 0.8 1.0".to_owned(), "p (×10⁻⁶)"));
        let (ticks, _) = labels(&Axis::log("latency", Unit::Seconds), &[2e-5, 3.0]);
        assert_eq!(ticks.join(" "), "0.1 10 1000");
        let (ticks, title) = labels(&Axis::log("latency", Unit::Seconds), &[5e-4, 1.5e-3]);
        assert_eq!((ticks.join(" "), title.as_str()), ("0.5 1 2".to_owned(), "latency (ms)"));
        let (ticks, title) = labels(&Axis::log("", Unit::Bytes), &[500.0, 5e4]);
        assert_eq!((ticks.join(" "), title.as_str()), ("0.1kB 1kB 10kB 100kB".to_owned(), ""));
        let (ticks, _) = labels(&Axis::log("size", Unit::Bytes), &[1.0, 1e12]);
        assert!(ticks.join(" ").contains("1kB"), "too wide for one unit: {ticks:?}");
        let (ticks, _) = labels(&Axis::log("share", Unit::Percent), &[1e-4, 1.0]);
        assert_eq!(ticks.join(" "), "0.01% 0.1% 1% 10% 100%");
        let (ticks, _) = labels(&Axis::log("rate", Unit::Percent), &[0.03, 1.0]);
        assert_eq!(ticks.join(" "), "1% 10% 100%");
        let (ticks, _) = labels(&Axis::log("burst", Unit::Seconds), &[2.3e-3, 30e-3]);
        assert_eq!(ticks.join(" "), "2 5 10 20 50");
        let (ticks, _) = labels(&Axis::log("share", Unit::Percent), &[1.0]);
        assert_eq!(ticks.join(" "), "20% 50% 100%");
        let (ticks, _) = labels(&Axis::log("gap", Unit::Seconds), &[1e-3, 9e5]);
        assert_eq!(ticks.join(" "), "10ms 1s 1min 1h 1d");
        let (ticks, _) = labels(&Axis::log("gap", Unit::Seconds), &[70.0, 4000.0]);
        assert_eq!(ticks.join(" "), "10s 1min 10min 1h");
        let (ticks, _) = labels(&Axis::log("gap", Unit::Seconds), &[100.0, 300.0]);
        assert_eq!(ticks.join(" "), "2min 5min");
        let (ticks, _) = labels(&Axis::log("gap", Unit::Seconds), &[1.0, 90_000.0]);
        assert_eq!(ticks.join(" "), "1s 10s 1min 10min 1h 10h 1d");
        let (ticks, _) = labels(&Axis::linear("servers", Unit::Count).zero(), &[1.0, 2.0]);
        assert_eq!(ticks.join(" "), "0 1 2");
        let (ticks, _) = labels(&Axis::linear("servers", Unit::Count).zero(), &[41.0]);
        assert_eq!(ticks.join(" "), "0 10 20 30 40 50");
        let (ticks, _) = labels(&Axis::log("share", Unit::Percent), &[1e-7, 1e-3]);
        assert_eq!(ticks.join(" "), "1 in 10M 1 in 1M 1 in 100k 0.01% 0.1%");
    }

    #[test]
    fn odd_ranges_have_an_axis() {
        for values in
            [vec![5.0], vec![0.0], vec![-3.0, -3.0], vec![-1.0, 1.0], vec![1e-240, 1e240], vec![1e249]]
        {
            let axis =
                Axis::linear("x", Unit::Plain).resolve(values.iter().copied(), AxisEnds::Nice, 5).unwrap();
            assert!(axis.lo < axis.hi && axis.ticks.len() >= 2, "{values:?} {axis:?}");
        }
        assert!(
            Axis::linear("x", Unit::Plain)
                .resolve([f64::NAN, f64::INFINITY].into_iter(), AxisEnds::Nice, 5)
                .is_none()
        );
        assert!(Axis::log("x", Unit::Plain).resolve([0.0, -1.0].into_iter(), AxisEnds::Nice, 5).is_none());
        let pinned = Axis::log("x", Unit::Plain).min(0.0).max(5.0);
        let axis = pinned.resolve([10.0, 20.0].into_iter(), AxisEnds::Nice, 5).unwrap();
        assert!(axis.lo < axis.hi);
    }

    proptest! {
        #[test]
        fn every_value_lies_on_an_unpinned_axis(
            values in proptest::collection::vec(proptest::num::f64::ANY, 1..8), log: bool, tight: bool, count in 2usize..9,
        ) {
            let axis = if log { Axis::log("x", Unit::Seconds) } else { Axis::linear("x", Unit::Seconds) };
            let ends = if tight { AxisEnds::Tight } else { AxisEnds::Nice };
            if let Some(resolved) = axis.resolve(values.iter().copied(), ends, count) {
                for &value in values.iter().filter(|&&v| axis.accepts(v)) {
                    let at = resolved.fraction(value);
                    prop_assert!((-1e-6..=1.0 + 1e-6).contains(&at), "{value} at {at} on {resolved:?}");
                }
                for tick in &resolved.ticks {
                    prop_assert!((-1e-4..=1.0 + 1e-4).contains(&resolved.fraction(tick.value)), "{resolved:?}");
                }
            }
        }
    }
}
