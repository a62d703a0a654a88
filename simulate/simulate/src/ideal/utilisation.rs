//! Stability: utilisation below 1.

use crate::ideal::settings::IdealSettings;
use model::OperationError;
use operation::text::overload;
use units::plural;

/// Rounding of a utilisation that is a product of decimal numbers.
const ROUNDING: f64 = 1e-9;

/// Rejects work that the workers cannot do. At exactly their capacity they can if nothing is random.
pub(super) fn check_stable(
    utilisation: f64,
    is_deterministic: bool,
    settings: &IdealSettings,
) -> Result<(), OperationError> {
    if utilisation < 1.0 || is_deterministic && utilisation <= 1.0 + ROUNDING {
        return Ok(());
    }
    let workers = plural(settings.workers.get(), "worker");
    let message = format!(
        "unstable: grows without bound; the requests bring {} of the work that {workers} can do",
        overload(utilisation)
    );
    Err(OperationError::input(message).hint("use more --workers, a shorter --service, or --load 0.8"))
}
