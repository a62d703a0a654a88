//! Printing, with as many digits as reading back needs.

use super::super::arrival::{Arrival, Batch};
use super::super::law::{Law, Shape};
use super::super::{MmppState, Process};
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

fn joined<T>(f: &mut Formatter<'_>, items: &[T], text: impl Fn(&T) -> String) -> fmt::Result {
    let texts: Vec<String> = items.iter().map(text).collect();
    write!(f, "({})", texts.join(", "))
}

impl Display for Law {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let two = |f: &mut Formatter<'_>, name: &str, mean: &Seconds, c2: &f64| {
            write!(f, "{name}(mean={}, c2={c2})", time(mean.0))
        };
        match self.shape() {
            Shape::Constant(value) => f.write_str(&time(value.0)),
            Shape::Exponential { mean } => write!(f, "exp({})", time(mean.0)),
            Shape::Hyperexponential { mean, c2 } => two(f, "hyperexp", mean, c2),
            Shape::Erlang { mean, c2 } => two(f, "erlang", mean, c2),
            Shape::LogNormal { mean, c2 } => two(f, "lognormal", mean, c2),
            Shape::Pareto { min, shape } => write!(f, "pareto(min={}, shape={shape})", time(min.0)),
            Shape::BoundedPareto { min, max, shape } => {
                write!(f, "pareto(min={}, max={}, shape={shape})", time(min.0), time(max.0))
            }
            Shape::Points(points) => {
                f.write_str(match points.len() {
                    2 => "bimodal",
                    3 => "trimodal",
                    _ => "points",
                })?;
                joined(f, points, |(share, value)| format!("{} {}", percent(*share), time(value.0)))
            }
            Shape::Uniform { from, to } => write!(f, "uniform({}, {})", time(from.0), time(to.0)),
            Shape::Empirical(samples) => {
                f.write_str("empirical")?;
                joined(f, samples, |ns| format!("{}ns", ns.0))
            }
        }
    }
}

impl Display for Arrival {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(process) => f.write_str(&text(process)),
            Self::Renewal(gap) => write!(f, "renewal({gap})"),
            Self::Batches { size: Batch::Fixed(size), of } => write!(f, "batch({size}, {of})"),
            Self::Batches { size: Batch::Geometric { mean }, of } => write!(f, "batch(mean={mean}, {of})"),
        }
    }
}

fn text(process: &Process) -> String {
    let list = |texts: Vec<String>| texts.join(", ");
    match process {
        Process::Constant { rate } => format!("constant({rate}/s)"),
        Process::Poisson { rate } => format!("poisson({rate}/s)"),
        Process::Mmpp { states } => {
            let state = |MmppState { rate, stay_s }: &MmppState| format!("{rate}/s {}", time(*stay_s));
            format!("mmpp({})", list(states.iter().map(state).collect()))
        }
        Process::OnOff { sources, rate_on, on_s, off_s, shape } => {
            let (on, off) = (time(*on_s), time(*off_s));
            format!("onoff(sources={sources}, rate={rate_on}/s, on={on}, off={off}, shape={shape})")
        }
        Process::BModel { rate, bias, interval_s, levels } => {
            let interval = time(*interval_s);
            format!("bmodel(rate={rate}/s, bias={bias}, interval={interval}, levels={levels})")
        }
        Process::Diurnal { of, period_s, amplitude, phase } => {
            let (of, period) = (text(of), time(*period_s));
            format!("diurnal({of}, period={period}, amplitude={amplitude}, phase={phase})")
        }
        Process::Sum(parts) => format!("sum({})", list(parts.iter().map(text).collect())),
    }
}
