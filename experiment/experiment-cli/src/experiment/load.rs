//! The load that `tailwright experiment` sends itself: which command, in the periods of which arm.

use experiment::{Knob, LinuxJournal, RecordedLoad};
use model::OperationError;

/// What a user says about the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExperimentLoadOptions<'a> {
    /// The command; without one, the load is the user's own.
    pub(crate) command: Option<&'a str>,
    /// What `{}` in it stands for while the knob load is off.
    pub(crate) off: Option<&'a str>,
    /// Whether it is started anew in every period.
    pub(crate) restarts: bool,
}

/// The commands that send the load in the periods of each arm, the first with the knob off.
#[derive(Debug)]
pub(crate) struct ArmLoads {
    commands: Vec<String>,
    /// Whether it is started anew in every period.
    pub(crate) restarts: bool,
}

impl ArmLoads {
    /// Those of a knob with its values; `None` where the load does not belong to the experiment.
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

    /// Starts that of periods with the knob off.
    ///
    /// # Errors
    /// When it cannot be started or recorded.
    pub(crate) fn start(
        self,
        mut running: RecordedLoad<LinuxJournal>,
    ) -> Result<StartedLoad, OperationError> {
        running.restart(&self.commands[0])?;
        Ok(StartedLoad { arms: self, running })
    }
}

/// A load that has been started, and ends with the value.
#[derive(Debug)]
pub(crate) struct StartedLoad {
    arms: ArmLoads,
    running: RecordedLoad<LinuxJournal>,
}

impl StartedLoad {
    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.running.has_ended()
    }

    /// Starts that of an arm, if it is started anew in every period.
    ///
    /// # Errors
    /// When the one before has ended by itself, or this one cannot be started or recorded.
    pub(crate) fn begin_period(&mut self, arm: usize) -> Result<(), OperationError> {
        if self.arms.restarts { self.running.restart(&self.arms.commands[arm]) } else { Ok(()) }
    }

    /// Ends it. An error where it does not end, or has ended by itself: unless in order, if nothing rests on it.
    pub(crate) fn end(&mut self) -> Option<OperationError> {
        match self.running.own_end() {
            Some((_, true)) if !self.arms.restarts => None,
            Some(_) => self.running.failure(),
            None => self.running.end().err(),
        }
    }
}
