//! Magnetic disks: transfer rate from sequential requests, seek time by distance from pairs of requests.
//!
//! A pair of reads first moves the heads to a known place and then times the read of another block at a chosen
//! distance. The rotational wait of such a read is uniform over a revolution, so that the median response is
//! seek + half a revolution + transfer, and [`fit_disk`] solves that for the seek. The spindle speed comes
//! from the data sheet.
//!
//! Does not cover: zones (the transfer rate is the mean over the part of the disk that the sequential run covered),
//! write caches, a base latency. The fit is tested on synthetic disks with known seek curves; it has not been compared
//! with a real disk.

use crate::aligned_buffer::AlignedBuffer;
use crate::progress::ProfileProgress;
use crate::stats::Median;
use crate::target::{MIN_REQUESTS, StorageTarget};
use model::{Op, OperationError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::{ByteRate, Bytes, Seconds};
use workload::device::{Disk, DiskParameters, SeekPoint};

/// The size of reads that measure seeks, in bytes: so small that the transfer hardly matters.
const PROBE_SIZE: u64 = 4096;
/// The size of sequential requests, in bytes.
const SEQUENTIAL_SIZE: u64 = 1 << 20;
/// The shortest measured distance of seeks, in bytes.
const DISTANCE_MIN: u64 = 1 << 20;
/// Minimum number of sequential streams that the caches of today's disks follow. It is the default of the
/// device model and is not measured.
const STREAMS: usize = 8;
/// The longest gap in a sequential stream: skipping within a track costs no more than reading over it. This is the default
/// of the device model and is not measured.
const SEQUENTIAL_GAP: Bytes = Bytes(128 << 10);

/// The response time of one read after the heads were elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeekSample {
    /// The distance from the previous request.
    pub distance: Bytes,
    /// The sum of seek, rotational wait and transfer.
    pub response: Seconds,
}

/// Measurements of a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskMeasurement {
    /// The length of the disk.
    pub capacity: Bytes,
    /// The transfer rate of sequential reads.
    pub read: ByteRate,
    /// The transfer rate of sequential writes, where writing was allowed.
    pub write: Option<ByteRate>,
    /// Response times after seeks, ordered by distance.
    pub samples: Vec<SeekSample>,
}

/// Measures sequential reads, sequential writes where `ops` has them, and seeks over several distances; each of these
/// takes `per_cell`. Returns `None` when `stop` was set.
///
/// # Errors
/// When the target is too small, or the device or operating system refuses a request.
pub fn measure_disk(
    target: &StorageTarget,
    ops: &[Op],
    per_cell: Duration,
    seed: u64,
    progress: &mut dyn FnMut(ProfileProgress),
    stop: &AtomicBool,
) -> Result<Option<DiskMeasurement>, OperationError> {
    let length = target.length();
    let needed = Bytes(MIN_REQUESTS * DISTANCE_MIN);
    if length < needed {
        let message = format!("{} holds {length}, too little", target.path().display());
        return Err(OperationError::input(message).hint(format!("seeks need a target of at least {needed}")));
    }
    let distances = seek_distances(length.0);
    let total = (ops.len() + distances.len()) as u64;
    let mut probe = DiskProbe { target, per_cell, rng: StdRng::seed_from_u64(seed), stop };
    let mut done = 0;
    let mut step_done = || {
        done += 1;
        progress(ProfileProgress::Measure { done, total });
        // A step that was cut short is not comparable with the others.
        !stop.load(Ordering::Relaxed)
    };
    let read = probe.sequential_rate(Op::Read)?;
    if !step_done() {
        return Ok(None);
    }
    let write = ops.contains(&Op::Write).then(|| probe.sequential_rate(Op::Write)).transpose()?;
    if write.is_some() && !step_done() {
        return Ok(None);
    }
    let mut samples = Vec::new();
    for distance in distances {
        samples.extend(probe.seek_responses(distance)?);
        if !step_done() {
            return Ok(None);
        }
    }
    Ok(Some(DiskMeasurement { capacity: length, read, write, samples }))
}

/// The distances of seeks in bytes: powers of four from 1 MiB, and three quarters of the target.
fn seek_distances(length: u64) -> Vec<u64> {
    let longest = length / 4 * 3;
    let powers = std::iter::successors(Some(DISTANCE_MIN), |distance| distance.checked_mul(4));
    powers.take_while(|&distance| distance < longest).chain([longest]).collect()
}

/// Measures one thing at a time, with a single outstanding request.
struct DiskProbe<'run> {
    target: &'run StorageTarget,
    per_cell: Duration,
    rng: StdRng,
    stop: &'run AtomicBool,
}

impl DiskProbe<'_> {
    /// True if the time for a measurement that began at `start` is over.
    fn is_over(&self, start: Instant) -> bool {
        start.elapsed() >= self.per_cell || self.stop.load(Ordering::Relaxed)
    }

    /// The transfer rate from a random place onwards; after the end of the target it continues at the beginning.
    fn sequential_rate(&mut self, op: Op) -> Result<ByteRate, OperationError> {
        let mut buffer = AlignedBuffer::random(1 << 20, &mut self.rng);
        let chunks = self.target.length().0 / SEQUENTIAL_SIZE;
        let first = self.rng.random_range(0..chunks);
        let start = Instant::now();
        let mut done = 0;
        loop {
            self.target.transfer(op, buffer.bytes_mut(), (first + done) % chunks * SEQUENTIAL_SIZE)?;
            done += 1;
            if self.is_over(start) {
                break;
            }
        }
        let rate = (done * SEQUENTIAL_SIZE) as f64 / start.elapsed().as_secs_f64();
        Ok(ByteRate::from_bytes_per_sec(rate).expect("some bytes in some time"))
    }

    /// The response times of reads after reads `distance` away, in either direction.
    fn seek_responses(&mut self, distance: u64) -> Result<Vec<SeekSample>, OperationError> {
        let mut buffer = AlignedBuffer::random(4096, &mut self.rng);
        let start = Instant::now();
        let mut samples = Vec::new();
        let positions = (self.target.length().0 - distance) / PROBE_SIZE - 1;
        loop {
            let near = self.rng.random_range(0..positions) * PROBE_SIZE;
            let far = near + distance / PROBE_SIZE * PROBE_SIZE;
            let (from, to) = if self.rng.random() { (near, far) } else { (far, near) };
            self.target.transfer(Op::Read, buffer.bytes_mut(), from)?;
            let begin = Instant::now();
            self.target.transfer(Op::Read, buffer.bytes_mut(), to)?;
            samples.push(SeekSample {
                distance: Bytes(distance),
                response: Seconds(begin.elapsed().as_secs_f64()),
            });
            if self.is_over(start) {
                return Ok(samples);
            }
        }
    }
}

/// Fits the disk model to a measurement, for a spindle that turns `spindle_rpm` times a minute. Without
/// measured writes, writes get the rate of reads.
///
/// The seek time of a distance is the median response less half a revolution and the transfer, at least
/// zero and at least that of every shorter distance. A longer seek cannot take less time, so a decrease
/// is noise; the larger value overstates the work instead of understating it.
///
/// # Errors
/// When the spindle speed is not positive, or there are no samples.
pub fn fit_disk(measurement: &DiskMeasurement, spindle_rpm: f64) -> Result<Disk, OperationError> {
    if !(spindle_rpm.is_finite() && spindle_rpm > 0.0) {
        return Err(OperationError::input(format!(
            "spindle speed {spindle_rpm}, expected revolutions per minute such as 7200"
        )));
    }
    let half_revolution = 30.0 / spindle_rpm;
    let transfer = PROBE_SIZE as f64 / measurement.read.bytes_per_sec();
    let mut samples = measurement.samples.clone();
    samples.sort_by_key(|sample| sample.distance);
    let mut longest = 0.0f64;
    let mut seek = Vec::new();
    for group in samples.chunk_by(|a, b| a.distance == b.distance) {
        let responses: Vec<f64> = group.iter().map(|sample| sample.response.0).collect();
        let Some(median) = Median::from_samples(&responses) else { continue };
        longest = longest.max(median.value - half_revolution - transfer);
        seek.push(SeekPoint { distance: group[0].distance, seek: Seconds(longest) });
    }
    Disk::new(DiskParameters {
        capacity: measurement.capacity,
        seek,
        rotational_latency: Seconds(half_revolution),
        read: measurement.read,
        write: measurement.write.unwrap_or(measurement.read),
        streams: STREAMS,
        sequential_gap: SEQUENTIAL_GAP,
    })
    .map_err(|error| OperationError::input(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RPM: f64 = 7200.0;

    /// A disk whose seek takes 1 ms + 8 ms · √(distance / capacity), with uniform rotational waits.
    fn synthetic(probes: usize) -> (DiskMeasurement, impl Fn(u64) -> f64) {
        let capacity = 1u64 << 40;
        let seek = move |distance: u64| 0.001 + 0.008 * (distance as f64 / capacity as f64).sqrt();
        let read = ByteRate::from_bytes_per_sec(150e6).unwrap();
        let mut rng = StdRng::seed_from_u64(7);
        let mut samples = Vec::new();
        for distance in seek_distances(capacity) {
            for _ in 0..probes {
                let wait = rng.random_range(0.0..60.0 / RPM);
                let response = Seconds(seek(distance) + wait + PROBE_SIZE as f64 / 150e6);
                samples.push(SeekSample { distance: Bytes(distance), response });
            }
        }
        (DiskMeasurement { capacity: Bytes(capacity), read, write: None, samples }, seek)
    }

    #[test]
    fn the_fit_finds_the_curve_it_was_made_from() {
        let (measurement, truth) = synthetic(1000);
        let disk = fit_disk(&measurement, RPM).unwrap();
        for point in &disk.parameters().seek {
            // The median of 1000 uniform waits of 8.3 ms has a standard error of 0.13 ms.
            let error = (point.seek.0 - truth(point.distance.0)).abs();
            assert!(error < 5.0 * 0.13e-3, "{}: {} s off", point.distance, error);
        }
        assert_eq!(disk.parameters().rotational_latency, Seconds(1.0 / 240.0));
        assert_eq!(disk.parameters().write, measurement.read);
    }

    #[test]
    fn seeks_never_shrink_with_distance_however_noisy() {
        let (measurement, _) = synthetic(3);
        let disk = fit_disk(&measurement, RPM).unwrap();
        assert!(disk.parameters().seek.is_sorted_by(|a, b| a.seek.0 <= b.seek.0));
        // A slower spindle than there is leaves negative seeks, which count as none.
        let flash = fit_disk(&measurement, 1.0).unwrap();
        assert!(flash.parameters().seek.iter().all(|point| point.seek == Seconds(0.0)));
    }

    #[test]
    fn nothing_to_fit_is_an_error() {
        let (mut measurement, _) = synthetic(3);
        for rpm in [0.0, -1.0, f64::NAN] {
            assert!(fit_disk(&measurement, rpm).is_err(), "{rpm}");
        }
        measurement.samples.clear();
        assert!(fit_disk(&measurement, RPM).is_err());
    }

    #[test]
    fn distances_reach_across_the_target() {
        assert_eq!(seek_distances(16 << 20), [1 << 20, 4 << 20, 12 << 20]);
        assert!(seek_distances(u64::MAX).is_sorted());
    }
}
