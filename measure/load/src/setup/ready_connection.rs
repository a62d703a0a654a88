//! The result of setting up a connection.

use crate::address_space::AddressSpace;
use crate::codec::ClientCodec;
use crate::tls::TlsSession;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// A connection on which requests can be sent at once.
pub(crate) struct ReadyConnection {
    /// Blocking until [`super::Connector`] hands it out, non-blocking afterwards.
    pub(crate) socket: ConnectionSocket,
    /// Present if what the codec sends is encrypted.
    pub(crate) tls: Option<TlsSession>,
    pub(crate) codec: Box<dyn ClientCodec>,
    pub(crate) space: AddressSpace,
}

/// The socket of a connection.
#[derive(Debug)]
pub(crate) enum ConnectionSocket {
    /// TCP: requests and replies follow each other without boundaries.
    Stream(TcpStream),
    /// UDP, connected to the server: a request is a datagram.
    Datagrams(UdpSocket),
}

impl ConnectionSocket {
    /// True if each request is a datagram.
    pub(crate) fn is_datagrams(&self) -> bool {
        matches!(self, Self::Datagrams(_))
    }

    /// Makes sending and receiving return at once, and small requests leave at once.
    pub(crate) fn set_immediate(&self) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)),
            Self::Datagrams(socket) => socket.set_nonblocking(true),
        }
    }
}

impl AsFd for ConnectionSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stream(stream) => stream.as_fd(),
            Self::Datagrams(socket) => socket.as_fd(),
        }
    }
}
