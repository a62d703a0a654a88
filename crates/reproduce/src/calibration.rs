//! The model against a disk: every I/O of one NVMe disk during a boot, with arrival, service and response as measured.
//!
//! The recorded service time is the time from the later of arrival and previous completion to the completion. A worker that
//! takes I/Os in the order in which they were complete, and is given these times, gives the responses back by arithmetic;
//! one that takes them first come, first served comes near, and is off as far as the disk overtakes. Neither says
//! whether a disk is a queue. A prediction must not know the completions: here service is drawn from the responses of
//! I/Os that were alone in the first half of the recording, by direction and size; the number of workers is the one
//! that is nearest to the first half; and only the second half judges.

mod disk;

use crate::Experiment;
use crate::claim::{Claim, Expected, change, time};
use crate::context::{Context, FigureError};
use crate::figure::{Figure, Line, Paper, Plot};
use arrivals::TimedRequest;
use disk::{Alone, Io};
use sim::engine::Histogram;
use sim::ideal::{IdealStation, LatencyDistribution, ServiceOrder};
use std::num::NonZeroUsize;
use units::{Nanos, Percentile};

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    name: "calibration-nvme",
    paper: Paper::Measured,
    title: "Response times of 172,287 I/Os of an NVMe disk, predicted from their arrivals",
    run,
}];

const FILE: &str = "data/windows_boot_nvme/io.csv.gz";
const WORKERS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// A prediction is good when it is that near.
const NEAR: f64 = 0.2;

fn run(context: &Context) -> Result<Figure, FigureError> {
    let ios = disk::read(&context.file(FILE)?)?;
    let (first, second) = ios.split_at(ios.len() / 2);
    let (Some(alone), Some(measured), Some(known)) = (Alone::of(first), responses(second), responses(first))
    else {
        return Err(disk::fault("expected I/Os that were alone, reads and writes"));
    };
    let recorded = |io: &Io| io.service;
    let mut claims = shares(&ios);
    claims.extend(identity(second, &measured));
    let draw = |ios: &[Io], workers: usize| predict(ios, workers, alone.sampler(context.seed));
    let near = |workers: &usize| draw(first, *workers).map_or(1.0, |found| found.distance(&known));
    let distances: Vec<f64> = WORKERS.iter().map(near).collect();
    let nearest = WORKERS.iter().zip(&distances).min_by(|a, b| a.1.total_cmp(b.1)).map_or(1, |(c, _)| *c);
    let said = format!("{nearest} workers with service drawn from I/Os that were alone");
    claims.extend(draw(second, nearest).map(|found| judge(&said, &found, &measured)).unwrap_or_default());
    let mut lines = vec![line("measured", &measured)];
    lines.extend(predict(second, 1, recorded).map(|found| line("1 worker, service as recorded", &found)));
    for workers in WORKERS {
        let name = format!("{workers} × service of I/Os alone");
        lines.extend(draw(second, workers).map(|found| line(&name, &found)));
    }
    Ok(Figure {
        reading: format!(
            "The second half of the recording ({} I/Os) is predicted; the first half gives the service times of {} \
             I/Os that were alone, and chose {nearest} of {WORKERS:?} workers by the largest difference between \
             distribution functions ({:.3}). Good is within {:.0} %. The service time that is recorded is the time \
             since the later of arrival and previous completion: a worker that is given it knows the completions.",
            second.len(),
            alone.count(),
            distances.iter().copied().fold(1.0, f64::min),
            100.0 * NEAR
        ),
        plots: vec![Plot::tails("Response times of the second half", lines)],
        claims,
    })
}

fn responses(ios: &[Io]) -> Option<LatencyDistribution> {
    LatencyDistribution::new(ios.iter().map(|io| io.response).collect())
}

/// First come, first served.
fn predict(ios: &[Io], workers: usize, mut service: impl FnMut(&Io) -> Nanos) -> Option<LatencyDistribution> {
    let demands = ios.iter().map(|io| TimedRequest { arrival: io.arrival, service: service(io) });
    let station = IdealStation { workers: NonZeroUsize::new(workers)?, order: ServiceOrder::Fifo };
    station.distribution(demands, 0).ok()?
}

/// How much of the recording is what its columns say.
fn shares(ios: &[Io]) -> Vec<Claim> {
    let said = "the recorded service is the time since the later of arrival and previous completion, for 99 % of I/Os";
    let rule = Expected::AtLeast(0.99);
    vec![Claim::exact(said, rule, disk::since_previous(ios), |share| format!("{:.2} %", 100.0 * share))]
}

/// One worker with the recorded service.
fn identity(ios: &[Io], measured: &LatencyDistribution) -> Vec<Claim> {
    let found = predict(ios, 1, |io| io.service);
    let claims = found.map(|found| judge("1 worker with service as recorded", &found, measured));
    let note = "close to circular: the recorded service knows the completions; what is left is their order";
    claims.unwrap_or_default().into_iter().map(|claim| claim.remark(note)).collect()
}

fn judge(who: &str, found: &LatencyDistribution, measured: &LatencyDistribution) -> Vec<Claim> {
    let claim = |percent: f64| {
        let p = Percentile::new(percent)?;
        let (real, here) = (measured.percentile(p).as_secs(), found.percentile(p).as_secs());
        let said = format!("measured p{percent}: {}; {who}", time(real));
        let claim = Claim::exact(&said, Expected::About { value: real, within: NEAR }, here, |at| {
            format!("{} ({})", time(at), change(at / real - 1.0))
        });
        Some(claim)
    };
    PERCENTILES.into_iter().filter_map(claim).collect()
}

fn line(name: &str, of: &LatencyDistribution) -> Line {
    let mut histogram = Histogram::default();
    of.values().iter().for_each(|value| histogram.record(value.0));
    Line::ccdf(name, &histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn the_recorded_service_is_circular_and_the_second_half_judges() {
        let Some(path) = testkit::shared(FILE) else { return };
        let data = path.ancestors().nth(3).map(std::path::Path::to_owned);
        let figure = run(&Context { seed: 1, effort: 1.0, data, progress: &|_, _| {} }).unwrap();
        // The share, then one worker at four percentiles, then the prediction.
        assert_eq!(figure.claims.len(), 9);
        assert_eq!(figure.claims[0].verdict, Verdict::Agree, "{:#?}", figure.claims);
        assert!(figure.claims[5..].iter().all(|claim| claim.said.contains("alone")));
        assert!(figure.plots[0].lines.iter().all(|line| line.points.len() > 50));
    }

    /// In the order of completions, the recorded service is nothing but the completions themselves.
    #[test]
    fn in_the_order_of_completions_it_gives_them_back() {
        let Some(path) = testkit::shared(FILE) else { return };
        let mut ios = disk::read(&path).unwrap();
        ios.sort_by_key(|io| (io.end, io.arrival));
        let (mut free, mut near) = (Nanos::ZERO, 0);
        for io in &ios {
            let end = io.arrival.max(free) + io.service;
            near += usize::from(end.0.abs_diff(io.end.0) <= 200);
            free = io.end;
        }
        assert!(near as f64 > 0.99 * ios.len() as f64, "{near} of {}", ios.len());
    }
}
