//! SunRPC over TCP (RFC 5531) with the programs that NFS needs. Reads and writes of NFSv2 to NFSv4 are recognised;
//! everything else, MOUNT and portmap or rpcbind of any version included, is control.
//!
//! Replies are matched by xid. A reply whose xid is not in flight is reported as unsolicited, because servers answer
//! retransmissions twice. An NFS status other than zero is an error. A server may call its client on the same
//! connection; the client's reply to such a call is recognised as one, and is an error if there was none.
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
mod handle;
mod mounts;
mod operations;
mod protocol;
mod record;

pub use protocol::{MOUNT, NFS};

use crate::fields::{HeadError, check_at_most, first_bytes, into_parse_step};
use crate::memory::shrink_if_empty;
use crate::{
    ConnectionMemory, Extent, GrantedMount, ParseStep, ParserLimits, ProtocolError, ProtocolParser,
    ReplyExpectation, ReplyHead, RequestHead,
};
use call::{CallHead, NFS2_HANDLE_LEN, NFS3_HANDLE_LEN_MAX, ResultsForm};
use handle::NamedHandle;
use mounts::MountCalls;
use record::{MARK_LEN, RecordReader, RecordSize};
use std::collections::HashMap;
use units::Bytes;

/// The parser of one TCP connection to a portmapper, a mount daemon or an NFS server.
#[derive(Debug)]
pub struct RpcParser {
    limits: ParserLimits,
    /// The calls without a reply, by xid, and how the results of each begin.
    pending: HashMap<u32, ResultsForm>,
    /// The calls of the server to its client without a reply: how many by xid.
    callbacks: HashMap<u32, u32>,
    mounts: MountCalls,
    /// The first file handle of the latest request.
    handle: NamedHandle,
    /// The size so far of a request of which further fragments follow.
    open_request: Option<RecordSize>,
    /// The size so far of a reply of which further fragments follow.
    open_reply: Option<RecordSize>,
}

/// What the head of a message from the server says, besides its xid.
enum ServerMessage {
    /// A call of the server to its client.
    Call,
    /// The reply to a call of the client.
    Reply {
        is_error: bool,
        /// The root of a tree that is granted.
        root: Option<Vec<u8>>,
    },
}

impl RpcParser {
    /// A parser for a connection that begins; [`ParserLimits::RPC`] are sensible limits.
    pub fn new(limits: ParserLimits) -> Self {
        Self {
            limits,
            pending: HashMap::new(),
            callbacks: HashMap::new(),
            mounts: MountCalls::default(),
            handle: NamedHandle::NONE,
            open_request: None,
            open_reply: None,
        }
    }

    fn request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        if self.open_request.is_some() {
            let extent = next_fragment(&mut self.open_request, buffer, &self.limits)?;
            return Ok(ParseStep::Continued { extent });
        }
        let mut record = RecordReader::open(buffer, &self.limits)?;
        let call = call::read(&mut record, &mut self.handle)?;
        let extent = record.extent();
        let size = record.size();
        self.open_request = (!extent.last).then_some(size);
        let id = call.xid.into();
        let message = if call.is_reply {
            self.finish_callback(call.xid)?;
            RequestHead { is_callback_reply: true, ..RequestHead::control(id, ReplyExpectation::Never) }
        } else {
            let class = call.access.class;
            let position = call.access.position;
            let keys = call.access.keys;
            let is_retransmission = self.remember(call)?;
            let control = RequestHead::control(id, ReplyExpectation::Always);
            RequestHead { class, position, keys, is_retransmission, ..control }
        };
        Ok(ParseStep::Message { message, extent })
    }

    /// Notes a call of the client; whether it is a retransmission.
    fn remember(&mut self, call: CallHead) -> Result<bool, ProtocolError> {
        if self.pending.contains_key(&call.xid) {
            self.mounts.asked_again(call.xid, call.mount_path.as_deref());
            return Ok(true);
        }
        let max = self.limits.in_flight as u64;
        check_at_most("outstanding RPC calls", max, self.pending.len() as u64 + 1)?;
        if let Some(path) = call.mount_path {
            self.mounts.asked(call.xid, path)?;
        }
        self.pending.insert(call.xid, call.results);
        Ok(false)
    }

    /// Notes a call of the server.
    fn remember_callback(&mut self, xid: u32) -> Result<(), ProtocolError> {
        let max = self.limits.in_flight as u64;
        check_at_most("outstanding RPC calls of the server", max, self.callbacks.len() as u64 + 1)?;
        let count = self.callbacks.entry(xid).or_default();
        *count = count.saturating_add(1);
        Ok(())
    }

    /// Notes the client's reply to a call of the server.
    fn finish_callback(&mut self, xid: u32) -> Result<(), ProtocolError> {
        let unsolicited = ProtocolError::Unsolicited { field: "client's reply to RPC xid", id: xid.into() };
        let count = self.callbacks.get_mut(&xid).ok_or(unsolicited)?;
        *count -= 1;
        if *count == 0 {
            self.callbacks.remove(&xid);
            shrink_if_empty(&mut self.callbacks);
        }
        Ok(())
    }

    fn reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, HeadError> {
        if self.open_reply.is_some() {
            let extent = next_fragment(&mut self.open_reply, buffer, &self.limits)?;
            return Ok(ParseStep::Continued { extent });
        }
        let limits = self.limits;
        let mut record = RecordReader::open(buffer, &limits)?;
        let xid = record.u32("RPC xid")?;
        let form = self.pending.get(&xid).copied();
        let (is_error, is_solicited) = match server_message(&mut record, form)? {
            ServerMessage::Call => {
                self.remember_callback(xid)?;
                (false, false)
            }
            ServerMessage::Reply { is_error, root } => {
                self.mounts.answered(xid, root);
                (is_error, form.is_some())
            }
        };
        if is_solicited {
            self.pending.remove(&xid);
            shrink_if_empty(&mut self.pending);
        }
        let extent = record.extent();
        self.open_reply = (!extent.last).then_some(record.size());
        let message = ReplyHead { id: xid.into(), is_error, is_solicited, is_injected: false };
        Ok(ParseStep::Message { message, extent })
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

/// Reads a message from the server behind its xid. A reply to a call in flight has results of a known form.
fn server_message(
    record: &mut RecordReader<'_>,
    form: Option<ResultsForm>,
) -> Result<ServerMessage, HeadError> {
    let field = "RPC message type";
    let expected = "1 (reply), or 0 (call) to the client";
    match record.u32(field)? {
        protocol::REPLY => {}
        protocol::CALL => return Ok(ServerMessage::Call),
        found => return Err(ProtocolError::Value { field, expected, found: found.into() }.into()),
    }
    let field = "RPC reply state";
    let expected = "0 (accepted) or 1 (denied)";
    match record.u32(field)? {
        0 => {}
        1 => return Ok(ServerMessage::Reply { is_error: true, root: None }),
        found => return Err(ProtocolError::Value { field, expected, found: found.into() }.into()),
    }
    call::skip_auth(record, "RPC verifier")?;
    let form = form.unwrap_or(ResultsForm::Any);
    let is_error =
        record.u32("RPC accept state")? != 0 || (form != ResultsForm::Any && record.u32("NFS status")? != 0);
    let field = "root of a MOUNT reply";
    let root = match form {
        ResultsForm::FixedRoot if !is_error => Some(record.copy_fixed(field, NFS2_HANDLE_LEN)?),
        ResultsForm::VariableRoot if !is_error => Some(record.copy_opaque(field, NFS3_HANDLE_LEN_MAX)?),
        _ => None,
    };
    Ok(ServerMessage::Reply { is_error, root })
}

impl ProtocolParser for RpcParser {
    fn next_request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, ProtocolError> {
        into_parse_step(self.request(buffer))
    }

    fn next_reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, ProtocolError> {
        into_parse_step(self.reply(buffer))
    }

    fn file_handle(&self) -> Option<&[u8]> {
        self.handle.get()
    }

    fn take_mount(&mut self) -> Option<GrantedMount> {
        self.mounts.take_granted()
    }

    fn memory(&self) -> Option<ConnectionMemory> {
        // The client's replies to calls of the server are no requests.
        self.callbacks.is_empty().then(ConnectionMemory::default)
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }
}
