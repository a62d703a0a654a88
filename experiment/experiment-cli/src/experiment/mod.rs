//! `tailwright experiment`: a knob of a live server, on and off in random order, and undone.

pub(crate) mod knobs;
pub(crate) mod load;
pub(crate) mod text;

use crate::experiment::load::{ArmLoads, ExperimentLoadOptions, StartedLoad};
use crate::experiment::text as tried;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::{check_complete, undo_on_termination};
use cli::quantities::{confidence, percentage};
use cli::terminal::{self, Talk, talk};
use experiment::{
    ExperimentEnd, ExperimentHost, ExperimentProgress, ExperimentSettings, Journal, KNOBS, Knob, KnobArm,
    KnobSwitch, KnobTarget, LinuxJournal, LinuxSettings, ProcessIdentity, RecordedLoad, RoundTally,
    SocketClaim, UndoOutcome, UndoneChange, UndoneJournals,
};
use indicatif::ProgressBar;
use model::OperationError;
use operation::text::nearest_word;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{Percentile, Seconds, plural};

const HELP: &str = "\
Examples:
  tailwright experiment --list   the knobs, and which of them this machine has
  tailwright experiment --list fifo                 what is known about one
  tailwright experiment fifo --pid 4711 --port 11211
  tailwright experiment nice=-10,-5 --pid 4711 --port 11211 --percentile 99.9
  tailwright experiment interrupt-core=0 --device eth0 --pid 4711 --port 80
  tailwright experiment nothing --pid 4711 --port 80         what chance does
  tailwright experiment command=2,4,8 --apply 'set-workers {}' \\
      --revert 'set-workers 1' --port 80
  tailwright experiment load=udp --load-off tcp --guard 2s --port 11211 \\
      --load-command 'tailwright load {}.toml'
  tailwright experiment --undo                      after it was killed

A knob is a setting of the machine or of the server's processes. The load is yours, all the time, \
or that of --load-command. Periods with the knob on and off \
follow each other in random order; requests that arrive in the guard time after a switch do not \
count. The experiment ends as soon as something is shown with the confidence that is asked for, \
and undoes the knob; so it does on Ctrl-C, SIGTERM and SIGHUP. docs/reference/experiment.md says what is \
guaranteed.

Exit codes: 0 a value helps, or all is undone; 1 none was shown to help, or a setting was \
not restored; 2 bad input; 3 a privilege or a feature is missing, something could not be undone, a signal \
ended it, or nobody reads its result.";

/// Size of the kernel's ring buffer of events, bytes.
const RING_BYTES: u32 = 1 << 23;
/// Command that undoes an experiment with the default state folder.
const UNDO_COMMAND: &str = "tailwright experiment --undo";
/// A limit on the time of a run, up to a day, and of its evaluation.
const PERIODS_MAX: usize = 400;
/// Minimum length of a period: in a shorter one, switching the knob takes most of the time.
const PERIOD_MIN: Duration = Duration::from_millis(10);

/// Try a knob on a live server: does it help, with confidence? Then undo it.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ExperimentArgs {
    /// The knob, and the values to try; --list names them.
    #[arg(value_name = "KNOB[=VALUE,…]", required_unless_present_any = ["list", "undo"])]
    knob: Option<String>,
    /// The processes of the server.
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Ports that the server listens on, TCP and UDP.
    #[arg(long, value_name = "PORT,…", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..),
          required_unless_present_any = ["list", "undo"])]
    port: Vec<u16>,
    /// The percentile that is tested, of latencies (T6 − T1).
    #[arg(long, value_name = "PERCENT", default_value = "99", value_parser = percentage)]
    percentile: Percentile,
    /// Length of a period.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    period: Seconds,
    /// Time after a switch in which requests are not counted.
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    guard: Seconds,
    /// How sure the answer about all values is to be, from 0.5 to below 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = confidence)]
    confidence: f64,
    /// Maximum number of periods.
    #[arg(long, value_name = "N", default_value_t = 80)]
    max_periods: usize,
    /// Seed of the order of periods.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Command that sends load until it is ended; with the knob load, {} stands for the value.
    #[arg(long, value_name = "COMMAND")]
    load_command: Option<String>,
    /// Value of {} in --load-command while the knob load is off.
    #[arg(long, value_name = "VALUE", requires = "load_command")]
    load_off: Option<String>,
    /// Restart --load-command in every period, so that its connections begin then.
    #[arg(long, requires = "load_command")]
    load_restart: bool,
    /// The network device that receives requests.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// The disk that the server works on.
    #[arg(long, value_name = "NAME")]
    disk: Option<String>,
    /// Command that applies your own knob; {} stands for the value.
    #[arg(long, value_name = "COMMAND", requires = "revert")]
    apply: Option<String>,
    /// Command that undoes --apply; must be harmless if that did not run.
    #[arg(long, value_name = "COMMAND", requires = "apply")]
    revert: Option<String>,
    /// Folder of the state: the journal of changes to undo [default: /run/tailwright; without root
    /// $XDG_STATE_HOME/tailwright].
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// List the knobs, or describe one.
    #[arg(long, conflicts_with = "undo")]
    list: bool,
    /// Undo a killed experiment.
    #[arg(long, conflicts_with_all = ["knob", "port", "pid"])]
    undo: bool,
    #[arg(long, help = "Print JSON: the experiment, the knobs, or what was undone")]
    json: bool,
}

pub fn run(args: &ExperimentArgs) -> Result<VerbAnswer, OperationError> {
    if args.list {
        return args.list_knobs();
    }
    if args.undo {
        return args.undo_all();
    }
    try_knob(args).map_err(|error| args.with_journal_named(error))
}

fn try_knob(args: &ExperimentArgs) -> Result<VerbAnswer, OperationError> {
    let text = args.knob.as_deref().unwrap_or_default();
    let (knob, values) = parse(text)?;
    if args.load_off.is_some() && knob.name != "load" {
        return Err(OperationError::input("--load-off is for the knob 'load' alone")
            .hint("--load-command is the load of all other knobs, in all periods"));
    }
    let target = args.target()?;
    let settings = args.settings(knob, &target, values.len())?;
    let arms = arms(knob, &values, &target);
    check_output()?;
    let stop = undo_on_termination();
    let folder = args.state_folder()?;
    let boot = experiment::boot()?;
    let (file, journal, path) = experiment::open_journal(&folder)?;
    refuse_unfinished(&journal, &path)?;
    let (load_file, load_journal, load_path) = experiment::open_load_journal(&folder)?;
    refuse_unfinished(&load_journal, &load_path)?;
    let mut switch = KnobSwitch::new(LinuxSettings::default(), file, journal, &boot);
    let _claim = check(&arms, &mut switch)?;
    let load = ArmLoads::new(knob, &values, &args.load());
    let load = load.map(|load| load.start(RecordedLoad::new(load_file, &boot))).transpose()?;
    let longest = seconds(settings.duration(settings.rounds_max, arms.len()));
    talk(
        Talk::Plain,
        format_args!(
            "trying {text} on port {} for about {longest} at most; Ctrl-C ends it and undoes the knob",
            tried::ports(&settings)
        ),
    );
    talk(
        Talk::Plain,
        format_args!(
            "journal: {}; if this is killed, `{}` undoes the knob and ends the load",
            path.display(),
            args.undo_command()
        ),
    );
    let mut host = TerminalHost { load, bar: terminal::progress(settings.rounds_max as u64, "", "rounds") };
    let report = experiment::run(&settings, &arms, &mut switch, &stop, &mut host);
    let load_end = host.load.as_mut().and_then(StartedLoad::end);
    drop(host);
    let report = report?;
    // Clients may end because the server has.
    let load_end = load_end.filter(|_| !matches!(report.end, ExperimentEnd::ServerEnded));
    let answer = tried::TriedKnob { knob, values: &values, settings: &settings, report: &report };
    if args.json {
        terminal::print(&answer.json());
    } else {
        terminal::print_text(&answer.text());
    }
    let is_any_left = report.not_undone.iter().any(|undone| matches!(undone.outcome, UndoOutcome::Failed(_)));
    if is_any_left {
        let why = report.failure.as_ref().map_or(String::new(), |error| format!("; {}", error.message));
        return Err(OperationError::machine(format_args!("not everything is undone{why}"))
            .hint("`tailwright experiment --undo` tries again"));
    }
    if let Some(error) = &report.failure {
        return Err(error.clone());
    }
    if let Some(error) = load_end {
        return Err(error);
    }
    check_complete("what is printed is what was seen until then; the knob is undone")?;
    if report.end == ExperimentEnd::Stopped {
        check_output()?;
    }
    Ok(if answer.helps() { VerbAnswer::Yes } else { VerbAnswer::No })
}

/// Parses `nice=-10,-5` into the knob and its values; `None` for the default value.
fn parse(text: &str) -> Result<(&'static Knob, Vec<Option<String>>), OperationError> {
    let (name, values) = text.split_once('=').map_or((text, None), |(name, values)| (name, Some(values)));
    let knob = experiment::knob(name).ok_or_else(|| {
        let nearest = nearest_word(name, KNOBS.iter().map(|knob| knob.name));
        let meant = nearest.map_or(String::new(), |nearest| format!("did you mean {nearest}? "));
        OperationError::input(format_args!("there is no knob '{name}'"))
            .hint(format_args!("{meant}`tailwright experiment --list` has them all"))
    })?;
    let values: Vec<Option<String>> = match values {
        None => vec![None],
        Some(values) => values.split(',').map(|value| Some(value.to_owned())).collect(),
    };
    let is_twice = |(index, value): (usize, &Option<String>)| values[..index].contains(value);
    if values.iter().enumerate().any(is_twice) {
        return Err(OperationError::input(format_args!("{text}: expected different values")));
    }
    Ok((knob, values))
}

fn arms<'a>(knob: &'static Knob, values: &'a [Option<String>], target: &'a KnobTarget) -> Vec<KnobArm<'a>> {
    let arm = |value: &'a Option<String>| KnobArm {
        label: tried::label(knob, value.as_deref()),
        plan: Box::new(move || knob.plan(target, value.as_deref())),
    };
    values.iter().map(arm).collect()
}

/// Checks the preconditions before anything is changed: rights, claims of other experiments on the same
/// sockets, and a difference between the arms. The result holds the claim on the sockets.
fn check(
    arms: &[KnobArm],
    switch: &mut KnobSwitch<LinuxSettings, LinuxJournal>,
) -> Result<SocketClaim, OperationError> {
    let planned = arms.iter().map(|arm| (arm.plan)()).collect::<Result<Vec<_>, _>>()?;
    if let Some(error) = planned.iter().find_map(|changes| experiment::missing_right(changes)) {
        return Err(error);
    }
    let claim = experiment::claim_sockets(planned.iter().flatten())?;
    for (arm, changes) in arms.iter().zip(planned) {
        if switch.is_set(&changes)? {
            let message =
                format_args!("{}: it is so already, and there is nothing to compare with", arm.label);
            return Err(OperationError::input(message).hint("undo it first, or try another value"));
        }
    }
    Ok(claim)
}

fn refuse_unfinished(journal: &Journal, path: &Path) -> Result<(), OperationError> {
    match journal.changes().len() {
        0 => Ok(()),
        count => {
            let message = format_args!(
                "{}: not undone: {} of an earlier experiment",
                path.display(),
                plural(count, "change")
            );
            Err(OperationError::machine(message).hint("run `tailwright experiment --undo` first"))
        }
    }
}

/// Returns an error for unreadable journals and changes that could not be undone.
fn not_undone(undone: &UndoneJournals, folder: &Path) -> Option<OperationError> {
    let failures = undone.changes.iter().filter_map(|undone| match &undone.outcome {
        UndoOutcome::Failed(error) => Some(error),
        _ => None,
    });
    let failures: Vec<&OperationError> = failures.collect();
    let failed = (!failures.is_empty()).then(|| {
        let count = plural(failures.len(), "change");
        let message = format_args!("{}: not undone, and still recorded: {count}", folder.display());
        let mut hints: Vec<&str> = failures.iter().filter_map(|error| error.hint.as_deref()).collect();
        hints.sort_unstable();
        hints.dedup();
        if hints.is_empty() {
            hints.push("run it as the user who ran the experiment, or as root");
        }
        OperationError::machine(message).hint(hints.join("; "))
    });
    let errors = undone.unread.iter().map(|unread| unread.error.clone()).chain(failed);
    errors.reduce(|mut all, error| {
        all.message += &format!("; and {}", error.message);
        let mut hints: Vec<String> = [all.hint, error.hint].into_iter().flatten().collect();
        hints.dedup();
        all.hint = (!hints.is_empty()).then(|| hints.join("; "));
        all
    })
}

/// Fails if the standard output is closed, because the result would be lost.
fn check_output() -> Result<(), OperationError> {
    let unwritable =
        |error| OperationError::machine(format_args!("the standard output cannot be written: {error}"));
    machine::standard_output().map_err(unwritable)?;
    if machine::has_output_reader() {
        return Ok(());
    }
    Err(OperationError::machine(
        "nobody reads the standard output, so the experiment has ended without a result",
    )
    .hint("let its reader run until the end; what was changed is undone"))
}

/// Load of an experiment, and its progress on the terminal.
struct TerminalHost {
    load: Option<StartedLoad>,
    bar: ProgressBar,
}

impl ExperimentHost for TerminalHost {
    fn has_load(&mut self) -> bool {
        !self.load.as_ref().is_some_and(StartedLoad::has_ended)
    }

    fn is_wanted(&mut self) -> bool {
        machine::has_output_reader()
    }

    fn begin_period(&mut self, arm: usize) -> Result<(), OperationError> {
        self.load.as_mut().map_or(Ok(()), |load| load.begin_period(arm))
    }

    fn round_done(&mut self, progress: ExperimentProgress) {
        let (evidence, needed) = progress.tally.least_evidence();
        let shift = progress.tally.relative_shift(0).map_or(String::new(), tried::signed_percent);
        let left = seconds(progress.left_max);
        self.bar.inc(1);
        self.bar.set_message(format!("{shift}, evidence {evidence:.1} of {needed:.0}, at most {left} more"));
    }
}

impl Drop for TerminalHost {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn seconds(duration: Duration) -> String {
    operation::text::time(duration.as_secs_f64().round())
}

/// Quotes a text as one word of the shell.
fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=:,@%".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl ExperimentArgs {
    fn list_knobs(&self) -> Result<VerbAnswer, OperationError> {
        let target = self.target()?;
        let listed = match self.knob.as_deref() {
            None => KNOBS.iter().collect(),
            Some(text) => vec![parse(text)?.0],
        };
        let is_one = self.knob.is_some();
        match self.json {
            true => terminal::print(&knobs::json(&listed, &target)),
            false if is_one => terminal::print_text(&knobs::details(listed[0], &target)),
            false => terminal::print_text(&knobs::table(&listed, &target)),
        }
        Ok(VerbAnswer::Yes)
    }

    fn undo_all(&self) -> Result<VerbAnswer, OperationError> {
        let _ = undo_on_termination();
        let folder = self.state_folder()?;
        let boot = experiment::boot()?;
        let is_there = folder.is_dir();
        if let (Some(named), false) = (&self.state, is_there) {
            let message = format_args!("--state: there is no folder {}", named.display());
            return Err(OperationError::input(message)
                .hint("expected the folder of a journal, which an experiment names when it begins"));
        }
        let undone =
            if is_there { experiment::undo_journals(&folder, &boot) } else { UndoneJournals::default() };
        if self.json {
            terminal::print(&knobs::undone_json(&undone));
        } else {
            terminal::print_text(&knobs::undone_text(&undone, &folder));
        }
        if let Some(error) = not_undone(&undone, &folder) {
            return Err(error);
        }
        let is_left = |undone: &UndoneChange| matches!(undone.outcome, UndoOutcome::LeftAlone(_));
        Ok(if undone.changes.iter().any(is_left) { VerbAnswer::No } else { VerbAnswer::Yes })
    }

    fn target(&self) -> Result<KnobTarget, OperationError> {
        let process = |id: &u32| {
            experiment::identity(*id)
                .ok_or_else(|| OperationError::input(format_args!("--pid: there is no process {id}")))
        };
        let processes: Vec<ProcessIdentity> = self.pid.iter().map(process).collect::<Result<_, _>>()?;
        let commands = self.apply.clone().zip(self.revert.clone());
        let load = self.load_command.clone().zip(self.load_off.clone());
        let device = self.device.clone();
        let disk = self.disk.clone();
        let ports = self.port.iter().copied().collect();
        Ok(KnobTarget { processes, ports, device, disk, commands, load })
    }

    fn load(&self) -> ExperimentLoadOptions<'_> {
        let command = self.load_command.as_deref();
        let off = self.load_off.as_deref();
        ExperimentLoadOptions { command, off, restarts: self.load_restart }
    }

    /// Returns the command that undoes this experiment from its journal.
    fn undo_command(&self) -> String {
        let Some(folder) = &self.state else { return UNDO_COMMAND.to_owned() };
        // The user may paste it in another directory.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        format!("{UNDO_COMMAND} --state {}", shell_word(&folder.display().to_string()))
    }

    /// Replaces the hint of an error by one with the undo command of this experiment.
    fn with_journal_named(&self, mut error: OperationError) -> OperationError {
        error.hint = error.hint.map(|hint| hint.replace(UNDO_COMMAND, &self.undo_command()));
        error
    }

    fn state_folder(&self) -> Result<PathBuf, OperationError> {
        let folder = self.state.clone().or_else(experiment::default_state_folder);
        folder.ok_or_else(|| OperationError::input("there is no HOME: expected --state FOLDER"))
    }

    /// Returns the length of a period.
    fn period(&self) -> Result<Duration, OperationError> {
        let period = Duration::try_from_secs_f64(self.period.0).ok().filter(|period| *period >= PERIOD_MIN);
        period.ok_or_else(|| {
            OperationError::input(format_args!(
                "--period: expected a time of at least 10ms, not {}",
                self.period
            ))
        })
    }

    fn settings(
        &self,
        knob: &Knob,
        target: &KnobTarget,
        values: usize,
    ) -> Result<ExperimentSettings, OperationError> {
        let duration = |name: &str, time: Seconds| {
            let duration = Duration::try_from_secs_f64(time.0).ok().filter(|time| !time.is_zero());
            duration
                .ok_or_else(|| OperationError::input(format_args!("{name}: expected a time such as 500ms")))
        };
        let rounds_max = self.max_periods / (values + 1);
        let needed = RoundTally::new(values, self.confidence).needed();
        if rounds_max < needed || self.max_periods > PERIODS_MAX {
            let least = needed * (values + 1);
            let message =
                format_args!("--max-periods: expected {least} to {PERIODS_MAX}, not {}", self.max_periods);
            return Err(OperationError::input(message)
                .hint("fewer cannot show anything with this confidence, and more take too long"));
        }
        let guard = duration("--guard", self.guard)?;
        let restarts = ArmLoads::new(knob, &[], &self.load()).is_some_and(|load| load.restarts);
        Ok(ExperimentSettings {
            ports: self.port.iter().copied().collect(),
            processes: target.processes.clone(),
            percent: self.percentile.percent(),
            period: self.period()?,
            guard,
            drain: if restarts { guard } else { Duration::ZERO },
            confidence: self.confidence,
            rounds_max,
            seed: self.seed,
            ring_bytes: RING_BYTES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_a_shell_reads() {
        for (text, word) in [
            ("/run/tailwright", "/run/tailwright"),
            ("", "''"),
            ("/tmp/my state", "'/tmp/my state'"),
            ("/tmp/it's $HOME", "'/tmp/it'\\''s $HOME'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
