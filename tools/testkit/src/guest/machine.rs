//! The guest as a process: started, read from, and ended when it takes too long.

use super::inside::GUEST;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// The longest guest takes about two minutes of CPU time.
const LIMIT: Duration = Duration::from_secs(6 * 60);

/// Twice the CPU time of the longest guest: a guest that has used so much since its last figure makes no
/// progress.
const SILENT_CPU_TIME: Duration = Duration::from_secs(4 * 60);

/// The kernel's and the programs' own memory in MiB.
const MEMORY: u64 = 512;

/// Returns the memory of a guest with an archive of this many bytes, in MiB. The kernel holds the archive
/// and unpacks it into a file system that takes at most half of the remaining memory.
fn memory(archive: u64) -> u64 {
    MEMORY + 3 * archive.div_ceil(1 << 20)
}

/// The search path inside the guest.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A guest that did not end in time.
#[derive(Debug)]
pub(super) struct LateGuest {
    /// Its output so far.
    pub(super) text: String,
    /// The emulator's CPU time since the last figure; zero where the kernel does not say.
    silent: Duration,
}

impl LateGuest {
    /// True if the guest started its checks and then used enough CPU time to continue: a busy machine is
    /// not the cause.
    pub(super) fn stands_still(&self) -> bool {
        self.text.contains("FIGURE ") && self.silent >= SILENT_CPU_TIME
    }
}

/// Returns the CPU time of all threads of a process in nanoseconds; 0 if it is not available.
fn cpu_time(process: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return 0 };
    let of_thread = |thread: fs::DirEntry| -> Option<u64> {
        fs::read_to_string(thread.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    threads.flatten().filter_map(of_thread).sum()
}

/// Returns the output of the guest until it ends, and stores the emulator's CPU time at each figure.
fn console_text(console: ChildStdout, process: u32, at_last_figure: &AtomicU64) -> String {
    let mut text = String::new();
    for line in BufReader::new(console).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if line.contains("FIGURE ") {
            at_last_figure.store(cpu_time(process), Ordering::Relaxed);
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The emulator, which ends with this.
struct RunningGuest(Child);

impl Drop for RunningGuest {
    fn drop(&mut self) {
        // Both are harmless after the guest has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Boots a kernel with these files and returns its output until it switches itself off. If that takes too
/// long, the error has the output so far.
pub(super) fn run(
    emulator: &Path,
    kernel: &Path,
    files: &Path,
    arguments: &[&str],
    cpus: u32,
) -> Result<String, LateGuest> {
    let mut command = Command::new(emulator);
    command.args(["-M", "q35", "-cpu", "max", "-nographic", "-no-reboot", "-nic", "none"]);
    let archive = fs::metadata(files).expect("it was written").len();
    command.arg("-m").arg(memory(archive).to_string()).arg("-smp").arg(cpus.to_string());
    // An instruction takes four nanoseconds of the guest's time, and waiting takes no real time.
    command.args(["-accel", "tcg", "-icount", "shift=2,sleep=off"]);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(files);
    // The kernel passes unknown parameters on as variables, and everything after two dashes as arguments
    // of the first program.
    command
        .arg("-append")
        .arg(format!("console=ttyS0 panic=-1 quiet PATH={PATH} {GUEST}=1 -- {}", arguments.join(" ")));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut guest = RunningGuest(command.spawn().expect("the emulator starts"));
    let console = guest.0.stdout.take().expect("it is piped");
    let process = guest.0.id();
    let at_last_figure = Arc::new(AtomicU64::new(0));
    let (printed, whole) = channel();
    let noted = Arc::clone(&at_last_figure);
    thread::spawn(move || {
        // The test may be over.
        let _ = printed.send(console_text(console, process, &noted));
    });
    let finished = whole.recv_timeout(LIMIT);
    let silent = cpu_time(process).saturating_sub(at_last_figure.load(Ordering::Relaxed));
    drop(guest);
    finished.map_err(|_| LateGuest {
        text: whole.recv().unwrap_or_default(),
        silent: Duration::from_nanos(silent),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_guest_that_had_time_to_go_on_stands_still() {
        let late = |text: &str, silent| LateGuest { text: text.to_owned(), silent };
        assert!(late("FIGURE uptime_s 1.2\n", SILENT_CPU_TIME).stands_still());
        assert!(!late("FIGURE uptime_s 1.2\n", SILENT_CPU_TIME / 2).stands_still(), "the machine is busy");
        assert!(!late("Linux version\n", SILENT_CPU_TIME).stands_still(), "it did not boot");
        let before = cpu_time(std::process::id());
        let begun = std::time::Instant::now();
        while before > 0 && cpu_time(std::process::id()) == before {
            assert!(begun.elapsed() < LIMIT, "CPU time passes while one looks at it");
        }
    }
}
