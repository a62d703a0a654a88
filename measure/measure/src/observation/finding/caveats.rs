//! The place where everything is collected that an observation did not see: it is said before any figure.

use observe::{ObservationReport, ProbeSettings};
use schemars::JsonSchema;
use serde::Serialize;
use units::plural;

/// Something that was not seen, so that the figures are not about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Caveat {
    /// A name for machines, such as `lost-events`.
    pub kind: &'static str,
    /// How often; null where it is not counted.
    pub count: Option<u64>,
    /// The sentence for people, without a full stop.
    pub words: String,
}

/// A caveat about a number of things; nothing when there are none.
fn counted(kind: &'static str, count: u64, words: impl FnOnce() -> String) -> Option<Caveat> {
    (count > 0).then(|| Caveat { kind, count: Some(count), words: words() })
}

/// All that was not seen. What is merely guessed stands below the figures.
pub(super) fn caveats(asked: &ProbeSettings, report: &ObservationReport) -> Vec<Caveat> {
    let counts = report.counts;
    let are = |count: u64| if count == 1 { "is" } else { "are" };
    let rows = [
        counted("lost-events", report.lost_events, || {
            format!(
                "{} lost, and with them requests: a larger --buffer helps",
                plural(report.lost_events, "event")
            )
        }),
        counted("skipped-runs", report.skipped_runs, || {
            let runs = plural(report.skipped_runs, "run");
            format!("the kernel skipped {runs} of BPF programs: up to as many events are missing")
        }),
        counted("discarded", counts.discarded, || {
            let requests = plural(counts.discarded, "request");
            let are = are(counts.discarded);
            format!("{requests} {are} left out: events lost, or message boundaries unknown")
        }),
        counted("unanswered", counts.unanswered, || {
            let requests = plural(counts.unanswered, "request");
            let are = are(counts.unanswered);
            format!("{requests} without an answer {are} left out")
        }),
        counted("unrequested", counts.unrequested, || {
            let answers = plural(counts.unrequested, "answer");
            let are = are(counts.unrequested);
            format!("{answers} to requests that were not seen {are} left out")
        }),
        counted("unseen-arrivals", counts.unseen_arrivals, || {
            let reads = plural(counts.unseen_arrivals, "read");
            let are = are(counts.unseen_arrivals);
            format!("{reads} of bytes not seen to arrive {are} left out")
        }),
        (asked.share < 1.0).then(|| Caveat {
            kind: "share-of-connections",
            count: None,
            words: "TCP connections that --share left out".to_owned(),
        }),
        report.sampled.as_ref().filter(|sampled| sampled.has_pauses).map(|sampled| Caveat {
            kind: "sampled-time",
            count: None,
            words: format!(
                "only {} of {} observed",
                operation::text::time(sampled.counted.as_secs_f64()),
                operation::text::time(report.duration.as_secs_f64())
            ),
        }),
    ];
    rows.into_iter().flatten().collect()
}
