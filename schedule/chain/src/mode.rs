//! Scheduling modes of the tiers of a play, live and in the simulator.

use discipline::serve::{DisciplineSpec, LimitedSharingParameters, PoolEntrance};
use serde::{Deserialize, Serialize};
use sim::pool_tiers::WaitTreatment;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Sampling interval of a tier's sentinel.
pub(crate) const SENTINEL_EVERY: Duration = Duration::from_millis(1);

/// A mode of scheduling a tier's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ScheduleMode {
    /// A thread per request in the kernel's fair class: the default of most services.
    Fair,
    /// A thread per request under SCHED_RR; requires a privilege.
    RoundRobin,
    /// First come, first served, at each tier separately.
    FirstCome,
    /// The c that arrived first at a tier share its CPUs: limited processor sharing, without age.
    Limited,
    /// The oldest are admitted first; running requests are not preempted.
    OldestAdmission,
    /// The c oldest share the CPUs: an older arrival preempts the youngest in service.
    OldestFirst,
    /// As `OldestFirst`, with a limit that each tier derives from its service times.
    OldestAuto,
    /// As `OldestFirst`, but requests that wait without CPU in the middle of a visit do not announce it.
    OldestSilent,
    /// As `OldestSilent`, with a sentinel that detects sleeping requests.
    OldestSentinel,
    /// Those with the earliest deadlines are admitted first; running requests are not preempted.
    DeadlineAdmission,
    /// The c with the earliest deadlines share the CPUs: an arrival with an earlier one preempts the latest
    /// in service.
    DeadlineFirst,
}

const NAMES: [(ScheduleMode, &str); 11] = [
    (ScheduleMode::Fair, "fair"),
    (ScheduleMode::RoundRobin, "rr"),
    (ScheduleMode::FirstCome, "fcfs"),
    (ScheduleMode::Limited, "limited"),
    (ScheduleMode::OldestAdmission, "orf-admission"),
    (ScheduleMode::OldestFirst, "orf"),
    (ScheduleMode::OldestAuto, "orf-auto"),
    (ScheduleMode::OldestSilent, "orf-silent"),
    (ScheduleMode::OldestSentinel, "orf-sentinel"),
    (ScheduleMode::DeadlineAdmission, "deadline-admission"),
    (ScheduleMode::DeadlineFirst, "deadline"),
];

impl ScheduleMode {
    /// All modes, baselines first.
    pub const ALL: [Self; 11] = [
        Self::Fair,
        Self::RoundRobin,
        Self::FirstCome,
        Self::Limited,
        Self::OldestAdmission,
        Self::OldestFirst,
        Self::OldestAuto,
        Self::OldestSilent,
        Self::OldestSentinel,
        Self::DeadlineAdmission,
        Self::DeadlineFirst,
    ];

    /// Returns the name in files and options.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(mode, _)| *mode == self).map_or("", |(_, name)| name)
    }

    /// Returns true if an older arrival preempts the youngest in service.
    pub(crate) fn preempts(self) -> bool {
        matches!(self, Self::OldestFirst | Self::OldestAuto | Self::DeadlineFirst) || !self.reports_waits()
    }

    /// Returns true if requests announce waits without CPU, so that others are admitted meanwhile.
    pub(crate) fn reports_waits(self) -> bool {
        !matches!(self, Self::OldestSilent | Self::OldestSentinel)
    }

    /// Returns true if requests are ordered by deadline instead of age, so that each class needs an SLO.
    pub fn is_by_deadline(self) -> bool {
        matches!(self, Self::DeadlineAdmission | Self::DeadlineFirst)
    }

    /// Returns the mode with the same order and without preemption, if there is one.
    pub(crate) fn without_preemption(self) -> Option<Self> {
        match self {
            Self::OldestFirst => Some(Self::OldestAdmission),
            Self::DeadlineFirst => Some(Self::DeadlineAdmission),
            _ => None,
        }
    }

    /// Returns the simulator's treatment of unannounced waits, for the modes that study these.
    pub(crate) fn waits_in_simulation(self) -> Option<WaitTreatment> {
        match self {
            Self::OldestSilent => Some(WaitTreatment::Silent),
            Self::OldestSentinel => {
                let every = SENTINEL_EVERY.as_nanos().try_into().unwrap_or(u64::MAX);
                Some(WaitTreatment::Sentinel(units::Nanos(every)))
            }
            _ => None,
        }
    }

    /// Returns the concurrency limit in an experiment with limit `c`; `None` is no limit.
    pub(crate) fn limit(self, c: Option<u32>) -> Option<u32> {
        match self {
            Self::Fair | Self::RoundRobin => None,
            Self::FirstCome => Some(1),
            _ => c,
        }
    }

    /// Returns the closest discipline of the simulator. `limit` is the concurrency limit (`None`: unlimited),
    /// `slice_ns` the time slice of the kernel's scheduler, and `allowed_ns` the time from arrival to
    /// deadline by class, used only by modes by deadline.
    pub fn discipline(self, limit: Option<u32>, slice_ns: u64, allowed_ns: &[u64]) -> DisciplineSpec {
        let limit = limit.unwrap_or(u32::MAX);
        let oldest = LimitedSharingParameters::oldest_first(limit, slice_ns);
        let sharing = match self {
            Self::FirstCome => return DisciplineSpec::Fifo,
            Self::Fair | Self::RoundRobin => LimitedSharingParameters::round_robin(slice_ns),
            Self::Limited => LimitedSharingParameters::without_age(limit, slice_ns),
            Self::OldestAdmission | Self::DeadlineAdmission => {
                LimitedSharingParameters { entrance: PoolEntrance::Wait, ..oldest }
            }
            Self::OldestFirst
            | Self::OldestAuto
            | Self::OldestSilent
            | Self::OldestSentinel
            | Self::DeadlineFirst => LimitedSharingParameters { entrance: PoolEntrance::Preempt, ..oldest },
        };
        if self.is_by_deadline() {
            DisciplineSpec::LimitedDeadline { sharing, allowed: allowed_ns.to_vec() }
        } else {
            DisciplineSpec::Limited(sharing)
        }
    }
}

impl fmt::Display for ScheduleMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<ScheduleMode> for String {
    fn from(mode: ScheduleMode) -> Self {
        mode.name().to_owned()
    }
}

impl TryFrom<String> for ScheduleMode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for ScheduleMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        NAMES.iter().find(|(_, name)| *name == text).map(|(mode, _)| *mode).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
            format!("'{text}': expected one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_back() {
        for mode in ScheduleMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(mode.discipline(mode.limit(Some(3)), 1000, &[5]).check(), Ok(()));
        }
        assert!("cfs".parse::<ScheduleMode>().unwrap_err().contains("orf-admission"));
    }
}
