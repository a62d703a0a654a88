//! Handling of SIGINT (Ctrl-C), SIGTERM and SIGHUP, the same for every verb:
//!
//! - **Runs that collect** (simulations, measurements, searches) stop and keep the complete part: they
//!   print it, write the requested files, report the interruption, and exit with 3. A second signal ends
//!   the program.
//! - **Changes that must be undone** (knobs, network namespaces and devices) are undone first, regardless
//!   of the number of signals.
//! - **Services** handle signals themselves (`proxy`) or are ended by them (`lab device`). A run whose
//!   length is only a maximum (`observe`) ends with the data collected so far and its usual exit code.
//! - **Everything else** ends at once: unfinished files are removed, the files that they would replace
//!   stay as they were, and the exit code is 3.

use crate::live_screen;
use crate::terminal::{Talk, talk};
use model::OperationError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// Signal rule of the running verb.
static RULE: AtomicU8 = AtomicU8::new(END_AT_ONCE);
const END_AT_ONCE: u8 = 0;
const END_WITH_RESULTS: u8 = 1;
const UNDO_FIRST: u8 = 2;

/// Set by the first signal.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

fn stop() -> &'static Arc<AtomicBool> {
    STOP.get_or_init(Arc::default)
}

/// Starts the thread that waits for signals. If that fails, a note is printed and signals have their
/// default effect.
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

/// Returns a flag that the first signal sets; the second one ends the program.
pub fn stop_on_termination() -> Arc<AtomicBool> {
    RULE.store(END_WITH_RESULTS, Ordering::Relaxed);
    stop().clone()
}

/// As [`stop_on_termination`], for a program that shows a live page: restores the terminal before Ctrl-Z
/// stops the program or Ctrl-\ (SIGQUIT) ends it.
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
            // Fails only for an invalid signal number.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        });
    }
}

/// Returns a flag that signals set, however many arrive: for work that must be undone before the program
/// ends.
pub fn undo_on_termination() -> Arc<AtomicBool> {
    RULE.store(UNDO_FIRST, Ordering::Relaxed);
    stop().clone()
}

/// Returns true once a signal has arrived.
pub fn is_stopped() -> bool {
    stop().load(Ordering::Relaxed)
}

/// Returns an error if a signal cut a collecting run short. Called after its results are printed and
/// written.
///
/// # Errors
///
/// If a signal has arrived.
pub fn check_complete(what_there_is: &str) -> Result<(), OperationError> {
    if is_stopped() {
        return Err(OperationError::machine(format_args!("interrupted: {what_there_is}")));
    }
    Ok(())
}

/// Returns the signals that ask a program to end; without SIGHUP if `nohup` has it ignored.
fn ending_signals() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP))
}

/// Returns true if this process was started with a signal ignored; false if the kernel does not report
/// it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
