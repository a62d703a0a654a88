//! `tailwright explain`: the derivation of one workload's bound, term by term.

use crate::exit::Answer;
use crate::input::{InputArgs, SceneArgs, characterise};
use crate::output::{derivation, json, predicted, words};
use crate::planning::{self, MethodArgs, Planned};
use crate::predicting::{self, ModelName};
use crate::terminal;
use clap::Args;
use model::OperationError;
use std::path::PathBuf;
use units::Percentile;

const HELP: &str = "\
Examples:
  tailwright explain mail cluster.toml
  tailwright explain mail cluster.toml --plan policy.json     as this plan has it
  tailwright explain C7 --slos slos.csv --storage ssd-profile.json --network 125MB/s --max-servers 8
  tailwright explain mail cluster.toml --model probabilistic  what a model predicts on one server

Without --plan, the plan is made anew from the same inputs; the same inputs give the same plan.

Exit codes: 0 explained; 1 the workload is not admitted (why is printed); 2 bad input.";

/// Derive one workload's latency bound, term by term.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ExplainArgs {
    /// Which workload.
    #[arg(value_name = "WORKLOAD")]
    workload: String,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    method: MethodArgs,
    /// Explain this plan (from `tailwright plan -o`) instead of making one.
    #[arg(long, value_name = "POLICY.json", conflicts_with_all = ["policy", "order", "effort", "fast_first_fit"])]
    plan: Option<PathBuf>,
    /// Derive what this model predicts when all workloads share one server, as `tailwright bound` has it.
    #[arg(long, value_name = "MODEL", value_enum, conflicts_with_all = ["plan", "policy", "order", "fast_first_fit", "segments", "effort", "time_budget"])]
    model: Option<ModelName>,
    /// With --model: the percentile, such as 99.9 (default: that of the SLO).
    #[arg(long, value_name = "P", requires = "model")]
    percentile: Option<Percentile>,
    /// With --model: workloads that may burst together (see `tailwright bound --help`).
    #[arg(long, value_name = "FILE", requires = "model")]
    groups: Option<PathBuf>,
    /// With --model: requests pass a network link alone.
    #[arg(long, requires = "model")]
    link_only: bool,
    /// Print the derivation as JSON.
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    fn prediction(&self, model: ModelName) -> Result<Answer, OperationError> {
        let scene = SceneArgs::for_explain(&self.input, self.groups.as_deref(), self.link_only).load()?;
        let names: Vec<&str> = scene.tenants.iter().map(|tenant| tenant.spec.name.as_str()).collect();
        let tenant = find(&self.workload, &names)?;
        let derivation = predicting::derive(&scene, tenant, model, self.percentile);
        terminal::print(&if self.json { json::pretty(&derivation) } else { predicted::text(&derivation) });
        Ok(Answer::Yes)
    }
}

/// The position of the workload of this name.
fn find(name: &str, names: &[&str]) -> Result<usize, OperationError> {
    names.iter().position(|known| *known == name).ok_or_else(|| unknown(name, names))
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Answer, OperationError> {
    if let Some(model) = args.model {
        return args.prediction(model);
    }
    let mut recipe = args.method.recipe()?;
    let policy = args.plan.as_deref().map(planning::read_policy).transpose()?;
    if let Some(policy) = &policy {
        recipe = planning::recipe_of_policy(policy)?;
    }
    let problem = args.input.load()?;
    let names: Vec<&str> = problem.cluster.workloads.iter().map(|w| w.name.as_str()).collect();
    let workload = find(&args.workload, &names)?;
    let footprints = characterise(&problem)?;
    let planned = planning::plan(&problem, &footprints, &recipe, policy.as_ref())?;
    if let Some(changed) = planned.changed.as_ref().filter(|changed| !changed.is_empty()) {
        eprintln!(
            "warning: the plan does not fit these inputs any more; new limits on {}",
            changed.join(", ")
        );
    }
    match planning::explain(&planned, workload) {
        Some(explanation) => {
            let text = if args.json { json::pretty(&explanation) } else { derivation::text(&explanation) };
            terminal::print(&text);
            Ok(Answer::Yes)
        }
        None => {
            terminal::print(&refused(&planned, workload));
            Ok(Answer::No)
        }
    }
}

fn refused(planned: &Planned, workload: usize) -> String {
    let number = planned.placement.refused.iter().position(|refusal| refusal.workload == workload);
    let why = words::refusal(planned, number.expect("a workload without a place was refused"));
    format!("{} is not admitted: {why}\n", planned.instance.workloads[workload].name)
}

/// Names that are close to a mistyped one, or all if there are few.
fn unknown(given: &str, names: &[&str]) -> OperationError {
    const SHOWN_MAX: usize = 5;
    let mut close: Vec<(usize, &str)> = names.iter().map(|name| (distance(given, name), *name)).collect();
    close.sort_by_key(|(distance, _)| *distance);
    let close: Vec<&str> = close.into_iter().take(SHOWN_MAX).map(|(_, name)| name).collect();
    OperationError::input(format_args!("there is no workload '{given}' among {}", names.len()))
        .hint(format_args!("did you mean {}?", close.join(", ")))
}

/// Levenshtein's distance, case ignored.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        for (a, b, expected) in [("C7", "c7", 0), ("mail", "mali", 2), ("", "abc", 3), ("web", "web-1", 2)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
