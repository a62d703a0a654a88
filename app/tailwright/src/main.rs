//! The `tailwright` program: verbs, file formats and reports. It knows clap, files and exit codes, and
//! leaves every decision to the crate named like the verb.

// `terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod conventions;
mod exit;
mod formats;
mod interrupt;
mod live_screen;
mod manual;
mod output;
mod report;
mod scrape;
mod terminal;
mod verb;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use exit::VerbAnswer;
use model::OperationError;
use std::process::ExitCode;

/// Make the tail of the latency distribution something you can explain, predict, guarantee and enforce.
#[derive(Parser)]
#[command(name = "tailwright", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 yes or done; 1 the answer is no (a workload not admitted, an SLO not met); \
    2 bad input; 3 this machine lacks something, or the run was interrupted: then what was complete is \
    printed and written."
)]
struct Cli {
    /// Show all columns of tables, and lines as long as they are
    #[arg(long, global = true)]
    wide: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Plan(verb::plan::PlanArgs),
    Admit(verb::admit::AdmitArgs),
    Bound(verb::bound::BoundArgs),
    Explain(verb::explain::ExplainArgs),
    Apply(verb::apply::ApplyArgs),
    Proxy(verb::proxy::ProxyArgs),
    Verify(verb::verify::VerifyArgs),
    Load(verb::load::LoadArgs),
    Observe(verb::observe::ObserveArgs),
    Experiment(verb::experiment::ExperimentArgs),
    Ideal(verb::ideal::IdealArgs),
    Simulate(verb::simulate::SimulateArgs),
    Reproduce(verb::reproduce::ReproduceArgs),
    Demo(verb::demo::DemoArgs),
    Profile(verb::profile::ProfileArgs),
    Lab(verb::lab::LabArgs),
    Schedule(verb::schedule::ScheduleArgs),
    /// Look at, convert, cut, merge and generate request traces
    Trace(verb::trace::TraceArgs),
    Completions(verb::completions::CompletionsArgs),
    Man(verb::man::ManArgs),
    #[command(hide = true)]
    Schemas(verb::schemas::SchemasArgs),
}

impl Verb {
    /// Whether the verb runs until it is told to end, which is its own affair.
    fn is_service(&self) -> bool {
        match self {
            Self::Proxy(_) => true,
            Self::Lab(args) => args.is_service(),
            Self::Schedule(args) => args.is_service(),
            _ => false,
        }
    }
}

fn run(cli: Cli) -> Result<VerbAnswer, OperationError> {
    match cli.verb {
        Verb::Plan(args) => verb::plan::run(&args),
        Verb::Admit(args) => verb::admit::run(&args),
        Verb::Bound(args) => verb::bound::run(&args),
        Verb::Explain(args) => verb::explain::run(&args),
        Verb::Apply(args) => verb::apply::run(&args),
        Verb::Proxy(args) => verb::proxy::run(&args),
        Verb::Verify(args) => verb::verify::run(&args),
        Verb::Load(args) => verb::load::run(&args),
        Verb::Observe(args) => verb::observe::run(&args),
        Verb::Experiment(args) => verb::experiment::run(&args),
        Verb::Ideal(args) => verb::ideal::run(&args),
        Verb::Simulate(args) => verb::simulate::run(&args),
        Verb::Reproduce(args) => verb::reproduce::run(&args),
        Verb::Demo(args) => verb::demo::run(&args),
        Verb::Profile(args) => verb::profile::run(&args),
        Verb::Lab(args) => verb::lab::run(&args),
        Verb::Schedule(args) => verb::schedule::run(&args),
        Verb::Trace(args) => verb::trace::run(&args),
        Verb::Completions(args) => Ok(verb::completions::run(&args, Cli::command())),
        Verb::Man(args) => verb::man::run(&args, Cli::command()),
        Verb::Schemas(args) => verb::schemas::run(&args),
    }
}

fn main() -> ExitCode {
    terminal::start_clock();
    let matches = match Cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(instead) => return exit::said_instead(Cli::command(), &instead),
    };
    let program = Cli::command();
    let checked = conventions::check_dashes(&program, &matches)
        .and_then(|()| conventions::check_results(&program, &matches));
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(instead) => return exit::said_instead(program, &instead),
    };
    if cli.wide {
        terminal::be_wide();
    }
    if !cli.verb.is_service() {
        interrupt::watch_signals();
    }
    match checked.and_then(|()| run(cli)) {
        Ok(_) if terminal::is_output_lost() => ExitCode::from(exit::MACHINE),
        Ok(answer) => answer.exit_code(),
        Err(error) => exit::report(&error),
    }
}
