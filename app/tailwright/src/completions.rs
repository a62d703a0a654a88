//! `tailwright completions`: what a shell completes.

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use cli::exit::VerbAnswer;
use cli::terminal;

const HELP: &str = "\
Examples, to install them for one user:
  mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc \\
      ~/.config/fish/completions
  tailwright completions bash \\
      > ~/.local/share/bash-completion/completions/tailwright
  tailwright completions zsh > ~/.zfunc/_tailwright   with ~/.zfunc in fpath
  tailwright completions fish > ~/.config/fish/completions/tailwright.fish

Exit codes: 0 done; 2 bad input.";

/// The shells that there are completions for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompletedShell {
    Bash,
    Zsh,
    Fish,
}

/// Print what a shell completes: verbs, options and their values.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CompletionsArgs {
    /// The shell that is to complete.
    #[arg(value_name = "SHELL", value_enum)]
    shell: CompletedShell,
}

pub(crate) fn run(args: &CompletionsArgs, mut program: Command) -> VerbAnswer {
    let shell = match args.shell {
        CompletedShell::Bash => Shell::Bash,
        CompletedShell::Zsh => Shell::Zsh,
        CompletedShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "tailwright", &mut script);
    terminal::print(&String::from_utf8_lossy(&script));
    VerbAnswer::Yes
}
