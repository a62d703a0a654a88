//! One play: tiers are started, every request of a workload is sent, and the results of both ends are
//! combined.

use crate::age_order::TierVisit;
use crate::machine_fit::LoadTurn;
use crate::mode::ScheduleMode;
use crate::sender::{SentRequests, send};
use crate::tier::{LoggedVisit, TierPort, TierReady, TierReport, TierSettings};
use crate::workload::ChainWorkload;
use confidence::nearest_rank;
use machine::{clock, cpu_time};
use model::OperationError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use sim::pool_tiers::PlayedRequest;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::Nanos;

/// Arguments that start the program as a tier.
const TIER_ARGUMENTS: [&str; 2] = ["schedule", "tier"];
/// Time from the last preparation to the beginning of a play.
const LEAD: Duration = Duration::from_millis(20);
/// Interval between checks for a stop request while a tier is silent.
const STOP_CHECK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A completed play.
#[derive(Debug)]
pub(crate) struct FinishedPlay {
    /// Outcome of each request.
    pub(crate) played: Vec<PlayedRequest>,
    /// Visits at each tier.
    pub(crate) visits: Vec<Vec<TierVisit>>,
    /// Concurrency limit of each tier at the end; `None` is no limit.
    pub(crate) limits: Vec<Option<u32>>,
    /// CPU time of each tier ÷ the work assigned to it.
    pub(crate) cpu_per_work: Vec<f64>,
    /// 99th percentile of the delays in sending requests.
    pub(crate) lag_p99: Nanos,
    /// Number of requests answered with an error.
    pub(crate) failed: usize,
    /// Maximum number of concurrent requests.
    pub(crate) in_flight_max: usize,
    /// Share of CPU time used by other processes; `None` if the kernel does not report it.
    pub(crate) others_share: Option<f64>,
    /// Busy time of each tier's CPUs ÷ the work assigned to it, at least 1; `None` if the kernel does not
    /// report it.
    pub(crate) busy_per_work: Option<Vec<f64>>,
}

/// Outcome of a play.
#[derive(Debug)]
pub(crate) enum PlayEnd {
    /// All requests were answered.
    Finished(Box<FinishedPlay>),
    /// The play was stopped before all requests were answered.
    Stopped,
    /// A tier does not support this mode; contains the reason.
    Unavailable(String),
}

/// Plays a workload once.
///
/// # Errors
/// If a tier cannot be started, ends early or loses requests.
pub(crate) fn play(
    workload: &ChainWorkload,
    mode: ScheduleMode,
    c: Option<u32>,
    cpus: &[BTreeSet<usize>],
    program: &Path,
    stop: &AtomicBool,
) -> Result<PlayEnd, OperationError> {
    let mut tiers = Vec::new();
    for tier in &workload.tiers {
        let Some(tier) = TierProcess::start(&tier.name, program, stop)? else {
            return Ok(PlayEnd::Stopped);
        };
        tiers.push(tier);
    }
    let addresses: Vec<SocketAddr> = tiers.iter().map(|tier| tier.address).collect();
    for (index, tier) in tiers.iter_mut().enumerate() {
        let settings = TierSettings {
            tier: index,
            cpus: cpus[index].clone(),
            mode,
            limit: mode.limit(c),
            tiers: addresses.clone(),
        };
        let Some(ready) = tier.begin(&settings, stop)? else { return Ok(PlayEnd::Stopped) };
        if let Some(why) = ready.lacks {
            return Ok(PlayEnd::Unavailable(why));
        }
    }
    let turn = LoadTurn::begin();
    let before = MachineTimes::read(cpus);
    let origin = clock::now() + u64::try_from(LEAD.as_nanos()).expect("a short time");
    let real_time = clock::real_time() + (origin - clock::now());
    let sent = send(workload, &addresses, (origin, real_time), stop);
    let sent = sent.map_err(|error| {
        OperationError::machine(format_args!("running {mode}: {error}")).hint(hint_for(&error))
    })?;
    drop(turn);
    let Some(sent) = sent else { return Ok(PlayEnd::Stopped) };
    let after = MachineTimes::read(cpus);
    let mut reports = Vec::new();
    for tier in tiers {
        let Some(report) = tier.finish(stop)? else { return Ok(PlayEnd::Stopped) };
        reports.push(report);
    }
    let tiers_cpu = reports.iter().map(|report: &TierReport| report.cpu_ns).sum();
    let mut play = finished(workload, &sent, reports)?;
    play.others_share = after.others_share(&before, tiers_cpu);
    play.busy_per_work = after.busy_per_work(&before, workload);
    Ok(PlayEnd::Finished(Box::new(play)))
}

/// Returns a hint for a failure to send requests.
fn hint_for(error: &std::io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE) => {
            "each request in flight needs a connection: a higher `ulimit -n`, or a smaller --load or window"
        }
        _ => {
            "a tier has ended: it may have been killed, or have had no thread or file left; `dmesg`, \
             `ulimit -u` and `ulimit -n` may say why"
        }
    }
}

/// CPU times of the machine and this process at one instant.
struct MachineTimes {
    now_ns: u64,
    /// Busy time of each tier's CPUs, if the kernel reports it.
    busy_ns: Vec<Option<u64>>,
    own_ns: u64,
    cpus: usize,
}

impl MachineTimes {
    fn read(cpus: &[BTreeSet<usize>]) -> Self {
        Self {
            now_ns: clock::now(),
            busy_ns: cpus.iter().map(cpu_time::busy).collect(),
            own_ns: cpu_time::of_process(),
            cpus: cpus.iter().map(BTreeSet::len).sum(),
        }
    }

    /// Returns the busy time of each tier's CPUs since another instant.
    fn busy_since(&self, before: &Self) -> Option<Vec<u64>> {
        let pairs = before.busy_ns.iter().zip(&self.busy_ns);
        pairs.map(|(before, after)| Some((*after)?.saturating_sub((*before)?))).collect()
    }

    /// Returns the share of CPU time used by neither this process nor the tiers.
    fn others_share(&self, before: &Self, tiers_ns: u64) -> Option<f64> {
        let busy: u64 = self.busy_since(before)?.iter().sum();
        let others = busy.saturating_sub(self.own_ns - before.own_ns).saturating_sub(tiers_ns);
        Some(others as f64 / ((self.now_ns - before.now_ns) * self.cpus as u64) as f64)
    }

    /// Returns the busy time of each tier's CPUs ÷ the work assigned to it, at least 1.
    fn busy_per_work(&self, before: &Self, workload: &ChainWorkload) -> Option<Vec<f64>> {
        let tiers = self.busy_since(before)?.into_iter().enumerate();
        let factor =
            |(tier, busy): (usize, u64)| (busy as f64 / workload.work(tier).0.max(1) as f64).max(1.0);
        Some(tiers.map(factor).collect())
    }
}

/// Combines the results of both ends; an error if they disagree about the number of requests.
fn finished(
    workload: &ChainWorkload,
    sent: &SentRequests,
    reports: Vec<TierReport>,
) -> Result<FinishedPlay, OperationError> {
    let mut played: Vec<PlayedRequest> = sent
        .answers
        .iter()
        .map(|done| PlayedRequest { done: *done, at_tiers: vec![Nanos::ZERO; workload.tiers.len()] })
        .collect();
    let mut visits = Vec::new();
    let mut limits = Vec::new();
    let mut cpu_per_work = Vec::new();
    for (tier, report) in reports.into_iter().enumerate() {
        let mut numbers: Vec<u64> = report.visits.iter().map(|visit| visit.request).collect();
        numbers.sort_unstable();
        if sent.failed == 0 && numbers != expected_visits(workload, tier) {
            let name = &workload.tiers[tier].name;
            let found = numbers.len();
            let expected = workload.visits(tier);
            return Err(OperationError::machine(format_args!(
                "tier '{name}' served {}, expected {expected}, each once",
                units::plural(found, "visit")
            )));
        }
        for visit in &report.visits {
            let request = usize::try_from(visit.request).ok().and_then(|index| played.get_mut(index));
            if let Some(request) = request {
                request.at_tiers[tier] = request.at_tiers[tier] + Nanos(visit.end - visit.arrival);
            }
        }
        let work = workload.work(tier).0;
        cpu_per_work.push(if work == 0 { 0.0 } else { report.cpu_ns as f64 / work as f64 });
        limits.push(report.limit);
        visits.push(report.visits.into_iter().map(|visit| true_visit(workload, visit)).collect());
    }
    let mut lags = sent.lags_ns.clone();
    lags.sort_unstable();
    let lag_p99 = if lags.is_empty() { 0 } else { lags[nearest_rank(99.0, lags.len()) - 1] };
    Ok(FinishedPlay {
        played,
        visits,
        limits,
        cpu_per_work,
        lag_p99: Nanos(lag_p99),
        failed: sent.failed,
        in_flight_max: sent.in_flight_max,
        others_share: None,
        busy_per_work: None,
    })
}

/// Returns the numbers of the requests that visit a tier, ascending, once for each visit.
fn expected_visits(workload: &ChainWorkload, tier: usize) -> Vec<u64> {
    let requests = (0u64..).zip(&workload.requests);
    let numbers = requests.flat_map(|(number, request)| {
        let hops = request.route.iter().filter(move |hop| hop.tier == tier);
        hops.map(move |_| number)
    });
    numbers.collect()
}

/// Corrects a visit's key by the skew of its entry's clock, so that keys are comparable.
fn true_visit(workload: &ChainWorkload, visit: LoggedVisit) -> TierVisit {
    let LoggedVisit { request, key, arrival, end, runs } = visit;
    let drawn = usize::try_from(request).ok().and_then(|index| workload.requests.get(index));
    let skew_ns = drawn.map_or(0, |drawn| workload.entries[drawn.entry].skew_ns);
    TierVisit { request, key: key.saturating_add_signed(skew_ns.saturating_neg()), arrival, end, runs }
}

/// A running tier. Dropping it kills the process.
struct TierProcess {
    name: String,
    address: SocketAddr,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl TierProcess {
    /// Starts a tier and reads its port. Returns `None` if `stop` was set before.
    fn start(name: &str, program: &Path, stop: &AtomicBool) -> Result<Option<Self>, OperationError> {
        let mut command = Command::new(program);
        command.args(TIER_ARGUMENTS).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A process group of its own, so that Ctrl-C at a terminal reaches only the experiment, which ends
        // its tiers.
        let mut child = command.process_group(0).spawn().map_err(|error| {
            OperationError::machine(format_args!(
                "{}: cannot start tier '{name}': {error}",
                program.display()
            ))
            .hint("the tiers are this program, which must be able to start itself")
        })?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut process = Self { name: name.to_owned(), address, child, input, output };
        let Some(TierPort { port }) = process.hear(stop)? else { return Ok(None) };
        process.address.set_port(port);
        Ok(Some(process))
    }

    /// Sends the settings to a tier and reads its answer. Returns `None` if `stop` was set before.
    fn begin(
        &mut self,
        settings: &TierSettings,
        stop: &AtomicBool,
    ) -> Result<Option<TierReady>, OperationError> {
        let mut line = serde_json::to_string(settings).expect("plain data serialises");
        line.push('\n');
        let written = self.input.as_mut().map_or(Ok(()), |input| input.write_all(line.as_bytes()));
        written.map_err(|error| self.lost(&error.to_string()))?;
        self.hear(stop)
    }

    /// Ends a tier and reads its report. Returns `None` if `stop` was set before.
    fn finish(mut self, stop: &AtomicBool) -> Result<Option<TierReport>, OperationError> {
        drop(self.input.take());
        let Some(report) = self.hear(stop)? else { return Ok(None) };
        self.child.wait().map_err(|error| self.lost(&error.to_string()))?;
        Ok(Some(report))
    }

    /// Reads the tier's next line. Returns `None` if `stop` was set before.
    fn hear<T: DeserializeOwned>(&mut self, stop: &AtomicBool) -> Result<Option<T>, OperationError> {
        while self.output.buffer().is_empty() && !self.has_said_more()? {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| self.lost(&error.to_string()))?;
        serde_json::from_str(&line).map(Some).map_err(|_| self.lost("it ended early"))
    }

    /// Waits for a short time for input or end of file. Returns true if either is there.
    fn has_said_more(&self) -> Result<bool, OperationError> {
        let mut waiting = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        match poll(&mut waiting, Some(&STOP_CHECK)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(self.lost(&error.to_string())),
        }
    }

    fn lost(&self, why: &str) -> OperationError {
        OperationError::machine(format_args!("tier '{}': {why}", self.name))
            .hint("its own messages are above; it may have been killed")
    }
}

impl Drop for TierProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{ChainClass, ChainEntry, ChainRequest, ChainTier};
    use sim::pool_tiers::RouteHop;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_tier_that_says_nothing_does_not_keep_a_play_that_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("silent");
        std::fs::write(&program, "#!/bin/sh\nexec sleep 1000\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let started = scope.spawn(|| TierProcess::start("a", &program, &stop));
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(started.join().unwrap(), Ok(None)));
        });
    }

    /// The second request enters later, but its entry's clock is slow, so the tier orders it first.
    #[test]
    fn who_is_among_the_oldest_is_judged_by_one_clock() {
        let request = |arrival, entry| ChainRequest {
            arrival: Nanos(arrival),
            entry,
            class: 0,
            route: vec![RouteHop { tier: 0, wait: Nanos::ZERO, work: Nanos(10) }],
        };
        let workload = ChainWorkload {
            tiers: vec![ChainTier { name: "a".into(), workers: 1 }],
            entries: [0, -50].map(|skew_ns| ChainEntry { window: None, skew_ns }).to_vec(),
            classes: vec![ChainClass { name: "all".into(), slo: None }],
            requests: vec![request(0, 0), request(5, 1)],
            serialised: 0,
        };
        let visit = |request, key, arrival, run: (u64, u64)| LoggedVisit {
            request,
            key,
            arrival,
            end: run.1,
            runs: vec![run],
        };
        let visits = vec![visit(1, 955, 5, (5, 15)), visit(0, 1000, 0, (15, 20))];
        let report = TierReport { visits, cpu_ns: 15, limit: Some(1) };
        let answers = vec![Some(Nanos(20)), Some(Nanos(15))];
        let sent = SentRequests { answers, ..SentRequests::default() };
        let play = finished(&workload, &sent, vec![report]).unwrap();
        assert_eq!(play.visits[0].iter().map(|visit| visit.key).collect::<Vec<_>>(), [1005, 1000]);
        let share = crate::younger_share(&play.visits[0], 1).unwrap();
        assert!((share - 10.0 / 15.0).abs() < 1e-12, "{share}");
    }
}
