//! Attribution of a request's time: self times and the critical path.
//!
//! *Self time* of a span: its duration without the union of the children that it waits for. *Critical time*: every
//! instant between start and end of the entry is due to one span: going back from the end, to the child that ended
//! last, and to the span itself where no child is open. Both are exact: self time and wait of a span add up to its
//! duration, the critical times of all spans to the latency of the request.

use crate::trace::{Trace, TraceNode};
use units::Nanos;

/// The times of one trace, by index of the span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceTimeline {
    /// The self time of each span: its duration without the children that it waits for.
    pub own: Vec<Nanos>,
    /// The time of each span that the children that it waits for cover.
    pub waiting: Vec<Nanos>,
    /// The part of the latency of the entry that is due to each span itself; zero off the critical path, and
    /// everywhere without an entry.
    pub critical: Vec<Nanos>,
}

impl TraceTimeline {
    /// Computes the times of a trace.
    pub fn new(trace: &Trace) -> Self {
        let nodes = trace.nodes();
        let waiting: Vec<Nanos> = (0..nodes.len()).map(|index| time_waited(nodes, index)).collect();
        let own =
            nodes.iter().zip(&waiting).map(|(node, waiting)| node.end - node.start - *waiting).collect();
        let mut critical = vec![Nanos::ZERO; nodes.len()];
        if let Some(entry) = trace.entry() {
            attribute_latency(nodes, entry, &mut critical);
        }
        Self { own, waiting, critical }
    }
}

/// The children that are waited for between two instants, each with its start and end within them, in order of start.
fn children_within(
    nodes: &[TraceNode],
    index: usize,
    from: Nanos,
    to: Nanos,
) -> impl Iterator<Item = (usize, Nanos, Nanos)> {
    let waited = nodes[index].children.iter().copied().filter(|&child| nodes[child].is_waited_for);
    let clipped = waited.map(move |child| (child, nodes[child].start.max(from), nodes[child].end.min(to)));
    clipped.filter(|(_, start, end)| start < end)
}

/// Returns the time during which children that the span waits for cover it.
fn time_waited(nodes: &[TraceNode], index: usize) -> Nanos {
    let from = nodes[index].start;
    let to = nodes[index].end;
    let mut sum = Nanos::ZERO;
    let mut reached = from;
    for (_, start, end) in children_within(nodes, index, from, to) {
        sum = sum + end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    sum
}

/// Attributes every instant of the latency of the entry to one span, from its end to its start. The later of two
/// children that end together counts; a child that ends after the start of the one that was attributed before it
/// counts up to that start.
fn attribute_latency(nodes: &[TraceNode], entry: usize, critical: &mut [Nanos]) {
    let mut left = vec![(entry, nodes[entry].start, nodes[entry].end)];
    while let Some((index, from, to)) = left.pop() {
        let mut children: Vec<_> = children_within(nodes, index, from, to).collect();
        children.sort_by_key(|(_, _, end)| *end);
        let mut now = to;
        for (child, start, end) in children.into_iter().rev() {
            if start < now {
                let end = end.min(now);
                critical[index] = critical[index] + (now - end);
                left.push((child, start, end));
                now = start;
            }
        }
        critical[index] = critical[index] + (now - from);
    }
}
