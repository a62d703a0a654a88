//! Control groups: the files of a live hierarchy or of a copied one, of both versions.
//!
//! The tenant is the path of the group below the folder that was asked for. Ceilings of ancestors hold for a group
//! as well, so a limit knows the nearest group above it that has the same. Default weights are no limits.

use super::parse::number;
use crate::limit::{Direction, FoundLimit, LimitKind, LimitUnit, Resource, StatedCapacity};
use crate::survey::{KeyMeaning, SourceText, Survey, storage_ceiling, weight};
use crate::throttle::SLICES_S;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const NAME: &str = "cgroup";

/// Layout of the lines of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FileLayout {
    /// `MAJ:MIN key=value …`.
    Keyed,
    /// `MAJ:MIN value`, or a value alone, which is the default of all devices.
    PerDevice(KeyMeaning, DefaultWeight),
    /// `QUOTA PERIOD` of cpu.max.
    CpuMax,
    /// One number; the quota of version 1 needs the period beside it.
    CpuQuota,
    CpuPeriod,
    /// Processes of the group.
    Members,
}

/// The weight that the kernel gives if none is set.
type DefaultWeight = Option<f64>;

const STORAGE_WEIGHT: KeyMeaning = weight(Resource::Storage);
const CPU_WEIGHT: KeyMeaning = weight(Resource::Cpu);

/// Files that limit, by name.
const FILES: [(&str, FileLayout); 20] = [
    ("cgroup.procs", FileLayout::Members),
    ("io.max", FileLayout::Keyed),
    ("io.latency", FileLayout::Keyed),
    ("io.cost.model", FileLayout::Keyed),
    ("io.cost.qos", FileLayout::Keyed),
    ("io.weight", FileLayout::PerDevice(STORAGE_WEIGHT, Some(100.0))),
    ("io.bfq.weight", FileLayout::PerDevice(STORAGE_WEIGHT, Some(100.0))),
    ("cpu.max", FileLayout::CpuMax),
    ("cpu.weight", FileLayout::PerDevice(CPU_WEIGHT, Some(100.0))),
    (
        "blkio.throttle.read_bps_device",
        FileLayout::PerDevice(storage_ceiling(Direction::Read, LimitUnit::BytesPerS), None),
    ),
    (
        "blkio.throttle.write_bps_device",
        FileLayout::PerDevice(storage_ceiling(Direction::Write, LimitUnit::BytesPerS), None),
    ),
    (
        "blkio.throttle.read_iops_device",
        FileLayout::PerDevice(storage_ceiling(Direction::Read, LimitUnit::RequestsPerS), None),
    ),
    (
        "blkio.throttle.write_iops_device",
        FileLayout::PerDevice(storage_ceiling(Direction::Write, LimitUnit::RequestsPerS), None),
    ),
    ("blkio.weight", FileLayout::PerDevice(STORAGE_WEIGHT, Some(500.0))),
    ("blkio.weight_device", FileLayout::PerDevice(STORAGE_WEIGHT, Some(500.0))),
    ("blkio.bfq.weight", FileLayout::PerDevice(STORAGE_WEIGHT, Some(100.0))),
    ("blkio.bfq.weight_device", FileLayout::PerDevice(STORAGE_WEIGHT, Some(100.0))),
    ("cpu.cfs_quota_us", FileLayout::CpuQuota),
    ("cpu.cfs_period_us", FileLayout::CpuPeriod),
    ("cpu.shares", FileLayout::PerDevice(CPU_WEIGHT, Some(1024.0))),
];

/// Keys of io.max.
const MAX_KEYS: [(&str, Direction, LimitUnit); 4] = [
    ("rbps", Direction::Read, LimitUnit::BytesPerS),
    ("wbps", Direction::Write, LimitUnit::BytesPerS),
    ("riops", Direction::Read, LimitUnit::RequestsPerS),
    ("wiops", Direction::Write, LimitUnit::RequestsPerS),
];

/// Keys of io.cost.model that state a capacity; sequential requests are the cheapest.
const MODEL_KEYS: [(&str, Direction, LimitUnit); 4] = [
    ("rbps", Direction::Read, LimitUnit::BytesPerS),
    ("wbps", Direction::Write, LimitUnit::BytesPerS),
    ("rseqiops", Direction::Read, LimitUnit::RequestsPerS),
    ("wseqiops", Direction::Write, LimitUnit::RequestsPerS),
];

/// Keys that limit no tenant.
const SILENT_KEYS: [&str; 11] =
    ["ctrl", "model", "rrandiops", "wrandiops", "enable", "rpct", "rlat", "wpct", "wlat", "min", "max"];

/// Processor time that a group may use at once: a whole quota at the end of a period and one at its beginning.
const CPU_QUOTAS: f64 = 2.0;

/// Place of limits of processors.
const CPUS: &str = "processors";
/// Place of a weight that counts at every device.
const ALL_DEVICES: &str = "all devices";

/// Folders of version 1 that are hierarchies and no groups.
const HIERARCHIES: [&str; 7] =
    ["blkio", "cpu", "cpuacct", "cpu,cpuacct", "cpuacct,cpu", "unified", "systemd"];

/// Returns true for the name of a file that limits.
pub(crate) fn is_file_name(name: &str) -> bool {
    FILES.iter().any(|(known, _)| *known == name)
}

pub(super) fn recognises(source: &SourceText) -> bool {
    is_file_name(source.file_name())
}

pub(super) fn read(sources: &[SourceText], survey: &mut Survey) {
    let from = survey.limits.len();
    let mut periods: BTreeMap<String, f64> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.file_name() == "cpu.cfs_period_us") {
        periods.extend(number(&source.text).map(|period| (group_of(&source.below), period)));
    }
    // A group of another hierarchy, such as memory, does not tell who uses storage.
    let is_storage =
        |source: &&SourceText| ["io.", "blkio."].iter().any(|start| source.file_name().starts_with(start));
    let storage: BTreeSet<&str> = sources.iter().filter(is_storage).map(folder_of).collect();
    let mut members: BTreeMap<String, &SourceText> = BTreeMap::new();
    for source in sources {
        let Some((name, layout)) = FILES.iter().find(|(name, _)| *name == source.file_name()) else {
            continue;
        };
        let group = group_of(&source.below);
        match layout {
            FileLayout::Members
                if !has_processes(source) || group == "/" || !storage.contains(folder_of(source)) => {}
            FileLayout::Members => {
                members.insert(group, source);
            }
            FileLayout::Keyed => read_keyed(source, name, &group, survey),
            FileLayout::PerDevice(meaning, default) => read_devices(source, name, *meaning, *default, survey),
            FileLayout::CpuMax => read_cpu(source, name, &source.text, None, survey),
            FileLayout::CpuQuota => {
                let period = periods.get(&group).copied().unwrap_or(1e5);
                read_cpu(source, name, &source.text, Some(period), survey);
            }
            FileLayout::CpuPeriod => {}
        }
    }
    nest(survey, from);
    mark_unlimited(survey, from, &members);
}

fn has_processes(source: &SourceText) -> bool {
    !source.text.trim().is_empty()
}

fn folder_of(source: &SourceText) -> &str {
    source.below.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the group of a file below the root of a hierarchy: `/` for the root.
fn group_of(below: &str) -> String {
    let mut parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.pop();
    if parts.first().is_some_and(|first| HIERARCHIES.contains(first)) {
        parts.remove(0);
    }
    if parts.is_empty() { "/".to_owned() } else { parts.join("/") }
}

fn is_device(word: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Returns the direction and unit of a key.
fn row(keys: &[(&str, Direction, LimitUnit)], key: &str) -> Option<(Direction, LimitUnit)> {
    keys.iter().find(|row| row.0 == key).map(|(_, direction, unit)| (*direction, *unit))
}

fn read_keyed(source: &SourceText, file: &str, group: &str, survey: &mut Survey) {
    for (number_of_line, line) in source.text.lines().enumerate() {
        let at = source.at(number_of_line + 1);
        let mut words = line.split_whitespace();
        let Some(device) = words.next() else { continue };
        if !is_device(device) {
            survey.unreadable(&at, format!("{file}: expected a device such as 8:0, found '{device}'"));
            continue;
        }
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            if value == "max" || SILENT_KEYS.contains(&key) {
                continue;
            }
            let Some(value) = number(value) else {
                survey.unreadable(&at, format!("{file}: {key}: expected a number, found '{value}'"));
                continue;
            };
            let full_key = format!("{file} {key}");
            match (file, key) {
                ("io.latency", "target") => {
                    let meaning = KeyMeaning {
                        resource: Resource::Storage,
                        direction: Direction::Total,
                        kind: LimitKind::LatencyTarget,
                        unit: LimitUnit::Seconds,
                    };
                    survey.push(meaning.limit(NAME, &full_key, (group, device), value / 1e6, at.clone()));
                }
                ("io.max", _) if let Some((direction, unit)) = row(&MAX_KEYS, key) => {
                    let limit = storage_ceiling(direction, unit);
                    let mut limit = limit.limit(NAME, &full_key, (group, device), value, at.clone());
                    limit.burst = Some(value * SLICES_S);
                    survey.push(limit);
                }
                ("io.cost.model", _) if let Some((direction, unit)) = row(&MODEL_KEYS, key) => {
                    let place = device.to_owned();
                    let origin = at.clone();
                    let resource = Resource::Storage;
                    survey.push_capacity(StatedCapacity { place, resource, direction, unit, value, origin });
                }
                _ => survey.unknown_key(NAME, &full_key, at.clone()),
            }
        }
    }
}

fn read_devices(
    source: &SourceText,
    file: &str,
    meaning: KeyMeaning,
    default: DefaultWeight,
    survey: &mut Survey,
) {
    let group = group_of(&source.below);
    for (number_of_line, line) in source.text.lines().enumerate() {
        let at = source.at(number_of_line + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        let whole = if meaning.resource == Resource::Cpu { CPUS } else { ALL_DEVICES };
        let (place, value) = match words[..] {
            [] => continue,
            [value] | ["default", value] => (whole, value),
            [device, value] => (device, value),
            _ => (whole, line),
        };
        let Some(value) = number(value) else {
            survey.unreadable(&at, format!("{file}: expected a device and a number, found '{line}'"));
            continue;
        };
        if default == Some(value) || value == 0.0 {
            continue;
        }
        let mut limit = meaning.limit(NAME, file, (&group, place), value, at);
        limit.burst = (meaning.kind == LimitKind::Ceiling).then_some(value * SLICES_S);
        survey.push(limit);
    }
}

/// Reads a quota and its period in microseconds; `max` and -1 are no limit.
fn read_cpu(source: &SourceText, file: &str, text: &str, period: Option<f64>, survey: &mut Survey) {
    let mut words = text.split_whitespace();
    let quota = words.next().unwrap_or("max");
    if quota == "max" || quota == "-1" {
        return;
    }
    let period = period.or_else(|| number(words.next()?)).unwrap_or(1e5);
    let Some(quota) = number(quota).filter(|_| period > 0.0) else {
        survey.unreadable(source.at(1), format!("{file}: expected a quota in microseconds, found '{quota}'"));
        return;
    };
    let meaning = KeyMeaning {
        resource: Resource::Cpu,
        direction: Direction::Total,
        kind: LimitKind::Ceiling,
        unit: LimitUnit::Cpus,
    };
    let group = group_of(&source.below);
    let mut limit = meaning.limit(NAME, file, (&group, CPUS), quota / period, source.at(1));
    limit.burst = Some(CPU_QUOTAS * quota / 1e6);
    survey.push(limit);
}

/// Returns the groups above a group, the nearest first; the root is the last.
fn ancestors(group: &str) -> impl Iterator<Item = &str> {
    let ends = group.rmatch_indices('/').map(|(end, _)| &group[..end]).filter(|above| !above.is_empty());
    ends.chain((group != "/").then_some("/"))
}

/// Sets the nearest group above each limit that has a limit of the same kind.
fn nest(survey: &mut Survey, from: usize) {
    let key = |limit: &FoundLimit| (limit.place.clone(), limit.direction, limit.kind, limit.unit);
    let known: BTreeSet<_> =
        survey.limits[from..].iter().map(|limit| (limit.tenant.clone(), key(limit))).collect();
    for limit in &mut survey.limits[from..] {
        if limit.kind != LimitKind::Ceiling {
            continue;
        }
        let of_limit = key(limit);
        let above =
            ancestors(&limit.tenant).find(|above| known.contains(&((*above).to_owned(), of_limit.clone())));
        limit.within = above.map(str::to_owned);
    }
}

/// Records groups with processes that have no ceiling of storage, nor has any group above them.
fn mark_unlimited(survey: &mut Survey, from: usize, members: &BTreeMap<String, &SourceText>) {
    let is_ceiling =
        |limit: &&FoundLimit| limit.kind == LimitKind::Ceiling && limit.resource == Resource::Storage;
    let ceilings = survey.limits[from..].iter().filter(is_ceiling);
    let mut limited: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for limit in ceilings {
        limited.entry(limit.place.clone()).or_default().insert(limit.tenant.clone());
    }
    for (place, tenants) in &limited {
        for (group, source) in members {
            let above =
                std::iter::once(group.as_str()).chain(ancestors(group)).any(|at| tenants.contains(at));
            if !above {
                survey.push_unlimited(group, place, source.at(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(files: &[(&str, &str)]) -> Survey {
        let sources: Vec<SourceText> =
            files.iter().map(|(name, text)| SourceText::new(*name, *text)).collect();
        let mut survey = Survey::default();
        read(&sources, &mut survey);
        survey
    }

    #[test]
    fn io_max_has_a_row_for_each_key_that_is_not_max() {
        let found = survey(&[("a/io.max", "8:0 rbps=1000 wbps=max riops=max wiops=50\n8:16 rbps=x\n")]);
        let rows: Vec<_> =
            found.limits.iter().map(|l| (l.tenant.as_str(), l.direction, l.unit, l.value)).collect();
        assert_eq!(
            rows,
            [
                ("a", Direction::Read, LimitUnit::BytesPerS, 1000.0),
                ("a", Direction::Write, LimitUnit::RequestsPerS, 50.0)
            ]
        );
        assert_eq!((found.unreadable[0].place.as_str(), found.unreadable_count), ("a/io.max:2", 1));
    }

    #[test]
    fn a_group_is_within_the_nearest_group_with_the_same_limit() {
        let found = survey(&[
            ("a/io.max", "8:0 rbps=1000\n"),
            ("a/b/io.max", "8:16 rbps=10\n"),
            ("a/b/c/io.max", "8:0 rbps=500\n"),
        ]);
        let within: Vec<_> = found.limits.iter().map(|limit| limit.within.as_deref()).collect();
        assert_eq!(within, [None, None, Some("a")]);
    }

    #[test]
    fn groups_with_processes_and_no_ceiling_are_unlimited() {
        let found = survey(&[
            ("a/io.max", "8:0 rbps=1000\n"),
            ("a/b/cgroup.procs", "7\n"),
            ("a/b/io.max", "\n"),
            ("c/cgroup.procs", "8\n"),
            ("c/io.max", "\n"),
            ("d/cgroup.procs", "\n"),
            ("d/io.max", "\n"),
            ("memory/e/cgroup.procs", "9\n"),
        ]);
        let names: Vec<_> =
            found.unlimited.iter().map(|at| (at.tenant.as_str(), at.place.as_str())).collect();
        assert_eq!(names, [("c", "8:0")]);
    }

    #[test]
    fn quotas_of_both_versions_are_processors() {
        let found = survey(&[
            ("a/cpu.max", "50000 100000\n"),
            ("b/cpu.max", "max 100000\n"),
            ("cpu/c/cpu.cfs_quota_us", "300000\n"),
            ("cpu/c/cpu.cfs_period_us", "200000\n"),
            ("cpu/d/cpu.cfs_quota_us", "-1\n"),
        ]);
        let rows: Vec<_> = found.limits.iter().map(|l| (l.tenant.as_str(), l.value)).collect();
        assert_eq!(rows, [("a", 0.5), ("c", 1.5)]);
    }
}
