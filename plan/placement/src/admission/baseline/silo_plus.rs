//! Silo++ (thesis §4.3.1): Silo with the least bandwidth that meets the SLO, end-host queueing included.
//!
//! A request waits in its two limiters and then, as a packet, on the links. With fixed bursts the packet
//! guarantee depends on nothing but how many workloads there are, so every workload's least bandwidth is known
//! at each decision: the effective bandwidth for what the guarantee leaves of the SLO. The budget is
//! divided between the directions so that the two rates together are least; the sum is convex in the
//! division, since each rate is a maximum of hyperbolas.

use super::super::applicant::{Priority, SharedServer};
use super::super::procedure::AdmissionProcedure;
use super::{LINKS, ROUNDING, StageCurves, no_priorities, overload};
use calculus::{ArrivalCurve, shaping_delay};
use model::{PerStage, Stage, UndefinedLatency};

/// The steps of the ternary search, which narrows the division to 2/3 at each step: this many leave a part in 10^7.
const STEPS: usize = 40;

/// Admission by effective bandwidth, burst and buffer (Silo++).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SiloPlus {
    /// The burst of every workload on a link, seconds of the link; the thesis fixes 1.5 KB.
    pub burst: f64,
    /// The work that the queue of a link may hold, seconds of the link.
    pub buffer: f64,
}

impl SiloPlus {
    /// The least rates at which the limiters delay no longer than `budget` seconds together. `None` when
    /// the budget is not positive.
    pub fn rates(&self, demand: &StageCurves, budget: f64) -> Option<PerStage<f64>> {
        if budget.is_nan() || budget <= 0.0 {
            return None;
        }
        let mut low = 0.0;
        let mut high = budget;
        for _ in 0..STEPS {
            let third = (high - low) / 3.0;
            let a = low + third;
            let b = high - third;
            if self.total_rate(demand, budget, a) <= self.total_rate(demand, budget, b) {
                high = b;
            } else {
                low = a;
            }
        }
        Some(self.rates_for_division(demand, budget, 0.5 * (low + high)))
    }

    /// The rates when the limiter of the first link may delay by `first` seconds and the other by the rest of the budget.
    fn rates_for_division(&self, demand: &StageCurves, budget: f64, first: f64) -> PerStage<f64> {
        PerStage::from_fn(|stage| match stage {
            Stage::NetworkIn => least_rate(&demand.curves[stage], self.burst, first),
            Stage::NetworkOut => least_rate(&demand.curves[stage], self.burst, budget - first),
            Stage::Storage => 0.0,
        })
    }

    fn total_rate(&self, demand: &StageCurves, budget: f64, first: f64) -> f64 {
        self.rates_for_division(demand, budget, first).into_array().iter().sum()
    }

    /// The delay in both limiters together, seconds; a link without traffic may have no rate.
    fn shaping(&self, demand: &StageCurves, rates: &PerStage<f64>) -> f64 {
        let delays = LINKS.map(|stage| match rates[stage] {
            0.0 => 0.0,
            rate => shaping_delay(&demand.curves[stage], rate, self.burst),
        });
        delays.iter().sum()
    }
}

/// The least rate at which a bucket of `burst` seconds delays traffic with this curve by at most `delay`.
fn least_rate(curve: &ArrivalCurve, burst: f64, delay: f64) -> f64 {
    let rates = curve
        .vertices()
        .iter()
        .map(|v| if v.work <= burst { 0.0 } else { (v.work - burst) / (v.duration + delay) });
    rates.fold(curve.sustained_rate(), f64::max) * ROUNDING
}

impl AdmissionProcedure for SiloPlus {
    type Sketch = StageCurves;

    fn name(&self) -> &'static str {
        "silo++"
    }

    fn priorities(&self, server: &SharedServer<'_, StageCurves>) -> Vec<Priority> {
        no_priorities(server)
    }

    fn latencies(
        &self,
        server: &SharedServer<'_, StageCurves>,
        _: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        let queue = self.burst * server.members.len() as f64;
        let packet = queue * LINKS.len() as f64;
        let rates: Vec<_> = (0..server.members.len())
            .map(|i| self.rates(&server.members[i].sketch, server.budget(i) - packet))
            .collect();
        // A workload that no rate can serve misses its own SLO, whatever the others ask for.
        let rate_on = |stage| rates.iter().flatten().map(|r| r[stage]).sum();
        let undefined = overload(rate_on).or((queue > self.buffer).then_some(UndefinedLatency::NoBound));
        let mut latencies = Vec::with_capacity(rates.len());
        for (member, rates) in server.members.iter().zip(&rates) {
            latencies.push(match (undefined, rates) {
                _ if member.sketch.uses_storage() => Err(UndefinedLatency::NoBound),
                (_, None) => Ok(packet + member.base_latency),
                (Some(undefined), _) => Err(undefined),
                (None, Some(rates)) => Ok(packet + member.base_latency + self.shaping(&member.sketch, rates)),
            });
        }
        latencies
    }
}
