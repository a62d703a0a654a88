//! Traces into a call graph.

use crate::law::Collected;
use crate::model::{Call, CallGraph, Entry, Operation, Pattern, Service, TimeLaw};
use crate::trace::{Node, Outliving, Trace};
use crate::{Counts, Kind, Span, Timeline};
use std::collections::BTreeMap;
use units::Nanos;

/// Values kept of each law.
const SAMPLE: usize = 10_000;
/// Different patterns kept of an operation.
const PATTERNS: usize = 1000;

/// Accumulates traces.
#[derive(Debug, Default)]
pub struct Builder {
    outliving: Outliving,
    counts: Counts,
    /// By service, operation and whether it is a client's view.
    places: BTreeMap<(Box<str>, Box<str>, bool), usize>,
    /// By place, in the order of discovery.
    operations: Vec<Accumulated>,
    /// Start, end and place of each entry.
    requests: Vec<(Nanos, Nanos, usize)>,
    /// Earliest start and latest end of any span.
    observed: Option<(Nanos, Nanos)>,
}

#[derive(Debug)]
struct Accumulated {
    own: Collected,
    duration: Collected,
    critical: u128,
    patterns: BTreeMap<Vec<Vec<Call>>, u64>,
    other_patterns: u64,
}

impl Builder {
    /// With this reading of children that end after their parents.
    pub fn new(outliving: Outliving) -> Self {
        Self { outliving, ..Self::default() }
    }

    /// The spans of one trace. Gives the trace as it was understood.
    pub fn push(&mut self, spans: Vec<Span>) -> (Trace, Timeline) {
        let trace = Trace::new(spans, self.outliving, &mut self.counts);
        let timeline = Timeline::new(&trace);
        let places: Vec<usize> = trace.nodes().iter().map(|node| self.place(&node.span)).collect();
        for (index, node) in trace.nodes().iter().enumerate() {
            let (from, to) = self.observed.unwrap_or((node.start, node.end));
            self.observed = Some((from.min(node.start), to.max(node.end)));
            let groups = groups(trace.nodes(), index, &places);
            self.counts.repeated += repeated(&groups);
            let operation = &mut self.operations[places[index]];
            operation.own.push(timeline.own[index]);
            operation.duration.push(node.end - node.start);
            operation.critical += u128::from(timeline.critical[index].0);
            operation.count(groups);
        }
        if let Some(entry) = trace.entry() {
            let node = &trace.nodes()[entry];
            self.requests.push((node.start, node.end, places[entry]));
        }
        (trace, timeline)
    }

    fn place(&mut self, span: &Span) -> usize {
        let key = (span.service.clone(), span.operation.clone(), span.kind == Kind::Client);
        let next = self.operations.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.operations.push(Accumulated::new(next as u64));
        }
        place
    }

    /// What was odd so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The call graph; `unreadable` records were left out while reading.
    pub fn finish(mut self, unreadable: u64) -> CallGraph {
        self.counts.unreadable = unreadable;
        self.counts.other_patterns = self.operations.iter().map(|operation| operation.other_patterns).sum();
        // Places in the order of names.
        let mut renamed = vec![0; self.operations.len()];
        for (new, old) in self.places.values().enumerate() {
            renamed[*old] = new;
        }
        let observed_s = self.observed.map_or(0.0, |(from, to)| (to - from).as_secs());
        let entry = entry(&mut self.requests, &renamed);
        let total = entry.latency.mean_s * entry.latency.count as f64;
        let mut operations: Vec<Option<Accumulated>> = self.operations.into_iter().map(Some).collect();
        let mut graph = CallGraph { services: vec![], operations: vec![], entry, counts: self.counts };
        for ((service, name, is_client), old) in self.places {
            let operation = operations[old].take().expect("each place once");
            let service = graph.service(&service);
            let per_time = |sum: f64| if observed_s > 0.0 { sum / observed_s } else { 0.0 };
            graph.services[service].in_progress += per_time(operation.duration.sum_s());
            // What a client's view does not cover is nobody's work.
            graph.services[service].busy += if is_client { 0.0 } else { per_time(operation.own.sum_s()) };
            graph.operations.push(operation.finish(service, &name, is_client, total, &renamed));
        }
        graph
    }
}

impl CallGraph {
    /// The place of a service that is at the end of the list, or comes there.
    fn service(&mut self, name: &str) -> usize {
        if self.services.last().is_none_or(|last| last.name != name) {
            self.services.push(Service { name: name.to_owned(), in_progress: 0.0, busy: 0.0 });
        }
        self.services.len() - 1
    }
}

impl Accumulated {
    fn new(index: u64) -> Self {
        let law = |seed| Collected::new(SAMPLE, seed);
        let (own, duration) = (law(2 * index), law(2 * index + 1));
        Self { own, duration, critical: 0, patterns: BTreeMap::new(), other_patterns: 0 }
    }

    fn count(&mut self, groups: Vec<Vec<Call>>) {
        if let Some(count) = self.patterns.get_mut(&groups) {
            *count += 1;
        } else if self.patterns.len() < PATTERNS {
            self.patterns.insert(groups, 1);
        } else {
            self.other_patterns += 1;
        }
    }

    fn finish(
        self,
        service: usize,
        name: &str,
        is_client: bool,
        total_s: f64,
        renamed: &[usize],
    ) -> Operation {
        let spans = self.patterns.values().sum::<u64>() + self.other_patterns;
        let share = |count: u64| count as f64 / spans as f64;
        let rename = |call: Call| Call { operation: renamed[call.operation], ..call };
        let pattern = |(groups, count): (Vec<Vec<Call>>, u64)| {
            let mut groups: Vec<Vec<Call>> =
                groups.into_iter().map(|group| group.into_iter().map(rename).collect()).collect();
            groups.iter_mut().for_each(|group| group.sort_unstable());
            Pattern { share: share(count), groups }
        };
        let mut patterns: Vec<Pattern> = self.patterns.into_iter().map(pattern).collect();
        patterns.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.groups.cmp(&b.groups)));
        Operation {
            service,
            name: name.to_owned(),
            is_client,
            own: self.own.finish(),
            duration: self.duration.finish(),
            critical_share: if total_s > 0.0 { self.critical as f64 / 1e9 / total_s } else { 0.0 },
            patterns,
            other_patterns: share(self.other_patterns),
        }
    }
}

/// A child belongs to the group of those before it if it starts before the last of them ends. Whoever is not waited
/// for is in the group that it starts in and does not prolong it.
fn groups(nodes: &[Node], index: usize, places: &[usize]) -> Vec<Vec<Call>> {
    let (mut groups, mut open_until): (Vec<Vec<Call>>, Option<Nanos>) = (Vec::new(), None);
    for &child in &nodes[index].children {
        let node = &nodes[child];
        let call = Call { operation: places[child], asynchronous: !node.is_waited_for };
        match groups.last_mut() {
            Some(group) if open_until.is_some_and(|end| node.start < end) => group.push(call),
            _ => groups.push(vec![call]),
        }
        let end = if node.is_waited_for { node.end } else { node.start };
        open_until = open_until.max(Some(end));
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

fn repeated(groups: &[Vec<Call>]) -> u64 {
    let mut calls: Vec<usize> = groups.iter().flatten().map(|call| call.operation).collect();
    let all = calls.len();
    calls.sort_unstable();
    calls.dedup();
    (all - calls.len()) as u64
}

fn entry(requests: &mut [(Nanos, Nanos, usize)], renamed: &[usize]) -> Entry {
    requests.sort_unstable();
    let mut by_operation: BTreeMap<usize, u64> = BTreeMap::new();
    let (mut gaps, mut latency) = (Collected::new(SAMPLE, 1), Collected::new(SAMPLE, 2));
    for (start, end, place) in requests.iter() {
        *by_operation.entry(renamed[*place]).or_default() += 1;
        latency.push(*end - *start);
    }
    requests.windows(2).for_each(|pair| gaps.push(pair[1].0 - pair[0].0));
    let last_end = requests.iter().map(|request| request.1).max().unwrap_or_default();
    let observed_s = requests.first().map_or(0.0, |first| (last_end - first.0).as_secs());
    let in_progress = if observed_s > 0.0 { latency.sum_s() / observed_s } else { 0.0 };
    let gaps: TimeLaw = gaps.finish();
    let share = |(place, count): (usize, u64)| (place, count as f64 / requests.len() as f64);
    Entry {
        operations: by_operation.into_iter().map(share).collect(),
        rate_per_s: if gaps.mean_s > 0.0 { 1.0 / gaps.mean_s } else { 0.0 },
        gaps,
        latency: latency.finish(),
        in_progress,
        in_progress_max: most_at_once(requests),
    }
}

/// Intervals are half-open: one that begins when another ends is not beside it.
fn most_at_once(requests: &[(Nanos, Nanos, usize)]) -> u64 {
    let ends = requests.iter().map(|request| (request.1, -1i64));
    let mut events: Vec<(Nanos, i64)> = requests.iter().map(|request| (request.0, 1)).chain(ends).collect();
    events.sort_unstable();
    let (mut now, mut most) = (0i64, 0i64);
    for (_, step) in events {
        now += step;
        most = most.max(now);
    }
    most.unsigned_abs()
}
