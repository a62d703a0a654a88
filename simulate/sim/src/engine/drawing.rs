//! Drawing and validation of requests, and the completion of each request if it were alone.

use super::entry::{DELAY_ONLY, RequestDraft, SKIP};
use super::entry_point::EntryPoint;
use super::error::InvalidSimulationError;
use super::network::{NetworkStep, QueueingNetwork};
use super::requests::{ActiveRequest, DrawnSteps};
use std::ops::Range;
use units::Nanos;

/// Draws requests of a network, one at a time.
#[derive(Debug)]
pub(crate) struct RequestDrawer<'a> {
    network: &'a QueueingNetwork,
    /// Steps of the latest request.
    steps: Range<usize>,
    /// Demand of each step of the network; zero outside [`Self::steps`].
    demands: Vec<Nanos>,
    /// Delay before each step of the network; that of the network outside [`Self::steps`].
    delays: Vec<Nanos>,
    /// By step, the end in the latest request if it were alone, nanoseconds.
    ideal_ends: Vec<u64>,
    /// By step and behind the last: true if no step from here on waits for an earlier one.
    boundaries: Vec<bool>,
}

impl<'a> RequestDrawer<'a> {
    pub(crate) fn new(network: &'a QueueingNetwork) -> Self {
        let steps = network.steps.len();
        Self {
            network,
            steps: 0..0,
            demands: vec![Nanos::ZERO; steps],
            delays: network.steps.iter().map(|step| step.delay).collect(),
            ideal_ends: vec![0; steps],
            boundaries: boundaries(network),
        }
    }

    /// Draws the request number `number` at an entry. [`Self::drawn`] has its steps until [`Self::clear`] is
    /// called.
    #[inline]
    pub(crate) fn draw(
        &mut self,
        entry_point: &mut EntryPoint,
        entry: usize,
        now: u64,
        number: u64,
    ) -> Result<ActiveRequest, InvalidSimulationError> {
        let mut draft = RequestDraft {
            demands: &mut self.demands,
            delays: &mut self.delays,
            entry_delay: Nanos(entry_point.delay),
            steps: 0..self.network.steps.len(),
            class: 0,
            access: None,
        };
        entry_point.draw.draw(&mut draft);
        let RequestDraft { steps, class, entry_delay, access, .. } = draft;
        self.check(&steps, class)?;
        self.steps = steps.clone();
        let entered = now.saturating_add(entry_delay.0);
        let alone = self.run_alone(entered)?;
        // As many entries and steps as fit into vectors that were given; far below 2³².
        #[allow(clippy::cast_possible_truncation)]
        Ok(ActiveRequest {
            arrival: now,
            global_arrival: entry_point.clock(now),
            demand: alone.demand,
            ideal: alone.ideal,
            number,
            delay: entry_delay.0,
            class,
            access,
            entry: entry as u32,
            steps_left: steps.len() as u32,
            first_visit: 0,
            first_step: steps.start as u32,
            visit_count: steps.len() as u32,
        })
    }

    /// Returns the steps of the latest request.
    #[inline]
    pub(crate) fn drawn(&self) -> DrawnSteps<'_> {
        DrawnSteps { steps: self.steps.clone(), demands: &self.demands, delays: &self.delays }
    }

    /// Returns the end of a step of the latest request if the request were alone.
    #[inline]
    pub(crate) fn ideal_end(&self, step: usize) -> u64 {
        self.ideal_ends[step]
    }

    /// Resets the latest request, because entries rely on the initial values of a draft.
    #[inline]
    pub(crate) fn clear(&mut self) {
        let steps = self.steps.clone();
        self.demands[steps.clone()].fill(Nanos::ZERO);
        for (delay, step) in self.delays[steps.clone()].iter_mut().zip(&self.network.steps[steps]) {
            *delay = step.delay;
        }
    }

    /// Checks that the draft is a valid request.
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
        let is_boundary = |step: usize| self.boundaries.get(step) == Some(&true);
        if steps.is_empty() || !is_boundary(steps.start) || !is_boundary(steps.end) {
            return Err(InvalidSimulationError(format!(
                "steps {steps:?} of a request: others wait for them, or they for others"
            )));
        }
        Ok(())
    }

    /// Follows the latest request through its steps as if it were alone, from the instant at which it enters
    /// the first steps.
    #[inline]
    fn run_alone(&mut self, entered: u64) -> Result<RequestAlone, InvalidSimulationError> {
        let mut alone = RequestAlone { ideal: entered, demand: 0 };
        let mut is_served = false;
        for index in self.steps.clone() {
            let ready = ready_at(&self.network.steps[index], &self.ideal_ends).unwrap_or(entered);
            let takes = match self.demands[index] {
                SKIP => 0,
                DELAY_ONLY => self.delays[index].0,
                Nanos(demand) => {
                    is_served = true;
                    alone.demand = alone.demand.saturating_add(demand);
                    self.delays[index].0.saturating_add(demand)
                }
            };
            self.ideal_ends[index] = ready.saturating_add(takes);
            alone.ideal = alone.ideal.max(self.ideal_ends[index]);
        }
        if is_served {
            Ok(alone)
        } else {
            Err(InvalidSimulationError("a request leaves out all steps".into()))
        }
    }
}

/// Returns the end of the last of the steps that this one waits for; `None` if it waits for none.
#[inline]
fn ready_at(step: &NetworkStep, ends: &[u64]) -> Option<u64> {
    step.after.iter().map(|earlier| ends[*earlier]).max()
}

/// Outcome of a request that is alone.
#[derive(Debug, Clone, Copy)]
struct RequestAlone {
    /// Completion: the end of its longest path, nanoseconds.
    ideal: u64,
    /// Sum of its demands, nanoseconds.
    demand: u64,
}

/// Returns, by step and behind the last, true if no step from here on waits for an earlier one.
fn boundaries(network: &QueueingNetwork) -> Vec<bool> {
    let mut boundaries = vec![true; network.steps.len() + 1];
    for (index, step) in network.steps.iter().enumerate() {
        if let Some(earliest) = step.after.iter().min() {
            boundaries[earliest + 1..=index].fill(false);
        }
    }
    boundaries
}
