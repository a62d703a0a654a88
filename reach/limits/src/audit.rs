//! The sum of all limits at a place against its capacity.
//!
//! A device serves 1 second of device time per second. A ceiling in bytes or in requests becomes device time by the
//! profile's cost of a request, so the answer depends on the size of requests: sums are computed for each size of
//! the profile, at least a page. The worst case is that all tenants use their ceilings at once: the horizontal
//! deviation of the sum of their token buckets from the device, which serves in the order of arrival
//! (Le Boudec and Thiran, §1.4.1). Each bucket admits one more request than it holds, because enforcers let the
//! request pass that empties it.
//!
//! Not covered: weights promise nothing without knowing who is active, and count only as shares. Network and
//! processors are added up in their own units.

use crate::limit::{Direction, FoundLimit, LimitKind, LimitUnit, Resource, UnlimitedTenant};
use crate::survey::Survey;
use calculus::{ArrivalCurve, CurveVertex, PriorityQueue, round_up};
use model::{Op, Request};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use units::{Bytes, Nanos};
use workload::device::{DeviceModel, StorageProfile};

/// The smallest request that is considered: a page.
const PAGE: Bytes = Bytes(4096);
/// Sizes for devices whose profile has no table.
const DISK_SIZES: [Bytes; 5] = [PAGE, Bytes(16 << 10), Bytes(64 << 10), Bytes(256 << 10), Bytes(1 << 20)];
/// Place of all storage together.
const ONE_DEVICE: &str = "the device";
/// Excess of a sum over its capacity that is rounding.
const TOLERANCE: f64 = 1e-9;

/// Questions of an audit.
#[derive(Debug, Clone, Default)]
pub struct AuditSettings {
    /// Profile of the device of every place of storage.
    pub profile: Option<StorageProfile>,
    /// True if all limits of storage are limits of one device.
    pub is_one_device: bool,
    /// Size of all requests; without one, all sizes of the profile count.
    pub request: Option<Bytes>,
    /// Bandwidth of every link in each direction, bytes per second.
    pub network_bytes_per_s: Option<f64>,
}

/// Answer to the question whether limits add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditVerdict {
    /// Nothing limits anything.
    NothingFound,
    /// All ceilings and reservations fit into the capacity.
    AddsUp,
    /// No capacity is known at any place.
    NoCapacity,
    /// Ceilings fit for large requests only.
    DependsOnSize,
    /// Some tenants have no ceiling, so the others' add up to nothing certain.
    Unlimited,
    /// Ceilings or reservations exceed the capacity.
    Oversubscribed,
}

/// Sums of one size of request at a place of storage.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SizeSum {
    /// Size of every request.
    pub request_bytes: u64,
    /// Ceilings together, as a fraction of the capacity.
    pub ceilings: f64,
    /// Reservations together, as a fraction of the capacity.
    pub reservations: f64,
    /// Longest delay when all use their ceilings, seconds; absent without bound.
    pub worst_case_s: Option<f64>,
}

/// Neighbouring sizes of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SizeRange {
    /// The smallest of them.
    pub from_bytes: u64,
    /// The largest of them.
    pub to_bytes: u64,
}

/// Sums at a place.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlaceSum {
    pub place: String,
    pub resource: Resource,
    /// Direction for which network is added up.
    pub direction: Direction,
    /// Tenants with a ceiling or reservation.
    pub tenants: u64,
    /// Tenants without a ceiling for some direction.
    pub unlimited: Vec<String>,
    /// Capacity in `unit`, where known; that of storage with a profile is 1 share.
    pub capacity: Option<f64>,
    pub unit: LimitUnit,
    /// Sum of ceilings in `unit`; for several sizes of requests the smallest.
    pub ceilings: f64,
    /// Sum of ceilings; for several sizes of requests the largest.
    pub ceilings_max: f64,
    /// Sum of reservations in `unit`, at the size where it is largest.
    pub reservations: f64,
    /// Sizes of requests for which all ceilings fit; absent if none or all do.
    pub fits: Option<SizeRange>,
    /// Longest delay over the sizes whose ceilings fit, when all use them, seconds.
    pub worst_case_s: Option<f64>,
    /// Sums by request size, for storage with a profile.
    pub sizes: Vec<SizeSum>,
    /// Tenants whose reservation the capacity does not cover together with the others.
    pub uncovered: Vec<UncoveredReservation>,
}

/// A reservation that cannot be kept when all are used.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct UncoveredReservation {
    pub tenant: String,
    /// Reserved, in the unit of the sum.
    pub reserved: f64,
    /// Its part of the capacity in proportion to what is reserved, or its own ceiling, in the unit of the sum.
    pub covered: f64,
    /// True if its own ceiling is below its reservation.
    pub is_own_ceiling: bool,
}

/// Limits of children against that of their parent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ParentSum {
    pub parent: String,
    pub place: String,
    pub direction: Direction,
    pub kind: LimitKind,
    pub unit: LimitUnit,
    pub children: u64,
    /// Sum of the children's limits, in the unit.
    pub sum: f64,
    /// Limit of the parent, in the unit.
    pub limit: f64,
}

/// Answer of an audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    pub verdict: AuditVerdict,
    /// Name of the profile that storage was compared with.
    pub profile: Option<String>,
    pub places: Vec<PlaceSum>,
    /// Parents whose children's limits exceed their own.
    pub parents: Vec<ParentSum>,
}

impl PlaceSum {
    /// Returns true if ceilings or reservations exceed the capacity whatever the size of requests.
    pub fn is_over(&self) -> bool {
        let Some(capacity) = self.capacity else { return false };
        let max = capacity * (1.0 + TOLERANCE);
        self.ceilings > max || self.reservations > max || !self.uncovered.is_empty()
    }

    /// Returns the ceilings as multiples of the capacity: the smallest and the largest over request sizes.
    pub fn times(&self) -> Option<(f64, f64)> {
        self.capacity.map(|capacity| (self.ceilings / capacity, self.ceilings_max / capacity))
    }

    fn verdict(&self) -> AuditVerdict {
        match self.capacity {
            _ if self.is_over() => AuditVerdict::Oversubscribed,
            _ if !self.unlimited.is_empty() => AuditVerdict::Unlimited,
            None => AuditVerdict::NoCapacity,
            Some(_) if self.fits.is_some() => AuditVerdict::DependsOnSize,
            Some(_) => AuditVerdict::AddsUp,
        }
    }
}

/// Adds up the limits of a survey.
pub fn audit(survey: &Survey, settings: &AuditSettings) -> Audit {
    let mut groups: BTreeMap<(Resource, String, Direction), Vec<&FoundLimit>> = BTreeMap::new();
    for limit in survey.limits.iter().filter(|limit| is_added_up(limit)) {
        let is_network = limit.resource == Resource::Network;
        let direction = if is_network { limit.direction } else { Direction::Total };
        let place = place_of(limit.resource, &limit.place, settings);
        groups.entry((limit.resource, place, direction)).or_default().push(limit);
    }
    for tenant in &survey.unlimited {
        let place = place_of(Resource::Storage, &tenant.place, settings);
        groups.entry((Resource::Storage, place, Direction::Total)).or_default();
    }
    let mut places = Vec::new();
    for ((resource, place, direction), limits) in groups {
        let mut sum = match (resource, &settings.profile) {
            (Resource::Storage, Some(profile)) => device_sum(&limits, profile, settings),
            _ => plain_sums(&limits),
        };
        sum.place = place;
        sum.resource = resource;
        sum.direction = direction;
        if resource == Resource::Storage {
            let of_place = |at: &&UnlimitedTenant| place_of(resource, &at.place, settings) == sum.place;
            let whole = survey.unlimited.iter().filter(of_place).map(|at| at.tenant.clone());
            let all: BTreeSet<String> = sum.unlimited.drain(..).chain(whole).collect();
            sum.unlimited = all.into_iter().collect();
        }
        if sum.capacity.is_none() {
            sum.capacity = capacity_of(&sum, survey, settings);
        }
        sum.uncovered = uncovered(&sum, &limits, settings);
        places.push(sum);
    }
    let parents = parent_sums(survey);
    let worst = places.iter().map(PlaceSum::verdict).max().unwrap_or(AuditVerdict::NothingFound);
    let is_over = parents.iter().any(|parent| parent.kind == LimitKind::Reservation);
    let has_known = places.iter().any(|place| place.verdict() == AuditVerdict::AddsUp);
    let verdict = match worst {
        _ if is_over => AuditVerdict::Oversubscribed,
        AuditVerdict::NoCapacity if has_known && settings.profile.is_some() => AuditVerdict::AddsUp,
        worst => worst,
    };
    let profile = settings.profile.as_ref().map(|profile| profile.name().to_owned());
    Audit { verdict, profile, places, parents }
}

fn is_added_up(limit: &FoundLimit) -> bool {
    matches!(limit.kind, LimitKind::Ceiling | LimitKind::Reservation)
}

fn place_of(resource: Resource, place: &str, settings: &AuditSettings) -> String {
    let is_one = settings.is_one_device && resource == Resource::Storage;
    if is_one { ONE_DEVICE.to_owned() } else { place.to_owned() }
}

/// Returns the capacity of a place that no profile describes: a given link, or what files state.
fn capacity_of(sum: &PlaceSum, survey: &Survey, settings: &AuditSettings) -> Option<f64> {
    if sum.resource == Resource::Network && settings.network_bytes_per_s.is_some() {
        return settings.network_bytes_per_s;
    }
    if sum.unit == LimitUnit::Share {
        return Some(1.0);
    }
    let fits = |direction| direction == sum.direction || sum.resource == Resource::Storage;
    let of_place = survey.capacities.iter().filter(|stated| {
        stated.place == sum.place
            && stated.resource == sum.resource
            && stated.unit == sum.unit
            && fits(stated.direction)
    });
    // A device that states both directions serves at most the faster of them.
    of_place.map(|stated| stated.value).max_by(f64::total_cmp)
}

/// Adds up limits in their own unit: the one that most of them have.
fn plain_sums(limits: &[&FoundLimit]) -> PlaceSum {
    const UNITS: [LimitUnit; 4] =
        [LimitUnit::BytesPerS, LimitUnit::RequestsPerS, LimitUnit::Share, LimitUnit::Cpus];
    let count = |unit: LimitUnit| limits.iter().filter(|limit| limit.unit == unit).count();
    let unit = UNITS.into_iter().rev().max_by_key(|unit| count(*unit)).unwrap_or(LimitUnit::BytesPerS);
    let mut ceilings = 0.0;
    let mut reservations = 0.0;
    let mut lowest: BTreeMap<(&str, Direction), f64> = BTreeMap::new();
    for limit in limits.iter().filter(|limit| limit.unit == unit && limit.within.is_none()) {
        if limit.kind == LimitKind::Reservation {
            reservations += limit.value;
        } else {
            let known = lowest.entry((limit.tenant.as_str(), limit.direction)).or_insert(f64::INFINITY);
            *known = known.min(limit.value);
        }
    }
    for ((tenant, direction), value) in &lowest {
        // A tenant with a ceiling for both directions together uses no more than that.
        if *direction == Direction::Total || !lowest.contains_key(&(*tenant, Direction::Total)) {
            ceilings += value;
        }
    }
    // A class of HTB within a parent is added up there; its reservation counts at the place as well.
    if reservations == 0.0 {
        let inner = limits.iter().filter(|limit| limit.kind == LimitKind::Reservation && limit.unit == unit);
        reservations = inner.map(|limit| limit.value).sum();
    }
    empty_sum(limits, unit, ceilings, reservations)
}

fn empty_sum(limits: &[&FoundLimit], unit: LimitUnit, ceilings: f64, reservations: f64) -> PlaceSum {
    let tenants: BTreeSet<&str> = limits.iter().map(|limit| limit.tenant.as_str()).collect();
    PlaceSum {
        place: String::new(),
        resource: Resource::Storage,
        direction: Direction::Total,
        tenants: u64::try_from(tenants.len()).unwrap_or(u64::MAX),
        unlimited: Vec::new(),
        capacity: None,
        unit,
        ceilings,
        ceilings_max: ceilings,
        reservations,
        fits: None,
        worst_case_s: None,
        sizes: Vec::new(),
        uncovered: Vec::new(),
    }
}

/// A token bucket in device time: seconds per second, and seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DeviceBucket {
    pub(crate) rate: f64,
    pub(crate) burst: f64,
}

/// Device time of a request by direction, seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestCost {
    pub(crate) bytes: f64,
    read: f64,
    write: f64,
}

impl RequestCost {
    /// Returns the cost of requests of this size.
    pub(crate) fn new(profile: &StorageProfile, size: Bytes) -> Self {
        let seconds = |op| {
            let request = Request { arrival: Nanos(0), size, op, offset: None, response: None };
            profile.work_model().work(&request).0 as f64 / 1e12
        };
        Self { bytes: size.0 as f64, read: seconds(Op::Read), write: seconds(Op::Write) }
    }

    /// Returns the device time of a request; of both directions, that of the slower one.
    pub(crate) fn seconds(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Read => self.read,
            Direction::Write => self.write,
            _ => self.read.max(self.write),
        }
    }

    /// Returns the bucket of a limit in device time.
    fn bucket(&self, limit: &FoundLimit) -> DeviceBucket {
        let request = self.seconds(limit.direction);
        let factor = match limit.unit {
            LimitUnit::BytesPerS => request / self.bytes,
            LimitUnit::RequestsPerS => request,
            _ => 1.0,
        };
        DeviceBucket { rate: limit.value * factor, burst: limit.burst.unwrap_or(0.0) * factor + request }
    }
}

/// Returns the sizes of requests for which a device is judged.
fn sizes(profile: &StorageProfile, request: Option<Bytes>) -> Vec<Bytes> {
    if let Some(size) = request {
        return vec![size];
    }
    match profile.device() {
        DeviceModel::Ssd(table) => {
            let rows: Vec<Bytes> =
                table.rows().iter().map(|row| row.request).filter(|size| *size > PAGE).collect();
            std::iter::once(PAGE).chain(rows).collect()
        }
        DeviceModel::Disk(_) => DISK_SIZES.to_vec(),
    }
}

/// Returns the buckets that bound a tenant in both directions together; none if a direction has no ceiling.
pub(crate) fn tenant_buckets(ceilings: &[&FoundLimit], cost: &RequestCost) -> Vec<DeviceBucket> {
    let of = |direction| -> Vec<DeviceBucket> {
        let limits = ceilings.iter().filter(|limit| limit.direction == direction);
        limits.map(|limit| cost.bucket(limit)).collect()
    };
    let mut buckets = of(Direction::Total);
    for read in of(Direction::Read) {
        for write in of(Direction::Write) {
            buckets.push(DeviceBucket { rate: read.rate + write.rate, burst: read.burst + write.burst });
        }
    }
    buckets
}

/// Returns the arrival curve that is the minimum of token buckets, at least one.
pub(crate) fn curve(buckets: &[DeviceBucket]) -> ArrivalCurve {
    let mut lines: Vec<DeviceBucket> = buckets.to_vec();
    lines.sort_by(|a, b| a.burst.total_cmp(&b.burst).then(a.rate.total_cmp(&b.rate)));
    let sustained = lines.iter().map(|line| line.rate).fold(f64::INFINITY, f64::min);
    let mut vertices = vec![CurveVertex { duration: 0.0, work: lines[0].burst }];
    let mut now = lines[0];
    // The minimum of lines changes to the line of a smaller rate that it meets first.
    while now.rate > sustained {
        let meets = |line: &&DeviceBucket| line.rate < now.rate;
        let time = |line: &DeviceBucket| ((line.burst - now.burst) / (now.rate - line.rate)).max(0.0);
        let Some(next) = lines
            .iter()
            .filter(meets)
            .min_by(|a, b| time(a).total_cmp(&time(b)).then(a.rate.total_cmp(&b.rate)))
        else {
            break;
        };
        let duration = time(next);
        let last = vertices[vertices.len() - 1];
        if duration > last.duration {
            vertices.push(CurveVertex { duration, work: round_up(now.burst + now.rate * duration) });
        }
        now = *next;
    }
    ArrivalCurve::new(vertices, sustained).unwrap_or_else(|_| {
        // Rounding made the lines meet in one point: the bucket of the smallest rate is above all of them.
        let burst = lines.iter().map(|line| line.burst).fold(0.0, f64::max);
        let vertex = CurveVertex { duration: 0.0, work: burst };
        ArrivalCurve::new(vec![vertex], sustained).expect("a single vertex is a curve")
    })
}

/// Adds up the limits at a device with a profile.
fn device_sum(limits: &[&FoundLimit], profile: &StorageProfile, settings: &AuditSettings) -> PlaceSum {
    let mut ceilings: BTreeMap<&str, Vec<&FoundLimit>> = BTreeMap::new();
    let mut reservations: Vec<&FoundLimit> = Vec::new();
    for limit in limits {
        match limit.kind {
            LimitKind::Reservation if limit.within.is_none() => reservations.push(limit),
            LimitKind::Ceiling if limit.within.is_none() => {
                ceilings.entry(limit.tenant.as_str()).or_default().push(limit);
            }
            _ => {}
        }
    }
    let mut unlimited = BTreeSet::new();
    let mut rows = Vec::new();
    for size in sizes(profile, settings.request) {
        let cost = RequestCost::new(profile, size);
        let mut total = 0.0;
        let mut curves = Vec::new();
        for (tenant, limits) in &ceilings {
            let buckets = tenant_buckets(limits, &cost);
            if buckets.is_empty() {
                unlimited.insert((*tenant).to_owned());
                // The direction that is limited is known to need this.
                let known = limits.iter().map(|limit| cost.bucket(limit).rate).fold(f64::INFINITY, f64::min);
                total += known;
                continue;
            }
            total += buckets.iter().map(|bucket| bucket.rate).fold(f64::INFINITY, f64::min);
            curves.push(curve(&buckets));
        }
        let together = if curves.is_empty() { ArrivalCurve::zero() } else { ArrivalCurve::sum(&curves) };
        let delay = PriorityQueue::new().delay(&together, 0.0);
        let idle = [Op::Read, Op::Write].map(|op| profile.base_latency(op, size).0);
        let delay = round_up(delay + idle[0].max(idle[1]));
        rows.push(SizeSum {
            request_bytes: size.0,
            ceilings: total,
            reservations: reservations.iter().map(|limit| cost.bucket(limit).rate).sum(),
            worst_case_s: (delay.is_finite() && unlimited.is_empty() && !curves.is_empty()).then_some(delay),
        });
    }
    let least = rows.iter().map(|row| row.ceilings).fold(f64::INFINITY, f64::min);
    let most = rows.iter().map(|row| row.ceilings).fold(0.0, f64::max);
    let reserved = rows.iter().map(|row| row.reservations).fold(0.0, f64::max);
    let fits = fitting(&rows).filter(|_| most > 1.0 + TOLERANCE);
    let mut sum = empty_sum(limits, LimitUnit::Share, least, reserved);
    sum.capacity = Some(1.0);
    sum.ceilings_max = most;
    sum.fits = fits;
    sum.worst_case_s = rows.iter().filter_map(|row| row.worst_case_s).max_by(f64::total_cmp);
    sum.unlimited = unlimited.into_iter().collect();
    sum.sizes = rows;
    sum
}

/// Returns the first run of sizes for which the ceilings fit.
fn fitting(rows: &[SizeSum]) -> Option<SizeRange> {
    let does_fit = |row: &&SizeSum| row.ceilings <= 1.0 + TOLERANCE;
    let mut run = rows.iter().skip_while(|row| !does_fit(row)).take_while(does_fit);
    let from_bytes = run.next()?.request_bytes;
    let to_bytes = run.last().map_or(from_bytes, |row| row.request_bytes);
    Some(SizeRange { from_bytes, to_bytes })
}

/// Returns the reservations at a place that are not covered: all of them in proportion if they exceed the capacity,
/// and those above their tenant's own ceiling.
fn uncovered(sum: &PlaceSum, limits: &[&FoundLimit], settings: &AuditSettings) -> Vec<UncoveredReservation> {
    let cost = settings.profile.as_ref().filter(|_| sum.resource == Resource::Storage).map(|profile| {
        // The size at which reservations need most.
        let most = sum.sizes.iter().max_by(|a, b| a.reservations.total_cmp(&b.reservations));
        RequestCost::new(profile, most.map_or(PAGE, |row| Bytes(row.request_bytes)))
    });
    let value = |limit: &FoundLimit| cost.map_or(limit.value, |cost| cost.bucket(limit).rate);
    let mut found = Vec::new();
    let excess = sum.capacity.map_or(1.0, |capacity| sum.reservations / capacity).max(1.0);
    for limit in limits.iter().filter(|limit| limit.kind == LimitKind::Reservation) {
        let is_own = |other: &&&FoundLimit| {
            other.kind == LimitKind::Ceiling
                && other.tenant == limit.tenant
                && other.direction == limit.direction
                && other.unit == limit.unit
        };
        let own = limits.iter().filter(is_own).map(|other| value(other)).fold(f64::INFINITY, f64::min);
        let reserved = value(limit);
        let is_own_ceiling = own < reserved * (1.0 - TOLERANCE);
        if is_own_ceiling || excess > 1.0 + TOLERANCE {
            let covered = (reserved / excess).min(own);
            found.push(UncoveredReservation {
                tenant: limit.tenant.clone(),
                reserved,
                covered,
                is_own_ceiling,
            });
        }
    }
    found
}

/// Returns the parents whose children's limits add up to more than their own.
fn parent_sums(survey: &Survey) -> Vec<ParentSum> {
    type Key<'a> = (&'a str, &'a str, Direction, LimitKind, LimitUnit);
    let mut children: BTreeMap<Key, (u64, f64)> = BTreeMap::new();
    let mut own: BTreeMap<Key, f64> = BTreeMap::new();
    for limit in survey.limits.iter().filter(|limit| is_added_up(limit)) {
        let FoundLimit { place, direction, kind, unit, .. } = limit;
        let known = own.entry((&limit.tenant, place, *direction, *kind, *unit)).or_insert(f64::INFINITY);
        *known = known.min(limit.value);
        if let Some(parent) = &limit.within {
            let (count, sum) = children.entry((parent, place, *direction, *kind, *unit)).or_insert((0, 0.0));
            *count += 1;
            *sum += limit.value;
        }
    }
    let mut sums = Vec::new();
    for (key, (count, sum)) in children {
        let Some(limit) = own.get(&key).copied().filter(|limit| sum > limit * (1.0 + TOLERANCE)) else {
            continue;
        };
        let (parent, place, direction, kind, unit) = key;
        let parent = parent.to_owned();
        let place = place.to_owned();
        sums.push(ParentSum { parent, place, direction, kind, unit, children: count, sum, limit });
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::survey_of;
    use crate::limit::Origin;
    use crate::survey::{SourceText, storage_ceiling};
    use workload::device::{BandwidthRow, SsdTable};

    /// A device with 1 ms for each request of 4 KiB, and 100 MB/s for 1 MiB.
    fn profile() -> StorageProfile {
        let row = |bytes: u64, rate: f64| {
            let rate = units::ByteRate::from_bytes_per_sec(rate).expect("positive");
            BandwidthRow { request: Bytes(bytes), read: rate, write: rate }
        };
        let table = SsdTable::new(vec![row(4096, 4.096e6), row(1 << 20, 1e8)]).expect("it ascends");
        StorageProfile::new("d", DeviceModel::Ssd(table))
    }

    fn of(text: &str, settings: &AuditSettings) -> Audit {
        audit(
            &survey_of(vec![SourceText::new("a/io.max", text), SourceText::new("b/io.max", text)]),
            settings,
        )
    }

    fn settings() -> AuditSettings {
        AuditSettings { profile: Some(profile()), ..AuditSettings::default() }
    }

    #[test]
    fn the_answer_depends_on_the_size_of_requests() {
        // Two tenants with 2 × 20 MB/s each: 0.8 of the device at 1 MiB, 20 times it at 4 KiB.
        let found = of("8:0 rbps=20000000 wbps=20000000\n", &settings());
        let sum = &found.places[0];
        assert_eq!(found.verdict, AuditVerdict::DependsOnSize);
        assert!(
            (sum.ceilings - 0.8).abs() < 1e-9 && (sum.ceilings_max - 8e7 / 4.096e6).abs() < 1e-6,
            "{sum:?}"
        );
        assert_eq!(sum.fits, Some(SizeRange { from_bytes: 1 << 20, to_bytes: 1 << 20 }));
    }

    #[test]
    fn requests_per_second_bound_small_requests_too() {
        // 2 × (100 + 100) requests of 1 ms: 0.4 of the device at 4 KiB, and 4.19 at 1 MiB.
        let found = of("8:0 riops=100 wiops=100\n", &AuditSettings { request: Some(PAGE), ..settings() });
        let sum = &found.places[0];
        assert!((sum.ceilings - 0.4).abs() < 1e-9, "{sum:?}");
        assert_eq!(found.verdict, AuditVerdict::AddsUp);
        // Four buckets of 0.22 s, and a request of 1 ms each: 4 × (100 × 0.22 × 1 ms + 1 ms).
        let wait = sum.worst_case_s.expect("it is bounded");
        assert!((wait - 0.092).abs() < 1e-9, "{wait}");
    }

    #[test]
    fn requests_per_second_do_not_bound_large_requests() {
        let found = of("8:0 riops=100 wiops=100\n", &settings());
        assert_eq!(found.verdict, AuditVerdict::DependsOnSize);
        assert_eq!(found.places[0].fits, Some(SizeRange { from_bytes: 4096, to_bytes: 4096 }));
    }

    #[test]
    fn a_direction_without_a_ceiling_is_unlimited() {
        let found = of("8:0 rbps=1000\n", &settings());
        assert_eq!(found.verdict, AuditVerdict::Unlimited);
        assert_eq!(found.places[0].unlimited, ["a", "b"]);
        assert_eq!(found.places[0].worst_case_s, None);
    }

    #[test]
    fn too_much_at_every_size_is_oversubscribed() {
        let found = of("8:0 rbps=200000000 wbps=1\n", &settings());
        assert_eq!(found.verdict, AuditVerdict::Oversubscribed);
        assert!(found.places[0].times().expect("a capacity").0 > 3.9);
    }

    #[test]
    fn without_a_profile_nothing_is_claimed() {
        assert_eq!(
            of("8:0 rbps=1000 wbps=1000\n", &AuditSettings::default()).verdict,
            AuditVerdict::NoCapacity
        );
        assert_eq!(audit(&Survey::default(), &settings()).verdict, AuditVerdict::NothingFound);
    }

    #[test]
    fn the_curve_is_the_minimum_of_its_buckets() {
        let buckets = [(0.1, 5.0), (0.5, 1.0), (2.0, 0.1), (0.3, 4.9)];
        let buckets = buckets.map(|(rate, burst)| DeviceBucket { rate, burst });
        let curve = curve(&buckets);
        for step in 0..2000_u32 {
            let time = f64::from(step) * 0.02;
            let least = buckets.iter().map(|b| b.burst + b.rate * time).fold(f64::INFINITY, f64::min);
            assert!((curve.work_within(time) - least).abs() < 1e-9, "{time}");
        }
    }

    #[test]
    fn reservations_beyond_the_capacity_are_covered_in_proportion() {
        let mut survey = Survey::default();
        for (tenant, value) in [("a", 0.9), ("b", 0.6)] {
            let origin = Origin { file: "x".into(), line: 1 };
            let meaning = crate::survey::KeyMeaning {
                kind: LimitKind::Reservation,
                ..storage_ceiling(Direction::Total, LimitUnit::Share)
            };
            survey.push(meaning.limit("x", "res", (tenant, "osd"), value, origin));
        }
        let found = audit(&survey, &AuditSettings::default());
        assert_eq!(found.verdict, AuditVerdict::Oversubscribed);
        let covered: Vec<f64> = found.places[0].uncovered.iter().map(|row| row.covered).collect();
        assert!((covered[0] - 0.6).abs() < 1e-12 && (covered[1] - 0.4).abs() < 1e-12, "{covered:?}");
    }
}
