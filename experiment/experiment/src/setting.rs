//! Settings of a machine: a place that has a value, which can be read, written, and written back.

use crate::open_sockets::{ServerSockets, SocketTotals, SocketsTakenBack};
use model::OperationError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A process as its number and when it began: numbers are used again, the two together are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The number of the process (PID).
    pub id: u32,
    /// When it began, in clock ticks since boot.
    pub start: u64,
}

/// A thread of a process, and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadIdentity {
    /// Whose thread it is.
    pub process: ProcessIdentity,
    /// The number of the thread (TID).
    pub id: u32,
    /// When it began, in clock ticks since boot.
    pub start: u64,
}

/// What of a thread is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadAspect {
    /// Policy, nice value, priority, slice.
    Scheduling,
    /// The CPUs that it may run on.
    Cpus,
}

/// How the text of a file of the kernel is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileForm {
    /// As it is, without the line end.
    Text,
    /// A hexadecimal mask of CPUs.
    CpuMask,
    /// The number behind the word `nice`.
    AutogroupNice,
}

/// A place that has a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Setting {
    /// What one thread has.
    Thread {
        /// Which thread it is.
        thread: ThreadIdentity,
        /// What of it is set.
        aspect: ThreadAspect,
    },
    /// Of threads of a process that begin later: they inherit one of `after` from the one that starts them, and it cannot
    /// be read what they would have had. Writing [`ON`] gives those that have none of them the first one; writing [`OFF`]
    /// gives those that have one of them `before`. What others have given to them is left alone.
    LaterThreads {
        /// The process whose threads they are.
        process: ProcessIdentity,
        /// The threads that there were at first.
        known: Vec<ThreadIdentity>,
        /// What of them is set.
        aspect: ThreadAspect,
        /// What they get when it is undone: what the first thread had.
        before: String,
        /// What the other threads have until then.
        after: Vec<String>,
        /// All that they have unless somebody has changed them: what the other threads had or have, and what is left of
        /// that where threads reset on fork.
        inheritable: Vec<String>,
    },
    /// A file of the kernel.
    KernelFile {
        /// Where the file is.
        path: PathBuf,
        /// How it is read.
        form: FileForm,
        /// Whose file it is, where it goes with a process.
        process: Option<ProcessIdentity>,
    },
    /// What a file of a control group says of a disk, in a line that begins with the number of the disk.
    GroupDevice {
        /// Where the file is.
        path: PathBuf,
        /// The number of the disk, such as `8:0`.
        device: String,
        /// What it means that the file has no line of the disk; writing it takes the line away.
        absent: String,
    },
    /// The I/O scheduler of a disk, and everything that the kernel resets when it is switched. Only the scheduler is asked
    /// for, and all is restored.
    IoScheduler {
        /// The folder of the disk's queue.
        queue: PathBuf,
    },
    /// The longest time in microseconds that idle CPUs may take to wake up. It lasts as long as the program that asks.
    WakeupLatency,
    /// An option of the open sockets of a server. Writing [`ON`] gives all of them the value, with a record of what each had
    /// before, which is kept with the socket; it is taken back from these records.
    Sockets {
        /// Which sockets and which option of them.
        sockets: ServerSockets,
        /// The value that they get.
        value: String,
    },
    /// A user's own: a command makes it ([`ON`]) and another one takes it back ([`OFF`]).
    Command {
        /// The command that makes it.
        apply: String,
        /// The command that takes it back; harmless where it was not made.
        undo: String,
    },
    /// A load that this program has started: it runs ([`ON`]) or has ended ([`OFF`]), with all processes of its group.
    Load {
        /// The first of its processes.
        process: ProcessIdentity,
        /// The command that sends it.
        command: String,
    },
}

/// The value of a setting that cannot be read, while it is on.
pub const ON: &str = "on";
/// The value of a setting that cannot be read, while it is off.
pub const OFF: &str = "off";

impl Setting {
    /// Whether what it is now can be found out.
    pub fn is_readable(&self) -> bool {
        !matches!(self, Self::LaterThreads { .. } | Self::Sockets { .. } | Self::Command { .. })
    }

    /// Whether it is about what begins later, so that it is written again and again while it is on.
    pub(crate) fn is_kept_on(&self) -> bool {
        matches!(self, Self::LaterThreads { .. } | Self::Sockets { .. })
    }

    /// Whether what it belongs to may end at any time, as one of many.
    pub(crate) fn is_of_many(&self) -> bool {
        matches!(self, Self::Thread { .. })
    }

    /// Whether a value that was read is what was asked for.
    pub(crate) fn is_as_asked(&self, read: &str, asked: &str) -> bool {
        match self {
            Self::IoScheduler { .. } => read.split_whitespace().next() == asked.split_whitespace().next(),
            _ => read == asked,
        }
    }

    /// Whether the kernel takes it back when this program ends, however it ends.
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

/// A setting and the value that it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    /// Where the value is.
    pub setting: Setting,
    /// The value that it gets.
    pub value: String,
}

/// Where settings are: Linux, or a simulated machine.
pub trait SettingStore {
    /// What a setting is; `None` when what it belongs to is gone. Of one that cannot be read, any value.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&mut self, setting: &Setting) -> Result<Option<String>, OperationError>;

    /// Gives a setting a value. That what it belongs to is gone meanwhile is no error.
    ///
    /// # Errors
    /// When it does not take the value.
    fn write(&mut self, setting: &Setting, value: &str) -> Result<(), OperationError>;

    /// What others have given to a part of a setting that cannot be read, and that writing leaves alone.
    ///
    /// # Errors
    /// When it cannot be read.
    fn changed_by_others(&mut self, _: &Setting) -> Result<Option<String>, OperationError> {
        Ok(None)
    }

    /// Whether all open sockets have a value; `None` when none of them is connected.
    ///
    /// # Errors
    /// When they cannot be looked at.
    fn sockets_have(&mut self, _: &ServerSockets, _value: &str) -> Result<Option<bool>, OperationError> {
        Ok(None)
    }

    /// Gives open sockets what they had before, by the records that are kept with them, or leaves them what the server has
    /// set since. Afterwards there are no records.
    ///
    /// # Errors
    /// When one does not take it; then its record is still there.
    fn take_back_from_sockets(&mut self, _: &ServerSockets) -> Result<SocketsTakenBack, OperationError> {
        Ok(SocketsTakenBack::default())
    }

    /// Looks at open sockets while nothing is set of them, as often as while something is, so that both cost the same.
    ///
    /// # Errors
    /// When they cannot be looked at.
    fn look_at_sockets(&mut self) -> Result<(), OperationError> {
        Ok(())
    }

    /// What was done with open sockets until now.
    fn socket_totals(&self) -> Option<SocketTotals> {
        None
    }
}
