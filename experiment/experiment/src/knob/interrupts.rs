//! Knobs of a network device: the CPUs that process its packets.

use super::definition::{KnobTarget, lacking, number};
use super::files::{file, files_in};
use super::threads::{cpus_of, pinned};
use crate::cpu_list;
use crate::setting::{FileForm, PlannedChange, Setting};
use model::OperationError;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the device's name and its directory in sysfs.
fn device(target: &KnobTarget) -> Result<(&str, PathBuf), OperationError> {
    let name = target.device.as_deref().ok_or_else(|| {
        OperationError::input("it is about a network device: expected --device NAME")
            .hint("`ip link` shows them")
    })?;
    let path = Path::new("/sys/class/net").join(name);
    let is_name = !name.contains('/') && !name.starts_with('.');
    if is_name && path.exists() {
        return Ok((name, path));
    }
    Err(OperationError::input(format_args!("there is no network device '{name}'"))
        .hint("`ip link` shows them"))
}

pub(super) fn receive_steering(
    target: &KnobTarget,
    value: &str,
) -> Result<Vec<PlannedChange>, OperationError> {
    steering(target, "rps_cpus", &cpus_of(value)?)
}

pub(super) fn transmit_steering(
    target: &KnobTarget,
    value: &str,
) -> Result<Vec<PlannedChange>, OperationError> {
    let changes = steering(target, "xps_cpus", &cpus_of(value)?)?;
    // A device with a single queue has the file, but reading it fails.
    let is_readable = |change: &PlannedChange| match &change.setting {
        Setting::KernelFile { path, .. } => fs::read_to_string(path).is_ok(),
        _ => true,
    };
    if !changes.iter().all(is_readable) {
        return Err(lacking("the device has one transmit queue"));
    }
    Ok(changes)
}

fn steering(
    target: &KnobTarget,
    name: &str,
    cpus: &BTreeSet<usize>,
) -> Result<Vec<PlannedChange>, OperationError> {
    let (device, folder) = device(target)?;
    let queues = files_in(&folder.join("queues"), name);
    if queues.is_empty() {
        return Err(lacking(format_args!("{device} has no queues with {name}")));
    }
    queues.into_iter().map(|path| file(path, FileForm::CpuMask, cpu_list::mask(cpus))).collect()
}

pub(super) fn irq_affinity(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let cpus = cpu_list::text(&cpus_of(value)?);
    let (device, folder) = device(target)?;
    let irqs = irqs(device, &folder);
    if irqs.is_empty() {
        return Err(lacking(format_args!("{device} has no interrupts")));
    }
    irqs.iter()
        .map(|irq| file(format!("/proc/irq/{irq}/smp_affinity_list"), FileForm::Text, cpus.as_str()))
        .collect()
}

/// Returns the IRQ numbers of a device, from its own list or by name from `/proc/interrupts`.
fn irqs(device: &str, folder: &Path) -> Vec<u32> {
    let own = fs::read_dir(folder.join("device/msi_irqs")).into_iter().flatten().flatten();
    let mut irqs: Vec<u32> = own.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    if irqs.is_empty() {
        let bus = fs::canonicalize(folder.join("device")).ok();
        let bus = bus.as_ref().and_then(|path| path.file_name()?.to_str());
        let all = fs::read_to_string("/proc/interrupts").unwrap_or_default();
        irqs = irqs_named(&all, &[Some(device), bus].into_iter().flatten().collect::<Vec<_>>());
    }
    irqs.sort_unstable();
    irqs
}

/// Returns the IRQs with one of these names, alone or followed by `-` or `.` (`virtio0-input.0`). A line
/// reads `25:  0  12  IO-APIC  25-edge  virtio0-input.0`.
fn irqs_named(interrupts: &str, names: &[&str]) -> Vec<u32> {
    let of_device = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let action = rest.split_whitespace().next_back()?;
        let is_named = names.iter().any(|name| {
            action.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
        });
        if is_named { number.trim().parse().ok() } else { None }
    };
    interrupts.lines().filter_map(of_device).collect()
}

/// Reserves one CPU for the device, and moves the server to the others.
pub(super) fn interrupt_core(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let cpu: usize = number(value, &0, &8191)?;
    let mut changes = steering(target, "rps_cpus", &cpus_of(value)?)?;
    // Devices such as lo have no interrupts.
    changes.extend(irq_affinity(target, value).unwrap_or_default());
    changes.extend(pinned(&target.processes, |_, now| {
        now.iter().copied().filter(|other| *other != cpu).collect()
    })?);
    Ok(changes)
}

pub(super) fn threaded_napi(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let on: u8 = number(value, &0, &1)?;
    let (name, folder) = device(target)?;
    if !folder.join("device").exists() {
        return Err(lacking(format_args!("{name} has no NAPI of its own")));
    }
    Ok(vec![file(folder.join("threaded"), FileForm::Text, on.to_string())?])
}

#[cfg(test)]
mod tests {
    use super::irqs_named;

    #[test]
    fn interrupts_are_found_by_name() {
        let text = "      CPU0  CPU1\n 24: 5 6 IO-APIC 5-edge virtio1-input.0\n 25: 0 1 IO-APIC 6-edge virtio10\n\
                    \x20 26: 0 1 PCI-MSI 7-edge eth0\nNMI: 0 0 Non-maskable interrupts\n";
        assert_eq!(irqs_named(text, &["eth0", "virtio1"]), [24, 26]);
        assert!(irqs_named(text, &["eth1"]).is_empty());
    }
}
