//! Policies of `tailwright plan`: the limits of admitted workloads at each stage.

use super::parse::head;
use crate::limit::{Direction, FoundLimit, LimitKind, LimitUnit, Resource, StatedCapacity};
use crate::survey::{KeyMeaning, SourceText, Survey};
use model::{Policy, Stage};

pub(super) const NAME: &str = "policy";

pub(super) fn recognises(source: &SourceText) -> bool {
    let head = head(&source.text);
    head.trim_start().starts_with('{') && head.contains("\"tailwright.policy\"")
}

pub(super) fn read(sources: &[SourceText], survey: &mut Survey) {
    for source in sources {
        match Policy::from_json(&source.text) {
            Ok(policy) => push(source, &policy, survey),
            Err(error) => survey.unreadable(&source.name, error),
        }
    }
}

/// Returns the resource, direction and unit of the limits of a stage.
pub(crate) fn meaning(stage: Stage) -> KeyMeaning {
    let kind = LimitKind::Ceiling;
    match stage {
        Stage::Storage => {
            let unit = LimitUnit::Share;
            KeyMeaning { resource: Resource::Storage, direction: Direction::Total, kind, unit }
        }
        Stage::NetworkIn | Stage::NetworkOut => {
            let direction = if stage == Stage::NetworkIn { Direction::In } else { Direction::Out };
            KeyMeaning { resource: Resource::Network, direction, kind, unit: LimitUnit::BytesPerS }
        }
    }
}

fn push(source: &SourceText, policy: &Policy, survey: &mut Survey) {
    // The line of a name; serde does not tell it.
    let line_of = |name: &str| {
        let quoted = format!("\"{name}\"");
        source.text.lines().position(|line| line.contains(&quoted)).map_or(1, |at| at + 1)
    };
    for server in &policy.servers {
        for direction in [Direction::In, Direction::Out] {
            survey.push_capacity(StatedCapacity {
                place: server.name.clone(),
                resource: Resource::Network,
                direction,
                unit: LimitUnit::BytesPerS,
                value: server.network_bytes_per_s,
                origin: source.at(line_of(&server.name)),
            });
        }
    }
    for workload in policy.workloads.iter().filter(|workload| workload.admitted) {
        let Some(server) = &workload.server else { continue };
        let line = line_of(&workload.name);
        for limit in &workload.limits {
            let at = source.at(line);
            let stage = limit.stage;
            let names = (workload.name.as_str(), server.as_str());
            let found = meaning(stage).limit(NAME, stage.name(), names, limit.rate_per_s, at);
            let by_stage = workload.priority_by_stage.map(|levels| levels[stage as usize]);
            let priority = by_stage.or(workload.priority);
            survey.push(FoundLimit { burst: Some(limit.bucket_work()), priority, ..found });
        }
        if workload.limits.iter().all(|limit| limit.stage != Stage::Storage) {
            survey.push_unlimited(&workload.name, server, source.at(line));
        }
    }
}
