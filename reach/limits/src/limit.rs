//! Limits as the readers find them: one row for each number that something enforces.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Resource that a limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// A block device, or a volume on one.
    Storage,
    /// A network link.
    Network,
    /// Processors.
    Cpu,
}

/// Direction of the data that a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Reads from storage.
    Read,
    /// Writes to storage.
    Write,
    /// Both directions together.
    Total,
    /// From the network into the place.
    In,
    /// From the place out to the network.
    Out,
}

/// Effect of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Never more than this.
    Ceiling,
    /// At least this, whatever the others do.
    Reservation,
    /// A share in proportion to the weights of the others.
    Weight,
    /// Others are slowed down while the latency is above this.
    LatencyTarget,
}

/// Unit of the value of a limit; a burst is in the same unit without "per second".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitUnit {
    /// Bytes per second.
    BytesPerS,
    /// Requests per second.
    RequestsPerS,
    /// Fraction of the capacity of the place: seconds of its time per second.
    Share,
    /// Seconds of processor time per second.
    Cpus,
    /// A number without unit.
    Weight,
    /// Seconds.
    Seconds,
}

/// Place in a file at which a value was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Origin {
    /// The file, as it was named or found.
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One limit of one tenant.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FoundLimit {
    /// Name of the limited: a cgroup, a unit, a virtual machine, a claim, a class, a workload.
    pub tenant: String,
    /// Device, server or pool at which it is limited.
    pub place: String,
    pub resource: Resource,
    pub direction: Direction,
    pub kind: LimitKind,
    pub unit: LimitUnit,
    /// Value in the unit.
    pub value: f64,
    /// Size of the token bucket of a ceiling, in the unit times seconds; absent if the format has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
    /// Strict priority, 0 first, if the enforcer has priorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Tenant whose limit of the same kind holds for this tenant and its siblings together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Name of the reader.
    pub reader: &'static str,
    /// Key under which the file has the value.
    pub key: String,
    /// File and line of the value.
    pub origin: Origin,
}

/// A tenant that uses a place without any ceiling there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct UnlimitedTenant {
    pub tenant: String,
    pub place: String,
    pub origin: Origin,
}

/// Capacity of a place as a file states it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StatedCapacity {
    pub place: String,
    pub resource: Resource,
    pub direction: Direction,
    pub unit: LimitUnit,
    /// Value in the unit.
    pub value: f64,
    pub origin: Origin,
}
