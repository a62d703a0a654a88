//! RPC calls of NFS and MOUNT, and the answers of a server whose valid file handles begin with `f`.

use super::reader::{DeviceWork, SeenRequest, Unread, hash_of, number, pattern, take};

/// Longest record that the server accepts.
const RECORD_MAX: usize = 4 << 20;
/// Longest READ that the server answers in full.
pub const READ_MAX: u64 = 64 << 10;

/// Parses one record with all its fragments; `needed` becomes the length from which on it can be
/// complete.
pub fn read_rpc(bytes: &[u8], needed: &mut usize) -> Result<SeenRequest, Unread> {
    let mut record = Vec::new();
    let mut at = 0;
    loop {
        let mark = number(take(bytes, at, 4, needed)?);
        let len = usize::try_from(mark & 0x7FFF_FFFF).expect("31 bits");
        if record.len() + len > RECORD_MAX {
            return Err(Unread::Garbage);
        }
        record.extend_from_slice(take(bytes, at + 4, len, needed)?);
        at += 4 + len;
        if mark & 0x8000_0000 != 0 {
            break;
        }
    }
    answer_record(&record, SeenRequest::silent(at)).ok_or(Unread::Garbage)
}

/// Parser of XDR fields; `None` beyond the end.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn fixed(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u64> {
        self.fixed(4).map(number)
    }

    fn long(&mut self) -> Option<u64> {
        self.fixed(8).map(number)
    }

    fn opaque(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.word()?).ok()?;
        let taken = self.fixed(len)?;
        self.fixed(len.next_multiple_of(4) - len)?;
        Some(taken)
    }
}

fn answer_record(record: &[u8], request: SeenRequest) -> Option<SeenRequest> {
    let mut fields = Fields(record);
    let xid = fields.word()?;
    if fields.word()? == 1 {
        return Some(SeenRequest { answers_call: u32::try_from(xid).ok(), ..request });
    }
    let _version_of_rpc = fields.word()?;
    let program = fields.word()?;
    let version = fields.word()?;
    let procedure = fields.word()?;
    for _ in 0..2 {
        fields.word()?;
        fields.opaque()?;
    }
    let (work, results) = match (program, version, procedure) {
        (100_003, 3, 6) => read_file(&mut fields)?,
        (100_003, 3, 7) => write_file(&mut fields)?,
        (100_003, 3, 1 | 21) => (DeviceWork::Control, words(&[0, 0, 0, 0, 0, 0, 0, 0])),
        (100_003, 3, 0) => (DeviceWork::Control, Vec::new()),
        (100_003, 4, 1) => compound(&mut fields)?,
        (100_005, 3, 1) => {
            let is_granted = fields.opaque()?.starts_with(b"/export");
            let granted = words(&[0, 4, u32::from_be_bytes(*b"fh01"), 1, 1]);
            (DeviceWork::Control, if is_granted { granted } else { words(&[13]) })
        }
        _ => (DeviceWork::Control, words(&[10_004])),
    };
    let mut reply = words(&[u32::try_from(xid).ok()?, 1, 0, 0, 0, 0]);
    reply.extend(results);
    Some(SeenRequest { id: Some(xid), work, reply: record_of(&reply), ..request })
}

/// Returns a record of one fragment.
pub fn record_of(body: &[u8]) -> Vec<u8> {
    let mark = u32::try_from(body.len()).expect("records are short") | 0x8000_0000;
    let mut record = mark.to_be_bytes().to_vec();
    record.extend(body);
    record
}

/// Encodes words of XDR.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn put_opaque(out: &mut Vec<u8>, data: &[u8]) {
    out.extend(u32::try_from(data.len()).expect("data are short").to_be_bytes());
    out.extend(data);
    out.extend(std::iter::repeat_n(0, data.len().next_multiple_of(4) - data.len()));
}

/// Returns the data of a read at an offset of a valid file, limited to the server's maximum.
fn file_data(handle: &[u8], offset: u64, count: u64) -> Vec<u8> {
    pattern(hash_of(handle) ^ offset, count.min(READ_MAX))
}

fn read_file(fields: &mut Fields<'_>) -> Option<(DeviceWork, Vec<u8>)> {
    let handle = fields.opaque()?;
    let offset = fields.long()?;
    let count = fields.word()?;
    if !handle.starts_with(b"f") || offset % 97 == 13 {
        return Some((DeviceWork::Control, words(&[10_001, 0])));
    }
    let data = file_data(handle, offset, count);
    let mut results = words(&[0, 0, u32::try_from(data.len()).ok()?, 0]);
    put_opaque(&mut results, &data);
    Some((DeviceWork::Read(data.len() as u64), results))
}

fn write_file(fields: &mut Fields<'_>) -> Option<(DeviceWork, Vec<u8>)> {
    let handle = fields.opaque()?;
    let offset = fields.long()?;
    let count = fields.word()?;
    let _stability = fields.word()?;
    let data = fields.opaque()?;
    if !handle.starts_with(b"f") || offset % 97 == 13 || count != data.len() as u64 {
        return Some((DeviceWork::Control, words(&[10_001, 0, 0])));
    }
    let results = words(&[0, 0, 0, u32::try_from(count).ok()?, 0, 7, 7]);
    Some((DeviceWork::Write(count), results))
}

/// Parses operations of NFSv4: sequences of a file handle, reads and one write, and READ_PLUS.
fn compound(fields: &mut Fields<'_>) -> Option<(DeviceWork, Vec<u8>)> {
    let tag = fields.opaque()?;
    let _minor_version = fields.word()?;
    let count = fields.word()?;
    let mut results = Vec::new();
    let mut handle = &b""[..];
    let mut read = 0;
    let mut written = 0;
    for _ in 0..count {
        let operation = u32::try_from(fields.word()?).ok()?;
        results.extend(words(&[operation, 0]));
        match operation {
            22 => handle = fields.opaque()?,
            // READ and READ_PLUS have the same arguments.
            25 | 68 => {
                fields.fixed(16)?;
                let offset = fields.long()?;
                let count = fields.word()?;
                let data = file_data(handle, offset, count);
                read += data.len() as u64;
                results.extend(words(&[0]));
                put_opaque(&mut results, &data);
            }
            38 => {
                fields.fixed(16)?;
                let _offset = fields.long()?;
                let _stability = fields.word()?;
                let data = fields.opaque()?;
                written += data.len() as u64;
                results.extend(words(&[u32::try_from(data.len()).ok()?, 0, 7, 7]));
            }
            9 => {
                let bitmap = usize::try_from(fields.word()?).ok()?;
                fields.fixed(bitmap.checked_mul(4)?)?;
                results.extend(words(&[0, 0]));
            }
            10 | 24 => {}
            _ => return None,
        }
    }
    let mut answer = words(&[0]);
    put_opaque(&mut answer, tag);
    answer.extend(words(&[u32::try_from(count).ok()?]));
    answer.extend(results);
    let work = match (read, written) {
        (0, 0) => DeviceWork::Control,
        (_, 0) => DeviceWork::Read(read),
        _ => DeviceWork::Write(written + read),
    };
    Some((work, answer))
}
