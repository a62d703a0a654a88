//! The engine's end of a connection whose socket belongs to a loop.

use super::super::system::{StreamInterest, StreamToken};
use std::collections::VecDeque;
use std::io::{self, IoSlice};

/// Maximum number of bytes of a connection on their way between loop and engine, in each direction.
pub(super) const WINDOW: usize = 128 << 10;
/// Bytes after which the sender learns that they have been taken.
pub(super) const TAKEN_STEP: usize = WINDOW / 4;

/// Identifies a connection to its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionId {
    /// Slot among the connections of the loop.
    pub slot: u32,
    /// Serial number that distinguishes the connection from earlier ones in its slot.
    pub serial: u32,
}

/// Message from the engine to the loop of a connection.
#[derive(Debug)]
pub enum ByteOrder<C> {
    /// The loop gets the connection, which may still be connecting.
    Adopt { stream: C, is_connecting: bool },
    /// Bytes to write.
    Write(Vec<u8>),
    /// The engine has taken this many bytes that were read.
    Taken(usize),
    /// Shut down the direction to the peer once all bytes are written.
    EndOutput,
    /// Close the connection once all bytes are written.
    Close,
}

/// Message from a loop to the engine about a connection.
#[derive(Debug)]
pub enum ByteReport {
    /// Connecting has succeeded or failed.
    Connected(io::Result<()>),
    /// Bytes that were read.
    Read(Vec<u8>),
    /// The peer has ended its direction.
    EndOfStream,
    /// This many bytes were written.
    Written(usize),
    /// Both directions are closed, or the connection has failed.
    HungUp,
    /// Reading or writing has failed.
    Failed(io::Error),
    /// The connection is closed; its slot is free.
    Closed,
}

/// End of reading from a connection.
#[derive(Debug)]
enum InputEnd {
    Open,
    EndOfStream,
    Failed(io::Error),
}

/// The engine's end of a connection: bytes that have arrived, and orders for the loop.
#[derive(Debug)]
pub(super) struct EngineEnd<C> {
    pub(super) id: ConnectionId,
    /// The loop of the connection.
    pub(super) loop_index: usize,
    orders: Vec<ByteOrder<C>>,
    /// Arrived bytes, in pieces as the loop has read them.
    arrived: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that were taken.
    first_taken: usize,
    /// Taken bytes that the loop does not know of.
    taken: usize,
    input: InputEnd,
    is_hung_up: bool,
    /// Result of connecting, once the loop has reported it.
    connected: Option<io::Result<()>>,
    /// Bytes ordered to be written that the loop has not reported written.
    unwritten: usize,
    /// Events that the engine waits for, with its token of the connection.
    pub(super) watched: Option<(StreamToken, StreamInterest)>,
    /// The connection is in the list of those with orders.
    pub(super) has_orders: bool,
    /// The connection is in the list of those that may be ready.
    pub(super) may_be_ready: bool,
    pub(super) is_closed: bool,
}

impl<C> EngineEnd<C> {
    /// Creates the end of a connection, with the order for its loop to adopt it.
    pub(super) fn new(id: ConnectionId, loop_index: usize, stream: C, is_connecting: bool) -> Self {
        Self {
            id,
            loop_index,
            orders: vec![ByteOrder::Adopt { stream, is_connecting }],
            arrived: VecDeque::new(),
            first_taken: 0,
            taken: 0,
            input: InputEnd::Open,
            is_hung_up: false,
            connected: (!is_connecting).then_some(Ok(())),
            unwritten: 0,
            watched: None,
            has_orders: false,
            may_be_ready: false,
            is_closed: false,
        }
    }

    /// Takes the orders for the loop.
    pub(super) fn take_orders(&mut self) -> Vec<ByteOrder<C>> {
        std::mem::take(&mut self.orders)
    }

    /// Takes a report of the loop.
    pub(super) fn on_report(&mut self, report: ByteReport) {
        match report {
            ByteReport::Connected(outcome) => self.connected = Some(outcome),
            ByteReport::Read(bytes) => self.arrived.push_back(bytes),
            ByteReport::EndOfStream => self.input = InputEnd::EndOfStream,
            ByteReport::Written(count) => self.unwritten -= count,
            ByteReport::HungUp => self.is_hung_up = true,
            ByteReport::Failed(error) => {
                self.input = InputEnd::Failed(error);
                self.is_hung_up = true;
            }
            ByteReport::Closed => {}
        }
    }

    /// Returns what is ready of what the engine waits for: readable, writable, hung up. `None` if nothing is.
    pub(super) fn readiness(&self) -> Option<(StreamToken, [bool; 3])> {
        let (token, interest) = self.watched?;
        let has_input = !self.arrived.is_empty() || !matches!(self.input, InputEnd::Open);
        let has_room = self.connected.is_some() && self.unwritten < WINDOW;
        let ready = [
            interest.readable && has_input,
            interest.writable && has_room,
            self.is_hung_up || self.has_not_connected(),
        ];
        ready.contains(&true).then_some((token, ready))
    }

    fn has_not_connected(&self) -> bool {
        matches!(self.connected, Some(Err(_)))
    }

    /// Reads arrived bytes; like the `read` of a socket.
    ///
    /// # Errors
    /// `WouldBlock` if no bytes have arrived, or the failure of the connection.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(first) = self.arrived.front() else {
            return match &self.input {
                InputEnd::Open => Err(io::ErrorKind::WouldBlock.into()),
                InputEnd::EndOfStream => Ok(0),
                InputEnd::Failed(error) => Err(copy_of(error)),
            };
        };
        let mut count = 0;
        let mut piece = &first[self.first_taken..];
        loop {
            let part = piece.len().min(buffer.len() - count);
            buffer[count..count + part].copy_from_slice(&piece[..part]);
            count += part;
            if part < piece.len() {
                self.first_taken += part;
                break;
            }
            self.arrived.pop_front();
            self.first_taken = 0;
            match self.arrived.front() {
                Some(next) => piece = next,
                None => break,
            }
        }
        self.taken += count;
        if self.taken >= TAKEN_STEP {
            self.orders.push(ByteOrder::Taken(std::mem::take(&mut self.taken)));
        }
        Ok(count)
    }

    /// Orders bytes to be written, as many as fit into the window; like the `write_vectored` of a socket.
    ///
    /// # Errors
    /// `WouldBlock` if the window is full, or the failure of the connection.
    pub(super) fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if let InputEnd::Failed(error) = &self.input {
            return Err(copy_of(error));
        }
        let mut room = WINDOW - self.unwritten.min(WINDOW);
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if !matches!(self.orders.last(), Some(ByteOrder::Write(_))) {
            self.orders.push(ByteOrder::Write(Vec::new()));
        }
        let Some(ByteOrder::Write(bytes)) = self.orders.last_mut() else { unreachable!("it was pushed") };
        let mut count = 0;
        for piece in pieces {
            let part = &piece[..piece.len().min(room)];
            bytes.extend_from_slice(part);
            room -= part.len();
            count += part.len();
        }
        self.unwritten += count;
        Ok(count)
    }

    /// Orders the direction to the peer to be shut down after all bytes.
    ///
    /// # Errors
    /// If the connection has failed.
    pub(super) fn end_output(&mut self) -> io::Result<()> {
        if let InputEnd::Failed(error) = &self.input {
            return Err(copy_of(error));
        }
        self.orders.push(ByteOrder::EndOutput);
        Ok(())
    }

    /// Returns the outcome of connecting.
    ///
    /// # Errors
    /// The reason why the connection failed; `WouldBlock` while there is no outcome.
    pub(super) fn finish_connecting(&self) -> io::Result<()> {
        match &self.connected {
            None => Err(io::ErrorKind::WouldBlock.into()),
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(copy_of(error)),
        }
    }

    /// Orders the connection to be closed.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.watched = None;
        self.arrived.clear();
        self.orders.push(ByteOrder::Close);
    }

    /// Returns true if there are orders for the loop.
    pub(super) fn is_ordering(&self) -> bool {
        !self.orders.is_empty()
    }
}

/// Returns an error equal to one that is reported several times.
fn copy_of(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}
