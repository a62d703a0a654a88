//! Options and output shared by `demo` and `bench`.

use crate::schedule::text as scheduled;
use crate::schedule::text::ScheduledRun;
use chain::{
    BenchHost, BenchSettings, ScheduleMode, check_playable, no_deadlines, run_bench, scenario_limit,
};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::{check_complete, stop_on_termination};
use cli::quantities::confidence;
use cli::terminal::{self, Talk, talk};
use indicatif::ProgressBar;
use model::OperationError;
use scenario::{SimulationCase, Variant};
use std::sync::atomic::{AtomicBool, Ordering};
use units::Nanos;

/// Duration of a play beyond the arrivals of requests, until the last answer, seconds.
const AROUND_A_PLAY_S: f64 = 0.4;

/// Number and duration of plays.
#[derive(Debug, Args)]
pub(crate) struct PlayingArgs {
    /// Maximum requests in service where the mode limits them; inf is no limit [default: that of the file, or
    /// 3].
    #[arg(short, value_name = "N", value_parser = limit)]
    c: Option<ServiceLimit>,
    /// How long requests arrive in each run.
    #[arg(long, value_name = "TIME", default_value = "3s")]
    duration: Nanos,
    /// How often each mode is run, each time with other requests.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// Seed of arrivals, work and the order of modes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How sure the intervals are to be, from 0.5 to below 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = confidence)]
    confidence: f64,
    /// Print JSON: one document of all runs.
    #[arg(long)]
    json: bool,
}

/// Concurrency limit; `None` is no limit.
#[derive(Debug, Clone, Copy)]
struct ServiceLimit(Option<u32>);

fn limit(text: &str) -> Result<ServiceLimit, String> {
    if text == "inf" {
        return Ok(ServiceLimit(None));
    }
    let number = text.parse::<u32>().ok().filter(|number| *number > 0);
    number
        .map(|number| ServiceLimit(Some(number)))
        .ok_or_else(|| "expected a number from 1, or inf".to_owned())
}

impl PlayingArgs {
    /// Plays all variants of a scenario and prints the results.
    pub(crate) fn play(
        &self,
        name: &str,
        variants: &[Variant],
        modes: &[ScheduleMode],
        cpus: Option<usize>,
    ) -> Result<VerbAnswer, OperationError> {
        // Invalid input is reported before the estimate of the duration.
        for variant in variants {
            let case = variant.document.case()?;
            check_playable(&case, &self.settings(&case, modes, cpus)?)?;
        }
        let stop = stop_on_termination();
        let plays = variants.len() * modes.len() * self.repetitions as usize;
        let seconds = plays as f64 * (self.duration.as_secs() + AROUND_A_PLAY_S);
        talk(
            Talk::Plain,
            format_args!(
                "{name}: {plays} runs of {}, {} in all; Ctrl-C ends it with what is complete",
                self.duration,
                operation::text::time(seconds.round())
            ),
        );
        let mut runs = Vec::new();
        for variant in variants {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            match self.play_one(name, variant, (modes, cpus), &stop) {
                Ok(run) => runs.push(run),
                // Results of earlier variants are still printed.
                Err(_) if stop.load(Ordering::Relaxed) && !runs.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        runs.iter().flat_map(scheduled::doubts).for_each(|doubt| talk(Talk::Note, doubt));
        if self.json {
            terminal::print(&scheduled::json(&runs));
        } else {
            terminal::print_text(&scheduled::text(&runs));
        }
        // A signal after the last repetition has no effect.
        if runs.len() < variants.len() || runs.iter().any(|run| run.report.is_stopped) {
            check_complete("what is shown are the repetitions that were complete")?;
        }
        Ok(VerbAnswer::Yes)
    }

    fn play_one(
        &self,
        name: &str,
        variant: &Variant,
        (modes, cpus): (&[ScheduleMode], Option<usize>),
        stop: &AtomicBool,
    ) -> Result<ScheduledRun, OperationError> {
        let case = variant.document.case()?;
        let settings = self.settings(&case, modes, cpus)?;
        let plays = (settings.repetitions * modes.len()) as u64;
        let mut host = PlayProgress(terminal::progress(plays, "", "runs"));
        let report = run_bench(&case, &settings, stop, &mut host);
        host.0.finish_and_clear();
        let choices = variant.choices.clone();
        Ok(ScheduledRun { name: name.to_owned(), choices, settings, report: report? })
    }

    fn settings(
        &self,
        case: &SimulationCase,
        modes: &[ScheduleMode],
        cpus: Option<usize>,
    ) -> Result<BenchSettings, OperationError> {
        Ok(BenchSettings {
            modes: modes.to_vec(),
            c: self.c.map_or_else(|| Some(scenario_limit(case)), |limit| limit.0),
            repetitions: self.repetitions as usize,
            duration: self.duration()?,
            seed: self.seed,
            confidence: self.confidence,
            cpus,
            program: std::env::current_exe().map_err(|error| {
                OperationError::machine(format_args!("the path of this program is unknown: {error}"))
            })?,
        })
    }

    fn duration(&self) -> Result<Nanos, OperationError> {
        let is_sensible = (1_000_000..=86_400_000_000_000).contains(&self.duration.0);
        is_sensible.then_some(self.duration).ok_or_else(|| {
            OperationError::input(format_args!("--duration {}: expected 1ms to a day", self.duration))
                .hint("each mode runs this long in each repetition, such as 3s")
        })
    }
}

/// Checks that `--modes` has no duplicates, and that modes by deadline have deadlines.
pub(crate) fn check_modes(modes: &[ScheduleMode], variants: &[Variant]) -> Result<(), OperationError> {
    if let Some(at) = (1..modes.len()).find(|at| modes[..*at].contains(&modes[*at])) {
        return Err(OperationError::input(format_args!("--modes: '{}' is there twice", modes[at])));
    }
    let Some(mode) = modes.iter().find(|mode| mode.is_by_deadline()) else { return Ok(()) };
    for variant in variants {
        if let Some(why) = no_deadlines(&variant.document.case()?) {
            return Err(OperationError::input(format_args!("--modes: '{mode}': {why}"))
                .hint("give every [[class]] an slo, such as \"50ms\", and every entry or kind a class"));
        }
    }
    Ok(())
}

/// Progress of a bench on the terminal.
struct PlayProgress(ProgressBar);

impl BenchHost for PlayProgress {
    fn play_begins(&mut self, number: usize, plays: usize, mode: ScheduleMode) {
        self.0.set_length(plays as u64);
        self.0.set_position(number as u64);
        self.0.set_message(mode.to_string());
    }

    fn mode_left_out(&mut self, mode: ScheduleMode, why: &str) {
        self.0.suspend(|| talk(Talk::Note, format_args!("{mode} is left out: {why}")));
    }
}
