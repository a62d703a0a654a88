//! What a caller wants to know of a search while it goes on, and how it ends it.

/// How a search is watched, ended early and judged.
pub struct PackingControl<'a> {
    /// Asked before every question to the procedure; a search ends at the first `true`.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Told before every question how far the search is.
    pub watch: &'a dyn Fn(PackingProgress),
    /// A second judgement, by the indices of a server's members, of what the procedure accepted. Where a server fails
    /// it, the search goes on with one more server, as long as there are servers.
    pub confirms: Option<&'a dyn Fn(&[usize]) -> bool>,
}

impl PackingControl<'_> {
    /// A search that nobody watches or interrupts, by the procedure alone.
    pub const UNWATCHED: PackingControl<'static> =
        PackingControl { interrupted: &|| false, watch: &|_| (), confirms: None };
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
