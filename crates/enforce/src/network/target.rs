//! What a host should have, in the words of tc and nftables; pure data, kept in the state file.

use super::classify::{self, Filter};
use super::found::FoundDevice;
use super::tree::{self, Class, Slots};
use super::wanted::WantedHost;
use crate::deployment::Filters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a host should have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Target {
    /// By device.
    pub(super) devices: BTreeMap<String, DeviceTarget>,
    /// The script for nft; empty where nothing of it is wanted.
    pub(super) nft: String,
}

/// What a device should have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeviceTarget {
    pub(super) classes: BTreeMap<u16, Class>,
    pub(super) filters: Vec<Filter>,
    /// Largest frame; larger packets for the device to cut up are not built, or the tree would serve 64 kB at once.
    pub(super) packet_bytes: u64,
}

/// The target of a host, whose devices are as found; lanes keep their numbers in `slots`, by device. Also warnings.
pub(super) fn target(
    wanted: &WantedHost,
    found: &BTreeMap<String, FoundDevice>,
    slots: &mut BTreeMap<String, Slots>,
) -> (Target, Vec<String>) {
    let by_nft = wanted.host.filters == Filters::Nft && !wanted.host.switch;
    let (mut target, mut rules, mut warnings) = (Target::default(), String::new(), Vec::new());
    for device in &wanted.devices {
        let packet_bytes = found[&device.name].packet_bytes();
        let tree = tree::tree(device, packet_bytes, slots.entry(device.name.clone()).or_default());
        warnings.extend(tree.warnings.iter().map(|warning| format!("{} {warning}", wanted.host.name)));
        let mut filters = classify::control_filters();
        if by_nft {
            rules += &classify::nft_rules(&device.name, &device.lanes, &tree.leaves);
        } else {
            filters.extend(classify::flow_filters(&device.lanes, &tree.leaves));
        }
        target
            .devices
            .insert(device.name.clone(), DeviceTarget { classes: tree.classes, filters, packet_bytes });
    }
    if !rules.is_empty() {
        target.nft = classify::nft_script(&rules);
    }
    (target, warnings)
}
