//! Scripts of hostile and faulty clients.

mod accidents;
mod crowds;
pub mod requests;
pub mod silence;

use crate::caller::{BLOCK, Caller};
use crate::ground::stranger;
use crate::trial::Scene;
use std::net::Ipv4Addr;
use wire::Protocol;

/// A script, with a similar harmless load.
pub struct HostileScript {
    pub name: &'static str,
    pub protocol: Protocol,
    /// Connections and requests in flight on each, of the plain flood for comparison.
    pub like: (usize, usize),
    /// Size of the flood's reads, with the same device time as the script's requests.
    pub like_size: u32,
    /// Further fields of the storage.
    pub fields: &'static str,
    /// True if the priority client opens a new connection for each request.
    pub connects: bool,
    pub act: fn(&Scene<'_>),
}

const fn script(
    name: &'static str,
    protocol: Protocol,
    like: (usize, usize),
    act: fn(&Scene<'_>),
) -> HostileScript {
    HostileScript { name, protocol, like, like_size: BLOCK, fields: "", connects: false, act }
}

use Protocol::{Memcached, Nbd, Nfs};

/// All scripts.
pub const ALL: &[HostileScript] = &[
    script("flood-nbd", Nbd, (4, 32), |scene| flood(scene, Nbd, (4, 32), BLOCK)),
    script("flood-nfs", Nfs, (4, 32), |scene| flood(scene, Nfs, (4, 32), BLOCK)),
    script("flood-memcached", Memcached, (8, 8), |scene| flood(scene, Memcached, (8, 8), BLOCK)),
    script("huge-zeroes", Nbd, (4, 32), requests::huge_zeroes),
    script("one-xid", Nfs, (1, 200), requests::one_xid),
    script("fragments", Nfs, (4, 32), requests::fragments),
    HostileScript { like_size: 64 << 10, ..script("read-plus", Nfs, (4, 32), requests::read_plus) },
    HostileScript {
        like_size: 64 << 10,
        ..script("unknown-operation", Nfs, (4, 32), requests::unknown_operation)
    },
    script("getattr-flood", Nfs, (4, 32), requests::getattr_flood),
    script("flush-flood", Nbd, (4, 32), requests::flush_flood),
    HostileScript {
        like_size: 1 << 20,
        ..script("large-values", Memcached, (4, 250), requests::large_values)
    },
    HostileScript { like_size: 12_400_000, ..script("multi-gets", Memcached, (4, 4), requests::multi_gets) },
    script("tiny-pipeline", Nbd, (4, 256), requests::tiny_pipeline),
    script("tiny-pipeline-memcached", Memcached, (4, 256), requests::tiny_pipeline_memcached),
    HostileScript {
        fields: "over = \"demote\"",
        ..script("own-huge-reads-demote", Nfs, (4, 32), requests::own_huge_reads)
    },
    HostileScript {
        fields: "over = \"queue\"",
        ..script("own-huge-reads-queue", Nfs, (4, 32), requests::own_huge_reads)
    },
    script("own-huge-zeroes", Nbd, (4, 32), requests::own_huge_zeroes),
    script("silent-commands", Memcached, (1, 32), silence::silent_commands),
    script("quiet-gets", Memcached, (1, 256), silence::quiet_gets),
    script("noreply-sets", Memcached, (1, 256), silence::noreply_sets),
    HostileScript {
        like_size: 256 << 10,
        ..script("slow-callback", Nfs, (1, 256), silence::callback_behind_backlog)
    },
    script("hang-up", Nbd, (8, 256), accidents::hang_up),
    script("half-writes", Nbd, (16, 1), accidents::half_writes),
    script("half-writes-nfs", Nfs, (16, 1), accidents::half_writes_nfs),
    HostileScript {
        like_size: 256 << 10,
        ..script("resets-in-replies", Nbd, (8, 16), accidents::resets_in_replies)
    },
    HostileScript { like_size: 1 << 20, ..script("slow-readers", Nbd, (16, 64), accidents::slow_readers) },
    HostileScript { like_size: 1 << 20, ..script("stallers", Nbd, (16, 64), accidents::stallers) },
    script("slow-writers", Memcached, (16, 1), accidents::slow_writers),
    script("policy-changes", Nbd, (4, 32), accidents::policy_changes),
    script("churn", Nbd, (4, 1), crowds::churn),
    HostileScript { connects: true, ..script("idle-connections", Nbd, (1, 1), crowds::idle_connections) },
    HostileScript {
        connects: true,
        ..script("idle-from-everywhere", Nbd, (1, 1), crowds::idle_from_everywhere)
    },
    HostileScript { connects: true, ..script("half-open", Nbd, (1, 1), crowds::half_open) },
    script("turned-away", Nbd, (1, 1), crowds::turned_away),
];

/// Returns the script with a name.
pub fn named(name: &str) -> &'static HostileScript {
    ALL.iter().find(|script| script.name == name).unwrap_or_else(|| panic!("there is no script {name}"))
}

/// Runs `each` on several threads, and starts the priority client once all have begun.
fn on_threads(scene: &Scene<'_>, count: usize, each: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for number in 0..count {
            let each = &each;
            scope.spawn(move || each(number));
        }
        scene.pause(std::time::Duration::from_millis(50));
        scene.set_ready();
    });
}

/// Opens connections with this many requests in flight each, made by `ask`, and reopens them when they
/// end.
fn pipelines(
    scene: &Scene<'_>,
    protocol: Protocol,
    from: Ipv4Addr,
    (connections, depth): (usize, usize),
    ask: impl Fn(&mut Caller) + Sync,
) {
    on_threads(scene, connections, |_| {
        while !scene.is_over() {
            let _ = pipeline(scene, protocol, from, depth, &ask);
        }
    });
}

fn pipeline(
    scene: &Scene<'_>,
    protocol: Protocol,
    from: Ipv4Addr,
    depth: usize,
    ask: &impl Fn(&mut Caller),
) -> std::io::Result<()> {
    let mut caller = Caller::connect(&scene.ground.fronts, protocol, from, b'f')?;
    for _ in 0..depth {
        ask(&mut caller);
    }
    caller.send()?;
    while !scene.is_over() {
        caller.reply()?;
        ask(&mut caller);
        caller.send()?;
    }
    Ok(())
}

/// Plain best effort.
pub fn flood(scene: &Scene<'_>, protocol: Protocol, like: (usize, usize), size: u32) {
    pipelines(scene, protocol, stranger(1), like, |caller| caller.read(size));
}
