//! All that was read: limits, tenants without any, stated capacities, and all that was not understood.
//!
//! Nothing is dropped silently: unknown keys and unreadable files are counted, with the first place of each.

use crate::limit::{
    Direction, FoundLimit, LimitKind, LimitUnit, Origin, Resource, StatedCapacity, UnlimitedTenant,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of limits that are kept; more are counted.
const LIMITS_MAX: usize = 1_000_000;
/// Maximum number of different unknown keys and unreadable files that are named.
const NAMED_MAX: usize = 1_000;

/// A text to be read, with its name.
#[derive(Debug, Clone)]
pub struct SourceText {
    /// Name of the file, for origins.
    pub name: String,
    /// Path below the folder that was asked for; the whole name of a single file.
    pub below: String,
    /// Content of the file.
    pub text: String,
}

impl SourceText {
    /// Creates a text that was asked for by its own name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let name = name.into();
        Self { below: name.clone(), name, text: text.into() }
    }

    /// Returns the place of a line, counted from 1.
    pub(crate) fn at(&self, line: usize) -> Origin {
        Origin { file: self.name.clone(), line }
    }

    /// Returns the last part of the path.
    pub(crate) fn file_name(&self) -> &str {
        self.below.rsplit('/').next().unwrap_or(&self.below)
    }
}

/// A key that the tables of the readers do not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnknownKey {
    pub reader: &'static str,
    pub key: String,
    /// Number of occurrences.
    pub count: u64,
    /// The first occurrence.
    pub first: Origin,
}

/// A file, or a value in one, that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unreadable {
    /// File, and line where known.
    pub place: String,
    pub reason: String,
}

/// All that the readers found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Survey {
    pub limits: Vec<FoundLimit>,
    /// Tenants that use a place without a ceiling.
    pub unlimited: BTreeSet<UnlimitedTenant>,
    pub capacities: Vec<StatedCapacity>,
    /// Number of files read, by reader.
    pub files: BTreeMap<&'static str, u64>,
    /// Number of files that are of none of the formats.
    pub foreign: u64,
    pub unreadable: Vec<Unreadable>,
    /// Number of unreadable files and values, including those beyond the named ones.
    pub unreadable_count: u64,
    unknown: BTreeMap<(&'static str, String), (u64, Origin)>,
    /// Number of limits beyond the maximum, which are not kept.
    pub dropped: u64,
    /// Number of limits of units that were left out, because their control groups have them.
    pub repeated: u64,
}

impl Survey {
    /// Counts a key that is in no table.
    pub(crate) fn unknown_key(&mut self, reader: &'static str, key: &str, at: Origin) {
        let is_full = self.unknown.len() >= NAMED_MAX;
        let key = if is_full { "…".to_owned() } else { key.chars().take(100).collect() };
        self.unknown.entry((reader, key)).or_insert((0, at)).0 += 1;
    }

    /// Counts a file or value that cannot be read.
    pub(crate) fn unreadable(&mut self, place: impl std::fmt::Display, reason: impl std::fmt::Display) {
        self.unreadable_count += 1;
        if self.unreadable.len() < NAMED_MAX {
            self.unreadable.push(Unreadable { place: place.to_string(), reason: reason.to_string() });
        }
    }

    /// Returns the unknown keys by reader and name.
    pub fn unknown_keys(&self) -> Vec<UnknownKey> {
        let row = |((reader, key), (count, first)): (&(&'static str, String), &(u64, Origin))| UnknownKey {
            reader,
            key: key.clone(),
            count: *count,
            first: first.clone(),
        };
        self.unknown.iter().map(row).collect()
    }

    /// Keeps a limit whose value is a positive finite number; counts others as unreadable.
    pub(crate) fn push(&mut self, limit: FoundLimit) {
        if !(limit.value.is_finite() && limit.value > 0.0) {
            self.unreadable(&limit.origin, format!("{}: expected a positive number", limit.key));
        } else if self.limits.len() >= LIMITS_MAX {
            self.dropped += 1;
        } else {
            self.limits.push(limit);
        }
    }

    /// Leaves out the limits of systemd units whose running control group has the same kind of limit, so that each
    /// counts once, as it is in force.
    pub(crate) fn merge_units(&mut self) {
        let key = |limit: &FoundLimit, unit: &str| {
            (unit.to_owned(), limit.resource, limit.direction, limit.kind, limit.unit)
        };
        let groups = self.limits.iter().filter(|limit| limit.reader == "cgroup");
        let in_force: BTreeSet<_> =
            groups.map(|limit| key(limit, limit.tenant.rsplit('/').next().unwrap_or_default())).collect();
        let before = self.limits.len();
        self.limits
            .retain(|limit| limit.reader != "systemd" || !in_force.contains(&key(limit, &limit.tenant)));
        self.repeated = u64::try_from(before - self.limits.len()).unwrap_or(u64::MAX);
    }

    /// Keeps the stated capacity of a place.
    pub(crate) fn push_capacity(&mut self, capacity: StatedCapacity) {
        if capacity.value.is_finite() && capacity.value > 0.0 && self.capacities.len() < LIMITS_MAX {
            self.capacities.push(capacity);
        }
    }

    /// Records a tenant that has no ceiling at a place.
    pub(crate) fn push_unlimited(&mut self, tenant: &str, place: &str, origin: Origin) {
        if self.unlimited.len() < LIMITS_MAX {
            let tenant = tenant.to_owned();
            self.unlimited.insert(UnlimitedTenant { tenant, place: place.to_owned(), origin });
        }
    }
}

/// Unit, kind and direction of the values under one key of a format: a row of a reader's table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KeyMeaning {
    pub(crate) resource: Resource,
    pub(crate) direction: Direction,
    pub(crate) kind: LimitKind,
    pub(crate) unit: LimitUnit,
}

/// Returns the meaning of a ceiling of storage.
pub(crate) const fn storage_ceiling(direction: Direction, unit: LimitUnit) -> KeyMeaning {
    KeyMeaning { resource: Resource::Storage, direction, kind: LimitKind::Ceiling, unit }
}

/// Returns the meaning of a weight.
pub(crate) const fn weight(resource: Resource) -> KeyMeaning {
    KeyMeaning { resource, direction: Direction::Total, kind: LimitKind::Weight, unit: LimitUnit::Weight }
}

impl KeyMeaning {
    /// Returns a limit with this meaning and without a burst.
    pub(crate) fn limit(
        self,
        reader: &'static str,
        key: &str,
        (tenant, place): (&str, &str),
        value: f64,
        origin: Origin,
    ) -> FoundLimit {
        let Self { resource, direction, kind, unit } = self;
        FoundLimit {
            tenant: tenant.to_owned(),
            place: place.to_owned(),
            resource,
            direction,
            kind,
            unit,
            value,
            burst: None,
            priority: None,
            within: None,
            reader,
            key: key.to_owned(),
            origin,
        }
    }
}
