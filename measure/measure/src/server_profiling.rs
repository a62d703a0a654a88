//! Measuring a storage server through its network protocol, and writing its profile.
//!
//! The plan of cells and the conclusions are those of a file or block device (`profile`); the requests of a cell are a
//! closed loop of the load generator. The stack of the server, its network and the generator are part of what is
//! measured.

use crate::profiling::{announcement, check_table, profile_name, save_profile};
use load::{
    ClientHost, LoadOptions, LoadReport, LoadTarget, LoadWorkload, MemcachedFacts, MemcachedTransport,
    NbdExportFacts, OfferedLoad, remove_values, time_missing_keys,
};
use model::{Op, OperationError, RequestOutcome};
use operation::{Notice, ProgressObserver};
use profile::{
    MIN_REQUESTS, Measurement, MeasurementCell, MeasurementPlan, MeasurementSettings, ProfileProgress,
    Repeat, WritesFrom, check_room, measure_cells,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use units::{Bytes, Nanos, Seconds, plural};
use workload::device::{OperationCost, StorageProfile};

/// The workload whose keys are stored: it is part of every key.
const WORKLOAD: &str = "profile";
/// Total size of the values of one size.
const VALUES_BYTES: u64 = 4 << 20;
/// Total size of the values of one size on a full server: a size class that is new there gets a single page of 1 MiB.
const VALUES_BYTES_FULL: u64 = 768 << 10;
/// Maximum number of values of one size.
const KEYS_MAX: u64 = 1000;
/// Bytes of an item beside its value: header, key, and room that its size class wastes.
const ITEM_OVERHEAD: u64 = 512;
/// Maximum number of connections to an NBD export that takes several.
const NBD_CONNECTIONS: usize = 8;
/// The smallest and largest size of NBD requests that are measured if the user chooses no sizes.
const NBD_SIZES: (u64, u64) = (4096, 1 << 20);
/// The smallest size of values that is measured if the user chooses no sizes.
const VALUE_SIZE_MIN: u64 = 64;
/// Share of a cell's time in which the first requests on new connections are not counted, for base latencies.
const WARM_UP: f64 = 0.1;
/// Share of the best throughput that saturates a server. The parallelism becomes the channels of the profile, and every
/// channel adds to bounds. The last fifth of a server's throughput often takes several times the requests in flight.
const SATURATION: f64 = 0.8;
/// The generator is the limit of a throughput if its CPU time is this share of a CPU.
const BUSY: f64 = 0.9;

/// Keys of the lookups that are compared with lookups of one key.
const LOOKUP_KEYS: u32 = 64;

/// Settings of the measurement of a server.
#[derive(Debug, Clone)]
pub struct ServerProfilingSettings {
    /// The server, and the export of NBD.
    pub target: LoadTarget,
    /// Overwrite an NBD export with random data. Memcached has values of the measurement's own.
    pub overwrite: bool,
    /// Measure a memcached whose memory is full, and evict items of others.
    pub allow_evictions: bool,
    /// Sizes, parallelism, times and seed of the measurement. Without sizes, these follow from the limits of the server.
    pub measurement: MeasurementSettings,
    /// Path of the written profile.
    pub output: Option<PathBuf>,
    /// The name in the profile; by default that of the output file.
    pub name: Option<String>,
    /// Count writes like reads in the profile.
    pub writes_like_reads: bool,
}

impl ServerProfilingSettings {
    /// Settings of a run of about half a minute.
    pub fn default_measurement() -> MeasurementSettings {
        MeasurementSettings {
            parallelism: vec![1, 2, 4, 8, 16],
            per_cell: Seconds(0.3),
            saturation: SATURATION,
            ..MeasurementSettings::default()
        }
    }
}

/// A server that was measured.
#[derive(Debug)]
pub struct MeasuredServer {
    /// The address of the server, and the export of NBD.
    pub server: String,
    /// Cells of the measurement.
    pub plan: MeasurementPlan,
    /// Results, partial after an interruption.
    pub measurement: Measurement,
    /// The time of lookups of keys that are not there, where the protocol has keys and the measurement is complete.
    pub operation: Option<OperationCost>,
    /// CPU time of the generator as a share of one CPU, for each repeat of each cell.
    generator_shares: Vec<Vec<f64>>,
}

/// A server that can be measured.
#[derive(Debug)]
enum Subject {
    Memcached { server: SocketAddr, facts: MemcachedFacts },
    Nbd { facts: NbdExportFacts },
}

/// Measures a server. When `stop` becomes true, the measurement ends with what there is.
///
/// # Errors
///
/// When the settings contradict each other, or the server cannot be reached, is full, or does not answer.
pub fn measure_server(
    settings: &ServerProfilingSettings,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(ProfileProgress),
    observer: &dyn ProgressObserver,
) -> Result<MeasuredServer, OperationError> {
    check(settings)?;
    let subject = Subject::inspect(&settings.target)?;
    let plan = subject.plan(settings)?;
    subject.check_room(settings, &plan)?;
    let url = url(&settings.target);
    observer.notice(announcement(&url, &plan));
    observer.notice(Notice::Done(format!(
        "{url} is saturated while it is measured: its clients wait longer until then"
    )));
    let values_bytes = subject.values_bytes(&plan);
    let mut generator_shares = vec![Vec::new(); plan.cells().len()];
    let measured = measure_cells(&plan, progress, stop, &mut |index, seed| {
        let run = CellRun { settings, subject: &subject, values_bytes, cell: plan.cells()[index], seed };
        let (repeat, share) = run.play(plan.per_repeat(), stop)?;
        generator_shares[index].push(share);
        Ok(repeat)
    });
    // Values are deleted after errors and interruptions, too.
    let removed = subject.remove_values(&plan);
    let measurement = measured?;
    removed?;
    let operation = subject.time_lookups(&plan, &measurement)?;
    subject.warn_about_evictions(observer);
    Ok(MeasuredServer { server: url, plan, measurement, operation, generator_shares })
}

/// Tells the observer what is doubtful about a measurement, and writes the profile that was asked for.
///
/// # Errors
///
/// When the measurement is not complete, or the profile cannot be made of it or written.
pub fn write_server_profile(
    settings: &ServerProfilingSettings,
    server: &MeasuredServer,
    observer: &dyn ProgressObserver,
) -> Result<(), OperationError> {
    for warning in server.generator_warnings() {
        observer.notice(Notice::Warning(warning));
    }
    check_table(&server.measurement, observer)?;
    let Some(output) = &settings.output else { return Ok(()) };
    let name = profile_name(settings.name.as_deref(), output);
    save_profile(output, &server.profile(settings, &name)?, observer)
}

impl MeasuredServer {
    fn profile(
        &self,
        settings: &ServerProfilingSettings,
        name: &str,
    ) -> Result<StorageProfile, OperationError> {
        let writes = if settings.writes_like_reads { WritesFrom::Reads } else { WritesFrom::Measured };
        let note = if settings.writes_like_reads { "; writes counted like reads" } else { "" };
        let source = format!(
            "closed loops of requests to {}, {} of {} per cell, seed {}{note}",
            self.server,
            plural(self.plan.repeats(), "repeat"),
            Seconds(self.plan.per_repeat().as_secs_f64()),
            self.plan.seed()
        );
        let profile = self.measurement.profile(name, writes)?.with_source(source);
        Ok(match self.operation {
            Some(operation) => profile.with_operation(operation),
            None => profile,
        })
    }

    /// Returns all warnings about the measurement, as sentences.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.generator_warnings();
        warnings.extend(self.measurement.warnings());
        warnings
    }

    /// Returns warnings about sizes at which the generator, not the server, may be the limit.
    fn generator_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (op, name) in [(Op::Read, "reads"), (Op::Write, "writes")] {
            let mut limited = Vec::new();
            for row in self.measurement.by_size() {
                let Some(figures) = row.for_op(op) else { continue };
                let cell = MeasurementCell { op, size: row.request, parallelism: figures.parallelism };
                let index = self.plan.cells().iter().position(|planned| *planned == cell);
                let shares = index.map(|index| self.generator_shares[index].clone()).unwrap_or_default();
                if median(shares).is_some_and(|share| share >= BUSY) {
                    limited.push(row.request.to_string());
                }
            }
            if !limited.is_empty() {
                warnings.push(format!(
                    "{name} of {}: this program used a whole CPU, so the server may be faster than measured; a plan \
                     with this profile is on the safe side",
                    limited.join(", ")
                ));
            }
        }
        warnings
    }
}

fn median(mut shares: Vec<f64>) -> Option<f64> {
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() / 2).copied()
}

/// Refuses targets that are not measured, and settings that contradict the target or each other.
fn check(settings: &ServerProfilingSettings) -> Result<(), OperationError> {
    let is_memcached = match &settings.target {
        LoadTarget::Memcached { transport: MemcachedTransport::Tcp, .. } => true,
        LoadTarget::Nbd { .. } => false,
        LoadTarget::Nfs { .. } => {
            return Err(OperationError::input(format_args!("{} is not measured by NFS", settings.target))
                .hint("on the server, measure the storage below the export: profile FOLDER --create 4GiB"));
        }
        LoadTarget::Memcached { .. }
        | LoadTarget::Http { .. }
        | LoadTarget::Grpc { .. }
        | LoadTarget::Tls { .. }
        | LoadTarget::Echo { .. } => {
            return Err(OperationError::input(format_args!("{} is not measured", settings.target))
                .hint("expected memcached://HOST:PORT or nbd://HOST:PORT/EXPORT, a file or a block device"));
        }
    };
    if is_memcached && (settings.overwrite || settings.writes_like_reads) {
        return Err(OperationError::input(
            "--write and --writes-like-reads are not for memcached, whose writes are always measured",
        )
        .hint("they are sets of keys of this measurement's own, deleted at its end"));
    }
    if !is_memcached && settings.allow_evictions {
        return Err(OperationError::input("--allow-evictions is for memcached"));
    }
    let lacks_writes = !is_memcached && !settings.overwrite && !settings.writes_like_reads;
    if settings.output.is_some() && lacks_writes {
        return Err(OperationError::input("a profile needs write measurements, and this run only reads").hint(
            "if no workload writes, say --writes-like-reads; otherwise measure a spare export of the same \
             server, which --write --destroy-device-data overwrites",
        ));
    }
    if settings.output.is_none() && settings.writes_like_reads {
        return Err(OperationError::input("--writes-like-reads is about the profile that -o FILE writes"));
    }
    Ok(())
}

/// The address of a target, without what does not matter here.
fn url(target: &LoadTarget) -> String {
    let text = target.to_string();
    text.split_once('?').map_or(text.clone(), |(address, _)| address.to_owned())
}

impl Subject {
    fn inspect(target: &LoadTarget) -> Result<Self, OperationError> {
        Ok(match target {
            LoadTarget::Nbd { server, export } => {
                Self::Nbd { facts: NbdExportFacts::inspect(*server, export)? }
            }
            LoadTarget::Memcached { server, .. } => {
                Self::Memcached { server: *server, facts: MemcachedFacts::inspect(*server)? }
            }
            _ => unreachable!("other targets were refused"),
        })
    }

    fn plan(&self, settings: &ServerProfilingSettings) -> Result<MeasurementPlan, OperationError> {
        let mut measurement = settings.measurement.clone();
        let (ops, block): (&[Op], Bytes) = match self {
            Self::Memcached { .. } => (&[Op::Read, Op::Write], Bytes(1)),
            Self::Nbd { facts } => {
                let ops: &[Op] = if settings.overwrite { &[Op::Read, Op::Write] } else { &[Op::Read] };
                (ops, facts.block)
            }
        };
        if measurement.sizes.is_empty() {
            measurement.sizes = self.default_sizes();
        }
        MeasurementPlan::new(&measurement, ops, block)
    }

    /// Powers of four up to the largest request of the server.
    fn default_sizes(&self) -> Vec<Bytes> {
        let powers = |first: u64, largest: u64| {
            std::iter::successors(Some(first), |size| size.checked_mul(4))
                .take_while(move |size| *size <= largest)
                .map(Bytes)
        };
        match self {
            Self::Memcached { facts, .. } => {
                // Half an item's limit leaves room for key and header.
                let largest = facts.item_max.0 / 2;
                let mut sizes: Vec<Bytes> = powers(VALUE_SIZE_MIN, largest).collect();
                sizes.push(Bytes(largest.max(1)));
                sizes
            }
            Self::Nbd { facts } => {
                let smallest = facts.block.0.max(NBD_SIZES.0);
                let largest = NBD_SIZES.1.min(facts.length.0 / MIN_REQUESTS).max(smallest);
                powers(smallest, largest).collect()
            }
        }
    }

    /// Refuses a server without room for the measurement.
    fn check_room(
        &self,
        settings: &ServerProfilingSettings,
        plan: &MeasurementPlan,
    ) -> Result<(), OperationError> {
        match self {
            Self::Nbd { facts } => {
                if settings.overwrite && !facts.is_writable {
                    return Err(OperationError::input(format_args!(
                        "{} is read-only",
                        url(&settings.target)
                    ))
                    .hint("export it writable, or leave --write out"));
                }
                check_room(plan, &url(&settings.target), facts.length)
            }
            Self::Memcached { server, facts } => {
                let Bytes(largest) = plan.size_max();
                if largest + ITEM_OVERHEAD > facts.item_max.0 {
                    return Err(OperationError::input(format_args!(
                        "a value of {} does not fit into an item of {server}, which has at most {}",
                        plan.size_max(),
                        facts.item_max
                    ))
                    .hint("choose smaller --sizes, or start memcached with a larger -I"));
                }
                let needed = memory_needed(plan);
                if needed > facts.unassigned && !settings.allow_evictions {
                    return Err(full(*server, facts, needed));
                }
                Ok(())
            }
        }
    }

    /// Total size of the values of one size: as much as is free.
    fn values_bytes(&self, plan: &MeasurementPlan) -> u64 {
        match self {
            Self::Memcached { facts, .. } if memory_needed(plan) > facts.unassigned => VALUES_BYTES_FULL,
            _ => VALUES_BYTES,
        }
    }

    fn remove_values(&self, plan: &MeasurementPlan) -> Result<(), OperationError> {
        match self {
            Self::Nbd { .. } => Ok(()),
            Self::Memcached { server, .. } => remove_values(*server, WORKLOAD, &stored(plan, VALUES_BYTES))
                .map_err(|error| {
                    error.hint("keys that begin with tw:profile: are left; the next measurement deletes them")
                }),
        }
    }

    /// Measures lookups of one key and of many with as many in flight as saturated the server, in turns.
    fn time_lookups(
        &self,
        plan: &MeasurementPlan,
        measurement: &Measurement,
    ) -> Result<Option<OperationCost>, OperationError> {
        let Self::Memcached { server, .. } = self else { return Ok(None) };
        let smallest = measurement.by_size().first().and_then(|row| row.read);
        let Some(smallest) = smallest.filter(|_| measurement.is_complete()) else { return Ok(None) };
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..plan.repeats() {
            for (keys, times) in [1, LOOKUP_KEYS].into_iter().zip(&mut times) {
                let time = time_missing_keys(*server, smallest.parallelism, keys, plan.per_repeat())?;
                times.push(time.0 as f64);
            }
        }
        let [request, many] = times.map(|times| median(times).unwrap_or(0.0));
        let key = (many - request).max(0.0) / f64::from(LOOKUP_KEYS - 1);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than a cell takes")]
        let nanos = |time: f64| Nanos(time.ceil() as u64);
        Ok(Some(OperationCost { request: nanos(request), key: nanos(key).max(Nanos(1)) }))
    }

    /// Warns if the server evicted items during the measurement.
    fn warn_about_evictions(&self, observer: &dyn ProgressObserver) {
        let Self::Memcached { server, facts } = self else { return };
        let Ok(after) = MemcachedFacts::inspect(*server) else { return };
        let evicted = after.evictions.saturating_sub(facts.evictions);
        if evicted > 0 {
            let evicted = plural(usize::try_from(evicted).unwrap_or(usize::MAX), "item");
            observer.notice(Notice::Warning(format!(
                "{server} evicted {evicted} during the measurement, which other clients may miss"
            )));
        }
    }

    fn connections(&self, parallelism: usize) -> usize {
        match self {
            // A connection of memcached is served one request at a time.
            Self::Memcached { .. } => parallelism,
            Self::Nbd { facts } if facts.takes_connections => parallelism.min(NBD_CONNECTIONS),
            Self::Nbd { .. } => 1,
        }
    }
}

fn full(server: SocketAddr, facts: &MemcachedFacts, needed: Bytes) -> OperationError {
    let free = facts.unassigned;
    let message =
        format!("{server} has {free} of free memory, and the values of the measurement take {needed}");
    if facts.evicts {
        OperationError::input(format!("{message}: items of others would be evicted")).hint(
            "--allow-evictions accepts that; or choose fewer and smaller --sizes, or measure another memcached \
             on the same machine",
        )
    } else {
        OperationError::input(message).hint("choose fewer and smaller --sizes, or give it more memory (-m)")
    }
}

/// Returns the number of keys of a size whose values have `total` bytes together.
fn keys(size: Bytes, total: u64) -> u32 {
    let keys = (total / (size.0 + ITEM_OVERHEAD)).clamp(1, KEYS_MAX);
    u32::try_from(keys).expect("at most a thousand")
}

/// Returns the keys and sizes of all values that a plan stores, with `total` bytes of each size.
fn stored(plan: &MeasurementPlan, total: u64) -> Vec<(u32, Bytes)> {
    let mut sizes: Vec<Bytes> = plan.cells().iter().map(|cell| cell.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter().map(|size| (keys(size, total), size)).collect()
}

/// Returns the memory that the values of all sizes take, in whole pages of their size classes.
fn memory_needed(plan: &MeasurementPlan) -> Bytes {
    const PAGE: u64 = 1 << 20;
    let mut total = 0;
    for (keys, size) in stored(plan, VALUES_BYTES) {
        total += (u64::from(keys) * (size.0 + ITEM_OVERHEAD)).div_ceil(PAGE) * PAGE;
    }
    Bytes(total)
}

/// One repeat of one cell.
struct CellRun<'run> {
    settings: &'run ServerProfilingSettings,
    subject: &'run Subject,
    /// Total size of the values that memcached stores for the cell.
    values_bytes: u64,
    cell: MeasurementCell,
    seed: u64,
}

impl CellRun<'_> {
    /// Returns the repeat, and the CPU time of the generator as a share of one CPU.
    fn play(&self, duration: Duration, stop: &AtomicBool) -> Result<(Repeat, f64), OperationError> {
        // Counting begins late for single requests only: with many in flight, those from before would be missing in the
        // throughput.
        let warm_up = if self.cell.parallelism == 1 { duration.mul_f64(WARM_UP) } else { Duration::ZERO };
        let options = LoadOptions {
            warm_up: nanos(warm_up),
            duration: nanos(duration - warm_up),
            seed: self.seed,
            ..LoadOptions::default()
        };
        let cpu_before = machine::cpu_time::of_process();
        let begin = Instant::now();
        let report = load::run(vec![self.workload()], &options, &mut |_| {}, stop)?;
        let elapsed = begin.elapsed().as_secs_f64();
        let cpu = (machine::cpu_time::of_process() - cpu_before) as f64 / 1e9;
        let repeat = repeat_of(&report, self.cell.size).map_err(|why| {
            let cell = self.cell;
            let op = if cell.op == Op::Read { "reads" } else { "writes" };
            OperationError::machine(format_args!("{op} of {}: {why}", cell.size))
                .about(url(&self.settings.target))
        })?;
        Ok((repeat, cpu / elapsed.max(1e-9)))
    }

    fn workload(&self) -> LoadWorkload {
        let mut target = self.settings.target.clone();
        if let LoadTarget::Memcached { keys: count, key_size, .. } = &mut target {
            *count = keys(self.cell.size, self.values_bytes);
            *key_size = None;
        }
        LoadWorkload {
            name: WORKLOAD.to_owned(),
            target,
            client: ClientHost::default(),
            connections: self.subject.connections(self.cell.parallelism),
            requests_per_connection: None,
            offered: OfferedLoad::Closed {
                in_flight: u32::try_from(self.cell.parallelism).expect("a plan has at most 1024"),
                op: self.cell.op,
                size: self.cell.size,
                sequential: false,
            },
        }
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Makes a repeat of a run in which every request was answered.
fn repeat_of(report: &LoadReport, size: Bytes) -> Result<Repeat, String> {
    let mut latencies_ns = Vec::with_capacity(report.observations.requests.len());
    let mut end = Nanos::ZERO;
    let mut unanswered = 0usize;
    for request in &report.observations.requests {
        match request.outcome {
            RequestOutcome::Done(done) => {
                latencies_ns.push((done - request.sent).0);
                end = end.max(done);
            }
            _ => unanswered += 1,
        }
    }
    let misses: u64 = report.counters.iter().map(|counters| counters.misses).sum();
    if unanswered > 0 || misses > 0 {
        let reason = report.warnings.first().map(|warning| {
            let prefix = format!("workload {WORKLOAD}: ");
            warning.strip_prefix(&prefix).unwrap_or(warning).to_owned()
        });
        return Err(reason.unwrap_or_else(|| format!("{} without an answer", plural(unanswered, "request"))));
    }
    let requests = latencies_ns.len() as u64;
    let bytes_per_s = (requests * size.0) as f64 / end.as_secs().max(1e-9);
    Ok(Repeat { bytes_per_s, requests, latencies_ns })
}
