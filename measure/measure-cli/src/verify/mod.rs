//! `tailwright verify`: observations against SLOs and guarantees.

pub mod guarantees;
pub(crate) mod judgement;
pub mod latency;
pub mod page;
pub mod text;

use crate::verify::judgement::JudgementArgs;
use crate::verify::page::VerifiedRun;
use crate::verify::text as verified;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::check_complete;
use cli::terminal::{self, TerminalObserver};
use measure::load::LoadFile;
use measure::verification::{JudgedRun, check_workloads, judge, read_observations};
use model::{Observations, OperationError, Policy};
use operation::files::{check_writable, write_wanted};
use operation::policy_file::read_policy;
use std::path::{Path, PathBuf};
use verify::Findings;

const HELP: &str = "\
Examples:
  tailwright simulate tailwright-demo/plan.json \\
      --cluster tailwright-demo/cluster.toml -o observed.parquet
  tailwright verify tailwright-demo/plan.json observed.parquet \\
      --storage tailwright-demo/ssd-profile.json
  tailwright verify policy.json observed.parquet --storage profile.json
  tailwright verify policy.json client-1.parquet client-2.parquet \\
      --report page.html
  tailwright verify policy.json --load-file load.toml
      drive real servers, then judge
  tailwright verify observed.parquet --slo 'mail=99.9% < 50ms' \\
      --slo 'web=99% < 10ms' --json

Observations are Parquet files with one row per request. `tailwright simulate POLICY.json -o FILE` writes \
them, and so can whoever measures:
  workload      string
  op            string: read or write
  size_bytes    integer
  intended_ns   integer: when it was meant to be sent; does not decrease
  sent_ns       integer: when it was sent
  outcome       string: done, failed or lost
  end_ns        integer, null when lost
  stage_NAME_ns integer: time in each stage that was measured; may be left out
Instants of all files count from one origin. docs/reference/verify.md says what is judged and how.

Exit codes: 0 every SLO of an admitted workload is met; 1 one is not met, or there are too few requests to say \
(the verdict says which); 2 bad input, such as observations of other workloads; 3 requests were sent so late that nothing can be said.";

/// Judge observed requests: which SLOs are met, with confidence, and who kept to the limits.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct VerifyArgs {
    /// The policy with the guarantees (.json, at most one), and observations.
    #[arg(value_name = "POLICY.json|OBSERVATIONS.parquet", required_unless_present = "load")]
    files: Vec<PathBuf>,
    /// Make the load that this file describes (docs/reference/load.md) and judge what happens.
    #[arg(long = "load-file", alias = "load", value_name = "LOAD.toml")]
    load: Option<PathBuf>,
    #[command(flatten)]
    judgement: JudgementArgs,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Print JSON: the findings.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &VerifyArgs) -> Result<VerbAnswer, OperationError> {
    let (policy, paths) = sort_files(&args.files)?;
    let policy = policy.map(read_policy).transpose()?;
    if policy.is_none() && args.judgement.has_storage() {
        return Err(OperationError::input("--storage is for the limits of a policy, and none is given")
            .hint("give the policy as well, or leave out --storage"));
    }
    check_writable(args.report.as_deref(), "report")?;
    let observations = match &args.load {
        Some(_) if !paths.is_empty() => {
            return Err(OperationError::input("what happened is either in files or yet to happen")
                .hint("leave out --load-file, or the observations"));
        }
        Some(path) => {
            let file = LoadFile::read(path, &[])?;
            file.refuse_result(args.report.as_deref())?;
            let names: Vec<String> = file.names().map(str::to_owned).collect();
            check_workloads(policy.as_ref(), &args.judgement.settings().slos, &names)?;
            crate::load::generate(path, args.report.as_deref())?.observations
        }
        None => read_observations(&paths)?,
    };
    let JudgedRun { findings, broken_bounds } =
        judge(policy.as_ref(), &observations, &args.judgement.settings(), &TerminalObserver)?;
    let written =
        write_wanted(args.report.as_deref(), "report", || page(policy.as_ref(), &observations, &findings));
    print(policy.as_ref(), &findings, broken_bounds.as_deref(), args.json);
    written?;
    check_complete("what is judged is what was sent until then")?;
    answer(&findings)
}

/// Tells the policy, if there is one, from the observations by their endings.
fn sort_files(files: &[PathBuf]) -> Result<(Option<&Path>, Vec<&Path>), OperationError> {
    let is_policy = |path: &&Path| path.extension().is_some_and(|ending| ending == "json");
    let (policies, observations): (Vec<&Path>, Vec<&Path>) =
        files.iter().map(PathBuf::as_path).partition(is_policy);
    if let [_, second, ..] = policies[..] {
        return Err(OperationError::input(format_args!("{}: expected at most one policy", second.display())));
    }
    Ok((policies.first().copied(), observations))
}

/// Writes findings to stdout.
fn print(policy: Option<&Policy>, findings: &Findings, broken_bounds: Option<&str>, as_json: bool) {
    let name = policy.map(|policy| policy.policy_name.as_str());
    if as_json {
        terminal::print(&verified::json(name, findings, broken_bounds));
    } else {
        let broken = broken_bounds.map_or(String::new(), |broken| format!("{broken}\n"));
        terminal::print_text(&(broken + &verified::text(name, findings)));
    }
}

/// A page for a browser.
fn page(policy: Option<&Policy>, observations: &Observations, findings: &Findings) -> String {
    page::html(&VerifiedRun { policy, observations, findings, origin: String::new() })
}

/// How a run with these findings ends.
fn answer(findings: &Findings) -> Result<VerbAnswer, OperationError> {
    match findings.overall() {
        verify::OverallVerdict::AllMet => Ok(VerbAnswer::Yes),
        verify::OverallVerdict::BoundBroken
        | verify::OverallVerdict::SomeNotMet
        | verify::OverallVerdict::TooFew => Ok(VerbAnswer::No),
        verify::OverallVerdict::Spoiled => Err(OperationError::machine(
            "requests were sent so late that the run says nothing about an SLO: the lag of the generator is \
            more than a tenth of it",
        )
        .hint("generate on a machine with idle processors, at a lower rate, or from several machines")),
    }
}
