//! A connection watched as a proxy watches it: bytes come in pieces, messages and their extents come out.

#![allow(dead_code, unreachable_pub)]

use wire::http1::HttpParser;
use wire::memcached::MemcachedParser;
use wire::nbd::NbdParser;
use wire::resp::RespParser;
use wire::rpc::RpcParser;
use wire::{
    Extent, GrantedMount, ParseStep, ParserLimits, ProtocolError, ProtocolParser, ReplyExpectation,
    ReplyHead, RequestHead,
};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// What was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Request(RequestHead, Extent),
    Reply(ReplyHead, Extent),
    Continued(Side, Extent),
}

#[derive(Default)]
struct Flow {
    buffer: Vec<u8>,
    /// Bytes of the last extent that have not come yet.
    ahead: u64,
    /// What the parser asked for.
    wanted: usize,
}

/// One connection.
pub struct Watch {
    pub wire: Box<dyn ProtocolParser>,
    limits: ParserLimits,
    flows: [Flow; 2],
    pub events: Vec<Event>,
    /// Whether barriers are injected, as a proxy does.
    pub injects: bool,
    /// What MOUNT granted.
    pub mounts: Vec<GrantedMount>,
    /// Bytes that have been passed on.
    pub passed: u64,
}

impl Watch {
    pub fn new(wire: impl ProtocolParser + 'static, limits: ParserLimits) -> Self {
        Self {
            wire: Box::new(wire),
            limits,
            flows: Default::default(),
            events: Vec::new(),
            injects: false,
            mounts: Vec::new(),
            passed: 0,
        }
    }

    pub fn rpc() -> Self {
        Self::new(RpcParser::new(ParserLimits::RPC), ParserLimits::RPC)
    }

    pub fn nbd() -> Self {
        Self::new(NbdParser::new(ParserLimits::NBD), ParserLimits::NBD)
    }

    pub fn memcached() -> Self {
        Self::new(MemcachedParser::new(ParserLimits::MEMCACHED), ParserLimits::MEMCACHED)
    }

    pub fn http() -> Self {
        Self::new(HttpParser::new(ParserLimits::HTTP), ParserLimits::HTTP)
    }

    pub fn resp() -> Self {
        Self::new(RespParser::new(ParserLimits::RESP), ParserLimits::RESP)
    }

    /// As a proxy reads it.
    pub fn resp_of_a_proxy() -> Self {
        let mut parser = RespParser::new(ParserLimits::RESP);
        parser.mediate();
        Self::new(parser, ParserLimits::RESP)
    }

    /// The next bytes of one side. Checks what every answer of a parser promises.
    pub fn feed(&mut self, side: Side, bytes: &[u8]) -> Result<(), ProtocolError> {
        let flow = &mut self.flows[side as usize];
        let ahead = flow.ahead.min(bytes.len() as u64);
        flow.ahead -= ahead;
        self.passed += ahead;
        flow.buffer.extend_from_slice(&bytes[usize::try_from(ahead).unwrap()..]);
        while !self.flows[side as usize].buffer.is_empty() {
            if !self.step(side)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether there was a frame.
    fn step(&mut self, side: Side) -> Result<bool, ProtocolError> {
        let flow = &mut self.flows[side as usize];
        let event = match side {
            Side::Client => self.wire.next_request(&flow.buffer)?.event(side, Event::Request),
            Side::Server => self.wire.next_reply(&flow.buffer)?.event(side, Event::Reply),
        };
        assert!(self.wire.in_flight() <= self.limits.in_flight + 16, "memory is bounded");
        let (event, extent) = match event {
            Ok(found) => found,
            Err(at_least) => {
                assert!(at_least > flow.buffer.len(), "asks for more than there is");
                assert!(at_least <= self.limits.head.max(64), "asks for no more than a head");
                flow.wanted = at_least;
                return Ok(false);
            }
        };
        assert!(flow.buffer.len() >= flow.wanted, "nothing is decided before the bytes asked for");
        assert!(extent.head <= flow.buffer.len() && extent.head as u64 <= extent.len.0, "{extent:?}");
        assert!(extent.head > 0);
        let here = extent.len.0.min(flow.buffer.len() as u64);
        flow.buffer.drain(..usize::try_from(here).unwrap());
        (flow.ahead, flow.wanted) = (extent.len.0 - here, 0);
        self.passed += here;
        self.events.push(event);
        if side == Side::Server {
            self.mounts.extend(self.wire.take_mount());
        }
        if let Event::Request(request, _) = event {
            self.check_request(&request);
        }
        Ok(true)
    }

    /// What a proxy asks for behind a request.
    fn check_request(&mut self, request: &RequestHead) {
        assert!(self.wire.file_handle().is_none_or(|handle| handle.len() <= 128));
        assert!(!request.is_callback_reply || request.reply == ReplyExpectation::Never);
        if !self.injects {
            return;
        }
        let before = self.wire.in_flight();
        if let Some(barrier) = self.wire.inject_barrier() {
            assert!(request.reply != ReplyExpectation::Always && barrier.id > request.id);
            assert!(self.wire.in_flight() > before, "the barrier is in flight");
            assert!(self.wire.inject_barrier().is_none(), "one barrier per request");
        } else {
            assert_eq!(self.wire.in_flight(), before);
        }
    }

    /// Nothing is left over in either direction.
    pub fn is_drained(&self) -> bool {
        self.flows.iter().all(|flow| flow.buffer.is_empty() && flow.ahead == 0)
    }

    pub fn requests(&self) -> Vec<RequestHead> {
        let request =
            |event: &Event| if let Event::Request(request, _) = event { Some(*request) } else { None };
        self.events.iter().filter_map(request).collect()
    }

    pub fn replies(&self) -> Vec<(ReplyHead, Extent)> {
        let reply = |event: &Event| {
            if let Event::Reply(reply, extent) = event { Some((*reply, *extent)) } else { None }
        };
        self.events.iter().filter_map(reply).collect()
    }
}

trait Eventful<T> {
    fn event(self, side: Side, make: impl Fn(T, Extent) -> Event) -> Result<(Event, Extent), usize>;
}

impl<T> Eventful<T> for ParseStep<T> {
    fn event(self, side: Side, make: impl Fn(T, Extent) -> Event) -> Result<(Event, Extent), usize> {
        match self {
            ParseStep::NeedMore { at_least } => Err(at_least),
            ParseStep::Message { message, extent } => Ok((make(message, extent), extent)),
            ParseStep::Continued { extent } => Ok((Event::Continued(side, extent), extent)),
        }
    }
}

/// What both sides say, in the order in which it passes.
pub type Talk = Vec<(Side, Vec<u8>)>;

/// Passes a conversation in pieces whose lengths `pieces` gives, again and again.
pub fn pass(watch: &mut Watch, talk: &Talk, pieces: &[usize]) -> Result<(), ProtocolError> {
    let mut lengths = pieces.iter().copied().cycle();
    for (side, said) in talk {
        let mut rest = &said[..];
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(lengths.next().unwrap_or(usize::MAX).clamp(1, rest.len()));
            watch.feed(*side, piece)?;
            rest = behind;
        }
    }
    Ok(())
}
