//! `tailwright reproduce`: the papers' figures drawn again, with a verdict for each claim.

pub(crate) mod page;
pub(crate) mod text;

use crate::experiments;
use crate::reproduce::text as reproduced;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::{check_complete, is_stopped, stop_on_termination};
use cli::terminal;
use model::OperationError;
use operation::files::{check_writable, write_wanted};
use reproduce::{Context, PaperExperiment, all};
use std::path::{Path, PathBuf};

const HELP: &str = "\
Examples:
  tailwright reproduce --list
  tailwright reproduce --report reproduce.html
  tailwright reproduce tailclipper --data ../shared --report tailclipper.html
  tailwright reproduce thesis-fig-5 --data ../shared --report servers.html
  tailwright reproduce tales-fig-1 variability-numbers --quick --json

Each experiment runs a scenario of examples/scenarios that has its name, or plans recorded \
workloads as the paper does. Claims are judged by \
rules that do not know the outcome: agree, differ, undecided where the confidence interval has \
both, or underspecified where the paper leaves open what decides it. Our own checks and \
conjectures are counted apart.

Exit codes: 0 every experiment asked for was run, whatever the verdicts; 1 some were not, for lack \
of data; 2 bad input; 3 interrupted, with the experiments that were complete.";

/// Draw the papers' figures again by simulation, beside what the papers claim.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ReproduceArgs {
    /// Which: names, or how they begin (default: all).
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List the experiments.
    #[arg(long, conflicts_with_all = ["report", "quick"])]
    list: bool,
    /// Folder with `traces` and `data`, which some experiments read.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// A twentieth of the requests: wide intervals, soon done.
    #[arg(long)]
    quick: bool,
    /// Seed of everything that is random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write a page with charts for a browser: all figures and claims.
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Print JSON: figures and claims.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ReproduceArgs) -> Result<VerbAnswer, OperationError> {
    let experiments = chosen(&args.names)?;
    if args.list {
        if args.json {
            terminal::print(&experiments::reproductions(&experiments));
        } else {
            terminal::print_text(&reproduced::list(&experiments));
        }
        return Ok(VerbAnswer::Yes);
    }
    check_writable(args.report.as_deref(), "report")?;
    let _ = stop_on_termination();
    let mut done = Vec::new();
    for experiment in &experiments {
        // An interrupted experiment has no figure; those before it stand.
        let Some(played) = play(experiment, args)? else { break };
        done.push(played);
    }
    if done.is_empty() {
        check_complete("no experiment was complete")?;
    }
    let view = reproduced::ReproductionView { done: &done, seed: args.seed, quick: args.quick };
    let written = write_wanted(args.report.as_deref(), "report", || page::html(&view));
    if args.json {
        terminal::print(&reproduced::json(&view));
    } else {
        terminal::print_text(&reproduced::text(&view));
    }
    written?;
    check_complete("what is shown are the experiments that were complete")?;
    Ok(if done.iter().all(|one| one.outcome.is_ok()) { VerbAnswer::Yes } else { VerbAnswer::No })
}

fn chosen(names: &[String]) -> Result<Vec<PaperExperiment>, OperationError> {
    let all = all();
    if let Some(unknown) =
        names.iter().find(|name| !all.iter().any(|one| one.name.starts_with(name.as_str())))
    {
        return Err(OperationError::input(format_args!("nothing is named '{unknown}' or begins with it"))
            .hint("`tailwright reproduce --list` says what there is"));
    }
    let wanted = |one: &PaperExperiment| {
        names.is_empty() || names.iter().any(|name| one.name.starts_with(name.as_str()))
    };
    Ok(all.into_iter().filter(wanted).collect())
}

fn absolute(data: &Path) -> Result<PathBuf, OperationError> {
    if !data.is_dir() {
        return Err(OperationError::input(format_args!("{}: there is no such folder", data.display()))
            .hint("--data FOLDER names the one with the traces; without it, what needs them is left out"));
    }
    std::path::absolute(data)
        .map_err(|error| OperationError::input(format_args!("{}: {error}", data.display())))
}

fn play(
    experiment: &PaperExperiment,
    args: &ReproduceArgs,
) -> Result<Option<reproduced::ReproducedExperiment>, OperationError> {
    let bar = terminal::progress(1, experiment.name, "variants");
    let progress = |at: usize, count: usize| {
        bar.set_length(count as u64);
        bar.set_position(at as u64);
    };
    let effort = if args.quick { 0.05 } else { 1.0 };
    // A scenario would take a relative path for one beside its own file.
    let data = args.data.as_deref().map(absolute).transpose()?;
    let context = Context { seed: args.seed, effort, data, progress: &progress, is_interrupted: &is_stopped };
    let outcome = experiment.run(&context);
    bar.finish_and_clear();
    match outcome {
        Ok(figure) => {
            Ok(Some(reproduced::ReproducedExperiment { experiment: *experiment, outcome: Ok(figure) }))
        }
        Err(reproduce::FigureError::Interrupted) => Ok(None),
        Err(reproduce::FigureError::Missing(path)) => {
            Ok(Some(reproduced::ReproducedExperiment { experiment: *experiment, outcome: Err(path) }))
        }
        Err(reproduce::FigureError::Operation(error)) => Err(error),
    }
}
