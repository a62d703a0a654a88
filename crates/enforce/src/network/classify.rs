//! Which packets go to which class: rules of nftables for a host, filters of tc for a device.
//!
//! nftables sets a packet's priority to the class and its DSCP to the mark; the change of all rules is one
//! transaction. What no rule knows loses its mark, or it would buy priority at switches.
//! Filters of tc have no transaction: new ones are added behind the old ones, then the old ones go.

use super::flow::Flow;
use super::tree::{CONTROL, HANDLE, name};
use super::wanted::Lane;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The table of nftables that is ours.
pub(super) const TABLE: &str = "inet tailwright";

/// A filter of tc, without its place in the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Filter {
    /// `arp`, `ip` or `ipv6`.
    protocol: String,
    /// Place among the filters of a generation; filters of one place have one protocol.
    rank: u16,
    matches: String,
    class: u16,
}

/// Places of one generation of filters: those of the other are ten further.
const GENERATION: u16 = 10;

impl Filter {
    fn line(&self, device: &str, base: u16) -> String {
        let Self { protocol, rank, matches, class } = self;
        let pref = base + rank;
        format!(
            "filter add dev {device} parent {HANDLE} protocol {protocol} pref {pref} u32 {matches} flowid {}",
            name(*class)
        )
    }
}

/// ARP and neighbour discovery (ICMPv6 132–137, of which 132 ends a multicast membership).
pub(super) fn control_filters() -> Vec<Filter> {
    let filter = |protocol: &str, rank, matches: &str| Filter {
        protocol: protocol.into(),
        rank,
        matches: matches.into(),
        class: CONTROL,
    };
    let icmpv6 =
        |value: &str, mask: &str| format!("match ip6 protocol 58 0xff match u8 {value} {mask} at 40");
    vec![
        filter("arp", 1, "match u32 0 0"),
        filter("ipv6", 2, &icmpv6("0x84", "0xfc")),
        filter("ipv6", 2, &icmpv6("0x88", "0xfe")),
    ]
}

/// Filters for the flows of lanes whose leaves are these.
pub(super) fn flow_filters(lanes: &[Lane], leaves: &[u16]) -> Vec<Filter> {
    let filter = |(flow, _, class): (&Flow, &Lane, u16)| {
        let (protocol, rank) = if flow.ipv6 { ("ipv6", 4) } else { ("ip", 3) };
        let matches = flow.u32().expect("checked when it was wanted");
        Filter { protocol: protocol.into(), rank, matches, class }
    };
    ordered(lanes, leaves).into_iter().map(filter).collect()
}

/// Flows with lane and class, what looks at more first.
fn ordered<'a>(lanes: &'a [Lane], leaves: &[u16]) -> Vec<(&'a Flow, &'a Lane, u16)> {
    let of = |(lane, leaf): (&'a Lane, &u16)| {
        let leaf = *leaf;
        lane.flows.iter().map(move |flow| (flow, lane, leaf))
    };
    let mut flows: Vec<_> = lanes.iter().zip(leaves).flat_map(of).collect();
    flows.sort_by_key(|(flow, _, _)| std::cmp::Reverse(flow.specificity()));
    flows
}

/// Lines that add these filters beside those with the places `present`, and lines that then remove those.
pub(super) fn exchange(device: &str, filters: &[Filter], present: &[u16]) -> (Vec<String>, Vec<String>) {
    let base = if present.iter().any(|pref| *pref / GENERATION == 1) { 2 * GENERATION } else { GENERATION };
    let clash = |pref: &&u16| **pref / GENERATION == base / GENERATION;
    let remove = |pref: &u16| format!("filter del dev {device} parent {HANDLE} pref {pref}");
    // Left over from a run that was cut short.
    let mut add: Vec<String> = present.iter().filter(clash).map(remove).collect();
    add.extend(filters.iter().map(|filter| filter.line(device, base)));
    (add, present.iter().filter(|pref| !clash(pref)).map(remove).collect())
}

/// Rules for the lanes of a device.
pub(super) fn nft_rules(device: &str, lanes: &[Lane], leaves: &[u16]) -> String {
    let mut rules = String::new();
    for (flow, lane, class) in ordered(lanes, leaves) {
        let ip = if flow.ipv6 { "ip6" } else { "ip" };
        let mark = lane.mark.map_or(String::new(), |mark| format!(" {ip} dscp set {mark}"));
        let _ = writeln!(
            rules,
            "    oifname \"{device}\" {}{mark} meta priority set {} accept",
            flow.nft(),
            name(class)
        );
    }
    for ip in ["ip", "ip6"] {
        let _ = writeln!(rules, "    oifname \"{device}\" {ip} dscp set cs0");
    }
    rules
}

/// The whole table, in place of any that is there; without rules, none.
pub(super) fn nft_script(rules: &str) -> String {
    let gone = format!("table {TABLE}\ndelete table {TABLE}\n");
    if rules.is_empty() {
        return gone;
    }
    let hook = "    type filter hook postrouting priority mangle; policy accept;";
    format!("{gone}table {TABLE} {{\n  chain workloads {{\n{hook}\n{rules}  }}\n}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(name: &str, flows: Vec<Flow>) -> Lane {
        Lane { name: name.into(), level: 0, buckets: Vec::new(), flows, mark: Some(56) }
    }

    fn from(text: &str) -> Flow {
        Flow { from: Some(text.parse().expect("a prefix")), ..Flow::any(text.contains(':')) }
    }

    #[test]
    fn rules_by_hand() {
        let lanes =
            [lane("a", vec![from("10.0.0.0/24")]), lane("b", vec![from("10.0.0.1"), from("fd00::1")])];
        let rules = nft_rules("eth0", &lanes, &[0xf, 0x17]);
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
        let filters = flow_filters(&[lane("a", vec![from("10.0.0.1")])], &[0xf]);
        let (add, remove) = exchange("eth0", &filters, &[]);
        assert_eq!(
            add,
            ["filter add dev eth0 parent 7a17: protocol ip pref 13 u32 match ip src 10.0.0.1 flowid 7a17:f"]
        );
        assert!(remove.is_empty());
        let (add, remove) = exchange("eth0", &filters, &[11, 13]);
        assert!(add[0].contains(" pref 23 "), "{add:?}");
        assert_eq!(
            remove,
            ["filter del dev eth0 parent 7a17: pref 11", "filter del dev eth0 parent 7a17: pref 13"]
        );
        // A run was cut short between adding and removing.
        let (add, remove) = exchange("eth0", &filters, &[13, 23]);
        assert_eq!(add[0], "filter del dev eth0 parent 7a17: pref 23");
        assert_eq!(remove, ["filter del dev eth0 parent 7a17: pref 13"]);
    }
}
