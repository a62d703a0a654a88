//! Load sent by `tailwright experiment` itself: the command for the periods of each arm.

use experiment::{Knob, LinuxJournal, RecordedLoad};
use model::OperationError;

/// Options of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExperimentLoadOptions<'a> {
    /// Command; `None` if the user sends the load.
    pub(crate) command: Option<&'a str>,
    /// Value of `{}` in the command while the knob `load` is off.
    pub(crate) off: Option<&'a str>,
    /// True if it is restarted in every period.
    pub(crate) restarts: bool,
}

/// Commands of the load by arm, that of the knob off first.
#[derive(Debug)]
pub(crate) struct ArmLoads {
    commands: Vec<String>,
    /// True if it is restarted in every period.
    pub(crate) restarts: bool,
}

impl ArmLoads {
    /// Returns the commands for a knob's values; `None` if the user sends the load.
    pub(crate) fn new(
        knob: &Knob,
        values: &[Option<String>],
        options: &ExperimentLoadOptions,
    ) -> Option<Self> {
        let command = options.command?;
        let is_knob = knob.name == "load";
        let values = values.iter().map(|value| value.as_deref().unwrap_or_default());
        let of_value = |value: &str| if is_knob { command.replace("{}", value) } else { command.to_owned() };
        let off = options.off.unwrap_or_default();
        let commands = std::iter::once(off).chain(values).map(of_value).collect();
        Some(Self { commands, restarts: is_knob || options.restarts })
    }

    /// Starts the load of periods with the knob off.
    ///
    /// # Errors
    /// If it cannot be started or recorded.
    pub(crate) fn start(
        self,
        mut running: RecordedLoad<LinuxJournal>,
    ) -> Result<StartedLoad, OperationError> {
        running.restart(&self.commands[0])?;
        Ok(StartedLoad { arms: self, running })
    }
}

/// A running load, which ends when dropped.
#[derive(Debug)]
pub(crate) struct StartedLoad {
    arms: ArmLoads,
    running: RecordedLoad<LinuxJournal>,
}

impl StartedLoad {
    /// Returns true if it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.running.has_ended()
    }

    /// Starts the load of an arm, if it is restarted in every period.
    ///
    /// # Errors
    /// If the one before has ended by itself, or this one cannot be started or recorded.
    pub(crate) fn begin_period(&mut self, arm: usize) -> Result<(), OperationError> {
        if self.arms.restarts { self.running.restart(&self.arms.commands[arm]) } else { Ok(()) }
    }

    /// Ends the load. Returns an error if it does not end, or had ended by itself; a successful exit is an
    /// error only if the load is restarted.
    pub(crate) fn end(&mut self) -> Option<OperationError> {
        match self.running.own_end() {
            Some((_, true)) if !self.arms.restarts => None,
            Some(_) => self.running.failure(),
            None => self.running.end().err(),
        }
    }
}
