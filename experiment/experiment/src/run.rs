//! Runs an experiment to its end: observe, switch, wait, compare, until every value is decided.

use crate::latency_window::{LatencyWindow, PeriodResult, ResourceUse};
use crate::linux::{EnergyMeter, EnergyReading, POWERCAP, cpu_time_ns, is_alive};
use crate::open_sockets::SocketTotals;
use crate::setting::{PlannedChange, ProcessIdentity, Setting, SettingStore};
use crate::switch::{JournalFile, KnobSwitch, UndoOutcome, UndoneChange};
use crate::tally::RoundTally;
use machine::clock::now;
use model::OperationError;
use observe::{
    Cause, IntendedWaits, ObservationProgress, ObservationReport, ObservationSettings, ObservationWatcher,
    ObservedRequest, ProbeSettings, ReadCoverage, RequestPoint,
};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use units::plural;

/// Interval between checks for a stop request.
const POLL: Duration = Duration::from_millis(20);
/// Interval at which threads and sockets that began meanwhile get the knob's value.
const KEEP_ON_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between reads of the energy counters in a period. A reset that no read sees makes the energy
/// wrong by at most this much time.
const ENERGY_INTERVAL: Duration = Duration::from_secs(1);
/// Time after the end of a process's connections within which the process itself is seen to end.
const PROCESS_END_MAX: Duration = Duration::from_millis(100);
/// Time that a load generator has to send its first request.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(10);
/// Upper limit of an observation, which ends with the experiment.
const OBSERVATION_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// Server, schedule and statistics of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentSettings {
    /// TCP ports of the server.
    pub ports: BTreeSet<u16>,
    /// Processes of the server, which has ended as soon as one of them has. If empty, CPU time is unknown and
    /// the end of the server is not noticed.
    pub processes: Vec<ProcessIdentity>,
    /// Percentile under test, in percent.
    pub percent: f64,
    pub period: Duration,
    /// Time after a switch in which arriving requests are not counted.
    pub guard: Duration,
    /// Wait between the end of a period and the next switch, in which outstanding requests are answered.
    /// Needed for a load that is restarted for each period.
    pub drain: Duration,
    /// Joint confidence of the verdicts about all values.
    pub confidence: f64,
    pub rounds_max: usize,
    /// Seed of the order of periods.
    pub seed: u64,
    /// Size of the kernel's ring buffer of events, bytes.
    pub ring_bytes: u32,
}

/// One value of the knob under test.
pub struct KnobArm<'a> {
    /// Value as the user wrote it.
    pub label: String,
    /// Computes the changes anew at each call, because threads come and go.
    pub plan: Box<dyn Fn() -> Result<Vec<PlannedChange>, OperationError> + Sync + 'a>,
}

impl std::fmt::Debug for KnobArm<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnobArm").field("label", &self.label).finish_non_exhaustive()
    }
}

/// Reason for the end of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentEnd {
    /// Every value has a verdict.
    Decided,
    /// The maximum number of rounds was played.
    RoundsUsed,
    /// The caller stopped the experiment.
    Stopped,
    /// The server, or one of its processes, has ended.
    ServerEnded,
    /// The load has ended.
    LoadEnded,
    /// Another program changed a setting of the knob.
    ChangedByOthers,
    /// A setting could not be restored after a period; the report says if that succeeded at the end.
    UndoFailed,
    /// An error, given in the report.
    Failed,
}

impl ExperimentSettings {
    /// Returns the time that `rounds` take, each with one period without the knob and one with each of its
    /// values.
    pub fn duration(&self, rounds: usize, values: usize) -> Duration {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let round = (self.period + self.guard + self.drain).saturating_mul(count(values + 1)) + self.guard;
        round.saturating_mul(count(rounds))
    }
}

/// Callbacks of the program that runs the experiment.
pub trait ExperimentHost {
    /// Returns true while there is load; the experiment ends without.
    fn has_load(&mut self) -> bool;

    /// Returns false to stop the experiment because its result is no longer needed.
    fn is_wanted(&mut self) -> bool {
        true
    }

    /// Called before each period with the index of its arm (0: knob off), after the settings were made, so
    /// that the load can be switched too.
    ///
    /// # Errors
    /// If the load cannot be started.
    fn begin_period(&mut self, _: usize) -> Result<(), OperationError> {
        Ok(())
    }

    /// Called after each round with the results so far.
    fn round_done(&mut self, progress: ExperimentProgress);
}

/// State of an experiment after a round.
#[derive(Debug, Clone, Copy)]
pub struct ExperimentProgress<'a> {
    /// Results of the rounds so far.
    pub tally: &'a RoundTally,
    /// Upper bound of the remaining time.
    pub left_max: Duration,
}

/// Result of an experiment.
#[derive(Debug)]
pub struct ExperimentReport {
    /// The completed rounds.
    pub tally: RoundTally,
    /// Results of an incomplete last round, by arm, with `None` for arms without a complete period. Empty if
    /// all rounds were completed.
    pub unfinished_round: Vec<Option<PeriodResult>>,
    pub end: ExperimentEnd,
    /// Processes of the server that have ended.
    pub ended_processes: Vec<ProcessIdentity>,
    /// Error that occurred after something had been measured.
    pub failure: Option<OperationError>,
    pub duration: Duration,
    /// Rounds discarded because no request arrived in one of their periods.
    pub void_rounds: u64,
    /// Requests that were answered after their period was evaluated.
    pub late: u64,
    /// Requests for which no answer was seen.
    pub unanswered: u64,
    /// Events that the kernel could not deliver.
    pub lost_events: u64,
    /// Periods of complete rounds whose energy is unknown.
    pub periods_without_energy: u64,
    /// Reason why the energy of those periods is unknown; `None` if the energy of all is known.
    pub energy_unknown: Option<String>,
    /// Settings for which the kernel chose another value than the one asked for.
    pub different: BTreeSet<String>,
    /// Settings that could not be restored, or were left alone.
    pub not_undone: Vec<UndoneChange>,
    /// Changes of open sockets; `None` for knobs that are not socket options.
    pub sockets: Option<SocketTotals>,
}

/// Plays rounds until each value has a verdict, the rounds are used up, or `stop` is set. However it ends,
/// the knob is off afterwards, or the report or error names the settings that are not restored.
///
/// # Errors
/// If the server cannot be observed, the knob cannot be set or no request arrives before a period was
/// completed; if the server takes requests by calls that are not seen. Other errors after that are in the
/// report, except that of a failed observation.
pub fn run<S: SettingStore + Send, J: JournalFile + Send>(
    settings: &ExperimentSettings,
    arms: &[KnobArm],
    switch: &mut KnobSwitch<S, J>,
    stop: &AtomicBool,
    host: &mut dyn ExperimentHost,
) -> Result<ExperimentReport, OperationError> {
    let seen = Mutex::new(SeenRequests::default());
    let ended = AtomicBool::new(false);
    let observation = observation_settings(settings);
    let (attached, is_attached) = mpsc::channel();
    thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let _ended = SetOnDrop(&ended);
            let mut watcher = RequestCollector { attached: Some(attached), seen: &seen };
            observe::watch(&observation, &ended, &mut watcher)
        });
        let played = is_attached.recv().ok().map(|()| {
            let _ended = SetOnDrop(&ended);
            let mut play = RoundPlay::new(settings, arms, switch, host, [stop, &ended], &seen);
            let end = play.all();
            let unfinished = play.switch.off();
            play.keep(unfinished);
            play.report(end)
        });
        let observed = observer.join().expect("observing does not panic");
        let mut report =
            joined(observed.map(|report| ObservedTotals::new(&report)), played, &settings.ports)?;
        report.late = lock(&seen).window.late();
        Ok(report)
    })
}

/// Requests that were observed so far.
#[derive(Debug, Default)]
struct SeenRequests {
    window: LatencyWindow,
    coverage: ReadCoverage,
}

/// Collects requests for the thread that plays the rounds.
struct RequestCollector<'a> {
    attached: Option<mpsc::Sender<()>>,
    seen: &'a Mutex<SeenRequests>,
}

impl ObservationWatcher for RequestCollector<'_> {
    fn attached(&mut self) {
        if let Some(attached) = self.attached.take() {
            attached.send(()).unwrap_or_default();
        }
    }

    fn take(&mut self, request: &ObservedRequest, _cause: Cause) {
        lock(self.seen).window.add(request.at(RequestPoint::Stack), request.latency_from_stack());
    }

    fn progress(&mut self, progress: &ObservationProgress<'_>) {
        lock(self.seen).coverage = progress.coverage();
    }
}

/// Sums of a whole observation.
#[derive(Debug, Clone, Copy, Default)]
struct ObservedTotals {
    unanswered: u64,
    lost_events: u64,
    coverage: ReadCoverage,
}

impl ObservedTotals {
    fn new(report: &ObservationReport) -> Self {
        Self {
            unanswered: report.counts.unanswered,
            lost_events: report.lost_events,
            coverage: report.coverage(),
        }
    }
}

/// Returns an error if too many requests are unseen for a judgement by the observed ones.
fn check_coverage(coverage: ReadCoverage, ports: &BTreeSet<u16>) -> Result<(), OperationError> {
    if !coverage.is_blind() {
        return Ok(());
    }
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let message = format!(
        "port {}: no verdict, because the server took {} of {} by calls that are not seen",
        ports.join(","),
        coverage.unseen,
        plural(coverage.all(), "request")
    );
    let hint = if coverage.multipath * 2 > coverage.unseen {
        "they came by MPTCP: let the server listen without it (for Go: GODEBUG=multipathtcp=0), or send the load by \
         plain TCP"
    } else {
        "let the server use plain reads, without splice or sockmap; docs/explanation/tracing.md says which reads are seen"
    };
    Err(OperationError::machine(message).hint(hint))
}

/// Sets a flag at the end of a block, also in a panic: the other thread would wait for the flag for ever.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Joins the report of the rounds with the sums of the observation. An error of either side keeps the
/// other's list of settings that are not restored.
fn joined(
    observed: Result<ObservedTotals, OperationError>,
    played: Option<Result<ExperimentReport, OperationError>>,
    ports: &BTreeSet<u16>,
) -> Result<ExperimentReport, OperationError> {
    match (observed, played) {
        (Ok(totals), Some(Ok(report))) => {
            check_coverage(totals.coverage, ports)
                .map_err(|error| with_not_undone(error, &report.not_undone))?;
            let ObservedTotals { unanswered, lost_events, .. } = totals;
            Ok(ExperimentReport { unanswered, lost_events, ..report })
        }
        (Ok(_), Some(Err(error))) => Err(error),
        (Ok(_), None) => Err(OperationError::machine("observing ended before it began")),
        (Err(error), None) => Err(error),
        (Err(error), Some(Ok(report))) => Err(with_not_undone(error, &report.not_undone)),
        (Err(mut error), Some(Err(played))) => {
            error.message += &format!("; and {}", played.message);
            Err(error)
        }
    }
}

/// Appends the settings that could not be restored to an error.
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

/// Locks the requests, also after a panic of the other thread: no step of an update leaves them inconsistent.
fn lock(seen: &Mutex<SeenRequests>) -> MutexGuard<'_, SeenRequests> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A completed period; times are nanoseconds of the monotonic clock.
struct PlayedPeriod {
    arm: usize,
    begin: u64,
    end: u64,
    used: ResourceUse,
}

/// Cumulative resource use at an instant.
#[derive(Debug, Clone, Copy)]
struct UsedUntil {
    cpu_ns: Option<u64>,
    energy: Option<EnergyReading>,
}

impl UsedUntil {
    /// Returns the use since an earlier instant.
    fn since(self, earlier: Self) -> ResourceUse {
        let cpu = earlier.cpu_ns.zip(self.cpu_ns).map(|(earlier, now)| now.saturating_sub(earlier));
        let energy = earlier.energy.zip(self.energy).and_then(|(earlier, now)| now.since(earlier));
        ResourceUse { cpu_ns: cpu, energy_uj: energy }
    }
}

/// State of the rounds that are being played.
struct RoundPlay<'a, S: SettingStore, J: JournalFile> {
    settings: &'a ExperimentSettings,
    arms: &'a [KnobArm<'a>],
    switch: &'a mut KnobSwitch<S, J>,
    host: &'a mut dyn ExperimentHost,
    stop: &'a AtomicBool,
    observation_ended: &'a AtomicBool,
    seen: &'a Mutex<SeenRequests>,
    tally: RoundTally,
    random: StdRng,
    /// Results of an incomplete last round, by arm.
    unfinished_round: Vec<Option<PeriodResult>>,
    /// The energy meter, or the reason why there is none.
    energy: Result<EnergyMeter, String>,
    ended_processes: Vec<ProcessIdentity>,
    begun: Instant,
    void_rounds: u64,
    /// Arms without a request in the last round.
    silent: Vec<usize>,
    different: BTreeSet<String>,
    /// By setting, because a failed undo is retried and only its last outcome counts.
    not_undone: BTreeMap<Setting, UndoneChange>,
}

impl<'a, S: SettingStore, J: JournalFile> RoundPlay<'a, S, J> {
    fn new(
        settings: &'a ExperimentSettings,
        arms: &'a [KnobArm<'a>],
        switch: &'a mut KnobSwitch<S, J>,
        host: &'a mut dyn ExperimentHost,
        [stop, observation_ended]: [&'a AtomicBool; 2],
        seen: &'a Mutex<SeenRequests>,
    ) -> Self {
        Self {
            settings,
            arms,
            switch,
            host,
            stop,
            observation_ended,
            seen,
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
        while !lock(self.seen).window.has_requests() {
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
                // A server that stalls for one period may answer in the next.
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

    /// The error of an experiment without a request that was observed.
    fn nothing_arrives(&self, waited: Duration) -> OperationError {
        if let Err(error) = check_coverage(self.coverage(), &self.settings.ports) {
            return error;
        }
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

    fn coverage(&self) -> ReadCoverage {
        lock(self.seen).coverage
    }

    /// Plays a round: every arm in random order, then off. An arm may be what makes the server's reads unseen,
    /// so that each round is checked by itself.
    fn round(&mut self) -> Result<Option<ExperimentEnd>, OperationError> {
        let before = self.coverage();
        let mut periods = Vec::new();
        let end = self.all_periods(&mut periods);
        let results = self.summed_up(periods);
        if !matches!(end, Ok(None)) {
            let has_any = results.iter().any(Option::is_some);
            self.unfinished_round = if has_any { results } else { Vec::new() };
            return end;
        }
        check_coverage(self.coverage().since(before), &self.settings.ports)?;
        self.silent = (0..results.len()).filter(|arm| results[*arm].is_none()).collect();
        match results.into_iter().collect::<Option<Vec<PeriodResult>>>() {
            Some(round) => self.tally.add(round),
            None => self.void_rounds += 1,
        }
        Ok(None)
    }

    /// Plays a period of every arm, and appends the completed ones to `periods`.
    fn all_periods(
        &mut self,
        periods: &mut Vec<PlayedPeriod>,
    ) -> Result<Option<ExperimentEnd>, OperationError> {
        let mut order: Vec<usize> = (0..=self.arms.len()).collect();
        order.shuffle(&mut self.random);
        for arm in order {
            match self.period(arm, periods) {
                Ok(None) => {}
                // Settings of a process that has ended cannot be made: report its end, not the error.
                Err(_) if self.has_server_ended_by_now() => return Ok(Some(ExperimentEnd::ServerEnded)),
                ended => return ended,
            }
        }
        self.wait(self.settings.guard)
    }

    /// Returns the results of periods by arm; `None` for an arm without a period or without requests.
    fn summed_up(&self, mut periods: Vec<PlayedPeriod>) -> Vec<Option<PeriodResult>> {
        periods.sort_unstable_by_key(|period| period.begin);
        let mut results: Vec<Option<PeriodResult>> = vec![None; self.arms.len() + 1];
        for PlayedPeriod { arm, begin, end, used } in periods {
            let latencies = lock(self.seen).window.take(begin, end);
            let seconds = (end - begin) as f64 / 1e9;
            results[arm] = PeriodResult::of(latencies, self.settings.percent, seconds, used);
        }
        results
    }

    /// Plays a period of an arm, and turns the knob off afterwards.
    fn period(
        &mut self,
        arm: usize,
        periods: &mut Vec<PlayedPeriod>,
    ) -> Result<Option<ExperimentEnd>, OperationError> {
        if arm > 0 {
            let changes = (self.arms[arm - 1].plan)()?;
            self.different.extend(self.switch.on(&changes)?);
        }
        // The server may have ended while settings were made; the load would be started for nothing.
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
        // The period is complete even if the experiment ends during the drain.
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
        // Another program changed the setting at an unknown time, so the period is not the knob's alone.
        periods.pop();
        Ok(Some(ExperimentEnd::ChangedByOthers))
    }

    /// Records failed and skipped undos, and drops earlier ones that have succeeded since.
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

    fn used(&mut self) -> UsedUntil {
        UsedUntil { cpu_ns: self.cpu_ns(), energy: self.energy() }
    }

    fn energy(&mut self) -> Option<EnergyReading> {
        self.energy.as_mut().ok().map(|meter| meter.read(now()))
    }

    /// Returns the CPU time of the server so far, nanoseconds.
    fn cpu_ns(&self) -> Option<u64> {
        let times = self.settings.processes.iter().map(|process| cpu_time_ns(*process));
        let times: Option<Vec<u64>> = times.collect();
        times.filter(|times| !times.is_empty()).map(|times| times.iter().sum())
    }

    /// Waits for `duration` or the end of the experiment; meanwhile applies the knob to threads and sockets
    /// that begin.
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

    /// Returns the reason to end the experiment, if there is one.
    fn ended(&mut self) -> Option<ExperimentEnd> {
        if self.stop.load(Ordering::Relaxed) || !self.host.is_wanted() {
            Some(ExperimentEnd::Stopped)
        } else if self.has_server_ended() || self.observation_ended.load(Ordering::Relaxed) {
            Some(ExperimentEnd::ServerEnded)
        } else if self.host.has_load() {
            None
        } else if self.has_server_ended_by_now() {
            // The clients may notice the end of the server before this loop does.
            Some(ExperimentEnd::ServerEnded)
        } else {
            Some(ExperimentEnd::LoadEnded)
        }
    }

    /// Returns true if a process of the server has ended. One is enough: a knob that acts on processes cannot
    /// be set without it.
    fn has_server_ended(&mut self) -> bool {
        let processes = self.settings.processes.iter().copied();
        self.ended_processes = processes.filter(|process| !is_alive(*process)).collect();
        !self.ended_processes.is_empty()
    }

    /// Like [`Self::has_server_ended`], but waits up to [`PROCESS_END_MAX`]: connections close before their
    /// process is gone.
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

    /// Builds the report. An error becomes the result only if nothing was measured before it.
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
