//! Programs that implement operations of the kernel.
#![allow(unsafe_code, reason = "the layout of attributes is promised to the system call")]

use super::call::{BpfAttributes, BpfCommand, address, call_for_fd, length, short_name};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ffi::CStr;
use std::fmt;
use std::io;

/// A loaded program that implements one operation.
#[derive(Debug)]
pub struct OperationProgram(OwnedFd);

/// Refusal of a program by the kernel.
#[derive(Debug)]
pub struct LoadProgramError {
    /// Error of the system call.
    pub error: io::Error,
    /// Log of the verifier; its last lines have the reason. Empty if there is none.
    pub log: String,
}

impl fmt::Display for LoadProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.log.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        if last.is_empty() {
            write!(f, "{}", self.error)
        } else {
            write!(f, "{}: {}", self.error, last.join("; "))
        }
    }
}

impl std::error::Error for LoadProgramError {}

/// Maximum number of lines of the verifier's log in an error.
const LOG_LINES: usize = 4;
/// Size of the buffer for the verifier's log.
const LOG_BYTES: usize = 1 << 20;
/// The program type BPF_PROG_TYPE_STRUCT_OPS.
const STRUCT_OPS: u32 = 27;
/// The program flag BPF_F_SLEEPABLE.
const SLEEPABLE: u32 = 1 << 4;
/// Bytes of an instruction.
const INSTRUCTION_BYTES: usize = 8;

#[repr(C)]
#[derive(Default)]
struct LoadAttributes {
    kind: u32,
    instructions_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
    types: u32,
    function_record_bytes: u32,
    functions: u64,
    functions_count: u32,
    line_record_bytes: u32,
    lines: u64,
    lines_count: u32,
    attach_type: u32,
    attach_program: u32,
    relocations_count: u32,
}

// SAFETY: the layout of linux/bpf.h; addresses are those of slices that outlive the call, with their
// lengths.
unsafe impl BpfAttributes for LoadAttributes {}

/// Operation of the kernel that a program implements.
#[derive(Debug, Clone, Copy)]
pub struct KernelOperation<'a> {
    /// The operation's name, at most 15 bytes of which the kernel keeps.
    pub name: &'a str,
    /// The number of the structure's type among the kernel's.
    pub structure: u32,
    /// The number of the operation among the structure's members.
    pub member: u32,
    /// True if the program may sleep, if the kernel lets this operation do so.
    pub may_sleep: bool,
}

impl OperationProgram {
    /// Loads a program, instructions of 8 bytes.
    ///
    /// # Errors
    /// When the kernel refuses it, or the right is missing.
    pub fn load(
        operation: KernelOperation<'_>,
        instructions: &[u8],
        licence: &CStr,
    ) -> Result<Self, LoadProgramError> {
        // The kernel loads faster without a log, so it is requested only after a failure.
        let first = load(operation, instructions, licence, &mut []);
        let Err(error) = first else {
            return first.map(Self).map_err(|error| LoadProgramError { error, log: String::new() });
        };
        let mut log = vec![0; LOG_BYTES];
        match load(operation, instructions, licence, &mut log) {
            Ok(program) => Ok(Self(program)),
            Err(_) => {
                let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
                Err(LoadProgramError { error, log: String::from_utf8_lossy(&log[..end]).into_owned() })
            }
        }
    }
}

impl AsFd for OperationProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn load(
    operation: KernelOperation<'_>,
    instructions: &[u8],
    licence: &CStr,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    if !instructions.len().is_multiple_of(INSTRUCTION_BYTES) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut attributes = LoadAttributes {
        kind: STRUCT_OPS,
        instructions_count: length(instructions)? / 8,
        instructions: address(instructions),
        licence: address(licence.to_bytes_with_nul()),
        log_level: u32::from(!log.is_empty()),
        log_bytes: length(log)?,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr().expose_provenance() as u64 },
        flags: if operation.may_sleep { SLEEPABLE } else { 0 },
        name: short_name(operation.name),
        expected_attach_type: operation.member,
        attach_type: operation.structure,
        ..LoadAttributes::default()
    };
    call_for_fd(BpfCommand::ProgramLoad, &mut attributes)
}
