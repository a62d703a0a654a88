//! Putting the scheduler into the kernel and taking it out.

use crate::kernel_types::{KernelStructure, KernelTypes};
use crate::layout::{CPUS_MAX, KERNEL_CONSTANTS, KERNEL_FUNCTIONS, OPERATIONS};
use crate::object::{ObjectConstants, SchedulerMaps, SchedulerObject};
use crate::pinned::{check_way, pin, unpin};
use crate::probe;
use crate::replay::{EVENT_WORDS, LoggedEvent};
use crate::settings::{OldestFirstSettings, QueueLayout};
use crate::shared::SchedulerControl;
use machine::bpf::{KernelOperation, MappedWords, OperationProgram, OperationsMap};
use model::OperationError;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long the kernel may take to give threads back, before it is said that it did not.
const DETACH_LIMIT: Duration = Duration::from_secs(10);

/// How often it is looked whether the scheduler shall end or has ended.
const LOOK: Duration = Duration::from_millis(100);

/// The kernel's name of the structure of operations, and of what a map of it has.
const OPERATIONS_TYPE: &str = "sched_ext_ops";
const OPERATIONS_VALUE_TYPE: &str = "bpf_struct_ops_sched_ext_ops";
/// What the scheduler is called in the kernel.
const NAME: &str = "tailwright";
/// The flag of operations for a scheduler that has the threads of the policy SCHED_EXT only.
const PARTIAL_SWITCH: &str = "SCX_OPS_SWITCH_PARTIAL";
const TYPES_FILE: &str = "/sys/kernel/btf/vmlinux";

/// Which threads the scheduler has, of those that are not real-time or deadline threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduledThreads {
    /// All of the machine.
    All,
    /// Those of the policy SCHED_EXT, such as those of a [`crate::CpuPartition`].
    Extensible,
}

/// How the scheduler is put into the kernel.
#[derive(Debug, Clone)]
pub struct AttachRequest {
    /// What may change later.
    pub settings: OldestFirstSettings,
    /// One queue or several.
    pub layout: QueueLayout,
    /// Which threads it schedules.
    pub threads: ScheduledThreads,
    /// Where programs find it, in a file system of BPF.
    pub folder: PathBuf,
    /// A group whose members may tag threads; otherwise only root.
    pub group: Option<u32>,
    /// The kernel ends the scheduler when a thread that wants to run did not for so long.
    pub watchdog: Duration,
    /// How many events are logged, for [`crate::replay`]; usually 0.
    pub log_entries: u32,
}

/// How the scheduler ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerEnd {
    /// The kernel's number for the kind of reason; 1024 and above are errors.
    pub kind: u32,
    /// What the kernel says about it, possibly empty.
    pub text: String,
}

impl SchedulerEnd {
    /// Whether the kernel ended it because of an error, such as a thread that waited too long.
    pub fn is_error(&self) -> bool {
        self.kind >= 1024
    }

    /// Complains about an end that is an error.
    ///
    /// # Errors
    /// Says what the kernel says about it.
    pub fn check(&self) -> Result<(), OperationError> {
        if !self.is_error() {
            return Ok(());
        }
        let message = format_args!("the kernel has ended the scheduler: {}", self.text);
        Err(OperationError::machine(message).hint("all threads are scheduled by the kernel's own again"))
    }
}

/// The scheduler in the kernel. It is taken out when this is dropped, and by the kernel when the process ends.
#[derive(Debug)]
pub struct KernelScheduler {
    control: SchedulerControl,
    events: MappedWords,
    log_entries: u32,
    folder: PathBuf,
    link: Option<OwnedFd>,
    maps: SchedulerMaps,
    /// Open as long as the link.
    _held: (Vec<OperationProgram>, OperationsMap),
}

impl KernelScheduler {
    /// Puts the scheduler into the kernel.
    ///
    /// # Errors
    /// When a setting is not possible, the kernel has no sched_ext, rights are missing, or another scheduler runs.
    pub fn attach(request: &AttachRequest) -> Result<Self, OperationError> {
        request.settings.check_under(request.watchdog)?;
        probe::check()?;
        let kernel = KernelAccount::read()?;
        let constants = ObjectConstants {
            cpus_count: possible_cpus()?,
            is_shared: request.layout == QueueLayout::Shared,
            log_entries: request.log_entries,
        };
        let mut object =
            SchedulerObject::relocated(&kernel.bytes, &kernel.types, constants).map_err(unsuitable)?;
        let maps = object
            .create_maps(request.log_entries)
            .map_err(|error| refused("the scheduler's maps", &error))?;
        let programs = load_programs(&object, &kernel)?;
        let refused_memory = |error: io::Error| refused("memory of the scheduler's maps", &error);
        let control = SchedulerControl::of(&maps.control, &maps.cpus, &maps.slots).map_err(refused_memory)?;
        let events = maps.events.map_memory().map_err(refused_memory)?;
        control.put_watchdog(request.watchdog);
        control.set(&request.settings)?;
        control.mark_scheduling(true);
        check_way(&request.folder, request.group)?;
        // The kernel lets one of several in, and only that one has files.
        let (operations, link) = kernel.attach(&programs, maps.types.as_fd(), request)?;
        let scheduler = Self {
            control,
            events,
            log_entries: request.log_entries,
            folder: request.folder.clone(),
            link: Some(link),
            maps,
            _held: (programs, operations),
        };
        // What fails here takes the scheduler out again.
        pin(&scheduler.maps, &request.folder, request.group)?;
        Ok(scheduler)
    }

    /// Files go first, so that they are not those of the next scheduler.
    fn take_out(&mut self) {
        unpin(&self.maps, &self.folder);
        self.link = None;
    }

    /// Waits until it shall stop or the kernel ends the scheduler. Meanwhile `look` is called ten times a second.
    pub fn wait(&self, stop: &AtomicBool, mut look: impl FnMut()) {
        while !stop.load(Relaxed) && self.end().is_none() {
            look();
            std::thread::sleep(LOOK);
        }
    }

    /// Settings and statistics of the scheduler.
    pub fn control(&self) -> &SchedulerControl {
        &self.control
    }

    /// How the scheduler ended; `None` while it schedules.
    pub fn end(&self) -> Option<SchedulerEnd> {
        self.control.exit().map(|(kind, text)| SchedulerEnd { kind, text })
    }

    /// The events that were logged so far, at most as many as there was room for.
    pub fn events(&self) -> Vec<LoggedEvent> {
        let logged = self.control.log_length().min(u64::from(self.log_entries));
        let logged = usize::try_from(logged).unwrap_or(0);
        let words = self.events.chunks_exact(EVENT_WORDS).take(logged);
        let event = |words: &[std::sync::atomic::AtomicU64]| {
            LoggedEvent::from_words(std::array::from_fn(|word| words[word].load(Relaxed)))
        };
        words.filter_map(event).collect()
    }

    /// Takes the scheduler out and waits until threads are the kernel's own again.
    ///
    /// # Errors
    /// When the kernel does not do so within ten seconds.
    pub fn detach(mut self) -> Result<SchedulerEnd, OperationError> {
        self.take_out();
        let begun = Instant::now();
        while begun.elapsed() < DETACH_LIMIT {
            if let Some(end) = self.end()
                && probe::state().as_deref() != Some("disabling")
            {
                return Ok(end);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(OperationError::machine("the kernel has not ended the scheduler within 10 s")
            .hint("SysRq-S ends it, and so does a restart"))
    }
}

impl Drop for KernelScheduler {
    fn drop(&mut self) {
        self.take_out();
        self.control.mark_scheduling(false);
    }
}

/// The kernel's types and those of its operations.
struct KernelAccount {
    bytes: Vec<u8>,
    types: KernelTypes,
    operations: KernelStructure,
    value: KernelStructure,
}

impl KernelAccount {
    fn read() -> Result<Self, OperationError> {
        let bytes = fs::read(TYPES_FILE).map_err(|error| unsuitable(format!("{TYPES_FILE}: {error}")))?;
        let types = KernelTypes::parse(&bytes, is_wanted).map_err(unsuitable)?;
        let structure = |name: &str| {
            types
                .structure(name)
                .cloned()
                .ok_or_else(|| unsuitable(format!("the kernel has no structure {name}")))
        };
        let (operations, value) = (structure(OPERATIONS_TYPE)?, structure(OPERATIONS_VALUE_TYPE)?);
        Ok(Self { bytes, types, operations, value })
    }

    fn attach(
        &self,
        programs: &[OperationProgram],
        types: BorrowedFd<'_>,
        request: &AttachRequest,
    ) -> Result<(OperationsMap, OwnedFd), OperationError> {
        let begin =
            self.value.member("data").ok_or_else(|| unsuitable("the kernel's operations have no data"))?.1;
        let place = |name: &str| {
            let member = self.operations.member(name).map(|(_, at)| begin + at);
            member.ok_or_else(|| unsuitable(format!("the kernel's operations have no {name}")))
        };
        let mut value = vec![0; usize::try_from(self.value.bytes).unwrap_or(0)];
        let mut put = |at: usize, bytes: &[u8]| value[at..at + bytes.len()].copy_from_slice(bytes);
        put(place("name")?, NAME.as_bytes());
        if request.threads == ScheduledThreads::Extensible {
            let flag = self.types.constant(PARTIAL_SWITCH);
            let flag =
                flag.ok_or_else(|| unsuitable(format!("the kernel has no constant {PARTIAL_SWITCH}")))?;
            put(place("flags")?, &flag.to_ne_bytes());
        }
        let watchdog_ms = u32::try_from(request.watchdog.as_millis()).unwrap_or(u32::MAX);
        put(place("timeout_ms")?, &watchdog_ms.to_ne_bytes());
        let mut places = Vec::new();
        for ((name, _), program) in OPERATIONS.into_iter().zip(programs) {
            places.push((place(name)?, program));
        }
        let map = OperationsMap::create(NAME, types, self.value.number, self.value.bytes);
        let map = map.map_err(|error| refused("the scheduler's operations", &error))?;
        let link = map.attach(value, &places).map_err(|error| {
            if error.kind() == io::ErrorKind::ResourceBusy {
                probe::busy("enabling")
            } else {
                refused("the scheduler", &error)
            }
        })?;
        Ok((map, link))
    }
}

fn is_wanted(name: &str) -> bool {
    KERNEL_FUNCTIONS.contains(&name)
        || KERNEL_CONSTANTS.contains(&name)
        || [OPERATIONS_TYPE, OPERATIONS_VALUE_TYPE, PARTIAL_SWITCH].contains(&name)
}

fn load_programs(
    object: &SchedulerObject,
    kernel: &KernelAccount,
) -> Result<Vec<OperationProgram>, OperationError> {
    let mut programs = Vec::new();
    for (name, may_sleep) in OPERATIONS {
        let instructions = object.program(name, &kernel.types).map_err(unsuitable)?;
        let (member, _) = kernel
            .operations
            .member(name)
            .ok_or_else(|| unsuitable(format!("the kernel has no operation {name}")))?;
        let operation = KernelOperation { name, structure: kernel.operations.number, member, may_sleep };
        let program = OperationProgram::load(operation, &instructions, object.licence())
            .map_err(|error| refused(&format!("the program '{name}'"), &error))?;
        programs.push(program);
    }
    Ok(programs)
}

/// How many CPUs the kernel may have, by the highest number.
fn possible_cpus() -> Result<u32, OperationError> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let highest = text.trim().rsplit([',', '-']).next().and_then(|number| number.parse::<u32>().ok());
    match highest {
        Some(highest) if highest < CPUS_MAX => Ok(highest + 1),
        Some(_) => Err(unsuitable(format!("this machine has more than {CPUS_MAX} CPUs"))),
        None => Err(unsuitable(format!("the kernel does not say which CPUs it has: '{}'", text.trim()))),
    }
}

fn unsuitable(what: impl fmt::Display) -> OperationError {
    OperationError::machine(format_args!("the scheduler does not fit this kernel: {what}"))
        .hint("docs/schedule.md says which kernels it was tried with")
}

fn refused(what: &str, error: &(dyn std::error::Error + 'static)) -> OperationError {
    let is_permission = error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    let refused = OperationError::machine(format_args!("the kernel refuses {what}: {error}"));
    if is_permission { refused.hint("run it as root") } else { refused }
}
