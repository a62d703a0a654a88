//! Why a workload may not come.

use super::applicant::ServerView;
use model::{Slo, UndefinedLatency};
use std::fmt;

/// Why an arrival was refused. Nothing has changed on the desk.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// A workload of this name is present, or is named twice in the arrival.
    NameInUse(String),
    /// Nobody was to be admitted.
    Nobody,
    /// Who would break its SLO, by server; empty when there are no servers.
    NoRoom(Vec<Breach>),
}

/// The workload that would miss its SLO most on a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach {
    /// Its name.
    pub workload: String,
    /// What it was promised or asks for.
    pub slo: Slo,
    /// Whether it is of the arrival itself; otherwise it was accepted before.
    pub newcomer: bool,
    /// What it would see.
    pub cause: Cause,
    /// How many others would miss their SLO.
    pub others: usize,
}

/// What a workload that misses its SLO would see.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cause {
    /// A latency above what its SLO allows.
    Latency {
        /// Predicted, base latency included, seconds.
        predicted: f64,
        /// Allowed, seconds.
        allowed: f64,
    },
    /// No latency can be given.
    Undefined(UndefinedLatency),
}

impl Refusal {
    /// The server that came closest, and what breaks there. Ties go to the first server.
    pub fn closest(&self) -> Option<(usize, &Breach)> {
        let Self::NoRoom(breaches) = self else { return None };
        breaches.iter().enumerate().min_by(|a, b| a.1.severity().total_cmp(&b.1.severity()))
    }
}

impl Breach {
    /// Predicted ÷ allowed latency; larger than any ratio where no latency can be given.
    pub fn severity(&self) -> f64 {
        match self.cause {
            Cause::Latency { predicted, allowed } => predicted / allowed,
            Cause::Undefined(_) => f64::INFINITY,
        }
    }

    /// The worst breach on a server whose last `newcomers` members would be new; `None` when there is
    /// none. No latency is worse than any; of equals the latest arrival is named.
    pub(super) fn worst<S>(
        server: &ServerView<'_, S>,
        latencies: &[Result<f64, UndefinedLatency>],
        newcomers: usize,
    ) -> Option<Self> {
        assert_eq!(latencies.len(), server.members.len(), "one latency per member");
        let cause = |i: usize| match latencies[i] {
            Ok(latency) if server.keeps(i, latency) => None,
            Ok(predicted) if predicted.is_finite() && predicted >= 0.0 => {
                Some(Cause::Latency { predicted, allowed: server.allowed(i) })
            }
            Ok(_) => Some(Cause::Undefined(UndefinedLatency::NoBound)),
            Err(undefined) => Some(Cause::Undefined(undefined)),
        };
        let breach = |i: usize| {
            let member = server.members[i];
            Some(Self {
                workload: member.name.clone(),
                slo: member.slo,
                newcomer: i + newcomers >= server.members.len(),
                cause: cause(i)?,
                others: 0,
            })
        };
        let breaches: Vec<Self> = (0..latencies.len()).filter_map(breach).collect();
        let others = breaches.len().saturating_sub(1);
        let worst = breaches.into_iter().max_by(|a, b| a.severity().total_cmp(&b.severity()))?;
        Some(Self { others, ..worst })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.closest()) {
            (Self::NameInUse(name), _) => write!(f, "'{name}' is in use; names must be unique"),
            (Self::Nobody, _) => f.write_str("there is nobody to admit"),
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
            Cause::Latency { predicted, allowed } => write!(
                f,
                "would see {:.3} ms, {:.3} ms or {:.1}% above what it may",
                predicted * 1e3,
                (predicted - allowed) * 1e3,
                (predicted / allowed - 1.0) * 100.0
            ),
            Cause::Undefined(undefined) => write!(f, "would have no guarantee: {undefined}"),
        }?;
        match self.others {
            0 => Ok(()),
            1 => f.write_str(", and another one misses its SLO"),
            others => write!(f, ", and {others} others miss their SLOs"),
        }
    }
}
