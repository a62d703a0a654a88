//! Who is judged against what, and how requests are counted at the limits.
//!
//! Work is what planning and enforcing count: bytes by the network model, device time by a device profile. The
//! safety margin of a plan is not added, because it is there to be used up.

use crate::cluster::{read_profile, repeated_profile_name};
use crate::observer::{Notice, ProgressObserver};
use crate::planning::warn_of_outdated_bounds;
use model::{Observations, OperationError, PerStage, Policy, Request, Slo, Stage};
use std::collections::BTreeSet;
use std::path::PathBuf;
use units::Nanos;
use verify::{Findings, ServiceAgreement, WorkFunction, examine};
use workload::device::{NetworkModel, StorageProfile};

/// How observations are judged.
#[derive(Debug, Clone)]
pub struct JudgementSettings {
    /// SLOs as `NAME=SLO`, such as `mail=99.9% < 50ms`, that go before those of the policy.
    pub slos: Vec<String>,
    /// Device profiles by which time on the storage is counted, for limits there: one per profile that the
    /// policy names, or one for all.
    pub storage: Vec<PathBuf>,
    /// How sure each verdict is to be, between 0.5 and 1.
    pub confidence: f64,
    /// The length of the windows in which percentiles are taken beside that of the whole run, above zero.
    pub window: Nanos,
}

/// Judges observations of a run under a policy, or without one.
///
/// # Errors
///
/// When there is nothing to judge against, a limit is negative, or a device profile cannot be read or is not
/// one of the policy's.
pub fn judge(
    policy: Option<&Policy>,
    observations: &Observations,
    settings: &JudgementSettings,
    observer: &dyn ProgressObserver,
) -> Result<Findings, OperationError> {
    policy.into_iter().for_each(|policy| warn_of_outdated_bounds(policy, observer));
    let promises = promises(policy, &settings.slos, observations)?;
    if let Some(promise) = promises.iter().find(|promise| !has_sound_limits(promise)) {
        return Err(OperationError::input(format_args!(
            "the policy has a limit for workload '{}' whose rate_per_s or burst_work is negative",
            promise.name
        ))
        .hint("`tailwright plan -o policy.json` writes such a file"));
    }
    let profiles = settings.storage.iter().map(|path| read_profile(path)).collect::<Result<Vec<_>, _>>()?;
    let storage = StorageProfiles { policy, profiles: &profiles };
    storage.check()?;
    note_gaps(&promises, observations, &storage, observer);
    check_windows(observations, settings.window)?;
    let findings = examine(observations, &promises, settings.confidence, &|promise| storage.work(promise));
    Ok(findings.with_windows(observations, settings.window))
}

/// Of more windows than this nobody reads the percentiles, and they do not fit into memory.
const WINDOWS_MAX: u64 = 100_000;

/// Refuses windows that are too short for the run.
fn check_windows(observations: &Observations, window: Nanos) -> Result<(), OperationError> {
    let instants = || observations.requests.iter().map(|request| request.intended.0);
    let run = instants().max().unwrap_or(0) - instants().min().unwrap_or(0);
    let windows = run / window.0;
    if windows <= WINDOWS_MAX {
        return Ok(());
    }
    Err(OperationError::input(format_args!(
        "the run takes {}: that is {windows} windows of --window {window}, expected {WINDOWS_MAX} at most",
        Nanos(run)
    ))
    .hint("choose longer windows; if the run was shorter, its files count time from different origins"))
}

/// Whether no limit is negative, which the types do not rule out.
fn has_sound_limits(promise: &ServiceAgreement) -> bool {
    let is_sound = |amount: f64| amount >= 0.0 && amount.is_finite();
    promise.limits.iter().all(|limit| is_sound(limit.rate_per_s) && is_sound(limit.burst_work))
}

/// The promises of the policy, with SLOs replaced, then others that are asked for.
fn promises(
    policy: Option<&Policy>,
    slos: &[String],
    observations: &Observations,
) -> Result<Vec<ServiceAgreement>, OperationError> {
    let mut promises = policy.map(ServiceAgreement::from_policy).unwrap_or_default();
    let mut named = BTreeSet::new();
    for text in slos {
        let (name, slo) = parse_slo(text)?;
        if !named.insert(name.clone()) {
            return Err(OperationError::input(format_args!(
                "--slo {text}: '{name}' has another --slo already"
            ))
            .hint("a workload is judged by one SLO; run it again for another percentile"));
        }
        match promises.iter_mut().find(|promise| promise.name == name) {
            Some(promise) => (promise.slo, promise.admitted) = (slo, true),
            None => promises.push(ServiceAgreement::slo_only(name, slo)),
        }
    }
    if promises.is_empty() {
        let names = observations.workloads.join(", ");
        return Err(OperationError::input(
            "there is nothing to judge against: expected a policy with workloads, or --slo",
        )
        .hint(format_args!("such as --slo 'NAME=99.9% < 50ms'; observed are: {names}")));
    }
    Ok(promises)
}

fn parse_slo(text: &str) -> Result<(String, Slo), OperationError> {
    let bad = || {
        OperationError::input(format_args!("--slo {text}: expected NAME=SLO, such as 'mail=99.9% < 50ms'"))
    };
    // '<=' is part of an SLO: the name ends before.
    let (name, slo) = text.split_once('=').ok_or_else(bad)?;
    let slo: Slo = slo.parse().map_err(|error| bad().hint(error))?;
    if slo.percentile.is_like_a_share() {
        return Err(
            bad().hint(format_args!("the percentile is {}; a percentage is expected", slo.percentile))
        );
    }
    if name.trim().is_empty() { Err(bad()) } else { Ok((name.trim().to_owned(), slo)) }
}

/// Tells the observer which promises cannot be judged, in whole or in part.
fn note_gaps(
    promises: &[ServiceAgreement],
    observations: &Observations,
    storage: &StorageProfiles,
    observer: &dyn ProgressObserver,
) {
    let names = promises.iter().map(|promise| &promise.name);
    let absent = names.filter(|name| !observations.workloads.contains(name));
    let absent: Vec<&str> = absent.map(String::as_str).collect();
    if !absent.is_empty() {
        let (absent, observed) = (absent.join(", "), observations.workloads.join(", "));
        observer.notice(Notice::Note(format!("not observed: {absent} (observed: {observed})")));
    }
    let lacks_profile = promises.iter().any(|promise| {
        let is_limited = promise.limits.iter().any(|limit| limit.stage == Stage::Storage);
        is_limited && storage.profile(promise).is_none()
    });
    if lacks_profile {
        let text = "without --storage PROFILE.json limits at the storage are not judged";
        observer.notice(Notice::Note(text.to_owned()));
    }
}

/// Device profiles of the servers of a policy.
struct StorageProfiles<'a> {
    policy: Option<&'a Policy>,
    profiles: &'a [StorageProfile],
}

impl<'a> StorageProfiles<'a> {
    /// Checks that several profiles can be told apart by the names that the policy has for them.
    fn check(&self) -> Result<(), OperationError> {
        let servers = || self.policy.iter().flat_map(|policy| &policy.servers);
        if self.profiles.len() < 2 {
            return Ok(());
        }
        if let Some(name) = repeated_profile_name(self.profiles) {
            return Err(OperationError::input(format_args!(
                "--storage: two device profiles have the name '{name}'"
            ))
            .hint("the policy names the profile of a server: give each a name of its own, or one of them"));
        }
        let unknown =
            self.profiles.iter().find(|at| servers().all(|server| server.storage_profile != at.name()));
        match unknown {
            Some(profile) => Err(OperationError::input(format_args!(
                "--storage: no server of the policy has the device profile '{}'",
                profile.name()
            ))
            .hint("give one profile for all servers, or those that the policy names")),
            None => Ok(()),
        }
    }

    /// The device that a promise is given on, where it is known.
    fn profile(&self, promise: &ServiceAgreement) -> Option<&'a StorageProfile> {
        if let [only] = self.profiles {
            return Some(only);
        }
        let policy = self.policy?;
        let placed =
            policy.workloads.iter().find(|workload| workload.name == promise.name)?.server.as_deref()?;
        let server = policy.servers.iter().find(|server| server.name == placed)?;
        self.profiles.iter().find(|profile| profile.name() == server.storage_profile)
    }

    /// The work of a request in bytes and seconds of device time.
    fn work(&self, promise: &ServiceAgreement) -> WorkFunction<'static> {
        let network = NetworkModel::default();
        let mut device = self.profile(promise).map(StorageProfile::work_model);
        Box::new(move |request: &Request| {
            let storage = device.as_mut().map(|device| device.work(request).base_units() / 1e9);
            PerStage::from_fn(|stage| match stage {
                Stage::Storage => storage,
                link => Some(network.work(link, request).base_units()),
            })
        })
    }
}
