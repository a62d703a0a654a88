//! Axes: what is asked for ([`Axis`]) and what was decided for the data at hand ([`Resolved`]).
//!
//! A value axis ends on nice ticks ([`Ends::Nice`]); a horizontal axis of a curve ends with the data
//! ([`Ends::Tight`]). Zero is included when the data come near it, always for bars and areas.

pub(crate) mod ticks;

use crate::unit::{Unit, significant};
use ticks::{LinearTicks, ceil_log10, floor_log10, log_minor, log_ticks};

/// Absolute values that can be placed; beyond, arithmetic on ranges would overflow or underflow.
const PLACEABLE: std::ops::RangeInclusive<f64> = 1e-250..=1e250;

/// How values become positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Log,
}

/// A label, a unit, a scale and, optionally, pinned ends.
#[derive(Debug, Clone)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) unit: Unit,
    pub(crate) scale: Scale,
    min: Option<f64>,
    max: Option<f64>,
    zero: bool,
}

impl Axis {
    /// Equal distances are equal differences.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Linear, min: None, max: None, zero: false }
    }

    /// Equal distances are equal ratios. Values at or below zero are left out, and a note says how many.
    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label, unit) }
    }

    /// Pins the lower end; data below are clipped. Ignored when it cannot be placed (zero on a log axis).
    #[must_use]
    pub fn min(mut self, value: f64) -> Self {
        self.min = Some(value).filter(|&v| self.accepts(v));
        self
    }

    /// Pins the upper end; data above are clipped. Ignored when it cannot be placed (zero on a log axis).
    #[must_use]
    pub fn max(mut self, value: f64) -> Self {
        self.max = Some(value).filter(|&v| self.accepts(v));
        self
    }

    /// Includes zero on a linear axis, whatever the data.
    #[must_use]
    pub fn zero(mut self) -> Self {
        self.zero = true;
        self
    }

    /// Whether `value` can be placed.
    pub(crate) fn accepts(&self, value: f64) -> bool {
        match self.scale {
            Scale::Linear => value.abs() <= *PLACEABLE.end(),
            Scale::Log => PLACEABLE.contains(&value),
        }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    /// Decides range and ticks for `values` (those that it accepts). `None` when there is nothing to place.
    pub(crate) fn resolve(
        &self,
        values: impl Iterator<Item = f64>,
        ends: Ends,
        count: usize,
    ) -> Option<Resolved> {
        let (lo, hi) = values.filter(|&v| self.accepts(v)).fold(None, |range: Option<(f64, f64)>, v| {
            Some(range.map_or((v, v), |(lo, hi)| (lo.min(v), hi.max(v))))
        })?;
        let (lo, hi) = self.open_up(lo, hi);
        Some(match self.scale {
            Scale::Linear => self.resolve_linear(lo, hi, ends, count),
            Scale::Log => self.resolve_log(lo, hi, ends, count),
        })
    }

    /// Applies zero and the pins, and gives an empty range some width.
    fn open_up(&self, lo: f64, hi: f64) -> (f64, f64) {
        let flush = |v: f64| if v.abs() < *PLACEABLE.start() { 0.0 } else { v };
        let near_zero = lo > 0.0 && lo < 0.4 * hi;
        let linear = self.scale == Scale::Linear;
        let lo_auto = if linear && lo > 0.0 && (self.zero || near_zero) { 0.0 } else { lo };
        let hi_auto = if linear && self.zero { hi.max(0.0) } else { hi };
        let (lo, hi) = (flush(self.min.unwrap_or(lo_auto)), flush(self.max.unwrap_or(hi_auto)));
        let wide = hi > lo && (hi - lo) > 1e-9 * lo.abs().max(hi.abs());
        match self.scale {
            _ if wide => (lo, hi),
            Scale::Linear if lo == 0.0 => (0.0, 1.0),
            Scale::Linear => (lo - 0.5 * lo.abs(), lo + 0.5 * lo.abs()),
            Scale::Log => (lo / 3.0, lo * 3.0),
        }
    }

    fn resolve_linear(&self, lo: f64, hi: f64, ends: Ends, count: usize) -> Resolved {
        let mut shown = self.unit.shown(lo.abs().max(hi.abs()));
        let power = power_beyond_digits(lo.abs().max(hi.abs()) / shown.size);
        shown.size *= 10f64.powi(power);
        let nice = LinearTicks::over(lo / shown.size, hi / shown.size, count);
        let extend =
            |pinned: bool, nice: f64, tight: f64| if pinned || ends == Ends::Tight { tight } else { nice };
        let lo = extend(self.min.is_some(), nice.below * shown.size, lo);
        let hi = extend(self.max.is_some(), nice.above * shown.size, hi);
        let on_ticks = self.unit.suffix_on_ticks() || self.label.is_empty();
        let suffix = if on_ticks { shown.suffix.as_str() } else { "" };
        let label = |tick: f64| match tick {
            0.0 if self.unit == Unit::Plain => "0".to_owned(),
            tick => format!("{tick:.*}{suffix}", nice.decimals),
        };
        let ticks = nice.within(lo / shown.size, hi / shown.size);
        let ticks = ticks.into_iter().map(|t| Tick { value: t * shown.size, label: label(t) }).collect();
        let factor = if power == 0 { String::new() } else { format!("×10{} ", superscript(power)) };
        let in_title = format!("{factor}{}", if on_ticks { "" } else { &shown.suffix });
        Resolved {
            scale: self.scale,
            lo,
            hi,
            ticks,
            minor: Vec::new(),
            title: titled(&self.label, in_title.trim()),
        }
    }

    fn resolve_log(&self, lo: f64, hi: f64, ends: Ends, count: usize) -> Resolved {
        let (lo, hi) = match ends {
            Ends::Tight => (lo, hi),
            Ends::Nice => (
                self.min.unwrap_or_else(|| nice_log(lo, hi).0),
                self.max.unwrap_or_else(|| nice_log(lo, hi).1),
            ),
        };
        let mut values = log_ticks(lo, hi, count);
        if values.len() < 2 {
            values = LinearTicks::over(lo, hi, count).within(lo, hi);
            values.retain(|&t| t > 0.0);
        }
        let ticks = values.into_iter().map(|value| Tick { value, label: self.log_label(value) }).collect();
        Resolved {
            scale: self.scale,
            lo,
            hi,
            ticks,
            minor: log_minor(lo, hi),
            title: titled(&self.label, ""),
        }
    }

    fn log_label(&self, value: f64) -> String {
        let exponent = floor_log10(value);
        let is_power = (value / 10f64.powi(exponent) - 1.0).abs() < 1e-6;
        let plain = self.unit == Unit::Plain && is_power && !(-3..15).contains(&exponent);
        if plain { format!("10{}", superscript(exponent)) } else { self.unit.format(value) }
    }
}

/// Whether an axis ends on ticks or with the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Nice,
    Tight,
}

/// A labelled position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// An axis with its range and ticks decided.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    scale: Scale,
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) minor: Vec<f64>,
    /// The label with the unit that bare tick labels are in.
    pub(crate) title: String,
}

impl Resolved {
    /// Position of an acceptable value: 0 at the lower end, 1 at the upper, outside beyond them.
    pub(crate) fn at(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.lo) / (self.hi - self.lo),
            // Not the logarithm of ratios: those overflow before the values do.
            Scale::Log => (value.ln() - self.lo.ln()) / (self.hi.ln() - self.lo.ln()),
        }
    }

    /// Where bars and areas start: zero, or the nearest end.
    pub(crate) fn baseline(&self) -> f64 {
        match self.scale {
            Scale::Linear => 0f64.clamp(self.lo, self.hi),
            Scale::Log => self.lo,
        }
    }
}

fn titled(label: &str, unit: &str) -> String {
    match (label, unit) {
        (label, "") => label.to_owned(),
        ("", unit) => unit.to_owned(),
        (label, unit) => format!("{label} ({unit})"),
    }
}

/// The power of ten to take out so that ticks have few digits; a multiple of three, zero in the usual range.
fn power_beyond_digits(largest: f64) -> i32 {
    if largest == 0.0 || (1e-3..1e6).contains(&largest) {
        return 0;
    }
    floor_log10(largest).div_euclid(3) * 3
}

/// Ends of a log axis: powers of ten, or 1, 2, 5 times them for ranges below a decade and a half.
fn nice_log(lo: f64, hi: f64) -> (f64, f64) {
    let (below, above) = (10f64.powi(floor_log10(lo)), 10f64.powi(ceil_log10(hi)));
    if (hi / lo).log10() > 1.5 {
        return (below, if above > below { above } else { below * 10.0 });
    }
    let candidates = || [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0].into_iter();
    let low = candidates().map(|m| m * below).filter(|&c| c <= lo * (1.0 + 1e-9)).fold(below, f64::max);
    let high = candidates().map(|m| m * above).filter(|&c| c >= hi * (1.0 - 1e-9)).fold(above, f64::min);
    if low < high { (low, high) } else { (low / 2.0, high * 2.0) }
}

fn superscript(power: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
    };
    significant(f64::from(power)).chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: &Axis, values: &[f64]) -> (Vec<String>, String) {
        let resolved = axis.resolve(values.iter().copied(), Ends::Nice, 5).unwrap();
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
        assert_eq!(ticks.join(" "), "100us 10ms 1s");
        let (ticks, _) = labels(&Axis::log("share", Unit::Percent), &[1e-4, 1.0]);
        assert_eq!(ticks.join(" "), "0.01% 0.1% 1% 10% 100%");
    }

    #[test]
    fn odd_ranges_have_an_axis() {
        for values in
            [vec![5.0], vec![0.0], vec![-3.0, -3.0], vec![-1.0, 1.0], vec![1e-240, 1e240], vec![1e249]]
        {
            let axis = Axis::linear("x", Unit::Plain).resolve(values.iter().copied(), Ends::Nice, 5).unwrap();
            assert!(axis.lo < axis.hi && axis.ticks.len() >= 2, "{values:?} {axis:?}");
        }
        assert!(
            Axis::linear("x", Unit::Plain)
                .resolve([f64::NAN, f64::INFINITY].into_iter(), Ends::Nice, 5)
                .is_none()
        );
        assert!(Axis::log("x", Unit::Plain).resolve([0.0, -1.0].into_iter(), Ends::Nice, 5).is_none());
        let pinned = Axis::log("x", Unit::Plain).min(0.0).max(5.0);
        let axis = pinned.resolve([10.0, 20.0].into_iter(), Ends::Nice, 5).unwrap();
        assert!(axis.lo < axis.hi);
    }

    proptest! {
        #[test]
        fn every_value_lies_on_an_unpinned_axis(
            values in proptest::collection::vec(proptest::num::f64::ANY, 1..8), log: bool, tight: bool, count in 2usize..9,
        ) {
            let axis = if log { Axis::log("x", Unit::Seconds) } else { Axis::linear("x", Unit::Seconds) };
            let ends = if tight { Ends::Tight } else { Ends::Nice };
            if let Some(resolved) = axis.resolve(values.iter().copied(), ends, count) {
                for &value in values.iter().filter(|&&v| axis.accepts(v)) {
                    let at = resolved.at(value);
                    prop_assert!((-1e-6..=1.0 + 1e-6).contains(&at), "{value} at {at} on {resolved:?}");
                }
                for tick in &resolved.ticks {
                    prop_assert!((-1e-4..=1.0 + 1e-4).contains(&resolved.at(tick.value)), "{resolved:?}");
                }
            }
        }
    }
}
