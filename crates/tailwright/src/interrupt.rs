//! Signals as a flag, so that a measurement ends with what it has.

use crate::live_screen;
use model::OperationError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// As [`stop_on_termination`], for a program that shows a page: the terminal is as it was before the second signal ends
/// the program, and while Ctrl-Z stops it.
pub(crate) fn stop_with_screen() -> Result<Arc<AtomicBool>, OperationError> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new(ending_signals().chain([SIGTSTP]))
        .map_err(|error| OperationError::machine(format_args!("signals cannot be handled: {error}")))?;
    let flag = Arc::clone(&stop);
    // A thread and not a handler: what it does may take locks. It ends with the process.
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGTSTP {
                live_screen::away_during(|| {
                    // It cannot fail for a signal that has a number.
                    let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
                });
            } else if flag.swap(true, Ordering::Relaxed) {
                live_screen::close();
                std::process::exit(3);
            }
        }
    });
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
