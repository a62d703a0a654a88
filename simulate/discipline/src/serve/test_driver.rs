//! Driver that runs a discipline on random work in tests.

use super::{Assignment, Discipline, NO_ITEM, QueueItem, UNTIL_DONE};
use proptest::prelude::*;

/// An arriving item: instant, class, age, work. Sorted by instant; the item's id is its index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) at: u64,
    pub(crate) class: u32,
    pub(crate) age: u64,
    pub(crate) size: u64,
}

pub(crate) fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let job = (0u64..12, 0u32..3, 0u64..60, 1u64..20);
    proptest::collection::vec(job, 1..40).prop_map(|drawn| {
        let mut now = 0;
        let job = |(gap, class, old, size): (u64, u32, u64, u64)| {
            now += gap;
            Job { at: now, class, age: now.saturating_sub(old), size }
        };
        drawn.into_iter().map(job).collect()
    })
}

/// Returns the item on each worker in each unit of time, until all are done. Order within an instant:
/// departures and ends of slices, then wake-ups, then arrivals; workers in order.
pub(crate) fn play(workers: u32, jobs: &[Job], discipline: &mut impl Discipline) -> Vec<Vec<Option<u32>>> {
    play_with(workers, jobs, &[], discipline)
}

/// Other work on a worker: worker, start, duration.
pub(crate) type Other = (u32, u64, u64);

/// Like [`play`], with other work, which takes workers between departures and arrivals and gives them back
/// before it takes others. Displaced items go back to the discipline.
pub(crate) fn play_with(
    workers: u32,
    jobs: &[Job],
    other: &[Other],
    discipline: &mut impl Discipline,
) -> Vec<Vec<Option<u32>>> {
    let mut left: Vec<u64> = jobs.iter().map(|job| job.size).collect();
    let mut on: Vec<Option<(u32, u64)>> = vec![None; workers as usize];
    let mut history = Vec::new();
    let mut assignments = Vec::new();
    let mut coming = jobs.iter().zip(0u32..).peekable();
    for now in 0.. {
        for worker in 0..workers {
            let Some((item, slice)) = on[worker as usize] else { continue };
            if left[item as usize] == 0 {
                on[worker as usize] = None;
                discipline.depart(now, worker, &mut assignments);
            } else if slice == 0 {
                on[worker as usize] = Some((item, UNTIL_DONE));
                discipline.expire(now, worker, &mut assignments);
            }
            carry_out(&mut assignments, &mut on);
        }
        if discipline.wake_at().is_some_and(|at| at <= now) {
            discipline.wake(now, &mut assignments);
            carry_out(&mut assignments, &mut on);
        }
        for (worker, _, _) in other.iter().filter(|(_, from, length)| from + length == now) {
            discipline.return_worker(now, *worker, &mut assignments);
            carry_out(&mut assignments, &mut on);
        }
        for (worker, _, _) in other.iter().filter(|(_, from, _)| *from == now) {
            on[*worker as usize] = None;
            discipline.take_worker(now, *worker, &mut assignments);
            carry_out(&mut assignments, &mut on);
        }
        let is_away = |(worker, from, length): &Other| {
            (*from..from + length).contains(&now) && on[*worker as usize].is_some()
        };
        assert!(!other.iter().any(is_away), "a worker is away and has an item at {now}");
        while let Some((job, id)) = coming.next_if(|(job, _)| job.at == now) {
            discipline.arrive(
                now,
                QueueItem { id, class: job.class, age: job.age, size: job.size, access: None },
                &mut assignments,
            );
            carry_out(&mut assignments, &mut on);
        }
        check(&on, &left, jobs, now, discipline.waiting());
        if coming.peek().is_none() && left.iter().all(|left| *left == 0) {
            break;
        }
        history.push(on.iter().map(|on| on.map(|(item, _)| item)).collect());
        for (item, slice) in on.iter_mut().flatten() {
            left[*item as usize] -= 1;
            *slice = slice.saturating_sub(u64::from(*slice != UNTIL_DONE));
        }
    }
    history
}

fn carry_out(assignments: &mut Vec<Assignment>, on: &mut [Option<(u32, u64)>]) {
    for run in assignments.drain(..) {
        on[run.worker as usize] = (run.item != NO_ITEM).then_some((run.item, run.slice));
    }
}

/// Checks that no item is on two workers, no finished item is served, and none is lost.
fn check(on: &[Option<(u32, u64)>], left: &[u64], jobs: &[Job], now: u64, waiting: usize) {
    let mut items: Vec<u32> = on.iter().flatten().map(|(item, _)| *item).collect();
    let running = items.len();
    items.sort_unstable();
    items.dedup();
    assert_eq!(items.len(), running, "an item on two workers at {now}");
    assert!(items.iter().all(|item| left[*item as usize] > 0), "an item that is done is served at {now}");
    let inside = jobs.iter().zip(left).filter(|(job, left)| job.at <= now && **left > 0).count();
    assert_eq!(inside, running + waiting, "items are lost at {now}");
}

/// Returns true if at every instant as many workers are busy as there is work for.
pub(crate) fn conserves_work(history: &[Vec<Option<u32>>], jobs: &[Job]) -> bool {
    let mut left: Vec<u64> = jobs.iter().map(|job| job.size).collect();
    (0u64..).zip(history).all(|(now, on)| {
        let inside = jobs.iter().zip(&left).filter(|(job, left)| job.at <= now && **left > 0).count();
        on.iter().flatten().for_each(|item| left[*item as usize] -= 1);
        on.iter().flatten().count() == inside.min(on.len())
    })
}
