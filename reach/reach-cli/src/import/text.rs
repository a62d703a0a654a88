//! An audit as text and as JSON: the answer, the next command, what was not understood, then the tables.

use super::audited::AuditedSurvey;
use cli::terminal::{Align, TextTable, pasted_command};
use limits::{
    AuditVerdict, Direction, FoundLimit, LimitKind, LimitUnit, ParentSum, PlaceSum, Resource, StatedCapacity,
    Survey, UnknownKey, UnlimitedTenant, Unreadable,
};
use operation::document::document;
use operation::text::{percent, time};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use units::{ByteRate, Bytes, plural};

/// Rows of a table that are printed; JSON and the page have all.
const ROWS_MAX: usize = 200;
/// Unknown keys and unreadable places that a sentence names.
const NAMED_MAX: usize = 3;

/// Limits that are set, their sums, and all that was not understood.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditDocument<'a> {
    verdict: AuditVerdict,
    /// The answer in a sentence.
    answer: String,
    /// Device profile that storage was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a str>,
    /// Number of files read, by format.
    files: &'a BTreeMap<&'static str, u64>,
    /// Number of files in none of the formats.
    foreign_files: u64,
    /// Number of files and values that could not be read.
    unreadable_count: u64,
    unreadable: &'a [Unreadable],
    unknown_keys: Vec<UnknownKey>,
    /// Number of limits beyond the maximum, which are in no list and no sum.
    dropped: u64,
    /// Number of limits of systemd units that are left out, because their control groups have them.
    repeated: u64,
    places: &'a [PlaceSum],
    /// Parents whose children's limits exceed their own.
    parents: &'a [ParentSum],
    limits: &'a [FoundLimit],
    /// Tenants without any ceiling at a place.
    unlimited: Vec<&'a UnlimitedTenant>,
    capacities: &'a [StatedCapacity],
}

pub(crate) fn json(audited: &AuditedSurvey) -> String {
    let AuditedSurvey { survey, audit } = audited;
    document(&AuditDocument {
        verdict: audit.verdict,
        answer: lead(audited),
        profile: audit.profile.as_deref(),
        files: &survey.files,
        foreign_files: survey.foreign,
        unreadable_count: survey.unreadable_count,
        unreadable: &survey.unreadable,
        unknown_keys: survey.unknown_keys(),
        dropped: survey.dropped,
        repeated: survey.repeated,
        places: &audit.places,
        parents: &audit.parents,
        limits: &survey.limits,
        unlimited: survey.unlimited.iter().collect(),
        capacities: &survey.capacities,
    })
}

pub(crate) fn text(audited: &AuditedSurvey, arguments: &[OsString]) -> String {
    let AuditedSurvey { survey, audit } = audited;
    let mut text = format!("{}\n", lead(audited));
    for line in next(audited, arguments) {
        text += &format!("{line}\n");
    }
    text += &format!("\n{}\n", reading(survey));
    for line in doubts(survey) {
        text += &format!("{line}\n");
    }
    if !audit.places.is_empty() {
        text += &format!("\n{}", sums_table(audited).render());
    }
    if !audit.parents.is_empty() {
        let table = TextTable::of_rows(&PARENTS, 3, audit.parents.iter().map(parent_row));
        text += &format!("\nChildren beyond their parent:\n{}", table.render());
    }
    let uncovered = uncovered_rows(audited);
    if !uncovered.is_empty() {
        let table = TextTable::of_rows(&UNCOVERED, 3, uncovered.into_iter().take(ROWS_MAX));
        text += &format!("\nReservations that are not covered:\n{}", table.render());
    }
    if !survey.limits.is_empty() {
        let rows = survey.limits.iter().take(ROWS_MAX).map(limit_row);
        let table = TextTable::of_rows(&LIMITS, 4, rows).without_first(&["bucket"]);
        text += &format!("\n{}", table.render());
        if survey.limits.len() > ROWS_MAX {
            text += &format!("({} more; --json has all)\n", survey.limits.len() - ROWS_MAX);
        }
    }
    text
}

/// Returns the place that answers for all: the one with the worst ratio.
fn worst<'a>(audited: &AuditedSurvey<'a>) -> Option<&'a PlaceSum> {
    let ratio = |sum: &&PlaceSum| {
        let capacity = sum.capacity.unwrap_or(f64::INFINITY);
        sum.ceilings_max.max(sum.reservations) / capacity
    };
    audited.audit.places.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
}

/// Returns the answer in a sentence or two.
pub(crate) fn lead(audited: &AuditedSurvey) -> String {
    let AuditedSurvey { survey, audit } = audited;
    let files: u64 = survey.files.values().sum();
    match audit.verdict {
        AuditVerdict::NothingFound => {
            format!("Nothing is limited: {} read, and no limit was found.", were(files, "file"))
        }
        AuditVerdict::NoCapacity => {
            let sum = audit.places.iter().find(|sum| sum.capacity.is_none());
            let about = sum.map_or(String::new(), |sum| {
                format!(" On {} they add up to {}.", shown(&sum.place), value(sum.ceilings, sum.unit))
            });
            let tenants = tenants(survey);
            format!(
                "Not known: {} ceilings, and no device profile is given to compare them with.{about}",
                has(tenants, "tenant")
            )
        }
        AuditVerdict::AddsUp => {
            let most =
                audit.places.iter().filter_map(PlaceSum::times).map(|times| times.1).fold(0.0, f64::max);
            let wait = audit.places.iter().filter_map(|sum| sum.worst_case_s).max_by(f64::total_cmp);
            let wait = wait.map_or(String::new(), |wait| {
                format!(" If all use their ceilings at once, a request waits at most {}.", time(wait))
            });
            format!("Yes: the ceilings add up to at most {} of the capacity.{wait}", percent(most))
        }
        AuditVerdict::DependsOnSize => {
            let depends = audit.places.iter().filter(|sum| sum.fits.is_some());
            let sum = depends.max_by(|a, b| a.ceilings_max.total_cmp(&b.ceilings_max));
            sum.map_or(String::new(), depends_on_size)
        }
        AuditVerdict::Unlimited => {
            let sum = audit.places.iter().max_by_key(|sum| sum.unlimited.len());
            sum.map_or(String::new(), |sum| {
                let capacity = if sum.capacity.is_none() { " No device profile is given." } else { "" };
                let count = u64::try_from(sum.unlimited.len()).unwrap_or(u64::MAX);
                format!(
                    "No: on {} {} no ceiling for a direction ({}), so nothing bounds the delay of the others.{capacity}",
                    shown(&sum.place),
                    has(count, "tenant"),
                    some(sum.unlimited.iter().map(String::as_str))
                )
            })
        }
        AuditVerdict::Oversubscribed => oversubscribed(audited),
    }
}

fn depends_on_size(sum: &PlaceSum) -> String {
    let worst = sum.sizes.iter().max_by(|a, b| a.ceilings.total_cmp(&b.ceilings));
    let worst = worst.map_or(0, |size| size.request_bytes);
    let fits = sum.fits.map_or(String::new(), |fits| {
        let from = Bytes(fits.from_bytes).to_string();
        if fits.from_bytes == fits.to_bytes { from } else { format!("{from} to {}", Bytes(fits.to_bytes)) }
    });
    format!(
        "It depends on the size of requests: on {} the ceilings fit for requests of {fits}, and are {} the capacity at {}.",
        shown(&sum.place),
        times(sum.ceilings_max),
        Bytes(worst)
    )
}

fn oversubscribed(audited: &AuditedSurvey) -> String {
    let over = audited.audit.places.iter().filter(|sum| sum.is_over());
    let count = over.clone().count();
    let Some(sum) = worst(audited).filter(|sum| sum.is_over()).or_else(|| over.clone().next()) else {
        let parent = audited.audit.parents.iter().find(|parent| parent.kind == LimitKind::Reservation);
        return parent.map_or(String::new(), |parent| {
            format!(
                "No: the reservations of the children of {} add up to {}, and it has {}.",
                shown(&parent.parent),
                value(parent.sum, parent.unit),
                value(parent.limit, parent.unit)
            )
        });
    };
    let capacity = sum.capacity.unwrap_or(f64::INFINITY);
    let mut parts = Vec::new();
    if sum.ceilings > capacity {
        let high = if sum.ceilings_max > 1.01 * sum.ceilings {
            let least = sum.sizes.iter().min_by(|a, b| a.ceilings.total_cmp(&b.ceilings));
            format!(" even with requests of {}", Bytes(least.map_or(0, |size| size.request_bytes)))
        } else {
            String::new()
        };
        parts.push(format!("the ceilings add up to {} the capacity{high}", times(sum.ceilings / capacity)));
    }
    if sum.reservations > capacity {
        parts.push(format!("the reservations add up to {} the capacity", times(sum.reservations / capacity)));
    }
    if parts.is_empty() {
        let first = sum.uncovered.first().map_or("", |row| row.tenant.as_str());
        parts.push(format!("the ceiling of {} is below its own reservation", shown(first)));
    }
    if !sum.unlimited.is_empty() {
        let unlimited = u64::try_from(sum.unlimited.len()).unwrap_or(u64::MAX);
        parts.push(format!("{} no ceiling", has(unlimited, "tenant")));
    }
    let others = if count > 1 {
        format!(" The same holds at {} more.", plural(u64::try_from(count - 1).unwrap_or(u64::MAX), "place"))
    } else {
        String::new()
    };
    format!("No: on {} {}.{others}", shown(&sum.place), parts.join(", and "))
}

/// Returns the next step: a sentence, and commands to paste.
fn next(audited: &AuditedSurvey, arguments: &[OsString]) -> Vec<String> {
    let AuditedSurvey { audit, .. } = audited;
    let storage = audit.places.iter().find(|sum| sum.resource == Resource::Storage);
    let device = storage.map_or_else(|| "DEVICE".to_owned(), |sum| device_file(&sum.place));
    let again = |more: &str| {
        let arguments = arguments.iter().cloned().chain(more.split(' ').map(OsString::from));
        format!("  {}", pasted_command(arguments))
    };
    match audit.verdict {
        AuditVerdict::NothingFound => {
            vec![
                "Next, name the folders that set limits:".into(),
                "  tailwright import /sys/fs/cgroup /etc/systemd /proc".into(),
            ]
        }
        AuditVerdict::NoCapacity | AuditVerdict::Unlimited
            if storage.is_some() && audit.profile.is_none() =>
        {
            vec![
                "Next, measure the device and ask again:".into(),
                format!("  tailwright profile {device} -o profile.json"),
                again("--storage profile.json"),
            ]
        }
        AuditVerdict::NoCapacity => {
            vec!["Next, say how fast the link is:".into(), again("--network 1Gbps")]
        }
        AuditVerdict::AddsUp | AuditVerdict::DependsOnSize if storage.is_some() => vec![
            "Next, see how large requests are and how long they wait:".into(),
            format!("  tailwright observe --block --disk {}", disk(&device)),
        ],
        AuditVerdict::AddsUp => {
            vec![
                "Next, see whether requests wait all the same:".into(),
                "  tailwright observe --port PORT".into(),
            ]
        }
        _ => vec![
            "Next, let a plan choose limits that add up (docs/guides/first-plan.md):".into(),
            "  tailwright plan cluster.toml -o policy.json".into(),
        ],
    }
}

/// Returns the name of a disk, where a file of it is known.
fn disk(device: &str) -> &str {
    match device.strip_prefix("/dev/") {
        Some(name) if !name.contains('/') => name,
        _ => "DISK",
    }
}

/// Returns the file of a device, for a place that names one.
fn device_file(place: &str) -> String {
    let is_numbers = place.contains(':') && place.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    match place {
        place if place.starts_with("/dev/") => cli::terminal::pasted(place),
        place if is_numbers => format!("/dev/block/{place}"),
        _ => "DEVICE".to_owned(),
    }
}

/// Returns a sentence about what was read.
pub(crate) fn reading(survey: &Survey) -> String {
    let files: u64 = survey.files.values().sum();
    let by_format: Vec<String> = survey.files.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let formats = if by_format.is_empty() { String::new() } else { format!(" ({})", by_format.join(", ")) };
    let foreign = match survey.foreign {
        0 => String::new(),
        count => format!("; {} in no known format", plural(count, "file")),
    };
    format!("Read {}{formats}{foreign}.", plural(files, "file"))
}

/// Returns sentences about what was not understood.
pub(crate) fn doubts(survey: &Survey) -> Vec<String> {
    let mut doubts = Vec::new();
    if survey.unreadable_count > 0 {
        let first = survey.unreadable.iter().take(NAMED_MAX);
        let first: Vec<String> = first.map(|at| format!("{} ({})", at.place, at.reason)).collect();
        let more = if survey.unreadable_count > NAMED_MAX as u64 { ", …" } else { "" };
        doubts.push(format!("{} not be read: {}{more}.", could(survey.unreadable_count), first.join(", ")));
    }
    let unknown = survey.unknown_keys();
    if !unknown.is_empty() {
        let first = unknown.iter().take(NAMED_MAX);
        let first: Vec<String> =
            first.map(|at| format!("{} ({}×, {})", at.key, at.count, at.first)).collect();
        let more = if unknown.len() > NAMED_MAX { ", …" } else { "" };
        let count = u64::try_from(unknown.len()).unwrap_or(u64::MAX);
        let verb = if count == 1 { "is" } else { "are" };
        doubts.push(format!(
            "{} {verb} unknown and not counted: {}{more}.",
            plural(count, "key"),
            first.join(", ")
        ));
    }
    if survey.repeated > 0 {
        let verb = if survey.repeated == 1 { "is that" } else { "are those" };
        let limits = plural(survey.repeated, "limit");
        doubts.push(format!(
            "{limits} of systemd units {verb} of running control groups, which are counted instead."
        ));
    }
    if survey.dropped > 0 {
        doubts.push(format!("{} beyond the first million not counted.", were(survey.dropped, "limit")));
    }
    doubts
}

fn could(count: u64) -> String {
    format!("{} could", plural(count, "file or value"))
}

fn has(count: u64, noun: &str) -> String {
    format!("{} {}", plural(count, noun), if count == 1 { "has" } else { "have" })
}

fn were(count: u64, noun: &str) -> String {
    format!("{} {}", plural(count, noun), if count == 1 { "was" } else { "were" })
}

fn shown(name: &str) -> String {
    format!("'{name}'")
}

/// Names the first of several.
fn some<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let mut first: Vec<String> = names.take(NAMED_MAX).map(shown).collect();
    if count > NAMED_MAX {
        first.push("…".into());
    }
    first.join(", ")
}

fn tenants(survey: &Survey) -> u64 {
    let ceilings = survey.limits.iter().filter(|limit| limit.kind == LimitKind::Ceiling);
    let names: std::collections::BTreeSet<&str> = ceilings.map(|limit| limit.tenant.as_str()).collect();
    u64::try_from(names.len()).unwrap_or(u64::MAX)
}

/// Formats a ratio such as `1.9 times`.
fn times(ratio: f64) -> String {
    if ratio >= 100.0 { format!("{ratio:.0} times") } else { format!("{ratio:.2} times") }
}

/// Formats a value with its unit.
pub(crate) fn value(value: f64, unit: LimitUnit) -> String {
    match unit {
        LimitUnit::BytesPerS => {
            ByteRate::from_bytes_per_sec(value).map_or_else(|| "0B/s".to_owned(), |rate| rate.to_string())
        }
        LimitUnit::RequestsPerS => format!("{}/s", plain(value)),
        LimitUnit::Share => percent(value),
        LimitUnit::Cpus => format!("{} CPUs", plain(value)),
        LimitUnit::Weight => plain(value),
        LimitUnit::Seconds => time(value),
    }
}

/// Formats the size of a bucket.
fn bucket(burst: f64, unit: LimitUnit) -> String {
    match unit {
        LimitUnit::BytesPerS => plot::Unit::Bytes.format(burst),
        LimitUnit::RequestsPerS => format!("{} requests", plain(burst)),
        LimitUnit::Share | LimitUnit::Cpus | LimitUnit::Seconds => time(burst),
        LimitUnit::Weight => plain(burst),
    }
}

fn plain(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(crate) const LIMITS: [&str; 6] = ["tenant", "place", "limit", "read from", "value", "bucket"];

pub(crate) fn limit_row(limit: &FoundLimit) -> Vec<String> {
    let kind = match limit.kind {
        LimitKind::Ceiling => "at most",
        LimitKind::Reservation => "at least",
        LimitKind::Weight => "weight",
        LimitKind::LatencyTarget => "latency target",
    };
    let direction = match (limit.direction, limit.resource) {
        (Direction::Read, _) => " read",
        (Direction::Write, _) => " write",
        (Direction::In, _) => " in",
        (Direction::Out, _) => " out",
        (Direction::Total, Resource::Cpu) => " CPU",
        (Direction::Total, _) => "",
    };
    vec![
        limit.tenant.clone(),
        limit.place.clone(),
        format!("{kind}{direction}"),
        limit.origin.to_string(),
        value(limit.value, limit.unit),
        limit.burst.map_or_else(|| "–".to_owned(), |burst| bucket(burst, limit.unit)),
    ]
}

pub(crate) const SUMS: [&str; 8] =
    ["place", "of", "tenants", "no ceiling", "ceilings", "of capacity", "reserved", "worst case"];

pub(crate) fn sum_row(sum: &PlaceSum) -> Vec<String> {
    let of = match (sum.resource, sum.direction) {
        (Resource::Storage, _) => "storage",
        (Resource::Network, Direction::In) => "network in",
        (Resource::Network, _) => "network out",
        (Resource::Cpu, _) => "CPU",
    };
    let range = |low: String, high: String| if low == high { low } else { format!("{low} to {high}") };
    let capacity =
        sum.times().map_or_else(|| "–".to_owned(), |(low, high)| range(percent(low), percent(high)));
    let ceilings = if sum.unit == LimitUnit::Share && !sum.sizes.is_empty() {
        "device time".to_owned()
    } else {
        value(sum.ceilings, sum.unit)
    };
    let reserved = if sum.reservations > 0.0 { value(sum.reservations, sum.unit) } else { "–".to_owned() };
    vec![
        sum.place.clone(),
        of.to_owned(),
        sum.tenants.to_string(),
        sum.unlimited.len().to_string(),
        ceilings,
        capacity,
        reserved,
        sum.worst_case_s.map_or_else(|| "–".to_owned(), time),
    ]
}

fn sums_table(audited: &AuditedSurvey) -> TextTable {
    let columns: Vec<(&str, Align)> = SUMS
        .iter()
        .enumerate()
        .map(|(at, heading)| (*heading, if at < 2 { Align::Left } else { Align::Right }))
        .collect();
    let mut table = TextTable::new(&columns);
    audited.audit.places.iter().take(ROWS_MAX).for_each(|sum| table.row(sum_row(sum)));
    table.answered_by(&["of capacity", "no ceiling", "worst case"])
}

pub(crate) const PARENTS: [&str; 6] = ["parent", "place", "limit", "children", "their sum", "its own"];

pub(crate) fn parent_row(parent: &ParentSum) -> Vec<String> {
    let kind = if parent.kind == LimitKind::Reservation { "at least" } else { "at most" };
    vec![
        parent.parent.clone(),
        parent.place.clone(),
        kind.to_owned(),
        parent.children.to_string(),
        value(parent.sum, parent.unit),
        value(parent.limit, parent.unit),
    ]
}

pub(crate) const UNCOVERED: [&str; 5] = ["tenant", "place", "because", "reserved", "covered"];

pub(crate) fn uncovered_rows(audited: &AuditedSurvey) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for sum in &audited.audit.places {
        for row in &sum.uncovered {
            let because = if row.is_own_ceiling {
                "its own ceiling is lower"
            } else {
                "all reservations exceed the capacity"
            };
            let cells = [because.to_owned(), value(row.reserved, sum.unit), value(row.covered, sum.unit)];
            rows.push([row.tenant.clone(), sum.place.clone()].into_iter().chain(cells).collect());
        }
    }
    rows
}
