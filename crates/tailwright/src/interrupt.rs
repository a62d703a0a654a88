//! Signals as a flag, so that a measurement ends with what it has.

use model::OperationError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first Ctrl-C, SIGTERM or SIGHUP sets; the second one ends the program.
pub(crate) fn stop_on_termination() -> Result<Arc<AtomicBool>, OperationError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in ending_signals() {
        // In this order: the second handler sets what the first one looks at.
        signal_hook::flag::register_conditional_shutdown(signal, 3, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| unhandled(signal, &error))?;
    }
    Ok(stop)
}

/// A flag that Ctrl-C, SIGTERM and SIGHUP set, however often: for work that must be undone before the program ends.
pub(crate) fn undo_on_termination() -> Result<Arc<AtomicBool>, OperationError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in ending_signals() {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|error| unhandled(signal, &error))?;
    }
    Ok(stop)
}

fn unhandled(signal: i32, error: &std::io::Error) -> OperationError {
    OperationError::machine(format!("cannot handle signal {signal}: {error}"))
}

/// The signals that ask a program to end; not SIGHUP where `nohup` has it ignored.
fn ending_signals() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP))
}

/// Whether this process was started with a signal ignored; no where the kernel does not say.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
