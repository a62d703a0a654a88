//! The only path by which a running proxy gets its policy, from the command line's files, from `apply`, or
//! from the saved policy of an earlier `apply`.
//!
//! It compares the wanted rules with the enforced ones, so that configuring the same policy again changes
//! nothing.

use super::control::ProxyHandle;
use super::flows::WorkloadNames;
use super::options::ProxyOptions;
use super::policy_memory::{PolicyMemory, RememberedPolicy};
use super::rules::ProxyRules;
use crate::deployment::{Deployment, Front};
use model::{OperationError, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use workload::device::StorageProfile;

/// Source of a proxy's policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyOrigin {
    /// Files of the command line.
    Files,
    /// `tailwright apply`, now or before a restart.
    Apply,
}

/// Configuration of a proxy, as received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfiguredPolicy {
    /// Policy to enforce; without one all requests are best effort.
    pub policy: Option<Policy>,
    /// Text of the hosts file.
    pub hosts: String,
    pub origin: PolicyOrigin,
}

impl ConfiguredPolicy {
    /// Returns true if the configuration survives a restart: a policy from `apply`.
    pub fn is_remembered(&self) -> bool {
        self.origin == PolicyOrigin::Apply && self.policy.is_some()
    }
}

/// The present configuration, and the inputs for validating and saving another one.
#[derive(Debug)]
struct ConfiguratorState {
    server: String,
    profile: StorageProfile,
    memory: Option<PolicyMemory>,
    current: ConfiguredPolicy,
    rules: EnforcedRules,
}

/// Comparable form of a policy and a hosts file.
type EnforcedRules = (WorkloadNames, ProxyRules);

/// Configures a running proxy. Clones configure the same one.
#[derive(Debug, Clone)]
pub struct ProxyConfigurator {
    handle: ProxyHandle,
    state: Arc<Mutex<ConfiguratorState>>,
}

impl ProxyConfigurator {
    /// Replaces the policy of `options` by the saved one, if there is one, and returns the text of the hosts
    /// file saved with it. The addresses at which the proxy listens stay.
    ///
    /// # Errors
    /// If the saved policy cannot be read or is invalid.
    pub(crate) fn recall(
        options: &mut ProxyOptions,
        memory: &PolicyMemory,
    ) -> Result<Option<String>, OperationError> {
        let Some(RememberedPolicy { policy, hosts, .. }) = memory.load()? else { return Ok(None) };
        let deployment = Deployment::parse(&hosts);
        let deployment = deployment.map_err(|error| error.about(memory.path().display()))?;
        let at = std::mem::replace(&mut options.deployment, deployment);
        options.policy = policy;
        // The command line decides the listening addresses, and `apply` the clients that may connect
        // there.
        let fronts = at.servers.into_iter().find(|server| server.name == options.server);
        let fronts = fronts.and_then(|server| server.storage).map(|storage| storage.front);
        let mut servers = options.deployment.servers.iter_mut();
        let storage = servers.find(|server| server.name == options.server);
        if let Some((storage, fronts)) = storage.and_then(|server| server.storage.as_mut()).zip(fronts) {
            let is_same = |(remembered, at): (&Front, &Front)| remembered.is_served_by(at);
            if storage.front.len() != fronts.len() || !storage.front.iter().zip(&fronts).all(is_same) {
                storage.front = fronts;
            }
        }
        Ok(Some(hosts))
    }

    /// Takes over the configuration of a proxy that was started with these options. Without a memory no
    /// policy is saved.
    ///
    /// # Errors
    /// If the policy or the deployment is invalid.
    pub fn new(
        handle: ProxyHandle,
        options: &ProxyOptions,
        current: ConfiguredPolicy,
        memory: Option<PolicyMemory>,
    ) -> Result<Self, OperationError> {
        let server = options.server.clone();
        let profile = options.profile.clone();
        let rules = enforced_rules(current.policy.as_ref(), &options.deployment, &server, &profile)?;
        let state = ConfiguratorState { server, profile, memory, current, rules };
        Ok(Self { handle, state: Arc::new(Mutex::new(state)) })
    }

    pub fn handle(&self) -> &ProxyHandle {
        &self.handle
    }

    /// Returns the enforced configuration.
    pub fn current(&self) -> ConfiguredPolicy {
        self.lock().current.clone()
    }

    /// Runs `work` while the configuration stays.
    pub(super) fn keeping<T>(&self, work: impl FnOnce() -> T) -> T {
        let _state = self.lock();
        work()
    }

    fn lock(&self) -> MutexGuard<'_, ConfiguratorState> {
        // A poisoned lock is usable: the state behind it is only replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves the current policy again, as the process's present user after it has dropped root.
    ///
    /// # Errors
    /// If this user cannot write there.
    pub fn remember(&self) -> Result<(), OperationError> {
        let state = self.lock();
        state.remember(&state.current)
    }

    /// Returns true if this configuration would change the enforced rules, or the decision to save them.
    ///
    /// # Errors
    /// If the proxy would refuse it.
    pub(crate) fn would_change(&self, wanted: &ConfiguredPolicy) -> Result<bool, OperationError> {
        let state = self.lock();
        let deployment = Deployment::parse(&wanted.hosts)?;
        let rules = enforced_rules(wanted.policy.as_ref(), &deployment, &state.server, &state.profile)?;
        Ok(rules != state.rules || wanted.is_remembered() != state.current.is_remembered())
    }

    /// Configures the proxy if the rules differ, and saves a policy from `apply`. Returns true if the
    /// enforced rules have changed.
    ///
    /// # Errors
    /// If the proxy refuses the configuration, or it cannot be saved; then nothing has changed.
    pub fn configure(&self, wanted: ConfiguredPolicy) -> Result<bool, OperationError> {
        let mut state = self.lock();
        let deployment = Deployment::parse(&wanted.hosts)?;
        let rules = enforced_rules(wanted.policy.as_ref(), &deployment, &state.server, &state.profile)?;
        let is_change = rules != state.rules;
        if is_change {
            self.handle.configure(wanted.policy.clone(), Some(deployment))?;
        }
        if let Err(error) = state.remember(&wanted) {
            if is_change {
                let before = state.current.clone();
                self.handle.configure(before.policy, Some(Deployment::parse(&before.hosts)?))?;
            }
            return Err(error);
        }
        (state.current, state.rules) = (wanted, rules);
        Ok(is_change)
    }
}

impl ConfiguratorState {
    /// Saves a policy from `apply`, or deletes the saved one.
    fn remember(&self, wanted: &ConfiguredPolicy) -> Result<(), OperationError> {
        let Some(memory) = &self.memory else { return Ok(()) };
        if !wanted.is_remembered() {
            return memory.forget().map(drop);
        }
        memory.save(&RememberedPolicy::new(wanted.policy.clone(), wanted.hosts.clone()))
    }
}

fn enforced_rules(
    policy: Option<&Policy>,
    deployment: &Deployment,
    server: &str,
    profile: &StorageProfile,
) -> Result<EnforcedRules, OperationError> {
    let mut names = WorkloadNames::default();
    let rules = ProxyRules::new(policy, deployment, server, profile, &mut names)?;
    Ok((names, rules))
}
