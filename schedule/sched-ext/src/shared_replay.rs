//! Checks a scheduler's log against the rule, with one run queue for all CPUs.
//!
//! CPUs read the queue concurrently: between the start of a look and its choice, other CPUs may take threads
//! and add new ones. So a choice is wrong if no order of the concurrent events makes it right. Threads that
//! waited all the time must have been seen; those that came or went may have been.
//!
//! In one respect this is stricter than reality. A thread is logged as waiting shortly before it is in the
//! queue, and a choice in that interval can look wrong.

use crate::choice::RunnableThread;
use crate::replay::{LoggedEvent, LoggedKind, ReplayVerdict};
use std::collections::{BTreeMap, BTreeSet};

/// Replays a log from its beginning.
pub fn replay_shared(events: &[LoggedEvent]) -> ReplayVerdict {
    let mut replay = SharedReplay::default();
    events.iter().for_each(|event| replay.step(event));
    replay.verdict
}

/// Possible events since a CPU began a look at the queue.
#[derive(Debug, Default)]
struct QueueLook {
    /// Threads waiting at its start.
    waiting: Vec<RunnableThread>,
    /// Threads, of these and of those that came, that other CPUs took or that left.
    gone: BTreeSet<u32>,
    /// Threads that came, and those that other CPUs were taking at its start.
    passing: Vec<RunnableThread>,
    /// Minimum and maximum number of tagged threads running on other CPUs.
    others: (u32, u32),
}

impl QueueLook {
    /// Returns the threads that waited all the time.
    fn certain(&self) -> impl Iterator<Item = &RunnableThread> {
        self.waiting.iter().filter(|thread| !self.gone.contains(&thread.thread))
    }

    /// Returns the threads that may have been seen.
    fn possible(&self) -> impl Iterator<Item = &RunnableThread> {
        self.waiting.iter().chain(&self.passing)
    }

    /// Returns the choice that the scheduler had after this look.
    fn choice(&self, running: Option<RunnableThread>, oldest: u32) -> OverlappingChoice<'_> {
        let places =
            |others: u32| usize::try_from(oldest.saturating_sub(others).max(1)).unwrap_or(usize::MAX);
        let places_min = places(self.others.1);
        let places_max = places(self.others.0);
        OverlappingChoice { look: self, running, places_min, places_max }
    }
}

/// A choice among threads of which some came or went concurrently.
#[derive(Debug)]
struct OverlappingChoice<'a> {
    look: &'a QueueLook,
    /// Running thread that could continue.
    running: Option<RunnableThread>,
    /// Minimum and maximum number of the c oldest places for queued threads and the running one.
    places_min: usize,
    places_max: usize,
}

impl OverlappingChoice<'_> {
    /// Returns true if this thread is right in some order of the events.
    fn can_be(&self, chosen: u32) -> bool {
        if let Some(running) = self.running.filter(|running| running.thread == chosen) {
            // It is served last: any thread that certainly has a place goes before it.
            let certainly_older = self.look.certain().filter(|other| other.key < running.key).count();
            return certainly_older < self.places_max
                && !self.look.certain().any(|other| self.certainly_has_place(other));
        }
        self.look.possible().filter(|thread| thread.thread == chosen).any(|seen| self.can_take(seen))
    }

    /// Returns true if a thread that may have been seen may have a place, and no thread certainly goes before
    /// it.
    fn can_take(&self, seen: &RunnableThread) -> bool {
        let certainly_older = self.look.certain().filter(|other| other.key < seen.key).count();
        let mut less_recently_served = self
            .look
            .certain()
            .filter(|other| other.thread != seen.thread && other.served_at_ns < seen.served_at_ns);
        certainly_older + self.runs_before(seen.key) < self.places_max
            && !less_recently_served.any(|other| self.certainly_has_place(other))
    }

    fn certainly_has_place(&self, thread: &RunnableThread) -> bool {
        let possibly_older = self.look.possible().filter(|other| other.key <= thread.key).count() - 1;
        possibly_older + self.runs_before(thread.key) < self.places_min
    }

    /// Returns 1 if the running thread has a place before threads with this key.
    fn runs_before(&self, key: u64) -> usize {
        usize::from(self.running.is_some_and(|running| running.key <= key))
    }
}

#[derive(Debug, Default)]
struct SharedReplay {
    /// Ascending by key.
    waiting: Vec<RunnableThread>,
    /// By CPU: thread that was chosen and does not run yet.
    taken: BTreeMap<u16, RunnableThread>,
    /// By CPU: running thread, and the instant up to which its time is counted.
    running: BTreeMap<u16, (RunnableThread, u64)>,
    served: BTreeMap<u32, u64>,
    looks: BTreeMap<u16, QueueLook>,
    verdict: ReplayVerdict,
}

impl SharedReplay {
    fn step(&mut self, event: &LoggedEvent) {
        self.add_up(event);
        match event.kind {
            LoggedKind::Queued => self.queue(event),
            LoggedKind::Left => self.remove(event.thread),
            LoggedKind::Looks => self.look(event),
            LoggedKind::Chosen | LoggedKind::Kept => self.judge(event),
            LoggedKind::Rescued => {
                self.verdict.rescued += 1;
                self.take(event);
            }
            LoggedKind::Running => {
                self.remove(event.thread);
                self.taken.remove(&event.cpu);
                let thread = self.runnable(event.thread, event.key);
                self.running.insert(event.cpu, (thread, event.time_ns));
                self.note_running();
            }
            LoggedKind::Stopped => {
                self.served.insert(event.thread, event.time_ns);
                self.running.remove(&event.cpu);
                self.note_running();
            }
        }
    }

    /// Adds the running time of all CPUs since their last event.
    fn add_up(&mut self, event: &LoggedEvent) {
        let keys = self.running.values().map(|(running, _)| running.key).filter(|key| *key > 0);
        let mut present: Vec<u64> = keys.chain(self.waiting.iter().map(|waiting| waiting.key)).collect();
        present.sort_unstable();
        for (running, since) in self.running.values_mut().filter(|(running, _)| running.key > 0) {
            let ran = event.time_ns.saturating_sub(*since);
            *since = event.time_ns.max(*since);
            let older = present.partition_point(|key| *key < running.key);
            self.verdict.tagged_ns += ran;
            if u32::try_from(older).unwrap_or(u32::MAX) >= event.oldest {
                self.verdict.not_among_oldest_ns += ran;
            }
        }
    }

    fn queue(&mut self, event: &LoggedEvent) {
        self.remove(event.thread);
        let thread = self.runnable(event.thread, event.key);
        let place = self.waiting.partition_point(|waiting| waiting.key <= thread.key);
        self.waiting.insert(place, thread);
        self.looks.values_mut().for_each(|look| look.passing.push(thread));
    }

    fn look(&mut self, event: &LoggedEvent) {
        let others = self.others(event.cpu);
        let look = QueueLook {
            waiting: self.waiting.clone(),
            gone: BTreeSet::new(),
            passing: self.taken.values().copied().collect(),
            others: (others, others),
        };
        self.looks.insert(event.cpu, look);
    }

    fn judge(&mut self, event: &LoggedEvent) {
        let (other, other_key) = event.other;
        let running = (other > 0).then(|| self.runnable(other, other_key));
        self.verdict.choices += 1;
        let look = self.looks.remove(&event.cpu).unwrap_or_default();
        if !look.choice(running, event.oldest).can_be(event.thread) {
            self.verdict.wrong.push(format!("{event:?}: not what {running:?} and {look:?} allow"));
        }
        if event.kind == LoggedKind::Chosen {
            self.take(event);
        }
    }

    /// The thread is on its way from the queue to a CPU; other CPUs may still see it.
    fn take(&mut self, event: &LoggedEvent) {
        let waited = self.waiting.iter().find(|waiting| waiting.thread == event.thread).copied();
        self.taken.extend(waited.map(|waited| (event.cpu, waited)));
        self.remove(event.thread);
    }

    fn note_running(&mut self) {
        let cpus: Vec<u16> = self.looks.keys().copied().collect();
        for cpu in cpus {
            let now = self.others(cpu);
            let others = self.looks.get_mut(&cpu).map(|look| &mut look.others);
            others.into_iter().for_each(|others| *others = (others.0.min(now), others.1.max(now)));
        }
    }

    /// Returns the number of tagged threads running on other CPUs.
    fn others(&self, cpu: u16) -> u32 {
        let tagged = self.running.iter().filter(|(at, (running, _))| **at != cpu && running.key > 0);
        u32::try_from(tagged.count()).unwrap_or(u32::MAX)
    }

    fn runnable(&self, thread: u32, key: u64) -> RunnableThread {
        RunnableThread { thread, key, served_at_ns: self.served.get(&thread).copied().unwrap_or(0) }
    }

    fn remove(&mut self, thread: u32) {
        self.waiting.retain(|waiting| waiting.thread != thread);
        for look in self.looks.values_mut() {
            look.gone.insert(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::choose;
    use LoggedKind::{Chosen, Kept, Looks, Queued, Running, Stopped};
    use proptest::prelude::*;

    fn event(time_ns: u64, cpu: u16, kind: LoggedKind, thread: u32, key: u64) -> LoggedEvent {
        LoggedEvent { time_ns, kind, cpu, thread, key, other: (0, 0), oldest: 2 }
    }

    fn wrong(events: &[LoggedEvent]) -> usize {
        replay_shared(events).wrong.len()
    }

    #[test]
    fn what_came_meanwhile_may_be_seen_and_what_waited_must_be() {
        let before = [event(0, 1, Queued, 7, 50), event(1, 1, Queued, 8, 60), event(2, 1, Looks, 0, 0)];
        let came = event(3, 2, Queued, 9, 40);
        let chosen = |thread| event(4, 1, Chosen, thread, 0);
        let with = |events: &[LoggedEvent]| [&before[..], events].concat();
        // Of threads never served the oldest is first; the rule takes the least recently served of the two
        // oldest.
        assert_eq!(wrong(&with(&[chosen(7)])), 0);
        assert_eq!(wrong(&with(&[came, chosen(9)])), 0);
        assert_eq!(wrong(&with(&[came, chosen(7)])), 0);
        assert_eq!(wrong(&with(&[chosen(9)])), 1, "it does not wait");
        let third = [event(2, 1, Queued, 6, 55), event(2, 1, Looks, 0, 0)];
        assert_eq!(wrong(&with(&[third[0], third[1], chosen(8)])), 1, "two older ones wait");
    }

    #[test]
    fn one_that_another_cpu_takes_may_be_seen_or_not() {
        let log = [
            event(0, 1, Queued, 7, 50),
            event(0, 1, Queued, 8, 60),
            event(1, 1, Looks, 0, 0),
            event(2, 2, Looks, 0, 0),
            event(3, 1, Chosen, 7, 50),
        ];
        for thread in [7, 8] {
            assert_eq!(wrong(&[&log[..], &[event(4, 2, Chosen, thread, 0)]].concat()), 0, "{thread}");
        }
        let later = [event(4, 1, Running, 7, 50), event(5, 2, Looks, 0, 0), event(6, 2, Chosen, 7, 0)];
        assert_eq!(wrong(&[&log[..], &later].concat()), 1, "it runs by then");
    }

    #[test]
    fn the_less_recently_served_goes_first_and_the_one_that_runs_last() {
        let served = [
            event(0, 1, Running, 7, 50),
            event(1, 2, Running, 8, 60),
            event(5, 1, Stopped, 7, 0),
            event(6, 2, Stopped, 8, 0),
            event(7, 1, Queued, 7, 50),
            event(7, 2, Queued, 8, 60),
            event(8, 1, Looks, 0, 0),
        ];
        assert_eq!(wrong(&[&served[..], &[event(9, 1, Chosen, 7, 50)]].concat()), 0);
        assert_eq!(wrong(&[&served[..], &[event(9, 1, Chosen, 8, 60)]].concat()), 1);
        let keeps = |oldest| LoggedEvent { other: (9, 40), oldest, ..event(9, 1, Kept, 9, 40) };
        assert_eq!(wrong(&[&served[..], &[keeps(1)]].concat()), 0, "it is the oldest");
        assert_eq!(wrong(&[&served[..], &[keeps(2)]].concat()), 1, "another one has a place");
    }

    #[test]
    fn time_of_those_not_among_the_oldest_is_added_up() {
        let verdict = replay_shared(&[
            event(0, 1, Running, 7, 50),
            event(0, 2, Running, 8, 60),
            event(10, 3, Queued, 9, 40),
            event(14, 1, Stopped, 7, 0),
        ]);
        assert_eq!((verdict.tagged_ns, verdict.not_among_oldest_ns), (28, 4));
    }

    proptest! {
        /// With a single CPU, the check equals the rule.
        #[test]
        fn by_itself_a_cpu_chooses_as_the_rule_says(
            keys in prop::collection::btree_set(1_u64..1000, 1..12),
            served in prop::collection::vec(1_u64..50, 12),
            runs in prop::option::of(0_usize..12),
            claimed in 0_usize..12,
            oldest in 1_u32..6,
        ) {
            let all: Vec<(u32, u64)> = (1..).zip(keys).collect();
            let running = runs.and_then(|place| all.get(place)).copied();
            let mut log = Vec::new();
            for (index, (thread, key)) in all.iter().enumerate() {
                log.push(event(served[index] - 1, 1, Running, *thread, *key));
                log.push(event(served[index], 1, Stopped, *thread, 0));
            }
            let waiting: Vec<&(u32, u64)> = all.iter().filter(|one| Some(**one) != running).collect();
            log.extend(waiting.iter().map(|(thread, key)| event(60, 1, Queued, *thread, *key)));
            let runnable = |(thread, key): (u32, u64)| RunnableThread {
                thread,
                key,
                served_at_ns: served[all.iter().position(|one| one.0 == thread).unwrap()],
            };
            let right = choose(
                &waiting.iter().map(|one| runnable(**one)).collect::<Vec<_>>(),
                running.map(runnable),
                oldest,
            ).unwrap();
            let (claimed, key) = all[claimed % all.len()];
            let kind = if running.is_some_and(|running| running.0 == claimed) { Kept } else { Chosen };
            log.push(event(61, 1, Looks, 0, 0));
            log.push(LoggedEvent {
                other: running.unwrap_or((0, 0)),
                oldest,
                ..event(62, 1, kind, claimed, key)
            });
            let is_right = claimed == right.thread || runnable((claimed, key)).served_at_ns == right.served_at_ns;
            // Of several threads served at the same instant any is right here.
            let found = wrong(&log) == 0;
            prop_assert!(found || claimed != right.thread, "{right:?}: {:?}", log.last());
            prop_assert!(!found || is_right, "{claimed} for {right:?}: {:?}", log);
        }
    }
}
