//! The NBD handshake. It asks for simple replies, in which the data of a read comes in one piece.

use super::dialer::{self, Dialer};
use super::ready_connection::{ConnectionSocket, ReadyConnection};
use crate::address_space::AddressSpace;
use crate::codec::NbdCodec;
use model::OperationError;
use std::net::{SocketAddr, TcpStream};
use wire::nbd::client::{ClientHandshake, ExportOption, GrantedExport, HandshakeStep};
use wire::nbd::protocol::{FLAG_CAN_MULTI_CONN, FLAG_READ_ONLY, STRING_LEN_MAX};

pub(crate) fn connect(
    dialer: &Dialer,
    server: SocketAddr,
    export_name: &str,
) -> Result<ReadyConnection, OperationError> {
    if export_name.len() > STRING_LEN_MAX as usize {
        return Err(OperationError::input("names of NBD exports have at most 4096 bytes").hint("shorten it"));
    }
    let mut stream = dialer.dial(server)?;
    let export = negotiate(&mut stream, export_name).map_err(|why| {
        let hint = "`nbdinfo --list` shows what a server exports";
        OperationError::machine(format_args!("NBD export '{export_name}' of {server}: {why}")).hint(hint)
    })?;
    let space = AddressSpace::Bytes {
        len: export.size,
        block: export.block.unwrap_or(1).max(1).into(),
        is_writable: export.flags & FLAG_READ_ONLY == 0,
        is_coherent: export.flags & FLAG_CAN_MULTI_CONN != 0,
    };
    Ok(ReadyConnection {
        socket: ConnectionSocket::Stream(stream),
        tls: None,
        codec: Box::new(NbdCodec::new(export.framing)),
        space,
    })
}

fn negotiate(stream: &mut TcpStream, export_name: &str) -> Result<GrantedExport, String> {
    let mut handshake = ClientHandshake::new(export_name.as_bytes(), ExportOption::Go);
    let mut input = Vec::new();
    let mut out = Vec::new();
    loop {
        let progress = handshake.advance(&input, &mut out).map_err(|error| error.to_string())?;
        dialer::send(stream, &std::mem::take(&mut out))?;
        match progress {
            HandshakeStep::Used(used) => drop(input.drain(..used)),
            HandshakeStep::NeedMore { .. } => dialer::receive(stream, &mut input)?,
            HandshakeStep::Done { used, export } if used == input.len() => return Ok(export),
            HandshakeStep::Done { .. } => return Err("the server speaks before it is asked".to_owned()),
        }
    }
}
