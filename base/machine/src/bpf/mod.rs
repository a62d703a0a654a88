//! System calls for BPF that no library used here offers: maps shared in memory with user space,
//! per-thread storage, and programs for operations of the kernel (struct_ops).
//!
//! Nothing here depends on the meaning of a program. The only unsafe code is the one system call and the
//! mapping of memory.

mod call;
mod map;
mod mapped;
mod program;

pub use map::{BpfMap, MapDefinition, MapTypes, OperationsMap, load_types};
pub use mapped::MappedWords;
pub use program::{KernelOperation, LoadProgramError, OperationProgram};
