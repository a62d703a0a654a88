//! MOUNT and NFS of versions 3 and 4. A handle is the path of its export, or a file's name. Its first
//! letter is the tag, and one that begins with `bad` is invalid. Exports whose path begins with `/no` are
//! refused.

use super::{DeviceRequest, Heard, ReplyBytes, ServerSpeech, data_head, long, place, put, word};

/// Maximum read, as with most servers.
const READ_MAX: usize = 1 << 20;
const ACCESS_DENIED: u32 = 13;
const BAD_HANDLE: u32 = 10_001;

/// A connection, with the unanswered calls of the server.
#[derive(Debug, Default)]
pub struct NfsSpeech {
    callbacks: u32,
}

/// The arguments of a call, taken one after the other.
struct CallArguments<'a>(&'a [u8]);

impl<'a> CallArguments<'a> {
    fn word(&mut self) -> u32 {
        let bytes = self.take(4);
        word(bytes, 0)
    }

    fn long(&mut self) -> u64 {
        let bytes = self.take(8);
        long(bytes, 0)
    }

    /// Missing bytes read as zero.
    fn take(&mut self, len: usize) -> &'a [u8] {
        const NOTHING: &[u8] = &[0; 64];
        if self.0.len() < len {
            return &NOTHING[..len.min(64)];
        }
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn opaque(&mut self) -> &'a [u8] {
        let len = self.word() as usize;
        if self.0.len() < len {
            return &[];
        }
        let data = self.take(len);
        self.take(len.wrapping_neg() % 4);
        data
    }
}

/// Returns a whole record without its marks, and its length in bytes.
fn record(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut body = Vec::new();
    let mut used = 0;
    loop {
        if input.len() < used + 4 {
            return None;
        }
        let mark = word(input, used);
        let len = (mark & 0x7fff_ffff) as usize;
        if input.len() < used + 4 + len {
            return None;
        }
        body.extend(&input[used + 4..used + 4 + len]);
        used += 4 + len;
        if mark >> 31 == 1 {
            return Some((body, used));
        }
    }
}

/// A record of one fragment: a body, filling, and no tail.
fn reply(body: Vec<u8>, filling: usize) -> ReplyBytes {
    let mut head = Vec::new();
    put(&mut head, &[u32::try_from(body.len() + filling).expect("short") | 1 << 31]);
    head.extend(body);
    ReplyBytes { head, filling, tail: Vec::new() }
}

fn opaque_head(body: &mut Vec<u8>, offset: u64, len: usize) -> usize {
    put(body, &[u32::try_from(len).expect("short")]);
    let data = data_head(offset, len);
    let filling = len.next_multiple_of(4) - data.len();
    body.extend(data);
    filling
}

fn tag_of(handle: &[u8]) -> u8 {
    handle.rsplit(|byte| *byte == b'/').next().and_then(|name| name.first()).copied().unwrap_or(b'?')
}

fn mount(procedure: u32, mut arguments: CallArguments<'_>, mut body: Vec<u8>) -> DeviceRequest {
    if procedure == 1 {
        let path = arguments.opaque();
        if path.starts_with(b"/no") {
            put(&mut body, &[ACCESS_DENIED]);
        } else {
            put(&mut body, &[0, u32::try_from(path.len()).expect("short")]);
            body.extend(path);
            body.resize(body.len().next_multiple_of(4), 0);
            put(&mut body, &[1, 1]);
        }
    }
    DeviceRequest { tag: b'm', place: 0, accesses: 0, bytes: 0, reply: reply(body, 0) }
}

fn version_3(procedure: u32, mut arguments: CallArguments<'_>, mut body: Vec<u8>) -> DeviceRequest {
    let handle = if procedure == 0 { &[][..] } else { arguments.opaque() };
    let tag = tag_of(handle);
    let mut filling = 0;
    let mut bytes = 0;
    let mut at = 0;
    let accesses = u64::from(procedure != 0 && !handle.starts_with(b"bad"));
    match procedure {
        _ if handle.starts_with(b"bad") => put(&mut body, &[BAD_HANDLE, 0]),
        6 => {
            let offset = arguments.long();
            let count = (arguments.word() as usize).min(READ_MAX);
            put(&mut body, &[0, 0, u32::try_from(count).expect("short"), 0]);
            filling = opaque_head(&mut body, offset, count);
            (bytes, at) = (count as u64, place(tag, offset));
        }
        7 => {
            arguments.take(16);
            bytes = arguments.opaque().len() as u64;
            put(&mut body, &[0, 0, 0, u32::try_from(bytes).expect("short"), 2, 7, 7]);
        }
        // GETATTR: meaningless attributes.
        1 => put(&mut body, &[0; 22]),
        // COMMIT.
        21 => put(&mut body, &[0, 0, 0, 7, 7]),
        _ => {}
    }
    DeviceRequest { tag, place: at, accesses, bytes, reply: reply(body, filling) }
}

/// Only the operations that the scripts send; all others have no arguments.
fn version_4(mut arguments: CallArguments<'_>, mut body: Vec<u8>) -> DeviceRequest {
    let tag_text = arguments.opaque();
    arguments.word();
    let count = arguments.word();
    put(&mut body, &[0, u32::try_from(tag_text.len()).expect("short")]);
    body.extend(tag_text);
    put(&mut body, &[count]);
    let mut tag = b'?';
    let mut accesses = 0;
    let mut bytes = 0;
    let mut filling = 0;
    for _ in 0..count {
        body.resize(body.len() + filling, 7);
        filling = 0;
        let operation = arguments.word();
        put(&mut body, &[operation, 0]);
        match operation {
            22 => tag = tag_of(arguments.opaque()),
            // GETXATTR, which returns a value.
            72 => {
                arguments.opaque();
                put(&mut body, &[0]);
            }
            25 | 68 => {
                arguments.take(16);
                let offset = arguments.long();
                let len = (arguments.word() as usize).min(READ_MAX);
                // READ has the end of the file, READ_PLUS one piece of data at an offset.
                let head: &[u32] = if operation == 25 { &[1] } else { &[1, 1, 0, 0, 0] };
                put(&mut body, head);
                filling = opaque_head(&mut body, offset, len);
                (accesses, bytes) = (accesses + 1, bytes + len as u64);
            }
            _ => {}
        }
    }
    DeviceRequest { tag, place: 0, accesses, bytes, reply: reply(body, filling) }
}

impl ServerSpeech for NfsSpeech {
    fn hear(&mut self, input: &[u8]) -> Heard {
        let Some((call, used)) = record(input) else { return Heard::Incomplete };
        if call.len() < 8 {
            return Heard::Over;
        }
        if word(&call, 4) != 0 {
            return Heard::CallbackAnswered(used);
        }
        let mut arguments = CallArguments(&call[12..]);
        let [program, version, procedure] = std::array::from_fn(|_| arguments.word());
        // Credentials and verifier.
        for _ in 0..2 {
            arguments.word();
            arguments.opaque();
        }
        let mut body = call[..4].to_vec();
        put(&mut body, &[1, 0, 0, 0, 0]);
        match (program, version, procedure) {
            (100_005, ..) => Heard::Request(used, mount(procedure, arguments, body)),
            // A NULL call with this number requests a callback channel.
            (_, _, 0) if word(&call, 0) == 0xcb => Heard::CallbackWanted(used, reply(body, 0).head),
            (_, 3, _) => Heard::Request(used, version_3(procedure, arguments, body)),
            (_, 4, 1) => Heard::Request(used, version_4(arguments, body)),
            _ => Heard::Answer(used, reply(body, 0).head),
        }
    }

    fn callback(&mut self) -> Vec<u8> {
        self.callbacks += 1;
        let mut out = Vec::new();
        // CB_NULL without credentials.
        put(&mut out, &[40 | 1 << 31, 1 << 30 | self.callbacks, 0, 2, 0x4000_0000, 1, 0, 0, 0, 0, 0]);
        out
    }
}
