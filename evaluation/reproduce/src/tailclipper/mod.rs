//! Ng et al., *TailClipper*: Oldest Request First against round-robin and fair sharing in chains of tiers.
//!
//! Round-robin stands for Shinjuku-gh, fair sharing by worker for CFS-gh. Beside every ORF there is the same cap without
//! age (`limited`), so that age is not credited with what the cap does. Not drawn: Figures 5 and 6 (a real
//! application), 13a and 13c (the cost of a real scheduler's heap and its messages).

mod chain_length;
mod comparison_claims;
mod concurrency_limit;
mod fan_in;
mod interpretations;
mod long_requests;
mod rate_sweep;
mod reordering;
mod scenario_runs;
mod setting;
mod switching_costs;
mod table;
mod throughput;
mod trace_chains;

use crate::context::{Context, FigureError};
use crate::experiment::{Paper, PaperExperiment};
use crate::figure::ReproducedFigure;

const fn experiment(
    name: &'static str,
    title: &'static str,
    run: fn(&Context) -> Result<ReproducedFigure, FigureError>,
) -> PaperExperiment {
    PaperExperiment { name, paper: Paper::TailClipper, title, run }
}

pub(crate) const EXPERIMENTS: &[PaperExperiment] = &[
    experiment("tailclipper-fig-2", "Reordering and slowdown, first come, first served", reordering::run),
    experiment(
        "tailclipper-fig-7",
        "Two call chains of a trace, by the laws of its times",
        trace_chains::run,
    ),
    experiment("tailclipper-fig-8", "99th percentile and reordering against the rate", rate_sweep::tails),
    experiment("tailclipper-fig-9", "Mean latency against the rate", rate_sweep::means),
    experiment("tailclipper-fig-10", "Throughput at 600 requests/s", throughput::run),
    experiment("tailclipper-fig-11", "Mostly long requests: all, and the shortest", long_requests::run),
    experiment("tailclipper-fig-12", "How many requests share the workers", concurrency_limit::run),
    experiment("tailclipper-fig-13b", "More and more tiers", chain_length::run),
    experiment("tailclipper-fan-in", "Two paths into one tier: what age adds to the cap", fan_in::run),
    experiment("tailclipper-table", "All distributions at loads up to 95 %", table::run),
    experiment("tailclipper-readings", "Readings of Algorithm 1", interpretations::run),
    experiment("tailclipper-costs", "What switching costs, and what three cores are", switching_costs::costs),
    experiment("tailclipper-slice", "Longer slices with costs in proportion", switching_costs::slice),
];
