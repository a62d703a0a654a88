//! Arrival and service processes as expressions of the operators (thesis Theorems 2–5).
//!
//! A process knows the independent sources behind it. An operator takes its independent form exactly when
//! the sources of its operands are disjoint, else the dependent one, whose Hölder weights stay free until
//! the expression is evaluated: w_i = 1/x_i in the theorems, positive, with sum 1. The k−1 binary dependent
//! operations that merge k processes reach exactly the weights of one Hölder inequality over k factors,
//! which is what a sum keeps.

use super::bound::{MgfBound, MgfEnvelope};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The number of an independent source of randomness. Workloads that may burst together share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RandomSource(pub usize);

/// The step of discrete time, seconds. Output, convolution and latency sum over the steps of an interval:
/// the bound grows by ln(1/step)/θ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeStep(f64);

impl TimeStep {
    /// A step of this many seconds; `None` unless they are positive and finite.
    pub fn new(seconds: f64) -> Option<Self> {
        (seconds > 0.0 && seconds.is_finite()).then_some(Self(seconds))
    }

    /// The length of the step in seconds.
    pub fn seconds(self) -> f64 {
        self.0
    }

    /// The burst −ln(1 − e^{−θ·gap·step})/θ that stands for the sum over all earlier steps. `None` unless `gap` > 0.
    pub(super) fn union_burst(self, theta: f64, gap: f64) -> Option<f64> {
        (gap > 0.0).then(|| -(-(-theta * gap * self.0).exp_m1()).ln() / theta)
    }
}

/// Work that arrives, as an expression of sources and operators. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ArrivalProcess(Arc<ArrivalExpression>);

/// The work that a queue, or several in sequence, can do for some traffic, as an expression. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServiceProcess(Arc<ServiceExpression>);

#[derive(Debug)]
struct ArrivalExpression {
    form: ArrivalForm,
    sources: BTreeSet<RandomSource>,
}

#[derive(Debug)]
enum ArrivalForm {
    Source { name: String, envelope: Arc<dyn MgfEnvelope> },
    Sum { parts: Vec<ArrivalProcess>, dependent: bool },
    Output { arrivals: ArrivalProcess, service: ServiceProcess, dependent: bool },
}

#[derive(Debug)]
struct ServiceExpression {
    form: ServiceForm,
    sources: BTreeSet<RandomSource>,
}

#[derive(Debug)]
enum ServiceForm {
    Constant { name: String, rate: f64 },
    Leftover { service: ServiceProcess, arrivals: ArrivalProcess, dependent: bool },
    Convolution { first: ServiceProcess, second: ServiceProcess, dependent: bool },
}

impl ArrivalProcess {
    /// The process of a workload. Two workloads are dependent exactly when they have a source in common.
    pub fn source(name: &str, source: RandomSource, envelope: Arc<dyn MgfEnvelope>) -> Self {
        Self::new(ArrivalForm::Source { name: name.to_owned(), envelope }, BTreeSet::from([source]))
    }

    /// The aggregation operator ⊕ (Theorem 4) over all parts at once: independent when they are pairwise
    /// disjoint, else Hölder over all. One part is itself, none is no traffic.
    pub fn sum(mut parts: Vec<Self>) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let sources: BTreeSet<RandomSource> = parts.iter().flat_map(Self::sources).copied().collect();
        let dependent = sources.len() < parts.iter().map(|part| part.sources().len()).sum();
        Self::new(ArrivalForm::Sum { parts, dependent }, sources)
    }

    /// The output operator ⊘ (Theorem 3): departures of a queue that offers `service`.
    #[must_use]
    pub fn output(&self, service: &ServiceProcess) -> Self {
        let dependent = !self.is_independent_of(service.sources());
        let sources = self.sources().union(service.sources()).copied().collect();
        let form = ArrivalForm::Output { arrivals: self.clone(), service: service.clone(), dependent };
        Self::new(form, sources)
    }

    /// The independent sources of its randomness.
    pub fn sources(&self) -> &BTreeSet<RandomSource> {
        &self.0.sources
    }

    /// Returns true if the process has none of these sources.
    pub(crate) fn is_independent_of(&self, sources: &BTreeSet<RandomSource>) -> bool {
        self.sources().is_disjoint(sources)
    }

    /// The number of binary operations in the expression that take their dependent form.
    pub fn dependent_operations(&self) -> usize {
        let mut blocks = Vec::new();
        self.blocks(&mut blocks);
        blocks.iter().map(|factors| factors - 1).sum()
    }

    fn new(form: ArrivalForm, sources: BTreeSet<RandomSource>) -> Self {
        Self(Arc::new(ArrivalExpression { form, sources }))
    }

    /// The number of factors of each Hölder inequality, in the order of evaluation.
    pub(super) fn blocks(&self, blocks: &mut Vec<usize>) {
        match &self.0.form {
            ArrivalForm::Source { .. } => (),
            ArrivalForm::Sum { parts, dependent } => {
                blocks.extend(dependent.then_some(parts.len()));
                parts.iter().for_each(|part| part.blocks(blocks));
            }
            ArrivalForm::Output { arrivals, service, dependent } => {
                blocks.extend(dependent.then_some(2));
                arrivals.blocks(blocks);
                service.blocks(blocks);
            }
        }
    }

    /// The bound ρ(θ), σ(θ) under the weights that `point` holds.
    pub(super) fn bound(&self, theta: f64, point: &mut EvaluationPoint<'_>) -> Option<MgfBound> {
        let bound = match &self.0.form {
            ArrivalForm::Source { envelope, .. } => envelope.bound_at(theta)?,
            ArrivalForm::Sum { parts, dependent } => {
                let weights = point.take(*dependent, parts.len());
                let mut total = MgfBound { rate: 0.0, burst: 0.0 };
                for (k, part) in parts.iter().enumerate() {
                    total = total.plus(part.bound(theta / weight(weights, k), point)?);
                }
                total
            }
            ArrivalForm::Output { arrivals, service, dependent } => {
                let weights = point.take(*dependent, 2);
                let a = arrivals.bound(theta / weight(weights, 0), point)?;
                let s = service.bound(theta / weight(weights, 1), point)?;
                let union = point.step.union_burst(theta, -s.rate - a.rate)?;
                MgfBound { rate: a.rate, burst: a.burst + s.burst + union }
            }
        };
        point.record(self, theta, bound);
        bound.finite()
    }
}

impl ServiceProcess {
    /// A server of constant rate, a fraction of the capacity.
    pub fn constant(name: &str, rate: f64) -> Self {
        Self::new(ServiceForm::Constant { name: name.to_owned(), rate }, BTreeSet::new())
    }

    /// The leftover operator ⊖ (Theorem 2): service left after `arrivals` of higher or equal priority.
    #[must_use]
    pub fn leftover(&self, arrivals: &ArrivalProcess) -> Self {
        let dependent = !arrivals.is_independent_of(self.sources());
        let sources = self.sources().union(arrivals.sources()).copied().collect();
        let form = ServiceForm::Leftover { service: self.clone(), arrivals: arrivals.clone(), dependent };
        Self::new(form, sources)
    }

    /// The convolution operator ⊗ (Theorem 5): this queue and then `next` as one.
    ///
    /// Theorem 5 does not cover equal rates and advises to make one server slightly slower; the bound here
    /// raises the ρ of the slower until the two differ by 1 % of it, which costs σ −ln(1 − e^{−θ·gap·step})/θ.
    #[must_use]
    pub fn convolve(&self, next: &Self) -> Self {
        let dependent = !self.sources().is_disjoint(next.sources());
        let sources = self.sources().union(next.sources()).copied().collect();
        let form = ServiceForm::Convolution { first: self.clone(), second: next.clone(), dependent };
        Self::new(form, sources)
    }

    /// The independent sources of its randomness.
    pub fn sources(&self) -> &BTreeSet<RandomSource> {
        &self.0.sources
    }

    fn new(form: ServiceForm, sources: BTreeSet<RandomSource>) -> Self {
        Self(Arc::new(ServiceExpression { form, sources }))
    }

    /// The number of factors of each Hölder inequality, in the order of evaluation.
    pub(super) fn blocks(&self, blocks: &mut Vec<usize>) {
        let (dependent, inner): (_, [&dyn Blocks; 2]) = match &self.0.form {
            ServiceForm::Constant { .. } => return,
            ServiceForm::Leftover { service, arrivals, dependent } => (dependent, [service, arrivals]),
            ServiceForm::Convolution { first, second, dependent } => (dependent, [first, second]),
        };
        blocks.extend(dependent.then_some(2));
        inner.iter().for_each(|operand| operand.collect(blocks));
    }

    /// The bound ρ(θ), σ(θ) under the weights that `point` holds; ρ is negative.
    pub(super) fn bound(&self, theta: f64, point: &mut EvaluationPoint<'_>) -> Option<MgfBound> {
        let bound = match &self.0.form {
            ServiceForm::Constant { rate, .. } => MgfBound { rate: -rate, burst: 0.0 },
            ServiceForm::Leftover { service, arrivals, dependent } => {
                let weights = point.take(*dependent, 2);
                let s = service.bound(theta / weight(weights, 0), point)?;
                s.plus(arrivals.bound(theta / weight(weights, 1), point)?)
            }
            ServiceForm::Convolution { first, second, dependent } => {
                let weights = point.take(*dependent, 2);
                let s = first.bound(theta / weight(weights, 0), point)?;
                let t = second.bound(theta / weight(weights, 1), point)?;
                convolved(theta, point.step, s, t)?
            }
        };
        point.record(self, theta, bound);
        bound.finite()
    }
}

/// The part of the rate by which two queues must differ for their convolution.
const CONVOLUTION_GAP: f64 = 0.01;

/// The bound of two queues in sequence (Theorem 5), whose rates are made to differ where they do not.
fn convolved(theta: f64, step: TimeStep, s: MgfBound, t: MgfBound) -> Option<MgfBound> {
    let slower = s.rate.max(t.rate);
    let difference = (s.rate - t.rate).abs();
    let gap = difference.max(CONVOLUTION_GAP * slower.abs());
    let burst = s.burst + t.burst + step.union_burst(theta, gap)?;
    Some(MgfBound { rate: slower + (gap - difference), burst })
}

/// An operand that may have blocks of Hölder weights of its own.
trait Blocks {
    fn collect(&self, blocks: &mut Vec<usize>);
}

impl Blocks for ArrivalProcess {
    fn collect(&self, blocks: &mut Vec<usize>) {
        self.blocks(blocks);
    }
}

impl Blocks for ServiceProcess {
    fn collect(&self, blocks: &mut Vec<usize>) {
        self.blocks(blocks);
    }
}

/// The parameters at which an expression is evaluated.
pub(super) struct EvaluationPoint<'a> {
    pub(super) step: TimeStep,
    /// The blocks of Hölder weights that have not been used yet, in the order of evaluation.
    pub(super) weights: &'a [f64],
    /// Called with the expression, θ and bound of each process, if recording.
    pub(super) record: Option<&'a mut dyn FnMut(String, f64, MgfBound)>,
}

impl<'a> EvaluationPoint<'a> {
    /// The next block of weights, for an operation that takes its dependent form.
    pub(super) fn take(&mut self, dependent: bool, factors: usize) -> Option<&'a [f64]> {
        dependent.then(|| {
            let (block, rest) = self.weights.split_at(factors);
            self.weights = rest;
            block
        })
    }

    /// Reports the bound of a process to the caller, if one asked for it.
    fn record(&mut self, process: &dyn fmt::Display, theta: f64, bound: MgfBound) {
        if let Some(record) = &mut self.record {
            record(process.to_string(), theta, bound);
        }
    }
}

/// The Hölder weight of a factor; 1 for an independent operation.
pub(super) fn weight(weights: Option<&[f64]>, factor: usize) -> f64 {
    weights.map_or(1.0, |w| w[factor])
}

impl fmt::Display for ArrivalProcess {
    /// The expression; dependent operations carry an asterisk.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.form {
            ArrivalForm::Source { name, .. } => f.write_str(name),
            ArrivalForm::Sum { parts, .. } if parts.is_empty() => f.write_str("0"),
            ArrivalForm::Sum { parts, dependent } => {
                for (k, part) in parts.iter().enumerate() {
                    match k {
                        0 => write!(f, "({part}")?,
                        _ => write!(f, " ⊕{} {part}", star(*dependent))?,
                    }
                }
                f.write_str(")")
            }
            ArrivalForm::Output { arrivals, service, dependent } => {
                write!(f, "({arrivals} ⊘{} {service})", star(*dependent))
            }
        }
    }
}

impl fmt::Display for ServiceProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.form {
            ServiceForm::Constant { name, .. } => f.write_str(name),
            ServiceForm::Leftover { service, arrivals, dependent } => {
                write!(f, "({service} ⊖{} {arrivals})", star(*dependent))
            }
            ServiceForm::Convolution { first, second, dependent } => {
                write!(f, "({first} ⊗{} {second})", star(*dependent))
            }
        }
    }
}

/// The mark of a dependent operation.
pub(super) fn star(dependent: bool) -> &'static str {
    if dependent { "*" } else { "" }
}
