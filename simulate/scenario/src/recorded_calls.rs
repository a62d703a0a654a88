//! Call graphs from recorded traces: services become stations, and every request repeats a recorded one.
//!
//! A request draws one of the recorded traces, so that the self times and calls of one request stay
//! together as recorded. Of each span, the time without calls is cut into parts, which become steps at
//! the station of its service: one before the first group of calls, one after each group. The calls of a
//! group overlap in the record. They begin when the part before them is done, each with its recorded
//! delay after the first. The part after a group begins when all calls of the group are done. A client's
//! view of a call becomes network delay. Alone in the system, a request thus has the recorded latency, if
//! children lie within their parents.
//!
//! Traces with the same dependencies between steps share these steps in the network.
//!
//! A record does not show some facts. Self time contains all waiting within the service (processors,
//! locks, databases without spans), so that work is overestimated, the more the higher the load of the
//! record was. A thread that waits for its calls does not occupy a worker here. Calls whose caller does
//! not wait are omitted.

use crate::file::{Scenario, StationSpec};
use callgraph::{BadRecords, Outliving, RuleCounts, SpanKind, Trace, TraceNode};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{DELAY_ONLY, NetworkStep, RequestDraft, SKIP};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use units::Nanos;

/// The requests of recorded traces, as steps of a network.
#[derive(Debug, Default)]
pub(crate) struct RecordedCalls {
    /// The steps of all shapes, one shape after the other.
    steps: Vec<NetworkStep>,
    shapes: BTreeMap<CallShape, Range<usize>>,
    requests: Vec<RecordedRequest>,
}

/// The steps of a request: the station of each, and the steps that it waits for, counted from the first.
type CallShape = Vec<(usize, Vec<usize>)>;

/// A recorded request: its steps in the network, with demand and delay of each.
#[derive(Debug)]
struct RecordedRequest {
    steps: Range<usize>,
    demands: Vec<Nanos>,
    delays: Vec<Nanos>,
}

impl RecordedCalls {
    /// Reads a file of spans. Also returns the names of the services; steps name their stations by
    /// position in this list.
    pub(crate) fn read(path: &Path) -> Result<(Self, Vec<String>), String> {
        let mut counts = RuleCounts::default();
        let mut traces = Vec::new();
        let add_trace = |spans| traces.push(Trace::new(spans, Outliving::Clipped, &mut counts));
        callgraph::traces(path, None, BadRecords::Fatal, add_trace).map_err(|error| error.to_string())?;
        let nodes = traces.iter().flat_map(Trace::nodes);
        let mut names: Vec<String> = nodes.map(|node| node.span.service.to_string()).collect();
        names.sort_unstable();
        names.dedup();
        let mut recorded = Self::default();
        traces.iter().for_each(|trace| recorded.push(trace, &names));
        if recorded.requests.is_empty() {
            return Err(format!("{}: expected traces with an entry span that takes time", path.display()));
        }
        Ok((recorded, names))
    }

    /// Adds the request of a trace, unless it takes no time.
    fn push(&mut self, trace: &Trace, services: &[String]) {
        let Some(entry) = trace.entry() else { return };
        let mut unfolding = Unfolding { nodes: trace.nodes(), services, ..Unfolding::default() };
        unfolding.add_span(entry, None, Nanos::ZERO);
        let Unfolding { shape, demands, delays, .. } = unfolding;
        if demands.iter().all(|demand| *demand >= DELAY_ONLY) {
            return;
        }
        let steps = self.steps_of(shape);
        self.requests.push(RecordedRequest { steps, demands, delays });
    }

    /// The steps of a shape, which are added to the network if the shape is new.
    fn steps_of(&mut self, shape: CallShape) -> Range<usize> {
        if let Some(known) = self.shapes.get(&shape) {
            return known.clone();
        }
        let first = self.steps.len();
        self.steps.extend(shape.iter().map(|(station, after)| NetworkStep {
            station: *station,
            after: after.iter().map(|earlier| first + earlier).collect(),
            delay: Nanos::ZERO,
        }));
        let range = first..self.steps.len();
        self.shapes.insert(shape, range.clone());
        range
    }

    /// The steps of all shapes, as one network.
    pub(crate) fn steps(&self) -> &[NetworkStep] {
        &self.steps
    }

    /// Mean demand of a request at the steps that are `included`, seconds.
    pub(crate) fn work(&self, included: impl Fn(usize) -> bool) -> f64 {
        let total: f64 = self.requests.iter().map(|request| request.work(&included)).sum();
        total / self.requests.len() as f64
    }

    /// A function that draws recorded requests with equal probability.
    pub(crate) fn drawer(self: &Arc<Self>, seed: u64) -> impl FnMut(&mut RequestDraft<'_>) + use<> {
        let calls = Arc::clone(self);
        let mut random = StdRng::seed_from_u64(seed);
        move |draft| {
            let drawn = &calls.requests[random.random_range(0..calls.requests.len())];
            draft.steps = drawn.steps.clone();
            draft.demands[drawn.steps.clone()].copy_from_slice(&drawn.demands);
            draft.delays[drawn.steps.clone()].copy_from_slice(&drawn.delays);
        }
    }
}

impl RecordedRequest {
    /// Demand of the request at the steps that are `included`, seconds.
    fn work(&self, included: impl Fn(usize) -> bool) -> f64 {
        let steps = self.steps.clone().zip(&self.demands);
        let served = steps.filter(|(step, demand)| **demand < DELAY_ONLY && included(*step));
        served.map(|(_, demand)| demand.as_secs()).sum()
    }
}

/// Turns the spans of one trace into steps.
#[derive(Default)]
struct Unfolding<'a> {
    nodes: &'a [TraceNode],
    services: &'a [String],
    shape: CallShape,
    demands: Vec<Nanos>,
    delays: Vec<Nanos>,
}

impl Unfolding<'_> {
    /// Adds the steps of a span that begins `delay` after another step is done, and returns the last of them.
    fn add_span(&mut self, index: usize, after: Option<usize>, delay: Nanos) -> usize {
        let node = &self.nodes[index];
        let mut now = node.start;
        let mut before = Vec::from_iter(after);
        let mut delay = delay;
        for (from, to, calls) in call_groups(self.nodes, index) {
            let part = self.add_step(node, std::mem::take(&mut before), from.saturating_sub(now), delay);
            delay = Nanos::ZERO;
            before.extend(calls.into_iter().map(|call| {
                let later = self.nodes[call].start.max(from).saturating_sub(from);
                self.add_span(call, Some(part), later)
            }));
            now = to;
        }
        self.add_step(node, before, node.end.saturating_sub(now), delay)
    }

    /// Adds a step of so much time and delay at the station of a node, and returns its index.
    fn add_step(&mut self, node: &TraceNode, after: Vec<usize>, time: Nanos, delay: Nanos) -> usize {
        let station = self.services.binary_search_by(|name| name.as_str().cmp(&node.span.service));
        self.shape.push((station.expect("all services are listed"), after));
        let is_network = node.span.kind == SpanKind::Client;
        let (demand, delay) = match (time, delay) {
            (Nanos::ZERO, Nanos::ZERO) => (SKIP, Nanos::ZERO),
            (Nanos::ZERO, delay) => (DELAY_ONLY, delay),
            (time, delay) if is_network => (DELAY_ONLY, Nanos(delay.0.saturating_add(time.0))),
            (time, delay) => (time, delay),
        };
        self.demands.push(demand);
        self.delays.push(delay);
        self.shape.len() - 1
    }
}

/// The calls that a span waits for, in groups that overlap: from the start of the first to the last end, within the
/// span.
fn call_groups(nodes: &[TraceNode], index: usize) -> Vec<(Nanos, Nanos, Vec<usize>)> {
    let node = &nodes[index];
    let mut groups: Vec<(Nanos, Nanos, Vec<usize>)> = Vec::new();
    for &child in node.children.iter().filter(|child| nodes[**child].is_waited_for) {
        let start = nodes[child].start.clamp(node.start, node.end);
        let end = nodes[child].end.clamp(start, node.end);
        match groups.last_mut() {
            Some((_, last, calls)) if start < *last => {
                *last = end.max(*last);
                calls.push(child);
            }
            _ => groups.push((start, end, vec![child])),
        }
    }
    groups
}

/// Reads the recorded calls of a scenario, if it has any, and adds a station for each service that the
/// scenario does not describe itself. The stations are then sorted like the services, because steps name
/// them by position.
pub(crate) fn attach(scenario: &mut Scenario, folder: &Path) -> Result<Option<Arc<RecordedCalls>>, String> {
    let Some(spec) = &scenario.call_graph else { return Ok(None) };
    if !scenario.steps.is_empty() {
        return Err("call_graph: its steps are those of the traces, without [[step]]".into());
    }
    let (recorded, services) = RecordedCalls::read(&folder.join(&spec.spans))?;
    if let Some(unknown) = scenario.stations.iter().find(|station| !services.contains(&station.name)) {
        let name = &unknown.name;
        let known = services.join(", ");
        return Err(format!("call_graph: no service has the name '{name}'; there are {known}"));
    }
    for name in &services {
        if !scenario.stations.iter().any(|station| station.name == *name) {
            scenario.stations.push(StationSpec::new(name, spec.workers, spec.discipline.clone()));
        }
    }
    scenario.stations.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(Arc::new(recorded)))
}
