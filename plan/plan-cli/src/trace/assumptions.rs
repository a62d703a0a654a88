//! `tailwright trace assumptions`: tests workloads for independence and stationarity, and prices dependence.

use crate::arguments::{ClusterArgs, model, prediction_source};
use crate::trace::assumptions_text::{AssumptionsView, groups_table, json, text};
use cli::exit::VerbAnswer;
use cli::quantities::{results, share};
use cli::terminal::{TerminalObserver, print, print_text};
use model::OperationError;
use operation::files::write_result;
use plan::assumptions::{AssumptionSettings, assess, price, read_streams, recorded_workloads};
use plan::prediction::{ModelName, PredictionProblem, PredictionSource};
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  tailwright trace assumptions tailwright-demo/traces/database-*.csv.gz \\
      --one-clock
  tailwright trace assumptions cluster.toml --one-clock
  tailwright trace assumptions cluster.toml --one-clock -o groups.csv
  tailwright bound cluster.toml --groups groups.csv
  tailwright trace assumptions monday/*.parquet --one-clock --json

With a cluster, the work of a request is the longest time that a stage needs for it, and groups are priced: servers \
and bounds with all workloads independent, and with the groups. With traces alone it is their bytes.

Exit codes: 0 everything was tested and nothing was found; 1 workloads are busy together, a trace changes, or something \
could not be tested; 2 bad input.";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct AssumptionsArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Traces to look at alone, instead of a cluster
    #[arg(value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// The traces were recorded together: their instants count from the same origin
    #[arg(long)]
    one_clock: bool,
    /// Number of findings that may be due to chance, on average
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = share_of_findings)]
    false_discoveries: f64,
    /// By which models groups are priced (default: probabilistic, replayed and worst-case)
    #[arg(long, value_name = "MODEL", value_parser = model(), value_delimiter = ',')]
    model: Vec<ModelName>,
    /// The class of server (default: the first in the cluster file)
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Requests pass a network link alone, in both directions, and no storage
    #[arg(long)]
    link_only: bool,
    /// Write the groups of workloads that are busy together, as --groups reads them
    #[arg(short, long, value_name = "GROUPS.csv")]
    output: Option<PathBuf>,
    /// Print JSON: everything that was found
    #[arg(long)]
    json: bool,
}

fn share_of_findings(text: &str) -> Result<f64, String> {
    let expected = || format!("expected a share between 0 and 1, such as 0.05 or 5%, found '{text}'");
    share(text).ok().filter(|share| *share > 0.0 && *share < 1.0).ok_or_else(expected)
}

pub(super) fn run(args: &AssumptionsArgs) -> Result<VerbAnswer, OperationError> {
    let files = args.trace_files();
    let problem = match files {
        Some(_) => None,
        None => Some(PredictionProblem::read(&args.source()?, &TerminalObserver)?),
    };
    let streams = match (&problem, files) {
        (Some(problem), _) => recorded_workloads(problem),
        (None, files) => {
            read_streams(&files.unwrap_or_default(), &args.cluster.options(), &TerminalObserver)?
        }
    };
    let settings =
        AssumptionSettings { one_clock: args.one_clock, false_discoveries: args.false_discoveries };
    let report = assess(&streams, settings, &TerminalObserver);
    let prices = match &problem {
        Some(problem) => price(problem, &report.group_of(), &args.models(), &TerminalObserver),
        None => Vec::new(),
    };
    let view = AssumptionsView { streams: &streams, report: &report, prices: &prices };
    if let Some(path) = &args.output {
        write_result(path, &groups_table(&view), "table of groups")?;
    }
    if args.json {
        print(&json(&view));
    } else {
        print_text(&text(&view));
    }
    Ok(if report.is_clean() { VerbAnswer::Yes } else { VerbAnswer::No })
}

impl AssumptionsArgs {
    /// The traces, where no cluster is given: a cluster is one file of TOML or JSON.
    fn trace_files(&self) -> Option<Vec<PathBuf>> {
        let first = self.cluster.file()?;
        let is_cluster =
            ["toml", "json"].iter().any(|ending| first.extension().is_some_and(|it| it == *ending));
        if is_cluster && self.files.is_empty() {
            return None;
        }
        Some([&[first.to_owned()], &self.files[..]].concat())
    }

    fn source(&self) -> Result<PredictionSource, OperationError> {
        let mut source = prediction_source(&self.cluster, None, self.link_only)?;
        source.cluster.results = results([&self.output]);
        Ok(PredictionSource { class: self.class.clone(), ..source })
    }

    fn models(&self) -> Vec<ModelName> {
        if self.model.is_empty() {
            return vec![ModelName::Probabilistic, ModelName::Replayed, ModelName::WorstCase];
        }
        self.model.clone()
    }
}
