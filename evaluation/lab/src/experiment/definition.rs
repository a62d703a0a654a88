//! Definition of an experiment: workloads with SLOs, a shared bottleneck, and the policies to compare.

use crate::device::{LinearServiceTime, SsdModel};
use units::{Bytes, Nanos};

/// The host that has the servers, and the name of the server in policies.
pub(super) const SERVER: &str = "store";
/// Requests that the proxy reserves for workloads with a level, if it has at least eight places.
pub(super) const RESERVE: u32 = 1;
/// The name of the protecting policy in policies and output.
pub(super) const PROTECTING_POLICY: &str = "tailwright";

/// A way to share the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// First come, first served, without holding anything back.
    None,
    /// Equal shares of device time (thesis §3.3.1, ps).
    Proportional,
    /// Earliest deadline first, deadlines being SLOs.
    Edf,
    /// Strict priority, the tightest SLO first.
    BySlo,
    /// Shares of device time that follow measured latencies, as in Cake.
    Feedback,
    /// Priorities and several limits for each workload, by analysis (PriorityMeister): the policy that is to protect
    /// the SLOs.
    Tailwright,
}

impl PolicyName {
    /// All policies, the protecting one last.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Proportional, Self::Feedback, Self::Edf, Self::BySlo, Self::Tailwright];

    /// The name in commands and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Proportional => "proportional",
            Self::Edf => "edf",
            Self::BySlo => "by-slo",
            Self::Feedback => "feedback",
            Self::Tailwright => PROTECTING_POLICY,
        }
    }
}

/// Source of the requests of a tenant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TenantSource {
    /// A file of the public traces.
    Trace(&'static str),
    /// Reads of one size with hyperexponential gaps.
    Synthetic {
        /// Squared coefficient of variation of the gaps; at least 1.
        c2: f64,
        /// The size of each read.
        size: Bytes,
    },
    /// Reads of one size in pulses: the same number at equal gaps, then none for a while.
    Pulsed {
        /// Reads in a pulse.
        reads: u32,
        /// The share of time in which a pulse lasts, above 0 and at most 1.
        on_share: f64,
        /// The size of each read.
        size: Bytes,
    },
}

/// The server that answers a tenant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TenantServer {
    /// The emulated SSD that all tenants share, behind a proxy.
    Ssd,
    /// An emulated disk with one channel for this tenant alone.
    Disk {
        /// The share of time during which the tenant keeps it busy.
        busy: f64,
    },
    /// A volume in memory (nbdkit) for this tenant alone.
    Memory,
    /// One memcached for all tenants; every request is a lookup.
    Cache,
}

/// Resource that all tenants of an experiment share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// The emulated SSD behind the proxy.
    Device,
    /// The link on which all answers leave the server's host.
    Link,
}

/// A workload with an SLO, called tenant as in the papers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExperimentTenant {
    /// The name that the paper gives it.
    pub name: &'static str,
    pub source: TenantSource,
    /// The server that answers it.
    pub server: TenantServer,
    /// The share of the bottleneck that it needs, as the plan assumes.
    pub load: f64,
    /// The percentile of its SLO, 0 to 100.
    pub percentile: f64,
}

/// A workload without an SLO that copies a volume as fast as it may: it always has the same number of reads in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundCopy {
    /// Reads in flight.
    pub in_flight: u32,
    /// The size of each read; they are sequential.
    pub size: Bytes,
}

/// Rule that sets the SLOs of a case, mostly from bounds of the analysis; see [`crate::experiment`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SloRule {
    /// The last tenant, which needs most of the device, has the tightest SLO, as the text to figure 3.3 says: 1.1 times
    /// its bound at the lowest priority. Each other tenant has 1.1 times that SLO, or 1.1 times its own bound if that
    /// is more.
    LastTightest,
    /// 1.1 times each tenant's bound with priorities by the bound that each tenant has alone: SLOs that can
    /// be promised to all at once.
    OwnBound,
    /// Each tenant has 1.1 times its bound at a priority below those of the tenants before it.
    InOrder,
    /// The SLOs are those of the first case.
    AsFirstCase,
    /// The tenants ask for these latencies, in seconds. They arrive one after the other, and each is admitted if the
    /// analysis says that all SLOs are kept with it.
    Requested(&'static [f64]),
}

/// A variant of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExperimentCase {
    /// Difference from the other cases; empty for a single case.
    pub name: &'static str,
    /// The workloads with SLOs.
    pub tenants: &'static [ExperimentTenant],
    pub slos: SloRule,
    /// Index of a tenant that sends another load than planned, and that load as a share of the bottleneck.
    /// Its promise is void.
    pub misbehaves: Option<(usize, f64)>,
}

/// An experiment of a paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabExperiment {
    /// The name in commands and output.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Claim of the paper.
    pub claim: &'static str,
    pub bottleneck: Bottleneck,
    /// The cases in the order in which they are played.
    pub cases: &'static [ExperimentCase],
    /// The workload without an SLO beside the tenants.
    pub copy: Option<BackgroundCopy>,
    /// The policies that are compared, the protecting one last.
    pub policies: &'static [PolicyName],
    /// Default observation time of each run; long enough to decide every promise.
    pub duration: Nanos,
    /// Default time before the observation.
    pub warm_up: Nanos,
}

impl LabExperiment {
    /// Returns the policies that can be run in the experiment. The proxy of the emulated SSD has all; the link
    /// has those that kernels of hosts enforce.
    pub fn offered_policies(&self) -> &'static [PolicyName] {
        match self.bottleneck {
            Bottleneck::Device => &PolicyName::ALL,
            Bottleneck::Link => self.policies,
        }
    }

    /// The emulated SSD: four channels; 4 KiB are read in 1.02 ms and written in 1.53 ms, so that it serves 3900 reads per
    /// second.
    pub const DEVICE: SsdModel = SsdModel {
        channels: 4,
        read: LinearServiceTime::new(Nanos(1_000_000), 5000),
        write: LinearServiceTime::new(Nanos(1_500_000), 8000),
        bandwidth: None,
    };
    /// The bandwidth of a host's link where links are the bottleneck; little enough that shaping costs little CPU time.
    pub(crate) const LINK_BITS_PER_S: f64 = 100e6;
}
