//! The answer of an observation in one sentence: how long the tail is, what it consists of, whether that is unusual, and
//! what to do next.
//!
//! The tail is the requests at or above p99; the cause with most of their time dominates. The tail is unusual if p99 is
//! several times what it would be with the usual time of each cause, again and again: in several parts of the run. What is usual depends on the cause (the table
//! in `rows`): other processes, stops, quotas and disks have no place in a request; queues are those of random arrivals at a
//! moderate load; wake-ups and work are what the faster half of the requests has of them.

mod answer;
mod behind;
mod caveats;
mod interval;
mod rows;
mod sentence;
mod steps;
#[cfg(test)]
mod tests;

pub(super) use answer::FindingInput;
pub use answer::{Culprit, DominatingCause, Finding, FindingVerdict, NextStep};
pub use caveats::Caveat;

use crate::observation::mean_wait::VarianceView;
use behind::{BusyClient, client_ahead};
use interval::{RANK, TailInterval, recurs, tail_interval};
use observe::{CAUSES, Cause, CounterReport, InterferingProcess, PercentileCauses};
use rows::{UsualTime, row_of};
use units::Percentile;

/// p99 is unusual from this many times the usual one on.
const UNUSUAL_FACTOR: f64 = 3.0;

/// p99 is unusual only if it exceeds the usual one by this much, in nanoseconds. A timer interrupt, a migration or a
/// context switch with cold caches takes tens of microseconds on a machine without load. Beside a server that answers in
/// 6 µs, this noise alone is a factor of three.
const NOISE_NS: f64 = 50_000.0;

/// Of a cause that is always there, this many times the mean of the faster half is usual.
const LIKE_FASTER_FACTOR: f64 = 4.0;

/// Queues are usual up to those of a server that is busy for this share of the time.
const USUAL_UTILISATION: f64 = 0.8;

/// Processes of one name are named if they have this share of the time of all other processes.
const NAMED_SHARE: f64 = 0.5;

/// Answers are large if they are this many times those of the faster half.
const LARGE_ANSWER_FACTOR: f64 = 4.0;

/// The finding of an observation.
pub(super) fn finding(input: &FindingInput<'_>) -> Finding {
    let report = input.report;
    let mut found = Finding {
        sentence: String::new(),
        verdict: FindingVerdict::NoRequests,
        caveats: caveats::caveats(input.asked, report),
        p99_s: None,
        p99_low_s: None,
        p99_high_s: None,
        times_ideal: None,
        usual_p99_s: None,
        dominating: None,
        tested: tested(),
        requests: report.statistics.count(),
        requests_needed: None,
        next: None,
    };
    let profile = &report.causes.profile;
    let tail = profile.between("tail", RANK..=1.0);
    let body = profile.between("faster half", 0.0..=0.5);
    if let Some(((tail, body), interval)) = tail.zip(body).zip(tail_interval(input.runs)) {
        judge(&mut found, input, &TailView { tail, body, interval });
    }
    if found.verdict == FindingVerdict::NoRequests {
        found.next = Some(steps::step_without_requests(input));
    }
    found.sentence = sentence::sentence(&found);
    found
}

/// The requests that are compared.
struct TailView {
    tail: PercentileCauses,
    body: PercentileCauses,
    interval: TailInterval,
}

fn judge(found: &mut Finding, input: &FindingInput<'_>, view: &TailView) {
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let p99 = input.report.statistics.from_stack().p99;
    found.p99_s = Some(seconds(p99));
    found.p99_low_s = Some(seconds(view.interval.low.min(p99)));
    found.p99_high_s = view.interval.high.map(|high| seconds(high.max(p99)));
    let allowed = UsualTimes::new(input, view);
    let usual = input.report.causes.profile.quantile_of_usual(RANK, |times| allowed.usual_of(times));
    found.usual_p99_s = Some(usual / 1e9);
    // Where the network or another service is waited for in what looks like service, the usual is the better ideal.
    let ideal =
        input.ideal.zip(Percentile::new(RANK * 100.0)).map(|(ideal, p99)| ideal.ideal[0].percentile(p99));
    found.times_ideal = ideal.map(|ideal| p99 as f64 / (ideal.0 as f64).min(usual).max(1.0));
    let excess = |cause: &Cause| allowed.excess(*cause, view.tail.mean(*cause));
    let limit = (UNUSUAL_FACTOR * usual).max(usual + NOISE_NS);
    let is_long = input.report.statistics.from_wire().p99 as f64 >= limit;
    // What makes the tail unusual, or merely long.
    let by_time = |a: &Cause, b: &Cause| view.tail.mean(*a).total_cmp(&view.tail.mean(*b));
    let by_excess = |a: &Cause, b: &Cause| excess(a).total_cmp(&excess(b));
    let dominating = match is_long {
        true => Cause::ALL.into_iter().max_by(by_excess),
        false => Cause::ALL.into_iter().max_by(by_time),
    };
    let dominating = dominating.expect("there are causes");
    let has_enough = found.requests >= view.interval.needed as u64;
    found.verdict = match (is_long, is_long && recurs(input.runs, limit), has_enough) {
        (true, true, _) => FindingVerdict::Unusual,
        (true, false, _) => FindingVerdict::NotRepeated,
        (false, _, true) => FindingVerdict::NothingUnusual,
        (false, _, false) => FindingVerdict::TooFewRequests,
    };
    if found.verdict == FindingVerdict::TooFewRequests {
        found.requests_needed = Some(view.interval.needed);
    }
    let culprit = match dominating {
        Cause::Throttled | Cause::HeldBack => quota_group(&input.report.counters),
        _ => culprit(dominating, &view.tail, &view.body, &allowed),
    };
    found.dominating = Some(DominatingCause {
        cause: dominating.name(),
        share: view.tail.share(dominating),
        culprit: culprit.clone(),
    });
    if is_long {
        found.next = Some(steps::next_step(dominating, culprit.as_ref(), input));
    }
}

/// Usual time of each cause, nanoseconds.
struct UsualTimes {
    times: [f64; CAUSES],
    ahead: Option<BusyClient>,
}

impl UsualTimes {
    fn new(input: &FindingInput<'_>, view: &TailView) -> Self {
        let ahead = client_ahead(input.runs, input.report.statistics.from_stack().p99);
        let queue = usual_queue(input.variance, ahead.as_ref());
        let median = input.report.statistics.from_wire().p50 as f64;
        let usual = |cause: Cause| match row_of(cause).usual {
            UsualTime::None => 0.0,
            UsualTime::Queue => queue,
            UsualTime::LikeFasterOnes => median.max(LIKE_FASTER_FACTOR * view.body.mean(cause)),
        };
        Self { times: Cause::ALL.map(usual), ahead }
    }

    /// What a cause has beyond what is usual.
    fn excess(&self, cause: Cause, time: f64) -> f64 {
        (time - self.times[cause as usize]).max(0.0)
    }

    /// A latency with the usual time of each cause at most.
    fn usual_of(&self, times: &[f64; CAUSES]) -> f64 {
        let excess = |cause: Cause| self.excess(cause, times[cause as usize]);
        times.iter().sum::<f64>() - Cause::ALL.into_iter().map(excess).sum::<f64>()
    }
}

/// What one request in a hundred waits for at a worker that is moderately busy: of an M/G/1 queue with the measured service,
/// and without the client that floods it. The tail of its waits is close to exponential, with a share ρ that waits at all.
fn usual_queue(variance: Option<&VarianceView>, ahead: Option<&BusyClient>) -> f64 {
    let Some(view) = variance else { return 0.0 };
    let utilisation = view.queue.utilisation();
    let of_flood = ahead.map_or(0.0, |client| client.load_permille as f64 / 1000.0);
    let usual = (utilisation * (1.0 - of_flood)).min(USUAL_UTILISATION);
    if usual <= 1.0 - RANK {
        return 0.0;
    }
    let wait = view.wait * (usual / (1.0 - usual)) / (utilisation / (1.0 - utilisation));
    wait / usual * (usual / (1.0 - RANK)).ln()
}

/// Who or what is behind a cause.
fn culprit(
    cause: Cause,
    tail: &PercentileCauses,
    body: &PercentileCauses,
    allowed: &UsualTimes,
) -> Option<Culprit> {
    match (cause, row_of(cause).usual) {
        (Cause::OtherProcess, _) => named_process(tail),
        (_, UsualTime::Queue) => allowed.ahead.as_ref().map(|client| Culprit::Client {
            address: client.name.clone(),
            further_connections: client.others,
        }),
        (Cause::Work | Cause::NetworkOut, _) => {
            let large = tail.mean_answer();
            let usual = body.mean_answer();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of answers")]
            let sizes = (large.round() as u64, usual.round() as u64);
            (large >= LARGE_ANSWER_FACTOR * usual.max(1.0))
                .then_some(Culprit::LargeAnswers { mean_bytes: sizes.0, usual_bytes: sizes.1 })
        }
        _ => None,
    }
}

/// The group of the server that its quota kept from running for the longest time, if any did.
fn quota_group(counters: &CounterReport) -> Option<Culprit> {
    let group = counters.throttled.first()?;
    Some(Culprit::QuotaGroup {
        group: group.group.clone(),
        quota_us: group.quota.map(|quota| quota.quota_us),
        period_us: group.quota.map(|quota| quota.period_us),
    })
}

/// The processes of one name that have most of the time of all other processes, if any have.
fn named_process(tail: &PercentileCauses) -> Option<Culprit> {
    let of_name =
        |name: &str| tail.interferers.iter().filter(|(process, _)| process.name == name).collect::<Vec<_>>();
    let time = |group: &[&(InterferingProcess, u128)]| group.iter().map(|(_, time)| time).sum::<u128>();
    let groups = tail.interferers.iter().map(|(process, _)| of_name(&process.name));
    let largest = groups.max_by_key(|group| time(group))?;
    let all = tail.times[Cause::OtherProcess as usize];
    let is_named = time(&largest) as f64 >= NAMED_SHARE * all as f64;
    is_named.then(|| Culprit::Process {
        name: largest[0].0.name.clone(),
        pid: largest[0].0.process,
        further: largest.len() - 1,
    })
}

/// What is compared with its usual time.
fn tested() -> Vec<&'static str> {
    let mut words: Vec<&'static str> = Vec::new();
    for cause in Cause::ALL {
        let word = row_of(cause).tested;
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}
