//! TCP connections from a chosen address, within a time limit.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect as start, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// A blocking connection whose reads and writes give up after `patience`.
pub(super) fn connect(from: Option<IpAddr>, to: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(address) = from {
        bind(&socket, &SocketAddr::new(address, 0))?;
    }
    match start(&socket, &to) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            let timeout = Timespec::try_from(patience).expect("a few seconds");
            if poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&timeout))? == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no answer within {patience:?}"),
                ));
            }
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// Sends all of it.
pub(super) fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), String> {
    stream.write_all(bytes).map_err(|error| said(&error))
}

/// Appends what comes next to `input`.
pub(super) fn receive(stream: &mut TcpStream, input: &mut Vec<u8>) -> Result<(), String> {
    let mut piece = [0; 16 << 10];
    match stream.read(&mut piece) {
        Ok(0) => Err("the server hung up".to_owned()),
        Ok(count) => {
            input.extend_from_slice(&piece[..count]);
            Ok(())
        }
        Err(error) => Err(said(&error)),
    }
}

fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no answer within {:?}", super::PATIENCE)
        }
        _ => error.to_string(),
    }
}
