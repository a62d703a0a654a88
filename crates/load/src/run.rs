//! A run from its workloads to what was observed: who opens connections, who keeps time, who reports progress.

use crate::content::Pattern;
use crate::engine::mechanic::{Repaired, open_all, repair};
use crate::engine::{Engine, Gauges, Outcomes, Ready};
use crate::setup::{Opened, Site, Space, store};
use crate::{Options, Phase, Progress, Ran, Target, Workload, check};
use model::{Observations, OperationError};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;
use units::Nanos;

/// Between reports of progress.
const REPORT: Duration = Duration::from_millis(100);

/// Plays all workloads at once. `progress` is called about ten times a second, from the calling thread; setting `stop`
/// ends the run early, with what there is.
///
/// # Errors
/// Before anything was sent: when workloads cannot be, or a server, file or namespace is not there. Connections that
/// are lost later are no error.
pub fn run(
    workloads: Vec<Workload>,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
    stop: &AtomicBool,
) -> Result<Ran, OperationError> {
    check::alone(&workloads, options)?;
    let machine_fault = |error| {
        OperationError::machine(error).hint("the kernel has no file descriptors left? see `ulimit -n`")
    };
    let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(machine_fault)?;
    let bell = Arc::new(bell);
    let names = workloads.iter().map(|workload| workload.name.clone()).collect();
    let gauges = Gauges::default();
    let total = options.warm_up + options.duration;
    let mut report = |phase| progress(gauges.progress(phase, total));
    let (outcomes, pressure) = thread::scope(|scope| {
        let (done, repaired) = mpsc::channel();
        let mut opening = Vec::new();
        for (index, workload) in workloads.into_iter().enumerate() {
            let (send, opened) = mpsc::channel();
            let (orders, ordered) = mpsc::channel();
            let job = Job { workload: workload.clone(), index, seed: options.seed };
            let (done, bell) = (done.clone(), bell.clone());
            scope.spawn(move || job.run(&send, &ordered, &done, &bell));
            opening.push((workload, orders, opened));
        }
        let mut ready = Vec::new();
        for (workload, orders, opened) in opening {
            let opened = wait_for(&opened, &mut || report(Phase::SettingUp));
            ready.push(Ready { workload, opened: opened?, orders });
        }
        let mut warnings = warnings(&ready, options);
        let before = (machine::pressure::cpu(), machine::clock::now());
        let (send, finished) = mpsc::channel();
        let (gauges, bell) = (&gauges, &bell);
        scope.spawn(move || {
            let mut said = prepare(options);
            let engine = Engine::new(ready, options, (stop, gauges), repaired, bell);
            let ran = engine.and_then(Engine::run).map(|mut outcomes| {
                said.append(&mut outcomes.warnings);
                Outcomes { warnings: said, ..outcomes }
            });
            // Somebody waits for it.
            let _ = send.send(ran);
        });
        let phase = || if gauges.draining.load(Ordering::Relaxed) { Phase::Draining } else { Phase::Running };
        let outcomes = wait_for(&finished, &mut || report(phase())).map_err(machine_fault)?;
        warnings.extend(outcomes.warnings);
        Ok((Outcomes { warnings, ..outcomes }, share(before)))
    })?;
    let observations = Observations { workloads: names, requests: outcomes.requests, ..Default::default() };
    Ok(Ran {
        observations,
        counts: outcomes.counts,
        compared: outcomes.compared,
        cpu_pressure: pressure,
        observed: outcomes.observed,
        warnings: outcomes.warnings,
    })
}

/// What another thread sends, with reports until it does.
fn wait_for<T>(from: &Receiver<T>, report: &mut dyn FnMut()) -> T {
    loop {
        report();
        match from.recv_timeout(REPORT) {
            Ok(value) => return value,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("the thread that should have answered has ended"),
        }
    }
}

/// Opens one workload's connections and keeps them open.
struct Job {
    workload: Workload,
    index: usize,
    seed: u64,
}

impl Job {
    fn run(
        self,
        opened: &Sender<Result<Vec<Opened>, OperationError>>,
        orders: &Receiver<usize>,
        done: &Sender<Repaired>,
        bell: &Arc<OwnedFd>,
    ) {
        let site = Site::of(&self.workload);
        let all = site.enter().and_then(|()| self.store(&site));
        let all = all.and_then(|()| open_all(&site, self.workload.connections));
        let all = all.and_then(|all| check::fits(&self.workload, &all[0].space).map(|()| all));
        let is_open = all.is_ok();
        // The receiver is gone when another workload's servers were not there.
        if opened.send(all).is_ok() && is_open {
            repair(&site, orders, done, bell);
        }
    }

    fn store(&self, site: &Site) -> Result<(), OperationError> {
        let Target::Memcached { keys, .. } = self.workload.target else { return Ok(()) };
        let mut sizes: Vec<u32> =
            check::sizes(&self.workload.demand).into_iter().map(|(_, size)| check::small(size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        store(site, Pattern::new(self.seed, self.index), &sizes, keys)
    }
}

/// Gives the timing thread what it needs; what it could not get.
fn prepare(options: &Options) -> Vec<String> {
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

fn warnings(ready: &[Ready], options: &Options) -> Vec<String> {
    let is_torn = |one: &&Ready| {
        let is_coherent = !matches!(one.opened[0].space, Space::Bytes { is_coherent: false, .. });
        options.verify_data && one.opened.len() > 1 && !is_coherent
    };
    let say = |one: &Ready| {
        format!(
            "workload {}: the server does not promise that connections see each other's writes; use one connection \
             where data is verified",
            one.workload.name
        )
    };
    ready.iter().filter(is_torn).map(say).collect()
}

/// Of the time since `before`, the share in which somebody waited for a CPU.
fn share((pressure, at): (Option<Duration>, u64)) -> Option<f64> {
    let waited = machine::pressure::cpu()?.saturating_sub(pressure?);
    Some(waited.as_secs_f64() / Nanos(machine::clock::now() - at).as_secs().max(1e-9))
}

impl Gauges {
    fn progress(&self, phase: Phase, total: Nanos) -> Progress {
        let read = |gauge: &std::sync::atomic::AtomicU64| gauge.load(Ordering::Relaxed);
        Progress {
            phase,
            elapsed: Nanos(read(&self.elapsed)),
            total,
            requests: read(&self.requests),
            answered: read(&self.answered),
            failed: read(&self.failed),
        }
    }
}
