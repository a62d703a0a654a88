//! The main loop.

use super::gate::Gate;
use super::line::Line;
use super::load::{DELAY_ONLY, RequestDraft, RequestEntry, SKIP};
use super::measure::{MeasurementWindow, Measures};
use super::meter::Meter;
use super::network::QueueingNetwork;
use super::passage::LoggedRequest;
use super::requests::{Drawn, Request, Requests, alone};
use super::station::Serving;
use super::timers::{NEVER, Timers};
use super::{InvalidSimulationError, SimulationError};
use discipline::serve::Item;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::ops::Range;
use units::Nanos;

/// Whose event a timer is.
#[derive(Debug, Clone, Copy)]
enum Owner {
    Worker { station: u32, worker: u32 },
    Wake { station: u32 },
    Interference { station: u32, worker: u32 },
    Line { station: u32 },
    Gate { gate: u32 },
    Source { gate: u32 },
}

/// A network with its load, ready to run.
pub struct SimulationEngine<'a> {
    network: &'a QueueingNetwork,
    /// Steps that wait for each step.
    followers: Vec<Vec<usize>>,
    owners: Vec<Owner>,
    timers: Timers,
    serving: Vec<Serving>,
    /// Items under way to each station.
    lines: Vec<Line>,
    first_line: usize,
    /// By worker that is disturbed: when next, while it is away.
    next_interference: Vec<u64>,
    first_interference: usize,
    gates: Vec<Gate>,
    first_gate: usize,
    requests: Requests,
    random: StdRng,
    demands: Vec<Nanos>,
    delays: Vec<Nanos>,
    over: Vec<u64>,
    /// Whether no step from here on waits for one before.
    cuts: Vec<bool>,
    now: u64,
    meter: Meter,
}

impl<'a> SimulationEngine<'a> {
    /// A network at rest with requests on their way. The seed is for disciplines that draw lots and for
    /// interference.
    pub fn new(
        network: &'a QueueingNetwork,
        entries: Vec<RequestEntry>,
        seed: u64,
    ) -> Result<Self, InvalidSimulationError> {
        network.check()?;
        if entries.is_empty() {
            return Err(InvalidSimulationError("at least one entry is needed".into()));
        }
        let mut random = StdRng::seed_from_u64(seed);
        let owners = owners(network, entries.len());
        let first = |wanted: fn(&Owner) -> bool| owners.iter().position(wanted).unwrap_or(owners.len());
        let is_interference = |owner: &&Owner| matches!(owner, Owner::Interference { .. });
        let steps = network.steps.len();
        Ok(Self {
            followers: followers(network),
            timers: Timers::new(owners.len()),
            serving: serving(network, &mut random),
            lines: vec![Line::default(); network.stations.len()],
            next_interference: vec![NEVER; owners.iter().filter(is_interference).count()],
            first_interference: first(|owner| matches!(owner, Owner::Interference { .. })),
            first_line: first(|owner| matches!(owner, Owner::Line { .. })),
            gates: entries.into_iter().map(Gate::new).collect::<Result<_, _>>()?,
            first_gate: first(|owner| matches!(owner, Owner::Gate { .. })),
            owners,
            requests: Requests::new(steps),
            random,
            demands: vec![Nanos::ZERO; steps],
            delays: network.steps.iter().map(|step| step.delay).collect(),
            over: vec![0; steps],
            cuts: cuts(network),
            now: 0,
            meter: Meter::new(MeasurementWindow::of(0), network),
            network,
        })
    }

    /// Plays until all requests of the window are complete and the next has arrived, or nothing more can happen.
    pub fn run(mut self, window: MeasurementWindow) -> Result<Measures, SimulationError> {
        self.meter = Meter::new(window, self.network);
        self.play(&window)?;
        Ok(self.finish().0)
    }

    /// The same; also gives every request of the window, in order of arrival. Memory grows with the run.
    pub fn run_logged(
        mut self,
        window: MeasurementWindow,
    ) -> Result<(Measures, Vec<LoggedRequest>), SimulationError> {
        self.meter = Meter::new(window, self.network).logging();
        self.play(&window)?;
        Ok(self.finish())
    }

    fn play(&mut self, window: &MeasurementWindow) -> Result<(), SimulationError> {
        self.begin()?;
        while !self.meter.is_finished() {
            let (timer, now) = self.timers.next();
            if now == NEVER {
                break;
            }
            self.now = now;
            self.meter.measures.events += 1;
            match self.owners[timer] {
                Owner::Worker { station, worker } => self.ring(station as usize, worker),
                Owner::Wake { station } => self.wake(station as usize),
                Owner::Interference { station, worker } => self.interfere(timer, station as usize, worker),
                Owner::Line { station } => self.deliver(station as usize),
                Owner::Gate { gate } => self.pass(gate as usize),
                Owner::Source { gate } => self.arrive(gate as usize)?,
            }
            if self.requests.inside() > window.inside_max {
                let (inside, arrived) = (self.requests.inside(), self.meter.arrived);
                return Err(SimulationError::Unbounded { inside, arrived });
            }
        }
        Ok(())
    }

    fn finish(mut self) -> (Measures, Vec<LoggedRequest>) {
        let passages = self.meter.take_log();
        let workers = self.network.stations.iter().map(|station| station.workers);
        let stations = workers.zip(self.serving.iter().map(|serving| serving.costs));
        (self.meter.finish(self.now, stations), passages)
    }

    fn begin(&mut self) -> Result<(), InvalidSimulationError> {
        for gate in 0..self.gates.len() {
            let at = self.gates[gate].next_arrival(0)?;
            self.timers.set(self.source_timer(gate), at);
        }
        for timer in 0..self.owners.len() {
            if let Owner::Interference { station, .. } = self.owners[timer] {
                let gap = self.gap(station as usize);
                self.timers.set(timer, gap);
            }
        }
        Ok(())
    }

    fn source_timer(&self, gate: usize) -> usize {
        self.first_gate + self.gates.len() + gate
    }

    /// A request arrives at an entry.
    #[inline]
    fn arrive(&mut self, gate: usize) -> Result<(), InvalidSimulationError> {
        let slot = self.draw(gate)?;
        self.gates[gate].came();
        let next = self.gates[gate].next_arrival(self.now)?;
        self.timers.set(self.source_timer(gate), next);
        if self.gates[gate].admit(slot) {
            self.let_in(gate, slot);
        }
        Ok(())
    }

    #[inline]
    fn draw(&mut self, gate: usize) -> Result<u32, InvalidSimulationError> {
        let all = 0..self.network.steps.len();
        let entry_delay = Nanos(self.gates[gate].delay);
        let (demands, delays) = (&mut self.demands[..], &mut self.delays[..]);
        let mut draft = RequestDraft { demands, delays, entry_delay, steps: all, class: 0 };
        self.gates[gate].draw.draw(&mut draft);
        let RequestDraft { steps, class, entry_delay, .. } = draft;
        self.check(&steps, class)?;
        let drawn = Drawn { steps: steps.clone(), demands: &self.demands, delays: &self.delays };
        let entered = self.now.saturating_add(entry_delay.0);
        let alone = alone(entered, &drawn, &self.network.steps, &mut self.over);
        if !alone.is_served {
            return Err(InvalidSimulationError("a request leaves out all steps".into()));
        }
        // As many gates and steps as fit into vectors that were given; far below 2³².
        #[allow(clippy::cast_possible_truncation)]
        let request = Request {
            arrival: self.now,
            gat: self.gates[gate].stamp(self.now),
            demand: alone.demand,
            ideal: alone.ideal,
            number: self.meter.arrived,
            delay: entry_delay.0,
            class,
            entry: gate as u32,
            open: steps.len() as u32,
            first: 0,
            step: steps.start as u32,
            visits: steps.len() as u32,
        };
        let slot = self.requests.insert(request, &drawn, &self.network.steps);
        self.meter.arrive(self.now, &request, slot);
        if self.meter.follows_steps {
            for step in steps.clone().filter(|step| self.demands[*step] < DELAY_ONLY) {
                let (station, item) = (self.network.steps[step].station, self.requests.item(slot, step));
                self.meter.expect(station, self.over[step], request.number, item);
            }
        }
        self.demands[steps.clone()].fill(Nanos::ZERO);
        let fixed = self.network.steps[steps.clone()].iter().map(|step| step.delay);
        self.delays[steps].iter_mut().zip(fixed).for_each(|(delay, fixed)| *delay = fixed);
        Ok(slot)
    }

    /// Whether what was drawn is a request.
    #[inline]
    fn check(&self, steps: &Range<usize>, class: u32) -> Result<(), InvalidSimulationError> {
        let classes = self.network.classes;
        if class >= classes {
            return Err(InvalidSimulationError(format!(
                "a request has class {class}; there are {classes}, from 0"
            )));
        }
        if *steps == (0..self.network.steps.len()) {
            return Ok(());
        }
        let is_closed = |at: usize| self.cuts.get(at) == Some(&true);
        if steps.is_empty() || !is_closed(steps.start) || !is_closed(steps.end) {
            return Err(InvalidSimulationError(format!(
                "steps {steps:?} of a request: others wait for them, or they for others"
            )));
        }
        Ok(())
    }

    /// A request leaves its entry.
    #[inline]
    fn let_in(&mut self, gate: usize, slot: u32) {
        let delay = self.requests.requests[slot as usize].delay;
        if delay == 0 {
            self.enter(slot);
        } else if let Some(next) = self.gates[gate].under_way.send(self.now.saturating_add(delay), slot) {
            self.timers.set(self.first_gate + gate, next);
        }
    }

    /// A request reaches the first steps after the delay of its entry.
    fn pass(&mut self, gate: usize) {
        let (slot, next) = self.gates[gate].under_way.receive();
        self.timers.set(self.first_gate + gate, next);
        if let Some(slot) = slot {
            self.enter(slot);
        }
    }

    #[inline]
    fn enter(&mut self, slot: u32) {
        for step in self.requests.steps(slot) {
            if self.network.steps[step].after.is_empty() {
                self.ready(slot, step);
            }
        }
    }

    /// All that a step waits for is over.
    #[inline]
    fn ready(&mut self, slot: u32, step: usize) {
        let item = self.requests.item(slot, step);
        let visit = &self.requests.visits[item as usize];
        if visit.demand == SKIP.0 {
            self.over(slot, step);
        } else if visit.delay == 0 {
            self.come(item, step);
        } else {
            let (at, station) = (self.now.saturating_add(visit.delay), self.network.steps[step].station);
            if let Some(next) = self.lines[station].send(at, item) {
                self.timers.set(self.first_line + station, next);
            }
        }
    }

    /// An item's network delay is over.
    fn deliver(&mut self, station: usize) {
        let (item, next) = self.lines[station].receive();
        self.timers.set(self.first_line + station, next);
        if let Some(item) = item {
            let (_, step) = self.requests.of(item);
            self.come(item, step);
        }
    }

    /// An item arrives at its station.
    #[inline]
    fn come(&mut self, item: u32, step: usize) {
        let station = self.network.steps[step].station;
        let (slot, _) = self.requests.of(item);
        if self.requests.visits[item as usize].demand == DELAY_ONLY.0 {
            self.over(slot, step);
            return;
        }
        let request = &self.requests.requests[slot as usize];
        let visit = &mut self.requests.visits[item as usize];
        visit.arrived = self.now;
        let known = Item { id: item, class: request.class, age: request.gat, size: visit.demand };
        self.meter.come(self.now, station, visit.demand);
        self.serving[station].arrive(self.now, known, &mut self.requests.visits, &mut self.timers);
    }

    /// A worker's timer rings.
    #[inline]
    fn ring(&mut self, station: usize, worker: u32) {
        let visits = &mut self.requests.visits;
        let Some(item) = self.serving[station].ring(self.now, worker, visits, &mut self.timers) else {
            return;
        };
        let (slot, step) = self.requests.of(item);
        let number = self.requests.requests[slot as usize].number;
        self.meter.leave(self.now, station, &self.requests.visits[item as usize], item, number);
        self.over(slot, step);
    }

    /// Time alone may put items on workers.
    fn wake(&mut self, station: usize) {
        self.serving[station].wake(self.now, &mut self.requests.visits, &mut self.timers);
    }

    /// A step of a request is over.
    #[inline]
    fn over(&mut self, slot: u32, step: usize) {
        for index in 0..self.followers[step].len() {
            let follower = self.followers[step][index];
            let item = self.requests.item(slot, follower) as usize;
            self.requests.visits[item].pending -= 1;
            if self.requests.visits[item].pending == 0 {
                self.ready(slot, follower);
            }
        }
        let request = &mut self.requests.requests[slot as usize];
        request.open -= 1;
        if request.open == 0 {
            self.complete(slot);
        }
    }

    #[inline]
    fn complete(&mut self, slot: u32) {
        let request = &self.requests.requests[slot as usize];
        let gate = request.entry as usize;
        self.meter.complete(self.now, request, slot);
        self.requests.remove(slot);
        let (next, later) = self.gates[gate].release(self.now);
        if later {
            let at = self.gates[gate].next_arrival(self.now).unwrap_or(NEVER);
            self.timers.set(self.source_timer(gate), at);
        }
        if let Some(next) = next {
            self.let_in(gate, next);
        }
    }

    fn interfere(&mut self, timer: usize, station: usize, worker: u32) {
        let Some(other) = self.network.stations[station].interference else { return };
        let (visits, timers) = (&mut self.requests.visits, &mut self.timers);
        if self.serving[station].back(self.now, worker, visits, timers) {
            timers.set(timer, self.next_interference[timer - self.first_interference]);
            return;
        }
        let comes_back = self.serving[station].interfere(self.now, worker, &other, visits, timers);
        let over = self.now.saturating_add(other.length.0);
        // Without requests to come there is nobody left to disturb, and the run ends.
        let next = if self.requests.inside() > 0 || self.is_fed() {
            over.saturating_add(self.gap(station))
        } else {
            NEVER
        };
        self.next_interference[timer - self.first_interference] = next;
        self.timers.set(timer, if comes_back { over } else { next });
    }

    /// Whether an arrival is to come.
    fn is_fed(&self) -> bool {
        (0..self.gates.len()).any(|gate| self.timers.at(self.source_timer(gate)) != NEVER)
    }

    /// An exponential gap, at least 1 ns.
    fn gap(&mut self, station: usize) -> u64 {
        let mean = self.network.stations[station].interference.map_or(0, |other| other.gap.0);
        let drawn = -(1.0 - self.random.random_range(0.0f64..1.0)).ln() * mean as f64;
        // A float beyond u64 becomes the largest.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let gap = (drawn as u64).max(1);
        gap
    }
}

/// Timers in the order in which they ring in the same instant.
fn owners(network: &QueueingNetwork, entries: usize) -> Vec<Owner> {
    let number = |count: usize| 0..u32::try_from(count).unwrap_or(u32::MAX);
    let stations = || number(network.stations.len()).rev();
    let workers = |station: u32| 0..network.stations[station as usize].workers;
    let mut owners = Vec::new();
    for station in stations() {
        owners.extend(workers(station).map(|worker| Owner::Worker { station, worker }));
    }
    let wakes = stations().filter(|station| wakes(network, *station as usize));
    owners.extend(wakes.map(|station| Owner::Wake { station }));
    for station in stations().filter(|station| network.stations[*station as usize].interference.is_some()) {
        owners.extend(workers(station).map(|worker| Owner::Interference { station, worker }));
    }
    owners.extend(number(network.stations.len()).map(|station| Owner::Line { station }));
    owners.extend(number(entries).map(|gate| Owner::Gate { gate }));
    owners.extend(number(entries).map(|gate| Owner::Source { gate }));
    owners
}

/// Whether a station needs a timer for what becomes able to be served by time alone.
fn wakes(network: &QueueingNetwork, station: usize) -> bool {
    network.stations[station].discipline.wakes()
}

/// Stations at rest; their timers are in the order of [`owners`].
fn serving(network: &QueueingNetwork, random: &mut StdRng) -> Vec<Serving> {
    let mut first_timer = 0;
    let mut wake_timer = network.stations.iter().map(|station| station.workers as usize).sum();
    let mut serving: Vec<Serving> = (network.stations.iter().rev())
        .map(|station| {
            let wakes = station.discipline.wakes();
            let at_rest = Serving::new(station, first_timer, wakes.then_some(wake_timer), random.random());
            first_timer += station.workers as usize;
            wake_timer += usize::from(wakes);
            at_rest
        })
        .collect();
    serving.reverse();
    serving
}

/// By step, and behind the last: whether none from there on waits for one before.
fn cuts(network: &QueueingNetwork) -> Vec<bool> {
    let mut cuts = vec![true; network.steps.len() + 1];
    for (index, step) in network.steps.iter().enumerate() {
        if let Some(earliest) = step.after.iter().min() {
            cuts[earliest + 1..=index].fill(false);
        }
    }
    cuts
}

fn followers(network: &QueueingNetwork) -> Vec<Vec<usize>> {
    let mut followers = vec![Vec::new(); network.steps.len()];
    for (index, step) in network.steps.iter().enumerate() {
        step.after.iter().for_each(|earlier| followers[*earlier].push(index));
    }
    followers
}
