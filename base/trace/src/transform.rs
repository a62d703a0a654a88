//! Streams made from other streams: a slice of one, several merged into one, one at another speed.

use model::Request;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Which instant is time zero of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceOrigin {
    /// The origin of the stream remains: arrivals do not change.
    Keep,
    /// The beginning of the slice becomes time zero.
    Rebase,
}

/// The requests in the half-open interval `[from, to)` of times since the first request of the stream; `None` is
/// the end of the stream. Does not read beyond the interval; errors pass through.
pub fn slice<E>(
    requests: impl Iterator<Item = Result<Request, E>>,
    from: Nanos,
    to: Option<Nanos>,
    origin: SliceOrigin,
) -> impl Iterator<Item = Result<Request, E>> {
    let mut first = None;
    requests
        .map(move |request| request.map(|request| (*first.get_or_insert(request.arrival), request)))
        .take_while(move |item| match (item, to) {
            (Ok((first, request)), Some(to)) => request.arrival - *first < to,
            _ => true,
        })
        .filter(move |item| item.as_ref().map_or(true, |(first, request)| request.arrival - *first >= from))
        .map(move |item| {
            item.map(|(first, mut request)| {
                if origin == SliceOrigin::Rebase {
                    request.arrival = request.arrival - first - from;
                }
                request
            })
        })
}

/// Merges several sorted streams into one; equal arrivals come in the order of `inputs`. One request of each input is
/// in memory. An input that returns an error has ended.
pub fn merge<I, E>(inputs: Vec<I>) -> MergedTraces<I, E>
where
    I: Iterator<Item = Result<Request, E>>,
{
    let count = inputs.len();
    let mut merged = MergedTraces {
        inputs,
        heads: vec![None; count],
        heap: BinaryHeap::with_capacity(count),
        failed: None,
    };
    for index in (0..count).rev() {
        merged.pull(index);
    }
    merged
}

/// The stream that [`merge`] returns.
#[derive(Debug)]
pub struct MergedTraces<I, E> {
    inputs: Vec<I>,
    /// The next request of each input.
    heads: Vec<Option<Request>>,
    /// The arrival of each head, with the index of its input.
    heap: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// An error that an input returned, until the merged stream returns it.
    failed: Option<E>,
}

impl<I, E> MergedTraces<I, E>
where
    I: Iterator<Item = Result<Request, E>>,
{
    /// Takes the next request of an input.
    fn pull(&mut self, index: usize) {
        match self.inputs[index].next() {
            Some(Ok(request)) => {
                self.heads[index] = Some(request);
                self.heap.push(Reverse((request.arrival, index)));
            }
            Some(Err(error)) => self.failed = Some(error),
            None => {}
        }
    }

    /// The inputs, which may know more than their requests: their progress, for example.
    pub fn inputs(&self) -> &[I] {
        &self.inputs
    }
}

impl<I, E> Iterator for MergedTraces<I, E>
where
    I: Iterator<Item = Result<Request, E>>,
{
    type Item = Result<Request, E>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let Reverse((_, index)) = self.heap.pop()?;
        let request = self.heads[index].take();
        self.pull(index);
        request.map(Ok)
    }
}

/// Multiplies the time since the first request by `factor` (above 1 is slower), rounded to nanoseconds; the latest
/// time that 64 bits can hold is the limit. Response times do not change: they belong to the recorded run.
///
/// # Panics
/// When `factor` is not positive and finite.
pub fn scale_time<E>(
    requests: impl Iterator<Item = Result<Request, E>>,
    factor: f64,
) -> impl Iterator<Item = Result<Request, E>> {
    assert!(factor > 0.0 && factor.is_finite(), "a time scale is positive and finite");
    let mut first = None;
    requests.map(move |request| {
        request.map(|mut request| {
            let first = *first.get_or_insert(request.arrival);
            // Rounding is monotone, so the requests stay in order.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
            let since_first = ((request.arrival - first).0 as f64 * factor).round() as u64;
            request.arrival = Nanos(first.0.saturating_add(since_first));
            request
        })
    })
}
