//! `tailwright profile`: measures a file or block device and writes its device profile.
//!
//! Decides what may be overwritten (nothing, unless a flag says so), and that a profile is only written
//! from a complete measurement. Measuring itself is the `profile` crate's.

mod answer;
mod disk;

use crate::exit::Answer;
use crate::terminal;
use clap::Args;
use indicatif::ProgressBar;
use model::OperationError;
use profile::{
    MeasurementPlan, MeasurementSettings, ProfileProgress, StorageTarget, TargetAccess, WritesFrom, measure,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Percentile, Seconds};
use workflow::files::write_whole;
use workload::device::StorageProfile;

/// Measure a file or block device: bandwidth by request size, and base latency
///
/// Reads and writes at random offsets with direct I/O, past the page cache, over request sizes and numbers
/// of outstanding requests, several times each. Without --create or --write, TARGET is only read.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    tailwright profile /srv/data --create 4GiB -o storage.json    measure the storage below /srv/data\n  \
    tailwright profile /dev/nvme0n1                               reads only; nothing is written\n  \
    tailwright profile /dev/sdb --spindle-rpm 7200                a magnetic disk: seeks and transfer\n  \
    tailwright profile big.img --sizes 4KiB,64KiB --parallelism 1,8 --seconds-per-cell 5s --json\n\n\
    A profile needs both reads and writes: -o asks for --create, --write or --writes-like-reads.\n\
    Ctrl-C ends the measurement and prints what was measured until then.")]
pub(crate) struct ProfileArgs {
    /// A file or block device; with --create, a directory or the path of a new file.
    target: PathBuf,
    /// Make a new file of this size, measure it, and leave nothing behind.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["write", "read_only"])]
    create: Option<Bytes>,
    /// Measure writes, too: overwrites TARGET with random data.
    #[arg(long)]
    write: bool,
    /// With --write, allow TARGET to be a block device and destroy everything on it.
    #[arg(long, requires = "write")]
    destroy_device_data: bool,
    /// Measure reads and write nothing (this is the default).
    #[arg(long, conflicts_with = "write")]
    read_only: bool,
    /// In the profile, count writes like reads: only for workloads that do not write.
    #[arg(long, conflicts_with_all = ["write", "create"])]
    writes_like_reads: bool,
    /// Request sizes [default: every power of two from the target's block size to 1MiB].
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    sizes: Vec<Bytes>,
    /// Numbers of outstanding requests; 1 is always measured.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = MeasurementSettings::default().parallelism)]
    parallelism: Vec<usize>,
    /// Time for each operation, size and parallelism, all repeats together.
    #[arg(long, value_name = "TIME", default_value_t = MeasurementSettings::default().per_cell, value_parser = seconds)]
    seconds_per_cell: Seconds,
    /// How often each cell is measured; six or more give a 95 % interval.
    #[arg(long, value_name = "N", default_value_t = MeasurementSettings::default().repeats)]
    repeats: usize,
    /// TARGET is a magnetic disk of this speed: measure seeks and sequential transfer instead of a table.
    #[arg(long, value_name = "RPM", value_parser = spindle, conflicts_with_all = ["sizes", "parallelism", "repeats", "percentile"])]
    spindle_rpm: Option<f64>,
    /// Percentile of the base latency.
    #[arg(long, value_name = "P", default_value_t = MeasurementSettings::default().percentile)]
    percentile: Percentile,
    /// Of offsets, contents and the order of measuring.
    #[arg(long, default_value_t = MeasurementSettings::default().seed)]
    seed: u64,
    /// Name in the profile [default: the output file's name].
    #[arg(long)]
    name: Option<String>,
    /// Where to write the profile.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print every cell and repeat as JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// `2`, `0.5` (seconds) or a time with its unit.
fn seconds(text: &str) -> Result<Seconds, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(Seconds(number)),
        _ => text.parse::<Seconds>().map_err(|error| error.to_string()),
    }
}

/// Revolutions per minute.
fn spindle(text: &str) -> Result<f64, String> {
    let rpm = text.parse().ok().filter(|rpm: &f64| rpm.is_finite() && *rpm > 0.0);
    rpm.ok_or_else(|| "expected revolutions per minute such as 7200".to_owned())
}

pub(crate) fn run(args: &ProfileArgs) -> Result<Answer, OperationError> {
    check(args)?;
    let stop = stop_on_interrupt()?;
    let mut bars = Bars::default();
    let settings = settings(args);
    let access = args.access();
    // A plan that no target can satisfy should fail before gigabytes are written; no block is smaller.
    MeasurementPlan::new(&settings, access.ops(), Bytes(512))?;
    let target = StorageTarget::open(&args.target, access, args.seed, &mut |step| bars.show(step), &stop)?;
    warn_about(&target);
    match args.spindle_rpm {
        Some(rpm) => disk::run(args, rpm, &target, &mut bars, &stop),
        None => measure_table(args, &settings, &target, &mut bars, &stop),
    }
}

fn measure_table(
    args: &ProfileArgs,
    settings: &MeasurementSettings,
    target: &StorageTarget,
    bars: &mut Bars,
    stop: &AtomicBool,
) -> Result<Answer, OperationError> {
    let plan = MeasurementPlan::new(settings, args.access().ops(), target.block())?;
    announce(target, &plan);
    let measurement = measure(target, &plan, &mut |step| bars.show(step), stop);
    bars.finish();
    let measurement = measurement?;
    terminal::print(&if args.json {
        answer::json(target, &plan, &measurement)
    } else {
        answer::table(&measurement)
    });
    for warning in measurement.warnings() {
        eprintln!("warning: {warning}");
    }
    if !measurement.is_complete() {
        return Err(OperationError::machine("interrupted: the result is partial and no profile was written"));
    }
    let writes = if args.writes_like_reads { WritesFrom::Reads } else { WritesFrom::Measured };
    match &args.output {
        Some(output) => write_profile(args, output, |name| {
            Ok(measurement.profile(name, writes)?.with_source(source(args, &plan)))
        }),
        None => Ok(Answer::Yes),
    }
}

impl ProfileArgs {
    fn access(&self) -> TargetAccess {
        match self.create {
            Some(size) => TargetAccess::Create(size),
            None if self.write => TargetAccess::Overwrite { block_devices: self.destroy_device_data },
            None => TargetAccess::ReadOnly,
        }
    }
}

fn check(args: &ProfileArgs) -> Result<(), OperationError> {
    let read_only = args.access() == TargetAccess::ReadOnly;
    if args.output.is_some() && read_only && !args.writes_like_reads {
        return Err(OperationError::input("a profile needs write measurements, and this run only reads").hint(
            "measure a temporary file with --create SIZE, overwrite TARGET with --write, or, if no workload \
             writes, say --writes-like-reads",
        ));
    }
    if args.output.is_none() && args.writes_like_reads {
        return Err(OperationError::input("--writes-like-reads is about the profile that -o FILE writes"));
    }
    Ok(())
}

fn settings(args: &ProfileArgs) -> MeasurementSettings {
    MeasurementSettings {
        sizes: args.sizes.clone(),
        parallelism: args.parallelism.clone(),
        per_cell: args.seconds_per_cell,
        repeats: args.repeats,
        percentile: args.percentile,
        seed: args.seed,
    }
}

/// A flag that the first Ctrl-C sets; the second one ends the program.
pub(crate) fn stop_on_interrupt() -> Result<Arc<AtomicBool>, OperationError> {
    let stop = Arc::new(AtomicBool::new(false));
    let signal = signal_hook::consts::SIGINT;
    // In this order: the second handler sets what the first one looks at.
    signal_hook::flag::register_conditional_shutdown(signal, 3, Arc::clone(&stop))
        .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
        .map_err(|error| OperationError::machine(format!("cannot handle Ctrl-C: {error}")))?;
    Ok(stop)
}

fn warn_about(target: &StorageTarget) {
    if target.is_sparse() {
        let path = target.path().display();
        eprintln!("warning: {path} has holes; reading them does not reach the device and looks too fast");
    }
}

fn announce(target: &StorageTarget, plan: &MeasurementPlan) {
    let time = Seconds(plan.duration().as_secs_f64());
    let (path, cells) = (target.path().display(), plan.cells().len());
    eprintln!("{path}: {cells} cells, {} repeats, about {time}, seed {}", plan.repeats(), plan.seed());
}

/// Writes what `profile` makes for the name that the user chose or the output file suggests.
fn write_profile(
    args: &ProfileArgs,
    output: &Path,
    profile: impl FnOnce(&str) -> Result<StorageProfile, OperationError>,
) -> Result<Answer, OperationError> {
    let stem = output.file_stem().map_or("device".into(), |stem| stem.to_string_lossy());
    let name = args.name.as_deref().unwrap_or(&stem);
    let profile = profile(name)?;
    write_whole(output, profile.to_json().as_bytes()).map_err(|error| {
        OperationError::machine(format!("cannot write {}: {error}", output.display()))
            .hint("choose another file with -o; --json prints the measurement instead")
    })?;
    eprintln!("profile '{name}' written to {}", output.display());
    Ok(Answer::Yes)
}

fn source(args: &ProfileArgs, plan: &MeasurementPlan) -> String {
    let writes = if args.writes_like_reads { "; writes counted like reads" } else { "" };
    format!(
        "direct I/O at random offsets on {}, {} repeats of {} per cell, seed {}{writes}",
        args.target.display(),
        plan.repeats(),
        Seconds(plan.per_repeat().as_secs_f64()),
        plan.seed()
    )
}

/// One progress bar at a time: filling, then measuring.
#[derive(Default)]
struct Bars {
    fill: Option<ProgressBar>,
    measure: Option<ProgressBar>,
}

impl Bars {
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

    fn finish(&self) {
        for bar in [&self.fill, &self.measure].into_iter().flatten() {
            bar.finish_and_clear();
        }
    }
}
