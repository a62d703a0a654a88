//! Check that the running requests are the oldest, or by deadline the earliest: a log of all runs against
//! the keys of waiting requests.

use std::collections::BTreeSet;

/// One visit of a request to a tier, as the tier saw it. Instants are nanoseconds of one clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierVisit {
    pub request: u64,
    /// Key that should order the request at the tier: its start or its deadline, by one clock for all
    /// entries. The smaller key goes first, and of equal ones the smaller number.
    pub key: u64,
    /// Time at which the caller had sent the request.
    pub arrival: u64,
    /// Time at which its work there was done.
    pub end: u64,
    /// Intervals in which it ran, in order and within arrival and end.
    pub runs: Vec<(u64, u64)>,
}

/// A change at an instant. Ends precede beginnings at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum VisitChange {
    Stops,
    Leaves,
    Arrives,
    Runs,
}

/// Returns the share of the busy time of a tier in which a request runs that is not among the `limit`
/// oldest (by deadline: earliest) present ones. `None` if none ever runs.
pub fn younger_share(visits: &[TierVisit], limit: usize) -> Option<f64> {
    let mut changes: Vec<(u64, VisitChange, usize)> = Vec::new();
    // An interval of length zero takes no time, and its end would precede its beginning.
    let takes_time = |(from, to): &&(u64, u64)| from < to;
    for (index, visit) in visits.iter().enumerate() {
        for (from, to) in [(visit.arrival, visit.end)].iter().filter(takes_time) {
            changes.extend([(*from, VisitChange::Arrives, index), (*to, VisitChange::Leaves, index)]);
        }
        for (from, to) in visit.runs.iter().filter(takes_time) {
            changes.extend([(*from, VisitChange::Runs, index), (*to, VisitChange::Stops, index)]);
        }
    }
    changes.sort_unstable();
    let mut present = BTreeSet::new();
    let mut running = BTreeSet::new();
    let mut busy = 0;
    let mut younger = 0;
    let mut since = 0;
    for (instant, change, index) in changes {
        if !running.is_empty() {
            busy += instant - since;
            let oldest: Vec<_> = present.iter().take(limit).collect();
            let is_old = |key: &(u64, u64)| oldest.binary_search(&key).is_ok();
            younger += if running.iter().all(is_old) { 0 } else { instant - since };
        }
        since = instant;
        let key = (visits[index].key, visits[index].request);
        match change {
            VisitChange::Arrives => present.insert(key),
            VisitChange::Leaves => present.remove(&key),
            VisitChange::Runs => running.insert(key),
            VisitChange::Stops => running.remove(&key),
        };
    }
    (busy > 0).then(|| younger as f64 / busy as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn visit(request: u64, key: u64, arrival: u64, end: u64, runs: &[(u64, u64)]) -> TierVisit {
        TierVisit { request, key, arrival, end, runs: runs.to_vec() }
    }

    #[test]
    fn by_hand() {
        // The older one arrives at 10 and waits until the younger one is done at 40.
        let two = [visit(1, 5, 0, 40, &[(0, 40)]), visit(0, 1, 10, 60, &[(40, 60)])];
        assert_eq!(younger_share(&two, 1), Some(0.5));
        assert_eq!(younger_share(&two, 2), Some(0.0));
        assert_eq!(younger_share(&[], 1), None);
        assert_eq!(younger_share(&[visit(0, 0, 0, 5, &[])], 1), None);
        // A run between two pauses may have no length.
        let paused = [visit(1, 5, 0, 40, &[(10, 10), (30, 40)]), visit(0, 1, 10, 60, &[(10, 30), (40, 60)])];
        assert_eq!(younger_share(&paused, 1), Some(0.2));
    }

    /// Examines every instant separately.
    fn by_instants(visits: &[TierVisit], limit: usize) -> Option<f64> {
        let mut busy = 0u32;
        let mut younger = 0u32;
        for now in 0..200 {
            let is_at = |from: u64, to: u64| from <= now && now < to;
            let mut present: Vec<_> = visits.iter().filter(|visit| is_at(visit.arrival, visit.end)).collect();
            present.sort_by_key(|visit| (visit.key, visit.request));
            let runs = |visit: &&&TierVisit| visit.runs.iter().any(|(from, to)| is_at(*from, *to));
            let running = present.iter().filter(runs).count();
            let old = present.iter().take(limit).filter(runs).count();
            busy += u32::from(running > 0);
            younger += u32::from(running > old);
        }
        (busy > 0).then(|| f64::from(younger) / f64::from(busy))
    }

    proptest! {
        #[test]
        fn the_sweep_sees_what_each_instant_shows(
            drawn in proptest::collection::vec((0u64..30, 0u64..90, [0u64..20, 0u64..20, 0u64..20, 0u64..20]), 0..12),
            limit in 1usize..5,
        ) {
            let visits: Vec<TierVisit> = (0..).zip(&drawn).map(|(request, (key, arrival, gaps))| {
                let mut at = *arrival;
                let instants = gaps.map(|gap| { at += gap; at });
                let runs = [(*arrival, instants[0]), (instants[1], instants[2])];
                visit(request, *key, *arrival, instants[3], &runs)
            }).collect();
            let sweep = younger_share(&visits, limit);
            let slow = by_instants(&visits, limit);
            prop_assert_eq!(sweep.is_some(), slow.is_some());
            prop_assert!((sweep.unwrap_or(0.0) - slow.unwrap_or(0.0)).abs() < 1e-12, "{:?} {:?}", sweep, slow);
        }
    }
}
