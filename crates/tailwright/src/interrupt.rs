//! Signals as a flag, so that a measurement ends with what it has.

use model::OperationError;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first Ctrl-C sets; the second one ends the program.
pub(crate) fn stop_on_interrupt() -> Result<Arc<AtomicBool>, OperationError> {
    stop_on(&[SIGINT])
}

/// A flag that the first Ctrl-C or SIGTERM sets; the second one ends the program.
pub(crate) fn stop_on_termination() -> Result<Arc<AtomicBool>, OperationError> {
    stop_on(&[SIGINT, SIGTERM])
}

fn stop_on(signals: &[i32]) -> Result<Arc<AtomicBool>, OperationError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals {
        // In this order: the second handler sets what the first one looks at.
        signal_hook::flag::register_conditional_shutdown(*signal, 3, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(*signal, Arc::clone(&stop)))
            .map_err(|error| OperationError::machine(format!("cannot handle signal {signal}: {error}")))?;
    }
    Ok(stop)
}
