//! A request as it passed the points of a server, and the stages between them.

use std::net::SocketAddr;

/// The points that a request passes, in order. T0 to T6 are those of Li et al., *Tales of the Tail*, section 3.3.1, with
/// the arrival from the wire before them and the start of processing (e4 of Gandhi and Suresh) between T4 and T5. A
/// request that comes in several packets passes T0 to T4 with its last byte; [`ObservedRequest::first_wire`] has the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestPoint {
    /// T0: a device has put the packet into the queue of a CPU.
    Wire,
    /// T1: the network stack begins with the packet.
    Stack,
    /// T2: the bytes are in the socket.
    Ready,
    /// T3: the thread that reads them is on a CPU and done with what it did before.
    Scheduled,
    /// T4 (e3): the read has returned.
    Read,
    /// e4: the thread that answers is done with what it did before.
    Started,
    /// T5: the first byte of the answer is handed to the kernel.
    Written,
    /// T6: the packet with the last byte of the answer is handed to the network device.
    Transmitted,
}

/// The number of points.
pub const POINTS: usize = 8;

/// The number of stages: each lies between two points.
pub const STAGES: usize = POINTS - 1;

/// The names of the stages, in order. Those after the read are the names of Gandhi and Suresh where they have one.
pub const STAGE_NAMES: [&str; STAGES] =
    ["receive-queue", "network-stack", "wakeup", "read", "socket-to-parse", "processing", "transmit"];

/// What is known about a request less well than usual. A set of flags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestQuality(u16);

impl RequestQuality {
    /// T0 was not seen and is taken to be T1.
    pub(crate) const WIRE_UNSEEN: Self = Self(1);
    /// T2 was not seen and is taken to be T1.
    pub const READY_UNSEEN: Self = Self(1 << 1);
    /// Since when the reader was on a CPU and free was not seen: its first read, or its first after a gap.
    pub(crate) const SWITCH_UNSEEN: Self = Self(1 << 2);
    /// T5 was not seen and is taken to be T6: UDP.
    pub const WRITE_UNSEEN: Self = Self(1 << 3);
    /// Which bytes are the request, or which writes its answer, is a guess.
    pub const GUESSED: Self = Self(1 << 4);
    /// Several requests were answered by one write.
    pub const SHARED_ANSWER: Self = Self(1 << 5);
    /// The answer took several writes, or there were several requests in one packet.
    pub(crate) const SEVERAL_WRITES: Self = Self(1 << 6);
    /// The reader slept between reads of the request.
    pub const SEVERAL_READS: Self = Self(1 << 7);
    /// A point was reported before the one that precedes it, and was moved.
    pub const MOVED: Self = Self(1 << 8);
    /// Which bytes are the request and its answer follows from packets, reads and writes, not from a protocol.
    pub const WITHOUT_PROTOCOL: Self = Self(1 << 9);

    /// Every flag with what it says, in a few words.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::WIRE_UNSEEN, "arrival from the wire not seen"),
        (Self::READY_UNSEEN, "readiness not seen"),
        (Self::SWITCH_UNSEEN, "reader not seen before"),
        (Self::WRITE_UNSEEN, "write not seen"),
        (Self::GUESSED, "extent guessed"),
        (Self::SHARED_ANSWER, "several answered by one write"),
        (Self::SEVERAL_WRITES, "answered by several writes"),
        (Self::SEVERAL_READS, "slept between reads"),
        (Self::MOVED, "points moved"),
        (Self::WITHOUT_PROTOCOL, "boundaries guessed from packets and reads"),
    ];

    /// The flags of both sets.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These flags and those of `others` that hold.
    #[must_use]
    pub(crate) fn with_those_that_hold(self, others: &[(bool, Self)]) -> Self {
        let holding = others.iter().filter(|(holds, _)| *holds);
        holding.fold(self, |flags, (_, flag)| flags.with(*flag))
    }

    /// Whether all flags of `other` are here.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The time in which the worker of a request was held up while it was busy with it: others had its CPU, it was stopped,
/// or it had used up its quota. In nanoseconds, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldUpTime {
    /// Between T3 and T4.
    pub reading: u64,
    /// Between e4 and T6.
    pub processing: u64,
    /// Time between T3 and T4 and from e4 to the last write in which the worker was not seen. Unlike the others,
    /// it may have been busy with the request.
    pub unseen: u64,
}

/// A request and its answer, as the server's machine saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedRequest {
    /// When it passed each point, in nanoseconds of CLOCK_MONOTONIC; never decreasing.
    pub points: [u64; POINTS],
    /// T0 of its first byte, in nanoseconds of CLOCK_MONOTONIC: before T0 when its client sends it in several packets.
    pub first_wire: u64,
    /// The last write of the answer that the network waited for, in nanoseconds of CLOCK_MONOTONIC, from T5 to T6: everything
    /// of the answer that was written before it had been handed to the network device. Until then the server had to act,
    /// after it the network.
    pub last_awaited_write: u64,
    /// The address of the client.
    pub peer: SocketAddr,
    /// The port of the server.
    pub port: u16,
    /// Whether it came by UDP, not TCP.
    pub udp: bool,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Bytes of the answer.
    pub answer_bytes: u64,
    /// The thread that read it.
    pub reader: u32,
    /// The thread that answered it.
    pub writer: u32,
    /// What is known less well than usual.
    pub quality: RequestQuality,
    /// Zero until the causes of its time are divided.
    pub held_up: HeldUpTime,
}

impl ObservedRequest {
    /// When it passed a point, in nanoseconds of CLOCK_MONOTONIC.
    pub fn at(&self, point: RequestPoint) -> u64 {
        self.points[point as usize]
    }

    /// The time in each stage, in nanoseconds; together exactly T6 − T0.
    pub fn stages(&self) -> [u64; STAGES] {
        std::array::from_fn(|stage| self.points[stage + 1] - self.points[stage])
    }

    /// The time in nanoseconds from its first byte to its last, in which the client was sending it.
    pub fn sending_time(&self) -> u64 {
        self.at(RequestPoint::Wire).saturating_sub(self.first_wire)
    }

    /// Of two instants at which the answer was written, the later one, if it lies between T5 and T6.
    pub(crate) fn await_write(&mut self, time: u64) {
        let written = self.at(RequestPoint::Written);
        let transmitted = self.at(RequestPoint::Transmitted);
        self.last_awaited_write = self.last_awaited_write.max(time).clamp(written, transmitted);
    }

    /// T6 − T1 in nanoseconds, the latency of *Tales of the Tail*.
    pub fn latency_from_stack(&self) -> u64 {
        self.at(RequestPoint::Transmitted) - self.at(RequestPoint::Stack)
    }

    /// T6 − T0 in nanoseconds.
    pub fn latency_from_wire(&self) -> u64 {
        self.at(RequestPoint::Transmitted) - self.at(RequestPoint::Wire)
    }
}

/// Points that never decrease: each is moved to the one before it, and the last one bounds all. True if one was moved.
pub(crate) fn in_order(mut points: [u64; POINTS]) -> ([u64; POINTS], bool) {
    let end = points[POINTS - 1].max(points[0]);
    let mut previous = points[0];
    let mut moved = false;
    for point in &mut points {
        let fitting = (*point).clamp(previous, end);
        moved |= fitting != *point;
        (*point, previous) = (fitting, fitting);
    }
    (points, moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_moved_as_little_as_their_order_takes() {
        assert_eq!(in_order([1, 2, 3, 4, 5, 6, 7, 8]), ([1, 2, 3, 4, 5, 6, 7, 8], false));
        assert_eq!(in_order([1, 2, 3, 2, 5, 6, 9, 8]), ([1, 2, 3, 3, 5, 6, 8, 8], true));
        assert_eq!(in_order([5, 2, 3, 2, 5, 6, 9, 4]), ([5; POINTS], true));
    }

    #[test]
    fn qualities_are_sets() {
        let both = RequestQuality::GUESSED.with(RequestQuality::MOVED);
        assert!(both.has(RequestQuality::MOVED) && !RequestQuality::MOVED.has(both));
        let all =
            RequestQuality::ALL.iter().fold(RequestQuality::default(), |sum, (flag, _)| sum.with(*flag));
        assert!(RequestQuality::ALL.iter().all(|(flag, _)| all.has(*flag)) && !both.has(all));
    }
}
