//! What the joiner says of its memory, and its bound, against a count of what is allocated. A binary of its own, because it
//! counts for the whole process.

use observe::{EventKind, KernelEvent, Protocol, RequestJoiner, TableSizes, ThreadSchedule};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed on to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const LIMIT: usize = 8 << 20;
const LIMITS: TableSizes = TableSizes { bytes: LIMIT, ..TableSizes::LIMITS };
const UNLIMITED: TableSizes = TableSizes { bytes: usize::MAX, ..TableSizes::LIMITS };

/// Connections come in turn, so often that without a limit they would hold several times as much.
const CONNECTIONS: u32 = 2000;

/// What clients and servers do so that much is kept of each connection.
#[derive(Debug, Clone, Copy)]
enum Burden {
    /// Packets whose reads are not seen.
    Unread,
    /// Requests that nobody answers.
    Unanswered,
    /// Bytes behind a hole, of a connection that is told apart.
    SeenBehindAHole,
    /// Bytes of reads that may be the first to be told apart.
    SeenBeforeAnAnswer,
    /// Calls that threads of the kernel do not answer.
    Calls,
}

impl Burden {
    fn protocol(self) -> Option<Protocol> {
        matches!(self, Self::SeenBehindAHole | Self::SeenBeforeAnAnswer).then_some(Protocol::Resp)
    }

    fn rounds(self) -> u32 {
        if self.protocol().is_some() { 8 } else { 300 }
    }
}

fn event(time: u64, flow: u32, kind: EventKind, round: u32) -> KernelEvent {
    KernelEvent {
        time,
        flow: u64::from(flow),
        earlier: time,
        socket: 0,
        begin: 100 * round,
        end: 100 * round + 100,
        thread: round + 1,
        process: 1,
        local_port: 80,
        peer_port: 1,
        kind,
        push: true,
        udp: false,
        answer: false,
        is_kernel_nfs: false,
        is_mptcp: false,
        datagram_head: [0; 8],
        lost: 0,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        schedule: ThreadSchedule::default(),
        freed: 0,
    }
}

/// The most that the joiner said of its memory whenever it was asked, and the most that was allocated while it ran, in bytes.
fn memory(burden: Burden, limits: &'static TableSizes) -> (usize, usize) {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let mut joiner = RequestJoiner::with_limits(burden.protocol(), limits);
    let mut finished = Vec::new();
    let mut time = 0;
    let mut said = 0;
    let mut allocated = 0;
    let copied = [b'x'; 4096];
    for round in 0..burden.rounds() {
        for flow in 0..CONNECTIONS {
            time += 1000;
            let arrival = event(time, flow, EventKind::Arrival, round);
            let read = KernelEvent { kind: EventKind::Receive, ..arrival };
            let bytes = KernelEvent { kind: EventKind::Bytes, begin: 1_000_000 + 8192 * round, ..arrival };
            let open = KernelEvent { kind: EventKind::Open, ..arrival };
            let events: &[KernelEvent] = match burden {
                Burden::Unread => &[arrival],
                Burden::Unanswered => &[arrival, read],
                Burden::SeenBehindAHole if round == 0 => &[open, bytes],
                Burden::SeenBehindAHole | Burden::SeenBeforeAnAnswer => &[bytes],
                Burden::Calls => &[arrival, KernelEvent { is_kernel_nfs: true, ..read }],
            };
            for event in events {
                let copied: &[u8] = if event.kind == EventKind::Bytes { &copied } else { &[] };
                joiner.handle_with_bytes(event, copied, &mut finished);
            }
            if flow % 64 == 0 {
                said = said.max(joiner.sizes().bytes);
            }
            allocated = allocated.max(ALLOCATED.load(Ordering::Relaxed) - before);
        }
    }
    (said, allocated)
}

#[test]
fn the_limit_of_all_connections_holds_for_what_is_allocated() {
    for burden in [
        Burden::Unread,
        Burden::Unanswered,
        Burden::SeenBehindAHole,
        Burden::SeenBeforeAnAnswer,
        Burden::Calls,
    ] {
        let (said, allocated) = memory(burden, &UNLIMITED);
        println!("{burden:?} without a limit: {said} bytes by its own account, {allocated} allocated");
        assert!(allocated > 3 * LIMIT, "{burden:?}: the limit has something to do: {allocated}");
        assert!((said / 2..said * 5 / 4).contains(&allocated), "{burden:?}: {said} {allocated}");
        let (said, allocated) = memory(burden, &LIMITS);
        println!("{burden:?} with one of {LIMIT}: {said} bytes by its own account, {allocated} allocated");
        assert!((LIMIT * 9 / 10..=LIMIT).contains(&said), "{burden:?}: {said}");
        assert!(allocated <= LIMIT * 5 / 4, "{burden:?}: {allocated}");
    }
}
