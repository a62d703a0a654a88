//! The ways to choose limits, by name.

/// A way to choose rate limits for the workloads of one server. All of them guarantee Eq. 5.5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LimitMethod {
    /// Limits that minimise the largest bound ÷ SLO under Eq. 5.5 itself.
    Exact,
    /// The linear program of thesis Eq. 5.2–5.7 (WorkloadCompactor), with a general LP solver.
    Relaxed,
    /// Effective bandwidth: no bursts, the SLO split evenly over the stages (§5.3.1).
    EffectiveEven,
    /// Effective bandwidth with the split that needs the least rate at the stage that needs most; where that does not
    /// fit, the even split.
    EffectiveBest,
    /// The knee of each r-b curve, the point that minimises r + b (§5.3.1).
    Knee,
    /// `k` × the mean rate, and the burst that the curve then asks for (Silo's rule in §5.3.1).
    Average(f64),
}

impl LimitMethod {
    /// The name in files and flags.
    pub fn name(&self) -> String {
        match self {
            Self::Exact => "tailwright".into(),
            Self::Relaxed => "workload-compactor".into(),
            Self::EffectiveEven => "effective-bandwidth-even".into(),
            Self::EffectiveBest => "effective-bandwidth".into(),
            Self::Knee => "knee".into(),
            Self::Average(k) => format!("average-{k}"),
        }
    }
}
