//! Zhu, *Meeting tail latency SLOs in shared networked storage*: PriorityMeister against other policies (chapter 3).
//!
//! The traces of Table 3.1 are not public. Their replacements are chosen by one criterion that does not
//! know the outcome, the squared coefficient of variation of the gaps between arrivals: of the 41 traces,
//! the one nearest to the table's as a ratio, each used once. The rate is then scaled to the table's
//! load. The device is a disk of 7200 rpm as in §3.3.4; traces without offsets cost it an average seek
//! for each request.
//!
//! Only the second half of each run is measured (§3.3.1).

mod burstiness;
mod misbehaving;
mod policies;
mod policy_run;
mod priority_meister;
mod traces;

use crate::experiment::{Paper, PaperExperiment};

pub(crate) const EXPERIMENTS: &[PaperExperiment] = &[
    PaperExperiment {
        name: "thesis-fig-3-3",
        paper: Paper::Thesis,
        title: "SLOs kept by policy: three workloads and a copy on one disk (figures 3.3 and 3.4)",
        run: policies::run,
    },
    PaperExperiment {
        name: "thesis-fig-3-5",
        paper: Paper::Thesis,
        title: "What bursts do under feedback and under priority (figure 3.5)",
        run: burstiness::run,
    },
    PaperExperiment {
        name: "thesis-fig-3-6",
        paper: Paper::Thesis,
        title: "A workload of high priority that floods the disk (figure 3.6)",
        run: misbehaving::run,
    },
];
