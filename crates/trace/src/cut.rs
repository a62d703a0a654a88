//! Streams made of streams: a window of one, several merged into one, one at another speed.

use model::Request;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Where a slice puts its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Arrivals stay as they are.
    Keep,
    /// The beginning of the window becomes zero.
    Rebase,
}

/// The requests in the half-open window `[from, to)`, counted from the first request of the stream.
/// `to: None` is the end. Does not read beyond the window; errors pass through.
pub fn slice<E>(
    requests: impl Iterator<Item = Result<Request, E>>,
    from: Nanos,
    to: Option<Nanos>,
    origin: Origin,
) -> impl Iterator<Item = Result<Request, E>> {
    let mut first = None;
    let before_end = move |request: &Request, first: Nanos| to.is_none_or(|to| request.arrival - first < to);
    requests
        .map(move |request| request.map(|request| (*first.get_or_insert(request.arrival), request)))
        .take_while(move |item| item.as_ref().map_or(true, |(first, request)| before_end(request, *first)))
        .filter(move |item| item.as_ref().map_or(true, |(first, request)| request.arrival - *first >= from))
        .map(move |item| {
            item.map(|(first, mut request)| {
                if origin == Origin::Rebase {
                    request.arrival = request.arrival - first - from;
                }
                request
            })
        })
}

/// One sorted stream out of several; equal arrivals come in the order of `inputs`. Holds one request of
/// each input. After an error of one input, that input has ended.
pub fn merge<I, E>(inputs: Vec<I>) -> Merge<I, E>
where
    I: Iterator<Item = Result<Request, E>>,
{
    let mut merge =
        Merge { heap: BinaryHeap::with_capacity(inputs.len()), heads: Vec::new(), failed: None, inputs };
    merge.heads = vec![None; merge.inputs.len()];
    for index in (0..merge.inputs.len()).rev() {
        merge.pull(index);
    }
    merge
}

/// See [`merge`].
#[derive(Debug)]
pub struct Merge<I, E> {
    inputs: Vec<I>,
    heads: Vec<Option<Request>>,
    heap: BinaryHeap<Reverse<(Nanos, usize)>>,
    failed: Option<E>,
}

impl<I, E> Merge<I, E>
where
    I: Iterator<Item = Result<Request, E>>,
{
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

    /// The inputs, for what they know besides their requests.
    pub fn inputs(&self) -> &[I] {
        &self.inputs
    }
}

impl<I, E> Iterator for Merge<I, E>
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

/// The same requests with every time since the first multiplied by `factor` (above 1 is slower), rounded
/// to nanoseconds; saturates at the end of time. Response times are kept: they belong to the recorded run.
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
            // Rounding is monotone, so the order stays; `as` saturates.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let since_first = ((request.arrival - first).0 as f64 * factor).round() as u64;
            request.arrival = Nanos(first.0.saturating_add(since_first));
            request
        })
    })
}
