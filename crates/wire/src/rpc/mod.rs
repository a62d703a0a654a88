//! SunRPC over TCP (RFC 5531) with the programs that NFS needs. Reads and writes of NFSv2 to NFSv4 are recognised;
//! everything else, MOUNT and portmap or rpcbind of any version included, is control.
//!
//! Replies are matched by xid. A reply whose xid is not in flight is reported as unsolicited, because servers answer
//! retransmissions twice. An NFS status other than zero is an error.
//!
//! UDP, which has no record marks, is not covered.
//!
//! Only heads are read, by code of its own; `client` encodes the few procedures that a load generator needs, and
//! `decode` reads their results.

mod access;
mod call;
pub mod client;
mod compound;
pub mod decode;
mod protocol;
mod record;

pub use protocol::{MOUNT, NFS};

use crate::fields::{HeadError, check_at_most, first_bytes, into_parse_step};
use crate::{
    Extent, ParseStep, ParserLimits, ProtocolError, ProtocolParser, ReplyExpectation, ReplyHead, RequestHead,
};
use record::{MARK_LEN, RecordReader, RecordSize};
use std::collections::HashMap;
use units::Bytes;

/// The parser of one TCP connection to a portmapper, a mount daemon or an NFS server.
#[derive(Debug)]
pub struct RpcParser {
    limits: ParserLimits,
    /// The calls without a reply, by xid.
    pending: HashMap<u32, PendingCall>,
    /// The path of the last MOUNT call.
    mount_path: Option<Vec<u8>>,
    /// The size so far of a request of which further fragments follow.
    open_request: Option<RecordSize>,
    /// The size so far of a reply of which further fragments follow.
    open_reply: Option<RecordSize>,
}

/// A call that waits for its reply.
#[derive(Debug, Clone, Copy)]
struct PendingCall {
    /// Whether its results begin with a status word, which is zero for success.
    has_status: bool,
}

/// What the head of a message from the server says, besides its xid.
enum ServerMessage {
    /// A call of the server to its client.
    Call,
    /// The reply to a call of the client.
    Reply { is_error: bool },
}

impl RpcParser {
    /// A parser for a connection that begins; [`ParserLimits::RPC`] are sensible limits.
    pub fn new(limits: ParserLimits) -> Self {
        Self { limits, pending: HashMap::new(), mount_path: None, open_request: None, open_reply: None }
    }

    fn request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        if self.open_request.is_some() {
            let extent = next_fragment(&mut self.open_request, buffer, &self.limits)?;
            return Ok(ParseStep::Continued { extent });
        }
        let mut record = RecordReader::open(buffer, &self.limits)?;
        let call = call::read(&mut record)?;
        let (extent, size) = (record.extent(), record.size());
        let is_known = self.pending.contains_key(&call.xid);
        if !call.is_reply && !is_known {
            let max = self.limits.in_flight as u64;
            check_at_most("outstanding RPC calls", max, self.pending.len() as u64 + 1)?;
            self.pending.insert(call.xid, PendingCall { has_status: call.has_status });
        }
        self.open_request = (!extent.last).then_some(size);
        self.mount_path = call.mount_path.or(self.mount_path.take());
        let message = RequestHead {
            id: call.xid.into(),
            class: call.access.class,
            position: call.access.position,
            reply: if call.is_reply { ReplyExpectation::Never } else { ReplyExpectation::Always },
            is_retransmission: is_known && !call.is_reply,
        };
        Ok(ParseStep::Message { message, extent })
    }

    fn reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, HeadError> {
        if self.open_reply.is_some() {
            let extent = next_fragment(&mut self.open_reply, buffer, &self.limits)?;
            return Ok(ParseStep::Continued { extent });
        }
        let mut record = RecordReader::open(buffer, &self.limits)?;
        let xid = record.u32("RPC xid")?;
        let pending = self.pending.get(&xid).copied();
        let (is_error, is_solicited) = match server_message(&mut record, pending)? {
            ServerMessage::Call => (false, false),
            ServerMessage::Reply { is_error } => (is_error, pending.is_some()),
        };
        if is_solicited {
            self.pending.remove(&xid);
        }
        let extent = record.extent();
        self.open_reply = (!extent.last).then_some(record.size());
        Ok(ParseStep::Message { message: ReplyHead { id: xid.into(), is_error, is_solicited }, extent })
    }
}

/// Reads the mark of the next fragment of an open record, and closes the record with its last fragment.
fn next_fragment(
    open_record: &mut Option<RecordSize>,
    buffer: &[u8],
    limits: &ParserLimits,
) -> Result<Extent, HeadError> {
    let mark = u32::from_be_bytes(*first_bytes::<MARK_LEN>(buffer)?);
    let size = open_record.as_mut().expect("the caller has an open record");
    let (len, last) = size.add_fragment(mark, limits)?;
    if last {
        *open_record = None;
    }
    Ok(Extent { head: MARK_LEN, len: Bytes(MARK_LEN as u64 + u64::from(len)), last })
}

/// Reads a message from the server behind its xid.
fn server_message(
    record: &mut RecordReader<'_>,
    pending: Option<PendingCall>,
) -> Result<ServerMessage, HeadError> {
    let (field, expected) = ("RPC message type", "1 (reply), or 0 (call) to the client");
    match record.u32(field)? {
        protocol::REPLY => {}
        protocol::CALL => return Ok(ServerMessage::Call),
        found => return Err(ProtocolError::Value { field, expected, found: found.into() }.into()),
    }
    let (field, expected) = ("RPC reply state", "0 (accepted) or 1 (denied)");
    match record.u32(field)? {
        0 => {}
        1 => return Ok(ServerMessage::Reply { is_error: true }),
        found => return Err(ProtocolError::Value { field, expected, found: found.into() }.into()),
    }
    call::skip_auth(record, "RPC verifier")?;
    if record.u32("RPC accept state")? != 0 {
        return Ok(ServerMessage::Reply { is_error: true });
    }
    let has_status = pending.is_some_and(|call| call.has_status);
    Ok(ServerMessage::Reply { is_error: has_status && record.u32("NFS status")? != 0 })
}

impl ProtocolParser for RpcParser {
    fn next_request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, ProtocolError> {
        into_parse_step(self.request(buffer))
    }

    fn next_reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, ProtocolError> {
        into_parse_step(self.reply(buffer))
    }

    fn export_name(&self) -> Option<&[u8]> {
        self.mount_path.as_deref()
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }
}
