//! The same requests in the simulator: what each mode would do on CPUs without overheads, messages that take no time,
//! and nobody else on the machine.

use crate::measures::PlayedRequest;
use crate::workload::{ChainWorkload, RouteHop};
use discipline::serve::DisciplineSpec;
use model::OperationError;
use sim::engine::{
    EntryArrivals, LoggedRequest, MeasurementWindow, NetworkStation, NetworkStep, QueueingNetwork,
    RequestDraft, RequestEntry, SKIP, SimulationEngine,
};
use units::Nanos;

/// What becomes of every request of a workload when each tier has the discipline at its position.
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

fn played_request(logged: LoggedRequest) -> PlayedRequest {
    PlayedRequest { done: logged.done, at_tiers: logged.stations }
}

/// A step for each tier at each position of a route; a request takes one of each position, as far as its route goes.
fn network(workload: &ChainWorkload, disciplines: &[DisciplineSpec]) -> QueueingNetwork {
    let tiers = workload.tiers.len();
    let positions = workload.requests.iter().map(|request| request.route.len()).max().unwrap_or(1);
    let station = |(tier, discipline): (&crate::workload::ChainTier, &DisciplineSpec)| {
        NetworkStation::new(&tier.name, tier.workers, discipline.clone())
    };
    let mut network = QueueingNetwork::chain(workload.tiers.iter().zip(disciplines).map(station).collect());
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

/// An entry that brings its requests of the workload as they were drawn.
fn simulated_entry(workload: &ChainWorkload, entry: usize) -> RequestEntry {
    let of_entry = workload.requests.iter().filter(|request| request.entry == entry);
    let (arrivals, routes): (Vec<Nanos>, Vec<Vec<RouteHop>>) =
        of_entry.map(|request| (request.arrival, request.route.clone())).unzip();
    let (tiers, mut routes) = (workload.tiers.len(), routes.into_iter());
    let draw = move |draft: &mut RequestDraft<'_>| {
        draft.demands.fill(SKIP);
        for (position, hop) in routes.next().unwrap_or_default().iter().enumerate() {
            draft.demands[position * tiers + hop.tier] = hop.work;
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
    use crate::workload::{ChainEntry, ChainRequest, ChainTier};
    use proptest::prelude::*;

    fn workload(requests: &[(u64, Vec<(usize, u64)>)]) -> ChainWorkload {
        let tier = |name: &str| ChainTier { name: name.into(), workers: 1 };
        let request = |(arrival, route): &(u64, Vec<(usize, u64)>)| ChainRequest {
            arrival: Nanos(*arrival),
            entry: 0,
            route: route.iter().map(|(tier, work)| RouteHop { tier: *tier, work: Nanos(*work) }).collect(),
        };
        ChainWorkload {
            tiers: vec![tier("a"), tier("b")],
            entries: vec![ChainEntry { window: None, skew_ns: 0 }],
            requests: requests.iter().map(request).collect(),
            serialised: 0,
        }
    }

    fn ends(workload: &ChainWorkload, mode: ScheduleMode, c: Option<u32>) -> Vec<u64> {
        let disciplines = [mode.discipline(mode.limit(c), 1), mode.discipline(mode.limit(c), 1)];
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
        // The first request reaches tier b at 10, behind the others by arrival there, before them by age.
        let workload = workload(&[(0, vec![(0, 10), (1, 2)]), (1, vec![(1, 10)]), (2, vec![(1, 10)])]);
        let ends = |mode| ends(&workload, mode, Some(1));
        assert_eq!(ends(ScheduleMode::Limited), [23, 11, 21]);
        assert_eq!(ends(ScheduleMode::OldestAdmission), [13, 11, 23]);
        assert_eq!(ends(ScheduleMode::OldestFirst), [12, 13, 23]);
    }

    proptest! {
        /// One worker and c = 1 is the textbook recursion: an end is the later of arrival and last end, and the work.
        #[test]
        fn a_limit_of_one_is_first_come_first_served(
            drawn in proptest::collection::vec((1u64..20, 1u64..20), 1..40),
        ) {
            let (mut arrival, mut free, mut expected, mut requests) = (0, 0, Vec::new(), Vec::new());
            for (gap, work) in drawn {
                arrival += gap;
                free = arrival.max(free) + work;
                expected.push(free);
                requests.push((arrival, vec![(0, work)]));
            }
            let workload = workload(&requests);
            for mode in [ScheduleMode::FirstCome, ScheduleMode::Limited, ScheduleMode::OldestAdmission,
                ScheduleMode::OldestFirst] {
                prop_assert_eq!(&ends(&workload, mode, Some(1)), &expected);
            }
        }
    }
}
