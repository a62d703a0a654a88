//! Requests of NBD: the fixed newstyle handshake, and commands in three framings. The simulated server
//! has one export, whose name begins with `good`.

use super::reader::{DeviceWork, SeenRequest, Unread, hash_of, number, pattern, take};

/// Size of the export, bytes.
pub const EXPORT_SIZE: u64 = 1 << 40;
/// Longest read or write that the server accepts.
const PAYLOAD_MAX: u64 = 4 << 20;
const EINVAL: u32 = 22;
const OPTION_MAGIC: u64 = 0x4948_4156_454F_5054;

/// Features of a simulated NBD server, and the state of a connection to it.
#[derive(Debug, Clone, Copy)]
pub struct NbdDialect {
    /// True if the server supports structured replies.
    pub knows_structured: bool,
    /// True if the server supports extended headers.
    pub knows_extended: bool,
    has_flags: bool,
    is_without_zeroes: bool,
    /// True if an export was granted.
    pub is_transmitting: bool,
    is_structured: bool,
    is_extended: bool,
}

impl NbdDialect {
    /// Creates the dialect of a server, before its first connection.
    pub fn new(knows_structured: bool, knows_extended: bool) -> Self {
        Self {
            knows_structured,
            knows_extended,
            has_flags: false,
            is_without_zeroes: false,
            is_transmitting: false,
            is_structured: false,
            is_extended: false,
        }
    }
}

/// Returns the server's greeting.
pub fn greeting() -> Vec<u8> {
    let mut greeting = b"NBDMAGICIHAVEOPT".to_vec();
    greeting.extend([0, 3]);
    greeting
}

/// Parses one request; `needed` becomes the length from which on it can be complete.
pub fn read_nbd(bytes: &[u8], dialect: &mut NbdDialect, needed: &mut usize) -> Result<SeenRequest, Unread> {
    if dialect.is_transmitting {
        return command(bytes, dialect, needed);
    }
    if !dialect.has_flags {
        let flags = number(take(bytes, 0, 4, needed)?);
        if flags > 3 {
            return Err(Unread::Garbage);
        }
        (dialect.has_flags, dialect.is_without_zeroes) = (true, flags & 2 != 0);
        return Ok(SeenRequest::silent(4));
    }
    let head = take(bytes, 0, 16, needed)?;
    let option = number(&head[8..12]);
    let data_len = number(&head[12..16]);
    if number(&head[..8]) != OPTION_MAGIC || data_len > 8192 {
        return Err(Unread::Garbage);
    }
    let data_len = usize::try_from(data_len).expect("it is short");
    let data = take(bytes, 16, data_len, needed)?;
    option_answer(option, data, dialect, SeenRequest::silent(16 + data_len))
}

fn option_answer(
    option: u64,
    data: &[u8],
    dialect: &mut NbdDialect,
    request: SeenRequest,
) -> Result<SeenRequest, Unread> {
    let answer = |kinds: &[(u32, Vec<u8>)]| {
        let mut reply = Vec::new();
        for (kind, data) in kinds {
            reply.extend(0x0003_E889_0455_65A9_u64.to_be_bytes());
            reply.extend(u32::try_from(option).expect("an option has 32 bits").to_be_bytes());
            reply.extend(kind.to_be_bytes());
            reply.extend(u32::try_from(data.len()).expect("data are short").to_be_bytes());
            reply.extend(data);
        }
        reply
    };
    const UNSUPPORTED: u32 = 0x8000_0001;
    let mut export = EXPORT_SIZE.to_be_bytes().to_vec();
    // Supports flush, FUA, trim and zeroes.
    export.extend([0, 0b0110_1101]);
    let mut is_closed = false;
    let reply = match option {
        1 if data.starts_with(b"good") => {
            dialect.is_transmitting = true;
            export.extend(std::iter::repeat_n(0, if dialect.is_without_zeroes { 0 } else { 124 }));
            export
        }
        1 => return Ok(SeenRequest { closes: true, ..request }),
        2 => {
            is_closed = true;
            answer(&[(1, Vec::new())])
        }
        3 => answer(&[(2, b"\0\0\0\x04good".to_vec()), (1, Vec::new())]),
        6 | 7 if data.len() >= 4 && data[4..].starts_with(b"good") => {
            dialect.is_transmitting |= option == 7;
            let mut info = vec![0, 0];
            info.extend(export);
            answer(&[(3, info), (1, Vec::new())])
        }
        6 | 7 if data.len() < 4 => return Err(Unread::Garbage),
        6 | 7 => answer(&[(0x8000_0006, b"no such export".to_vec())]),
        8 if dialect.knows_structured => {
            dialect.is_structured = true;
            answer(&[(1, Vec::new())])
        }
        11 if dialect.knows_extended => {
            dialect.is_extended = true;
            answer(&[(1, Vec::new())])
        }
        _ => answer(&[(UNSUPPORTED, Vec::new())]),
    };
    Ok(SeenRequest { reply, closes: is_closed, ..request })
}

struct NbdCommand {
    kind: u64,
    cookie: [u8; 8],
    offset: u64,
    len: u64,
}

fn command(bytes: &[u8], dialect: &NbdDialect, needed: &mut usize) -> Result<SeenRequest, Unread> {
    let (head_len, magic) = if dialect.is_extended { (32, 0x21E4_1C71) } else { (28, 0x2560_9513) };
    let head = take(bytes, 0, head_len, needed)?;
    if number(&head[..4]) != magic {
        return Err(Unread::Garbage);
    }
    let command = NbdCommand {
        kind: number(&head[6..8]),
        cookie: head[8..16].try_into().expect("eight bytes"),
        offset: number(&head[16..24]),
        len: number(&head[24..]),
    };
    let payload = match command.kind {
        1 => command.len,
        _ => 0,
    };
    if payload > PAYLOAD_MAX {
        return Err(Unread::Garbage);
    }
    let payload = usize::try_from(payload).expect("it is short");
    take(bytes, head_len, payload, needed)?;
    let request = SeenRequest::silent(head_len + payload);
    if command.kind == 2 {
        return Ok(SeenRequest { closes: true, ..request });
    }
    let is_in_range = command.offset.checked_add(command.len).is_some_and(|end| end <= EXPORT_SIZE);
    let is_error = !is_in_range || command.offset % 97 == 13;
    let work = match command.kind {
        0 | 5 if is_error || command.len > PAYLOAD_MAX => DeviceWork::Control,
        0 => DeviceWork::Read(command.len),
        1 if is_error => DeviceWork::Control,
        1 => DeviceWork::Write(command.len),
        _ => DeviceWork::Control,
    };
    let is_error = is_error || command.kind > 6 || (command.kind == 0 && command.len > PAYLOAD_MAX);
    let id = Some(number(&command.cookie));
    let reply = reply_to(&command, dialect, is_error);
    Ok(SeenRequest { id, work, reply, ..request })
}

fn reply_to(command: &NbdCommand, dialect: &NbdDialect, is_error: bool) -> Vec<u8> {
    let is_read = command.kind == 0 && !is_error;
    let data =
        if is_read { pattern(hash_of(&command.offset.to_be_bytes()), command.len) } else { Vec::new() };
    if !dialect.is_structured && !dialect.is_extended {
        let mut reply = 0x6744_6698_u32.to_be_bytes().to_vec();
        reply.extend(if is_error { EINVAL } else { 0 }.to_be_bytes());
        reply.extend(command.cookie);
        reply.extend(data);
        return reply;
    }
    let mut reply = Vec::new();
    if is_read && !data.is_empty() {
        // Two chunks if there is enough data; the last is marked.
        let middle = if data.len() > 100 { data.len() / 3 } else { 0 };
        if middle > 0 {
            put_chunk(&mut reply, dialect, command, (0, 1), &data_chunk(command.offset, &data[..middle]));
        }
        let offset = command.offset + middle as u64;
        put_chunk(&mut reply, dialect, command, (1, 1), &data_chunk(offset, &data[middle..]));
    } else if is_error {
        let mut error = EINVAL.to_be_bytes().to_vec();
        error.extend([0, 0]);
        put_chunk(&mut reply, dialect, command, (1, 0x8001), &error);
    } else {
        put_chunk(&mut reply, dialect, command, (1, 0), &[]);
    }
    reply
}

fn data_chunk(offset: u64, data: &[u8]) -> Vec<u8> {
    let mut chunk = offset.to_be_bytes().to_vec();
    chunk.extend(data);
    chunk
}

fn put_chunk(
    reply: &mut Vec<u8>,
    dialect: &NbdDialect,
    command: &NbdCommand,
    (flags, kind): (u16, u16),
    data: &[u8],
) {
    let magic: u32 = if dialect.is_extended { 0x6E8A_278C } else { 0x668E_33EF };
    reply.extend(magic.to_be_bytes());
    reply.extend(flags.to_be_bytes());
    reply.extend(kind.to_be_bytes());
    reply.extend(command.cookie);
    if dialect.is_extended {
        reply.extend(command.offset.to_be_bytes());
        reply.extend((data.len() as u64).to_be_bytes());
    } else {
        reply.extend(u32::try_from(data.len()).expect("chunks are short").to_be_bytes());
    }
    reply.extend(data);
}
