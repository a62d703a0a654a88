//! The experiments, after figures of the thesis.

use super::definition::{
    BackgroundCopy, Bottleneck, ExperimentCase, ExperimentTenant, LabExperiment, PolicyName, SloRule,
    TenantServer, TenantSource,
};
use units::{Bytes, Nanos};

/// Workloads A to D of Table 3.1. Its traces are not public; these are the ones nearest in burstiness, each used once, as
/// in `tailwright reproduce`: C² 1.35 for 1.3, 14.7 for 14, 1.86 for 2.2, and 22.8 for 23.
const A: ExperimentTenant = traced("A", "trace0039.csv.gz", 0.05);
const B: ExperimentTenant = traced("B", "trace0023.csv.gz", 0.05);
const C: ExperimentTenant = traced("C", "trace0042.csv.gz", 0.55);
const D: ExperimentTenant = traced("D", "trace0011.csv.gz", 0.10);

/// A tenant of the emulated SSD. Its SLO is at the 99th percentile, one of those that the thesis shows: bursts make
/// successive requests late together, so that minutes of these traces have too few independent requests for the 99.9th.
const fn traced(name: &'static str, trace: &'static str, load: f64) -> ExperimentTenant {
    ExperimentTenant {
        name,
        source: TenantSource::Trace(trace),
        server: TenantServer::Ssd,
        load,
        percentile: 99.0,
    }
}

/// The workload of figure 3.5: reads at a quarter of the device, with gaps of this squared coefficient of variation.
const fn synthetic(c2: f64) -> ExperimentTenant {
    let source = TenantSource::Synthetic { c2, size: Bytes(4096) };
    ExperimentTenant { name: "W", source, server: TenantServer::Ssd, load: 0.25, percentile: 99.0 }
}

/// A tenant of figure 3.7, by Table 3.1, which has loads of storage and of the network. A read of 16 KiB takes 1.4 ms of
/// the link: a minute has thousands of each workload, with luck enough for the 99th percentile, never for the 99.9th.
const fn networked(name: &'static str, c2: f64, load: f64, server: TenantServer) -> ExperimentTenant {
    let source = TenantSource::Synthetic { c2, size: Bytes(16 << 10) };
    ExperimentTenant { name, source, server, load, percentile: 99.0 }
}

/// The tenants of figure 3.7. The text names three of the four; as the fourth, the low-burst trace F is taken.
const I: ExperimentTenant = networked("I", 1.0, 0.20, TenantServer::Disk { busy: 0.35 });
const J: ExperimentTenant = networked("J", 1.0, 0.25, TenantServer::Disk { busy: 0.45 });
const F: ExperimentTenant = networked("F", 1.0, 0.05, TenantServer::Disk { busy: 0.25 });
const K: ExperimentTenant = networked("K", 3.6, 0.35, TenantServer::Memory);

/// A tenant of figure 4.1: lookups that take a tenth of the link. The SLO is at the 99th percentile, because a minute has
/// some five thousand requests of each tenant.
const fn cached(name: &'static str, trace: &'static str) -> ExperimentTenant {
    ExperimentTenant {
        name,
        source: TenantSource::Trace(trace),
        server: TenantServer::Cache,
        load: 0.1,
        percentile: 99.0,
    }
}

/// The tenants of figure 4.1: the first eight traces whose requests have at most 256 KiB, like those of the thesis.
const CACHE_TENANTS: &[ExperimentTenant] = &[
    cached("t1", "trace0000.csv.gz"),
    cached("t2", "trace0002.csv.gz"),
    cached("t3", "trace0003.csv.gz"),
    cached("t4", "trace0006.csv.gz"),
    cached("t5", "trace0009.csv.gz"),
    cached("t6", "trace0012.csv.gz"),
    cached("t7", "trace0015.csv.gz"),
    cached("t8", "trace0017.csv.gz"),
];
/// The SLOs of the thesis (§4.4) in turn, in seconds, ten times as long because the link has a tenth of its bandwidth.
const REQUESTED_SLOS: &[f64] = &[0.1, 0.2, 0.5, 1.0, 0.1, 0.2, 0.5, 1.0];

/// A copy with as many reads in flight as the queue of a SATA device takes.
const COPY: BackgroundCopy = BackgroundCopy { in_flight: 32, size: Bytes(64 << 10) };

/// A workload of `policies` that keeps the device almost busy in pulses of 0.1 s, with pauses as long. It
/// waits for no other request, but a request that arrives after its pulse waits for all of it.
const PULSED: ExperimentTenant = ExperimentTenant {
    name: "pulsed",
    source: TenantSource::Pulsed { reads: 400, on_share: 0.52, size: Bytes(4096) },
    server: TenantServer::Ssd,
    load: 0.50,
    percentile: 99.0,
};
/// A workload of `policies` whose reads come one by one.
const STEADY: ExperimentTenant = ExperimentTenant {
    name: "steady",
    source: TenantSource::Synthetic { c2: 1.0, size: Bytes(4096) },
    server: TenantServer::Ssd,
    load: 0.10,
    percentile: 99.0,
};

const fn seconds(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

/// All experiments, the shortest first, the others in the order of the figures.
pub const EXPERIMENTS: &[LabExperiment] = &[
    LabExperiment {
        name: "policies",
        title: "SLOs by policy: two workloads, a copy and a flood; needs no traces (thesis §3.4)",
        claim: "with other policies low priority starves, shares are too small, or a flood delays all",
        bottleneck: Bottleneck::Device,
        cases: &[
            ExperimentCase {
                name: "within-limits",
                tenants: &[STEADY, PULSED],
                slos: SloRule::LastTightest,
                misbehaves: None,
            },
            ExperimentCase {
                name: "flood",
                tenants: &[STEADY, PULSED],
                slos: SloRule::InOrder,
                misbehaves: Some((0, 0.7)),
            },
        ],
        copy: Some(COPY),
        policies: &[
            PolicyName::Proportional,
            PolicyName::Feedback,
            PolicyName::Edf,
            PolicyName::BySlo,
            PolicyName::Tailwright,
        ],
        duration: seconds(40),
        warm_up: seconds(10),
    },
    LabExperiment {
        name: "fig-3.3",
        title: "SLOs by policy: three bursty workloads and a copy (figures 3.3 and 3.4)",
        claim: "PriorityMeister is the only policy that meets all SLOs at all percentiles",
        bottleneck: Bottleneck::Device,
        cases: &[
            ExperimentCase {
                name: "own-bounds",
                tenants: &[A, B, C],
                slos: SloRule::OwnBound,
                misbehaves: None,
            },
            ExperimentCase {
                name: "c-tightest",
                tenants: &[A, B, C],
                slos: SloRule::LastTightest,
                misbehaves: None,
            },
        ],
        copy: Some(COPY),
        policies: &PolicyName::ALL,
        duration: seconds(420),
        warm_up: seconds(20),
    },
    LabExperiment {
        name: "fig-3.5",
        title: "What bursts do under feedback and under priority (figure 3.5)",
        claim: "PriorityMeister meets the SLO at the 99th percentile up to C² = 40; Cake does at C² = 1 and misses it above",
        bottleneck: Bottleneck::Device,
        cases: &[
            ExperimentCase {
                name: "c2-1",
                tenants: &[synthetic(1.0)],
                slos: SloRule::LastTightest,
                misbehaves: None,
            },
            ExperimentCase {
                name: "c2-20",
                tenants: &[synthetic(20.0)],
                slos: SloRule::AsFirstCase,
                misbehaves: None,
            },
            ExperimentCase {
                name: "c2-40",
                tenants: &[synthetic(40.0)],
                slos: SloRule::AsFirstCase,
                misbehaves: None,
            },
        ],
        copy: Some(COPY),
        policies: &[PolicyName::Feedback, PolicyName::Tailwright],
        duration: seconds(30),
        warm_up: seconds(10),
    },
    // D comes first, as in the text: its SLO is tighter, and C can have the lowest priority while D cannot.
    LabExperiment {
        name: "fig-3.6",
        title: "A workload of high priority that behaves, and then floods the device (figure 3.6)",
        claim: "PriorityMeister is the only policy that isolates C when D misbehaves",
        bottleneck: Bottleneck::Device,
        cases: &[
            ExperimentCase { name: "behaved", tenants: &[D, C], slos: SloRule::InOrder, misbehaves: None },
            ExperimentCase {
                name: "misbehaved",
                tenants: &[D, C],
                slos: SloRule::AsFirstCase,
                misbehaves: Some((0, 1.1)),
            },
        ],
        copy: None,
        policies: &[
            PolicyName::Proportional,
            PolicyName::Feedback,
            PolicyName::Edf,
            PolicyName::BySlo,
            PolicyName::Tailwright,
        ],
        duration: seconds(240),
        warm_up: seconds(20),
    },
    LabExperiment {
        name: "fig-3.7",
        title: "The network is the bottleneck: answers of four storage servers on one link (figure 3.7)",
        claim: "PriorityMeister is the only policy that meets all SLOs; by SLO, K goes first and the others miss theirs",
        bottleneck: Bottleneck::Link,
        cases: &[
            ExperimentCase {
                name: "own-bounds",
                tenants: &[F, I, J, K],
                slos: SloRule::OwnBound,
                misbehaves: None,
            },
            ExperimentCase {
                name: "k-tightest",
                tenants: &[F, I, J, K],
                slos: SloRule::LastTightest,
                misbehaves: None,
            },
        ],
        copy: None,
        policies: &[PolicyName::None, PolicyName::BySlo, PolicyName::Tailwright],
        duration: seconds(300),
        warm_up: seconds(20),
    },
    LabExperiment {
        name: "fig-4.1",
        title: "Tenants of memcached behind one link, admitted by analysis (figure 4.1)",
        claim: "SNC-Meister meets the SLOs of all workloads that it admits",
        bottleneck: Bottleneck::Link,
        cases: &[ExperimentCase {
            name: "",
            tenants: CACHE_TENANTS,
            slos: SloRule::Requested(REQUESTED_SLOS),
            misbehaves: None,
        }],
        copy: None,
        policies: &[PolicyName::None, PolicyName::BySlo, PolicyName::Tailwright],
        duration: seconds(720),
        warm_up: seconds(20),
    },
];

/// The experiment with this name.
pub fn find_experiment(name: &str) -> Option<&'static LabExperiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name)
}
