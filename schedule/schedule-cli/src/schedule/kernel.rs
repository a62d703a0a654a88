//! `tailwright schedule kernel`: the oldest requests first in the kernel, for threads that applications do not control.

use crate::schedule::kernel_text as kernel_scheduler;
use clap::{Args, Subcommand};
use cli::exit::VerbAnswer;
use cli::interrupt::undo_on_termination;
use cli::quantities::share;
use cli::terminal::{self, Talk, talk};
use model::OperationError;
use sched_ext::{
    AttachRequest, ControlGroup, CpuList, CpuPartition, KernelScheduler, OldestFirstSettings, QueueLayout,
    ScheduledThreads, SchedulerControl,
};
use std::path::PathBuf;
use std::time::Duration;
use units::Nanos;

const HELP: &str = "\
Examples:
  tailwright schedule kernel run                      run until Ctrl-C, as root
  tailwright schedule kernel run -c 4 --queue shared   one queue for all CPUs
  tailwright schedule kernel set -c 2   change settings, from another terminal
  tailwright schedule kernel show --json              its counters

Tested with Linux 7.3 of Debian's trixie-backports. Kernels before 6.13, without sched_ext, and Debian's \
7.1 and 7.2 do not work. \
It schedules all ordinary threads of the machine, with --partition those on some CPUs, or with --cgroup those of a control \
group. When it ends for any reason, the kernel's own scheduler takes over. docs/reference/schedule-kernel.md shows how services tag threads with requests.

Exit codes: 0 done; 2 bad input; 3 the kernel has no sched_ext, a privilege is missing, or the kernel \
has ended the scheduler.";

const RUN_HELP: &str = "\
Examples:
  tailwright schedule kernel run
  tailwright schedule kernel run -c 4 --queue shared --slice 2ms
  tailwright schedule kernel run --partition 2-3
  tailwright schedule kernel run --cgroup /sys/fs/cgroup/shop.slice

With --partition, put processes there: echo PID > /sys/fs/cgroup/tailwright/cgroup.procs

--cgroup requires Linux 7.3. All other threads get fair shares from a second scheduler, unless one is attached that \
accepts schedulers of control groups.

Exit codes: 0 stopped by a signal; 2 bad input; 3 the kernel has no sched_ext, a privilege is missing, or the kernel \
has ended the scheduler.";

const SET_HELP: &str = "\
Examples:
  tailwright schedule kernel set -c 2
  tailwright schedule kernel set --patience 500ms --untagged 0.2

Exit codes: 0 done; 2 bad input; 3 no scheduler runs, or a privilege is missing.";

const SHOW_HELP: &str = "\
Examples:
  tailwright schedule kernel show
  tailwright schedule kernel show --json

Exit codes: 0 done; 2 bad input; 3 no scheduler runs, or a privilege is missing.";

/// Serve the oldest requests first in the kernel, by sched_ext
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct KernelArgs {
    #[command(subcommand)]
    what: KernelSubcommand,
}

#[derive(Debug, Subcommand)]
enum KernelSubcommand {
    /// Schedule ordinary threads until Ctrl-C
    Run(KernelRunArgs),
    /// Change settings of the scheduler that runs
    Set(KernelSetArgs),
    /// Print settings and counters of the scheduler that runs
    Show(KernelShowArgs),
}

#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
struct KernelRunArgs {
    #[command(flatten)]
    settings: SettingArgs,
    /// A queue for each CPU (per-cpu), each with its c oldest, or one for all (shared).
    #[arg(long, value_name = "HOW", default_value_t = QueueLayout::PerCpu)]
    queue: QueueLayout,
    /// Number of the group whose members may tag threads; without it only root may.
    #[arg(long, value_name = "GID")]
    group: Option<u32>,
    /// Time a runnable thread may wait before the kernel ends the scheduler, 1s to 30s and at least
    /// twice the patience.
    #[arg(long, value_name = "TIME", default_value = "20s")]
    watchdog: Nanos,
    /// Reserve these CPUs, and schedule only the processes moved there [default: all threads on all CPUs].
    #[arg(long, value_name = "CPUS")]
    partition: Option<CpuList>,
    /// Schedule the threads of this control group only, and of the groups in it [default: all threads].
    #[arg(long, value_name = "FOLDER", conflicts_with = "partition")]
    cgroup: Option<PathBuf>,
    /// With --cgroup: share of each CPU reserved for threads of other groups, 0.001 to 0.9 [default: 0.5].
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "cgroup")]
    outside: Option<f64>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Default share of each CPU for threads outside the group.
const OUTSIDE: f64 = 0.5;

impl KernelRunArgs {
    fn threads(&self) -> Result<ScheduledThreads, OperationError> {
        match (&self.cgroup, &self.partition) {
            (Some(folder), _) => {
                let outside = self.outside.unwrap_or(OUTSIDE);
                if !(0.001..=0.9).contains(&outside) {
                    let message = format!("--outside {outside}: expected a share between 0.001 and 0.9");
                    return Err(OperationError::input(message));
                }
                ControlGroup::open(folder, permille(outside)).map(ScheduledThreads::Group)
            }
            (None, Some(_)) => Ok(ScheduledThreads::Extensible),
            (None, None) => Ok(ScheduledThreads::All),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = SET_HELP)]
struct KernelSetArgs {
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SHOW_HELP)]
struct KernelShowArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[arg(long, help = "Print JSON")]
    json: bool,
}

#[derive(Debug, Args)]
struct PlaceArgs {
    /// Directory in bpffs where programs find the scheduler.
    #[arg(long, value_name = "FOLDER", default_value = sched_hint::DEFAULT_FOLDER)]
    folder: PathBuf,
}

#[derive(Debug, Args)]
struct SettingArgs {
    /// Number of the oldest requests that share the CPUs of a queue [3 at the start].
    #[arg(short = 'c', long, value_name = "N")]
    oldest: Option<u32>,
    /// Share of each CPU that threads without a request have before the others [0.1 at the start].
    #[arg(long, value_name = "SHARE", value_parser = share)]
    untagged: Option<f64>,
    /// Time slice of each of the c oldest [4ms at the start].
    #[arg(long, value_name = "TIME")]
    slice: Option<Nanos>,
    /// A request that has waited this long runs one slice ahead of the others [2s at the start].
    #[arg(long, value_name = "TIME")]
    patience: Option<Nanos>,
}

impl SettingArgs {
    fn applied_to(&self, settings: OldestFirstSettings) -> Result<OldestFirstSettings, OperationError> {
        let untagged_permille = match self.untagged {
            None => settings.untagged_permille,
            Some(share) if (0.001..=0.999).contains(&share) => permille(share),
            Some(share) => {
                let message = format!("--untagged {share}: expected a share between 0.001 and 0.999");
                return Err(OperationError::input(message));
            }
        };
        let time =
            |given: Option<Nanos>, now: Duration| given.map_or(now, |given| Duration::from_nanos(given.0));
        let changed = OldestFirstSettings {
            oldest: self.oldest.unwrap_or(settings.oldest),
            untagged_permille,
            slice: time(self.slice, settings.slice),
            patience: time(self.patience, settings.patience),
            ..settings
        };
        changed.check().map(|()| changed)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share is between 0 and 1")]
fn permille(share: f64) -> u32 {
    (share * 1000.0).round() as u32
}

pub(crate) fn run(args: &KernelArgs) -> Result<VerbAnswer, OperationError> {
    match &args.what {
        KernelSubcommand::Run(args) => schedule(args),
        KernelSubcommand::Set(args) => {
            // Invalid settings are reported even if no scheduler is attached.
            args.settings.applied_to(OldestFirstSettings::default())?;
            let control = SchedulerControl::open(&args.place.folder)?;
            control.set(&args.settings.applied_to(control.settings())?)?;
            Ok(VerbAnswer::Yes)
        }
        KernelSubcommand::Show(args) => {
            let control = SchedulerControl::open(&args.place.folder)?;
            let settings = control.settings();
            let statistics = control.statistics();
            terminal::print(&if args.json {
                kernel_scheduler::json(&settings, &statistics)
            } else {
                kernel_scheduler::text(&settings, &statistics)
            });
            Ok(VerbAnswer::Yes)
        }
    }
}

fn schedule(args: &KernelRunArgs) -> Result<VerbAnswer, OperationError> {
    let stop = undo_on_termination();
    let request = AttachRequest {
        settings: args.settings.applied_to(OldestFirstSettings::default())?,
        layout: args.queue,
        threads: args.threads()?,
        folder: args.place.folder.clone(),
        group: args.group,
        watchdog: Duration::from_nanos(args.watchdog.0),
        log_entries: 0,
    };
    request.settings.check_under(request.watchdog)?;
    // An error after this drops the partition, which gives the CPUs back.
    let mut partition = args.partition.as_ref().map(CpuPartition::take).transpose()?;
    let scheduler = KernelScheduler::attach(&request)?;
    talk(
        Talk::Plain,
        format_args!("scheduling the {} oldest first; Ctrl-C ends it", request.settings.oldest),
    );
    if let Some(partition) = &partition {
        let file = partition.processes_file();
        talk(Talk::Plain, format_args!("of the processes whose PIDs are written to {}", file.display()));
    }
    if let Some(group) = &args.cgroup {
        let above = scheduler.outside_time().map_or("another scheduler", |_| "fair shares");
        let message = format_args!("of the control group {}; all others have {above}", group.display());
        talk(Talk::Plain, message);
    }
    scheduler.wait(&stop, || partition.iter_mut().for_each(CpuPartition::switch_threads));
    terminal::print_text(&kernel_scheduler::text(
        &scheduler.control().settings(),
        &scheduler.control().statistics(),
    ));
    if let Some(outside) = scheduler.outside_time() {
        let outside = Nanos(u64::try_from(outside.as_nanos()).unwrap_or(u64::MAX));
        terminal::print_text(&format!("CPU time of threads outside the control group: {outside}\n"));
    }
    let ended = scheduler.detach()?.check();
    let staying = partition.map(CpuPartition::give_back).transpose()?.unwrap_or(0);
    if staying > 0 {
        let message = "processes left in the group, which now has all CPUs";
        talk(Talk::Note, format_args!("{message}: {staying}"));
    }
    ended.map(|()| VerbAnswer::Yes)
}
