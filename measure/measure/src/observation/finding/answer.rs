//! The finding as data: the type that text, JSON, page and metrics read, and its inputs.

use crate::observation::finding::caveats::Caveat;
use crate::observation::ideal::IdealComparison;
use crate::observation::mean_wait::VarianceView;
use crate::observation::sample::RequestRun;
use observe::{ObservationReport, ProbeSettings};
use schemars::JsonSchema;
use serde::Serialize;

/// Verdict on the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingVerdict {
    /// A cause makes p99 several times longer than usual.
    Unusual,
    /// A cause does, but in few parts of the run: it may have happened once.
    NotRepeated,
    /// No cause does.
    NothingUnusual,
    /// There are too few requests to tell.
    TooFewRequests,
    /// There is no request.
    NoRequests,
}

impl FindingVerdict {
    /// Returns the name of the verdict in all outputs for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unusual => "unusual",
            Self::NotRepeated => "not-repeated",
            Self::NothingUnusual => "nothing-unusual",
            Self::TooFewRequests => "too-few-requests",
            Self::NoRequests => "no-requests",
        }
    }
}

/// Name of the thing that takes the time of a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Culprit {
    /// Another process, or several of one name.
    Process {
        /// The name of its thread.
        name: String,
        /// The number of the process with most of the time.
        pid: u32,
        /// The number of further processes with this name.
        further: usize,
    },
    /// A client for whose requests the others wait.
    Client {
        /// Its address, with the port of one of its connections where all clients have one address.
        address: String,
        /// The number of its further connections.
        further_connections: usize,
    },
    /// A control group with a CPU quota.
    QuotaGroup {
        /// Its path in the hierarchy of groups.
        group: String,
        /// CPU time in a period, in microseconds; null if it has no quota any more.
        quota_us: Option<u64>,
        /// The period, in microseconds.
        period_us: Option<u64>,
    },
    /// Answers that are larger than those of faster requests.
    LargeAnswers {
        /// The mean size in the tail.
        mean_bytes: u64,
        /// The mean size in the faster half.
        usual_bytes: u64,
    },
}

/// The cause with most of the tail's time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DominatingCause {
    /// The name of the cause, as in `causes`.
    pub cause: &'static str,
    /// Its share of the time of the requests at or above p99.
    pub share: f64,
    /// Name behind it, if it has one.
    pub culprit: Option<Culprit>,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NextStep {
    /// A command that can be pasted into a shell.
    Command(String),
    /// A step in words.
    Words(String),
}

/// The answer of an observation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// The whole answer in one sentence.
    pub sentence: String,
    /// Verdict on the tail.
    pub verdict: FindingVerdict,
    /// Requests and bytes that were not seen; no other field is about them.
    pub caveats: Vec<Caveat>,
    /// p99 of T6 − T1, in seconds.
    pub p99_s: Option<f64>,
    /// The lower end of its 95 % interval.
    pub p99_low_s: Option<f64>,
    /// The upper end; null with too few requests.
    pub p99_high_s: Option<f64>,
    /// p99 ÷ that of the ideal: the same arrivals in one queue with constant service, or the usual p99 if that is shorter.
    pub times_ideal: Option<f64>,
    /// p99 if each cause took no more than its usual time, in seconds.
    pub usual_p99_s: Option<f64>,
    /// Cause with most of the tail's time.
    pub dominating: Option<DominatingCause>,
    /// Causes that were compared with their usual time.
    pub tested: Vec<&'static str>,
    /// The number of requests.
    pub requests: u64,
    /// Number of requests that a verdict takes, if there are too few.
    pub requests_needed: Option<usize>,
    /// Next step for the reader.
    pub next: Option<NextStep>,
}

impl Finding {
    /// The sentence up to the command that it ends with, and the command if there is one.
    pub fn sentence_and_command(&self) -> (&str, Option<&str>) {
        match &self.next {
            Some(NextStep::Command(command)) => match self.sentence.strip_suffix(command.as_str()) {
                Some(sentence) => (sentence.trim_end(), Some(command)),
                None => (&self.sentence, None),
            },
            _ => (&self.sentence, None),
        }
    }
}

/// Inputs of a finding.
pub(in crate::observation) struct FindingInput<'a> {
    pub(in crate::observation) asked: &'a ProbeSettings,
    pub(in crate::observation) report: &'a ObservationReport,
    pub(in crate::observation) runs: &'a [RequestRun],
    pub(in crate::observation) ideal: Option<&'a IdealComparison>,
    pub(in crate::observation) variance: Option<&'a VarianceView>,
    /// Tells if a process belongs to the kernel.
    pub(in crate::observation) is_kernel_thread: fn(u32) -> bool,
    /// Tells if a socket of this machine listens at one of the ports.
    pub(in crate::observation) is_listening: bool,
}
