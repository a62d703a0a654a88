//! What observing cost, by its parts: programs in the kernel, and joining their events.

use observe::{MeasuredCost, ObservationReport, SampledTime};
use operation::text::{percent, time};
use schemars::JsonSchema;
use serde::Serialize;
use units::plural;

/// In which part of the time requests counted, for machines.
#[derive(Serialize, JsonSchema)]
pub(super) struct SampledFields {
    windows: u64,
    counted_s: f64,
    share_of_time: f64,
    /// Of one CPU, on average over the whole time: programs in the kernel, attaching them, and joining events.
    cost_share: f64,
    /// A share of one CPU.
    cost_limit: f64,
    /// Of the places of windows.
    seed: u64,
    /// CPU time that attaching programs for the first time took, which `cost_share` contains.
    first_attaching_cpu_s: f64,
    /// Requests without an answer when their window ended.
    cut_off: u64,
}

pub(super) fn sampled_fields(sampled: &SampledTime, report: &ObservationReport) -> SampledFields {
    let counted_s = sampled.counted.as_secs_f64();
    let observed_s = report.duration.as_secs_f64();
    SampledFields {
        windows: sampled.windows,
        counted_s,
        share_of_time: counted_s / observed_s,
        cost_share: sampled.cost_ns as f64 / 1e9 / observed_s,
        cost_limit: sampled.limit.share,
        seed: sampled.limit.seed,
        first_attaching_cpu_s: sampled.first_attaching_ns as f64 / 1e9,
        cut_off: sampled.cut_off,
    }
}

/// What observing cost, as far as it was measured; `joining_ns` is the CPU time of the thread that joined events.
pub(crate) fn cost_lines(report: &ObservationReport, joining_ns: u64) -> String {
    if let Some(sampled) = &report.sampled {
        return sampled_lines(sampled, report);
    }
    let kernel = match &report.cost {
        Some(cost) => kernel_lines(cost),
        None if report.may_measure_cost => {
            "what programs in the kernel took was not measured: the time was too short".to_owned()
        }
        None => "what programs in the kernel took was neither measured nor limited: that takes CAP_SYS_ADMIN"
            .to_owned(),
    };
    let joining = joining_ns as f64 / 1e9 / report.duration.as_secs_f64().max(f64::MIN_POSITIVE);
    format!("\n{kernel}\njoining events took {} of one CPU, in all of the time\n", percent(joining))
}

/// The same sum, divided in two ways.
fn kernel_lines(cost: &MeasuredCost) -> String {
    let run_s = cost.run_ns as f64 / 1e9;
    let each = |(number, noun): (u64, &str)| {
        format!("{} per {noun} ({})", time(run_s / number as f64), plural(number, noun))
    };
    let divided: Vec<String> = [(cost.requests, "request"), (cost.runs, "run")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(each)
        .collect();
    let divided = if divided.is_empty() { String::new() } else { format!(":\n  {}", divided.join(", or ")) };
    format!(
        "in {}, programs in the kernel took {} of one CPU{divided}",
        time(cost.duration.as_secs_f64()),
        percent(cost.cpu_share())
    )
}

/// In which part of the time requests counted, and what observing cost over all of it.
fn sampled_lines(sampled: &SampledTime, report: &ObservationReport) -> String {
    let fields = sampled_fields(sampled, report);
    let share = percent(fields.share_of_time);
    let mut text = if sampled.has_pauses {
        format!(
            "\na sample: {} at random, seed {}, {share} of the time; other requests are missing\n",
            plural(sampled.windows, "window"),
            sampled.limit.seed,
        )
    } else {
        "\nobserved in one piece\n".to_owned()
    };
    text += &format!(
        "observing took {} of one CPU on average; the limit is {}\n  \
         (programs in the kernel, attaching them, joining events; `--cost-limit none` has no limit)\n",
        percent(fields.cost_share),
        full_percent(sampled.limit.share),
    );
    if fields.cost_share > sampled.limit.share {
        let enough_s = (sampled.cost_ns as f64 / 1e9 / sampled.limit.share).ceil();
        text += &format!(
            "above the limit, in too short a time: attaching programs for the first time took {} of it,\n  \
             and all is paid for after {enough_s:.0}s\n",
            time(fields.first_attaching_cpu_s),
        );
    }
    text
}

/// A fraction that somebody chose, as a percentage with three significant digits, however small.
pub(crate) fn full_percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    if !(value > 0.0 && value.is_finite()) {
        return percent(fraction);
    }
    let decimals =
        (0_u16..300).find(|decimals| value * 10_f64.powi((*decimals).into()) >= 99.95).map_or(0, usize::from);
    let digits = format!("{value:.decimals$}");
    let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits}%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_chosen_is_printed_in_full() {
        for (fraction, shown) in [
            (1.0, "100%"),
            (0.5, "50%"),
            (0.03, "3%"),
            (0.125, "12.5%"),
            (1.0 / 3.0, "33.3%"),
            (0.001, "0.1%"),
            (0.000_000_1, "0.00001%"),
            (0.0, "0.000%"),
        ] {
            assert_eq!(full_percent(fraction), shown);
        }
    }

    #[test]
    fn one_sum_is_divided_in_two_ways() {
        let duration = Duration::from_secs(1);
        let cost = MeasuredCost { run_ns: 6_000_000, runs: 40_000, requests: 1, duration };
        assert_eq!(
            kernel_lines(&cost),
            "in 1s, programs in the kernel took 0.600% of one CPU:\n  6ms per request (1 request), or 150ns per run (40000 runs)"
        );
        let none = MeasuredCost { run_ns: 0, runs: 0, requests: 0, duration };
        assert_eq!(kernel_lines(&none), "in 1s, programs in the kernel took 0.000% of one CPU");
    }
}
