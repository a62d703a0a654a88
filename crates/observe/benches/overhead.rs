//! What observing costs a server: memcached with and without, in turn, many times, at a fixed rate and at saturation.
//! Prints medians of ratios of neighbouring periods, with their quartiles. Takes the rights to observe, and an idle machine
//! to mean anything.

#[path = "../tests/live/clients.rs"]
mod clients;
#[path = "../tests/live/servers.rs"]
mod servers;

use clients::{Dialogue, Exchange};
use servers::{RunningServer, memcached};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tailwright_observe::{
    ClientRequest, IntendedWaits, ObservationSettings, ProbeSettings, RequestNesting, nesting, observe,
};

const CLIENTS: usize = 2;
const PAIRS: usize = 15;

/// What a period without or with observing came to.
struct Period {
    p50: f64,
    p99: f64,
    per_second: f64,
    cpu_per_request: f64,
}

/// One of its figures.
type Figure = fn(&Period) -> f64;

fn main() {
    let Some(server) = memcached(2) else { return };
    // 4,000 requests per second, and as many as there can be.
    let paced = Exchange::new(Dialogue::Memcached, 2_000).every(Duration::from_micros(500));
    let saturating = Exchange::new(Dialogue::Memcached, 20_000).in_flight(8);
    for (name, exchange) in [("4,000 requests per second", paced), ("saturation", saturating)] {
        for (what, observed_port) in [("observed", server.port), ("attached, another port observed", 1)] {
            compare(&format!("{name}, {what}"), &server, &exchange, observed_port);
        }
    }
}

/// Periods without and with, in turn; which is first alternates.
fn compare(name: &str, server: &RunningServer, exchange: &Exchange, observed_port: u16) {
    let mut pairs = Vec::new();
    let mut found = RequestNesting::default();
    period(server, exchange);
    for pair in 0..PAIRS {
        let off = (pair % 2 == 0).then(|| period(server, exchange).0);
        let Some((on, nesting)) = observed(server, exchange, observed_port) else { return };
        found.nested += nesting.nested;
        found.outside += nesting.outside;
        found.missing += nesting.missing;
        let off = off.unwrap_or_else(|| period(server, exchange).0);
        pairs.push((off, on));
    }
    let RequestNesting { nested, outside, missing } = found;
    println!(
        "{name}: {nested} requests seen inside of what a client saw, {outside} outside, {missing} not seen"
    );
    let figures: [(&str, Figure); 4] = [
        ("p50", |period| period.p50),
        ("p99", |period| period.p99),
        ("throughput", |period| period.per_second),
        ("server's CPU per request", |period| period.cpu_per_request),
    ];
    for (figure, of) in figures {
        let mut ratios: Vec<f64> = pairs.iter().map(|(off, on)| of(on) / of(off)).collect();
        let mut without: Vec<f64> = pairs.iter().map(|(off, _)| of(off)).collect();
        ratios.sort_by(f64::total_cmp);
        without.sort_by(f64::total_cmp);
        let [low, median, high] = [PAIRS / 4, PAIRS / 2, PAIRS * 3 / 4].map(|rank| ratios[rank]);
        println!("  {figure}: x{median:.3} ({low:.3} to {high:.3}); without: {:.4e}", without[PAIRS / 2]);
    }
}

fn period(server: &RunningServer, exchange: &Exchange) -> (Period, Vec<ClientRequest>) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let (start, ticks) = (Instant::now(), server.cpu_ticks());
    let sent = clients::run(address, exchange, CLIENTS);
    let (seconds, ticks) = (start.elapsed().as_secs_f64(), server.cpu_ticks() - ticks);
    let mut times: Vec<u64> = sent.iter().map(|request| request.received - request.sent).collect();
    times.sort_unstable();
    let at = |percent: usize| times[times.len() * percent / 100] as f64 / 1e9;
    let period = Period {
        p50: at(50),
        p99: at(99),
        per_second: sent.len() as f64 / seconds,
        cpu_per_request: ticks as f64 / sent.len() as f64,
    };
    (period, sent)
}

/// A period while a port is observed, and how what was seen fits what the clients saw; `None` where that is refused.
fn observed(server: &RunningServer, exchange: &Exchange, port: u16) -> Option<(Period, RequestNesting)> {
    let settings = ObservationSettings {
        probes: ProbeSettings::of_ports([port]),
        duration: Duration::from_secs(600),
        cost_duration: Duration::ZERO,
        intended_waits: IntendedWaits::Included,
    };
    let (stop, mut seen) = (AtomicBool::new(false), Vec::new());
    let (report, period) = std::thread::scope(|scope| {
        let mut running = None;
        let attached = || {
            running = Some(scope.spawn(|| {
                let (period, sent) = period(server, exchange);
                stop.store(true, Ordering::Relaxed);
                (period, sent)
            }));
        };
        let report = observe(&settings, &stop, attached, &mut |request| seen.push(*request));
        (report, running.map(|running| running.join().expect("a period does not fail")))
    });
    match report {
        Ok(report) => {
            assert_eq!(report.lost_events, 0, "the buffer is large enough");
            let (period, sent) = period?;
            Some((period, nesting(&seen, &sent)))
        }
        Err(error) => {
            println!("{error}");
            None
        }
    }
}
