//! Maps and programs of BPF by system calls, as far as no library used here has them: maps that both sides have in memory,
//! storage of threads, and programs that stand for operations of the kernel (struct_ops).
//!
//! Nothing here knows what a program does. All unsafe code is the one system call and the mapping of memory.

mod call;
mod map;
mod mapped;
mod program;

pub use map::{BpfMap, MapDefinition, MapTypes, OperationsMap, load_types};
pub use mapped::MappedWords;
pub use program::{KernelOperation, LoadProgramError, OperationProgram};
