//! Numbers as text: the prefix, the digits and the suffix of a unit.

/// The unit of an axis or a cell. Values are always in the base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number without a unit; large numbers have the suffixes k, M, G and T.
    Plain,
    /// A count of things; ticks are whole.
    Count,
    /// Seconds, written in units from ns to days.
    Seconds,
    /// Bytes, written with decimal prefixes.
    Bytes,
    /// Bytes per second, written with decimal prefixes.
    BytesPerSec,
    /// Events per second, written with decimal prefixes.
    PerSec,
    /// A fraction (0.25), written as a percentage (25%).
    Percent,
}

/// A unit with its prefix: the number shown is the value divided by `size`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnitPrefix {
    pub(crate) size: f64,
    pub(crate) suffix: String,
}

/// The prefixes of a unit, smallest first: the absolute value from which each is used, its size and its suffix.
type Suffixes = &'static [(f64, f64, &'static str)];

const SECONDS: Suffixes = &[
    (0.0, 1e-9, "ns"),
    (1e-6, 1e-6, "us"),
    (1e-3, 1e-3, "ms"),
    (1.0, 1.0, "s"),
    (180.0, 60.0, "min"),
    (10_800.0, 3600.0, "h"),
    (259_200.0, 86_400.0, "d"),
];
const PLAIN: Suffixes =
    &[(0.0, 1.0, ""), (1e4, 1e3, "k"), (1e6, 1e6, "M"), (1e9, 1e9, "G"), (1e12, 1e12, "T")];
const BYTES: Suffixes =
    &[(0.0, 1.0, "B"), (1e3, 1e3, "kB"), (1e6, 1e6, "MB"), (1e9, 1e9, "GB"), (1e12, 1e12, "TB")];
const BYTES_PER_SEC: Suffixes =
    &[(0.0, 1.0, "B/s"), (1e3, 1e3, "kB/s"), (1e6, 1e6, "MB/s"), (1e9, 1e9, "GB/s"), (1e12, 1e12, "TB/s")];
const PER_SEC: Suffixes =
    &[(0.0, 1.0, "/s"), (1e4, 1e3, "k/s"), (1e6, 1e6, "M/s"), (1e9, 1e9, "G/s"), (1e12, 1e12, "T/s")];
const PERCENT: Suffixes = &[(0.0, 0.01, "%")];

const ALL: [Unit; 7] =
    [Unit::Plain, Unit::Count, Unit::Seconds, Unit::Bytes, Unit::BytesPerSec, Unit::PerSec, Unit::Percent];

/// Returns the prefixes of all units as a JavaScript object, so that the page's script writes numbers as this module does.
pub(crate) fn script_table() -> String {
    let unit = |unit: &Unit| {
        let prefixes =
            unit.suffixes().iter().map(|(from, size, suffix)| format!("[{from:e},{size:e},\"{suffix}\"]"));
        let prefixes = prefixes.collect::<Vec<_>>().join(",");
        format!("{}:{{onTicks:{},prefixes:[{prefixes}]}}", unit.name(), unit.suffix_on_ticks())
    };
    format!("{{{}}}", ALL.iter().map(unit).collect::<Vec<_>>().join(","))
}

impl Unit {
    /// Returns the name of the unit in the page's script.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "Plain",
            Self::Count => "Count",
            Self::Seconds => "Seconds",
            Self::Bytes => "Bytes",
            Self::BytesPerSec => "BytesPerSec",
            Self::PerSec => "PerSec",
            Self::Percent => "Percent",
        }
    }

    /// Writes `value` with four significant digits and the prefix that suits it: `12.34ms`, `1.5MB`, `25%`.
    /// A value that is not a number is `–`, and an infinite one is `∞`.
    pub fn format(self, value: f64) -> String {
        if value.is_nan() {
            return "–".to_owned();
        }
        if value.is_infinite() {
            return if value > 0.0 { "∞" } else { "-∞" }.to_owned();
        }
        // Zero takes the suffix of one: "0s", not "0ns".
        let prefix = self.prefix(if value == 0.0 { 1.0 } else { value.abs() });
        format!("{}{}", significant(value / prefix.size), prefix.suffix)
    }

    /// Returns the prefix for values up to `largest` (absolute, positive).
    pub(crate) fn prefix(self, largest: f64) -> UnitPrefix {
        // A small tolerance, so that 0.001 stored as 0.000999… is a millisecond.
        let reached = |from: f64| largest >= from * (1.0 - 1e-9);
        let suffixes = self.suffixes();
        let (_, size, suffix) =
            suffixes.iter().rev().find(|(from, ..)| reached(*from)).unwrap_or(&suffixes[0]);
        UnitPrefix { size: *size, suffix: (*suffix).to_owned() }
    }

    /// Returns true if every tick of a linear axis has the suffix, instead of the axis title.
    pub(crate) fn suffix_on_ticks(self) -> bool {
        matches!(self, Self::Percent | Self::Plain | Self::Count)
    }

    fn suffixes(self) -> Suffixes {
        match self {
            Self::Plain | Self::Count => PLAIN,
            Self::Seconds => SECONDS,
            Self::Bytes => BYTES,
            Self::BytesPerSec => BYTES_PER_SEC,
            Self::PerSec => PER_SEC,
            Self::Percent => PERCENT,
        }
    }
}

/// Writes four significant digits without trailing zeros; very large and very small numbers have an exponent.
pub(crate) fn significant(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e7).contains(&magnitude) {
        return trim_exponent(&format!("{value:.3e}"));
    }
    let decimals = decimals_for(magnitude);
    trim_zeros(&format!("{value:.decimals$}"))
}

fn decimals_for(magnitude: f64) -> usize {
    // Powers 10^3, 10^2, … need 0, 1, … decimals.
    (0..8).find(|&d| magnitude * 10f64.powi(d) >= 1e3).map_or(8, |d| usize::try_from(d).unwrap_or(8))
}

/// Removes trailing zeros before an exponent: `1.500e12` becomes `1.5e12`.
fn trim_exponent(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{}e{exponent}", trim_zeros(digits)),
        None => text.to_owned(),
    }
}

/// Removes trailing decimal zeros and the sign of zero: `1.500` becomes `1.5`, `-0` becomes `0`.
pub(crate) fn trim_zeros(text: &str) -> String {
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_the_prefix_that_suits_them() {
        for (unit, value, text) in [
            (Unit::Seconds, 0.150, "150ms"),
            (Unit::Seconds, 0.000_999_999_999_9, "1ms"),
            (Unit::Seconds, 1.234_56, "1.235s"),
            (Unit::Seconds, 0.0, "0s"),
            (Unit::Seconds, 4.2e-5, "42us"),
            (Unit::Seconds, -4.2e-5, "-42us"),
            (Unit::Seconds, 7200.0, "120min"),
            (Unit::Seconds, 36_000.0, "10h"),
            (Unit::Bytes, 4096.0, "4.096kB"),
            (Unit::BytesPerSec, 125e6, "125MB/s"),
            (Unit::Percent, 0.9995, "99.95%"),
            (Unit::Percent, 0.0, "0%"),
            (Unit::Plain, 1e6, "1M"),
            (Unit::Plain, 9999.0, "9999"),
            (Unit::Plain, 1e30, "1e18T"),
            (Unit::Plain, 1.5e-6, "1.5e-6"),
            (Unit::PerSec, 25_000.0, "25k/s"),
            (Unit::Plain, f64::NAN, "–"),
            (Unit::Seconds, f64::INFINITY, "∞"),
        ] {
            assert_eq!(unit.format(value), text);
        }
    }
}
