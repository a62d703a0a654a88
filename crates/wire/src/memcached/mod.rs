//! memcached: text and meta commands (its `protocol.txt`) and the binary protocol, told apart by the first byte of a
//! connection.
//!
//! Replies come in the order of the requests, so the ones outstanding are kept in a queue, and a request's id is its
//! position in the connection, from zero. Requests that never have a reply (`noreply`, `quit`) are not in the queue.
//! Quiet ones (meta flag `q`, binary `GETQ` and the like) are, since their reply depends on the result: a reply
//! belongs to the first outstanding request that it can belong to, and only quiet ones may be passed over on the
//! way. Distinct opaque values settle it. Without them a reply between several requests of one kind is given to the
//! first of them, which no client could tell either, and neither can it be told whose an error line is, nor whether
//! quiet `md` and `ma` are silent about a miss, in which versions differ. So each reply that a quiet request was given
//! makes up for one later request that seems to have had no answer, up to the next no-op: the number of requests that
//! wait comes out right, and a connection is not cut off for what its client left open.
//!
//! An error may also be that of a request with `noreply`: it is passed on as not asked for if nothing that can fail is
//! outstanding, and otherwise taken for the next answer, so that the surplus reply is an error later.
//!
//! Refused: `watch`, after which the server speaks unasked without end. A storage command whose key or length
//! memcached would not accept is an error here, since servers differ in what they take to be the next command.

mod binary;
pub mod client;
mod expect;
mod replies;
mod text;

use crate::read::{Stop, at_most, settle};
use crate::{Answer, Class, Extent, Limits, Malformed, Reply, Request, Step, Wire};
use expect::{Expect, Head, Kind};
use std::collections::VecDeque;
use units::Bytes;

/// What a request looks like, whatever the dialect.
struct Parsed {
    class: Class,
    answer: Answer,
    /// What the reply must look like, unless there is none.
    expect: Expect,
    /// Bytes that were looked at.
    head: usize,
    /// All bytes.
    len: u64,
}

/// One TCP connection to a memcached server.
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    binary: Option<bool>,
    /// Requests seen.
    count: u64,
    asked: VecDeque<(u64, Expect)>,
    /// Replies that were given to quiet requests and may have been those of later ones.
    doubtful: u32,
    /// Bytes at the start of each buffer in which no end of line was found.
    searched: Searched,
    searched_reply: Searched,
}

impl Connection {
    /// A connection on which nothing has been said; [`Limits::MEMCACHED`] are sensible limits.
    pub fn new(limits: Limits) -> Self {
        let searched = Searched::default();
        Self {
            limits,
            binary: None,
            count: 0,
            asked: VecDeque::new(),
            doubtful: 0,
            searched,
            searched_reply: searched,
        }
    }

    fn command(&mut self, buffer: &[u8]) -> Result<Step<Request>, Stop> {
        let &byte = buffer.first().ok_or(Stop::More(1))?;
        let binary = *self.binary.get_or_insert(byte == binary::REQUEST);
        let parsed = if binary {
            binary::request(buffer, &self.limits)?
        } else {
            text::request(self.searched.line(buffer, self.limits.head)?, &self.limits)?
        };
        self.searched = Searched::default();
        let id = self.count;
        if parsed.answer != Answer::Never {
            let most = self.limits.outstanding as u64;
            at_most("outstanding memcached requests", most, self.asked.len() as u64 + 1)?;
            self.asked.push_back((id, parsed.expect));
        }
        self.count += 1;
        let extent = Extent { head: parsed.head, len: Bytes(parsed.len), last: true };
        let (class, answer) = (parsed.class, parsed.answer);
        Ok(Step::Message { message: Request { id, class, position: None, answer, repeated: false }, extent })
    }

    fn answer(&mut self, buffer: &[u8]) -> Result<Step<Reply>, Stop> {
        let head = if self.binary == Some(true) {
            binary::reply(buffer, &self.limits)?
        } else {
            replies::read(self.searched_reply.line(buffer, self.limits.head)?, &self.limits)?
        };
        self.searched_reply = Searched::default();
        let to_silent =
            head.kind == Kind::Error && self.asked.front().is_none_or(|(_, expect)| !expect.may_fail());
        let (id, asked, last) = if to_silent {
            (self.count.saturating_sub(1), false, true)
        } else {
            let (id, last) = self.take(&head)?;
            (id, true, last)
        };
        let extent = Extent { head: head.head, len: Bytes(head.len), last };
        Ok(Step::Message { message: Reply { id, error: head.error, asked }, extent })
    }

    /// The request that `head` answers, and whether it is done with it. Quiet ones before it leave the queue.
    fn take(&mut self, head: &Head) -> Result<(u64, bool), Malformed> {
        let count = self.count;
        loop {
            let Some((id, expect)) = self.asked.front() else {
                return Err(Malformed::Unasked { field: "memcached reply after request", id: count });
            };
            if let Some(last) = expect.answered_by(head) {
                let (id, barrier) = (*id, expect.is_barrier());
                self.doubtful = self.doubtful.saturating_add(expect.may_be_silent().into());
                if last {
                    self.asked.pop_front();
                }
                if barrier || self.asked.is_empty() {
                    self.doubtful = 0;
                }
                return Ok((id, last));
            }
            if !expect.may_be_silent() {
                let bad = Malformed::Line { field: "memcached reply", expected: expect.words() };
                self.doubtful = self.doubtful.checked_sub(1).ok_or(bad)?;
            }
            self.asked.pop_front();
        }
    }
}

impl Wire for Connection {
    fn request(&mut self, buffer: &[u8]) -> Result<Step<Request>, Malformed> {
        settle(self.command(buffer))
    }

    fn reply(&mut self, buffer: &[u8]) -> Result<Step<Reply>, Malformed> {
        settle(self.answer(buffer))
    }

    fn name(&self) -> Option<&[u8]> {
        None
    }

    fn outstanding(&self) -> usize {
        self.asked.len()
    }
}

/// Looks for the end of a line once, however many pieces it comes in.
#[derive(Debug, Clone, Copy, Default)]
struct Searched(usize);

impl Searched {
    /// The first line with its end.
    fn line<'a>(&mut self, buffer: &'a [u8], max: usize) -> Result<&'a [u8], Stop> {
        let from = self.0.min(buffer.len());
        let until = buffer.len().min(max);
        if let Some(place) = buffer[from..until].iter().position(|&byte| byte == b'\n') {
            return Ok(&buffer[..=from + place]);
        }
        self.0 = until;
        if until == max {
            return Err(Malformed::Above {
                field: "memcached line in bytes",
                max: max as u64,
                found: max as u64 + 1,
            }
            .into());
        }
        Err(Stop::More(buffer.len() + 1))
    }
}

/// A decimal number of ordinary length.
fn number(word: Option<&[u8]>, field: &'static str) -> Result<u64, Malformed> {
    let bad = Malformed::Line { field, expected: "a number" };
    let word = word.ok_or(bad)?;
    if word.is_empty() || word.len() > 19 || !word.iter().all(u8::is_ascii_digit) {
        return Err(bad);
    }
    Ok(word.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

/// Words of a line, which are separated by spaces.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.trim_ascii_end().split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

// What Limits::outstanding promises, with the slack of a queue that grows by doubling.
const _: () = assert!(size_of::<(u64, Expect)>() <= 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_searched_twice() {
        let mut searched = Searched::default();
        let mut buffer = vec![b'x'; 100];
        assert!(matches!(searched.line(&buffer, 200), Err(Stop::More(101))));
        // What stands there was looked at: a change behind its back goes unseen.
        buffer[50] = b'\n';
        buffer.extend(b"yy\nzz");
        assert_eq!(searched.line(&buffer, 200).unwrap().len(), 103);
    }

    #[test]
    fn numbers_are_plain() {
        let read = |word: &str| number(Some(word.as_bytes()), "n").ok();
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("9999999999999999999"), Some(9_999_999_999_999_999_999));
        for bad in ["", "+1", "-1", "1x", "0x1", "10000000000000000000"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
