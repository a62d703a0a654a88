//! A terminal for programs under test: a pseudo-terminal whose other side the test reads and writes.

use crate::DEFAULT_SIGNALS;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

/// Longer than any program under test computes, on a loaded machine, before it writes something.
const READ_LIMIT: Timespec = Timespec { tv_sec: 900, tv_nsec: 0 };

/// The side of the terminal that a user would have.
#[derive(Debug)]
pub struct Terminal {
    person: File,
    programs: Option<OwnedFd>,
}

impl Terminal {
    /// Opens a terminal with this many columns and rows.
    ///
    /// # Panics
    /// When the machine has no more pseudo-terminals.
    pub fn open(columns: u16, rows: u16) -> Self {
        let person =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&person).and_then(|()| unlockpt(&person)).expect("the terminal is ours");
        let name = ptsname(&person, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let programs = rustix::fs::open(name, flags, Mode::empty()).expect("its other side");
        let terminal = Self { person: person.into(), programs: Some(programs) };
        terminal.resize(columns, rows);
        terminal
    }

    /// Changes the size of the terminal; programs on it are notified.
    ///
    /// # Panics
    /// When the terminal refuses.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.person, size).expect("a terminal has a size");
    }

    /// Makes a command that runs in the foreground of this terminal: Ctrl-C on the terminal interrupts
    /// it. Standard input, output and error are the terminal.
    ///
    /// # Panics
    /// When called after [`Terminal::read_all`], or `setsid` is missing.
    pub fn command(&self, program: &Path) -> Command {
        let side = || Stdio::from(self.programs_side().try_clone().expect("a file descriptor"));
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "--wait", "env", DEFAULT_SIGNALS])
            .arg(program)
            .stdin(side())
            .stdout(side())
            .stderr(side());
        command
    }

    /// Returns the settings of the terminal, such as echo.
    ///
    /// # Panics
    /// When the settings cannot be read.
    pub fn settings(&self) -> Termios {
        tcgetattr(&self.person).expect("a terminal has settings")
    }

    /// Writes these characters as if they were typed.
    ///
    /// # Panics
    /// When the terminal accepts no input.
    pub fn type_in(&mut self, characters: &str) {
        self.person.write_all(characters.as_bytes()).expect("a terminal is typed on");
    }

    /// Waits for output of the programs and returns all of it since the last call. It is empty after all
    /// programs have ended and [`Terminal::hang_up_programs_side`] was called.
    ///
    /// # Panics
    /// When the terminal cannot be read, or nothing comes for 15 minutes.
    pub fn read_some(&mut self) -> Vec<u8> {
        let mut ready = [PollFd::new(&self.person, PollFlags::IN)];
        let count = poll(&mut ready, Some(&READ_LIMIT)).expect("a terminal can be waited for");
        assert!(count > 0, "nothing was written for 15 minutes");
        let mut bytes = vec![0; 1 << 16];
        match self.person.read(&mut bytes) {
            Ok(count) => bytes.truncate(count),
            // No process has the other side open any more.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => bytes.clear(),
            Err(error) => panic!("the terminal cannot be read: {error}"),
        }
        bytes
    }

    /// Closes the test's own handle of the programs' side, so that reading ends with the programs.
    pub fn hang_up_programs_side(&mut self) {
        self.programs = None;
    }

    /// Returns the output of the programs until all have ended.
    ///
    /// # Panics
    /// When the terminal cannot be read.
    pub fn read_all(&mut self) -> String {
        self.hang_up_programs_side();
        let mut all = Vec::new();
        loop {
            let some = self.read_some();
            if some.is_empty() {
                return String::from_utf8_lossy(&all).into_owned();
            }
            all.extend(some);
        }
    }

    fn programs_side(&self) -> &OwnedFd {
        self.programs.as_ref().expect("reading until the end has not begun")
    }
}
