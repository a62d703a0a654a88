//! Attribution of requests to workloads: by the server's grants, effective at once when the policy
//! changes, and independent of other clients' claims.

use crate::alone_on_the_machine;
use crate::caller::{BLOCK, Caller};
use crate::ground::{GOLD, Ground, GroundSetting, SILVER, stranger, usual_clients, usual_policy};
use crate::proxy::policy;
use crate::server::RunningServer;
use enforce::storage::UNKNOWN_WORKLOAD;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use testkit::{Rounds, wait_until};
use wire::Protocol::{Nbd, Nfs};

const BY_EXPORT: &str = r#"
    [[client]]
    workload = "gold"
    host = "here"
    export = "/export/gold"
    [[client]]
    workload = "gold"
    host = "here"
    export = "/no/gold/abc"
    [[client]]
    workload = "bulk"
    host = "here"
    export = "/export/bulk""#;
const COUNT: u64 = 50;
/// Timeout for any step on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn start(clients: &str, policy: Option<model::Policy>) -> Ground {
    let setting = GroundSetting::SMALL;
    Ground::before(RunningServer::start(setting.channels, setting.cost), setting, clients, policy)
}

fn by_export() -> Ground {
    start(BY_EXPORT, Some(export_policy()))
}

fn export_policy() -> model::Policy {
    policy(&[("gold", 0, &[(1.0, 1.0)]), ("bulk", 1, &[(1.0, 1.0)])])
}

/// Sends all mounts at once, and reads all replies.
fn mount(ground: &Ground, from: Ipv4Addr, paths: &[&str]) -> Caller {
    let mut caller = Caller::connect(&ground.fronts, Nfs, from, b'x').expect("the proxy listens");
    for (path, xid) in paths.iter().zip(1..) {
        caller.call(|calls, _| calls.mount(xid, path.as_bytes()));
    }
    caller.send().expect("the proxy reads");
    paths.iter().for_each(|_| drop(caller.reply().expect("every MNT is answered")));
    caller
}

/// Reads with the handle of an export's root, on a separate connection.
fn read(ground: &Ground, from: Ipv4Addr, handle: &str) {
    let mut caller = Caller::connect(&ground.fronts, Nfs, from, b'x').expect("the proxy listens");
    caller.handle = handle.as_bytes().to_vec();
    (0..COUNT).for_each(|_| caller.read(BLOCK));
    caller.send().expect("the proxy reads");
    (0..COUNT).for_each(|_| drop(caller.reply().expect("every READ is answered")));
}

/// Two clients that always have 32 requests waiting become their workloads' when a policy gives them the
/// server. Only requests sent before may still count as unknown.
#[test]
fn a_policy_reaches_busy_connections() {
    let _alone = alone_on_the_machine();
    let mut elsewhere = usual_policy();
    elsewhere.workloads.iter_mut().for_each(|workload| workload.server = Some("elsewhere".to_owned()));
    let ground = start(usual_clients(), Some(elsewhere));
    let over = AtomicBool::new(false);
    let busy = |from| {
        let begun = Instant::now();
        let mut caller = Caller::connect(&ground.fronts, Nbd, from, b'b').expect("a handshake");
        (0..32).for_each(|_| caller.read(BLOCK));
        caller.send().expect("the proxy reads");
        while !over.load(SeqCst) && begun.elapsed() < 2 * PATIENCE {
            caller.reply().expect("an answer");
            caller.read(BLOCK);
            caller.send().expect("the proxy reads");
        }
    };
    let late = std::thread::scope(|scope| {
        scope.spawn(|| busy(GOLD));
        scope.spawn(|| busy(SILVER));
        wait_until(PATIENCE, "500 requests of nobody", || ground.requests_of(UNKNOWN_WORKLOAD) >= 500);
        ground.handle.configure(Some(usual_policy()), None).expect("it is a policy");
        let before = ground.requests_of(UNKNOWN_WORKLOAD);
        let served = ground.server.counts().served.len();
        wait_until(PATIENCE, "3,000 more requests", || ground.server.counts().served.len() >= served + 3000);
        let late = ground.requests_of(UNKNOWN_WORKLOAD) - before;
        over.store(true, SeqCst);
        late
    });
    assert!(late <= 64, "{late} requests counted as nobody's after the policy had come");
    assert!(ground.requests_of("gold") > 0);
}

#[test]
fn a_refused_mount_gives_nothing() {
    let _alone = alone_on_the_machine();
    // Paths of equal length.
    let refused = "/no/gold/abc";
    let granted = "/export/bulk";
    for paths in [&[refused][..], &[refused, granted], &[granted, refused]] {
        let ground = by_export();
        drop(mount(&ground, stranger(1), paths));
        read(&ground, stranger(1), "/export/bulk");
        assert_eq!(ground.requests_of("gold"), 0, "{paths:?}");
    }
}

#[test]
fn a_mount_of_another_export_takes_nothing_away() {
    let _alone = alone_on_the_machine();
    let ground = by_export();
    let _gold = mount(&ground, GOLD, &["/export/gold"]);
    read(&ground, GOLD, "/export/gold");
    assert_eq!(ground.requests_of("gold"), COUNT);
    // Any client on the same host may mount it.
    drop(mount(&ground, GOLD, &["/export/bulk"]));
    read(&ground, GOLD, "/export/gold");
    assert_eq!(ground.requests_of("gold"), 2 * COUNT);
}

#[test]
fn a_granted_mount_does_not_give_the_files_of_another_workload_priority() {
    let _alone = alone_on_the_machine();
    // Repeated, because the client's mount races with the proxy's own queries.
    for _ in 0..10 {
        let ground = by_export();
        drop(mount(&ground, stranger(1), &["/export/gold"]));
        read(&ground, stranger(1), "/export/bulk");
        assert_eq!(ground.requests_of("gold"), 0);
    }
}

#[test]
fn a_restart_forgets_no_mounts() {
    let _alone = alone_on_the_machine();
    let mut ground = by_export();
    drop(mount(&ground, GOLD, &["/export/gold"]));
    read(&ground, GOLD, "/export/gold");
    ground.restart_proxy(BY_EXPORT, Some(export_policy()));
    // Clients keep their handles and do not mount again.
    read(&ground, GOLD, "/export/gold");
    assert_eq!(ground.requests_of("gold"), COUNT);
}

/// An NBD connection that only its export identifies is unknown before the export is granted. The option
/// that selects the export must not wait for long.
#[test]
fn an_export_is_granted_beside_a_flood() {
    let _alone = alone_on_the_machine();
    let clients = "[[client]]\nworkload = \"gold\"\nhost = \"here\"\nexport = \"g\"";
    let connect = |ground: &Ground| {
        let begun = Instant::now();
        let mut caller = Caller::connect(&ground.fronts, Nbd, GOLD, b'g').expect("a handshake");
        caller.read(BLOCK);
        caller.send().expect("the proxy reads");
        caller.reply().expect("an answer");
        begun.elapsed()
    };
    Rounds { count: 3, must_hold: 2 }.check(|| {
        let ground = start(clients, Some(export_policy()));
        let flood = |_| Caller::connect(&ground.fronts, Nbd, stranger(1), b'f').expect("a handshake");
        let mut floods: Vec<Caller> = (0..8).map(flood).collect();
        let alone: Duration = (0..5).map(|_| connect(&ground)).sum();
        for flood in &mut floods {
            (0..1000).for_each(|_| flood.read(BLOCK));
            flood.send().expect("the proxy reads");
        }
        let beside: Duration = (0..5).map(|_| connect(&ground)).sum();
        if beside < 10 * alone { Ok(()) } else { Err(format!("alone {alone:?}, beside {beside:?}")) }
    });
}
