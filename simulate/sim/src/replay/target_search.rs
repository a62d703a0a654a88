//! Decisions if streams meet their latency targets, for a search over similar servers.
//!
//! Successive questions concern mostly the same streams. The work that arrives in each alignment is kept
//! between questions, so that only added and removed streams are updated. Bands that are unchanged since they
//! were found in time are skipped: a newcomer does not affect bands of tighter budgets. Alignments that
//! failed recently are examined first, because one failure decides.

use super::alignment::Alignment;
use super::alignment_order::sort_worst_first;
use super::arrived_work::ArrivedWork;
use super::banded::{AlignedArrivals, BandQuestion, BandedServer};
use super::latency_target::{Exceedances, LatencyTarget};
use super::system::ReplaySystem;
use super::target_miss::MissTally;
use machine::parallel;
use std::sync::Mutex;

/// State kept between the questions of a search.
#[derive(Debug)]
pub struct TargetSearch {
    /// Alignments in the order of examination, each with remembered results.
    alignments: Vec<(Alignment, Mutex<RememberedAlignment>)>,
    /// Number of alignments that may miss the target of a stream.
    spare: usize,
}

/// State kept for an alignment.
#[derive(Debug, Default)]
struct RememberedAlignment {
    /// The work that arrives.
    work: ArrivedWork,
    /// Bands that are known to be in time.
    in_time: Vec<BandQuestion>,
}

impl TargetSearch {
    /// A search that accepts a server when no stream exceeds its target in more than `spare` of the alignments.
    pub fn new(alignments: impl IntoIterator<Item = Alignment>, spare: usize) -> Self {
        let alignments = alignments.into_iter().map(|alignment| (alignment, Mutex::default()));
        Self { alignments: alignments.collect(), spare }
    }

    /// Returns true if every stream meets its target: the answer of
    /// [`first_target_miss`](super::first_target_miss).
    ///
    /// # Panics
    /// When there is not one target per stream.
    pub fn keeps_targets(&mut self, system: &ReplaySystem<'_>, targets: &[LatencyTarget]) -> bool {
        self.keeps_in(self.alignments.len(), system, targets)
    }

    /// Answers [`Self::keeps_targets`] from a quarter of the alignments, most recent failures first:
    /// `Some` is that answer, `None` means probably yes.
    ///
    /// # Panics
    /// When there is not one target per stream.
    pub fn likely_keeps_targets(
        &mut self,
        system: &ReplaySystem<'_>,
        targets: &[LatencyTarget],
    ) -> Option<bool> {
        let count = self.alignments.len().div_ceil(4);
        let kept = self.keeps_in(count, system, targets);
        (!kept || count == self.alignments.len()).then_some(kept)
    }

    /// Returns true if no stream misses its target in the first `count` alignments.
    fn keeps_in(&mut self, count: usize, system: &ReplaySystem<'_>, targets: &[LatencyTarget]) -> bool {
        assert_eq!(targets.len(), system.streams().len(), "one target per stream");
        let server = BandedServer::new(system, targets);
        self.prepare(&server, system);
        let tally = MissTally::new(targets.len(), self.spare);
        let make_scratch = || (server.replays(), Exceedances::default());
        parallel::map_with(count, make_scratch, |(replays, exceedances), index| {
            let (alignment, remembered) = &self.alignments[index];
            let mut remembered = remembered.lock().expect("no thread panics while it holds the lock");
            let RememberedAlignment { work, in_time } = &mut *remembered;
            let arrivals = AlignedArrivals::new(system, *alignment);
            let questions = server.questions(&arrivals.shifts);
            let known = questions.iter().filter(|asked| in_time.iter().any(|known| known.implies(asked)));
            let known: Vec<u32> = known.map(|question| question.band).collect();
            let all_in_time = tally.look(index, exceedances, &arrivals.counts, targets, |observer| {
                server.replay_late(&known, replays, work, &arrivals, observer)
            });
            if all_in_time {
                *in_time = questions;
            }
        });
        let Some(miss) = tally.decide() else { return true };
        self.alignments[..miss.alignments].rotate_right(1);
        false
    }

    /// Starts anew if the remembered results do not fit this server.
    fn prepare(&mut self, server: &BandedServer<'_, '_>, system: &ReplaySystem<'_>) {
        let first =
            |search: &mut Self| search.alignments[0].1.get_mut().expect("no thread has panicked").work.span();
        if self.alignments.is_empty() || server.is_within(first(self)) {
            return;
        }
        let order: Vec<Alignment> = self.alignments.iter().map(|(alignment, _)| *alignment).collect();
        let mut sorted = order;
        sort_worst_first(system, &mut sorted);
        for ((alignment, remembered), next) in self.alignments.iter_mut().zip(sorted) {
            *alignment = next;
            let remembered = remembered.get_mut().expect("no thread has panicked");
            remembered.work.clear(server.span());
            remembered.in_time.clear();
        }
    }
}
