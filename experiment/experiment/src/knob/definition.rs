//! Definition of a knob: its description, and the changes that it makes.

use crate::setting::{PlannedChange, ProcessIdentity};
use model::OperationError;
use std::collections::BTreeSet;

/// Server, devices and commands that an experiment is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnobTarget {
    pub processes: Vec<ProcessIdentity>,
    /// TCP ports of the server.
    pub ports: BTreeSet<u16>,
    /// Network device that receives its requests.
    pub device: Option<String>,
    /// Disk that it works on.
    pub disk: Option<String>,
    /// The user's commands to apply and to undo; `{}` in them stands for the value.
    pub commands: Option<(String, String)>,
    /// Command that sends the load, and the value of `{}` in it while the knob is off.
    pub load: Option<(String, String)>,
}

/// One knob and its description.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    pub name: &'static str,
    /// Stages of requests that it affects, as `observe` names them.
    pub stages: &'static [&'static str],
    /// Cause of a long tail that it removes, from *Tales of the Tail*, Table 1, if it is one of those.
    pub cause: &'static str,
    /// Description of the setting.
    pub sets: &'static str,
    /// Description of the accepted values.
    pub values: &'static str,
    /// Value used if none is given; `None` if one is required.
    pub default: Option<&'static str>,
    /// Method of verifying that it is set.
    pub verified: &'static str,
    /// Method of undoing it.
    pub undone: &'static str,
    /// Costs and risks.
    pub costs: &'static str,
    pub(super) plan: fn(&KnobTarget, &str) -> Result<Vec<PlannedChange>, OperationError>,
}

impl Knob {
    /// Returns the changes that give the knob a value.
    ///
    /// # Errors
    /// If the knob does not accept the value, or this machine or target lacks the setting.
    pub fn plan(
        &self,
        target: &KnobTarget,
        value: Option<&str>,
    ) -> Result<Vec<PlannedChange>, OperationError> {
        let planned = value.or(self.default).ok_or_else(|| {
            OperationError::input(format_args!("{}: expected a value, {}", self.name, self.values))
                .hint(format_args!("such as `tailwright experiment {}=…`", self.name))
        })?;
        (self.plan)(target, planned).map_err(|error| match value {
            Some(value) => error.about(format_args!("{}={value}", self.name)),
            None => error.about(self.name),
        })
    }
}

/// Parses a numeric value within limits.
pub(super) fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    value: &str,
    least: &T,
    most: &T,
) -> Result<T, OperationError> {
    value
        .parse()
        .ok()
        .filter(|number| least <= number && number <= most)
        .ok_or_else(|| OperationError::input(format_args!("expected a number from {least} to {most}")))
}

/// Error for something that the machine or the target lacks.
pub(super) fn lacking(what: impl std::fmt::Display) -> OperationError {
    OperationError::machine(what).hint("`tailwright experiment --list` says which knobs there are here")
}
