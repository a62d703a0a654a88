//! `tailwright trace`: look at, convert, cut, merge and generate request traces.

mod arguments;
mod assumptions;
pub(crate) mod assumptions_text;
mod callgraph;
pub(crate) mod callgraph_text;
pub(crate) mod curves;
mod generate;
mod info;
pub(crate) mod info_text;
pub(crate) mod page;
mod rewrite;
mod split;

use cli::exit::VerbAnswer;
use model::OperationError;

#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Formats, detected from content: parquet (native), csv (with header), arrival-hex \
    (arrival_ns,0xsize,DiskRead|DiskWrite|Get|Put), msr (MSR Cambridge), spc (UMass), fio (iolog v2, v3), blkparse \
    (text), vscsi (CloudPhysics), recording (folder of proxy --record), tcpdump (text of -tt -n). gzip and zstd are transparent; - is the standard input or output. \
    FILE#mail is the trace of the workload mail in a recording or observations, FILE#client=10.0.0.7 of a client.\n\n\
    Examples:\n  \
    tailwright trace info tailwright-demo/traces/database-1.csv.gz \\\n      --report page.html\n  \
    tailwright trace convert web.csv.gz -o web.parquet\n  \
    tailwright trace split recording -o traces > cluster.toml\n  \
    tailwright trace generate poisson --rate 500/s --duration 60s -o t.parquet\n\n\
    Exit codes: 0 done; 1 assumptions found something; 2 bad input; 3 the output cannot be written."
)]
pub struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TraceCommand {
    /// Rates, sizes and burstiness, as a table, JSON or a page with plots
    Info(info::InfoArgs),
    /// Burst curves: for every rate the least burst that never delays the trace
    Curves(curves::CurvesArgs),
    /// Write a trace in another format, and optionally at another speed
    Convert(rewrite::ConvertArgs),
    /// Cut a window of time out of a trace
    Slice(rewrite::SliceArgs),
    /// Write a trace of each workload, or client, of a recording, and the beginning of a cluster file
    Split(split::SplitArgs),
    /// Merge traces into one in order of arrival
    Merge(rewrite::MergeArgs),
    /// Generate a synthetic trace
    Generate(generate::GenerateArgs),
    /// Test if workloads are independent and stationary, as models assume
    Assumptions(Box<assumptions::AssumptionsArgs>),
    /// Services, operations and self times in distributed traces
    Callgraph(callgraph::CallGraphArgs),
}

pub fn run(args: &TraceArgs) -> Result<VerbAnswer, OperationError> {
    let done = match &args.command {
        TraceCommand::Info(args) => info::run(args),
        TraceCommand::Curves(args) => curves::run(args),
        TraceCommand::Convert(args) => rewrite::convert(args),
        TraceCommand::Slice(args) => rewrite::slice(args),
        TraceCommand::Split(args) => split::run(args),
        TraceCommand::Merge(args) => rewrite::merge(args),
        TraceCommand::Generate(args) => generate::run(args),
        TraceCommand::Assumptions(args) => return assumptions::run(args),
        TraceCommand::Callgraph(args) => return callgraph::run(args),
    };
    match done {
        Ok(()) => Ok(VerbAnswer::Yes),
        // A reader that went away (`| head`) ends the program quietly.
        Err(error) if error.is_closed_output() => std::process::exit(0),
        Err(error) => Err(error.into()),
    }
}
