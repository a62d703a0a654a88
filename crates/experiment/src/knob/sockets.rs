//! Knobs that are options of the sockets that a server has open.

use super::definition::{KnobTarget, lacking, number};
use crate::linux::sockets;
use crate::setting::{ON, PlannedChange, ProcessIdentity, Setting, SocketOption};
use model::OperationError;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;
use std::io;

pub(super) fn no_delay(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let on: u8 = number(value, &0, &1)?;
    of_sockets(target, SocketOption::NoDelay, &on.to_string())
}

pub(super) fn congestion_control(
    target: &KnobTarget,
    value: &str,
) -> Result<Vec<PlannedChange>, OperationError> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = fs::read_to_string(file).unwrap_or_default();
    if !available.split_whitespace().any(|name| name == value) {
        return Err(OperationError::input(format_args!("expected one of: {}", available.trim())));
    }
    of_sockets(target, SocketOption::CongestionControl, value)
}

pub(super) fn busy_poll(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let microseconds: u32 = number(value, &0, &100_000)?;
    of_sockets(target, SocketOption::BusyPoll, &microseconds.to_string())
}

/// A change for each socket, and one for those that begin later. They inherit from the socket that listens, so that those
/// that begin later come first: whatever begins from now on, there is a record that covers it.
fn of_sockets(
    target: &KnobTarget,
    option: SocketOption,
    value: &str,
) -> Result<Vec<PlannedChange>, OperationError> {
    if target.processes.is_empty() || target.ports.is_empty() {
        return Err(OperationError::input("it is about sockets of a server: expected --pid and --port"));
    }
    let (mut changes, mut of_each, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for process in &target.processes {
        let mut found =
            sockets(*process, &target.ports, option).map_err(|error| refused(*process, &error))?;
        // Processes may share sockets.
        found.retain(|socket| !known.contains(&socket.identity.cookie));
        known.extend(found.iter().map(|socket| socket.identity.cookie));
        of_each.push((*process, found));
    }
    if known.is_empty() && option != SocketOption::CongestionControl {
        return Err(no_socket(&target.ports));
    }
    let everywhere = || of_each.iter().flat_map(|(_, found)| found);
    let connection = everywhere().find(|socket| !socket.is_listening);
    let before = connection.or_else(|| everywhere().next()).map(|socket| socket.value.clone());
    let before = before.or_else(default_congestion_control).unwrap_or_default();
    for (process, found) in &of_each {
        let later = Setting::LaterSockets {
            process: *process,
            ports: target.ports.iter().copied().collect(),
            known: known.clone(),
            option,
            before: before.clone(),
            after: value.to_owned(),
        };
        changes.push(PlannedChange { setting: later, value: ON.to_owned() });
        changes.extend(found.iter().map(|socket| PlannedChange {
            setting: Setting::Socket { socket: socket.identity, option },
            value: value.to_owned(),
        }));
    }
    Ok(changes)
}

/// What connections begin with.
fn default_congestion_control() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(text.trim().to_owned())
}

fn no_socket(ports: &BTreeSet<u16>) -> OperationError {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    lacking(format_args!("no process of --pid has such a socket at port {}", ports.join(",")))
}

/// Names what is missing where sockets of a process may not be reached: to list descriptors (`/proc/PID/fd` is for its
/// owner), or to attach (`PTRACE_MODE_ATTACH` in ptrace(2)).
fn refused(process: ProcessIdentity, error: &io::Error) -> OperationError {
    let about = format!("sockets of process {}: {error}", process.id);
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::ACCESS) => OperationError::machine(format_args!(
            "{about}: it is another user's, which takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
        ))
        .hint("run as root, or `setpriv --ambient-caps +sys_ptrace,+dac_read_search`"),
        Some(Errno::PERM) => {
            let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
            OperationError::machine(format_args!("{about}: {}", missing_to_attach(scope.trim())))
                .hint("run as root, or `setpriv --ambient-caps +sys_ptrace`")
        }
        Some(Errno::NOSYS) => lacking(format_args!("{about}: it takes Linux 5.6 (pidfd_getfd)")),
        _ => lacking(about),
    }
}

fn missing_to_attach(ptrace_scope: &str) -> String {
    match ptrace_scope {
        "" | "0" => "it has more rights than this process, which takes CAP_SYS_PTRACE".to_owned(),
        "3" => "nobody may reach them (kernel.yama.ptrace_scope is 3)".to_owned(),
        scope => format!("it takes CAP_SYS_PTRACE (kernel.yama.ptrace_scope is {scope})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn what_is_missing_is_named() {
        let process = ProcessIdentity { id: 7, start: 1 };
        let denied = refused(process, &io::Error::from_raw_os_error(1)).message;
        assert!(denied.contains("process 7") && denied.contains("CAP_SYS_PTRACE"), "{denied}");
        let another = refused(process, &io::Error::from_raw_os_error(13)).message;
        assert!(another.contains("CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"), "{another}");
        let old = refused(process, &io::Error::from_raw_os_error(38)).message;
        assert!(old.contains("Linux 5.6"), "{old}");
        assert!(missing_to_attach("1").contains("kernel.yama.ptrace_scope is 1"));
        assert!(missing_to_attach("3").contains("nobody"));
        assert!(no_socket(&[80, 443].into()).message.ends_with("at port 80,443"));
    }

    #[test]
    fn sockets_that_begin_later_come_first() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let process = crate::linux::identity(std::process::id()).expect("this process runs");
        let ports = BTreeSet::from([listener.local_addr().expect("it is bound").port()]);
        let mut target = KnobTarget { processes: vec![process], ports, ..KnobTarget::default() };
        let changes = no_delay(&target, "1").unwrap_or_else(|error| panic!("{error}"));
        let [PlannedChange { setting: Setting::LaterSockets { known, before, .. }, .. }, one] = &changes[..]
        else {
            panic!("{changes:?}")
        };
        assert!(
            matches!(&one.setting, Setting::Socket { socket, .. } if known == &[socket.cookie]),
            "{one:?}"
        );
        assert_eq!((before.as_str(), one.value.as_str()), ("0", "1"));
        // Congestion control of a listening socket is left alone.
        let default = default_congestion_control().expect("it can be read");
        let changes = congestion_control(&target, &default).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            matches!(&changes[..], [PlannedChange { setting: Setting::LaterSockets { .. }, .. }]),
            "{changes:?}"
        );
        // The same process twice has one socket.
        target.processes.push(process);
        let changes = no_delay(&target, "1").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(changes.len(), 3, "{changes:?}");
        drop(listener);
        assert!(no_delay(&target, "1").is_err() && no_delay(&target, "2").is_err());
    }
}
