//! The compiled object, adapted to this kernel: constants, field offsets, maps, and kernel functions.

use crate::kernel_types::KernelTypes;
use crate::layout::{
    CPUS_MAX, GROUP_OPERATIONS, KERNEL_CONSTANTS, KERNEL_FUNCTION_BASE, KERNEL_FUNCTIONS, OPERATIONS,
    ROOT_CONSTANTS, ROOT_OPERATIONS, SLOTS,
};
use aya_obj::btf::Btf;
use aya_obj::generated::bpf_insn;
use aya_obj::{Map, Object};
use machine::bpf::{BpfMap, MapDefinition, MapTypes, MappedWords, load_types};

use std::collections::{HashMap, HashSet};
use std::fmt;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Scheduler that an object contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchedulerKind {
    /// Oldest first, for the threads of the machine or those with a policy.
    Machine,
    /// Oldest first, for the threads of a control group below another scheduler.
    Group,
    /// Fair shares, above the scheduler of a group.
    Root,
}

impl SchedulerKind {
    fn object(self) -> &'static [u8] {
        match self {
            Self::Machine => include_bytes!("../bpf/oldest_first.bpf.o"),
            Self::Group => include_bytes!("../bpf/oldest_first_group.bpf.o"),
            Self::Root => include_bytes!("../bpf/fair_root.bpf.o"),
        }
    }

    /// Returns the names of its operations, which are also those of its programs.
    pub(crate) fn operations(self) -> &'static [&'static str] {
        match self {
            Self::Machine => OPERATIONS,
            Self::Group => GROUP_OPERATIONS,
            Self::Root => ROOT_OPERATIONS,
        }
    }
}

/// Section in which the compiler puts constants.
const CONSTANTS: &str = ".rodata";
/// Flag BPF_F_RDONLY_PROG: programs only read the map.
const READ_BY_PROGRAMS: u32 = 1 << 7;
/// Opcode of a call, and the source register value that marks a kernel function (BPF_PSEUDO_KFUNC_CALL).
const CALL: u8 = 0x85;
const KERNEL_CALL: u8 = 2;
/// Map types of `linux/bpf.h`.
const ARRAY: u32 = 2;
const TASK_STORAGE: u32 = 29;
const ARENA: u32 = 33;
/// Flag BPF_F_MMAPABLE, and enough pages for the kernel's own data in an arena on 1,024 CPUs.
const MAPPABLE: u32 = 1 << 10;
const ARENA_PAGES: u32 = 1024;

/// Types of the values of threads: an integer of 4 bytes (1), one of 8 (2), four of these as the state of
/// a thread (3).
const STORAGE_TYPES: [u32; 14] = [
    1,
    1 << 24,
    4,
    32, // INT, 32 bits
    1,
    1 << 24,
    8,
    64, // INT, 64 bits
    0,
    3 << 24,
    0,
    2,
    1,
    4, // ARRAY of four
];

/// Constants that the loader sets before the programs are loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ObjectConstants {
    OldestFirst {
        cpus_count: u32,
        is_shared: bool,
        log_entries: u32,
    },
    /// With the offset in the arena of the set of all CPUs.
    Root {
        cpus_count: u32,
        all_cids: u64,
    },
}

impl ObjectConstants {
    fn values(self) -> Vec<(&'static str, Vec<u8>)> {
        let word = |name, value: u32| (name, value.to_ne_bytes().to_vec());
        match self {
            Self::OldestFirst { cpus_count, is_shared, log_entries } => vec![
                word("cpus_count", cpus_count),
                word("is_shared", u32::from(is_shared)),
                word("log_entries", log_entries),
            ],
            Self::Root { cpus_count, all_cids } => {
                vec![word("cpus_count", cpus_count), ("all_cids", all_cids.to_ne_bytes().to_vec())]
            }
        }
    }
}

/// The scheduler's maps in the kernel.
#[derive(Debug)]
pub(crate) struct SchedulerMaps {
    pub(crate) slots: BpfMap,
    pub(crate) threads: BpfMap,
    pub(crate) control: BpfMap,
    pub(crate) cpus: BpfMap,
    pub(crate) events: BpfMap,
    /// Used only by programs; kept open for them.
    tasks: BpfMap,
    constants: BpfMap,
    arena: Option<Arena>,
    pub(crate) types: OwnedFd,
}

/// Maps of the scheduler above a group's for itself alone; slots and threads are the group's.
#[derive(Debug)]
pub(crate) struct RootMaps {
    pub(crate) control: BpfMap,
    pub(crate) cpus: BpfMap,
    tasks: BpfMap,
    constants: BpfMap,
}

/// Memory shared by a scheduler of a hierarchy and this process. The kernel accepts it only once it is
/// mapped.
#[derive(Debug)]
pub(crate) struct Arena {
    map: BpfMap,
    pub(crate) memory: MappedWords,
}

impl Arena {
    pub(crate) fn create() -> std::io::Result<Self> {
        let map = BpfMap::create(&MapDefinition {
            name: "arena",
            kind: ARENA,
            key_bytes: 0,
            value_bytes: 0,
            entries: ARENA_PAGES,
            flags: MAPPABLE,
            types: None,
        })?;
        let memory = map.map_memory()?;
        Ok(Self { map, memory })
    }
}

/// The object, complete for this kernel.
#[derive(Debug)]
pub(crate) struct SchedulerObject {
    kind: SchedulerKind,
    object: Object,
}

impl SchedulerObject {
    /// Parses the object and resolves fields and constants against the kernel's types, given as bytes and
    /// as parsed.
    pub(crate) fn relocated(
        kind: SchedulerKind,
        types: &[u8],
        known: &KernelTypes,
        constants: ObjectConstants,
    ) -> Result<Self, String> {
        let mut object = Object::parse(kind.object()).map_err(text)?;
        let mut words = constants.values();
        words.extend(constants_of_kernel(&KERNEL_CONSTANTS, known)?);
        if kind == SchedulerKind::Root {
            words.extend(constants_of_kernel(&ROOT_CONSTANTS, known)?);
        }
        let values: HashMap<&str, (&[u8], bool)> =
            words.iter().map(|(name, value)| (*name, (value.as_slice(), true))).collect();
        object.patch_map_data(values).map_err(text)?;
        let types = Btf::parse(types, object.endianness).map_err(text)?;
        object.relocate_btf(&types).map_err(text)?;
        Ok(Self { kind, object })
    }

    pub(crate) fn kind(&self) -> SchedulerKind {
        self.kind
    }

    /// Creates the maps in the kernel and inserts them into the programs.
    pub(crate) fn create_maps(&mut self, log_entries: u32) -> std::io::Result<SchedulerMaps> {
        let types = load_types(&storage_types())?;
        let number = |value| Some(MapTypes { types: types.as_fd(), key: 1, value });
        let threads = create_typed("threads", self.map("threads"), number(1))?;
        let tasks = create_typed("tasks", self.map("tasks"), number(3))?;
        let maps = SchedulerMaps {
            slots: create("slots", SLOTS, self.map("slots"))?,
            control: create("control", 1, self.map("control"))?,
            cpus: create("cpus", CPUS_MAX, self.map("cpus"))?,
            events: create("events", log_entries.max(1), self.map("events"))?,
            threads,
            tasks,
            constants: self.create_constants()?,
            arena: (self.kind == SchedulerKind::Group).then(Arena::create).transpose()?,
            types,
        };
        let mut made = vec![
            ("slots", &maps.slots),
            ("threads", &maps.threads),
            ("control", &maps.control),
            ("cpus", &maps.cpus),
            ("events", &maps.events),
            ("tasks", &maps.tasks),
            (CONSTANTS, &maps.constants),
        ];
        made.extend(maps.arena.as_ref().map(|arena| ("arena", &arena.map)));
        self.relocate_maps(&made).map_err(std::io::Error::other)?;
        Ok(maps)
    }

    /// Does the same for the scheduler above a group's.
    pub(crate) fn create_root_maps(
        &mut self,
        of_group: &SchedulerMaps,
        arena: &Arena,
    ) -> std::io::Result<RootMaps> {
        let types = Some(MapTypes { types: of_group.types.as_fd(), key: 1, value: 3 });
        let maps = RootMaps {
            control: create("control", 1, self.map("control"))?,
            cpus: create("cpus", CPUS_MAX, self.map("cpus"))?,
            tasks: create_typed("tasks", self.map("tasks"), types)?,
            constants: self.create_constants()?,
        };
        let made = [
            ("slots", &of_group.slots),
            ("threads", &of_group.threads),
            ("control", &maps.control),
            ("cpus", &maps.cpus),
            ("tasks", &maps.tasks),
            (CONSTANTS, &maps.constants),
            ("arena", &arena.map),
        ];
        self.relocate_maps(&made).map_err(std::io::Error::other)?;
        Ok(maps)
    }

    fn map(&self, name: &str) -> &Map {
        &self.object.maps[name]
    }

    fn create_constants(&self) -> std::io::Result<BpfMap> {
        let data = self.map(CONSTANTS).data();
        let definition = MapDefinition {
            name: "constants",
            kind: ARRAY,
            key_bytes: 4,
            value_bytes: u32::try_from(data.len()).unwrap_or(0),
            entries: 1,
            flags: READ_BY_PROGRAMS,
            types: None,
        };
        let map = BpfMap::create(&definition)?;
        map.update(&[0; 4], data)?;
        map.freeze()?;
        Ok(map)
    }

    fn relocate_maps(&mut self, made: &[(&str, &BpfMap)]) -> Result<(), String> {
        let defined: Vec<(&str, i32, Map)> =
            made.iter().map(|(name, map)| (*name, map.as_fd().as_raw_fd(), self.map(name).clone())).collect();
        let places = defined.iter().map(|(name, fd, map)| (*name, *fd, map));
        self.object.relocate_maps(places, &HashSet::new()).map_err(text)
    }

    /// Returns the program of an operation, as bytes, with its calls to kernel functions resolved.
    pub(crate) fn program(&self, operation: &str, known: &KernelTypes) -> Result<Vec<u8>, String> {
        let function = self.object.functions.values().find(|function| function.name == operation);
        let function = function.ok_or_else(|| format!("the object has no program '{operation}'"))?;
        let mut bytes = Vec::with_capacity(function.instructions.len() * 8);
        for instruction in &function.instructions {
            let instruction = with_kernel_function(*instruction, known)?;
            bytes.push(instruction.code);
            bytes.push(instruction.dst_reg() | instruction.src_reg() << 4);
            bytes.extend(instruction.off.to_ne_bytes());
            bytes.extend(instruction.imm.to_ne_bytes());
        }
        Ok(bytes)
    }

    /// Returns the licence that the programs declare to the kernel.
    pub(crate) fn licence(&self) -> &std::ffi::CStr {
        &self.object.license
    }
}

fn with_kernel_function(mut instruction: bpf_insn, known: &KernelTypes) -> Result<bpf_insn, String> {
    if instruction.code != CALL || instruction.imm < KERNEL_FUNCTION_BASE {
        return Ok(instruction);
    }
    let number = usize::try_from(instruction.imm - KERNEL_FUNCTION_BASE).unwrap_or(usize::MAX);
    let name = KERNEL_FUNCTIONS.get(number).ok_or_else(|| format!("the object calls function {number}"))?;
    let function = known.function(name).ok_or_else(|| format!("the kernel has no function {name}"))?;
    instruction.imm = i32::try_from(function).map_err(text)?;
    instruction.set_src_reg(KERNEL_CALL);
    Ok(instruction)
}

fn constants_of_kernel(
    names: &[&'static str],
    known: &KernelTypes,
) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let value = |name: &&'static str| {
        let value = known.constant(name).ok_or_else(|| format!("the kernel has no constant {name}"))?;
        Ok((*name, value.to_ne_bytes().to_vec()))
    };
    names.iter().map(value).collect()
}

fn create(name: &str, entries: u32, map: &Map) -> std::io::Result<BpfMap> {
    BpfMap::create(&MapDefinition {
        name,
        kind: map.map_type(),
        key_bytes: map.key_size(),
        value_bytes: map.value_size(),
        entries,
        flags: map.map_flags(),
        types: None,
    })
}

fn create_typed(name: &str, map: &Map, types: Option<MapTypes<'_>>) -> std::io::Result<BpfMap> {
    BpfMap::create(&MapDefinition {
        name,
        kind: TASK_STORAGE,
        key_bytes: map.key_size(),
        value_bytes: map.value_size(),
        entries: 0,
        flags: map.map_flags(),
        types,
    })
}

/// Returns the types of storage in BTF: a header, the types and their names.
fn storage_types() -> Vec<u8> {
    const NAMES: &[u8] = b"\0number\0";
    let types = u32::try_from(STORAGE_TYPES.len() * 4).unwrap_or(0);
    let names = u32::try_from(NAMES.len()).unwrap_or(0);
    let magic = u32::from(0xeb9f_u16) | 1 << 16;
    let header = [magic, 24, 0, types, types, names];
    let words = header.iter().chain(&STORAGE_TYPES).flat_map(|word| word.to_ne_bytes());
    words.chain(NAMES.iter().copied()).collect()
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::CONTROL_WORDS;
    use crate::replay::EVENT_WORDS;

    #[test]
    fn values_of_maps_have_the_sizes_of_the_object() {
        for kind in [SchedulerKind::Machine, SchedulerKind::Group, SchedulerKind::Root] {
            let object = Object::parse(kind.object()).expect("the object is whole");
            let sizes = [
                ("slots", sched_hint::SLOT_BYTES),
                ("control", CONTROL_WORDS * 8),
                ("cpus", 128),
                ("events", EVENT_WORDS * 8),
                ("threads", 4),
                ("tasks", 32),
            ];
            for (name, bytes) in sizes {
                let Some(map) = object.maps.get(name) else {
                    assert_eq!((kind, name), (SchedulerKind::Root, "events"));
                    continue;
                };
                assert_eq!(usize::try_from(map.value_size()), Ok(bytes), "{name}");
            }
            assert_eq!(
                (object.maps["cpus"].max_entries(), object.maps["slots"].max_entries()),
                (CPUS_MAX, SLOTS)
            );
            let mut functions: Vec<&str> =
                object.functions.values().map(|function| function.name.as_str()).collect();
            let mut operations = kind.operations().to_vec();
            functions.sort_unstable();
            operations.sort_unstable();
            assert_eq!(functions, operations, "{kind:?}");
        }
    }
}
