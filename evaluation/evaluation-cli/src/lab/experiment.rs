//! `tailwright lab run`: experiments of the papers on this machine.

use crate::experiments;
use crate::lab::experiment_text as experiment;
use crate::lab::experiment_text::{ExperimentView, PlayedCase};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::{check_complete, undo_on_termination};
use cli::terminal::{self, Align, Talk, TextTable, talk};
use lab::experiment::{
    CaseRun, EXPERIMENTS, ExperimentLock, ExperimentPlan, LabExperiment, PolicyName, RunSettings,
    TenantSource, WorkloadResult, are_promises_kept, find_experiment, run_case, workload_results,
};
use model::OperationError;
use operation::files::{check_writable, write_wanted};
use operation::text::known_words;
use operation::text::time;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use units::{Nanos, plural};

const HELP: &str = "\
Examples:
  tailwright lab run   the experiments that there are
  tailwright lab run policies   needs no traces, 9 minutes
  tailwright lab run fig-3.3 --data ../shared
      three workloads, a copy, six policies
  tailwright lab run fig-3.3 --data ../shared --dry-run
      SLOs, bounds and limits only
  tailwright lab run fig-3.3 --data ../shared --report page.html
  tailwright lab run fig-3.3 --data ../shared --policies none,tailwright --json

Everything runs on this machine, in network namespaces: clients, and a proxy with an emulated \
SSD or servers behind one link. The traces are public (WorkloadCompactor, 2017) and not part of \
this project: FOLDER/traces has them. SLOs are set before anything is measured. docs/reference/lab.md says \
how. Other programs on the machine can make verdicts invalid.

Exit codes: 0 every SLO of the protected policy, tailwright, is met; 1 not, or undecided; \
2 bad input; 3 without root, while another experiment is running, or after a signal ended it.";

/// Experiments of the papers, with real requests, on this machine
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RunArgs {
    /// The experiment; without it, all are listed.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Folder with `traces`; policies, fig-3.5 and fig-3.7 need none.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// These policies instead of the experiment's own: none, proportional, feedback, edf, by-slo, tailwright.
    #[arg(long = "policies", alias = "policy", value_name = "POLICY,…", value_delimiter = ',', value_parser = policy)]
    policy: Vec<PolicyName>,
    /// Only these cases, by name.
    #[arg(long = "cases", alias = "case", value_name = "CASE,…", value_delimiter = ',')]
    case: Vec<String>,
    /// How long requests are observed, under each policy [default: long enough to judge every guarantee of the experiment].
    #[arg(long, value_name = "TIME")]
    duration: Option<Nanos>,
    /// Time for which requests are sent before they are observed [default: 10s or 20s]; the thesis observes the second half of each run.
    #[arg(long, value_name = "TIME")]
    warm_up: Option<Nanos>,
    /// Seed of places on the device.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Ordinary threads for device, proxy and generator.
    #[arg(long)]
    no_realtime: bool,
    /// Print what would be done, and do nothing: SLOs, bounds and limits.
    #[arg(long = "dry-run", alias = "plan")]
    plan: bool,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PAGE.html", requires = "name", conflicts_with = "plan")]
    report: Option<PathBuf>,
    #[arg(
        long,
        help = "Print JSON: a result per workload and policy, or with --dry-run the plan, or the experiments that there are"
    )]
    json: bool,
}

fn policy(text: &str) -> Result<PolicyName, String> {
    let found = PolicyName::ALL.into_iter().find(|policy| policy.name() == text);
    found.ok_or_else(|| known_words(text, &PolicyName::ALL.map(PolicyName::name)))
}

pub(crate) fn run(args: &RunArgs) -> Result<VerbAnswer, OperationError> {
    let Some(name) = &args.name else {
        if args.json {
            terminal::print(&experiments::of_lab());
        } else {
            terminal::print_text(&list());
        }
        return Ok(VerbAnswer::Yes);
    };
    let experiment = known(name)?;
    let policies = chosen(args, experiment)?;
    let mut planned = ExperimentPlan::new(experiment, &traces(args, experiment)?)?;
    planned.cases.retain(|case| args.case.is_empty() || args.case.iter().any(|name| name == case.case.name));
    let settings = RunSettings {
        warm_up: args.warm_up.unwrap_or(experiment.warm_up),
        duration: args.duration.unwrap_or(experiment.duration),
        seed: args.seed,
        realtime: !args.no_realtime,
    };
    let said = experiment::plan_text(&planned) + &experiment::forecast_text(&planned, &policies, &settings);
    if args.plan {
        if args.json {
            terminal::print(&experiment::plan_json(&planned));
        } else {
            terminal::print_text(&said);
        }
        return Ok(VerbAnswer::Yes);
    }
    check_writable(args.report.as_deref(), "report")?;
    let alone = ExperimentLock::acquire()?;
    talk(Talk::Plain, said.trim_end());
    let done = play_all(&settings, &planned, &policies)?;
    drop(alone);
    answer(args, &ExperimentView { planned: &planned, settings, done: &done })
}

/// Measurements, by case, policy and workload.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LabRunDocument<'a> {
    /// The experiment that was run.
    experiment: &'a str,
    /// A result per workload and policy.
    results: &'a [&'a WorkloadResult],
}

fn answer(args: &RunArgs, view: &ExperimentView) -> Result<VerbAnswer, OperationError> {
    let rows: Vec<&WorkloadResult> = view.done.iter().flat_map(|done| &done.rows).collect();
    let drawn = write_wanted(args.report.as_deref(), "report", || crate::lab::experiment_page::html(view));
    if args.json {
        let document = LabRunDocument { experiment: view.planned.experiment.name, results: &rows };
        terminal::print(&operation::document::document(&document));
    } else {
        terminal::print_text(&experiment::text(view));
    }
    drawn?;
    if let Some(path) = &args.report {
        talk(Talk::Plain, format_args!("the report is {}", path.display()));
    }
    experiment::advice(view).iter().for_each(|advice| talk(Talk::Hint, advice));
    check_complete("what is printed is what was measured until then")?;
    Ok(if are_promises_kept(rows) { VerbAnswer::Yes } else { VerbAnswer::No })
}

fn known(name: &str) -> Result<&'static LabExperiment, OperationError> {
    find_experiment(name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
        OperationError::input(format_args!("there is no experiment '{name}'")).hint(known_words(name, &names))
    })
}

/// Returns the folder of the traces; an empty path if none is needed.
fn traces(args: &RunArgs, experiment: &LabExperiment) -> Result<PathBuf, OperationError> {
    let mut tenants = experiment.cases.iter().flat_map(|case| case.tenants);
    match &args.data {
        Some(data) => Ok(data.join("traces")),
        None if tenants.all(|tenant| !matches!(tenant.source, TenantSource::Trace(_))) => Ok(PathBuf::new()),
        None => Err(OperationError::input("the traces are missing")
            .hint("--data FOLDER: FOLDER/traces has them; policies, fig-3.5 and fig-3.7 need none")),
    }
}

/// Returns the requested policies, after a check of the requested cases.
fn chosen(args: &RunArgs, experiment: &LabExperiment) -> Result<Vec<PolicyName>, OperationError> {
    let has_case = |name: &&String| experiment.cases.iter().any(|case| case.name == name.as_str());
    if let Some(unknown) = args.case.iter().find(|name| !has_case(name)) {
        let names: Vec<&str> = experiment.cases.iter().map(|case| case.name).collect();
        return Err(OperationError::input(format_args!("{} has no case '{unknown}'", experiment.name))
            .hint(known_words(unknown, &names)));
    }
    let offered = experiment.offered_policies();
    if let Some(unknown) = args.policy.iter().find(|policy| !offered.contains(policy)) {
        let names: Vec<&str> = offered.iter().map(|policy| policy.name()).collect();
        let said = format_args!("{} cannot run the policy '{}'", experiment.name, unknown.name());
        return Err(OperationError::input(said).hint(format_args!("it can run {}", names.join(", "))));
    }
    if args.policy.is_empty() {
        return Ok(experiment.policies.to_vec());
    }
    Ok(offered.iter().copied().filter(|policy| args.policy.contains(policy)).collect())
}

fn list() -> String {
    let mut table = TextTable::new(&[
        ("experiment", Align::Left),
        ("shows", Align::Left),
        ("the paper says", Align::Left),
    ]);
    for LabExperiment { name, title, claim, .. } in EXPERIMENTS {
        table.row(vec![(*name).into(), (*title).into(), (*claim).into()]);
    }
    table.render()
}

/// Plays all cases under all policies; after a stop, returns those played so far.
fn play_all(
    settings: &RunSettings,
    planned: &ExperimentPlan,
    policies: &[PolicyName],
) -> Result<Vec<PlayedCase>, OperationError> {
    let stop = undo_on_termination();
    let each = (settings.warm_up + settings.duration).0 / 1_000_000;
    let count = (planned.cases.len() * policies.len()) as u64;
    talk(
        Talk::Plain,
        format_args!(
            "\n{} of {}: about {}; Ctrl-C stops, and what was measured until then is printed\n",
            plural(planned.cases.len() * policies.len(), "run"),
            time(each as f64 / 1e3),
            time((count * each) as f64 / 1e3)
        ),
    );
    let bar = terminal::progress(count * each, "", "ms");
    let mut found = Vec::new();
    let runs = (0..planned.cases.len()).flat_map(|case| policies.iter().map(move |policy| (case, *policy)));
    for ((case, policy), number) in runs.zip(0..) {
        bar.set_message(format!("{} of {count}: {}", number + 1, policy.name()));
        let mut tick = |progress: load::LoadProgress| {
            bar.set_position(number * each + (progress.elapsed.0 / 1_000_000).min(each));
        };
        let planned_case = &planned.cases[case];
        let played: CaseRun = run_case(planned, planned_case, policy, settings, &mut tick, &stop)?;
        let (rows, beside) = workload_results(planned, planned_case, policy, &played);
        let done = PlayedCase { case, policy, rows, beside, played };
        bar.suspend(|| {
            done.played.report.warnings.iter().for_each(|warning| talk(Talk::Warning, warning));
            talk(
                Talk::Plain,
                format_args!("{} of {count}: {}", number + 1, experiment::line(planned, &done)),
            );
        });
        found.push(done);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(found)
}
