//! Zhu, *Meeting tail latency SLOs in shared networked storage*: PriorityMeister against other policies (chapter 3), and
//! WorkloadCompactor against other choices of limits (chapter 5, in [`compacting`]).
//!
//! The traces of Table 3.1 are not public. Their replacements are chosen by one criterion that does not
//! know the outcome, the squared coefficient of variation of the gaps between arrivals: of the 41 traces,
//! the one nearest to the table's as a ratio, each used once. The rate is then scaled to the table's
//! load. The device is a disk of 7200 rpm as in §3.3.4; traces without offsets cost it an average seek
//! for each request.
//!
//! Only the second half of each run is measured (§3.3.1).

mod burstiness;
mod compacting;
mod misbehaving;
mod permutations;
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
    PaperExperiment {
        name: "thesis-fig-3-9",
        paper: Paper::Thesis,
        title: "Three SLOs in all six orders, by policy (figure 3.9)",
        run: permutations::run,
    },
    PaperExperiment {
        name: "thesis-fig-5-4",
        paper: Paper::Thesis,
        title: "Servers that each method of choosing limits needs (figures 5.1, 5.4, 5.8 and 5.12)",
        run: compacting::servers,
    },
    PaperExperiment {
        name: "thesis-fig-5-5",
        paper: Paper::Thesis,
        title: "Latencies under WorkloadCompactor, on traffic that its limits were not chosen for (figures 5.5 and 5.6)",
        run: compacting::measured,
    },
    PaperExperiment {
        name: "thesis-fig-5-9",
        paper: Paper::Thesis,
        title: "Servers for larger sets with random SLOs (figure 5.9)",
        run: compacting::larger_sets,
    },
];
