//! The handover under random interleavings of threads: no thread sleeps forever or stays demoted, and no cell leaks.

use crate::entry_cell::{EntryCell, LevelChange};
use crate::handover::Handover;
use discipline::RequestKey;
use discipline::pool::{Displacement, PoolCounts, PoolRules};
use discipline::serve::PoolOrder;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// Interleavings of one test.
const INTERLEAVINGS: usize = 400;
/// Threads with requests.
const THREADS: u32 = 4;

/// A kernel that records demoted threads and refuses to demote some.
#[derive(Debug, Default)]
struct NotedLevels {
    demoted: Mutex<BTreeSet<u32>>,
}

impl LevelChange for NotedLevels {
    fn demote(&self, cell: &EntryCell) -> bool {
        // Lets other threads run, as a system call does.
        thread::yield_now();
        let is_allowed = cell.number % THREADS != 3;
        let mut demoted = self.demoted.lock().unwrap();
        assert!(!is_allowed || demoted.insert(cell.number), "demoted twice");
        is_allowed
    }

    fn promote(&self, cell: &EntryCell) -> bool {
        thread::yield_now();
        assert!(self.demoted.lock().unwrap().remove(&cell.number), "promoted without a demotion");
        true
    }
}

/// A gate used by threads, with their observations.
struct Played {
    handover: Handover<NotedLevels>,
    limit: usize,
    running: AtomicUsize,
    clock: AtomicU64,
    is_changed: bool,
}

impl Played {
    fn new(limit: u32, displacement: Displacement, patience: Option<u64>) -> Self {
        let rules =
            PoolRules { limit: NonZeroU32::new(limit), order: PoolOrder::Age, displacement, patience };
        Self {
            handover: Handover::new(rules, NotedLevels::default()),
            limit: limit as usize,
            running: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            is_changed: patience.is_some(),
        }
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Counts the calling thread as running; at most c run if none is demoted.
    fn work(&self, checks: bool) {
        let before = self.running.fetch_add(1, Ordering::SeqCst);
        assert!(!checks || before < self.limit, "more than c run");
        thread::yield_now();
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    /// A request of the calling thread: it enters, perhaps gives up, works, blocks, works, and leaves.
    fn request(&self, number: u32, checks: bool) {
        let cell = Arc::new(EntryCell::new(number));
        cell.begin();
        let entry =
            self.handover.enter(self.now(), RequestKey(u64::from(thread_rng().gen_range(0..3u8))), &cell);
        let gives_up = thread_rng().gen_bool(0.25);
        while !cell.is_admitted() {
            if gives_up && self.handover.give_up(self.now(), entry.request, &cell) {
                return;
            }
            self.sleep(&cell);
        }
        self.work(checks);
        if thread_rng().gen_bool(0.5) {
            self.handover.block(self.now(), entry.request, &cell);
            assert!(
                !self.handover.kernel().demoted.lock().unwrap().contains(&number),
                "a blocked thread is ordinary"
            );
            thread::yield_now();
            self.handover.unblock(self.now(), entry.request, &cell);
            while !cell.is_admitted() {
                self.sleep(&cell);
            }
            self.work(checks);
        }
        assert!(self.handover.leave(self.now(), entry.request, &cell));
        assert!(!self.handover.leave(self.now(), entry.request, &cell), "it leaves once");
        // The index may belong to another request now.
        self.handover.block(self.now(), entry.request, &cell);
        self.handover.unblock(self.now(), entry.request, &cell);
        assert!(!self.handover.leave(self.now(), entry.request, &cell), "it leaves once");
        assert!(!self.handover.kernel().demoted.lock().unwrap().contains(&number), "who left is ordinary");
    }

    /// Adds spurious wake-ups if another thread changes rules or advances time.
    fn sleep(&self, cell: &EntryCell) {
        if self.is_changed && thread_rng().gen_bool(0.2) {
            thread::yield_now();
        } else if !cell.is_admitted() {
            thread::park();
        }
    }

    fn check_the_end(&self) {
        let (counts, totals, _) = self.handover.counts();
        assert_eq!(counts, PoolCounts::default(), "nobody is left");
        assert_eq!(totals.entered, totals.left);
        assert!(self.handover.kernel().demoted.lock().unwrap().is_empty(), "nobody stays demoted");
        assert_eq!(totals.demotions, totals.promotions, "who was demoted was promoted");
    }
}

/// Plays threads with two requests each, concurrently with a disturbance.
fn play(
    make: impl Fn() -> Played + Send + Sync + 'static,
    checks: bool,
    disturb: impl Fn(&Played) + Send + Sync + Copy + 'static,
) {
    let round = move || {
        let played = Arc::new(make());
        let disturber = {
            let played = Arc::clone(&played);
            thread::spawn(move || disturb(&played))
        };
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let played = Arc::clone(&played);
                thread::spawn(move || (0..2).for_each(|_| played.request(number, checks)))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        disturber.join().unwrap();
        played.check_the_end();
    };
    shuttle::check_random(round, INTERLEAVINGS);
}

#[test]
fn with_admission_only_at_most_c_run() {
    play(|| Played::new(1, Displacement::Never, None), true, |_| {});
    play(|| Played::new(2, Displacement::Never, None), true, |_| {});
}

#[test]
fn demoted_threads_are_promoted() {
    play(|| Played::new(1, Displacement::OfYoungest, None), false, |_| {});
    play(|| Played::new(2, Displacement::OfYoungest, None), false, |_| {});
}

/// Reports a random subset of the sampled threads as asleep.
fn look(played: &Played) {
    let mut watched = played.handover.watched();
    watched.retain(|_| thread_rng().gen_bool(0.5));
    played.handover.look(played.now(), &watched, NonZeroU32::MIN);
}

#[test]
fn sleepers_are_set_aside_and_come_back() {
    let looks = |played: &Played| (0..6).for_each(|_| look(played));
    play(|| Played::new(1, Displacement::OfYoungest, None), false, looks);
    play(|| Played::new(2, Displacement::OfYoungest, Some(4)), false, looks);
    play(|| Played::new(1, Displacement::Never, None), false, looks);
}

#[test]
fn rules_change_and_time_passes() {
    play(
        || Played::new(1, Displacement::OfYoungest, Some(4)),
        false,
        |played| {
            for limit in [2, 0, 1] {
                played.handover.set_limit(played.now(), NonZeroU32::new(limit));
                played.handover.wake(played.now());
            }
            played.handover.forbid_displacement(played.now());
        },
    );
}
