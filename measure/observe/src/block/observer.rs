//! From events of block devices, nearly in order, to the sums of their requesters: a pure state machine.

use super::contention::BlockContention;
use super::event::{BlockEvent, BlockPhase};
use super::statistics::BlockStatistics;

/// How long events are held back, in nanoseconds, for those of other CPUs that come later and happened before: longer than a
/// hypervisor takes a CPU away between an event's time and its report.
const HOLD_BACK_NS: u64 = 100_000_000;

/// What is known of block devices.
#[derive(Debug, Clone, Default)]
pub struct BlockObserver {
    waiting: Vec<BlockEvent>,
    lost: u64,
    /// Who waits for whom.
    pub contention: BlockContention,
    /// The sums of each requester.
    pub statistics: BlockStatistics,
}

impl BlockObserver {
    /// Takes an event, which waits for its turn.
    pub fn take(&mut self, event: BlockEvent) {
        self.waiting.push(event);
    }

    /// Counts the events until an instant, which is now; `lost` is the number of events that were lost until now.
    pub fn advance(&mut self, now: u64, lost: u64) {
        self.waiting.sort_by_key(|event| event.time);
        let until = now.saturating_sub(HOLD_BACK_NS);
        let count = self.waiting.partition_point(|event| event.time <= until);
        let released: Vec<BlockEvent> = self.waiting.drain(..count).collect();
        released.iter().for_each(|event| self.count(event));
        if std::mem::replace(&mut self.lost, lost) != lost {
            self.contention.discard();
        }
    }

    fn count(&mut self, event: &BlockEvent) {
        let waits = self.contention.handle(event);
        if event.phase == BlockPhase::Done {
            self.statistics.add(event, &waits.unwrap_or_default());
        }
    }
}
