//! Main loop: events in order of time, and their effects on requests, stations and timers.

use super::collector::MeasureCollector;
use super::delay_line::DelayLine;
use super::drawing::RequestDrawer;
use super::entry::{DELAY_ONLY, RequestEntry, SKIP};
use super::entry_point::EntryPoint;
use super::error::{InvalidSimulationError, SimulationError};
use super::interference::InterferenceSchedule;
use super::logged_request::LoggedRequest;
use super::measures::Measures;
use super::network::QueueingNetwork;
use super::requests::RequestSlab;
use super::station::{StationState, stations_at_rest};
use super::timer_layout::{TimerLayout, TimerOwner};
use super::timers::{NEVER, Timers};
use super::window::MeasurementWindow;
use discipline::serve::QueueItem;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use units::Nanos;

/// A network with its load, ready to run.
pub struct SimulationEngine<'a> {
    network: &'a QueueingNetwork,
    /// The steps that wait for each step.
    followers: Vec<Vec<usize>>,
    layout: TimerLayout,
    timers: Timers,
    stations: Vec<StationState>,
    /// Items on their way to each station.
    delay_lines: Vec<DelayLine>,
    entry_points: Vec<EntryPoint>,
    drawer: RequestDrawer<'a>,
    requests: RequestSlab,
    interference: InterferenceSchedule,
    /// The time of the simulation, nanoseconds.
    now: u64,
    collector: MeasureCollector,
    /// Returns true if the run should end before it is complete.
    interrupted: &'a dyn Fn() -> bool,
}

/// Events between two checks for interruption.
const EVENTS_PER_LOOK: u64 = 1 << 16;

impl<'a> SimulationEngine<'a> {
    /// Creates a network at rest with its arrivals scheduled. The seed is for disciplines with random choices
    /// and for interference.
    ///
    /// # Errors
    /// When the network or an entry cannot be simulated.
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
        let layout = TimerLayout::new(network, entries.len());
        Ok(Self {
            followers: followers(network),
            timers: Timers::new(layout.len()),
            stations: stations_at_rest(network, &mut random),
            delay_lines: vec![DelayLine::default(); network.stations.len()],
            interference: InterferenceSchedule::new(layout.interferences().len(), random),
            entry_points: entries.into_iter().map(EntryPoint::new).collect::<Result<_, _>>()?,
            layout,
            requests: RequestSlab::new(network.steps.len()),
            drawer: RequestDrawer::new(network),
            now: 0,
            collector: MeasureCollector::new(MeasurementWindow::of_requests(0), network),
            network,
            interrupted: &|| false,
        })
    }

    /// Makes the run end with [`SimulationError::Interrupted`] soon after `interrupted` returns true.
    #[must_use]
    pub fn ended_by(mut self, interrupted: &'a dyn Fn() -> bool) -> Self {
        self.interrupted = interrupted;
        self
    }

    /// Plays until all requests of the window are complete and the next has arrived, or nothing more can happen.
    ///
    /// # Errors
    /// When a request cannot be simulated, more are inside than the window allows, or the run was interrupted.
    pub fn run(mut self, window: MeasurementWindow) -> Result<Measures, SimulationError> {
        self.collector = MeasureCollector::new(window, self.network);
        self.play(&window)?;
        Ok(self.finish().0)
    }

    /// Plays as [`Self::run`] does; also returns every request of the window, in order of arrival. Memory grows with
    /// the run.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_logged(
        mut self,
        window: MeasurementWindow,
    ) -> Result<(Measures, Vec<LoggedRequest>), SimulationError> {
        self.collector = MeasureCollector::new(window, self.network).recording();
        self.play(&window)?;
        Ok(self.finish())
    }

    fn play(&mut self, window: &MeasurementWindow) -> Result<(), SimulationError> {
        self.set_first_timers()?;
        while !self.collector.is_finished() {
            let (timer, now) = self.timers.next();
            if now == NEVER {
                break;
            }
            self.now = now;
            self.collector.measures.events += 1;
            match self.layout.owner(timer) {
                TimerOwner::Worker { station, worker } => self.on_worker_timer(station as usize, worker),
                TimerOwner::Wake { station } => self.on_wake(station as usize),
                TimerOwner::Interference { station, worker } => {
                    self.on_interference(timer, station as usize, worker);
                }
                TimerOwner::DelayLine { station } => self.on_delivery(station as usize),
                TimerOwner::EntryDelay { entry } => self.on_entry_delay_end(entry as usize),
                TimerOwner::Arrival { entry } => self.on_arrival(entry as usize)?,
            }
            if self.collector.measures.events.is_multiple_of(EVENTS_PER_LOOK) && (self.interrupted)() {
                return Err(SimulationError::Interrupted);
            }
            if self.requests.inside() > window.inside_max {
                let inside = self.requests.inside();
                let arrived = self.collector.arrived;
                return Err(SimulationError::Unbounded { inside, arrived });
            }
        }
        Ok(())
    }

    fn finish(mut self) -> (Measures, Vec<LoggedRequest>) {
        let requests = self.collector.take_log();
        let workers = self.network.stations.iter().map(|station| station.workers);
        let stations = workers.zip(self.stations.iter().map(|station| station.costs));
        (self.collector.finish(self.now, stations), requests)
    }

    fn set_first_timers(&mut self) -> Result<(), InvalidSimulationError> {
        for entry in 0..self.entry_points.len() {
            let first = self.entry_points[entry].next_arrival(0)?;
            self.timers.set(self.layout.arrival(entry), first);
        }
        for timer in self.layout.interferences() {
            if let TimerOwner::Interference { station, .. } = self.layout.owner(timer) {
                let gap = self.draw_interference_gap(station as usize);
                self.timers.set(timer, gap);
            }
        }
        Ok(())
    }

    /// A request arrives at an entry.
    #[inline]
    fn on_arrival(&mut self, entry: usize) -> Result<(), InvalidSimulationError> {
        let slot = self.draw_request(entry)?;
        self.entry_points[entry].on_arrival();
        let next = self.entry_points[entry].next_arrival(self.now)?;
        self.timers.set(self.layout.arrival(entry), next);
        if self.entry_points[entry].admit(slot) {
            self.leave_entry(entry, slot);
        }
        Ok(())
    }

    /// Draws the request that arrives at an entry now and returns its slot.
    #[inline]
    fn draw_request(&mut self, entry: usize) -> Result<u32, InvalidSimulationError> {
        let number = self.collector.arrived;
        let request = self.drawer.draw(&mut self.entry_points[entry], entry, self.now, number)?;
        let drawn = self.drawer.drawn();
        let slot = self.requests.insert(request, &drawn, &self.network.steps);
        self.collector.arrive(self.now, &request, slot);
        if self.collector.follows_steps {
            for step in drawn.steps.clone().filter(|step| drawn.demands[*step] < DELAY_ONLY) {
                let station = self.network.steps[step].station;
                let item = self.requests.item(slot, step);
                self.collector.expect_departure(station, self.drawer.ideal_end(step), number, item);
            }
        }
        self.drawer.clear();
        Ok(slot)
    }

    /// A request leaves its entry.
    #[inline]
    fn leave_entry(&mut self, entry: usize, slot: u32) {
        let delay = self.requests.requests[slot as usize].delay;
        if delay == 0 {
            self.enter_network(slot);
            return;
        }
        let reaches = self.now.saturating_add(delay);
        if let Some(next) = self.entry_points[entry].under_way.send(reaches, slot) {
            self.timers.set(self.layout.entry_delay(entry), next);
        }
    }

    /// A request reaches the first steps after the delay of its entry.
    fn on_entry_delay_end(&mut self, entry: usize) {
        let (slot, next) = self.entry_points[entry].under_way.receive();
        self.timers.set(self.layout.entry_delay(entry), next);
        if let Some(slot) = slot {
            self.enter_network(slot);
        }
    }

    #[inline]
    fn enter_network(&mut self, slot: u32) {
        for step in self.requests.steps(slot) {
            if self.network.steps[step].after.is_empty() {
                self.step_ready(slot, step);
            }
        }
    }

    /// All steps that a step waits for are done.
    #[inline]
    fn step_ready(&mut self, slot: u32, step: usize) {
        let item = self.requests.item(slot, step);
        let visit = &self.requests.visits[item as usize];
        if visit.demand == SKIP.0 {
            self.step_done(slot, step);
        } else if visit.delay == 0 {
            self.arrive_at_station(item, step);
        } else {
            let arrives = self.now.saturating_add(visit.delay);
            let station = self.network.steps[step].station;
            if let Some(next) = self.delay_lines[station].send(arrives, item) {
                self.timers.set(self.layout.delay_line(station), next);
            }
        }
    }

    /// The network delay of an item is over.
    fn on_delivery(&mut self, station: usize) {
        let (item, next) = self.delay_lines[station].receive();
        self.timers.set(self.layout.delay_line(station), next);
        if let Some(item) = item {
            let (_, step) = self.requests.slot_and_step(item);
            self.arrive_at_station(item, step);
        }
    }

    #[inline]
    fn arrive_at_station(&mut self, item: u32, step: usize) {
        let station = self.network.steps[step].station;
        let (slot, _) = self.requests.slot_and_step(item);
        if self.requests.visits[item as usize].demand == DELAY_ONLY.0 {
            self.step_done(slot, step);
            return;
        }
        let request = &self.requests.requests[slot as usize];
        let visit = &mut self.requests.visits[item as usize];
        visit.arrived = self.now;
        let known = QueueItem {
            id: item,
            class: request.class,
            age: request.global_arrival,
            size: visit.demand,
            access: request.access,
        };
        self.collector.arrive_at_station(self.now, station, visit.demand);
        self.stations[station].on_arrival(self.now, known, &mut self.requests.visits, &mut self.timers);
    }

    /// The timer of a worker rings: its item is done, or the slice that the item has is over.
    #[inline]
    fn on_worker_timer(&mut self, station: usize, worker: u32) {
        let visits = &mut self.requests.visits;
        let state = &mut self.stations[station];
        let Some(item) = state.on_worker_timer(self.now, worker, visits, &mut self.timers) else {
            return;
        };
        let (slot, step) = self.requests.slot_and_step(item);
        let number = self.requests.requests[slot as usize].number;
        let visit = &self.requests.visits[item as usize];
        self.collector.leave_station(self.now, station, visit, item, number);
        self.step_done(slot, step);
    }

    /// Lets a station react to the passage of time alone.
    fn on_wake(&mut self, station: usize) {
        self.stations[station].on_wake(self.now, &mut self.requests.visits, &mut self.timers);
    }

    /// A step of a request is done, or left out.
    #[inline]
    fn step_done(&mut self, slot: u32, step: usize) {
        for index in 0..self.followers[step].len() {
            let follower = self.followers[step][index];
            let item = self.requests.item(slot, follower) as usize;
            self.requests.visits[item].pending -= 1;
            if self.requests.visits[item].pending == 0 {
                self.step_ready(slot, follower);
            }
        }
        let request = &mut self.requests.requests[slot as usize];
        request.steps_left -= 1;
        if request.steps_left == 0 {
            self.complete(slot);
        }
    }

    #[inline]
    fn complete(&mut self, slot: u32) {
        let request = &self.requests.requests[slot as usize];
        let entry = request.entry as usize;
        self.collector.complete(self.now, request, slot);
        self.requests.remove(slot);
        let (next, arrival_changed) = self.entry_points[entry].on_completion(self.now);
        if arrival_changed {
            let arrival = self.entry_points[entry].next_arrival(self.now).unwrap_or(NEVER);
            self.timers.set(self.layout.arrival(entry), arrival);
        }
        if let Some(next) = next {
            self.leave_entry(entry, next);
        }
    }

    /// Other work takes a worker away, or gives it back.
    fn on_interference(&mut self, timer: usize, station: usize, worker: u32) {
        let Some(other) = self.network.stations[station].interference else { return };
        let visits = &mut self.requests.visits;
        let timers = &mut self.timers;
        let disturbed = self.layout.disturbed_worker(timer);
        if self.stations[station].end_interference(self.now, worker, visits, timers) {
            timers.set(timer, self.interference.next(disturbed));
            return;
        }
        let comes_back = self.stations[station].begin_interference(self.now, worker, &other, visits, timers);
        let end = self.now.saturating_add(other.length.0);
        // Without remaining requests, interference alone would keep the run going for ever.
        let next = if self.requests.inside() > 0 || self.expects_arrivals() {
            end.saturating_add(self.draw_interference_gap(station))
        } else {
            NEVER
        };
        self.interference.set_next(disturbed, next);
        self.timers.set(timer, if comes_back { end } else { next });
    }

    fn expects_arrivals(&self) -> bool {
        (0..self.entry_points.len()).any(|entry| self.timers.get(self.layout.arrival(entry)) != NEVER)
    }

    fn draw_interference_gap(&mut self, station: usize) -> u64 {
        let mean = self.network.stations[station].interference.map_or(Nanos::ZERO, |other| other.gap);
        self.interference.draw_gap(mean)
    }
}

/// The steps that wait for each step.
fn followers(network: &QueueingNetwork) -> Vec<Vec<usize>> {
    let mut followers = vec![Vec::new(); network.steps.len()];
    for (index, step) in network.steps.iter().enumerate() {
        step.after.iter().for_each(|earlier| followers[*earlier].push(index));
    }
    followers
}
