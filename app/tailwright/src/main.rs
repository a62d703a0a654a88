//! The `tailwright` program: the list of verbs. Each system's `cli` crate has its verbs.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod completions;
mod conventions;
mod formats;
mod help;
mod man;
mod manual;
mod schemas;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use cli::exit::VerbAnswer;
use cli::{exit, interrupt, terminal};
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
    Plan(plan_cli::plan::PlanArgs),
    Admit(plan_cli::admit::AdmitArgs),
    Bound(plan_cli::bound::BoundArgs),
    Explain(plan_cli::explain::ExplainArgs),
    Migrate(plan_cli::migrate::MigrateArgs),
    Apply(enforce_cli::apply::ApplyArgs),
    Proxy(enforce_cli::proxy::ProxyArgs),
    Export(reach_cli::export::ExportArgs),
    Import(reach_cli::import::ImportArgs),
    Verify(measure_cli::verify::VerifyArgs),
    Load(measure_cli::load::LoadArgs),
    Observe(measure_cli::observe::ObserveArgs),
    Experiment(experiment_cli::experiment::ExperimentArgs),
    Ideal(simulate_cli::ideal::IdealArgs),
    Simulate(simulate_cli::simulate::SimulateArgs),
    Reproduce(evaluation_cli::reproduce::ReproduceArgs),
    Demo(plan_cli::demo::DemoArgs),
    Profile(measure_cli::profile::ProfileArgs),
    Lab(evaluation_cli::lab::LabArgs),
    Schedule(schedule_cli::schedule::ScheduleArgs),
    Controller(serve_cli::controller::ControllerArgs),
    Agent(serve_cli::agent::AgentArgs),
    Ctl(serve_cli::ctl::CtlArgs),
    /// Look at, convert, cut, merge and generate request traces
    Trace(plan_cli::trace::TraceArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    #[command(hide = true)]
    Schemas(schemas::SchemasArgs),
}

impl Verb {
    /// Returns true for a verb that runs until it is stopped; it handles signals itself.
    fn is_service(&self) -> bool {
        match self {
            Self::Proxy(_) | Self::Controller(_) | Self::Agent(_) => true,
            Self::Lab(args) => args.is_service(),
            Self::Schedule(args) => args.is_service(),
            _ => false,
        }
    }
}

fn run(arguments: Cli) -> Result<VerbAnswer, OperationError> {
    match arguments.verb {
        Verb::Plan(args) => plan_cli::plan::run(&args),
        Verb::Admit(args) => plan_cli::admit::run(&args),
        Verb::Bound(args) => plan_cli::bound::run(&args),
        Verb::Explain(args) => plan_cli::explain::run(&args),
        Verb::Migrate(args) => plan_cli::migrate::run(&args),
        Verb::Apply(args) => enforce_cli::apply::run(&args),
        Verb::Proxy(args) => enforce_cli::proxy::run(&args),
        Verb::Export(args) => reach_cli::export::run(&args),
        Verb::Import(args) => reach_cli::import::run(&args),
        Verb::Verify(args) => measure_cli::verify::run(&args),
        Verb::Load(args) => measure_cli::load::run(&args),
        Verb::Observe(args) => measure_cli::observe::run(&args),
        Verb::Experiment(args) => experiment_cli::experiment::run(&args),
        Verb::Ideal(args) => simulate_cli::ideal::run(&args),
        Verb::Simulate(args) => simulate_cli::simulate::run(&args),
        Verb::Reproduce(args) => evaluation_cli::reproduce::run(&args),
        Verb::Demo(args) => plan_cli::demo::run(&args),
        Verb::Profile(args) => measure_cli::profile::run(&args),
        Verb::Lab(args) => evaluation_cli::lab::run(&args),
        Verb::Schedule(args) => schedule_cli::schedule::run(&args),
        Verb::Controller(args) => serve_cli::controller::run(&args),
        Verb::Agent(args) => serve_cli::agent::run(&args),
        Verb::Ctl(args) => serve_cli::ctl::run(&args),
        Verb::Trace(args) => plan_cli::trace::run(&args),
        Verb::Completions(args) => Ok(completions::run(&args, Cli::command())),
        Verb::Man(args) => man::run(&args, Cli::command()),
        Verb::Schemas(args) => schemas::run(&args),
    }
}

/// Returns the program with its verbs in groups.
fn program() -> Command {
    help::grouped(Cli::command(), terminal::columns())
}

fn main() -> ExitCode {
    terminal::start_clock();
    let matches = match program().try_get_matches() {
        Ok(matches) => matches,
        Err(instead) => return exit::said_instead(program(), instead),
    };
    let program = program();
    let checked = conventions::check_dashes(&program, &matches)
        .and_then(|()| conventions::check_results(&program, &matches));
    let arguments = match Cli::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(instead) => return exit::said_instead(program, instead),
    };
    if arguments.wide {
        terminal::be_wide();
    }
    if !arguments.verb.is_service() {
        interrupt::watch_signals();
    }
    match checked.and_then(|()| run(arguments)) {
        Ok(_) if terminal::is_output_lost() => ExitCode::from(exit::MACHINE),
        Ok(answer) => answer.exit_code(),
        Err(error) => exit::report(&error),
    }
}
