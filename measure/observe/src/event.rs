//! What the programs in the kernel report: one event when bytes of a request or an answer pass a point.
//!
//! The layout is that of `struct event` in `bpf/observe.bpf.c`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of an event in the ring buffer, without those that are copied behind it.
pub(crate) const EVENT_BYTES: usize = 80;

/// The most bytes of a request or an answer that are copied behind an event.
const COPIED_BYTES_MAX: usize = 4096;

/// What an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The network stack begins with a packet for the server (T1); [`KernelEvent::earlier`] is T0.
    Arrival,
    /// Data is in a socket (T2). TCP: everything before [`KernelEvent::end`]; the server has taken everything before
    /// [`KernelEvent::begin`], unless that is 0.
    Ready,
    /// A thread has read from a socket (T4). TCP: from `begin` to `end`, or from wherever the last read has ended if these
    /// are equal. [`KernelEvent::earlier`] is when the thread was last switched in.
    Receive,
    /// A thread hands bytes to TCP (T5).
    Send,
    /// A packet is handed to the network device (T6).
    Transmit,
    /// A TCP connection has ended; the server has taken everything before [`KernelEvent::begin`], unless that is 0.
    Close,
    /// A thread that reads observed sockets leaves its CPU, on which it was since [`KernelEvent::earlier`].
    Leave,
    /// A thread has left a CPU for which one that reads observed sockets waits. It had the CPU, and another one waited,
    /// since [`KernelEvent::earlier`].
    Occupant,
    /// The first bytes of what a thread has read or is about to write, from `begin` on; the bytes are behind the event.
    Bytes,
    /// A TCP connection is established and waits to be accepted.
    Open,
    /// A thread has accepted a TCP connection.
    Accept,
    /// A thread that waits for a CPU is moved from the queue of one to that of another.
    Move,
    /// A thread that a CPU quota kept from running since [`KernelEvent::earlier`] runs again, or is moved.
    Throttled,
}

/// What is known of a thread and its CPU at an event of the kinds [`EventKind::Receive`], [`EventKind::Send`],
/// [`EventKind::Leave`], [`EventKind::Occupant`], [`EventKind::Move`] and [`EventKind::Throttled`]; otherwise zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadSchedule {
    /// When the thread was woken before it was last switched in; 0 when it had not slept.
    pub woken: u64,
    /// What interrupts of devices took from the thread until now, in nanoseconds modulo 2^32. Of an occupant: in its time.
    pub interrupt_ns: u32,
    /// The same of softirqs.
    pub softirq_ns: u32,
    /// What the hypervisor took from the CPU in the time of an occupant, in nanoseconds, at most 4.2 s.
    pub stolen_ns: u32,
    /// For how long the quota kept a throttled thread from running, in nanoseconds; after that it waited for its CPU.
    pub throttled_ns: u64,
    /// The CPU in whose queue the thread was before it was last switched in. Of an occupant: the one that it had. Of a move:
    /// the one whose queue the thread leaves.
    pub cpu: u16,
    /// Whether that CPU was idle when the thread was put into its queue.
    pub was_idle: bool,
    /// Whether it is not known who had the CPU in the time of an occupant: somebody came who was not seen to.
    pub is_unseen: bool,
    /// Whether the kernel has noted that the thread leaves to wait for I/O.
    pub waits_for_io: bool,
    /// The state in which the thread leaves, as the kernel's `TASK_` bits; 0 when it would rather go on.
    pub state: u16,
    /// The name of an occupant.
    pub name: [u8; 16],
}

/// An event of the kernel. Instants are nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelEvent {
    /// When the event happened.
    pub time: u64,
    /// The two ends, hashed; 0 where only the socket is known (UDP: [`EventKind::Ready`], [`EventKind::Receive`]).
    pub flow: u64,
    /// An instant before, or 0 when it is not known; see [`EventKind`].
    pub earlier: u64,
    /// Which socket, where that is known; otherwise 0.
    pub socket: u64,
    /// TCP: the sequence number of the first byte.
    pub begin: u32,
    /// TCP: the sequence number after the last byte.
    pub end: u32,
    /// The thread in whose context it happened; 0 when that says nothing.
    pub thread: u32,
    /// The process of `thread`.
    pub process: u32,
    /// The port of the server.
    pub local_port: u16,
    /// The port of the client, where it is known.
    pub peer_port: u16,
    /// What the event reports.
    pub kind: EventKind,
    /// The packet carries PSH: the client has no more to say for now.
    pub push: bool,
    /// Whether it is about UDP, not TCP.
    pub udp: bool,
    /// Whether the bytes of [`EventKind::Bytes`] are of an answer, not of a request.
    pub answer: bool,
    /// Whether the thread of a read is one of the NFS server in the kernel.
    pub is_kernel_nfs: bool,
    /// Whether the connection of [`EventKind::Ready`] is a subflow of MPTCP, whose bytes are read through another socket.
    pub is_mptcp: bool,
    /// The first bytes of a datagram that arrives or is transmitted, where they are asked for; otherwise zero.
    pub datagram_head: [u8; 8],
    /// How many events the kernel could not report until now, modulo 2^16.
    pub lost: u16,
    /// The address of the client, where it is known.
    pub peer: IpAddr,
    /// How the thread came to its CPU.
    pub schedule: ThreadSchedule,
    /// When the last write of the thread before this event had returned, of [`EventKind::Receive`] and
    /// [`EventKind::Send`]; 0 where there was none, or the kernel does not say: before Linux 6.3.
    pub freed: u64,
}

impl KernelEvent {
    /// Decodes an event and the bytes that are copied behind it; `None` when `record` is not one.
    pub fn decode(record: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, copied) = record.split_first_chunk::<EVENT_BYTES>()?;
        let event = Self::decode_alone(bytes)?;
        let most = if event.kind == EventKind::Bytes { COPIED_BYTES_MAX } else { 0 };
        (copied.len() <= most).then_some((event, copied))
    }

    fn decode_alone(bytes: &[u8; EVENT_BYTES]) -> Option<Self> {
        let kind = kind(bytes[52])?;
        let flags = bytes[53];
        let udp = flags & 2 != 0;
        let head = match kind {
            EventKind::Arrival if udp => Some(24),
            EventKind::Transmit if udp => Some(16),
            _ => None,
        };
        let without_head =
            |at: usize| if head == Some(at) { 0 } else { u64::from_ne_bytes(field(bytes, at)) };
        let is_of_thread = matches!(kind, EventKind::Leave | EventKind::Throttled);
        let has_client = matches!(kind, EventKind::Arrival | EventKind::Transmit);
        Some(Self {
            time: u64::from_ne_bytes(field(bytes, 0)),
            flow: if is_of_thread { 0 } else { u64::from_ne_bytes(field(bytes, 8)) },
            earlier: without_head(16),
            socket: if kind == EventKind::Occupant { 0 } else { without_head(24) },
            begin: u32::from_ne_bytes(field(bytes, 32)),
            end: u32::from_ne_bytes(field(bytes, 36)),
            thread: u32::from_ne_bytes(field(bytes, 40)),
            process: u32::from_ne_bytes(field(bytes, 44)),
            local_port: u16::from_ne_bytes(field(bytes, 48)),
            peer_port: if has_client { u16::from_ne_bytes(field(bytes, 50)) } else { 0 },
            kind,
            push: flags & 1 != 0,
            udp,
            answer: flags & 8 != 0,
            is_kernel_nfs: flags & 64 != 0,
            is_mptcp: kind == EventKind::Ready && flags & 32 != 0,
            datagram_head: head.map_or([0; 8], |at| field(bytes, at)),
            lost: u16::from_ne_bytes(field(bytes, 54)),
            peer: address(flags & 4 != 0, if has_client { field(bytes, 56) } else { [0; 16] }),
            schedule: schedule(kind, bytes),
            freed: u64::from_ne_bytes(field(bytes, 72)),
        })
    }
}

/// The fields have other uses in events that are not about threads.
fn schedule(kind: EventKind, bytes: &[u8; EVENT_BYTES]) -> ThreadSchedule {
    let word = |at| u32::from_ne_bytes(field(bytes, at));
    let short = |at| u16::from_ne_bytes(field(bytes, at));
    let none = ThreadSchedule { was_idle: bytes[53] & 16 != 0, ..ThreadSchedule::default() };
    match kind {
        EventKind::Receive | EventKind::Send => ThreadSchedule {
            woken: u64::from_ne_bytes(field(bytes, 56)),
            interrupt_ns: word(64),
            softirq_ns: word(68),
            cpu: short(50),
            ..none
        },
        EventKind::Leave => ThreadSchedule {
            woken: u64::from_ne_bytes(field(bytes, 8)),
            interrupt_ns: word(32),
            softirq_ns: word(36),
            cpu: short(48),
            state: short(50),
            waits_for_io: bytes[53] & 128 != 0,
            ..none
        },
        EventKind::Occupant => ThreadSchedule {
            interrupt_ns: word(32),
            softirq_ns: word(36),
            cpu: short(48),
            is_unseen: bytes[53] & 32 != 0,
            stolen_ns: u32::try_from(u64::from_ne_bytes(field(bytes, 24))).unwrap_or(u32::MAX),
            name: field(bytes, 56),
            ..none
        },
        EventKind::Move => ThreadSchedule { cpu: short(48), ..none },
        EventKind::Throttled => {
            ThreadSchedule { throttled_ns: u64::from_ne_bytes(field(bytes, 8)), ..ThreadSchedule::default() }
        }
        EventKind::Arrival
        | EventKind::Ready
        | EventKind::Transmit
        | EventKind::Close
        | EventKind::Bytes
        | EventKind::Open
        | EventKind::Accept => none,
    }
}

fn field<const N: usize>(bytes: &[u8; EVENT_BYTES], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("fields lie inside of an event")
}

fn kind(number: u8) -> Option<EventKind> {
    Some(match number {
        1 => EventKind::Arrival,
        2 => EventKind::Ready,
        3 => EventKind::Receive,
        4 => EventKind::Send,
        5 => EventKind::Transmit,
        6 => EventKind::Close,
        7 => EventKind::Leave,
        8 => EventKind::Occupant,
        9 => EventKind::Bytes,
        10 => EventKind::Open,
        11 => EventKind::Accept,
        12 => EventKind::Move,
        13 => EventKind::Throttled,
        _ => return None,
    })
}

/// An address as on the wire; IPv4 is in the first four bytes.
fn address(is_ipv6: bool, bytes: [u8; 16]) -> IpAddr {
    if is_ipv6 {
        return IpAddr::V6(Ipv6Addr::from(bytes));
    }
    IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_by_hand() {
        let mut bytes = [0; EVENT_BYTES];
        bytes[..8].copy_from_slice(&7u64.to_ne_bytes());
        bytes[36..40].copy_from_slice(&9u32.to_ne_bytes());
        bytes[48..50].copy_from_slice(&80u16.to_ne_bytes());
        (bytes[52], bytes[53]) = (1, 1 | 4);
        bytes[71] = 1;
        let (event, copied) = KernelEvent::decode(&bytes).expect("an event");
        assert!(copied.is_empty());
        assert_eq!((event.time, event.end, event.local_port), (7, 9, 80));
        assert_eq!((event.kind, event.push, event.udp), (EventKind::Arrival, true, false));
        assert_eq!(event.peer, IpAddr::V6(Ipv6Addr::LOCALHOST));
        bytes[53] = 2;
        bytes[56..60].copy_from_slice(&[10, 0, 0, 1]);
        bytes[24] = 5;
        let (event, _) = KernelEvent::decode(&bytes).expect("an event");
        assert_eq!((event.udp, event.peer), (true, IpAddr::from([10, 0, 0, 1])));
        assert_eq!((event.datagram_head, event.socket), ([5, 0, 0, 0, 0, 0, 0, 0], 0));
    }

    #[test]
    fn bytes_are_behind_events_that_are_about_them() {
        let mut record = vec![0; EVENT_BYTES + 3];
        (record[52], record[53], record[EVENT_BYTES]) = (9, 8, 7);
        let (event, copied) = KernelEvent::decode(&record).expect("an event");
        assert_eq!((event.kind, event.answer, copied), (EventKind::Bytes, true, &[7, 0, 0][..]));
        record[52] = 3;
        assert_eq!(KernelEvent::decode(&record), None);
        record.resize(EVENT_BYTES + COPIED_BYTES_MAX + 1, 0);
        record[52] = 9;
        assert_eq!(KernelEvent::decode(&record), None);
    }

    #[test]
    fn events_of_threads_by_hand() {
        let mut bytes = [0; EVENT_BYTES];
        bytes[8..16].copy_from_slice(&5u64.to_ne_bytes());
        bytes[36..40].copy_from_slice(&9u32.to_ne_bytes());
        bytes[48..50].copy_from_slice(&3u16.to_ne_bytes());
        bytes[50..52].copy_from_slice(&4u16.to_ne_bytes());
        bytes[56..64].copy_from_slice(&6u64.to_ne_bytes());
        bytes[24..32].copy_from_slice(&7u64.to_ne_bytes());
        let mut decoded = |kind| {
            bytes[52] = kind;
            KernelEvent::decode(&bytes).expect("an event").0
        };
        let receive = decoded(3);
        assert_eq!((receive.schedule.woken, receive.schedule.cpu, receive.flow), (6, 4, 5));
        assert_eq!((receive.peer_port, receive.local_port), (0, 3));
        let leave = decoded(7);
        assert_eq!((leave.schedule.woken, leave.schedule.cpu, leave.schedule.state), (5, 3, 4));
        assert_eq!((leave.schedule.softirq_ns, leave.flow, leave.schedule.waits_for_io), (9, 0, false));
        let occupant = decoded(8);
        assert_eq!((occupant.schedule.name[0], occupant.schedule.cpu), (6u64.to_ne_bytes()[0], 3));
        assert_eq!((occupant.schedule.stolen_ns, occupant.socket), (7, 0));
        assert_eq!(decoded(1).schedule, ThreadSchedule::default());
        assert!(!decoded(2).is_mptcp);
        assert!(!decoded(7).schedule.was_idle);
        (bytes[52], bytes[53]) = (7, 128);
        let waits = KernelEvent::decode(&bytes).expect("an event").0;
        assert!(waits.schedule.waits_for_io && !waits.is_kernel_nfs);
        bytes[53] = 16;
        bytes[52] = 12;
        let moved = KernelEvent::decode(&bytes).expect("an event").0.schedule;
        assert_eq!((moved.cpu, moved.was_idle), (3, true));
        bytes[52] = 13;
        let throttled = KernelEvent::decode(&bytes).expect("an event").0;
        assert_eq!((throttled.schedule.throttled_ns, throttled.flow), (5, 0));
        (bytes[52], bytes[53]) = (2, 32);
        assert!(KernelEvent::decode(&bytes).is_some_and(|(event, _)| event.is_mptcp));
    }

    #[test]
    fn what_is_no_event_is_refused() {
        assert_eq!(KernelEvent::decode(&[1; EVENT_BYTES - 1]), None);
        assert_eq!(KernelEvent::decode(&[0; EVENT_BYTES]), None);
        assert_eq!(KernelEvent::decode(&[99; EVENT_BYTES]), None);
    }
}
