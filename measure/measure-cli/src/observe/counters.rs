//! What counters of the kernel say of an observation: losses, which stand before any table, and causes that they name.

use observe::{
    CounterReport, CounterUnit, KernelCount, QUOTA_THROTTLED_TIME, QUOTA_THROTTLES, STEAL, ThrottledGroup,
};
use operation::text::time;
use schemars::JsonSchema;
use serde::Serialize;
use units::plural;

/// A counter of the kernel that has grown while requests counted.
#[derive(Serialize, JsonSchema)]
pub(super) struct CounterFields {
    counter: &'static str,
    /// Where the kernel has it.
    source: &'static str,
    /// A group or a port; empty for the network namespace or the machine.
    subject: String,
    count: Option<u64>,
    time_s: Option<f64>,
    /// What was counted never became a request, and is in no latency.
    lost: bool,
    what_acts_on_it: &'static str,
}

/// The fields of all counters that have grown.
pub(super) fn fields(report: &CounterReport) -> Vec<CounterFields> {
    let field = |KernelCount { counter, subject, amount }: &KernelCount| CounterFields {
        counter: counter.name,
        source: counter.source,
        subject: subject.clone(),
        count: (counter.unit == CounterUnit::Count).then_some(*amount),
        time_s: (counter.unit == CounterUnit::Nanoseconds).then_some(*amount as f64 / 1e9),
        lost: counter.is_loss,
        what_acts_on_it: counter.what_acts_on_it,
    };
    report.counts.iter().map(field).collect()
}

/// What never became a request, a line each; nothing where nothing was lost.
pub(crate) fn losses(report: &CounterReport) -> String {
    report.losses().map(|count| line(count) + "\n").collect()
}

/// `port 80: 7 datagrams were dropped …`.
fn line(count: &KernelCount) -> String {
    let KernelCount { counter, subject, amount } = count;
    let about = if subject.is_empty() { String::new() } else { format!("{subject}: ") };
    match counter.unit {
        CounterUnit::Count => {
            format!("{about}{amount} {}", counter.words[usize::from(*amount != 1)])
        }
        CounterUnit::Nanoseconds => format!("{about}{} {}", time(*amount as f64 / 1e9), counter.words[0]),
    }
}

/// A group with its quota: `CPU quota of group /a: 5ms in each 50ms; throttled 7 times, 120ms in all`.
pub(crate) fn quota_words(group: &ThrottledGroup) -> String {
    let quota = match group.quota {
        Some(quota) => {
            format!("{} in each {}", time(quota.quota_us as f64 / 1e6), time(quota.period_us as f64 / 1e6))
        }
        None => "not there any more".to_owned(),
    };
    format!(
        "CPU quota of group {}: {quota}; throttled {}, {} in all",
        group.group,
        plural(group.throttled, "time"),
        time(group.throttled_ns as f64 / 1e9)
    )
}

/// What counters say beside losses, a line each with what acts on it; nothing where none has grown.
pub(crate) fn text(report: &CounterReport) -> String {
    let mut text = String::new();
    for group in &report.throttled {
        text += &format!("  {}\n", quota_words(group));
        if let Some(command) = &group.command {
            text += &format!("    twice as much: {command}\n");
        }
    }
    if report.threads_throttled_ns > 0 {
        let times = time(report.threads_throttled_ns as f64 / 1e9);
        text += &format!("  threads that read requests were kept from running for {times} by CPU quotas\n");
    }
    // Steal has a line below the causes, and quotas have theirs above.
    let has_line = [&QUOTA_THROTTLES, &QUOTA_THROTTLED_TIME, &STEAL];
    for count in report.counts.iter().filter(|count| !has_line.contains(&count.counter)) {
        text += &format!("  {}\n    what affects it: {}\n", line(count), count.counter.what_acts_on_it);
    }
    if text.is_empty() { text } else { format!("\ncounters of the kernel meanwhile:\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::cpu_quota::CpuQuota;
    use observe::{LISTEN_DROPS, UDP_DROPS};

    #[test]
    fn losses_and_quotas_have_their_words() {
        let count = |counter, amount| KernelCount { counter, subject: "port 80".to_owned(), amount };
        let group = ThrottledGroup {
            group: "/web".to_owned(),
            quota: Some(CpuQuota { quota_us: 5000, period_us: 50_000 }),
            throttled: 7,
            throttled_ns: 120_000_000,
            command: Some("echo 10000 > /x".to_owned()),
            processes: vec![9],
        };
        let report = CounterReport {
            counts: vec![count(&UDP_DROPS, 1), count(&LISTEN_DROPS, 2), count(&QUOTA_THROTTLES, 7)],
            throttled: vec![group],
            threads_throttled_ns: 0,
        };
        assert_eq!(
            losses(&report),
            "port 80: 1 datagram was dropped at the server's socket: it is in no latency below\n\
             port 80: 2 connection attempts were dropped at the server's listening socket: their waits are in no \
             latency below\n"
        );
        let text = text(&report);
        assert!(
            text.contains("CPU quota of group /web: 5ms in each 50ms; throttled 7 times, 120ms in all"),
            "{text}"
        );
        assert!(text.contains("twice as much: echo 10000 > /x") && !text.contains("periods"), "{text}");
        assert_eq!(super::text(&CounterReport::default()), "");
        assert_eq!((fields(&report)[2].count, fields(&report)[2].time_s), (Some(7), None));
        let group = operation::document::pretty(&report.throttled[0]);
        assert!(group.contains("\"quota_s\": 0.005,") && group.contains("\"throttled_s\": 0.12,"), "{group}");
    }
}
