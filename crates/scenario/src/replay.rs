//! Call graphs from recorded traces: services become stations, and every request does what a recorded one did.
//!
//! A request draws one of the recorded traces, so that the self times and calls of one request keep together as they
//! were found. Of each span, the time without calls is cut into parts, which become steps at the station of its
//! service: one before the first group of calls, one after each group. The calls of a group overlap in the record;
//! they begin when the part before them is over, each later by what it was later than the first in the record. The
//! part after a group begins when all calls of the group are over. A client's view of a call becomes network delay.
//! Alone in the system, a request so has the latency that was recorded, where children lie within their parents.
//!
//! Traces whose steps wait for each other in the same way share them in the network.
//!
//! What a record cannot say: self time contains whatever the service waited for itself (processors, locks, databases
//! without spans), so that work is overestimated, the more the higher the load of the record was; a thread that waits
//! for its calls is no worker here. Calls that nobody waits for are left out.

use crate::file::{Scenario, StationSpec};
use crate::text::Text;
use callgraph::{Counts, Errors, Kind, Node, Outliving, Trace};
use discipline::serve;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;
use sim::engine::{DELAY_ONLY, NetworkStep, RequestDraft, SKIP};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Nanos;

type Result<T> = std::result::Result<T, String>;

/// Where the call graph comes from, and what its services have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallGraphSpec {
    spans: PathBuf,
    workers: u32,
    discipline: Text<serve::Kind>,
}

/// Recorded requests.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// Of all shapes, one after the other.
    steps: Vec<NetworkStep>,
    shapes: BTreeMap<Shape, Range<usize>>,
    requests: Vec<Recorded>,
}

/// For each step its station and what it waits for, counted from the first.
type Shape = Vec<(usize, Vec<usize>)>;

#[derive(Debug)]
struct Recorded {
    steps: Range<usize>,
    demands: Vec<Nanos>,
    delays: Vec<Nanos>,
}

impl Recording {
    /// Reads a file of spans; gives the names of the services, which the stations of its steps count.
    pub(crate) fn read(path: &Path) -> Result<(Self, Vec<String>)> {
        let mut counts = Counts::default();
        let mut traces = Vec::new();
        let take = |spans| traces.push(Trace::new(spans, Outliving::Clipped, &mut counts));
        callgraph::traces(path, None, Errors::Fatal, take).map_err(|error| error.to_string())?;
        let nodes = traces.iter().flat_map(Trace::nodes);
        let mut names: Vec<String> = nodes.map(|node| node.span.service.to_string()).collect();
        names.sort_unstable();
        names.dedup();
        let mut recording = Self::default();
        traces.iter().for_each(|trace| recording.push(trace, &names));
        if recording.requests.is_empty() {
            return Err(format!("{}: expected traces with an entry span that takes time", path.display()));
        }
        Ok((recording, names))
    }

    fn push(&mut self, trace: &Trace, services: &[String]) {
        let Some(entry) = trace.entry() else { return };
        let mut unfolding = Unfolding { nodes: trace.nodes(), services, ..Unfolding::default() };
        unfolding.span(entry, None, Nanos::ZERO);
        let Unfolding { shape, demands, delays, .. } = unfolding;
        if demands.iter().all(|demand| *demand >= DELAY_ONLY) {
            return;
        }
        let steps = self.shape(shape);
        self.requests.push(Recorded { steps, demands, delays });
    }

    /// The steps of a shape; new ones for a new shape.
    fn shape(&mut self, shape: Shape) -> Range<usize> {
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

    /// Steps of all shapes.
    pub(crate) fn steps(&self) -> &[NetworkStep] {
        &self.steps
    }

    /// Mean demand of a request at these steps, seconds.
    pub(crate) fn work(&self, at: impl Fn(usize) -> bool) -> f64 {
        let of = |request: &Recorded| -> f64 {
            let steps = request.steps.clone().zip(&request.demands);
            let served = steps.filter(|(step, demand)| **demand < DELAY_ONLY && at(*step));
            served.map(|(_, demand)| demand.as_secs()).sum()
        };
        self.requests.iter().map(of).sum::<f64>() / self.requests.len() as f64
    }

    /// Draws recorded requests with equal chances.
    pub(crate) fn drawer(self: &Arc<Self>, seed: u64) -> impl FnMut(&mut RequestDraft<'_>) + use<> {
        let (recording, mut random) = (Arc::clone(self), StdRng::seed_from_u64(seed));
        move |draft| {
            let drawn = &recording.requests[random.random_range(0..recording.requests.len())];
            draft.steps = drawn.steps.clone();
            draft.demands[drawn.steps.clone()].copy_from_slice(&drawn.demands);
            draft.delays[drawn.steps.clone()].copy_from_slice(&drawn.delays);
        }
    }
}

/// Turns the spans of one trace into steps.
#[derive(Default)]
struct Unfolding<'a> {
    nodes: &'a [Node],
    services: &'a [String],
    shape: Shape,
    demands: Vec<Nanos>,
    delays: Vec<Nanos>,
}

impl Unfolding<'_> {
    /// The steps of a span that begins `delay` after another step is over; the last of them.
    fn span(&mut self, index: usize, after: Option<usize>, delay: Nanos) -> usize {
        let node = &self.nodes[index];
        let (mut at, mut before, mut delay) = (node.start, Vec::from_iter(after), delay);
        for (from, to, calls) in groups(self.nodes, index) {
            let part = self.part(node, std::mem::take(&mut before), from.saturating_sub(at), delay);
            delay = Nanos::ZERO;
            before.extend(calls.into_iter().map(|call| {
                let later = self.nodes[call].start.max(from).saturating_sub(from);
                self.span(call, Some(part), later)
            }));
            at = to;
        }
        self.part(node, before, node.end.saturating_sub(at), delay)
    }

    /// One step.
    fn part(&mut self, node: &Node, after: Vec<usize>, time: Nanos, delay: Nanos) -> usize {
        let station = self.services.binary_search_by(|name| name.as_str().cmp(&node.span.service));
        self.shape.push((station.expect("all services are listed"), after));
        let is_network = node.span.kind == Kind::Client;
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
fn groups(nodes: &[Node], index: usize) -> Vec<(Nanos, Nanos, Vec<usize>)> {
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

/// Adds a station for each service that the scenario does not describe itself, and gives what is replayed. The steps
/// of the recording then count the stations of the scenario.
pub(crate) fn attach(scenario: &mut Scenario, folder: &Path) -> Result<Option<Arc<Recording>>> {
    let Some(spec) = &scenario.call_graph else { return Ok(None) };
    if !scenario.steps.is_empty() {
        return Err("call_graph: its steps are those of the traces, without [[step]]".into());
    }
    let (recording, services) = Recording::read(&folder.join(&spec.spans))?;
    if let Some(unknown) = scenario.stations.iter().find(|station| !services.contains(&station.name)) {
        let (name, known) = (&unknown.name, services.join(", "));
        return Err(format!("call_graph: no service has the name '{name}'; there are {known}"));
    }
    for name in &services {
        if !scenario.stations.iter().any(|station| station.name == *name) {
            scenario.stations.push(StationSpec::new(name, spec.workers, spec.discipline.clone()));
        }
    }
    scenario.stations.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(Arc::new(recording)))
}
