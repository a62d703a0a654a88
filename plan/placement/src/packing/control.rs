//! Control of a running search by its caller: progress, interruption, second judgement.

/// Callbacks that observe, interrupt and judge a search.
pub struct PackingControl<'a> {
    /// Asked before every question to the procedure, by several threads; a search ends at the first `true`.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Called repeatedly with the progress of the search, by several threads.
    pub watch: &'a (dyn Fn(PackingProgress) + Sync),
    /// A second judgement of what the procedure accepted. Every server passes it: a server that fails drops members
    /// until it does, and an even spread over servers one of which fails is not taken.
    pub judgement: Option<SecondJudgement<'a>>,
}

/// A judgement of servers by the indices of their members, in ascending order. Several threads ask at once, and the answers
/// depend on the members alone.
#[derive(Clone, Copy)]
pub struct SecondJudgement<'a> {
    /// Returns true if these workloads may share a server by the second judgement.
    pub confirms: &'a (dyn Fn(&[usize]) -> bool + Sync),
    /// Returns the workloads that miss the SLO on an unconfirmed server, largest factor first; empty if
    /// unknown.
    pub missing: &'a (dyn Fn(&[usize]) -> Vec<usize> + Sync),
}

impl PackingControl<'_> {
    /// A search without callbacks and without a second judgement.
    pub const UNWATCHED: PackingControl<'static> =
        PackingControl { interrupted: &|| false, watch: &|_| (), judgement: None };
}

/// Current phase of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackingPhase {
    /// It asks who keeps the SLO alone on a server.
    Alone,
    /// It asks about the servers of an even spread over this many.
    Spread(usize),
    /// It has the servers of an even spread over this many judged again.
    Confirm(usize),
    /// It places one workload after the other on this many servers.
    FirstFit(usize),
    /// It offers those whom servers had to drop to other servers.
    Offer,
    /// It says why workloads have no place.
    Explain,
}

/// Progress within a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackingProgress {
    /// The phase that is under way.
    pub phase: PackingPhase,
    /// Servers, or workloads where a phase goes through these, that are done.
    pub done: usize,
    /// Upper bound of the steps of the phase.
    pub total: usize,
}
