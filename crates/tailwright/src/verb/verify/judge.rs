//! Who is judged against what, and how requests are counted at the limits.
//!
//! Work is what planning and enforcing count: bytes by the network model, device time by a device profile. The
//! safety margin of a plan is not added, because it is there to be used up.

use crate::input::read_text;
use clap::Args;
use model::{Observations, OperationError, PerStage, Policy, Request, Slo, Stage};
use std::path::{Path, PathBuf};
use verify::{Findings, ServiceAgreement, WorkFunction, examine};
use workload::device::{NetworkModel, StorageProfile};

/// How observations are judged.
#[derive(Debug, Clone, Args)]
pub(crate) struct JudgeArgs {
    /// An SLO, such as 'mail=99.9% < 50ms'; goes before that of the policy.
    #[arg(long, value_name = "NAME=SLO")]
    slo: Vec<String>,
    /// Device profile by which time on the storage is counted, for limits there; one per profile that the policy
    /// names, or one for all.
    #[arg(long, value_name = "PROFILE.json")]
    storage: Vec<PathBuf>,
    /// Of each verdict: how sure it is to be, between 0 and 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = confidence)]
    confidence: f64,
}

fn confidence(text: &str) -> Result<f64, String> {
    let expected = || format!("expected a number between 0.5 and 1, such as 0.95, found '{text}'");
    text.parse().ok().filter(|share: &f64| (0.5..1.0).contains(share)).ok_or_else(expected)
}

/// Judges observations of a run under a policy, or without one.
pub(crate) fn judge(
    policy: Option<&Policy>,
    observations: &Observations,
    args: &JudgeArgs,
) -> Result<Findings, OperationError> {
    let promises = promises(policy, &args.slo, observations)?;
    if let Some(promise) = promises.iter().find(|promise| !has_sound_limits(promise)) {
        return Err(OperationError::input(format_args!(
            "the policy has a limit for workload '{}' whose rate_per_s or burst_work is negative",
            promise.name
        ))
        .hint("`tailwright plan -o policy.json` writes such a file"));
    }
    let profiles = args.storage.iter().map(|path| profile(path)).collect::<Result<Vec<_>, _>>()?;
    let storage = Storage { policy, profiles: &profiles };
    storage.check()?;
    notes(&promises, observations, &storage);
    Ok(examine(observations, &promises, args.confidence, &|promise| storage.work(promise)))
}

/// What the types do not rule out.
fn has_sound_limits(promise: &ServiceAgreement) -> bool {
    let is_sound = |amount: f64| amount >= 0.0 && amount.is_finite();
    promise.limits.iter().all(|limit| is_sound(limit.rate_per_s) && is_sound(limit.burst_work))
}

/// Those of the policy, with SLOs replaced, then others that are asked for.
fn promises(
    policy: Option<&Policy>,
    slos: &[String],
    observations: &Observations,
) -> Result<Vec<ServiceAgreement>, OperationError> {
    let mut promises = policy.map(ServiceAgreement::from_policy).unwrap_or_default();
    for text in slos {
        let (name, slo) = slo(text)?;
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

fn slo(text: &str) -> Result<(String, Slo), OperationError> {
    let bad = || {
        OperationError::input(format_args!("--slo {text}: expected NAME=SLO, such as 'mail=99.9% < 50ms'"))
    };
    // '<=' is part of an SLO: the name ends before.
    let (name, slo) = text.split_once('=').ok_or_else(bad)?;
    let slo = slo.parse().map_err(|error| bad().hint(error))?;
    if name.trim().is_empty() { Err(bad()) } else { Ok((name.trim().to_owned(), slo)) }
}

fn profile(path: &Path) -> Result<StorageProfile, OperationError> {
    let text = read_text(path, "device profile")?;
    StorageProfile::from_json(&text).map_err(|error| {
        OperationError::input(format_args!("{}: {error}", path.display()))
            .hint("`tailwright profile` measures a device and writes its profile")
    })
}

/// What is not an error and should be known.
fn notes(promises: &[ServiceAgreement], observations: &Observations, storage: &Storage) {
    let observed = |promise: &&ServiceAgreement| observations.workloads.contains(&promise.name);
    let absent: Vec<&str> =
        promises.iter().filter(|at| !observed(at)).map(|promise| promise.name.as_str()).collect();
    if !absent.is_empty() {
        eprintln!(
            "note: not observed: {} (observed: {})",
            absent.join(", "),
            observations.workloads.join(", ")
        );
    }
    let needs = |promise: &ServiceAgreement| promise.limits.iter().any(|limit| limit.stage == Stage::Storage);
    let lacking = promises.iter().any(|promise| needs(promise) && storage.profile(promise).is_none());
    if lacking {
        eprintln!("note: without --storage PROFILE.json limits at the storage are not judged");
    }
}

/// Device profiles of the servers of a policy.
struct Storage<'a> {
    policy: Option<&'a Policy>,
    profiles: &'a [StorageProfile],
}

impl<'a> Storage<'a> {
    /// Several profiles are told apart by the names that the policy has for them.
    fn check(&self) -> Result<(), OperationError> {
        let servers = || self.policy.iter().flat_map(|policy| &policy.servers);
        if self.profiles.len() < 2 {
            return Ok(());
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

    /// Bytes and seconds of device time.
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
