//! `tailwright schedule`: services of this machine in different scheduling modes, beside their
//! simulation, and the scheduler in the kernel.

mod bench;
pub(crate) mod classes;
mod demo;
mod kernel;
pub(crate) mod kernel_text;
mod playing;
pub(crate) mod text;

use clap::{Args, Subcommand};
use cli::exit::VerbAnswer;
use model::OperationError;

const HELP: &str = "\
Examples:
  tailwright schedule demo
  tailwright schedule bench examples/scenarios/schedule-chain.toml \\
      --duration 20s
  tailwright schedule kernel run                      until Ctrl-C, as root

Exit codes: 0 done; 2 bad input; 3 this machine lacks something, or a signal ended it.";

/// Serve the oldest requests first across a chain of services, and see what that does
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ScheduleArgs {
    #[command(subcommand)]
    what: ScheduleSubcommand,
}

#[derive(Debug, Subcommand)]
enum ScheduleSubcommand {
    Demo(demo::ScheduleDemoArgs),
    Bench(bench::ScheduleBenchArgs),
    Kernel(kernel::KernelArgs),
    /// A service of a bench, which starts it
    #[command(hide = true)]
    Tier,
}

impl ScheduleArgs {
    /// Returns true if it runs until told to end.
    pub fn is_service(&self) -> bool {
        matches!(self.what, ScheduleSubcommand::Tier)
    }
}

pub fn run(args: &ScheduleArgs) -> Result<VerbAnswer, OperationError> {
    match &args.what {
        ScheduleSubcommand::Demo(args) => demo::run(args),
        ScheduleSubcommand::Bench(args) => bench::run(args),
        ScheduleSubcommand::Kernel(args) => kernel::run(args),
        ScheduleSubcommand::Tier => chain::run_tier().map(|()| VerbAnswer::Yes),
    }
}
