//! `tailwright lab run`: experiments of the papers on this machine.

use crate::failure::{Answer, Failure};
use crate::output::json;
use crate::terminal::{self, Align, Table};
use clap::Args;
use lab::experiment::{
    Beside, EXPERIMENTS, Experiment, Planned, PlannedCase, Played, PolicyName, Row, Settings, find,
    is_protected_met, rows, run as play,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, Seconds};
use verify::Conclusion;

const HELP: &str = "\
Examples:
  tailwright lab run                                      the experiments that there are
  tailwright lab run fig-3.3 --data ../shared             three workloads and a copy under six policies
  tailwright lab run fig-3.3 --data ../shared --plan      SLOs, bounds and limits, without playing
  tailwright lab run fig-3.3 --data ../shared --policy none,tailwright --json

Everything runs on this machine, in network namespaces: clients, and a proxy with an emulated SSD or servers behind one
link. The traces are public (WorkloadCompactor, 2017) and not part of this project: FOLDER/traces has them. SLOs are set
before anything is measured. docs/lab.md says how.

Exit codes: 0 every SLO of the protected policy, tailwright, is met; 1 not, or not for sure; 2 bad input;
3 without root.";

/// Experiments of the papers, with real requests, on this machine
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RunArgs {
    /// The experiment; without it, all are listed.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Has a folder `traces`.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Only these policies: none, proportional, feedback, edf, by-slo, tailwright.
    #[arg(long, value_name = "POLICY,…", value_delimiter = ',', value_parser = policy)]
    policy: Vec<PolicyName>,
    /// Only these cases, by name.
    #[arg(long, value_name = "CASE,…", value_delimiter = ',')]
    case: Vec<String>,
    /// Observed, for each policy [default: 180s on a device, 300s on a link].
    #[arg(long, value_name = "TIME")]
    duration: Option<Nanos>,
    /// Before that; the thesis observes the second half of each run.
    #[arg(long, value_name = "TIME", default_value = "20s")]
    warm_up: Nanos,
    /// Of places on the device.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Device, proxy and generator as ordinary threads.
    #[arg(long)]
    no_realtime: bool,
    /// Print SLOs, bounds and limits, and play nothing.
    #[arg(long)]
    plan: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn policy(text: &str) -> Result<PolicyName, String> {
    let found = PolicyName::ALL.into_iter().find(|policy| policy.name() == text);
    found.ok_or_else(|| format!("expected one of {}", PolicyName::ALL.map(PolicyName::name).join(", ")))
}

pub(crate) fn run(args: &RunArgs) -> Result<Answer, Failure> {
    let Some(name) = &args.name else {
        list();
        return Ok(Answer::Yes);
    };
    let experiment = find(name).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
        Failure::bad_input(format_args!("there is no experiment '{name}'"))
            .hint(format_args!("there are {}", names.join(", ")))
    })?;
    let data = args.data.as_deref().ok_or_else(|| {
        Failure::bad_input("the traces are missing").hint("--data FOLDER: FOLDER/traces has them")
    })?;
    if let Some(unknown) =
        args.case.iter().find(|name| experiment.cases.iter().all(|case| case.name != name.as_str()))
    {
        let names: Vec<&str> = experiment.cases.iter().map(|case| case.name).collect();
        return Err(Failure::bad_input(format_args!("{name} has no case '{unknown}'"))
            .hint(format_args!("it has {}", names.join(", "))));
    }
    let mut planned = Planned::of(experiment, &data.join("traces"))?;
    planned.cases.retain(|case| args.case.is_empty() || args.case.iter().any(|name| name == case.case.name));
    if args.plan {
        terminal::print(&plan_text(&planned));
        return Ok(Answer::Yes);
    }
    eprint!("{}", plan_text(&planned));
    let rows = play_all(args, experiment, &planned)?;
    if args.json {
        terminal::print(&json::pretty(&rows));
    } else {
        terminal::print(&table(&rows));
    }
    Ok(if is_protected_met(&rows) { Answer::Yes } else { Answer::No })
}

fn list() {
    let mut table =
        Table::new(&[("experiment", Align::Left), ("shows", Align::Left), ("the paper says", Align::Left)]);
    for experiment in EXPERIMENTS {
        table.row(vec![experiment.name.into(), experiment.title.into(), experiment.claim.into()]);
    }
    terminal::print(&table.render());
}

fn play_all(args: &RunArgs, experiment: &Experiment, planned: &Planned) -> Result<Vec<Row>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, stop.clone())
        .map_err(|error| Failure::environment(format_args!("Ctrl-C cannot be caught: {error}")))?;
    let chosen = |policy: &&PolicyName| args.policy.is_empty() || args.policy.contains(policy);
    let mut found = Vec::new();
    for case in &planned.cases {
        for policy in experiment.policies.iter().filter(chosen) {
            let (some, beside) = one(args, planned, case, *policy, &stop)?;
            report(case, *policy, &some, beside);
            found.extend(some);
            if stop.load(Ordering::Relaxed) {
                eprintln!("stopped: what was measured until then follows");
                return Ok(found);
            }
        }
    }
    Ok(found)
}

fn one(
    args: &RunArgs,
    planned: &Planned,
    case: &PlannedCase,
    policy: PolicyName,
    stop: &AtomicBool,
) -> Result<(Vec<Row>, Option<Beside>), Failure> {
    let settings = Settings {
        warm_up: args.warm_up,
        duration: args.duration.unwrap_or(planned.experiment.duration()),
        seed: args.seed,
        realtime: !args.no_realtime,
    };
    let total = (settings.warm_up + settings.duration).0 / 1_000_000;
    let bar = terminal::progress(total, &format!("{} {}", case.case.name, policy.name()), "ms");
    let mut tick = |progress: load::Progress| bar.set_position(progress.elapsed.0 / 1_000_000);
    let played: Played = play(planned, case, policy, &settings, &mut tick, stop)?;
    bar.finish_and_clear();
    played.ran.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    Ok(rows(planned, case, policy, &played))
}

/// Progress for those who wait: on stderr.
fn report(case: &PlannedCase, policy: PolicyName, rows: &[Row], beside: Option<Beside>) {
    let each = rows.iter().map(|row| format!("{} {} ({})", row.name, time(row.measured_s), verdict(row)));
    let copy = beside.map_or_else(String::new, |copy| format!("; the copy {:.0} requests/s", copy.per_s));
    let all = each.collect::<Vec<_>>().join(", ");
    eprintln!("{} {}: {all}{copy}", case.case.name, policy.name());
}

fn time(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "no answer".to_owned(), |seconds| Seconds(seconds).to_string())
}

fn verdict(row: &Row) -> &'static str {
    match row.verdict {
        Conclusion::Met => "met",
        Conclusion::NotMet => "NOT MET",
        Conclusion::TooFew if row.is_spoiled => "sent too late",
        Conclusion::TooFew => "too few",
    }
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        ("policy", Align::Left),
        ("workload", Align::Left),
        ("SLO", Align::Left),
        ("measured", Align::Right),
        ("interval", Align::Right),
        ("requests", Align::Right),
        ("verdict", Align::Left),
    ]);
    for row in rows {
        let high = row.ci_high_s.map_or_else(|| "?".to_owned(), |high| Seconds(high).to_string());
        table.row(vec![
            row.policy.to_owned(),
            row.name.clone(),
            format!("{}% < {}", row.percentile, Seconds(row.slo_s)),
            time(row.measured_s),
            format!("{} to {high}", time(row.ci_low_s)),
            row.needed.map_or(row.requests.to_string(), |needed| format!("{} of {needed}", row.requests)),
            verdict(row).to_owned(),
        ]);
    }
    table.render()
}

/// What was decided before anything is played.
fn plan_text(planned: &Planned) -> String {
    let mut text = format!("{}\n{}\n", planned.experiment.title, planned.setting());
    for case in &planned.cases {
        let mut table = Table::new(&[
            ("workload", Align::Left),
            ("load", Align::Right),
            ("requests/s", Align::Right),
            ("time scale", Align::Right),
            ("SLO", Align::Left),
            ("bound", Align::Right),
            ("priority", Align::Right),
            ("limits", Align::Right),
        ]);
        for ((tenant, sent), at) in case.case.tenants.iter().zip(&case.sent).zip(0..) {
            let decided = &case.policy.0.workloads[at];
            table.row(vec![
                tenant.name.to_owned(),
                format!("{:.0}%", tenant.load * 100.0),
                format!("{:.1}", sent.requests.len() as f64 / sent.period.as_secs()),
                format!("{:.4}", sent.time_scale),
                decided.slo.to_string(),
                decided.bound_s.map_or_else(|| "refused".to_owned(), |bound| time(Some(bound))),
                decided.priority.map_or_else(String::new, |priority| priority.to_string()),
                decided.limits.len().to_string(),
            ]);
        }
        let admits = if case.policy.1 { "admits all" } else { "does not admit all" };
        let name = if case.case.name.is_empty() { planned.experiment.name } else { case.case.name };
        text += &format!("\n{name}: the analysis {admits}\n{}", table.render());
    }
    text
}
