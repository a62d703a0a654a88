//! The finding as families of metrics, for both Prometheus outputs.

use crate::observation::finding::{Finding, FindingVerdict, NextStep};

/// Description of the family with the words of a finding, without a full stop.
pub(super) const FINDING_HELP: &str =
    "The answer in words, with the value 1; figures are in the other families of this prefix";

/// A figure of a finding.
pub(super) struct FindingGauge {
    pub(super) name: &'static str,
    /// Description without a full stop.
    pub(super) help: &'static str,
    pub(super) value: Option<f64>,
}

/// Returns the figures of a finding.
pub(super) fn finding_gauges(finding: &Finding) -> [FindingGauge; 5] {
    let is_unusual = finding.verdict == FindingVerdict::Unusual;
    let gauge = |name, help, value| FindingGauge { name, help, value };
    [
        gauge(
            "tailwright_tail_unusual",
            "Whether p99 is several times the usual one",
            Some(f64::from(u8::from(is_unusual))),
        ),
        gauge("tailwright_tail_p99_seconds", "p99 of T6 - T1", finding.p99_s),
        gauge(
            "tailwright_tail_ideal_ratio",
            "p99 divided by that of one queue with constant service",
            finding.times_ideal,
        ),
        gauge(
            "tailwright_tail_cause_ratio",
            "The share of the dominating cause in the time of requests at or above p99",
            finding.dominating.as_ref().map(|dominating| dominating.share),
        ),
        gauge("tailwright_tail_requests", "Requests that the answer is about", Some(finding.requests as f64)),
    ]
}

/// Returns the words of a finding as labels. Figures are left out: each value of a label is a new time series.
pub(super) fn finding_labels(finding: &Finding) -> [(&'static str, String); 4] {
    let next = match &finding.next {
        Some(NextStep::Command(words) | NextStep::Words(words)) => words.clone(),
        None => String::new(),
    };
    [
        ("verdict", finding.verdict.name().to_owned()),
        ("cause", finding.dominating.as_ref().map_or("", |dominating| dominating.cause).to_owned()),
        ("spent_on", finding.spent_on()),
        ("next", next),
    ]
}

/// Returns a label with its value as the text format of Prometheus has it.
pub(super) fn written_label((name, value): &(&str, String)) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}
