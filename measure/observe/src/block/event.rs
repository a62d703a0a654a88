//! What happens to a request of a block device, as `bpf/block.bpf.c` reports it.

use crate::thread_name::thread_name;
use model::OperationError;
use std::fmt;
use std::fs;
use std::path::Path;

/// Bytes of an event in the ring buffer.
pub(crate) const BLOCK_EVENT_BYTES: usize = 88;

/// The name of requesters that are not told apart.
const OTHERS: &str = "others";

/// A device by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockDevice {
    /// Which kind of device.
    pub major: u32,
    /// Which one of its kind.
    pub minor: u32,
}

/// What a request does, by the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockOperation(pub u8);

/// Who sends what to which device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockRequester {
    /// The device that requests are for.
    pub device: BlockDevice,
    /// What the requests do.
    pub operation: BlockOperation,
    /// The number of the process.
    pub process: u32,
    /// The name of the thread.
    pub name: String,
    /// The control group of the process.
    pub cgroup: u64,
}

impl BlockRequester {
    /// Those at a device that are not told apart.
    pub(super) fn others(device: BlockDevice) -> Self {
        Self { device, operation: BlockOperation(u8::MAX), process: 0, name: OTHERS.to_owned(), cgroup: 0 }
    }

    /// Whether these are the ones that are not told apart.
    pub(super) fn is_others(&self) -> bool {
        self.process == 0 && self.operation == BlockOperation(u8::MAX)
    }
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockPhase {
    /// It comes to the block layer.
    Begin,
    /// The device gets it.
    Issue,
    /// The device has done it.
    Done,
    /// It has become a part of another one, or ends without the device.
    Merged,
    /// The device did not take it.
    Returned,
}

/// What happens to a request, and what has happened before. Instants are nanoseconds of CLOCK_MONOTONIC, or 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEvent {
    /// When it came to the block layer.
    pub begin: u64,
    /// When the device got it, the last time.
    pub issue: u64,
    /// When the device was done.
    pub end: u64,
    /// The control group of the process that it came from.
    pub cgroup: u64,
    /// The device that it was for.
    pub device: BlockDevice,
    /// What it does there.
    pub operation: BlockOperation,
    /// Bytes that it moves.
    pub bytes: u32,
    /// The process that it came from.
    pub process: u32,
    /// The name of the thread that it came from, which that chooses; control characters are replaced.
    pub name: String,
    /// The number of the request, which no other one has.
    pub number: u64,
    /// The instant of what happens.
    pub time: u64,
    /// What happens to the request.
    pub phase: BlockPhase,
    /// Whether the device has failed to do it.
    pub failed: bool,
}

impl BlockEvent {
    /// Decodes an event; `None` when the bytes are not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BLOCK_EVENT_BYTES] = bytes.try_into().ok()?;
        let device = u32::from_ne_bytes(field(bytes, 32));
        Some(Self {
            begin: u64::from_ne_bytes(field(bytes, 0)),
            issue: u64::from_ne_bytes(field(bytes, 8)),
            end: u64::from_ne_bytes(field(bytes, 16)),
            cgroup: u64::from_ne_bytes(field(bytes, 24)),
            device: BlockDevice { major: device >> 20, minor: device & 0xf_ffff },
            operation: BlockOperation(bytes[36]),
            bytes: u32::from_ne_bytes(field(bytes, 40)),
            process: u32::from_ne_bytes(field(bytes, 44)),
            name: thread_name(&field(bytes, 48)),
            number: u64::from_ne_bytes(field(bytes, 64)),
            time: u64::from_ne_bytes(field(bytes, 72)),
            phase: phase(u32::from_ne_bytes(field(bytes, 80)))?,
            failed: u32::from_ne_bytes(field(bytes, 84)) != 0,
        })
    }

    /// Who sends the request.
    pub fn requester(&self) -> BlockRequester {
        BlockRequester {
            device: self.device,
            operation: self.operation,
            process: self.process,
            name: self.name.clone(),
            cgroup: self.cgroup,
        }
    }
}

fn phase(number: u32) -> Option<BlockPhase> {
    Some(match number {
        1 => BlockPhase::Begin,
        2 => BlockPhase::Issue,
        3 => BlockPhase::Done,
        4 => BlockPhase::Merged,
        5 => BlockPhase::Returned,
        _ => return None,
    })
}

fn field<const N: usize>(bytes: &[u8; BLOCK_EVENT_BYTES], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("fields lie inside of an event")
}

impl BlockDevice {
    /// The device with a name such as `sda`.
    ///
    /// # Errors
    /// When there is none, or it is a partition: requests are those of the whole device.
    pub fn named(name: &str) -> Result<Self, OperationError> {
        Self::named_in(Path::new("/sys/class/block"), name)
    }

    /// The device with a name among those in a folder like `/sys/class/block`.
    fn named_in(devices: &Path, name: &str) -> Result<Self, OperationError> {
        let none = || {
            OperationError::input(format_args!("there is no block device {name:?}"))
                .hint("expected a name in /sys/class/block, such as sda")
        };
        if name.is_empty() || name.contains(['/', '.']) {
            return Err(none());
        }
        let device = devices.join(name);
        if device.join("partition").exists() {
            let place = fs::canonicalize(&device).ok();
            let whole = place.as_deref().and_then(Path::parent).and_then(Path::file_name);
            let whole = whole.map_or("the whole device".into(), |whole| whole.to_string_lossy());
            return Err(OperationError::input(format_args!("{name} is a partition of {whole}"))
                .hint(format_args!("observe {whole}: the kernel counts requests for the whole device")));
        }
        let text = fs::read_to_string(device.join("dev")).map_err(|_| none())?;
        let numbers = text.trim().split_once(':').map(|(major, minor)| (major.parse(), minor.parse()));
        match numbers {
            Some((Ok(major), Ok(minor))) => Ok(Self { major, minor }),
            _ => Err(none()),
        }
    }

    /// The number that the programs in the kernel use.
    pub(super) fn number(self) -> u32 {
        self.major << 20 | self.minor
    }
}

/// The name where `/sys` has one, otherwise the numbers.
impl fmt::Display for BlockDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor } = self;
        let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok();
        match link.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()) {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "{major}:{minor}"),
        }
    }
}

impl fmt::Display for BlockOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            0 => "read",
            1 => "write",
            2 => "flush",
            3 => "discard",
            5 => "secure erase",
            9 => "write zeroes",
            _ => "other",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_by_hand() {
        let mut bytes = [0; BLOCK_EVENT_BYTES];
        bytes[8..16].copy_from_slice(&5u64.to_ne_bytes());
        bytes[32..36].copy_from_slice(&(8u32 << 20 | 3).to_ne_bytes());
        bytes[36..40].copy_from_slice(&1u32.to_ne_bytes());
        bytes[48..51].copy_from_slice(b"fio");
        (bytes[64], bytes[72]) = (9, 7);
        bytes[80..84].copy_from_slice(&3u32.to_ne_bytes());
        let event = BlockEvent::decode(&bytes).expect("an event");
        assert_eq!((event.issue, event.device), (5, BlockDevice { major: 8, minor: 3 }));
        assert_eq!((event.name.as_str(), event.operation.to_string().as_str()), ("fio", "write"));
        assert_eq!((event.device.number(), event.failed), (8 << 20 | 3, false));
        assert_eq!((event.number, event.time, event.phase), (9, 7, BlockPhase::Done));
        assert_eq!(BlockEvent::decode(&bytes[1..]), None);
        bytes[80] = 6;
        assert_eq!(BlockEvent::decode(&bytes), None);
    }

    #[test]
    fn names_of_devices_are_not_paths() {
        for name in ["", "../class", "no such device", "."] {
            assert!(BlockDevice::named(name).is_err(), "{name}");
        }
        assert_eq!(BlockDevice { major: 4000, minor: 9 }.to_string(), "4000:9");
    }
    #[test]
    fn a_partition_is_refused_with_the_name_of_its_device() {
        let folder = tempfile::tempdir().expect("a folder");
        let devices = folder.path().join("class");
        let disk = folder.path().join("pci/block/sda");
        fs::create_dir_all(disk.join("sda1")).expect("it is ours");
        fs::create_dir(&devices).expect("it is ours");
        for (file, text) in [("dev", "8:0\n"), ("sda1/dev", "8:1\n"), ("sda1/partition", "1\n")] {
            fs::write(disk.join(file), text).expect("it is ours");
        }
        for (name, place) in [("sda", disk.clone()), ("sda1", disk.join("sda1"))] {
            std::os::unix::fs::symlink(place, devices.join(name)).expect("it is ours");
        }
        assert_eq!(BlockDevice::named_in(&devices, "sda"), Ok(BlockDevice { major: 8, minor: 0 }));
        let refusal = BlockDevice::named_in(&devices, "sda1").expect_err("a partition");
        assert_eq!(refusal.message, "sda1 is a partition of sda");
    }
}
