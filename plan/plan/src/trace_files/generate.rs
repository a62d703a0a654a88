//! Synthetic traces, drawn from random processes.

use crate::trace_files::error::TraceFileError;
use crate::trace_files::output::TraceOutput;
use model::OperationError;
use operation::{Notice, ProgressObserver};
use trace::generate::{GenerateError, RateProcess, Synthetic};
use units::Nanos;

/// Beyond a request for each nanosecond, time does not go on.
const RATE_MAX: f64 = 1e9;

/// On-off sources that together have a mean rate of requests per second.
pub fn on_off_process(rate: f64, sources: u32, on: Nanos, off: Nanos, shape: f64) -> RateProcess {
    let on_s = on.as_secs();
    let off_s = off.as_secs();
    let rate_on = rate * (on_s + off_s) / (on_s * f64::from(sources));
    RateProcess::OnOff { sources, rate_on, on_s, off_s, shape }
}

/// Writes a synthetic trace.
///
/// # Errors
///
/// When a parameter is out of range, or the trace cannot be written.
pub fn generate_trace(
    synthetic: &Synthetic,
    output: &TraceOutput,
    observer: &dyn ProgressObserver,
) -> Result<(), TraceFileError> {
    let requests = synthetic.requests().map_err(|error| wrong_parameter(&error))?;
    let rate = synthetic.process.mean_rate();
    if rate > RATE_MAX {
        let message = format!("expected at most {RATE_MAX:e} requests per second, found {rate:e}");
        return Err(OperationError::input(message)
            .hint("instants of traces are whole nanoseconds: more requests would arrive at the same ones")
            .into());
    }
    if synthetic.duration == Nanos::ZERO {
        return Err(OperationError::input("--duration 0s: expected a time above zero").into());
    }
    let expected = rate * synthetic.duration.as_secs();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "about how many requests, for the progress"
    )]
    let task = observer.begin("generating", expected as u64, "requests");
    let requests = requests.map(|request| {
        task.advance();
        Ok(request)
    });
    output.write(requests, observer)?;
    drop(task);
    observer.notice(Notice::Done(format!("seed {}", synthetic.seed)));
    Ok(())
}

/// A parameter out of range as an error with a remedy.
pub fn wrong_parameter(error: &GenerateError) -> OperationError {
    OperationError::input(error).hint("see tailwright trace generate --help for ranges and examples")
}
