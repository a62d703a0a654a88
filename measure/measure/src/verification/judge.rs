//! Who is judged against what, and how requests are counted at the limits.
//!
//! Work is what planning and enforcing count: bytes by the network model, device time by a device profile. The
//! safety margin of a plan is not added, because it is there to be used up.

use enforce::facade::{HostsFile, server_runs};
use model::{
    Condition, Objective, Observations, OperationError, PerStage, Policy, PolicyServer, Request,
    ServerConditions, Stage,
};
use operation::text::known_words;
use operation::{BrokenBounds, ServerRun, check_conditions};
use operation::{Notice, ProgressObserver};
use std::path::PathBuf;
use units::Nanos;
use verify::{Findings, ServiceAgreement, WorkFunction, examine};
use workload::device::{NetworkModel, StorageProfile};
use workload::profile_file::{profile_hash, read_profile, repeated_profile_name};

/// How observations are judged.
#[derive(Debug, Clone)]
pub struct JudgementSettings {
    /// SLOs as `NAME=SLO`, such as `mail=99.9% < 50ms`. All those of a workload replace its SLOs in the policy.
    pub slos: Vec<String>,
    /// Device profiles by which time on the storage is counted, for limits there: one per profile that the
    /// policy names, or one for all.
    pub storage: Vec<PathBuf>,
    /// Where servers and clients are, to compare the servers with what the bounds of the policy assume.
    pub hosts: Option<PathBuf>,
    /// Judge SLOs, and no bounds, on servers to which the bounds of the policy do not apply.
    pub without_bounds: bool,
    /// How sure each verdict is to be, between 0.5 and 1.
    pub confidence: f64,
    /// The length of the windows in which percentiles are taken beside that of the whole run, above zero.
    pub window: Nanos,
}

/// Judges observations of a run under a policy, or without one.
///
/// # Errors
///
/// When there is nothing to judge against, none of it was observed, a limit is negative, or a device profile cannot be read or is not
/// one of the policy's.
pub fn judge(
    policy: Option<&Policy>,
    observations: &Observations,
    settings: &JudgementSettings,
    observer: &dyn ProgressObserver,
) -> Result<JudgedRun, OperationError> {
    let mut promises = promises(policy, &settings.slos, observations)?;
    check_names(&promises, policy, &settings.slos, &observations.workloads)?;
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
    let broken_bounds = match policy {
        Some(policy) => check_run(policy, observations, &storage, settings, observer)?,
        None => None,
    };
    if let (Some(broken), Some(policy)) = (&broken_bounds, policy) {
        drop_bounds(&mut promises, policy, broken);
    }
    note_gaps(&promises, observations, &storage, observer);
    check_windows(observations, settings.window)?;
    let findings = examine(observations, &promises, settings.confidence, &|promise| storage.work(promise));
    let broken_bounds = broken_bounds.map(|broken| broken.sentence);
    Ok(JudgedRun { findings: findings.with_windows(observations, settings.window), broken_bounds })
}

/// Drops the bounds of workloads on servers to which bounds do not apply.
fn drop_bounds(promises: &mut [ServiceAgreement], policy: &Policy, broken: &BrokenBounds) {
    for promise in promises {
        let planned = policy.workloads.iter().find(|workload| workload.name == promise.name);
        let server = planned.and_then(|workload| workload.server.as_deref());
        if server.is_some_and(|server| broken.concern(server)) {
            promise.bound_s = None;
            promise.covers_every_request = false;
        }
    }
}

/// Observations that were judged.
#[derive(Debug)]
pub struct JudgedRun {
    /// The verdicts, with what they rest on.
    pub findings: Findings,
    /// Servers to which the bounds of the policy do not apply, and why; no bound on them is judged.
    pub broken_bounds: Option<String>,
}

/// Compares what is known of a run with what the bounds of its policy assume: the device profiles, the hosts file, and the
/// largest best-effort request that was observed.
fn check_run(
    policy: &Policy,
    observations: &Observations,
    storage: &StorageProfiles,
    settings: &JudgementSettings,
    observer: &dyn ProgressObserver,
) -> Result<Option<BrokenBounds>, OperationError> {
    let hosts = settings.hosts.as_deref().map(HostsFile::read).transpose()?;
    let by_hosts = hosts.map_or_else(Vec::new, |hosts| server_runs(policy, &hosts, None));
    let mut runs = Vec::new();
    for server in &policy.servers {
        let profile = storage.of_server(server);
        let mut conditions = ServerConditions::default()
            .with(Condition::ProfileName, profile.map(StorageProfile::name))
            .with(Condition::ProfileContent, profile.map(profile_hash).as_deref())
            .with(Condition::Channels, profile.and_then(StorageProfile::channels));
        // With several servers nothing says which one a best-effort request went to.
        if let (Some(profile), [_]) = (profile, &policy.servers[..]) {
            let longest = longest_best_effort(policy, observations, profile);
            conditions = conditions.with(Condition::BestEffortRequest, longest);
        }
        if let Some(known) = by_hosts.iter().find(|run| run.server == server.name) {
            conditions = known.conditions.clone().or(&conditions);
        }
        runs.push(ServerRun { server: server.name.clone(), conditions });
    }
    check_conditions(policy, &runs, settings.without_bounds, observer)
}

/// The device time of the largest observed request that the policy gives no level, seconds.
fn longest_best_effort(
    policy: &Policy,
    observations: &Observations,
    profile: &StorageProfile,
) -> Option<f64> {
    let mut device = profile.work_model();
    let mut longest: Option<f64> = None;
    for request in &observations.requests {
        let name = observations.workloads.get(request.workload as usize)?;
        let planned = policy.workloads.iter().find(|workload| workload.name == *name && workload.admitted);
        if planned.is_some_and(|planned| planned.largest_request.is_none()) {
            continue;
        }
        let largest = planned.and_then(|planned| planned.largest_request);
        let asked = Request {
            arrival: request.intended,
            size: request.size,
            op: request.op,
            offset: None,
            response: None,
        };
        let work = device.work(&asked).base_units() / 1e9;
        if largest.is_none_or(|largest| work > largest * (1.0 + 1e-6)) {
            longest = Some(longest.unwrap_or(0.0).max(work));
        }
    }
    longest
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
    for (name, objectives) in given_slos(slos)? {
        let first = promises.iter().position(|promise| promise.name == name);
        let planned = first.map(|first| promises[first].clone());
        promises.retain(|promise| promise.name != name);
        let mut own = Vec::with_capacity(objectives.len());
        let mut bound_s = planned.as_ref().and_then(|planned| planned.bound_s);
        for objective in objectives {
            let promise = planned.clone();
            let promise = promise.unwrap_or_else(|| ServiceAgreement::slo_only(&name, objective.slo));
            // The policy's bound is about all requests, and is judged once.
            let bound_s = if objective.requests.is_none() { bound_s.take() } else { None };
            own.push(ServiceAgreement {
                slo: objective.slo,
                requests: objective.requests,
                admitted: true,
                bound_s,
                ..promise
            });
        }
        let place = first.unwrap_or(promises.len());
        promises.splice(place..place, own);
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

/// The SLOs that are asked for, by workload in the order of their first SLO.
fn given_slos(slos: &[String]) -> Result<Vec<(String, Vec<Objective>)>, OperationError> {
    let mut given: Vec<(String, Vec<Objective>)> = Vec::new();
    for text in slos {
        let (name, objective) = parse_slo(text)?;
        let position = given.iter().position(|(known, _)| *known == name);
        let position = position.unwrap_or_else(|| {
            given.push((name, Vec::new()));
            given.len() - 1
        });
        let objectives = &mut given[position].1;
        if objectives.contains(&objective) {
            return Err(OperationError::input(format_args!("--slo {text}: this SLO is given twice")));
        }
        objectives.push(objective);
    }
    Ok(given)
}

/// Checks, before load is generated, that its workloads include one that would be judged.
///
/// # Errors
///
/// As [`judge`] for observations of these workloads.
pub fn check_workloads(
    policy: Option<&Policy>,
    slos: &[String],
    workloads: &[String],
) -> Result<(), OperationError> {
    let known = Observations { workloads: workloads.to_vec(), ..Observations::default() };
    check_names(&promises(policy, slos, &known)?, policy, slos, workloads)
}

/// Refuses observations of nothing that is judged, and an SLO of a workload that neither the policy nor the
/// observations have: "too few requests" would hide a mistyped name or another run's file.
fn check_names(
    promises: &[ServiceAgreement],
    policy: Option<&Policy>,
    slos: &[String],
    observed: &[String],
) -> Result<(), OperationError> {
    let planned: Vec<&str> =
        policy.iter().flat_map(|policy| &policy.workloads).map(|workload| workload.name.as_str()).collect();
    for text in slos {
        let (name, _) = parse_slo(text)?;
        if !observed.contains(&name) && !planned.contains(&name.as_str()) {
            let known: Vec<&str> = observed.iter().map(String::as_str).collect();
            return Err(OperationError::input(format_args!(
                "--slo {text}: no workload '{name}' was observed"
            ))
            .hint(known_words(&name, &known)));
        }
    }
    if promises.iter().any(|promise| observed.contains(&promise.name)) {
        return Ok(());
    }
    let mut names: Vec<&str> = promises.iter().map(|promise| promise.name.as_str()).collect();
    names.dedup();
    let source = if policy.is_some() { "the policy has" } else { "--slo names" };
    Err(OperationError::input(format_args!(
        "the observations have none of the workloads that are judged: {source} {}, and observed were {}",
        listed(&names),
        listed(&observed.iter().map(String::as_str).collect::<Vec<_>>())
    ))
    .hint("judge observations of the run that the policy is for, or give the SLO of a name that was observed by --slo"))
}

/// The first names, and how many more there are.
fn listed(names: &[&str]) -> String {
    const LISTED_MAX: usize = 10;
    let more = names.len().saturating_sub(LISTED_MAX);
    let first = names.iter().take(LISTED_MAX).copied().collect::<Vec<_>>().join(", ");
    match (names, more) {
        ([], _) => "none".to_owned(),
        (_, 0) => first,
        (_, more) => format!("{first} and {more} more"),
    }
}

fn parse_slo(text: &str) -> Result<(String, Objective), OperationError> {
    let bad = || {
        OperationError::input(format_args!("--slo {text}: expected NAME=SLO, such as 'mail=99.9% < 50ms'"))
    };
    // '<=' is part of an SLO: the name ends before.
    let (name, slo) = text.split_once('=').ok_or_else(bad)?;
    let objective: Objective = slo.parse().map_err(|error| bad().hint(error))?;
    let percentile = objective.slo.percentile;
    if percentile.is_like_a_share() {
        return Err(bad().hint(format_args!("the percentile is {percentile}; a percentage is expected")));
    }
    if name.trim().is_empty() { Err(bad()) } else { Ok((name.trim().to_owned(), objective)) }
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
    let mut absent: Vec<&str> = absent.map(String::as_str).collect();
    absent.dedup();
    if !absent.is_empty() {
        let absent = listed(&absent);
        let observed = listed(&observations.workloads.iter().map(String::as_str).collect::<Vec<_>>());
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
        if let Some(name) = repeated_profile_name(&self.profiles.iter().collect::<Vec<_>>()) {
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

    /// The device of a server of the policy, where it is known.
    fn of_server(&self, server: &PolicyServer) -> Option<&'a StorageProfile> {
        match self.profiles {
            [only] => Some(only),
            several => several.iter().find(|profile| profile.name() == server.storage_profile),
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
