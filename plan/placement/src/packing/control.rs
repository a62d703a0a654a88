//! What a caller wants to know of a search while it goes on, and how it ends it.

/// How a search is watched, ended early and judged.
pub struct PackingControl<'a> {
    /// Asked before every question to the procedure, by several threads; a search ends at the first `true`.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Told again and again how far the search is, by several threads.
    pub watch: &'a (dyn Fn(PackingProgress) + Sync),
    /// A second judgement of what the procedure accepted. Every server passes it: a server that fails drops members
    /// until it does, and an even spread over servers one of which fails is not taken.
    pub judgement: Option<SecondJudgement<'a>>,
}

/// A judgement of servers by the indices of their members, in ascending order. Several threads ask at once, and the answers
/// depend on the members alone.
#[derive(Clone, Copy)]
pub struct SecondJudgement<'a> {
    /// Whether these share a server rightly.
    pub confirms: &'a (dyn Fn(&[usize]) -> bool + Sync),
    /// Who misses the SLO on a server that is not confirmed, by the largest factor first; may be unknown, and empty.
    pub missing: &'a (dyn Fn(&[usize]) -> Vec<usize> + Sync),
}

impl PackingControl<'_> {
    /// A search that nobody watches or interrupts, by the procedure alone.
    pub const UNWATCHED: PackingControl<'static> =
        PackingControl { interrupted: &|| false, watch: &|_| (), judgement: None };
}

/// What a search does at the moment.
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

/// How far a phase of the search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackingProgress {
    /// The phase that is under way.
    pub phase: PackingPhase,
    /// Servers, or workloads where a phase goes through these, that are done.
    pub done: usize,
    /// How many of them the phase has to do at most.
    pub total: usize,
}
