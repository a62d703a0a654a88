//! Any model, about servers as their enforcers use them.
//!
//! The models of this crate predict stages that interrupt what they have begun; no real stage does. [`EnforcedModel`] makes
//! of such a model one about enforced servers ([`EnforcedPath`]). What it adds depends on what the model promises:
//!
//! - [`BegunWork::WorstCase`]: the bound is that of the analysis of enforced servers alone, for every request.
//! - [`BegunWork::EveryClass`], for bounds at a percentile: all that may be begun when a request comes, whoever sent it, is
//!   work that no request overtakes ([`LatencyModel::predict_behind`]). On a link that is its shaper's burst, a packet on
//!   its way and one of each class of traffic, best effort and the link's own included. With c channels a request that
//!   leaves the device may have been served c times as long as the whole device takes, and up to c requests of the device
//!   are met again on the way out, each of them with at most the largest device time.
//! - [`BegunWork::OnePacket`], for estimates: a packet and the burst of the shaper on each link, the requests at the
//!   device, and the request's own service, each at its largest, are added to the latency. This is an allowance and no
//!   bound: what comes of higher priorities while they are done is not counted again. The packets that classes may send
//!   before their turn come once in twelve seconds each, which a percentile does not see.
//!
//! The worst case of enforced servers holds for every percentile: the lesser of the two counts.

mod path;

use calculus::round_up;
use model::{
    CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, Stage, UndefinedLatency,
    predicted_above,
};
pub use path::{EnforcedLatency, EnforcedPath, EnforcedSketch, bunching_allowance};

/// How what is begun enters a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BegunWork {
    /// By the worst case of enforced servers, which is the whole prediction.
    WorstCase,
    /// As work that comes first, with a packet of every class on a link.
    EveryClass,
    /// As work that comes first, with one packet on a link.
    OnePacket,
}

/// A model about servers as their enforcers use them; the model itself where nothing is known of these.
#[derive(Debug, Clone)]
pub struct EnforcedModel<M> {
    model: M,
    begun: BegunWork,
    path: Option<EnforcedPath>,
}

impl<M: LatencyModel> EnforcedModel<M> {
    /// The model about servers of this kind; `None` for servers that interrupt what they have begun.
    pub fn new(model: M, begun: BegunWork, path: Option<EnforcedPath>) -> Self {
        Self { model, begun, path }
    }

    /// The model of servers that interrupt what they have begun.
    pub fn inner(&self) -> &M {
        &self.model
    }

    /// About the same servers by another model.
    pub fn map<N>(self, other: impl FnOnce(M) -> N) -> EnforcedModel<N> {
        EnforcedModel { model: other(self.model), begun: self.begun, path: self.path }
    }

    /// The members as that model sees them.
    pub fn inner_members<'a>(
        members: &[ServerMember<'a, EnforcedSketch<M::Sketch>>],
    ) -> Vec<ServerMember<'a, M::Sketch>> {
        let inner = members.iter().map(|&ServerMember { sketch, priority, group, percentile }| {
            ServerMember { sketch: &sketch.model, priority, group, percentile }
        });
        inner.collect()
    }

    /// What each stage may have begun when a request of one of these workloads comes, seconds; nothing where servers
    /// interrupt it.
    pub fn begun_by_stage<'s>(
        &self,
        sketches: impl ExactSizeIterator<Item = &'s EnforcedSketch<M::Sketch>>,
    ) -> PerStage<f64>
    where
        M::Sketch: 's,
    {
        self.path.map_or_else(PerStage::default, |path| path.begun(sketches))
    }

    /// The worst case of each member on servers as they are enforced; `None` for servers that interrupt.
    pub fn worst_case(
        &self,
        members: &[ServerMember<'_, EnforcedSketch<M::Sketch>>],
    ) -> Option<Vec<EnforcedLatency>> {
        self.path.map(|path| path.worst_case(members))
    }

    /// The work that may be begun before a request of each member, and what its own service takes beyond its share of the
    /// device, seconds; nothing where the worst case counts it, or where servers interrupt.
    pub fn begun(&self, members: &[ServerMember<'_, EnforcedSketch<M::Sketch>>]) -> Vec<f64> {
        let Some(path) = self.path.filter(|_| self.begun != BegunWork::WorstCase) else {
            return vec![0.0; members.len()];
        };
        let (on_link, met_again) = match self.begun {
            BegunWork::EveryClass => (path.class.begun_on_link(members.len()), true),
            BegunWork::OnePacket | BegunWork::WorstCase => (path.class.packet + path.class.link_burst, false),
        };
        let links = 2.0 * on_link;
        let device = path.begun(members.iter().map(|member| member.sketch))[Stage::Storage];
        let longest = members.iter().map(|member| path.own_service(member.sketch)).fold(0.0, f64::max);
        let mut begun = Vec::with_capacity(members.len());
        for member in members {
            let own = if met_again {
                2.0 * longest + path.overtaking(member.sketch)
            } else {
                path.own_service(member.sketch)
            };
            begun.push(round_up(links + device + own + path.proxy()));
        }
        begun
    }
}

impl<M: LatencyModel> LatencyModel for EnforcedModel<M> {
    type Sketch = EnforcedSketch<M::Sketch>;

    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> Self::Sketch {
        EnforcedSketch::new(self.model.sketch(traffic), traffic)
    }

    fn predict(
        &self,
        members: &[ServerMember<'_, Self::Sketch>],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.predict_unless(&|| false, members).expect("nobody interrupts")
    }

    fn predict_unless(
        &self,
        interrupted: &(dyn Fn() -> bool + Sync),
        members: &[ServerMember<'_, Self::Sketch>],
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        let inner = Self::inner_members(members);
        let Some(worst) = self.worst_case(members) else {
            return self.model.predict_unless(interrupted, &inner);
        };
        let predictions: Vec<_> = match self.begun {
            // Whether a stage is overloaded, the model says.
            BegunWork::WorstCase => {
                let overload =
                    |prediction: Result<Prediction, _>| prediction.and(Err(UndefinedLatency::NoBound));
                self.model.predict_unless(interrupted, &inner)?.into_iter().map(overload).collect()
            }
            BegunWork::EveryClass => self.model.predict_behind(&inner, &self.begun(members)),
            BegunWork::OnePacket => {
                let predictions = self.model.predict_unless(interrupted, &inner)?.into_iter();
                let both = predictions.zip(self.begun(members));
                both.map(|(prediction, begun)| prediction.map(|prediction| prediction.later_by(begun)))
                    .collect()
            }
        };
        let both = predictions.into_iter().zip(worst);
        Some(both.map(|(prediction, worst)| lesser(prediction, worst.total)).collect())
    }

    fn all_within(&self, members: &[ServerMember<'_, Self::Sketch>], limits: &[f64]) -> bool {
        assert_eq!(members.len(), limits.len(), "one limit per member");
        let inner = Self::inner_members(members);
        let is_estimate = self.path.is_some() && self.begun == BegunWork::OnePacket;
        // The worst case can only keep more limits, and it takes time.
        if is_estimate && self.model.all_within_behind(&inner, limits, &self.begun(members)) {
            return true;
        }
        let Some(worst) = self.worst_case(members) else { return self.model.all_within(&inner, limits) };
        let is_kept = |(worst, &limit): (&EnforcedLatency, &f64)| worst.total <= limit;
        if self.begun == BegunWork::WorstCase {
            return worst.iter().zip(limits).all(is_kept);
        }
        let left = left_limits(&worst, limits);
        let is_answered = is_estimate && left == limits;
        left.iter().all(|limit| *limit == f64::INFINITY)
            || (!is_answered && self.model.all_within_behind(&inner, &left, &self.begun(members)))
    }

    fn likely_within(&self, members: &[ServerMember<'_, Self::Sketch>], limits: &[f64]) -> Option<bool> {
        let inner = Self::inner_members(members);
        if self.path.is_some() && self.begun != BegunWork::OnePacket {
            return Some(self.all_within(members, limits));
        }
        let begun = self.begun(members);
        let by_model = self.model.likely_within(&inner, &without_begun(limits, &begun));
        if by_model != Some(false) {
            return by_model;
        }
        let Some(worst) = self.worst_case(members) else { return by_model };
        let left = left_limits(&worst, limits);
        if left == limits {
            by_model
        } else {
            self.model.likely_within(&inner, &without_begun(&left, &begun))
        }
    }

    fn forget(&self) {
        self.model.forget();
    }

    fn bounds_above(&self, members: &[ServerMember<'_, Self::Sketch>], limits: &[f64]) -> Vec<(usize, f64)> {
        assert_eq!(members.len(), limits.len(), "one limit per member");
        let inner = Self::inner_members(members);
        let Some(worst) = self.worst_case(members) else { return self.model.bounds_above(&inner, limits) };
        if self.begun != BegunWork::OnePacket {
            return predicted_above(&self.predict(members), limits);
        }
        let begun = self.begun(members);
        let left = without_begun(&left_limits(&worst, limits), &begun);
        let late = self.model.bounds_above(&inner, &left).into_iter();
        late.map(|(member, bound)| (member, (bound + begun[member]).min(worst[member].total))).collect()
    }
}

/// The limits that are left for a model where the worst case does not keep them; infinite where it does.
fn left_limits(worst: &[EnforcedLatency], limits: &[f64]) -> Vec<f64> {
    let both = worst.iter().zip(limits);
    both.map(|(worst, &limit)| if worst.total <= limit { f64::INFINITY } else { limit }).collect()
}

/// The limits less the work that is begun, both in seconds.
fn without_begun(limits: &[f64], begun: &[f64]) -> Vec<f64> {
    limits.iter().zip(begun).map(|(limit, begun)| limit - begun).collect()
}

/// The prediction, or the worst case in seconds where that is less: neither the bound nor an estimate of it exceeds that.
fn lesser(
    prediction: Result<Prediction, UndefinedLatency>,
    worst: f64,
) -> Result<Prediction, UndefinedLatency> {
    match prediction {
        Ok(prediction) => Ok(prediction.at_most(worst)),
        Err(_) if worst.is_finite() => Ok(Prediction { bound: worst, estimate: None }),
        undefined => undefined,
    }
}
