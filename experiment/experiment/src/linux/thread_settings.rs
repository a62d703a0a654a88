//! Reads and writes the settings of threads that knobs use.

use super::process::is_running;
use super::slice::DefaultSlice;
use crate::cpu_list;
use crate::setting::{ThreadAspect, ThreadIdentity};
use machine::scheduling::{ThreadScheduling, cpus, scheduling, set_cpus, set_scheduling};
use std::io;

/// Maps the error of a thread that has ended, even during the call, to `None`.
fn of_running<T>(thread: ThreadIdentity, done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        _ if !is_running(thread) => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(error) => Err(error),
    }
}

pub(super) fn read_thread(thread: ThreadIdentity, aspect: ThreadAspect) -> io::Result<Option<String>> {
    let value = match aspect {
        ThreadAspect::Scheduling => scheduling(thread.id).map(|scheduling| scheduling.to_string()),
        ThreadAspect::Cpus => cpus(thread.id).map(|cpus| cpu_list::text(&cpus)),
    };
    of_running(thread, value)
}

pub(super) fn write_thread(
    thread: ThreadIdentity,
    aspect: ThreadAspect,
    value: &str,
    slice: &mut DefaultSlice,
) -> io::Result<()> {
    if !is_running(thread) {
        return Ok(());
    }
    let bad = |error: String| io::Error::new(io::ErrorKind::InvalidInput, error);
    let done = match aspect {
        ThreadAspect::Scheduling => {
            let wanted: ThreadScheduling = value.parse().map_err(bad)?;
            set_scheduling(thread.id, &with_default_slice(wanted, slice))
        }
        ThreadAspect::Cpus => set_cpus(thread.id, &cpu_list::parse(value).map_err(bad)?),
    };
    of_running(thread, done).map(drop)
}

/// Omits the slice if it is the kernel's default, which would otherwise become an explicit one.
fn with_default_slice(wanted: ThreadScheduling, slice: &mut DefaultSlice) -> ThreadScheduling {
    let is_default = wanted.slice_ns > 0 && slice.ns() == Some(wanted.slice_ns);
    ThreadScheduling { slice_ns: if is_default { 0 } else { wanted.slice_ns }, ..wanted }
}
