//! The classes of requests, by number and by name.

use crate::file::{ClassRef, EntrySpec, KindSpec, Scenario};
use crate::named_files::read_policy;
use ::discipline::serve::DisciplineSpec;
use ::model::Policy;
use gat::RequestSlo;
use std::path::Path;
use std::time::Duration;

/// Most classes of a scenario, and most priority levels of a discipline.
pub(crate) const CLASSES_MAX: u32 = 1000;

/// The number of a kind's class; 0 unless it says otherwise.
pub(crate) fn number(scenario: &Scenario, kind: &KindSpec) -> Result<u32, String> {
    match &kind.class {
        None => Ok(0),
        Some(ClassRef::Number(class)) if *class < CLASSES_MAX => Ok(*class),
        Some(ClassRef::Number(class)) => {
            Err(format!("class {class}: classes count from 0 and are below {CLASSES_MAX}"))
        }
        Some(ClassRef::Name(name)) => {
            let known = (0u32..).zip(&scenario.classes).find(|(_, class)| class.name == *name);
            known.map(|(number, _)| number).ok_or_else(|| {
                let names: Vec<&str> = scenario.classes.iter().map(|class| class.name.as_str()).collect();
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                format!("class: no [[class]] has the name '{name}'; there are: {known}")
            })
        }
    }
}

/// Returns a name for each class: its own, or those of all its kinds (or entries without kinds), or its
/// number.
pub(crate) fn names(scenario: &Scenario) -> Result<Vec<String>, String> {
    let mut members: Vec<Vec<Option<&str>>> = vec![Vec::new(); scenario.classes.len()];
    for entry in &scenario.entries {
        for (class, name) in class_members(scenario, entry)? {
            if members.len() <= class {
                members.resize(class + 1, Vec::new());
            }
            if !members[class].contains(&name) {
                members[class].push(name);
            }
        }
    }
    members.resize(members.len().max(1), Vec::new());
    let names = members.iter().enumerate().map(|(class, members)| match scenario.classes.get(class) {
        Some(spec) => spec.name.clone(),
        None => joined_names(members).unwrap_or_else(|| format!("class {class}")),
    });
    Ok(names.collect())
}

/// Returns the SLO of each class, as many as there are names: its own, or that of the workload with its
/// name in the scenario's policy; `None` for a class without one.
pub(crate) fn slos(
    scenario: &Scenario,
    names: &[String],
    folder: &Path,
) -> Result<Vec<Option<RequestSlo>>, String> {
    let policy = scenario.slos.as_ref().map(|path| read_policy(&folder.join(path))).transpose()?;
    let mut slos = Vec::with_capacity(names.len());
    for (position, name) in names.iter().enumerate() {
        let own = scenario.classes.get(position).and_then(|class| class.slo);
        let length = match (own, &policy) {
            (Some(own), _) => Some(Duration::from_nanos(own.0)),
            (None, Some(policy)) => Some(slo_of(policy, name).map_err(|error| format!("slos: {error}"))?),
            (None, None) => None,
        };
        let slo = length.map(RequestSlo::new).transpose();
        slos.push(slo.map_err(|error| format!("class '{name}': slo: {error}"))?);
    }
    Ok(slos)
}

/// The latency of the SLO of an admitted workload.
fn slo_of(policy: &Policy, class: &str) -> Result<Duration, String> {
    let found = policy.slo_latencies().find(|(name, _)| *name == class);
    found.map(|(_, latency)| latency).ok_or_else(|| {
        let names: Vec<&str> = policy.slo_latencies().map(|(name, _)| name).collect();
        format!("the policy admits no workload '{class}'; it admits: {}", names.join(", "))
    })
}

/// Gives a discipline of deadlines that has no times of its own the SLOs of the classes.
pub(crate) fn give_slos(
    discipline: &mut DisciplineSpec,
    names: &[String],
    slos: &[Option<RequestSlo>],
) -> Result<(), String> {
    let allowed = match discipline {
        DisciplineSpec::Deadline { allowed }
        | DisciplineSpec::PreemptiveDeadline { allowed }
        | DisciplineSpec::LimitedDeadline { allowed, .. } => allowed,
        _ => return Ok(()),
    };
    if !allowed.is_empty() {
        return Ok(());
    }
    for (name, slo) in names.iter().zip(slos) {
        let slo = slo.ok_or_else(|| {
            format!(
                "earliest deadline first: expected a time for each class, or a [[class]] '{name}' with an slo"
            )
        })?;
        allowed.push(slo.ns());
    }
    Ok(())
}

/// The names of all members of a class; `None` if there are no members, or one has no name.
fn joined_names(members: &[Option<&str>]) -> Option<String> {
    let names: Vec<&str> = members.iter().copied().collect::<Option<_>>()?;
    (!names.is_empty()).then(|| names.join(", "))
}

/// The class and the name of each kind of an entry, or of the entry itself where it has no kinds.
fn class_members<'a>(
    scenario: &Scenario,
    entry: &'a EntrySpec,
) -> Result<Vec<(usize, Option<&'a str>)>, String> {
    if entry.kinds.is_empty() {
        let alone = KindSpec { class: entry.class.clone(), ..KindSpec::default() };
        return Ok(vec![(number(scenario, &alone)? as usize, entry.name.as_deref())]);
    }
    let kinds = entry.kinds.iter();
    kinds.map(|kind| Ok((number(scenario, kind)? as usize, kind.name.as_deref()))).collect()
}
