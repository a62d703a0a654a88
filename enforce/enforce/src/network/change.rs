//! A change of one host in two steps: observe and plan, then execute. An executed change can be undone, so
//! that several hosts change together or not at all.

use super::configuration::HostConfiguration;
use super::desired::DesiredHost;
use super::difference::{self, ChangeStep};
use super::namespace::HostNamespace;
use super::observed::{self, ObservedDevice, ObservedHost};
use super::state::{AppliedConfiguration, OriginalDevice, SavedHostState, StateStore};
use super::steps;
use crate::command::CommandRunner;
use crate::deployment::{DeploymentHost, PacketFilters};
use model::OperationError;
use std::collections::BTreeMap;

/// Start of iproute2's message about a network namespace that does not exist.
const NO_NAMESPACE: &str = "Cannot open network namespace";

/// Options of applying and removing a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ApplyOptions {
    /// Report the commands and change nothing.
    pub dry_run: bool,
    /// Take over devices that another program or an administrator has configured.
    pub replace: bool,
}

/// Commands run on a host, or planned by a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyReport {
    pub host: String,
    /// Shell commands in execution order; empty if the host is already in the desired state.
    pub commands: Vec<String>,
    /// Parts of the configuration that the host cannot honour, and possible packet loss during the change.
    pub warnings: Vec<String>,
}

/// A planned change of one host. Nothing is changed before [`HostChange::execute`].
#[derive(Debug)]
pub(crate) struct HostChange {
    host: String,
    store: StateStore,
    namespace: HostNamespace,
    /// State file as read, before this change.
    found: Option<SavedHostState>,
    state: SavedHostState,
    observed: ObservedHost,
    target: HostConfiguration,
    steps: Vec<ChangeStep>,
    /// The host's state file is deleted once its devices are restored.
    is_removal: bool,
    /// Tailwright's nftables table may exist, now or after the change. Otherwise nft, which may not be
    /// installed, is not called.
    uses_nft: bool,
    has_begun: bool,
    warnings: Vec<String>,
}

impl HostChange {
    /// Plans the steps that bring a host to its desired state; none if it is in that state already.
    ///
    /// # Errors
    /// Devices that do not exist or that are configured by others (without [`ApplyOptions::replace`]), and
    /// failed queries of the host.
    pub(crate) fn to_apply(
        run: &mut dyn CommandRunner,
        desired: &DesiredHost,
        store: &StateStore,
        options: ApplyOptions,
    ) -> Result<Self, OperationError> {
        let mut change = Self::open(&desired.host, store, false)?;
        let by_nft = desired.host.filters == PacketFilters::Nft && !desired.host.switch;
        change.uses_nft |= by_nft && !desired.devices.is_empty();
        let names: Vec<&str> = desired.devices.iter().map(|device| device.name.as_str()).collect();
        match change.observe_with_remembered(run, &names) {
            Ok(observed) => change.observed = observed,
            Err(error) if options.dry_run => change.assume_unconfigured(&error, &names),
            Err(error) => return Err(error.about(&change.host)),
        }
        if !options.replace {
            change.refuse_foreign()?;
        }
        let (target, warnings) =
            HostConfiguration::new(desired, &change.observed.devices, &mut change.state.numbers);
        change.target = target;
        change.warnings.extend(warnings);
        change.steps = change.steps_to(&change.target, &change.state.original);
        Ok(change)
    }

    /// Returns the size of the largest packet that a shaped device of the host sends, in bytes; `None` if no
    /// device is known. Shaped devices have segmentation offload limited to single frames.
    pub(crate) fn packet_bytes(&self) -> Option<u64> {
        self.observed.devices.values().map(ObservedDevice::frame_bytes_max).max()
    }

    /// Plans the steps that restore a host's devices to their state before the first change. Without a state
    /// file, Tailwright's objects are recognised by handle and name, and deleted.
    ///
    /// # Errors
    /// Failed queries of the host.
    pub(crate) fn to_remove(
        run: &mut dyn CommandRunner,
        host: &DeploymentHost,
        store: &StateStore,
    ) -> Result<Self, OperationError> {
        let mut change = Self::open(host, store, true)?;
        let named: Vec<String> = host.device.keys().cloned().collect();
        match change.observe_what_is_ours(run, &named, host) {
            Ok(observed) => change.observed = observed,
            // The kernel deleted the queueing disciplines together with the namespace.
            Err(error) if error.message.contains(NO_NAMESPACE) => {
                let warning = format!("{}: its network namespace no longer exists", change.host);
                change.warnings.push(warning);
                return Ok(change);
            }
            Err(error) => return Err(error.about(&change.host)),
        }
        change.remember_what_is_ours();
        for (name, original) in change.state.original.iter().filter(|(_, original)| original.is_foreign()) {
            change.warnings.push(format!("{name} had '{}', which is not restored", original.qdisc));
        }
        change.steps = change.steps_to(&change.target, &change.state.original);
        Ok(change)
    }

    /// Plans the steps that restore a host that is no longer in the hosts file, or whose network namespace
    /// has changed since. Returns `None` if the state file does not record a namespace.
    ///
    /// # Errors
    /// As [`Self::to_remove`].
    pub(crate) fn to_abandon(
        run: &mut dyn CommandRunner,
        host: &str,
        store: &StateStore,
    ) -> Result<Option<Self>, OperationError> {
        let Some(namespace) = store.load(host)?.and_then(|state| state.namespace()) else { return Ok(None) };
        let host = DeploymentHost {
            name: host.to_owned(),
            netns: namespace.0.clone(),
            switch: false,
            filters: PacketFilters::default(),
            device: BTreeMap::new(),
        };
        let mut change = Self::to_remove(run, &host, store)?;
        let warning =
            format!("{}, {namespace}, is no longer in the hosts file: its devices are restored", host.name);
        change.warnings.push(warning);
        Ok(Some(change))
    }

    /// Reads the host's state file; one that records another network namespace is ignored.
    fn open(host: &DeploymentHost, store: &StateStore, is_removal: bool) -> Result<Self, OperationError> {
        let namespace = HostNamespace(host.netns.clone());
        let found = store.load(&host.name)?;
        let found = found.filter(|state| state.namespace().is_none_or(|it| it == namespace));
        let state = found.clone().unwrap_or_else(|| SavedHostState::new(&namespace));
        Ok(Self {
            host: host.name.clone(),
            store: store.clone(),
            namespace,
            uses_nft: !state.applied.target.nft.is_empty() || state.is_changing,
            found,
            state,
            observed: ObservedHost::default(),
            target: HostConfiguration::default(),
            steps: Vec::new(),
            is_removal,
            has_begun: false,
            warnings: Vec::new(),
        })
    }

    /// Returns true if the host is not in the desired state, or an earlier run was interrupted.
    pub(crate) fn is_needed(&self) -> bool {
        !self.steps.is_empty() || self.state.is_changing
    }

    /// Returns true if the host is observed to be in the desired state.
    ///
    /// # Errors
    /// Failed queries of the host.
    pub(crate) fn is_in_force(&self, run: &mut dyn CommandRunner) -> Result<bool, OperationError> {
        let observed = self.observe_again(run)?;
        let state = &self.state;
        let target = &self.target;
        let steps =
            difference::steps_between(&self.namespace, &observed, &state.applied, target, &state.original);
        Ok(steps.is_empty())
    }

    /// Returns true if the host may differ from its state before [`Self::execute`].
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns the planned or executed commands.
    pub(crate) fn report(&self) -> ApplyReport {
        ApplyReport {
            host: self.host.clone(),
            commands: self.steps.iter().map(ToString::to_string).collect(),
            warnings: self.warnings.clone(),
        }
    }

    fn assume_unconfigured(&mut self, error: &OperationError, names: &[&str]) {
        let host = &self.host;
        let message = &error.message;
        self.warnings.push(format!("{host}: {message}; shown as for devices without a queueing discipline"));
        for name in names {
            self.observed.devices.insert((*name).to_owned(), ObservedDevice::unconfigured());
        }
    }

    /// Observes these devices and those that an earlier run changed and that still exist.
    fn observe_with_remembered(
        &self,
        run: &mut dyn CommandRunner,
        names: &[&str],
    ) -> Result<ObservedHost, OperationError> {
        let remembered: Vec<String> = self.state.original.keys().cloned().collect();
        let existing = self.existing(run, &remembered)?;
        let mut names: Vec<&str> = names.to_vec();
        names.extend(existing.iter().map(String::as_str));
        names.sort_unstable();
        names.dedup();
        self.observe(run, &names)
    }

    /// Observes devices that Tailwright has or may have changed, and its nftables table even without a state
    /// file.
    fn observe_what_is_ours(
        &mut self,
        run: &mut dyn CommandRunner,
        named: &[String],
        host: &DeploymentHost,
    ) -> Result<ObservedHost, OperationError> {
        let existing = self.existing(run, named)?;
        let mut observed =
            self.observe_with_remembered(run, &existing.iter().map(String::as_str).collect::<Vec<_>>())?;
        if !self.uses_nft && host.filters == PacketFilters::Nft && !host.switch {
            // An error means that nft is not installed: then no table exists either.
            observed.nft = observed::observe_nft_table(run, &self.namespace).unwrap_or_default();
            if !observed.nft.is_empty() {
                let warning = format!(
                    "{}: Tailwright's table of nftables is not in the state folder: it is deleted",
                    self.host
                );
                self.warnings.push(warning);
            }
        }
        for device in observed::devices_with_our_tree(run, &self.namespace)? {
            if !observed.devices.contains_key(&device) {
                self.warnings.push(format!(
                    "{}: {device} has a Tailwright queueing discipline, and neither the hosts file nor {} lists it; `{}` deletes it",
                    self.host,
                    self.store.path().display(),
                    self.namespace.tc(&format!("qdisc del dev {device} root"))
                ));
            }
        }
        Ok(observed)
    }

    fn observe(&self, run: &mut dyn CommandRunner, names: &[&str]) -> Result<ObservedHost, OperationError> {
        let devices = observed::observe_devices(run, &self.namespace, names)?;
        let nft =
            if self.uses_nft { observed::observe_nft_table(run, &self.namespace)? } else { String::new() };
        Ok(ObservedHost { devices, nft })
    }

    /// Returns the devices that exist. One that has disappeared has nothing to restore.
    fn existing(&self, run: &mut dyn CommandRunner, names: &[String]) -> Result<Vec<String>, OperationError> {
        let mut existing = Vec::new();
        for name in names {
            match observed::observe_devices(run, &self.namespace, &[name]) {
                Ok(_) => existing.push(name.clone()),
                Err(error) if error.blame == model::Blame::Input => {}
                Err(error) => return Err(error),
            }
        }
        Ok(existing)
    }

    /// Refuses devices configured by others, and devices with Tailwright's handle that the state file does
    /// not list.
    fn refuse_foreign(&self) -> Result<(), OperationError> {
        for (name, device) in &self.observed.devices {
            if device.is_foreign() {
                return Err(OperationError::machine(format_args!(
                    "{}: {name} already has a queueing discipline: {}",
                    self.host, device.qdisc
                ))
                .hint("--replace replaces it; --remove cannot restore that one later"));
            }
            if device.is_ours() && !self.state.original.contains_key(name) {
                let state = self.store.path().display();
                return Err(OperationError::machine(format_args!(
                    "{}: {name} has a Tailwright queueing discipline that {state} does not list: {}",
                    self.host, device.qdisc
                ))
                .hint("--replace replaces it, --remove deletes it; --state names the folder that lists it"));
            }
        }
        Ok(())
    }

    /// Records devices that carry Tailwright's settings without a saved state, so that they are restored.
    fn remember_what_is_ours(&mut self) {
        for (name, device) in &self.observed.devices {
            let bears_ours = device.is_ours() || device.has_our_packet_sizes();
            if self.state.original.contains_key(name) || !bears_ours {
                continue;
            }
            let original = OriginalDevice::new(device);
            self.warnings.push(format!(
                "{}: {} has no saved settings of {name}: the kernel's defaults are set, gso_max_size {} and \
                 gso_max_segs {}",
                self.host,
                self.store.path().display(),
                original.gso_max_size,
                original.gso_max_segs
            ));
            self.state.original.insert(name.clone(), original);
        }
    }

    fn steps_to(
        &self,
        target: &HostConfiguration,
        original: &BTreeMap<String, OriginalDevice>,
    ) -> Vec<ChangeStep> {
        difference::steps_between(&self.namespace, &self.observed, &self.state.applied, target, original)
    }

    /// Executes the planned steps.
    ///
    /// # Errors
    /// A command that fails. The message says whether the host was restored to its previous state.
    pub(crate) fn execute(&mut self, run: &mut dyn CommandRunner) -> Result<(), OperationError> {
        if !self.is_needed() && !self.is_removal {
            return Ok(());
        }
        self.has_begun = true;
        let result = self.change(run);
        result.map_err(|cause| {
            let message = match self.undo(run) {
                Ok(()) => format!("{}: {}; the host is as it was before", self.host, cause.message),
                Err(error) => {
                    format!("{}: {}; restoring it failed, too: {}", self.host, cause.message, error.message)
                }
            };
            OperationError { message, ..cause }
        })
    }

    fn change(&mut self, run: &mut dyn CommandRunner) -> Result<(), OperationError> {
        if self.is_removal && self.steps.is_empty() {
            return self.store.forget(&self.host);
        }
        self.save_original()?;
        let steps = self.steps.clone();
        let lost = steps::run_all(run, &self.namespace, &steps)?;
        self.warnings.extend(lost);
        if self.is_removal {
            return self.store.forget(&self.host);
        }
        self.save_applied(run, self.target.clone())
    }

    /// Restores the state before [`Self::execute`]; does nothing if that was not called.
    ///
    /// # Errors
    /// A command that fails.
    pub(crate) fn undo(&mut self, run: &mut dyn CommandRunner) -> Result<(), OperationError> {
        if !self.has_begun {
            return Ok(());
        }
        let applied = self.found.as_ref().map(|state| state.applied.target.clone()).unwrap_or_default();
        self.uses_nft |= !applied.nft.is_empty();
        self.observed = self.observe_again(run)?;
        let steps = self.steps_to(&applied, &self.state.original);
        steps::run_all(run, &self.namespace, &steps)?;
        match &self.found {
            None => self.store.forget(&self.host)?,
            Some(found) => {
                self.state.numbers.clone_from(&found.numbers);
                self.save_applied(run, applied)?;
            }
        }
        self.has_begun = false;
        Ok(())
    }

    /// Saves the devices' settings before the first change; those saved by an earlier run stay.
    fn save_original(&mut self) -> Result<(), OperationError> {
        for (name, device) in &self.observed.devices {
            self.state.original.entry(name.clone()).or_insert_with(|| OriginalDevice::new(device));
        }
        self.state.is_changing = true;
        self.store.save(&self.host, &self.state)
    }

    /// Observes those of the planned devices that still exist.
    fn observe_again(&self, run: &mut dyn CommandRunner) -> Result<ObservedHost, OperationError> {
        let names: Vec<String> = self.observed.devices.keys().cloned().collect();
        let existing = self.existing(run, &names)?;
        self.observe(run, &existing.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Saves the applied configuration, and the kernel's listing of it for comparison with later
    /// observations.
    fn save_applied(
        &mut self,
        run: &mut dyn CommandRunner,
        target: HostConfiguration,
    ) -> Result<(), OperationError> {
        let observed = self.observe_again(run)?;
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
        self.store.save(&self.host, &self.state)
    }
}
