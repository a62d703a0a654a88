//! Workload of a play: tiers, and requests with their arrivals, routes and work, all drawn in advance.
//!
//! It is drawn from a scenario as `simulate` reads it. Stations become tiers, and a request's demands at its
//! steps become a route. The delay of a step after one at the same station is a wait there, for a disk or a
//! lock: time without CPU in the middle of a visit. Other network delays and costs of stations (`switch`,
//! `dispatch`, `interference`) are omitted, because the machine has its own. Steps that could overlap are put
//! in sequence.

use gat::RequestSlo;
use model::OperationError;
use scenario::SimulationCase;
use sim::engine::{DELAY_ONLY, EntryArrivals, NetworkStep, QueueingNetwork, RequestDraft, RequestEntry};
use sim::pool_tiers::RouteHop;
use std::ops::Range;
use units::Nanos;

/// Maximum work of a request at one tier; more would block everything that is measured.
const WORK_MAX: Nanos = Nanos(60_000_000_000);
/// Maximum number of visits of a request.
pub(crate) const HOPS_MAX: usize = 64;
/// Maximum lead and lag of an entry's clock, nanoseconds. Tiers reject a start that is further ahead, or
/// older than an hour ([`gat::TagTolerance`]); a request may be on its way for the other half of that hour.
const SKEW_AHEAD_NS_MAX: i64 = 1_000_000_000;
const SKEW_BEHIND_NS_MAX: i64 = 1_800_000_000_000;
/// Maximum number of requests of a play.
const REQUESTS_MAX: usize = 1_000_000;

/// A service on its own CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainTier {
    /// Name in reports.
    pub name: String,
    /// Number of its CPUs, at least 1.
    pub workers: u32,
}

/// A request that is drawn but not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainRequest {
    /// Arrival, since the beginning of the play.
    pub arrival: Nanos,
    /// Index of the entry at which it arrives.
    pub entry: usize,
    /// Index of its class.
    pub class: usize,
    /// Tiers that it visits, one calling the next; at least one.
    pub route: Vec<RouteHop>,
}

impl ChainRequest {
    /// Returns its CPU time at all tiers.
    pub fn work(&self) -> Nanos {
        Nanos(self.route.iter().map(|hop| hop.work.0).sum())
    }

    /// Returns its latency if it were alone and messages took no time.
    pub(crate) fn ideal_latency(&self) -> Nanos {
        Nanos(self.route.iter().map(|hop| hop.wait.0 + hop.work.0).sum())
    }

    /// Returns the instant of its completion if it were alone and messages took no time.
    pub(crate) fn ideal_end(&self) -> Nanos {
        Nanos(self.arrival.0 + self.ideal_latency().0)
    }
}

/// Entry of a workload, which stamps requests with their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainEntry {
    /// Maximum number of requests inside; others wait before it. `None` is no limit.
    pub window: Option<u32>,
    /// Lead of its clock, nanoseconds: at most one second, or half an hour behind.
    pub skew_ns: i64,
}

/// Class of requests with an optional SLO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainClass {
    /// Name in reports.
    pub name: String,
    /// Time from arrival to deadline; `None` if its requests are never late.
    pub slo: Option<RequestSlo>,
}

/// Requests in order of arrival, with the tiers that they visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainWorkload {
    /// Tiers, by the index that routes use.
    pub tiers: Vec<ChainTier>,
    /// Entries, by the index that requests use.
    pub entries: Vec<ChainEntry>,
    /// Classes, by the index that requests use; at least one.
    pub classes: Vec<ChainClass>,
    /// Requests, in order of arrival and then of entry.
    pub requests: Vec<ChainRequest>,
    /// Number of requests whose steps could overlap and are put in sequence here.
    pub serialised: usize,
}

impl ChainWorkload {
    /// Returns the number of visits to a tier.
    pub fn visits(&self, tier: usize) -> usize {
        self.requests.iter().flat_map(|request| &request.route).filter(|hop| hop.tier == tier).count()
    }

    /// Returns the work of all requests at a tier.
    pub fn work(&self, tier: usize) -> Nanos {
        let hops = self.requests.iter().flat_map(|request| &request.route);
        Nanos(hops.filter(|hop| hop.tier == tier).map(|hop| hop.work.0).sum())
    }

    /// Returns true if a request waits in the middle of a visit.
    pub(crate) fn has_waits(&self) -> bool {
        self.requests.iter().flat_map(|request| &request.route).any(|hop| hop.wait > Nanos::ZERO)
    }

    /// Returns the time from arrival to deadline by class, nanoseconds; empty unless each class has an SLO.
    pub fn allowed_ns(&self) -> Vec<u64> {
        let slos = self.classes.iter().map(|class| Some(class.slo?.ns()));
        slos.collect::<Option<_>>().unwrap_or_default()
    }
}

impl ChainWorkload {
    /// Returns the same requests with the work at each tier multiplied by its factor.
    ///
    /// # Panics
    /// If `factors` has fewer entries than there are tiers.
    #[must_use]
    pub(crate) fn with_costs(&self, factors: &[f64]) -> Self {
        let mut costly = self.clone();
        for hop in costly.requests.iter_mut().flat_map(|request| &mut request.route) {
            // The cast saturates.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let work = (hop.work.0 as f64 * factors[hop.tier]).round() as u64;
            hop.work = Nanos(work.max(1));
        }
        costly
    }
}

/// Draws the requests of a scenario that arrive within `duration`.
///
/// # Errors
/// If an entry has no open arrivals, or a request cannot be played.
pub fn draw_workload(
    case: &SimulationCase,
    seed: u64,
    duration: Nanos,
) -> Result<ChainWorkload, OperationError> {
    let mut drawn = ChainWorkload {
        tiers: case.network.stations.iter().map(chain_tier).collect(),
        entries: Vec::new(),
        classes: case.classes.iter().zip(&case.slos).map(chain_class).collect(),
        requests: Vec::new(),
        serialised: 0,
    };
    for (index, entry) in case.entries(seed).into_iter().enumerate() {
        check_skew(entry.skew_ns)?;
        drawn.entries.push(ChainEntry { window: entry.window, skew_ns: entry.skew_ns });
        add_requests(&mut drawn, &case.network, index, entry, duration)?;
    }
    // A stable sort, so that simultaneous requests are in the order of entries, as in the simulator.
    drawn.requests.sort_by_key(|request| request.arrival);
    Ok(drawn)
}

fn chain_tier(station: &sim::engine::NetworkStation) -> ChainTier {
    ChainTier { name: station.name.clone(), workers: station.workers }
}

fn chain_class((name, &slo): (&String, &Option<RequestSlo>)) -> ChainClass {
    ChainClass { name: name.clone(), slo }
}

fn unplayable(what: &str, hint: &str) -> OperationError {
    OperationError::input(format_args!("{what} cannot be run as services on this machine")).hint(hint)
}

/// Refuses clock skews whose starts tiers would replace.
fn check_skew(skew_ns: i64) -> Result<(), OperationError> {
    if (-SKEW_BEHIND_NS_MAX..=SKEW_AHEAD_NS_MAX).contains(&skew_ns) {
        return Ok(());
    }
    let size = Nanos(skew_ns.unsigned_abs());
    let direction = if skew_ns > 0 { "ahead" } else { "behind" };
    let hint = "services take a start of more than 1s in the future, or of more than 1h ago, for a mistake: give a skew from \
                -30min to 1s";
    Err(unplayable(&format!("an entry whose clock is {size} {direction}"), hint))
}

/// Adds the requests of an entry that arrive within `duration`.
fn add_requests(
    drawn: &mut ChainWorkload,
    network: &QueueingNetwork,
    index: usize,
    entry: RequestEntry,
    duration: Nanos,
) -> Result<(), OperationError> {
    let EntryArrivals::Open(arrivals) = entry.arrivals else {
        return Err(unplayable("an entry of clients that wait", "give it `arrivals` or a `trace`"));
    };
    let mut draw = entry.draw;
    let steps = network.steps.len();
    let mut demands = vec![Nanos::ZERO; steps];
    let mut delays = vec![Nanos::ZERO; steps];
    for arrival in arrivals.take_while(|arrival| *arrival < duration) {
        demands.fill(Nanos::ZERO);
        delays.iter_mut().zip(&network.steps).for_each(|(delay, step)| *delay = step.delay);
        let mut draft = RequestDraft {
            demands: &mut demands,
            delays: &mut delays,
            entry_delay: Nanos::ZERO,
            steps: 0..steps,
            class: 0,
            access: None,
        };
        draw.draw(&mut draft);
        let range = draft.steps.clone();
        let class = draft.class as usize;
        let route = route(network, range.clone(), (&demands, &delays))?;
        if route.is_empty() {
            continue;
        }
        drawn.serialised += usize::from(could_overlap(network, range, &demands));
        drawn.requests.push(ChainRequest { arrival, entry: index, class, route });
        if drawn.requests.len() > REQUESTS_MAX {
            return Err(unplayable("more than a million requests", "a shorter --duration has fewer"));
        }
    }
    Ok(())
}

fn served(demand: Nanos) -> Option<Nanos> {
    (demand < DELAY_ONLY && demand > Nanos::ZERO).then_some(demand)
}

/// Returns the visits of a request in the order of its steps; neighbours at one tier without a wait
/// between them are one hop.
fn route(
    network: &QueueingNetwork,
    steps: Range<usize>,
    (demands, delays): (&[Nanos], &[Nanos]),
) -> Result<Vec<RouteHop>, OperationError> {
    let mut route: Vec<RouteHop> = Vec::new();
    for step in steps {
        let (Some(work), tier) = (served(demands[step]), network.steps[step].station) else { continue };
        let follows_here = |earlier: &usize| network.steps[*earlier].station == tier;
        let is_wait = network.steps[step].after.iter().any(follows_here);
        let wait = if is_wait { delays[step] } else { Nanos::ZERO };
        push_hop(&mut route, RouteHop { tier, wait, work });
    }
    if route.len() > HOPS_MAX {
        return Err(unplayable("a request of more than 64 visits", "leave services out of the record"));
    }
    if route.iter().any(|hop| hop.work > WORK_MAX || hop.wait > WORK_MAX) {
        let what = "a request of more than a minute of work, or of a wait";
        return Err(unplayable(what, "give a bounded distribution"));
    }
    Ok(route)
}

/// Appends a hop. Without a wait it is merged with the previous one at the same tier; a wait before
/// another tier is dropped, as network delay.
pub(crate) fn push_hop(route: &mut Vec<RouteHop>, hop: RouteHop) {
    match route.last_mut() {
        Some(last) if last.tier == hop.tier && hop.wait == Nanos::ZERO => last.work = last.work + hop.work,
        Some(last) if last.tier == hop.tier => route.push(hop),
        _ => route.push(RouteHop { wait: Nanos::ZERO, ..hop }),
    }
}

/// Returns true if the longest path of a request is shorter than the sum of its work.
fn could_overlap(network: &QueueingNetwork, steps: Range<usize>, demands: &[Nanos]) -> bool {
    let first = steps.start;
    let mut ends: Vec<u64> = Vec::with_capacity(steps.len());
    let mut total = 0;
    for step in steps {
        let NetworkStep { after, .. } = &network.steps[step];
        let ready = after.iter().map(|earlier| ends[earlier - first]).max().unwrap_or(0);
        let work = served(demands[step]).map_or(0, |work| work.0);
        total += work;
        ends.push(ready + work);
    }
    ends.iter().max().is_some_and(|longest| *longest < total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::ScenarioDocument;
    use std::path::Path;

    fn case(text: &str) -> SimulationCase {
        ScenarioDocument::parse(Path::new("test.toml"), text).and_then(|document| document.case()).unwrap()
    }

    const FAN_IN: &str = "[[station]]\nname = \"slow\"\nworkers = 1\ndiscipline = \"fifo\"\n\
        [[station]]\nname = \"shared\"\nworkers = 1\ndiscipline = \"fifo\"\n\
        [[entry]]\narrivals = \"poisson(100/s)\"\nservice = { slow = \"2ms\", shared = \"1ms\" }\n\
        [[entry]]\narrivals = \"constant(50/s)\"\nservice = { slow = \"skip\", shared = \"3ms\" }\nskew = \"-1ms\"\n";

    #[test]
    fn routes_are_the_steps_that_requests_take() {
        let drawn = draw_workload(&case(FAN_IN), 7, Nanos(2_000_000_000)).unwrap();
        assert_eq!(drawn.tiers[1], ChainTier { name: "shared".into(), workers: 1 });
        assert_eq!(drawn.entries[1], ChainEntry { window: None, skew_ns: -1_000_000 });
        assert!(drawn.requests.is_sorted_by_key(|request| request.arrival));
        let second: Vec<_> = drawn.requests.iter().filter(|request| request.entry == 1).collect();
        assert!((95..=101).contains(&second.len()), "{}", second.len());
        assert!(second.iter().all(
            |request| request.route == [RouteHop { tier: 1, wait: Nanos::ZERO, work: Nanos(3_000_000) }]
        ));
        let first = drawn.requests.iter().find(|request| request.entry == 0).unwrap();
        assert_eq!(first.work(), Nanos(3_000_000));
        assert_eq!(first.route.iter().map(|hop| hop.tier).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(drawn.visits(0) + second.len(), drawn.visits(1));
        assert_eq!(drawn.work(0).0, drawn.visits(0) as u64 * 2_000_000);
        assert_eq!(drawn.serialised, 0);
        let costly = drawn.with_costs(&[1.0, 1.5]);
        assert_eq!((costly.work(0), costly.work(1).0), (drawn.work(0), drawn.work(1).0 * 3 / 2));
        assert_eq!(draw_workload(&case(FAN_IN), 7, Nanos(2_000_000_000)), Ok(drawn));
    }

    #[test]
    fn steps_that_could_overlap_are_counted() {
        let text = "[[station]]\nname = \"a\"\nworkers = 1\ndiscipline = \"fifo\"\n\
            [[station]]\nname = \"b\"\nworkers = 1\ndiscipline = \"fifo\"\n[[step]]\nstation = \"a\"\n\
            [[step]]\nstation = \"b\"\n[[entry]]\narrivals = \"constant(10/s)\"\nservice = { \"*\" = \"1ms\" }\n";
        let drawn = draw_workload(&case(text), 1, Nanos(1_000_000_000)).unwrap();
        assert_eq!(drawn.serialised, drawn.requests.len());
        assert_eq!(drawn.requests[0].route.len(), 2);
    }

    #[test]
    fn a_delay_at_the_same_station_is_a_wait() {
        let text = "[[station]]\nname = \"a\"\nworkers = 1\ndiscipline = \"fifo\"\n\
            [[station]]\nname = \"b\"\nworkers = 1\ndiscipline = \"fifo\"\n\
            [[step]]\nstation = \"a\"\n[[step]]\nname = \"disk\"\nstation = \"a\"\nafter = [\"a\"]\ndelay = \"20ms\"\n\
            [[step]]\nstation = \"b\"\nafter = [\"disk\"]\ndelay = \"uniform(1ms, 2ms)\"\n\
            [[entry]]\narrivals = \"constant(10/s)\"\nservice = { a = \"1ms\", disk = \"3ms\", b = \"2ms\" }\n";
        let drawn = draw_workload(&case(text), 1, Nanos(1_000_000_000)).unwrap();
        let hop = |tier, wait, work| RouteHop { tier, wait: Nanos(wait), work: Nanos(work) };
        let expected = [hop(0, 0, 1_000_000), hop(0, 20_000_000, 3_000_000), hop(1, 0, 2_000_000)];
        assert!(drawn.requests.iter().all(|request| request.route == expected), "{:?}", drawn.requests[0]);
        assert!(drawn.has_waits());
        let first = &drawn.requests[0];
        assert_eq!((first.work(), first.ideal_latency()), (Nanos(6_000_000), Nanos(26_000_000)));
        let random = text.replace("\"20ms\"", "\"exp(20ms)\"");
        let drawn = draw_workload(&case(&random), 1, Nanos(1_000_000_000)).unwrap();
        let waits: std::collections::BTreeSet<u64> =
            drawn.requests.iter().map(|request| request.route[1].wait.0).collect();
        assert!(waits.len() > 5 && !waits.contains(&0), "every request draws its own: {waits:?}");
    }

    #[test]
    fn clocks_may_differ_as_far_as_tiers_believe_them() {
        let tolerance = gat::TagTolerance::default();
        assert_eq!(u64::try_from(SKEW_AHEAD_NS_MAX), Ok(tolerance.ahead_ns_max));
        assert_eq!(u64::try_from(2 * SKEW_BEHIND_NS_MAX), Ok(tolerance.age_ns_max));
        for (skew, is_played) in [("1s", true), ("1001ms", false), ("-30min", true), ("-31min", false)] {
            let text = FAN_IN.replace("skew = \"-1ms\"", &format!("skew = \"{skew}\""));
            let drawn = draw_workload(&case(&text), 1, Nanos(1_000_000_000));
            let is_refused = |error: &OperationError| error.message.contains("whose clock is");
            assert!(
                drawn.as_ref().map_or_else(|error| is_refused(error) && !is_played, |_| is_played),
                "{skew}"
            );
        }
    }

    #[test]
    fn what_cannot_be_played_is_said() {
        let closed = "[[station]]\nname = \"a\"\nworkers = 1\ndiscipline = \"fifo\"\n\
            [[entry]]\nclients = 3\nthink = \"1ms\"\nservice = { a = \"1ms\" }\n";
        let error = draw_workload(&case(closed), 1, Nanos(1)).unwrap_err();
        assert!(error.message.contains("clients that wait") && error.hint.is_some(), "{error:?}");
    }
}
