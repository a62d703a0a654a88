//! What a knob is: what is known about it, and the changes that it takes.

use crate::setting::{PlannedChange, ProcessIdentity};
use model::OperationError;
use std::collections::BTreeSet;

/// What an experiment is about: whose settings, and of which devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnobTarget {
    /// The processes of the server.
    pub processes: Vec<ProcessIdentity>,
    /// The ports of the server.
    pub ports: BTreeSet<u16>,
    /// The network device that its requests come by.
    pub device: Option<String>,
    /// The disk that it works on.
    pub disk: Option<String>,
    /// The user's own commands, to apply and to undo; `{}` in them stands for the value.
    pub commands: Option<(String, String)>,
    /// The command that sends the load and the value that `{}` in it stands for while the knob is off.
    pub load: Option<(String, String)>,
}

/// One thing that can be set, and what is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// What users call it.
    pub name: &'static str,
    /// The stages of requests that it acts on, as `observe` names them.
    pub stages: &'static [&'static str],
    /// The cause of a long tail that it takes away: those of *Tales of the Tail*, Table 1, where it is one of them.
    pub cause: &'static str,
    /// What it sets, in words.
    pub sets: &'static str,
    /// The values that it takes, in words.
    pub values: &'static str,
    /// The value without another one; `None`: it takes one.
    pub default: Option<&'static str>,
    /// How it is found out that it is set.
    pub verified: &'static str,
    /// How it is taken back.
    pub undone: &'static str,
    /// What it costs or risks.
    pub costs: &'static str,
    /// Which changes it takes.
    pub(super) plan: fn(&KnobTarget, &str) -> Result<Vec<PlannedChange>, OperationError>,
}

impl Knob {
    /// The changes that give the knob a value.
    ///
    /// # Errors
    /// When the value is none of this knob, or this machine or target does not have what it sets.
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

/// A number as the value of a knob, within these limits.
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

/// What the machine or the target does not have.
pub(super) fn lacking(what: impl std::fmt::Display) -> OperationError {
    OperationError::machine(what).hint("`tailwright experiment --list` says which knobs there are here")
}
