//! The experiments.

use crate::device::{Cost, Model};
use units::{Bytes, Nanos};

/// A way to share a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// First come, first served, and everything is sent to the device at once.
    None,
    /// Equal shares of device time (thesis §3.3.1, ps).
    Proportional,
    /// Earliest deadline first, deadlines being SLOs.
    Edf,
    /// Strict priority, the tightest SLO first.
    BySlo,
    /// Shares that follow measured latencies, as in Cake.
    Feedback,
    /// Priorities and several limits for each workload, by analysis (PriorityMeister): the protected policy.
    Tailwright,
}

impl PolicyName {
    /// All, the protected one last.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Proportional, Self::Feedback, Self::Edf, Self::BySlo, Self::Tailwright];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Proportional => "proportional",
            Self::Edf => "edf",
            Self::BySlo => "by-slo",
            Self::Feedback => "feedback",
            Self::Tailwright => "tailwright",
        }
    }
}

/// Where requests come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// A file of the public traces.
    Trace(&'static str),
    /// Reads of 4 KiB with hyperexponential gaps of this squared coefficient of variation.
    Synthetic {
        /// At least 1.
        c2: f64,
    },
}

/// A workload with an SLO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tenant {
    /// As in the paper.
    pub name: &'static str,
    /// Its requests.
    pub source: Source,
    /// Share of the device that it asks for, as planned with.
    pub load: f64,
    /// What is promised to it: a percentile.
    pub percentile: f64,
}

/// A workload without an SLO that goes as fast as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Requests that always wait for answers.
    pub outstanding: u32,
    /// Of each, read one behind the other.
    pub size: Bytes,
}

/// What is asked for. SLOs follow from bounds of the analysis, see [`crate::experiment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slos {
    /// The last tenant has a tenth more than its bound below all others, which have a tenth more than that: whoever asks
    /// for most of the device has the tightest SLO, as the text to figure 3.3 says.
    LastTightest,
    /// Each has a tenth more than its own bound, where priority is by the bound that each has alone: what
    /// everybody can be promised at once.
    OwnBound,
    /// Those of the first case.
    OfFirst,
}

/// A variant of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// What is special about it; empty where there is one case only.
    pub name: &'static str,
    /// Workloads with SLOs.
    pub tenants: &'static [Tenant],
    /// Which.
    pub slos: Slos,
    /// Which tenant asks for another share than was planned with, and which: what is promised to it is void.
    pub misbehaves: Option<(usize, f64)>,
}

/// An experiment of a paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What the paper says.
    pub claim: &'static str,
    /// In the order in which they are played.
    pub cases: &'static [Case],
    /// Beside the tenants.
    pub copy: Option<Copy>,
    /// Compared, the protected one last.
    pub policies: &'static [PolicyName],
}

impl Experiment {
    /// Four channels; 4 KiB are read in 1.02 ms and written in 1.53 ms, so that the device serves 3900 reads per second.
    pub const DEVICE: Model = Model {
        channels: 4,
        read: Cost::new(Nanos(1_000_000), 5000),
        write: Cost::new(Nanos(1_500_000), 8000),
        bandwidth: None,
    };
}

/// Those of Table 3.1 that are nearest in burstiness, each chosen once, as in `tailwright reproduce`: C² 1.35 for 1.3,
/// 14.7 for 14, 1.86 for 2.2, and D.
const A: Tenant = tenant("A", "trace0039.csv.gz", 0.05);
const B: Tenant = tenant("B", "trace0023.csv.gz", 0.05);
const C: Tenant = tenant("C", "trace0042.csv.gz", 0.55);
const D: Tenant = tenant("D", "trace0011.csv.gz", 0.10);

const fn tenant(name: &'static str, trace: &'static str, load: f64) -> Tenant {
    Tenant { name, source: Source::Trace(trace), load, percentile: 99.9 }
}

const fn synthetic(c2: f64) -> Tenant {
    Tenant { name: "W", source: Source::Synthetic { c2 }, load: 0.25, percentile: 99.0 }
}

/// As many requests as a disk's or a SATA device's own queue takes.
const COPY: Copy = Copy { outstanding: 32, size: Bytes(64 << 10) };

/// All of them.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "fig-3.3",
        title: "SLOs kept by policy: three bursty workloads and a copy (figures 3.3 and 3.4)",
        claim: "PriorityMeister is the only policy that meets all SLOs at all percentiles",
        cases: &[
            Case { name: "own-bounds", tenants: &[A, B, C], slos: Slos::OwnBound, misbehaves: None },
            Case { name: "c-tightest", tenants: &[A, B, C], slos: Slos::LastTightest, misbehaves: None },
        ],
        copy: Some(COPY),
        policies: &PolicyName::ALL,
    },
    Experiment {
        name: "fig-3.5",
        title: "What bursts do under feedback and under priority (figure 3.5)",
        claim: "PriorityMeister meets the SLO at the 99th percentile up to C² = 40; Cake does at C² = 1 and misses it above",
        cases: &[
            Case { name: "c2-1", tenants: &[synthetic(1.0)], slos: Slos::LastTightest, misbehaves: None },
            Case { name: "c2-20", tenants: &[synthetic(20.0)], slos: Slos::OfFirst, misbehaves: None },
            Case { name: "c2-40", tenants: &[synthetic(40.0)], slos: Slos::OfFirst, misbehaves: None },
        ],
        copy: Some(COPY),
        policies: &[PolicyName::Feedback, PolicyName::Tailwright],
    },
    // By its own bound D has the tighter SLO and the higher priority, which the text gives it.
    Experiment {
        name: "fig-3.6",
        title: "A workload of high priority that behaves, and then floods the device (figure 3.6)",
        claim: "PriorityMeister is the only policy that isolates C when D misbehaves",
        cases: &[
            Case { name: "behaved", tenants: &[D, C], slos: Slos::OwnBound, misbehaves: None },
            Case { name: "misbehaved", tenants: &[D, C], slos: Slos::OfFirst, misbehaves: Some((0, 1.1)) },
        ],
        copy: None,
        policies: &[
            PolicyName::Proportional,
            PolicyName::Feedback,
            PolicyName::Edf,
            PolicyName::BySlo,
            PolicyName::Tailwright,
        ],
    },
];

/// The experiment of this name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name)
}
