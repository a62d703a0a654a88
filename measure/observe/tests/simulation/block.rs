//! Random requests of block devices: what the observer charges to whom is what a slow twin says, which looks at every
//! request in every time between two events; and the charges of each request add up to its time.

use observe::{
    BlockContention, BlockDevice, BlockEvent, BlockObserver, BlockOperation, BlockPhase, BlockWaits,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A request: who, on which device, how long until it comes, in the queue, at the device, and whether the device returns
/// it once.
type PlannedBlockRequest = (u32, u32, u64, u64, u64, bool);

fn event(
    number: u64,
    plan: &PlannedBlockRequest,
    phase: BlockPhase,
    [begin, issue, time]: [u64; 3],
) -> BlockEvent {
    BlockEvent {
        begin,
        issue,
        end: if phase == BlockPhase::Done { time } else { 0 },
        cgroup: 1,
        device: BlockDevice { major: 8, minor: plan.1 },
        operation: BlockOperation(u8::try_from(plan.0 % 2).expect("0 or 1")),
        bytes: 4096,
        process: plan.0,
        name: format!("p{}", plan.0),
        number,
        time,
        phase,
        failed: false,
    }
}

/// The events of all requests in the order of time; those of one instant in any.
fn events(plans: &[PlannedBlockRequest]) -> Vec<BlockEvent> {
    let mut all = Vec::new();
    let mut come = 0;
    for (number, plan) in (0u64..).zip(plans) {
        let (_, _, gap, queued, served, is_returned) = *plan;
        come += gap;
        let first = come + queued;
        let mut phases = vec![(BlockPhase::Begin, 0, come), (BlockPhase::Issue, first, first)];
        let mut issue = first;
        if is_returned {
            issue = first + 2 * served;
            phases.extend([(BlockPhase::Returned, first, first + served), (BlockPhase::Issue, issue, issue)]);
        }
        phases.push((BlockPhase::Done, issue, issue + served));
        all.extend(
            phases.into_iter().map(|(phase, issue, time)| event(number, plan, phase, [come, issue, time])),
        );
    }
    all.sort_by_key(|event| event.time);
    all
}

/// By requester, as process and operation: in queues, and at the device.
#[derive(Debug, Default, PartialEq, Eq)]
struct TwinWaits {
    own: u64,
    idle: u64,
    queued: BTreeMap<u32, u64>,
    shared: BTreeMap<u32, u64>,
}

/// What one request waits for, found by going through all events again for it alone.
fn twin(events: &[BlockEvent], done: &BlockEvent) -> TwinWaits {
    let mut waits = TwinWaits::default();
    let (mut at_device, mut before): (Vec<(u64, u32)>, u64) = (Vec::new(), 0);
    // Of the last issue on, the request is at the device.
    let own: Vec<_> = events.iter().filter(|event| event.number == done.number).collect();
    let issues = own.iter().filter(|event| event.phase == BlockPhase::Issue).count();
    let mut has_come = false;
    let mut issued = 0;
    for event in events.iter().filter(|event| event.device == done.device) {
        let length = event.time - before;
        before = event.time;
        let count = at_device.len() as u64;
        let is_at_device = issued == issues;
        if has_come && count == 0 {
            waits.idle += length;
        }
        for (place, (number, process)) in at_device.iter().enumerate().filter(|_| has_come) {
            let part = length / count + if place == 0 { length % count } else { 0 };
            match (is_at_device, *number == done.number) {
                (true, true) => waits.own += part,
                (true, false) => *waits.shared.entry(*process).or_default() += part,
                (false, _) => *waits.queued.entry(*process).or_default() += part,
            }
        }
        if event.phase != BlockPhase::Begin {
            at_device.retain(|(number, _)| *number != event.number);
        }
        if event.phase == BlockPhase::Issue {
            at_device.push((event.number, event.process));
        }
        if event.number == done.number {
            has_come = event.phase != BlockPhase::Done;
            issued += usize::from(event.phase == BlockPhase::Issue);
        }
    }
    waits.queued.retain(|_, ns| *ns > 0);
    waits.shared.retain(|_, ns| *ns > 0);
    waits
}

fn named(contention: &BlockContention, device: BlockDevice, charges: &[(usize, u64)]) -> BTreeMap<u32, u64> {
    charges.iter().map(|(place, ns)| (contention.requesters(device)[*place].process, *ns)).collect()
}

fn plans() -> impl Strategy<Value = Vec<PlannedBlockRequest>> {
    prop::collection::vec((0u32..5, 0u32..2, 0u64..40, 0u64..60, 1u64..50, prop::bool::weighted(0.1)), 0..60)
}

proptest! {
    #[test]
    fn each_nanosecond_is_charged_once_as_the_rule_says(plans in plans()) {
        let events = events(&plans);
        let mut contention = BlockContention::default();
        let mut done = 0;
        for event in &events {
            let Some(waits) = contention.handle(event) else { continue };
            done += 1;
            prop_assert_eq!(waits.total(), event.end - event.begin);
            prop_assert_eq!(waits.unseen, 0);
            let expected = twin(&events, event);
            let found = TwinWaits {
                own: waits.own,
                idle: waits.idle,
                queued: named(&contention, event.device, &waits.queued_behind),
                shared: named(&contention, event.device, &waits.shared_with),
            };
            prop_assert_eq!(found, expected);
        }
        prop_assert_eq!((done, contention.open()), (plans.len(), 0));
    }

    /// Whatever is lost and comes too late: the charges still add up, and nothing is kept of what has ended.
    #[test]
    fn lost_and_late_events_leave_times_unseen(
        plans in plans(),
        lost in prop::collection::btree_set(0usize..200, 0..10),
        late in prop::collection::vec((0usize..200, 0usize..200), 0..10),
        discarded in 0usize..200,
    ) {
        let mut events = events(&plans);
        let count = events.len();
        for (a, b) in late.into_iter().filter(|(a, b)| *a.max(b) < count) {
            events.swap(a, b);
        }
        let mut contention = BlockContention::default();
        for (place, event) in events.iter().enumerate() {
            if place == discarded {
                contention.discard();
                prop_assert_eq!(contention.open(), 0);
            }
            if lost.contains(&place) {
                continue;
            }
            if let Some(waits) = contention.handle(event) {
                prop_assert_eq!(waits.total(), event.end - event.begin);
            }
        }
    }
}

/// A device that is had by more requesters than are told apart: sums stay right, and tables bounded.
#[test]
fn many_requesters_become_others() {
    let plans: Vec<PlannedBlockRequest> = (0..5000).map(|number| (number, 0, 10, 5, 60, false)).collect();
    let mut contention = BlockContention::default();
    let mut all = BlockWaits::default();
    for event in events(&plans) {
        if let Some(waits) = contention.handle(&event) {
            assert_eq!(waits.total(), 65);
            all = waits;
        }
    }
    let known = contention.requesters(BlockDevice { major: 8, minor: 0 });
    assert_eq!(known.len(), observe::WAITED_FOR_MAX + 1);
    assert_eq!(known.last().map(|requester| requester.name.as_str()), Some("others"));
    let behind: BTreeSet<usize> =
        all.queued_behind.iter().chain(&all.shared_with).map(|(place, _)| *place).collect();
    assert_eq!(behind, BTreeSet::from([known.len() - 1]));
}

/// Events that come to the observer in another order than they happened, by less than it holds them back.
#[test]
fn events_of_several_cpus_are_put_in_order() {
    let plans = [(1, 0, 1000, 10, 500, false), (2, 0, 5, 100, 50, false)];
    let mut events = events(&plans);
    events.reverse();
    let mut observer = BlockObserver::default();
    events.into_iter().for_each(|event| observer.take(event));
    observer.advance(2000, 0);
    assert!(observer.statistics.by_device_time().is_empty(), "they may be preceded by others");
    observer.advance(1_000_000_000, 0);
    let all = observer.statistics.by_device_time();
    let second = all.iter().find(|(who, _)| who.process == 2).expect("it was done").1.waits.all();
    // In the queue from 1005 to 1105, the first one at the device from 1010 on; together with it until 1155.
    assert_eq!((second.idle, second.own, second.unseen), (5, 25, 0));
    let behind: Vec<_> = second.behind.values().map(|behind| (behind.queued, behind.shared)).collect();
    assert_eq!(behind, [(95, 25)]);
}
