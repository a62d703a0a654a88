//! Nice numbers for axes: multiples of 1, 2 or 5 times a power of ten, and powers of ten.

/// Evenly spaced ticks at nice numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LinearTicks {
    /// The distance between two ticks.
    pub(crate) step: f64,
    /// The number of decimals that every tick needs.
    pub(crate) decimals: usize,
    /// The last multiple of the step at or below the beginning of the range.
    pub(crate) below: f64,
    /// The first multiple of the step at or above the end of the range.
    pub(crate) above: f64,
}

impl LinearTicks {
    /// Divides the range `lo < hi` into about `count` steps, at most `count + 1`.
    pub(crate) fn new(lo: f64, hi: f64, count: usize) -> Self {
        assert!(lo < hi && (hi - lo).is_finite(), "a range has a positive finite length");
        let raw = (hi - lo) / count.max(1) as f64;
        let (mantissa, exponent) = nice_at_least(raw);
        let step = scaled(mantissa, exponent);
        // A small tolerance inward, so that 0.30000000000000004 / 0.1 is three steps.
        let tolerance = 1e-9;
        let below = (lo / step + tolerance).floor();
        let above = (hi / step - tolerance).ceil();
        let decimals = usize::try_from(-exponent).unwrap_or(0);
        Self {
            step,
            decimals,
            below: multiple(below, mantissa, exponent),
            above: multiple(above, mantissa, exponent),
        }
    }

    /// Returns the ticks within `lo..=hi`, ascending.
    pub(crate) fn within(&self, lo: f64, hi: f64) -> Vec<f64> {
        let slack = self.step * 1e-6;
        let steps = ((self.above - self.below) / self.step).round();
        let mut ticks = Vec::new();
        let mut k = 0.0;
        while k <= steps && k < 1000.0 {
            let tick = self.below + k * self.step;
            if tick >= lo - slack && tick <= hi + slack {
                ticks.push(if tick.abs() < slack { 0.0 } else { tick });
            }
            k += 1.0;
        }
        ticks
    }
}

/// Returns the smallest m·10^e ≥ `raw`, up to rounding, with m in {1, 2, 5}.
fn nice_at_least(raw: f64) -> (f64, i32) {
    let exponent = floor_log10(raw);
    let mantissa = raw / 10f64.powi(exponent);
    match [1.0, 2.0, 5.0].into_iter().find(|&m| m >= mantissa * (1.0 - 1e-9)) {
        Some(nice) => (nice, exponent),
        None => (1.0, exponent + 1),
    }
}

/// ⌊log10 value⌋ of a positive value.
#[allow(clippy::cast_possible_truncation, reason = "between −324 and 308")]
pub(crate) fn floor_log10(value: f64) -> i32 {
    (value.log10() + 1e-12).floor() as i32
}

/// ⌈log10 value⌉ of a positive value.
#[allow(clippy::cast_possible_truncation, reason = "between −323 and 309")]
pub(crate) fn ceil_log10(value: f64) -> i32 {
    (value.log10() - 1e-12).ceil() as i32
}

/// m·10^e, rounded once when e is negative.
fn scaled(mantissa: f64, exponent: i32) -> f64 {
    multiple(1.0, mantissa, exponent)
}

/// k·m·10^e, rounded once when e is negative.
fn multiple(k: f64, mantissa: f64, exponent: i32) -> f64 {
    if exponent < 0 { k * mantissa / 10f64.powi(-exponent) } else { k * mantissa * 10f64.powi(exponent) }
}

/// Returns the labelled ticks of a log axis over positive `lo < hi`: powers of ten, thinned to `count`,
/// and 2 and 5 times them if there are few. A narrow range may have fewer than two.
pub(crate) fn log_ticks(lo: f64, hi: f64, count: usize) -> Vec<f64> {
    let first = floor_log10(lo);
    let last = ceil_log10(hi);
    let decades = usize::try_from(last - first).unwrap_or(0);
    let stride = decades.div_ceil(count.max(1)).max(1);
    let powers_inside = (first..=last).filter(|&e| is_inside(scaled(1.0, e), lo, hi)).count();
    let are_few = decades * 3 <= count || (decades <= 2 && powers_inside < 3);
    let mantissas: &[f64] = if are_few { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers = (first..=last).filter(|e| e.rem_euclid(i32::try_from(stride).unwrap_or(i32::MAX)) == 0);
    let all = powers.flat_map(|e| mantissas.iter().map(move |&m| scaled(m, e)));
    all.filter(|&t| is_inside(t, lo, hi)).collect()
}

/// Minutes, hours and days that are ticks of a log axis of seconds, about one per decade.
const DURATIONS_S: [f64; 8] = [60.0, 600.0, 3600.0, 36_000.0, 86_400.0, 864_000.0, 8.64e6, 8.64e7];
const FINE_DURATIONS_S: [f64; 18] = [
    20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 18_000.0, 36_000.0, 86_400.0,
    172_800.0, 432_000.0, 864_000.0, 1.728e6, 4.32e6,
];

/// Returns the labelled ticks of a log axis of seconds that extends beyond minutes: powers of ten up to
/// ten seconds, then customary durations.
pub(crate) fn duration_ticks(lo: f64, hi: f64, count: usize) -> Vec<f64> {
    let inside = |durations: &[f64]| -> Vec<f64> {
        let powers = (floor_log10(lo.min(10.0))..=1).map(|e| scaled(1.0, e));
        powers.chain(durations.iter().copied()).filter(|&t| is_inside(t, lo, hi)).collect()
    };
    let coarse = inside(&DURATIONS_S);
    let all = if coarse.len() < 3 { inside(&FINE_DURATIONS_S) } else { coarse };
    let stride = all.len().div_ceil(count.max(1) + 2).max(1);
    // The offset keeps one second among the thinned ticks if it lies inside.
    let offset = all.iter().position(|&t| (t - 1.0).abs() < 1e-9).unwrap_or(0) % stride;
    all.into_iter().skip(offset).step_by(stride).collect()
}

/// Returns the customary durations as JavaScript arrays, coarse and fine, for the page's script.
pub(crate) fn script_durations() -> (String, String) {
    (format!("{DURATIONS_S:?}"), format!("{FINE_DURATIONS_S:?}"))
}

/// Returns true if a value is one of the [`DURATIONS_S`].
pub(crate) fn is_duration(seconds: f64) -> bool {
    DURATIONS_S.contains(&seconds)
}

/// Returns the unlabelled ticks of a log axis, 2 to 9 times powers of ten, if there are few enough
/// decades to distinguish them.
pub(crate) fn log_minor(lo: f64, hi: f64) -> Vec<f64> {
    let first = floor_log10(lo);
    let last = ceil_log10(hi);
    if last - first > 6 {
        return Vec::new();
    }
    let all = (first..=last).flat_map(|e| (2..10).map(move |m| scaled(f64::from(m), e)));
    all.filter(|&t| is_inside(t, lo, hi)).collect()
}

fn is_inside(tick: f64, lo: f64, hi: f64) -> bool {
    tick >= lo * (1.0 - 1e-9) && tick <= hi * (1.0 + 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn linear(lo: f64, hi: f64, count: usize) -> Vec<f64> {
        let ticks = LinearTicks::new(lo, hi, count);
        ticks.within(ticks.below, ticks.above)
    }

    #[test]
    fn closed_cases() {
        assert_eq!(linear(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(linear(0.0, 1.0, 4), [0.0, 0.5, 1.0]);
        assert_eq!(linear(-3.0, 7.0, 5), [-4.0, -2.0, 0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(linear(0.0, 0.3, 3).len(), 4);
        assert_eq!(log_ticks(1e-3, 1e3, 8), [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3]);
        assert_eq!(log_ticks(1.0, 100.0, 8), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(log_ticks(1.0, 1e12, 5), [1.0, 1e3, 1e6, 1e9, 1e12]);
        assert_eq!(log_minor(1.0, 10.0), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    }

    proptest! {
        #[test]
        fn linear_ticks_are_nice_cover_the_range_and_are_few(
            lo in -1e9f64..1e9, length in 1e-6f64..1e9, count in 1usize..12,
        ) {
            prop_assume!(length > lo.abs() * 1e-9);
            let ticks = LinearTicks::new(lo, lo + length, count);
            let slack = ticks.step * 1e-5;
            prop_assert!(ticks.below <= lo + slack && ticks.above >= lo + length - slack);
            let all = linear(lo, lo + length, count);
            prop_assert!(all.len() >= 2 && all.len() <= count + 2, "{} ticks", all.len());
            let mantissa = ticks.step / 10f64.powi(floor_log10(ticks.step));
            prop_assert!([1.0, 2.0, 5.0].iter().any(|m| (mantissa - m).abs() < 1e-9), "{mantissa}");
        }

        #[test]
        fn log_ticks_lie_inside_and_are_few(e in -300i32..290, decades in 0.01f64..10.0, count in 2usize..12) {
            let lo = 1.7 * 10f64.powi(e);
            let hi = lo * 10f64.powf(decades);
            let ticks = log_ticks(lo, hi, count);
            // Two decades have up to seven ticks for any count; labels that do not fit are omitted when
            // drawn.
            prop_assert!(ticks.len() <= (count + 2).max(7));
            prop_assert!(ticks.iter().all(|&t| is_inside(t, lo, hi)));
            prop_assert!(ticks.windows(2).all(|w| w[0] < w[1]));
        }
    }
}
