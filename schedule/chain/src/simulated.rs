//! The same requests in the simulator: each mode on CPUs without overheads, with messages that take no
//! time, and without other load on the machine.

use crate::workload::ChainWorkload;
use discipline::RequestKey;
use discipline::pool::{Displacement, PoolRules};
use discipline::serve::{DisciplineSpec, PoolOrder};
use model::OperationError;
use sim::engine::{
    EntryArrivals, LoggedRequest, MeasurementWindow, NetworkStation, NetworkStep, QueueingNetwork,
    RequestDraft, RequestEntry, SKIP, SimulationEngine,
};
use sim::pool_tiers::{PlayedRequest, PoolTier, RouteHop, RoutedRequest, WaitTreatment, simulate_pool_tiers};
use std::num::NonZeroU32;
use units::Nanos;

/// Returns the outcome of every request of a workload when each tier has the discipline at its position.
///
/// # Errors
/// When the simulator refuses a discipline.
///
/// # Panics
/// Unless there are as many disciplines as tiers.
pub fn predicted_play(
    workload: &ChainWorkload,
    disciplines: &[DisciplineSpec],
) -> Result<Vec<PlayedRequest>, OperationError> {
    assert_eq!(disciplines.len(), workload.tiers.len(), "one discipline for each tier");
    let network = network(workload, disciplines);
    let entries = (0..workload.entries.len()).map(|entry| simulated_entry(workload, entry)).collect();
    let requests = workload.requests.len() as u64;
    let window = MeasurementWindow { warm_up: 0, ..MeasurementWindow::of_requests(requests) };
    let played = SimulationEngine::new(&network, entries, 0).map_err(|error| error.to_string());
    let played = played.and_then(|engine| engine.run_logged(window).map_err(|error| error.to_string()));
    let (_, logged) = played.map_err(|error| OperationError::input(format_args!("simulation: {error}")))?;
    Ok(logged.into_iter().map(played_request).collect())
}

/// Simulates a workload of which each tier serves the oldest requests, as many as the limit at its position (none: no
/// limit), and older ones displace younger ones. Waits in the middle of visits have this treatment.
///
/// # Panics
/// Unless there are as many limits as tiers.
pub fn predicted_waiting_play(
    workload: &ChainWorkload,
    limits: &[Option<u32>],
    patience: Nanos,
    waits: WaitTreatment,
) -> Vec<PlayedRequest> {
    assert_eq!(limits.len(), workload.tiers.len(), "one limit for each tier");
    let tiers: Vec<PoolTier> = workload
        .tiers
        .iter()
        .zip(limits)
        .map(|(tier, limit)| PoolTier {
            cpus: NonZeroU32::new(tier.workers).unwrap_or(NonZeroU32::MIN),
            rules: PoolRules {
                limit: limit.and_then(NonZeroU32::new),
                order: PoolOrder::Age,
                displacement: Displacement::OfYoungest,
                patience: Some(patience.0.max(1)),
            },
        })
        .collect();
    let windows: Vec<Option<u32>> = workload.entries.iter().map(|entry| entry.window).collect();
    let requests: Vec<RoutedRequest<'_>> = workload
        .requests
        .iter()
        .map(|request| RoutedRequest {
            arrival: request.arrival,
            entry: request.entry,
            key: RequestKey(request.arrival.0.saturating_add_signed(workload.entries[request.entry].skew_ns)),
            route: &request.route,
        })
        .collect();
    simulate_pool_tiers(&tiers, &windows, &requests, waits)
}

fn played_request(logged: LoggedRequest) -> PlayedRequest {
    PlayedRequest { done: logged.done, at_tiers: logged.stations }
}

/// Returns a network with a step for each tier at each position of a route; a request takes one step of
/// each position, for the length of its route.
fn network(workload: &ChainWorkload, disciplines: &[DisciplineSpec]) -> QueueingNetwork {
    let tiers = workload.tiers.len();
    let positions = workload.requests.iter().map(|request| request.route.len()).max().unwrap_or(1);
    let station = |(tier, discipline): (&crate::workload::ChainTier, &DisciplineSpec)| {
        NetworkStation::new(&tier.name, tier.workers, discipline.clone())
    };
    let mut network = QueueingNetwork::chain(workload.tiers.iter().zip(disciplines).map(station).collect());
    network.classes = u32::try_from(workload.classes.len()).unwrap_or(u32::MAX);
    network.steps.clear();
    for position in 0..positions {
        let before = position.saturating_sub(1) * tiers..position * tiers;
        network.steps.extend((0..tiers).map(|station| NetworkStep {
            station,
            after: before.clone().collect(),
            delay: Nanos::ZERO,
        }));
    }
    network
}

/// Returns an entry that supplies its requests of the workload as they were drawn.
fn simulated_entry(workload: &ChainWorkload, entry: usize) -> RequestEntry {
    let of_entry = workload.requests.iter().filter(|request| request.entry == entry);
    let (arrivals, contents): (Vec<Nanos>, Vec<(usize, Vec<RouteHop>)>) =
        of_entry.map(|request| (request.arrival, (request.class, request.route.clone()))).unzip();
    let tiers = workload.tiers.len();
    let mut contents = contents.into_iter();
    let draw = move |draft: &mut RequestDraft<'_>| {
        draft.demands.fill(SKIP);
        let (class, route) = contents.next().unwrap_or_default();
        draft.class = u32::try_from(class).unwrap_or(u32::MAX);
        for (position, hop) in route.iter().enumerate() {
            draft.demands[position * tiers + hop.tier] = hop.work;
            draft.delays[position * tiers + hop.tier] = hop.wait;
        }
    };
    let drawn = &workload.entries[entry];
    RequestEntry {
        arrivals: EntryArrivals::Open(Box::new(arrivals.into_iter())),
        window: drawn.window,
        skew_ns: drawn.skew_ns,
        ..RequestEntry::open(std::iter::empty(), draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::ScheduleMode;
    use crate::recursion::first_come_first_served;
    use crate::workload::{ChainClass, ChainEntry, ChainRequest, ChainTier};
    use discipline::serve::{LimitedSharingParameters, PoolEntrance};
    use gat::RequestSlo;
    use proptest::prelude::*;
    use std::time::Duration;

    fn workload(requests: &[(u64, Vec<(usize, u64)>)]) -> ChainWorkload {
        let tier = |name: &str| ChainTier { name: name.into(), workers: 1 };
        let request = |(arrival, route): &(u64, Vec<(usize, u64)>)| ChainRequest {
            arrival: Nanos(*arrival),
            entry: 0,
            class: 0,
            route: route
                .iter()
                .map(|(tier, work)| RouteHop { tier: *tier, wait: Nanos::ZERO, work: Nanos(*work) })
                .collect(),
        };
        ChainWorkload {
            tiers: vec![tier("a"), tier("b")],
            entries: vec![ChainEntry { window: None, skew_ns: 0 }],
            classes: vec![ChainClass { name: "all".into(), slo: None }],
            requests: requests.iter().map(request).collect(),
            serialised: 0,
        }
    }

    fn ends(workload: &ChainWorkload, mode: ScheduleMode, c: Option<u32>) -> Vec<u64> {
        let discipline = mode.discipline(mode.limit(c), 1, &workload.allowed_ns());
        let disciplines = [discipline.clone(), discipline];
        let played = predicted_play(workload, &disciplines).unwrap();
        played.iter().map(|request| request.done.unwrap().0).collect()
    }

    #[test]
    fn routes_may_go_back_and_branch() {
        let workload = workload(&[(0, vec![(0, 5), (1, 5), (0, 5)]), (1, vec![(1, 3)])]);
        assert_eq!(ends(&workload, ScheduleMode::FirstCome, None), [15, 4]);
        let disciplines = [DisciplineSpec::Fifo, DisciplineSpec::Fifo];
        let played = predicted_play(&workload, &disciplines).unwrap();
        assert_eq!(played[0].at_tiers, [Nanos(10), Nanos(5)]);
    }

    #[test]
    fn an_old_request_that_joins_late_goes_first_by_age_alone() {
        // The first request reaches tier b at 10: behind the others by arrival there, before them by age.
        let workload = workload(&[(0, vec![(0, 10), (1, 2)]), (1, vec![(1, 10)]), (2, vec![(1, 10)])]);
        let ends = |mode| ends(&workload, mode, Some(1));
        assert_eq!(ends(ScheduleMode::Limited), [23, 11, 21]);
        assert_eq!(ends(ScheduleMode::OldestAdmission), [13, 11, 23]);
        assert_eq!(ends(ScheduleMode::OldestFirst), [12, 13, 23]);
    }

    fn with_slos(mut workload: ChainWorkload, slos_ns: &[u64]) -> ChainWorkload {
        let class = |ns: &u64| ChainClass {
            name: ns.to_string(),
            slo: Some(RequestSlo::new(Duration::from_nanos(*ns)).unwrap()),
        };
        workload.classes = slos_ns.iter().map(class).collect();
        for (number, request) in workload.requests.iter_mut().enumerate() {
            request.class = number % slos_ns.len();
        }
        workload
    }

    #[test]
    fn an_urgent_request_goes_before_older_ones_by_deadline_alone() {
        // The second and the last are due 5 after their arrival, the others 100.
        let workload =
            workload(&[(0, vec![(0, 10)]), (1, vec![(0, 3)]), (2, vec![(0, 10)]), (3, vec![(0, 3)])]);
        let workload = with_slos(workload, &[100, 5]);
        let ends = |mode| ends(&workload, mode, Some(1));
        assert_eq!(ends(ScheduleMode::OldestFirst), [10, 13, 23, 26]);
        assert_eq!(ends(ScheduleMode::DeadlineAdmission), [10, 13, 26, 16]);
        assert_eq!(ends(ScheduleMode::DeadlineFirst), [16, 4, 26, 7]);
    }

    proptest! {
        /// If all classes have one SLO, every request ends by deadline at the same nanosecond as by age.
        #[test]
        fn with_one_slo_deadlines_are_ages(
            drawn in proptest::collection::vec((0u64..20, 1u64..20, 0u64..20), 1..40),
            c in 1u32..5,
            slo in 1u64..1_000_000,
        ) {
            let mut arrival = 0;
            let mut requests = Vec::new();
            for (gap, first, second) in drawn {
                arrival += gap;
                let second = (second > 0).then_some((1, second));
                requests.push((arrival, [(0, first)].into_iter().chain(second).collect()));
            }
            let workload = with_slos(workload(&requests), &[slo, slo, slo]);
            let ends = |mode| ends(&workload, mode, Some(c));
            prop_assert_eq!(ends(ScheduleMode::DeadlineFirst), ends(ScheduleMode::OldestFirst));
            prop_assert_eq!(ends(ScheduleMode::DeadlineAdmission), ends(ScheduleMode::OldestAdmission));
        }

        /// One worker and c = 1 is the textbook recursion: an end is the later of arrival and last end, and the work.
        #[test]
        fn a_limit_of_one_is_first_come_first_served(
            drawn in proptest::collection::vec((1u64..20, 1u64..20), 1..40),
        ) {
            let (requests, expected) = first_come_first_served(&drawn);
            let requests: Vec<_> =
                requests.into_iter().map(|(arrival, work)| (arrival, vec![(0, work)])).collect();
            let workload = workload(&requests);
            for mode in [ScheduleMode::FirstCome, ScheduleMode::Limited, ScheduleMode::OldestAdmission,
                ScheduleMode::OldestFirst] {
                prop_assert_eq!(&ends(&workload, mode, Some(1)), &expected);
            }
        }

        /// The engine, whose steps at one station have a delay between them, is the judge of reported waits.
        #[test]
        fn reported_waits_are_those_of_the_engine(
            drawn in proptest::collection::vec((1u64..20, 1u64..20, 1u64..30, 1u64..20), 1..40),
        ) {
            let mut arrival = 0;
            let mut requests = Vec::new();
            for (gap, first, wait, second) in drawn {
                arrival += gap;
                let hop = |wait, work| RouteHop { tier: 0, wait: Nanos(wait), work: Nanos(work) };
                let route = vec![hop(0, first), hop(wait, second)];
                requests.push(ChainRequest { arrival: Nanos(arrival), entry: 0, class: 0, route });
            }
            let mut workload = workload(&[]);
            workload.tiers.truncate(1);
            workload.requests = requests;
            let oldest = LimitedSharingParameters::oldest_first(1, 1);
            let oldest = LimitedSharingParameters { entrance: PoolEntrance::Preempt, ..oldest };
            let judge = predicted_play(&workload, &[DisciplineSpec::Limited(oldest)]).unwrap();
            let patience = Nanos(u64::MAX);
            let played = predicted_waiting_play(&workload, &[Some(1)], patience, WaitTreatment::Reported);
            let done = |played: &[PlayedRequest]| played.iter().map(|request| request.done).collect::<Vec<_>>();
            prop_assert_eq!(done(&played), done(&judge));
        }
    }
}
