//! Reads and writes settings of this machine.

use super::later_threads::{changed_later, write_later};
use super::process::is_alive;
use super::slice::DefaultSlice;
use super::sockets::OpenSockets;
use super::thread_settings::{read_thread, write_thread};
use super::{io_scheduler, user_command};
use crate::cpu_list;
use crate::open_sockets::{ServerSockets, SocketTotals, SocketsTakenBack};
use crate::setting::{FileForm, OFF, ON, ProcessIdentity, Setting, SettingStore};
use model::OperationError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

const WAKEUP_LATENCY: &str = "/dev/cpu_dma_latency";
/// Attempts and interval of a write that the kernel rate-limits.
const ATTEMPTS_MAX: usize = 50;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(20);

/// Settings of the local machine.
#[derive(Debug, Default)]
pub struct LinuxSettings {
    /// The latency request lasts as long as this file is open.
    wakeup_latency: Option<File>,
    slice: DefaultSlice,
    sockets: OpenSockets,
}

impl SettingStore for LinuxSettings {
    fn read(&mut self, setting: &Setting) -> Result<Option<String>, OperationError> {
        let value = match setting {
            Setting::Thread { thread, aspect } => read_thread(*thread, *aspect),
            Setting::LaterThreads { process, .. } => Ok(is_alive(*process).then(|| OFF.to_owned())),
            Setting::KernelFile { path, form, process } => read_file(path, *form, *process),
            Setting::GroupDevice { path, device, absent } => read_device(path, device, absent),
            Setting::IoScheduler { queue } => io_scheduler::read(queue),
            Setting::WakeupLatency => read_wakeup_latency().map(Some),
            Setting::Sockets { .. } | Setting::Command { .. } => Ok(Some(OFF.to_owned())),
            Setting::Load { process, .. } => Ok(Some(if is_alive(*process) { ON } else { OFF }.to_owned())),
        };
        value.map_err(|error| OperationError::machine(format_args!("{setting}: {error}")))
    }

    fn write(&mut self, setting: &Setting, value: &str) -> Result<(), OperationError> {
        let written = match setting {
            Setting::Thread { thread, aspect } => write_thread(*thread, *aspect, value, &mut self.slice),
            Setting::LaterThreads { process, known, aspect, before, after, inheritable } => {
                let to = if value == ON { after.first() } else { Some(before) };
                let is_meant = |now: &String| match value == ON {
                    true => inheritable.contains(now) && !after.contains(now),
                    false => after.contains(now),
                };
                let slice = &mut self.slice;
                let is_settled = to.map(|to| write_later(*process, known, *aspect, is_meant, to, slice));
                match is_settled.transpose() {
                    // Later threads are retried at the next `keep_on`.
                    Ok(Some(false)) if value != ON => {
                        Err(io::Error::other("threads begin faster than they are changed"))
                    }
                    done => done.map(drop),
                }
            }
            Setting::KernelFile { process: Some(process), .. } if !is_alive(*process) => Ok(()),
            Setting::KernelFile { path, form: FileForm::AutogroupNice, .. } => {
                patiently(|| fs::write(path, value))
            }
            Setting::KernelFile { path, .. } => fs::write(path, value),
            Setting::GroupDevice { path, .. } if !path.exists() => Ok(()),
            Setting::GroupDevice { path, device, .. } => fs::write(path, format!("{device} {value}")),
            Setting::IoScheduler { queue } => io_scheduler::write(queue, value),
            Setting::WakeupLatency => self.write_wakeup_latency(value),
            Setting::Sockets { sockets, value } => return self.sockets.set(sockets, value),
            Setting::Command { apply, undo } => {
                return user_command::run(if value == ON { apply } else { undo });
            }
            Setting::Load { process, .. } => match value == OFF && user_command::end_group(*process) {
                true => Ok(()),
                false => Err(io::Error::other("a process of it does not end")),
            },
        };
        written.map_err(|error| {
            let message = format_args!("{setting} does not become {value}: {error}");
            let remedy = match error.kind() {
                io::ErrorKind::PermissionDenied => "run as root, or with the capability that `--list` names",
                _ => "`tailwright experiment --list` says what this machine has",
            };
            OperationError::machine(message).hint(remedy)
        })
    }

    fn changed_by_others(&mut self, setting: &Setting) -> Result<Option<String>, OperationError> {
        let Setting::LaterThreads { process, known, aspect, inheritable, .. } = setting else {
            return Ok(None);
        };
        changed_later(*process, known, *aspect, inheritable)
            .map_err(|error| OperationError::machine(format_args!("{setting}: {error}")))
    }

    fn sockets_have(&mut self, sockets: &ServerSockets, value: &str) -> Result<Option<bool>, OperationError> {
        self.sockets.have(sockets, value)
    }

    fn take_back_from_sockets(
        &mut self,
        sockets: &ServerSockets,
    ) -> Result<SocketsTakenBack, OperationError> {
        self.sockets.take_back(sockets)
    }

    fn look_at_sockets(&mut self) -> Result<(), OperationError> {
        self.sockets.look()
    }

    fn socket_totals(&self) -> Option<SocketTotals> {
        self.sockets.totals()
    }
}

impl LinuxSettings {
    fn write_wakeup_latency(&mut self, value: &str) -> io::Result<()> {
        let microseconds: i32 = value.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // Closing the file withdraws our request; the old value is what the other programs request.
        self.wakeup_latency = None;
        if microseconds != i32::MAX && Some(value) != read_wakeup_latency().ok().as_deref() {
            let mut file = OpenOptions::new().write(true).open(WAKEUP_LATENCY)?;
            file.write_all(&microseconds.to_ne_bytes())?;
            self.wakeup_latency = Some(file);
        }
        Ok(())
    }
}

/// Retries a write that the kernel accepts only once per 100 ms without CAP_SYS_ADMIN.
fn patiently(mut write: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..ATTEMPTS_MAX {
        match write() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(ATTEMPT_INTERVAL),
            done => return done,
        }
    }
    write()
}

/// Reads the smallest latency that any program requests.
fn read_wakeup_latency() -> io::Result<String> {
    let mut bytes = [0; 4];
    File::open(WAKEUP_LATENCY)?.read_exact(&mut bytes)?;
    Ok(i32::from_ne_bytes(bytes).to_string())
}

fn read_file(path: &Path, form: FileForm, process: Option<ProcessIdentity>) -> io::Result<Option<String>> {
    if process.is_some_and(|process| !is_alive(process)) {
        return Ok(None);
    }
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(value_in(&text, form))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the text after a device number; `None` if the group is gone.
fn read_device(path: &Path, device: &str, absent: &str) -> io::Result<Option<String>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let line = text.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '));
    Ok(Some(line.unwrap_or(absent).trim().to_owned()))
}

fn value_in(text: &str, form: FileForm) -> String {
    let text = text.trim();
    match form {
        FileForm::Text => text.to_owned(),
        FileForm::CpuMask => cpu_list::mask(&cpu_list::parse_mask(text).unwrap_or_default()),
        FileForm::AutogroupNice => text.rsplit_once("nice ").map_or(text, |(_, nice)| nice).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_their_forms() {
        for (text, form, value) in [
            ("reno\n", FileForm::Text, "reno"),
            ("00000000,00000003\n", FileForm::CpuMask, "3"),
            ("/autogroup-30 nice -5\n", FileForm::AutogroupNice, "-5"),
        ] {
            assert_eq!(value_in(text, form), value, "{text}");
        }
    }
    #[test]
    fn what_the_kernel_puts_off_is_tried_again() {
        let mut refusals = 3;
        let put_off = || match refusals {
            0 => Ok(()),
            _ => {
                refusals -= 1;
                Err(io::ErrorKind::WouldBlock.into())
            }
        };
        patiently(put_off).expect("the kernel takes the fourth");
        let mut attempts = 0;
        let denied = || {
            attempts += 1;
            Err(io::ErrorKind::PermissionDenied.into())
        };
        assert!(patiently(denied).is_err());
        assert_eq!(attempts, 1, "no patience helps");
    }
}
