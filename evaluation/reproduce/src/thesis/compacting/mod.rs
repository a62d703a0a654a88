//! WorkloadCompactor against other choices of limits (chapter 5), on the recorded workloads.
//!
//! The traces are those of the published release; the thesis draws from a larger collection of the same servers.

mod larger_sets;
mod measured;
mod methods;
mod servers;
mod sources;

pub(super) use larger_sets::run as larger_sets;
pub(super) use measured::run as measured;
pub(super) use servers::run as servers;

use crate::context::{Context, FigureError};

/// The number of random sets at an effort: two at least, so that there is an interval.
fn draws(full: usize, effort: f64) -> usize {
    // The product is a small positive number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let scaled = (full as f64 * effort).round() as usize;
    scaled.max(2)
}

/// Ends the experiment if the user asked for it.
fn interrupted(context: &Context) -> Result<(), FigureError> {
    if (context.is_interrupted)() { Err(FigureError::Interrupted) } else { Ok(()) }
}

/// A share of more servers: 0.4 is 40 % more.
fn format_more(share: f64) -> String {
    format!("{:.0} % more", 100.0 * share)
}
