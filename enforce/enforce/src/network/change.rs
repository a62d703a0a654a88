//! The change of a host, made in two steps: first everything is looked at that can be, then it is done. What was done can
//! be undone, so that several hosts change together or not at all.

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

/// How iproute2 begins its message about a namespace that does not exist.
const NO_NAMESPACE: &str = "Cannot open network namespace";

/// How hosts are changed.
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

/// What will be done to a host, from looking at it: nothing is changed before [`HostChange::execute`].
#[derive(Debug)]
pub struct HostChange {
    host: String,
    store: StateStore,
    namespace: HostNamespace,
    /// The state file as it was found.
    found: Option<SavedHostState>,
    state: SavedHostState,
    observed: ObservedHost,
    target: HostConfiguration,
    steps: Vec<ChangeStep>,
    /// Whether the host is to be forgotten when it is as it was found.
    is_removal: bool,
    /// Whether our table of nftables may exist, now or in the end. Where not, nft is not called: it may be missing.
    uses_nft: bool,
    has_begun: bool,
    warnings: Vec<String>,
}

impl HostChange {
    /// What brings a host to its desired state; nothing where it is in that state already.
    ///
    /// # Errors
    /// Devices that do not exist or that somebody else has configured (without [`ApplyOptions::replace`]), and what a
    /// program of the system refuses to tell.
    pub fn to_apply(
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

    /// The largest packet that a shaped device of the host sends, in bytes, where the devices are known: while they are
    /// shaped they build only packets of the size of frames.
    pub fn packet_bytes(&self) -> Option<u64> {
        self.observed.devices.values().map(ObservedDevice::frame_bytes_max).max()
    }

    /// What restores the devices of a host to what they were before the first change. Where that is not remembered, what
    /// is ours is recognised by its handle and its name, and is deleted.
    ///
    /// # Errors
    /// What a program of the system refuses to tell.
    pub fn to_remove(
        run: &mut dyn CommandRunner,
        host: &DeploymentHost,
        store: &StateStore,
    ) -> Result<Self, OperationError> {
        let mut change = Self::open(host, store, true)?;
        let named: Vec<String> = host.device.keys().cloned().collect();
        match change.observe_what_is_ours(run, &named, host) {
            Ok(observed) => change.observed = observed,
            // The queues were deleted together with the namespace.
            Err(error) if error.message.contains(NO_NAMESPACE) => {
                let warning = format!("{}: its network namespace is not there any more", change.host);
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

    /// What restores a host that only its state file names any more, or that was another network namespace then; `None`
    /// where the file does not say which namespace that was.
    ///
    /// # Errors
    /// As [`Self::to_remove`].
    pub fn to_abandon(
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
            format!("{}, {namespace}, is not in the hosts file any more: it is restored", host.name);
        change.warnings.push(warning);
        Ok(Some(change))
    }

    /// Reads the state file of a host; one that is about another network namespace is not the host's.
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

    /// The name of the host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What is going to be done, or was done.
    pub fn report(&self) -> ApplyReport {
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

    /// Observes these devices, and those that an earlier run changed and that still exist.
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

    /// Observes devices that we have changed or may have changed, and our table even if nobody remembers it.
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
            // Where nft is missing, nobody has made a table.
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

    /// Those of the devices that exist. Devices come and go, and one that is gone has nothing to restore.
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

    /// Refuses devices that somebody else has configured, or that bear our handle without our having recorded it.
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

    /// Records devices that bear what is ours and that nobody has recorded, so that they are restored.
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

    /// Does what was decided.
    ///
    /// # Errors
    /// What a program of the system refuses; then the host is as it was before, or the message says that it is not.
    pub fn execute(&mut self, run: &mut dyn CommandRunner) -> Result<(), OperationError> {
        let is_as_desired = self.steps.is_empty() && !self.state.is_changing;
        if is_as_desired && !self.is_removal {
            return Ok(());
        }
        self.has_begun = true;
        let result = self.change(run);
        result.map_err(|cause| {
            let message = match self.undo(run) {
                Ok(()) => format!("{}: {}; the host is as it was before", self.host, cause.message),
                Err(error) => {
                    format!("{}: {}; going back failed, too: {}", self.host, cause.message, error.message)
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

    /// Goes back to what was there before [`Self::execute`], if that has begun.
    ///
    /// # Errors
    /// What a program of the system refuses.
    pub fn undo(&mut self, run: &mut dyn CommandRunner) -> Result<(), OperationError> {
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

    /// Records, before the first change, what devices are like, unless an earlier run has recorded it.
    fn save_original(&mut self) -> Result<(), OperationError> {
        for (name, device) in &self.observed.devices {
            self.state.original.entry(name.clone()).or_insert_with(|| OriginalDevice::new(device));
        }
        self.state.is_changing = true;
        self.store.save(&self.host, &self.state)
    }

    /// Observes the devices of before that still exist.
    fn observe_again(&self, run: &mut dyn CommandRunner) -> Result<ObservedHost, OperationError> {
        let names: Vec<String> = self.observed.devices.keys().cloned().collect();
        let existing = self.existing(run, &names)?;
        self.observe(run, &existing.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Records what was configured, and how it prints.
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
