//! Runs the steps of a change, one after the other.

use super::difference::ChangeStep;
use super::namespace::HostNamespace;
use super::observed;
use crate::command::CommandRunner;
use model::OperationError;
use std::time::{Duration, Instant};

/// Maximum time for classes to send their queued packets before deletion. A class of 1 Mbit/s sends 250
/// kB in this time.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Interval between checks of the classes; a run of tc itself takes a few milliseconds.
const DRAIN_POLL: Duration = Duration::from_millis(5);

/// Runs the steps in a namespace, and returns warnings about lost packets.
pub(super) fn run_all(
    run: &mut dyn CommandRunner,
    namespace: &HostNamespace,
    steps: &[ChangeStep],
) -> Result<Vec<String>, OperationError> {
    let mut lost = Vec::new();
    for step in steps {
        match step {
            ChangeStep::Run(command) => drop(run.run(command)?),
            ChangeStep::Drain { device, classes } => lost.extend(drain(run, namespace, device, classes)?),
        }
    }
    Ok(lost)
}

/// Waits until classes are empty; after [`DRAIN_MAX`] returns warnings about the bytes left in them.
fn drain(
    run: &mut dyn CommandRunner,
    namespace: &HostNamespace,
    device: &str,
    classes: &[u16],
) -> Result<Option<String>, OperationError> {
    let start = Instant::now();
    loop {
        let bytes = observed::backlog_bytes(run, namespace, device, classes)?;
        if bytes == 0 {
            return Ok(None);
        }
        if start.elapsed() > DRAIN_MAX {
            return Ok(Some(format!(
                "{device}: {} still waited in classes that were removed",
                units::plural(bytes, "byte")
            )));
        }
        std::thread::sleep(DRAIN_POLL);
    }
}
