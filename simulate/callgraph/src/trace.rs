//! The spans of one trace as trees with consistent times.
//!
//! Rules, in this order; each is counted in [`RuleCounts`]:
//! 1. Of several spans with one id and kind the first stays. A client and another kind may share an id (Zipkin,
//!    Alibaba): the client becomes the parent, and spans that name the id as their parent are below the other one.
//! 2. A span without a parent is an entry; one whose parent is absent is a further root. Cycles are cut at their
//!    earliest span.
//! 3. A child that starts before its parent of another service is moved to the parent's start, with all below it:
//!    under one clock it could not have started before it was called. A late end is no evidence of skew.
//! 4. The time of a child outside its parent does not count for the parent, so that a child that outlives
//!    its parent covers the parent to its end. With [`Outliving::Asynchronous`] the parent does not wait
//!    for such a child.

use crate::rule_counts::RuleCounts;
use crate::span::{Span, SpanKind};
use std::collections::{HashMap, HashSet};
use units::Nanos;

/// Interpretation of a child that ends after its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outliving {
    /// The parent waited for it, and was reported before it: clipped to the parent.
    #[default]
    Clipped,
    /// The parent did not wait: it covers nothing of the parent.
    Asynchronous,
}

/// A span in its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceNode {
    /// The span as it was read.
    pub span: Span,
    /// Index of the parent; `None` for a root.
    pub parent: Option<usize>,
    /// Indices of the children by start, ties by end and then in the order of the file.
    pub children: Vec<usize>,
    /// Start after the correction of skew.
    pub start: Nanos,
    /// End after the correction of skew.
    pub end: Nanos,
    /// True if the parent waits for it.
    pub is_waited_for: bool,
}

/// The spans of one request as trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    nodes: Vec<TraceNode>,
    entry: Option<usize>,
}

impl Trace {
    /// Joins the spans of one trace.
    pub fn new(spans: Vec<Span>, outliving: Outliving, counts: &mut RuleCounts) -> Self {
        counts.traces += 1;
        counts.spans += spans.len() as u64;
        let mut nodes: Vec<TraceNode> = spans.into_iter().map(TraceNode::new).collect();
        set_parents(&mut nodes, counts);
        cut_cycles(&mut nodes, counts);
        set_children(&mut nodes);
        let order = top_down(&nodes);
        for &index in &order {
            set_times(&mut nodes, index, outliving, counts);
        }
        for index in 0..nodes.len() {
            let mut children = std::mem::take(&mut nodes[index].children);
            children.sort_by_key(|&child| (nodes[child].start, nodes[child].end, child));
            nodes[index].children = children;
        }
        let entries = (0..nodes.len()).filter(|&index| nodes[index].span.parent.is_none());
        let entries = entries.filter(|&index| nodes[index].parent.is_none());
        let entry = entries.min_by_key(|&index| (nodes[index].start, index));
        counts.without_entry += u64::from(entry.is_none());
        Self { nodes, entry }
    }

    /// All spans, in the order of the file.
    pub fn nodes(&self) -> &[TraceNode] {
        &self.nodes
    }

    /// The first span without a parent.
    pub fn entry(&self) -> Option<usize> {
        self.entry
    }
}

impl TraceNode {
    fn new(span: Span) -> Self {
        let start = span.start;
        let end = Nanos(span.start.0.saturating_add(span.duration.0));
        Self { span, parent: None, children: Vec::new(), start, end, is_waited_for: true }
    }

    fn is_client(&self) -> bool {
        self.span.kind == SpanKind::Client
    }
}

/// Removes duplicates and gives each span its parent, by rules 1 and 2.
fn set_parents(nodes: &mut Vec<TraceNode>, counts: &mut RuleCounts) {
    let mut seen: HashSet<(Box<str>, bool)> = HashSet::new();
    let before = nodes.len();
    nodes.retain(|node| seen.insert((node.span.id.clone(), node.is_client())));
    counts.duplicates += (before - nodes.len()) as u64;
    let mut clients = HashMap::new();
    let mut others = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let ids = if node.is_client() { &mut clients } else { &mut others };
        ids.insert(node.span.id.clone(), index);
    }
    for node in nodes {
        let shared = (!node.is_client()).then(|| clients.get(&node.span.id)).flatten();
        let named = node.span.parent.as_ref().map(|id| others.get(id).or_else(|| clients.get(id)));
        counts.missing_parents += u64::from(shared.is_none() && named == Some(None));
        node.parent = shared.or(named.flatten()).copied();
    }
}

/// Cuts cycles of parents at their earliest span.
fn cut_cycles(nodes: &mut [TraceNode], counts: &mut RuleCounts) {
    // The number of the walk towards the root that visited the span first, from 1; 0 before any has.
    let mut walk = vec![0usize; nodes.len()];
    for first in 0..nodes.len() {
        let mut next = Some(first);
        while let Some(index) = next.filter(|&index| walk[index] == 0) {
            walk[index] = first + 1;
            next = nodes[index].parent;
        }
        // A walk that meets itself has gone around a cycle.
        let Some(index) = next.filter(|&index| walk[index] == first + 1) else { continue };
        let cycle =
            std::iter::successors(nodes[index].parent, |&i| (i != index).then_some(nodes[i].parent)?);
        let earliest = cycle.min_by_key(|&i| (nodes[i].start, i)).expect("a cycle has a span");
        nodes[earliest].parent = None;
        counts.cycles += 1;
    }
}

/// Gives each span its children, in the order of the file.
fn set_children(nodes: &mut [TraceNode]) {
    for index in 0..nodes.len() {
        if let Some(parent) = nodes[index].parent {
            nodes[parent].children.push(index);
        }
    }
}

/// The indices of all spans, parents before their children.
fn top_down(nodes: &[TraceNode]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes.len()).filter(|&index| nodes[index].parent.is_none()).collect();
    let mut next = 0;
    while let Some(&index) = order.get(next) {
        order.extend(&nodes[index].children);
        next += 1;
    }
    order
}

/// Applies rules 3 and 4 to a span whose parent has its final times.
fn set_times(nodes: &mut [TraceNode], index: usize, outliving: Outliving, counts: &mut RuleCounts) {
    let Some(parent) = nodes[index].parent else { return };
    let from = nodes[parent].start;
    let to = nodes[parent].end;
    let service = nodes[parent].span.service.clone();
    let child = &mut nodes[index];
    let asynchronous = child.span.is_asynchronous();
    if child.start < from && child.span.service != service {
        counts.skewed += 1;
        let shift = from - child.start;
        shift_down(nodes, index, shift);
    } else if child.start < from {
        counts.early += 1;
    }
    let child = &mut nodes[index];
    let outlives = child.end > to;
    counts.outliving += u64::from(outlives && !asynchronous);
    counts.asynchronous += u64::from(asynchronous);
    child.is_waited_for = !(asynchronous || outlives && outliving == Outliving::Asynchronous);
}

/// Moves a span and all below it to later times.
fn shift_down(nodes: &mut [TraceNode], index: usize, shift: Nanos) {
    let mut below = vec![index];
    while let Some(index) = below.pop() {
        let node = &mut nodes[index];
        node.start = Nanos(node.start.0.saturating_add(shift.0));
        node.end = Nanos(node.end.0.saturating_add(shift.0));
        below.extend(&node.children);
    }
}
