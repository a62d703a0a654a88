//! The kernel's type information (BTF) for loading a scheduler, and the only place where programs become
//! operations of the kernel.

use crate::complaint::{refused, unsuitable};
use crate::kernel_types::{KernelStructure, KernelTypes};
use crate::layout::{CPUS_MAX, KERNEL_CONSTANTS, KERNEL_FUNCTIONS, ROOT_CONSTANTS, SLEEPING_OPERATION};
use crate::object::{SchedulerKind, SchedulerObject};
use crate::partition::CpuList;
use crate::probe;
use machine::bpf::{KernelOperation, OperationProgram, OperationsMap};
use model::OperationError;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Flag of operations for a scheduler that has only the threads with the policy SCHED_EXT.
const PARTIAL_SWITCH: &str = "SCX_OPS_SWITCH_PARTIAL";
/// Function by which a scheduler grants CPUs to one below it, since Linux 7.3.
const GRANT: &str = "scx_bpf_sub_grant";
/// A set of CPUs, by the hierarchy's own CPU numbers (cids).
pub(crate) const CPU_SET: &str = "scx_cmask";
const TYPES_FILE: &str = "/sys/kernel/btf/vmlinux";

/// The kernel's names of a structure of operations, and of the map value for it.
#[derive(Debug, Clone, Copy)]
struct OperationsType {
    operations: &'static str,
    value: &'static str,
}

const MACHINE: OperationsType =
    OperationsType { operations: "sched_ext_ops", value: "bpf_struct_ops_sched_ext_ops" };
/// Names for schedulers in a hierarchy, to which the kernel passes its own CPU numbers (cids).
const HIERARCHY: OperationsType =
    OperationsType { operations: "sched_ext_ops_cid", value: "bpf_struct_ops_sched_ext_ops_cid" };

impl OperationsType {
    fn of(kind: SchedulerKind) -> Self {
        if kind == SchedulerKind::Machine { MACHINE } else { HIERARCHY }
    }
}

/// All types of the kernel, and the parsed ones.
pub(crate) struct KernelAccount {
    pub(crate) bytes: Vec<u8>,
    pub(crate) types: KernelTypes,
}

/// Values in the operations of a scheduler, besides its programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperationValues {
    pub(crate) name: &'static str,
    pub(crate) is_partial: bool,
    pub(crate) watchdog: Duration,
    /// Control group whose threads it has.
    pub(crate) group: Option<u64>,
}

/// An attached scheduler. Closing the link detaches it; the other descriptors must stay open as long.
#[derive(Debug)]
pub(crate) struct AttachedOperations {
    _link: OwnedFd,
    _programs: Vec<OperationProgram>,
    _map: OperationsMap,
}

/// Reason why a scheduler could not be attached.
#[derive(Debug)]
pub(crate) enum AttachError {
    /// The kernel refused the operations themselves, with this error.
    Refused(io::Error),
    /// An earlier step failed.
    Other(OperationError),
}

impl From<OperationError> for AttachError {
    fn from(error: OperationError) -> Self {
        Self::Other(error)
    }
}

impl KernelAccount {
    pub(crate) fn read() -> Result<Self, OperationError> {
        let bytes = fs::read(TYPES_FILE).map_err(|error| unsuitable(format!("{TYPES_FILE}: {error}")))?;
        let types = KernelTypes::parse(&bytes, is_wanted).map_err(unsuitable)?;
        Ok(Self { bytes, types })
    }

    pub(crate) fn structure(&self, name: &str) -> Result<&KernelStructure, OperationError> {
        self.types.structure(name).ok_or_else(|| unsuitable(format!("the kernel has no structure {name}")))
    }

    /// Fails for a kernel without support for schedulers of a control group.
    pub(crate) fn check_hierarchy(&self) -> Result<(), OperationError> {
        check_hierarchy(&self.types, &probe::release())
    }

    /// Loads the programs of an object and attaches them.
    pub(crate) fn attach(
        &self,
        object: &SchedulerObject,
        types: BorrowedFd<'_>,
        values: OperationValues,
    ) -> Result<AttachedOperations, AttachError> {
        let names = OperationsType::of(object.kind());
        let operations = self.structure(names.operations)?;
        let whole = self.structure(names.value)?;
        let begin = whole.member("data").ok_or_else(|| unsuitable("the kernel's operations have no data"))?.1;
        let place = |name: &str| {
            let member = operations.member(name).map(|(_, at)| begin + at);
            member.ok_or_else(|| unsuitable(format!("the kernel's operations have no {name}")))
        };
        let mut value = vec![0; usize::try_from(whole.bytes).unwrap_or(0)];
        let mut put = |at: usize, bytes: &[u8]| value[at..at + bytes.len()].copy_from_slice(bytes);
        put(place("name")?, values.name.as_bytes());
        if values.is_partial {
            let flag = self.types.constant(PARTIAL_SWITCH);
            let flag =
                flag.ok_or_else(|| unsuitable(format!("the kernel has no constant {PARTIAL_SWITCH}")))?;
            put(place("flags")?, &flag.to_ne_bytes());
        }
        let watchdog_ms = u32::try_from(values.watchdog.as_millis()).unwrap_or(u32::MAX);
        put(place("timeout_ms")?, &watchdog_ms.to_ne_bytes());
        if let Some(group) = values.group {
            put(place("sub_cgroup_id")?, &group.to_ne_bytes());
        }
        let programs = self.load(object, operations)?;
        let mut places = Vec::new();
        for (name, program) in object.kind().operations().iter().zip(&programs) {
            places.push((place(name)?, program));
        }
        let map = OperationsMap::create(values.name, types, whole.number, whole.bytes);
        let map = map.map_err(|error| refused("the scheduler's operations", &error))?;
        let link = map.attach(value, &places).map_err(AttachError::Refused)?;
        Ok(AttachedOperations { _link: link, _programs: programs, _map: map })
    }

    fn load(
        &self,
        object: &SchedulerObject,
        operations: &KernelStructure,
    ) -> Result<Vec<OperationProgram>, OperationError> {
        let mut programs = Vec::new();
        for name in object.kind().operations() {
            let instructions = object.program(name, &self.types).map_err(unsuitable)?;
            let (member, _) = operations
                .member(name)
                .ok_or_else(|| unsuitable(format!("the kernel has no operation {name}")))?;
            let may_sleep = *name == SLEEPING_OPERATION;
            let operation = KernelOperation { name, structure: operations.number, member, may_sleep };
            let program = OperationProgram::load(operation, &instructions, object.licence())
                .map_err(|error| refused(&format!("the program '{name}'"), &error))?;
            programs.push(program);
        }
        Ok(programs)
    }
}

fn is_wanted(name: &str) -> bool {
    let names = [PARTIAL_SWITCH, GRANT, CPU_SET];
    let names =
        names.into_iter().chain([MACHINE, HIERARCHY].into_iter().flat_map(|it| [it.operations, it.value]));
    KERNEL_FUNCTIONS.contains(&name)
        || KERNEL_CONSTANTS.contains(&name)
        || ROOT_CONSTANTS.contains(&name)
        || names.into_iter().any(|wanted| wanted == name)
}

fn check_hierarchy(types: &KernelTypes, release: &str) -> Result<(), OperationError> {
    if types.structure(HIERARCHY.operations).is_some() && types.function(GRANT).is_some() {
        return Ok(());
    }
    let message = format_args!("the kernel {release} has no schedulers of a control group");
    Err(OperationError::machine(message).hint(format_args!(
        "use Linux 7.3, with which it was tried: in it, a scheduler hands CPUs to that of a group ({GRANT}). Without \
         --cgroup, kernels from 6.13 may do; Debian's 7.1 and 7.2 do not"
    )))
}

/// Number of CPUs that the kernel may have: one above the highest number, and in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PossibleCpus {
    pub(crate) end: u32,
    pub(crate) count: u32,
}

pub(crate) fn possible_cpus() -> Result<PossibleCpus, OperationError> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let unknown = || unsuitable(format!("the kernel does not say which CPUs it has: '{}'", text.trim()));
    let cpus: CpuList = text.trim().parse().map_err(|_| unknown())?;
    match (u32::try_from(cpus.end()), u32::try_from(cpus.count())) {
        (Ok(end), Ok(count)) if end <= CPUS_MAX => Ok(PossibleCpus { end, count }),
        _ => Err(unsuitable(format!("this machine has more than {CPUS_MAX} CPUs"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_types::tests::account;

    /// Returns types of the kernel for a check: structures and functions with these names.
    fn types(structures: &[&str], functions: &[&str]) -> KernelTypes {
        let mut words = Vec::new();
        let mut names = vec![0];
        for (kind, name) in
            structures.iter().map(|name| (4, name)).chain(functions.iter().map(|name| (12, name)))
        {
            words.extend([u32::try_from(names.len()).expect("few names"), kind << 24, 0]);
            names.extend(name.bytes().chain([0]));
        }
        KernelTypes::parse(&account(&words, &names), is_wanted).expect("it is whole")
    }

    #[test]
    fn kernels_without_hierarchies_are_refused() {
        let refused = |types: &KernelTypes| check_hierarchy(types, "7.1.3").expect_err("it has none");
        // Without schedulers below others, and with them but without grants of CPUs.
        for functions in [&["scx_bpf_kick_cpu"][..], &["scx_bpf_sub_dispatch"]] {
            let refused = refused(&types(&["sched_ext_ops"], functions));
            assert!(refused.to_string().contains("the kernel 7.1.3 has no schedulers of a control group"));
            assert!(refused.hint.is_some_and(|hint| hint.contains("Linux 7.3")));
        }
        let without_grants = types(&["sched_ext_ops", "sched_ext_ops_cid"], &["scx_bpf_sub_dispatch"]);
        assert!(refused(&without_grants).to_string().contains("7.1.3"));
        let whole = types(&["sched_ext_ops_cid"], &["scx_bpf_sub_dispatch", "scx_bpf_sub_grant"]);
        assert_eq!(check_hierarchy(&whole, "7.3.4"), Ok(()));
    }
}
