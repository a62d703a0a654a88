//! Why a workload is not admitted.

use super::applicant::SharedServer;
use crate::rules::ExcludedServers;
use model::{Slo, UndefinedLatency};
use std::fmt;

/// Why an arrival was refused. The controller has not changed.
#[derive(Debug, Clone, PartialEq)]
pub enum AdmissionRefusal {
    /// A workload of this name is admitted already, or is named twice in the arrival.
    NameInUse(String),
    /// The arrival names no workload.
    Nobody,
    /// SLO missed by most on each server; empty if there are no servers.
    NoRoom(Vec<Breach>),
    /// So many servers have no room; of very many workloads the breaches are not worked out.
    Full(usize),
    /// Rules exclude some servers; on those that they do not, this SLO is missed by least.
    Ruled { excluded: Box<ExcludedServers>, closest: Option<(usize, Breach)> },
    /// The workload misses its SLO even alone on a server.
    Alone(Breach),
    /// The search for a place was interrupted before it had one for the workload.
    Interrupted,
}

/// The workload that would miss its SLO most on a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach {
    /// The name of the workload.
    pub workload: String,
    /// The latency that it was promised or asks for.
    pub slo: Slo,
    /// True for the arriving workload; false for one that was admitted before.
    pub newcomer: bool,
    /// The latency that it would see.
    pub cause: BreachCause,
    /// Number of other workloads of the server that would miss their SLOs.
    pub others: usize,
}

/// Predicted latency of a workload that misses its SLO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BreachCause {
    /// A latency above what its SLO allows.
    Latency {
        /// The predicted latency, base latency included, seconds.
        predicted: f64,
        /// The longest latency that the SLO allows, seconds.
        allowed: f64,
    },
    /// No latency can be given.
    Undefined(UndefinedLatency),
}

impl AdmissionRefusal {
    /// The server that came closest, and what breaks there. Ties go to the first server.
    pub fn closest(&self) -> Option<(usize, &Breach)> {
        if let Self::Ruled { closest, .. } = self {
            return closest.as_ref().map(|(number, breach)| (*number, breach));
        }
        let Self::NoRoom(breaches) = self else { return None };
        breaches.iter().enumerate().min_by(|a, b| a.1.severity().total_cmp(&b.1.severity()))
    }
}

impl Breach {
    /// The ratio of predicted to allowed latency; larger than any ratio where no latency can be given.
    pub(crate) fn severity(&self) -> f64 {
        match self.cause {
            BreachCause::Latency { predicted, allowed } => predicted / allowed,
            BreachCause::Undefined(_) => f64::INFINITY,
        }
    }

    /// Returns the worst breach on a server whose last `newcomers` members would be new; `None` if there is
    /// none. An undefined latency is worse than any other; ties go to the latest arrival.
    pub(crate) fn worst<S>(
        server: &SharedServer<'_, S>,
        latencies: &[Result<f64, UndefinedLatency>],
        newcomers: usize,
    ) -> Option<Self> {
        assert_eq!(latencies.len(), server.members.len(), "one latency per member");
        let mut breaches = Vec::new();
        for (i, latency) in latencies.iter().enumerate() {
            let cause = match *latency {
                Ok(latency) if server.keeps(i, latency) => continue,
                Ok(predicted) if predicted.is_finite() && predicted >= 0.0 => {
                    BreachCause::Latency { predicted, allowed: server.allowed(i) }
                }
                Ok(_) => BreachCause::Undefined(UndefinedLatency::NoBound),
                Err(undefined) => BreachCause::Undefined(undefined),
            };
            let member = server.members[i];
            let newcomer = i + newcomers >= server.members.len();
            breaches.push(Self {
                workload: member.name.clone(),
                slo: member.slo,
                newcomer,
                cause,
                others: 0,
            });
        }
        let others = breaches.len().saturating_sub(1);
        let worst = breaches.into_iter().max_by(|a, b| a.severity().total_cmp(&b.severity()))?;
        Some(Self { others, ..worst })
    }
}

impl fmt::Display for AdmissionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.closest()) {
            (Self::NameInUse(name), _) => write!(f, "'{name}' is in use; names must be unique"),
            (Self::Nobody, _) => f.write_str("there is no workload to admit"),
            (Self::Full(1), _) => f.write_str("the server has no room"),
            (Self::Full(servers), _) => write!(f, "none of {servers} servers has room"),
            (Self::Ruled { excluded, .. }, _) => {
                let allowed = excluded.others();
                write!(f, "rules leave {allowed} of {} servers, and none of them has room", excluded.total)
            }
            (Self::Alone(breach), _) => write!(f, "alone on a server {breach}"),
            (Self::Interrupted, _) => {
                f.write_str("the search was interrupted before it had a place for the workload")
            }
            (Self::NoRoom(_), None) => f.write_str("there is no server"),
            (Self::NoRoom(breaches), Some((_, breach))) if breaches.len() == 1 => write!(f, "{breach}"),
            (Self::NoRoom(breaches), Some((number, breach))) => {
                write!(f, "none of {} servers has room; on server {number} {breach}", breaches.len())
            }
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = if self.newcomer { "newcomer" } else { "accepted before" };
        write!(f, "{} ({standing}, {}) ", self.workload, self.slo)?;
        match self.cause {
            BreachCause::Latency { predicted, allowed } => write!(
                f,
                "would have {:.3} ms, {:.3} ms or {:.1}% above what it may",
                predicted * 1e3,
                (predicted - allowed) * 1e3,
                (predicted / allowed - 1.0) * 100.0
            ),
            BreachCause::Undefined(undefined) => write!(f, "would have no guarantee: {undefined}"),
        }?;
        match self.others {
            0 => Ok(()),
            1 => f.write_str(", and another one misses its SLO"),
            others => write!(f, ", and {others} others miss their SLOs"),
        }
    }
}
