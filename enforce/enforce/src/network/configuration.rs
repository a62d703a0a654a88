//! The configuration of a host in the words of tc and nftables. It is pure data, and part of the state file.

use super::desired::DesiredHost;
use super::filters::{self, U32Filter};
use super::htb::{ClassNumbers, HtbClass, HtbTree};
use super::observed::ObservedDevice;
use crate::deployment::PacketFilters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Configuration of a host; the default configures nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct HostConfiguration {
    /// Shaped devices, by name.
    pub(super) devices: BTreeMap<String, DeviceConfiguration>,
    /// Script for nft; empty if the host needs no table.
    pub(super) nft: String,
    /// Traffic that leaves this host has IPv6 addresses; of a switch only that of others has.
    #[serde(default)]
    pub(super) has_ipv6: bool,
}

/// The configuration of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeviceConfiguration {
    pub(super) classes: BTreeMap<u16, HtbClass>,
    pub(super) filters: Vec<U32Filter>,
    /// Maximum frame size in bytes. It limits the kernel's segmentation offload: otherwise the tree would
    /// serve 64 kB at once.
    pub(super) packet_bytes: u64,
}

impl HostConfiguration {
    /// Creates the configuration for the desired state of a host, with warnings about limits of tc.
    /// Traffic classes keep their `numbers`, by device.
    pub(super) fn new(
        desired: &DesiredHost,
        observed: &BTreeMap<String, ObservedDevice>,
        numbers: &mut BTreeMap<String, ClassNumbers>,
    ) -> (Self, Vec<String>) {
        let by_nft = desired.host.filters == PacketFilters::Nft && !desired.host.switch;
        let mut configuration = Self::default();
        let mut rules = String::new();
        let mut warnings = Vec::new();
        for device in &desired.devices {
            let packet_bytes = observed[&device.name].frame_bytes_max();
            let numbers = numbers.entry(device.name.clone()).or_default();
            let tree = HtbTree::new(device, packet_bytes, numbers);
            warnings.extend(tree.warnings.iter().map(|warning| format!("{} {warning}", desired.host.name)));
            let mut filters = filters::control_filters();
            if by_nft {
                rules += &filters::nft_rules(&device.name, &device.classes, &tree.leaves);
            } else {
                filters.extend(filters::class_filters(&device.classes, &tree.leaves));
            }
            configuration.devices.insert(
                device.name.clone(),
                DeviceConfiguration { classes: tree.classes, filters, packet_bytes },
            );
        }
        let mut matches =
            desired.devices.iter().flat_map(|device| &device.classes).flat_map(|class| &class.matches);
        configuration.has_ipv6 = !desired.host.switch && matches.any(|packets| packets.ipv6);
        if !rules.is_empty() {
            configuration.nft = filters::nft_script(&rules);
        }
        (configuration, warnings)
    }
}
