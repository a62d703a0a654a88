//! The client's side, as a generator of load speaks it: the handshake as a state machine, and commands.

use super::Framing;
use super::protocol::{
    CMD_DISC, CMD_FLUSH, CMD_READ, CMD_WRITE, EXPORT_NAME_ZEROES, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES,
    GREETING_MAGIC, INFO_BLOCK_SIZE, INFO_EXPORT, OLDSTYLE_MAGIC, OPT_EXPORT_NAME, OPT_GO,
    OPT_STRUCTURED_REPLY, OPTION_MAGIC, OPTION_REPLY_MAGIC, REP_ACK, REP_ERR_TLS_REQD, REP_ERR_UNKNOWN,
    REP_FLAG_ERROR, REP_INFO, REQUEST_MAGIC, STRING_LEN_MAX,
};
use crate::Malformed;
use crate::read::{Stop, at_most, exactly, first, index, u16_at, u32_at, u64_at};

/// Data of a reply to an option.
const OPTION_MAX: u32 = 64 << 10;

/// How to ask for the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// OPT_GO: the server may refuse with a reason.
    Go,
    /// OPT_EXPORT_NAME: a server that refuses hangs up.
    ExportName,
}

/// What the server granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// Its size in bytes.
    pub size: u64,
    /// Transmission flags, as in the protocol document.
    pub flags: u16,
    /// Smallest length and alignment of requests in bytes, if the server said so.
    pub block: Option<u32>,
    /// How replies look: simple or structured.
    pub framing: Framing,
}

/// Where the handshake stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Send what is in `out`, if anything, and call again when the input has so many bytes.
    NeedMore {
        /// Length of the input in bytes.
        at_least: usize,
    },
    /// So many bytes of the input were used: drop them, send what is in `out`, call again.
    Used(usize),
    /// As `Used`, and the transmission phase begins behind them.
    Done {
        /// Bytes used.
        used: usize,
        /// What was granted.
        export: Export,
    },
}

/// Why there is no export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The server refused: the type of its reply, as in the protocol document (`0x80000006`: no such export).
    Refused(u32),
    /// What it said cannot be read.
    Malformed(Malformed),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(REP_ERR_UNKNOWN) => {
                write!(f, "the server has no such export; `nbdinfo --list` shows its names")
            }
            Self::Refused(REP_ERR_TLS_REQD) => {
                write!(f, "the server wants TLS for this export; switch it off there")
            }
            Self::Refused(kind) => write!(f, "the server refused the export with error {kind:#x}"),
            Self::Malformed(bad) => bad.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Structured,
    Export,
}

/// The client's side of a handshake.
#[derive(Debug)]
pub struct Handshake {
    name: Vec<u8>,
    ask: Ask,
    wants_structured: bool,
    phase: Phase,
    no_zeroes: bool,
    export: Export,
}

impl Handshake {
    /// Asks for the export `name`, with simple replies.
    pub fn new(name: &[u8], ask: Ask) -> Self {
        assert!(name.len() <= STRING_LEN_MAX as usize, "names of NBD exports have at most 4096 bytes");
        let export = Export { size: 0, flags: 0, block: None, framing: Framing::Simple };
        let (wants_structured, no_zeroes) = (false, false);
        Self { name: name.to_vec(), ask, wants_structured, phase: Phase::Greeting, no_zeroes, export }
    }

    /// Asks for structured replies; a server without them still grants the export.
    #[must_use]
    pub fn with_structured_replies(mut self) -> Self {
        self.wants_structured = true;
        self
    }

    /// Reads what the server said, which `input` begins with, and appends the answer to `out`.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn next(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Progress, Failure> {
        let progress = match (self.phase, self.ask) {
            (Phase::Greeting, _) => self.greeting(input, out),
            (Phase::Export, Ask::ExportName) => self.export_name(input),
            _ => self.option_reply(input, out)?,
        };
        match progress {
            Ok(progress) => Ok(progress),
            Err(Stop::More(at_least)) => Ok(Progress::NeedMore { at_least }),
            Err(Stop::Bad(bad)) => Err(Failure::Malformed(bad)),
        }
    }

    fn greeting(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Progress, Stop> {
        let head = first::<18>(input)?;
        exactly("NBD greeting", "NBDMAGIC", GREETING_MAGIC, u64_at(head, 0))?;
        if u64_at(head, 8) == OLDSTYLE_MAGIC {
            let (what, remedy) = ("the oldstyle NBD handshake", "configure the server for newstyle");
            return Err(Malformed::Refused { what, remedy }.into());
        }
        exactly("NBD greeting style", "IHAVEOPT", OPTION_MAGIC, u64_at(head, 8))?;
        let flags = u16_at(head, 16) & (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
        self.no_zeroes = flags & FLAG_NO_ZEROES != 0;
        out.extend(u32::from(flags).to_be_bytes());
        if flags & FLAG_FIXED_NEWSTYLE == 0 {
            // Such a server knows no other option.
            (self.ask, self.wants_structured) = (Ask::ExportName, false);
        }
        if self.wants_structured {
            self.phase = Phase::Structured;
            option(out, OPT_STRUCTURED_REPLY, &[]);
        } else {
            self.ask_for_export(out);
        }
        Ok(Progress::Used(18))
    }

    fn ask_for_export(&mut self, out: &mut Vec<u8>) {
        self.phase = Phase::Export;
        if self.ask == Ask::ExportName {
            return option(out, OPT_EXPORT_NAME, &self.name);
        }
        let mut data = u32::try_from(self.name.len()).expect("checked in new").to_be_bytes().to_vec();
        data.extend(&self.name);
        // One piece of information is asked for: block sizes.
        data.extend(1u16.to_be_bytes());
        data.extend(INFO_BLOCK_SIZE.to_be_bytes());
        option(out, OPT_GO, &data);
    }

    fn export_name(&mut self, input: &[u8]) -> Result<Progress, Stop> {
        let head = first::<10>(input)?;
        let used = if self.no_zeroes { 10 } else { 10 + EXPORT_NAME_ZEROES };
        if input.len() < used {
            return Err(Stop::More(used));
        }
        (self.export.size, self.export.flags) = (u64_at(head, 0), u16_at(head, 8));
        Ok(Progress::Done { used, export: self.export })
    }

    /// The outer error is the server's refusal.
    fn option_reply(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Result<Progress, Stop>, Failure> {
        let (kind, data) =
            match reply(input, if self.phase == Phase::Export { OPT_GO } else { OPT_STRUCTURED_REPLY }) {
                Ok(reply) => reply,
                Err(stop) => return Ok(Err(stop)),
            };
        let used = 20 + data.len();
        if self.phase == Phase::Structured {
            if kind == REP_ACK {
                self.export.framing = Framing::Structured;
            }
            if kind == REP_ACK || kind & REP_FLAG_ERROR != 0 {
                self.ask_for_export(out);
            }
            return Ok(Ok(Progress::Used(used)));
        }
        match kind {
            REP_ACK => Ok(Ok(Progress::Done { used, export: self.export })),
            REP_INFO => Ok(self.info(data).map(|()| Progress::Used(used))),
            kind if kind & REP_FLAG_ERROR != 0 => Err(Failure::Refused(kind)),
            _ => Ok(Ok(Progress::Used(used))),
        }
    }

    fn info(&mut self, data: &[u8]) -> Result<(), Stop> {
        let short = |needed| Malformed::Short { field: "NBD information", needed, left: data.len() as u64 };
        let kind = u16_at(data.get(..2).ok_or(short(2))?, 0);
        match kind {
            INFO_EXPORT => {
                let data = data.get(..12).ok_or(short(12))?;
                (self.export.size, self.export.flags) = (u64_at(data, 2), u16_at(data, 10));
            }
            INFO_BLOCK_SIZE => self.export.block = Some(u32_at(data.get(..14).ok_or(short(14))?, 2)),
            _ => {}
        }
        Ok(())
    }
}

/// Type and data of a complete reply to `option`.
fn reply(input: &[u8], option: u32) -> Result<(u32, &[u8]), Stop> {
    let head = first::<20>(input)?;
    exactly("NBD option reply magic", "0x3e889045565a9", OPTION_REPLY_MAGIC, u64_at(head, 0))?;
    exactly("NBD option reply", "the option that was asked", option.into(), u32_at(head, 8).into())?;
    let len = u32_at(head, 16);
    at_most("NBD option reply in bytes", OPTION_MAX.into(), len.into())?;
    let end = 20 + index(len);
    Ok((u32_at(head, 12), input.get(20..end).ok_or(Stop::More(end))?))
}

fn option(out: &mut Vec<u8>, option: u32, data: &[u8]) {
    out.extend(OPTION_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(u32::try_from(data.len()).expect("options are short").to_be_bytes());
    out.extend(data);
}

/// Appends READ of `len` bytes from `offset`.
pub fn read(out: &mut Vec<u8>, cookie: u64, offset: u64, len: u32) {
    command(out, CMD_READ, cookie, offset, len);
}

/// Appends WRITE of `data` at `offset`.
pub fn write(out: &mut Vec<u8>, cookie: u64, offset: u64, data: &[u8]) {
    let len = u32::try_from(data.len()).expect("one write is shorter than 4 GiB");
    command(out, CMD_WRITE, cookie, offset, len);
    out.extend(data);
}

/// Appends FLUSH: what was written before it and answered is durable with its reply.
pub fn flush(out: &mut Vec<u8>, cookie: u64) {
    command(out, CMD_FLUSH, cookie, 0, 0);
}

/// Appends DISC: the server finishes and hangs up.
pub fn disconnect(out: &mut Vec<u8>, cookie: u64) {
    command(out, CMD_DISC, cookie, 0, 0);
}

fn command(out: &mut Vec<u8>, kind: u16, cookie: u64, offset: u64, len: u32) {
    out.extend(REQUEST_MAGIC.to_be_bytes());
    out.extend(0u16.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(offset.to_be_bytes());
    out.extend(len.to_be_bytes());
}
