//! The sockets that connections come from: listeners at the fronts, and connections to the server behind them.

use super::rules::server_storage;
use crate::deployment::{Deployment, FrontProtocol};
use model::OperationError;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

/// A listener at a front, and the server's address that its connections are forwarded to.
#[derive(Debug)]
pub(super) struct FrontListener {
    pub(super) protocol: FrontProtocol,
    pub(super) listener: TcpListener,
    pub(super) forward: SocketAddr,
}

impl FrontListener {
    /// Listens at all fronts of a server.
    ///
    /// # Errors
    /// When the deployment does not describe the fronts, or an address cannot be had.
    pub(super) fn bind_all(deployment: &Deployment, server: &str) -> Result<Vec<Self>, OperationError> {
        let mut listeners = Vec::new();
        for front in &server_storage(deployment, server)?.front {
            let pairs = front
                .pairs()
                .map_err(|message| OperationError::input(message).hint("docs/proxy.md describes fronts"))?;
            for (listen, forward) in pairs {
                let listener = listen_at(listen).map_err(|error| {
                    let hint = "is something else listening there, and is the address this host's? Ports below 1024 take root";
                    OperationError::machine(format_args!("{listen}: {error}")).hint(hint)
                })?;
                listeners.push(Self { protocol: front.protocol, listener, forward });
            }
        }
        Ok(listeners)
    }
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Begins a connection, which is made while other sessions are served: the socket becomes writable when it is made.
pub(super) fn begin_connection(to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// A file descriptor that is kept for the time when the process may open no more.
///
/// A connection that cannot be accepted stays in the listener's backlog, and the listener stays readable: the engine
/// would wake up for it without end. With this descriptor given up for a moment, the connection can be accepted and
/// closed.
#[derive(Debug)]
pub(super) struct SpareDescriptor(Option<OwnedFd>);

impl SpareDescriptor {
    /// Reserves a descriptor by duplicating any other.
    pub(super) fn new(any: impl AsFd) -> Self {
        Self(rustix::io::fcntl_dupfd_cloexec(any, 0).ok())
    }

    /// Accepts a connection in the place of the spare descriptor and closes it; whether there was one. `any` is
    /// duplicated to reserve a descriptor again.
    pub(super) fn reject_connection(&mut self, listener: &TcpListener, any: impl AsFd) -> bool {
        drop(self.0.take());
        let is_rejected = listener.accept().is_ok();
        *self = Self::new(any);
        is_rejected
    }
}
