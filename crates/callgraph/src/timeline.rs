//! Where the time of a request went.
//!
//! *Self time* of a span: its duration without the union of the children that it waits for. *Critical time*: every
//! instant between start and end of the entry is due to one span: going back from the end, to the child that ended
//! last, and to the span itself where no child is open. Both are exact: self time and wait of a span add up to its
//! duration, the critical times of all spans to the latency of the request.

use crate::trace::{Node, Trace};
use units::Nanos;

/// Times of one trace; all by index of the span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// Duration without children that are waited for.
    pub own: Vec<Nanos>,
    /// What the children cover.
    pub waiting: Vec<Nanos>,
    /// What of the latency of the entry is due to the span itself; zero off the critical path, and everywhere
    /// without an entry.
    pub critical: Vec<Nanos>,
}

impl Timeline {
    /// Of a trace.
    pub fn new(trace: &Trace) -> Self {
        let nodes = trace.nodes();
        let waiting: Vec<Nanos> = (0..nodes.len()).map(|index| covered(nodes, index)).collect();
        let own =
            nodes.iter().zip(&waiting).map(|(node, waiting)| node.end - node.start - *waiting).collect();
        let mut critical = vec![Nanos::ZERO; nodes.len()];
        if let Some(entry) = trace.entry() {
            attribute(nodes, entry, &mut critical);
        }
        Self { own, waiting, critical }
    }
}

/// The parts of the children that are waited for, within the span; in order of start.
fn parts(
    nodes: &[Node],
    index: usize,
    from: Nanos,
    to: Nanos,
) -> impl Iterator<Item = (usize, Nanos, Nanos)> {
    let waited = nodes[index].children.iter().copied().filter(|&child| nodes[child].is_waited_for);
    let part = move |child: usize| (child, nodes[child].start.max(from), nodes[child].end.min(to));
    waited.map(part).filter(|(_, start, end)| start < end)
}

fn covered(nodes: &[Node], index: usize) -> Nanos {
    let (from, to) = (nodes[index].start, nodes[index].end);
    let (mut sum, mut reached) = (Nanos::ZERO, from);
    for (_, start, end) in parts(nodes, index, from, to) {
        sum = sum + end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    sum
}

/// Of two children that end together the later one in the order of children counts; one that ends after the
/// child that was found before it counts up to that one's start.
fn attribute(nodes: &[Node], entry: usize, critical: &mut [Nanos]) {
    let mut left = vec![(entry, nodes[entry].start, nodes[entry].end)];
    while let Some((index, from, to)) = left.pop() {
        let mut children: Vec<_> = parts(nodes, index, from, to).collect();
        children.sort_by_key(|(_, _, end)| *end);
        let mut at = to;
        for (child, start, end) in children.into_iter().rev() {
            if start < at {
                let end = end.min(at);
                critical[index] = critical[index] + (at - end);
                left.push((child, start, end));
                at = start;
            }
        }
        critical[index] = critical[index] + (at - from);
    }
}
