//! Traces that repeat for ever. Predictions, simulations and experiments all use this module's definition
//! of a trace's period, order and beginning.

use crate::{Job, PerStage, Request};
use std::fmt;
use units::Nanos;

/// An item with an arrival: a [`Request`], or a [`Job`] as the stages of a server see it.
pub trait Arrives: Copy {
    /// Returns the time of arrival.
    fn arrival(&self) -> Nanos;

    /// Returns the same item with another arrival.
    #[must_use]
    fn arriving_at(self, arrival: Nanos) -> Self;
}

impl Arrives for Request {
    fn arrival(&self) -> Nanos {
        self.arrival
    }

    fn arriving_at(self, arrival: Nanos) -> Self {
        Self { arrival, ..self }
    }
}

impl Arrives for Job {
    fn arrival(&self) -> Nanos {
        self.arrival
    }

    fn arriving_at(self, arrival: Nanos) -> Self {
        Self { arrival, ..self }
    }
}

/// A trace that repeats for ever: after one period the items come again, from the first.
///
/// Arrivals are sorted and count from the beginning of the period; none is later than its end. There is at least one
/// item, and the period is positive and at most [`Self::PERIOD_MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircularTrace<T> {
    items: Box<[T]>,
    period: Nanos,
}

/// Reason why items and a period do not make a [`CircularTrace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircularTraceError {
    /// There are no items.
    Empty,
    /// The item with this index, counted from 0, arrives before its predecessor.
    Unsorted(usize),
    /// The period is zero, ends before the last arrival, or exceeds [`CircularTrace::PERIOD_MAX`].
    Period,
}

impl fmt::Display for CircularTraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no requests: expected at least one"),
            Self::Unsorted(index) => write!(f, "request {index} arrives before the one before it"),
            Self::Period => {
                f.write_str("the period must be positive, reach the last arrival, and be at most 36 years")
            }
        }
    }
}

impl std::error::Error for CircularTraceError {}

impl<T: Arrives> CircularTrace<T> {
    /// The longest period: 36 years, so that sums of a few periods stay far from overflow.
    pub const PERIOD_MAX: Nanos = Nanos(1 << 60);

    /// Period of a trace whose items all arrive at once: a second.
    const PERIOD_OF_ONE_INSTANT: Nanos = Nanos(1_000_000_000);

    /// Creates a trace from items whose arrivals count from the beginning of the period.
    ///
    /// # Errors
    /// When there are no items, they are not sorted by arrival, or the period does not fit them.
    pub fn new(items: Vec<T>, period: Nanos) -> Result<Self, CircularTraceError> {
        let last = items.last().ok_or(CircularTraceError::Empty)?.arrival();
        if let Some(late) = items.windows(2).position(|pair| pair[1].arrival() < pair[0].arrival()) {
            return Err(CircularTraceError::Unsorted(late + 1));
        }
        if period == Nanos::ZERO || last > period || period > Self::PERIOD_MAX {
            return Err(CircularTraceError::Period);
        }
        Ok(Self { items: items.into(), period })
    }

    /// Creates a trace that repeats after this period. Arrivals are recounted from the first item's.
    ///
    /// # Errors
    /// As [`Self::new`]; the period must cover the span from the first arrival to the last.
    pub fn from_first_arrival(mut items: Vec<T>, period: Nanos) -> Result<Self, CircularTraceError> {
        let origin = items.first().ok_or(CircularTraceError::Empty)?.arrival();
        if let Some(late) = items.windows(2).position(|pair| pair[1].arrival() < pair[0].arrival()) {
            return Err(CircularTraceError::Unsorted(late + 1));
        }
        for item in &mut items {
            *item = item.arriving_at(item.arrival() - origin);
        }
        Self::new(items, period)
    }

    /// Creates the trace of these items, counted from the first arrival and repeated one mean gap after
    /// the last (after a second if all arrive at once).
    ///
    /// # Errors
    /// When there are no items, they are not sorted by arrival, or they span more than [`Self::PERIOD_MAX`].
    pub fn repeating(items: Vec<T>) -> Result<Self, CircularTraceError> {
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            return Err(CircularTraceError::Empty);
        };
        let span = last.arrival().saturating_sub(first.arrival());
        let gaps = (items.len() as u64 - 1).max(1);
        let period = match span {
            Nanos::ZERO => Self::PERIOD_OF_ONE_INSTANT,
            _ => Nanos(span.0.saturating_add(span.0.div_ceil(gaps))),
        };
        Self::from_first_arrival(items, period)
    }

    /// Returns the items of one period, in order of arrival.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Returns the time after which the items repeat.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// Returns the number of items that arrive before `time` when the first period begins at 0. It is also
    /// the position of the first item at or after `time` in the endless sequence. Items at the very end of a
    /// period coincide with the first of the next, and precede them.
    pub fn position(&self, time: Nanos) -> u64 {
        let count = self.items.len() as u64;
        let period_number = time.0 / self.period.0;
        let within = time.0 % self.period.0;
        if within == 0 && period_number > 0 {
            (period_number - 1) * count + self.arrivals_before(self.period)
        } else {
            period_number * count + self.arrivals_before(Nanos(within))
        }
    }

    fn arrivals_before(&self, limit: Nanos) -> u64 {
        self.items.partition_point(|item| item.arrival() < limit) as u64
    }

    /// Returns the item at this position of the endless sequence; its arrival counts from the beginning
    /// of the first period. `None` if the arrival would exceed [`Nanos`].
    pub fn item_at(&self, position: u64) -> Option<T> {
        let count = self.items.len() as u64;
        let item = self.items[usize::try_from(position % count).expect("an index of the trace")];
        let begin = (position / count).checked_mul(self.period.0)?;
        Some(item.arriving_at(Nanos(begin.checked_add(item.arrival().0)?)))
    }

    /// Iterates over the endless sequence from this position on, as [`Self::item_at`] returns it. It ends
    /// when arrivals would exceed [`Nanos`].
    pub fn from_position(&self, position: u64) -> impl Iterator<Item = T> + '_ {
        (position..).map_while(|position| self.item_at(position))
    }

    /// Returns the items that arrive before `end`, the first period beginning at 0.
    pub fn until(&self, end: Nanos) -> Vec<T> {
        self.from_position(0).take_while(|item| item.arrival() < end).collect()
    }

    /// Returns the same endless sequence with its period beginning at the arrival of the item with this
    /// index.
    ///
    /// # Panics
    /// When there is no such item.
    #[must_use]
    pub fn rotated_to(mut self, first: usize) -> Self {
        let origin = self.items[first].arrival();
        self.items.rotate_left(first);
        for item in &mut self.items {
            let since_period = if item.arrival() < origin { self.period } else { Nanos::ZERO };
            *item = item.arriving_at(since_period + item.arrival() - origin);
        }
        self
    }

    /// Returns the same items at `factor` times the rate.
    ///
    /// # Errors
    /// When the factor is not positive and finite, or the period leaves its range.
    pub fn faster(&self, factor: f64) -> Result<Self, CircularTraceError> {
        let period = self.period.0 as f64 / factor;
        if !(factor > 0.0 && (1.0..=Self::PERIOD_MAX.0 as f64).contains(&period)) {
            return Err(CircularTraceError::Period);
        }
        // The quotient is at most the period, which is in range.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let sooner = |time: Nanos| Nanos((time.0 as f64 / factor) as u64);
        let items = self.items.iter().map(|item| item.arriving_at(sooner(item.arrival()))).collect();
        Ok(Self { items, period: sooner(self.period) })
    }

    /// Splits the items of the first and second half of the period into two traces, each counted from its
    /// first arrival. `None` if a half is empty.
    pub fn halves(&self) -> Option<[Self; 2]> {
        let half = Nanos(self.period.0 / 2);
        let middle = self.items.partition_point(|item| item.arrival() < half);
        let trace_of = |items: &[T]| {
            let span = items.last()?.arrival() - items.first()?.arrival();
            Self::from_first_arrival(items.to_vec(), span.max(half)).ok()
        };
        Some([trace_of(&self.items[..middle])?, trace_of(&self.items[middle..])?])
    }

    /// Returns the items that arrive from `begin` until before `end` as a trace that counts from `begin` and
    /// has this span as its period. `None` without such items.
    pub fn window(&self, begin: Nanos, end: Nanos) -> Option<Self> {
        let items = self.items.iter().filter(|item| (begin..end).contains(&item.arrival()));
        let items = items.map(|item| item.arriving_at(item.arrival() - begin)).collect();
        Self::new(items, end.saturating_sub(begin)).ok()
    }

    /// Cuts the part of the period from `begin` until before `end` out; later items arrive earlier by its
    /// length. `None` if nothing is left.
    pub fn without(&self, begin: Nanos, end: Nanos) -> Option<Self> {
        let gap = end.saturating_sub(begin);
        let rest = self.items.iter().filter(|item| !(begin..end).contains(&item.arrival()));
        let earlier = |at: Nanos| if at < begin { at } else { at - gap };
        let items = rest.map(|item| item.arriving_at(earlier(item.arrival()))).collect();
        Self::new(items, self.period.saturating_sub(gap)).ok()
    }
}

impl CircularTrace<Job> {
    /// Returns the same arrivals with `factor` times the work, rounded up.
    ///
    /// # Panics
    /// When the factor is negative or not a number.
    #[must_use]
    pub fn with_work(&self, factor: f64) -> Self {
        assert!(factor >= 0.0, "a factor on work is not negative: {factor}");
        // The cast saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let scaled = |work: &Nanos| Nanos((work.0 as f64 * factor).ceil() as u64);
        let items = self.items.iter().map(|job| Job { work: job.work.map(scaled), ..*job }).collect();
        Self { items, period: self.period }
    }

    /// Returns the work per second of each stage, seconds: the trace's utilisation of it.
    pub fn utilisation(&self) -> PerStage<f64> {
        PerStage::from_fn(|stage| {
            self.items.iter().map(|job| job.work[stage].0).sum::<u64>() as f64 / self.period.0 as f64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(arrival: u64) -> Job {
        Job { arrival: Nanos(arrival), work: PerStage::from_fn(|_| Nanos(arrival)) }
    }

    fn arrivals(jobs: impl IntoIterator<Item = Job>) -> Vec<u64> {
        jobs.into_iter().map(|job| job.arrival.0).collect()
    }

    /// Arrivals 0, 2, 6, repeated after 9.
    fn trace() -> CircularTrace<Job> {
        CircularTrace::repeating(vec![job(7), job(9), job(13)]).expect("sorted")
    }

    #[test]
    fn it_repeats_one_mean_gap_after_the_last_arrival() {
        assert_eq!((arrivals(trace().items().to_vec()), trace().period()), (vec![0, 2, 6], Nanos(9)));
        assert_eq!(arrivals(trace().until(Nanos(16))), [0, 2, 6, 9, 11, 15]);
        let at_once = CircularTrace::repeating(vec![job(5), job(5)]).expect("sorted");
        assert_eq!(at_once.period(), Nanos(1_000_000_000));
    }

    #[test]
    fn positions_count_what_arrives_before() {
        let sequence = trace().until(Nanos(100));
        for time in 0..60 {
            let before = sequence.iter().filter(|job| job.arrival.0 < time).count() as u64;
            assert_eq!(trace().position(Nanos(time)), before, "at {time}");
            let next = trace().from_position(before).next().expect("endless");
            assert_eq!(next, sequence[usize::try_from(before).expect("small")]);
        }
        // An arrival at the very end of the period comes before the first one of the next.
        let full = CircularTrace::new(vec![job(0), job(4)], Nanos(4)).expect("sorted");
        assert_eq!([4, 5, 8].map(|time| full.position(Nanos(time))), [1, 3, 3]);
    }

    #[test]
    fn another_beginning_and_another_rate_keep_the_sequence() {
        assert_eq!(arrivals(trace().rotated_to(1).until(Nanos(14))), [0, 4, 7, 9, 13]);
        let twice = trace().faster(2.0).expect("in range");
        assert_eq!((arrivals(twice.items().to_vec()), twice.period()), (vec![0, 1, 3], Nanos(4)));
        for factor in [0.0, -1.0, f64::NAN, 1e12, f64::INFINITY] {
            assert_eq!(trace().faster(factor), Err(CircularTraceError::Period), "{factor}");
        }
    }

    #[test]
    fn halves_count_from_their_first_arrival() {
        let [first, second] = trace().halves().expect("both have items");
        assert_eq!((arrivals(first.items().to_vec()), first.period()), (vec![0, 2], Nanos(4)));
        assert_eq!((arrivals(second.items().to_vec()), second.period()), (vec![0], Nanos(4)));
        assert_eq!(CircularTrace::new(vec![job(0)], Nanos(9)).expect("sorted").halves(), None);
    }

    #[test]
    fn a_window_and_the_rest_divide_a_trace() {
        // Arrivals 0, 2, 6 of 9.
        let parts = |begin, end| {
            let of = |part: Option<CircularTrace<Job>>| {
                part.map(|trace| (arrivals(trace.items().to_vec()), trace.period().0))
            };
            let begin = Nanos(begin);
            let end = Nanos(end);
            (of(trace().window(begin, end)), of(trace().without(begin, end)))
        };
        assert_eq!(parts(1, 7), (Some((vec![1, 5], 6)), Some((vec![0], 3))));
        assert_eq!(parts(2, 6), (Some((vec![0], 4)), Some((vec![0, 2], 5))));
        assert_eq!(parts(3, 6), (None, Some((vec![0, 2, 3], 6))));
        assert_eq!(parts(0, 9), (Some((vec![0, 2, 6], 9)), None));
        assert_eq!(parts(6, 6), (None, Some((vec![0, 2, 6], 9))));
    }

    #[test]
    fn what_is_no_circular_trace_is_refused() {
        let new = |items: &[u64], period| {
            CircularTrace::new(items.iter().map(|at| job(*at)).collect(), Nanos(period)).map(|_| ())
        };
        assert_eq!(new(&[], 1), Err(CircularTraceError::Empty));
        assert_eq!(new(&[1, 3, 2], 9), Err(CircularTraceError::Unsorted(2)));
        assert_eq!(new(&[0], 0), Err(CircularTraceError::Period));
        assert_eq!(new(&[0, 5], 4), Err(CircularTraceError::Period));
        assert_eq!(new(&[0, 5], (1 << 60) + 1), Err(CircularTraceError::Period));
        assert_eq!(new(&[0, 5], 5), Ok(()));
    }
}
