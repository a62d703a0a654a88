//! Well-formed conversations with what is to be recognised in them, made from random choices. Replies are written by
//! hand here: they judge the parsers.

#![allow(dead_code, unreachable_pub)]

mod http;
mod memcached;
mod nbd;
mod resp;
mod rpc;

pub use http::http;
pub use memcached::memcached;
pub use nbd::nbd;
pub use resp::resp;
pub use rpc::rpc;

use super::common::{Event, Side, Talk};
use wire::{ReplyExpectation, RequestClass};

/// What is to be recognised: one entry a message, fragments added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Request { id: u64, class: RequestClass, offset: Option<u64>, answer: ReplyExpectation, len: u64 },
    Reply { id: u64, error: bool, asked: bool, last: bool, len: u64 },
}

/// Events as [`Found`]: continued pieces go to the message before them on the same side.
pub fn found(events: &[Event]) -> Vec<Found> {
    let mut found: Vec<(Side, Found)> = Vec::new();
    for event in events {
        match *event {
            Event::Request(request, extent) => found.push((
                Side::Client,
                Found::Request {
                    id: request.id,
                    class: request.class,
                    offset: request.position.map(|position| position.offset),
                    answer: request.reply,
                    len: extent.len.0,
                },
            )),
            Event::Reply(reply, extent) => found.push((
                Side::Server,
                Found::Reply {
                    id: reply.id,
                    error: reply.is_error,
                    asked: reply.is_solicited,
                    last: extent.last,
                    len: extent.len.0,
                },
            )),
            Event::Continued(side, extent) => {
                let (_, message) =
                    found.iter_mut().rev().find(|(of, _)| *of == side).expect("something to continue");
                match message {
                    Found::Request { len, .. } => *len += extent.len.0,
                    Found::Reply { len, last, .. } => (*len, *last) = (*len + extent.len.0, extent.last),
                }
            }
        }
    }
    found.into_iter().map(|(_, found)| found).collect()
}

/// A conversation under construction.
#[derive(Debug, Default, Clone)]
pub struct Script {
    pub talk: Talk,
    pub found: Vec<Found>,
}

impl Script {
    fn request(
        &mut self,
        bytes: Vec<u8>,
        id: u64,
        class: RequestClass,
        offset: Option<u64>,
        answer: ReplyExpectation,
    ) {
        let len = bytes.len() as u64;
        self.found.push(Found::Request { id, class, offset, answer, len });
        self.talk.push((Side::Client, bytes));
    }

    fn reply(&mut self, bytes: Vec<u8>, id: u64, error: bool, last: bool) {
        let asked = id != u64::MAX;
        let len = bytes.len() as u64;
        self.found.push(Found::Reply { id: if asked { id } else { 0 }, error, asked, last, len });
        self.talk.push((Side::Server, bytes));
    }
}

/// One random choice: what, how long, how it is cut or answered.
pub type Choice = (u8, u16, u8);

/// Bytes of a reply's part, whether it is an error, whether it is the last.
type Chunk = (Vec<u8>, bool, bool);

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
