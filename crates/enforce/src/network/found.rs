//! What is on a host now, read back from tc, ip and nft.
//!
//! What we made is recorded as these programs print it and compared as text: a line that prints as it did after we
//! made it is as we made it. That needs no knowledge of how they round.

use super::classify::TABLE;
use super::tree::HANDLE;
use crate::command::{Command, Run};
use model::OperationError;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The network namespace that a host is; `None` is the one that we run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place(pub(super) Option<String>);

impl Place {
    fn of(&self, program: &str, rest: &str) -> Command {
        match &self.0 {
            Some(netns) => Command::new(&format!("{program} -n {netns} {rest}")),
            None => Command::new(&format!("{program} {rest}")),
        }
    }

    pub(super) fn tc(&self, rest: &str) -> Command {
        self.of("tc", rest)
    }

    pub(super) fn ip(&self, rest: &str) -> Command {
        self.of("ip", rest)
    }

    pub(super) fn nft(&self, rest: &str) -> Command {
        match &self.0 {
            Some(netns) => Command::new(&format!("ip netns exec {netns} nft {rest}")),
            None => Command::new(&format!("nft {rest}")),
        }
    }

    /// Lines for `tc -batch`.
    pub(super) fn batch(&self, lines: &[String]) -> Command {
        self.tc("-batch -").reading(lines.join("\n"))
    }
}

/// A device as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FoundDevice {
    /// The root queueing discipline as tc prints it; empty when there is none.
    pub(super) qdisc: String,
    /// Largest packet without the frame's header.
    pub(super) mtu: u64,
    pub(super) gso_max_size: u64,
    pub(super) gso_max_segs: u64,
    /// Of our tree: class numbers and how tc prints them.
    pub(super) classes: BTreeMap<u16, String>,
    /// Of our tree: all filters as tc prints them.
    pub(super) filters: String,
}

impl FoundDevice {
    /// A device that nobody has touched, for dry runs elsewhere.
    pub(super) fn untouched() -> Self {
        Self { mtu: 1500, gso_max_size: 65536, gso_max_segs: 65535, ..Self::default() }
    }

    /// Whether the tree is ours.
    pub(super) fn is_ours(&self) -> bool {
        self.qdisc.starts_with(&format!("qdisc htb {HANDLE} root"))
    }

    /// Whether somebody else has set it up: what the kernel puts there by itself has no handle.
    pub(super) fn is_foreign(&self) -> bool {
        let handle = self.qdisc.split_whitespace().nth(2);
        !self.is_ours() && handle.is_some_and(|handle| handle != "0:")
    }

    /// The largest frame.
    pub(super) fn packet_bytes(&self) -> u64 {
        const ETHERNET_HEADER: u64 = 14;
        self.mtu + ETHERNET_HEADER
    }

    /// The places of filters.
    pub(super) fn prefs(&self) -> Vec<u16> {
        let pref = |line: &str| {
            let mut words = line.strip_prefix("filter ")?.split_whitespace();
            words.find(|word| *word == "pref")?;
            words.next()?.parse().ok()
        };
        let mut prefs: Vec<u16> = self.filters.lines().filter_map(pref).collect();
        prefs.sort_unstable();
        prefs.dedup();
        prefs
    }
}

/// What `ip -json link show` says, as far as it matters.
#[derive(Deserialize)]
struct Link {
    ifname: String,
    mtu: u64,
    #[serde(default)]
    gso_max_size: u64,
    #[serde(default)]
    gso_max_segs: u64,
}

/// The devices of a host by name; only links are looked at.
fn links(run: &mut dyn Run, place: &Place) -> Result<Vec<Link>, OperationError> {
    let command = place.ip("-details -json link show");
    let printed = run.run(&command)?;
    // Some versions print an empty object where there is nothing.
    serde_json::from_str(&printed.replace("{},", "")).map_err(|error| {
        OperationError::machine(format_args!("`{command}` printed what we cannot read: {error}"))
            .hint("use iproute2 5.15 or later")
    })
}

/// These devices as they are. An error names those that are not there.
pub(super) fn devices(
    run: &mut dyn Run,
    place: &Place,
    names: &[&str],
) -> Result<BTreeMap<String, FoundDevice>, OperationError> {
    let links = links(run, place)?;
    let mut found = BTreeMap::new();
    for name in names {
        let Some(link) = links.iter().find(|link| link.ifname == *name) else {
            let known: Vec<&str> = links.iter().map(|link| link.ifname.as_str()).collect();
            return Err(OperationError::input(format_args!("there is no device {name}"))
                .hint(format_args!("the devices here are {}", known.join(", "))));
        };
        let mut device = FoundDevice {
            mtu: link.mtu,
            gso_max_size: link.gso_max_size,
            gso_max_segs: link.gso_max_segs,
            ..FoundDevice::default()
        };
        let qdiscs = run.run(&place.tc(&format!("qdisc show dev {name}")))?;
        device.qdisc =
            qdiscs.lines().find(|line| line.contains(" root ")).unwrap_or_default().trim().to_owned();
        if device.is_ours() {
            device.classes = classes(&run.run(&place.tc(&format!("-details class show dev {name}")))?);
            device.filters = run.run(&place.tc(&format!("filter show dev {name} parent {HANDLE}")))?;
        }
        found.insert((*name).to_owned(), device);
    }
    Ok(found)
}

/// Lines such as `class htb 7a17:1f parent 7a17:8 …` of our tree, by number.
fn classes(printed: &str) -> BTreeMap<u16, String> {
    let class = |line: &str| {
        let id = line.strip_prefix("class htb ")?.split_whitespace().next()?.strip_prefix(HANDLE)?;
        Some((u16::from_str_radix(id, 16).ok()?, line.trim().to_owned()))
    };
    printed.lines().filter_map(class).collect()
}

/// Our table of nftables as nft prints it; empty when there is none.
pub(super) fn table(run: &mut dyn Run, place: &Place) -> Result<String, OperationError> {
    let tables = run.run(&place.nft("list tables inet"))?;
    if tables.lines().any(|line| line.trim() == format!("table {TABLE}")) {
        return run.run(&place.nft(&format!("list table {TABLE}")));
    }
    Ok(String::new())
}

/// Bytes that wait in these classes.
pub(super) fn backlog(
    run: &mut dyn Run,
    place: &Place,
    device: &str,
    ids: &[u16],
) -> Result<u64, OperationError> {
    let printed = run.run(&place.tc(&format!("-statistics class show dev {device}")))?;
    let (mut inside, mut total) = (false, 0);
    for line in printed.lines() {
        if line.starts_with("class ") {
            inside = classes(line).keys().any(|id| ids.contains(id));
        } else if let Some(rest) = line.trim().strip_prefix("backlog ").filter(|_| inside) {
            total += rest.split_whitespace().next().map_or(0, size);
        }
    }
    Ok(total)
}

/// `1514b`, `12Kb`, `3Mb` in bytes.
fn size(text: &str) -> u64 {
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
    fn who_made_a_queue() {
        for (qdisc, ours, foreign) in [
            ("qdisc noqueue 0: root refcnt 2", false, false),
            ("qdisc mq 0: root", false, false),
            ("", false, false),
            ("qdisc htb 7a17: root refcnt 3 r2q 10 default 0x2", true, false),
            ("qdisc htb 1: root refcnt 3 r2q 10 default 0x2", false, true),
            ("qdisc fq 8001: root refcnt 2", false, true),
        ] {
            let device = FoundDevice { qdisc: qdisc.into(), ..FoundDevice::default() };
            assert_eq!((device.is_ours(), device.is_foreign()), (ours, foreign), "{qdisc}");
        }
    }

    #[test]
    fn what_tc_prints() {
        let printed = "class htb 7a17:1 root rate 1Kbit \nclass htb 7a17:1f parent 7a17:1 prio 2 \nclass htb 1:5 root\n";
        let found = classes(printed);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1, 0x1f]);
        assert_eq!(found[&0x1f], "class htb 7a17:1f parent 7a17:1 prio 2");
        let filters = "filter protocol ip pref 13 u32 chain 0 \n  match 0a000001/ffffffff at 12\nfilter protocol arp pref 11 u32";
        assert_eq!(FoundDevice { filters: filters.into(), ..FoundDevice::default() }.prefs(), [11, 13]);
        assert_eq!(["0b", "1514b", "12Kb", "3Mb"].map(size), [0, 1514, 12288, 3_145_728]);
    }
}
