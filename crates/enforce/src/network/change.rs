//! From what a host has to what it should have: the least that must be run, in an order that loses no packet.
//!
//! New classes and filters come first, then rules of nftables change in one transaction, and only then what nothing
//! refers to any more is removed, when it has sent what waits in it. Classes change in place. What is lost: packets
//! that wait in a device's queue when it is taken over for the first time or given back.

use super::classify;
use super::found::{FoundDevice, Place};
use super::state::{Before, Made};
use super::target::{DeviceTarget, Target};
use super::tree::{DEFAULT, HANDLE};
use crate::command::Command;
use std::collections::BTreeMap;
use std::fmt;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Run it.
    Run(Command),
    /// Wait until these classes of the device have sent what they hold.
    Drain {
        /// Name.
        device: String,
        /// Numbers of classes.
        classes: Vec<u16>,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(command) => write!(f, "{command}"),
            Self::Drain { device, classes } => {
                let names: Vec<String> = classes.iter().map(|id| super::tree::name(*id)).collect();
                write!(f, "# until {} on {device} are empty, for 2 s at most", names.join(", "))
            }
        }
    }
}

/// A host as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Found {
    pub(super) devices: BTreeMap<String, FoundDevice>,
    /// Our table as nft prints it.
    pub(super) nft: String,
}

/// What leads from `found` to `target`. `made` tells how that prints which is as it should be; `before` how devices
/// were that are not to be shaped any more.
pub(super) fn steps(
    place: &Place,
    found: &Found,
    made: &Made,
    target: &Target,
    before: &BTreeMap<String, Before>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut first, mut last, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for (name, device) in &target.devices {
        let change = change(name, &found.devices[name], made, device);
        steps.extend(change.gso.map(|words| Step::Run(place.ip(&words))));
        first.extend(change.first);
        last.extend(change.last);
        gone.extend((!change.gone.is_empty()).then_some((name, change.gone)));
    }
    steps.extend(batch(place, &first));
    steps.extend(nft(place, found, made, target));
    steps.extend(batch(place, &last));
    for (name, ids) in gone {
        steps.push(Step::Drain { device: name.clone(), classes: ids.clone() });
        let delete = |id: &u16| format!("class del dev {name} classid {}", super::tree::name(*id));
        steps.extend(batch(place, &ids.iter().map(delete).collect::<Vec<_>>()));
    }
    for (name, before) in before.iter().filter(|(name, _)| !target.devices.contains_key(*name)) {
        steps.extend(found.devices.get(name).into_iter().flat_map(|now| restore(place, name, now, before)));
    }
    steps
}

fn batch(place: &Place, lines: &[String]) -> Option<Step> {
    (!lines.is_empty()).then(|| Step::Run(place.batch(lines)))
}

/// The change of our table of nftables.
fn nft(place: &Place, found: &Found, made: &Made, target: &Target) -> Option<Step> {
    let present = !found.nft.is_empty();
    let as_made = found.nft == made.nft && made.target.nft == target.nft;
    if (target.nft.is_empty() && !present) || (present && as_made) {
        return None;
    }
    let script = if target.nft.is_empty() { classify::nft_script("") } else { target.nft.clone() };
    Some(Step::Run(place.nft("-f -").reading(script)))
}

/// What is to be done to a device, by when.
#[derive(Debug, Default)]
struct Change {
    /// Words for ip.
    gso: Option<String>,
    /// Lines for tc before traffic is led elsewhere, and after.
    first: Vec<String>,
    last: Vec<String>,
    /// Classes to remove, children before parents.
    gone: Vec<u16>,
}

fn change(name: &str, found: &FoundDevice, made: &Made, target: &DeviceTarget) -> Change {
    let mut change = Change::default();
    if (found.gso_max_size, found.gso_max_segs) != (target.packet_bytes, 1) {
        change.gso = Some(gso(name, target.packet_bytes, 1));
    }
    let ours = found.is_ours();
    if !ours {
        change.first.push(format!("qdisc replace dev {name} root handle {HANDLE} htb default {DEFAULT}"));
    }
    let asked = made.target.devices.get(name).filter(|_| ours);
    let printed = made.classes.get(name);
    for (id, class) in &target.classes {
        let same = asked.is_some_and(|asked| asked.classes.get(id) == Some(class))
            && found.classes.get(id).is_some_and(|now| printed.and_then(|lines| lines.get(id)) == Some(now));
        if !same {
            change.first.push(class.line(name, *id));
        }
    }
    let same = asked.is_some_and(|asked| asked.filters == target.filters)
        && made.filters.get(name) == Some(&found.filters);
    if !same {
        let (add, remove) = classify::exchange(name, &target.filters, &found.prefs());
        change.first.extend(add);
        change.last = remove;
    }
    change.gone = found.classes.keys().rev().filter(|id| !target.classes.contains_key(id)).copied().collect();
    change
}

fn gso(name: &str, size: u64, segments: u64) -> String {
    format!("link set dev {name} gso_max_size {size} gso_max_segs {segments}")
}

/// What gives a device back as it was.
fn restore(place: &Place, name: &str, found: &FoundDevice, before: &Before) -> Vec<Step> {
    let mut steps = Vec::new();
    if found.is_ours() {
        // The kernel puts its own queueing discipline in the place of a root that is removed.
        steps.push(Step::Run(place.tc(&format!("qdisc del dev {name} root"))));
    }
    if (found.gso_max_size, found.gso_max_segs) != (before.gso_max_size, before.gso_max_segs) {
        steps.push(Step::Run(place.ip(&gso(name, before.gso_max_size, before.gso_max_segs))));
    }
    steps
}
