//! `ceph config dump`, as a table or as JSON: mClock's reservations, weights and limits, and limits of RBD images.
//!
//! A value of at most 1 of a reservation or limit is a fraction of the OSD's capacity, as Ceph 18 and later have it;
//! larger values are the requests per second of earlier versions. Built-in profiles are those of "mClock Config
//! Reference" of Ceph 18; custom values count only under the profile `custom`.

use super::parse::{head, number};
use crate::limit::{Direction, LimitKind, LimitUnit, Origin, Resource, StatedCapacity};
use crate::survey::{KeyMeaning, SourceText, Survey, storage_ceiling};
use crate::tree;
use std::collections::BTreeSet;

pub(super) const NAME: &str = "ceph";

/// Reservation, weight and limit of the clients, of recovery and of best effort; a limit of 0 is none.
const PROFILES: [(&str, [[f64; 3]; 3]); 3] = [
    ("balanced", [[0.5, 1.0, 0.0], [0.5, 1.0, 0.0], [0.0, 1.0, 0.9]]),
    ("high_client_ops", [[0.6, 2.0, 0.0], [0.4, 1.0, 0.0], [0.0, 1.0, 0.7]]),
    ("high_recovery_ops", [[0.3, 1.0, 0.0], [0.7, 2.0, 0.0], [0.0, 1.0, 0.0]]),
];
const CLASSES: [&str; 3] = ["client", "background_recovery", "background_best_effort"];
const PARAMETERS: [(&str, LimitKind); 3] =
    [("res", LimitKind::Reservation), ("wgt", LimitKind::Weight), ("lim", LimitKind::Ceiling)];

/// Limits of an image, by option.
const IMAGE_LIMITS: [(&str, Direction, LimitUnit); 6] = [
    ("rbd_qos_iops_limit", Direction::Total, LimitUnit::RequestsPerS),
    ("rbd_qos_read_iops_limit", Direction::Read, LimitUnit::RequestsPerS),
    ("rbd_qos_write_iops_limit", Direction::Write, LimitUnit::RequestsPerS),
    ("rbd_qos_bps_limit", Direction::Total, LimitUnit::BytesPerS),
    ("rbd_qos_read_bps_limit", Direction::Read, LimitUnit::BytesPerS),
    ("rbd_qos_write_bps_limit", Direction::Write, LimitUnit::BytesPerS),
];

/// Options that state the capacity of an OSD.
const CAPACITIES: [(&str, LimitUnit); 4] = [
    ("osd_mclock_max_capacity_iops_ssd", LimitUnit::RequestsPerS),
    ("osd_mclock_max_capacity_iops_hdd", LimitUnit::RequestsPerS),
    ("osd_mclock_max_sequential_bandwidth_ssd", LimitUnit::BytesPerS),
    ("osd_mclock_max_sequential_bandwidth_hdd", LimitUnit::BytesPerS),
];

pub(super) fn recognises(source: &SourceText) -> bool {
    let head = head(&source.text);
    let is_table = head.lines().next().is_some_and(|line| line.starts_with("WHO") && line.contains("OPTION"));
    is_table
        || (head.trim_start().starts_with('[') && head.contains("\"section\"") && head.contains("\"level\""))
}

/// An option of a daemon or of all daemons of a type.
struct SetOption {
    who: String,
    name: String,
    value: String,
    origin: Origin,
}

pub(super) fn read(sources: &[SourceText], survey: &mut Survey) {
    for source in sources {
        let options = if source.text.trim_start().starts_with('[') {
            match tree::documents(&source.text) {
                Ok(documents) => of_json(source, &documents),
                Err(reason) => {
                    survey.unreadable(&source.name, reason);
                    continue;
                }
            }
        } else {
            of_table(source)
        };
        push(&options, survey);
    }
}

fn of_json(source: &SourceText, documents: &[tree::Node]) -> Vec<SetOption> {
    let option = |node: &tree::Node| {
        let word = |key: &str| node.text_at(&[key]).map(str::to_owned);
        Some(SetOption {
            who: word("section")?,
            name: word("name")?,
            value: word("value")?,
            origin: source.at(node.line),
        })
    };
    documents.iter().flat_map(tree::Node::items).filter_map(option).collect()
}

/// Reads a table whose columns WHO, LEVEL, OPTION and VALUE are separated by blanks; MASK may be empty.
fn of_table(source: &SourceText) -> Vec<SetOption> {
    const LEVELS: [&str; 4] = ["basic", "advanced", "dev", "unknown"];
    let mut options = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(level) = words.iter().position(|word| LEVELS.contains(word)) else { continue };
        if let (Some(who), Some(name), Some(value)) =
            (words.first(), words.get(level + 1), words.get(level + 2))
        {
            let origin = source.at(index + 1);
            let mask = words[1..level].join(" ");
            let who = format!("{who} {mask}").trim_end().to_owned();
            options.push(SetOption { who, name: (*name).into(), value: (*value).into(), origin });
        }
    }
    options
}

fn push(options: &[SetOption], survey: &mut Survey) {
    for option in options {
        let SetOption { who, name, value, origin } = option;
        if let Some((_, unit)) = CAPACITIES.iter().find(|(known, _)| known == name) {
            let Some(value) = number(value) else {
                survey.unreadable(origin, format!("{name}: expected a number, found '{value}'"));
                continue;
            };
            let place = who.clone();
            let origin = origin.clone();
            let direction = Direction::Total;
            let resource = Resource::Storage;
            survey.push_capacity(StatedCapacity { place, resource, direction, unit: *unit, value, origin });
        } else if let Some((_, direction, unit)) = IMAGE_LIMITS.iter().find(|(known, ..)| known == name) {
            let tenant = format!("images of {who}");
            push_number(option, storage_ceiling(*direction, *unit), (&tenant, "rbd"), options, survey);
        } else if !is_known(name) && ["osd_mclock_", "rbd_qos_"].iter().any(|prefix| name.starts_with(prefix))
        {
            survey.unknown_key(NAME, name, origin.clone());
        }
    }
    let mut osds: BTreeSet<&str> = BTreeSet::new();
    osds.extend(options.iter().map(|option| option.who.as_str()).filter(|who| who.starts_with("osd.")));
    if osds.is_empty() {
        osds.insert("osd");
    }
    for osd in osds {
        push_osd(osd, options, survey);
    }
}

/// Returns true for an option whose value is read, or that limits nothing by itself.
fn is_known(name: &str) -> bool {
    let is_parameter =
        name.strip_prefix("osd_mclock_scheduler_").is_some_and(|rest| parameter_of(rest).is_some());
    is_parameter || name == PROFILE || name.ends_with("_burst") || name.ends_with("_burst_seconds")
}

const PROFILE: &str = "osd_mclock_profile";

/// Returns the class and kind of a parameter such as `client_res`.
fn parameter_of(text: &str) -> Option<(&str, LimitKind)> {
    let (class, parameter) = text.rsplit_once('_')?;
    let (_, kind) = PARAMETERS.iter().find(|(known, _)| *known == parameter)?;
    CLASSES.contains(&class).then_some((class, *kind))
}

/// Records the limits of one OSD: its own options count before those of all.
fn push_osd(osd: &str, options: &[SetOption], survey: &mut Survey) {
    let set = |name: &str| {
        let of = |who: &str| options.iter().rfind(|option| option.who == who && option.name == name);
        of(osd).or_else(|| of("osd")).or_else(|| of("global"))
    };
    let Some(profile) = set(PROFILE) else { return };
    if profile.value != "custom" {
        push_profile(profile, osd, survey);
        return;
    }
    for class in CLASSES {
        for (parameter, kind) in PARAMETERS {
            if let Some(option) = set(&format!("osd_mclock_scheduler_{class}_{parameter}")) {
                push_number(option, of_osd(kind, number(&option.value)), (class, osd), options, survey);
            }
        }
    }
}

/// Returns the meaning of a value of mClock: a fraction of the capacity up to 1, requests per second beyond.
fn of_osd(kind: LimitKind, value: Option<f64>) -> KeyMeaning {
    let unit = match (kind, value) {
        (LimitKind::Weight, _) => LimitUnit::Weight,
        (_, Some(value)) if value > 1.0 => LimitUnit::RequestsPerS,
        _ => LimitUnit::Share,
    };
    KeyMeaning { resource: Resource::Storage, direction: Direction::Total, kind, unit }
}

/// Records the limits of a built-in profile.
fn push_profile(option: &SetOption, osd: &str, survey: &mut Survey) {
    let SetOption { name, value, origin, .. } = option;
    let Some((profile, classes)) = PROFILES.iter().find(|(known, _)| known == value) else {
        survey.unknown_key(NAME, &format!("{name} {value}"), origin.clone());
        return;
    };
    for (class, values) in CLASSES.iter().zip(classes) {
        for ((parameter, kind), value) in PARAMETERS.iter().zip(values) {
            if *value > 0.0 {
                let key = format!("{profile} {parameter}");
                let limit =
                    of_osd(*kind, Some(*value)).limit(NAME, &key, (class, osd), *value, origin.clone());
                survey.push(limit);
            }
        }
    }
}

/// Records the value of an option; 0 is no limit.
fn push_number(
    option: &SetOption,
    meaning: KeyMeaning,
    names: (&str, &str),
    options: &[SetOption],
    survey: &mut Survey,
) {
    let SetOption { who, name, value, origin } = option;
    let Some(value) = number(value) else {
        survey.unreadable(origin, format!("{name}: expected a number, found '{value}'"));
        return;
    };
    if value == 0.0 {
        return;
    }
    let mut limit = meaning.limit(NAME, name, names, value, origin.clone());
    if let Some(base) = name.strip_suffix("_limit") {
        let burst = options.iter().find(|other| other.who == *who && other.name == format!("{base}_burst"));
        let burst = burst.and_then(|burst| number(&burst.value)).filter(|burst| *burst > 0.0);
        // Without a burst, librbd's bucket holds the tokens of a second.
        limit.burst = Some(burst.unwrap_or(value));
    }
    survey.push(limit);
}
