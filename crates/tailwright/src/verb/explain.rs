//! `tailwright explain`: the derivation of one workload's bound, term by term.

use crate::failure::{Answer, Failure};
use crate::input::{InputArgs, characterise};
use crate::output::{derivation, json, words};
use crate::planning::{self, MethodArgs, Planned};
use crate::terminal;
use clap::Args;
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  tailwright explain mail cluster.toml
  tailwright explain mail cluster.toml --plan policy.json     as this plan has it
  tailwright explain C7 --slos slos.csv --storage ssd-profile.json --network 125MB/s --max-servers 8

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
    /// Print the derivation as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Answer, Failure> {
    let mut recipe = args.method.recipe()?;
    let policy = args.plan.as_deref().map(planning::read_policy).transpose()?;
    if let Some(policy) = &policy {
        recipe = planning::recipe_of_policy(policy)?;
    }
    let problem = args.input.load()?;
    let names: Vec<&str> = problem.cluster.workloads.iter().map(|w| w.name.as_str()).collect();
    let Some(workload) = names.iter().position(|name| *name == args.workload) else {
        return Err(unknown(&args.workload, &names));
    };
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
fn unknown(given: &str, names: &[&str]) -> Failure {
    const SHOWN_MAX: usize = 5;
    let mut close: Vec<(usize, &str)> = names.iter().map(|name| (distance(given, name), *name)).collect();
    close.sort_by_key(|(distance, _)| *distance);
    let close: Vec<&str> = close.into_iter().take(SHOWN_MAX).map(|(_, name)| name).collect();
    Failure::bad_input(format_args!("there is no workload '{given}' among {}", names.len()))
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
