//! Scheduling of threads of any process: policy, nice value, real-time priority, slice, CPUs.
//!
//! No safe wrapper of sched_setattr and sched_getattr exists in the libraries used here; all their calls
//! are in this module.

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::str::FromStr;

/// A policy whose parameters fit into [`ThreadScheduling`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulingPolicy {
    /// SCHED_OTHER: shares the CPU by nice values.
    Other,
    /// SCHED_BATCH: like `Other`, but preempts others less on wakeup.
    Batch,
    /// SCHED_IDLE: runs when little else does.
    Idle,
    /// SCHED_FIFO: runs before all of these until it blocks.
    Fifo,
    /// SCHED_RR: like `Fifo`, but takes turns with threads of equal priority.
    RoundRobin,
}

const POLICIES: [(SchedulingPolicy, &str, i32); 5] = [
    (SchedulingPolicy::Other, "other", libc::SCHED_OTHER),
    (SchedulingPolicy::Batch, "batch", libc::SCHED_BATCH),
    (SchedulingPolicy::Idle, "idle", libc::SCHED_IDLE),
    (SchedulingPolicy::Fifo, "fifo", libc::SCHED_FIFO),
    (SchedulingPolicy::RoundRobin, "round-robin", libc::SCHED_RR),
];

impl SchedulingPolicy {
    /// Returns true if threads of this policy run before all ordinary ones.
    pub fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::RoundRobin)
    }
}

/// Scheduling parameters of a thread. As text: `other nice 0 slice 2800000`, `fifo priority 10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadScheduling {
    pub policy: SchedulingPolicy,
    /// Nice value, −20 (most CPU) to 19 (least); zero for real-time policies.
    pub nice: i32,
    /// Real-time priority, 1 to 99; zero for the other policies.
    pub priority: u32,
    /// Time slice, nanoseconds, since Linux 6.12; zero for the kernel's default.
    pub slice_ns: u64,
    /// True if its children get the ordinary policy (SCHED_FLAG_RESET_ON_FORK).
    pub resets_on_fork: bool,
}

impl ThreadScheduling {
    /// An ordinary thread with this nice value.
    pub fn ordinary(nice: i32) -> Self {
        Self { policy: SchedulingPolicy::Other, nice, priority: 0, slice_ns: 0, resets_on_fork: false }
    }

    /// A thread of a real-time policy with this priority.
    pub fn real_time(policy: SchedulingPolicy, priority: u32) -> Self {
        Self { policy, priority, ..Self::ordinary(0) }
    }
}

impl fmt::Display for ThreadScheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            POLICIES.iter().find(|(policy, ..)| *policy == self.policy).map_or("", |(_, name, _)| name);
        f.write_str(name)?;
        if self.policy.is_real_time() {
            write!(f, " priority {}", self.priority)?;
        } else {
            write!(f, " nice {}", self.nice)?;
        }
        if self.slice_ns > 0 {
            write!(f, " slice {}", self.slice_ns)?;
        }
        if self.resets_on_fork { f.write_str(" reset-on-fork") } else { Ok(()) }
    }
}

impl FromStr for ThreadScheduling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}': expected a policy, then nice, priority, slice and reset-on-fork");
        let mut words = text.split_whitespace();
        let name = words.next().ok_or_else(bad)?;
        let (policy, ..) = POLICIES.iter().find(|(_, known, _)| *known == name).ok_or_else(bad)?;
        let mut parsed = Self { policy: *policy, ..Self::ordinary(0) };
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|number| number.parse::<i64>().ok()).ok_or_else(bad);
            match word {
                "nice" => parsed.nice = number()?.try_into().map_err(|_| bad())?,
                "priority" => parsed.priority = number()?.try_into().map_err(|_| bad())?,
                "slice" => parsed.slice_ns = number()?.try_into().map_err(|_| bad())?,
                "reset-on-fork" => parsed.resets_on_fork = true,
                _ => return Err(bad()),
            }
        }
        Ok(parsed)
    }
}

/// Returns the id of the calling thread.
pub fn own_thread() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Returns the scheduling parameters of a thread.
///
/// # Errors
/// When there is no such thread, or its policy is another one, such as SCHED_DEADLINE.
pub fn scheduling(thread: u32) -> io::Result<ThreadScheduling> {
    let attributes = get_attributes(thread)?;
    let known = |(_, _, number): &&(_, _, i32)| u32::try_from(*number) == Ok(attributes.sched_policy);
    let Some((policy, ..)) = POLICIES.iter().find(known) else {
        let message = format!("scheduling policy {} is not known here", attributes.sched_policy);
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    };
    Ok(ThreadScheduling {
        policy: *policy,
        nice: attributes.sched_nice,
        priority: attributes.sched_priority,
        slice_ns: if policy.is_real_time() { 0 } else { attributes.sched_runtime },
        resets_on_fork: attributes.sched_flags & RESET_ON_FORK != 0,
    })
}

/// Sets the scheduling parameters of a thread.
///
/// # Errors
/// When there is no such thread, or this process lacks the privilege.
pub fn set_scheduling(thread: u32, scheduling: &ThreadScheduling) -> io::Result<()> {
    let (.., number) = POLICIES
        .iter()
        .find(|(policy, ..)| *policy == scheduling.policy)
        .expect("every policy stands in the list");
    set_attributes(
        thread,
        &libc::sched_attr {
            size: ATTRIBUTES_BYTES,
            sched_policy: number.unsigned_abs(),
            sched_flags: if scheduling.resets_on_fork { RESET_ON_FORK } else { 0 },
            sched_nice: scheduling.nice,
            sched_priority: scheduling.priority,
            sched_runtime: scheduling.slice_ns,
            sched_deadline: 0,
            sched_period: 0,
        },
    )
}

/// Returns the CPUs that a thread may run on, counted from zero.
///
/// # Errors
/// When there is no such thread.
pub fn cpus(thread: u32) -> io::Result<BTreeSet<usize>> {
    let set = sched_getaffinity(Some(pid(thread)?))?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Restricts a thread to these CPUs.
///
/// # Errors
/// When there is no such thread, none of these CPUs exists, or this process lacks the privilege.
pub fn set_cpus(thread: u32, cpus: &BTreeSet<usize>) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(Some(pid(thread)?), &set)?)
}

/// The policy SCHED_EXT of `linux/sched.h`.
const EXTENSIBLE: u32 = 7;

/// Returns true if a thread has the policy SCHED_EXT, which marks the threads of a sched_ext scheduler in
/// partial mode.
///
/// # Errors
/// When there is no such thread.
pub fn is_extensible(thread: u32) -> io::Result<bool> {
    get_attributes(thread).map(|attributes| attributes.sched_policy == EXTENSIBLE)
}

/// Gives a thread the policy SCHED_EXT, inherited by the threads that it starts from now on. Its nice
/// value stays.
///
/// # Errors
/// When there is no such thread, this process lacks the privilege, or the kernel has no sched_ext.
pub fn make_extensible(thread: u32) -> io::Result<()> {
    let sched_nice = get_attributes(thread)?.sched_nice;
    set_attributes(
        thread,
        &libc::sched_attr {
            size: ATTRIBUTES_BYTES,
            sched_policy: EXTENSIBLE,
            sched_flags: 0,
            sched_nice,
            sched_priority: 0,
            sched_runtime: 0,
            sched_deadline: 0,
            sched_period: 0,
        },
    )
}

/// Returns a thread of the policy SCHED_EXT to the ordinary policy. Its nice value stays.
///
/// # Errors
/// When there is no such thread, or this process lacks the privilege.
pub fn make_ordinary(thread: u32) -> io::Result<()> {
    let nice = get_attributes(thread)?.sched_nice;
    set_scheduling(thread, &ThreadScheduling::ordinary(nice))
}

fn pid(thread: u32) -> io::Result<Pid> {
    i32::try_from(thread).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

const RESET_ON_FORK: u64 = 1;

/// Size of the structure in Linux 3.14, without later fields; every later kernel accepts it.
const ATTRIBUTES_BYTES: u32 = 48;
const _: () = assert!(size_of::<libc::sched_attr>() == ATTRIBUTES_BYTES as usize);

#[allow(unsafe_code, reason = "there is no safe wrapper of this system call")]
fn get_attributes(thread: u32) -> io::Result<libc::sched_attr> {
    let mut attributes = libc::sched_attr {
        size: ATTRIBUTES_BYTES,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    let place = std::ptr::from_mut(&mut attributes);
    // SAFETY: the kernel writes at most ATTRIBUTES_BYTES to `place`, which has that size and outlives the call.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, place, ATTRIBUTES_BYTES, 0) };
    if answer == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

#[allow(unsafe_code, reason = "there is no safe wrapper of this system call")]
fn set_attributes(thread: u32, attributes: &libc::sched_attr) -> io::Result<()> {
    let place = std::ptr::from_ref(attributes);
    // SAFETY: the kernel reads `size` bytes of `place`, which has that size and outlives the call.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, place, 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A program that waits until its input ends.
    fn with_program(check: impl FnOnce(u32)) {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        check(child.id());
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn text_and_back() {
        for text in ["other nice -5 slice 2800000", "fifo priority 10", "idle nice 19 reset-on-fork"] {
            assert_eq!(
                text.parse::<ThreadScheduling>().map(|parsed| parsed.to_string()).as_deref(),
                Ok(text)
            );
        }
        for bad in ["", "fair", "other nice", "other nice x", "fifo priority -1", "other mice 3"] {
            assert!(bad.parse::<ThreadScheduling>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_thread_is_demoted_and_promoted_as_chrt_sees_it() {
        with_program(|thread| {
            let before = scheduling(thread).unwrap();
            assert_eq!(before.policy, SchedulingPolicy::Other, "{before}");
            let fifo = ThreadScheduling::real_time(SchedulingPolicy::Fifo, 7);
            if let Err(error) = set_scheduling(thread, &fifo) {
                return testkit::skip(&format!("no real-time priority: {error}"));
            }
            assert_eq!(scheduling(thread).unwrap(), fifo);
            let seen = Command::new("chrt").args(["-p", &thread.to_string()]).output().unwrap();
            let seen = String::from_utf8(seen.stdout).unwrap();
            assert!(seen.contains("SCHED_FIFO") && seen.contains("priority: 7"), "{seen}");
            set_scheduling(thread, &before).unwrap();
            assert_eq!(scheduling(thread).unwrap(), before);
        });
    }

    #[test]
    fn a_thread_keeps_to_its_cpus() {
        with_program(|thread| {
            let before = cpus(thread).unwrap();
            let first: BTreeSet<usize> = before.iter().take(1).copied().collect();
            set_cpus(thread, &first).unwrap();
            assert_eq!(cpus(thread).unwrap(), first);
            set_cpus(thread, &before).unwrap();
            assert_eq!(cpus(thread).unwrap(), before);
            assert!(set_cpus(thread, &BTreeSet::new()).is_err());
        });
        assert!(cpus(0).is_err() && scheduling(u32::MAX).is_err());
        let folder = format!("/proc/self/task/{}", own_thread());
        assert_eq!(
            std::fs::canonicalize(folder).unwrap(),
            std::fs::canonicalize("/proc/thread-self").unwrap()
        );
    }
}
