//! The NBD handshake.

use super::{Opened, Site, Space, socket};
use crate::speak::Nbd;
use model::OperationError;
use std::net::{SocketAddr, TcpStream};
use wire::nbd::client::{Ask, Export, Handshake, Progress};
use wire::nbd::protocol::{FLAG_CAN_MULTI_CONN, FLAG_READ_ONLY, STRING_LEN_MAX};

pub(super) fn open(site: &Site, server: SocketAddr, name: &str) -> Result<Opened, OperationError> {
    if name.len() > STRING_LEN_MAX as usize {
        return Err(OperationError::input("names of NBD exports have at most 4096 bytes").hint("shorten it"));
    }
    let mut stream = site.connect(server)?;
    let export = shake(&mut stream, name).map_err(|why| {
        let hint = "`nbdinfo --list` shows what a server exports";
        OperationError::machine(format_args!("NBD export '{name}' of {server}: {why}")).hint(hint)
    })?;
    let space = Space::Bytes {
        len: export.size,
        block: export.block.unwrap_or(1).max(1).into(),
        is_writable: export.flags & FLAG_READ_ONLY == 0,
        is_coherent: export.flags & FLAG_CAN_MULTI_CONN != 0,
    };
    Ok(Opened { stream, speaker: Box::new(Nbd::new(export.framing)), space })
}

/// With simple replies: those to reads come in one piece.
fn shake(stream: &mut TcpStream, name: &str) -> Result<Export, String> {
    let mut handshake = Handshake::new(name.as_bytes(), Ask::Go);
    let (mut input, mut out) = (Vec::new(), Vec::new());
    loop {
        let progress = handshake.next(&input, &mut out).map_err(|failure| failure.to_string())?;
        socket::send(stream, &std::mem::take(&mut out))?;
        match progress {
            Progress::Used(used) => drop(input.drain(..used)),
            Progress::NeedMore { .. } => socket::receive(stream, &mut input)?,
            Progress::Done { used, export } if used == input.len() => return Ok(export),
            Progress::Done { .. } => return Err("the server speaks before it is asked".to_owned()),
        }
    }
}
