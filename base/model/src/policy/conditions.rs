//! Comparison of the conditions that a policy's bounds assume of a server with those of a run.
//!
//! One type holds both, and one table, [`CONDITIONS`], gives the unsafe direction of each condition.
//! Simulators, enforcers and judges all compare by [`ServerConditions::differences`].
//!
//! **Directions.** With c channels, k requests at the device and k − q places for best effort, the bound
//! of a device queue grows in c, k, k − q and in the largest best-effort request (see the theorem of
//! device queues in `calculus`). It needs k ≥ c, and c − 1 requests beside one of higher priority, so
//! that no channel is idle while a request waits. Delays on a link grow in its largest packet and fall
//! with its bandwidth. A deviation in the other direction only makes requests earlier. Profiles are
//! compared for equality: their work has no direction.
//!
//! Not covered: the traffic. Limits hold the workloads, and conformance is judged where requests are
//! observed.

use std::collections::BTreeMap;
use std::fmt;

/// A property of a server that bounds depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Requests that the device serves at a time.
    Channels,
    /// Maximum number of requests at the device.
    Outstanding,
    /// Maximum number of requests of each kind at the device where there is such a bound: enough to keep
    /// all channels busy.
    BusyPlaces,
    /// Maximum number of best-effort requests at the device.
    BestEffortPlaces,
    /// Maximum number of lower-priority requests beside one of higher priority.
    Beside,
    /// The smallest bound on the bytes of requests at the device; infinite without one.
    BytesAtDevice,
    /// Maximum number of sequential writes sent together.
    Batch,
    /// The device time of the largest best-effort request, seconds.
    BestEffortRequest,
    /// The largest packet of a link, bytes.
    Packet,
    /// Time of a request in the proxy beyond waiting, seconds.
    ProxyTime,
    /// Bandwidth of the links, bytes per second.
    Network,
    /// Number of distinguishable priority levels.
    Levels,
    /// The name of the device profile.
    ProfileName,
    /// Hash of the device profile's work and idle latency.
    ProfileContent,
}

/// The value of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum ConditionValue {
    /// A number in the unit of the condition.
    Number(f64),
    /// A name.
    Name(String),
}

impl From<u32> for ConditionValue {
    fn from(value: u32) -> Self {
        Self::Number(f64::from(value))
    }
}

impl From<f64> for ConditionValue {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for ConditionValue {
    fn from(value: &str) -> Self {
        Self::Name(value.to_owned())
    }
}

/// The direction in which a value of a run is unsafe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsafeDirection {
    /// More than assumed.
    More,
    /// Less than assumed.
    Less,
    /// Any other value than the assumed one.
    Other,
}

/// The unit of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionUnit {
    /// A count.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A name.
    Name,
}

/// A row of `CONDITIONS`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConditionRow {
    /// Compared condition.
    pub condition: Condition,
    /// Name in messages.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: ConditionUnit,
    /// The direction in which a difference is unsafe.
    pub unsafe_when: UnsafeDirection,
    /// Reason why it is unsafe there.
    pub why: &'static str,
    /// Remedy; `{}` stands for the value of the run.
    pub remedy: &'static str,
}

const HOSTS: &str = "remove that setting of [server.storage] (hosts file) or [server] (scenario)";

/// All conditions, with the direction in which a difference is unsafe.
pub(crate) const CONDITIONS: [ConditionRow; 14] = [
    ConditionRow {
        condition: Condition::Channels,
        name: "channels",
        unit: ConditionUnit::Count,
        unsafe_when: UnsafeDirection::More,
        why: "each request takes longer on its channel than they count",
        remedy: "`tailwright plan … --channels {} -o policy.json`, or `channels = {}` in the cluster file",
    },
    ConditionRow {
        condition: Condition::Outstanding,
        name: "outstanding",
        unit: ConditionUnit::Count,
        unsafe_when: UnsafeDirection::More,
        why: "a request may find more at the device than they count",
        remedy: HOSTS,
    },
    ConditionRow {
        condition: Condition::BusyPlaces,
        name: "the fewest of outstanding, reads and writes",
        unit: ConditionUnit::Count,
        unsafe_when: UnsafeDirection::Less,
        why: "a channel may be idle while a request waits",
        remedy: HOSTS,
    },
    ConditionRow {
        condition: Condition::BestEffortPlaces,
        name: "outstanding − reserve",
        unit: ConditionUnit::Count,
        unsafe_when: UnsafeDirection::More,
        why: "more best-effort requests may be at the device than they count",
        remedy: HOSTS,
    },
    ConditionRow {
        condition: Condition::Beside,
        name: "beside",
        unit: ConditionUnit::Count,
        unsafe_when: UnsafeDirection::Less,
        why: "a channel may be idle while a request waits",
        remedy: HOSTS,
    },
    ConditionRow {
        condition: Condition::BytesAtDevice,
        name: "bytes at the device",
        unit: ConditionUnit::Bytes,
        unsafe_when: UnsafeDirection::Less,
        why: "a channel may be idle while a request waits",
        remedy: HOSTS,
    },
    ConditionRow {
        condition: Condition::Batch,
        name: "batch",
        unit: ConditionUnit::Count,
        unsafe_when: UnsafeDirection::More,
        why: "a batch may exceed what they count at the device",
        remedy: HOSTS,
    },
    ConditionRow {
        condition: Condition::BestEffortRequest,
        name: "device time of the largest best-effort request",
        unit: ConditionUnit::Seconds,
        unsafe_when: UnsafeDirection::More,
        why: "a request may wait for a longer one than they count",
        remedy: "`tailwright plan … --best-effort-request SIZE -o policy.json`, with the size of the largest one",
    },
    ConditionRow {
        condition: Condition::Packet,
        name: "largest packet",
        unit: ConditionUnit::Bytes,
        unsafe_when: UnsafeDirection::More,
        why: "a packet may wait for a longer one than they count",
        remedy: "`tailwright apply` makes shaped devices send frames; or `packet = \"{}\"` in the cluster file and plan again",
    },
    ConditionRow {
        condition: Condition::ProxyTime,
        name: "time in the proxy",
        unit: ConditionUnit::Seconds,
        unsafe_when: UnsafeDirection::More,
        why: "requests take longer in the proxy than they count",
        remedy: "`proxy = \"{}\"` in the cluster file, and `tailwright plan` again",
    },
    ConditionRow {
        condition: Condition::Network,
        name: "bandwidth of the link",
        unit: ConditionUnit::BytesPerSecond,
        unsafe_when: UnsafeDirection::Less,
        why: "the link sends more slowly than they count",
        remedy: "`tailwright plan … --network {} -o policy.json`",
    },
    ConditionRow {
        condition: Condition::Levels,
        name: "levels of priority",
        unit: ConditionUnit::Count,
        unsafe_when: UnsafeDirection::Less,
        why: "workloads share a level that they count apart",
        remedy: "`tailwright plan -o policy.json` again, without --preemptive",
    },
    ConditionRow {
        condition: Condition::ProfileName,
        name: "device profile",
        unit: ConditionUnit::Name,
        unsafe_when: UnsafeDirection::Other,
        why: "it is another device than they count",
        remedy: "`tailwright plan … --storage PROFILE.json -o policy.json` with the profile of this device, or give here the one that was planned with",
    },
    ConditionRow {
        condition: Condition::ProfileContent,
        name: "content of the device profile",
        unit: ConditionUnit::Name,
        unsafe_when: UnsafeDirection::Other,
        why: "the profile has changed since the policy was planned",
        remedy: "`tailwright plan … -o policy.json` again with this profile",
    },
];

impl ConditionRow {
    /// Formats a value in words.
    pub fn words(&self, value: &ConditionValue) -> String {
        match (value, self.unit) {
            (ConditionValue::Name(name), _) => format!("'{name}'"),
            (ConditionValue::Number(number), _) if number.is_infinite() => "no bound".to_owned(),
            (ConditionValue::Number(number), ConditionUnit::Seconds) => units::Seconds(*number).to_string(),
            (ConditionValue::Number(number), ConditionUnit::Bytes) => format!("{number} B"),
            (ConditionValue::Number(number), ConditionUnit::BytesPerSecond) => format!("{number}B/s"),
            (ConditionValue::Number(number), _) => number.to_string(),
        }
    }
}

/// Relative difference up to which two numbers count as equal, to allow for rounding.
const ROUNDING: f64 = 1e-6;

/// The conditions of a server: assumed by bounds, or of a run. A missing one is not stated or not known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerConditions(BTreeMap<Condition, ConditionValue>);

impl ServerConditions {
    /// Sets one condition; `None` leaves the conditions as they are.
    #[must_use]
    pub fn with(mut self, condition: Condition, value: Option<impl Into<ConditionValue>>) -> Self {
        if let Some(value) = value {
            self.0.insert(condition, value.into());
        }
        self
    }

    /// Fills missing conditions from the other.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        for (condition, value) in &other.0 {
            self.0.entry(*condition).or_insert_with(|| value.clone());
        }
        self
    }

    /// Returns the value of a condition.
    pub fn get(&self, condition: Condition) -> Option<&ConditionValue> {
        self.0.get(&condition)
    }

    /// Returns the differences of a run from these assumed conditions, in the order of `CONDITIONS`.
    pub fn differences(&self, run: &Self) -> Vec<ConditionDifference> {
        let compared = |row: &ConditionRow| {
            let found = run.get(row.condition)?.clone();
            let Some(assumed) = self.get(row.condition).cloned() else {
                return Some(ConditionDifference {
                    row: *row,
                    assumed: None,
                    found,
                    safety: Safety::NotStated,
                });
            };
            let safety = safety(row.unsafe_when, &assumed, &found)?;
            Some(ConditionDifference { row: *row, assumed: Some(assumed), found, safety })
        };
        CONDITIONS.iter().filter_map(compared).collect()
    }
}

/// Returns the safety of a value that differs from the assumed one; `None` if they are equal.
fn safety(unsafe_when: UnsafeDirection, assumed: &ConditionValue, found: &ConditionValue) -> Option<Safety> {
    let (ConditionValue::Number(assumed), ConditionValue::Number(found)) = (assumed, found) else {
        return (assumed != found).then_some(Safety::Unsafe);
    };
    // An infinite value has an infinite tolerance, so it is compared exactly.
    let is_near = (assumed - found).abs() <= ROUNDING * assumed.abs().max(found.abs());
    let is_equal = assumed == found || (is_near && assumed.is_finite() && found.is_finite());
    let is_unsafe = match unsafe_when {
        UnsafeDirection::More => found > assumed,
        UnsafeDirection::Less => found < assumed,
        UnsafeDirection::Other => true,
    };
    match (is_equal, is_unsafe) {
        (true, _) => None,
        (false, true) => Some(Safety::Unsafe),
        (false, false) => Some(Safety::Safe),
    }
}

/// Effect of a difference on bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safety {
    /// Bounds may not hold.
    Unsafe,
    /// Bounds hold.
    Safe,
    /// The policy does not state the assumption of its bounds.
    NotStated,
}

/// A condition of a run that differs from the assumed one.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionDifference {
    /// The condition.
    pub row: ConditionRow,
    /// The value that bounds assume, where the policy states it.
    pub assumed: Option<ConditionValue>,
    /// The value of the run.
    pub found: ConditionValue,
    /// Effect on bounds.
    pub safety: Safety,
}

impl ConditionDifference {
    /// Returns the remedy.
    pub fn remedy(&self) -> String {
        let plain = match &self.found {
            ConditionValue::Name(name) => name.clone(),
            ConditionValue::Number(number) => match self.row.unit {
                ConditionUnit::Bytes => format!("{number}B"),
                _ => self.row.words(&ConditionValue::Number(*number)),
            },
        };
        self.row.remedy.replace("{}", &plain)
    }
}

impl fmt::Display for ConditionDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConditionRow { name, why, .. } = self.row;
        let found = self.row.words(&self.found);
        match (&self.assumed, self.safety) {
            (None, _) => write!(f, "{name}: {found}, not stated in this policy"),
            (Some(assumed), Safety::Unsafe) => {
                let assumed = self.row.words(assumed);
                let or = match self.row.unsafe_when {
                    UnsafeDirection::More => " or less",
                    UnsafeDirection::Less if assumed != "no bound" => " or more",
                    _ => "",
                };
                write!(f, "{name}: {found}, the policy's bounds count on {assumed}{or}: {why}")
            }
            (Some(assumed), _) => {
                write!(
                    f,
                    "{name}: {found}, the policy's bounds count on {}; they hold",
                    self.row.words(assumed)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row of the table, in both directions and where it is not stated.
    #[test]
    fn every_condition_is_compared_in_both_directions() {
        for row in CONDITIONS {
            let of = |value: ConditionValue| ServerConditions::default().with(row.condition, Some(value));
            let (less, same, more) = match row.unit {
                ConditionUnit::Name => ("a".into(), "b".into(), "c".into()),
                _ => (ConditionValue::Number(2.0), ConditionValue::Number(3.0), ConditionValue::Number(4.0)),
            };
            let safety = |found: &ConditionValue| {
                of(same.clone()).differences(&of(found.clone())).first().map(|difference| difference.safety)
            };
            let expected = match row.unsafe_when {
                UnsafeDirection::More => [Safety::Safe, Safety::Unsafe],
                UnsafeDirection::Less => [Safety::Unsafe, Safety::Safe],
                UnsafeDirection::Other => [Safety::Unsafe, Safety::Unsafe],
            };
            assert_eq!(
                [safety(&less), safety(&same), safety(&more)],
                [Some(expected[0]), None, Some(expected[1])]
            );
            let unstated = ServerConditions::default().differences(&of(more.clone()));
            assert_eq!(unstated[0].safety, Safety::NotStated, "{}", row.name);
            assert!(unstated[0].to_string().ends_with("not stated in this policy"), "{}", unstated[0]);
            // A run that states nothing is not judged.
            assert!(of(same.clone()).differences(&ServerConditions::default()).is_empty());
            assert!(!of(same).differences(&of(more))[0].remedy().contains("{}"));
        }
    }

    #[test]
    fn any_bound_is_less_than_none() {
        let of = |bytes: f64| ServerConditions::default().with(Condition::BytesAtDevice, Some(bytes));
        assert!(of(f64::INFINITY).differences(&of(f64::INFINITY)).is_empty());
        let found = of(f64::INFINITY).differences(&of(65536.0));
        assert_eq!(found[0].safety, Safety::Unsafe);
        assert!(
            found[0]
                .to_string()
                .starts_with("bytes at the device: 65536 B, the policy's bounds count on no bound: ")
        );
    }

    #[test]
    fn both_values_are_said() {
        let of = |channels: u32| ServerConditions::default().with(Condition::Channels, Some(channels));
        let found = of(1).differences(&of(16));
        assert_eq!(
            found[0].to_string(),
            "channels: 16, the policy's bounds count on 1 or less: each request takes longer on its channel than they count"
        );
        assert!(found[0].remedy().contains("--channels 16"));
        assert_eq!(
            of(16).differences(&of(1))[0].to_string(),
            "channels: 1, the policy's bounds count on 16; they hold"
        );
        let rounded = ServerConditions::default().with(Condition::Network, Some(1.25e8 * (1.0 - 1e-9)));
        assert!(
            ServerConditions::default()
                .with(Condition::Network, Some(1.25e8))
                .differences(&rounded)
                .is_empty()
        );
    }
}
