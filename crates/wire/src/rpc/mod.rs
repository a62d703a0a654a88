//! SunRPC over TCP (RFC 5531) with the programs that NFS needs: NFSv2 to v4 reads and writes are recognised,
//! everything else, MOUNT and portmap or rpcbind of any version included, is control.
//!
//! Replies are matched by xid. A reply whose xid is not outstanding is passed as not asked for: servers answer
//! retransmissions twice. An NFS status other than zero is an error.
//!
//! Not covered: UDP, which has no record marks.
//!
//! Only heads are read, by code of its own; `client` encodes the few procedures that a generator of load needs, and
//! `decode` reads their results.

mod call;
pub mod client;
mod compound;
pub mod decode;
mod protocol;
mod record;

pub use protocol::{MOUNT, NFS};

use crate::read::{Stop, at_most, first, settle};
use crate::{Answer, Extent, Limits, Malformed, Reply, Request, Step, Wire};
use record::{MARK, Record, Seen};
use std::collections::HashMap;
use units::Bytes;

/// One TCP connection to a portmapper, a mount daemon or an NFS server.
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    asked: HashMap<u32, Asked>,
    path: Option<Vec<u8>>,
    /// A record of which further fragments follow.
    request: Option<Seen>,
    reply: Option<Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    has_status: bool,
}

impl Connection {
    /// A connection on which nothing has been said; [`Limits::RPC`] are sensible limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, asked: HashMap::new(), path: None, request: None, reply: None }
    }

    fn call(&mut self, buffer: &[u8]) -> Result<Step<Request>, Stop> {
        if let Some(seen) = &mut self.request {
            let extent = fragment(seen, buffer, &self.limits)?;
            if extent.last {
                self.request = None;
            }
            return Ok(Step::Continued { extent });
        }
        let mut record = Record::open(buffer, &self.limits)?;
        let call = call::read(&mut record)?;
        let (extent, seen) = (record.extent(), record.seen());
        let repeated = self.asked.contains_key(&call.xid);
        if !call.is_reply && !repeated {
            let most = self.limits.outstanding as u64;
            at_most("outstanding RPC calls", most, self.asked.len() as u64 + 1)?;
            self.asked.insert(call.xid, Asked { has_status: call.has_status });
        }
        self.request = (!extent.last).then_some(seen);
        self.path = call.path.or(self.path.take());
        let answer = if call.is_reply { Answer::Never } else { Answer::Always };
        let (class, position) = (call.work.class, call.work.position);
        let repeated = repeated && !call.is_reply;
        let message = Request { id: call.xid.into(), class, position, answer, repeated };
        Ok(Step::Message { message, extent })
    }

    fn answer(&mut self, buffer: &[u8]) -> Result<Step<Reply>, Stop> {
        if let Some(seen) = &mut self.reply {
            let extent = fragment(seen, buffer, &self.limits)?;
            if extent.last {
                self.reply = None;
            }
            return Ok(Step::Continued { extent });
        }
        let mut record = Record::open(buffer, &self.limits)?;
        let xid = record.u32("RPC xid")?;
        let asked = self.asked.get(&xid).copied();
        let (is_call, error) = failed(&mut record, asked)?;
        let (extent, seen) = (record.extent(), record.seen());
        if !is_call {
            self.asked.remove(&xid);
        }
        self.reply = (!extent.last).then_some(seen);
        let message = Reply { id: xid.into(), error, asked: asked.is_some() && !is_call };
        Ok(Step::Message { message, extent })
    }
}

/// The next fragment of a record whose head has been read.
fn fragment(seen: &mut Seen, buffer: &[u8], limits: &Limits) -> Result<Extent, Stop> {
    let mark = u32::from_be_bytes(*first::<MARK>(buffer)?);
    let (len, last) = seen.fragment(mark, limits)?;
    Ok(Extent { head: MARK, len: Bytes(MARK as u64 + u64::from(len)), last })
}

/// Behind the xid: whether the message is a call (of the server, to its client), and whether it reports a failure.
fn failed(record: &mut Record<'_>, asked: Option<Asked>) -> Result<(bool, bool), Stop> {
    let (field, expected) = ("RPC message type", "1 (reply), or 0 (call) to the client");
    match record.u32(field)? {
        protocol::REPLY => {}
        protocol::CALL => return Ok((true, false)),
        found => return Err(Malformed::Value { field, expected, found: found.into() }.into()),
    }
    let (field, expected) = ("RPC reply state", "0 (accepted) or 1 (denied)");
    match record.u32(field)? {
        0 => {}
        1 => return Ok((false, true)),
        found => return Err(Malformed::Value { field, expected, found: found.into() }.into()),
    }
    call::auth(record, "RPC verifier")?;
    if record.u32("RPC accept state")? != 0 {
        return Ok((false, true));
    }
    let has_status = asked.is_some_and(|asked| asked.has_status);
    Ok((false, has_status && record.u32("NFS status")? != 0))
}

impl Wire for Connection {
    fn request(&mut self, buffer: &[u8]) -> Result<Step<Request>, Malformed> {
        settle(self.call(buffer))
    }

    fn reply(&mut self, buffer: &[u8]) -> Result<Step<Reply>, Malformed> {
        settle(self.answer(buffer))
    }

    fn name(&self) -> Option<&[u8]> {
        self.path.as_deref()
    }

    fn outstanding(&self) -> usize {
        self.asked.len()
    }
}
