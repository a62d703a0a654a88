//! Unrequested ends, and permissions to tag threads.

use crate::play::Spinners;
use crate::{OLDEST, WATCHDOG_MS, c_program, ending, request};
use machine::bpf::BpfMap;
use sched_ext::{AttachRequest, KernelScheduler, QueueLayout, SchedulerControl};
use sched_hint::{DEFAULT_FOLDER, SlotArray};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

/// Index of the patience in the memory of settings, where a program may set values that the crate
/// refuses.
const PATIENCE_WORD: usize = 3;

/// Starts a scheduler in a separate process, with c = 1.
fn scheduler(watchdog_ms: u64) -> Child {
    let mut command = ending::again();
    command.env(WATCHDOG_MS, watchdog_ms.to_string()).env(OLDEST, "1");
    let program = ending::enabled(command);
    expect_found(Instant::now());
    program
}

/// Programs find it shortly after the kernel has accepted it.
pub(crate) fn expect_found(begun: Instant) {
    while SchedulerControl::open(DEFAULT_FOLDER.as_ref()).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "programs find the one that schedules");
        thread::sleep(Duration::from_millis(20));
    }
}

fn expect_alike(spinners: &Spinners) {
    let shares = spinners.shares(Duration::from_millis(600));
    let alike = 1.0 / shares.len() as f64;
    assert!(shares.iter().all(|share| *share > 0.5 * alike), "{shares:?}");
}

/// With infinite patience the younger thread waits for ever, which the kernel's watchdog detects.
pub(crate) fn a_stuck_scheduler_is_ended_and_said() {
    let program = scheduler(1000);
    let control = SchedulerControl::open(DEFAULT_FOLDER.as_ref()).expect("it schedules");
    assert_eq!(control.watchdog(), Duration::from_secs(1));
    let words = BpfMap::open(&Path::new(DEFAULT_FOLDER).join("control")).and_then(|map| map.map_memory());
    words.expect("it is root's")[PATIENCE_WORD].store(u64::MAX, SeqCst);
    let spinners = Spinners::start(1, &[1, 2]);
    assert_eq!(ending::state_after(|state| state == "disabled"), "disabled");
    let output = program.wait_with_output().expect("it is ours");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("has ended the scheduler") && said.contains("stall"), "{said}");
    assert!(!Path::new(DEFAULT_FOLDER).join("control").exists(), "nothing stays pinned");
    assert!(!control.is_scheduling() && control.set(&control.settings()).is_err());
    expect_alike(&spinners);
    spinners.stop();
}

/// Several start at the same time: the kernel accepts one, and the others do not disturb it.
pub(crate) fn one_of_several_schedules() {
    let begin = |_| {
        let mut command = ending::again();
        command.stderr(Stdio::piped());
        Some(command.spawn().expect("it starts"))
    };
    let mut programs: Vec<Option<Child>> = (0..3).map(begin).collect();
    let begun = Instant::now();
    let mut refused = 0;
    while refused < 2 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{refused} of them are refused");
        thread::sleep(Duration::from_millis(20));
        for place in &mut programs {
            let Some(ended) =
                place.take_if(|program| program.try_wait().is_ok_and(|status| status.is_some()))
            else {
                continue;
            };
            let output = ended.wait_with_output().expect("it is ours");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{said}");
            assert!(said.contains("has a scheduler already"), "{said}");
            refused += 1;
        }
    }
    assert_eq!(ending::state_after(|state| state == "enabled"), "enabled");
    expect_found(begun);
    let mut last = programs.into_iter().flatten().next().expect("one of them schedules");
    let number = rustix::process::Pid::from_child(&last);
    rustix::process::kill_process(number, rustix::process::Signal::INT).expect("it is ours");
    assert_eq!(last.wait().expect("it ends").code(), Some(0));
}

/// Killed at once, while they register, and later.
pub(crate) fn killed_programs_leave_no_slots() {
    let scheduler = KernelScheduler::attach(&request(QueueLayout::PerCpu, 2)).expect("it can be attached");
    let array = SlotArray::open(DEFAULT_FOLDER.as_ref()).expect("the folder is ours").expect("one schedules");
    let before = array.taken();
    let mut most = before;
    for round in 0..8 {
        let mut programs: Vec<Child> = (0..3).map(|_| c_program::started(&[&"threads", &4])).collect();
        thread::sleep(Duration::from_millis(round * 12));
        most = most.max(array.taken());
        for program in &mut programs {
            program.kill().expect("it is ours");
            program.wait().expect("it ends");
        }
    }
    assert!(most > before, "some had registered");
    let begun = Instant::now();
    while array.taken() > before {
        assert!(begun.elapsed() < Duration::from_secs(5), "{} slots, {before} before", array.taken());
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(scheduler.detach().expect("it is there").check(), Ok(()));
}

/// Group of users who may tag threads, another group, and a user.
const GROUP: u32 = 4000;
const OTHER_GROUP: u32 = 4001;
const USER: u32 = 3000;

/// Returns the exit code of the C program as a user of this group.
fn found_by_member_of(group: u32) -> Option<i32> {
    let mut command = c_program::with(&[&"member"]);
    command.uid(USER).gid(group);
    command.status().expect("it starts").code()
}

pub(crate) fn members_of_the_group_tag_and_others_do_not() {
    let of_group = AttachRequest { group: Some(GROUP), ..request(QueueLayout::PerCpu, 2) };
    let file_system = Path::new("/sys/fs/bpf");
    let permit = |mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(file_system, permissions).expect("it is root's");
    };
    permit(0o700);
    let refused = KernelScheduler::attach(&of_group).expect_err("members cannot pass").to_string();
    assert!(refused.contains("chmod o+x /sys/fs/bpf"), "{refused}");
    assert_eq!(sched_ext::state().as_deref(), Some("disabled"));
    permit(0o711);
    let scheduler = KernelScheduler::attach(&of_group).expect("it can be attached");
    assert_eq!([GROUP, OTHER_GROUP].map(found_by_member_of), [Some(0), Some(1)]);
    assert_eq!(scheduler.detach().expect("it is there").check(), Ok(()));
    let scheduler = KernelScheduler::attach(&request(QueueLayout::PerCpu, 2)).expect("it can be attached");
    assert_eq!(found_by_member_of(GROUP), Some(1), "without --group only root tags");
    assert_eq!(scheduler.detach().expect("it is there").check(), Ok(()));
}
