//! Attaching the scheduler to the kernel, and detaching it.

use crate::account::{AttachError, AttachedOperations, KernelAccount, OperationValues, possible_cpus};
use crate::complaint::{refused, unsuitable};
use crate::control_group::ControlGroup;
use crate::object::{ObjectConstants, SchedulerKind, SchedulerMaps, SchedulerObject};
use crate::pinned::{check_way, pin, unpin};
use crate::probe;
use crate::replay::{EVENT_WORDS, LoggedEvent};
use crate::root::RootScheduler;
use crate::settings::{OldestFirstSettings, QueueLayout};
use crate::shared::SchedulerControl;
use machine::bpf::MappedWords;
use model::OperationError;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Maximum time for the kernel to take threads back before detaching fails.
const DETACH_LIMIT: Duration = Duration::from_secs(10);

/// Interval between checks for a stop request or an exited scheduler.
const LOOK: Duration = Duration::from_millis(100);

/// The kernel's `SCX_EXIT_UNREG`: the scheduler was detached on request.
const UNREGISTERED: u32 = 64;

/// Name of the scheduler in the kernel.
const NAME: &str = "tailwright";

/// Threads that the scheduler manages; real-time and deadline threads are never among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduledThreads {
    /// All threads of the machine.
    All,
    /// Threads with the policy SCHED_EXT, such as those of a [`crate::CpuPartition`].
    Extensible,
    /// Threads of a control group, below a scheduler for all other threads: the one already attached, or one
    /// that is attached and detached together with this one.
    Group(ControlGroup),
}

impl ScheduledThreads {
    fn group(self) -> Option<ControlGroup> {
        if let Self::Group(group) = self { Some(group) } else { None }
    }
}

/// Parameters of attaching the scheduler.
#[derive(Debug, Clone)]
pub struct AttachRequest {
    /// Settings that can be changed later.
    pub settings: OldestFirstSettings,
    /// One run queue or one per CPU.
    pub layout: QueueLayout,
    /// Threads that it schedules.
    pub threads: ScheduledThreads,
    /// Directory in bpffs where programs find the scheduler.
    pub folder: PathBuf,
    /// Group whose members may tag threads; `None`: root only.
    pub group: Option<u32>,
    /// Time a runnable thread may wait before the kernel ends the scheduler.
    pub watchdog: Duration,
    /// Maximum number of events logged for [`crate::replay`]; usually 0.
    pub log_entries: u32,
}

/// Reason why the scheduler ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerEnd {
    /// Kernel's number of the reason (`enum scx_exit_kind`); 1024 and above are errors.
    pub kind: u32,
    /// Kernel's explanation, possibly empty.
    pub text: String,
}

impl SchedulerEnd {
    /// Returns true if the kernel ended the scheduler because of an error, such as a stalled thread.
    pub fn is_error(&self) -> bool {
        self.kind >= 1024
    }

    /// Returns an error for an unrequested end, such as a kernel error or the removal of the control group.
    ///
    /// # Errors
    /// Contains the kernel's explanation.
    pub fn check(&self) -> Result<(), OperationError> {
        if self.kind == UNREGISTERED { Ok(()) } else { Err(self.complaint()) }
    }

    fn complaint(&self) -> OperationError {
        OperationError::machine(format_args!("the kernel has ended the scheduler: {}", self.text))
            .hint("its threads are back under the kernel's own scheduler, or under the scheduler above it")
    }
}

/// The attached scheduler. It is detached on drop, and by the kernel when the process exits.
#[derive(Debug)]
pub struct KernelScheduler {
    control: SchedulerControl,
    events: MappedWords,
    log_entries: u32,
    folder: PathBuf,
    maps: SchedulerMaps,
    attached: Option<AttachedOperations>,
    /// Scheduler for the threads of other groups; detached after that of the group.
    root: Option<RootScheduler>,
}

impl KernelScheduler {
    /// Attaches the scheduler.
    ///
    /// # Errors
    /// If a setting is out of range, the kernel has no sched_ext, privileges are missing, or another
    /// scheduler is attached.
    pub fn attach(request: &AttachRequest) -> Result<Self, OperationError> {
        request.settings.check_under(request.watchdog)?;
        let group = request.threads.group();
        let is_under_another = group.is_some() && probe::has_scheduler();
        if !is_under_another {
            probe::check()?;
        }
        let kernel = KernelAccount::read()?;
        if group.is_some() {
            kernel.check_hierarchy()?;
        }
        let constants = ObjectConstants::OldestFirst {
            cpus_count: possible_cpus()?.end,
            is_shared: request.layout == QueueLayout::Shared,
            log_entries: request.log_entries,
        };
        let kind = if group.is_some() { SchedulerKind::Group } else { SchedulerKind::Machine };
        let mut object =
            SchedulerObject::relocated(kind, &kernel.bytes, &kernel.types, constants).map_err(unsuitable)?;
        let maps = object
            .create_maps(request.log_entries)
            .map_err(|error| refused("the scheduler's maps", &error))?;
        let refused_memory = |error: io::Error| refused("memory of the scheduler's maps", &error);
        let control = SchedulerControl::of(&maps.control, &maps.cpus, &maps.slots).map_err(refused_memory)?;
        let events = maps.events.map_memory().map_err(refused_memory)?;
        control.put_watchdog(request.watchdog);
        control.set(&request.settings)?;
        control.mark_scheduling(true);
        check_way(&request.folder, request.group)?;
        let root = match group {
            Some(group) if !is_under_another => {
                Some(RootScheduler::attach(&kernel, &maps, &group, &request.settings, request.watchdog)?)
            }
            _ => None,
        };
        let values = OperationValues {
            name: NAME,
            is_partial: request.threads == ScheduledThreads::Extensible,
            watchdog: request.watchdog,
            group: group.map(|group| group.number()),
        };
        // Of several concurrent attempts the kernel accepts one, so only that one pins files.
        let attached = kernel.attach(&object, maps.types.as_fd(), values).map_err(|error| match error {
            AttachError::Other(error) => error,
            AttachError::Refused(error) if group.is_some() => probe::refused_group(&error),
            AttachError::Refused(error) => probe::refused_machine(&error),
        })?;
        let scheduler = Self {
            control,
            events,
            log_entries: request.log_entries,
            folder: request.folder.clone(),
            maps,
            attached: Some(attached),
            root,
        };
        // In a hierarchy the kernel reports success even if it has already ended the scheduler that it
        // accepted.
        if scheduler.control.exit().is_some() {
            let end = scheduler.detach()?;
            return Err(if is_under_another { probe::rejected_group(&end.text) } else { end.complaint() });
        }
        // An error here drops `scheduler`, which detaches it.
        pin(&scheduler.maps, &request.folder, request.group)?;
        Ok(scheduler)
    }

    /// Unpins files first: afterwards they could be those of the next scheduler.
    fn take_out(&mut self) {
        unpin(&self.maps, &self.folder);
        self.attached = None;
        self.root.iter_mut().for_each(RootScheduler::take_out);
    }

    /// Waits for a stop request or the end of the scheduler, and calls `look` every 100 ms.
    pub fn wait(&self, stop: &AtomicBool, mut look: impl FnMut()) {
        while !stop.load(Relaxed) && self.end().is_none() {
            look();
            std::thread::sleep(LOOK);
        }
    }

    /// Returns the settings and statistics of the scheduler.
    pub fn control(&self) -> &SchedulerControl {
        &self.control
    }

    /// Returns the reason of the end; `None` while the scheduler is attached. A group's scheduler ends
    /// together with the one above it, whose reason takes precedence.
    pub fn end(&self) -> Option<SchedulerEnd> {
        let of = |control: &SchedulerControl| control.exit().map(|(kind, text)| SchedulerEnd { kind, text });
        let own = of(&self.control);
        let above = self.root.as_ref().and_then(|root| of(root.control()));
        if above.as_ref().is_some_and(|above| above.kind != UNREGISTERED) { above } else { own.or(above) }
    }

    /// Returns the CPU time of threads of other groups, if this scheduler attached one above it.
    pub fn outside_time(&self) -> Option<Duration> {
        self.root.as_ref().map(|root| Duration::from_nanos(root.control().statistics().untagged_ns))
    }

    fn is_out(&self) -> bool {
        let is_root_out = self.root.as_ref().is_none_or(|root| root.control().exit().is_some());
        self.control.exit().is_some() && is_root_out && probe::state().as_deref() != Some("disabling")
    }

    /// Returns the events logged so far, up to the capacity of the log.
    pub fn events(&self) -> Vec<LoggedEvent> {
        let logged = self.control.log_length().min(u64::from(self.log_entries));
        let logged = usize::try_from(logged).unwrap_or(0);
        let words = self.events.chunks_exact(EVENT_WORDS).take(logged);
        let event = |words: &[std::sync::atomic::AtomicU64]| {
            LoggedEvent::from_words(std::array::from_fn(|word| words[word].load(Relaxed)))
        };
        words.filter_map(event).collect()
    }

    /// Detaches the scheduler and waits until the kernel has taken its threads back.
    ///
    /// # Errors
    /// If the kernel does not do so within ten seconds.
    pub fn detach(mut self) -> Result<SchedulerEnd, OperationError> {
        self.take_out();
        let begun = Instant::now();
        while begun.elapsed() < DETACH_LIMIT {
            if self.is_out()
                && let Some(end) = self.end()
            {
                return Ok(end);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(OperationError::machine("the kernel has not ended the scheduler within 10 s")
            .hint("SysRq-S or a reboot ends it"))
    }
}

impl Drop for KernelScheduler {
    fn drop(&mut self) {
        self.take_out();
        self.control.mark_scheduling(false);
    }
}
