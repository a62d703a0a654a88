//! Portmapper, MOUNT, and a file that is there.

use super::{Opened, Site, Space, socket};
use crate::speak::{AUTH_MACHINE, Framer, Heard, Nfs};
use model::OperationError;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use units::Bytes;
use wire::Limits;
use wire::rpc::client::{Auth, Calls};
use wire::rpc::{Connection, MOUNT, NFS, decode};

const PORTMAPPER: u16 = 111;
/// `NFS3ERR_NOENT`.
const MISSING: u32 = 2;

/// A connection on which one call is outstanding at a time.
struct Talk {
    stream: TcpStream,
    framer: Framer<Connection>,
    user: (u32, u32),
    xid: u32,
}

impl Talk {
    fn new(stream: TcpStream, user: (u32, u32)) -> Self {
        Self { stream, framer: Framer::new(Connection::new(Limits::RPC)), user, xid: 0 }
    }

    /// The body of the answer.
    fn call(&mut self, encode: impl FnOnce(&mut Calls<'_>, u32)) -> Result<Vec<u8>, String> {
        self.xid += 1;
        let mut out = Vec::new();
        let auth = Auth::Unix { machine: AUTH_MACHINE, uid: self.user.0, gid: self.user.1 };
        encode(&mut Calls::new(&mut out, auth), self.xid);
        self.framer.asked(&out)?;
        socket::send(&mut self.stream, &out)?;
        let mut input = Vec::new();
        loop {
            match self.framer.hear(&input)? {
                Heard::More(_) => socket::receive(&mut self.stream, &mut input)?,
                Heard::Skip(used) => drop(input.drain(..used)),
                Heard::Answer { used, .. } => {
                    let body = decode::body(&input[..used]).map_err(|bad| bad.to_string())?;
                    return Ok(body.into_owned());
                }
            }
        }
    }
}

pub(super) fn open(
    site: &Site,
    server: IpAddr,
    export: &str,
    file: &str,
    size: Bytes,
) -> Result<Opened, OperationError> {
    let user = std::fs::metadata("/proc/self").map_or((0, 0), |this| (this.uid(), this.gid()));
    let talk =
        |port: u16| Ok::<_, OperationError>(Talk::new(site.connect(SocketAddr::new(server, port))?, user));
    let mut portmapper = talk(PORTMAPPER)?;
    let [mount, nfs] = [port(&mut portmapper, MOUNT, "MOUNT"), port(&mut portmapper, NFS, "NFS")];
    let root = mounted(&mut talk(mount?)?, export).map_err(|why| {
        OperationError::machine(format_args!("mount of {server}:{export}: {why}")).hint(HINT)
    })?;
    let mut talk = talk(nfs?)?;
    let (handle, len) = found_or_made(&mut talk, &root, file, size).map_err(|why| {
        OperationError::machine(format_args!("file {file} in {server}:{export}: {why}")).hint(HINT)
    })?;
    let space = Space::Bytes { len, block: 1, is_writable: true, is_coherent: true };
    Ok(Opened { stream: talk.stream, speaker: Box::new(Nfs::new(handle, user.0, user.1)), space })
}

const HINT: &str =
    "is it exported to this address, by NFSv3, for reading and writing, to clients with ports from 1024?";

fn port(portmapper: &mut Talk, program: u32, name: &str) -> Result<u16, OperationError> {
    let body = portmapper.call(|calls, xid| calls.getport(xid, program, 3));
    let port = body.and_then(|body| decode::getport(&body).map_err(|failure| failure.to_string()));
    match port.map(u16::try_from) {
        Ok(Ok(port)) if port != 0 => Ok(port),
        Ok(_) => {
            Err(OperationError::machine(format_args!("the portmapper knows no {name} version 3 over TCP"))
                .hint("does the server speak NFSv3? `rpcinfo -p` shows what it has"))
        }
        Err(why) => {
            Err(OperationError::machine(format_args!("portmapper: {why}")).hint("is rpcbind running there?"))
        }
    }
}

fn mounted(talk: &mut Talk, export: &str) -> Result<Vec<u8>, String> {
    let body = talk.call(|calls, xid| calls.mount(xid, export.as_bytes()))?;
    decode::mount(&body).map_err(|failure| failure.to_string())
}

/// Its handle and length. An empty file is given the wanted length like one that is missing.
fn found_or_made(talk: &mut Talk, root: &[u8], name: &str, size: Bytes) -> Result<(Vec<u8>, u64), String> {
    let lookup = |talk: &mut Talk| -> Result<_, String> {
        let body = talk.call(|calls, xid| calls.lookup(xid, root, name.as_bytes()))?;
        match decode::lookup(&body) {
            Ok(file) => Ok(Some(file)),
            Err(decode::Failure::Status(MISSING)) => Ok(None),
            Err(failure) => Err(failure.to_string()),
        }
    };
    for _ in 0..2 {
        if let Some(file) = lookup(talk)? {
            let len = match file.size {
                Some(len) => len,
                None => {
                    let body = talk.call(|calls, xid| calls.getattr(xid, &file.handle))?;
                    decode::getattr(&body).map_err(|failure| failure.to_string())?
                }
            };
            if len > 0 || size.0 == 0 {
                return Ok((file.handle, len));
            }
        }
        let body = talk.call(|calls, xid| calls.create(xid, root, name.as_bytes(), 0o644, Some(size.0)))?;
        decode::create(&body).map_err(|failure| failure.to_string())?;
    }
    Err("it stays empty although it was given a length".to_owned())
}
