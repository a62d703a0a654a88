//! Packets that were captured more than once: retransmitted, printed for each device that they pass, or mirrored.
//!
//! Sequence numbers tell exactly. Without (`-q`, UDP) the first device of a direction counts, until
//! it is silent. With `-q` a packet of TCP counts as retransmitted if it is as long as the previous one of its
//! direction, and the connection was silent between both for as long as Linux waits at least. A second
//! such packet after no more than that time is no retransmission, whose waits double: the direction sends
//! periodically, and nothing of it is taken for a repetition any more.

use super::line::{Packet, TcpdumpLine, parse_line};
use super::sequence::SequenceBook;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Shortest time after which Linux retransmits without an acknowledgement (`TCP_RTO_MIN`).
const RETRANSMISSION_NS: u64 = 200_000_000;
/// Longest time between a packet and its copy on the mirror of a switch.
const MIRROR_NS: u64 = 1_000_000;
/// Silence of a device after which a direction may have moved to another one.
const DEVICE_OVER_NS: u64 = 1_000_000_000;
/// Minimum number of packets that show that a capture is mirrored.
const MIRRORED_MIN: usize = 8;

/// Packets of both directions of a connection.
#[derive(Default)]
pub(super) struct SeenPackets {
    low: Direction,
    high: Direction,
    /// The latest packet with payload: its time and direction.
    latest: Option<(u64, bool)>,
}

#[derive(Default)]
struct Direction {
    sequence: SequenceBook,
    /// Hash of the device on which packets pass, and the time of the latest one.
    device: Option<(u64, u64)>,
    /// Bytes and time of the latest packet; `None` if that was a copy.
    latest: Option<(u64, u64)>,
    /// Bytes, time and wait of the latest packet that was taken for a retransmission.
    repeated: Option<(u64, u64, u64)>,
    is_periodic: bool,
}

impl SeenPackets {
    /// Starts the numbering of a direction.
    pub(super) fn open(&mut self, is_from_low: bool) {
        self.direction(is_from_low).sequence.open();
    }

    /// Returns the bytes of the packet that were not captured before.
    pub(super) fn take(&mut self, packet: &Packet<'_>, is_from_low: bool, is_mirrored: bool) -> u64 {
        let latest = self.latest;
        let direction = self.direction(is_from_low);
        if packet.bytes == 0 || packet.sequence.is_none() && direction.is_on_another_device(packet) {
            return 0;
        }
        let bytes = match packet.sequence {
            Some((first, end)) => direction.sequence.take(first, end),
            None if direction.is_mirrored(packet, is_mirrored) => 0,
            None if direction.is_retransmitted(packet, latest == direction.sent(is_from_low)) => 0,
            None => packet.bytes,
        };
        direction.latest = (bytes > 0).then_some((packet.bytes, packet.time_ns));
        if bytes > 0 {
            direction.repeated = None;
            self.latest = Some((packet.time_ns, is_from_low));
        }
        bytes
    }

    fn direction(&mut self, is_from_low: bool) -> &mut Direction {
        if is_from_low { &mut self.low } else { &mut self.high }
    }
}

impl Direction {
    fn sent(&self, is_from_low: bool) -> Option<(u64, bool)> {
        self.latest.map(|(_, time_ns)| (time_ns, is_from_low))
    }

    fn is_on_another_device(&mut self, packet: &Packet<'_>) -> bool {
        let Some(device) = packet.device.map(hash) else { return false };
        match self.device {
            Some((known, time_ns))
                if known != device && packet.time_ns.saturating_sub(time_ns) < DEVICE_OVER_NS =>
            {
                true
            }
            _ => {
                self.device = Some((device, packet.time_ns));
                false
            }
        }
    }

    /// Returns true if the packet is the second on the mirror of a switch.
    fn is_mirrored(&self, packet: &Packet<'_>, is_mirrored: bool) -> bool {
        is_mirrored
            && self.latest.is_some_and(|(bytes, time_ns)| {
                bytes == packet.bytes && packet.time_ns.saturating_sub(time_ns) <= MIRROR_NS
            })
    }

    /// Returns true if the packet repeats the latest of its direction, which may be the latest of the
    /// connection.
    fn is_retransmitted(&mut self, packet: &Packet<'_>, is_latest: bool) -> bool {
        if packet.is_udp || self.is_periodic {
            return false;
        }
        if let Some((bytes, time_ns, wait)) = self.repeated.filter(|&(bytes, ..)| bytes == packet.bytes) {
            let again = packet.time_ns.saturating_sub(time_ns);
            // Waits double; a quarter less is the timer's granularity.
            self.is_periodic = again < wait + wait / 2;
            self.repeated = (!self.is_periodic).then_some((bytes, packet.time_ns, again));
            return !self.is_periodic;
        }
        let Some((bytes, time_ns)) = self.latest else { return false };
        let wait = packet.time_ns.saturating_sub(time_ns);
        let is_retransmitted = is_latest && bytes == packet.bytes && wait >= RETRANSMISSION_NS;
        if is_retransmitted {
            self.repeated = Some((bytes, packet.time_ns, wait));
        }
        is_retransmitted
    }
}

fn hash(device: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    device.hash(&mut hasher);
    hasher.finish()
}

/// Returns true if nearly all packets at the beginning of a capture without sequence numbers and devices
/// appear twice, as with a port that mirrors both directions of two others.
pub(super) fn is_mirrored(head: &[u8]) -> bool {
    let mut packets = 0;
    let mut copies = 0;
    let mut latest = HashMap::new();
    for line in head.split(|&byte| byte == b'\n') {
        let Ok(TcpdumpLine::Packet(packet)) = parse_line(line) else { continue };
        if packet.sequence.is_some() || packet.device.is_some() {
            return false;
        }
        packets += 1;
        let ends = (packet.from, packet.to);
        let is_copy = latest.get(&ends).is_some_and(|&(bytes, time_ns)| {
            bytes == packet.bytes && packet.time_ns.saturating_sub(time_ns) <= MIRROR_NS
        });
        if is_copy {
            copies += 1;
            latest.remove(&ends);
        } else {
            latest.insert(ends, (packet.bytes, packet.time_ns));
        }
    }
    packets >= MIRRORED_MIN && copies * 20 >= packets * 9
}
