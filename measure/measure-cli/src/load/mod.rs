//! `tailwright load`: requests of traces and random processes against real servers.

pub(crate) mod text;

use crate::load::text as loaded;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::{check_complete, stop_on_termination};
use cli::terminal::{self, TerminalObserver};
use indicatif::ProgressBar;
use load::{LoadPhase, LoadProgress, LoadReport};
use measure::load::{LoadFile, interval_log_paths, play_load, write_interval_logs};
use model::{OperationError, RequestOutcome};
use operation::files::check_apart;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use trace::check_observations;
use units::Nanos;

const HELP: &str = "\
Examples:
  tailwright load load.toml   a table per workload
  tailwright load load.toml -o run.parquet --hdr-folder logs
      every request; HdrHistogram logs
  tailwright load load.toml --set duration=60s --set workload.mail.speed=2

A load file:
  duration = \"10s\"
  warm_up = \"1s\"
  # SCHED_FIFO priority of the generator; takes root:
  realtime = 20
  [[workload]]
  name = \"mail\"
  # Or nfs://HOST/EXPORT/FILE, memcached://HOST, echo://HOST:PORT,
  # memcached+udp://HOST, memcached+tls://NAME, http://HOST/PATH,
  # http+h2://HOST/PATH, https://NAME/PATH, grpc://HOST/SERVICE/METHOD:
  target = \"nbd://10.0.0.9/mail\"
  connections = 4
  # Any format of `tailwright trace`:
  trace = \"mail.parquet\"
  speed = 2.0
  [[workload]]
  name = \"web\"
  target = \"memcached://10.0.0.9\"
  # As in a scenario:
  arrivals = \"poisson(500/s)\"
  size = \"4KiB\"
  reads = 0.7
  [[workload]]
  name = \"backup\"
  target = \"nbd://10.0.0.9/backup\"
  closed = { outstanding = 8, op = \"write\", size = \"64KiB\", sequential = true }

Writes overwrite what is on the target. docs/reference/load.md describes every field. Latencies count from \
the intended times. Ctrl-C, SIGTERM and SIGHUP end a run early, with what there is.

Exit codes: 0 done; 1 what was read is not what was written (verify_data); 2 bad input; 3 a server, \
a namespace or a permission is missing, no server answers as the protocol says, or the run was \
interrupted.";

/// Send requests to real servers when they are meant to be sent, and observe every one.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct LoadArgs {
    /// Workloads: where their requests go, and when.
    #[arg(value_name = "LOAD.toml")]
    file: PathBuf,
    /// Write every request, as Parquet.
    #[arg(short, long, value_name = "FILE.parquet")]
    output: Option<PathBuf>,
    /// Write a log of HdrHistogram for every workload, NAME.hlog, with an interval per second.
    #[arg(long = "hdr-folder", alias = "hdr", value_name = "FOLDER")]
    hdr: Option<PathBuf>,
    /// Replace a value of the file: duration=60s, workload.mail.speed=2, 'workload.*.connections=8'.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    #[arg(long, help = "Print JSON: the run and its workloads")]
    json: bool,
}

pub fn run(args: &LoadArgs) -> Result<VerbAnswer, OperationError> {
    if let Some(folder) = &args.hdr {
        std::fs::create_dir_all(folder).map_err(|error| {
            OperationError::machine(format_args!("cannot write {}: {error}", folder.display()))
                .hint("choose another place")
        })?;
    }
    check_observations(args.output.as_deref())?;
    let file = LoadFile::read(&args.file, &args.set)?;
    file.refuse_result(args.output.as_deref())?;
    let logs = args.hdr.as_deref().map(|folder| interval_log_paths(folder, file.names())).unwrap_or_default();
    for log in &logs {
        check_apart(args.output.as_deref(), [Some(log.as_path())])?;
        file.refuse_result(Some(log))?;
    }
    let (ran, seed) = generate_from(&file)?;
    let written = args.write(&ran, SystemTime::now());
    if args.json {
        terminal::print(&loaded::json(&ran, seed));
    } else {
        terminal::print_text(&loaded::text(&ran));
    }
    written?;
    let outcomes = || ran.observations.requests.iter().map(|request| request.outcome);
    if outcomes().next().is_some() && outcomes().all(|outcome| outcome == RequestOutcome::Lost) {
        return Err(OperationError::machine("no request was answered")
            .hint("check that the server at each target speaks the protocol of its address"));
    }
    check_complete("what is printed and written is what was sent until then")?;
    Ok(if ran.comparison.mismatches == 0 { VerbAnswer::Yes } else { VerbAnswer::No })
}

impl LoadArgs {
    /// Writes the files that are asked for; the run ended at `end`.
    fn write(&self, ran: &LoadReport, end: SystemTime) -> Result<(), OperationError> {
        if let Some(path) = &self.output {
            trace::observations::write(path, &ran.observations)
                .map_err(|error| OperationError::machine(&error).hint(error.hint()))?;
        }
        self.hdr.as_deref().map_or(Ok(()), |folder| write_interval_logs(folder, ran, end))
    }
}

/// Runs what a load file says, with progress and warnings on stderr; `report` is what will be written about it.
pub(crate) fn generate(path: &Path, report: Option<&Path>) -> Result<LoadReport, OperationError> {
    let file = LoadFile::read(path, &[])?;
    file.refuse_result(report)?;
    Ok(generate_from(&file)?.0)
}

fn generate_from(file: &LoadFile) -> Result<(LoadReport, u64), OperationError> {
    let workloads = file.workloads(&TerminalObserver)?;
    let options = file.options();
    let stop = stop_on_termination();
    let mut bar = LoadBar::default();
    let ran = play_load(workloads, &options, &stop, &mut |progress| bar.show(progress), &TerminalObserver)?;
    Ok((ran, options.seed))
}

/// Tenths of seconds of a run, on a terminal.
#[derive(Default)]
struct LoadBar(Option<ProgressBar>);

impl LoadBar {
    fn show(&mut self, progress: LoadProgress) {
        let tenths = |time: Nanos| time.0 / 100_000_000;
        let bar = self
            .0
            .get_or_insert_with(|| terminal::progress(tenths(progress.total), "", "tenths of a second"));
        let open = progress.requests.saturating_sub(progress.answered + progress.failed);
        bar.set_position(tenths(progress.elapsed.min(progress.total)));
        bar.set_message(match progress.phase {
            LoadPhase::SettingUp => "setting up".to_owned(),
            LoadPhase::Running => format!("{} sent, {open} open", progress.requests),
            LoadPhase::Draining => format!("waiting for {open}"),
        });
    }
}

impl Drop for LoadBar {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}
