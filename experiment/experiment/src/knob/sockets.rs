//! Knobs that are options of the server's open sockets.

use super::definition::KnobTarget;
use crate::linux::server_sockets;
use crate::open_sockets::SocketOption;
use crate::setting::{ON, PlannedChange, Setting};
use model::OperationError;
use std::fs;

pub(super) fn no_delay(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    if !["on", "off"].contains(&value) {
        return Err(OperationError::input("expected on or off"));
    }
    of_sockets(target, SocketOption::NoDelay, value)
}

pub(super) fn congestion_control(
    target: &KnobTarget,
    value: &str,
) -> Result<Vec<PlannedChange>, OperationError> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = fs::read_to_string(file).unwrap_or_default();
    // The kernel does not let BPF programs set `cdg`.
    let mut usable = available.split_whitespace().filter(|name| *name != "cdg");
    if !usable.any(|name| name == value) {
        return Err(OperationError::input(format_args!("expected one of: {}", available.trim())));
    }
    of_sockets(target, SocketOption::CongestionControl, value)
}

fn of_sockets(
    target: &KnobTarget,
    option: SocketOption,
    value: &str,
) -> Result<Vec<PlannedChange>, OperationError> {
    if target.processes.is_empty() || target.ports.is_empty() {
        return Err(OperationError::input("it is about open sockets of a server: expected --pid and --port"));
    }
    let change = |sockets| PlannedChange {
        setting: Setting::Sockets { sockets, value: value.to_owned() },
        value: ON.to_owned(),
    };
    Ok(server_sockets(&target.processes, &target.ports, option)?.into_iter().map(change).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_servers_are_checked() {
        let target = KnobTarget::default();
        for (plan, value, said) in [
            (no_delay(&target, "1"), "1", "expected on or off"),
            (no_delay(&target, "on"), "on", "expected --pid and --port"),
            (congestion_control(&target, "none such"), "none such", "expected one of"),
            (congestion_control(&target, ""), "", "expected one of"),
        ] {
            let error = plan.expect_err(value);
            assert!(error.message.contains(said), "{value}: {error}");
        }
    }
}
