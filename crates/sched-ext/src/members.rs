//! The threads of a control group, made threads of SCHED_EXT and taken back.
//!
//! A thread that is started by one of them is one of them, too. One that leaves the group is an ordinary one again, and so is
//! any other thread of SCHED_EXT outside: it would run on CPUs of ordinary threads, after all of these. If this process is
//! killed, threads keep the policy by name, and the kernel schedules it as it schedules ordinary threads.

use crate::exclusive_group::ExclusiveGroup;
use machine::scheduling::{SchedulingPolicy, ThreadScheduling, scheduling, set_scheduling};
use model::OperationError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// How often all threads of the machine are looked at.
const SWEEP: Duration = Duration::from_secs(1);

/// The nice value of a thread that was of SCHED_IDLE.
const LEAST_NICE: i32 = 19;

/// The group and how its threads were scheduled before. They are so again when this is dropped.
#[derive(Debug)]
pub(crate) struct GroupMembers {
    group: ExclusiveGroup,
    before: BTreeMap<u32, ThreadScheduling>,
    swept_at: Option<Instant>,
}

impl GroupMembers {
    pub(crate) fn of(group: ExclusiveGroup) -> Self {
        Self { group, before: BTreeMap::new(), swept_at: None }
    }

    /// Takes threads that are new in the group, and gives back those that have left it.
    pub(crate) fn follow(&mut self) -> Result<(), OperationError> {
        self.group.check()?;
        let failed = |error: io::Error| {
            OperationError::machine(format_args!(
                "the threads of the control group cannot be switched: {error}"
            ))
        };
        let threads = self.group.threads().map_err(failed)?;
        for thread in &threads {
            // It may have ended meanwhile.
            tolerate_ended(self.switch(*thread)).map_err(failed)?;
        }
        let left: Vec<u32> = self.before.keys().copied().filter(|thread| !threads.contains(thread)).collect();
        left.into_iter().for_each(|thread| self.give_back(thread));
        if self.swept_at.is_none_or(|at| at.elapsed() >= SWEEP) {
            self.swept_at = Some(Instant::now());
            sweep(&threads);
        }
        Ok(())
    }

    fn switch(&mut self, thread: u32) -> io::Result<()> {
        let now = match scheduling(thread) {
            // A deadline thread, as little as a real-time one, is not changed.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
            now => now?,
        };
        if now.policy.is_real_time() {
            return Ok(());
        }
        if now.policy == SchedulingPolicy::Ext {
            self.before.entry(thread).or_insert(ordinary(now));
            return Ok(());
        }
        let nice = if now.policy == SchedulingPolicy::Idle { LEAST_NICE } else { now.nice };
        set_scheduling(thread, &ThreadScheduling { policy: SchedulingPolicy::Ext, nice, ..now })?;
        self.before.insert(thread, now);
        Ok(())
    }

    fn give_back(&mut self, thread: u32) {
        let Some(before) = self.before.remove(&thread) else { return };
        if scheduling(thread).is_ok_and(|now| now.policy == SchedulingPolicy::Ext) {
            // It may end at any time; otherwise the kernel schedules it as an ordinary one when the scheduler is gone.
            let _ = set_scheduling(thread, &before);
        }
    }
}

impl Drop for GroupMembers {
    fn drop(&mut self) {
        // A thread that a thread starts meanwhile has its policy: those that are found last start none.
        for _ in 0..ROUNDS_AT_END {
            let threads = self.group.threads().unwrap_or_default();
            let known: Vec<u32> = self.before.keys().copied().collect();
            known.into_iter().for_each(|thread| self.give_back(thread));
            threads.iter().for_each(|thread| make_ordinary(*thread));
        }
    }
}

const ROUNDS_AT_END: usize = 3;

fn ordinary(now: ThreadScheduling) -> ThreadScheduling {
    ThreadScheduling { policy: SchedulingPolicy::Other, ..now }
}

/// Makes a thread of SCHED_EXT an ordinary one.
fn make_ordinary(thread: u32) {
    if let Ok(now) = scheduling(thread)
        && now.policy == SchedulingPolicy::Ext
    {
        // As above.
        let _ = set_scheduling(thread, &ordinary(now));
    }
}

/// Makes all threads of SCHED_EXT ordinary ones that are not among these.
fn sweep(members: &BTreeSet<u32>) {
    let listed = |folder: &str| -> Vec<u32> {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    for process in listed("/proc") {
        let threads = listed(&format!("/proc/{process}/task"));
        threads.into_iter().filter(|thread| !members.contains(thread)).for_each(make_ordinary);
    }
}

fn tolerate_ended(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(NO_SUCH_THREAD) => Ok(()),
        other => other,
    }
}

/// ESRCH.
const NO_SUCH_THREAD: i32 = 3;
