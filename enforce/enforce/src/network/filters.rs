//! Assignment of packets to classes: nftables rules for a host, `u32` filters of tc for a device.
//!
//! nftables sets a packet's priority to the class and its DSCP to the mark; all rules change in one
//! transaction. A packet that no rule matches loses its mark, or it would buy priority at switches.
//! Filters of tc have no transaction: new ones are added behind the old ones, then the old ones are
//! deleted.

use super::desired::TrafficClass;
use super::htb::{CONTROL, HANDLE, class_name};
use super::packet_match::PacketMatch;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt::Write;

/// Family and name of our nftables table.
pub(super) const NFT_TABLE: &str = "inet tailwright";

/// Preferences of tc filters are generation × 10 + rank; generations 1 and 2 alternate.
const GENERATION: u16 = 10;

/// A `u32` filter of tc, without its preference (its place in the order).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct U32Filter {
    /// The protocol in the language of tc: `arp`, `ip` or `ipv6`.
    protocol: String,
    /// The place among the filters of a generation, below 10. tc demands one protocol for filters of one preference.
    rank: u16,
    matches: String,
    class: u16,
}

impl U32Filter {
    fn line(&self, device: &str, generation: u16) -> String {
        let Self { protocol, rank, matches, class } = self;
        let preference = generation * GENERATION + rank;
        format!(
            "filter add dev {device} parent {HANDLE} protocol {protocol} pref {preference} u32 {matches} flowid {}",
            class_name(*class)
        )
    }
}

/// Returns the filters for ARP and neighbour discovery (ICMPv6 132–137; 132 ends a multicast membership).
pub(super) fn control_filters() -> Vec<U32Filter> {
    // ICMPv6 is protocol 58, and its type is the first byte behind the 40 bytes of the IPv6 header: 132–135 and 136–137.
    let icmpv6 = [("0x84", "0xfc"), ("0x88", "0xfe")];
    let mut filters = vec![control_filter("arp", 1, "match u32 0 0".into())];
    for (value, mask) in icmpv6 {
        let matches = format!("match ip6 protocol 58 0xff match u8 {value} {mask} at 40");
        filters.push(control_filter("ipv6", 2, matches));
    }
    filters
}

fn control_filter(protocol: &str, rank: u16, matches: String) -> U32Filter {
    U32Filter { protocol: protocol.into(), rank, matches, class: CONTROL }
}

/// Returns the filters for traffic classes with these leaves of the tree.
pub(super) fn class_filters(classes: &[TrafficClass], leaves: &[u16]) -> Vec<U32Filter> {
    let mut filters = Vec::new();
    for (packets, _, class) in by_specificity(classes, leaves) {
        let (protocol, rank) = if packets.ipv6 { ("ipv6", 4) } else { ("ip", 3) };
        let matches = packets.u32_expression().expect("checked when the desired state was made");
        filters.push(U32Filter { protocol: protocol.into(), rank, matches, class });
    }
    filters
}

/// Returns all matches with their traffic class and its leaf. More specific matches come first, because
/// the first match decides.
fn by_specificity<'a>(
    classes: &'a [TrafficClass],
    leaves: &[u16],
) -> Vec<(&'a PacketMatch, &'a TrafficClass, u16)> {
    let mut matches = Vec::new();
    for (class, leaf) in classes.iter().zip(leaves) {
        matches.extend(class.matches.iter().map(|packets| (packets, class, *leaf)));
    }
    matches.sort_by_key(|(packets, _, _)| Reverse(packets.specificity()));
    matches
}

/// Lines of tc that replace the filters of a device, with the preferences `present`, by `filters`.
#[derive(Debug, Default)]
pub(super) struct FilterReplacement {
    /// Lines that add the new filters behind the present ones.
    pub(super) add: Vec<String>,
    /// Lines that delete the old filters afterwards.
    pub(super) delete: Vec<String>,
}

impl FilterReplacement {
    pub(super) fn new(device: &str, filters: &[U32Filter], present: &[u16]) -> Self {
        let generation = if present.iter().any(|preference| *preference / GENERATION == 1) { 2 } else { 1 };
        let mut replacement = Self::default();
        for preference in present {
            let line = format!("filter del dev {device} parent {HANDLE} pref {preference}");
            // A filter of the new generation is left over from an interrupted run: it must be deleted
            // first.
            let is_leftover = *preference / GENERATION == generation;
            if is_leftover { replacement.add.push(line) } else { replacement.delete.push(line) }
        }
        replacement.add.extend(filters.iter().map(|filter| filter.line(device, generation)));
        replacement
    }
}

/// Returns the nftables rules for the traffic classes of a device.
pub(super) fn nft_rules(device: &str, classes: &[TrafficClass], leaves: &[u16]) -> String {
    let mut rules = String::new();
    for (packets, class, leaf) in by_specificity(classes, leaves) {
        let ip = if packets.ipv6 { "ip6" } else { "ip" };
        let mark = class.mark.map_or(String::new(), |mark| format!(" {ip} dscp set {mark}"));
        let _ = writeln!(
            rules,
            "    oifname \"{device}\" {}{mark} meta priority set {} accept",
            packets.nft_expression(),
            class_name(leaf)
        );
    }
    for ip in ["ip", "ip6"] {
        let _ = writeln!(rules, "    oifname \"{device}\" {ip} dscp set cs0");
    }
    rules
}

/// Returns the script that replaces our table by one with these rules; without rules it deletes ours.
pub(super) fn nft_script(rules: &str) -> String {
    // Deleting a table that does not exist is an error, so it is created first.
    let delete = format!("table {NFT_TABLE}\ndelete table {NFT_TABLE}\n");
    if rules.is_empty() {
        return delete;
    }
    let hook = "    type filter hook postrouting priority mangle; policy accept;";
    format!("{delete}table {NFT_TABLE} {{\n  chain workloads {{\n{hook}\n{rules}  }}\n}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic_class(name: &str, matches: Vec<PacketMatch>) -> TrafficClass {
        TrafficClass { name: name.into(), level: 0, buckets: Vec::new(), matches, mark: Some(56) }
    }

    fn from(text: &str) -> PacketMatch {
        PacketMatch { from: Some(text.parse().expect("a prefix")), ..PacketMatch::any(text.contains(':')) }
    }

    #[test]
    fn rules_by_hand() {
        let classes = [
            traffic_class("a", vec![from("10.0.0.0/24")]),
            traffic_class("b", vec![from("10.0.0.1"), from("fd00::1")]),
        ];
        let rules = nft_rules("eth0", &classes, &[0xf, 0x17]);
        let expected = [
            "    oifname \"eth0\" ip saddr 10.0.0.1 ip dscp set 56 meta priority set 7a17:17 accept",
            "    oifname \"eth0\" ip6 saddr fd00::1 ip6 dscp set 56 meta priority set 7a17:17 accept",
            "    oifname \"eth0\" ip saddr 10.0.0.0/24 ip dscp set 56 meta priority set 7a17:f accept",
            "    oifname \"eth0\" ip dscp set cs0",
            "    oifname \"eth0\" ip6 dscp set cs0",
        ];
        assert_eq!(rules.lines().collect::<Vec<_>>(), expected);
        assert!(nft_script(&rules).starts_with("table inet tailwright\ndelete table inet tailwright\ntable"));
        assert_eq!(nft_script("").lines().count(), 2);
    }

    #[test]
    fn filters_change_over_without_a_gap() {
        let filters = class_filters(&[traffic_class("a", vec![from("10.0.0.1")])], &[0xf]);
        let FilterReplacement { add, delete } = FilterReplacement::new("eth0", &filters, &[]);
        assert_eq!(
            add,
            ["filter add dev eth0 parent 7a17: protocol ip pref 13 u32 match ip src 10.0.0.1 flowid 7a17:f"]
        );
        assert!(delete.is_empty());
        let FilterReplacement { add, delete } = FilterReplacement::new("eth0", &filters, &[11, 13]);
        assert!(add[0].contains(" pref 23 "), "{add:?}");
        assert_eq!(
            delete,
            ["filter del dev eth0 parent 7a17: pref 11", "filter del dev eth0 parent 7a17: pref 13"]
        );
        // A run was interrupted between adding and deleting.
        let FilterReplacement { add, delete } = FilterReplacement::new("eth0", &filters, &[13, 23]);
        assert_eq!(add[0], "filter del dev eth0 parent 7a17: pref 23");
        assert_eq!(delete, ["filter del dev eth0 parent 7a17: pref 13"]);
    }
}
