//! What observing costs a server: memcached with and without, in turn, many times, at a fixed rate and at saturation.
//! Prints medians of ratios of neighbouring periods, with 95 % confidence intervals of the medians, and the CPU time that
//! joining the events takes. Takes the rights to observe. `cargo bench -p tailwright-observe -- 101 saturation` has 101
//! pairs of periods at saturation alone.

#[path = "../tests/live/clients.rs"]
mod clients;

use clients::{Dialogue, Exchange};
use confidence::median_ranks;
use machine::cpu_time;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tailwright_observe::{
    ClientRequest, IntendedWaits, ObservationSettings, ProbeSettings, RequestNesting, nesting, observe,
};
use testkit::live_servers::{RunningServer, memcached};

const CLIENTS: usize = 2;
/// Unless an argument says otherwise.
const PAIRS: usize = 31;

/// CPU time is read whenever this many requests are complete.
const CPU_TIME_INTERVAL: usize = 64;

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
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let pairs = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(PAIRS);
    let words: Vec<&String> =
        arguments.iter().filter(|argument| argument.parse::<usize>().is_err()).collect();
    let Some(server) = memcached(2) else { return };
    // 4,000 requests per second, and as many as there can be.
    let paced = Exchange::new(Dialogue::Memcached, 2_000).every(Duration::from_micros(500));
    let saturating = Exchange::new(Dialogue::Memcached, 20_000).in_flight(8);
    for (name, exchange) in [("4,000 requests per second", paced), ("saturation", saturating)] {
        for (what, observed_port) in [("observed", server.port()), ("attached, another port observed", 1)] {
            let name = format!("{name}, {what}");
            if words.iter().all(|word| name.contains(*word)) {
                compare(&name, &server, &exchange, observed_port, pairs);
            }
        }
    }
}

/// Periods without and with, in turn; which is first alternates.
fn compare(name: &str, server: &RunningServer, exchange: &Exchange, observed_port: u16, count: usize) {
    let (mut pairs, mut joining) = (Vec::new(), Vec::new());
    let mut found = RequestNesting::default();
    period(server, exchange);
    for pair in 0..count {
        let off = (pair % 2 == 0).then(|| period(server, exchange).0);
        let Some((on, nesting, joining_ns)) = observed(server, exchange, observed_port) else { return };
        found.nested += nesting.nested;
        found.outside += nesting.outside;
        found.missing += nesting.missing;
        let off = off.unwrap_or_else(|| period(server, exchange).0);
        pairs.push((off, on));
        joining.extend(joining_ns);
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
        without.sort_by(f64::total_cmp);
        println!("  {figure}: x{}; without: {:.4e}", median(&mut ratios), without[count / 2]);
    }
    if !joining.is_empty() {
        println!("  joining the events of a request: {} ns of CPU", median(&mut joining));
    }
}

/// The median of values with its 95 % confidence interval.
fn median(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let middle = values[values.len() / 2];
    match median_ranks(values.len(), 0.95) {
        Ok((low, high)) => format!("{middle:.3} ({:.3} to {:.3})", values[low - 1], values[high - 1]),
        Err(_) => format!("{middle:.3} (too few for an interval)"),
    }
}

fn period(server: &RunningServer, exchange: &Exchange) -> (Period, Vec<ClientRequest>) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
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

/// A period while a port is observed, how what was seen fits what the clients saw, and the CPU time of joining a request's
/// events in nanoseconds; `None` where that is refused.
fn observed(
    server: &RunningServer,
    exchange: &Exchange,
    port: u16,
) -> Option<(Period, RequestNesting, Option<f64>)> {
    let settings = ObservationSettings {
        probes: ProbeSettings::of_ports([port]),
        duration: Duration::from_secs(600),
        cost_duration: Duration::ZERO,
        intended_waits: IntendedWaits::Included,
    };
    let (stop, mut seen, mut joined_at) = (AtomicBool::new(false), Vec::new(), Vec::new());
    let (report, period) = std::thread::scope(|scope| {
        let mut running = None;
        let attached = || {
            running = Some(scope.spawn(|| {
                let (period, sent) = period(server, exchange);
                stop.store(true, Ordering::Relaxed);
                (period, sent)
            }));
        };
        let report = observe(&settings, &stop, attached, &mut |request| {
            if seen.len() % CPU_TIME_INTERVAL == 0 {
                joined_at.push(cpu_time::of_thread());
            }
            seen.push(*request);
        });
        (report, running.map(|running| running.join().expect("a period does not fail")))
    });
    match report {
        Ok(report) => {
            assert_eq!(report.lost_events, 0, "the buffer is large enough");
            let (period, sent) = period?;
            // From the first request to the last that is a multiple of the interval.
            let joining = joined_at.first().zip(joined_at.last()).filter(|_| joined_at.len() > 1);
            let requests = (joined_at.len().max(1) - 1) * CPU_TIME_INTERVAL;
            let joining = joining.map(|(first, last)| (last - first) as f64 / requests as f64);
            Some((period, nesting(&seen, &sent), joining))
        }
        Err(error) => {
            println!("{error}");
            None
        }
    }
}
