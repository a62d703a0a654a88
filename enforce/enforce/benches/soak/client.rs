//! A client that keeps several requests outstanding, checks all answers, and ends its connections in
//! every possible way.

use crate::codec::{Answer, BLOCK, ClientCodec, Protocol};
use crate::ledger::{Ledger, Verdict};
use crate::world::{Turns, World, count};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::ops::Range;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use testkit::connect_from;

/// Maximum number of bytes that wait to be sent.
const OUT_MAX: usize = 4 << 20;
/// Time without an answer after which a connection counts as stuck.
const STUCK: Duration = Duration::from_secs(60);

/// Identity and workload of a client.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub owner: u32,
    pub protocol: Protocol,
    pub from: Ipv4Addr,
    /// First block of its region in the volume.
    pub base: u64,
    pub depth: usize,
    pub per_second: f64,
    pub seed: u64,
}

struct SentRequest {
    blocks: Range<usize>,
    writes: bool,
    starts: u32,
}

/// Way in which a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With nothing outstanding.
    Quiet,
    /// With requests outstanding, without notice.
    Drop,
    /// In the middle of a request.
    Torn,
    /// Half closed: sends nothing more, but awaits the answers.
    Half,
}

pub struct Client<'a> {
    plan: Plan,
    world: &'a World,
    ledger: Ledger,
    random: StdRng,
    /// Connects to the servers, bypassing the proxies.
    direct: bool,
}

/// An open connection.
struct SoakConnection {
    stream: TcpStream,
    codec: ClientCodec,
    turns: Turns,
    proxy: usize,
    out: Vec<u8>,
    in_flight: BTreeMap<u64, SentRequest>,
    last_reply: Instant,
    half: bool,
}

/// Iterates over the block sizes that this protocol uses here.
fn sizes(protocol: Protocol) -> Box<dyn Iterator<Item = usize>> {
    match protocol {
        Protocol::Memcached => Box::new((0..600).map(|index| match index % 100 {
            0 => 2_500_000,
            50 => 200_000,
            index => index * 90,
        })),
        _ => Box::new((0..2048).map(|_| BLOCK)),
    }
}

/// Bytes of the region of one client in a volume.
pub const REGION: u64 = (2048 * BLOCK) as u64;

impl<'a> Client<'a> {
    pub fn new(plan: Plan, world: &'a World) -> Self {
        let ledger = Ledger::new(plan.owner, sizes(plan.protocol), plan.protocol == Protocol::Memcached);
        Self { plan, world, ledger, random: StdRng::seed_from_u64(plan.seed), direct: false }
    }

    /// Opens one connection after the other, until the end.
    pub fn run(&mut self) {
        while !self.world.stopped() {
            let proxy = usize::from(self.world.proxies.len() > 1 && self.random.random_bool(0.35));
            let turns = self.world.turns(self.plan.protocol, proxy);
            let mut connection = match self.open(proxy, turns) {
                Ok(connection) => connection,
                Err(error) => {
                    self.judge_end(turns, proxy, &format!("no connection: {error}"));
                    self.world.pause(Duration::from_millis(200));
                    continue;
                }
            };
            count(&self.world.tally.connections, 1);
            if let Err(error) = self.converse(&mut connection) {
                self.judge_end(connection.turns, connection.proxy, &error.to_string());
            }
            self.forget(connection);
        }
    }

    fn open(&self, proxy: usize, turns: Turns) -> io::Result<SoakConnection> {
        let fronts = if self.direct { self.world.servers } else { self.world.proxies[proxy] };
        let plan = self.plan;
        let to = fronts.of(self.plan.protocol);
        let mut stream = connect_from(plan.from, to)?;
        let codec = match plan.protocol {
            Protocol::Nbd => ClientCodec::nbd(&mut stream, plan.base, plan.owner.is_multiple_of(2))?,
            Protocol::Memcached => ClientCodec::memcached(plan.owner),
            Protocol::Nfs => ClientCodec::nfs(
                "/export",
                &mut connect_from(plan.from, fronts.mount)?,
                &mut stream,
                plan.owner,
            )?,
        };
        stream.set_nonblocking(true)?;
        let out = Vec::new();
        let in_flight = BTreeMap::new();
        let last_reply = Instant::now();
        Ok(SoakConnection { stream, codec, turns, proxy, out, in_flight, last_reply, half: false })
    }

    /// Judges the end of a connection: without a cause from outside, it is an error of the proxy.
    fn judge_end(&self, turns: Turns, proxy: usize, why: &str) {
        let now = self.world.turns(self.plan.protocol, proxy);
        if turns.is_up() && now == turns && !self.world.stopped() {
            count(&self.world.tally.cut, 1);
            let Plan { owner, protocol, .. } = self.plan;
            self.world.error(format!("{} client {owner} by proxy {proxy}: cut off: {why}", protocol.name()));
        }
    }

    fn converse(&mut self, connection: &mut SoakConnection) -> io::Result<()> {
        let begun = Instant::now();
        let life = Duration::from_millis(self.random.random_range(500..20_000));
        let gap = Duration::from_secs_f64(1.0 / self.plan.per_second);
        let mut due = begun;
        connection.last_reply = begun;
        while begun.elapsed() < life && !self.world.stopped() {
            let now = Instant::now();
            if now > due + Duration::from_millis(500) {
                due = now;
            }
            if now >= due && connection.in_flight.len() < self.plan.depth && connection.out.len() < OUT_MAX {
                self.ask(connection, now);
                due += gap;
            }
            let wait = if connection.in_flight.len() < self.plan.depth {
                due.saturating_duration_since(now)
            } else {
                gap
            };
            self.exchange(connection, wait.min(Duration::from_millis(20)))?;
        }
        let end = match self.random.random_range(0..6) {
            0 => End::Drop,
            1 => End::Torn,
            2 | 3 => End::Half,
            _ => End::Quiet,
        };
        self.end(connection, if self.world.stopped() { End::Quiet } else { end })
    }

    /// Sends, and takes received bytes.
    fn exchange(&mut self, connection: &mut SoakConnection, wait: Duration) -> io::Result<()> {
        let events = if connection.out.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        poll(&mut [PollFd::new(&connection.stream, events)], Some(&time))?;
        while !connection.out.is_empty() {
            match connection.stream.write(&connection.out) {
                Ok(count) => drop(connection.out.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let mut piece = [0; 65536];
        match connection.stream.read(&mut piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => connection.codec.feed(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        while let Some(answer) = connection.codec.answer()? {
            self.answered(connection, &answer);
        }
        let waited = connection.last_reply.elapsed();
        if connection.in_flight.is_empty() {
            connection.last_reply = Instant::now();
        } else if waited > STUCK {
            return Err(io::Error::new(ErrorKind::TimedOut, "no answer for a minute"));
        }
        Ok(())
    }

    /// Sends the next request.
    fn ask(&mut self, connection: &mut SoakConnection, now: Instant) {
        let count = match self.random.random_range(0..200) {
            _ if self.plan.protocol == Protocol::Memcached => 1,
            0 if self.plan.protocol == Protocol::Nbd => 400,
            0..10 => self.random.random_range(9..64),
            10..60 => self.random.random_range(2..9),
            _ => 1,
        };
        let first = self.random.random_range(0..self.ledger.len() - count + 1);
        let blocks = first..first + count;
        let writes = self.random.random_bool(0.4);
        if !blocks.clone().all(|b| self.ledger.may_read(b) && (!writes || self.ledger.may_write(b, now))) {
            return;
        }
        let starts = self.world.server_turns[self.plan.protocol as usize].load(SeqCst);
        let id = if writes {
            let mut data = Vec::new();
            blocks.clone().for_each(|block| self.ledger.begin_write(block, &mut data));
            connection.codec.write(&mut connection.out, first, &data)
        } else {
            blocks.clone().for_each(|block| self.ledger.begin_read(block));
            let len = blocks.clone().map(|block| self.ledger.size(block)).sum();
            connection.codec.read(&mut connection.out, first, len)
        };
        connection.in_flight.insert(id, SentRequest { blocks, writes, starts });
    }

    fn answered(&mut self, connection: &mut SoakConnection, answer: &Answer) {
        let tally = &self.world.tally;
        let gap = u64::try_from(connection.last_reply.elapsed().as_millis()).unwrap_or(u64::MAX);
        tally.gap.fetch_max(gap, SeqCst);
        connection.last_reply = Instant::now();
        let Some(SentRequest { blocks, writes, starts }) = connection.in_flight.remove(&answer.id) else {
            count(&tally.corrupt, 1);
            return self.world.error(format!("an answer to what was not in_flight: {}", answer.id));
        };
        count(&tally.requests, 1);
        if answer.error {
            count(&tally.refused, 1);
            return self.give_up(&blocks, writes);
        }
        if writes {
            blocks.clone().for_each(|block| self.ledger.written(block, starts));
            return count(&tally.written, blocks.map(|block| self.ledger.size(block) as u64).sum());
        }
        let now_starts = self.world.server_turns[self.plan.protocol as usize].load(SeqCst);
        let mut rest = answer.data.as_deref();
        for block in blocks {
            let len = self.ledger.size(block);
            let found = rest.map(|rest| self.piece(rest, len));
            rest = rest.map(|rest| &rest[len.min(rest.len())..]);
            // A file that ends before the block reads as zeroes; a longer value cannot be one of ours.
            let verdict = self.ledger.read(block, found.as_deref(), now_starts, Instant::now());
            count(&tally.compared, len as u64);
            self.report(block, verdict);
        }
        if rest.is_some_and(|rest| !rest.is_empty()) {
            count(&tally.corrupt, 1);
            self.world.error(format!("client {}: more bytes than were in_flight for", self.plan.owner));
        }
    }

    fn piece(&self, rest: &[u8], len: usize) -> Vec<u8> {
        let mut piece = rest[..len.min(rest.len())].to_vec();
        if self.plan.protocol == Protocol::Nfs {
            piece.resize(len, 0);
        }
        piece
    }

    fn report(&self, block: usize, verdict: Verdict) {
        let Plan { owner, protocol, .. } = self.plan;
        let (counter, word) = match verdict {
            Verdict::Right => return,
            Verdict::Lost => (&self.world.tally.lost, "LOST"),
            Verdict::Corrupt => (&self.world.tally.corrupt, "CORRUPT"),
        };
        count(counter, 1);
        self.world.error(format!("{} client {owner} block {block}: {word}", protocol.name()));
    }

    fn give_up(&mut self, blocks: &Range<usize>, writes: bool) {
        for block in blocks.clone() {
            if writes { self.ledger.doubtful(block, Instant::now()) } else { self.ledger.not_read(block) }
        }
    }

    fn end(&mut self, connection: &mut SoakConnection, end: End) -> io::Result<()> {
        match end {
            End::Drop => count(&self.world.tally.killed, 1),
            End::Torn => {
                count(&self.world.tally.killed, 1);
                self.ask(connection, Instant::now());
                let half = connection.out.len() / 2;
                let _ = connection.stream.write(&connection.out[..half]);
            }
            End::Quiet | End::Half => {
                if end == End::Half {
                    count(&self.world.tally.half_closed, 1);
                }
                while !connection.in_flight.is_empty() {
                    self.exchange(connection, Duration::from_millis(10))?;
                    // Only memcached answers requests in flight before the client's end, because its
                    // protocol orders them.
                    let may = connection.codec.protocol == Protocol::Memcached;
                    if end == End::Half && may && connection.out.is_empty() && !connection.half {
                        connection.half = true;
                        connection.stream.shutdown(Shutdown::Write)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Marks requests that were outstanding when a connection ended as possibly executed.
    fn forget(&mut self, connection: SoakConnection) {
        drop(connection.stream);
        for (_, SentRequest { blocks, writes, .. }) in connection.in_flight {
            self.give_up(&blocks, writes);
        }
    }

    /// Reads every block once more, directly from the server.
    pub fn read_all(&mut self) -> Result<(), String> {
        let result = self.read_each();
        result.map_err(|error| format!("{} client {}: {error}", self.plan.protocol.name(), self.plan.owner))
    }

    fn read_each(&mut self) -> io::Result<()> {
        self.direct = true;
        let mut connection = self.open(0, self.world.turns(self.plan.protocol, 0))?;
        for block in 0..self.ledger.len() {
            let starts = connection.turns.server;
            self.ledger.begin_read(block);
            let id = connection.codec.read(&mut connection.out, block, self.ledger.size(block));
            connection.in_flight.insert(id, SentRequest { blocks: block..block + 1, writes: false, starts });
            while connection.in_flight.len() >= 16 {
                self.exchange(&mut connection, Duration::from_millis(10))?;
            }
        }
        self.end(&mut connection, End::Quiet)
    }
}
