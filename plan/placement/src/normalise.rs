//! Normalisation: converts the demand of a trace (bytes, device time) to fractions of a server's capacity.

use crate::problem::WorkloadOnClass;
use calculus::{ArrivalCurve, CurveVertex, EnforcedClass, round_up};
use model::{PerStage, Stage};
use units::ByteRate;
use workload::Footprint;
use workload::burst::{BurstCurve, BurstEnvelope};

/// Parameters of converting a footprint to curves on a class of server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalisation {
    /// The link bandwidth in each direction.
    pub network: ByteRate,
    /// A factor on all work for behaviour beyond the trace; 1 takes the trace as it is.
    pub safety_margin: f64,
    /// True if limits must sustain the trace's mean rate for ever, because traffic continues after the trace;
    /// false for the length of the trace only, as in the thesis.
    pub sustained: bool,
    /// Non-preemptible work of the class's servers. A device that serves several requests at a time reorders
    /// answers, and those that overtake a request take its tokens at network-out. The curve there includes
    /// them: see module `links`.
    pub enforced: Option<EnforcedClass>,
}

impl Normalisation {
    /// The stage's capacity in units of work per second: thousandths of a byte, or picoseconds of device time.
    fn capacity(&self, stage: Stage) -> f64 {
        self.base_units_per_s(stage) * units::MILLI as f64
    }

    /// The stage's capacity in base units per second: bytes per second, or nanoseconds of device time.
    pub fn base_units_per_s(&self, stage: Stage) -> f64 {
        match stage {
            Stage::Storage => 1e9,
            Stage::NetworkIn | Stage::NetworkOut => self.network.bytes_per_sec(),
        }
    }

    /// The workload as it looks on a server of this class, without the latency of the idle storage stack.
    pub fn apply(&self, footprint: &Footprint) -> WorkloadOnClass {
        self.apply_reduced(footprint, |_, envelope| envelope.clone())
    }

    /// Does the same as [`Normalisation::apply`] with each envelope passed through `reduce` first.
    pub fn apply_reduced(
        &self,
        footprint: &Footprint,
        reduce: impl Fn(Stage, &BurstEnvelope) -> BurstEnvelope,
    ) -> WorkloadOnClass {
        let mean_rate = PerStage::from_fn(|stage| self.mean_rate(footprint.curve(stage), stage));
        let curves = PerStage::from_fn(|stage| {
            let envelope = reduce(stage, footprint.curve(stage).envelope());
            let least = if self.sustained { mean_rate[stage] } else { 0.0 };
            self.curve(&envelope, stage).with_sustained_rate(least)
        });
        let largest = footprint.largest_request().0 as f64;
        let largest_request = round_up(self.safety_margin * largest / self.capacity(Stage::Storage));
        let on_class =
            WorkloadOnClass { curves, mean_rate, largest_request, base_latency: 0.0, overtaking: 0.0 };
        // Work of both stages is in thousandths; capacities are too.
        let densest =
            footprint.densest_answer() * self.capacity(Stage::Storage) / self.capacity(Stage::NetworkOut);
        let overtaking = self.enforced.map_or(0.0, |class| class.overtaking(largest_request, densest));
        on_class.with_overtaking(overtaking)
    }

    /// An envelope as fractions of the stage's capacity.
    fn curve(&self, envelope: &BurstEnvelope, stage: Stage) -> ArrivalCurve {
        let scale = self.safety_margin / self.capacity(stage);
        let vertices = envelope
            .vertices()
            .iter()
            .map(|v| CurveVertex { duration: v.duration.as_secs(), work: v.work.0 as f64 * scale });
        ArrivalCurve::new(vertices.collect(), 0.0).expect("an envelope is concave and starts at duration 0")
    }

    /// The work over the time from the first to the last arrival. Work that all arrives in one instant counts
    /// as spread over one second, there being nothing to tell how often it comes back.
    fn mean_rate(&self, curve: &BurstCurve, stage: Stage) -> f64 {
        let span = (curve.last() - curve.first()).as_secs();
        let span = if span > 0.0 { span } else { 1.0 };
        self.safety_margin * curve.total().0 as f64 / self.capacity(stage) / span
    }
}
