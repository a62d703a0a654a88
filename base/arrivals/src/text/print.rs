//! Distributions and arrival patterns printed as text, with as many digits as reading them back needs.

use crate::{ArrivalPattern, BatchSize, DistributionFamily, MmppState, RateProcess, TimeDistribution};
use std::fmt::{self, Display, Formatter};
use units::Seconds;

/// A time that reads back to the same double: in a unit in which it is at least one if such a text is exact, and
/// the shortest of those.
fn time(secs: f64) -> String {
    let scales = [("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)];
    let texts = scales.iter().flat_map(|(unit, scale)| {
        let plain = secs * scale;
        let rounded = (plain * 1e6).round() / 1e6;
        [plain, rounded].map(|value| (rounded < 1.0, format!("{value}{unit}")))
    });
    let exact = texts.filter(|(_, text)| text.parse() == Ok(Seconds(secs)));
    let best = exact.min_by_key(|(below_one, text)| (*below_one, text.len()));
    best.map_or_else(|| format!("{secs}s"), |(_, text)| text)
}

/// A share in percent that reads back to the same double, if any does; the shortest.
fn percent(share: f64) -> String {
    let plain = share * 100.0;
    let near = [(share * 1e14).round() / 1e12, plain, plain.next_up(), plain.next_down()];
    let exact = near.iter().filter(|value| **value / 100.0 == share).map(|value| format!("{value}%"));
    exact.min_by_key(String::len).unwrap_or_else(|| format!("{plain}%"))
}

/// The texts of all items with commas between them.
fn comma_separated<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// A distribution that is given by its mean and squared coefficient of variation.
fn write_two_moments(f: &mut Formatter<'_>, name: &str, mean: Seconds, c2: f64) -> fmt::Result {
    write!(f, "{name}(mean={}, c2={c2})", time(mean.0))
}

impl Display for TimeDistribution {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.family() {
            DistributionFamily::Constant(value) => f.write_str(&time(value.0)),
            DistributionFamily::Exponential { mean } => write!(f, "exp({})", time(mean.0)),
            DistributionFamily::Hyperexponential { mean, c2 } => write_two_moments(f, "hyperexp", *mean, *c2),
            DistributionFamily::Erlang { mean, c2 } => write_two_moments(f, "erlang", *mean, *c2),
            DistributionFamily::LogNormal { mean, c2 } => write_two_moments(f, "lognormal", *mean, *c2),
            DistributionFamily::Pareto { min, shape } => {
                write!(f, "pareto(min={}, shape={shape})", time(min.0))
            }
            DistributionFamily::BoundedPareto { min, max, shape } => {
                write!(f, "pareto(min={}, max={}, shape={shape})", time(min.0), time(max.0))
            }
            DistributionFamily::Points(points) => {
                let name = match points.len() {
                    2 => "bimodal",
                    3 => "trimodal",
                    _ => "points",
                };
                let points = comma_separated(points, |(share, value)| {
                    format!("{} {}", percent(*share), time(value.0))
                });
                write!(f, "{name}({points})")
            }
            DistributionFamily::Uniform { from, to } => {
                write!(f, "uniform({}, {})", time(from.0), time(to.0))
            }
            DistributionFamily::Empirical(samples) => {
                write!(f, "empirical({})", comma_separated(samples, |ns| format!("{}ns", ns.0)))
            }
        }
    }
}

impl Display for ArrivalPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(process) => f.write_str(&process_text(process)),
            Self::Renewal(gap) => write!(f, "renewal({gap})"),
            Self::Batches { size: BatchSize::Fixed(size), of } => write!(f, "batch({size}, {of})"),
            Self::Batches { size: BatchSize::Geometric { mean }, of } => {
                write!(f, "batch(mean={mean}, {of})")
            }
        }
    }
}

fn process_text(process: &RateProcess) -> String {
    match process {
        RateProcess::Constant { rate } => format!("constant({rate}/s)"),
        RateProcess::Poisson { rate } => format!("poisson({rate}/s)"),
        RateProcess::Mmpp { states } => {
            let state = |MmppState { rate, stay_s }: &MmppState| format!("{rate}/s {}", time(*stay_s));
            format!("mmpp({})", comma_separated(states, state))
        }
        RateProcess::OnOff { sources, rate_on, on_s, off_s, shape } => {
            let on = time(*on_s);
            let off = time(*off_s);
            format!("onoff(sources={sources}, rate={rate_on}/s, on={on}, off={off}, shape={shape})")
        }
        RateProcess::BModel { rate, bias, interval_s, levels } => {
            let interval = time(*interval_s);
            format!("bmodel(rate={rate}/s, bias={bias}, interval={interval}, levels={levels})")
        }
        RateProcess::Diurnal { of, period_s, amplitude, phase } => {
            let of = process_text(of);
            let period = time(*period_s);
            format!("diurnal({of}, period={period}, amplitude={amplitude}, phase={phase})")
        }
        RateProcess::Sum(parts) => format!("sum({})", comma_separated(parts, process_text)),
    }
}
