//! Long calls: on a thread of their own, without Python's global lock, ended by Ctrl-C.
//!
//! Only Python's main thread learns of signals, and only while it asks. It therefore waits for the call in short
//! turns. After a signal, the call's next report of progress unwinds its threads, as a panic without a message;
//! the facades keep no state that could be left half-changed. A call that reports nothing for a while goes on
//! unheard until it does.

use crate::errors::{failed, internal};
use model::OperationError;
use operation::{Notice, ProgressObserver, TaskProgress};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two questions for a signal.
const TURN: Duration = Duration::from_millis(50);
/// Time that a call has to end after a signal, before it is left alone.
const GRACE: Duration = Duration::from_secs(1);
/// Stack of a call: that of a program's main thread.
const STACK_BYTES: usize = 8 << 20;

/// Payload of the unwinding that ends a stopped call.
struct Stopped;

/// A call under way, as its observer.
#[derive(Default)]
pub(crate) struct Call {
    stop: AtomicBool,
    notices: Mutex<Vec<Notice>>,
    started: Mutex<Option<Instant>>,
}

impl Call {
    /// Returns true once the call should end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the wall time since the call began, seconds.
    pub(crate) fn elapsed_s(&self) -> f64 {
        let started = *self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.map_or(0.0, |started| started.elapsed().as_secs_f64())
    }

    /// Unwinds the calling thread of a stopped call. Quietly: a hook for panics is for bugs.
    fn end_if_stopped(&self) {
        if self.is_stopped() && !thread::panicking() {
            resume_unwind(Box::new(Stopped));
        }
    }
}

impl ProgressObserver for Call {
    fn begin(&self, _: &str, _: u64, _: &str) -> Box<dyn TaskProgress + '_> {
        self.end_if_stopped();
        Box::new(Task(self))
    }

    fn notice(&self, notice: Notice) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }
}

struct Task<'a>(&'a Call);

impl TaskProgress for Task<'_> {
    fn advance(&self) {
        self.0.end_if_stopped();
    }

    fn update(&self, _: u64, _: u64) {
        self.0.end_if_stopped();
    }

    fn rename(&self, _: &str) {
        self.0.end_if_stopped();
    }
}

/// Runs `work` and returns its answer. Notices become warnings and messages of Python's logging.
pub(crate) fn call<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Call) -> Result<T, OperationError> + Send + 'static,
) -> PyResult<T> {
    let call = Arc::new(Call { started: Mutex::new(Some(Instant::now())), ..Call::default() });
    let (answer, mut answers) = channel();
    let of_thread = Arc::clone(&call);
    let body = move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&of_thread)));
        // A call that was left alone has no receiver.
        let _ = answer.send(outcome);
    };
    let builder = thread::Builder::new().name("tailwright".to_owned()).stack_size(STACK_BYTES);
    builder.spawn(body).map_err(|error| {
        failed(py, &OperationError::machine(format_args!("no thread could be started: {error}")))
    })?;
    loop {
        let outcome;
        (outcome, answers) = wait(py, answers, TURN);
        match outcome {
            Ok(outcome) => {
                tell(py, &call)?;
                let outcome = outcome.map_err(|panic| internal(py, &panic_message(&*panic)))?;
                return outcome.map_err(|error| failed(py, &error));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    call.stop.store(true, Ordering::Relaxed);
                    let _ = wait(py, answers, GRACE);
                    return Err(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(internal(py, "a call ended without an answer"));
            }
        }
    }
}

/// Waits without Python's global lock. The channel goes with the wait, because threads cannot share its end.
fn wait<T: Send>(
    py: Python<'_>,
    answers: Receiver<T>,
    time: Duration,
) -> (Result<T, RecvTimeoutError>, Receiver<T>) {
    py.detach(move || (answers.recv_timeout(time), answers))
}

/// Passes the notices of a call to `tailwright._notices`.
fn tell(py: Python<'_>, call: &Call) -> PyResult<()> {
    let notices = std::mem::take(&mut *call.notices.lock().unwrap_or_else(PoisonError::into_inner));
    if notices.is_empty() {
        return Ok(());
    }
    let module = py.import("tailwright._notices")?;
    for notice in notices {
        let (function, text) = match notice {
            Notice::Warning(text) => ("warn", text),
            Notice::Note(text) | Notice::Done(text) => ("inform", text),
        };
        module.call_method1(function, (text,))?;
    }
    Ok(())
}

/// Runs a part of a short call without Python's global lock. A panic becomes an exception.
pub(crate) fn unlocked<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_message(&*panic)));
    outcome.map_err(|message| internal(py, &message))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
