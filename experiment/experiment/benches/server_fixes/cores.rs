//! Fig. 7: one CPU and two, with one queue and with a queue for each worker.
//!
//! The second CPU is also that of the client. Three settings leave most of it to the server: the null RPC
//! server computes for a millisecond for each request, the generator has a higher real-time priority, and
//! the utilisation is lower than the paper's. memcached and nginx take microseconds for a request. At a
//! load that keeps two CPUs busy, the generator would take most of one, so these servers are omitted
//! here.
//!
//! The generator uses its connections in turn, and connections are assigned to workers in turn. With
//! lasting connections, every second request therefore goes to the other worker, which is less random
//! than with the paper's clients. Connections that are replaced after 20 to 40 requests avoid that.

use crate::Repetition;
use crate::support::figures::{PeriodFigures, Saturation, plain};
use crate::support::fix::Fix;
use crate::support::offered::Offered;
use crate::support::period::PeriodPlan;
use crate::support::rounds::{RoundFigure, order};
use crate::support::server::{ServerKind, ServerPlan, null_rpc};
use crate::support::site::Site;
use model::OperationError;
use std::ops::RangeInclusive;
use std::time::Duration;
use units::Nanos;

/// Computation time of a request.
const WORK: Duration = Duration::from_millis(1);
const UTILISATION: f64 = 0.7;
/// The generator's priority, above that of the server.
const SENDER_PRIORITY: u32 = 20;
/// The length of connections in section 4.3, in requests.
const SHORT: RangeInclusive<u32> = 20..=40;

struct CoresArm {
    name: &'static str,
    cpus: &'static str,
    workers: usize,
    /// Threads that share the connections; `None` gives each connection a thread.
    threads: Option<usize>,
    reconnects: bool,
}

const ARMS: [CoresArm; 4] = [
    CoresArm { name: "1 CPU", cpus: "0", workers: 1, threads: None, reconnects: false },
    CoresArm { name: "2 CPUs, one queue", cpus: "0,1", workers: 2, threads: None, reconnects: false },
    CoresArm { name: "2 CPUs, two queues", cpus: "0,1", workers: 2, threads: Some(2), reconnects: false },
    CoresArm { name: "  20 to 40 requests", cpus: "0,1", workers: 2, threads: Some(2), reconnects: true },
];

impl CoresArm {
    fn plan(&self, service: Nanos) -> PeriodPlan {
        let kind = ServerKind::NullRpc(null_rpc(self.threads, WORK));
        let server = ServerPlan { name: self.name, kind, cpus: self.cpus };
        let mut offered = Offered::poisson(UTILISATION * self.workers as f64 * 1e9 / service.0 as f64);
        offered.requests_per_connection = self.reconnects.then_some(SHORT);
        let receive_mask = if self.workers == 1 { "1" } else { "3" }.to_owned();
        PeriodPlan {
            fixes: vec![Fix::RealTime],
            receive_mask,
            sender_priority: Some(SENDER_PRIORITY),
            ..PeriodPlan::new(server, offered)
        }
    }
}

/// Plays all arms and prints them.
pub(crate) fn compare(site: &mut Site, repetition: Repetition) -> Result<(), OperationError> {
    let kind = ServerKind::NullRpc(null_rpc(None, WORK));
    let service = Saturation::measure(site, &plain(&ServerPlan::on_one_cpu("", kind)))?.service();
    println!(
        "\nFig. 7: null RPC that computes for 1 ms, {} us of a CPU for a request, {:.0} % of the server's CPUs",
        service.0 / 1000,
        UTILISATION * 100.0
    );
    let mut found: Vec<Vec<PeriodFigures>> = ARMS.iter().map(|_| Vec::new()).collect();
    for (number, arm) in order(ARMS.len(), repetition.rounds, repetition.seed).into_iter().enumerate() {
        if site.is_stopped() {
            break;
        }
        let seed = repetition.seed + (number / ARMS.len()) as u64;
        let seen = site.play_undisturbed(ARMS[arm].name, &ARMS[arm].plan(service), seed)?;
        found[arm].extend(seen.and_then(|seen| PeriodFigures::of(&seen, Some(service), ARMS[arm].workers)));
    }
    println!(
        "{:<20} {:>20} {:>20} {:>20} {:>20} {:>20} {:>8}",
        "ms", "p50", "p99", "p99.9", "p99, ideal", "p99, two queues", "order"
    );
    for (arm, periods) in ARMS.iter().zip(&found) {
        let text = |of: &dyn Fn(&PeriodFigures) -> f64| {
            RoundFigure::of(periods.iter().map(|figures| of(figures) / 1e3))
                .map_or("-".to_owned(), RoundFigure::text)
        };
        let overtaken = RoundFigure::of(periods.iter().map(|figures| figures.overtaken * 100.0));
        let two_queues = match arm.threads {
            Some(_) => text(&|figures| figures.per_worker_us[1]),
            None => "-".to_owned(),
        };
        println!(
            "{:<20} {:>20} {:>20} {:>20} {:>20} {:>20} {:>7.2}%",
            arm.name,
            text(&|figures| figures.measured_us[0]),
            text(&|figures| figures.measured_us[1]),
            text(&|figures| figures.measured_us[2]),
            text(&|figures| figures.ideal_us[1]),
            two_queues,
            overtaken.map_or(f64::NAN, |figure| figure.median),
        );
    }
    println!(
        "the paper, with 4 CPUs at 80 %: one queue (null RPC, memcached by UDP) is better than even the ideal of one \
              CPU; a queue for each worker (memcached by TCP, nginx) stays as with one CPU; with connections of 20 to 40 \
              requests nginx improves"
    );
    println!(
        "memcached and nginx on two CPUs: not observable here, the generator takes most of the second one"
    );
    Ok(())
}
