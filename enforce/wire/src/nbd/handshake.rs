//! The handshake as an observer of both directions sees it: the greeting and the client's flags, then options and their
//! replies in order, until an export is granted.

use super::Framing;
use super::protocol::{
    EXPORT_NAME_ZEROES, FLAG_NO_ZEROES, GREETING_MAGIC, OLDSTYLE_MAGIC, OPT_EXPORT_NAME,
    OPT_EXTENDED_HEADERS, OPT_GO, OPT_INFO, OPT_STARTTLS, OPT_STRUCTURED_REPLY, OPTION_HEADER_LEN,
    OPTION_MAGIC, OPTION_REPLY_HEADER_LEN, OPTION_REPLY_MAGIC, REP_ACK, REP_FLAG_ERROR, STRING_LEN_MAX,
};
use crate::fields::{HeadError, check_at_most, check_equal, first_bytes, to_index, u16_at, u32_at, u64_at};
use crate::{Extent, ParseStep, ParserLimits, ProtocolError, ReplyExpectation, ReplyHead, RequestHead};
use std::collections::VecDeque;
use units::Bytes;

/// The longest data of an option or of a reply to one, in bytes.
const OPTION_DATA_MAX: u32 = 64 << 10;
/// The most options that a client may send ahead of their replies. Ordinary clients wait for each reply.
const PENDING_OPTIONS_MAX: usize = 16;
/// Length of the answer to EXPORT_NAME without zeroes: the size of the export and its flags.
const EXPORT_NAME_REPLY_LEN: usize = 10;

/// How far one side of a handshake has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum HandshakePhase {
    /// The greeting of the server or the flags of the client come next.
    #[default]
    Hello,
    Options,
    Done,
}

/// An option that the server has not answered.
#[derive(Debug)]
struct PendingOption {
    option: u32,
    /// The export that it names; empty for options that name none.
    export_name: Vec<u8>,
}

/// Both sides of a handshake.
#[derive(Debug, Default)]
pub(super) struct ObservedHandshake {
    client: HandshakePhase,
    server: HandshakePhase,
    client_flags: u32,
    server_flags: u16,
    pending: VecDeque<PendingOption>,
    /// The number of options that have been answered, which is the identifier of the first pending one.
    answered: u64,
    /// The export that the server granted.
    granted: Option<Vec<u8>>,
}

/// A step over a message that is complete at the end of `len` bytes.
fn complete_message<T>(message: T, head: usize, len: u64) -> ParseStep<T> {
    ParseStep::Message { message, extent: Extent { head, len: Bytes(len), last: true } }
}

fn control_reply(id: u64, is_error: bool, is_solicited: bool) -> ReplyHead {
    ReplyHead { id, is_error, is_solicited, is_injected: false }
}

impl ObservedHandshake {
    /// Ends the handshake on both sides. Options without a reply are forgotten, since none will come.
    pub(super) fn finish(&mut self) {
        (self.client, self.server) = (HandshakePhase::Done, HandshakePhase::Done);
        self.pending = VecDeque::new();
    }

    /// Continues after the handshake of another parser, in which the server granted this export.
    pub(super) fn resume(&mut self, granted: Option<Vec<u8>>) {
        self.finish();
        self.granted = granted;
    }

    pub(super) fn client_is_done(&self) -> bool {
        self.client == HandshakePhase::Done
    }

    pub(super) fn server_is_done(&self) -> bool {
        self.server == HandshakePhase::Done
    }

    pub(super) fn export_name(&self) -> Option<&[u8]> {
        self.granted.as_deref()
    }

    pub(super) fn pending_options(&self) -> usize {
        self.pending.len()
    }

    /// Reads the client's flags or its next option.
    pub(super) fn request(
        &mut self,
        buffer: &[u8],
        limits: &ParserLimits,
    ) -> Result<ParseStep<RequestHead>, HeadError> {
        if self.client == HandshakePhase::Options {
            return self.option(buffer, limits);
        }
        self.client_flags = u32::from_be_bytes(*first_bytes::<4>(buffer)?);
        let expected = "flags 0 to 3 of the client";
        if self.client_flags > 3 {
            let field = "NBD client flags";
            let found = self.client_flags.into();
            return Err(ProtocolError::Value { field, expected, found }.into());
        }
        self.client = HandshakePhase::Options;
        Ok(complete_message(RequestHead::control(0, ReplyExpectation::Never), 4, 4))
    }

    fn option(&mut self, buffer: &[u8], limits: &ParserLimits) -> Result<ParseStep<RequestHead>, HeadError> {
        let header = first_bytes::<OPTION_HEADER_LEN>(buffer)?;
        check_equal("NBD option magic", "IHAVEOPT", OPTION_MAGIC, u64_at(header, 0))?;
        let option = u32_at(header, 8);
        let len = u32_at(header, 12);
        check_at_most("NBD option in bytes", OPTION_DATA_MAX.into(), len.into())?;
        let field = "NBD options ahead of their replies";
        check_at_most(field, PENDING_OPTIONS_MAX as u64, self.pending.len() as u64 + 1)?;
        let (export_name, head) = export_name_in_option(option, len, buffer, limits)?;
        let id = self.answered + self.pending.len() as u64;
        self.pending.push_back(PendingOption { option, export_name });
        if option == OPT_EXPORT_NAME {
            // No reply can refuse it: what follows is a request of the transmission phase.
            self.client = HandshakePhase::Done;
        }
        let total = OPTION_HEADER_LEN as u64 + u64::from(len);
        Ok(complete_message(RequestHead::control(id, ReplyExpectation::Always), head, total))
    }

    /// Reads the server's greeting or its next reply to an option. What the server acknowledges may change `framing`.
    pub(super) fn reply(
        &mut self,
        buffer: &[u8],
        framing: &mut Framing,
    ) -> Result<ParseStep<ReplyHead>, HeadError> {
        if self.server == HandshakePhase::Hello {
            return self.greeting(buffer);
        }
        let id = self.answered;
        let Some(pending) = self.pending.front() else {
            return Err(ProtocolError::Unsolicited { field: "reply to NBD option", id }.into());
        };
        if pending.option == OPT_EXPORT_NAME {
            return self.export_name_reply(buffer);
        }
        let header = first_bytes::<OPTION_REPLY_HEADER_LEN>(buffer)?;
        check_equal("NBD option reply magic", "0x3e889045565a9", OPTION_REPLY_MAGIC, u64_at(header, 0))?;
        let field = "NBD option reply";
        let expected = "the first option not answered";
        check_equal(field, expected, pending.option.into(), u32_at(header, 8).into())?;
        let kind = u32_at(header, 12);
        let len = u32_at(header, 16);
        check_at_most("NBD option reply in bytes", OPTION_DATA_MAX.into(), len.into())?;
        let is_error = kind & REP_FLAG_ERROR != 0;
        let last = is_error || kind == REP_ACK;
        if last {
            self.finish_option(kind == REP_ACK, framing)?;
        }
        let len = Bytes(OPTION_REPLY_HEADER_LEN as u64 + u64::from(len));
        let extent = Extent { head: OPTION_REPLY_HEADER_LEN, len, last };
        Ok(ParseStep::Message { message: control_reply(id, is_error, true), extent })
    }

    fn greeting(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, HeadError> {
        let header = first_bytes::<16>(buffer)?;
        check_equal("NBD greeting", "NBDMAGIC", GREETING_MAGIC, u64_at(header, 0))?;
        if u64_at(header, 8) == OLDSTYLE_MAGIC {
            let what = "the oldstyle NBD handshake";
            let remedy = "configure the server for newstyle";
            return Err(ProtocolError::Unsupported { what, remedy }.into());
        }
        check_equal("NBD greeting style", "IHAVEOPT", OPTION_MAGIC, u64_at(header, 8))?;
        self.server_flags = u16_at(first_bytes::<18>(buffer)?, 16);
        self.server = HandshakePhase::Options;
        Ok(complete_message(control_reply(0, false, false), 18, 18))
    }

    /// Reads the answer to EXPORT_NAME. Zeroes follow it unless both sides can do without.
    fn export_name_reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, HeadError> {
        first_bytes::<EXPORT_NAME_REPLY_LEN>(buffer)?;
        let without_zeroes =
            self.server_flags & FLAG_NO_ZEROES != 0 && self.client_flags & u32::from(FLAG_NO_ZEROES) != 0;
        let id = self.answered;
        self.grant_export();
        let zeroes = if without_zeroes { 0 } else { EXPORT_NAME_ZEROES };
        let len = (EXPORT_NAME_REPLY_LEN + zeroes) as u64;
        let message = control_reply(id, false, true);
        Ok(complete_message(message, EXPORT_NAME_REPLY_LEN, len))
    }

    /// Notes the final reply to the first pending option.
    fn finish_option(&mut self, acknowledged: bool, framing: &mut Framing) -> Result<(), ProtocolError> {
        match self.pending.front().map(|pending| pending.option) {
            Some(OPT_GO) if acknowledged => {
                self.grant_export();
                return Ok(());
            }
            Some(OPT_STARTTLS) if acknowledged => {
                let what = "NBD over TLS";
                let remedy = "switch TLS off between this client and server";
                return Err(ProtocolError::Unsupported { what, remedy });
            }
            Some(OPT_STRUCTURED_REPLY) if acknowledged && *framing == Framing::Simple => {
                *framing = Framing::Structured;
            }
            Some(OPT_EXTENDED_HEADERS) if acknowledged => *framing = Framing::Extended,
            _ => {}
        }
        self.pending.pop_front();
        self.answered += 1;
        Ok(())
    }

    /// Begins the transmission phase with the export of the first pending option. Options behind it have no effect.
    fn grant_export(&mut self) {
        self.granted = self.pending.pop_front().map(|pending| pending.export_name);
        self.finish();
    }
}

/// The export that an option with `len` bytes of data names (empty where it names none), and where the part of the
/// option ends that has been read.
fn export_name_in_option(
    option: u32,
    len: u32,
    buffer: &[u8],
    limits: &ParserLimits,
) -> Result<(Vec<u8>, usize), HeadError> {
    match option {
        OPT_EXPORT_NAME => export_name_at(OPTION_HEADER_LEN, len, buffer, limits),
        OPT_GO | OPT_INFO => {
            // The data begin with the length of the name.
            let field = "NBD option GO or INFO";
            let needed = 4;
            let left = u64::from(len);
            if len < 4 {
                return Err(ProtocolError::TooShort { field, needed, left }.into());
            }
            const NAME_OFFSET: usize = OPTION_HEADER_LEN + 4;
            let name_len = u32_at(first_bytes::<NAME_OFFSET>(buffer)?, OPTION_HEADER_LEN);
            check_at_most("NBD export name in bytes", u64::from(len) - 4, name_len.into())?;
            export_name_at(NAME_OFFSET, name_len, buffer, limits)
        }
        _ => Ok((Vec::new(), OPTION_HEADER_LEN)),
    }
}

/// The name of `len` bytes at an offset, and where it ends.
fn export_name_at(
    offset: usize,
    len: u32,
    buffer: &[u8],
    limits: &ParserLimits,
) -> Result<(Vec<u8>, usize), HeadError> {
    check_at_most("NBD export name in bytes", STRING_LEN_MAX.into(), len.into())?;
    let end = offset + to_index(len);
    check_at_most("NBD option head in bytes", limits.head as u64, end as u64)?;
    Ok((buffer.get(offset..end).ok_or(HeadError::NeedMore(end))?.to_vec(), end))
}
