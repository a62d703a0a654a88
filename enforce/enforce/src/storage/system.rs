//! Interface between the proxy and its machine: connections, events about them, and the clock.
//!
//! The engine and its sessions are a state machine over a [`System`]; they open no file and read no clock.
//! The proxy runs over [`LinuxSystem`](super::linux::LinuxSystem). Tests run the same engine over simulated
//! systems, in which every call may fail.

use std::io::{self, IoSlice};
use std::net::SocketAddr;

/// Events of a stream that the engine wants. Hang-ups are always reported while a stream is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamInterest {
    /// Bytes or the end of the stream can be read.
    pub readable: bool,
    /// Bytes can be written, or connecting has completed.
    pub writable: bool,
}

impl StreamInterest {
    /// Only hang-ups.
    pub const NONE: Self = Self { readable: false, writable: false };
}

/// The engine's identifier of a stream, which events carry back. It is unique among all streams of a proxy,
/// including closed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamToken {
    pub role: StreamRole,
    /// Slot of the stream's session, or of the shared connection.
    pub slot: u32,
    /// Serial number that distinguishes the session, or shared connection, from earlier ones in its slot.
    pub serial: u32,
}

/// Role of a stream in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamRole {
    /// The connection to the client of a session.
    Client,
    /// A session's own connection to the server.
    Server,
    /// A connection to the server that sessions share.
    Shared,
}

/// An event. Events are level-triggered: an unhandled one is reported again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemEvent {
    /// Clients wait to be accepted at the front with this index.
    Incoming(usize),
    /// Other threads have sent commands to the proxy.
    Orders,
    /// A stream is ready for a registered event, or has hung up.
    Stream {
        /// Identifier with which the stream was registered.
        token: StreamToken,
        /// Bytes or the end of the stream can be read.
        readable: bool,
        /// Bytes can be written, or connecting has completed.
        writable: bool,
        /// The connection has failed, or both directions are closed.
        hung_up: bool,
    },
}

/// A non-blocking connection. Dropping it closes it.
pub trait ProxyStream: std::fmt::Debug {
    /// Reads bytes; returns 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if no bytes have arrived, or the failure of the connection.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes bytes from several pieces, and returns their number.
    ///
    /// # Errors
    /// `WouldBlock` if nothing can be written now, or the failure of the connection.
    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Shuts down the direction to the peer, which reads the end of the stream.
    ///
    /// # Errors
    /// If the connection no longer exists.
    fn shutdown_write(&mut self) -> io::Result<()>;

    /// Completes connecting; called when the stream is writable.
    ///
    /// # Errors
    /// The reason why the connection failed.
    fn finish_connecting(&mut self) -> io::Result<()>;
}

/// The machine as the engine sees it.
pub trait System {
    /// Type of connections.
    type Stream: ProxyStream;

    /// Returns the time since some instant before the proxy began, nanoseconds. It never decreases.
    fn now(&self) -> u64;

    /// Accepts a client that waits at the front with this index.
    ///
    /// # Errors
    /// `WouldBlock` if no client waits, `ConnectionAborted` if the client is gone. After other errors, such as
    /// the limit of open files, it stays in the backlog.
    fn accept(&mut self, front: usize) -> io::Result<(Self::Stream, SocketAddr)>;

    /// Renews the reserve of descriptors that accepting and connecting use when there are no others. Returns
    /// false if there are too few.
    fn restore_reserve(&mut self) -> bool;

    /// Returns the number of clients for which the process may open descriptors.
    fn clients_max(&self) -> u64;

    /// Ends or begins reports of waiting clients, which stay in the backlog.
    fn report_clients(&mut self, are_reported: bool);

    /// Returns true if the server behind a front does not learn which client a connection is for, so that
    /// clients may share connections.
    fn may_share(&self, front: usize) -> bool;

    /// Begins connecting to the server behind a front, on behalf of the client at this address, or of several
    /// clients. The stream becomes writable when connecting has succeeded or failed.
    ///
    /// # Errors
    /// If connecting cannot begin.
    fn connect(&mut self, front: usize, client: Option<SocketAddr>) -> io::Result<Self::Stream>;

    /// Registers a stream, or changes its interest.
    ///
    /// # Errors
    /// If the kernel cannot register the stream; its session is then closed.
    fn watch(
        &mut self,
        stream: &mut Self::Stream,
        token: StreamToken,
        interest: StreamInterest,
    ) -> io::Result<()>;

    /// Deregisters a stream, hang-ups included, until it is registered again.
    fn unwatch(&mut self, stream: &mut Self::Stream);

    /// Waits for events or the instant `until`, and appends events to `events`. It may return early and
    /// without events. `outstanding` requests are at the server: while they are few, the system may poll
    /// instead of sleeping.
    ///
    /// # Errors
    /// If the kernel cannot deliver events at all.
    fn wait(&mut self, until: Option<u64>, outstanding: u32, events: &mut Vec<SystemEvent>)
    -> io::Result<()>;

    /// Stops accepting clients.
    fn stop_listening(&mut self);
}
