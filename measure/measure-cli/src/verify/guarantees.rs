//! What is guaranteed beside what was measured: who kept to their limits, and what requests beyond a bound mean.

use cli::terminal::TextTable;
use operation::text::time;
use std::collections::BTreeSet;
use units::plural;
use verify::{BoundFinding, Finding, Findings};

/// How the traffic of a workload kept to its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitConduct {
    Kept,
    /// As it was meant to be sent, and not as it was sent.
    KeptUntilSent,
    NotKept,
    NotKnown,
}

impl LimitConduct {
    const ALL: [Self; 4] = [Self::Kept, Self::KeptUntilSent, Self::NotKept, Self::NotKnown];

    fn of(found: &Finding) -> Self {
        match (found.kept_limits, found.kept_limits_sent) {
            // Who was not observed has kept to nothing.
            _ if found.judgement.requests == 0 => Self::NotKnown,
            (Some(true), Some(false)) => Self::KeptUntilSent,
            (Some(true), _) => Self::Kept,
            (Some(false), _) | (None, Some(false)) => Self::NotKept,
            (None, _) => Self::NotKnown,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Kept => "yes",
            Self::KeptUntilSent => "not as sent",
            Self::NotKept => "no",
            Self::NotKnown => "not known",
        }
    }

    /// Which workloads these are.
    fn clause(self) -> &'static str {
        match self {
            Self::Kept => "whose traffic kept to their limits",
            Self::KeptUntilSent => {
                "whose traffic was meant to keep to their limits, and did not as it was sent"
            }
            Self::NotKept => "whose traffic did not keep to their limits",
            Self::NotKnown => "whose traffic could not be judged at all limits",
        }
    }
}

/// Whose traffic did not keep to its limits, or may not have, in sentences.
pub fn limit_words(findings: &Findings) -> String {
    let mut sentences = Vec::new();
    for conduct in LimitConduct::ALL {
        let found = findings.workloads.iter().filter(|found| LimitConduct::of(found) == conduct);
        // Several SLOs of a workload follow each other.
        let mut names: Vec<&str> = found.map(|found| found.name.as_str()).collect();
        names.dedup();
        let said = match conduct {
            LimitConduct::Kept => continue,
            LimitConduct::KeptUntilSent => "Meant to keep to its limits, and did not at times as it was sent",
            LimitConduct::NotKept => "Sent more than was planned, at times",
            LimitConduct::NotKnown => "Not judged at all limits",
        };
        if !names.is_empty() {
            sentences.push(format!("{said}: {}.", names.join(", ")));
        }
    }
    match sentences.is_empty() {
        true => "All traffic kept to its limits.".to_owned(),
        false => sentences.join(" "),
    }
}

/// How latencies compare with what is guaranteed; nothing where nothing is.
pub(crate) fn guarantee_words(findings: &Findings) -> Vec<String> {
    let mut lines = Vec::new();
    for conduct in LimitConduct::ALL {
        let found = findings.workloads.iter().filter(|found| LimitConduct::of(found) == conduct);
        let found: Vec<_> = found.filter_map(|found| Some((&found.name, found.bound?))).collect();
        let workloads = found.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>().len();
        let bounds: Vec<BoundFinding> = found.into_iter().map(|(_, bound)| bound).collect();
        let beyond: u64 = bounds.iter().map(|bound| bound.beyond).sum();
        let within: u64 = bounds.iter().map(|bound| bound.beyond_within_limits).sum();
        let of_them = match conduct {
            LimitConduct::NotKept if beyond > 0 => format!(" ({within} of them while within)"),
            _ => String::new(),
        };
        let why = if conduct == LimitConduct::Kept { why_beyond(&bounds) } else { String::new() };
        if !bounds.is_empty() {
            let counted = if bounds.len() > workloads { ", counted for each bound," } else { "" };
            lines.push(format!(
                "{}{of_them}{counted} beyond the bounds of {} {}{why}",
                plural(beyond, "request"),
                plural(workloads, "workload"),
                conduct.clause(),
            ));
        }
    }
    lines
}

/// What became of the guarantee of those who kept to their limits, where requests are beyond these bounds.
fn why_beyond(bounds: &[BoundFinding]) -> String {
    let mut broken = 0;
    let mut uncovered = 0;
    let mut other = 0;
    for bound in bounds {
        broken += bound.broken;
        let unbroken = bound.beyond.saturating_sub(bound.broken);
        *(if bound.covers_every_request { &mut other } else { &mut uncovered }) += unbroken;
    }
    let mut parts = Vec::new();
    for (count, what) in [
        (broken, "break a bound"),
        (uncovered, "of bounds that are not about every request"),
        (other, "sent late, failed or lost"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

pub fn guarantees(findings: &Findings) -> String {
    let lines = guarantee_words(findings);
    if lines.is_empty() {
        return String::new();
    }
    let headings =
        ["workload", "kept limits", "bound", "longest", "bound ÷ longest", "beyond", "within limits"];
    let rows: Vec<_> = findings.workloads.iter().filter_map(|found| guarantee_row(findings, found)).collect();
    let table = TextTable::of_rows(&headings, 2, rows);
    let table = table.answered_by(&["bound", "longest", "within limits", "beyond"]).render();
    format!("{}.\n{table}", lines.join(".\n"))
}

/// A workload with a bound as a row: what was guaranteed beside what was seen.
fn guarantee_row(findings: &Findings, found: &Finding) -> Option<Vec<String>> {
    let bound = found.bound?;
    Some(vec![
        findings.label(found),
        LimitConduct::of(found).word().to_owned(),
        time(bound.bound_s),
        found.max_s.map_or_else(|| "–".to_owned(), time),
        found.max_s.map_or_else(|| "–".to_owned(), |longest| format!("{:.2}", bound.bound_s / longest)),
        bound.beyond.to_string(),
        bound.beyond_within_limits.to_string(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;
    use verify::judge;

    fn found(name: &str, intended: Option<bool>, sent: Option<bool>) -> Finding {
        let judgement = judge(vec![Some(Nanos(1000)); 10], "99% < 1ms".parse().unwrap(), 0.95);
        let found = Finding::from_judgement(name, None, judgement);
        Finding { kept_limits: intended, kept_limits_sent: sent, ..found }
    }

    #[test]
    fn who_exceeded_limits_only_as_sent_is_not_said_to_have_kept_them() {
        let kept = found("kept", Some(true), Some(true));
        let words = |workloads: &[&Finding]| {
            let workloads = workloads.iter().map(|found| (*found).clone()).collect();
            limit_words(&Findings { confidence: 0.95, window_s: None, workloads, unjudged: Vec::new() })
        };
        assert_eq!(words(&[&kept]), "All traffic kept to its limits.");
        let late = found("late", Some(true), Some(false));
        assert_eq!(
            words(&[&kept, &late]),
            "Meant to keep to its limits, and did not at times as it was sent: late."
        );
        let beyond = found("beyond", Some(false), Some(true));
        let unknown = found("unknown", None, None);
        let said = words(&[&late, &beyond, &unknown]);
        assert!(said.contains("Sent more than was planned, at times: beyond."), "{said}");
        assert!(said.contains("Not judged at all limits: unknown."), "{said}");
    }
}
