//! Data of the baselines about a workload: the arrival curves of its trace.

use calculus::{ArrivalCurve, CurveVertex};
use model::{CircularTrace, Job, PerStage, Stage};
use units::{Nanos, Work};
use workload::burst::{BurstBuilder, BurstError, StageArrival};

/// The arrival curve of a workload at each stage, of its trace repeated for ever.
#[derive(Debug, Clone, PartialEq)]
pub struct StageCurves {
    /// The curves in seconds of the stage's capacity; their sustained rate is the mean rate.
    pub curves: PerStage<ArrivalCurve>,
}

impl StageCurves {
    /// The exact curves of a circular trace. Two rounds hold every interval that is no longer than one; a
    /// longer one has one round's mean rate more for each round, and the sustained rate covers it.
    ///
    /// # Errors
    /// When two rounds are too long or too much work to be counted: 2^64 ps of work are 213 days.
    pub fn from_trace(traffic: &CircularTrace<Job>) -> Result<Self, BurstError> {
        let utilisation = traffic.utilisation();
        let [network_in, storage, network_out] = PerStage::from_fn(|stage| {
            let curve = curve_of_two_rounds(traffic, stage)?;
            Ok(curve.with_sustained_rate(utilisation[stage]))
        })
        .into_array();
        let curves = [network_in?, storage?, network_out?];
        Ok(Self { curves: PerStage::from_fn(|stage| curves[stage as usize].clone()) })
    }

    /// Returns true if the workload has work on storage.
    pub(super) fn uses_storage(&self) -> bool {
        self.curves[Stage::Storage].vertices().iter().any(|v| v.work > 0.0)
    }
}

/// The arrival curve of two rounds of a circular trace.
fn curve_of_two_rounds(traffic: &CircularTrace<Job>, stage: Stage) -> Result<ArrivalCurve, BurstError> {
    let mut burst = BurstBuilder::new();
    for round in [0, traffic.period().0] {
        for job in traffic.items() {
            let at = Nanos(round.checked_add(job.arrival.0).ok_or(BurstError::Overflow)?);
            let work = Work(job.work[stage].0.checked_mul(units::MILLI).ok_or(BurstError::Overflow)?);
            burst.push(StageArrival { at, work })?;
        }
    }
    let curve = burst.finish()?;
    let scale = 1e-9 / units::MILLI as f64;
    let vertices = curve.envelope().vertices().iter().map(|v| CurveVertex {
        duration: v.duration.as_secs(),
        work: calculus::round_up(v.work.0 as f64 * scale),
    });
    Ok(ArrivalCurve::new(vertices.collect(), 0.0).expect("an envelope is concave and starts at duration 0"))
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
        let demand = StageCurves::from_trace(
            &CircularTrace::from_first_arrival(vec![job(0), job(9000)], ms(10_000)).unwrap(),
        )
        .unwrap();
        let curve = &demand.curves[Stage::NetworkIn];
        for (duration, work) in [(0.0, 0.001), (1.0, 0.002), (10.0, 0.003), (11.0, 0.004)] {
            assert!(curve.work_within(duration) >= work, "{duration}");
        }
        assert!((curve.work_within(1.0) - 0.002).abs() < 1e-12);
        assert!((curve.sustained_rate() - 0.0002).abs() < 1e-15);
        assert!(!demand.uses_storage());
        let endless = Job { arrival: Nanos(0), work: PerStage::from_fn(|_| Nanos(u64::MAX / 4)) };
        assert!(
            StageCurves::from_trace(&CircularTrace::from_first_arrival(vec![endless], ms(1)).unwrap())
                .is_err()
        );
    }
}
