//! The tree of HTB classes of a device.
//!
//! ```text
//! root (the link) ─┬─ default: traffic of no workload, last
//!                  ├─ control: ARP and neighbour discovery, a hundredth of the link
//!                  └─ per traffic class: one HTB class per token bucket in a chain, then a leaf with the level as `prio`
//! ```
//! HTB serves a class within its own `rate` before any that borrows, regardless of `prio`. So `rate` is
//! tiny everywhere, every packet borrows from the root, and `prio` alone decides. A bucket ⟨r, b⟩ becomes
//! the `ceil` and `cburst` of an inner class. HTB passes a packet while tokens are not negative, so a
//! bucket admits r·t + b and one packet more. The tiny rates let one packet of each class pass before
//! others every twelve seconds: their burst is a byte, so that any packet exhausts it.
//!
//! The root's burst goes to the wire at once after an idle time, and whatever comes then waits for it.
//! Bounds count what the policy says (`link_burst_s`); proof in `calculus::EnforcedClass`. It is also the
//! time by which the kernel's timer may be late without a loss of rate.
//!
//! A traffic class keeps its HTB class numbers for as long as it exists. HTB cannot move a class, so a
//! traffic class with another number of buckets gets a new chain. Every other change happens in place
//! without losing a packet.

use super::desired::{DesiredDevice, FrameBucket};
use model::{LINK_BURST_S, PRIORITY_LEVELS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Handle of our trees, which distinguishes them from others. An arbitrary number that reads like "tail".
pub(super) const HANDLE: &str = "7a17:";
/// The class of traffic that belongs to no workload.
pub(super) const DEFAULT: u16 = 2;
/// The class of address resolution, without which no host reaches another.
pub(super) const CONTROL: u16 = 3;
const ROOT: u16 = 1;
/// Number of class numbers that a traffic class reserves: its chain takes the first ones, its leaf the
/// last.
const NUMBERS_PER_CLASS: u16 = 8;
/// Maximum length of a chain: HTB is eight classes deep, and root and leaf are two of them.
const CHAIN_MAX: usize = 6;
/// `rate` of classes that must borrow everything, in bit/s. Some kernels round less than 1 kbit/s to
/// zero.
const TINY_BITS_PER_S: u64 = 1000;
/// Burst of `rate`: the smallest, because tc takes 0 for a default of its own.
const TINY_BURST: u64 = 1;
/// Longest burst that tc can express, in seconds: 2³² ticks of 64 ns.
const BURST_MAX_S: f64 = 274.0;

/// First number of each chain, by the name of the traffic class and the number of its buckets (`mail
/// network-in#2`).
pub(super) type ClassNumbers = BTreeMap<String, u16>;

/// Parameters of an HTB class for tc.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HtbClass {
    pub(super) parent: Option<u16>,
    /// Arguments of tc from the word `htb` on.
    pub(super) args: String,
}

impl HtbClass {
    /// Returns the line for tc that creates the class, or changes it if it exists.
    pub(super) fn line(&self, device: &str, number: u16) -> String {
        let parent = self.parent.map_or(HANDLE.to_owned(), class_name);
        format!("class replace dev {device} parent {parent} classid {} {}", class_name(number), self.args)
    }
}

/// Returns the name of a class in tc's syntax, such as `7a17:1f`.
pub(super) fn class_name(number: u16) -> String {
    format!("{HANDLE}{number:x}")
}

/// Classes of a device, and warnings for the user.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HtbTree {
    pub(super) classes: BTreeMap<u16, HtbClass>,
    /// Number of the leaf of every traffic class, in their order.
    pub(super) leaves: Vec<u16>,
    pub(super) warnings: Vec<String>,
}

impl HtbTree {
    /// Creates the tree of `device`, whose frames have up to `frame` bytes. New traffic classes take free
    /// `numbers`.
    pub(super) fn new(device: &DesiredDevice, frame: u64, numbers: &mut ClassNumbers) -> Self {
        let link = bits_per_s(device.link_bytes_per_s);
        let root_burst = link_burst(device, frame);
        let root =
            format!("htb rate {link} ceil {link} burst {root_burst} cburst {root_burst} quantum {frame}");
        let leaf_burst = frame.max(root_burst);
        let mut tree = Self { classes: BTreeMap::new(), leaves: Vec::new(), warnings: Vec::new() };
        tree.classes.insert(ROOT, HtbClass { parent: None, args: root });
        tree.classes.insert(DEFAULT, leaf(ROOT, PRIORITY_LEVELS, link, frame, leaf_burst));
        tree.classes.insert(CONTROL, leaf(ROOT, 0, link.div_ceil(100), frame, frame));
        for class in &device.classes {
            let chain = reduce_to(&class.buckets, CHAIN_MAX);
            if chain.len() < undominated(&class.buckets).len() {
                tree.warnings.push(format!(
                    "{}: {} has more token buckets than the {CHAIN_MAX} that HTB can chain; the closest are kept",
                    device.name, class.name
                ));
            }
            let first = reserve_numbers(numbers, &format!("{}#{}", class.name, chain.len()));
            let mut parent = ROOT;
            for (number, bucket) in (first..).zip(&chain) {
                let (args, warnings) = bucket_arguments(*bucket, frame);
                tree.classes.insert(number, HtbClass { parent: Some(parent), args });
                for warning in warnings {
                    tree.warnings.push(format!("{}: {}: {warning}", device.name, class.name));
                }
                parent = number;
            }
            let number = first + NUMBERS_PER_CLASS - 1;
            tree.classes.insert(number, leaf(parent, class.level, link, frame, leaf_burst));
            tree.leaves.push(number);
        }
        tree
    }
}

/// Returns the bytes that the root sends at once: as much as a late timer needs, and no more than bounds count.
fn link_burst(device: &DesiredDevice, frame: u64) -> u64 {
    let needed = round_up(device.link_bytes_per_s * LINK_BURST_S).max(frame);
    let counted = device.burst_s.map_or(u64::MAX, |burst| round_up(device.link_bytes_per_s * burst).max(1));
    needed.min(counted)
}

/// Returns a class with a queue, limited to `ceil` bit/s.
fn leaf(parent: u16, prio: usize, ceil: u64, frame: u64, burst: u64) -> HtbClass {
    let args = format!(
        "htb prio {prio} rate {TINY_BITS_PER_S} ceil {ceil} burst {TINY_BURST} cburst {burst} quantum {frame}"
    );
    HtbClass { parent: Some(parent), args }
}

/// Returns the first number of a chain: its existing one, or the first free one.
fn reserve_numbers(numbers: &mut ClassNumbers, chain: &str) -> u16 {
    if let Some(first) = numbers.get(chain) {
        return *first;
    }
    let mut candidates = (1..u16::MAX / NUMBERS_PER_CLASS).map(|index| index * NUMBERS_PER_CLASS);
    let free = candidates.find(|first| numbers.values().all(|used| used != first));
    let first = free.expect("a device has fewer than 8000 traffic classes");
    numbers.insert(chain.to_owned(), first);
    first
}

/// Returns true if one of these classes is in the chain, or the leaf, that begins with the number
/// `first`.
pub(super) fn is_in_use<T>(first: u16, classes: &BTreeMap<u16, T>) -> bool {
    classes.range(first..first + NUMBERS_PER_CLASS).next().is_some()
}

/// Returns the arguments of tc for an inner class that is a token bucket, and warnings about limits of
/// tc.
fn bucket_arguments(bucket: FrameBucket, frame: u64) -> (String, Vec<String>) {
    let mut warnings = Vec::new();
    let rate = bits_per_s(bucket.rate_bytes_per_s);
    if bucket.rate_bytes_per_s * 8.0 < TINY_BITS_PER_S as f64 {
        warnings.push(format!(
            "a rate of {} bytes/s is less than tc can say; it is {} bytes/s",
            bucket.rate_bytes_per_s,
            TINY_BITS_PER_S / 8
        ));
    }
    // A bucket smaller than a frame would block it for ever.
    let desired = round_up(bucket.burst_bytes).max(frame);
    let most = round_up(rate as f64 / 8.0 * BURST_MAX_S).clamp(frame, u64::from(u32::MAX));
    let burst = desired.min(most);
    if burst < desired {
        warnings.push(format!(
            "a burst of {desired} bytes at {rate} bit/s is more than tc can say; it is {burst}"
        ));
    }
    let args =
        format!("htb rate {TINY_BITS_PER_S} ceil {rate} burst {TINY_BURST} cburst {burst} quantum {frame}");
    (args, warnings)
}

/// Returns a rate in whole bits per second, at least the smallest that tc can express.
fn bits_per_s(bytes_per_s: f64) -> u64 {
    round_up(bytes_per_s * 8.0).max(TINY_BITS_PER_S)
}

/// Rounds up, so that a limit never delays more than the policy says.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked when the desired state was made"
)]
fn round_up(value: f64) -> u64 {
    value.ceil() as u64
}

/// Returns the buckets that no other makes redundant, by ascending rate and descending burst.
fn undominated(buckets: &[FrameBucket]) -> Vec<FrameBucket> {
    let mut sorted = buckets.to_vec();
    sorted.sort_by(|a, b| {
        a.rate_bytes_per_s.total_cmp(&b.rate_bytes_per_s).then(a.burst_bytes.total_cmp(&b.burst_bytes))
    });
    let mut kept: Vec<FrameBucket> = Vec::new();
    for bucket in sorted {
        if kept.last().is_none_or(|last| bucket.burst_bytes < last.burst_bytes) {
            kept.push(bucket);
        }
    }
    kept
}

/// Reduces buckets to `most` (two or more). Together they admit no less than all did, and little more.
///
/// A greedy choice: the bucket whose removal raises the envelope least, by ratio, goes first. The slowest
/// and the fastest stay, so that the long run and the shortest burst are exact.
fn reduce_to(buckets: &[FrameBucket], most: usize) -> Vec<FrameBucket> {
    let mut kept = undominated(buckets);
    while kept.len() > most {
        let least = (1..kept.len() - 1).min_by(|a, b| raise(&kept, *a).total_cmp(&raise(&kept, *b)));
        kept.remove(least.expect("more than two are left"));
    }
    kept
}

/// Returns the largest factor by which the envelope rises without the bucket at `index`: at the
/// intersection of its two neighbours.
fn raise(buckets: &[FrameBucket], index: usize) -> f64 {
    let slow = buckets[index - 1];
    let fast = buckets[index + 1];
    let t = (slow.burst_bytes - fast.burst_bytes) / (fast.rate_bytes_per_s - slow.rate_bytes_per_s);
    admitted_bytes(slow, t) / admitted_bytes(buckets[index], t)
}

/// Returns the bytes that a bucket admits within `t` seconds: r·t + b.
fn admitted_bytes(bucket: FrameBucket, t: f64) -> f64 {
    bucket.burst_bytes + bucket.rate_bytes_per_s * t
}

#[cfg(test)]
mod tests {
    use super::super::desired::TrafficClass;
    use super::*;
    use proptest::prelude::*;

    fn bucket(rate_bytes_per_s: f64, burst_bytes: f64) -> FrameBucket {
        FrameBucket { rate_bytes_per_s, burst_bytes }
    }

    fn traffic_class(name: &str, level: usize, buckets: &[FrameBucket]) -> TrafficClass {
        TrafficClass { name: name.into(), level, buckets: buckets.to_vec(), matches: Vec::new(), mark: None }
    }

    fn device(classes: Vec<TrafficClass>) -> DesiredDevice {
        DesiredDevice { name: "eth0".into(), link_bytes_per_s: 12.5e6, burst_s: None, classes }
    }

    #[test]
    fn a_tree_by_hand() {
        let classes = vec![
            traffic_class("mail", 0, &[bucket(1e6, 2e5), bucket(5e6, 3e4)]),
            traffic_class("web", 3, &[]),
        ];
        let tree = HtbTree::new(&device(classes), 1514, &mut ClassNumbers::new());
        let lines: Vec<String> = tree.classes.iter().map(|(id, class)| class.line("eth0", *id)).collect();
        assert_eq!(
            lines,
            [
                "class replace dev eth0 parent 7a17: classid 7a17:1 htb rate 100000000 ceil 100000000 burst 1514 cburst 1514 quantum 1514",
                "class replace dev eth0 parent 7a17:1 classid 7a17:2 htb prio 7 rate 1000 ceil 100000000 burst 1 cburst 1514 quantum 1514",
                "class replace dev eth0 parent 7a17:1 classid 7a17:3 htb prio 0 rate 1000 ceil 1000000 burst 1 cburst 1514 quantum 1514",
                "class replace dev eth0 parent 7a17:1 classid 7a17:8 htb rate 1000 ceil 8000000 burst 1 cburst 200000 quantum 1514",
                "class replace dev eth0 parent 7a17:8 classid 7a17:9 htb rate 1000 ceil 40000000 burst 1 cburst 30000 quantum 1514",
                "class replace dev eth0 parent 7a17:9 classid 7a17:f htb prio 0 rate 1000 ceil 100000000 burst 1 cburst 1514 quantum 1514",
                "class replace dev eth0 parent 7a17:1 classid 7a17:17 htb prio 3 rate 1000 ceil 100000000 burst 1 cburst 1514 quantum 1514",
            ]
        );
        assert_eq!(tree.leaves, [0xf, 0x17]);
        assert!(tree.warnings.is_empty());
    }

    #[test]
    fn the_link_sends_no_more_at_once_than_bounds_count() {
        let on = |link_bytes_per_s, burst_s| {
            let device = DesiredDevice { link_bytes_per_s, burst_s, ..device(Vec::new()) };
            link_burst(&device, 1514)
        };
        assert_eq!([on(1.25e8, None), on(1.25e9, None), on(1.25e6, None)], [12_500, 125_000, 1514]);
        assert_eq!(
            [on(1.25e8, Some(1e-4)), on(1.25e9, Some(5e-5)), on(1.25e6, Some(1e-3))],
            [12_500, 62_500, 1250]
        );
        assert_eq!(on(1.25e8, Some(0.0)), 1);
    }

    #[test]
    fn numbers_stay_with_their_traffic_class() {
        let mut numbers = ClassNumbers::new();
        let a = traffic_class("a", 0, &[]);
        let b = traffic_class("b", 1, &[bucket(1e6, 1e5)]);
        let both = HtbTree::new(&device(vec![a.clone(), b.clone()]), 1514, &mut numbers);
        let alone = HtbTree::new(&device(vec![b]), 1514, &mut numbers);
        assert_eq!(both.leaves[1], alone.leaves[0]);
        let other_chain = traffic_class("a", 0, &[bucket(1e6, 1e5)]);
        assert_ne!(HtbTree::new(&device(vec![other_chain]), 1514, &mut numbers).leaves[0], both.leaves[0]);
    }

    #[test]
    fn what_tc_cannot_express_is_a_warning() {
        let slow = traffic_class("slow", 0, &[bucket(1000.0, 1e6)]);
        let tree = HtbTree::new(&device(vec![slow]), 1514, &mut ClassNumbers::new());
        assert_eq!(tree.warnings.len(), 1, "{:?}", tree.warnings);
        assert!(tree.classes[&8].args.contains("cburst 274000 "), "{}", tree.classes[&8].args);
    }

    /// Returns the bytes that all buckets together admit within `t` seconds.
    fn admitted(buckets: &[FrameBucket], t: f64) -> f64 {
        let bytes = buckets.iter().map(|bucket| bucket.burst_bytes + bucket.rate_bytes_per_s * t);
        bytes.min_by(f64::total_cmp).unwrap_or(f64::INFINITY)
    }

    proptest! {
        #[test]
        fn fewer_buckets_never_admit_less(
            pairs in prop::collection::vec((1e3..1e7f64, 1e3..1e7f64), 1..14), most in 2usize..7, t in 0.0..1e3f64,
        ) {
            let all: Vec<FrameBucket> = pairs.iter().map(|(r, b)| bucket(*r, *b)).collect();
            let kept = reduce_to(&all, most);
            prop_assert!(kept.len() <= most);
            prop_assert!(admitted(&kept, t) >= admitted(&all, t) * (1.0 - 1e-12));
            // Removing redundant buckets changes nothing.
            prop_assert!((admitted(&undominated(&all), t) - admitted(&all, t)).abs() <= 1e-9 * admitted(&all, t));
            // The long run and the shortest burst are exact.
            prop_assert_eq!(admitted(&kept, 0.0), admitted(&all, 0.0));
            let slowest = |buckets: &[FrameBucket]| buckets.iter().map(|b| b.rate_bytes_per_s).min_by(f64::total_cmp);
            prop_assert_eq!(slowest(&kept), slowest(&all));
        }
    }
}
