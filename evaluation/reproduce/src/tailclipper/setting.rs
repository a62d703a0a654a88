//! Our reading of the paper's evaluation, in text that several figures share.

/// Reading of section 5.1 for all schedulers; the beginning of most readings.
pub(super) const SETTING: &str = "Section 5.1: tiers of three workers, 200 requests inside, c = 6. Three workers and a mean of \
    10 ms can do 300 requests/s, but the paper drives 600; its Figure 2 has a mean of 5 ms, and so have all \
    distributions here: 600 requests/s are a utilisation of 1, before costs. That a slice of 30 us costs 1 us of the \
    worker and 0.7 us of the dispatcher is assumed; simulated are slices of 300 us with ten times these costs \
    (tailclipper-slice compares). Fair sharing has no dispatcher, a minimum of 1 ms and a latency of 10 ms, and no \
    wake-up preemption. Other work takes each worker for 4 ms (a tick at 250 Hz) every 50 ms: with that, \
    Figure 2 reorders 36 % at a fixed demand (the paper: 40 %). 50 us between tiers. limited is ORF's cap without age.";

/// The law of demands under which round-robin is worse than first come, first served at any cost of a
/// change of request, because requests of equal demand only delay each other when they share a worker.
pub(super) const WITHOUT_VARIANCE: &str = "fixed";
/// Why claims about the direction of means and throughput are open, where demands vary at least as exponential ones do.
pub(super) const DIRECTION_OF_COSTS: &str = "decided by what a change of request costs, which the paper does not say: without \
    costs round-robin is no worse, with enough of them it is (tailclipper-costs)";
/// Why claims about means and throughput under CFS are open.
pub(super) const COSTS_OF_CFS: &str = "decided by what a change of request costs, which the paper says neither for its own scheduler nor for CFS";
/// Why age may add more than was conjectured.
pub(super) const MORE_BY_AGE: &str = "the 5 % are from prototypes; here age does more";

/// Why claims about the size of an effect are open.
pub(super) const COSTS_UNKNOWN: &str = "decided by what a change of request costs and by how many processors three cores are, \
    neither of which the paper says: see tailclipper-costs";
