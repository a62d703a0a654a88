//! Options of the calibrated model: predicted quantity and probability.

use clap::{Args, ValueEnum};
use model::OperationError;
use plan::prediction::{CalibrationGoal, CalibrationScope, ModelName, ProcedureName};
use units::{Nanos, Percentile};

/// Unit that the coverage counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScopeChoice {
    /// For each workload, the prediction holds in the next window with this probability.
    Workload,
    /// It holds for all workloads of a server together.
    Server,
    /// It holds for all workloads of all servers together.
    Plan,
}

/// Quantity that `--model calibrated` predicts, and its probability.
#[derive(Debug, Clone, Args)]
pub(crate) struct CalibrationArgs {
    /// With --model calibrated: the probability that a prediction holds in the next window.
    #[arg(long, value_name = "PERCENT", default_value = "95%")]
    coverage: Percentile,
    /// With --model calibrated: the length of the next window, such as 5min (default: half of each trace).
    #[arg(long = "horizon", alias = "for", value_name = "TIME")]
    window: Option<Nanos>,
    /// With --model calibrated: whose predictions the coverage counts.
    #[arg(long, value_name = "WHOM", value_enum, default_value = "workload")]
    coverage_of: ScopeChoice,
}

impl CalibrationArgs {
    /// Returns the goal that these flags set for the given procedures.
    pub(crate) fn goal_for(&self, procedures: &[ProcedureName]) -> Result<CalibrationGoal, OperationError> {
        let goal = self.goal()?;
        if goal != CalibrationGoal::default() && !procedures.contains(&ModelName::Calibrated.into()) {
            return Err(OperationError::input(
                "--coverage, --horizon and --coverage-of belong to --model calibrated",
            ));
        }
        Ok(goal)
    }

    /// Refuses these flags where no model is asked.
    pub(crate) fn refuse_without_model(&self) -> Result<(), OperationError> {
        self.goal_for(&[]).map(drop)
    }

    /// Returns the goal that these flags set.
    fn goal(&self) -> Result<CalibrationGoal, OperationError> {
        let coverage = self.coverage.fraction();
        if coverage >= 1.0 {
            return Err(OperationError::input(
                "--coverage 100% cannot be guaranteed for traffic that is not known yet",
            )
            .hint("give a lower one, such as 99%, or --model worst-case"));
        }
        if coverage < 0.5 {
            let said = self.coverage;
            return Err(OperationError::input(format_args!("--coverage {said} is less than a half"))
                .hint("it is a percentage, such as 95%"));
        }
        if self.window == Some(Nanos::ZERO) {
            return Err(OperationError::input("--horizon 0s is no window: expected a time such as 5min"));
        }
        let scope = match self.coverage_of {
            ScopeChoice::Workload => CalibrationScope::Workload,
            ScopeChoice::Server => CalibrationScope::Server,
            ScopeChoice::Plan => CalibrationScope::Plan,
        };
        Ok(CalibrationGoal { coverage, window: self.window, scope })
    }
}
