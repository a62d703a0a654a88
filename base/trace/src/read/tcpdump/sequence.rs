//! Sequence numbers of one direction of a TCP connection: payload that was captured before counts once.

/// Distance of sequence numbers beyond which they count as another numbering. tcpdump prints the first
/// packet of a connection whose beginning it has not seen with absolute numbers, and later ones relative to it.
const RENUMBERED: i32 = 1 << 24;
/// Maximum number of ranges that were missing and may still follow.
const GAPS_MAX: usize = 8;

#[derive(Debug, Default)]
pub(super) struct SequenceBook {
    /// Number behind the highest captured one; `None` before the first packet.
    next: Option<u32>,
    /// Ranges below `next` that were not captured, as first and end.
    gaps: Vec<(u32, u32)>,
}

impl SequenceBook {
    /// Starts a new numbering, in which the first byte of payload has the number 1.
    pub(super) fn open(&mut self) {
        *self = Self { next: Some(1), gaps: Vec::new() };
    }

    /// Returns the number of bytes from `first` up to `end` (exclusive) that were not captured before.
    pub(super) fn take(&mut self, first: u32, end: u32) -> u64 {
        let length = end.wrapping_sub(first);
        let Some(next) = self.next else {
            // Later packets count from this one if its numbers are absolute.
            self.next = Some(if first <= 1 { end } else { length });
            return u64::from(length);
        };
        let ahead = distance(next, first);
        if ahead.checked_abs().is_none_or(|distance| distance > RENUMBERED) {
            *self = Self { next: Some(end), gaps: Vec::new() };
            return u64::from(length);
        }
        if ahead >= 0 {
            if ahead > 0 {
                if self.gaps.len() == GAPS_MAX {
                    self.gaps.remove(0);
                }
                self.gaps.push((next, first));
            }
            self.next = Some(end);
            return u64::from(length);
        }
        let beyond = distance(next, end).max(0);
        if beyond > 0 {
            self.next = Some(end);
        }
        u64::from(beyond.unsigned_abs()) + self.fill_gaps(first, end)
    }

    /// Returns the number of bytes of the range that had been missing.
    fn fill_gaps(&mut self, first: u32, end: u32) -> u64 {
        let mut filled = 0;
        let mut remaining = Vec::new();
        for &(from, to) in &self.gaps {
            let low = if distance(from, first) > 0 { first } else { from };
            let high = if distance(end, to) > 0 { end } else { to };
            let overlap = distance(low, high);
            if overlap <= 0 {
                remaining.push((from, to));
                continue;
            }
            filled += u64::from(overlap.unsigned_abs());
            remaining.extend([(from, low), (high, to)].into_iter().filter(|(from, to)| from != to));
        }
        remaining.truncate(GAPS_MAX);
        self.gaps = remaining;
        filled
    }
}

/// Returns `to - from` on the circle of sequence numbers.
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(packets: &[(u32, u32)]) -> Vec<u64> {
        let mut book = SequenceBook::default();
        packets.iter().map(|&(first, end)| book.take(first, end)).collect()
    }

    #[test]
    fn bytes_count_once() {
        assert_eq!(taken(&[(1, 37), (37, 73), (37, 73), (1, 73), (60, 80)]), [36, 36, 0, 0, 7]);
        assert_eq!(taken(&[(1, 11), (21, 31), (11, 21), (11, 21)]), [10, 10, 10, 0], "reordered");
        assert_eq!(taken(&[(1, 11), (21, 31), (13, 15), (11, 21)]), [10, 10, 2, 8], "filled in parts");
    }

    #[test]
    fn numbers_wrap_and_change_from_absolute_to_relative() {
        let top = u32::MAX - 9;
        assert_eq!(
            taken(&[(1, 2), (1 << 31, (1 << 31) + 1), (top - 10, top), (top, 10), (top, 10)]),
            [1, 1, 10, 20, 0]
        );
        assert_eq!(taken(&[(3_000_000_000, 3_000_000_036), (36, 72), (36, 72), (0, 36)]), [36, 36, 0, 0]);
        assert_eq!(taken(&[(5000, 5036), (36, 72)]), [36, 36]);
    }
}
