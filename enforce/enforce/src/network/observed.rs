//! State of a host, read back from tc, ip and nft.
//!
//! The output of these programs after a change is saved, and later output is compared with it as text: an
//! unchanged line means an unchanged object. That needs no knowledge of how the programs round.

use super::filters::NFT_TABLE;
use super::htb::HANDLE;
use super::namespace::HostNamespace;
use crate::command::CommandRunner;
use model::OperationError;
use serde::Deserialize;
use std::collections::BTreeMap;

/// State of a host: the requested devices, and Tailwright's nftables table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ObservedHost {
    pub(super) devices: BTreeMap<String, ObservedDevice>,
    /// Output of nft for our table; empty if it does not exist.
    pub(super) nft: String,
}

/// Linux's default of a device's `gso_max_size` (bytes) and `gso_max_segs`.
const DEFAULT_PACKET_SIZES: (u64, u64) = (65536, 65535);

/// State of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ObservedDevice {
    /// Output of tc for the root queueing discipline; empty if there is none.
    pub(super) qdisc: String,
    /// Maximum packet size without the link-layer header, bytes.
    pub(super) mtu: u64,
    /// Maximum size of a packet passed to the device for segmentation, bytes.
    pub(super) gso_max_size: u64,
    /// Maximum number of segments of such a packet.
    pub(super) gso_max_segs: u64,
    /// Kernel's defaults for this device: `gso_max_size` and `gso_max_segs`.
    pub(super) default_packet_sizes: (u64, u64),
    /// Output of tc for each class of our tree, by number.
    pub(super) classes: BTreeMap<u16, String>,
    /// Output of tc for the filters of our tree.
    pub(super) filters: String,
}

impl ObservedDevice {
    /// Returns a device without configuration, as dry runs for other machines assume it.
    pub(super) fn unconfigured() -> Self {
        let (gso_max_size, gso_max_segs) = DEFAULT_PACKET_SIZES;
        let default_packet_sizes = DEFAULT_PACKET_SIZES;
        Self { mtu: 1500, gso_max_size, gso_max_segs, default_packet_sizes, ..Self::default() }
    }

    /// Returns true if the root of the device is our tree.
    pub(super) fn is_ours(&self) -> bool {
        self.qdisc.starts_with(&format!("qdisc htb {HANDLE} root"))
    }

    /// Returns true if others have configured the device. Disciplines that the kernel installs itself have
    /// the handle `0:`.
    pub(super) fn is_foreign(&self) -> bool {
        let handle = self.qdisc.split_whitespace().nth(2);
        !self.is_ours() && handle.is_some_and(|handle| handle != "0:")
    }

    /// Returns true if packets are limited to single frames, a setting that only Tailwright makes.
    pub(super) fn has_our_packet_sizes(&self) -> bool {
        (self.gso_max_size, self.gso_max_segs) == (self.frame_bytes_max(), 1)
    }

    /// Returns the size of the largest frame, bytes.
    pub(super) fn frame_bytes_max(&self) -> u64 {
        const ETHERNET_HEADER: u64 = 14;
        self.mtu + ETHERNET_HEADER
    }

    /// Returns the preferences (ranks) of the filters of our tree, ascending.
    pub(super) fn filter_preferences(&self) -> Vec<u16> {
        let mut preferences: Vec<u16> = self.filters.lines().filter_map(preference).collect();
        preferences.sort_unstable();
        preferences.dedup();
        preferences
    }
}

/// Parses the number after `pref` in the first line of a filter, such as `filter protocol ip pref 13 u32
/// chain 0`.
fn preference(line: &str) -> Option<u16> {
    let mut words = line.strip_prefix("filter ")?.split_whitespace();
    words.find(|word| *word == "pref")?;
    words.next()?.parse().ok()
}

/// The fields used here of `ip -json link show`.
#[derive(Deserialize)]
struct LinkDescription {
    ifname: String,
    mtu: u64,
    #[serde(default)]
    gso_max_size: u64,
    #[serde(default)]
    gso_max_segs: u64,
    /// Maximum that the device itself can segment; older kernels do not report it.
    #[serde(default)]
    tso_max_size: Option<u64>,
    #[serde(default)]
    tso_max_segs: Option<u64>,
}

impl LinkDescription {
    /// Returns the kernel's defaults, limited to the capabilities of the device.
    fn default_packet_sizes(&self) -> (u64, u64) {
        let (size, segments) = DEFAULT_PACKET_SIZES;
        (size.min(self.tso_max_size.unwrap_or(size)), segments.min(self.tso_max_segs.unwrap_or(segments)))
    }
}

fn list_links(
    run: &mut dyn CommandRunner,
    namespace: &HostNamespace,
) -> Result<Vec<LinkDescription>, OperationError> {
    let command = namespace.ip("-details -json link show");
    let printed = run.run(&command)?;
    // Some versions print an empty object for a device without attributes.
    serde_json::from_str(&printed.replace("{},", "")).map_err(|error| {
        OperationError::machine(format_args!("`{command}` printed unexpected output: {error}"))
            .hint("use iproute2 5.15 or later")
    })
}

/// Reads the state of the named devices.
///
/// # Errors
/// An input error names a device that does not exist; others are failures of a program.
pub(super) fn observe_devices(
    run: &mut dyn CommandRunner,
    namespace: &HostNamespace,
    names: &[&str],
) -> Result<BTreeMap<String, ObservedDevice>, OperationError> {
    let links = list_links(run, namespace)?;
    let mut observed = BTreeMap::new();
    for name in names {
        let Some(link) = links.iter().find(|link| link.ifname == *name) else {
            let known: Vec<&str> = links.iter().map(|link| link.ifname.as_str()).collect();
            return Err(OperationError::input(format_args!("there is no device {name}"))
                .hint(format_args!("the devices here are {}", known.join(", "))));
        };
        let mut device = ObservedDevice {
            mtu: link.mtu,
            gso_max_size: link.gso_max_size,
            gso_max_segs: link.gso_max_segs,
            default_packet_sizes: link.default_packet_sizes(),
            ..ObservedDevice::default()
        };
        let qdiscs = run.run(&namespace.tc(&format!("qdisc show dev {name}")))?;
        device.qdisc =
            qdiscs.lines().find(|line| line.contains(" root ")).unwrap_or_default().trim().to_owned();
        if device.is_ours() {
            let classes = run.run(&namespace.tc(&format!("-details class show dev {name}")))?;
            device.classes = parse_classes(&classes);
            device.filters = run.run(&namespace.tc(&format!("filter show dev {name} parent {HANDLE}")))?;
        }
        observed.insert((*name).to_owned(), device);
    }
    Ok(observed)
}

/// Returns all devices of a host whose root is our tree, including those without a saved state.
pub(super) fn devices_with_our_tree(
    run: &mut dyn CommandRunner,
    namespace: &HostNamespace,
) -> Result<Vec<String>, OperationError> {
    let printed = run.run(&namespace.tc("qdisc show"))?;
    let mut devices = Vec::new();
    for line in printed.lines() {
        let Some(rest) = line.strip_prefix(&format!("qdisc htb {HANDLE} dev ")) else { continue };
        devices.extend(rest.split_once(" root").map(|(name, _)| name.to_owned()));
    }
    Ok(devices)
}

/// Parses the classes of our tree by number, from lines such as `class htb 7a17:1f parent 7a17:8 …`.
fn parse_classes(printed: &str) -> BTreeMap<u16, String> {
    printed.lines().filter_map(|line| Some((class_number(line)?, line.trim().to_owned()))).collect()
}

fn class_number(line: &str) -> Option<u16> {
    let name = line.strip_prefix("class htb ")?.split_whitespace().next()?;
    u16::from_str_radix(name.strip_prefix(HANDLE)?, 16).ok()
}

/// Returns nft's output for our table; empty if it does not exist.
pub(super) fn observe_nft_table(
    run: &mut dyn CommandRunner,
    namespace: &HostNamespace,
) -> Result<String, OperationError> {
    let tables = run.run(&namespace.nft("list tables inet"))?;
    if tables.lines().any(|line| line.trim() == format!("table {NFT_TABLE}")) {
        return run.run(&namespace.nft(&format!("list table {NFT_TABLE}")));
    }
    Ok(String::new())
}

/// Returns the number of bytes queued in these classes of a device.
pub(super) fn backlog_bytes(
    run: &mut dyn CommandRunner,
    namespace: &HostNamespace,
    device: &str,
    classes: &[u16],
) -> Result<u64, OperationError> {
    let printed = run.run(&namespace.tc(&format!("-statistics class show dev {device}")))?;
    let mut is_counted = false;
    let mut total = 0;
    for line in printed.lines() {
        if line.starts_with("class ") {
            is_counted = class_number(line).is_some_and(|number| classes.contains(&number));
        } else if let Some(rest) = line.trim().strip_prefix("backlog ").filter(|_| is_counted) {
            total += rest.split_whitespace().next().map_or(0, parse_bytes);
        }
    }
    Ok(total)
}

/// Parses a size as tc prints it, such as `1514b`, `12Kb` or `3Mb`, into bytes.
fn parse_bytes(text: &str) -> u64 {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "Kb" => 1024,
        "Mb" => 1024 * 1024,
        _ => 1,
    };
    digits.parse::<u64>().unwrap_or(0) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handle_tells_who_configured_a_device() {
        for (qdisc, ours, foreign) in [
            ("qdisc noqueue 0: root refcnt 2", false, false),
            ("qdisc mq 0: root", false, false),
            ("", false, false),
            ("qdisc htb 7a17: root refcnt 3 r2q 10 default 0x2", true, false),
            ("qdisc htb 1: root refcnt 3 r2q 10 default 0x2", false, true),
            ("qdisc fq 8001: root refcnt 2", false, true),
        ] {
            let device = ObservedDevice { qdisc: qdisc.into(), ..ObservedDevice::default() };
            assert_eq!((device.is_ours(), device.is_foreign()), (ours, foreign), "{qdisc}");
        }
    }

    #[test]
    fn output_of_tc_is_parsed() {
        let printed = "class htb 7a17:1 root rate 1Kbit \nclass htb 7a17:1f parent 7a17:1 prio 2 \nclass htb 1:5 root\n";
        let parsed = parse_classes(printed);
        assert_eq!(parsed.keys().copied().collect::<Vec<_>>(), [1, 0x1f]);
        assert_eq!(parsed[&0x1f], "class htb 7a17:1f parent 7a17:1 prio 2");
        let filters = "filter protocol ip pref 13 u32 chain 0 \n  match 0a000001/ffffffff at 12\nfilter protocol arp pref 11 u32";
        assert_eq!(
            ObservedDevice { filters: filters.into(), ..ObservedDevice::default() }.filter_preferences(),
            [11, 13]
        );
        assert_eq!(["0b", "1514b", "12Kb", "3Mb"].map(parse_bytes), [0, 1514, 12288, 3_145_728]);
    }
}
