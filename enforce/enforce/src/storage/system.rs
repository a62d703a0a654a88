//! The seam between the proxy and the machine that it runs on: connections, events about them, and the clock.
//!
//! The engine and its sessions are a state machine over a [`System`]; they open no file and look at no clock. The proxy
//! runs over [`LinuxSystem`](super::linux::LinuxSystem); tests run the same engine over simulated systems, whose every
//! call may fail.

use std::io::{self, IoSlice};
use std::net::SocketAddr;

/// What the engine wants to hear about a stream. A hang-up is always reported while a stream is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamInterest {
    /// Whether there is something to read, the end of the stream included.
    pub readable: bool,
    /// Whether bytes can be written, or a connection that was begun is made.
    pub writable: bool,
}

impl StreamInterest {
    /// No interest but in hang-ups.
    pub const NONE: Self = Self { readable: false, writable: false };
}

/// The name that the engine gives a stream, which events carry back. It is unique among the streams of a proxy, the
/// closed ones included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamToken {
    /// The slot of the stream's session.
    pub slot: u32,
    /// The number that tells the session from earlier ones in the slot.
    pub serial: u32,
    /// Whether it is the connection to the server.
    pub is_server_side: bool,
}

/// Something that has happened. Events are level-triggered: what is not handled is reported again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemEvent {
    /// Clients wait to be accepted at the front with this number.
    Incoming(usize),
    /// Other threads have given orders to the proxy.
    Orders,
    /// A stream is ready for something that is wanted of it, or has hung up.
    Stream {
        /// The name that the stream is watched by.
        token: StreamToken,
        /// Whether there is something to read, the end of the stream included.
        readable: bool,
        /// Whether bytes can be written, or a connection that was begun is made.
        writable: bool,
        /// Whether the connection has failed, or both directions are closed.
        hung_up: bool,
    },
}

/// A connection whose calls do not wait. Dropping it closes it.
pub trait ProxyStream: std::fmt::Debug {
    /// Reads bytes; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` when nothing has come, and what ends the connection.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes bytes from several pieces, and returns how many.
    ///
    /// # Errors
    /// `WouldBlock` when nothing can be written now, and what ends the connection.
    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Ends the direction to the other side, which reads the end of the stream.
    ///
    /// # Errors
    /// When the connection is not there any more.
    fn shutdown_write(&mut self) -> io::Result<()>;

    /// Whether a connection that was begun is made; called when it is writable.
    ///
    /// # Errors
    /// Why the connection could not be made.
    fn finish_connecting(&mut self) -> io::Result<()>;
}

/// The machine, as the engine needs it.
pub trait System {
    /// The connections of this machine.
    type Stream: ProxyStream;

    /// The time in nanoseconds since some instant before the proxy began. It never decreases.
    fn now(&self) -> u64;

    /// Accepts a client that waits at the front with this number.
    ///
    /// # Errors
    /// `WouldBlock` when none waits. After another error, as when no more files may be opened, the client is gone or
    /// stays in line; then [`Self::reject`] is tried.
    fn accept(&mut self, front: usize) -> io::Result<(Self::Stream, SocketAddr)>;

    /// Closes a client that waits at a front and cannot be accepted; whether there was one.
    fn reject(&mut self, front: usize) -> bool;

    /// Begins a connection to the server behind a front, on behalf of the client at this address. The stream becomes
    /// writable when the connection is made or has failed.
    ///
    /// # Errors
    /// When it cannot even be begun.
    fn connect(&mut self, front: usize, client: SocketAddr) -> io::Result<Self::Stream>;

    /// Begins to watch a stream, or changes what is wanted of it.
    ///
    /// # Errors
    /// When the kernel cannot watch the stream; its session is closed then.
    fn watch(
        &mut self,
        stream: &mut Self::Stream,
        token: StreamToken,
        interest: StreamInterest,
    ) -> io::Result<()>;

    /// Stops watching a stream, hang-ups included, until it is watched again.
    fn unwatch(&mut self, stream: &mut Self::Stream);

    /// Waits until something happens or the instant `until` has come, and adds what has happened to `events`. It may
    /// return early and without events. `outstanding` requests are at the server: while they are few, the system may
    /// look for events instead of sleeping.
    ///
    /// # Errors
    /// When the kernel does not deliver events at all.
    fn wait(&mut self, until: Option<u64>, outstanding: u32, events: &mut Vec<SystemEvent>)
    -> io::Result<()>;

    /// Takes no more clients.
    fn stop_listening(&mut self);
}
