//! Options of open sockets, set from outside and seen by a server that looks at its own sockets.

mod shared_journal;

use shared_journal::SharedJournal;
use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;
use tailwright_experiment::{
    KnobTarget, LinuxSettings, PlannedChange, Setting, SettingStore as _, UndoOutcome, UndoneChange,
    identity, knob, missing_right,
};
use testkit::{OptionServer, SeenOptions};

const LIMIT: Duration = Duration::from_secs(60);

fn target(process: u32, port: u16) -> KnobTarget {
    let processes = identity(process).into_iter().collect();
    KnobTarget { processes, ports: BTreeSet::from([port]), ..KnobTarget::default() }
}

/// The changes of a knob; none, aloud, where this process may not make them.
fn planned(name: &str, target: &KnobTarget, value: &str) -> Option<Vec<PlannedChange>> {
    let knob = knob(name).expect("a knob");
    let changes = knob.plan(target, Some(value)).unwrap_or_else(|error| panic!("{error}"));
    match missing_right(&changes) {
        None => Some(changes),
        Some(error) => {
            testkit::skip(&error.message);
            None
        }
    }
}

fn other_congestion_control(than: &str) -> Option<String> {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").ok()?;
    available.split_whitespace().find(|name| *name != than).map(str::to_owned)
}

fn outcomes(undone: &[UndoneChange]) -> BTreeSet<&'static str> {
    let name = |undone: &UndoneChange| match undone.outcome {
        UndoOutcome::Restored => "restored",
        UndoOutcome::Unchanged => "unchanged",
        UndoOutcome::Gone => "gone",
        UndoOutcome::LeftAlone(_) => "left alone",
        UndoOutcome::Failed(_) => "failed",
    };
    undone.iter().map(name).collect()
}

/// Every option: of connections that are open, of those that begin while it is on, and of those that begin afterwards;
/// undone by the switch itself, and from the journal of one that was killed.
#[test]
fn the_server_sees_what_is_set_and_undone() {
    let Some(server) = OptionServer::start() else { return };
    let mut first = server.connect();
    let before = first.seen();
    let target = target(server.id(), server.address.port());
    let mut cases = vec![
        ("nodelay", "1".to_owned(), SeenOptions { no_delay: true, ..before.clone() }),
        ("socket-busy-poll", "77".to_owned(), SeenOptions { busy_poll_us: 77, ..before.clone() }),
    ];
    match other_congestion_control(&before.congestion_control) {
        None => testkit::skip("there is one congestion control"),
        Some(name) => {
            let on = SeenOptions { congestion_control: name.clone(), ..before.clone() };
            cases.push(("socket-congestion-control", name, on));
        }
    }
    for (name, value, on) in cases {
        for is_killed in [false, true] {
            let Some(changes) = planned(name, &target, &value) else { continue };
            let journal = SharedJournal::default();
            let mut switch = journal.switch();
            assert_eq!(switch.is_set(&changes), Ok(false));
            assert_eq!(switch.on(&changes), Ok(Vec::new()), "{name}: all is as asked");
            assert_eq!((first.seen(), switch.is_set(&changes)), (on.clone(), Ok(true)), "{name}");
            let mut later = server.connect();
            assert_eq!(switch.keep_on(), Ok(false));
            assert_eq!(later.seen(), on, "{name}");
            let closed = server.connect();
            assert_eq!(switch.keep_on(), Ok(false));
            drop(closed);
            let undone = match is_killed {
                false => switch.off(),
                true => {
                    journal.kill(switch);
                    journal.switch().off()
                }
            };
            // Connections of the case before may have been open when this one was planned.
            let all = outcomes(&undone);
            let is_right = all.contains("restored") && all.is_subset(&BTreeSet::from(["restored", "gone"]));
            assert!(is_right, "{name}: {undone:?}");
            assert_eq!((first.seen(), later.seen()), (before.clone(), before.clone()), "{name}");
            assert_eq!(server.connect().seen(), before, "{name}: the listening socket is as it was");
            assert!(journal.is_empty());
        }
    }
}

#[test]
fn closed_sockets_and_other_processes_are_left_alone() {
    let Some(server) = OptionServer::start() else { return };
    let (mut stays, closed) = (server.connect(), server.connect());
    let target = target(server.id(), server.address.port());
    let Some(changes) = planned("nodelay", &target, "1") else { return };
    let journal = SharedJournal::default();
    let mut switch = journal.switch();
    switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
    drop(closed);
    // The server closes its side when it sees that.
    let mut store = LinuxSettings::default();
    let mut count = || {
        let is_open = |change: &&PlannedChange| {
            matches!(change.setting, Setting::Socket { .. })
                && store.read(&change.setting).is_ok_and(|value| value.is_some())
        };
        changes.iter().filter(is_open).count()
    };
    let planned = changes.len() - 1;
    testkit::wait_until(LIMIT, "the server closes the connection", || count() < planned);
    journal.kill(switch);
    // Its record as of a process that has got the number since.
    let start = target.processes[0].start.to_string();
    let reused = journal.replaced(&format!("\"start\":{start}"), "\"start\":7");
    assert_eq!(outcomes(&reused.switch().off()), BTreeSet::from(["gone"]));
    assert!(stays.seen().no_delay);
    let undone = journal.switch().off();
    assert_eq!(outcomes(&undone), BTreeSet::from(["gone", "restored"]), "{undone:?}");
    assert!(!stays.seen().no_delay);
}

#[test]
fn what_the_server_sets_itself_is_left_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    let _client = TcpStream::connect(address).expect("it listens");
    let (accepted, _) = listener.accept().expect("somebody connects");
    let Some(changes) = planned("socket-busy-poll", &target(std::process::id(), address.port()), "60") else {
        return;
    };
    let mut switch = SharedJournal::default().switch();
    switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
    machine::busy_poll::set_busy_poll_us(&accepted, 20).expect("it is ours");
    let undone = switch.off();
    let is_named = |undone: &&UndoneChange| undone.outcome == UndoOutcome::LeftAlone("20".into());
    assert_eq!(undone.iter().filter(is_named).count(), 1, "{undone:?}");
    assert_eq!(machine::busy_poll::busy_poll_us(&accepted).expect("it is open"), 20);
    assert_eq!(machine::busy_poll::busy_poll_us(&listener).expect("it is open"), 0);
}

/// A connection that has inherited from the listening socket and is accepted after that one is as before.
#[test]
fn connections_that_wait_to_be_accepted_are_undone_too() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    let target = target(std::process::id(), address.port());
    let Some(changes) = planned("nodelay", &target, "1") else { return };
    let mut switch = SharedJournal::default().switch();
    switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
    let client = TcpStream::connect(address).expect("it listens");
    let no_delay = |socket: &dyn AsFd| rustix::net::sockopt::tcp_nodelay(socket.as_fd()).expect("it is open");
    let accepted = std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            testkit::wait_until(LIMIT, "the listening socket is as before", || !no_delay(&listener));
            listener.accept().expect("somebody waits").0
        });
        let undone = switch.off();
        assert_eq!(outcomes(&undone), BTreeSet::from(["restored"]), "{undone:?}");
        accepting.join().expect("it accepts")
    });
    assert!(!no_delay(&accepted));
    drop(client);
}

#[test]
fn a_server_that_never_accepts_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    let Some(changes) = planned("nodelay", &target(std::process::id(), address.port()), "1") else { return };
    let mut switch = SharedJournal::default().switch();
    switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
    let _client = TcpStream::connect(address).expect("it listens");
    let undone = switch.off();
    let failed = undone.iter().find_map(|undone| match &undone.outcome {
        UndoOutcome::Failed(error) => Some(error.message.clone()),
        _ => None,
    });
    assert!(failed.is_some_and(|message| message.contains("does not accept")), "{undone:?}");
    listener.accept().expect("somebody waits");
    assert_eq!(outcomes(&switch.off()), BTreeSet::from(["restored", "unchanged"]));
}
