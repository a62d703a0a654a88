//! The cost of an enforcer: an arrival, dispatch, completion and settlement against the number of flows and of waiting
//! requests, and the withdrawal and moving of a connection's requests from a long backlog.
//!
//! `cargo bench -p discipline --bench enforcer`

use discipline::Limit;
use discipline::enforce::{
    ArrivingRequest, DeviceOperation, EnforcementRules, Enforcer, FlowRules, OverLimit, WaitingRequest,
};
use std::hint::black_box;
use std::time::Instant;

/// Requests of one connection that hangs up.
const OF_CONNECTION: usize = 256;
/// Rounds of one measurement.
const ROUNDS: u32 = 20_000;
/// Number of measurements; the least counts, because others use the machine.
const MEASUREMENTS: usize = 15;

fn main() {
    println!("{:>8} {:>9} {:>12} {:>12} {:>12}", "flows", "waiting", "round", "settled", "shared");
    for flows in [1, 100, 10_000] {
        for waiting in [0, 1000, 256_000] {
            let [round, settled, shared] = [(false, false), (true, false), (true, true)]
                .map(|(settles, shares)| round_ns(flows, waiting, settles, shares));
            println!("{flows:>8} {waiting:>9} {round:>9.0} ns {settled:>9.0} ns {shared:>9.0} ns");
        }
    }
    println!("\n{:>8} {:>9} {:>12} {:>12}", "flows", "waiting", "withdrawn", "moved");
    for flows in [1, 100, 10_000] {
        for waiting in [2300, 230_000] {
            let withdrawn = leave_ns(flows, waiting, Enforcer::withdraw);
            let moved = leave_ns(flows, waiting, |enforcer, now, request| {
                enforcer.move_to_flow(now, request, flows);
            });
            println!("{flows:>8} {waiting:>9} {withdrawn:>9.0} ns {moved:>9.0} ns");
        }
    }
}

/// Returns the rules of this many flows on 16 levels with two limits each; every odd one may share the
/// limits of the one before.
fn rules(flows: u32, shares: bool) -> EnforcementRules {
    let rule = |name: u32| {
        let owner = Some(name ^ 1).filter(|_| shares && name % 2 == 1);
        let limits = [Limit { rate: 500_000_000, burst: 50_000 }, Limit { rate: 900_000_000, burst: 5000 }];
        let limits = if owner.is_some() { Vec::new() } else { limits.to_vec() };
        let over_limit = OverLimit::Demote;
        (name, FlowRules { level: name % 16, limits, over_limit, largest: None, shares_limits_of: owner })
    };
    EnforcementRules { flows: (0..flows).map(rule).collect(), ..EnforcementRules::none() }
}

fn arrival(id: u32, flow: u32) -> ArrivingRequest {
    ArrivingRequest { id, flow, operation: DeviceOperation::Read, cost: 100, bytes: 4096, is_estimate: false }
}

/// Returns an enforcer with a backlog of requests; those of a flow are in order of arrival.
fn backlog(flows: u32, waiting: u32, shares: bool) -> (Enforcer, Vec<WaitingRequest>) {
    let mut enforcer = Enforcer::new(0, &rules(flows, shares)).expect("rules within their ranges");
    let requests = (0..waiting).map(|id| enforcer.arrive(0, arrival(id, id % flows)));
    let requests = requests.collect();
    (enforcer, requests)
}

/// The nanoseconds of a request that arrives while another one is served.
fn round_ns(flows: u32, waiting: u32, settles: bool, shares: bool) -> f64 {
    let (mut enforcer, _) = backlog(flows, waiting, shares);
    let rounds = (0..).step_by(ROUNDS as usize).take(MEASUREMENTS);
    let times = rounds.map(|first| one_measurement_ns(&mut enforcer, first, flows, settles));
    times.fold(f64::INFINITY, f64::min)
}

/// Returns the nanoseconds per round, from the first round on.
fn one_measurement_ns(enforcer: &mut Enforcer, first: u32, flows: u32, settles: bool) -> f64 {
    let begin = Instant::now();
    for round in first..first + ROUNDS {
        let now = u64::from(round) * 150;
        enforcer.arrive(now, arrival(round, round.wrapping_mul(7919) % flows));
        if let Some(dispatch) = enforcer.dispatch_next(now) {
            let charge = enforcer.complete(black_box(dispatch));
            if settles {
                enforcer.settle(now, charge, 90);
            }
        }
    }
    begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
}

/// The nanoseconds for each of the requests of a connection that leave a backlog.
fn leave_ns(flows: u32, waiting: u32, leave: impl Fn(&mut Enforcer, u64, WaitingRequest)) -> f64 {
    let (mut enforcer, requests) = backlog(flows, waiting, false);
    let own: Vec<WaitingRequest> =
        requests.iter().step_by(requests.len() / OF_CONNECTION).copied().take(OF_CONNECTION).collect();
    let begin = Instant::now();
    for request in &own {
        leave(&mut enforcer, 1000, *request);
    }
    begin.elapsed().as_nanos() as f64 / OF_CONNECTION as f64
}
