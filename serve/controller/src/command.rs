//! Commands to a controller.

use crate::event::{ClassesDescription, HostsDescription, TokenRecord, WorkloadRequest};
use std::fmt;
use units::Nanos;

/// A command; an accepted one becomes events.
#[derive(Debug, Clone)]
pub enum Command {
    DescribeClasses(ClassesDescription),
    DescribeHosts(HostsDescription),
    IssueToken(TokenRecord),
    RevokeToken { name: String },
    Request(Box<WorkloadRequest>),
    Renew(RenewalRequest),
    Remove { tenant: String, name: String },
}

/// Least observation before a promise is made smaller, unless the tenant says otherwise.
pub const GIVE_BACK_OBSERVED_MIN: Nanos = Nanos(24 * 3_600 * 1_000_000_000);

/// A request for a renewal.
#[derive(Debug, Clone)]
pub struct RenewalRequest {
    pub tenant: String,
    pub name: String,
    /// True to give back what the live traffic does not need.
    pub gives_back: bool,
    /// Least observation for a renewal.
    pub observed_min: Nanos,
    /// Key of the tenant by which a repeated request is told from a new one.
    pub key: Option<String>,
    /// Instant of the observations that decide.
    pub now: u64,
}

/// A command that changes nothing, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    /// It can never be right.
    Invalid(String),
    /// It does not suit the present state.
    Conflict(String),
    /// It is about something that does not exist.
    Unknown(String),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason) | Self::Conflict(reason) | Self::Unknown(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for CommandError {}
