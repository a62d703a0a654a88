//! What loading programs takes, whichever: rights, the kernel's account of its types, and errors that say what is missing.

use super::rights::missing_rights;
use aya::programs::{Program, ProgramError};
use aya::{Btf, BtfError, Ebpf};
use model::OperationError;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Lines of the verifier's log that an error shows.
const VERIFIER_LINES: usize = 4;

/// The kernel's types, for those who have the rights to use them.
///
/// # Errors
/// When capabilities are missing, or the kernel does not describe its types.
pub fn types_of_kernel() -> Result<Btf, OperationError> {
    let missing = missing_rights();
    if !missing.is_empty() {
        return Err(without(&missing));
    }
    Btf::from_sys_fs().map_err(|error| {
        OperationError::machine(format_args!("the kernel does not describe its types: {error}"))
            .hint("observing takes a kernel with CONFIG_DEBUG_INFO_BTF, which has /sys/kernel/btf/vmlinux")
    })
}

/// Loads a program and attaches it to a tracepoint, or to a function where it was compiled for one. False where the kernel
/// has no such place.
///
/// # Errors
/// When the kernel refuses the program.
pub(crate) fn attach_if_there(
    object: &mut Ebpf,
    name: &str,
    place: &str,
    btf: &Btf,
) -> Result<bool, OperationError> {
    match load_and_attach(object, name, place, btf) {
        Ok(()) => Ok(true),
        Err(ProgramError::Btf(BtfError::UnknownBtfTypeName { .. })) => Ok(false),
        Err(error) => {
            Err(refused(&format!("the kernel does not let observe at its {place}"), &error).hint(HINT))
        }
    }
}

/// As [`attach_if_there`], where the kernel has to have the place.
///
/// # Errors
/// When the kernel refuses the program or has no such place.
pub(crate) fn attach(object: &mut Ebpf, name: &str, place: &str, btf: &Btf) -> Result<(), OperationError> {
    if attach_if_there(object, name, place, btf)? { Ok(()) } else { Err(lacks(place)) }
}

/// The error of a kernel without a place where observing has to begin.
pub(crate) fn lacks(place: &str) -> OperationError {
    OperationError::machine(format_args!("the kernel has no {place} to observe at")).hint(HINT)
}

const HINT: &str = "docs/reference/observe.md says which kernels have all that is needed";

fn load_and_attach(object: &mut Ebpf, name: &str, place: &str, btf: &Btf) -> Result<(), ProgramError> {
    match object.program_mut(name).expect("the compiled object has all programs") {
        Program::BtfTracePoint(program) => {
            program.load(place, btf)?;
            program.attach().map(drop)
        }
        Program::FEntry(program) => {
            program.load(place, btf)?;
            program.attach().map(drop)
        }
        Program::FExit(program) => {
            program.load(place, btf)?;
            program.attach().map(drop)
        }
        _ => unreachable!("the compiled object has no other programs"),
    }
}

/// Takes a map out of an object.
///
/// # Errors
/// When the kernel refuses it.
pub(crate) fn take<M, E: std::error::Error>(
    object: &mut Ebpf,
    name: &str,
    make: impl FnOnce(aya::maps::Map) -> Result<M, E>,
) -> Result<M, OperationError> {
    let map = object.take_map(name).expect("the compiled object has all maps");
    make(map).map_err(|error| refused("the kernel refuses a map", &error))
}

/// How often the kernel passed over a run of the programs of an object; 0 before Linux 5.12, which does not tell.
pub(crate) fn skipped_runs(object: &Ebpf) -> u64 {
    let files = object.programs().filter_map(|(_, program)| program.fd().ok());
    files.map(|file| skipped_runs_of(file.as_fd())).sum()
}

/// What the kernel says of an open program, a line for each number.
fn skipped_runs_of(program: BorrowedFd<'_>) -> u64 {
    let said = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd()));
    let said = said.unwrap_or_default();
    let found = said.lines().find_map(|line| line.strip_prefix("recursion_misses:"));
    found.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn without(missing: &[&str]) -> OperationError {
    OperationError::machine(format_args!("observing takes {}, which this process lacks", missing.join(" and ")))
        .hint(
            "run it as root, or give the program just these: setcap cap_bpf,cap_perfmon=ep (without no_new_privs)",
        )
}

/// An error of loading a program or using a map, with all of its causes.
pub fn refused(what: &str, error: &dyn std::error::Error) -> OperationError {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = Vec::new();
    for text in causes.map(ToString::to_string) {
        let text = without_verifier_log(&text);
        if !texts.iter().any(|said| said.contains(&text)) {
            texts.push(text);
        }
    }
    OperationError::machine(format_args!("{what}: {}", texts.join(": ")))
}

/// The kernel's account of a program that it refuses has thousands of lines, the last of which say why.
fn without_verifier_log(text: &str) -> String {
    let Some((before, log)) = text.split_once("Verifier output:") else { return text.to_owned() };
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(VERIFIER_LINES)..];
    format!("{before}the verifier says: {}", last.join("; "))
}
