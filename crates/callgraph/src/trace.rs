//! The spans of one trace as trees with consistent times.
//!
//! Rules, in this order; each is counted in [`Counts`]:
//! 1. Of several spans with one id and kind the first stays. A client and another kind may share an id (Zipkin,
//!    Alibaba): the client becomes the parent, and whatever names the id as its parent is below the other one.
//! 2. A span without a parent is an entry; one whose parent is absent is a further root. Circles are cut at their
//!    earliest span.
//! 3. A child that starts before its parent of another service is moved to the parent's start, with all below it:
//!    under one clock it could not have started before it was called. A late end is no evidence of skew.
//! 4. What of a child is outside its parent does not count for the parent, so that a child that outlives its parent
//!    covers the parent to its end. [`Outliving::Asynchronous`] takes such a child for one that nobody waits for.

use crate::{Counts, Kind, Span};
use std::collections::HashMap;
use units::Nanos;

/// What a child that ends after its parent means.
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
pub struct Node {
    /// As read.
    pub span: Span,
    /// Index of the parent; `None` for a root.
    pub parent: Option<usize>,
    /// Indices, by start, ties by end and then in the order of the file.
    pub children: Vec<usize>,
    /// Start after the correction of skew.
    pub start: Nanos,
    /// End after the correction of skew.
    pub end: Nanos,
    /// Whether the parent waits for it.
    pub is_waited_for: bool,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    nodes: Vec<Node>,
    entry: Option<usize>,
}

impl Trace {
    /// Joins the spans of one trace.
    pub fn new(spans: Vec<Span>, outliving: Outliving, counts: &mut Counts) -> Self {
        counts.traces += 1;
        counts.spans += spans.len() as u64;
        let mut nodes: Vec<Node> = spans.into_iter().map(node).collect();
        join(&mut nodes, counts);
        cut_circles(&mut nodes, counts);
        link(&mut nodes);
        let order = top_down(&nodes);
        for &index in &order {
            place(&mut nodes, index, outliving, counts);
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
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The first span without a parent.
    pub fn entry(&self) -> Option<usize> {
        self.entry
    }
}

fn node(span: Span) -> Node {
    let (start, end) = (span.start, Nanos(span.start.0.saturating_add(span.duration.0)));
    Node { span, parent: None, children: Vec::new(), start, end, is_waited_for: true }
}

/// Rules 1 and 2.
fn join(nodes: &mut Vec<Node>, counts: &mut Counts) {
    let mut seen: HashMap<(Box<str>, bool), ()> = HashMap::new();
    let before = nodes.len();
    nodes.retain(|node| {
        let client = node.span.kind == Kind::Client;
        seen.insert((node.span.id.clone(), client), ()).is_none()
    });
    counts.duplicates += (before - nodes.len()) as u64;
    let ids = |client: bool| -> HashMap<Box<str>, usize> {
        let of = nodes.iter().enumerate().filter(|(_, node)| (node.span.kind == Kind::Client) == client);
        of.map(|(index, node)| (node.span.id.clone(), index)).collect()
    };
    let (clients, others) = (ids(true), ids(false));
    for node in nodes {
        let is_client = node.span.kind == Kind::Client;
        let shared = (!is_client).then(|| clients.get(&node.span.id)).flatten();
        let named = node.span.parent.as_ref().map(|id| others.get(id).or_else(|| clients.get(id)));
        counts.missing_parents += u64::from(shared.is_none() && named == Some(None));
        node.parent = shared.or(named.flatten()).copied();
    }
}

fn cut_circles(nodes: &mut [Node], counts: &mut Counts) {
    // 0: not looked at, otherwise the walk that came by.
    let mut walk = vec![0usize; nodes.len()];
    for first in 0..nodes.len() {
        let mut at = Some(first);
        while let Some(index) = at.filter(|&index| walk[index] == 0) {
            walk[index] = first + 1;
            at = nodes[index].parent;
        }
        let Some(index) = at.filter(|&index| walk[index] == first + 1) else { continue };
        let circle =
            std::iter::successors(nodes[index].parent, |&i| (i != index).then_some(nodes[i].parent)?);
        let earliest = circle.min_by_key(|&i| (nodes[i].start, i)).expect("a circle has a span");
        nodes[earliest].parent = None;
        counts.circles += 1;
    }
}

fn link(nodes: &mut [Node]) {
    for index in 0..nodes.len() {
        if let Some(parent) = nodes[index].parent {
            nodes[parent].children.push(index);
        }
    }
}

/// Parents before children.
fn top_down(nodes: &[Node]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes.len()).filter(|&index| nodes[index].parent.is_none()).collect();
    let mut next = 0;
    while let Some(&index) = order.get(next) {
        order.extend(&nodes[index].children);
        next += 1;
    }
    order
}

/// Rules 3 and 4 for a span whose parent has its place.
fn place(nodes: &mut [Node], index: usize, outliving: Outliving, counts: &mut Counts) {
    let Some(parent) = nodes[index].parent else { return };
    let (from, to, service) = (nodes[parent].start, nodes[parent].end, nodes[parent].span.service.clone());
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

fn shift_down(nodes: &mut [Node], index: usize, shift: Nanos) {
    let mut below = vec![index];
    while let Some(at) = below.pop() {
        nodes[at].start = Nanos(nodes[at].start.0.saturating_add(shift.0));
        nodes[at].end = Nanos(nodes[at].end.0.saturating_add(shift.0));
        below.extend(&nodes[at].children);
    }
}
