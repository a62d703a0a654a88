//! Passes over the TCP sockets of a network namespace, by the programs of `bpf/sockets.bpf.c`.

use super::namespace::NamespaceDoor;
use super::pinned;
use super::programs::{OBJECT, attach_watchers, iterator, read_to_end, take, unloadable};
use crate::open_sockets::{ServerSockets, SocketOption, SocketTotals, SocketsTakenBack};
use aya::maps::{Array, MapData};
use aya::programs::ProgramError;
use aya::programs::links::{FdLink, PinnedLink};
use aya::{Btf, Ebpf, EbpfLoader};
use model::OperationError;
use observe::{refused, types_of_kernel};
use rustix::thread::{MembarrierCommand, membarrier};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Passes take at most 1/20 of a CPU, with the option on or off.
const SPARING: u32 = 20;
/// Time from the creation of a connection until a pass can find it, if the kernel cannot tell by
/// membarrier(2).
const SETTLE: Duration = Duration::from_millis(10);
/// Maximum number of final passes that remove records, until one finds none. One suffices unless a connection
/// is being made.
const END_PASSES_MAX: usize = 20;
/// Words of the port bitmap.
const PORT_WORDS: u16 = 1024;
/// Maximum length of an option's value, with its final zero.
const NAME_BYTES: usize = 16;

/// Action of a pass: `enum pass_kind` in the BPF programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PassKind {
    Count,
    Set,
    TakeBack,
    End,
}

/// Numbers of connected and of listening sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SocketCount {
    pub(super) connected: u64,
    listening: u64,
}

impl SocketCount {
    pub(super) fn total(self) -> u64 {
        self.connected + self.listening
    }
}

/// Results of a pass: `struct pass_counts` in the BPF programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PassCounts {
    /// Sockets of the server that have the value.
    pub(super) have: SocketCount,
    /// Sockets of the server that have another value.
    pub(super) have_not: SocketCount,
    changed: SocketCount,
    again: SocketCount,
    recorded: SocketCount,
    ended: SocketCount,
    servers: SocketCount,
    /// Sockets that could not be read or set.
    pub(super) failed: SocketCount,
}

const COUNT_WORDS: usize = 16;

impl PassCounts {
    fn of(words: [u64; COUNT_WORDS]) -> Self {
        let count =
            |index: usize| SocketCount { connected: words[2 * index], listening: words[2 * index + 1] };
        Self {
            have: count(0),
            have_not: count(1),
            changed: count(2),
            again: count(3),
            recorded: count(4),
            ended: count(5),
            servers: count(6),
            failed: count(7),
        }
    }

    fn add_to(&self, taken: &mut SocketsTakenBack) {
        taken.listening += self.ended.listening;
        taken.connected += self.ended.connected;
        taken.of_server += self.servers.total();
    }
}

/// The program that records the server's own calls, active while pinned or while this program runs.
#[derive(Debug)]
enum Watcher {
    Attached(FdLink),
    Pinned(PinnedLink),
}

/// Loaded BPF programs for the sockets of a server.
pub(super) struct SocketPasses {
    object: Ebpf,
    requests: Array<MapData, [u64; 6]>,
    counts: Array<MapData, [u64; COUNT_WORDS]>,
    watchers: Vec<Watcher>,
    sockets: ServerSockets,
    door: NamespaceDoor,
    /// Number of times the option was turned on.
    period: u64,
    is_on: bool,
    is_later: bool,
    wanted: [u64; 2],
    not_before: Instant,
    pub(super) totals: SocketTotals,
}

impl std::fmt::Debug for SocketPasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocketPasses").field("sockets", &self.sockets).finish_non_exhaustive()
    }
}

impl SocketPasses {
    /// Loads the programs; changes nothing yet.
    pub(super) fn new(sockets: &ServerSockets) -> Result<Self, OperationError> {
        let door = NamespaceDoor::find(sockets.namespace)?.ok_or_else(|| {
            OperationError::machine(format_args!("{sockets}: the network namespace is gone"))
        })?;
        let btf = types_of_kernel()?;
        let mut passes = Self::of_object(sockets, door, EbpfLoader::new().btf(Some(&btf)), &btf)?;
        if let Ok(links) = attach_watchers(&mut passes.object, sockets.option, &btf) {
            passes.watchers = links.into_iter().map(Watcher::Attached).collect();
            passes.totals.is_server_seen = true;
        }
        Ok(passes)
    }

    /// Loads the programs with pinned records. Calls of the server are recorded by the pinned watchers.
    pub(super) fn of_records(sockets: &ServerSockets, door: NamespaceDoor) -> Result<Self, OperationError> {
        let btf = types_of_kernel()?;
        let records = pinned::records(&sockets.folder);
        let mut loader = EbpfLoader::new();
        let mut passes =
            Self::of_object(sockets, door, loader.btf(Some(&btf)).map_pin_path("records", records), &btf)?;
        passes.is_on = true;
        Ok(passes)
    }

    fn of_object(
        sockets: &ServerSockets,
        door: NamespaceDoor,
        loader: &mut EbpfLoader<'_>,
        btf: &Btf,
    ) -> Result<Self, OperationError> {
        let mut object = loader.load(OBJECT).map_err(|error| unloadable(&error))?;
        let failed = |error: &ProgramError| unloadable(error);
        iterator(&mut object).load("tcp", btf).map_err(|error| failed(&error))?;
        let mut ports: Array<MapData, u64> = take(&mut object, "ports")?;
        for (word, bits) in port_bits(&sockets.ports) {
            ports.set(u32::from(word), bits, 0).map_err(|error| unloadable(&error))?;
        }
        Ok(Self {
            requests: take(&mut object, "requests")?,
            counts: take(&mut object, "counts")?,
            object,
            watchers: Vec::new(),
            sockets: sockets.clone(),
            door,
            period: 0,
            is_on: false,
            is_later: false,
            wanted: [0; 2],
            not_before: Instant::now(),
            totals: SocketTotals::default(),
        })
    }

    /// Counts the server's sockets that have a value.
    pub(super) fn count(&mut self, value: &str) -> Result<PassCounts, OperationError> {
        self.wanted = words(self.sockets.option, value);
        self.pass(PassKind::Count)
    }

    /// Sets the value. The first call pins the records and sets all sockets. Later calls set new sockets and
    /// those that the server has changed, limited to the share of a CPU above.
    pub(super) fn set(&mut self, value: &str) -> Result<(), OperationError> {
        if self.is_on && Instant::now() < self.not_before {
            return Ok(());
        }
        self.wanted = words(self.sockets.option, value);
        let is_first = !self.is_on;
        if is_first {
            self.period += 1;
            self.is_on = true;
            self.pin()?;
        }
        self.is_later = !is_first;
        let counts = self.pass(PassKind::Set)?;
        self.totals.set_again += counts.again.total();
        self.totals.not_set = self.totals.not_set.max(counts.failed.total());
        if is_first && counts.have.total() == 0 && counts.failed.total() > 0 {
            let message = format_args!("{}: none of them takes {value}", self.sockets);
            return Err(OperationError::machine(message));
        }
        Ok(())
    }

    /// Inspects the sockets while the option is off, as often as they are set while it is on.
    pub(super) fn look(&mut self) -> Result<(), OperationError> {
        if !self.is_on && Instant::now() >= self.not_before {
            self.pass(PassKind::Count)?;
        }
        Ok(())
    }

    /// Restores the sockets, except where the server has set the option since. Removes the records when none
    /// is left.
    pub(super) fn take_back(&mut self) -> Result<SocketsTakenBack, OperationError> {
        let mut taken = SocketsTakenBack::default();
        if self.sockets.option == SocketOption::NoDelay {
            // Connections inherit from the listening socket, so its record must outlast connections that are
            // being made.
            self.pass(PassKind::TakeBack)?.add_to(&mut taken);
            wait_for_connections_being_made();
        }
        for _ in 0..END_PASSES_MAX {
            let counts = self.pass(PassKind::End)?;
            counts.add_to(&mut taken);
            if counts.failed.total() > 0 {
                return Err(not_taken_back(&self.sockets, counts.failed.total()));
            }
            if counts.recorded.total() == 0 {
                self.unpin()?;
                self.is_on = false;
                self.totals.listening = self.totals.listening.max(taken.listening);
                self.totals.connected = self.totals.connected.max(taken.connected);
                return Ok(taken);
            }
        }
        let message = format_args!("{}: connections begin faster than they are given back", self.sockets);
        Err(OperationError::machine(message))
    }

    /// Runs one pass over all sockets.
    fn pass(&mut self, kind: PassKind) -> Result<PassCounts, OperationError> {
        let begun = Instant::now();
        let option = match self.sockets.option {
            SocketOption::NoDelay => 1,
            SocketOption::CongestionControl => 13,
        };
        let later = u64::from(self.is_later);
        let request = [kind as u64, option, self.period, later, self.wanted[0], self.wanted[1]];
        let failed = |error: &dyn std::error::Error| refused("the sockets cannot be looked at", error);
        self.requests.set(0, request, 0).map_err(|error| failed(&error))?;
        self.counts.set(0, [0; COUNT_WORDS], 0).map_err(|error| failed(&error))?;
        let iterator = iterator(&mut self.object);
        let link = iterator.attach().and_then(|link| iterator.take_link(link));
        let link = link.map_err(|error| failed(&error))?;
        // The iterator covers the namespace in which it is opened.
        let file = self.door.inside(move || link.into_file())?.map_err(|error| failed(&error))?;
        read_to_end(file).map_err(|error| failed(&error))?;
        let counts = self.counts.get(&0, 0).map_err(|error| failed(&error))?;
        let duration = begun.elapsed();
        self.totals.passes += 1;
        self.totals.duration += duration;
        self.not_before = Instant::now() + duration * SPARING;
        Ok(PassCounts::of(counts))
    }

    /// Pins the records and their watchers, so that they outlive this program.
    fn pin(&mut self) -> Result<(), OperationError> {
        let folder = self.sockets.folder.clone();
        let failed = |error: &dyn std::error::Error| {
            refused(&format!("{}: what sockets had before cannot be kept there", folder.display()), error)
        };
        pinned::remove(&folder).map_err(|error| failed(&error))?;
        fs::create_dir(&folder).map_err(|error| failed(&error))?;
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).map_err(|error| failed(&error))?;
        let records = self.object.map("records").expect("the compiled object has all maps");
        records.pin(pinned::records(&folder)).map_err(|error| failed(&error))?;
        for (index, watcher) in std::mem::take(&mut self.watchers).into_iter().enumerate() {
            let pinned = match watcher {
                Watcher::Attached(link) => {
                    let path: PathBuf = folder.join(format!("watcher-{index}"));
                    link.pin(path).map_err(|error| failed(&error))?
                }
                Watcher::Pinned(link) => link,
            };
            self.watchers.push(Watcher::Pinned(pinned));
        }
        Ok(())
    }

    /// Unpins them: the programs stay attached while this program runs.
    fn unpin(&mut self) -> Result<(), OperationError> {
        let folder = self.sockets.folder.clone();
        let failed = |error: io::Error| {
            OperationError::machine(format_args!("{}: {error}", folder.display())).hint("run as root")
        };
        for watcher in std::mem::take(&mut self.watchers) {
            self.watchers.push(Watcher::Attached(match watcher {
                Watcher::Pinned(link) => link.unpin().map_err(failed)?,
                Watcher::Attached(link) => link,
            }));
        }
        pinned::remove(&folder).map_err(failed)
    }
}

/// Waits until connections being made are visible to a pass. The kernel makes them without sleeping, in an
/// RCU read-side section.
fn wait_for_connections_being_made() {
    // A global membarrier waits for all RCU readers, as packet reception is; kernels with nohz_full CPUs
    // refuse it.
    if membarrier(MembarrierCommand::Global).is_err() {
        thread::sleep(SETTLE);
    }
}

fn not_taken_back(sockets: &ServerSockets, count: u64) -> OperationError {
    let message = format_args!("{sockets}: {count} of them do not take what they had before");
    OperationError::machine(message).hint("a congestion control has to be there: modprobe tcp_NAME")
}

/// Encodes an option's value as the BPF programs compare it.
fn words(option: SocketOption, value: &str) -> [u64; 2] {
    if option == SocketOption::NoDelay {
        return [u64::from(value == "on"), 0];
    }
    let mut name = [0; NAME_BYTES];
    for (into, byte) in name.iter_mut().take(NAME_BYTES - 1).zip(value.bytes()) {
        *into = byte;
    }
    let [first, second] = [0, 8].map(|begin| name[begin..begin + 8].try_into().expect("eight bytes"));
    [u64::from_ne_bytes(first), u64::from_ne_bytes(second)]
}

/// Returns the non-zero words of the port bitmap.
fn port_bits(ports: &[u16]) -> Vec<(u16, u64)> {
    let word = |word: u16| {
        let bits = ports.iter().filter(|port| **port >> 6 == word).map(|port| 1 << (port & 63));
        (word, bits.fold(0, |all, bit: u64| all | bit))
    };
    (0..PORT_WORDS).map(word).filter(|(_, bits)| *bits != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_or_names_filled_with_zeros() {
        assert_eq!(words(SocketOption::NoDelay, "on"), [1, 0]);
        assert_eq!(words(SocketOption::NoDelay, "off"), [0, 0]);
        let [first, second] = words(SocketOption::CongestionControl, "bbr").map(u64::to_ne_bytes);
        assert_eq!((&first, second), (b"bbr\0\0\0\0\0", [0; 8]));
        let [first, second] =
            words(SocketOption::CongestionControl, "a name too long for it").map(u64::to_ne_bytes);
        assert_eq!((&first, &second), (b"a name t", b"oo long\0"));
    }

    #[test]
    fn each_port_has_a_bit() {
        assert_eq!(port_bits(&[0, 63, 64, u16::MAX]), [(0, 1 | 1 << 63), (1, 1), (1023, 1 << 63)]);
        assert_eq!(port_bits(&[]), []);
    }

    #[test]
    fn counts_have_the_order_of_the_programs() {
        let counts = PassCounts::of(std::array::from_fn(|index| index as u64));
        assert_eq!((counts.have.connected, counts.have.listening), (0, 1));
        assert_eq!((counts.failed.connected, counts.failed.listening), (14, 15));
        assert_eq!(counts.failed.total(), 29);
    }
}
