//! Programs of the system (`tc`, `ip`, `nft`) as values. Commands are decided separately from running
//! them, printed as they are run, and replaced by fakes in tests.
//!
//! The programs are used instead of netlink because their language is the stable and documented
//! interface, and an administrator can repeat the commands by hand.

use machine::programs;
use model::OperationError;
use rustix::fs::MemfdFlags;
use std::fmt;
use std::fs::File;
use std::io::{Seek, Write};
use std::process::{Command, Stdio};

/// An invocation of a program of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemCommand {
    /// Name of the program, searched for in PATH.
    pub program: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The standard input, if the program reads it.
    pub input: Option<String>,
}

impl SystemCommand {
    /// A program with arguments that are separated by spaces.
    ///
    /// # Panics
    /// When the line is empty.
    pub fn new(line: &str) -> Self {
        let mut words = line.split_whitespace().map(str::to_owned);
        let program = words.next().expect("a command names a program");
        Self { program, args: words.collect(), input: None }
    }

    /// Returns the command with this text as its standard input.
    #[must_use]
    pub fn reading(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into());
        self
    }
}

impl fmt::Display for SystemCommand {
    /// Writes the command in shell syntax, with standard input as a here-document.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program)?;
        for arg in &self.args {
            write!(f, " {arg}")?;
        }
        match &self.input {
            Some(input) => write!(f, " <<'END'\n{}\nEND", input.trim_end()),
            None => Ok(()),
        }
    }
}

/// Runner of commands: the programs of this machine, or a fake.
pub trait CommandRunner {
    /// Runs a command and returns its output.
    ///
    /// # Errors
    /// If the program is missing, or fails; the error contains its message.
    fn run(&mut self, command: &SystemCommand) -> Result<String, OperationError>;

    /// Runs the program named by the first word of `line`, with the other words as arguments and `input`
    /// as standard input.
    ///
    /// # Errors
    /// As [`Self::run`].
    fn run_line(&mut self, line: &str, input: Option<&str>) -> Result<String, OperationError> {
        let command = SystemCommand::new(line);
        self.run(&SystemCommand { input: input.map(str::to_owned), ..command })
    }
}

/// The runner for a host that cannot be reached from here: every command fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnreachableHost;

impl CommandRunner for UnreachableHost {
    fn run(&mut self, _: &SystemCommand) -> Result<String, OperationError> {
        Err(OperationError::machine("it is not on this machine").hint("run there, with --host and its name"))
    }
}

/// The programs of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Programs;

impl CommandRunner for Programs {
    fn run(&mut self, command: &SystemCommand) -> Result<String, OperationError> {
        let output = run_to_end(command).map_err(|error| {
            OperationError::machine(format_args!("{} cannot be run: {error}", command.program)).hint(
                format_args!("install {}", programs::package(&command.program).unwrap_or(&command.program)),
            )
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let shown = SystemCommand { input: None, ..command.clone() };
        Err(OperationError::machine(format_args!("`{shown}` failed: {}", message.trim().replace('\n', "; ")))
            .hint(hint_for(&message)))
    }
}

/// Runs a program with its whole input in a file in memory, so that it gets all of it even if this
/// process is killed: half a line could be a valid, wrong command. The program also holds inherited locks
/// until it ends.
fn run_to_end(command: &SystemCommand) -> std::io::Result<std::process::Output> {
    let stdin = match &command.input {
        Some(input) => Stdio::from(in_memory(input)?),
        None => Stdio::null(),
    };
    Command::new(&command.program)
        .args(&command.args)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?
        .wait_with_output()
}

fn in_memory(text: &str) -> std::io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// Returns the remedy for a program that failed with this message.
fn hint_for(message: &str) -> &'static str {
    if message.contains("nft") && message.contains("No such file") {
        "install nftables, or give the host filters = \"tc\""
    } else if message.contains("network namespace") {
        "`ip netns list` shows those of this machine; netns in the hosts file names one"
    } else if message.contains("not permitted") {
        "run as root; --dry-run shows what would be run"
    } else {
        "`tailwright apply --probe` shows what this kernel can do"
    }
}

/// Returns true if this process may configure networks (CAP_NET_ADMIN, and CAP_SYS_ADMIN to enter
/// namespaces).
pub fn may_configure_networks() -> bool {
    // Capability numbers of linux/capability.h.
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    effective & (NET_ADMIN | SYS_ADMIN) == NET_ADMIN | SYS_ADMIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_as_a_shell_takes_it() {
        let plain = SystemCommand::new("ip -n a link show dev eth0");
        assert_eq!(plain.to_string(), "ip -n a link show dev eth0");
        let fed = SystemCommand::new("tc -batch -").reading("one\ntwo\n");
        assert_eq!(fed.to_string(), "tc -batch - <<'END'\none\ntwo\nEND");
    }

    #[test]
    fn programs_report_output_failure_and_absence() {
        let mut programs = Programs;
        assert_eq!(programs.run(&SystemCommand::new("cat -").reading("x")), Ok("x".into()));
        let failed =
            programs.run(&SystemCommand::new("cat /nonexistent/file")).expect_err("there is no such file");
        assert!(failed.message.contains("/nonexistent/file"), "{failed}");
        let absent = programs.run(&SystemCommand::new("no-such-program-here")).expect_err("there is none");
        assert!(absent.message.contains("cannot be run"), "{absent}");
    }

    #[test]
    fn input_larger_than_a_pipe_arrives_whole() {
        let long = "a line of text\n".repeat(100_000);
        assert_eq!(Programs.run(&SystemCommand::new("cat -").reading(long.clone())), Ok(long));
    }
}
