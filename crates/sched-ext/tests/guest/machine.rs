//! The guest as a process: started, read from, and ended when it takes too long.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// It takes about two minutes of CPU time.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// The emulator, which ends with this.
struct RunningGuest(Child);

impl Drop for RunningGuest {
    fn drop(&mut self) {
        // It has ended, or it shall.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Boots a kernel with these files and returns what it prints until it switches itself off; what it printed until then, as an
/// error, when it takes too long.
pub(crate) fn run(emulator: &Path, kernel: &Path, files: &Path) -> Result<String, String> {
    let mut command = Command::new(emulator);
    command.args([
        "-M",
        "q35",
        "-cpu",
        "max",
        "-m",
        "512",
        "-smp",
        "3",
        "-nographic",
        "-no-reboot",
        "-nic",
        "none",
    ]);
    // An instruction is four nanoseconds of the guest's time, and waiting takes none of ours.
    command.args(["-accel", "tcg", "-icount", "shift=2,sleep=off"]);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(files);
    command.args(["-append", "console=ttyS0 panic=-1 quiet"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut guest = RunningGuest(command.spawn().expect("the emulator starts"));
    let mut console = guest.0.stdout.take().expect("it is piped");
    let (printed, whole) = channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = console.read_to_end(&mut text);
        let _ = printed.send(String::from_utf8_lossy(&text).into_owned());
    });
    let finished = whole.recv_timeout(LIMIT);
    drop(guest);
    finished.map_err(|_| {
        let text = whole.recv().unwrap_or_default();
        format!("the guest was not done within {LIMIT:?}; it printed:\n{text}")
    })
}
