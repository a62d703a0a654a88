//! The tree of HTB classes of a device.
//!
//! ```text
//! root (the link) ─┬─ default: everybody else, last
//!                  ├─ control: ARP and neighbour discovery, a hundredth of the link
//!                  └─ per lane: one class per token bucket in a chain, then a leaf with the level as `prio`
//! ```
//! HTB serves a class within its own `rate` before any that borrows, whatever their `prio`. So `rate` is next to
//! nothing everywhere, every packet borrows from the root, and `prio` alone decides; a bucket ⟨r, b⟩ is the `ceil` and
//! `cburst` of an inner class. HTB lets a packet pass while tokens are not negative, so a bucket admits r·t + b and
//! one packet more. What the tiny rates let pass before others is a packet of each class in twelve seconds.
//!
//! Class numbers stay with their lane for as long as it exists: HTB cannot move a class, so a lane with another number
//! of buckets gets a chain anew, and what changes otherwise changes in place without losing a packet.

use super::wanted::{Bucket, WantedDevice};
use crate::deployment::LEVELS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The handle of the tree, which tells it from everybody else's.
pub(super) const HANDLE: &str = "7a17:";
/// Everybody else's traffic.
pub(super) const DEFAULT: u16 = 2;
/// Address resolution: without it nobody reaches anybody.
pub(super) const CONTROL: u16 = 3;
const ROOT: u16 = 1;
/// Numbers of a lane: the chain from the first, the leaf is the last.
const SLOT: u16 = 8;
/// HTB is eight classes deep; root and leaf are two.
const CHAIN_MAX: usize = 6;
/// `rate` where nothing may be had without borrowing, bit/s; less than 1 kbit/s is rounded to nothing by some kernels.
const TINY_BITS_PER_S: u64 = 1000;
/// What the link may send at once after a timer that was late, seconds of its rate.
const ROOT_BURST_S: f64 = 0.0005;
/// The longest burst that tc can say: 2³² ticks of 64 ns, seconds.
const BURST_MAX_S: f64 = 274.0;

/// Lanes by name and number of buckets, and the number of their first class.
pub(super) type Slots = BTreeMap<String, u16>;

/// A class as tc is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Class {
    pub(super) parent: Option<u16>,
    /// From `htb` on.
    pub(super) args: String,
}

impl Class {
    /// The line that makes the class so, whether it exists or not.
    pub(super) fn line(&self, device: &str, id: u16) -> String {
        let parent = self.parent.map_or(HANDLE.to_owned(), name);
        format!("class replace dev {device} parent {parent} classid {} {}", name(id), self.args)
    }
}

/// As tc writes a class: `7a17:1f`.
pub(super) fn name(id: u16) -> String {
    format!("{HANDLE}{id:x}")
}

/// A tree and what people should know about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    pub(super) classes: BTreeMap<u16, Class>,
    /// The leaf of every lane, in order.
    pub(super) leaves: Vec<u16>,
    pub(super) warnings: Vec<String>,
}

/// The tree of `device`, whose packets have up to `packet` bytes; new lanes take free numbers in `slots`.
pub(super) fn tree(device: &WantedDevice, packet: u64, slots: &mut Slots) -> Tree {
    let link = bits(device.link_bytes_per_s);
    let root_burst = whole(device.link_bytes_per_s * ROOT_BURST_S).max(packet);
    let root = format!("htb rate {link} ceil {link} burst {root_burst} cburst {root_burst} quantum {packet}");
    let leaf = |parent, prio: usize, ceil: u64| Class {
        parent: Some(parent),
        args: format!(
            "htb prio {prio} rate {TINY_BITS_PER_S} ceil {ceil} burst {packet} cburst {} quantum {packet}",
            packet.max(root_burst)
        ),
    };
    let mut tree = Tree { classes: BTreeMap::new(), leaves: Vec::new(), warnings: Vec::new() };
    tree.classes.insert(ROOT, Class { parent: None, args: root });
    tree.classes.insert(DEFAULT, leaf(ROOT, LEVELS, link));
    tree.classes.insert(CONTROL, leaf(ROOT, 0, link.div_ceil(100)));
    for lane in &device.lanes {
        let chain = at_most(&lane.buckets, CHAIN_MAX);
        if chain.len() < undominated(&lane.buckets).len() {
            tree.warnings.push(format!(
                "{}: {} has more token buckets than the {CHAIN_MAX} that HTB can chain; the closest are kept",
                device.name, lane.name
            ));
        }
        let base = slot(slots, &format!("{}#{}", lane.name, chain.len()));
        let mut parent = ROOT;
        for (id, bucket) in (base..).zip(&chain) {
            let (args, capped) = limiter(*bucket, packet);
            tree.classes.insert(id, Class { parent: Some(parent), args });
            tree.warnings.extend(capped.map(|capped| format!("{}: {}: {capped}", device.name, lane.name)));
            parent = id;
        }
        let id = base + SLOT - 1;
        tree.classes.insert(id, leaf(parent, lane.level, link));
        tree.leaves.push(id);
    }
    tree
}

/// The numbers of a lane: those that it has, or the first that are free.
fn slot(slots: &mut Slots, key: &str) -> u16 {
    if let Some(base) = slots.get(key) {
        return *base;
    }
    let free = (1..u16::MAX / SLOT).map(|n| n * SLOT).find(|base| slots.values().all(|used| used != base));
    let base = free.expect("a device has fewer than 8000 lanes");
    slots.insert(key.to_owned(), base);
    base
}

/// An inner class, and what it cannot do.
fn limiter(bucket: Bucket, packet: u64) -> (String, Option<String>) {
    let rate = bits(bucket.rate_bytes_per_s);
    let asked = whole(bucket.burst_bytes).max(packet);
    let most = whole(rate as f64 / 8.0 * BURST_MAX_S).clamp(packet, u64::from(u32::MAX));
    let burst = asked.min(most);
    let capped = (burst < asked)
        .then(|| format!("a burst of {asked} bytes at {rate} bit/s is more than tc can say; it is {burst}"));
    let args =
        format!("htb rate {TINY_BITS_PER_S} ceil {rate} burst {packet} cburst {burst} quantum {packet}");
    (args, capped)
}

/// Whole bits per second, at least what tc can say.
fn bits(bytes_per_s: f64) -> u64 {
    whole(bytes_per_s * 8.0).max(TINY_BITS_PER_S)
}

/// Rounded up, so that a limit never delays more than the policy says.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(value: f64) -> u64 {
    value.ceil() as u64
}

/// Without those that another makes needless, slow and large first.
fn undominated(buckets: &[Bucket]) -> Vec<Bucket> {
    let mut sorted = buckets.to_vec();
    sorted.sort_by(|a, b| {
        a.rate_bytes_per_s.total_cmp(&b.rate_bytes_per_s).then(a.burst_bytes.total_cmp(&b.burst_bytes))
    });
    let mut kept: Vec<Bucket> = Vec::new();
    for bucket in sorted {
        if kept.last().is_none_or(|last| bucket.burst_bytes < last.burst_bytes) {
            kept.push(bucket);
        }
    }
    kept
}

/// At most `most` (two or more) buckets that together admit least more than all: those whose absence raises the
/// envelope least, by ratio, go one by one. The ends stay.
fn at_most(buckets: &[Bucket], most: usize) -> Vec<Bucket> {
    let mut kept = undominated(buckets);
    while kept.len() > most {
        let raised = |i: usize| {
            let (slow, fast) = (kept[i - 1], kept[i + 1]);
            let t = (slow.burst_bytes - fast.burst_bytes) / (fast.rate_bytes_per_s - slow.rate_bytes_per_s);
            let at = |bucket: Bucket| bucket.burst_bytes + bucket.rate_bytes_per_s * t;
            at(slow) / at(kept[i])
        };
        let least = (1..kept.len() - 1).min_by(|a, b| raised(*a).total_cmp(&raised(*b)));
        kept.remove(least.expect("more than two are left"));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::wanted::Lane;
    use super::*;
    use proptest::prelude::*;

    fn bucket(rate_bytes_per_s: f64, burst_bytes: f64) -> Bucket {
        Bucket { rate_bytes_per_s, burst_bytes }
    }

    fn lane(name: &str, level: usize, buckets: &[Bucket]) -> Lane {
        Lane { name: name.into(), level, buckets: buckets.to_vec(), flows: Vec::new(), mark: None }
    }

    fn device(lanes: Vec<Lane>) -> WantedDevice {
        WantedDevice { name: "eth0".into(), link_bytes_per_s: 12.5e6, lanes }
    }

    #[test]
    fn a_tree_by_hand() {
        let lanes = vec![lane("mail", 0, &[bucket(1e6, 2e5), bucket(5e6, 3e4)]), lane("web", 3, &[])];
        let tree = tree(&device(lanes), 1514, &mut Slots::new());
        let lines: Vec<String> = tree.classes.iter().map(|(id, class)| class.line("eth0", *id)).collect();
        assert_eq!(
            lines,
            [
                "class replace dev eth0 parent 7a17: classid 7a17:1 htb rate 100000000 ceil 100000000 burst 6250 cburst 6250 quantum 1514",
                "class replace dev eth0 parent 7a17:1 classid 7a17:2 htb prio 7 rate 1000 ceil 100000000 burst 1514 cburst 6250 quantum 1514",
                "class replace dev eth0 parent 7a17:1 classid 7a17:3 htb prio 0 rate 1000 ceil 1000000 burst 1514 cburst 6250 quantum 1514",
                "class replace dev eth0 parent 7a17:1 classid 7a17:8 htb rate 1000 ceil 8000000 burst 1514 cburst 200000 quantum 1514",
                "class replace dev eth0 parent 7a17:8 classid 7a17:9 htb rate 1000 ceil 40000000 burst 1514 cburst 30000 quantum 1514",
                "class replace dev eth0 parent 7a17:9 classid 7a17:f htb prio 0 rate 1000 ceil 100000000 burst 1514 cburst 6250 quantum 1514",
                "class replace dev eth0 parent 7a17:1 classid 7a17:17 htb prio 3 rate 1000 ceil 100000000 burst 1514 cburst 6250 quantum 1514",
            ]
        );
        assert_eq!(tree.leaves, [0xf, 0x17]);
        assert!(tree.warnings.is_empty());
    }

    #[test]
    fn numbers_stay_with_their_lane() {
        let mut slots = Slots::new();
        let (a, b) = (lane("a", 0, &[]), lane("b", 1, &[bucket(1e6, 1e5)]));
        let both = tree(&device(vec![a.clone(), b.clone()]), 1514, &mut slots);
        let alone = tree(&device(vec![b]), 1514, &mut slots);
        assert_eq!(both.leaves[1], alone.leaves[0]);
        let other_chain = lane("a", 0, &[bucket(1e6, 1e5)]);
        assert_ne!(tree(&device(vec![other_chain]), 1514, &mut slots).leaves[0], both.leaves[0]);
    }

    #[test]
    fn what_tc_cannot_say_is_said_to_people() {
        let slow = lane("slow", 0, &[bucket(1000.0, 1e6)]);
        let tree = tree(&device(vec![slow]), 1514, &mut Slots::new());
        assert_eq!(tree.warnings.len(), 1, "{:?}", tree.warnings);
        assert!(tree.classes[&8].args.contains("cburst 274000 "), "{}", tree.classes[&8].args);
    }

    /// What buckets admit within `t` seconds.
    fn admitted(buckets: &[Bucket], t: f64) -> f64 {
        let each = buckets.iter().map(|bucket| bucket.burst_bytes + bucket.rate_bytes_per_s * t);
        each.min_by(f64::total_cmp).unwrap_or(f64::INFINITY)
    }

    proptest! {
        #[test]
        fn fewer_buckets_never_admit_less(
            pairs in prop::collection::vec((1e3..1e7f64, 1e3..1e7f64), 1..14), most in 2usize..7, t in 0.0..1e3f64,
        ) {
            let all: Vec<Bucket> = pairs.iter().map(|(r, b)| bucket(*r, *b)).collect();
            let kept = at_most(&all, most);
            prop_assert!(kept.len() <= most);
            prop_assert!(admitted(&kept, t) >= admitted(&all, t) * (1.0 - 1e-12));
            // Those without which nothing changes are no loss.
            prop_assert!((admitted(&undominated(&all), t) - admitted(&all, t)).abs() <= 1e-9 * admitted(&all, t));
            // The long run and the shortest burst are exact.
            prop_assert_eq!(admitted(&kept, 0.0), admitted(&all, 0.0));
            let slowest = |buckets: &[Bucket]| buckets.iter().map(|b| b.rate_bytes_per_s).min_by(f64::total_cmp);
            prop_assert_eq!(slowest(&kept), slowest(&all));
        }
    }
}
