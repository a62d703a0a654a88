//! Commands of a client after its handshake: parsing, refusal and replies.

use wire::nbd::protocol::{
    CMD_FLUSH, CMD_READ, CMD_TRIM, CMD_WRITE, CMD_WRITE_ZEROES, EINVAL, ENOSPC, REQUEST_HEADER_LEN,
    REQUEST_MAGIC, SIMPLE_REPLY_MAGIC,
};

/// The largest data of a command in bytes, as the handshake advertises.
pub(super) const PAYLOAD_MAX: u32 = 32 << 20;

/// The header of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VolumeCommand {
    /// The request type, such as [`CMD_READ`].
    pub(super) kind: u16,
    /// Repeated in the reply, so that the client can match it with its request.
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) len: u32,
}

impl VolumeCommand {
    /// Reads the header at the head of the input. `None` when it is not complete yet.
    ///
    /// # Errors
    /// When the input is not a command.
    pub(super) fn read(input: &[u8]) -> Result<Option<Self>, String> {
        let Some(header) = input.get(..REQUEST_HEADER_LEN) else { return Ok(None) };
        let magic = u32_at(header, 0).unwrap_or(0);
        if magic != REQUEST_MAGIC {
            return Err(format!("request magic {magic:#x}, expected {REQUEST_MAGIC:#x}"));
        }
        // Bytes 4 and 5 are flags: FUA, which memory fulfils, and hints.
        let kind = u16::from_be_bytes(array_at(header, 6).unwrap_or_default());
        let cookie = u64_at(header, 8).unwrap_or(0);
        let offset = u64_at(header, 16).unwrap_or(0);
        Ok(Some(Self { kind, cookie, offset, len: u32_at(header, 24).unwrap_or(0) }))
    }

    /// Returns the number of data bytes that the command moves to or from the device.
    pub(super) fn payload_len(&self) -> u32 {
        if matches!(self.kind, CMD_READ | CMD_WRITE) { self.len } else { 0 }
    }

    /// The error that answers the command at once, if a volume of this size cannot execute it.
    pub(super) fn error_on_volume(&self, size: u64) -> Option<u32> {
        let is_inside = self.offset.checked_add(self.len.into()).is_some_and(|end| end <= size);
        match self.kind {
            CMD_READ if !is_inside || self.len > PAYLOAD_MAX => Some(EINVAL),
            CMD_WRITE | CMD_WRITE_ZEROES if !is_inside => Some(ENOSPC),
            CMD_TRIM if !is_inside => Some(EINVAL),
            CMD_READ | CMD_WRITE | CMD_WRITE_ZEROES | CMD_TRIM | CMD_FLUSH => None,
            _ => Some(EINVAL),
        }
    }
}

/// Appends a simple reply without its data; error 0 is success.
pub(super) fn write_simple_reply(out: &mut Vec<u8>, error: u32, cookie: u64) {
    out.extend(SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend(error.to_be_bytes());
    out.extend(cookie.to_be_bytes());
}

/// The `N` bytes at this position, if they are there.
pub(super) fn array_at<const N: usize>(bytes: &[u8], position: usize) -> Option<[u8; N]> {
    bytes.get(position..position + N)?.try_into().ok()
}

pub(super) fn u32_at(bytes: &[u8], position: usize) -> Option<u32> {
    array_at(bytes, position).map(u32::from_be_bytes)
}

pub(super) fn u64_at(bytes: &[u8], position: usize) -> Option<u64> {
    array_at(bytes, position).map(u64::from_be_bytes)
}
