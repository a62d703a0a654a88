//! What loading programs takes, whichever: rights, the kernel's account of its types, and errors that say what is missing.

use super::rights::missing_rights;
use aya::programs::{BtfTracePoint, Program, ProgramError};
use aya::{Btf, BtfError, Ebpf};
use model::OperationError;

/// Lines of the verifier's log that an error shows.
const VERIFIER_LINES: usize = 4;

/// The kernel's types, for those who have the rights to use them.
///
/// # Errors
/// When capabilities are missing, or the kernel does not describe its types.
pub(crate) fn types_of_kernel() -> Result<Btf, OperationError> {
    let missing = missing_rights();
    if !missing.is_empty() {
        return Err(without(&missing));
    }
    Btf::from_sys_fs().map_err(|error| {
        OperationError::machine(format_args!("the kernel does not describe its types: {error}"))
            .hint("observing takes a kernel with CONFIG_DEBUG_INFO_BTF, which has /sys/kernel/btf/vmlinux")
    })
}

/// Loads a program and attaches it to a tracepoint, which has to be there only if the program is needed.
///
/// # Errors
/// When the kernel refuses the program or has no such tracepoint.
pub(crate) fn attach(
    object: &mut Ebpf,
    name: &str,
    tracepoint: &str,
    is_needed: bool,
    btf: &Btf,
) -> Result<(), OperationError> {
    match load_and_attach(object, name, tracepoint, btf) {
        Err(ProgramError::Btf(BtfError::UnknownBtfTypeName { .. })) if !is_needed => Ok(()),
        other => other.map_err(|error| not_attached(tracepoint, &error)),
    }
}

fn load_and_attach(object: &mut Ebpf, name: &str, tracepoint: &str, btf: &Btf) -> Result<(), ProgramError> {
    let program: &mut BtfTracePoint = object
        .program_mut(name)
        .and_then(|program| match program {
            Program::BtfTracePoint(program) => Some(program),
            _ => None,
        })
        .expect("the compiled object has all programs");
    program.load(tracepoint, btf)?;
    program.attach().map(drop)
}

fn not_attached(tracepoint: &str, error: &ProgramError) -> OperationError {
    refused(&format!("the kernel does not let observe at its tracepoint {tracepoint}"), error)
        .hint("docs/observe.md says which kernels have all tracepoints")
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

fn without(missing: &[&str]) -> OperationError {
    OperationError::machine(format_args!("observing takes {}, which this process lacks", missing.join(" and ")))
        .hint(
            "run it as root, or give the program just these: setcap cap_bpf,cap_perfmon=ep (without no_new_privs)",
        )
}

/// An error with all of its causes.
pub(crate) fn refused(what: &str, error: &dyn std::error::Error) -> OperationError {
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
