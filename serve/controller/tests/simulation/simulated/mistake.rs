//! Mistakes, injected between correct machines and the world. The judge has to find each of them; otherwise its silence
//! would prove nothing.

/// A mistake of a controller or of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// An agent reports an assignment before it is enforced.
    ReportsTooSoon,
    /// An agent enforces whatever arrives, in any order.
    AppliesLateMessages,
    /// A restarted agent takes away what its host enforces.
    ForgetsAtRestart,
    /// The controller gives all hosts the latest policy at once.
    SkipsOrder,
    /// The controller answers before it has stored.
    AnswersBeforeStoring,
    /// The controller says that an admitted workload is enforced.
    PromisesAtAdmission,
    /// The controller believes reports that a network has delayed or repeated.
    BelievesOldReports,
    /// A proxy that starts anew continues the identity of its counters.
    KeepsCountersIdentity,
    /// The controller counts what reports say as if it was new.
    CountsWholeReports,
    /// The controller takes chunks of burst curves that come again for those of another proxy.
    ReadsChunksAnew,
    /// The controller says that a renewal is enforced when it is decided.
    PromisesAtRenewal,
    /// The controller takes a renewal for one that gives back.
    GivesBackUnasked,
    /// An agent loses chunks of burst curves that the controller then believes to have.
    LosesChunks,
}

impl Mistake {
    pub const ALL: [Self; 13] = [
        Self::ReportsTooSoon,
        Self::AppliesLateMessages,
        Self::ForgetsAtRestart,
        Self::SkipsOrder,
        Self::AnswersBeforeStoring,
        Self::PromisesAtAdmission,
        Self::BelievesOldReports,
        Self::KeepsCountersIdentity,
        Self::CountsWholeReports,
        Self::ReadsChunksAnew,
        Self::PromisesAtRenewal,
        Self::GivesBackUnasked,
        Self::LosesChunks,
    ];
}
