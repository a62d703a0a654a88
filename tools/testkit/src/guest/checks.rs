//! Tests that are run one after the other in a guest, each with an outcome that the host reads.

use super::figures::GuestFigures;
use super::inside::report_figure;

/// A test with its name.
pub type GuestCheck = (&'static str, fn());

/// In the guest: runs the checks in this order, also after one that fails, and prints what came of each.
pub fn run_checks(checks: &[GuestCheck]) {
    for (name, check) in checks {
        let outcome = std::panic::catch_unwind(check);
        report_figure(name, if outcome.is_ok() { PASSED } else { "failed" });
    }
}

const PASSED: &str = "passed";

impl GuestFigures {
    /// On the host: expects that each of the checks has passed in the guest.
    ///
    /// # Panics
    /// When one has failed, or was not run.
    #[track_caller]
    pub fn expect_passed(&self, checks: &[GuestCheck]) {
        for (name, _) in checks {
            assert_eq!(self.text(name), PASSED, "{name}: {self}");
        }
    }
}
