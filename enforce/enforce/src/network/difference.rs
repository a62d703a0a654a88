//! The difference between the observed state of a host and its configuration: the fewest steps, in an
//! order that loses no packet.
//!
//! New classes and filters are added first, then nftables rules change in one transaction. Only then are
//! unreferenced classes deleted, after they have sent their waiting packets. Classes change in place. The
//! only loss: packets in a device's queue when it is taken over for the first time or restored.

use super::configuration::{DeviceConfiguration, HostConfiguration};
use super::filters::{self, FilterReplacement};
use super::htb::{DEFAULT, HANDLE, class_name};
use super::namespace::HostNamespace;
use super::observed::{ObservedDevice, ObservedHost};
use super::state::{AppliedConfiguration, OriginalDevice};
use crate::command::SystemCommand;
use std::collections::BTreeMap;
use std::fmt;

/// An address to which no packet is ever sent.
const UNUSED_ADDRESS: &str = "100::7a17/128";

/// A step of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangeStep {
    /// Run a program of the system.
    Run(SystemCommand),
    /// Wait until these classes of the device have sent their queued packets.
    Drain {
        /// The name of the device.
        device: String,
        /// The numbers of the classes.
        classes: Vec<u16>,
    },
}

impl fmt::Display for ChangeStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(command) => write!(f, "{command}"),
            Self::Drain { device, classes } => {
                let names: Vec<String> = classes.iter().map(|number| class_name(*number)).collect();
                write!(f, "# until {} on {device} are empty, for 2 s at most", names.join(", "))
            }
        }
    }
}

/// Returns the steps from the observed state to the configuration `target`.
///
/// `applied` is the configuration of an earlier run and its printed form, so that unchanged objects are
/// left alone. `original` has the settings of devices that `target` no longer contains.
pub(super) fn steps_between(
    namespace: &HostNamespace,
    observed: &ObservedHost,
    applied: &AppliedConfiguration,
    target: &HostConfiguration,
    original: &BTreeMap<String, OriginalDevice>,
) -> Vec<ChangeStep> {
    let mut steps = Vec::new();
    let mut before = Vec::new();
    let mut after = Vec::new();
    let mut obsolete = Vec::new();
    let mut has_new_sizes = false;
    for (name, device) in &target.devices {
        let change = DeviceChange::new(name, &observed.devices[name], applied, device);
        has_new_sizes |= change.gso.is_some();
        steps.extend(change.gso.map(|arguments| ChangeStep::Run(namespace.ip(&arguments))));
        before.extend(change.before);
        after.extend(change.after);
        obsolete.extend((!change.obsolete.is_empty()).then_some((name, change.obsolete)));
    }
    if has_new_sizes {
        steps.extend(renew_routes(namespace, target.has_ipv6));
    }
    steps.extend(batch(namespace, &before));
    steps.extend(nft_step(namespace, observed, applied, target));
    steps.extend(batch(namespace, &after));
    for (device, classes) in obsolete {
        let mut lines = Vec::new();
        for class in &classes {
            lines.push(format!("class del dev {device} classid {}", class_name(*class)));
        }
        steps.push(ChangeStep::Drain { device: device.clone(), classes });
        steps.extend(batch(namespace, &lines));
    }
    for (name, original) in original.iter().filter(|(name, _)| !target.devices.contains_key(*name)) {
        if let Some(observed) = observed.devices.get(name) {
            steps.extend(restore(namespace, name, observed, original));
        }
    }
    steps
}

fn batch(namespace: &HostNamespace, lines: &[String]) -> Option<ChangeStep> {
    (!lines.is_empty()).then(|| ChangeStep::Run(namespace.tc_batch(lines)))
}

/// Returns the step that changes our nftables table, unless it is already as desired.
fn nft_step(
    namespace: &HostNamespace,
    observed: &ObservedHost,
    applied: &AppliedConfiguration,
    target: &HostConfiguration,
) -> Option<ChangeStep> {
    let is_present = !observed.nft.is_empty();
    let is_as_applied = observed.nft == applied.nft && applied.target.nft == target.nft;
    if (target.nft.is_empty() && !is_present) || (is_present && is_as_applied) {
        return None;
    }
    let script = if target.nft.is_empty() { filters::nft_script("") } else { target.nft.clone() };
    Some(ChangeStep::Run(namespace.nft("-f -").reading(script)))
}

/// The change of a device.
#[derive(Debug, Default)]
struct DeviceChange {
    /// The arguments for ip, where the size of packets changes.
    gso: Option<String>,
    /// Lines for tc before nftables directs packets to other classes.
    before: Vec<String>,
    /// The lines for tc afterwards.
    after: Vec<String>,
    /// The classes to delete in the end, children before parents.
    obsolete: Vec<u16>,
}

impl DeviceChange {
    fn new(
        name: &str,
        observed: &ObservedDevice,
        applied: &AppliedConfiguration,
        target: &DeviceConfiguration,
    ) -> Self {
        let mut change = Self::default();
        if (observed.gso_max_size, observed.gso_max_segs) != (target.packet_bytes, 1) {
            change.gso = Some(gso_arguments(name, target.packet_bytes, 1));
        }
        let is_ours = observed.is_ours();
        if !is_ours {
            change
                .before
                .push(format!("qdisc replace dev {name} root handle {HANDLE} htb default {DEFAULT}"));
        }
        let configured = applied.target.devices.get(name).filter(|_| is_ours);
        let printed = applied.classes.get(name);
        for (number, class) in &target.classes {
            // A class is left alone if we configured it so and it still prints as it did then.
            let is_same = configured.is_some_and(|device| device.classes.get(number) == Some(class))
                && observed
                    .classes
                    .get(number)
                    .is_some_and(|now| printed.and_then(|classes| classes.get(number)) == Some(now));
            if !is_same {
                change.before.push(class.line(name, *number));
            }
        }
        let has_same_filters = configured.is_some_and(|device| device.filters == target.filters)
            && applied.filters.get(name) == Some(&observed.filters);
        if !has_same_filters {
            let present = observed.filter_preferences();
            let replacement = FilterReplacement::new(name, &target.filters, &present);
            change.before.extend(replacement.add);
            change.after = replacement.delete;
        }
        // In a chain every class has a larger number than its parent.
        let numbers = observed.classes.keys().rev();
        change.obsolete = numbers.filter(|number| !target.classes.contains_key(number)).copied().collect();
        change
    }
}

/// Returns the steps after which open connections look up their routes again, and with them the packet sizes of
/// their devices. The kernel has a command for IPv4 only; for IPv6 it forgets all routes when an address changes, so
/// one from the discard prefix (RFC 6666) comes and goes.
fn renew_routes(namespace: &HostNamespace, has_ipv6: bool) -> Vec<ChangeStep> {
    let mut steps = vec![ChangeStep::Run(namespace.ip("route flush cache"))];
    if has_ipv6 {
        for change in ["replace", "del"] {
            steps.push(ChangeStep::Run(namespace.ip(&format!("address {change} {UNUSED_ADDRESS} dev lo"))));
        }
    }
    steps
}

fn gso_arguments(device: &str, size: u64, segments: u64) -> String {
    format!("link set dev {device} gso_max_size {size} gso_max_segs {segments}")
}

/// Returns the steps that restore a device to its state before the first change.
fn restore(
    namespace: &HostNamespace,
    name: &str,
    observed: &ObservedDevice,
    original: &OriginalDevice,
) -> Vec<ChangeStep> {
    let mut steps = Vec::new();
    if observed.is_ours() {
        // When a root is deleted, the kernel installs its own queueing discipline.
        steps.push(ChangeStep::Run(namespace.tc(&format!("qdisc del dev {name} root"))));
    }
    if (observed.gso_max_size, observed.gso_max_segs) != (original.gso_max_size, original.gso_max_segs) {
        let arguments = gso_arguments(name, original.gso_max_size, original.gso_max_segs);
        steps.push(ChangeStep::Run(namespace.ip(&arguments)));
    }
    steps
}
