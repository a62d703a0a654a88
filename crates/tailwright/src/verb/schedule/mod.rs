//! `tailwright schedule`: services of this machine under different schedulings, beside their simulation, and
//! the scheduler in the kernel.

mod bench;
mod demo;
mod kernel;
mod playing;

use crate::exit::VerbAnswer;
use clap::{Args, Subcommand};
use model::OperationError;

/// Serve the oldest requests first across a chain of services, and see what that does
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
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
    /// Whether it runs until it is told to end.
    pub(crate) fn is_service(&self) -> bool {
        matches!(self.what, ScheduleSubcommand::Tier)
    }
}

pub(crate) fn run(args: &ScheduleArgs) -> Result<VerbAnswer, OperationError> {
    match &args.what {
        ScheduleSubcommand::Demo(args) => demo::run(args),
        ScheduleSubcommand::Bench(args) => bench::run(args),
        ScheduleSubcommand::Kernel(args) => kernel::run(args),
        ScheduleSubcommand::Tier => chain::run_tier().map(|()| VerbAnswer::Yes),
    }
}
