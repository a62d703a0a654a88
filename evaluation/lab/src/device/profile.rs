//! Device profile of an emulated SSD, in the form in which planning knows real devices.

use super::{LinearServiceTime, SsdModel};
use model::{Op, Request};
use units::{ByteRate, Bytes, Nanos, Percentile, Seconds};
use workload::device::{BandwidthRow, BaseLatency, DeviceModel, QueueLimits, SsdTable, StorageProfile};

impl SsdModel {
    /// Returns the profile of this device for requests of these sizes. Its bandwidth is that at
    /// saturation, exact at each size up to the rounding of a division. Its base latency is that of one
    /// request of the largest size, which no request on the idle device exceeds. Its queue limits are two
    /// requests per channel, which keep the channels busy.
    ///
    /// The device does one second of work per second, so a request with service time s has work s / channels, or its
    /// time on the shared link if that is longer.
    ///
    /// # Panics
    /// When no size is positive.
    pub fn profile(&self, sizes: &[Bytes]) -> StorageProfile {
        let mut sizes: Vec<Bytes> = sizes.iter().copied().filter(|size| size.0 > 0).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let largest = *sizes.last().expect("a profile is for requests of some size");
        let bandwidth = |&size: &Bytes| BandwidthRow {
            request: size,
            read: self.bandwidth_at_saturation(Op::Read, size),
            write: self.bandwidth_at_saturation(Op::Write, size),
        };
        let table = SsdTable::new(sizes.iter().map(bandwidth).collect()).expect("sizes ascend");
        let base = BaseLatency {
            percentile: Percentile::new(99.99).expect("a percentile"),
            read: Seconds(self.idle_latency(Op::Read, largest).as_secs()),
            write: Seconds(self.idle_latency(Op::Write, largest).as_secs()),
            sizes: Vec::new(),
        };
        let requests = 2 * u64::from(self.channels);
        let limits = QueueLimits {
            read_requests_max: requests,
            write_requests_max: requests,
            read_bytes_max: requests * largest.0,
            write_bytes_max: requests * largest.0,
        };
        StorageProfile::new("emulated-ssd", DeviceModel::Ssd(table))
            .with_source(format!("emulated: {self}"))
            .with_base_latency(base)
            .with_queue_limits(limits)
            .with_channels(self.channels)
    }

    /// Creates a device with this number of channels that matches a profile at the smallest and the largest
    /// of these sizes, and is linear in between.
    ///
    /// # Panics
    /// If there is no positive size.
    pub(crate) fn resembling(profile: &StorageProfile, channels: u32, sizes: &[Bytes]) -> Self {
        let positive = || sizes.iter().copied().filter(|size| size.0 > 0);
        let smallest = positive().min().expect("a device is for requests of some size");
        let largest = positive().max().expect("there is a smallest");
        let service_time = |op| {
            let [small, large] = [smallest, largest].map(|size| {
                let request = Request { arrival: Nanos::ZERO, size, op, offset: None, response: None };
                f64::from(channels) * profile.work_model().work(&request).base_units()
            });
            let bytes = (largest.0 - smallest.0) as f64;
            let per_byte = if bytes > 0.0 { ((large - small) / bytes).max(0.0) } else { 0.0 };
            let base = small - per_byte * smallest.0 as f64;
            // If time grows faster than size, the line through the largest size alone is slower at every
            // size.
            let (base, per_byte) =
                if base < 0.0 { (0.0, large / largest.0 as f64) } else { (base, per_byte) };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the casts saturate")]
            LinearServiceTime::new(Nanos(base.round() as u64), (per_byte * 1e3).round() as u64)
        };
        Self { channels, read: service_time(Op::Read), write: service_time(Op::Write), bandwidth: None }
    }

    fn bandwidth_at_saturation(&self, op: Op, size: Bytes) -> ByteRate {
        let work = self.work(op, size);
        ByteRate::from_bytes_per_sec(size.0 as f64 / work).expect("service takes time")
    }

    /// The device time of a request, in seconds.
    fn work(&self, op: Op, size: Bytes) -> f64 {
        let channels = self.service_time(op, size).max(Nanos(1)).as_secs() / f64::from(self.channels);
        channels.max(self.bandwidth.map_or(0.0, |rate| size.0 as f64 / rate.bytes_per_sec()))
    }
}

impl std::fmt::Display for SsdModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, reads {}, writes {}", units::plural(self.channels, "channel"), self.read, self.write)?;
        self.bandwidth.map_or(Ok(()), |rate| write!(f, ", at most {rate}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::EmulatedSsd;
    use super::*;
    use proptest::prelude::*;

    fn request(op: Op, size: u64) -> Request {
        Request { arrival: Nanos::ZERO, size: Bytes(size), op, offset: None, response: None }
    }

    proptest! {
        /// A saturated device takes the sum of the work, up to what the last requests leave idle.
        #[test]
        fn work_adds_up_to_the_time_that_a_busy_device_takes(
            channels in 1u32..9,
            requests in prop::collection::vec((prop::sample::select(vec![4096u64, 16384, 65536]), any::<bool>()), 40..200),
            capped in any::<bool>(),
        ) {
            let bandwidth = ByteRate::from_bytes_per_sec(1e8).filter(|_| capped);
            let read = LinearServiceTime::new(Nanos(90_000), 2000);
            let write = LinearServiceTime::new(Nanos(200_000), 5000);
            let model = SsdModel { channels, read, write, bandwidth };
            let profile = model.profile(&[65536, 4096, 16384].map(Bytes));
            let mut works = profile.work_model();
            let mut device = EmulatedSsd::new(model);
            let mut sum = 0.0;
            let mut end = Nanos::ZERO;
            for (size, reads) in requests {
                let op = if reads { Op::Read } else { Op::Write };
                sum += works.work(&request(op, size)).base_units() * 1e-9;
                end = end.max(device.submit(Nanos::ZERO, op, Bytes(size)));
            }
            let longest = model.idle_latency(Op::Write, Bytes(65536)).as_secs();
            prop_assert!(end.as_secs() <= sum * (1.0 + 1e-9) + longest, "{} for {sum}", end.as_secs());
            if !capped {
                prop_assert!(sum <= end.as_secs() * (1.0 + 1e-6), "{} for {sum}", end.as_secs());
            }
        }
    }

    #[test]
    fn a_device_that_resembles_a_profile_does_what_it_says() {
        let model = SsdModel {
            channels: 3,
            read: LinearServiceTime::new(Nanos(90_000), 2000),
            write: LinearServiceTime::new(Nanos(0), 5000),
            bandwidth: None,
        };
        let sizes = [4096, 16384, 65536].map(Bytes);
        let alike = SsdModel::resembling(&model.profile(&sizes), 3, &sizes);
        for (op, size) in [(Op::Read, 4096), (Op::Read, 16384), (Op::Write, 16384), (Op::Write, 65536)] {
            let [made, was] = [alike, model].map(|device| device.service_time(op, Bytes(size)).as_secs());
            assert!((made / was - 1.0).abs() < 1e-3, "{op:?} {size}: {made} for {was}");
        }
        assert_eq!(alike.profile(&sizes).channels(), Some(3));
    }

    #[test]
    fn a_request_alone_is_within_the_base_latency() {
        let cost = LinearServiceTime::new(Nanos(90_000), 2000);
        let model = SsdModel { channels: 4, read: cost, write: cost, bandwidth: None };
        let profile = model.profile(&[Bytes(4096), Bytes(65536)]);
        assert_eq!(profile.base_latency(Op::Read, Bytes(1)), Seconds(90e-6 + 65536.0 * 2e-9));
        assert_eq!(profile.queue_limits().map(|limits| limits.read_requests_max), Some(8));
        assert_eq!(StorageProfile::from_json(&profile.to_json()).as_ref(), Ok(&profile));
        assert!(profile.source().is_some_and(|source| source.contains("emulated")));
    }
}
