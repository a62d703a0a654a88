//! Errors of policy documents.

use crate::NAME_EXPECTED;
use std::fmt;

/// Value of the field `format` of a policy file; readers refuse others.
pub(crate) const POLICY_FORMAT: &str = "tailwright.policy";

/// Value of the field `version` of policies without client hosts and with one SLO for each workload. Since version 3
/// plans by the calibrated model have `slo_calibration` in their summary in place of `calibration`.
pub(crate) const POLICY_VERSION: u32 = 3;

/// Version of policies with client hosts, whose limits readers of earlier versions would not enforce.
pub(super) const VERSION_WITH_HOSTS: u32 = 4;

/// Version of policies with several SLOs for a workload, which readers of earlier versions would not judge.
pub(super) const VERSION_WITH_SLOS: u32 = 5;

/// Version in which bursts include the allowances of enforcers. A policy that was read with such bursts
/// for a device with several channels keeps it.
pub(super) const VERSION_WITHOUT_ALLOWANCES: u32 = 1;

/// Versions that readers accept. Version 2 differs from version 3 only in the summary of plans.
pub(super) const READ_VERSIONS: [u32; 5] =
    [VERSION_WITHOUT_ALLOWANCES, 2, POLICY_VERSION, VERSION_WITH_HOSTS, VERSION_WITH_SLOS];

/// Format of files without a version, which have the fields of version 1; readers accept it.
pub(super) const UNVERSIONED_FORMAT: &str = "tailwright-policy-1";

/// Largest relative difference between the two forms of a number: people write three digits.
pub(super) const ROUNDING: f64 = 0.01;

/// Accepted versions, for messages.
const VERSIONS: &str = "1, 2, 3, 4 or 5";

/// Reason why a text is not a sound policy.
#[derive(Debug)]
pub enum PolicyError {
    /// The text is not JSON with the fields of a policy.
    NotAPolicy(serde_json::Error),
    /// The format and version are these, not `POLICY_FORMAT` and `POLICY_VERSION`.
    UnknownFormat(String, Option<u32>),
    /// A document of version 1 has an allowance, which its readers do not know.
    AllowanceInVersion1,
    /// A document of an earlier version has client hosts, which its readers do not know.
    HostsBeforeVersion4,
    /// A document of an earlier version has several SLOs for a workload, which its readers do not know.
    SlosBeforeVersion5,
    /// This server, host or workload has a name that cannot be shown.
    UnusableName(String),
    /// Two servers have this name.
    RepeatedServer(String),
    /// Two client hosts have this name.
    RepeatedHost(String),
    /// Two workloads have this name.
    RepeatedWorkload(String),
    /// A field has a value that cannot be enforced or promised.
    ImpossibleValue {
        /// Field and its owner, such as `workload 'mail': limits[0] at storage: rate`.
        place: String,
        /// Value found.
        found: String,
        /// Expected value.
        expected: String,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPolicy(error) => write!(f, "not a policy: {error}"),
            Self::UnknownFormat(format, None) => {
                write!(f, "the format is '{format}', expected '{POLICY_FORMAT}', version {VERSIONS}")
            }
            Self::UnknownFormat(format, Some(version)) => {
                write!(
                    f,
                    "the format is '{format}', version {version}, expected '{POLICY_FORMAT}', version {VERSIONS}"
                )
            }
            Self::AllowanceInVersion1 => f.write_str("a limit has an allowance, expected version 2 or later"),
            Self::HostsBeforeVersion4 => f.write_str("there are client hosts, expected version 4 or later"),
            Self::SlosBeforeVersion5 => f.write_str("a workload has several SLOs, expected version 5"),
            Self::UnusableName(owner) => write!(f, "{owner}: {NAME_EXPECTED}"),
            Self::RepeatedServer(name) => write!(f, "server '{name}' is given twice"),
            Self::RepeatedHost(name) => write!(f, "host '{name}' is given twice"),
            Self::RepeatedWorkload(name) => write!(f, "workload '{name}' is given twice"),
            Self::ImpossibleValue { place, found, expected } => {
                write!(f, "{place} is {found}, expected {expected}")
            }
        }
    }
}

impl std::error::Error for PolicyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotAPolicy(error) => Some(error),
            _ => None,
        }
    }
}

impl PolicyError {
    /// A field of its owner has a value that was not expected.
    pub(super) fn impossible(
        owner: &str,
        field: &str,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self::ImpossibleValue {
            place: format!("{owner}: {field}"),
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}
