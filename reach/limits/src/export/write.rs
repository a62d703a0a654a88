//! Texts of the formats from rows: whatever a reader of the same format takes back.

use super::settings::ExportSettings;
use crate::limit::{Direction, FoundLimit, LimitKind, LimitUnit};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    /// Path below the folder of the export.
    pub name: String,
    pub text: String,
}

/// Returns the files of an export.
pub(crate) fn files(rows: &[FoundLimit], settings: &ExportSettings) -> Vec<ExportedFile> {
    let mut tenants: Vec<(&str, Vec<&FoundLimit>)> = Vec::new();
    for row in rows {
        match tenants.last_mut().filter(|(tenant, _)| *tenant == row.tenant) {
            Some((_, rows)) => rows.push(row),
            None => tenants.push((&row.tenant, vec![row])),
        }
    }
    match settings.format.name {
        "vac" => vec![attribute_classes(&tenants, settings)],
        "tc" => vec![classes(&tenants, settings)],
        name => tenants.iter().map(|(tenant, rows)| file_of(name, tenant, rows, settings)).collect(),
    }
}

fn file_of(format: &str, tenant: &str, rows: &[&FoundLimit], settings: &ExportSettings) -> ExportedFile {
    let device = &settings.device;
    match format {
        "cgroup" => {
            let mut text = device.clone();
            for row in rows {
                let direction = if row.direction == Direction::Read { 'r' } else { 'w' };
                let unit = if row.unit == LimitUnit::BytesPerS { "bps" } else { "iops" };
                let _ = write!(text, " {direction}{unit}={}", row.value);
            }
            ExportedFile { name: format!("{tenant}/io.max"), text: text + "\n" }
        }
        "systemd" => {
            let mut text = "[Service]\n".to_owned();
            for row in rows {
                let direction = if row.direction == Direction::Read { "Read" } else { "Write" };
                let unit = if row.unit == LimitUnit::BytesPerS { "Bandwidth" } else { "IOPS" };
                let _ = writeln!(text, "IO{direction}{unit}Max={device} {}", row.value);
            }
            ExportedFile { name: format!("{tenant}.service.d/50-tailwright.conf"), text }
        }
        _ => {
            let mut drive = format!("file={},format=raw,if=none,id=disk0", device.replace(',', ",,"));
            for row in rows {
                let unit = if row.unit == LimitUnit::BytesPerS { "bps" } else { "iops" };
                let _ = write!(drive, ",throttling.{unit}-total={}", row.value);
                let burst = row.burst.unwrap_or(0.0);
                // Without a burst rate the bucket is a tenth of a second.
                if burst > 0.1 * row.value {
                    let _ = write!(drive, ",throttling.{unit}-total-max={burst}");
                }
            }
            let text = format!("qemu-system-x86_64 -name guest={tenant} -drive '{drive}'\n");
            ExportedFile { name: format!("{tenant}.args"), text }
        }
    }
}

fn attribute_classes(tenants: &[(&str, Vec<&FoundLimit>)], settings: &ExportSettings) -> ExportedFile {
    let mut members: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let name_of = |tenant: &str, rows: &[&FoundLimit]| match rows[0].key.as_str() {
        "" => tenant.to_lowercase(),
        class => class.to_owned(),
    };
    for (tenant, rows) in tenants {
        members.entry(name_of(tenant, rows)).or_default().push(tenant);
    }
    let mut text = String::new();
    let mut written = BTreeSet::new();
    for (tenant, rows) in tenants {
        let name = name_of(tenant, rows);
        if !written.insert(name.clone()) {
            continue;
        }
        let _ = writeln!(text, "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata:");
        let _ = writeln!(text, "  name: tailwright-{name}\n  annotations:");
        let _ = writeln!(text, "    tailwright/workloads: \"{}\"", members[&name].join(" "));
        let _ = writeln!(text, "driverName: {}\nparameters:", settings.driver.name);
        for row in rows {
            let is_key = |key: &&super::formats::DriverKey| key.0 == row.direction && key.1 == row.unit;
            if let Some((_, _, key, step)) = settings.driver.keys.iter().find(is_key) {
                let _ = writeln!(text, "  {key}: \"{}\"", row.value / step);
            }
        }
    }
    ExportedFile { name: "volume-attributes-classes.yaml".to_owned(), text }
}

fn classes(tenants: &[(&str, Vec<&FoundLimit>)], settings: &ExportSettings) -> ExportedFile {
    let device = &settings.device;
    let mut text = format!("tc qdisc replace dev {device} root handle 1: htb default 0\n");
    for (number, (tenant, rows)) in tenants.iter().enumerate() {
        let Some(row) = rows.iter().find(|row| row.kind == LimitKind::Reservation) else { continue };
        let burst = row.burst.unwrap_or(0.0);
        let minor = number + 10;
        let rate = row.value;
        let priority = row.priority.unwrap_or(0).min(7);
        let _ = writeln!(text, "# {tenant}: packets with the mark {minor}");
        let _ = writeln!(
            text,
            "tc class replace dev {device} parent 1: classid 1:{minor:x} htb rate {rate}bps ceil {rate}bps \
             burst {burst}b cburst {burst}b prio {priority} quantum 1514"
        );
        let _ = writeln!(
            text,
            "tc filter replace dev {device} parent 1: protocol all prio 1 handle {minor} fw classid 1:{minor:x}"
        );
    }
    ExportedFile { name: format!("{device}.sh"), text }
}
