//! `tailwright demo`: a bursty cluster to start from, and its plan.
//!
//! Everything written is decided by the seed and the number of workloads, except the times in plan.json.

mod cluster;

use super::plan::{Compare, outcome};
use crate::exit::Answer;
use crate::input::InputArgs;
use crate::output::json;
use crate::planning::Recipe;
use crate::terminal;
use clap::Args;
use model::OperationError;
use plan::LimitMethod;
use std::fs;
use std::path::{Path, PathBuf};

/// Its presence says that a folder was written by this verb; it lists what may be replaced.
const MARKER: &str = ".tailwright-demo";

/// Generate a realistic bursty cluster and plan it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tailwright demo\n  tailwright demo --seed 7 --workloads 60 --dir /tmp/demo\n\n\
    Then:\n  tailwright plan tailwright-demo/cluster.toml --report plan.html\n  tailwright explain NAME tailwright-demo/cluster.toml"
)]
pub(crate) struct DemoArgs {
    /// The same seed gives the same cluster.
    #[arg(long, default_value_t = 5)]
    seed: u64,
    /// How many workloads, 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    workloads: u32,
    /// Where it goes; an earlier demo there is replaced.
    #[arg(long, default_value = "tailwright-demo")]
    dir: PathBuf,
}

pub(crate) fn run(args: &DemoArgs) -> Result<Answer, OperationError> {
    let dir = &args.dir;
    prepare(dir)?;
    let cluster = cluster::Demo::new(args.seed, args.workloads);
    let files = cluster.files();
    write(&dir.join(MARKER), &files.join("\n"))?;
    cluster.write(dir)?;
    eprintln!("wrote {} with {} generated traces (seed {})", dir.display(), args.workloads, args.seed);

    let input = InputArgs::of_cluster(dir.join(cluster::CLUSTER_FILE));
    let outcome = outcome(&input, &Recipe::of(LimitMethod::Exact), None, Compare::WithPublished)?;
    json::write(&dir.join(cluster::PLAN_FILE), &outcome.document(), "plan")?;
    json::write(&dir.join(cluster::REPORT_FILE), &outcome.page(), "report")?;
    terminal::print(&outcome.text(false));
    terminal::print(&next_steps(dir, &outcome));
    Ok(outcome.answer())
}

/// Makes the folder, or empties that of an earlier demo of what the demo wrote.
fn prepare(dir: &Path) -> Result<(), OperationError> {
    let failed = |error: std::io::Error| {
        OperationError::machine(format_args!("{}: {error}", dir.display()))
            .hint("choose another folder with --dir")
    };
    let occupied = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(failed(error)),
    };
    if occupied {
        let Ok(list) = fs::read_to_string(dir.join(MARKER)) else {
            return Err(OperationError::input(format_args!(
                "{}: the folder holds something else; expected an empty folder or an earlier demo",
                dir.display()
            ))
            .hint("choose another folder with --dir"));
        };
        // Only names that a demo gives are followed, whatever the list says.
        for file in list.lines().filter(|file| cluster::is_demo_file(file)) {
            match fs::remove_file(dir.join(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
    }
    fs::create_dir_all(dir.join(cluster::TRACE_FOLDER)).map_err(failed)
}

fn write(path: &Path, text: &str) -> Result<(), OperationError> {
    json::write(path, text, "demo")
}

fn next_steps(dir: &Path, outcome: &super::plan::Outcome) -> String {
    let dir = dir.display();
    let mut text = String::from("\nnext:\n");
    text.push_str(&format!("  open {dir}/plan.html in a browser: the plan as charts\n"));
    if let Some(workload) = outcome.planned.tightest() {
        let name = &outcome.planned.instance.workloads[workload].name;
        text.push_str(&format!("  tailwright explain {name} {dir}/cluster.toml\n"));
    }
    text.push_str(&format!(
        "  change {dir}/cluster.toml and run `tailwright plan {dir}/cluster.toml --keep {dir}/plan.json`\n"
    ));
    text
}
