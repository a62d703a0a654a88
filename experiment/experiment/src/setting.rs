//! Settings of a machine, which can be read, written, and restored.

use crate::open_sockets::{ServerSockets, SocketTotals, SocketsTakenBack};
use model::OperationError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A process, identified by PID and start time because PIDs are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// PID.
    pub id: u32,
    /// Start time, clock ticks since boot.
    pub start: u64,
}

/// A thread of a process, identified by TID and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadIdentity {
    /// Process of the thread.
    pub process: ProcessIdentity,
    /// TID.
    pub id: u32,
    /// Start time, clock ticks since boot.
    pub start: u64,
}

/// Property of a thread that a knob sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadAspect {
    /// Policy, nice value, priority, slice.
    Scheduling,
    /// CPU affinity.
    Cpus,
}

/// Format of a kernel file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileForm {
    /// Text without its final newline.
    Text,
    /// Hexadecimal CPU mask.
    CpuMask,
    /// Number after the word `nice`, as in `/proc/PID/autogroup`.
    AutogroupNice,
}

/// One setting of the machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Setting {
    /// A property of one thread.
    Thread { thread: ThreadIdentity, aspect: ThreadAspect },
    /// A property of threads that a process starts later. They inherit one of `after` from the thread that
    /// starts them, and the value that they would have had otherwise cannot be read. Writing [`ON`] gives the
    /// first of `after` to threads that have none of them; writing [`OFF`] gives `before` to threads that
    /// have one of them. Values set by other programs are left alone.
    LaterThreads {
        /// Process of the threads.
        process: ProcessIdentity,
        /// Threads that existed before the change.
        known: Vec<ThreadIdentity>,
        aspect: ThreadAspect,
        /// Value that undo writes: that of the first thread before the change.
        before: String,
        /// Values of the known threads while the knob is on.
        after: Vec<String>,
        /// Values that a later thread can have inherited: those of known threads before and after the change,
        /// also as left by reset-on-fork. Any other value was set by another program.
        inheritable: Vec<String>,
    },
    /// A kernel file.
    KernelFile {
        path: PathBuf,
        form: FileForm,
        /// Process that the file belongs to, for files that disappear with it.
        process: Option<ProcessIdentity>,
    },
    /// Line of a control group file that begins with the device number of a disk.
    GroupDevice {
        path: PathBuf,
        /// Device number of the disk, such as `8:0`.
        device: String,
        /// Value meant by a missing line; writing it removes the line.
        absent: String,
    },
    /// I/O scheduler of a disk, with everything that the kernel resets when it is switched. A change asks for
    /// the scheduler only, and undo restores all of it.
    IoScheduler {
        /// Queue directory of the disk in sysfs.
        queue: PathBuf,
    },
    /// Longest wake-up latency of idle CPUs, microseconds (`/dev/cpu_dma_latency`). Lasts as long as the
    /// program that asks for it.
    WakeupLatency,
    /// An option of the open sockets of a server. Writing [`ON`] sets it on all of them and keeps the old
    /// value with each socket, from which it is restored.
    Sockets {
        /// Sockets and option.
        sockets: ServerSockets,
        /// Value to set.
        value: String,
    },
    /// A knob of the user: one command applies it ([`ON`]) and another one undoes it ([`OFF`]).
    Command {
        apply: String,
        /// Must be harmless if `apply` did not run.
        undo: String,
    },
    /// A load that this program started: it runs ([`ON`]) or has ended ([`OFF`]), with all processes of its
    /// group.
    Load {
        /// First process of the group.
        process: ProcessIdentity,
        command: String,
    },
}

/// Value of an unreadable setting while it is on.
pub const ON: &str = "on";
/// Value of an unreadable setting while it is off.
pub const OFF: &str = "off";

impl Setting {
    /// Returns true if the current value can be read.
    pub fn is_readable(&self) -> bool {
        !matches!(self, Self::LaterThreads { .. } | Self::Sockets { .. } | Self::Command { .. })
    }

    /// Returns true if the setting covers threads or sockets that begin later, so that it is written
    /// repeatedly while on.
    pub(crate) fn is_kept_on(&self) -> bool {
        matches!(self, Self::LaterThreads { .. } | Self::Sockets { .. })
    }

    /// Returns true if the setting is one of many, each of which may disappear at any time.
    pub(crate) fn is_of_many(&self) -> bool {
        matches!(self, Self::Thread { .. })
    }

    /// Returns true if a value read back is the one asked for.
    pub(crate) fn is_as_asked(&self, read: &str, asked: &str) -> bool {
        match self {
            Self::IoScheduler { .. } => read.split_whitespace().next() == asked.split_whitespace().next(),
            _ => read == asked,
        }
    }

    /// Returns true if the kernel restores the setting when this program exits, even after a kill.
    pub fn ends_with_program(&self) -> bool {
        matches!(self, Self::WakeupLatency)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |aspect: &ThreadAspect| match aspect {
            ThreadAspect::Scheduling => "scheduling",
            ThreadAspect::Cpus => "CPUs",
        };
        match self {
            Self::Thread { thread, aspect } => {
                write!(f, "{} of thread {} of process {}", name(aspect), thread.id, thread.process.id)
            }
            Self::LaterThreads { process, aspect, .. } => {
                write!(f, "{} of later threads of process {}", name(aspect), process.id)
            }
            Self::KernelFile { path, .. } => write!(f, "{}", path.display()),
            Self::GroupDevice { path, device, .. } => write!(f, "{device} in {}", path.display()),
            Self::IoScheduler { queue } => write!(f, "{}", queue.join("scheduler").display()),
            Self::WakeupLatency => f.write_str("/dev/cpu_dma_latency"),
            Self::Sockets { sockets, .. } => sockets.fmt(f),
            Self::Command { apply, .. } => write!(f, "`{apply}`"),
            Self::Load { process, command } => write!(f, "load `{command}` (process {})", process.id),
        }
    }
}

/// A setting and its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    pub setting: Setting,
    pub value: String,
}

/// Access to settings: Linux, or a simulated machine.
pub trait SettingStore {
    /// Returns the value of a setting; `None` if its owner is gone. For an unreadable setting, any value.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&mut self, setting: &Setting) -> Result<Option<String>, OperationError>;

    /// Writes a setting. Does nothing if its owner is gone.
    ///
    /// # Errors
    /// If the value is refused.
    fn write(&mut self, setting: &Setting, value: &str) -> Result<(), OperationError>;

    /// Returns the value that another program gave to part of an unreadable setting, which writes leave
    /// alone.
    ///
    /// # Errors
    /// If it cannot be read.
    fn changed_by_others(&mut self, _: &Setting) -> Result<Option<String>, OperationError> {
        Ok(None)
    }

    /// Returns true if all open sockets have a value; `None` if none of them is connected.
    ///
    /// # Errors
    /// If they cannot be inspected.
    fn sockets_have(&mut self, _: &ServerSockets, _value: &str) -> Result<Option<bool>, OperationError> {
        Ok(None)
    }

    /// Restores open sockets from the records kept with them, except where the server has set the option
    /// since. Removes the records.
    ///
    /// # Errors
    /// If a socket refuses; then its record is kept.
    fn take_back_from_sockets(&mut self, _: &ServerSockets) -> Result<SocketsTakenBack, OperationError> {
        Ok(SocketsTakenBack::default())
    }

    /// Inspects open sockets without setting them, as often as while the knob is on, so that both arms pay
    /// the same.
    ///
    /// # Errors
    /// If they cannot be inspected.
    fn look_at_sockets(&mut self) -> Result<(), OperationError> {
        Ok(())
    }

    /// Returns totals of the changes of open sockets so far.
    fn socket_totals(&self) -> Option<SocketTotals> {
        None
    }
}
