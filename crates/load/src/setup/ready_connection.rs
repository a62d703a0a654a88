//! The result of setting up a connection.

use crate::address_space::AddressSpace;
use crate::codec::ClientCodec;
use std::net::TcpStream;

/// A connection on which requests can be sent at once.
pub(crate) struct ReadyConnection {
    /// Blocking until [`super::Connector`] hands it out, non-blocking afterwards.
    pub(crate) stream: TcpStream,
    pub(crate) codec: Box<dyn ClientCodec>,
    pub(crate) space: AddressSpace,
}
