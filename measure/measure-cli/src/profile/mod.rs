//! `tailwright profile`: measures a file, a block device or a server, and writes its profile.

pub(crate) mod disk;
pub(crate) mod server;
pub(crate) mod text;

use crate::profile::{disk as profiled_disk, text as profiled};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::stop_on_termination;
use cli::quantities::percentage;
use cli::terminal::{self, TerminalObserver};
use indicatif::ProgressBar;
use load::LoadTarget;
use measure::profiling::{DeviceMeasurement, ProfilingSettings, measure_device, write_profile};
use measure::server_profiling::ServerProfilingSettings;
use model::OperationError;
use operation::files::check_writable;
use profile::{MeasurementSettings, ProfileProgress, TargetAccess};
use std::path::PathBuf;
use units::{Bytes, ParseError, Percentile, Seconds};

/// Measure a file, a block device or a server: bandwidth by request size, and base latency
///
/// Reads and writes at random offsets with direct I/O, past the page cache, over request sizes and numbers
/// of outstanding requests, several times each. Without --create or --write, TARGET is only read.
///
/// A server is measured by its protocol, and saturated for about half a minute: memcached by keys of the
/// measurement's own, which are deleted at its end; an NBD export by reads, and with --write
/// --destroy-device-data by writes.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    tailwright profile /srv/data --create 4GiB -o storage.json\n      measure the storage below /srv/data\n  \
    tailwright profile /dev/nvme0n1   reads only; nothing is written\n  \
    tailwright profile /dev/sdb --spindle-rpm 7200\n      a magnetic disk: seeks and transfer\n  \
    tailwright profile memcached://10.0.0.9 -o cache.json\n  \
    tailwright profile nbd://10.0.0.9/disk --writes-like-reads -o disk.json\n  \
    tailwright profile big.img --sizes 4KiB,64KiB --parallelism 1,8 \\\n      --time-per-cell 5s --json\n\n\
    A profile needs both reads and writes: -o asks for --create, --write or --writes-like-reads, \
    except for memcached.\n\n\
    Exit codes: 0 done; 2 bad input; 3 the storage, the server or a privilege is missing, or Ctrl-C ended the measurement: what was \
    measured until then is printed.")]
pub struct ProfileArgs {
    /// A file or block device, memcached://HOST:PORT, nbd://HOST:PORT/EXPORT; with --create, a directory or
    /// the path of a new file.
    target: PathBuf,
    /// Make a new file of this size, measure it, and leave nothing behind.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["write", "read_only"])]
    create: Option<Bytes>,
    /// Measure writes, too: overwrites TARGET with random data.
    #[arg(long)]
    write: bool,
    /// With --write, allow TARGET to be a block device or an NBD export, and destroy everything on it.
    #[arg(long, requires = "write")]
    destroy_device_data: bool,
    /// Measure reads and write nothing (this is the default).
    #[arg(long, conflicts_with = "write")]
    read_only: bool,
    /// In the profile, count writes like reads: only for workloads that do not write.
    #[arg(long, conflicts_with_all = ["write", "create"])]
    writes_like_reads: bool,
    /// Measure a memcached whose memory is full, although it evicts items of other clients.
    #[arg(long)]
    allow_evictions: bool,
    /// Request sizes [default: every power of two from the target's block size to 1MiB; for a server every
    /// power of four that it takes].
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    sizes: Vec<Bytes>,
    /// Numbers of outstanding requests; 1 is always measured [default: 1,2,4,8,16,32; for a server 1,2,4,8,16].
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    parallelism: Vec<usize>,
    /// Time for each operation, size and parallelism, all repeats together [default: 1s; for a server 300ms].
    #[arg(long, alias = "seconds-per-cell", value_name = "TIME")]
    time_per_cell: Option<Seconds>,
    /// How often each cell is measured; six or more give a 95 % interval.
    #[arg(long, alias = "repeats", value_name = "N", default_value_t = default_repetitions())]
    repetitions: u32,
    /// TARGET is a magnetic disk of this speed: measure seeks and sequential transfer instead of a table.
    #[arg(long, value_name = "RPM", value_parser = spindle, conflicts_with_all = ["sizes", "parallelism", "repetitions", "percentile"])]
    spindle_rpm: Option<f64>,
    /// The percentile that the base latency is.
    #[arg(long, value_name = "PERCENT", default_value_t = MeasurementSettings::default().percentile, value_parser = percentage)]
    percentile: Percentile,
    /// Seed of offsets, contents and the order of measuring.
    #[arg(long, value_name = "N", default_value_t = MeasurementSettings::default().seed)]
    seed: u64,
    /// Name in the profile [default: the output file's name].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write the profile that was measured.
    #[arg(short, long, value_name = "PROFILE.json")]
    output: Option<PathBuf>,
    /// Print JSON: every cell and repetition.
    #[arg(long)]
    json: bool,
}

/// Six of them give an interval.
fn default_repetitions() -> u32 {
    u32::try_from(MeasurementSettings::default().repeats).expect("a small number")
}

/// Reads revolutions per minute.
fn spindle(text: &str) -> Result<f64, String> {
    let rpm = text.parse().ok().filter(|rpm: &f64| rpm.is_finite() && *rpm > 0.0);
    rpm.ok_or_else(|| "expected revolutions per minute such as 7200".to_owned())
}

pub fn run(args: &ProfileArgs) -> Result<VerbAnswer, OperationError> {
    let server = args.server_settings()?;
    check_writable(args.output.as_deref(), "device profile")?;
    let stop = stop_on_termination();
    let mut bars = ProfileBars::default();
    if let Some(settings) = server {
        server::run(&settings, args.json, &stop, &mut |step| bars.show(step))?;
        return Ok(VerbAnswer::Yes);
    }
    if args.allow_evictions {
        return Err(OperationError::input("--allow-evictions is for memcached"));
    }
    let settings = args.settings();
    let measured = measure_device(&settings, &stop, &mut |step| bars.show(step), &TerminalObserver);
    drop(bars);
    let device = measured?;
    let written = write_profile(&settings, &device, &TerminalObserver);
    let target = &device.target;
    match &device.result {
        DeviceMeasurement::Table { plan, measurement } if args.json => {
            terminal::print(&profiled::json(target, plan, measurement));
        }
        DeviceMeasurement::Table { measurement, .. } => terminal::print_text(&profiled::text(measurement)),
        DeviceMeasurement::Disk { measurement, disk, .. } if args.json => {
            terminal::print(&profiled_disk::json(target, measurement, disk.parameters()));
        }
        DeviceMeasurement::Disk { measurement, disk, .. } => {
            terminal::print_text(&profiled_disk::text(measurement, disk.parameters()));
        }
    }
    written?;
    Ok(VerbAnswer::Yes)
}

impl ProfileArgs {
    /// The settings for a server; `None` if TARGET is a path.
    fn server_settings(&self) -> Result<Option<ServerProfilingSettings>, OperationError> {
        let Some(url) = self.target.to_str().filter(|target| server::is_server(target)) else {
            return Ok(None);
        };
        let target: LoadTarget = url.parse().map_err(|error: ParseError| OperationError::input(error))?;
        if self.create.is_some() || self.spindle_rpm.is_some() {
            return Err(OperationError::input(
                "--create and --spindle-rpm are for files and devices, not for servers",
            ));
        }
        if self.write && !self.destroy_device_data && matches!(target, LoadTarget::Nbd { .. }) {
            return Err(OperationError::input(format!("--write would destroy everything on {url}"))
                .hint("--destroy-device-data agrees to that; use an export that holds nothing else"));
        }
        Ok(Some(ServerProfilingSettings {
            target,
            overwrite: self.write,
            allow_evictions: self.allow_evictions,
            measurement: self.measurement(ServerProfilingSettings::default_measurement()),
            output: self.output.clone(),
            name: self.name.clone(),
            writes_like_reads: self.writes_like_reads,
        }))
    }

    /// Completes the defaults of a kind of target by the arguments.
    fn measurement(&self, mut settings: MeasurementSettings) -> MeasurementSettings {
        if !self.parallelism.is_empty() {
            settings.parallelism.clone_from(&self.parallelism);
        }
        if let Some(per_cell) = self.time_per_cell {
            settings.per_cell = per_cell;
        }
        settings.sizes.clone_from(&self.sizes);
        settings.repeats = self.repetitions as usize;
        settings.percentile = self.percentile;
        settings.seed = self.seed;
        settings
    }

    fn settings(&self) -> ProfilingSettings {
        let access = match self.create {
            Some(size) => TargetAccess::Create(size),
            None if self.write => TargetAccess::Overwrite { block_devices: self.destroy_device_data },
            None => TargetAccess::ReadOnly,
        };
        ProfilingSettings {
            target: self.target.clone(),
            access,
            measurement: self.measurement(MeasurementSettings::default()),
            spindle_rpm: self.spindle_rpm,
            output: self.output.clone(),
            name: self.name.clone(),
            writes_like_reads: self.writes_like_reads,
        }
    }
}

/// One progress bar at a time: filling, then measuring.
#[derive(Default)]
struct ProfileBars {
    fill: Option<ProgressBar>,
    measure: Option<ProgressBar>,
}

impl ProfileBars {
    fn show(&mut self, step: ProfileProgress) {
        let (slot, done, total, what, unit) = match step {
            ProfileProgress::Fill { done, total } => (&mut self.fill, done, total, "filling", "MiB"),
            ProfileProgress::Measure { done, total } => {
                (&mut self.measure, done, total, "measuring", "repeats")
            }
        };
        let bar = slot.get_or_insert_with(|| terminal::progress(total, what, unit));
        bar.set_position(done);
        if done == total {
            bar.finish_and_clear();
        }
    }
}

impl Drop for ProfileBars {
    fn drop(&mut self) {
        for bar in [&self.fill, &self.measure].into_iter().flatten() {
            bar.finish_and_clear();
        }
    }
}
