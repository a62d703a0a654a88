//! A period: a server is started, knobs are set, load is sent and observed, and everything is undone.

use super::fix::{Fix, PeriodProcesses, identities, server_mask};
use super::offered::Offered;
use super::others::{OthersMark, wait_for_quiet};
use super::server::ServerPlan;
use super::site::{Background, Site};
use super::{CLIENT_CPU, SERVER_CPU};
use experiment::{UndoOutcome, UndoneChange};
use load::{ClientHost, LoadOptions, LoadPhase, LoadProgress, LoadReport, LoadWorkload};
use machine::clock::now;
use machine::cpu_time;
use machine::scheduling::{ThreadScheduling, own_thread, set_scheduling};
use model::OperationError;
use observe::{
    IntendedWaits, ObservationReport, ObservationSettings, ObservedRequest, ProbeSettings, Protocol,
    REPLAYED_MAX, RequestPoint,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::live_servers::RunningServer;
use units::Nanos;

/// Room for events: the thread that takes them shares its CPU.
const RING_BYTES: u32 = 1 << 26;
/// Time that a load waits for its last answers.
const DRAIN: Duration = Duration::from_secs(2);
/// The nice value of the thread that sends, which shares its CPU with the one that observes.
const SENDER_NICE: i32 = -10;
/// The shortest slice that the kernel has, so that the two hold each other up for as short a time as can be.
const SLICE_NS: u64 = 100_000;

/// Maximum CPU use of unrelated processes in an undisturbed period, in CPUs.
const OTHERS_MAX: f64 = 0.1;
/// Maximum 99th percentile of the generator's lag; it needs some milliseconds while the observer has the CPU.
const LAG_P99_MAX_NS: u64 = 2_000_000;
/// Maximum number of attempts at a period that is disturbed.
const ATTEMPTS: u32 = 3;

/// Parameters of a period.
#[derive(Debug, Clone)]
pub(crate) struct PeriodPlan {
    pub(crate) server: ServerPlan,
    /// Knobs that are set for the period.
    pub(crate) fixes: Vec<Fix>,
    pub(crate) offered: Offered,
    /// True to run a background process on the server's CPU.
    pub(crate) background: bool,
    /// The CPUs that do the receive work of the server's device, a mask, unless a fix says otherwise.
    pub(crate) receive_mask: String,
    /// The real-time priority of the thread that sends, if it has one.
    pub(crate) sender_priority: Option<u32>,
    /// Protocol that delimits requests; without it packets, reads and writes do.
    pub(crate) protocol: Option<Protocol>,
}

impl PeriodPlan {
    /// A server without fixes and without a background process, whose receive work is done on its CPU.
    pub(crate) fn new(server: ServerPlan, offered: Offered) -> Self {
        let receive_mask = server_mask();
        let fixes = Vec::new();
        let background = false;
        let sender_priority = None;
        let protocol = None;
        Self { server, fixes, offered, background, receive_mask, sender_priority, protocol }
    }
}

/// Measurements of a period.
#[derive(Debug)]
pub(crate) struct PeriodSeen {
    /// Requests that arrived (T1) while they counted.
    pub(crate) requests: Vec<ObservedRequest>,
    /// All requests that were observed, also those that do not count.
    pub(crate) all: Vec<ObservedRequest>,
    pub(crate) report: ObservationReport,
    pub(crate) client: LoadReport,
    /// Time in which requests counted, seconds.
    pub(crate) seconds: f64,
    /// The share of that in which the server's CPU was not idle.
    pub(crate) busy: f64,
    /// The share of that in which the background process ran.
    pub(crate) background: f64,
    /// CPU use of unrelated processes, in CPUs.
    pub(crate) others: f64,
    /// Settings for which the kernel chose a value other than the requested one.
    pub(crate) different: Vec<String>,
}

impl PeriodSeen {
    /// Requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.requests.len() as f64 / self.seconds
    }

    /// The share of the last requests that were overtaken.
    pub(crate) fn overtaken_share(&self) -> f64 {
        let kept = self.all.len().clamp(1, REPLAYED_MAX);
        self.report.causes.overtaken.overtaken as f64 / kept as f64
    }

    /// The 99th percentile of the generator's lateness, in nanoseconds.
    pub(crate) fn lag_p99_ns(&self) -> u64 {
        let mut lags: Vec<u64> = self.client.generator_lags(0).map(|lag| lag.0).collect();
        lags.sort_unstable();
        lags.get(lags.len() * 99 / 100).copied().unwrap_or(0)
    }

    /// Why the figures of the period are doubtful, if they are: others were busy, events were lost, requests were not
    /// answered, or the generator was late.
    pub(crate) fn doubt(&self) -> Option<String> {
        let unanswered =
            self.client.observations.requests.iter().filter(|request| request.latency().is_none()).count();
        let lost = self.report.lost_events;
        let others = self.others * 100.0;
        let late = self.lag_p99_ns() / 1000;
        let is_late = self.lag_p99_ns() > LAG_P99_MAX_NS;
        (lost > 0 || unanswered > 0 || is_late || self.others > OTHERS_MAX).then(|| {
            format!(
                "others used {others:.0} % of a CPU, {lost} events lost, {unanswered} requests without an answer, \
                 generator late by (p99) {late} us"
            )
        })
    }
}

impl Site {
    /// Plays a period once other processes leave the machine idle, and again if they disturbed it; prints
    /// the remaining doubts. Prints a refused fix and returns `None`.
    ///
    /// # Errors
    /// As [`Self::play`], except for refused fixes.
    pub(crate) fn play_undisturbed(
        &mut self,
        name: &str,
        plan: &PeriodPlan,
        seed: u64,
    ) -> Result<Option<PeriodSeen>, OperationError> {
        for attempt in 1.. {
            wait_for_quiet(OTHERS_MAX, self.times.quiet_wait);
            let seen = match self.play(plan, seed) {
                Ok(seen) => seen,
                Err(error) if self.switch.is_off() => {
                    println!("NOT MEASURED {name}: {error}");
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            for different in &seen.different {
                println!("NOT AS ASKED {name}: {different}");
            }
            match seen.doubt() {
                Some(_) if attempt < ATTEMPTS && !self.is_stopped() => {}
                Some(doubt) => {
                    println!("DOUBTFUL {name}: {doubt}");
                    return Ok(Some(seen));
                }
                None => return Ok(Some(seen)),
            }
        }
        Ok(None)
    }

    /// Plays a period, and undoes its settings.
    ///
    /// # Errors
    /// When a knob is refused or could not be undone, the server cannot be observed, or the load cannot be sent.
    pub(crate) fn play(&mut self, plan: &PeriodPlan, seed: u64) -> Result<PeriodSeen, OperationError> {
        if !self.network.receive_on_cpus(&plan.receive_mask) {
            return Err(OperationError::machine("receive work of the server's device cannot be steered"));
        }
        let others = OthersMark::now();
        let server = plan.server.start(&self.network);
        let background = plan.background.then(|| Background::start(SERVER_CPU));
        let set = self.set(plan, &server, background.as_ref());
        let seen = match set {
            Ok(different) => self.watch(plan, background.as_ref(), seed).map(|seen| PeriodSeen {
                different,
                others: others.share_since(),
                ..seen
            }),
            Err(error) => Err(error),
        };
        not_undone(&self.switch.off())?;
        seen
    }

    /// Sets the knobs. Returns the settings for which the kernel chose another value.
    fn set(
        &mut self,
        plan: &PeriodPlan,
        server: &RunningServer,
        background: Option<&Background>,
    ) -> Result<Vec<String>, OperationError> {
        let on = PeriodProcesses {
            network: &self.network,
            server: identities(&server.process_ids()),
            background: background.and_then(Background::identity),
            receive_mask: &plan.receive_mask,
        };
        let mut changes = Vec::new();
        for fix in &plan.fixes {
            changes.extend(fix.changes(&on)?);
        }
        self.switch.on(&changes)
    }

    /// Sends the load and observes.
    fn watch(
        &self,
        plan: &PeriodPlan,
        background: Option<&Background>,
        seed: u64,
    ) -> Result<PeriodSeen, OperationError> {
        let duration = self.times.guard + self.times.counted;
        let settings = ObservationSettings {
            probes: ProbeSettings {
                ring_bytes: RING_BYTES,
                protocol: plan.protocol,
                ..ProbeSettings::of_ports([plan.server.port()])
            },
            duration: duration + Duration::from_secs(30),
            cost_duration: Duration::ZERO,
            intended_waits: IntendedWaits::Included,
            cost_limit: None,
        };
        let (workload, options) = self.workload(plan, duration, seed)?;
        let ended = AtomicBool::new(false);
        let mut all = Vec::new();
        let mut marks = PeriodMarks::new(self.times.guard, background);
        let (report, client) = std::thread::scope(|scope| {
            let send = || {
                let sent = self.send(workload, &options, &mut marks);
                ended.store(true, Ordering::Relaxed);
                sent
            };
            let observed = scope.spawn(|| {
                prefer(0);
                let mut sender = None;
                let attached = || sender = Some(scope.spawn(send));
                let taken = &mut |request: &ObservedRequest| all.push(*request);
                observe::observe(&settings, &ended, attached, taken).map(|report| (report, sender))
            });
            let (report, sender) = observed.join().expect("observing does not panic")?;
            let sender = sender.expect("it was attached");
            Ok::<_, OperationError>((report, sender.join().expect("sending does not panic")?))
        })?;
        marks.seen(all, report, client)
    }

    fn workload(
        &self,
        plan: &PeriodPlan,
        duration: Duration,
        seed: u64,
    ) -> Result<(LoadWorkload, LoadOptions), OperationError> {
        let nanos = |time: Duration| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let address = self.network.addresses(plan.server.port())[0];
        let workload = LoadWorkload {
            name: "w".to_owned(),
            target: plan.server.target(address),
            client: ClientHost { netns: Some(self.network.client().to_owned()), bind: None },
            connections: plan.offered.connections,
            requests_per_connection: plan.offered.requests_per_connection.clone(),
            offered: plan.offered.load(plan.server.mix(), duration, seed)?,
        };
        let options = LoadOptions {
            warm_up: Nanos::ZERO,
            duration: nanos(duration),
            drain: nanos(DRAIN),
            seed,
            realtime: plan.sender_priority,
            cpu: Some(CLIENT_CPU),
            verify_data: false,
        };
        Ok((workload, options))
    }

    fn send(
        &self,
        workload: LoadWorkload,
        options: &LoadOptions,
        marks: &mut PeriodMarks,
    ) -> Result<LoadReport, OperationError> {
        prefer(SENDER_NICE);
        load::run(vec![workload], options, &mut |progress| marks.note(progress), &self.stop)
    }
}

/// Keeps the calling thread, and those that it starts, on the client's CPU, with a nice value and short slices. Without the
/// right to do so the figures are noisier, which is all.
fn prefer(nice: i32) {
    let _ = machine::affinity::pin(CLIENT_CPU);
    let own = own_thread();
    let wanted = ThreadScheduling { slice_ns: SLICE_NS, ..ThreadScheduling::ordinary(nice) };
    if set_scheduling(own, &wanted).is_err() {
        let _ = set_scheduling(own, &ThreadScheduling::ordinary(nice));
    }
}

/// When requests begin to count and cease to, and what CPUs had done by then.
struct PeriodMarks<'a> {
    guard: Duration,
    background: Option<&'a Background>,
    /// When the load began, in nanoseconds of CLOCK_MONOTONIC.
    begun: u64,
    first: Option<CpuMark>,
    last: Option<CpuMark>,
}

#[derive(Debug, Clone, Copy)]
struct CpuMark {
    at: u64,
    busy_ns: u64,
    background_ns: u64,
}

impl<'a> PeriodMarks<'a> {
    fn new(guard: Duration, background: Option<&'a Background>) -> Self {
        Self { guard, background, begun: u64::MAX, first: None, last: None }
    }

    /// Called about ten times a second with the progress of the load.
    fn note(&mut self, progress: LoadProgress) {
        if progress.phase != LoadPhase::Running || progress.elapsed == Nanos::ZERO {
            return;
        }
        let at = now();
        self.begun = self.begun.min(at - progress.elapsed.0);
        if Duration::from_nanos(progress.elapsed.0) < self.guard {
            return;
        }
        let busy_ns = cpu_time::busy(&BTreeSet::from([SERVER_CPU])).unwrap_or(0);
        let mark = CpuMark { at, busy_ns, background_ns: self.background.map_or(0, Background::cpu_ns) };
        self.first.get_or_insert(mark);
        self.last = Some(mark);
    }

    /// Returns the measurements between the marks.
    fn seen(
        self,
        all: Vec<ObservedRequest>,
        report: ObservationReport,
        client: LoadReport,
    ) -> Result<PeriodSeen, OperationError> {
        let marks = self.first.zip(self.last).filter(|(first, last)| first.at < last.at);
        let (first, last) =
            marks.ok_or_else(|| OperationError::machine("the load ended before requests counted"))?;
        let is_within =
            |request: &&ObservedRequest| (first.at..last.at).contains(&request.at(RequestPoint::Stack));
        let requests: Vec<ObservedRequest> = all.iter().filter(is_within).copied().collect();
        if requests.is_empty() {
            return Err(OperationError::machine("no request was observed"));
        }
        let share = |of: fn(&CpuMark) -> u64| (of(&last) - of(&first)) as f64 / (last.at - first.at) as f64;
        Ok(PeriodSeen {
            requests,
            all,
            report,
            client,
            seconds: (last.at - first.at) as f64 / 1e9,
            busy: share(|mark| mark.busy_ns),
            background: share(|mark| mark.background_ns),
            others: 0.0,
            different: Vec::new(),
        })
    }
}

/// An error about what could not be undone.
fn not_undone(undone: &[UndoneChange]) -> Result<(), OperationError> {
    for change in undone {
        match &change.outcome {
            UndoOutcome::Failed(error) => return Err(error.clone().about("not undone")),
            UndoOutcome::LeftAlone(now) => {
                let message = format_args!("{}: somebody changed it to {now}", change.change.setting);
                return Err(OperationError::machine(message));
            }
            UndoOutcome::Restored
            | UndoOutcome::SocketsTakenBack(_)
            | UndoOutcome::Unchanged
            | UndoOutcome::Gone => {}
        }
    }
    Ok(())
}
