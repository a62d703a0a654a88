//! Fig. 11: latency added by the network, for memcached at several rates: the client's round trip minus T6 −
//! T1 of the same request.
//!
//! The paper has the timestamps of a switch; here the client's clock is that of the server. One connection has its answers
//! in the order of its requests, so that the n-th of either side are the same request.

use crate::support::figures::{Saturation, plain};
use crate::support::offered::{Offered, RATE_MAX};
use crate::support::period::{PeriodPlan, PeriodSeen};
use crate::support::rounds::short;
use crate::support::server::{ServerKind, ServerPlan};
use crate::support::site::Site;
use model::{OperationError, RequestOutcome};
use observe::{ObservedRequest, Protocol, RequestPoint};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const UTILISATIONS: [f64; 3] = [0.02, 0.05, 0.1];

/// Plays all rates and prints them.
pub(crate) fn compare(site: &mut Site) -> Result<(), OperationError> {
    let kind = ServerKind::Memcached { udp: false, threads: 1, arguments: &[] };
    let server = ServerPlan::on_one_cpu("memcached", kind);
    if !server.is_installed() {
        return Ok(());
    }
    let service = Saturation::measure(site, &plain(&server))?.service();
    println!("\nFig. 11: memcached, one connection; the client's round trip less T6 - T1, in us");
    println!("{:>10} {:>9} | {:>24} | {:>24}", "", "", "round trip - (T6 - T1)", "T6 - T1");
    println!(
        "{:>10} {:>9} | {:>8}{:>8}{:>8} | {:>8}{:>8}{:>8}",
        "rate", "requests", "p50", "p99", "p99.9", "p50", "p99", "p99.9"
    );
    for utilisation in UTILISATIONS {
        if site.is_stopped() {
            return Ok(());
        }
        let rate = (utilisation * 1e9 / service.0 as f64).min(RATE_MAX);
        let offered = Offered { connections: 1, ..Offered::poisson(rate) };
        let protocol = Some(Protocol::Memcached);
        let plan = PeriodPlan { protocol, ..PeriodPlan::new(server.clone(), offered) };
        let Some(seen) = site.play_undisturbed("network", &plan, 1)? else { continue };
        match outside(&seen) {
            Some(pairs) => print_row(&seen, pairs),
            None => println!(
                "{:>10.0} NOT MEASURED: the two sides have different numbers of requests",
                seen.rate()
            ),
        }
    }
    println!("the paper: varies much less than anything else that it measured, including queueing (Fig. 11)");
    Ok(())
}

fn print_row(seen: &PeriodSeen, pairs: Vec<(u64, u64)>) {
    let count = pairs.len();
    let (outside, inside): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
    let [out_50, out_99, out_999] = percentiles(outside);
    let [in_50, in_99, in_999] = percentiles(inside);
    println!(
        "{:>9.0}/s {count:>8} | {out_50:>8}{out_99:>8}{out_999:>8} | {in_50:>8}{in_99:>8}{in_999:>8}",
        seen.rate()
    );
}

fn percentiles(mut times: Vec<u64>) -> [String; 3] {
    times.sort_unstable();
    [50.0, 99.0, 99.9]
        .map(|percent| short(times[confidence::nearest_rank(percent, times.len()) - 1] as f64 / 1e3))
}

/// For each request of the client's connection the round trip less T6 − T1, and T6 − T1, in nanoseconds. `None` when it is
/// not certain which is which.
fn outside(seen: &PeriodSeen) -> Option<Vec<(u64, u64)>> {
    let mut sent: Vec<(u64, u64)> = Vec::new();
    for request in &seen.client.observations.requests {
        let RequestOutcome::Done(done) = request.outcome else { return None };
        sent.push((request.sent.0, done.0));
    }
    sent.sort_unstable();
    // Another connection has stored the keys.
    let mut connections: BTreeMap<SocketAddr, Vec<&ObservedRequest>> = BTreeMap::new();
    for request in &seen.all {
        connections.entry(request.peer).or_default().push(request);
    }
    let observed = connections.into_values().find(|requests| requests.len() == sent.len());
    let mut observed = observed?;
    observed.sort_by_key(|request| (request.at(RequestPoint::Stack), request.at(RequestPoint::Transmitted)));
    let pair = |((sent, done), request): (&(u64, u64), &ObservedRequest)| {
        let inside = request.latency_from_stack();
        Some(((done - sent).checked_sub(inside)?, inside))
    };
    sent.iter().zip(observed).map(pair).collect()
}
