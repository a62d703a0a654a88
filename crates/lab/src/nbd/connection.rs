//! One client: what it sent that was not looked at, what it asked for that is not done, and what it did not take yet.

use super::store::Store;
use super::talk::{self, Command, Export, PAYLOAD_MAX, Phase, Step};
use model::Op;
use rustix::event::epoll::EventFlags;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use units::Bytes;
use wire::nbd::protocol::{
    CMD_DISC, CMD_FLUSH, CMD_READ, CMD_TRIM, CMD_WRITE, CMD_WRITE_ZEROES, EINVAL, ENOSPC, REQUEST_HEADER_LEN,
};

/// Bytes held for a client: data to be written, data to be read, replies that it does not take. Beyond, it is not
/// listened to. The largest command always fits.
const HELD_MAX: u64 = 2 * PAYLOAD_MAX as u64;
/// Commands of a client that are not done.
const OUTSTANDING_MAX: usize = 4096;
/// What has been sent is forgotten when it is as long as this.
const SENT_MAX: usize = 256 << 10;

/// A command that the device works on.
#[derive(Debug)]
struct Pending {
    command: Command,
    data: Vec<u8>,
}

/// Work for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Task {
    /// Under which the connection knows it.
    pub(super) number: u64,
    pub(super) op: Op,
    /// What counts: nothing for commands that carry no data over the device's link.
    pub(super) size: Bytes,
}

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// As it should be.
    Done,
    /// The client's fault or the network's.
    Broken(String),
}

impl End {
    fn broken(reason: impl Into<String>) -> Self {
        Self::Broken(reason.into())
    }
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// What epoll watches for.
    pub(super) interest: EventFlags,
    phase: Phase,
    input: Vec<u8>,
    /// Of `input`, how much was used.
    used: usize,
    out: Vec<u8>,
    /// Of `out`, how much was sent.
    sent: usize,
    pending: HashMap<u64, Pending>,
    next: u64,
    /// Bytes of data in `pending`, whichever way they go.
    held: u64,
    /// Nothing more will come.
    ended: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        let mut out = Vec::new();
        talk::greet(&mut out);
        Self {
            stream,
            interest: EventFlags::empty(),
            phase: Phase::Flags,
            input: Vec::new(),
            used: 0,
            out,
            sent: 0,
            pending: HashMap::new(),
            next: 0,
            held: 0,
            ended: false,
        }
    }

    fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    fn is_full(&self) -> bool {
        self.held + self.unsent() as u64 > HELD_MAX || self.pending.len() >= OUTSTANDING_MAX
    }

    /// What to wait for.
    pub(super) fn wanted(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, !self.ended && !self.is_full());
        wanted.set(EventFlags::OUT, self.unsent() > 0);
        wanted
    }

    /// Whether all was said and done.
    pub(super) fn is_over(&self) -> bool {
        self.ended && self.pending.is_empty() && self.unsent() == 0
    }

    /// Takes once what has come, at most the length of `scratch`.
    pub(super) fn receive(&mut self, scratch: &mut [u8]) -> Result<(), End> {
        match self.stream.read(scratch) {
            Ok(0) => self.ended = true,
            Ok(read) => self.input.extend_from_slice(&scratch[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(End::broken(error.to_string())),
        }
        Ok(())
    }

    /// Understands what has come and sends what there is to say, as far as both go.
    pub(super) fn go_on(&mut self, exports: &[Export], give: &mut dyn FnMut(Task)) -> Result<(), End> {
        loop {
            self.understand(exports, give)?;
            let was_full = self.is_full();
            self.send()?;
            // What was not looked at for lack of room would otherwise wait for an event that need not come.
            if !was_full || self.is_full() {
                return Ok(());
            }
        }
    }

    /// Understands what has come, until it is all or enough: answers what can be answered at once, and gives the
    /// device the rest.
    fn understand(&mut self, exports: &[Export], give: &mut dyn FnMut(Task)) -> Result<(), End> {
        let understood = loop {
            if self.is_full() {
                break Ok(());
            }
            let step = match self.phase {
                Phase::Commands(export) => self.command(&exports[export], give),
                _ => self.handshake(exports),
            };
            match step {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(end) => break Err(end),
            }
        };
        self.input.drain(..self.used);
        self.used = 0;
        if self.ended && !self.input.is_empty() && !self.is_full() {
            return understood.and(Err(End::broken("it hung up in the middle of a message")));
        }
        understood
    }

    fn handshake(&mut self, exports: &[Export]) -> Result<bool, End> {
        let input = &self.input[self.used..];
        match talk::handshake(self.phase, input, exports, &mut self.out).map_err(End::Broken)? {
            Step::More => Ok(false),
            Step::Used(used, next) => {
                self.used += used;
                self.phase = next;
                Ok(true)
            }
            Step::Bye => Err(End::Done),
        }
    }

    /// The next command, if all of it is there.
    fn command(&mut self, export: &Export, give: &mut dyn FnMut(Task)) -> Result<bool, End> {
        let input = &self.input[self.used..];
        let Some(command) = talk::command(input).map_err(End::Broken)? else { return Ok(false) };
        let carries = if command.kind == CMD_WRITE { command.len } else { 0 };
        if carries > PAYLOAD_MAX {
            return Err(End::broken(format!("a write of {carries} bytes, the limit is {PAYLOAD_MAX}")));
        }
        let end = REQUEST_HEADER_LEN + usize::try_from(carries).expect("payloads fit in memory");
        let Some(data) = input.get(REQUEST_HEADER_LEN..end) else { return Ok(false) };
        self.used += end;
        if command.kind == CMD_DISC {
            // What was asked before is still answered.
            self.ended = true;
            self.used = self.input.len();
            return Ok(false);
        }
        match refusal(&command, export.size) {
            Some(error) => talk::simple(&mut self.out, error, command.cookie),
            // What was answered is in memory: there is nothing to wait for.
            None if command.kind == CMD_FLUSH => talk::simple(&mut self.out, 0, command.cookie),
            None => {
                let pending = Pending { command, data: data.to_vec() };
                give(self.take(pending));
            }
        }
        Ok(true)
    }

    fn take(&mut self, pending: Pending) -> Task {
        let command = pending.command;
        let op = if command.kind == CMD_READ { Op::Read } else { Op::Write };
        self.next += 1;
        self.held += u64::from(moves(&command));
        self.pending.insert(self.next, pending);
        Task { number: self.next, op, size: Bytes(moves(&command).into()) }
    }

    /// The device is done with a task.
    pub(super) fn finish(&mut self, number: u64, stores: &mut [Store]) {
        let (Some(Pending { command, data }), Phase::Commands(export)) =
            (self.pending.remove(&number), self.phase)
        else {
            return;
        };
        self.held -= u64::from(moves(&command));
        talk::simple(&mut self.out, 0, command.cookie);
        let store = &mut stores[export];
        match command.kind {
            CMD_READ => store.read(command.offset, command.len.into(), &mut self.out),
            CMD_WRITE => store.write(command.offset, &data),
            _ => store.zero(command.offset, command.len.into()),
        }
    }

    /// Sends what the client takes.
    pub(super) fn send(&mut self) -> Result<(), End> {
        while self.unsent() > 0 {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(End::broken(error.to_string())),
            }
        }
        if self.unsent() == 0 || self.sent > SENT_MAX {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}

/// Bytes that a command moves to or from the device.
fn moves(command: &Command) -> u32 {
    if matches!(command.kind, CMD_READ | CMD_WRITE) { command.len } else { 0 }
}

/// The error with which a command is answered at once.
fn refusal(command: &Command, size: u64) -> Option<u32> {
    let inside = command.offset.checked_add(command.len.into()).is_some_and(|end| end <= size);
    match command.kind {
        CMD_READ if !inside || command.len > PAYLOAD_MAX => Some(EINVAL),
        CMD_WRITE | CMD_WRITE_ZEROES if !inside => Some(ENOSPC),
        CMD_TRIM if !inside => Some(EINVAL),
        CMD_READ | CMD_WRITE | CMD_WRITE_ZEROES | CMD_TRIM | CMD_FLUSH => None,
        _ => Some(EINVAL),
    }
}
