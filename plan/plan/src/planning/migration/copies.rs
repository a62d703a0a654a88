//! The traffic of copies: requests of one size at a constant rate.

use crate::cluster::{ClusterProblem, enforced_class};
use model::{Op, Request, Slo};
use placement::migration::{CopyEnd, CopyPriority, CopyTerms, CopyTraffic};
use placement::{Normalisation, PlanningProblem, PlanningWorkload};
use units::{ByteRate, Bytes, Nanos, Percentile, Seconds};
use workload::device::NetworkModel;
use workload::{Footprint, FootprintBuilder};

/// Requests of a copy from which its burst curve is computed.
const COPY_REQUESTS: u64 = 1000;
/// Halvings of the rate of a copy until it is given up.
const COPY_RATES: u32 = 9;
/// Percentile of the SLO of a copy.
const COPY_PERCENT: f64 = 99.0;
/// Least latency in the SLO of a copy below all workloads, seconds, and its factor above their SLOs.
const COPY_LATENCY_MIN_S: f64 = 10.0;
const COPY_LATENCY_FACTOR: f64 = 10.0;
/// Copies that send requests of one size at a constant rate.
pub(super) struct PacedCopies<'a> {
    pub(super) problem: &'a ClusterProblem,
    pub(super) instance: &'a PlanningProblem,
    /// The highest rate.
    pub(super) rate: ByteRate,
    /// Size of a request.
    pub(super) request: Bytes,
}

impl PacedCopies<'_> {
    /// The rate of this number, bytes per second.
    pub(super) fn rate(&self, number: usize) -> f64 {
        let halvings = i32::try_from(number).expect("there are few rates");
        self.rate.bytes_per_sec() / 2f64.powi(halvings)
    }

    fn footprint(&self, class: usize, op: Op, rate: f64) -> Footprint {
        let size = self.request;
        let mut builder = FootprintBuilder::new(NetworkModel::default(), &self.problem.profiles[class]);
        for number in 0..COPY_REQUESTS {
            let at = number as f64 * size.0 as f64 / rate;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
            let arrival = Nanos((at * 1e9) as u64);
            let request = Request { arrival, size, op, offset: None, response: None };
            builder.push(&request).expect("requests are in order, and few");
        }
        builder.finish().expect("there are requests")
    }
}

impl CopyTraffic for PacedCopies<'_> {
    fn rates(&self) -> usize {
        COPY_RATES as usize
    }

    fn traffic(&self, workload: usize, terms: CopyTerms) -> PlanningWorkload {
        let CopyTerms { end, rate, number, priority } = terms;
        let op = if end == CopyEnd::Read { Op::Read } else { Op::Write };
        let mut on_class = Vec::new();
        for (class, server) in self.problem.servers.iter().enumerate() {
            let normalisation = Normalisation {
                network: server.network,
                safety_margin: self.problem.safety_margin,
                sustained: true,
                enforced: Some(enforced_class(server, &self.problem.profiles[class])),
            };
            let on = normalisation.apply(&self.footprint(class, op, self.rate(rate)));
            on_class.push(on.with_base_latency(&self.problem.profiles[class]));
        }
        let latency = match priority {
            CopyPriority::Below(longest) => (longest * COPY_LATENCY_FACTOR).max(COPY_LATENCY_MIN_S),
            CopyPriority::With(latency) => latency,
        };
        let percentile = Percentile::new(COPY_PERCENT).expect("it is a percentile");
        let slo = Slo::new(percentile, Seconds(latency)).expect("it is a latency");
        PlanningWorkload { name: self.name(workload, end, number), slo, on_class }
    }
}

impl PacedCopies<'_> {
    /// A name that no workload has.
    fn name(&self, workload: usize, end: CopyEnd, number: usize) -> String {
        let word = if end == CopyEnd::Read { "read" } else { "write" };
        let again = if number == 0 { String::new() } else { format!("-{}", number + 1) };
        let mut name = format!("copy-{word}{again}-{}", self.problem.workloads[workload].name);
        let is_taken = |name: &str| self.instance.workloads.iter().any(|known| known.name == name);
        while is_taken(&name) {
            name.push('\'');
        }
        name
    }
}
