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
    /// Reads of one size with hyperexponential gaps.
    Synthetic {
        /// Squared coefficient of variation of the gaps; at least 1.
        c2: f64,
        /// Of each read.
        size: Bytes,
    },
}

/// What answers a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Server {
    /// The emulated SSD that all share, behind a proxy.
    Ssd,
    /// An emulated disk of its own with one channel.
    Disk {
        /// The share of time that the workload keeps it busy.
        busy: f64,
    },
    /// A volume of its own in memory (nbdkit).
    Memory,
    /// One memcached for all; every request is a lookup.
    Cache,
}

/// What all workloads of an experiment share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// The emulated SSD.
    Device,
    /// The link on which all answers leave the server's host.
    Link,
}

/// A workload with an SLO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tenant {
    /// As in the paper.
    pub name: &'static str,
    /// Its requests.
    pub source: Source,
    /// What answers it.
    pub server: Server,
    /// Share of the bottleneck that it asks for, as planned with.
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Slos {
    /// The last tenant has a tenth more than its bound below all others, which have a tenth more than that: whoever asks
    /// for most of the device has the tightest SLO, as the text to figure 3.3 says.
    /// Nobody has less than a tenth more than its own bound there.
    LastTightest,
    /// Each has a tenth more than its own bound, where priority is by the bound that each has alone: what
    /// everybody can be promised at once.
    OwnBound,
    /// Each has a tenth more than its bound below those before it.
    InOrder,
    /// Those of the first case.
    OfFirst,
    /// These, seconds, by tenant. Tenants come one after the other, and each is admitted if the analysis says that
    /// everybody's SLO is kept with it.
    Asked(&'static [f64]),
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
    /// What is shared.
    pub bottleneck: Bottleneck,
    /// In the order in which they are played.
    pub cases: &'static [Case],
    /// Beside the tenants.
    pub copy: Option<Copy>,
    /// Compared, the protected one last.
    pub policies: &'static [PolicyName],
}

impl Experiment {
    /// How long to observe it unless somebody knows better: on a device thousands of requests come in a second, on a link
    /// some dozens of each workload, and bursts make them late together.
    pub fn duration(&self) -> Nanos {
        match self.bottleneck {
            Bottleneck::Device => Nanos(180_000_000_000),
            Bottleneck::Link => Nanos(300_000_000_000),
        }
    }

    /// Four channels; 4 KiB are read in 1.02 ms and written in 1.53 ms, so that the device serves 3900 reads per second.
    pub const DEVICE: Model = Model {
        channels: 4,
        read: Cost::new(Nanos(1_000_000), 5000),
        write: Cost::new(Nanos(1_500_000), 8000),
        bandwidth: None,
    };
    /// Where the link is the bottleneck: what a host's device carries. Shaping it takes little of the CPU.
    pub const LINK_BITS_PER_S: f64 = 100e6;
}

/// Those of Table 3.1 that are nearest in burstiness, each chosen once, as in `tailwright reproduce`: C² 1.35 for 1.3,
/// 14.7 for 14, 1.86 for 2.2, and D.
const A: Tenant = tenant("A", "trace0039.csv.gz", 0.05);
const B: Tenant = tenant("B", "trace0023.csv.gz", 0.05);
const C: Tenant = tenant("C", "trace0042.csv.gz", 0.55);
const D: Tenant = tenant("D", "trace0011.csv.gz", 0.10);

/// The 99th percentile, one of those that the thesis shows: bursts make neighbours late together, so that minutes of
/// these traces have not enough independent requests for the 99.9th.
const fn tenant(name: &'static str, trace: &'static str, load: f64) -> Tenant {
    Tenant { name, source: Source::Trace(trace), server: Server::Ssd, load, percentile: 99.0 }
}

const fn synthetic(c2: f64) -> Tenant {
    let source = Source::Synthetic { c2, size: Bytes(4096) };
    Tenant { name: "W", source, server: Server::Ssd, load: 0.25, percentile: 99.0 }
}

/// Of figure 3.7, by Table 3.1, whose loads are of storage and of the network. Reads of 16 KiB take 1.4 ms of the link: in
/// a minute there are thousands of each workload: with luck enough for the 99th percentile, never for the 99.9th.
const fn networked(name: &'static str, c2: f64, load: f64, server: Server) -> Tenant {
    let source = Source::Synthetic { c2, size: Bytes(16 << 10) };
    Tenant { name, source, server, load, percentile: 99.0 }
}

/// The table has no second workload like I; the text names three of the four. The fourth is the low burst trace.
const I: Tenant = networked("I", 1.0, 0.20, Server::Disk { busy: 0.35 });
const J: Tenant = networked("J", 1.0, 0.25, Server::Disk { busy: 0.45 });
const F: Tenant = networked("F", 1.0, 0.05, Server::Disk { busy: 0.25 });
const K: Tenant = networked("K", 3.6, 0.35, Server::Memory);

/// Of figure 4.1: a tenth of the link, lookups only. The 99th percentile, because a minute has some five thousand requests of
/// each.
const fn cached(name: &'static str, trace: &'static str) -> Tenant {
    Tenant { name, source: Source::Trace(trace), server: Server::Cache, load: 0.1, percentile: 99.0 }
}

/// The first eight of the traces whose requests have at most 256 KiB, as those of the thesis have.
const TENANTS: &[Tenant] = &[
    cached("t1", "trace0000.csv.gz"),
    cached("t2", "trace0002.csv.gz"),
    cached("t3", "trace0003.csv.gz"),
    cached("t4", "trace0006.csv.gz"),
    cached("t5", "trace0009.csv.gz"),
    cached("t6", "trace0012.csv.gz"),
    cached("t7", "trace0015.csv.gz"),
    cached("t8", "trace0017.csv.gz"),
];
/// Those of the thesis (§4.4) in turn, ten times as long, because the link has a tenth of its bandwidth.
const ASKED: &[f64] = &[0.1, 0.2, 0.5, 1.0, 0.1, 0.2, 0.5, 1.0];

/// As many requests as a disk's or a SATA device's own queue takes.
const COPY: Copy = Copy { outstanding: 32, size: Bytes(64 << 10) };

/// All of them.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "fig-3.3",
        title: "SLOs kept by policy: three bursty workloads and a copy (figures 3.3 and 3.4)",
        claim: "PriorityMeister is the only policy that meets all SLOs at all percentiles",
        bottleneck: Bottleneck::Device,
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
        bottleneck: Bottleneck::Device,
        cases: &[
            Case { name: "c2-1", tenants: &[synthetic(1.0)], slos: Slos::LastTightest, misbehaves: None },
            Case { name: "c2-20", tenants: &[synthetic(20.0)], slos: Slos::OfFirst, misbehaves: None },
            Case { name: "c2-40", tenants: &[synthetic(40.0)], slos: Slos::OfFirst, misbehaves: None },
        ],
        copy: Some(COPY),
        policies: &[PolicyName::Feedback, PolicyName::Tailwright],
    },
    // D goes first, as in the text: by its SLO, and because C can go last and D cannot.
    Experiment {
        name: "fig-3.6",
        title: "A workload of high priority that behaves, and then floods the device (figure 3.6)",
        claim: "PriorityMeister is the only policy that isolates C when D misbehaves",
        bottleneck: Bottleneck::Device,
        cases: &[
            Case { name: "behaved", tenants: &[D, C], slos: Slos::InOrder, misbehaves: None },
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
    Experiment {
        name: "fig-3.7",
        title: "The network is the bottleneck: answers of four storage servers on one link (figure 3.7)",
        claim: "PriorityMeister is the only policy that meets all SLOs; by SLO, K goes first and the others miss theirs",
        bottleneck: Bottleneck::Link,
        cases: &[
            Case { name: "own-bounds", tenants: &[F, I, J, K], slos: Slos::OwnBound, misbehaves: None },
            Case { name: "k-tightest", tenants: &[F, I, J, K], slos: Slos::LastTightest, misbehaves: None },
        ],
        copy: None,
        policies: &[PolicyName::None, PolicyName::BySlo, PolicyName::Tailwright],
    },
    Experiment {
        name: "fig-4.1",
        title: "Tenants of memcached behind one link, admitted by analysis (figure 4.1)",
        claim: "SNC-Meister meets the SLOs of all workloads that it admits",
        bottleneck: Bottleneck::Link,
        cases: &[Case { name: "", tenants: TENANTS, slos: Slos::Asked(ASKED), misbehaves: None }],
        copy: None,
        policies: &[PolicyName::None, PolicyName::BySlo, PolicyName::Tailwright],
    },
];

/// The experiment of this name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name)
}
