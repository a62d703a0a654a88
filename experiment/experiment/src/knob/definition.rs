//! Definition of a knob: its description, and the changes that it makes.

use crate::setting::{PlannedChange, ProcessIdentity};
use model::OperationError;
use schemars::JsonSchema;
use serde::Serialize;
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

/// A flag of the command that names what a knob is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobFlag {
    Pid,
    Port,
    Device,
    Disk,
    Commands,
    Load,
}

impl KnobFlag {
    /// Returns the flag as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pid => "--pid",
            Self::Port => "--port",
            Self::Device => "--device",
            Self::Disk => "--disk",
            Self::Commands => "--apply and --revert",
            Self::Load => "--load-command and --load-off",
        }
    }

    fn is_given(self, target: &KnobTarget) -> bool {
        match self {
            Self::Pid => !target.processes.is_empty(),
            Self::Port => !target.ports.is_empty(),
            Self::Device => target.device.is_some(),
            Self::Disk => target.disk.is_some(),
            Self::Commands => target.commands.is_some(),
            Self::Load => target.load.is_some(),
        }
    }
}

/// Reason why a knob cannot be tried as the command stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnobObstacle {
    /// The command lacks flags, and nothing else is known to be missing.
    Flags(Vec<KnobFlag>),
    /// This machine, process or target does not have it.
    Machine(String),
}

impl std::fmt::Display for KnobObstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flags(flags) => {
                let names: Vec<&str> = flags.iter().map(|flag| flag.name()).collect();
                write!(f, "expected {}", names.join(" and "))
            }
            Self::Machine(lack) => f.write_str(lack),
        }
    }
}

/// One knob and its description.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Knob {
    #[serde(rename = "knob")]
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
    /// Flags that name what it is about.
    #[serde(skip)]
    pub(super) flags: &'static [KnobFlag],
    #[serde(skip)]
    pub(super) plan: fn(&KnobTarget, &str) -> Result<Vec<PlannedChange>, OperationError>,
}

impl Knob {
    /// Returns the flags that the knob needs and the target lacks.
    pub(super) fn missing_flags(&self, target: &KnobTarget) -> Vec<KnobFlag> {
        self.flags.iter().copied().filter(|flag| !flag.is_given(target)).collect()
    }

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

/// Beginning of the message about a process that stands for one of --pid and lacks a control group.
pub(super) const PID_NAMES: &str = "expected --pid";

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
