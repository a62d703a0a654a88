//! Fits a Markov-modulated process to a request stream, by the published procedure (thesis §4.2.4; the
//! text names the idea, its companion implementation the numbers).
//!
//! Requests are counted in windows of a second. States have fixed rates, from the largest count down, each
//! two standard deviations of a Poisson count from the ranges of its neighbours; a window belongs to the
//! highest state that it is in the range of. The chain moves in steps of 10 µs; a transition's probability
//! is how often it happened over the steps spent in its origin. Work is exponential with the mean of the
//! state's requests.
//!
//! What this loses, and why bounds from it are exceeded by real traffic: bursts shorter than a window,
//! batches (requests of one instant count as spread over the window), and sizes with tails heavier than
//! exponential. States in which no window falls are left out: they would be states of no traffic and no
//! exit. A stream of nearly constant rate has one state.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// The parameters of the fitting procedure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FitOptions {
    /// The length of the windows in which requests are counted.
    pub window: Nanos,
    /// The largest number of states, at least 1.
    pub states_max: usize,
    /// Half the width of a state's range, in standard deviations.
    pub deviations: f64,
    /// The time step of the Markov chain.
    pub step: Nanos,
}

impl FitOptions {
    /// The parameters of the published procedure.
    pub const PUBLISHED: Self =
        Self { window: Nanos(1_000_000_000), states_max: 10, deviations: 2.0, step: Nanos(10_000) };
}

/// A state of the fitted process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedState {
    /// The arrival rate in requests per second.
    pub rate: f64,
    /// The mean work of the state's requests, in the unit of the input; 0 if it has none.
    pub mean_work: f64,
    /// The share of the windows that belong to the state.
    pub share: f64,
    /// The probability of each state after the next step; the sum is 1.
    pub next: Vec<f64>,
}

/// A fitted Markov-modulated process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedProcess {
    /// The states in order of decreasing rate; there is at least one.
    pub states: Vec<FittedState>,
    /// The time step of the Markov chain.
    pub step: Nanos,
}

/// Counts the requests of a stream in windows and fits a process to them. Memory grows with the stream's duration, by
/// 16 bytes for each window.
#[derive(Debug, Clone)]
pub struct Fitter {
    options: FitOptions,
    origin: Option<Nanos>,
    windows: Vec<CountingWindow>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CountingWindow {
    count: u64,
    work: f64,
}

impl Fitter {
    /// Begins without requests.
    ///
    /// # Panics
    /// If the window or the step is zero, the step longer than the window, or no state is allowed.
    pub fn new(options: FitOptions) -> Self {
        assert!(options.step > Nanos::ZERO && options.step <= options.window, "steps within windows");
        assert!(options.states_max > 0 && options.deviations > 0.0, "at least one state");
        Self { options, origin: None, windows: Vec::new() }
    }

    /// Counts windows from `origin` instead of from the first request: one hour of a longer trace may begin with an idle
    /// time, and where windows begin decides how large their largest count is.
    #[must_use]
    pub fn from_origin(mut self, origin: Nanos) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Adds the next request in order of arrival. Work may have any unit.
    pub fn push(&mut self, arrival: Nanos, work: f64) {
        let origin = *self.origin.get_or_insert(arrival);
        let at = arrival.saturating_sub(origin).0 / self.options.window.0;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if at >= self.windows.len() {
            self.windows.resize(at + 1, CountingWindow::default());
        }
        self.windows[at].count += 1;
        self.windows[at].work += work;
    }

    /// Fits the process; `None` for an empty stream.
    pub fn finish(&self) -> Option<FittedProcess> {
        let levels = self.levels()?;
        let of_window: Vec<usize> = self.windows.iter().map(|w| self.level_of(&levels, w.count)).collect();
        let used: Vec<usize> = (0..levels.len()).filter(|level| of_window.contains(level)).collect();
        let position = |level: usize| used.iter().position(|&l| l == level).expect("used by this window");
        let path: Vec<usize> = of_window.into_iter().map(position).collect();
        let per_second = 1e9 / self.options.window.0 as f64;
        let state = |(index, &level): (usize, &usize)| {
            self.state(index, levels[level] * per_second, &path, used.len())
        };
        Some(FittedProcess { states: used.iter().enumerate().map(state).collect(), step: self.options.step })
    }

    /// Requests per window of every state, from the top: √λ = √(max + a²/4) − a/2, then √λ′ = √λ − a.
    fn levels(&self) -> Option<Vec<f64>> {
        let most = self.windows.iter().map(|w| w.count).max()? as f64;
        let least = self.windows.iter().map(|w| w.count).min()? as f64;
        let a = self.options.deviations;
        let top = (most + a * a / 4.0).sqrt() - a / 2.0;
        let below = (1..self.options.states_max).map(|k| top - a * k as f64);
        let inside = below.take_while(|&root| root > 0.0 && root * root >= least);
        Some(std::iter::once(top).chain(inside).map(|root| root * root).collect())
    }

    /// The highest level with count > λ − a√λ; the lowest takes what is below all.
    fn level_of(&self, levels: &[f64], count: u64) -> usize {
        let inside = |&level: &f64| count as f64 > level - self.options.deviations * level.sqrt();
        levels.iter().position(inside).unwrap_or(levels.len() - 1)
    }

    fn state(&self, index: usize, rate: f64, path: &[usize], states: usize) -> FittedState {
        let mut next = vec![0.0; states];
        let spent = path.iter().filter(|&&at| at == index).count() as f64;
        let steps = spent * self.options.window.0 as f64 / self.options.step.0 as f64;
        path.windows(2)
            .filter(|pair| pair[0] == index && pair[1] != index)
            .for_each(|pair| next[pair[1]] += 1.0 / steps);
        next[index] = 1.0 - next.iter().sum::<f64>();
        let mine = || self.windows.iter().zip(path).filter(|&(_, &at)| at == index).map(|(w, _)| w);
        let (count, work) = mine().fold((0, 0.0), |(n, sum), w| (n + w.count, sum + w.work));
        let mean_work = if count == 0 { 0.0 } else { work / count as f64 };
        FittedState { rate, mean_work, share: spent / path.len() as f64, next }
    }
}
