//! Commands and their replies.

use super::protocol::{
    CMD_CACHE, CMD_DISC, CMD_FLAG_PAYLOAD_LEN, CMD_READ, CMD_WRITE, CMD_WRITE_ZEROES, EXTENDED_REPLY_MAGIC,
    EXTENDED_REQUEST_MAGIC, REPLY_FLAG_DONE, REPLY_TYPE_ERROR_BIT, REPLY_TYPE_OFFSET_DATA, REQUEST_MAGIC,
    SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC,
};
use super::{Connection, Framing};
use crate::read::{Stop, at_most, exactly, first, u16_at, u32_at, u64_at};
use crate::{Answer, Class, Extent, Malformed, Position, Reply, Request, Step};
use units::Bytes;

/// A command that waits for its reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Bytes that a simple reply carries unless it is an error; `None` unless the command reads.
    reads: Option<u64>,
}

struct Command {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    len: u64,
    head: usize,
}

impl Connection {
    pub(super) fn command(&mut self, buffer: &[u8]) -> Result<Step<Request>, Stop> {
        let command = Command::read(buffer, self.framing)?;
        let payload = command.payload(self.framing)?;
        at_most("NBD payload in bytes", self.limits.message.0, payload)?;
        let reads = (command.kind == CMD_READ).then_some(command.len);
        at_most("NBD READ in bytes", self.limits.message.0, reads.unwrap_or(0))?;
        let answer = if command.kind == CMD_DISC { Answer::Never } else { Answer::Always };
        if answer == Answer::Always {
            self.remember(command.cookie, Asked { reads })?;
        }
        let extent = Extent { head: command.head, len: Bytes(command.head as u64 + payload), last: true };
        Ok(Step::Message { message: command.request(answer), extent })
    }

    fn remember(&mut self, cookie: u64, asked: Asked) -> Result<(), Malformed> {
        let most = self.limits.outstanding as u64;
        at_most("outstanding NBD commands", most, self.asked.len() as u64 + 1)?;
        match self.asked.insert(cookie, asked) {
            None => Ok(()),
            Some(_) => {
                let (field, expected) = ("NBD cookie", "one that is not outstanding");
                Err(Malformed::Value { field, expected, found: cookie })
            }
        }
    }

    pub(super) fn chunk(&mut self, buffer: &[u8]) -> Result<Step<Reply>, Stop> {
        let magic = u32::from_be_bytes(*first::<4>(buffer)?);
        match (magic, self.framing) {
            (SIMPLE_REPLY_MAGIC, Framing::Simple | Framing::Structured) => self.simple(first::<16>(buffer)?),
            (STRUCTURED_REPLY_MAGIC, Framing::Structured) => {
                let head = first::<20>(buffer)?;
                self.structured(buffer, head, u32_at(head, 16).into())
            }
            (EXTENDED_REPLY_MAGIC, Framing::Extended) => {
                let head = first::<32>(buffer)?;
                self.structured(buffer, head, u64_at(head, 24))
            }
            _ => {
                let expected = match self.framing {
                    Framing::Simple => "0x67446698 (simple)",
                    Framing::Structured => "0x67446698 (simple) or 0x668e33ef (structured)",
                    Framing::Extended => "0x6e8a278c (extended)",
                };
                Err(Malformed::Value { field: "NBD reply magic", expected, found: magic.into() }.into())
            }
        }
    }

    fn asked(&self, cookie: u64) -> Result<Asked, Malformed> {
        let unasked = Malformed::Unasked { field: "reply to NBD cookie", id: cookie };
        self.asked.get(&cookie).copied().ok_or(unasked)
    }

    fn simple(&mut self, head: &[u8; 16]) -> Result<Step<Reply>, Stop> {
        let (error, id) = (u32_at(head, 4), u64_at(head, 8));
        let payload = match self.asked(id)?.reads {
            Some(bytes) if error == 0 => bytes,
            _ => 0,
        };
        if payload > 0 && self.framing == Framing::Structured {
            let (field, expected) = ("NBD reply magic", "0x668e33ef (structured) for data");
            return Err(Malformed::Value { field, expected, found: SIMPLE_REPLY_MAGIC.into() }.into());
        }
        self.asked.remove(&id);
        let extent = Extent { head: 16, len: Bytes(16 + payload), last: true };
        Ok(Step::Message { message: Reply { id, error: error != 0, asked: true }, extent })
    }

    /// `head` is that of a structured or extended chunk: both begin with magic, flags, type and cookie.
    fn structured(&mut self, buffer: &[u8], head: &[u8], len: u64) -> Result<Step<Reply>, Stop> {
        let (flags, kind, id) = (u16_at(head, 4), u16_at(head, 6), u64_at(head, 8));
        self.asked(id)?;
        // Data stands behind its offset.
        at_most("NBD chunk in bytes", self.limits.message.0 + 8, len)?;
        let mut looked_at = head.len();
        if kind == REPLY_TYPE_OFFSET_DATA {
            if len < 8 {
                let field = "offset of an NBD data chunk";
                return Err(Malformed::Short { field, needed: 8, left: len }.into());
            }
            looked_at += 8;
            if buffer.len() < looked_at {
                return Err(Stop::More(looked_at));
            }
        }
        let last = flags & REPLY_FLAG_DONE != 0;
        if last {
            self.asked.remove(&id);
        }
        let extent = Extent { head: looked_at, len: Bytes(head.len() as u64 + len), last };
        Ok(Step::Message {
            message: Reply { id, error: kind & REPLY_TYPE_ERROR_BIT != 0, asked: true },
            extent,
        })
    }
}

impl Command {
    fn read(buffer: &[u8], framing: Framing) -> Result<Self, Stop> {
        let magic = u32::from_be_bytes(*first::<4>(buffer)?);
        let (head, len): (&[u8], _) = if framing == Framing::Extended {
            exactly(
                "NBD request magic",
                "0x21e41c71 (extended)",
                EXTENDED_REQUEST_MAGIC.into(),
                magic.into(),
            )?;
            let head = first::<32>(buffer)?;
            (head, u64_at(head, 24))
        } else {
            exactly("NBD request magic", "0x25609513", REQUEST_MAGIC.into(), magic.into())?;
            let head = first::<28>(buffer)?;
            (head, u32_at(head, 24).into())
        };
        Ok(Self {
            flags: u16_at(head, 4),
            kind: u16_at(head, 6),
            cookie: u64_at(head, 8),
            offset: u64_at(head, 16),
            len,
            head: head.len(),
        })
    }

    /// Bytes behind the head.
    fn payload(&self, framing: Framing) -> Result<u64, Malformed> {
        let announced = framing == Framing::Extended && self.flags & CMD_FLAG_PAYLOAD_LEN != 0;
        match self.kind {
            CMD_WRITE if framing == Framing::Extended && !announced => {
                let (field, expected) = ("flags of an extended NBD WRITE", "the payload flag");
                Err(Malformed::Value { field, expected, found: self.flags.into() })
            }
            CMD_WRITE => Ok(self.len),
            _ => Ok(if announced { self.len } else { 0 }),
        }
    }

    fn request(&self, answer: Answer) -> Request {
        let class = match self.kind {
            CMD_READ | CMD_CACHE => Class::Read(Bytes(self.len)),
            CMD_WRITE | CMD_WRITE_ZEROES => Class::Write(Bytes(self.len)),
            _ => Class::Control,
        };
        let position = (class != Class::Control).then_some(Position { object: 0, offset: self.offset });
        Request { id: self.cookie, class, position, answer, repeated: false }
    }
}
