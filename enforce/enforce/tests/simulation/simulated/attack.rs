//! Worlds of one attack: a client of the highest priority, alone and beside hostile clients. Nothing else
//! disturbs it.

use super::faults::FaultLog;
use super::plan::{CallCost, ClientPlan, ClientStyle, MS, WorldPlan};
use super::run::{WorldReport, play_plan};
use enforce::storage::ProxyEngine;
use wire::Protocol;

/// Network of the workload below the one that is attacked.
const SILVER: usize = 1;
/// Network without a workload.
const STRANGERS: usize = 3;
/// Number of requests of the client that is attacked.
pub const REQUESTS: u32 = 300;

/// An attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Two addresses of another workload take all places, each with half a request.
    HalfRequests,
    /// One address opens more connections than the process may open files.
    FewFiles,
    /// The same, where the limit has fallen since the proxy started.
    FewerFiles,
    /// One address asks for many large values on connection after connection, and reads nothing.
    UnreadReplies,
    /// Many clients with requests at work hang up at once, again and again.
    HangUps,
    /// Clients reset their connections with large replies outstanding, one after the other.
    ResetReplies,
    /// Bytes of no protocol, on connection after connection.
    Garbage,
    /// The server answers no request of one address, whose clients come one after the other.
    Unanswered,
}

impl Attack {
    pub const ALL: [Self; 8] = [
        Self::HalfRequests,
        Self::FewFiles,
        Self::FewerFiles,
        Self::UnreadReplies,
        Self::HangUps,
        Self::ResetReplies,
        Self::Garbage,
        Self::Unanswered,
    ];

    /// Plays the world of a seed with the attack, or without its clients.
    pub fn play(self, seed: u64, is_attacked: bool) -> WorldReport {
        let mut plan = world(seed);
        self.prepare(&mut plan);
        if !is_attacked {
            plan.clients.truncate(1);
        }
        play_plan::<ProxyEngine<super::system::SimulatedSystem>>(plan, None, false)
    }

    fn prepare(self, plan: &mut WorldPlan) {
        match self {
            Self::HalfRequests => {
                plan.connections = 40;
                add(plan, 60, |number| ClientPlan {
                    network: SILVER,
                    host: Some(200 + number % 2),
                    ..hostile(ClientStyle::Drip)
                });
            }
            Self::FewFiles | Self::FewerFiles => {
                plan.files_max = 60;
                plan.are_files_known = self == Self::FewFiles;
                add(plan, 80, |_| hostile(ClientStyle::Drip));
            }
            Self::UnreadReplies => add(plan, 80, |number| ClientPlan {
                size_min: 200 << 10,
                size_max: 256 << 10,
                begins_at: number as u64 * 25 * MS,
                ..hostile(ClientStyle::Deaf)
            }),
            Self::ResetReplies => add(plan, 80, |number| ClientPlan {
                size_min: 200 << 10,
                size_max: 256 << 10,
                requests: 20,
                depth: 20,
                begins_at: number as u64 * 25 * MS,
                ..hostile(ClientStyle::Reset)
            }),
            Self::Garbage => add(plan, 40, |number| ClientPlan {
                begins_at: number as u64 * 10 * MS,
                ..hostile(ClientStyle::Garbage)
            }),
            Self::Unanswered => {
                plan.unanswered = Some(STRANGERS);
                add(plan, 40, |number| ClientPlan {
                    depth: 8,
                    begins_at: (600 + number as u64 * 40) * MS,
                    ..hostile(ClientStyle::Flood)
                });
            }
            Self::HangUps => add(plan, 80, |number| ClientPlan {
                size_max: 64,
                requests: 40,
                begins_at: number as u64 * MS,
                ..hostile(ClientStyle::Reset)
            }),
        }
    }
}

fn add(plan: &mut WorldPlan, count: usize, client: impl Fn(usize) -> ClientPlan) {
    plan.clients.extend((0..count).map(client));
}

/// A hostile client of one address, without a workload.
fn hostile(style: ClientStyle) -> ClientPlan {
    ClientPlan {
        front: 0,
        network: STRANGERS,
        host: Some(200),
        style,
        depth: 1,
        think_ns: 0,
        requests: u32::MAX,
        size_min: 1,
        size_max: 4 << 10,
        begins_at: 0,
    }
}

/// The client that is attacked, before an idle server.
fn world(seed: u64) -> WorldPlan {
    let victim = ClientPlan {
        network: 0,
        host: Some(1),
        think_ns: 4 * MS,
        requests: REQUESTS,
        begins_at: 400 * MS,
        ..hostile(ClientStyle::Honest)
    };
    WorldPlan {
        fronts: vec![Protocol::Memcached],
        outstanding: 4,
        channels: 4,
        service_base_ns: 100_000,
        service_4k_ns: 2_000,
        queues_over_limits: false,
        cpu: CallCost::USUAL,
        link: Some((256 << 10, 20_000)),
        round_ns: 2_000,
        is_calm: true,
        clients: vec![victim],
        ends_at: 2500 * MS,
        faults: FaultLog::none(),
        ..WorldPlan::new(seed)
    }
}
