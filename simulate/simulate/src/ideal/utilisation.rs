//! Stability: utilisation below 1.

use crate::ideal::settings::IdealSettings;
use model::OperationError;
use operation::text::overload;
use units::plural;

/// Rejects work that exceeds the capacity of the workers.
pub(super) fn check_stable(utilisation: f64, settings: &IdealSettings) -> Result<(), OperationError> {
    if utilisation < 1.0 {
        return Ok(());
    }
    let workers = plural(settings.workers.get(), "worker");
    let message = format!(
        "unstable: grows without bound; the requests bring {} of the work that {workers} can do",
        overload(utilisation)
    );
    Err(OperationError::input(message).hint("use more --workers, a shorter --service, or --load 0.8"))
}
