//! Limits of a plan as rows of a format: values in its units, rounded up, with the buckets that it really has.

use super::classes;
use super::formats::BucketRule;
use super::settings::{ExportSettings, PlannedLimit};
use crate::audit::RequestCost;
use crate::limit::{Direction, FoundLimit, LimitKind, LimitUnit, Origin, Resource};
use crate::survey::{KeyMeaning, storage_ceiling};
use crate::throttle::SLICES_S;
use model::{OperationError, Policy, Stage};
use std::collections::BTreeSet;

/// Returns the server whose limits are exported.
pub(crate) fn server_of<'a>(
    policy: &'a Policy,
    settings: &ExportSettings,
) -> Result<&'a str, OperationError> {
    let names: Vec<&str> = policy.servers.iter().map(|server| server.name.as_str()).collect();
    match (&settings.server, &names[..]) {
        (Some(wanted), _) => names.iter().find(|name| *name == wanted).copied().ok_or_else(|| {
            let known = operation::text::known_words(wanted, &names);
            OperationError::input(format_args!("--server: the policy has no server '{wanted}'{known}"))
        }),
        (None, [only]) => Ok(only),
        (None, []) => Err(OperationError::input("the policy has no server, so there is nothing to export")),
        (None, [first, ..]) => {
            Err(OperationError::input(format_args!("the policy has {} servers", names.len()))
                .hint(format_args!("choose one: --server {first}")))
        }
    }
}

/// Returns the limits of the workloads on a server at a stage, in the order of the policy.
pub(crate) fn planned(policy: &Policy, server: &str, stage: Stage) -> Vec<PlannedLimit> {
    let mut taken = BTreeSet::new();
    let mut planned = Vec::new();
    for workload in policy.workloads.iter().filter(|workload| workload.server.as_deref() == Some(server)) {
        let Some(limit) = workload.limits.iter().find(|limit| limit.stage == stage) else { continue };
        let by_stage = workload.priority_by_stage.map(|levels| levels[stage as usize]);
        planned.push(PlannedLimit {
            name: workload.name.clone(),
            tenant: operation::text::free_file_name(&workload.name, &mut taken),
            priority: by_stage.or(workload.priority).unwrap_or(0),
            rate: limit.limit.rate,
            burst: limit.limit.burst,
            rate_per_s: limit.rate_per_s,
            bucket_work: limit.bucket_work(),
        });
    }
    planned
}

/// Returns the rows of all workloads, and sentences about what the conversion loses.
pub(crate) fn rows(planned: &[PlannedLimit], settings: &ExportSettings) -> (Vec<FoundLimit>, Vec<String>) {
    let mut rows = Vec::new();
    let mut lost = Vec::new();
    let format = settings.format;
    if format.stage != Stage::Storage {
        planned.iter().for_each(|limit| rows.extend(network_rows(limit, settings)));
        return (rows, lost);
    }
    let has_total = if format.name == "vac" { settings.driver.has_total() } else { format.has_total };
    if !has_total {
        lost.push(format!(
            "It has a ceiling for each direction: {} of a limit is for reads, and the rest for writes.",
            operation::text::percent(settings.read_share)
        ));
    }
    lost.push(format!("Limits are converted for requests of {}.", settings.request));
    for limit in planned {
        rows.extend(storage_rows(limit, has_total, settings));
    }
    if let Some(count) = settings.classes.filter(|_| format.name == "vac") {
        lost.extend(classes::quantise(&mut rows, planned, count));
    }
    (rows, lost)
}

fn storage_rows(limit: &PlannedLimit, has_total: bool, settings: &ExportSettings) -> Vec<FoundLimit> {
    let cost = RequestCost::new(&settings.profile, settings.request);
    let parts = match has_total {
        true => vec![(Direction::Total, 1.0)],
        false => vec![(Direction::Read, settings.read_share), (Direction::Write, 1.0 - settings.read_share)],
    };
    let mut rows = Vec::new();
    for (direction, part) in parts {
        for unit in [LimitUnit::BytesPerS, LimitUnit::RequestsPerS] {
            let per_second =
                if unit == LimitUnit::BytesPerS { cost.bytes } else { 1.0 } / cost.seconds(direction);
            let is_class = settings.format.name == "vac";
            let step = if is_class { settings.driver.step(unit) } else { 1.0 };
            let value = (limit.rate * part * per_second / step).ceil().max(1.0) * step;
            let wanted = limit.bucket_work * part * per_second;
            let place = if is_class { settings.driver.name } else { &settings.device };
            let names = (limit.tenant.as_str(), place);
            let row =
                storage_ceiling(direction, unit).limit(settings.format.name, "", names, value, no_origin());
            rows.push(FoundLimit { burst: Some(bucket(settings.format.bucket, value, wanted)), ..row });
        }
    }
    rows
}

fn network_rows(limit: &PlannedLimit, settings: &ExportSettings) -> Vec<FoundLimit> {
    let row = |kind| {
        let unit = LimitUnit::BytesPerS;
        let meaning = KeyMeaning { resource: Resource::Network, direction: Direction::Out, kind, unit };
        let names = (limit.tenant.as_str(), settings.device.as_str());
        let row =
            meaning.limit(settings.format.name, "", names, limit.rate_per_s.ceil().max(1.0), no_origin());
        FoundLimit { burst: Some(limit.bucket_work.ceil()), priority: Some(limit.priority), ..row }
    };
    vec![row(LimitKind::Ceiling), row(LimitKind::Reservation)]
}

fn no_origin() -> Origin {
    Origin { file: String::new(), line: 0 }
}

/// Returns the bucket of a format for a rate, when another one is wanted.
fn bucket(rule: BucketRule, rate: f64, wanted: f64) -> f64 {
    match rule {
        BucketRule::Free => wanted,
        BucketRule::Slices => SLICES_S * rate,
        BucketRule::Second => rate,
        BucketRule::Qemu if wanted <= 0.1 * rate => 0.1 * rate,
        BucketRule::Qemu => wanted.ceil().max(rate),
    }
}
