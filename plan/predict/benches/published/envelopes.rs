//! Envelopes that the published bound assumes of traffic, beside the traffic itself.
//!
//! The bound holds if `ln E e^{θA(u)} ≤ θ·ρ(θ)·u` for the work A(u) of each stream in a window of every length u, at the θ that the
//! bound uses. At a uniformly random place of a circular trace the left side is known exactly.

use calculus::snc::{MarkovArrivals, MgfEnvelope as _};
use model::{CircularTrace, Job, PerStage, ServerMember, Stage};
use predict::{SncByStage, StageSketch, markov_arrivals};
use units::Nanos;
use workload::windows::{CircularWork, WorkDistribution};

/// The stages of a link.
const STAGES: [Stage; 2] = [Stage::NetworkIn, Stage::NetworkOut];
/// The windows, from 0.1 ms on, two per octave up to some 10 s.
const WINDOWS: i32 = 34;

/// The work of one stream at one stage, and its fitted process.
struct StageTraffic {
    fitted: MarkovArrivals,
    /// Windows in seconds with their laws.
    windows: Vec<(f64, WorkDistribution)>,
}

impl StageTraffic {
    fn new(model: &SncByStage, traffic: &CircularTrace<Job>, stage: Stage) -> Option<Self> {
        let fitted = markov_arrivals(&model.fitted(traffic, stage, Nanos::ZERO)?)?;
        let mut jobs = traffic.items().to_vec();
        for job in &mut jobs {
            let work = job.work[stage];
            job.work = PerStage::from_fn(|other| if other == stage { work } else { Nanos::ZERO });
        }
        let work = CircularWork::new(&jobs, traffic.period());
        let mut windows = Vec::new();
        for index in 0..WINDOWS {
            let length = 1e-4 * (f64::from(index) / 2.0).exp2();
            windows.push((length, work.work_in_window(Nanos::from_secs(length)?)));
        }
        Some(Self { fitted, windows })
    }

    /// True if all windows keep the envelope at this exponent.
    fn keeps_envelope(&self, theta: f64) -> bool {
        let Some(bound) = self.fitted.bound_at(theta) else { return false };
        self.windows.iter().all(|(length, law)| {
            // Laws round work up by at most a sixteenth.
            let exponent = |work: f64| theta * work * 16.0 / 17.0;
            let most = exponent(law.max());
            let terms = law.atoms().iter().map(|atom| atom.probability * (exponent(atom.work) - most).exp());
            most + terms.sum::<f64>().ln() <= theta * bound.rate * length
        })
    }
}

/// The traffic of all streams.
pub(super) struct Envelopes {
    streams: Vec<[Option<StageTraffic>; 2]>,
}

impl Envelopes {
    pub(super) fn new(model: &SncByStage, traffic: &[CircularTrace<Job>]) -> Self {
        let stream =
            |traffic: &CircularTrace<Job>| STAGES.map(|stage| StageTraffic::new(model, traffic, stage));
        Self { streams: traffic.iter().map(stream).collect() }
    }

    /// True if a member's stream and all that go before it keep their envelopes at the exponents of its bound; `which` gives
    /// the stream of each member.
    pub(super) fn hold(
        &self,
        model: &SncByStage,
        members: &[ServerMember<'_, StageSketch>],
        (which, tagged): (&[usize], usize),
    ) -> bool {
        let Ok(terms) = model.stages(members, tagged) else { return false };
        terms.iter().all(|term| {
            let index = usize::from(term.stage == Stage::NetworkOut);
            let ahead = members.iter().zip(which);
            let mut ahead = ahead
                .filter(|(member, _)| member.priority[term.stage] <= members[tagged].priority[term.stage]);
            ahead.all(|(_, stream)| {
                self.streams[*stream][index]
                    .as_ref()
                    .is_some_and(|traffic| traffic.keeps_envelope(term.latency.theta))
            })
        })
    }
}
