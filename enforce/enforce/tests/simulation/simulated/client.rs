//! A simulated client: it connects, sends requests, reads answers at its own pace, and leaves.

use super::book::ReplyBook;
use super::faults::FaultKind;
use super::nbd_reader::{NbdDialect, greeting};
use super::plan::{ClientPlan, ClientStyle, MS};
use super::reader::RequestReader;
use super::requests::RequestSource;
use super::rpc_reader::{record_of, words};
use super::world::{LEAVES_AFTER_NS, World, WorldEvent};
use std::collections::VecDeque;
use wire::Protocol;

/// Maximum number of requests that hostile clients send in one connection beyond their plan, so that
/// worlds end.
const BURST_MAX: usize = 300;

/// Interval at which clients of the style that resets connections do so.
const HANG_UP_EVERY_NS: u64 = 100 * MS;
/// Maximum number of connections of a client.
const CONNECTIONS_MAX: u32 = 20;

/// A client of a world.
#[derive(Debug)]
pub struct SimulatedClient {
    pub plan: ClientPlan,
    pub link: Option<usize>,
    left: u32,
    source: RequestSource,
    /// Parses its own output, to know the expected answers.
    sent: RequestReader,
    book: ReplyBook,
    outbox: VecDeque<u8>,
    /// Time until which it sends nothing.
    pauses_until: u64,
    /// True if it has ended its direction of the connection.
    has_ended: bool,
    /// True if it never connects again.
    pub is_done: bool,
    connections: u32,
    /// Time at which it resets its connection, together with others of this style.
    hangs_up_at: u64,
    /// Number of pieces that it has sent as a client that drips.
    drips: u32,
    /// Times from its requests to their answers.
    pub latencies: Vec<u64>,
    /// Longest time from a request to its answer.
    pub longest_ns: u64,
    pub answered: u64,
}

impl SimulatedClient {
    /// Creates a client that has not connected yet.
    pub fn new(plan: ClientPlan, protocol: Protocol, dice: &mut super::dice::Dice) -> Self {
        let dialect = NbdDialect::new(false, false);
        Self {
            plan,
            link: None,
            left: plan.requests,
            source: RequestSource::new(protocol, (plan.size_min, plan.size_max), (false, false), dice),
            sent: RequestReader::new(protocol, dialect),
            book: ReplyBook::new(protocol),
            outbox: VecDeque::new(),
            pauses_until: 0,
            has_ended: false,
            is_done: false,
            connections: 0,
            hangs_up_at: 0,
            drips: 0,
            latencies: Vec::new(),
            longest_ns: 0,
            answered: 0,
        }
    }

    /// Returns the next bytes of a client that drips: a whole request, then the beginning of one, then single
    /// bytes. `None` while it waits for its answer.
    fn drip(&mut self, dice: &mut super::dice::Dice) -> Option<Vec<u8>> {
        self.drips += 1;
        match self.drips {
            1 => Some(self.source.next_request(dice)),
            2 if self.book.open > 0 => {
                self.drips = 1;
                None
            }
            2 => Some(self.source.hostile(ClientStyle::HalfWriter, dice)),
            _ => Some(vec![b'x']),
        }
    }

    fn is_honest(&self) -> bool {
        self.plan.style == ClientStyle::Honest
    }
}

impl World {
    /// Performs a client's present actions.
    pub fn client_steps(&mut self, number: usize) {
        let client = &self.clients[number];
        if client.is_done {
            return;
        }
        let Some(link) = client.link else {
            if self.now >= self.plan.ends_at || client.left == 0 || client.connections > CONNECTIONS_MAX {
                self.clients[number].is_done = true;
            } else {
                self.client_connects(number);
            }
            return;
        };
        self.client_reads(number, link);
        if self.clients[number].link == Some(link) {
            self.client_asks(number, link);
        }
        if self.clients[number].link == Some(link) {
            self.client_writes(number, link);
        }
        if self.clients[number].link == Some(link) {
            self.client_leaves(number, link);
        }
    }

    fn client_connects(&mut self, number: usize) {
        let plan = self.clients[number].plan;
        let protocol = self.plan.fronts[plan.front];
        let link = self.open_client_link(number);
        let dialect = NbdDialect::new(self.plan.nbd.0, self.plan.nbd.1);
        let client = &mut self.clients[number];
        client.link = Some(link);
        client.source =
            RequestSource::new(protocol, (plan.size_min, plan.size_max), self.plan.nbd, &mut self.dice);
        client.sent = RequestReader::new(protocol, dialect);
        client.book = ReplyBook::new(protocol);
        if protocol == Protocol::Nbd {
            client.book.owe(None, greeting(), self.now);
        }
        client.outbox.clear();
        client.has_ended = false;
        client.connections += 1;
        client.drips = 0;
        client.hangs_up_at = (self.now / HANG_UP_EVERY_NS + 1) * HANG_UP_EVERY_NS;
        let hangs_up_at = client.hangs_up_at;
        if client.plan.style == ClientStyle::Reset {
            self.schedule(hangs_up_at, WorldEvent::Client(number));
        }
        self.schedule(self.now, WorldEvent::Client(number));
    }

    fn client_reads(&mut self, number: usize, link: usize) {
        let now = self.now;
        let client = &self.clients[number];
        let has_begun = client.book.answered >= client.source.handshake_answers;
        let is_deaf =
            (client.plan.style == ClientStyle::Deaf && has_begun) || self.links[link].stalled_until > now;
        if is_deaf && now < self.plan.ends_at {
            return;
        }
        if self.faults.strikes(FaultKind::ClientStall, &mut self.dice) && now < self.plan.ends_at {
            self.links[link].stalled_until = now + self.dice.between(1, 400) * MS;
            self.schedule(self.links[link].stalled_until, WorldEvent::Client(number));
            return;
        }
        let most = if self.dice.one_in(8) { self.dice.index(4096) + 1 } else { usize::MAX };
        let bytes = self.links[link].from_proxy.pop(most, now);
        if !bytes.is_empty() {
            self.progress += 1;
            self.schedule(now, WorldEvent::Wake);
            if most < usize::MAX {
                self.schedule(now + 1000, WorldEvent::Client(number));
            }
            self.client_receives(number, link, &bytes);
        }
        let link_state = &self.links[link];
        if link_state.from_proxy.is_at_end(now) || link_state.is_far_gone {
            self.client_sees_end(number, link);
        }
    }

    fn client_receives(&mut self, number: usize, link: usize, bytes: &[u8]) {
        if let Some(session) = self.links[link].session
            && let Err(message) = self.sessions[session].on_received_by_client(bytes)
        {
            self.violate(&format!("{message} (client {number})"));
        }
        let client = &mut self.clients[number];
        if !client.is_honest() {
            // Only to follow the handshake.
            let _ = client.book.receive(bytes);
            return self.schedule(self.now, WorldEvent::Client(number));
        }
        match client.book.receive(bytes) {
            Err(message) => self.violate(&format!("answers: client {number}: {message}")),
            Ok(received) => {
                for asked_at in &received.asked_at {
                    client.answered += 1;
                    client.longest_ns = client.longest_ns.max(self.now - asked_at);
                    client.latencies.push(self.now - asked_at);
                }
                for call in received.calls.iter().filter(|_| !client.has_ended) {
                    let answer = record_of(&words(&[*call, 1, 0, 0, 0, 0]));
                    client.outbox.extend(answer);
                }
                let oldest = received.asked_at.iter().min().copied();
                if !received.asked_at.is_empty() && client.plan.think_ns > 0 {
                    let until = self.now + self.dice.below(client.plan.think_ns);
                    client.pauses_until = until;
                    self.schedule(until, WorldEvent::Client(number));
                }
                self.check_latency(number, link, oldest);
            }
        }
    }

    /// Handles a connection closed by the proxy: it requires an excuse, or complete answers.
    fn client_sees_end(&mut self, number: usize, link: usize) {
        let session = self.links[link].session;
        let client = &self.clients[number];
        let is_fair = client.is_honest() && !self.links[link].is_far_gone;
        let excuse = match session {
            Some(session) => self.sessions[session].excuse,
            // It was not accepted, which faults and ends of proxies excuse.
            None => self.unaccepted_excuse(link),
        };
        if is_fair && excuse.is_none() {
            let open = client.book.open;
            let is_delivered = session.is_none_or(|session| self.sessions[session].is_delivered());
            if !client.has_ended {
                self.violate(&format!(
                    "closed: client {number} was closed without a reason, {open} answers are owed"
                ));
            } else if open > 0 || !is_delivered || !client.outbox.is_empty() {
                self.violate(&format!(
                    "conservation: client {number} was closed while {open} answers are owed"
                ));
            }
        }
        self.client_forgets(number, link);
    }

    /// Makes the client drop its connection and possibly return.
    pub fn client_forgets(&mut self, number: usize, link: usize) {
        let now = self.now;
        self.note(|| format!("client {number} closes link {link}"));
        let visible_at = self.links[link].close_far(now);
        self.schedule(visible_at, WorldEvent::Wake);
        if let Some(session) = self.links[link].session {
            self.sessions[session].excuse("the client has gone");
            self.sessions[session].is_over = true;
        }
        self.clients[number].link = None;
        let pause = self.dice.between(1, 50) * MS;
        self.schedule(now + pause, WorldEvent::Client(number));
    }

    fn client_asks(&mut self, number: usize, _link: usize) {
        let now = self.now;
        loop {
            let client = &mut self.clients[number];
            let is_beginning = client.book.answered < client.source.handshake_answers;
            let depth = if is_beginning { 1 } else { client.plan.depth };
            let is_free = client.outbox.len() < 64 << 10;
            let is_waiting = (client.is_honest() || is_beginning) && client.book.open >= depth;
            if client.left == 0 || client.has_ended || !is_free || is_waiting || client.pauses_until > now {
                return;
            }
            let style = client.plan.style;
            let is_odd = !style.is_ordinary();
            let is_single =
                matches!(style, ClientStyle::Honest | ClientStyle::Drip) || client.source.is_in_handshake();
            let count = if is_single { 1 } else { 1 + self.dice.index(BURST_MAX) };
            client.left -= 1;
            for _ in 0..count {
                if style == ClientStyle::Idle {
                    client.left = 0;
                    break;
                }
                let bytes = if style == ClientStyle::Drip && !is_beginning {
                    let Some(bytes) = client.drip(&mut self.dice) else { return };
                    bytes
                } else if is_odd && self.dice.one_in(2) {
                    self.faults.count(FaultKind::HostileBytes);
                    client.source.hostile(style, &mut self.dice)
                } else {
                    client.source.next_request(&mut self.dice)
                };
                client.outbox.extend(&bytes);
                client.sent.feed(&bytes);
                while let Some(request) = client.sent.next_request() {
                    client.book.owe(request.id, request.reply, now);
                }
                if client.outbox.len() > 1 << 20 {
                    break;
                }
            }
            if style == ClientStyle::Drip {
                let until = now + 200 * MS;
                client.pauses_until = until;
                self.schedule(until, WorldEvent::Client(number));
            } else if is_odd || style == ClientStyle::Flood {
                let until = now + self.dice.between(1, 40) * MS;
                client.pauses_until = until;
                self.schedule(until, WorldEvent::Client(number));
            }
        }
    }

    fn client_writes(&mut self, number: usize, link: usize) {
        let now = self.now;
        let client = &mut self.clients[number];
        if client.outbox.is_empty() {
            return;
        }
        if self.faults.strikes(FaultKind::ClientHangUp, &mut self.dice) {
            return self.client_hangs_up(number, link);
        }
        let client = &mut self.clients[number];
        let link_state = &mut self.links[link];
        let mut count = link_state.to_proxy.room().min(client.outbox.len());
        let mut resumes_at = None;
        if count > 1 && self.faults.strikes(FaultKind::HalfRequest, &mut self.dice) {
            count = self.dice.index(count - 1) + 1;
            let until = now + self.dice.between(1, 300) * MS;
            client.pauses_until = until;
            resumes_at = Some(until);
        } else if client.pauses_until > now && client.is_honest() && self.faults.has(FaultKind::HalfRequest) {
            // It stopped in the middle.
            return;
        }
        if count == 0 {
            return;
        }
        let bytes: Vec<u8> = client.outbox.drain(..count).collect();
        let visible_at = link_state.to_proxy.push(&bytes, now + link_state.latency_ns);
        self.progress += 1;
        self.schedule(visible_at, WorldEvent::Wake);
        if let Some(resumes_at) = resumes_at {
            self.schedule(resumes_at, WorldEvent::Client(number));
        }
    }

    fn client_hangs_up(&mut self, number: usize, link: usize) {
        if let Some(session) = self.links[link].session {
            self.sessions[session].excuse("the client hung up");
        }
        if self.dice.one_in(2) {
            let visible_at = self.links[link].reset_far(self.now);
            self.schedule(visible_at, WorldEvent::Wake);
        }
        self.client_forgets(number, link);
    }

    fn client_leaves(&mut self, number: usize, link: usize) {
        let now = self.now;
        let client = &mut self.clients[number];
        let is_late = now >= self.plan.ends_at;
        if client.plan.style == ClientStyle::Reset && !is_late {
            if now >= self.clients[number].hangs_up_at {
                self.client_hangs_up(number, link);
            }
            return;
        }
        if !client.is_honest() && is_late {
            return self.client_hangs_up(number, link);
        }
        // Long after the end, clients stop waiting for lost answers.
        if now >= self.plan.ends_at + LEAVES_AFTER_NS && client.is_honest() {
            let excuse = self.links[link]
                .session
                .map_or(self.unaccepted_excuse(link), |session| self.sessions[session].excuse);
            // The limit of the third workload may delay its requests for long.
            let may_wait = self.clients[number].plan.network == 2 && self.plan.queues_over_limits;
            if excuse.is_none() && !may_wait {
                let open = self.clients[number].book.open;
                self.violate(&format!("conservation: client {number} is owed {open} answers after 30 s"));
            }
            return self.client_hangs_up(number, link);
        }
        client.left = if is_late { 0 } else { client.left };
        let is_silent = client.plan.style == ClientStyle::Idle;
        if client.left > 0 || client.has_ended || !client.outbox.is_empty() || is_silent {
            return;
        }
        let goodbye = client.source.goodbye();
        if !goodbye.is_empty() && self.dice.one_in(2) && client.is_honest() {
            if client.book.open > 0 {
                return;
            }
            client.has_ended = true;
            let link_state = &mut self.links[link];
            let visible_at = link_state.to_proxy.push(&goodbye, now + link_state.latency_ns);
            return self.schedule(visible_at, WorldEvent::Wake);
        }
        client.has_ended = true;
        self.note(|| format!("client {number} ends its stream on link {link}"));
        let visible_at = self.links[link].end_far(now);
        self.schedule(visible_at, WorldEvent::Wake);
    }
}
