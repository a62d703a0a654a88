//! Commands to a controller.

use crate::event::{ClassesDescription, HostsDescription, TokenRecord, WorkloadRequest};
use std::fmt;

/// A command; an accepted one becomes events.
#[derive(Debug, Clone)]
pub enum Command {
    DescribeClasses(ClassesDescription),
    DescribeHosts(HostsDescription),
    IssueToken(TokenRecord),
    RevokeToken { name: String },
    Request(Box<WorkloadRequest>),
    Remove { tenant: String, name: String },
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
