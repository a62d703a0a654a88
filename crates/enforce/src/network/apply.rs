//! Brings hosts to their desired state and back: reads what is there, runs the steps of the difference, and on an error
//! goes back to what was configured before.

use super::configuration::HostConfiguration;
use super::desired::DesiredHost;
use super::difference::{self, ChangeStep};
use super::namespace::HostNamespace;
use super::observed::{self, ObservedDevice, ObservedHost};
use super::state::{AppliedConfiguration, OriginalDevice, SavedHostState, StateStore};
use crate::command::CommandRunner;
use crate::deployment::{DeploymentHost, PacketFilters};
use model::OperationError;
use std::time::{Duration, Instant};

/// How long classes that are to be deleted get to send what they hold. A class of 1 Mbit/s sends 250 kB in this time.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// How often they are looked at: a run of tc takes a few milliseconds itself.
const DRAIN_POLL: Duration = Duration::from_millis(5);
/// How iproute2 begins its message about a namespace that does not exist.
const NO_NAMESPACE: &str = "Cannot open network namespace";

/// What [`apply`] and [`remove`] may do to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ApplyOptions {
    /// Report the commands and change nothing.
    pub dry_run: bool,
    /// Take over devices that somebody else has configured.
    pub replace: bool,
}

/// What was done to a host, or would be done in a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyReport {
    /// The name of the host.
    pub host: String,
    /// The commands in their order, as a shell takes them; none when everything is as it should be.
    pub commands: Vec<String>,
    /// Where the host cannot do all that is desired, and which packets may have been lost.
    pub warnings: Vec<String>,
}

/// Brings a host to its desired state, and runs nothing where it is in that state already.
///
/// # Errors
/// Devices that do not exist, that somebody else has configured (without [`ApplyOptions::replace`]), and what a program
/// of the system refuses; then the host is as it was before, or the message says that it is not.
pub fn apply(
    run: &mut dyn CommandRunner,
    desired: &DesiredHost,
    store: &StateStore,
    options: ApplyOptions,
) -> Result<ApplyReport, OperationError> {
    let mut update = HostUpdate::open(run, desired, store, options.dry_run)?;
    if !options.replace {
        update.refuse_foreign()?;
    }
    let (target, mut warnings) =
        HostConfiguration::new(desired, &update.observed.devices, &mut update.state.numbers);
    warnings.append(&mut update.warnings);
    let steps = update.steps_to(&target);
    let commands = steps.iter().map(ToString::to_string).collect();
    let mut report = ApplyReport { host: desired.host.name.clone(), commands, warnings };
    if options.dry_run || (steps.is_empty() && !update.state.is_changing) {
        return Ok(report);
    }
    update.save_original()?;
    match update.execute(&steps) {
        Ok(lost) => report.warnings.extend(lost),
        Err(error) => return Err(update.roll_back(error)),
    }
    update.save_applied(target)?;
    Ok(report)
}

/// Restores the devices of a host to what they were before the first [`apply`].
///
/// # Errors
/// As [`apply`]; then what the devices were is still remembered.
pub fn remove(
    run: &mut dyn CommandRunner,
    desired: &DesiredHost,
    store: &StateStore,
    options: ApplyOptions,
) -> Result<ApplyReport, OperationError> {
    let host = &desired.host.name;
    let nothing = DesiredHost { host: desired.host.clone(), devices: Vec::new() };
    let mut update = match HostUpdate::open(run, &nothing, store, options.dry_run) {
        Ok(update) => update,
        // The queues were deleted together with the namespace.
        Err(error) if error.message.contains(NO_NAMESPACE) => {
            return forget_namespace(host, store, options);
        }
        Err(error) => return Err(error),
    };
    let steps = update.steps_to(&HostConfiguration::default());
    let commands = steps.iter().map(ToString::to_string).collect();
    let mut warnings = std::mem::take(&mut update.warnings);
    for (name, original) in update.state.original.iter().filter(|(_, original)| original.is_foreign()) {
        warnings.push(format!("{name} had '{}', which is not put back", original.qdisc));
    }
    if !options.dry_run {
        update.execute(&steps)?;
        store.forget(host)?;
    }
    Ok(ApplyReport { host: host.clone(), commands, warnings })
}

fn forget_namespace(
    host: &str,
    store: &StateStore,
    options: ApplyOptions,
) -> Result<ApplyReport, OperationError> {
    if !options.dry_run {
        store.forget(host)?;
    }
    let warnings = vec![format!("{host}: its network namespace is not there any more")];
    Ok(ApplyReport { host: host.to_owned(), commands: Vec::new(), warnings })
}

/// One run of the program on one host.
struct HostUpdate<'a> {
    run: &'a mut dyn CommandRunner,
    store: &'a StateStore,
    host: &'a str,
    namespace: HostNamespace,
    state: SavedHostState,
    observed: ObservedHost,
    /// Whether our table of nftables may exist, now or in the end. Where not, nft is not called: it may be missing.
    uses_nft: bool,
    warnings: Vec<String>,
}

impl<'a> HostUpdate<'a> {
    /// Reads the state file and observes the host.
    fn open(
        run: &'a mut dyn CommandRunner,
        desired: &'a DesiredHost,
        store: &'a StateStore,
        is_dry_run: bool,
    ) -> Result<Self, OperationError> {
        let host = desired.host.name.as_str();
        let state = store.load(host)?.unwrap_or_else(SavedHostState::new);
        let by_nft = desired.host.filters == PacketFilters::Nft && !desired.host.switch;
        let mut update = Self {
            run,
            store,
            host,
            namespace: HostNamespace(desired.host.netns.clone()),
            uses_nft: !state.applied.target.nft.is_empty()
                || by_nft && (state.is_changing || !desired.devices.is_empty()),
            state,
            observed: ObservedHost::default(),
            warnings: Vec::new(),
        };
        let names: Vec<&str> = desired.devices.iter().map(|device| device.name.as_str()).collect();
        match update.observe_with_remembered(&names) {
            Ok(observed) => update.observed = observed,
            Err(error) if is_dry_run => {
                update
                    .warnings
                    .push(format!("{host}: {}; shown as for devices that nobody has set up", error.message));
                for name in names {
                    update.observed.devices.insert(name.to_owned(), ObservedDevice::unconfigured());
                }
            }
            Err(error) => {
                return Err(OperationError { message: format!("{host}: {}", error.message), ..error });
            }
        }
        Ok(update)
    }

    /// Observes these devices, and those that an earlier run changed and that still exist.
    fn observe_with_remembered(&mut self, names: &[&str]) -> Result<ObservedHost, OperationError> {
        let remembered: Vec<String> = self.state.original.keys().cloned().collect();
        let existing = self.existing(&remembered)?;
        let mut names: Vec<&str> = names.to_vec();
        names.extend(existing.iter().map(String::as_str));
        names.sort_unstable();
        names.dedup();
        self.observe(&names)
    }

    fn observe(&mut self, names: &[&str]) -> Result<ObservedHost, OperationError> {
        let devices = observed::observe_devices(self.run, &self.namespace, names)?;
        let nft = if self.uses_nft {
            observed::observe_nft_table(self.run, &self.namespace)?
        } else {
            String::new()
        };
        Ok(ObservedHost { devices, nft })
    }

    /// Those of the devices that exist. Devices come and go, and one that is gone has nothing to restore.
    fn existing(&mut self, names: &[String]) -> Result<Vec<String>, OperationError> {
        let mut existing = Vec::new();
        for name in names {
            match observed::observe_devices(self.run, &self.namespace, &[name]) {
                Ok(_) => existing.push(name.clone()),
                Err(error) if error.blame == model::Blame::Input => {}
                Err(error) => return Err(error),
            }
        }
        Ok(existing)
    }

    /// Refuses devices that somebody else has configured, or that bear our handle without our having recorded it.
    fn refuse_foreign(&self) -> Result<(), OperationError> {
        for (name, device) in &self.observed.devices {
            let is_unrecorded = device.is_ours() && !self.state.original.contains_key(name);
            if device.is_foreign() || is_unrecorded {
                return Err(OperationError::machine(format_args!(
                    "{}: somebody has set up {name} already: {}",
                    self.host, device.qdisc
                ))
                .hint("--replace takes it over; --remove cannot put that back"));
            }
        }
        Ok(())
    }

    fn steps_to(&self, target: &HostConfiguration) -> Vec<ChangeStep> {
        let state = &self.state;
        difference::steps_between(&self.namespace, &self.observed, &state.applied, target, &state.original)
    }

    /// Records, before the first change, what devices are like, unless an earlier run has recorded it.
    fn save_original(&mut self) -> Result<(), OperationError> {
        for (name, device) in &self.observed.devices {
            self.state.original.entry(name.clone()).or_insert_with(|| OriginalDevice::new(device));
        }
        self.state.is_changing = true;
        self.store.save(self.host, &self.state)
    }

    /// Runs the steps, and says which packets were lost.
    fn execute(&mut self, steps: &[ChangeStep]) -> Result<Vec<String>, OperationError> {
        let mut lost = Vec::new();
        for step in steps {
            match step {
                ChangeStep::Run(command) => drop(self.run.run(command)?),
                ChangeStep::Drain { device, classes } => lost.extend(self.drain(device, classes)?),
            }
        }
        Ok(lost)
    }

    /// Waits until classes are empty; after [`DRAIN_MAX`] it says what they still hold.
    fn drain(&mut self, device: &str, classes: &[u16]) -> Result<Option<String>, OperationError> {
        let start = Instant::now();
        loop {
            let bytes = observed::backlog_bytes(self.run, &self.namespace, device, classes)?;
            if bytes == 0 {
                return Ok(None);
            }
            if start.elapsed() > DRAIN_MAX {
                return Ok(Some(format!(
                    "{device}: {bytes} bytes still waited in classes that were removed"
                )));
            }
            std::thread::sleep(DRAIN_POLL);
        }
    }

    fn observe_again(&mut self) -> Result<ObservedHost, OperationError> {
        let names: Vec<String> = self.observed.devices.keys().cloned().collect();
        self.observe(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Goes back after an error, and returns the error with a message that says whether that succeeded.
    fn roll_back(&mut self, cause: OperationError) -> OperationError {
        let message = match self.return_to_applied() {
            Ok(()) => format!("{}: {}; the host is as it was before", self.host, cause.message),
            Err(error) => {
                format!("{}: {}; going back failed, too: {}", self.host, cause.message, error.message)
            }
        };
        OperationError { message, ..cause }
    }

    /// Returns to what the last run that succeeded configured, or to the original devices if there was none.
    fn return_to_applied(&mut self) -> Result<(), OperationError> {
        let applied = self.state.applied.target.clone();
        self.observed = self.observe_again()?;
        let steps = self.steps_to(&applied);
        self.execute(&steps)?;
        if applied == HostConfiguration::default() {
            return self.store.forget(self.host);
        }
        self.save_applied(applied)
    }

    /// Records what was configured, and how it prints.
    fn save_applied(&mut self, target: HostConfiguration) -> Result<(), OperationError> {
        let observed = self.observe_again()?;
        let mut applied = AppliedConfiguration { nft: observed.nft, ..AppliedConfiguration::default() };
        for (name, device) in observed.devices {
            if target.devices.contains_key(&name) {
                applied.classes.insert(name.clone(), device.classes);
                applied.filters.insert(name, device.filters);
            }
        }
        applied.target = target;
        self.state.applied = applied;
        self.state.forget_unused();
        self.state.is_changing = false;
        self.store.save(self.host, &self.state)
    }
}

/// Whether a host is this machine, or a network namespace of it.
pub fn is_local(host: &DeploymentHost, hostname: &str) -> bool {
    host.netns.is_some() || host.name == hostname
}
