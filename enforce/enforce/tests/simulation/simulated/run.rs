//! Plays a world from its seed to its end, and reports violations.

use super::configuration::{Configuration, PriorityOrder};
use super::engine::{PassThrough, ProxyUnderTest};
use super::faults::FAULT_KINDS;
use super::loops::SimulatedLoops;
use super::plan::{SECOND, WorldPlan};
use super::system::SimulatedSystem;
use super::tamper::{ProxyMistake, Tampering};
use super::world::{AFTERMATH_NS, ControlAction, TakeOverFate, World};
use enforce::storage::{LoopedSystem, ProxyEngine};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Maximum time from the order to drain to the end of a proxy: that of its options, with a margin.
const DRAIN_MAX_NS: u64 = 11 * SECOND;
/// Time in which a proxy has to come to rest for another one.
const HOLD_NS: u64 = SECOND;
/// More rounds than any world takes.
const ROUNDS_MAX: u64 = 3_000_000;

/// Result of a world.
#[derive(Debug, Clone)]
pub struct WorldReport {
    pub seed: u64,
    /// Violations; empty if all promises were kept.
    pub violations: Vec<String>,
    /// Log of events, if it was kept.
    pub log: Vec<String>,
    /// Number of faults of each kind.
    pub faults: [u64; FAULT_KINDS],
    /// Simulated time.
    pub simulated_ns: u64,
    /// Number of the proxy's waits.
    pub rounds: u64,
    /// Number of answers to honest clients.
    pub answered: u64,
    /// Number of proxies that took over from another.
    pub taken_over: u64,
    /// Times from the requests of the first client to their answers, ascending.
    pub latencies: Vec<u64>,
    /// Maximum number of bytes of requests, and of replies, that the proxy held for one connection.
    pub most_held: [u64; 2],
    /// Maximum number of consecutive rounds with ready events but without progress.
    pub most_idle_rounds: u64,
}

/// Plays the world of a seed with the proxy.
pub fn play(seed: u64, mistake: Option<ProxyMistake>, keeps_log: bool) -> WorldReport {
    play_with::<ProxyEngine<SimulatedSystem>>(seed, mistake, keeps_log)
}

/// Plays the world of a seed with a proxy whose connections belong to loops.
pub fn play_looped(seed: u64, mistake: Option<ProxyMistake>, keeps_log: bool) -> WorldReport {
    play_with::<ProxyEngine<LoopedSystem<SimulatedSystem, SimulatedLoops>>>(seed, mistake, keeps_log)
}

/// Plays the world of a seed with a proxy that passes everything on.
pub fn play_pass_through(seed: u64) -> WorldReport {
    play_with::<PassThrough>(seed, None, false)
}

fn play_with<P: ProxyUnderTest>(seed: u64, mistake: Option<ProxyMistake>, keeps_log: bool) -> WorldReport {
    play_plan::<P>(WorldPlan::new(seed), mistake, keeps_log)
}

/// Plays the world of a plan.
pub fn play_plan<P: ProxyUnderTest>(
    plan: WorldPlan,
    mistake: Option<ProxyMistake>,
    keeps_log: bool,
) -> WorldReport {
    let seed = plan.seed;
    let mut world = World::new(plan);
    world.log = keeps_log.then(Vec::new);
    world.tampering = mistake.map(|mistake| Tampering::new(mistake, seed));
    if mistake == Some(ProxyMistake::ExceedsOutstanding) {
        world.checks.outstanding_max = (world.plan.outstanding / 2).max(1);
        world.plan.outstanding = 2 * world.checks.outstanding_max;
    }
    let world = Rc::new(RefCell::new(world));
    let outcome = catch_unwind(AssertUnwindSafe(|| live::<P>(&world)));
    if let Err(panic) = outcome {
        let text =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        // A world borrowed at the time of the panic is inaccessible.
        if let Ok(mut world) = world.try_borrow_mut() {
            world.violate(&format!("panic: {}", text.unwrap_or("of another kind")));
        }
    }
    let Ok(mut world) = world.try_borrow_mut() else { panic!("seed {seed}: the world itself panicked") };
    report(&mut world)
}

fn report(world: &mut World) -> WorldReport {
    let mut most_held = [0; 2];
    for session in &world.sessions {
        most_held = [0, 1].map(|place| most_held[place].max(session.most_held[place]));
    }
    let mut latencies = world.clients.first().map_or_else(Vec::new, |client| client.latencies.clone());
    latencies.sort_unstable();
    WorldReport {
        seed: world.plan.seed,
        violations: std::mem::take(&mut world.violations),
        log: world.log.take().unwrap_or_default(),
        faults: world.faults.counts,
        simulated_ns: world.now - SECOND,
        rounds: world.rounds,
        answered: world.clients.iter().map(|client| client.answered).sum(),
        taken_over: world.taken_over,
        latencies,
        most_held,
        most_idle_rounds: world.most_idle_rounds,
    }
}

/// Returns the configuration as the proxy receives it, distorted by an injected mistake.
fn told(world: &World, configuration: Configuration) -> Configuration {
    let order = match configuration.order {
        PriorityOrder::GoldFirst if world.makes(ProxyMistake::IgnoresPriority) => PriorityOrder::SilverFirst,
        PriorityOrder::SilverFirst if world.makes(ProxyMistake::IgnoresPriority) => PriorityOrder::GoldFirst,
        order => order,
    };
    Configuration { order, ..configuration }
}

/// Returns the plan for the proxy's configuration, without limits if an injected mistake ignores them.
fn told_plan(world: &World) -> WorldPlan {
    let mut plan = world.plan.clone();
    if world.makes(ProxyMistake::IgnoresLimits) {
        plan.limit = (1000, 1_000_000);
    }
    plan
}

fn begin<P: ProxyUnderTest>(world: &Rc<RefCell<World>>) -> P {
    let (plan, configuration) = {
        let world = world.borrow();
        (told_plan(&world), told(&world, world.configuration))
    };
    P::begin(SimulatedSystem(world.clone()), &plan, configuration)
}

/// Runs proxies in a world, one after the other, until it is over.
fn live<P: ProxyUnderTest>(world: &Rc<RefCell<World>>) {
    let mut proxy: P = begin(world);
    let mut drain_by = None;
    let mut fate = None;
    loop {
        if let Err(error) = proxy.round() {
            world.borrow_mut().violate(&format!("the proxy cannot go on: {error}"));
            return;
        }
        proxy.check_invariants();
        let action = world.borrow_mut().actions.pop_front();
        let mut is_ended = proxy.is_stopped();
        match action {
            Some(ControlAction::Configure(configuration)) => configure(world, &mut proxy, configuration),
            Some(ControlAction::ConfigureWrongly) => configure_wrongly(world, &mut proxy),
            Some(ControlAction::Drain) if drain_by.is_none() => {
                excuse_all(world, "the proxy drains");
                world.borrow_mut().is_draining = true;
                drain_by = Some(world.borrow().now + DRAIN_MAX_NS);
                proxy.drain();
            }
            Some(ControlAction::Stop) => is_ended = true,
            Some(ControlAction::TakeOver(wanted))
                if P::CAN_HAND_OVER && drain_by.is_none() && fate.is_none() =>
            {
                world.borrow_mut().is_holding = true;
                world.borrow_mut().note(|| format!("a proxy begins to take over, and {wanted:?}"));
                fate = Some(wanted);
                proxy.hold(HOLD_NS);
            }
            Some(ControlAction::Drain | ControlAction::TakeOver(_)) | None => {}
        }
        if let Some(wanted) = fate.filter(|_| !is_ended && (proxy.is_at_rest() || proxy.is_hold_late())) {
            proxy = end_of_hold(world, proxy, wanted);
            fate = None;
        }
        is_ended |= proxy.is_stopped();
        if drain_by.is_some_and(|by| by < world.borrow().now) && !is_ended {
            world.borrow_mut().violate("drain: the proxy was told to drain and does not end");
            is_ended = true;
        }
        if is_ended {
            excuse_all(world, "the proxy ended");
            drop(proxy);
            renew(world);
            drain_by = None;
            fate = None;
            proxy = begin(world);
        }
        if is_finished(world) {
            break;
        }
    }
    check_end(world, &mut proxy);
}

/// Lets a proxy hand over if it is at rest, or go on.
fn end_of_hold<P: ProxyUnderTest>(world: &Rc<RefCell<World>>, mut proxy: P, fate: TakeOverFate) -> P {
    let mut is_at_rest = proxy.is_at_rest();
    if !is_at_rest && fate == TakeOverFate::Succeeds {
        excuse_all(world, "it was in the middle of a message when another proxy took over");
        is_at_rest = proxy.leave_clients_behind();
    }
    world.borrow_mut().is_holding = false;
    if !is_at_rest || fate == TakeOverFate::Dies {
        world.borrow_mut().note(|| "nothing is taken over".to_owned());
        proxy.go_on();
        return proxy;
    }
    world.borrow_mut().note(|| "another proxy has taken over".to_owned());
    world.borrow_mut().taken_over += 1;
    let other = begin(world);
    let mistake = world.borrow().tampering.as_ref().map(|tampering| tampering.mistake);
    let other = proxy.succeeded(other, |document| mistake.iter().for_each(|mistake| mistake.spoil(document)));
    // The engine before it wanted no reports.
    world.borrow_mut().reports_clients = true;
    let now = world.borrow().now;
    world.borrow_mut().configured_at = now;
    other
}

fn is_finished(world: &Rc<RefCell<World>>) -> bool {
    let mut world = world.borrow_mut();
    if world.rounds > ROUNDS_MAX || (world.idle_rounds > 10_000) {
        world.violate("the world does not end");
        return true;
    }
    world.is_over() || !world.violations.is_empty()
}

fn excuse_all(world: &Rc<RefCell<World>>, why: &'static str) {
    let mut world = world.borrow_mut();
    for session in &mut world.sessions {
        session.excuse(why);
    }
}

/// Lets the next proxy listen at the addresses of the last.
fn renew(world: &Rc<RefCell<World>>) {
    let mut world = world.borrow_mut();
    world.generation += 1;
    (world.is_draining, world.is_listening, world.reports_clients) = (false, true, true);
    world.is_holding = false;
    world.restart_limits();
    world.configured_at = world.now;
    world.note(|| "another proxy begins".to_owned());
}

fn configure<P: ProxyUnderTest>(world: &Rc<RefCell<World>>, proxy: &mut P, configuration: Configuration) {
    let (plan, told) = {
        let world = world.borrow();
        (told_plan(&world), told(&world, configuration))
    };
    if world.borrow().makes(ProxyMistake::MissesConfiguration) {
        proxy.check_invariants();
    } else if let Err(error) = proxy.configure(told.policy(&plan).as_ref(), told.deployment(&plan)) {
        world.borrow_mut().violate(&format!("a right configuration was refused: {error}"));
    }
    let mut world = world.borrow_mut();
    world.note(|| format!("{configuration:?}"));
    let had_limits = world.configuration.order != PriorityOrder::Without;
    (world.configuration, world.configured_at) = (configuration, world.now);
    if !had_limits {
        world.restart_limits();
    }
}

fn configure_wrongly<P: ProxyUnderTest>(world: &Rc<RefCell<World>>, proxy: &mut P) {
    let plan = world.borrow().plan.clone();
    let configuration = world.borrow().configuration;
    let outcome =
        proxy.configure(configuration.policy(&plan).as_ref(), configuration.wrong_deployment(&plan));
    if outcome.is_ok() {
        world.borrow_mut().violate("a deployment without the server was accepted");
    }
}

/// Checks that the proxy holds no state, once all clients have gone and time has passed.
fn check_end<P: ProxyUnderTest>(world: &Rc<RefCell<World>>, proxy: &mut P) {
    if !world.borrow().violations.is_empty() {
        return;
    }
    let end = world.borrow().plan.ends_at + AFTERMATH_NS;
    while world.borrow().now < end && proxy.snapshot().connections > 0 {
        if proxy.round().is_err() {
            break;
        }
    }
    let snapshot = proxy.snapshot();
    let left = [snapshot.connections, snapshot.waiting, snapshot.outstanding, snapshot.buffered_bytes];
    if left != [0; 4] {
        world.borrow_mut().violate(&format!(
            "left: in the end the proxy has {} connections, {} waiting, {} outstanding, {} bytes",
            left[0], left[1], left[2], left[3]
        ));
    }
}
