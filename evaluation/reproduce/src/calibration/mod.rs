//! The model compared with a disk: every I/O of one NVMe disk during a boot, with arrival, service and response as they
//! were measured.
//!
//! The recorded service time is the time from the later of arrival and previous completion to the
//! completion. A worker that serves I/Os in the order of their completions, with these times, reproduces
//! the response times by arithmetic; one that serves them first come, first served comes near, and is off
//! as far as the disk overtakes. Neither shows whether a disk is a queue, because a prediction must not
//! know the completions. Here service times are drawn, by direction and size, from the response times of
//! I/Os that were alone at the disk in the first half of the recording. The number of workers is the one
//! that is nearest to the first half. Only the second half judges.

mod recorded_ios;

use crate::claim::{Claim, Expected, format_change, format_time};
use crate::context::{Context, FigureError};
use crate::data_file::data_error;
use crate::experiment::{Paper, PaperExperiment};
use crate::figure::{FigurePlot, FigureSeries, ReproducedFigure};
use arrivals::TimedRequest;
use recorded_ios::{IsolatedIos, RecordedIo};
use sim::engine::Histogram;
use sim::ideal::{IdealStation, LatencyDistribution, ServiceOrder};
use std::num::NonZeroUsize;
use units::{Nanos, Percentile};

pub(crate) const EXPERIMENTS: &[PaperExperiment] = &[PaperExperiment {
    name: "calibration-nvme",
    paper: Paper::Measured,
    title: "Response times of 172,287 I/Os of an NVMe disk, predicted from their arrivals",
    run,
}];

/// The numbers of workers that are tried.
const WORKERS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Why predictions are below what was measured.
const TOO_FAST: &str = "an I/O that is alone at the disk says nothing of one that others share the disk with: workers who serve as \
    if each were alone are too fast";
/// The largest relative error of a good prediction.
const GOOD: f64 = 0.2;

fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let ios = recorded_ios::read(&context.file(recorded_ios::FILE)?)?;
    let (first, second) = ios.split_at(ios.len() / 2);
    let (Some(isolated), Some(measured), Some(known)) =
        (IsolatedIos::collect(first), responses(second), responses(first))
    else {
        return Err(data_error(recorded_ios::FILE, "expected I/Os that were alone, reads and writes"));
    };
    let (workers, distance) = nearest_workers(first, &isolated, &known, context.seed);
    let mut claims = vec![column_claim(&ios)];
    claims.extend(circular_claims(second, &measured));
    let who = format!("{workers} workers with service drawn from I/Os that were alone");
    let predicted = predict(second, workers, isolated.sampler(context.seed));
    claims.extend(
        predicted.map(|predicted| percentile_claims(&who, &predicted, &measured)).unwrap_or_default(),
    );
    claims = claims
        .into_iter()
        .map(|claim| if claim.remark.is_empty() { claim.because(TOO_FAST) } else { claim })
        .collect();
    let reading = format!(
        "The second half of the recording ({} I/Os) is predicted; the first half gives the service times of {} \
         I/Os that were alone, and chose {workers} of {WORKERS:?} workers by the largest difference between \
         distribution functions ({distance:.3}). Good is within {:.0} %. The service time that is recorded is the time \
         since the later of arrival and previous completion: a worker that is given it knows the completions.",
        second.len(),
        isolated.count(),
        100.0 * GOOD
    );
    let series = series(second, &isolated, &measured, context.seed);
    let plots = vec![FigurePlot::tails("Response times of the second half", series)];
    Ok(ReproducedFigure { reading, plots, claims })
}

fn responses(ios: &[RecordedIo]) -> Option<LatencyDistribution> {
    LatencyDistribution::new(ios.iter().map(|io| io.response).collect())
}

/// Returns the number of workers whose prediction is nearest to the known part, and its distance; the smallest of equal ones.
fn nearest_workers(
    ios: &[RecordedIo],
    isolated: &IsolatedIos,
    known: &LatencyDistribution,
    seed: u64,
) -> (usize, f64) {
    let mut nearest = WORKERS[0];
    let mut least = 1.0;
    for workers in WORKERS {
        let predicted = predict(ios, workers, isolated.sampler(seed));
        let distance = predicted.map_or(1.0, |predicted| predicted.distance(known));
        if distance < least {
            (nearest, least) = (workers, distance);
        }
    }
    (nearest, least)
}

/// The response times of I/Os that these workers serve first come, first served.
fn predict(
    ios: &[RecordedIo],
    workers: usize,
    mut service: impl FnMut(&RecordedIo) -> Nanos,
) -> Option<LatencyDistribution> {
    let demands = ios.iter().map(|io| TimedRequest { arrival: io.arrival, service: service(io) });
    let station = IdealStation { workers: NonZeroUsize::new(workers)?, order: ServiceOrder::Fifo };
    station.distribution(demands, 0).ok()?
}

/// The claim that the columns of the recording mean what they are taken for.
fn column_claim(ios: &[RecordedIo]) -> Claim {
    let statement = "the recorded service is the time since the later of arrival and previous completion, for 99 % of I/Os";
    let share = recorded_ios::share_since_previous(ios);
    Claim::exact(statement, Expected::AtLeast(0.99), share, |share| format!("{:.2} %", 100.0 * share))
}

/// Claims about one worker with the recorded service times.
fn circular_claims(ios: &[RecordedIo], measured: &LatencyDistribution) -> Vec<Claim> {
    let Some(predicted) = predict(ios, 1, |io| io.service) else { return Vec::new() };
    let claims = percentile_claims("1 worker with service as recorded", &predicted, measured);
    let note = "close to circular: the recorded service knows the completions; what is left is their order";
    claims.into_iter().map(|claim| claim.remark(note)).collect()
}

/// Claims that a prediction is good at each percentile.
fn percentile_claims(
    who: &str,
    predicted: &LatencyDistribution,
    measured: &LatencyDistribution,
) -> Vec<Claim> {
    let mut claims = Vec::new();
    for percent in PERCENTILES {
        let percentile = Percentile::new(percent).expect("a percentile");
        let real = measured.percentile(percentile).as_secs();
        let statement = format!("measured p{percent}: {}; {who}", format_time(real));
        let expected = Expected::About { value: real, within: GOOD };
        let found = predicted.percentile(percentile).as_secs();
        claims.push(Claim::exact(&statement, expected, found, |seconds| {
            format!("{} ({})", format_time(seconds), format_change(seconds / real - 1.0))
        }));
    }
    claims
}

fn series(
    ios: &[RecordedIo],
    isolated: &IsolatedIos,
    measured: &LatencyDistribution,
    seed: u64,
) -> Vec<FigureSeries> {
    let mut series = vec![ccdf("measured", measured)];
    if let Some(predicted) = predict(ios, 1, |io| io.service) {
        series.push(ccdf("1 worker, service as recorded", &predicted));
    }
    for workers in WORKERS {
        if let Some(predicted) = predict(ios, workers, isolated.sampler(seed)) {
            series.push(ccdf(&format!("{workers} × service of I/Os alone"), &predicted));
        }
    }
    series
}

fn ccdf(name: &str, responses: &LatencyDistribution) -> FigureSeries {
    let mut histogram = Histogram::default();
    for response in responses.values() {
        histogram.record(response.0);
    }
    FigureSeries::ccdf(name, &histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Agreement;

    #[test]
    fn the_recorded_service_is_circular_and_the_second_half_judges() {
        let Some(path) = testkit::shared(recorded_ios::FILE) else { return };
        let data = path.ancestors().nth(3).map(std::path::Path::to_owned);
        let figure =
            run(&Context { seed: 1, effort: 1.0, data, progress: &|_, _| {}, is_interrupted: &|| false })
                .unwrap();
        // The share, then one worker at four percentiles, then the prediction.
        assert_eq!(figure.claims.len(), 9);
        assert_eq!(figure.claims[0].agreement, Agreement::Agree, "{:#?}", figure.claims);
        assert!(figure.claims[5..].iter().all(|claim| claim.statement.contains("alone")));
        assert!(figure.plots[0].lines.iter().all(|line| line.points.len() > 50));
    }

    /// In the order of completions, the recorded service is nothing but the completions themselves.
    #[test]
    fn in_the_order_of_completions_it_gives_them_back() {
        let Some(path) = testkit::shared(recorded_ios::FILE) else { return };
        let mut ios = recorded_ios::read(&path).unwrap();
        ios.sort_by_key(|io| (io.end, io.arrival));
        let mut free = Nanos::ZERO;
        let mut near = 0;
        for io in &ios {
            let end = io.arrival.max(free) + io.service;
            near += usize::from(end.0.abs_diff(io.end.0) <= 200);
            free = io.end;
        }
        assert!(near as f64 > 0.99 * ios.len() as f64, "{near} of {}", ios.len());
    }
}
