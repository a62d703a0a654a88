//! Ng et al., *TailClipper*: Oldest Request First against round-robin and fair sharing in chains of tiers.
//!
//! Round-robin stands for Shinjuku-gh, fair sharing by worker for CFS-gh. Beside every ORF there is the same cap without
//! age (`limited`), so that age is not credited with what the cap does. Not drawn: Figures 5 to 7 (a real
//! application and a trace that are not ours), 13a and 13c (the cost of a real scheduler's heap and its messages).

mod costs;
mod fan_in;
mod grid;
mod limit;
mod loads;
mod long;
mod readings;
mod reordering;
mod said;
mod table;
mod throughput;
mod tiers;

use crate::{Experiment, Paper};

const fn experiment(
    name: &'static str,
    title: &'static str,
    run: fn(&crate::Context) -> Result<crate::Figure, crate::FigureError>,
) -> Experiment {
    Experiment { name, paper: Paper::TailClipper, title, run }
}

pub(crate) const EXPERIMENTS: &[Experiment] = &[
    experiment("tailclipper-fig-2", "Reordering and slowdown, first come, first served", reordering::run),
    experiment("tailclipper-fig-8", "99th percentile and reordering against the rate", loads::tails),
    experiment("tailclipper-fig-9", "Mean latency against the rate", loads::means),
    experiment("tailclipper-fig-10", "Throughput at 600 requests/s", throughput::run),
    experiment("tailclipper-fig-11", "Mostly long requests: all, and the shortest", long::run),
    experiment("tailclipper-fig-12", "How many requests share the workers", limit::run),
    experiment("tailclipper-fig-13b", "More and more tiers", tiers::run),
    experiment("tailclipper-fan-in", "Two paths into one tier: what age adds to the cap", fan_in::run),
    experiment("tailclipper-table", "All distributions at loads up to 95 %", table::run),
    experiment("tailclipper-readings", "Readings of Algorithm 1", readings::run),
    experiment("tailclipper-costs", "What switching costs, and what three cores are", costs::costs),
    experiment("tailclipper-slice", "Longer slices with costs in proportion", costs::slice),
];

/// How section 5.1 was read, for all schedulers alike.
const SETTING: &str = "Section 5.1: tiers of three workers, 200 requests inside, c = 6. Three workers and a mean of \
    10 ms can do 300 requests/s, but the paper drives 600; its Figure 2 has a mean of 5 ms, and so have all \
    distributions here: 600 requests/s are a utilisation of 1, before costs. That a slice of 30 us costs 1 us of the \
    worker and 0.7 us of the dispatcher is assumed; simulated are slices of 300 us with ten times these costs \
    (tailclipper-slice compares). Fair sharing has no dispatcher, a minimum of 1 ms and a latency of 10 ms, and no \
    wake-up preemption. Other work takes each worker for 4 ms (a tick at 250 Hz) every 50 ms: with that, \
    Figure 2 reorders 36 % at a fixed demand (the paper: 40 %). 50 us between tiers. limited is ORF's cap without age.";

/// Why sizes are not judged.
const COSTS: &str = "decided by what a change of request costs and by how many processors three cores are, \
    neither of which the paper says: see tailclipper-costs";
