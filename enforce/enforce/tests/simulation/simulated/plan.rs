//! Parameters of a world: servers, device, clients and faults, all from its seed.

use super::dice::Dice;
use super::faults::{FaultKind, FaultLog};
use wire::Protocol;

/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;
/// A second in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// Behaviour of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientStyle {
    /// It follows the protocol, reads its answers, and expects each of them.
    Honest,
    /// It follows the protocol and sends requests without a pause.
    Flood,
    /// It follows the protocol, but does not read its answers.
    Deaf,
    /// It stops in the middle of a large request.
    HalfWriter,
    /// It sends random bytes behind some requests.
    Garbage,
    /// It announces more than it sends.
    Liar,
    /// It repeats one identifier.
    Repeater,
    /// It sends requests without answers.
    Silent,
    /// It connects and sends nothing.
    Idle,
    /// It requests more than any server grants, and objects that do not exist.
    Greedy,
    /// After an answer it sends a part of a request, and then a byte from time to time.
    Drip,
    /// It follows the protocol, and resets the connection when it has sent its requests.
    Reset,
}

impl ClientStyle {
    /// Returns true if it sends only what ordinary clients send.
    pub fn is_ordinary(self) -> bool {
        matches!(self, Self::Honest | Self::Flood | Self::Deaf)
    }

    const HOSTILE: [Self; 9] = [
        Self::Flood,
        Self::Deaf,
        Self::HalfWriter,
        Self::Garbage,
        Self::Liar,
        Self::Repeater,
        Self::Silent,
        Self::Idle,
        Self::Greedy,
    ];
}

/// A client of a world.
#[derive(Debug, Clone, Copy)]
pub struct ClientPlan {
    pub front: usize,
    /// Network of its address, which determines its workload.
    pub network: usize,
    /// Last number of its address; without one every client has its own.
    pub host: Option<usize>,
    pub style: ClientStyle,
    /// Number of requests in flight.
    pub depth: usize,
    /// Maximum think time between requests.
    pub think_ns: u64,
    pub requests: u32,
    /// Size of the smallest request, bytes.
    pub size_min: u64,
    /// Size of the largest request, bytes.
    pub size_max: u64,
    /// Time of its first connection.
    pub begins_at: u64,
}

/// CPU time of system calls, nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct CallCost {
    /// Any read or write.
    pub call_ns: u64,
    /// Each 4 KiB that a call moves or discards.
    pub copy_4k_ns: u64,
    /// A client accepted, with the connection to the server.
    pub connect_ns: u64,
    /// A connection closed.
    pub close_ns: u64,
}

impl CallCost {
    /// About the costs of Linux on a machine of 2020.
    pub const USUAL: Self = Self { call_ns: 1500, copy_4k_ns: 800, connect_ns: 60_000, close_ns: 15_000 };

    fn random(dice: &mut Dice) -> Self {
        let scale = dice.below(4);
        Self {
            call_ns: Self::USUAL.call_ns * scale,
            copy_4k_ns: Self::USUAL.copy_4k_ns * scale,
            connect_ns: Self::USUAL.connect_ns * scale,
            close_ns: Self::USUAL.close_ns * scale,
        }
    }

    /// Returns the CPU time of copying bytes.
    pub fn copying_ns(self, bytes: usize) -> u64 {
        bytes as u64 * self.copy_4k_ns / 4096
    }
}

/// Parameters of a world.
#[derive(Debug, Clone)]
pub struct WorldPlan {
    /// Seed of everything.
    pub seed: u64,
    /// Protocols of the fronts.
    pub fronts: Vec<Protocol>,
    /// Maximum number of the proxy's requests at the server at once.
    pub outstanding: u32,
    /// Number of requests that the device serves at once.
    pub channels: usize,
    /// Device time of any request.
    pub service_base_ns: u64,
    /// Device time of 4 KiB, also in the profile.
    pub service_4k_ns: u64,
    /// True if requests beyond limits wait.
    pub queues_over_limits: bool,
    /// Limit of the third workload: thousandths of the device, and a burst in milliseconds.
    pub limit: (u64, u64),
    /// Forms of replies that NBD servers support: structured, extended.
    pub nbd: (bool, bool),
    /// Maximum duration of a round of the proxy.
    pub round_ns: u64,
    /// CPU time of the proxy's system calls.
    pub cpu: CallCost,
    /// Maximum number of clients of the proxy.
    pub connections: u64,
    /// Maximum number of files that the proxy may open.
    pub files_max: usize,
    /// True if the proxy learns of that when it starts.
    pub are_files_known: bool,
    /// True if clients of memcached may share connections to the server.
    pub shares: bool,
    /// Capacity and latency of all connections; without it they are random.
    pub link: Option<(usize, u64)>,
    /// Network whose requests the server never answers.
    pub unanswered: Option<usize>,
    /// True if no fault excuses a late answer to the highest priority.
    pub is_calm: bool,
    pub clients: Vec<ClientPlan>,
    /// Time by which the clients should have ended.
    pub ends_at: u64,
    pub faults: FaultLog,
}

impl WorldPlan {
    /// Draws the world of a seed.
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let is_calm = dice.one_in(3);
        let front_count = dice.between(1, 3);
        let all = [Protocol::Memcached, Protocol::Nbd, Protocol::Nfs, Protocol::Resp];
        let fronts: Vec<_> = (0..front_count).map(|_| dice.pick(&all)).collect();
        let faults = FaultLog::random(&mut dice, is_calm);
        let ends_at = dice.between(300, 3000) * MS;
        let mut plan = Self {
            seed,
            fronts,
            outstanding: u32::try_from(dice.pick(&[1, 2, 3, 4, 6, 8, 16])).expect("it is small"),
            channels: dice.index(8) + 1,
            // In every third world the device is so slow that requests wait.
            service_base_ns: if dice.one_in(3) {
                dice.between(MS, 3 * MS)
            } else {
                dice.between(5_000, 400_000)
            },
            service_4k_ns: dice.between(10_000, 200_000),
            queues_over_limits: dice.one_in(2),
            limit: (dice.between(20, 500), dice.between(1, 50)),
            nbd: (dice.one_in(2), dice.one_in(3)),
            round_ns: dice.between(200, 20_000),
            cpu: CallCost::random(&mut Dice::new(seed, 3)),
            connections: 1024,
            files_max: usize::MAX,
            are_files_known: true,
            shares: !seed.is_multiple_of(3),
            link: None,
            unanswered: None,
            is_calm,
            clients: Vec::new(),
            ends_at,
            faults,
        };
        plan.add_clients(&mut dice);
        if plan.queues_over_limits && dice.one_in(2) {
            plan.add_limited_flood(&mut dice);
        }
        plan
    }

    fn add_clients(&mut self, dice: &mut Dice) {
        let honest = dice.between(1, 4);
        let hostile =
            if self.faults.has(FaultKind::HostileBytes) || self.is_calm { dice.below(5) } else { 0 };
        for number in 0..honest + hostile {
            let is_honest = number < honest;
            let style = if is_honest { ClientStyle::Honest } else { dice.pick(&ClientStyle::HOSTILE) };
            let is_large = !is_honest || dice.one_in(4);
            // In a calm world one client has the highest priority, and hostile clients have none.
            let network = match (self.is_calm, is_honest) {
                (true, true) if number == 0 => 0,
                (true, false) => 3,
                _ => dice.index(4),
            };
            self.clients.push(ClientPlan {
                front: dice.index(self.fronts.len()),
                network,
                host: None,
                style,
                depth: dice.pick(&[1, 1, 2, 4, 8, 16, 64]),
                think_ns: dice.pick(&[0, 10_000, 500_000, 5 * MS]),
                requests: u32::try_from(dice.between(5, 150)).expect("it is small"),
                size_min: 1,
                size_max: if is_large { dice.pick(&[16 << 10, 256 << 10, 2 << 20]) } else { 8 << 10 },
                begins_at: dice.below(self.ends_at / 2),
            });
        }
    }

    /// Adds a client of the workload with the limit, which exceeds it.
    fn add_limited_flood(&mut self, dice: &mut Dice) {
        self.clients.push(ClientPlan {
            front: dice.index(self.fronts.len()),
            network: 2,
            host: None,
            style: ClientStyle::Flood,
            depth: 64,
            think_ns: 0,
            requests: 30,
            size_min: 8 << 10,
            size_max: 64 << 10,
            begins_at: dice.below(self.ends_at / 4),
        });
    }

    /// Returns the device time of a request that moves this many bytes.
    pub fn service_ns(&self, bytes: u64) -> u64 {
        self.service_base_ns + bytes * self.service_4k_ns / 4096
    }

    /// Returns the device time by the proxy's profile, which the limits count.
    pub fn profiled_ns(&self, bytes: u64) -> u64 {
        bytes * self.service_4k_ns / 4096
    }
}
