//! A run from its workloads to its report. Three kinds of threads take part: one per workload sets up connections, one
//! does all timing, and the caller's reports progress.

use crate::address_space::AddressSpace;
use crate::codec::KeyFormat;
use crate::content::ContentPattern;
use crate::engine::{
    EndedConnection, EngineResults, LoadEngine, OpenedWorkload, Reconnected, connect_all, reconnect_lost,
};
use crate::options::LoadOptions;
use crate::progress::{LoadPhase, LoadProgress, ProgressGauges};
use crate::report::LoadReport;
use crate::setup::{Connector, ReadyConnection, StoredValues, store_values};
use crate::target::LoadTarget;
use crate::validate;
use crate::workload::LoadWorkload;
use model::{Observations, OperationError};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, Scope};
use std::time::Duration;
use units::Nanos;

/// The time between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Plays all workloads at once. `progress` is called about ten times a second, from the calling thread; setting `stop`
/// ends the run early, with what was observed until then.
///
/// # Errors
/// Only before the first request is sent: when workloads are impossible, or a server, file or namespace does not exist.
/// Connections that are lost later are no error.
pub fn run(
    workloads: Vec<LoadWorkload>,
    options: &LoadOptions,
    progress: &mut dyn FnMut(LoadProgress),
    stop: &AtomicBool,
) -> Result<LoadReport, OperationError> {
    validate::check_workloads(&workloads, options)?;
    let waker = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(kernel_error)?;
    let waker = Arc::new(waker);
    let names = workloads.iter().map(|workload| workload.name.clone()).collect();
    let gauges = ProgressGauges::default();
    let mut reporter = Reporter { gauges: &gauges, total: options.warm_up + options.duration, progress };
    let (results, cpu_pressure) = thread::scope(|scope| {
        let (reconnected_sender, reconnected) = mpsc::channel();
        let opened =
            open_workloads(scope, workloads, options.seed, &reconnected_sender, &waker, &mut reporter)?;
        let coherence_warnings = coherence_warnings(&opened, options);
        let pressure = PressureMeter::start();
        let (results_sender, results) = mpsc::channel();
        let gauges = &gauges;
        scope.spawn(move || {
            let results = run_engine(opened, options, (stop, gauges), reconnected, waker);
            // The receiver is gone only if the calling thread has panicked.
            let _ = results_sender.send(results);
        });
        let mut results = reporter.wait(&results, ProgressGauges::phase).map_err(kernel_error)?;
        results.warnings.splice(0..0, coherence_warnings);
        Ok((results, pressure.share()))
    })?;
    let requests = results.observations;
    Ok(LoadReport {
        observations: Observations { workloads: names, requests, ..Default::default() },
        counters: results.counters,
        comparison: results.comparison,
        cpu_pressure,
        observed_duration: results.observed_duration,
        warnings: results.warnings,
    })
}

fn kernel_error(error: rustix::io::Errno) -> OperationError {
    OperationError::machine(error).hint("the kernel has no file descriptors left? see `ulimit -n`")
}

/// Reports progress while the calling thread waits for others.
struct Reporter<'a> {
    gauges: &'a ProgressGauges,
    total: Nanos,
    progress: &'a mut dyn FnMut(LoadProgress),
}

impl Reporter<'_> {
    /// Waits for what another thread sends, and reports until it does.
    fn wait<T>(&mut self, receiver: &Receiver<T>, phase: fn(&ProgressGauges) -> LoadPhase) -> T {
        loop {
            (self.progress)(self.gauges.snapshot(phase(self.gauges), self.total));
            match receiver.recv_timeout(REPORT_INTERVAL) {
                Ok(value) => return value,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the thread that should have answered has ended")
                }
            }
        }
    }
}

/// A workload whose connections are being set up.
struct OpeningWorkload {
    workload: LoadWorkload,
    lost: Sender<EndedConnection>,
    connections: Receiver<Result<Vec<ReadyConnection>, OperationError>>,
}

/// Sets up the connections of all workloads at the same time, each in a thread that later replaces lost
/// ones. The first error ends the others: their threads stop because the receiver of their connections is
/// gone.
fn open_workloads<'scope>(
    scope: &'scope Scope<'scope, '_>,
    workloads: Vec<LoadWorkload>,
    seed: u64,
    reconnected: &Sender<Reconnected>,
    waker: &Arc<OwnedFd>,
    reporter: &mut Reporter<'_>,
) -> Result<Vec<OpenedWorkload>, OperationError> {
    let mut opening = Vec::new();
    for (index, workload) in workloads.into_iter().enumerate() {
        let (opened_sender, connections) = mpsc::channel();
        let (lost, lost_receiver) = mpsc::channel();
        let thread = ConnectionThread {
            workload: workload.clone(),
            index,
            seed,
            opened: opened_sender,
            lost: lost_receiver,
            reconnected: reconnected.clone(),
            waker: waker.clone(),
        };
        scope.spawn(move || thread.run());
        opening.push(OpeningWorkload { workload, lost, connections });
    }
    let mut opened = Vec::new();
    for OpeningWorkload { workload, lost, connections } in opening {
        let connections = reporter.wait(&connections, |_| LoadPhase::SettingUp)?;
        opened.push(OpenedWorkload { workload, connections, lost });
    }
    Ok(opened)
}

/// The thread that sets up one workload's connections and sets up lost ones again.
struct ConnectionThread {
    workload: LoadWorkload,
    /// The position of the workload in the run.
    index: usize,
    seed: u64,
    opened: Sender<Result<Vec<ReadyConnection>, OperationError>>,
    lost: Receiver<EndedConnection>,
    reconnected: Sender<Reconnected>,
    waker: Arc<OwnedFd>,
}

impl ConnectionThread {
    fn run(self) {
        let connector = match Connector::new(&self.workload) {
            Ok(connector) => connector,
            Err(error) => {
                let _ = self.opened.send(Err(error));
                return;
            }
        };
        let connections = self.open(&connector);
        let is_open = connections.is_ok();
        // The receiver is gone if another workload could not be set up.
        if self.opened.send(connections).is_ok() && is_open {
            reconnect_lost(&connector, &self.lost, &self.reconnected, &self.waker);
        }
    }

    fn open(&self, connector: &Connector) -> Result<Vec<ReadyConnection>, OperationError> {
        connector.enter_namespace()?;
        if let LoadTarget::Memcached { server, keys, key_size, .. } = *self.workload.target.inside_tls() {
            let sizes = self.workload.offered.request_sizes().into_iter();
            let mut sizes: Vec<u32> = sizes.map(|(_, size)| validate::checked_size(size)).collect();
            sizes.sort_unstable();
            sizes.dedup();
            let format = KeyFormat::new(&self.workload.name, key_size);
            let values = StoredValues { server, keys, format, sizes };
            store_values(connector, ContentPattern::new(self.seed, self.index), &values)?;
        }
        let connections = connect_all(connector, self.workload.connections)?;
        validate::check_against_server(&self.workload, &connections[0].space)?;
        Ok(connections)
    }
}

/// The timing thread: prepares itself and plays everything.
fn run_engine(
    opened: Vec<OpenedWorkload>,
    options: &LoadOptions,
    shared: (&AtomicBool, &ProgressGauges),
    reconnected: Receiver<Reconnected>,
    waker: Arc<OwnedFd>,
) -> rustix::io::Result<EngineResults> {
    let scheduling_warnings = set_scheduling(options);
    let mut results = LoadEngine::new(opened, options, shared, reconnected, waker)?.run()?;
    results.warnings.splice(0..0, scheduling_warnings);
    Ok(results)
}

/// Gives the calling thread its priority and its CPU. Returns a warning for each that was refused.
fn set_scheduling(options: &LoadOptions) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(priority) = options.realtime
        && let Err(error) = machine::realtime::fifo(priority)
    {
        warnings.push(format!("the generator has no real-time priority, so that it may be late: {error}"));
    }
    if let Some(cpu) = options.cpu
        && let Err(error) = machine::affinity::pin(cpu)
    {
        warnings.push(format!("the generator does not stay on one CPU: {error}"));
    }
    warnings
}

/// Returns warnings about workloads whose data cannot be verified, because a connection may not see the
/// writes of another.
fn coherence_warnings(opened: &[OpenedWorkload], options: &LoadOptions) -> Vec<String> {
    let mut warnings = Vec::new();
    for OpenedWorkload { workload, connections, .. } in opened {
        let is_incoherent = matches!(connections[0].space, AddressSpace::Bytes { is_coherent: false, .. });
        if options.verify_data && connections.len() > 1 && is_incoherent {
            warnings.push(format!(
                "workload {}: the server does not promise that connections see each other's writes; use one \
                 connection where data is verified",
                workload.name
            ));
        }
    }
    warnings
}

/// Measures the share of time in which tasks of this machine wait for a CPU.
struct PressureMeter {
    waited_before: Option<Duration>,
    start_ns: u64,
}

impl PressureMeter {
    fn start() -> Self {
        Self { waited_before: machine::pressure::cpu(), start_ns: machine::clock::now() }
    }

    /// The share of the time since the start in which some task waited, 0 to 1; `None` where the kernel does not count.
    fn share(&self) -> Option<f64> {
        let waited = machine::pressure::cpu()?.saturating_sub(self.waited_before?);
        let elapsed = Nanos(machine::clock::now() - self.start_ns);
        Some(waited.as_secs_f64() / elapsed.as_secs().max(1e-9))
    }
}
