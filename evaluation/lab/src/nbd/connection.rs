//! One client: input that was not processed yet, commands that the device works on, and output that the client did not
//! accept yet.

use super::command::{PAYLOAD_MAX, VolumeCommand, write_simple_reply};
use super::config::ExportedVolume;
use super::handshake::{NegotiationPhase, NegotiationStep, negotiate, write_greeting};
use super::sparse_volume::SparseVolume;
use model::Op;
use rustix::event::epoll::EventFlags;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use units::Bytes;
use wire::nbd::protocol::{CMD_DISC, CMD_FLUSH, CMD_READ, CMD_WRITE, REQUEST_HEADER_LEN};

/// Bytes buffered for a client: data to be written, data to be read, and replies that it does not accept. A client that
/// has more is not read from. The largest command always fits.
const BUFFERED_MAX: u64 = 2 * PAYLOAD_MAX as u64;
/// The largest number of commands of one client that the device works on.
const OUTSTANDING_MAX: usize = 4096;
/// The length of sent output from which on it is removed from the buffer, though unsent output follows it.
const SENT_MAX: usize = 256 << 10;

/// A command that the device works on, with the data to be written.
#[derive(Debug)]
struct PendingCommand {
    command: VolumeCommand,
    data: Vec<u8>,
}

/// A request for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceTask {
    /// The number by which the connection knows the command.
    pub(super) number: u64,
    pub(super) op: Op,
    /// Bytes that pass the device's link; none for commands without data.
    pub(super) size: Bytes,
}

/// Why a connection ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The client ended it in order.
    Finished,
    /// The client broke the protocol, or the network failed.
    Broken(String),
}

impl ConnectionEnd {
    fn broken(reason: impl Into<String>) -> Self {
        Self::Broken(reason.into())
    }
}

/// A client's connection with its buffers and its commands at the device.
#[derive(Debug)]
pub(super) struct ClientConnection {
    pub(super) stream: TcpStream,
    /// Events that epoll watches for.
    pub(super) interest: EventFlags,
    phase: NegotiationPhase,
    input: Vec<u8>,
    /// Bytes of `input` that were processed.
    used: usize,
    out: Vec<u8>,
    /// Bytes of `out` that were sent.
    sent: usize,
    pending: HashMap<u64, PendingCommand>,
    /// The number of the command that was submitted last.
    last_number: u64,
    /// Bytes of data of `pending`, in either direction.
    pending_bytes: u64,
    /// True if the client will send nothing more.
    client_closed: bool,
}

impl ClientConnection {
    /// A connection that has just been accepted; the greeting is in its output.
    pub(super) fn new(stream: TcpStream) -> Self {
        let mut out = Vec::new();
        write_greeting(&mut out);
        Self {
            stream,
            interest: EventFlags::empty(),
            phase: NegotiationPhase::ClientFlags,
            input: Vec::new(),
            used: 0,
            out,
            sent: 0,
            pending: HashMap::new(),
            last_number: 0,
            pending_bytes: 0,
            client_closed: false,
        }
    }

    fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    fn is_full(&self) -> bool {
        self.pending_bytes + self.unsent() as u64 > BUFFERED_MAX || self.pending.len() >= OUTSTANDING_MAX
    }

    /// Events on which the connection can continue.
    pub(super) fn wanted_events(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, !self.client_closed && !self.is_full());
        wanted.set(EventFlags::OUT, self.unsent() > 0);
        wanted
    }

    /// Returns true if the client sends nothing more and all its commands are answered.
    pub(super) fn is_finished(&self) -> bool {
        self.client_closed && self.pending.is_empty() && self.unsent() == 0
    }

    /// Reads once from the socket, at most as much as fits into `scratch`.
    pub(super) fn receive(&mut self, scratch: &mut [u8]) -> Result<(), ConnectionEnd> {
        match self.stream.read(scratch) {
            Ok(0) => self.client_closed = true,
            Ok(read) => self.input.extend_from_slice(&scratch[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(ConnectionEnd::broken(error.to_string())),
        }
        Ok(())
    }

    /// Processes input and sends output, as far as both are possible now. `submit` hands commands to the device.
    pub(super) fn advance(
        &mut self,
        exports: &[ExportedVolume],
        submit: &mut dyn FnMut(DeviceTask),
    ) -> Result<(), ConnectionEnd> {
        loop {
            self.process_input(exports, submit)?;
            let was_full = self.is_full();
            self.send()?;
            // Input that was left because the buffers were full would otherwise wait for an event that need not come.
            if !was_full || self.is_full() {
                return Ok(());
            }
        }
    }

    /// Processes the messages in the input until none is complete or the buffers are full: answers what can be answered
    /// at once, and submits the rest to the device.
    fn process_input(
        &mut self,
        exports: &[ExportedVolume],
        submit: &mut dyn FnMut(DeviceTask),
    ) -> Result<(), ConnectionEnd> {
        let mut progress = Ok(true);
        while progress == Ok(true) && !self.is_full() {
            progress = match self.phase {
                NegotiationPhase::Commands(export) => self.next_command(&exports[export], submit),
                _ => self.next_negotiation(exports),
            };
        }
        self.input.drain(..self.used);
        self.used = 0;
        progress?;
        if self.client_closed && !self.input.is_empty() && !self.is_full() {
            return Err(ConnectionEnd::broken("it hung up in the middle of a message"));
        }
        Ok(())
    }

    /// Processes the next message of the handshake. Returns false if it is incomplete.
    fn next_negotiation(&mut self, exports: &[ExportedVolume]) -> Result<bool, ConnectionEnd> {
        let input = &self.input[self.used..];
        match negotiate(self.phase, input, exports, &mut self.out).map_err(ConnectionEnd::Broken)? {
            NegotiationStep::NeedMore => Ok(false),
            NegotiationStep::Used(used, next) => {
                self.used += used;
                self.phase = next;
                Ok(true)
            }
            NegotiationStep::Abort => Err(ConnectionEnd::Finished),
        }
    }

    /// Processes the next command. Returns false if it is incomplete.
    fn next_command(
        &mut self,
        export: &ExportedVolume,
        submit: &mut dyn FnMut(DeviceTask),
    ) -> Result<bool, ConnectionEnd> {
        let input = &self.input[self.used..];
        let Some(command) = VolumeCommand::read(input).map_err(ConnectionEnd::Broken)? else {
            return Ok(false);
        };
        let data_len = if command.kind == CMD_WRITE { command.len } else { 0 };
        if data_len > PAYLOAD_MAX {
            return Err(ConnectionEnd::broken(format!(
                "a write of {data_len} bytes, the limit is {PAYLOAD_MAX}"
            )));
        }
        let end = REQUEST_HEADER_LEN + usize::try_from(data_len).expect("payloads fit in memory");
        let Some(data) = input.get(REQUEST_HEADER_LEN..end) else { return Ok(false) };
        self.used += end;
        if command.kind == CMD_DISC {
            // Earlier commands are still answered; later input is ignored.
            self.client_closed = true;
            self.used = self.input.len();
            return Ok(false);
        }
        match command.error_on_volume(export.size) {
            Some(error) => write_simple_reply(&mut self.out, error, command.cookie),
            // Writes that were answered are in memory, so a flush has nothing to wait for.
            None if command.kind == CMD_FLUSH => write_simple_reply(&mut self.out, 0, command.cookie),
            None => {
                let pending = PendingCommand { command, data: data.to_vec() };
                submit(self.add_pending(pending));
            }
        }
        Ok(true)
    }

    fn add_pending(&mut self, pending: PendingCommand) -> DeviceTask {
        let command = pending.command;
        let op = if command.kind == CMD_READ { Op::Read } else { Op::Write };
        self.last_number += 1;
        self.pending_bytes += u64::from(command.payload_len());
        self.pending.insert(self.last_number, pending);
        DeviceTask { number: self.last_number, op, size: Bytes(command.payload_len().into()) }
    }

    /// Executes a command that the device has completed, and appends its reply to the output.
    pub(super) fn complete(&mut self, number: u64, volumes: &mut [SparseVolume]) {
        let (Some(PendingCommand { command, data }), NegotiationPhase::Commands(export)) =
            (self.pending.remove(&number), self.phase)
        else {
            return;
        };
        self.pending_bytes -= u64::from(command.payload_len());
        write_simple_reply(&mut self.out, 0, command.cookie);
        let volume = &mut volumes[export];
        match command.kind {
            CMD_READ => volume.read(command.offset, command.len.into(), &mut self.out),
            CMD_WRITE => volume.write(command.offset, &data),
            _ => volume.zero(command.offset, command.len.into()),
        }
    }

    /// Sends as much output as the socket accepts.
    pub(super) fn send(&mut self) -> Result<(), ConnectionEnd> {
        while self.unsent() > 0 {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ConnectionEnd::broken(error.to_string())),
            }
        }
        if self.unsent() == 0 || self.sent > SENT_MAX {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}
