//! The papers' remedies against a long tail, as knobs of `experiment` for a server and the process beside it.

use super::{CLIENT_CPU, SERVER_CPU, mask};
use experiment::{KnobTarget, PlannedChange, ProcessIdentity, identity, knob, missing_right};
use model::OperationError;
use testkit::ServerAndClient;

/// A knob and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fix {
    /// The server's nice value is −20.
    Nice,
    /// The background process runs only when the server is idle; the server keeps its ordinary policy.
    DemoteBackground,
    /// SCHED_FIFO for the server: before all ordinary tasks, first come, first served.
    RealTime,
    /// The background process has another CPU: the server's is its own.
    MoveBackground,
    /// Receive work of the server's device is done on the other CPU.
    InterruptCore,
    /// CPUs do not enter idle states.
    AwakeCpus,
    /// Each thread of the server has a CPU of its own, in turn.
    PinThreads,
}

/// Processes on the machine in a period.
#[derive(Debug, Clone)]
pub(crate) struct PeriodProcesses<'a> {
    pub(crate) network: &'a ServerAndClient,
    pub(crate) server: Vec<ProcessIdentity>,
    pub(crate) background: Option<ProcessIdentity>,
    /// The CPUs that do the receive work otherwise, a mask.
    pub(crate) receive_mask: &'a str,
}

impl Fix {
    /// Returns the changes that set it now.
    ///
    /// # Errors
    /// When this machine or this process may not make them; the message names the obstacle.
    pub(crate) fn changes(self, on: &PeriodProcesses) -> Result<Vec<PlannedChange>, OperationError> {
        let server = KnobTarget { processes: on.server.clone(), ..KnobTarget::default() };
        let beside = KnobTarget { processes: on.background.into_iter().collect(), ..KnobTarget::default() };
        let background = on.background.map(|process| process.id.to_string()).unwrap_or_default();
        let other = CLIENT_CPU.to_string();
        let changes = match self {
            Self::Nice => planned("nice", &server, Some("-20")),
            Self::DemoteBackground => planned("demote", &server, Some(&background)),
            Self::RealTime => planned("fifo", &server, None),
            Self::MoveBackground => planned("pin", &beside, Some(&other)),
            Self::AwakeCpus => planned("wakeup-latency", &server, Some("0")),
            Self::PinThreads => planned("pin", &server, Some("spread")),
            Self::InterruptCore => {
                let on_other = on.network.receive_on_cpus_command(&mask(CLIENT_CPU));
                let as_before = on.network.receive_on_cpus_command(on.receive_mask);
                let commands = Some((on_other, as_before));
                planned("command", &KnobTarget { commands, ..server }, None)
            }
        }?;
        match missing_right(&changes) {
            Some(missing) => Err(missing),
            None => Ok(changes),
        }
    }
}

fn planned(
    name: &str,
    target: &KnobTarget,
    value: Option<&str>,
) -> Result<Vec<PlannedChange>, OperationError> {
    knob(name).expect("it is a knob").plan(target, value)
}

/// The processes of these numbers that run.
pub(crate) fn identities(ids: &[u32]) -> Vec<ProcessIdentity> {
    ids.iter().filter_map(|id| identity(*id)).collect()
}

/// The mask of the server's CPU.
pub(crate) fn server_mask() -> String {
    mask(SERVER_CPU)
}
