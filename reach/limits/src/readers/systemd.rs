//! Units of systemd with their drop-ins, merged as systemd merges them.
//!
//! Of several files of one name the one in /etc counts before /run, /usr/local and /usr; drop-ins of all folders come
//! after the unit, in the order of their names. An empty assignment takes back all values of its key. Not covered:
//! specifiers, and drop-ins of types and prefixes (`service.d/`, `foo-.service.d/`).

use super::parse::number;
use crate::limit::{Direction, LimitKind, LimitUnit, Origin, Resource};
use crate::survey::{KeyMeaning, SourceText, Survey, storage_ceiling, weight};
use crate::throttle::SLICES_S;
use std::collections::BTreeMap;

pub(super) const NAME: &str = "systemd";

/// Form of the value of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ValueForm {
    /// `DEVICE NUMBER`, with suffixes of powers of 1000.
    Device,
    /// `DEVICE TIME`.
    DeviceTime,
    /// A number.
    Number,
    /// A percentage of one processor.
    Percent,
}

/// Keys that limit, with the form of their values.
pub(crate) const KEYS: [(&str, ValueForm, KeyMeaning); 16] = [
    ("IOReadBandwidthMax", ValueForm::Device, storage_ceiling(Direction::Read, LimitUnit::BytesPerS)),
    ("IOWriteBandwidthMax", ValueForm::Device, storage_ceiling(Direction::Write, LimitUnit::BytesPerS)),
    ("IOReadIOPSMax", ValueForm::Device, storage_ceiling(Direction::Read, LimitUnit::RequestsPerS)),
    ("IOWriteIOPSMax", ValueForm::Device, storage_ceiling(Direction::Write, LimitUnit::RequestsPerS)),
    ("BlockIOReadBandwidth", ValueForm::Device, storage_ceiling(Direction::Read, LimitUnit::BytesPerS)),
    ("BlockIOWriteBandwidth", ValueForm::Device, storage_ceiling(Direction::Write, LimitUnit::BytesPerS)),
    ("IODeviceWeight", ValueForm::Device, weight(Resource::Storage)),
    ("BlockIODeviceWeight", ValueForm::Device, weight(Resource::Storage)),
    ("IODeviceLatencyTargetSec", ValueForm::DeviceTime, LATENCY_TARGET),
    ("IOWeight", ValueForm::Number, weight(Resource::Storage)),
    ("StartupIOWeight", ValueForm::Number, weight(Resource::Storage)),
    ("BlockIOWeight", ValueForm::Number, weight(Resource::Storage)),
    ("CPUWeight", ValueForm::Number, weight(Resource::Cpu)),
    ("StartupCPUWeight", ValueForm::Number, weight(Resource::Cpu)),
    ("CPUShares", ValueForm::Number, weight(Resource::Cpu)),
    ("CPUQuota", ValueForm::Percent, CPU_CEILING),
];

const LATENCY_TARGET: KeyMeaning = KeyMeaning {
    resource: Resource::Storage,
    direction: Direction::Total,
    kind: LimitKind::LatencyTarget,
    unit: LimitUnit::Seconds,
};
const CPU_CEILING: KeyMeaning = KeyMeaning {
    resource: Resource::Cpu,
    direction: Direction::Total,
    kind: LimitKind::Ceiling,
    unit: LimitUnit::Cpus,
};

/// Keys with the prefixes of limits that set none.
const SILENT_KEYS: [&str; 12] = [
    "IOAccounting",
    "BlockIOAccounting",
    "CPUAccounting",
    "CPUAffinity",
    "CPUQuotaPeriodSec",
    "CPUSchedulingPolicy",
    "CPUSchedulingPriority",
    "CPUSchedulingResetOnFork",
    "IOSchedulingClass",
    "IOSchedulingPriority",
    "CPUPressureWatch",
    "CPUPressureThresholdSec",
];

/// Endings of units that can have limits.
const ENDINGS: [&str; 6] = [".service", ".slice", ".scope", ".socket", ".mount", ".swap"];
/// Folders of units, those that count most first.
const FOLDERS: [&str; 4] = ["etc/systemd", "run/systemd", "usr/local", "usr/lib"];
/// Period of CPUQuota if CPUQuotaPeriodSec sets none, seconds.
const CPU_PERIOD_S: f64 = 0.1;

fn is_unit(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// Returns the unit of a file, and its name if it is a drop-in.
fn unit_of(path: &str) -> Option<(&str, Option<&str>)> {
    let mut parts = path.rsplit('/');
    let file = parts.next()?;
    if is_unit(file) {
        return Some((file, None));
    }
    let folder = parts.next()?.strip_suffix(".d")?;
    (file.ends_with(".conf") && is_unit(folder)).then_some((folder, Some(file)))
}

pub(super) fn recognises(source: &SourceText) -> bool {
    unit_of(&source.name).is_some()
}

/// Returns the rank of a file's folder; smaller counts more.
fn rank(path: &str) -> usize {
    FOLDERS.iter().position(|folder| path.contains(folder)).unwrap_or(FOLDERS.len())
}

pub(super) fn read(sources: &[SourceText], survey: &mut Survey) {
    let mut units: BTreeMap<&str, BTreeMap<Option<&str>, &SourceText>> = BTreeMap::new();
    for source in sources {
        let Some((unit, drop_in)) = unit_of(&source.name) else { continue };
        let known = units.entry(unit).or_default().entry(drop_in).or_insert(source);
        if rank(&source.name) < rank(&known.name) {
            *known = source;
        }
    }
    for (unit, files) in units {
        read_unit(unit, files.values().copied(), survey);
    }
}

/// An assignment that counts: its device, value and place.
struct Assignment<'a> {
    row: usize,
    device: &'a str,
    value: &'a str,
    origin: Origin,
}

fn read_unit<'a>(unit: &str, files: impl Iterator<Item = &'a SourceText>, survey: &mut Survey) {
    let mut assignments: Vec<Assignment> = Vec::new();
    for source in files {
        for (number_of_line, line) in source.text.lines().enumerate() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let key = key.trim();
            let value = value.trim();
            if key.starts_with(['#', ';']) {
                continue;
            }
            let origin = source.at(number_of_line + 1);
            let Some(row) = KEYS.iter().position(|known| known.0 == key) else {
                let is_limit = ["IO", "BlockIO", "CPU"].iter().any(|prefix| key.starts_with(prefix));
                if is_limit && !SILENT_KEYS.contains(&key) {
                    survey.unknown_key(NAME, key, origin);
                }
                continue;
            };
            if value.is_empty() {
                assignments.retain(|earlier| earlier.row != row);
                continue;
            }
            let has_device = matches!(KEYS[row].1, ValueForm::Device | ValueForm::DeviceTime);
            let (device, value) = match value.split_once(char::is_whitespace) {
                Some((device, value)) if has_device => (device.trim_matches('"'), value.trim()),
                _ => ("", value),
            };
            assignments.retain(|earlier| earlier.row != row || earlier.device != device);
            assignments.push(Assignment { row, device, value, origin });
        }
    }
    for assignment in assignments {
        push(unit, assignment, survey);
    }
}

fn push(unit: &str, assignment: Assignment, survey: &mut Survey) {
    let Assignment { row, device, value, origin } = assignment;
    let (key, form, meaning) = KEYS[row];
    if value == "infinity" || value == "idle" {
        return;
    }
    let parsed = match form {
        ValueForm::Device if device.is_empty() => None,
        ValueForm::Device => suffixed(value),
        ValueForm::DeviceTime => time(value),
        ValueForm::Number => number(value),
        ValueForm::Percent => value.strip_suffix('%').and_then(number).map(|percent| percent / 100.0),
    };
    let Some(parsed) = parsed else {
        survey.unreadable(&origin, format!("{key}: cannot read the value '{value}'"));
        return;
    };
    let whole = if meaning.resource == Resource::Cpu { "processors" } else { "all devices" };
    let place = if device.is_empty() { whole } else { device };
    let mut limit = meaning.limit(NAME, key, (unit, place), parsed, origin);
    limit.burst = match (meaning.kind, meaning.resource) {
        (LimitKind::Ceiling, Resource::Cpu) => Some(2.0 * parsed * CPU_PERIOD_S),
        (LimitKind::Ceiling, _) => Some(parsed * SLICES_S),
        _ => None,
    };
    survey.push(limit);
}

/// Parses a number with a suffix K, M, G or T of powers of 1000 (systemd.resource-control(5)).
fn suffixed(text: &str) -> Option<f64> {
    const SUFFIXES: [(char, f64); 4] = [('K', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];
    let found = SUFFIXES.iter().find(|(suffix, _)| text.ends_with(*suffix));
    let (digits, scale) =
        found.map_or((text, 1.0), |(suffix, scale)| (text.trim_end_matches(*suffix), *scale));
    Some(number(digits)? * scale)
}

/// Parses a time such as `25ms`; a number alone is seconds.
fn time(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 5] = [("us", 1e-6), ("ms", 1e-3), ("min", 60.0), ("sec", 1.0), ("s", 1.0)];
    let found = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (digits, scale) = found.map_or((text, 1.0), |(unit, scale)| (text.trim_end_matches(unit), *scale));
    Some(number(digits)? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_ins_are_merged_as_systemd_does() {
        let files = [
            ("/usr/lib/systemd/system/db.service", "[Service]\nIOWeight=50\nIOReadIOPSMax=/dev/sda 7\n"),
            ("/etc/systemd/system/db.service", "[Service]\nIOReadBandwidthMax=/dev/sda 10M\nCPUQuota=150%\n"),
            ("/etc/systemd/system/db.service.d/20.conf", "[Service]\nIOReadBandwidthMax=/dev/sdb 1K\n"),
            ("/etc/systemd/system/db.service.d/10.conf", "[Service]\nIOReadBandwidthMax=\nIONew=1\n"),
            ("/usr/lib/systemd/system/db.service.d/20.conf", "[Service]\nIOReadBandwidthMax=/dev/sdc 9K\n"),
        ];
        let sources: Vec<SourceText> =
            files.iter().map(|(name, text)| SourceText::new(*name, *text)).collect();
        let mut survey = Survey::default();
        read(&sources, &mut survey);
        let rows: Vec<_> =
            survey.limits.iter().map(|l| (l.key.as_str(), l.place.as_str(), l.value)).collect();
        assert_eq!(rows, [("CPUQuota", "processors", 1.5), ("IOReadBandwidthMax", "/dev/sdb", 1000.0)]);
        assert_eq!(survey.limits[1].origin.to_string(), "/etc/systemd/system/db.service.d/20.conf:2");
        assert_eq!(survey.unknown_keys()[0].key, "IONew");
    }
}
