//! What observing costs a server: memcached with and without, in turn, many times, at a fixed rate and at saturation.
//! Prints medians of ratios of neighbouring periods, with 95 % confidence intervals of the medians, and the CPU time that
//! joining the events takes. Takes the rights to observe. `cargo bench -p observe -- 101 saturation` has 101
//! pairs of periods at saturation alone; `-- 9 limited` has the comparisons with a limit of the cost, whose periods are as
//! long as it takes for windows and pauses to be in them.

#[path = "../tests/live/clients.rs"]
mod clients;

use clients::{Dialogue, Exchange};
use confidence::median_ranks;
use machine::cpu_time;
use observe::{
    ClientRequest, CostLimit, IntendedWaits, ObservationSettings, ProbeSettings, RequestNesting, SampledTime,
    nesting, observe,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
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
    let paced = |count| Exchange::new(Dialogue::Memcached, count).every(Duration::from_micros(500));
    let saturating = |count| Exchange::new(Dialogue::Memcached, count).in_flight(8);
    for (load, what, exchange, observed) in [
        ("4,000 requests per second", "observed", paced(2_000), Observed::new(server.port(), None)),
        ("4,000 requests per second", "another port observed", paced(2_000), Observed::new(1, None)),
        ("saturation", "observed", saturating(20_000), Observed::new(server.port(), None)),
        ("saturation", "another port observed", saturating(20_000), Observed::new(1, None)),
        (
            "4,000 requests per second",
            "limited to 3 % of a CPU",
            paced(60_000),
            Observed::new(server.port(), Some(0.03)),
        ),
        (
            "saturation",
            "limited to 3 % of a CPU",
            saturating(4_000_000),
            Observed::new(server.port(), Some(0.03)),
        ),
    ] {
        let name = format!("{load}, {what}");
        let is_meant = if words.is_empty() {
            observed.cost_limit.is_none()
        } else {
            words.iter().all(|word| name.contains(*word))
        };
        if is_meant {
            compare(&name, &server, &exchange, observed, pairs);
        }
    }
}

/// How a server is observed.
#[derive(Clone, Copy)]
struct Observed {
    port: u16,
    cost_limit: Option<f64>,
}

impl Observed {
    fn new(port: u16, cost_limit: Option<f64>) -> Self {
        Self { port, cost_limit }
    }
}

/// Periods without and with, in turn; which is first alternates.
fn compare(name: &str, server: &RunningServer, exchange: &Exchange, how: Observed, count: usize) {
    let mut pairs = Vec::new();
    let mut joining = Vec::new();
    let mut shares = Vec::new();
    let mut found = RequestNesting::default();
    period(server, exchange);
    for pair in 0..count {
        let off = (pair % 2 == 0).then(|| period(server, exchange).0);
        let Some((on, nesting, joining_ns, sampled)) = observed(server, exchange, how) else { return };
        found.nested += nesting.nested;
        found.outside += nesting.outside;
        found.missing += nesting.missing;
        let off = off.unwrap_or_else(|| period(server, exchange).0);
        pairs.push((off, on));
        joining.extend(joining_ns);
        shares.extend(sampled);
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
    if !shares.is_empty() {
        let (mut times, mut costs): (Vec<f64>, Vec<f64>) = shares.into_iter().unzip();
        println!(
            "  share of the time: {}; cost by its own account: {} of a CPU",
            median(&mut times),
            median(&mut costs)
        );
    } else if !joining.is_empty() {
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
    let start = Instant::now();
    let ticks = server.cpu_ticks();
    let sent = clients::run(address, exchange, CLIENTS);
    let seconds = start.elapsed().as_secs_f64();
    let ticks = server.cpu_ticks() - ticks;
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

/// A period while a port is observed, how what was seen fits what the clients saw, the CPU time of joining a request's
/// events in nanoseconds, and in which share of the time requests counted at which share of a CPU, where that is limited;
/// `None` where observing is refused.
#[allow(clippy::type_complexity, reason = "four figures of one period")]
fn observed(
    server: &RunningServer,
    exchange: &Exchange,
    how: Observed,
) -> Option<(Period, RequestNesting, Option<f64>, Option<(f64, f64)>)> {
    let settings = ObservationSettings {
        probes: ProbeSettings::of_ports([how.port]),
        duration: Duration::from_secs(600),
        cost_duration: Duration::ZERO,
        intended_waits: IntendedWaits::Included,
        cost_limit: how.cost_limit.map(|share| CostLimit { share, seed: 1 }),
    };
    let stop = AtomicBool::new(false);
    let mut seen = Vec::new();
    let mut joined_at = Vec::new();
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
            let seconds = report.duration.as_secs_f64();
            let shares = |sampled: SampledTime| {
                (sampled.counted.as_secs_f64() / seconds, sampled.cost_ns as f64 / 1e9 / seconds)
            };
            Some((period, nesting(&seen, &sent), joining, report.sampled.map(shares)))
        }
        Err(error) => {
            println!("{error}");
            None
        }
    }
}
