//! Sets up an NFSv3 connection: asks the portmapper for ports, mounts the export, and finds or creates the file.

use super::dialer::{self, Dialer};
use super::ready_connection::{ConnectionSocket, ReadyConnection};
use crate::address_space::AddressSpace;
use crate::codec::{AUTH_MACHINE, Decoded, NfsCodec, ReplyFramer};
use model::OperationError;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use units::Bytes;
use wire::ParserLimits;
use wire::rpc::client::{CallEncoder, Credentials};
use wire::rpc::{MOUNT, NFS, RpcParser, decode};

const PORTMAPPER_PORT: u16 = 111;
/// The status `NFS3ERR_NOENT`: the file does not exist.
const NFS3ERR_NOENT: u32 = 2;
const EXPORT_HINT: &str =
    "is it exported to this address, by NFSv3, for reading and writing, to clients with ports from 1024?";

/// The numeric ids in credentials.
#[derive(Debug, Clone, Copy)]
struct RpcUser {
    uid: u32,
    gid: u32,
}

impl RpcUser {
    /// The user that this process runs as, or root where that cannot be found out.
    fn current() -> Self {
        std::fs::metadata("/proc/self")
            .map_or(Self { uid: 0, gid: 0 }, |this| Self { uid: this.uid(), gid: this.gid() })
    }
}

/// A blocking connection to one RPC program, with one call outstanding at a time.
struct RpcClient {
    stream: TcpStream,
    framer: ReplyFramer<RpcParser>,
    user: RpcUser,
    last_xid: u32,
}

impl RpcClient {
    fn connect(dialer: &Dialer, server: SocketAddr, user: RpcUser) -> Result<Self, OperationError> {
        let stream = dialer.dial(server)?;
        Ok(Self { stream, framer: ReplyFramer::new(RpcParser::new(ParserLimits::RPC)), user, last_xid: 0 })
    }

    /// Makes one call, which `encode` writes with the given xid, and returns the body of the reply.
    fn call(&mut self, encode: impl FnOnce(&mut CallEncoder<'_>, u32)) -> Result<Vec<u8>, String> {
        self.last_xid += 1;
        let mut out = Vec::new();
        let auth = Credentials::Unix { machine: AUTH_MACHINE, uid: self.user.uid, gid: self.user.gid };
        encode(&mut CallEncoder::new(&mut out, auth), self.last_xid);
        self.framer.register_request(&out)?;
        dialer::send(&mut self.stream, &out)?;
        let mut input = Vec::new();
        loop {
            match self.framer.next_reply(&input)? {
                Decoded::NeedMore(_) => dialer::receive(&mut self.stream, &mut input)?,
                Decoded::Skip(len) => drop(input.drain(..len)),
                Decoded::Reply { len, .. } => {
                    let body =
                        decode::record_body(&input[..len]).map_err(|malformed| malformed.to_string())?;
                    return Ok(body.into_owned());
                }
            }
        }
    }
}

pub(super) fn connect(
    dialer: &Dialer,
    server: IpAddr,
    export: &str,
    file: &str,
    size: Bytes,
) -> Result<ReadyConnection, OperationError> {
    let user = RpcUser::current();
    let mut portmapper = RpcClient::connect(dialer, SocketAddr::new(server, PORTMAPPER_PORT), user)?;
    let mount_port = look_up_port(&mut portmapper, MOUNT, "MOUNT");
    let nfs_port = look_up_port(&mut portmapper, NFS, "NFS");
    let mut mount_client = RpcClient::connect(dialer, SocketAddr::new(server, mount_port?), user)?;
    let root = mount(&mut mount_client, export).map_err(|why| {
        OperationError::machine(format_args!("mount of {server}:{export}: {why}")).hint(EXPORT_HINT)
    })?;
    let mut nfs_client = RpcClient::connect(dialer, SocketAddr::new(server, nfs_port?), user)?;
    let (handle, len) = find_or_create(&mut nfs_client, &root, file, size).map_err(|why| {
        OperationError::machine(format_args!("file {file} in {server}:{export}: {why}")).hint(EXPORT_HINT)
    })?;
    // NFS clients see old data because they cache; this one caches nothing.
    let space = AddressSpace::Bytes { len, block: 1, is_writable: true, is_coherent: true };
    let codec = Box::new(NfsCodec::new(handle, user.uid, user.gid));
    Ok(ReadyConnection { socket: ConnectionSocket::Stream(nfs_client.stream), tls: None, codec, space })
}

fn look_up_port(portmapper: &mut RpcClient, program: u32, name: &str) -> Result<u16, OperationError> {
    let body = portmapper.call(|calls, xid| calls.getport(xid, program, 3));
    let port = body.and_then(|body| decode::getport(&body).map_err(|error| error.to_string()));
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

/// The handle of the export's root.
fn mount(client: &mut RpcClient, export: &str) -> Result<Vec<u8>, String> {
    let body = client.call(|calls, xid| calls.mount(xid, export.as_bytes()))?;
    decode::mount(&body).map_err(|error| error.to_string())
}

/// Returns the handle and the length of a file. A missing file is created with the wanted length; an
/// empty one is set to that length by the same CREATE and looked up again.
fn find_or_create(
    client: &mut RpcClient,
    root: &[u8],
    name: &str,
    size: Bytes,
) -> Result<(Vec<u8>, u64), String> {
    for _ in 0..2 {
        if let Some((handle, len)) = look_up(client, root, name)?
            && (len > 0 || size.0 == 0)
        {
            return Ok((handle, len));
        }
        let body = client.call(|calls, xid| calls.create(xid, root, name.as_bytes(), 0o644, Some(size.0)))?;
        decode::create(&body).map_err(|error| error.to_string())?;
    }
    Err("it stays empty although it was given a length".to_owned())
}

/// The handle and the length of a file, or `None` if it does not exist.
fn look_up(client: &mut RpcClient, root: &[u8], name: &str) -> Result<Option<(Vec<u8>, u64)>, String> {
    let body = client.call(|calls, xid| calls.lookup(xid, root, name.as_bytes()))?;
    let file = match decode::lookup(&body) {
        Ok(file) => file,
        Err(decode::CallError::Status(NFS3ERR_NOENT)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    // Attributes are optional in the reply to a lookup.
    let len = match file.size {
        Some(len) => len,
        None => {
            let body = client.call(|calls, xid| calls.getattr(xid, &file.handle))?;
            decode::getattr(&body).map_err(|error| error.to_string())?
        }
    };
    Ok(Some((file.handle, len)))
}
