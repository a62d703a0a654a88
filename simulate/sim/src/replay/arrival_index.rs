//! Constant-time lookup of an instant in a trace: time is cut into about as many cells as there are arrivals,
//! and each cell stores the number of arrivals before it.

use model::{CircularTrace, Job};

/// Number of arrivals of a trace before each of its cells.
#[derive(Debug)]
pub(super) struct ArrivalIndex {
    /// The length of a cell in nanoseconds, as a power of two.
    bits: u32,
    /// One more than there are cells.
    before: Box<[u32]>,
}

impl ArrivalIndex {
    pub(super) fn new(trace: &CircularTrace<Job>) -> Self {
        let jobs = trace.items();
        let period = trace.period().0;
        let bits = (period / jobs.len() as u64).max(1).ilog2();
        let cells = usize::try_from((period >> bits) + 2).expect("at most twice as many as arrivals");
        let mut before = vec![0u32; cells];
        for job in jobs {
            let behind = usize::try_from(job.arrival.0 >> bits).expect("an index") + 1;
            before[behind] += 1;
        }
        let mut sum = 0u32;
        for count in &mut before {
            sum = sum.checked_add(*count).expect("fewer than 2^32 requests fit into memory");
            *count = sum;
        }
        Self { bits, before: before.into() }
    }

    /// Returns the number of jobs that arrive before `time`, which is at most the period. `jobs` must be
    /// those of the trace.
    #[inline]
    pub(super) fn arrivals_before(&self, jobs: &[Job], time: u64) -> usize {
        let cell = usize::try_from(time >> self.bits).expect("an index");
        let [before, through] = [self.before[cell] as usize, self.before[cell + 1] as usize];
        before + jobs[before..through].partition_point(|job| job.arrival.0 < time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PerStage;
    use proptest::prelude::*;
    use units::Nanos;

    proptest! {
        #[test]
        fn counts_are_those_of_a_search(gaps in prop::collection::vec(0u64..40, 1..50), rest in 0u64..900) {
            let mut at = 0;
            let mut jobs = Vec::new();
            for gap in gaps {
                at += gap;
                jobs.push(Job { arrival: Nanos(at), work: PerStage::from_fn(|_| Nanos(1)) });
            }
            let trace = CircularTrace::new(jobs.clone(), Nanos((at + rest).max(1))).expect("a trace");
            let index = ArrivalIndex::new(&trace);
            for time in 0..=trace.period().0 {
                let expected = jobs.iter().filter(|job| job.arrival.0 < time).count();
                prop_assert_eq!(index.arrivals_before(&jobs, time), expected);
            }
        }
    }
}
