//! `tailwright plan`: where every workload goes, with which limits, and what it is then guaranteed.

use crate::exit::Answer;
use crate::input::{InputArgs, Problem, SceneArgs, characterise};
use crate::output::comparison::{self, Compared};
use crate::output::json::{self, Timing};
use crate::output::{placement, table, time, words};
use crate::planning::{self, MethodArgs, Planned, Recipe};
use crate::predicting::{self, ModelName};
use crate::report;
use crate::terminal;
use clap::Args;
use model::{OperationError, Policy};
use std::path::PathBuf;
use std::time::Instant;

const HELP: &str = "\
Examples:
  tailwright plan cluster.toml
  tailwright plan cluster.toml --report plan.html -o policy.json
  tailwright plan cluster.toml --keep policy.json -o policy.json     workloads came or went
  tailwright plan cluster.toml --model replayed                      fewer servers for an assumption
  tailwright plan --slos slos.csv --traces traces/ --storage ssd-profile.json \\
      --network 125MB/s --max-servers 62 --json

A cluster file:
  [[server]]
  class = \"ssd\"
  count = 8
  storage = \"ssd-profile.json\"      # device profile, relative to this file
  network = \"125MB/s\"               # or 1Gbps; in each direction

  [[workload]]
  name = \"mail\"
  trace = \"traces/mail.csv.gz\"      # representative requests
  slo = \"99.9% < 200ms\"

In the JSON, rate is a fraction of the stage's capacity and burst is in seconds of that capacity;
rate_per_s and burst_work are the same in bytes (network) and seconds of device time (storage).
The JSON is also the policy file that other verbs take.

What was read of a trace is kept in $XDG_CACHE_HOME/tailwright/footprints
(~/.cache/tailwright/footprints), by content; the folder can be removed at any time.

Exit codes: 0 all workloads are admitted; 1 some are not; 2 bad input.";

/// Place workloads on servers, with priorities and rate limits that guarantee their tail latencies.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    method: MethodArgs,
    /// Place by what this model predicts, not by guaranteed limits: fewer servers for a stated assumption.
    #[arg(long, value_name = "MODEL", value_enum, conflicts_with_all = ["policy", "order", "fast_first_fit", "segments", "effort", "time_budget", "keep", "compare"])]
    model: Option<ModelName>,
    /// With --model: workloads that may burst together (a table with the columns workload and group, or one
    /// group per line, or JSON arrays of names).
    #[arg(long, value_name = "FILE", requires = "model")]
    groups: Option<PathBuf>,
    /// Leave the workloads of this policy where they are; place new ones beside them, first fit.
    #[arg(long, value_name = "POLICY.json", conflicts_with = "order")]
    keep: Option<PathBuf>,
    /// Also plan with the published methods and show how many servers they need.
    #[arg(long)]
    compare: bool,
    /// Write the plan as a policy file.
    #[arg(short, long, value_name = "POLICY.json")]
    output: Option<PathBuf>,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PLAN.html")]
    report: Option<PathBuf>,
    /// Print the plan as JSON.
    #[arg(long)]
    json: bool,
    /// List every workload, however many there are.
    #[arg(long)]
    all: bool,
}

/// A plan ready to be shown.
pub(crate) struct Outcome {
    pub(crate) problem: Problem,
    pub(crate) planned: Planned,
    pub(crate) timing: Timing,
    pub(crate) compared: Vec<Compared>,
}

pub(crate) fn run(args: &PlanArgs) -> Result<Answer, OperationError> {
    if let Some(model) = args.model {
        return args.by_model(model);
    }
    let outcome = args.outcome()?;
    let document = || json::document(&outcome.problem, &outcome.planned, outcome.timing, &outcome.compared);
    if let Some(path) = &args.output {
        json::write(path, &document(), "policy")?;
    }
    if let Some(path) = &args.report {
        json::write(path, &report::html(&outcome.problem, &outcome.planned, &outcome.compared), "report")?;
    }
    if args.json {
        terminal::print(&document());
    } else {
        terminal::print(&outcome.text(args.all));
        terminal::print(&args.next_steps(&outcome));
    }
    Ok(outcome.answer())
}

/// Reads, plans and, if asked, compares.
pub(crate) fn outcome(
    input: &InputArgs,
    recipe: &Recipe,
    keep: Option<&Policy>,
    compare: Compare,
) -> Result<Outcome, OperationError> {
    let start = Instant::now();
    let problem = input.load()?;
    let footprints = characterise(&problem)?;
    let planned = planning::plan(&problem, &footprints, recipe, keep)?;
    let timing = Timing { elapsed: start.elapsed(), characterise: footprints.elapsed };
    let compared = match compare {
        Compare::Alone => Vec::new(),
        Compare::WithPublished => comparison::compare(&problem, &footprints, &planned)?,
    };
    Ok(Outcome { problem, planned, timing, compared })
}

/// Whether other methods plan, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    Alone,
    WithPublished,
}

impl PlanArgs {
    fn by_model(&self, model: ModelName) -> Result<Answer, OperationError> {
        let scene = SceneArgs::for_plan(&self.input, self.groups.as_deref()).load()?;
        let placed = predicting::place(&scene, model);
        let document = || placement::json(&scene, &placed);
        if let Some(path) = &self.output {
            json::write(path, &document(), "policy")?;
        }
        if let Some(path) = &self.report {
            json::write(path, &report::placement::html(&scene, &placed), "report")?;
        }
        terminal::print(&if self.json { document() } else { placement::text(&scene, &placed) });
        let kept = placed.packing.refused.is_empty() && placed.is_kept(&scene);
        Ok(if kept { Answer::Yes } else { Answer::No })
    }

    fn outcome(&self) -> Result<Outcome, OperationError> {
        let keep = self.keep.as_deref().map(planning::read_policy).transpose()?;
        let compare = if self.compare { Compare::WithPublished } else { Compare::Alone };
        outcome(&self.input, &self.method.recipe()?, keep.as_ref(), compare)
    }

    fn next_steps(&self, outcome: &Outcome) -> String {
        let tightest = outcome.planned.tightest().map(|w| &outcome.planned.instance.workloads[w].name);
        let mut text = String::from("\nnext:");
        if let Some(name) = tightest {
            text.push_str(&format!(" `tailwright explain {name} …` derives one bound (same inputs);"));
        }
        if self.report.is_none() {
            text.push_str(" --report plan.html draws the plan;");
        }
        if self.output.is_none() {
            text.push_str(" -o policy.json keeps it;");
        }
        format!("{}\n", text.trim_end_matches(';'))
    }
}

impl Outcome {
    pub(crate) fn answer(&self) -> Answer {
        if self.planned.placement.refused.is_empty() { Answer::Yes } else { Answer::No }
    }

    /// What machines read, and the policy file.
    pub(crate) fn document(&self) -> String {
        json::document(&self.problem, &self.planned, self.timing, &self.compared)
    }

    /// What browsers show.
    pub(crate) fn page(&self) -> String {
        report::html(&self.problem, &self.planned, &self.compared)
    }

    /// What people read.
    pub(crate) fn text(&self, all: bool) -> String {
        let planned = &self.planned;
        let mut text = format!(
            "{}; {} planned in {}.\n\n",
            words::answer(planned),
            planned.recipe.method.name(),
            time(planned.cpu.as_secs_f64())
        );
        let detailed = all || planned.instance.workloads.len() <= table::DETAILED_MAX;
        text.push_str(&table::plan(planned, detailed));
        if !detailed {
            text.push_str("(--all lists every workload)\n");
        }
        if !planned.placement.refused.is_empty() {
            text.push('\n');
            text.push_str(&table::refused(planned, detailed));
        }
        if let Some(changed) = &planned.changed {
            let list = if changed.is_empty() { "none".to_owned() } else { changed.join(", ") };
            text.push_str(&format!("\nservers that change: {list}\n"));
        }
        if !self.compared.is_empty() {
            text.push('\n');
            text.push_str(&comparison::table(&self.compared, planned.instance.workloads.len()));
        }
        text
    }
}
