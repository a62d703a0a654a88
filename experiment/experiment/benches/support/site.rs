//! The machine during a benchmark: two hosts, the journal of settings, and the flag to stop. Everything
//! is undone when the value is dropped.

use super::{CLIENT_CPU, mask};
use experiment::{KnobSwitch, LinuxJournal, LinuxSettings, ProcessIdentity, boot, identity, open_journal};
use model::OperationError;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::ServerAndClient;

/// Times of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeriodTimes {
    /// Time in which requests are not counted after a server was started, its knobs set and the load begun.
    pub(crate) guard: Duration,
    /// Time in which requests are counted.
    pub(crate) counted: Duration,
    /// Longest wait for other processes to leave the machine idle.
    pub(crate) quiet_wait: Duration,
}

/// Two hosts, and the settings of this machine.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) switch: KnobSwitch<LinuxSettings, LinuxJournal>,
    pub(crate) network: ServerAndClient,
    pub(crate) times: PeriodTimes,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Site {
    /// Makes the network and opens the journal of a folder. Skips loudly and returns `None` if one of
    /// them is not available.
    pub(crate) fn open(state: &Path, times: PeriodTimes) -> Result<Option<Self>, OperationError> {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            testkit::skip("one CPU: client and server cannot have one each");
            return Ok(None);
        }
        if let Err(error) = observe::AttachedProbes::attach(&observe::ProbeSettings::of_ports([1])) {
            testkit::skip(&error.to_string());
            return Ok(None);
        }
        let (file, journal, path) = open_journal(state)?;
        if !journal.changes().is_empty() {
            let message = format_args!("{}: what an earlier experiment set was not undone", path.display());
            return Err(OperationError::machine(message).hint("run `tailwright experiment --undo`"));
        }
        let switch = KnobSwitch::new(LinuxSettings::default(), file, journal, &boot()?);
        let Some(network) = ServerAndClient::create() else { return Ok(None) };
        if !network.wire_on_cpus(&mask(CLIENT_CPU)) {
            testkit::skip("receive work cannot be steered to a CPU (RPS): the wire would be on the server's");
            return Ok(None);
        }
        let stop = Arc::new(AtomicBool::new(false));
        Ok(Some(Self { switch, network, times, stop }))
    }

    /// Ends the benchmark at the first SIGINT, SIGTERM or SIGHUP, after its settings are undone.
    pub(crate) fn stop_on_signals(&self) -> std::io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, self.stop.clone())?;
        }
        Ok(())
    }

    /// Returns true if a stop was requested.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A process that computes for about 25 ms, sleeps for 50 ms, and so on, on the server's CPU, as daemons do. It
/// ends with the value.
#[derive(Debug)]
pub(crate) struct Background(Child);

/// Time that the process has to start.
const START_MAX: Duration = Duration::from_secs(20);
/// Program of the process: a burst of computing takes about 25 ms.
const BURSTS: &str = "while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.05; done";

impl Background {
    /// Starts it on a CPU.
    pub(crate) fn start(cpu: usize) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string(), "sh", "-c", BURSTS]).stdin(Stdio::null());
        let started = Self(command.spawn().expect("there is a taskset"));
        // taskset would overwrite settings made before it has exec'd the program.
        let name = format!("/proc/{}/comm", started.0.id());
        let is_shell = || std::fs::read_to_string(&name).is_ok_and(|name| name.trim() == "sh");
        testkit::wait_until(START_MAX, "the background process starts", is_shell);
        started
    }

    /// The process, as settings name it.
    pub(crate) fn identity(&self) -> Option<ProcessIdentity> {
        identity(self.0.id())
    }

    /// CPU time of the process and of those that it has waited for, in nanoseconds, in steps of 10 ms.
    pub(crate) fn cpu_ns(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        // Fields 14 to 17 of proc(5).
        let ticks = after_name.split_whitespace().skip(11).take(4);
        ticks.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>() * 10_000_000
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
