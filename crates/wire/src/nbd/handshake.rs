//! The handshake as it goes by: greeting and flags, then options and their replies in order, until an export is
//! granted.

use super::Framing;
use super::protocol::{
    EXPORT_NAME_ZEROES, FLAG_NO_ZEROES, GREETING_MAGIC, OLDSTYLE_MAGIC, OPT_EXPORT_NAME,
    OPT_EXTENDED_HEADERS, OPT_GO, OPT_INFO, OPT_STARTTLS, OPT_STRUCTURED_REPLY, OPTION_MAGIC,
    OPTION_REPLY_MAGIC, REP_ACK, REP_FLAG_ERROR, STRING_LEN_MAX,
};
use crate::read::{Stop, at_most, exactly, first, index, u16_at, u32_at, u64_at};
use crate::{Answer, Class, Extent, Limits, Malformed, Reply, Request, Step};
use std::collections::VecDeque;
use units::Bytes;

/// Data of an option or of a reply to one.
const OPTION_MAX: u32 = 64 << 10;
/// Options that a client may send ahead of their replies; ordinary ones wait for each.
const OPTIONS_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// Greeting of the server, flags of the client.
    #[default]
    Hello,
    Options,
    Done,
}

/// An option that the server has not answered.
#[derive(Debug)]
struct Asked {
    option: u32,
    /// The export that it names, if it names one.
    name: Vec<u8>,
}

/// Both sides of a handshake.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    client: Phase,
    server: Phase,
    /// [`FLAG_NO_ZEROES`] as far as both want it.
    client_flags: u32,
    server_flags: u16,
    asked: VecDeque<Asked>,
    answered: u64,
    name: Option<Vec<u8>>,
}

/// What is said in a handshake is complete at its end, and all of it is control.
fn whole<T>(message: T, head: usize, len: u64) -> Step<T> {
    Step::Message { message, extent: Extent { head, len: Bytes(len), last: true } }
}

fn control(id: u64, answer: Answer) -> Request {
    Request { id, class: Class::Control, position: None, answer, repeated: false }
}

impl Handshake {
    pub(super) fn finish(&mut self) {
        (self.client, self.server) = (Phase::Done, Phase::Done);
        self.asked.clear();
    }

    pub(super) fn client_is_done(&self) -> bool {
        self.client == Phase::Done
    }

    pub(super) fn server_is_done(&self) -> bool {
        self.server == Phase::Done
    }

    pub(super) fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    pub(super) fn options(&self) -> usize {
        self.asked.len()
    }

    pub(super) fn request(&mut self, buffer: &[u8], limits: &Limits) -> Result<Step<Request>, Stop> {
        if self.client == Phase::Options {
            return self.option(buffer, limits);
        }
        self.client_flags = u32::from_be_bytes(*first::<4>(buffer)?);
        let expected = "flags 0 to 3 of the client";
        if self.client_flags > 3 {
            let (field, found) = ("NBD client flags", self.client_flags.into());
            return Err(Malformed::Value { field, expected, found }.into());
        }
        self.client = Phase::Options;
        Ok(whole(control(0, Answer::Never), 4, 4))
    }

    fn option(&mut self, buffer: &[u8], limits: &Limits) -> Result<Step<Request>, Stop> {
        let head = first::<16>(buffer)?;
        exactly("NBD option magic", "IHAVEOPT", OPTION_MAGIC, u64_at(head, 0))?;
        let (option, len) = (u32_at(head, 8), u32_at(head, 12));
        at_most("NBD option in bytes", OPTION_MAX.into(), len.into())?;
        at_most("NBD options ahead of their replies", OPTIONS_MAX as u64, self.asked.len() as u64 + 1)?;
        let (name, head) = match option {
            OPT_EXPORT_NAME => name(buffer, 16, len, limits)?,
            OPT_GO | OPT_INFO => {
                let (field, needed, left) = ("NBD option GO or INFO", 4, u64::from(len));
                if len < 4 {
                    return Err(Malformed::Short { field, needed, left }.into());
                }
                let name_len = u32_at(first::<20>(buffer)?, 16);
                at_most("NBD export name in bytes", u64::from(len) - 4, name_len.into())?;
                name(buffer, 20, name_len, limits)?
            }
            _ => (Vec::new(), 16),
        };
        let id = self.answered + self.asked.len() as u64;
        self.asked.push_back(Asked { option, name });
        if option == OPT_EXPORT_NAME {
            // No reply can refuse it: what follows is a request.
            self.client = Phase::Done;
        }
        Ok(whole(control(id, Answer::Always), head, 16 + u64::from(len)))
    }

    pub(super) fn reply(&mut self, buffer: &[u8], framing: &mut Framing) -> Result<Step<Reply>, Stop> {
        if self.server == Phase::Hello {
            return self.greeting(buffer);
        }
        let id = self.answered;
        let Some(asked) = self.asked.front() else {
            return Err(Malformed::Unasked { field: "reply to NBD option", id }.into());
        };
        if asked.option == OPT_EXPORT_NAME {
            return self.export(buffer);
        }
        let head = first::<20>(buffer)?;
        exactly("NBD option reply magic", "0x3e889045565a9", OPTION_REPLY_MAGIC, u64_at(head, 0))?;
        exactly(
            "NBD option reply",
            "the first option not answered",
            asked.option.into(),
            u32_at(head, 8).into(),
        )?;
        let (kind, len) = (u32_at(head, 12), u32_at(head, 16));
        at_most("NBD option reply in bytes", OPTION_MAX.into(), len.into())?;
        let error = kind & REP_FLAG_ERROR != 0;
        let last = error || kind == REP_ACK;
        if last {
            self.answer(kind == REP_ACK, framing)?;
        }
        let extent = Extent { head: 20, len: Bytes(20 + u64::from(len)), last };
        Ok(Step::Message { message: Reply { id, error, asked: true }, extent })
    }

    fn greeting(&mut self, buffer: &[u8]) -> Result<Step<Reply>, Stop> {
        let head = first::<16>(buffer)?;
        exactly("NBD greeting", "NBDMAGIC", GREETING_MAGIC, u64_at(head, 0))?;
        if u64_at(head, 8) == OLDSTYLE_MAGIC {
            let (what, remedy) = ("the oldstyle NBD handshake", "configure the server for newstyle");
            return Err(Malformed::Refused { what, remedy }.into());
        }
        exactly("NBD greeting style", "IHAVEOPT", OPTION_MAGIC, u64_at(head, 8))?;
        self.server_flags = u16_at(first::<18>(buffer)?, 16);
        self.server = Phase::Options;
        Ok(whole(Reply { id: 0, error: false, asked: false }, 18, 18))
    }

    /// The answer to EXPORT_NAME: size and flags, and zeroes unless both sides can do without.
    fn export(&mut self, buffer: &[u8]) -> Result<Step<Reply>, Stop> {
        first::<10>(buffer)?;
        let short =
            self.server_flags & FLAG_NO_ZEROES != 0 && self.client_flags & u32::from(FLAG_NO_ZEROES) != 0;
        let id = self.answered;
        self.grant();
        let len = if short { 10 } else { 10 + EXPORT_NAME_ZEROES as u64 };
        Ok(whole(Reply { id, error: false, asked: true }, 10, len))
    }

    /// The first option is answered for good.
    fn answer(&mut self, granted: bool, framing: &mut Framing) -> Result<(), Malformed> {
        match self.asked.front().map(|asked| asked.option) {
            Some(OPT_GO) if granted => {
                self.grant();
                return Ok(());
            }
            Some(OPT_STARTTLS) if granted => {
                let (what, remedy) = ("NBD over TLS", "switch TLS off between this client and server");
                return Err(Malformed::Refused { what, remedy });
            }
            Some(OPT_STRUCTURED_REPLY) if granted && *framing == Framing::Simple => {
                *framing = Framing::Structured;
            }
            Some(OPT_EXTENDED_HEADERS) if granted => *framing = Framing::Extended,
            _ => {}
        }
        self.asked.pop_front();
        self.answered += 1;
        Ok(())
    }

    /// The transmission phase begins; options sent ahead are without effect.
    fn grant(&mut self) {
        self.name = self.asked.pop_front().map(|asked| asked.name);
        self.finish();
    }
}

/// The name of `len` bytes at `at`, and where it ends.
fn name(buffer: &[u8], at: usize, len: u32, limits: &Limits) -> Result<(Vec<u8>, usize), Stop> {
    at_most("NBD export name in bytes", STRING_LEN_MAX.into(), len.into())?;
    let end = at + index(len);
    at_most("NBD option head in bytes", limits.head as u64, end as u64)?;
    Ok((buffer.get(at..end).ok_or(Stop::More(end))?.to_vec(), end))
}
