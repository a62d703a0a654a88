//! The two file formats of device profiles: Tailwright's own and the published one.
//!
//! The types named `…Form` mirror Tailwright's files, those named `Published…` the published ones. Fields carry their
//! unit last. Tailwright's format refuses fields that it does not know, so that a typing error does not silently mean
//! a default; the published format belongs to others and may have more fields.

use super::disk::{Disk, DiskParameters, SeekPoint};
use super::error::ProfileError;
use super::profile::{BaseLatency, BaseLatencyRow, DeviceModel, OperationCost, QueueLimits, StorageProfile};
use super::ssd::{BandwidthRow, SsdTable};
use model::CHANNELS_MAX;
use serde::{Deserialize, Serialize};
use units::{ByteRate, Bytes, Nanos, Percentile, Seconds};

/// The value of `format` in Tailwright's own device profiles without a cost of operations; readers refuse others.
pub(crate) const DEVICE_FORMAT: &str = "tailwright-device-1";
/// The same for profiles with a cost of operations.
const DEVICE_FORMAT_2: &str = "tailwright-device-2";
/// The same for profiles with base latencies by size.
const DEVICE_FORMAT_3: &str = "tailwright-device-3";
/// The name of a profile whose file does not give one.
const UNNAMED: &str = "ssd";
const PLAIN_DATA: &str = "finite numbers and strings always serialise";

/// The fields that distinguish the two formats.
#[derive(Deserialize)]
struct FormatProbe {
    format: Option<String>,
    #[serde(rename = "bandwidthTable")]
    bandwidth_table: Option<serde::de::IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceFile {
    format: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    device: DeviceForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_latency: Option<BaseLatencyForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue_limits: Option<QueueLimits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channels: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<OperationForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationForm {
    request_s: f64,
    key_s: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeviceForm {
    Ssd(SsdForm),
    Disk(DiskForm),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SsdForm {
    bandwidth: Vec<BandwidthForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BandwidthForm {
    request_bytes: u64,
    read_bytes_per_s: f64,
    write_bytes_per_s: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskForm {
    capacity_bytes: u64,
    seek: Vec<SeekForm>,
    rotational_latency_s: f64,
    read_bytes_per_s: f64,
    write_bytes_per_s: f64,
    streams: usize,
    sequential_gap_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeekForm {
    distance_bytes: u64,
    seek_s: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaseLatencyForm {
    percentile: Percentile,
    read_s: f64,
    write_s: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<BaseLatencyRowForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaseLatencyRowForm {
    request_bytes: u64,
    read_s: f64,
    write_s: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedFile {
    bandwidth_table: Vec<PublishedRow>,
    #[serde(rename = "readMPL")]
    read_mpl: Option<u64>,
    #[serde(rename = "writeMPL")]
    write_mpl: Option<u64>,
    max_outstanding_read_bytes: Option<u64>,
    max_outstanding_write_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedRow {
    request_size: u64,
    read_bandwidth: f64,
    write_bandwidth: f64,
}

impl StorageProfile {
    /// Reads either format: Tailwright's own (`"format": "tailwright-device-1"` to `-3`) or the published one
    /// (`bandwidthTable` with `requestSize` in bytes and bandwidths in bytes per second).
    ///
    /// # Errors
    /// When the text is not JSON or in neither format (with line and column), or its values cannot describe a
    /// device: an empty table, sizes that do not ascend, a bandwidth that is not positive and finite.
    pub fn from_json(text: &str) -> Result<Self, ProfileError> {
        let probe: FormatProbe = parse(text)?;
        match (probe.format.as_deref(), probe.bandwidth_table) {
            (Some(DEVICE_FORMAT | DEVICE_FORMAT_2 | DEVICE_FORMAT_3), _) => {
                parse::<DeviceFile>(text)?.into_profile()
            }
            (Some(other), _) => Err(ProfileError::new(format_args!(
                "the profile's format is '{other}', expected '{DEVICE_FORMAT}', '{DEVICE_FORMAT_2}' or \
                 '{DEVICE_FORMAT_3}'"
            ))),
            (None, Some(_)) => parse::<PublishedFile>(text)?.into_profile(),
            (None, None) => Err(ProfileError::new(format_args!(
                "not a device profile: expected \"format\": \"{DEVICE_FORMAT}\" or a \"bandwidthTable\""
            ))),
        }
    }

    /// The profile in Tailwright's own format; [`StorageProfile::from_json`] reads back an equal one.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(&DeviceFile::from(self)).expect(PLAIN_DATA);
        text.push('\n');
        text
    }

    /// A key for stored results: bytes that are equal exactly when the work of every request stream is equal.
    /// Names, sources, base latency and queue limits do not take part. Stable within one format version.
    pub fn work_key(&self) -> Vec<u8> {
        let device = DeviceForm::from(&self.device);
        match self.operation.map(OperationForm::from) {
            None => serde_json::to_vec(&(DEVICE_FORMAT, device)).expect(PLAIN_DATA),
            Some(operation) => serde_json::to_vec(&(DEVICE_FORMAT_2, device, operation)).expect(PLAIN_DATA),
        }
    }
}

fn parse<'text, T: Deserialize<'text>>(text: &'text str) -> Result<T, ProfileError> {
    serde_json::from_str(text).map_err(|error| ProfileError::new(format_args!("device profile: {error}")))
}

fn parse_rate(value: f64, field: impl std::fmt::Display) -> Result<ByteRate, ProfileError> {
    ByteRate::from_bytes_per_sec(value).ok_or_else(|| {
        ProfileError::new(format_args!("{field} is {value}, expected bytes per second above zero"))
    })
}

fn parse_channels(channels: u32) -> Result<u32, ProfileError> {
    if (1..=CHANNELS_MAX).contains(&channels) {
        return Ok(channels);
    }
    Err(ProfileError::new(format_args!("channels is {channels}, expected 1 to {CHANNELS_MAX}")))
}

fn row(index: usize, request: u64, read: f64, write: f64) -> Result<BandwidthRow, ProfileError> {
    let row = format!("bandwidth table, row {} (request size {request})", index + 1);
    Ok(BandwidthRow {
        request: Bytes(request),
        read: parse_rate(read, format_args!("{row}: read bandwidth"))?,
        write: parse_rate(write, format_args!("{row}: write bandwidth"))?,
    })
}

impl DeviceFile {
    fn into_profile(self) -> Result<StorageProfile, ProfileError> {
        Ok(StorageProfile {
            name: self.name,
            source: self.source,
            device: self.device.into_device()?,
            base_latency: self.base_latency.map(|form| form.into_latency(&self.format)).transpose()?,
            queue_limits: self.queue_limits,
            channels: self.channels.map(parse_channels).transpose()?,
            operation: self.operation.map(|form| form.into_cost(&self.format)).transpose()?,
        })
    }
}

impl OperationForm {
    /// More than any operation on one key takes, in seconds.
    const MAX_S: f64 = 60.0;

    fn into_cost(self, format: &str) -> Result<OperationCost, ProfileError> {
        if format == DEVICE_FORMAT {
            let message = format_args!("a profile with an operation has the format '{DEVICE_FORMAT_2}'");
            return Err(ProfileError::new(message));
        }
        Ok(OperationCost {
            request: Self::nanos("request_s", self.request_s)?,
            key: Self::nanos("key_s", self.key_s)?,
        })
    }

    /// Rounds up, so that no cost is understated.
    fn nanos(field: &str, value: f64) -> Result<Nanos, ProfileError> {
        if !(0.0..=Self::MAX_S).contains(&value) {
            let message =
                format_args!("operation, {field} is {value}, expected zero to {} seconds", Self::MAX_S);
            return Err(ProfileError::new(message));
        }
        // A value that was written as whole nanoseconds is read as the same.
        let nanos = value * 1e9;
        let nearest = nanos.round();
        let nanos = if (nanos - nearest).abs() < 1e-3 { nearest } else { nanos.ceil() };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        Ok(Nanos(nanos as u64))
    }
}

impl From<OperationCost> for OperationForm {
    fn from(cost: OperationCost) -> Self {
        Self { request_s: cost.request.as_secs(), key_s: cost.key.as_secs() }
    }
}

impl DeviceForm {
    fn into_device(self) -> Result<DeviceModel, ProfileError> {
        match self {
            Self::Ssd(ssd) => {
                let rows = ssd.bandwidth.iter().enumerate().map(|(at, form)| {
                    row(at, form.request_bytes, form.read_bytes_per_s, form.write_bytes_per_s)
                });
                SsdTable::new(rows.collect::<Result<_, _>>()?).map(DeviceModel::Ssd)
            }
            Self::Disk(disk) => Disk::new(disk.into_parameters()?).map(DeviceModel::Disk),
        }
    }
}

impl DiskForm {
    fn into_parameters(self) -> Result<DiskParameters, ProfileError> {
        let point =
            |form: &SeekForm| SeekPoint { distance: Bytes(form.distance_bytes), seek: Seconds(form.seek_s) };
        Ok(DiskParameters {
            capacity: Bytes(self.capacity_bytes),
            seek: self.seek.iter().map(point).collect(),
            rotational_latency: Seconds(self.rotational_latency_s),
            read: parse_rate(self.read_bytes_per_s, "read_bytes_per_s")?,
            write: parse_rate(self.write_bytes_per_s, "write_bytes_per_s")?,
            streams: self.streams,
            sequential_gap: Bytes(self.sequential_gap_bytes),
        })
    }
}

impl BaseLatencyForm {
    fn into_latency(self, format: &str) -> Result<BaseLatency, ProfileError> {
        let any = BaseLatencyRowForm { request_bytes: u64::MAX, read_s: self.read_s, write_s: self.write_s };
        any.check("base latency")?;
        if !self.sizes.is_empty() && format != DEVICE_FORMAT_3 {
            let message = format_args!("a base latency with sizes has the format '{DEVICE_FORMAT_3}'");
            return Err(ProfileError::new(message));
        }
        let mut before = &BaseLatencyRowForm { request_bytes: 0, read_s: 0.0, write_s: 0.0 };
        for (index, row) in self.sizes.iter().enumerate() {
            let name = format!("base latency, size {} of {}", index + 1, self.sizes.len());
            row.check(&name)?;
            if row.request_bytes <= before.request_bytes {
                return Err(ProfileError::new(format_args!(
                    "{name}: request_bytes is {}, expected more than {}",
                    row.request_bytes, before.request_bytes
                )));
            }
            row.check_between(&name, before, &any)?;
            before = row;
        }
        let row = |row: &BaseLatencyRowForm| BaseLatencyRow {
            request: Bytes(row.request_bytes),
            read: Seconds(row.read_s),
            write: Seconds(row.write_s),
        };
        Ok(BaseLatency {
            percentile: self.percentile,
            read: Seconds(self.read_s),
            write: Seconds(self.write_s),
            sizes: self.sizes.iter().map(row).collect(),
        })
    }
}

impl BaseLatencyRowForm {
    fn latencies(&self) -> [(f64, &'static str); 2] {
        [(self.read_s, "read_s"), (self.write_s, "write_s")]
    }

    fn check(&self, name: &str) -> Result<(), ProfileError> {
        for (value, field) in self.latencies() {
            if !(value.is_finite() && value >= 0.0) {
                let message = format_args!("{name}: {field} is {value}, expected zero or more seconds");
                return Err(ProfileError::new(message));
            }
        }
        Ok(())
    }

    /// Larger requests are not faster, and none is slower than any request.
    fn check_between(&self, name: &str, before: &Self, any: &Self) -> Result<(), ProfileError> {
        let limits = before.latencies().into_iter().zip(any.latencies());
        for ((value, field), ((least, _), (most, _))) in self.latencies().into_iter().zip(limits) {
            if !(least..=most).contains(&value) {
                let message = format_args!(
                    "{name}: {field} is {value}, expected {least} (the size before) to {most} (any size)"
                );
                return Err(ProfileError::new(message));
            }
        }
        Ok(())
    }
}

impl From<&BaseLatency> for BaseLatencyForm {
    fn from(latency: &BaseLatency) -> Self {
        let row = |row: &BaseLatencyRow| BaseLatencyRowForm {
            request_bytes: row.request.0,
            read_s: row.read.0,
            write_s: row.write.0,
        };
        Self {
            percentile: latency.percentile,
            read_s: latency.read.0,
            write_s: latency.write.0,
            sizes: latency.sizes.iter().map(row).collect(),
        }
    }
}

impl PublishedFile {
    fn into_profile(self) -> Result<StorageProfile, ProfileError> {
        let rows = self.bandwidth_table.iter().enumerate();
        let rows =
            rows.map(|(at, form)| row(at, form.request_size, form.read_bandwidth, form.write_bandwidth));
        let table = SsdTable::new(rows.collect::<Result<_, _>>()?)?;
        let mut profile = StorageProfile::new(UNNAMED, DeviceModel::Ssd(table));
        profile.queue_limits = self.queue_limits();
        Ok(profile)
    }

    fn queue_limits(&self) -> Option<QueueLimits> {
        Some(QueueLimits {
            read_requests_max: self.read_mpl?,
            write_requests_max: self.write_mpl?,
            read_bytes_max: self.max_outstanding_read_bytes?,
            write_bytes_max: self.max_outstanding_write_bytes?,
        })
    }
}

/// The first format that can say what the profile says.
fn format_of(profile: &StorageProfile) -> &'static str {
    if profile.base_latency.as_ref().is_some_and(|latency| !latency.sizes.is_empty()) {
        DEVICE_FORMAT_3
    } else if profile.operation.is_some() {
        DEVICE_FORMAT_2
    } else {
        DEVICE_FORMAT
    }
}

impl From<&StorageProfile> for DeviceFile {
    fn from(profile: &StorageProfile) -> Self {
        Self {
            format: format_of(profile).to_owned(),
            name: profile.name.clone(),
            source: profile.source.clone(),
            device: DeviceForm::from(&profile.device),
            base_latency: profile.base_latency.as_ref().map(BaseLatencyForm::from),
            queue_limits: profile.queue_limits,
            channels: profile.channels,
            operation: profile.operation.map(OperationForm::from),
        }
    }
}

impl From<&DeviceModel> for DeviceForm {
    fn from(device: &DeviceModel) -> Self {
        match device {
            DeviceModel::Ssd(table) => {
                let form = |row: &BandwidthRow| BandwidthForm {
                    request_bytes: row.request.0,
                    read_bytes_per_s: row.read.bytes_per_sec(),
                    write_bytes_per_s: row.write.bytes_per_sec(),
                };
                Self::Ssd(SsdForm { bandwidth: table.rows().iter().map(form).collect() })
            }
            DeviceModel::Disk(disk) => Self::Disk(DiskForm::from(disk.parameters())),
        }
    }
}

impl From<&DiskParameters> for DiskForm {
    fn from(disk: &DiskParameters) -> Self {
        let point = |point: &SeekPoint| SeekForm { distance_bytes: point.distance.0, seek_s: point.seek.0 };
        Self {
            capacity_bytes: disk.capacity.0,
            seek: disk.seek.iter().map(point).collect(),
            rotational_latency_s: disk.rotational_latency.0,
            read_bytes_per_s: disk.read.bytes_per_sec(),
            write_bytes_per_s: disk.write.bytes_per_sec(),
            streams: disk.streams,
            sequential_gap_bytes: disk.sequential_gap.0,
        }
    }
}
