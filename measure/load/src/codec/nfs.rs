//! NFSv3 READ and WRITE. Writes ask for stable storage (`FILE_SYNC`), so that an answered write survives a crash of the
//! server.

use super::client_codec::{ClientCodec, Decoded, IoRequest, ReplyStatus};
use super::reply_framer::ReplyFramer;
use model::Op;
use std::borrow::Cow;
use wire::ParserLimits;
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::rpc::{RpcParser, decode};

/// The name of this machine in credentials.
pub(crate) const AUTH_MACHINE: &str = "tailwright";

/// Reads and writes one file, as one user.
#[derive(Debug)]
pub(crate) struct NfsCodec {
    framer: ReplyFramer<RpcParser>,
    file_handle: Vec<u8>,
    uid: u32,
    gid: u32,
}

impl NfsCodec {
    pub(crate) fn new(file_handle: Vec<u8>, uid: u32, gid: u32) -> Self {
        let limits = ParserLimits { in_flight: 1 << 16, ..ParserLimits::RPC };
        Self { framer: ReplyFramer::new(RpcParser::new(limits)), file_handle, uid, gid }
    }
}

impl ClientCodec for NfsCodec {
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        id: u64,
        request: IoRequest,
        payload: &[u8],
    ) -> Result<(), String> {
        let start = out.len();
        let xid = u32::try_from(id & u64::from(u32::MAX)).expect("32 bits");
        let auth = Credentials::Unix { machine: AUTH_MACHINE, uid: self.uid, gid: self.gid };
        let mut calls = CallEncoder::new(out, auth);
        match request.op {
            Op::Read => calls.read(xid, &self.file_handle, request.address, request.size),
            Op::Write => calls.write(xid, &self.file_handle, request.address, StableHow::FileSync, payload),
        }
        self.framer.register_request(&out[start..])
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String> {
        self.framer.next_reply(input)
    }

    fn interpret<'a>(&self, request: IoRequest, reply: &'a [u8], _payload_start: usize) -> ReplyStatus<'a> {
        let body = match decode::record_body(reply) {
            Ok(body) => body,
            Err(malformed) => return ReplyStatus::Failed(malformed.to_string()),
        };
        // A reply in one fragment is borrowed; one in several has been joined and its data must be copied out.
        match (request.op, body) {
            (Op::Write, body) => interpret_write(request, &body),
            (Op::Read, Cow::Borrowed(body)) => match read_data(request, body) {
                Ok(data) => ReplyStatus::Done(Cow::Borrowed(data)),
                Err(why) => ReplyStatus::Failed(why),
            },
            (Op::Read, Cow::Owned(body)) => match read_data(request, &body) {
                Ok(data) => ReplyStatus::Done(Cow::Owned(data.to_vec())),
                Err(why) => ReplyStatus::Failed(why),
            },
        }
    }
}

fn read_data(request: IoRequest, body: &[u8]) -> Result<&[u8], String> {
    let data = decode::read(body).map_err(|error| error.to_string())?.data;
    let returned = data.len();
    let wanted = request.size;
    if returned == wanted as usize {
        return Ok(data);
    }
    Err(format!("{returned} of {wanted} bytes were read; does the server allow reads so large?"))
}

fn interpret_write(request: IoRequest, body: &[u8]) -> ReplyStatus<'static> {
    match decode::write(body) {
        Err(error) => ReplyStatus::Failed(error.to_string()),
        Ok(written) if written.count == request.size => ReplyStatus::Done(Cow::Borrowed(&[])),
        Ok(written) => ReplyStatus::Failed(format!(
            "{} of {} bytes were written; does the server allow writes so large?",
            written.count, request.size
        )),
    }
}
