//! The client's side, for a load generator: the handshake as a state machine, and encoders of requests.

use super::Framing;
use super::protocol::{
    CMD_DISC, CMD_FLUSH, CMD_READ, CMD_WRITE, EXPORT_NAME_ZEROES, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES,
    GREETING_MAGIC, INFO_BLOCK_SIZE, INFO_EXPORT, OLDSTYLE_MAGIC, OPT_EXPORT_NAME, OPT_GO,
    OPT_STRUCTURED_REPLY, OPTION_MAGIC, OPTION_REPLY_HEADER_LEN, OPTION_REPLY_MAGIC, REP_ACK,
    REP_ERR_TLS_REQD, REP_ERR_UNKNOWN, REP_FLAG_ERROR, REP_INFO, REQUEST_MAGIC, STRING_LEN_MAX,
};
use crate::ProtocolError;
use crate::fields::{HeadError, check_at_most, check_equal, first_bytes, to_index, u16_at, u32_at, u64_at};

/// The longest data of a reply to an option, in bytes.
const OPTION_DATA_MAX: u32 = 64 << 10;

/// The option with which a client chooses its export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportOption {
    /// GO: the server may refuse with a reason.
    Go,
    /// EXPORT_NAME: a server that refuses hangs up.
    ExportName,
}

/// The export that the server granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedExport {
    /// The size of the export in bytes.
    pub size: u64,
    /// The transmission flags, such as [`super::protocol::FLAG_READ_ONLY`].
    pub flags: u16,
    /// The smallest length and alignment of requests in bytes, if the server said so.
    pub block: Option<u32>,
    /// The form of replies, simple or structured.
    pub framing: Framing,
}

/// What the caller of [`ClientHandshake::advance`] does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeStep {
    /// Send what is in `out`, if anything, and call again when the input has this length.
    NeedMore {
        /// The length of the input in bytes.
        at_least: usize,
    },
    /// Drop so many bytes of the input, send what is in `out`, and call again.
    Used(usize),
    /// The handshake has succeeded: drop the used bytes, and begin the transmission phase.
    Done {
        /// The number of bytes of the input that belong to the handshake.
        used: usize,
        /// What the server granted.
        export: GrantedExport,
    },
}

/// Why a handshake granted no export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeError {
    /// The server refused with this type of reply, such as [`REP_ERR_UNKNOWN`].
    Refused(u32),
    /// The server broke the protocol.
    Protocol(ProtocolError),
}

impl std::fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(REP_ERR_UNKNOWN) => {
                write!(f, "the server has no such export; `nbdinfo --list` shows its names")
            }
            Self::Refused(REP_ERR_TLS_REQD) => {
                write!(f, "the server wants TLS for this export; switch it off there")
            }
            Self::Refused(kind) => write!(f, "the server refused the export with error {kind:#x}"),
            Self::Protocol(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HandshakeError {}

/// Why a step of the handshake did not succeed (yet).
enum StepError {
    Head(HeadError),
    Refused(u32),
}

impl From<HeadError> for StepError {
    fn from(error: HeadError) -> Self {
        Self::Head(error)
    }
}

impl From<ProtocolError> for StepError {
    fn from(error: ProtocolError) -> Self {
        Self::Head(error.into())
    }
}

/// What the server is to say next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AwaitedReply {
    Greeting,
    StructuredReplies,
    Export,
}

/// The client's side of a handshake, without input and output.
#[derive(Debug)]
pub struct ClientHandshake {
    export_name: Vec<u8>,
    option: ExportOption,
    wants_structured_replies: bool,
    awaits: AwaitedReply,
    without_zeroes: bool,
    export: GrantedExport,
}

impl ClientHandshake {
    /// A handshake for the export of this name, with simple replies.
    ///
    /// # Panics
    /// When the name is longer than [`STRING_LEN_MAX`].
    pub fn new(export_name: &[u8], option: ExportOption) -> Self {
        assert!(
            export_name.len() <= STRING_LEN_MAX as usize,
            "names of NBD exports have at most {STRING_LEN_MAX} bytes"
        );
        Self {
            export_name: export_name.to_vec(),
            option,
            wants_structured_replies: false,
            awaits: AwaitedReply::Greeting,
            without_zeroes: false,
            export: GrantedExport { size: 0, flags: 0, block: None, framing: Framing::Simple },
        }
    }

    /// The same handshake with structured replies. A server without them still grants the export.
    #[must_use]
    pub fn with_structured_replies(mut self) -> Self {
        self.wants_structured_replies = true;
        self
    }

    /// Reads the server's message at the start of `input`, and appends the answer to `out`.
    ///
    /// # Errors
    /// [`HandshakeError`] when the server refuses the export or breaks the protocol.
    pub fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<HandshakeStep, HandshakeError> {
        let step = match (self.awaits, self.option) {
            (AwaitedReply::Greeting, _) => self.greeting(input, out).map_err(StepError::Head),
            (AwaitedReply::Export, ExportOption::ExportName) => {
                self.export_name_reply(input).map_err(StepError::Head)
            }
            (AwaitedReply::Export, ExportOption::Go) => self.go_reply(input),
            (AwaitedReply::StructuredReplies, _) => {
                self.structured_replies_reply(input, out).map_err(StepError::Head)
            }
        };
        match step {
            Ok(step) => Ok(step),
            Err(StepError::Head(HeadError::NeedMore(at_least))) => Ok(HandshakeStep::NeedMore { at_least }),
            Err(StepError::Head(HeadError::Invalid(error))) => Err(HandshakeError::Protocol(error)),
            Err(StepError::Refused(kind)) => Err(HandshakeError::Refused(kind)),
        }
    }

    fn greeting(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<HandshakeStep, HeadError> {
        let header = first_bytes::<18>(input)?;
        check_equal("NBD greeting", "NBDMAGIC", GREETING_MAGIC, u64_at(header, 0))?;
        if u64_at(header, 8) == OLDSTYLE_MAGIC {
            let what = "the oldstyle NBD handshake";
            let remedy = "configure the server for newstyle";
            return Err(ProtocolError::Unsupported { what, remedy }.into());
        }
        check_equal("NBD greeting style", "IHAVEOPT", OPTION_MAGIC, u64_at(header, 8))?;
        let flags = u16_at(header, 16) & (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
        self.without_zeroes = flags & FLAG_NO_ZEROES != 0;
        out.extend(u32::from(flags).to_be_bytes());
        if flags & FLAG_FIXED_NEWSTYLE == 0 {
            // Such a server knows EXPORT_NAME only.
            (self.option, self.wants_structured_replies) = (ExportOption::ExportName, false);
        }
        if self.wants_structured_replies {
            self.awaits = AwaitedReply::StructuredReplies;
            put_option(out, OPT_STRUCTURED_REPLY, &[]);
        } else {
            self.choose_export(out);
        }
        Ok(HandshakeStep::Used(18))
    }

    fn choose_export(&mut self, out: &mut Vec<u8>) {
        self.awaits = AwaitedReply::Export;
        if self.option == ExportOption::ExportName {
            return put_option(out, OPT_EXPORT_NAME, &self.export_name);
        }
        let mut data = u32::try_from(self.export_name.len()).expect("checked in new").to_be_bytes().to_vec();
        data.extend(&self.export_name);
        // One piece of information is wanted: the block sizes.
        data.extend(1u16.to_be_bytes());
        data.extend(INFO_BLOCK_SIZE.to_be_bytes());
        put_option(out, OPT_GO, &data);
    }

    fn export_name_reply(&mut self, input: &[u8]) -> Result<HandshakeStep, HeadError> {
        let header = first_bytes::<10>(input)?;
        let used = if self.without_zeroes { 10 } else { 10 + EXPORT_NAME_ZEROES };
        if input.len() < used {
            return Err(HeadError::NeedMore(used));
        }
        (self.export.size, self.export.flags) = (u64_at(header, 0), u16_at(header, 8));
        Ok(HandshakeStep::Done { used, export: self.export })
    }

    fn structured_replies_reply(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<HandshakeStep, HeadError> {
        let (kind, data) = option_reply(input, OPT_STRUCTURED_REPLY)?;
        if kind == REP_ACK {
            self.export.framing = Framing::Structured;
        }
        if kind == REP_ACK || kind & REP_FLAG_ERROR != 0 {
            self.choose_export(out);
        }
        Ok(HandshakeStep::Used(OPTION_REPLY_HEADER_LEN + data.len()))
    }

    fn go_reply(&mut self, input: &[u8]) -> Result<HandshakeStep, StepError> {
        let (kind, data) = option_reply(input, OPT_GO)?;
        let used = OPTION_REPLY_HEADER_LEN + data.len();
        match kind {
            REP_ACK => return Ok(HandshakeStep::Done { used, export: self.export }),
            REP_INFO => self.information(data)?,
            kind if kind & REP_FLAG_ERROR != 0 => return Err(StepError::Refused(kind)),
            _ => {}
        }
        Ok(HandshakeStep::Used(used))
    }

    fn information(&mut self, data: &[u8]) -> Result<(), ProtocolError> {
        let kind = u16_at(information_bytes(data, 2)?, 0);
        match kind {
            INFO_EXPORT => {
                let data = information_bytes(data, 12)?;
                (self.export.size, self.export.flags) = (u64_at(data, 2), u16_at(data, 10));
            }
            INFO_BLOCK_SIZE => self.export.block = Some(u32_at(information_bytes(data, 14)?, 2)),
            _ => {}
        }
        Ok(())
    }
}

/// The first `needed` bytes of a piece of information.
fn information_bytes(data: &[u8], needed: usize) -> Result<&[u8], ProtocolError> {
    let field = "NBD information";
    let left = data.len() as u64;
    data.get(..needed).ok_or(ProtocolError::TooShort { field, needed: needed as u64, left })
}

/// The type and the data of a complete reply to `option`.
fn option_reply(input: &[u8], option: u32) -> Result<(u32, &[u8]), HeadError> {
    let header = first_bytes::<OPTION_REPLY_HEADER_LEN>(input)?;
    check_equal("NBD option reply magic", "0x3e889045565a9", OPTION_REPLY_MAGIC, u64_at(header, 0))?;
    let field = "NBD option reply";
    let expected = "the option that was asked";
    check_equal(field, expected, option.into(), u32_at(header, 8).into())?;
    let len = u32_at(header, 16);
    check_at_most("NBD option reply in bytes", OPTION_DATA_MAX.into(), len.into())?;
    let end = OPTION_REPLY_HEADER_LEN + to_index(len);
    Ok((u32_at(header, 12), input.get(OPTION_REPLY_HEADER_LEN..end).ok_or(HeadError::NeedMore(end))?))
}

fn put_option(out: &mut Vec<u8>, option: u32, data: &[u8]) {
    out.extend(OPTION_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(u32::try_from(data.len()).expect("options are short").to_be_bytes());
    out.extend(data);
}

/// Appends a READ of `len` bytes from `offset`.
pub fn read(out: &mut Vec<u8>, cookie: u64, offset: u64, len: u32) {
    put_request(out, CMD_READ, cookie, offset, len);
}

/// Appends a WRITE of `data` at `offset`.
pub fn write(out: &mut Vec<u8>, cookie: u64, offset: u64, data: &[u8]) {
    let len = u32::try_from(data.len()).expect("one write is shorter than 4 GiB");
    put_request(out, CMD_WRITE, cookie, offset, len);
    out.extend(data);
}

/// Appends a FLUSH: with its reply, everything is durable that was written and answered before it.
pub fn flush(out: &mut Vec<u8>, cookie: u64) {
    put_request(out, CMD_FLUSH, cookie, 0, 0);
}

/// Appends a DISC: the server finishes its work and closes the connection.
pub fn disconnect(out: &mut Vec<u8>, cookie: u64) {
    put_request(out, CMD_DISC, cookie, 0, 0);
}

fn put_request(out: &mut Vec<u8>, kind: u16, cookie: u64, offset: u64, len: u32) {
    out.extend(REQUEST_MAGIC.to_be_bytes());
    out.extend(0u16.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(offset.to_be_bytes());
    out.extend(len.to_be_bytes());
}
