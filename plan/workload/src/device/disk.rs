//! Magnetic disks: the work of a request depends on where the requests before it were.

use super::error::ProfileError;
use model::{Op, Request};
use std::collections::VecDeque;
use units::{ByteRate, Bytes, Seconds, Work};

const NANOS_PER_SEC: f64 = 1e9;

/// The time to move the heads over a distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeekPoint {
    /// The distance between the end of the previous request and the start of this one, in either direction.
    pub distance: Bytes,
    /// The seek time, which is finite and not negative.
    pub seek: Seconds,
}

/// The parameters of a magnetic disk (thesis §2.3.2 names the ingredients: offset, distance between
/// subsequent requests, and a history that recognises sequential accesses).
#[derive(Debug, Clone, PartialEq)]
pub struct DiskParameters {
    /// The size of the disk.
    pub capacity: Bytes,
    /// The seek time by distance, in strictly ascending order of distance; it is linear between points and constant
    /// outside.
    pub seek: Vec<SeekPoint>,
    /// The time until the sector passes the heads after a seek: half a revolution is the mean, a whole one the worst case.
    pub rotational_latency: Seconds,
    /// The transfer rate of reads when the heads are in place.
    pub read: ByteRate,
    /// The transfer rate of writes when the heads are in place.
    pub write: ByteRate,
    /// Sequential streams that the disk's cache follows at once, at least 1.
    pub streams: usize,
    /// The largest distance from the end of a stream at which a request still continues it.
    pub sequential_gap: Bytes,
}

/// A disk whose parameters were checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk(DiskParameters);

impl Disk {
    /// Creates a disk after checking its parameters.
    ///
    /// # Errors
    /// When the seek table is empty or unsorted, a time is negative or not finite, or there is no capacity or no
    /// stream.
    pub fn new(parameters: DiskParameters) -> Result<Self, ProfileError> {
        let p = &parameters;
        check_duration("rotational latency", p.rotational_latency)?;
        for (at, point) in p.seek.iter().enumerate() {
            check_duration(&format!("seek table, row {}: seek time", at + 1), point.seek)?;
        }
        if p.seek.is_empty() {
            return Err(ProfileError::new("the seek table is empty: expected at least one row"));
        }
        if let Some(at) = p.seek.windows(2).position(|pair| pair[0].distance >= pair[1].distance) {
            let row = at + 2;
            return Err(ProfileError::new(format_args!(
                "seek table, row {row}: expected ascending distances"
            )));
        }
        if p.capacity.0 == 0 || p.streams == 0 {
            return Err(ProfileError::new(
                "a disk has a capacity above zero and follows at least one stream",
            ));
        }
        Ok(Self(parameters))
    }

    /// The parameters of the disk.
    pub fn parameters(&self) -> &DiskParameters {
        &self.0
    }

    /// The seek time over `distance`.
    pub fn seek(&self, distance: Bytes) -> Seconds {
        let points = &self.0.seek;
        let above = points.partition_point(|point| point.distance < distance);
        let low = points[above.saturating_sub(1)];
        let high = points[above.min(points.len() - 1)];
        let span = high.distance.0 - low.distance.0;
        if span == 0 {
            return low.seek;
        }
        let share = (distance.0 - low.distance.0) as f64 / span as f64;
        Seconds(low.seek.0 + (high.seek.0 - low.seek.0) * share)
    }

    /// The time in seconds to transfer `bytes` when the heads are in place.
    pub(super) fn transfer(&self, op: Op, bytes: u64) -> f64 {
        let rate = match op {
            Op::Read => self.0.read,
            Op::Write => self.0.write,
        };
        bytes as f64 / rate.bytes_per_sec()
    }
}

fn check_duration(name: &str, time: Seconds) -> Result<(), ProfileError> {
    if time.0.is_finite() && time.0 >= 0.0 {
        return Ok(());
    }
    let message = format!("{name} is {} s, expected a finite time of zero or more", time.0);
    Err(ProfileError::new(message))
}

/// Converts requests to work, and remembers where the heads are and which sequential streams are active.
#[derive(Debug, Clone)]
pub(crate) struct DiskWork {
    disk: Disk,
    /// The position of the heads, once a request with an offset was seen.
    head: Option<u64>,
    /// Ends of the streams in the history, the most recently used first.
    stream_ends: VecDeque<u64>,
}

impl DiskWork {
    pub(crate) fn new(disk: Disk) -> Self {
        Self { disk, head: None, stream_ends: VecDeque::new() }
    }

    /// The device time of the next request in picoseconds, rounded up.
    ///
    /// A request that continues a stream costs the transfer of the gap and of itself. Any other costs a
    /// seek from the end of the previous request, the rotational latency, and its transfer. Without an
    /// offset, or before the heads' position is known, the seek is over a third of the disk, the mean
    /// distance of two uniform positions; such a request leaves the state as it is.
    pub(crate) fn work(&mut self, request: &Request) -> Work {
        let size = request.size.0;
        let Some(offset) = request.offset else {
            return self.random(request.op, self.disk.0.capacity.0 / 3, size);
        };
        let work = match self.take_stream(offset) {
            Some(gap) => self.sequential(request.op, gap, size),
            None => {
                let distance = self.head.map_or(self.disk.0.capacity.0 / 3, |head| head.abs_diff(offset));
                self.random(request.op, distance, size)
            }
        };
        let end = offset.saturating_add(size);
        self.head = Some(end);
        self.stream_ends.push_front(end);
        self.stream_ends.truncate(self.disk.0.streams);
        work
    }

    /// Removes the most recently used stream that `offset` continues, and returns the gap between the two.
    fn take_stream(&mut self, offset: u64) -> Option<u64> {
        let gap_max = self.disk.0.sequential_gap.0;
        let mut ends = self.stream_ends.iter();
        let index = ends.position(|&end| end <= offset && offset - end <= gap_max)?;
        self.stream_ends.remove(index).map(|end| offset - end)
    }

    fn sequential(&self, op: Op, gap: u64, size: u64) -> Work {
        Work::from_base_units(self.disk.transfer(op, gap.saturating_add(size)) * NANOS_PER_SEC)
    }

    fn random(&self, op: Op, distance: u64, size: u64) -> Work {
        let positioning = self.disk.seek(Bytes(distance)).0 + self.disk.0.rotational_latency.0;
        Work::from_base_units((positioning + self.disk.transfer(op, size)) * NANOS_PER_SEC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::request_at;

    const MS: u64 = 1_000_000_000;

    /// 7200 rpm would be 8.33 ms a revolution; 8 ms and binary-friendly rates keep the arithmetic exact.
    fn parameters() -> DiskParameters {
        let points = [(0, 0.001), (1 << 20, 0.002), (1 << 30, 0.010)];
        DiskParameters {
            capacity: Bytes(3 << 30),
            seek: points.map(|(d, s)| SeekPoint { distance: Bytes(d), seek: Seconds(s) }).to_vec(),
            rotational_latency: Seconds(0.004),
            read: ByteRate::from_bytes_per_sec(1.024e8).unwrap(),
            write: ByteRate::from_bytes_per_sec(0.512e8).unwrap(),
            streams: 2,
            sequential_gap: Bytes(4096),
        }
    }

    fn run(requests: &[(Op, u64, Option<u64>)]) -> Vec<u64> {
        let mut disk = DiskWork::new(Disk::new(parameters()).unwrap());
        requests.iter().map(|&(op, size, offset)| disk.work(&request_at(op, size, offset)).0).collect()
    }

    fn assert_close(works: &[u64], exact: &[u64]) {
        assert_eq!(works.len(), exact.len());
        for (at, (&work, &exact)) in works.iter().zip(exact).enumerate() {
            assert!(work.abs_diff(exact) <= 2, "request {at}: {work} ps for exactly {exact} ps");
        }
    }

    #[test]
    fn seek_rotation_and_transfer_by_hand() {
        let kib100 = 102_400;
        let works = run(&[
            // Heads unknown: a third of the disk, 10 ms seek + 4 ms rotation + 1 ms transfer.
            (Op::Read, kib100, Some(0)),
            // 1 MiB onwards from the end: 2 ms + 4 ms + 2 ms for a write.
            (Op::Write, kib100, Some((1 << 20) + kib100)),
            // Half a MiB back: 1.5 ms + 4 ms + 1 ms.
            (Op::Read, kib100, Some((1 << 20) + 2 * kib100 - (1 << 19))),
            // Beyond the last point the seek stays at 10 ms.
            (Op::Read, kib100, Some(2 << 30)),
        ]);
        assert_close(&works, &[15 * MS, 8 * MS, 13 * MS / 2, 15 * MS]);
    }

    #[test]
    fn streams_in_the_history_are_sequential() {
        let size = 102_400;
        let far = 1 << 30;
        let works = run(&[
            (Op::Read, size, Some(0)),
            (Op::Read, size, Some(far)),
            // Both streams go on without a seek, one of them after a gap of 1024 bytes (10 us).
            (Op::Read, size, Some(size)),
            (Op::Read, size, Some(far + size + 1024)),
            // A gap of more than 4096 bytes is a seek.
            (Op::Read, size, Some(2 * size + 4097)),
        ]);
        assert_close(&works[2..4], &[MS, MS + MS / 100]);
        assert!(works[4] > 5 * MS, "{works:?}");
    }

    #[test]
    fn the_history_forgets_the_oldest_stream() {
        let works = run(&[
            (Op::Read, 512, Some(0)),
            (Op::Read, 512, Some(1 << 20)),
            (Op::Read, 512, Some(2 << 20)),
            (Op::Read, 512, Some(512)),
        ]);
        assert!(works[3] > 5 * MS, "{works:?}");
    }

    #[test]
    fn requests_without_offset_are_random_and_leave_the_state() {
        let works = run(&[
            (Op::Read, 102_400, Some(0)),
            (Op::Read, 102_400, None),
            (Op::Read, 102_400, Some(102_400)),
        ]);
        assert_close(&works, &[15 * MS, 15 * MS, MS]);
    }

    #[test]
    fn parameters_that_mean_nothing_are_refused() {
        type Change = fn(&mut DiskParameters);
        let broken: [(Change, &str); 6] = [
            (|p| p.seek.clear(), "empty"),
            (|p| p.seek[1].distance = Bytes(0), "row 2"),
            (|p| p.seek[2].seek = Seconds(f64::NAN), "row 3"),
            (|p| p.rotational_latency = Seconds(-1.0), "rotational latency"),
            (|p| p.streams = 0, "stream"),
            (|p| p.capacity = Bytes(0), "capacity"),
        ];
        for (change, part) in broken {
            let mut parameters = parameters();
            change(&mut parameters);
            let message = Disk::new(parameters).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn seek_lies_between_its_neighbours(distance in 0u64..4 << 30) {
            let seek = Disk::new(parameters()).unwrap().seek(Bytes(distance)).0;
            let (low, high) = if distance < 1 << 20 { (0.001, 0.002) } else { (0.002, 0.010) };
            proptest::prop_assert!((low..=high).contains(&seek));
        }
    }
}
