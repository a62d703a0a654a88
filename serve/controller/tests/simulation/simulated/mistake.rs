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
}

impl Mistake {
    pub const ALL: [Self; 9] = [
        Self::ReportsTooSoon,
        Self::AppliesLateMessages,
        Self::ForgetsAtRestart,
        Self::SkipsOrder,
        Self::AnswersBeforeStoring,
        Self::PromisesAtAdmission,
        Self::BelievesOldReports,
        Self::KeepsCountersIdentity,
        Self::CountsWholeReports,
    ];
}
