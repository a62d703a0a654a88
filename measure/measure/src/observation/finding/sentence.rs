//! A finding in words.

use crate::observation::finding::answer::{Culprit, DominatingCause, Finding, FindingVerdict, NextStep};
use crate::observation::finding::rows::row_of;
use observe::Cause;
use operation::text::time;
use units::{Bytes, plural};

/// The whole answer.
pub(super) fn sentence(found: &Finding) -> String {
    let Some(p99) = found.p99_s else { return nothing_seen(found) };
    let ends = found.p99_low_s.zip(found.p99_high_s);
    let ends = ends.map(|(low, high)| format!(" ({} to {})", time(low), time(high))).unwrap_or_default();
    let ideal = found.times_ideal.map(|ratio| format!(", {} times ideal", ratio_words(ratio)));
    let figures = format!("p99 {}{ends}{}", time(p99), ideal.unwrap_or_default());
    let spent = found.dominating.as_ref().map(share_spent_on).unwrap_or_default();
    match found.verdict {
        FindingVerdict::NoRequests => nothing_seen(found),
        FindingVerdict::Unusual => format!("{figures}; {spent}; next: {}", next_words(found)),
        FindingVerdict::NotRepeated => {
            format!("unusual, but not shown to recur: {figures}; {spent}; next: {}", next_words(found))
        }
        FindingVerdict::NothingUnusual => format!(
            "nothing unusual: {figures}; {spent}; tested in {}: {}",
            plural(found.requests, "request"),
            found.tested.join(", "),
        ),
        FindingVerdict::TooFewRequests => format!(
            "too few requests to tell what is unusual: {} of some {}; {figures}; {spent}",
            found.requests,
            found.requests_needed.unwrap_or_default(),
        ),
    }
}

fn nothing_seen(found: &Finding) -> String {
    match next_words(found) {
        "" => "no request was seen".to_owned(),
        next => format!("no request was seen; next: {next}"),
    }
}

/// The share of the tail that a cause has, and what it is spent on.
fn share_spent_on(dominating: &DominatingCause) -> String {
    format!("{:.0}% of it {}", dominating.share * 100.0, spent_on(dominating))
}

impl Finding {
    /// Returns the cause of the tail in words without figures, `waits behind NAME`; empty without requests.
    pub(crate) fn spent_on(&self) -> String {
        self.dominating.as_ref().map(spent_on).unwrap_or_default()
    }
}

/// The words for the time of a cause: `waits behind NAME`.
fn spent_on(dominating: &DominatingCause) -> String {
    let Some(row) = Cause::ALL.into_iter().find(|cause| cause.name() == dominating.cause).map(row_of) else {
        return format!("is {}", dominating.cause);
    };
    match &dominating.culprit {
        Some(culprit) => row.phrase.replace("{}", &culprit_words(culprit)),
        None => row.without_culprit.to_owned(),
    }
}

fn culprit_words(culprit: &Culprit) -> String {
    match culprit {
        Culprit::Process { name, pid, further: 0 } => format!("{name} ({pid})"),
        Culprit::Process { name, pid, further } => format!("{name} ({pid} and {further} more)"),
        Culprit::Client { address, further_connections: 0 } => address.clone(),
        Culprit::Client { address, further_connections } => {
            format!("{address} and {}", plural(*further_connections as u64, "other connection"))
        }
        Culprit::QuotaGroup { group, quota_us: Some(quota), period_us: Some(period) } => {
            let [quota, period] = [quota, period].map(|us| time(*us as f64 / 1e6));
            format!("{group} ({quota} in {period})")
        }
        Culprit::QuotaGroup { group, .. } => group.clone(),
        Culprit::LargeAnswers { mean_bytes, usual_bytes } => {
            format!("large answers ({} where {} is usual)", Bytes(*mean_bytes), Bytes(*usual_bytes))
        }
    }
}

fn next_words(found: &Finding) -> &str {
    match &found.next {
        Some(NextStep::Command(words) | NextStep::Words(words)) => words,
        None => "",
    }
}

fn ratio_words(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}
