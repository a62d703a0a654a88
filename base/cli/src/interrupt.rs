//! What SIGINT (Ctrl-C), SIGTERM and SIGHUP do, the same for every verb:
//!
//! - **Runs that collect** (simulations, measurements, searches) end with what is complete: they print it, write the files
//!   that are asked for, say that they were interrupted, and exit with 3. A second signal ends the program.
//! - **What must be undone** (knobs, namespaces, devices of a network) is undone first, however often a signal comes.
//! - **Services** handle signals themselves (`proxy`) or are ended by them (`lab device`). A run whose length is but the
//!   longest (`observe`) ends with what there is, and exits as it does otherwise.
//! - **Everything else** ends at once: files that were being written are removed, those in their place stay as they were,
//!   and the exit code is 3.

use crate::live_screen;
use crate::terminal::{Talk, talk};
use model::OperationError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// What the verb that is run has asked for.
static RULE: AtomicU8 = AtomicU8::new(END_AT_ONCE);
const END_AT_ONCE: u8 = 0;
const END_WITH_RESULTS: u8 = 1;
const UNDO_FIRST: u8 = 2;

/// Set by the first signal.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

fn stop() -> &'static Arc<AtomicBool> {
    STOP.get_or_init(Arc::default)
}

/// Starts the thread that waits for signals. Without it, which is noted, signals end the program as they do by default.
pub fn watch_signals() {
    match Signals::new(ending_signals()) {
        Ok(signals) => drop(std::thread::spawn(move || wait(signals))),
        Err(error) => talk(Talk::Note, format_args!("signals cannot be handled: {error}")),
    }
}

fn wait(mut signals: Signals) {
    for _ in signals.forever() {
        let is_second = stop().swap(true, Ordering::Relaxed);
        let ends = match RULE.load(Ordering::Relaxed) {
            END_AT_ONCE => true,
            END_WITH_RESULTS => is_second,
            _ => false,
        };
        if ends {
            live_screen::close();
            machine::whole_file::remove_unfinished();
            talk(Talk::Error, "interrupted: nothing is kept");
            std::process::exit(i32::from(crate::exit::MACHINE));
        }
    }
}

/// A flag that the first signal sets; the second one ends the program.
pub fn stop_on_termination() -> Arc<AtomicBool> {
    RULE.store(END_WITH_RESULTS, Ordering::Relaxed);
    stop().clone()
}

/// As [`stop_on_termination`], for a program that shows a page: the terminal is as it was before while Ctrl-Z stops the
/// program, and after Ctrl-\ (SIGQUIT) has ended it.
pub fn stop_with_screen() -> Arc<AtomicBool> {
    match Signals::new([SIGTSTP, SIGQUIT]) {
        Ok(signals) => drop(std::thread::spawn(move || stop_without_screen(signals))),
        Err(error) => talk(Talk::Note, format_args!("Ctrl-Z cannot be handled: {error}")),
    }
    stop_on_termination()
}

fn stop_without_screen(mut signals: Signals) {
    for signal in signals.forever() {
        live_screen::away_during(|| {
            // It cannot fail for a signal that has a number.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        });
    }
}

/// A flag that signals set, however often: for work that must be undone before the program ends.
pub fn undo_on_termination() -> Arc<AtomicBool> {
    RULE.store(UNDO_FIRST, Ordering::Relaxed);
    stop().clone()
}

/// Whether a signal has come.
pub fn is_stopped() -> bool {
    stop().load(Ordering::Relaxed)
}

/// The end of a run that collects: an error where a signal cut it short, after its results were printed and written.
///
/// # Errors
///
/// When a signal has come.
pub fn check_complete(what_there_is: &str) -> Result<(), OperationError> {
    if is_stopped() {
        return Err(OperationError::machine(format_args!("interrupted: {what_there_is}")));
    }
    Ok(())
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
