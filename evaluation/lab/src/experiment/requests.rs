//! The requests of tenants, read from the public traces or drawn.

use super::definition::{LabExperiment, TenantSource};
use arrivals::TimeDistribution;
use model::{Op, OperationError, Request};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::path::Path;
use units::{Bytes, Nanos};

/// Requests in a synthetic trace.
const SYNTHETIC_REQUESTS: usize = 20_000;

/// The requests of the tenants of one case, by tenant.
pub(super) type TenantRequests = Vec<Vec<Request>>;

/// The requests of all cases, with the traces that are in this folder.
///
/// # Errors
/// When a trace cannot be read.
pub(super) fn load_all(
    experiment: &LabExperiment,
    traces: &Path,
) -> Result<Vec<TenantRequests>, OperationError> {
    let mut cases = Vec::new();
    for case in experiment.cases {
        let mut requests = Vec::new();
        for (index, tenant) in case.tenants.iter().enumerate() {
            requests.push(match &tenant.source {
                TenantSource::Trace(file) => read(&traces.join(file))?,
                // Synthetic requests of several tenants differ.
                TenantSource::Synthetic { c2, size } => draw(*c2, *size, index as u64 + 1),
                TenantSource::Pulsed { reads, on_share, size } => pulses(*reads, *on_share, *size),
            });
        }
        cases.push(requests);
    }
    Ok(cases)
}

fn read(path: &Path) -> Result<Vec<Request>, OperationError> {
    trace::open(path, &trace::OpenOptions::default()).and_then(Iterator::collect).map_err(|error| {
        OperationError::input(error)
            .hint("--data names the folder that has the public traces in a folder `traces`")
    })
}

/// Reads with hyperexponential gaps of this squared coefficient of variation. Their mean does not matter, because time is
/// scaled.
fn draw(c2: f64, size: Bytes, seed: u64) -> Vec<Request> {
    let distribution = if c2 > 1.0 { format!("hyperexp(mean=1ms, c2={c2})") } else { "exp(1ms)".to_owned() };
    let distribution: TimeDistribution = distribution.parse().expect("a distribution");
    let sampler = distribution.sampler();
    let mut random = StdRng::seed_from_u64(seed);
    let mut requests = Vec::with_capacity(SYNTHETIC_REQUESTS);
    let mut arrival = Nanos::ZERO;
    for _ in 0..SYNTHETIC_REQUESTS {
        arrival = arrival + sampler.draw(&mut random);
        requests.push(Request { arrival, size, op: Op::Read, offset: None, response: None });
    }
    requests
}

/// Pulses of reads. The trace begins and ends within a pulse, so that repeating it neither joins two nor adds a pause.
fn pulses(reads: u32, on_share: f64, size: Bytes) -> Vec<Request> {
    const PULSES: u32 = 20;
    const GAP_NS: f64 = 1e6;
    let pause = f64::from(reads) * GAP_NS * (1.0 / on_share - 1.0);
    let mut requests = Vec::with_capacity((PULSES * reads) as usize);
    for index in 0..PULSES * reads {
        let pauses = f64::from((index + reads / 2) / reads);
        let ns = f64::from(index) * GAP_NS + pauses * pause;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is not negative")]
        let arrival = Nanos(ns.round() as u64);
        requests.push(Request { arrival, size, op: Op::Read, offset: None, response: None });
    }
    requests
}

/// All sizes that a tenant or the copy uses, ascending.
///
/// # Panics
/// When no request has a byte.
pub(super) fn distinct_sizes(experiment: &LabExperiment, cases: &[TenantRequests]) -> Vec<Bytes> {
    let used = cases.iter().flatten().flatten().map(|request| request.size);
    let mut sizes: Vec<Bytes> = used.chain(experiment.copy.map(|copy| copy.size)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.retain(|size| size.0 > 0);
    assert!(!sizes.is_empty(), "there are requests");
    sizes
}
