//! Ends of the scheduler, on request and by a crash of its program, and their effect on threads and later
//! schedulers.

use crate::play::Spinners;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testkit::guest::report_figure;

/// Timeout for actions of the kernel itself.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn all() {
    for (name, signal) in
        [("interrupted", rustix::process::Signal::INT), ("killed", rustix::process::Signal::KILL)]
    {
        ended_by(name, signal);
    }
    refused_beside_another();
}

fn ended_by(name: &str, signal: rustix::process::Signal) {
    let mut program = loaded();
    let spinners = Spinners::start(1, &[0, 31, 32, 33, 34, 35]);
    thread::sleep(Duration::from_millis(500));
    report_figure(&format!("{name}_tagged_before"), state_after(|state| state == "enabled"));
    let number = rustix::process::Pid::from_child(&program);
    rustix::process::kill_process(number, signal).expect("it is ours");
    let begun = Instant::now();
    report_figure(&format!("{name}_state"), state_after(|state| state == "disabled"));
    report_figure(&format!("{name}_after_ms"), begun.elapsed().as_millis());
    let status = program.wait().expect("it ends");
    report_figure(&format!("{name}_exit"), status.code().unwrap_or(-1));
    // Under the kernel's own scheduler all six share the CPU equally.
    let before = spinners.spent();
    thread::sleep(Duration::from_secs(2));
    let gained: Vec<u64> =
        before.iter().zip(spinners.spent()).map(|(before, after)| after - before).collect();
    spinners.stop();
    let least = gained.iter().min().copied().unwrap_or(0) as f64;
    report_figure(
        &format!("{name}_least_share"),
        format_args!("{:.3}", least / gained.iter().sum::<u64>().max(1) as f64),
    );
    report_figure(&format!("{name}_is_scheduled"), sched_hint::is_scheduled());
}

/// Two programs at once: the second one fails with an error and changes nothing.
fn refused_beside_another() {
    let mut first = loaded();
    let second = again().output().expect("it starts");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    report_figure("second_refused", !second.status.success() && said.contains("has a scheduler already"));
    report_figure("second_leaves_first", sched_ext::state().unwrap_or_default());
    first.kill().expect("it is ours");
    first.wait().expect("it ends");
    report_figure("second_state", state_after(|state| state == "disabled"));
}

fn loaded() -> Child {
    enabled(again())
}

/// Starts a scheduler and waits until it schedules.
pub(crate) fn enabled(mut command: Command) -> Child {
    let mut program = command.stderr(Stdio::piped()).spawn().expect("it starts");
    if state_after(|state| state == "enabled") != "enabled" {
        program.kill().expect("it is ours");
        let said = program.wait_with_output().expect("it ends");
        panic!("no scheduler: {}", String::from_utf8_lossy(&said.stderr));
    }
    program
}

/// Returns a command of this program that runs a scheduler until SIGINT.
pub(crate) fn again() -> Command {
    let mut command = Command::new("/init");
    command.args(["--exact", "a_scheduler_until_interrupted", "--nocapture"]).stdin(Stdio::null());
    command.env(crate::FOLDER, sched_hint::DEFAULT_FOLDER);
    command
}

pub(crate) fn state_after(is_right: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let state = sched_ext::state().unwrap_or_default();
        if is_right(&state) || begun.elapsed() > LIMIT {
            return state;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
