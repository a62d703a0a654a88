//! Putting the scheduler into the kernel and taking it out.

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

/// How long the kernel may take to give threads back, before it is said that it did not.
const DETACH_LIMIT: Duration = Duration::from_secs(10);

/// How often it is looked whether the scheduler shall end or has ended.
const LOOK: Duration = Duration::from_millis(100);

/// The kernel's `SCX_EXIT_UNREG`: a scheduler that is taken out on demand.
const UNREGISTERED: u32 = 64;

/// What the scheduler is called in the kernel.
const NAME: &str = "tailwright";

/// Which threads the scheduler has, of those that are not real-time or deadline threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduledThreads {
    /// All of the machine.
    All,
    /// Those of the policy SCHED_EXT, such as those of a [`crate::CpuPartition`].
    Extensible,
    /// Those of a control group, under a scheduler that has all others: the one that there is, or one that comes and goes with
    /// this one.
    Group(ControlGroup),
}

impl ScheduledThreads {
    fn group(self) -> Option<ControlGroup> {
        if let Self::Group(group) = self { Some(group) } else { None }
    }
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

    /// Complains about an end that nobody asked for, such as an error or the removal of the control group.
    ///
    /// # Errors
    /// Says what the kernel says about it.
    pub fn check(&self) -> Result<(), OperationError> {
        if self.kind == UNREGISTERED { Ok(()) } else { Err(self.complaint()) }
    }

    fn complaint(&self) -> OperationError {
        OperationError::machine(format_args!("the kernel has ended the scheduler: {}", self.text))
            .hint("its threads are scheduled by the kernel's own again, or by the scheduler above it that is still there")
    }
}

/// The scheduler in the kernel. It is taken out when this is dropped, and by the kernel when the process ends.
#[derive(Debug)]
pub struct KernelScheduler {
    control: SchedulerControl,
    events: MappedWords,
    log_entries: u32,
    folder: PathBuf,
    maps: SchedulerMaps,
    attached: Option<AttachedOperations>,
    /// Has the threads of other groups; taken out after the one of the group.
    root: Option<RootScheduler>,
}

impl KernelScheduler {
    /// Puts the scheduler into the kernel.
    ///
    /// # Errors
    /// When a setting is not possible, the kernel has no sched_ext, rights are missing, or another scheduler runs.
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
        // The kernel lets one of several in, and only that one has files.
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
        // In a hierarchy the kernel answers yes also where it has already ended what it let in.
        if scheduler.control.exit().is_some() {
            let end = scheduler.detach()?;
            return Err(if is_under_another { probe::rejected_group(&end.text) } else { end.complaint() });
        }
        // What fails here takes the scheduler out again.
        pin(&scheduler.maps, &request.folder, request.group)?;
        Ok(scheduler)
    }

    /// Files go first, so that they are not those of the next scheduler.
    fn take_out(&mut self) {
        unpin(&self.maps, &self.folder);
        self.attached = None;
        self.root.iter_mut().for_each(RootScheduler::take_out);
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

    /// How the scheduler ended; `None` while it schedules. That of a group ends when the one above it does, which has the reason.
    pub fn end(&self) -> Option<SchedulerEnd> {
        let of = |control: &SchedulerControl| control.exit().map(|(kind, text)| SchedulerEnd { kind, text });
        let own = of(&self.control);
        let above = self.root.as_ref().and_then(|root| of(root.control()));
        if above.as_ref().is_some_and(|above| above.kind != UNREGISTERED) { above } else { own.or(above) }
    }

    /// CPU time of the threads of other groups, while the scheduler of a control group has one of its own above it.
    pub fn outside_time(&self) -> Option<Duration> {
        self.root.as_ref().map(|root| Duration::from_nanos(root.control().statistics().untagged_ns))
    }

    fn is_out(&self) -> bool {
        let is_root_out = self.root.as_ref().is_none_or(|root| root.control().exit().is_some());
        self.control.exit().is_some() && is_root_out && probe::state().as_deref() != Some("disabling")
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
            if self.is_out()
                && let Some(end) = self.end()
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
