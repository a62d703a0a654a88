//! The order in which alignments are searched: those that are likely to have the longest latencies first, because one
//! that misses a target ends the search. Estimating this costs a thousandth of a replay.
//!
//! The work of all streams is added up in cells of an eighth of a second and served at rate 1; what counts is
//! the work that arrives to long queues. The estimate decides the order of the search, never its result.

use super::alignment::Alignment;
use super::system::ReplaySystem;
use super::trace::CELL;
use units::Nanos;

/// Sorts alignments by the expected length of their queues, longest first; ties keep their order.
pub fn sort_worst_first(system: &ReplaySystem<'_>, alignments: &mut [Alignment]) {
    let cells = usize::try_from(system.horizon().0.div_ceil(CELL)).expect("fits the address space");
    let mut sum = vec![0.0f32; cells];
    alignments.sort_by_cached_key(|alignment| {
        sum.fill(0.0);
        for (stream, shift) in system.streams().iter().zip(alignment.shifts(system)) {
            add_profile(&mut sum, stream.trace.work_profile(), shift);
        }
        // Not negative, so that the bits sort as the values do.
        std::cmp::Reverse(congestion(&sum).to_bits())
    });
}

/// Adds the work profile of a stream, cyclically from its shift.
fn add_profile(sum: &mut [f32], cells: &[f32], shift: Nanos) {
    let shift = usize::try_from(shift.0 / CELL).expect("fits the address space") % cells.len();
    let mut from = cells.len() - shift;
    let mut sum = sum;
    while !sum.is_empty() {
        let piece = &cells[from % cells.len()..];
        let length = piece.len().min(sum.len());
        let (now, later) = sum.split_at_mut(length);
        now.iter_mut().zip(piece).for_each(|(sum, work)| *sum += work);
        sum = later;
        from = 0;
    }
}

/// The sum over all cells of the arriving work times the square of the queue that it meets.
fn congestion(work: &[f32]) -> f64 {
    let mut queue = 0.0f64;
    let mut congestion = 0.0f64;
    for work in work.iter().map(|work| f64::from(*work)) {
        queue = (queue + work - 1.0).max(0.0);
        congestion += work * queue * queue;
    }
    congestion
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_repeat() {
        let mut sum = [0.0; 7];
        add_profile(&mut sum, &[1.0, 2.0, 3.0], Nanos(CELL + 5));
        assert_eq!(sum, [3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        add_profile(&mut sum, &[1.0], Nanos(0));
        assert_eq!(sum, [4.0, 2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn meeting_bursts_are_worse_than_the_same_work_apart() {
        assert!(congestion(&[2.0, 2.0, 0.0, 0.0, 0.0]) > congestion(&[2.0, 0.0, 2.0, 0.0, 0.0]));
        assert_eq!(congestion(&[1.0, 1.0, 0.5]), 0.0);
    }
}
