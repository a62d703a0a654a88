//! An experiment from its beginning to its end: observe, switch, wait, compare, until it is decided.

use crate::latency_window::{LatencyWindow, PeriodResult, ResourceUse};
use crate::linux::{EnergyMeter, EnergyReading, POWERCAP, cpu_time_ns, is_alive};
use crate::open_sockets::SocketTotals;
use crate::setting::{PlannedChange, ProcessIdentity, Setting, SettingStore};
use crate::switch::{JournalFile, KnobSwitch, UndoOutcome, UndoneChange};
use crate::tally::RoundTally;
use machine::clock::now;
use model::OperationError;
use observe::{IntendedWaits, ObservationSettings, ProbeSettings, RequestPoint};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether to stop.
const POLL: Duration = Duration::from_millis(20);
/// How often threads that have begun get what the others have.
const KEEP_ON_INTERVAL: Duration = Duration::from_millis(100);
/// How often energy counters are looked at during a period: what happens to them unseen is what this time may hold.
const ENERGY_INTERVAL: Duration = Duration::from_secs(1);
/// How long the end of a process may take to be seen after that of its connections.
const PROCESS_END_MAX: Duration = Duration::from_millis(100);
/// How long a load generator gets to begin.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(10);
/// How long an observation lasts at most: it ends with the experiment.
const OBSERVATION_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// How an experiment is done.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentSettings {
    /// The ports of the server.
    pub ports: BTreeSet<u16>,
    /// The processes of the server, which has ended when one of them has; without them, CPU time is not known and the server's
    /// end is not noticed.
    pub processes: Vec<ProcessIdentity>,
    /// The percentile that is tested, in percent.
    pub percent: f64,
    /// How long a period is.
    pub period: Duration,
    /// How long is waited after a switch: requests that arrive in this time do not count.
    pub guard: Duration,
    /// How long is waited at the end of a period before anything is switched, so that what has arrived is answered: for a
    /// load that is started anew.
    pub drain: Duration,
    /// The confidence of what is said about all values together.
    pub confidence: f64,
    /// The largest number of rounds.
    pub rounds_max: usize,
    /// Of the order of periods.
    pub seed: u64,
    /// Room for events in the kernel.
    pub ring_bytes: u32,
}

/// What sets a knob to a value.
pub struct KnobArm<'a> {
    /// The value as the user wrote it.
    pub label: String,
    /// The changes that it takes now: threads come and go.
    pub plan: Box<dyn Fn() -> Result<Vec<PlannedChange>, OperationError> + Sync + 'a>,
}

impl std::fmt::Debug for KnobArm<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnobArm").field("label", &self.label).finish_non_exhaustive()
    }
}

/// Why an experiment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentEnd {
    /// Something was shown about each value.
    Decided,
    /// All rounds were played.
    RoundsUsed,
    /// The caller stopped it.
    Stopped,
    /// The server has ended, or one of its processes.
    ServerEnded,
    /// There is no more load.
    LoadEnded,
    /// Somebody else changed what the knob sets.
    ChangedByOthers,
    /// What the knob sets could not be undone after a period; whether it could at the end, the report says.
    UndoFailed,
    /// An error, which the report has.
    Failed,
}

impl ExperimentSettings {
    /// How long rounds of a period without the knob and one with each of its values take.
    pub fn duration(&self, rounds: usize, values: usize) -> Duration {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let round = (self.period + self.guard + self.drain).saturating_mul(count(values + 1)) + self.guard;
        round.saturating_mul(count(rounds))
    }
}

/// Whoever has an experiment done.
pub trait ExperimentHost {
    /// Whether there is load; without, the experiment ends.
    fn has_load(&mut self) -> bool;

    /// Whether anybody still wants to know the result; if not, the experiment is stopped.
    fn is_wanted(&mut self) -> bool {
        true
    }

    /// Is told before a period of which arm it is, zero for the knob off, when its settings are made: the load may be
    /// another one.
    ///
    /// # Errors
    /// When the load cannot be had.
    fn begin_period(&mut self, _: usize) -> Result<(), OperationError> {
        Ok(())
    }

    /// Is told what there is after each round.
    fn round_done(&mut self, progress: ExperimentProgress);
}

/// How far an experiment is, after each round.
#[derive(Debug, Clone, Copy)]
pub struct ExperimentProgress<'a> {
    /// What there is to compare.
    pub tally: &'a RoundTally,
    /// How long it takes at most from now.
    pub left_max: Duration,
}

/// What an experiment came to.
#[derive(Debug)]
pub struct ExperimentReport {
    /// The rounds that were completed.
    pub tally: RoundTally,
    /// What was measured of a round that was not completed, by arm; without that of arms whose period was not. Empty where all
    /// rounds were.
    pub unfinished_round: Vec<Option<PeriodResult>>,
    /// Why the experiment ended.
    pub end: ExperimentEnd,
    /// The processes of the server that had ended.
    pub ended_processes: Vec<ProcessIdentity>,
    /// What failed after something had been measured.
    pub failure: Option<OperationError>,
    /// How long it took.
    pub duration: Duration,
    /// Rounds that did not count because in one of their periods nothing arrived.
    pub void_rounds: u64,
    /// Requests that were answered after their period was judged.
    pub late: u64,
    /// Requests that were not seen to be answered.
    pub unanswered: u64,
    /// Events that the kernel could not report.
    pub lost_events: u64,
    /// Periods of complete rounds whose energy is not known.
    pub periods_without_energy: u64,
    /// Why the energy of those periods is not known; `None`: that of all is.
    pub energy_unknown: Option<String>,
    /// What the kernel made different from what was asked for.
    pub different: BTreeSet<String>,
    /// Settings that could not be undone, or were left alone.
    pub not_undone: Vec<UndoneChange>,
    /// What was done with open sockets; `None` where the knob is about something else.
    pub sockets: Option<SocketTotals>,
}

/// Plays rounds until each value is judged, the rounds are used up, or `stop` is set. Whatever comes, the knob is off
/// afterwards, or the report or error says what is not.
///
/// # Errors
/// When the server cannot be observed, the knob cannot be set or nothing arrives, before a period was completed: afterwards
/// the report has the error, except that of an observation that fails.
pub fn run<S: SettingStore + Send, J: JournalFile + Send>(
    settings: &ExperimentSettings,
    arms: &[KnobArm],
    switch: &mut KnobSwitch<S, J>,
    stop: &AtomicBool,
    host: &mut dyn ExperimentHost,
) -> Result<ExperimentReport, OperationError> {
    let window = Mutex::new(LatencyWindow::default());
    let ended = AtomicBool::new(false);
    let observation = observation_settings(settings);
    let (attached, is_attached) = mpsc::channel();
    thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let _ended = SetOnDrop(&ended);
            observe::observe(
                &observation,
                &ended,
                move || attached.send(()).unwrap_or_default(),
                &mut |request| {
                    lock(&window).add(request.at(RequestPoint::Stack), request.latency_from_stack());
                },
            )
        });
        let played = is_attached.recv().ok().map(|()| {
            let _ended = SetOnDrop(&ended);
            let mut play = RoundPlay::new(settings, arms, switch, host, [stop, &ended], &window);
            let end = play.all();
            let unfinished = play.switch.off();
            play.keep(unfinished);
            play.report(end)
        });
        let observed = observer.join().expect("observing does not panic");
        let mut report = joined(observed.map(|seen| (seen.counts.unanswered, seen.lost_events)), played)?;
        report.late = lock(&window).late();
        Ok(report)
    })
}

/// Sets a flag at the end of a block, also when something in it panics: whoever waits for the flag would wait for ever.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What was played with the numbers of unanswered requests and lost events that were observed. An error of either keeps
/// what the other one says about settings that are not undone.
fn joined(
    observed: Result<(u64, u64), OperationError>,
    played: Option<Result<ExperimentReport, OperationError>>,
) -> Result<ExperimentReport, OperationError> {
    match (observed, played) {
        (Ok((unanswered, lost_events)), Some(played)) => {
            played.map(|report| ExperimentReport { unanswered, lost_events, ..report })
        }
        (Ok(_), None) => Err(OperationError::machine("observing ended before it began")),
        (Err(error), None) => Err(error),
        (Err(error), Some(Ok(report))) => Err(with_not_undone(error, &report.not_undone)),
        (Err(mut error), Some(Err(played))) => {
            error.message += &format!("; and {}", played.message);
            Err(error)
        }
    }
}

/// An error, with what could not be undone besides.
fn with_not_undone(mut error: OperationError, not_undone: &[UndoneChange]) -> OperationError {
    for undone in not_undone {
        error.message += &match &undone.outcome {
            UndoOutcome::LeftAlone(now) => {
                format!("; {} was not restored: another program changed it to {now}", undone.change.setting)
            }
            UndoOutcome::Failed(failed) => {
                format!("; {} was not undone: {}", undone.change.setting, failed.message)
            }
            UndoOutcome::Restored
            | UndoOutcome::SocketsTakenBack(_)
            | UndoOutcome::Unchanged
            | UndoOutcome::Gone => String::new(),
        };
    }
    error
}

fn observation_settings(settings: &ExperimentSettings) -> ObservationSettings {
    let probes =
        ProbeSettings { ring_bytes: settings.ring_bytes, ..ProbeSettings::of_ports(settings.ports.clone()) };
    ObservationSettings {
        probes,
        duration: OBSERVATION_MAX,
        cost_duration: Duration::ZERO,
        intended_waits: IntendedWaits::default(),
        cost_limit: None,
    }
}

/// Sums and lists stay right whoever panics.
fn lock(window: &Mutex<LatencyWindow>) -> MutexGuard<'_, LatencyWindow> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A period that has passed.
struct PlayedPeriod {
    arm: usize,
    begin: u64,
    end: u64,
    used: ResourceUse,
}

/// What has been used until an instant.
#[derive(Debug, Clone, Copy)]
struct UsedUntil {
    cpu_ns: Option<u64>,
    energy: Option<EnergyReading>,
}

impl UsedUntil {
    /// What was used since an earlier instant.
    fn since(self, earlier: Self) -> ResourceUse {
        let cpu = earlier.cpu_ns.zip(self.cpu_ns).map(|(earlier, now)| now.saturating_sub(earlier));
        let energy = earlier.energy.zip(self.energy).and_then(|(earlier, now)| now.since(earlier));
        ResourceUse { cpu_ns: cpu, energy_uj: energy }
    }
}

/// Rounds while they are played.
struct RoundPlay<'a, S: SettingStore, J: JournalFile> {
    settings: &'a ExperimentSettings,
    arms: &'a [KnobArm<'a>],
    switch: &'a mut KnobSwitch<S, J>,
    host: &'a mut dyn ExperimentHost,
    stop: &'a AtomicBool,
    observation_ended: &'a AtomicBool,
    window: &'a Mutex<LatencyWindow>,
    tally: RoundTally,
    random: StdRng,
    /// What was measured of the round that did not come to its end, by arm.
    unfinished_round: Vec<Option<PeriodResult>>,
    /// Otherwise why energy is not known.
    energy: Result<EnergyMeter, String>,
    /// The processes of the server that were seen to have ended.
    ended_processes: Vec<ProcessIdentity>,
    begun: Instant,
    void_rounds: u64,
    /// The arms in whose periods of the last round nothing arrived.
    silent: Vec<usize>,
    different: BTreeSet<String>,
    /// By setting, because what failed is tried again: the last outcome counts.
    not_undone: BTreeMap<Setting, UndoneChange>,
}

impl<'a, S: SettingStore, J: JournalFile> RoundPlay<'a, S, J> {
    fn new(
        settings: &'a ExperimentSettings,
        arms: &'a [KnobArm<'a>],
        switch: &'a mut KnobSwitch<S, J>,
        host: &'a mut dyn ExperimentHost,
        [stop, observation_ended]: [&'a AtomicBool; 2],
        window: &'a Mutex<LatencyWindow>,
    ) -> Self {
        Self {
            settings,
            arms,
            switch,
            host,
            stop,
            observation_ended,
            window,
            tally: RoundTally::new(arms.len(), settings.confidence),
            random: StdRng::seed_from_u64(settings.seed),
            unfinished_round: Vec::new(),
            energy: EnergyMeter::open(Path::new(POWERCAP), now()),
            ended_processes: Vec::new(),
            begun: Instant::now(),
            void_rounds: 0,
            silent: Vec::new(),
            different: BTreeSet::new(),
            not_undone: BTreeMap::new(),
        }
    }

    fn all(&mut self) -> Result<ExperimentEnd, OperationError> {
        let begun = Instant::now();
        while !lock(self.window).has_requests() {
            if let Some(end) = self.wait(POLL)? {
                return Ok(end);
            }
            if begun.elapsed() > FIRST_REQUEST_MAX {
                return Err(self.nothing_arrives(FIRST_REQUEST_MAX));
            }
        }
        for played in 1..=self.settings.rounds_max {
            if let Some(end) = self.round()? {
                return Ok(end);
            }
            if self.tally.rounds().is_empty() {
                if begun.elapsed() > FIRST_REQUEST_MAX {
                    return Err(self.nothing_arrives(self.settings.period));
                }
                // A server that stands still for a period goes on in another.
                continue;
            }
            let left_max = self.settings.duration(self.settings.rounds_max - played, self.arms.len());
            self.host.round_done(ExperimentProgress { tally: &self.tally, left_max });
            if self.tally.is_decided() {
                return Ok(ExperimentEnd::Decided);
            }
        }
        Ok(ExperimentEnd::RoundsUsed)
    }

    fn nothing_arrives(&self, waited: Duration) -> OperationError {
        let ports: Vec<String> = self.settings.ports.iter().map(u16::to_string).collect();
        let waited = waited.as_secs_f64();
        let label = |arm: &usize| match arm {
            0 => "the knob off",
            value => self.arms[value - 1].label.as_str(),
        };
        let silent: Vec<&str> = self.silent.iter().map(label).collect();
        let with = if silent.is_empty() { String::new() } else { format!(" with {}", silent.join(", ")) };
        let message = format_args!("no request arrived at port {} in {waited} s{with}", ports.join(","));
        OperationError::machine(message).hint("send load all the time, with --load-command or by yourself")
    }

    /// Plays a round: every arm in an order that chance decides, then off.
    fn round(&mut self) -> Result<Option<ExperimentEnd>, OperationError> {
        let mut periods = Vec::new();
        let end = self.all_periods(&mut periods);
        let results = self.summed_up(periods);
        if !matches!(end, Ok(None)) {
            let has_any = results.iter().any(Option::is_some);
            self.unfinished_round = if has_any { results } else { Vec::new() };
            return end;
        }
        self.silent = (0..results.len()).filter(|arm| results[*arm].is_none()).collect();
        match results.into_iter().collect::<Option<Vec<PeriodResult>>>() {
            Some(round) => self.tally.add(round),
            None => self.void_rounds += 1,
        }
        Ok(None)
    }

    /// Plays a period of every arm, and notes those that were completed.
    fn all_periods(
        &mut self,
        periods: &mut Vec<PlayedPeriod>,
    ) -> Result<Option<ExperimentEnd>, OperationError> {
        let mut order: Vec<usize> = (0..=self.arms.len()).collect();
        order.shuffle(&mut self.random);
        for arm in order {
            match self.period(arm, periods) {
                Ok(None) => {}
                // What belongs to a process that has ended cannot be set.
                Err(_) if self.has_server_ended_by_now() => return Ok(Some(ExperimentEnd::ServerEnded)),
                ended => return ended,
            }
        }
        self.wait(self.settings.guard)
    }

    /// By arm, what was measured in periods; none where nothing arrived or none was played.
    fn summed_up(&self, mut periods: Vec<PlayedPeriod>) -> Vec<Option<PeriodResult>> {
        periods.sort_unstable_by_key(|period| period.begin);
        let mut results: Vec<Option<PeriodResult>> = vec![None; self.arms.len() + 1];
        for PlayedPeriod { arm, begin, end, used } in periods {
            let latencies = lock(self.window).take(begin, end);
            let seconds = (end - begin) as f64 / 1e9;
            results[arm] = PeriodResult::of(latencies, self.settings.percent, seconds, used);
        }
        results
    }

    /// Plays a period of an arm, and leaves the knob off.
    fn period(
        &mut self,
        arm: usize,
        periods: &mut Vec<PlayedPeriod>,
    ) -> Result<Option<ExperimentEnd>, OperationError> {
        if arm > 0 {
            let changes = (self.arms[arm - 1].plan)()?;
            self.different.extend(self.switch.on(&changes)?);
        }
        // It may have ended while settings were made, and nothing begins instead of it.
        if let Some(end) = self.ended() {
            return Ok(Some(end));
        }
        self.host.begin_period(arm)?;
        if let Some(end) = self.wait(self.settings.guard)? {
            return Ok(Some(end));
        }
        let begin = now();
        let before = self.used();
        if let Some(end) = self.wait(self.settings.period)? {
            return Ok(Some(end));
        }
        let end = now();
        let used = self.used().since(before);
        let passed = self.wait(self.settings.drain)?;
        // It is complete, also where the experiment ends while its last requests are answered.
        periods.push(PlayedPeriod { arm, begin, end, used });
        if passed.is_some() {
            return Ok(passed);
        }
        let undone = self.switch.off();
        self.keep(undone);
        let has_failed = |undone: &UndoneChange| matches!(undone.outcome, UndoOutcome::Failed(_));
        if self.not_undone.values().any(has_failed) {
            return Ok(Some(ExperimentEnd::UndoFailed));
        }
        if self.not_undone.is_empty() {
            return Ok(None);
        }
        // It is not known how much of the period was the knob's.
        periods.pop();
        Ok(Some(ExperimentEnd::ChangedByOthers))
    }

    /// Keeps what was not undone as it should be, and drops what has been since.
    fn keep(&mut self, undone: Vec<UndoneChange>) {
        for undone in undone {
            let setting = undone.change.setting.clone();
            if matches!(undone.outcome, UndoOutcome::LeftAlone(_) | UndoOutcome::Failed(_)) {
                self.not_undone.insert(setting, undone);
            } else {
                self.not_undone.remove(&setting);
            }
        }
    }

    /// What has been used until now.
    fn used(&mut self) -> UsedUntil {
        UsedUntil { cpu_ns: self.cpu_ns(), energy: self.energy() }
    }

    /// What the energy counters of the machine say now.
    fn energy(&mut self) -> Option<EnergyReading> {
        self.energy.as_mut().ok().map(|meter| meter.read(now()))
    }

    /// CPU time of the server until now.
    fn cpu_ns(&self) -> Option<u64> {
        let times = self.settings.processes.iter().map(|process| cpu_time_ns(*process));
        let times: Option<Vec<u64>> = times.collect();
        times.filter(|times| !times.is_empty()).map(|times| times.iter().sum())
    }

    /// Waits, and gives threads that begin meanwhile what the others have.
    fn wait(&mut self, duration: Duration) -> Result<Option<ExperimentEnd>, OperationError> {
        let until = Instant::now() + duration;
        let mut next_keep_on = Instant::now() + KEEP_ON_INTERVAL;
        let mut next_energy = Instant::now() + ENERGY_INTERVAL;
        loop {
            if let Some(end) = self.ended() {
                return Ok(Some(end));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(left.min(POLL));
            if Instant::now() >= next_keep_on {
                if self.switch.keep_on()? {
                    return Ok(Some(ExperimentEnd::ChangedByOthers));
                }
                next_keep_on += KEEP_ON_INTERVAL;
            }
            if Instant::now() >= next_energy {
                self.energy();
                next_energy += ENERGY_INTERVAL;
            }
        }
    }

    /// Why the experiment is to end, if it is.
    fn ended(&mut self) -> Option<ExperimentEnd> {
        if self.stop.load(Ordering::Relaxed) || !self.host.is_wanted() {
            Some(ExperimentEnd::Stopped)
        } else if self.has_server_ended() || self.observation_ended.load(Ordering::Relaxed) {
            Some(ExperimentEnd::ServerEnded)
        } else if self.host.has_load() {
            None
        } else if self.has_server_ended_by_now() {
            // Its clients have noticed it first.
            Some(ExperimentEnd::ServerEnded)
        } else {
            Some(ExperimentEnd::LoadEnded)
        }
    }

    /// Whether a process of the server has ended: it is not the same server any more, and a knob that is about its processes
    /// cannot be set.
    fn has_server_ended(&mut self) -> bool {
        let processes = self.settings.processes.iter().copied();
        self.ended_processes = processes.filter(|process| !is_alive(*process)).collect();
        !self.ended_processes.is_empty()
    }

    /// As [`Self::has_server_ended`], for who has noticed it by something else, which may come first.
    fn has_server_ended_by_now(&mut self) -> bool {
        let until = Instant::now() + PROCESS_END_MAX;
        while !self.has_server_ended() {
            if self.settings.processes.is_empty() || Instant::now() >= until {
                return false;
            }
            thread::sleep(POLL);
        }
        true
    }

    /// What it came to. An error is one of all only where nothing was measured before it.
    fn report(self, end: Result<ExperimentEnd, OperationError>) -> Result<ExperimentReport, OperationError> {
        let not_undone: Vec<UndoneChange> = self.not_undone.into_values().collect();
        let is_empty = self.tally.rounds().is_empty() && self.unfinished_round.is_empty();
        let (end, failure) = match end {
            Ok(end) => (end, None),
            Err(error) if is_empty => return Err(with_not_undone(error, &not_undone)),
            Err(error) => (ExperimentEnd::Failed, Some(error)),
        };
        let has_none = |period: &&PeriodResult| period.used.energy_uj.is_none();
        let periods_without_energy = self.tally.rounds().iter().flatten().filter(has_none).count() as u64;
        let why =
            |meter: &EnergyMeter| meter.last_gap().map(str::to_owned).filter(|_| periods_without_energy > 0);
        Ok(ExperimentReport {
            end,
            failure,
            periods_without_energy,
            energy_unknown: self.energy.as_ref().map_or_else(|why| Some(why.clone()), why),
            tally: self.tally,
            unfinished_round: self.unfinished_round,
            ended_processes: self.ended_processes,
            duration: self.begun.elapsed(),
            void_rounds: self.void_rounds,
            late: 0,
            unanswered: 0,
            lost_events: 0,
            different: self.different,
            not_undone,
            sockets: self.switch.socket_totals(),
        })
    }
}

#[cfg(test)]
mod tests;
