//! The one place from which a running proxy gets its policy, whoever brings it: the command line's files, `apply`, or
//! what was remembered of an earlier `apply`.
//!
//! It compares what would be enforced with what is: the same policy again changes nothing.

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

/// Where a proxy has its policy from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyOrigin {
    /// The files of the command line.
    Files,
    /// `tailwright apply`, now or before a restart.
    Apply,
}

/// What a proxy enforces, as it was brought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfiguredPolicy {
    /// The policy; without one everybody is best effort.
    pub policy: Option<Policy>,
    /// The text of the hosts file.
    pub hosts: String,
    /// Where it is from.
    pub origin: PolicyOrigin,
}

impl ConfiguredPolicy {
    /// Whether it holds after a restart: what `apply` brought, unless that was to take a policy away.
    pub fn is_remembered(&self) -> bool {
        self.origin == PolicyOrigin::Apply && self.policy.is_some()
    }
}

/// The present configuration, and what is needed to judge and to remember another one.
#[derive(Debug)]
struct ConfiguratorState {
    server: String,
    profile: StorageProfile,
    memory: Option<PolicyMemory>,
    current: ConfiguredPolicy,
    rules: EnforcedRules,
}

/// What a policy and a hosts file mean for a proxy, in a form that can be compared.
type EnforcedRules = (WorkloadNames, ProxyRules);

/// Configures a running proxy; clones configure the same one.
#[derive(Debug, Clone)]
pub struct ProxyConfigurator {
    handle: ProxyHandle,
    state: Arc<Mutex<ConfiguratorState>>,
}

impl ProxyConfigurator {
    /// Puts the policy that is remembered, if there is one, in the place of that of the options with which a proxy will
    /// be started; the text of the hosts file that came with it. Where the proxy listens stays as it is.
    ///
    /// # Errors
    /// When what is remembered cannot be read, or is wrong.
    pub fn recall(
        options: &mut ProxyOptions,
        memory: &PolicyMemory,
    ) -> Result<Option<String>, OperationError> {
        let Some(RememberedPolicy { policy, hosts, .. }) = memory.load()? else { return Ok(None) };
        let deployment = Deployment::parse(&hosts);
        let deployment = deployment.map_err(|error| error.about(memory.path().display()))?;
        let at = std::mem::replace(&mut options.deployment, deployment);
        options.policy = policy;
        // Where it listens is for who starts it to say; who may connect there, for `apply`.
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

    /// Takes over the configuration of a proxy that was started with these options, whose hosts file has this text.
    /// Without a memory nothing is remembered.
    ///
    /// # Errors
    /// When the policy or the deployment is wrong.
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

    /// The handle of the proxy.
    pub fn handle(&self) -> &ProxyHandle {
        &self.handle
    }

    /// What the proxy enforces.
    pub fn current(&self) -> ConfiguredPolicy {
        self.lock().current.clone()
    }

    fn lock(&self) -> MutexGuard<'_, ConfiguratorState> {
        // What is behind the lock is replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down again what is remembered, as the user that the process is now.
    ///
    /// # Errors
    /// When this user cannot write there.
    pub fn remember(&self) -> Result<(), OperationError> {
        let state = self.lock();
        state.remember(&state.current)
    }

    /// Whether this configuration would change what the proxy enforces, or that it remembers it.
    ///
    /// # Errors
    /// When the proxy would refuse it.
    pub fn would_change(&self, wanted: &ConfiguredPolicy) -> Result<bool, OperationError> {
        let state = self.lock();
        let deployment = Deployment::parse(&wanted.hosts)?;
        let rules = enforced_rules(wanted.policy.as_ref(), &deployment, &state.server, &state.profile)?;
        Ok(rules != state.rules || wanted.is_remembered() != state.current.is_remembered())
    }

    /// Configures the proxy, unless that would change nothing, and remembers what `apply` brought; whether it has changed
    /// what the proxy enforces.
    ///
    /// # Errors
    /// When the proxy refuses the configuration, or it cannot be remembered; then nothing has changed.
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
    /// Remembers what `apply` brought. When it took its policy away, there is nothing to remember.
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
