//! `tailwright bound`: the tail latency of every workload on a shared server, by model.

pub(crate) mod page;
pub(crate) mod text;

use crate::arguments::{PredictionArgs, model};
use crate::bound::text as bounds;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::quantities::{percentage, results};
use cli::terminal::{self, TerminalObserver};
use model::OperationError;
use operation::files::{check_writable, write_wanted};
use plan::prediction::{ModelName, PredictionProblem, predict_bounds, report_calibration};
use std::path::PathBuf;
use units::Percentile;

const HELP: &str = "\
Examples:
  tailwright bound tailwright-demo/cluster.toml --model worst-case
  tailwright bound cluster.toml
  tailwright bound cluster.toml --percentile 99 --report bound.html
  tailwright bound --slos slos.csv --traces traces/ --storage ssd-profile.json \\
      --network 125MB/s
  tailwright bound --slos slos.csv --traces traces/ --link-only \\
      --network 125MB/s \\
      --model probabilistic --json

All workloads share one server and have priorities by SLO: the tighter the latency, the higher.

The latency of the idle storage stack, where the device profile has it, is part of every figure.

Exit codes: 0 done; 2 bad input.";

/// Predict every workload's tail latency on one shared server, under models that assume more or less.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct BoundArgs {
    #[command(flatten)]
    prediction: PredictionArgs,
    /// By which models (default: worst-case, probabilistic and replayed, side by side).
    #[arg(long, value_name = "MODEL", value_parser = model(), value_delimiter = ',')]
    model: Vec<ModelName>,
    /// The percentile that models are asked about, such as 99.9 (default: that of each workload's SLO).
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    percentile: Option<Percentile>,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Print JSON: the bounds.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &BoundArgs) -> Result<VerbAnswer, OperationError> {
    check_writable(args.report.as_deref(), "report")?;
    let mut models = args.model.clone();
    if models.is_empty() {
        models = ModelName::SIDE_BY_SIDE.to_vec();
    }
    let procedures: Vec<_> = models.iter().map(|&model| model.into()).collect();
    let mut source = args.prediction.source(&procedures)?;
    source.cluster.results = results([&args.report]);
    let problem = PredictionProblem::read(&source, &TerminalObserver)?;
    let everybody: Vec<usize> = (0..problem.cluster.workloads.len()).collect();
    let bounds = predict_bounds(&problem, &everybody, &models, args.percentile, &TerminalObserver);
    let calibration = models
        .contains(&ModelName::Calibrated)
        .then(|| report_calibration(&problem, args.percentile, &TerminalObserver));
    let view = bounds::BoundsView { problem: &problem, models: &models, bounds: &bounds, calibration };
    let written = write_wanted(args.report.as_deref(), "report", || page::html(&view));
    if args.json {
        terminal::print(&bounds::json(&view));
    } else {
        terminal::print_text(&bounds::text(&view));
    }
    written?;
    Ok(VerbAnswer::Yes)
}
