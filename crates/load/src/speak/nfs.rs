//! NFSv3 READ and WRITE. Writes are to be stable when they are answered, so that an answered write is a promise.

use super::framer::Framer;
use super::{Ask, Heard, Said, Speak};
use model::Op;
use std::borrow::Cow;
use wire::Limits;
use wire::rpc::client::{Auth, Calls, Stable};
use wire::rpc::{Connection, decode};

/// Name of this machine in credentials.
pub(crate) const AUTH_MACHINE: &str = "tailwright";

#[derive(Debug)]
pub(crate) struct Nfs {
    framer: Framer<Connection>,
    file: Vec<u8>,
    uid: u32,
    gid: u32,
}

impl Nfs {
    /// Reads and writes the file with this handle.
    pub(crate) fn new(file: Vec<u8>, uid: u32, gid: u32) -> Self {
        let limits = Limits { outstanding: 1 << 16, ..Limits::RPC };
        Self { framer: Framer::new(Connection::new(limits)), file, uid, gid }
    }
}

impl Speak for Nfs {
    fn ask(&mut self, out: &mut Vec<u8>, id: u64, ask: Ask, data: &[u8]) -> Result<(), String> {
        let (start, xid) = (out.len(), u32::try_from(id & u64::from(u32::MAX)).expect("32 bits"));
        let auth = Auth::Unix { machine: AUTH_MACHINE, uid: self.uid, gid: self.gid };
        let mut calls = Calls::new(out, auth);
        match ask.op {
            Op::Read => calls.read(xid, &self.file, ask.place, ask.size),
            Op::Write => calls.write(xid, &self.file, ask.place, Stable::File, data),
        }
        self.framer.asked(&out[start..])
    }

    fn hear(&mut self, input: &[u8]) -> Result<Heard, String> {
        self.framer.hear(input)
    }

    fn said<'a>(&self, ask: Ask, raw: &'a [u8], _head: usize) -> Said<'a> {
        let body = match decode::body(raw) {
            Ok(body) => body,
            Err(bad) => return Said::Failed(bad.to_string()),
        };
        match (ask.op, body) {
            (Op::Write, body) => written(ask, &body),
            (Op::Read, Cow::Borrowed(body)) => match read(ask, body) {
                Ok(data) => Said::Done(Cow::Borrowed(data)),
                Err(why) => Said::Failed(why),
            },
            (Op::Read, Cow::Owned(body)) => match read(ask, &body) {
                Ok(data) => Said::Done(Cow::Owned(data.to_vec())),
                Err(why) => Said::Failed(why),
            },
        }
    }
}

fn read(ask: Ask, body: &[u8]) -> Result<&[u8], String> {
    let data = decode::read(body).map_err(|failure| failure.to_string())?.data;
    let (found, wanted) = (data.len(), ask.size);
    if found == wanted as usize {
        return Ok(data);
    }
    Err(format!("{found} of {wanted} bytes were read; does the server allow reads so large?"))
}

fn written(ask: Ask, body: &[u8]) -> Said<'static> {
    match decode::write(body) {
        Err(failure) => Said::Failed(failure.to_string()),
        Ok(written) if written.count == ask.size => Said::Done(Cow::Borrowed(&[])),
        Ok(written) => Said::Failed(format!(
            "{} of {} bytes were written; does the server allow writes so large?",
            written.count, ask.size
        )),
    }
}
