//! Silo++ (thesis §4.3.1): Silo with the least bandwidth that meets the SLO, end-host queueing included.
//!
//! A request waits in its two limiters and then, as a packet, on the links. With fixed bursts the packet
//! guarantee depends on nothing but how many workloads there are, so everybody's least bandwidth is known
//! at each decision: the effective bandwidth for what the guarantee leaves of the SLO. The budget is
//! divided between the directions so that the two rates together are least; the sum is convex in the
//! division, since each rate is a maximum of hyperbolas.

use super::super::applicant::{Priority, ServerView};
use super::super::procedure::Procedure;
use super::{Demand, LINKS, ROUNDING, no_priorities, overload};
use calculus::{ArrivalCurve, shaping_delay};
use model::{PerStage, Stage, UndefinedLatency};

/// Ternary search narrows the division by (2/3) at each step: this many leave a part in 10^7.
const STEPS: usize = 40;

/// Admission by effective bandwidth, burst and buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SiloPlus {
    /// Everybody's burst on a link, seconds of the link; the thesis fixes 1.5 KB.
    pub burst: f64,
    /// What the queue of a link may hold, seconds of the link.
    pub buffer: f64,
}

impl SiloPlus {
    /// The least rates at which the limiters delay no longer than `budget` seconds together. `None` when
    /// the budget is not positive.
    pub fn rates(&self, demand: &Demand, budget: f64) -> Option<PerStage<f64>> {
        if budget.is_nan() || budget <= 0.0 {
            return None;
        }
        let rates = |first: f64| {
            PerStage::from_fn(|stage| match stage {
                Stage::NetworkIn => least_rate(&demand.curves[stage], self.burst, first),
                Stage::NetworkOut => least_rate(&demand.curves[stage], self.burst, budget - first),
                Stage::Storage => 0.0,
            })
        };
        let cost = |first: f64| rates(first).into_array().iter().sum::<f64>();
        let (mut low, mut high) = (0.0, budget);
        for _ in 0..STEPS {
            let third = (high - low) / 3.0;
            let (a, b) = (low + third, high - third);
            if cost(a) <= cost(b) { high = b } else { low = a }
        }
        Some(rates(0.5 * (low + high)))
    }

    /// What the limiters delay; a link without traffic may have no rate.
    fn shaping(&self, demand: &Demand, rates: &PerStage<f64>) -> f64 {
        let delay = |stage| match rates[stage] {
            0.0 => 0.0,
            rate => shaping_delay(&demand.curves[stage], rate, self.burst),
        };
        LINKS.map(delay).iter().sum()
    }
}

/// The least rate at which a bucket of `burst` seconds delays traffic with this curve by at most `delay`.
fn least_rate(curve: &ArrivalCurve, burst: f64, delay: f64) -> f64 {
    let needed =
        |work: f64, duration: f64| if work <= burst { 0.0 } else { (work - burst) / (duration + delay) };
    let rates = curve.vertices().iter().map(|v| needed(v.work, v.duration));
    rates.fold(curve.sustained_rate(), f64::max) * ROUNDING
}

impl Procedure for SiloPlus {
    type Sketch = Demand;

    fn name(&self) -> &'static str {
        "silo++"
    }

    fn priorities(&self, server: &ServerView<'_, Demand>) -> Vec<Priority> {
        no_priorities(server)
    }

    fn latencies(
        &self,
        server: &ServerView<'_, Demand>,
        _: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        let queue = self.burst * server.members.len() as f64;
        let packet = queue * LINKS.len() as f64;
        let rates: Vec<_> = (0..server.members.len())
            .map(|i| self.rates(&server.members[i].sketch, server.budget(i) - packet))
            .collect();
        // Who cannot be served at any rate breaks its own SLO, whatever the others ask for.
        let rate = |stage| rates.iter().flatten().map(|r| r[stage]).sum();
        let refused = overload(rate).or((queue > self.buffer).then_some(UndefinedLatency::NoBound));
        let latency = |demand: &Demand, rates: &Option<PerStage<f64>>| match (refused, rates) {
            _ if demand.uses_storage() => Err(UndefinedLatency::NoBound),
            (_, None) => Ok(packet + server.base_latency),
            (Some(refused), _) => Err(refused),
            (None, Some(rates)) => Ok(packet + server.base_latency + self.shaping(demand, rates)),
        };
        server.members.iter().zip(&rates).map(|(m, rates)| latency(&m.sketch, rates)).collect()
    }
}
