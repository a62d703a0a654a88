//! What a world is like: servers, device, clients and accidents, all from its seed.

use super::dice::Dice;
use super::faults::{FaultKind, FaultLog};
use enforce::deployment::FrontProtocol;

/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;
/// A second in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// What a client is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientStyle {
    /// It keeps the protocol, takes its answers, and expects each of them.
    Honest,
    /// It keeps the protocol and sends requests without a pause.
    Flood,
    /// It keeps the protocol, and does not take its answers.
    Deaf,
    /// It stops in the middle of a large request.
    HalfWriter,
    /// It sends random bytes behind some requests.
    Garbage,
    /// It announces more than it sends.
    Liar,
    /// It repeats one identifier.
    Repeater,
    /// It sends requests that have no answers.
    Silent,
    /// It connects and says nothing.
    Idle,
    /// It asks for more than anybody gives, of things that are not there.
    Greedy,
}

impl ClientStyle {
    /// Whether all that it sends is what ordinary clients send.
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
    /// The front that it connects to.
    pub front: usize,
    /// The network that its address is in, which says whose it is.
    pub network: usize,
    /// What it is like.
    pub style: ClientStyle,
    /// How many requests it has in flight.
    pub depth: usize,
    /// How long it thinks between requests, at most.
    pub think_ns: u64,
    /// How many requests it sends.
    pub requests: u32,
    /// The smallest request in bytes.
    pub size_min: u64,
    /// The largest request in bytes.
    pub size_max: u64,
    /// When it connects first.
    pub begins_at: u64,
}

/// What a world is like.
#[derive(Debug, Clone)]
pub struct WorldPlan {
    /// The seed that everything comes from.
    pub seed: u64,
    /// The protocols of the fronts.
    pub fronts: Vec<FrontProtocol>,
    /// The most requests that the proxy may have at the server at once.
    pub outstanding: u32,
    /// How many requests the device serves at once.
    pub channels: usize,
    /// The device time of any request.
    pub service_base_ns: u64,
    /// The device time of 4 KiB, which is also what the profile says.
    pub service_4k_ns: u64,
    /// Whether requests beyond limits wait.
    pub queues_over_limits: bool,
    /// The limit of the third workload: parts in a thousand of the device, and a burst in milliseconds.
    pub limit: (u64, u64),
    /// Which form of replies NBD servers know: structured, extended.
    pub nbd: (bool, bool),
    /// The most time that a round of the proxy takes.
    pub round_ns: u64,
    /// Whether nothing happens that excuses a late answer to the highest priority.
    pub is_calm: bool,
    /// The clients.
    pub clients: Vec<ClientPlan>,
    /// When the clients are to have ended.
    pub ends_at: u64,
    /// What goes wrong.
    pub faults: FaultLog,
}

impl WorldPlan {
    /// The world of a seed.
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let is_calm = dice.one_in(3);
        let front_count = dice.between(1, 3);
        let all = [FrontProtocol::Memcached, FrontProtocol::Nbd, FrontProtocol::Nfs];
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
            // In a calm world somebody has the highest priority, and hostile clients have none.
            let network = match (self.is_calm, is_honest) {
                (true, true) if number == 0 => 0,
                (true, false) => 3,
                _ => dice.index(4),
            };
            self.clients.push(ClientPlan {
                front: dice.index(self.fronts.len()),
                network,
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

    /// A client of the workload with the limit, which asks for more than that allows.
    fn add_limited_flood(&mut self, dice: &mut Dice) {
        self.clients.push(ClientPlan {
            front: dice.index(self.fronts.len()),
            network: 2,
            style: ClientStyle::Flood,
            depth: 64,
            think_ns: 0,
            requests: 30,
            size_min: 8 << 10,
            size_max: 64 << 10,
            begins_at: dice.below(self.ends_at / 4),
        });
    }

    /// How long the device takes for a request that moves so many bytes.
    pub fn service_ns(&self, bytes: u64) -> u64 {
        self.service_base_ns + bytes * self.service_4k_ns / 4096
    }

    /// The device time that the proxy's profile says, which the limits count.
    pub fn profiled_ns(&self, bytes: u64) -> u64 {
        bytes * self.service_4k_ns / 4096
    }
}
