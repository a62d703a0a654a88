//! What of an observation is less certain: what was guessed or not joined. What was lost is said before all figures, by
//! the caveats of the finding.

use model::OperationError;
use observe::{
    JoinCounts, ObservationReport, ProbeSettings, Protocol, ReadCoverage, RequestQuality, RequestStatistics,
};
use units::plural;

/// What a reader has to know before any table: what the tables leave out.
pub(crate) fn left_out(report: &ObservationReport) -> String {
    let mut text = String::new();
    if report.lost_events > 0 {
        let lost = plural(report.lost_events, "event");
        text += &format!("{lost} lost: requests are missing, slow ones rather than quick ones (--buffer)\n");
    }
    let coverage = report.coverage();
    if coverage.unseen > 0 {
        let all = plural(coverage.all(), "request");
        text += &format!("{} of {all} left out: {}\n", coverage.unseen, taken_unseen(coverage));
    }
    text
}

/// That observing cannot say anything about this server, and what to do about it; `None` if it can.
pub(crate) fn blindness(report: &ObservationReport) -> Option<OperationError> {
    if !report.is_blind() {
        return None;
    }
    let coverage = report.coverage();
    let all = plural(coverage.all(), "request");
    let said = format!("{} of {all} cannot be observed: {}", coverage.unseen, taken_unseen(coverage));
    let hint = if coverage.multipath * 2 > coverage.unseen {
        "let the server listen without MPTCP (for Go: GODEBUG=multipathtcp=0), or observe it with clients of plain TCP"
    } else {
        "docs/explanation/tracing.md says which reads are seen; if the server can be told to use plain ones (without splice or \
         sockmap), observe it so"
    };
    Some(OperationError::machine(said).hint(hint))
}

fn taken_unseen(coverage: ReadCoverage) -> &'static str {
    if coverage.multipath == coverage.unseen {
        "they came by MPTCP, whose reads and answers are not seen"
    } else {
        "the server has taken them from its connections by calls that are not seen"
    }
}

/// What was guessed or not joined; nothing when there is nothing.
pub(crate) fn doubts(asked: &ProbeSettings, report: &ObservationReport) -> String {
    let total = report.statistics.count();
    let mut text = String::new();
    let flagged = RequestQuality::ALL.into_iter().zip(report.statistics.flagged());
    for ((flag, _), (what, count)) in flagged.filter(|(_, (_, count))| *count > 0) {
        text += &format!("  {count} of {total}: {what}");
        if flag == RequestQuality::WITHOUT_PROTOCOL {
            text += &guessed_because(asked.protocol, count == total);
        }
        text.push('\n');
    }
    for line in not_joined(report.counts) {
        text += &format!("  {line}\n");
    }
    if text.is_empty() { text } else { format!("\nless certain:\n{text}") }
}

/// Whether any request was read by the protocol that was named; `None` without a protocol or a request.
pub(crate) fn is_protocol_understood(asked: &ProbeSettings, statistics: &RequestStatistics) -> Option<bool> {
    let total = statistics.count();
    let flagged = RequestQuality::ALL.into_iter().zip(statistics.flagged());
    let guessed: u64 = flagged
        .filter(|((flag, _), _)| *flag == RequestQuality::WITHOUT_PROTOCOL)
        .map(|(_, (_, count))| count)
        .sum();
    (asked.protocol.is_some() && total > 0).then_some(guessed < total)
}

/// Why the extent of some or all requests is guessed, or how it would be known.
fn guessed_because(protocol: Option<Protocol>, is_all: bool) -> String {
    let Some(protocol) = protocol else { return " (see --protocol)".to_owned() };
    if !is_all {
        return String::new();
    }
    let name = protocol.row().name;
    format!(":\n    no message of {name} was found; is it what the server speaks?")
}

/// What is not counted and lost nothing, a line each; what was lost is a caveat of the finding.
fn not_joined(counts: JoinCounts) -> Vec<String> {
    let lines = [
        (counts.one_way, "request that asks for no answer", "requests that ask for no answer"),
        (
            counts.silent,
            "request that asks for an answer only if it fails, and had none",
            "requests that ask for an answer only if they fail, and had none",
        ),
    ];
    let mut said: Vec<String> = lines
        .into_iter()
        .filter(|(count, _, _)| *count > 0)
        .map(|(count, one, several)| {
            format!("not counted: {count} {}", if count == 1 { one } else { several })
        })
        .collect();
    if counts.untold > 0 {
        let times = if counts.untold == 1 { "once".to_owned() } else { format!("{} times", counts.untold) };
        said.push(format!("message boundaries of a connection were lost {times}"));
    }
    said
}

/// That the kernel did not run programs, and what follows.
pub(crate) fn skipped_words(runs: u64) -> String {
    let runs = plural(runs, "run");
    format!("the kernel skipped {runs} of BPF programs: up to as many events are missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_thing_is_not_called_several() {
        let of = |n| JoinCounts {
            unanswered: n,
            unrequested: n,
            unseen_arrivals: n,
            discarded: n,
            gaps: n,
            one_way: n,
            silent: n,
            untold: n,
            unseen_reads: n,
            multipath: n,
        };
        let [none, one, two] = [0, 1, 2].map(|n| not_joined(of(n)));
        assert_eq!((none.len(), one.len(), two.len()), (0, 3, 3));
        assert_eq!(one[0], "not counted: 1 request that asks for no answer");
        assert_eq!(two[0], "not counted: 2 requests that ask for no answer");
        assert_eq!(one[2], "message boundaries of a connection were lost once");
        assert_eq!(two[2], "message boundaries of a connection were lost 2 times");
        for line in &one[..2] {
            assert!(line.starts_with("not counted: 1 ") && !line.contains("requests "), "{line}");
        }
    }

    #[test]
    fn a_protocol_that_nobody_speaks_is_not_advised_again() {
        let none = guessed_because(Some(Protocol::Nbd), true);
        assert!(none.contains("no message of nbd was found") && !none.contains("--protocol"), "{none}");
        assert_eq!(guessed_because(Some(Protocol::Nbd), false), "");
        assert!(guessed_because(None, true).contains("--protocol"));
        let asked = ProbeSettings::of_ports([1]);
        assert_eq!(is_protocol_understood(&asked, &RequestStatistics::default()), None);
    }
}
