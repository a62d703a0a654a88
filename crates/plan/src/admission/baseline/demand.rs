use calculus::{ArrivalCurve, Vertex};
use model::{PerStage, Stage};
use predict::Traffic;
use units::{Nanos, Work};
use workload::burst::{Arrival, BurstBuilder};

/// What the baselines know of a workload: the arrival curve of its trace, repeated for ever, by stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// In seconds of the stage; sustained rate is the mean.
    pub curves: PerStage<ArrivalCurve>,
}

impl Demand {
    /// The exact curves of a circular trace. Two rounds hold every interval that is no longer than one; a
    /// longer one has one round's mean rate more for each round, and the sustained rate covers it.
    ///
    /// # Panics
    /// When two rounds are more than 2^64 ps of work or 2^64 ns long: 213 days of work.
    pub fn of(traffic: &Traffic) -> Self {
        let utilisation = traffic.utilisation();
        let curve = |stage| circular(traffic, stage).with_sustained_rate(utilisation[stage]);
        Self { curves: PerStage::from_fn(curve) }
    }

    /// Whether the workload has work on storage.
    pub(super) fn uses_storage(&self) -> bool {
        self.curves[Stage::Storage].vertices().iter().any(|v| v.work > 0.0)
    }
}

/// The curve over two rounds.
fn circular(traffic: &Traffic, stage: Stage) -> ArrivalCurve {
    let mut burst = BurstBuilder::new();
    for round in [Nanos::ZERO, traffic.period()] {
        for job in traffic.jobs() {
            let work = Work(job.work[stage].0.saturating_mul(units::MILLI));
            burst.push(Arrival { at: round + job.arrival, work }).expect("sorted, and short of 2^64");
        }
    }
    let curve = burst.finish().expect("traffic has jobs");
    let scale = 1e-9 / units::MILLI as f64;
    let vertex = |v: &workload::burst::Vertex| Vertex {
        duration: v.duration.as_secs(),
        work: calculus::round_up(v.work.0 as f64 * scale),
    };
    let vertices = curve.envelope().vertices().iter().map(vertex).collect();
    ArrivalCurve::new(vertices, 0.0).expect("an envelope is concave and starts at duration 0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Job;

    #[test]
    fn the_curve_of_a_circular_trace_crosses_the_seam() {
        // 1 ms of work at 0 s and 9 s, round of 10 s: across the seam, 2 ms arrive within 1 s.
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let job =
            |at| Job { arrival: ms(at), work: PerStage::from_fn(|s| ms(u64::from(s == Stage::NetworkIn))) };
        let demand = Demand::of(&Traffic::new(vec![job(0), job(9000)], ms(10_000)).unwrap());
        let curve = &demand.curves[Stage::NetworkIn];
        for (duration, work) in [(0.0, 0.001), (1.0, 0.002), (10.0, 0.003), (11.0, 0.004)] {
            assert!(curve.work_within(duration) >= work, "{duration}");
        }
        assert!((curve.work_within(1.0) - 0.002).abs() < 1e-12);
        assert!((curve.sustained_rate() - 0.0002).abs() < 1e-15);
        assert!(!demand.uses_storage());
    }
}
