//! `tailwright demo`: a bursty cluster to start from, and its plan.
//!
//! Everything written is decided by the seed and the number of workloads, except the times in plan.json.

use crate::plan::text as planned;
use crate::plan::{answer, explain_command};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::undo_on_termination;
use cli::terminal::{self, TerminalObserver, pasted_path};
use model::OperationError;
use operation::files::write_result;
use placement::LimitMethod;
use plan::cluster::{ClusterDescription, ClusterSource};
use plan::demo::{CLUSTER_FILE, PLAN_FILE, REPORT_FILE, StagedDemo};
use plan::planning::{PlanRun, PlanningQuestion, PlanningRecipe, plan_cluster};
use std::path::{Path, PathBuf};

/// Generate a realistic bursty cluster and plan it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tailwright demo\n  tailwright demo --seed 7 --workloads 60 --dir /tmp/demo\n\n\
    Then:\n  tailwright plan tailwright-demo/cluster.toml --report plan.html\n  tailwright explain NAME tailwright-demo/cluster.toml\n\n\
    Exit codes: 0 all workloads are admitted; 1 some are not; 2 bad input; 3 the folder cannot be written, or a signal ended it."
)]
pub struct DemoArgs {
    /// Seed of the cluster: the same seed gives the same one.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seed: u64,
    /// Number of workloads, 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    workloads: u32,
    /// Folder to write; an earlier demo in it is replaced.
    #[arg(long, value_name = "FOLDER", default_value = "tailwright-demo")]
    dir: PathBuf,
}

pub fn run(args: &DemoArgs) -> Result<VerbAnswer, OperationError> {
    let dir = &args.dir;
    let demo = StagedDemo::generate(dir, args.seed, args.workloads, &TerminalObserver)?;
    let question = PlanningQuestion {
        source: &ClusterSource::new(ClusterDescription::File(demo.path().join(CLUSTER_FILE))),
        recipe: &PlanningRecipe::of(LimitMethod::Exact),
        keep: None,
        survive: false,
        compare: true,
    };
    let run = plan_cluster(&question, &TerminalObserver)?;
    write_result(&demo.path().join(PLAN_FILE), &crate::plan::document::plan(&run), "plan")?;
    write_result(&demo.path().join(REPORT_FILE), &crate::plan::page::html(&run), "report")?;
    // From here on a signal does not end it half-way.
    let _ = undo_on_termination();
    demo.take_place(&TerminalObserver)?;
    terminal::print_text(&planned::text(&run, false));
    terminal::print_text(&next_steps(dir, &run));
    Ok(answer(&run))
}

fn next_steps(dir: &Path, run: &PlanRun) -> String {
    let place = |name: &str| pasted_path(&dir.join(name));
    let cluster = place(CLUSTER_FILE);
    let plan = place(PLAN_FILE);
    let mut text = format!("\nnext: look at {} in a browser, and\n", dir.join(REPORT_FILE).display());
    if let Some(workload) = run.planned.tightest() {
        let name = &run.planned.instance.workloads[workload].name;
        let explain = explain_command(name, Some(&dir.join(CLUSTER_FILE)), Vec::new(), &dir.join(PLAN_FILE));
        text.push_str(&format!("  {explain}\n"));
    }
    text.push_str(&format!(
        "after a change to {}:\n  tailwright plan {cluster} --keep {plan}\n",
        dir.join(CLUSTER_FILE).display()
    ));
    text
}
