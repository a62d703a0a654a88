//! Options of open sockets, set by BPF programs and checked by servers that read the options of their own
//! sockets. Requires root, or a guest.

mod shared_journal;

use experiment::{
    KnobSwitch, KnobTarget, LinuxSettings, PlannedChange, Setting, SocketsTakenBack, UndoOutcome,
    UndoneChange, identity, knob, missing_right,
};
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shared_journal::SharedJournal;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use testkit::guest::{Guest, GuestCheck, GuestKernel, be_first_program, run_checks};
use testkit::{OptionServer, OptionServerPlace, wait_until, with_bpf_file_system};

const LIMIT: Duration = Duration::from_secs(60);

type TestSwitch = KnobSwitch<LinuxSettings, SharedJournal>;

fn target(processes: &[u32], port: u16) -> KnobTarget {
    let processes = processes.iter().filter_map(|id| identity(*id)).collect();
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

/// A server in this process, with a connection that it has accepted.
struct OwnServer {
    listener: TcpListener,
    address: SocketAddr,
    accepted: TcpStream,
    clients: Vec<TcpStream>,
}

impl OwnServer {
    fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        let clients = vec![TcpStream::connect(address).expect("it listens")];
        let (accepted, _) = listener.accept().expect("somebody connects");
        Self { listener, address, accepted, clients }
    }

    fn new() -> Self {
        Self::at("127.0.0.1:0")
    }

    fn target(&self) -> KnobTarget {
        target(&[std::process::id()], self.address.port())
    }

    /// Another connection.
    fn another(&mut self) -> TcpStream {
        self.clients.push(TcpStream::connect(self.address).expect("it listens"));
        self.listener.accept().expect("somebody connects").0
    }
}

fn no_delay(socket: &impl AsFd) -> bool {
    sockopt::tcp_nodelay(socket).expect("it is open")
}

fn congestion_control(socket: &impl AsFd) -> String {
    sockopt::tcp_congestion(socket).expect("it is open")
}

fn on(switch: &mut TestSwitch, changes: &[PlannedChange]) {
    let different = switch.on(changes).unwrap_or_else(|error| panic!("{error}"));
    assert!(different.is_empty(), "{different:?}");
}

/// Keeps the knob on until a condition holds.
fn keep_on_until(switch: &mut TestSwitch, what: &str, mut condition: impl FnMut() -> bool) {
    wait_until(LIMIT, what, || {
        assert_eq!(switch.keep_on(), Ok(false));
        condition()
    });
}

/// Returns the outcome of undoing the only change.
fn taken_back(undone: &[UndoneChange]) -> SocketsTakenBack {
    match undone {
        [UndoneChange { outcome: UndoOutcome::SocketsTakenBack(taken), .. }] => *taken,
        other => panic!("{other:?}"),
    }
}

/// Returns true if the kernel reports the server's own setsockopt calls, also those with the knob's value.
fn is_server_seen(switch: &TestSwitch) -> bool {
    switch.socket_totals().is_some_and(|totals| totals.is_server_seen)
}

fn folder_of(changes: &[PlannedChange]) -> PathBuf {
    match &changes[0].setting {
        Setting::Sockets { sockets, .. } => sockets.folder.clone(),
        other => panic!("{other:?}"),
    }
}

/// Sockets that listen, are connected, wait to be accepted, or begin while the knob is on; not those of
/// another server.
#[test]
fn all_sockets_of_a_server_are_set_and_given_back() {
    with_bpf_file_system(|| {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let mut server = OwnServer::at(address);
            let other = OwnServer::at(address);
            server.clients.push(TcpStream::connect(server.address).expect("it listens"));
            let Some(changes) = planned("nodelay", &server.target(), "on") else { return };
            let mut switch = SharedJournal::default().switch();
            assert_eq!(switch.is_set(&changes), Ok(false));
            on(&mut switch, &changes);
            assert!(no_delay(&server.listener) && no_delay(&server.accepted));
            assert_eq!(switch.is_set(&changes), Ok(true));
            server.clients.push(TcpStream::connect(server.address).expect("it listens"));
            assert_eq!(switch.keep_on(), Ok(false));
            assert!(!no_delay(&other.listener) && !no_delay(&other.accepted), "another port");
            assert!(server.clients.iter().all(|client| !no_delay(client)), "the other end");
            // Two wait to be accepted: one since before, and one that has inherited it.
            let taken = taken_back(&switch.off());
            assert_eq!(taken, SocketsTakenBack { listening: 1, connected: 3, of_server: 0 });
            for _ in 0..2 {
                assert!(!no_delay(&server.listener.accept().expect("somebody waits").0));
            }
            assert!(
                !no_delay(&server.listener) && !no_delay(&server.accepted) && !no_delay(&server.another())
            );
            assert!(!folder_of(&changes).exists() && switch.is_off());
        }
    });
}

#[test]
fn what_was_set_when_the_program_was_killed_is_undone_once() {
    with_bpf_file_system(|| {
        let mut server = OwnServer::new();
        let Some(changes) = planned("nodelay", &server.target(), "on") else { return };
        let journal = SharedJournal::default();
        let mut switch = journal.switch();
        on(&mut switch, &changes);
        journal.kill(switch);
        let later = server.another();
        assert!(no_delay(&later), "it inherits from the listening socket");
        let again = journal.copy();
        let taken = taken_back(&journal.switch().off());
        assert_eq!(taken, SocketsTakenBack { listening: 1, connected: 2, of_server: 0 });
        assert!(!no_delay(&later) && !no_delay(&server.accepted) && !no_delay(&server.listener));
        assert!(journal.is_empty() && !folder_of(&changes).exists());
        // As after a crash before the journal was emptied.
        let undone = again.switch().off();
        assert!(matches!(&undone[..], [UndoneChange { outcome: UndoOutcome::Gone, .. }]), "{undone:?}");
        assert!(again.is_empty());
    });
}

/// If a program is killed during an undo, the next one finishes it.
#[test]
fn taking_back_goes_on_where_it_was_cut_short() {
    with_bpf_file_system(|| {
        let mut server = OwnServer::new();
        let Some(changes) = planned("nodelay", &server.target(), "on") else { return };
        let journal = SharedJournal::default();
        let mut switch = journal.switch();
        on(&mut switch, &changes);
        journal.kill(switch);
        let first = journal.copy();
        let second = journal.copy();
        let later = server.another();
        // Its folder is not as it was left, so that the records stay.
        let obstacle = folder_of(&changes).join("obstacle");
        fs::create_dir(&obstacle).expect("folders can be made there");
        let undone = first.switch().off();
        assert!(matches!(&undone[..], [UndoneChange { outcome: UndoOutcome::Failed(_), .. }]), "{undone:?}");
        assert!(!first.is_empty() && !no_delay(&later));
        fs::remove_dir(obstacle).expect("it is ours");
        let undone = second.switch().off();
        assert!(matches!(&undone[..], [UndoneChange { outcome: UndoOutcome::Gone, .. }]), "{undone:?}");
        assert!(!no_delay(&server.listener) && !no_delay(&server.another()) && !folder_of(&changes).exists());
    });
}

#[test]
fn what_the_server_sets_is_set_again_and_is_what_it_has_in_the_end() {
    with_bpf_file_system(|| {
        let mut server = OwnServer::new();
        let early = server.another();
        let late = server.another();
        early.set_nodelay(true).expect("it is open");
        let Some(changes) = planned("nodelay", &server.target(), "off") else { return };
        let mut switch = SharedJournal::default().switch();
        on(&mut switch, &changes);
        assert!(!no_delay(&early) && !no_delay(&late));
        // As nginx does it, which sets it when a connection has had its first request.
        late.set_nodelay(true).expect("it is open");
        keep_on_until(&mut switch, "it is set again", || !no_delay(&late));
        assert_eq!(switch.socket_totals().map(|totals| totals.set_again), Some(1));
        let taken = taken_back(&switch.off());
        assert_eq!(taken, SocketsTakenBack { listening: 0, connected: 2, of_server: 1 });
        assert!(no_delay(&early) && no_delay(&late) && !no_delay(&server.accepted));
    });
}

/// The server sets the value that the knob has set before it, which no look at the socket can tell.
#[test]
fn what_the_server_sets_alike_stays() {
    with_bpf_file_system(|| {
        let mut server = OwnServer::new();
        let second = server.another();
        let third = server.another();
        let Some(changes) = planned("nodelay", &server.target(), "on") else { return };
        for is_killed in [false, true] {
            for socket in [&server.accepted, &second, &third] {
                socket.set_nodelay(false).expect("it is open");
            }
            let journal = SharedJournal::default();
            let mut switch = journal.switch();
            on(&mut switch, &changes);
            if !is_server_seen(&switch) {
                return testkit::skip("this kernel does not say what a server sets (CONFIG_FUNCTION_TRACER)");
            }
            let outliving = ["watcher-0", "watcher-1"].map(|name| folder_of(&changes).join(name).exists());
            assert_eq!(outliving, [true; 2], "what notes it is there after a kill, too");
            if is_killed {
                journal.kill(switch);
                switch = journal.switch();
            }
            let inherited = server.another();
            second.set_nodelay(true).expect("it is open");
            inherited.set_nodelay(true).expect("it is open");
            third.set_nodelay(false).expect("it is open");
            let taken = taken_back(&switch.off());
            assert_eq!(taken.of_server, 3, "killed: {is_killed}");
            assert!(no_delay(&second) && no_delay(&inherited), "killed: {is_killed}");
            assert!(!no_delay(&third) && !no_delay(&server.accepted) && !no_delay(&server.another()));
        }
    });
}

#[test]
fn congestion_control_is_that_of_connections() {
    with_bpf_file_system(|| {
        let mut server = OwnServer::new();
        let before = congestion_control(&server.accepted);
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let available = available.expect("the kernel tells");
        let others: Vec<&str> = available.split_whitespace().filter(|name| *name != before).collect();
        let [value, third] = others[..] else {
            return testkit::skip(&format!("expected three congestion controls, not {available}"));
        };
        let Some(changes) = planned("socket-congestion-control", &server.target(), value) else { return };
        let journal = SharedJournal::default();
        let mut switch = journal.switch();
        assert_eq!(switch.is_set(&changes), Ok(false));
        on(&mut switch, &changes);
        assert_eq!(congestion_control(&server.accepted), value);
        assert_eq!(congestion_control(&server.listener), before, "it would never be forgotten");
        let later = server.another();
        let alike = server.another();
        let unlike = server.another();
        keep_on_until(&mut switch, "connections that begin", || congestion_control(&unlike) == value);
        assert_eq!([&later, &alike].map(congestion_control), [value, value]);
        sockopt::set_tcp_congestion(&alike, value).expect("it is there");
        sockopt::set_tcp_congestion(&unlike, third).expect("it is there");
        sockopt::set_tcp_congestion(&later, "none such").expect_err("it is not there");
        keep_on_until(&mut switch, "it is set again", || congestion_control(&unlike) == value);
        let is_seen = is_server_seen(&switch);
        journal.kill(switch);
        let taken = taken_back(&journal.switch().off());
        let of_server = if is_seen { 2 } else { 1 };
        assert_eq!(taken, SocketsTakenBack { listening: 0, connected: 4, of_server });
        let afterwards = server.another();
        let found = [&server.accepted, &later, &alike, &unlike, &afterwards].map(congestion_control);
        assert_eq!(
            found,
            [before.as_str(), &before, if is_seen { value } else { &before }, third, before.as_str()]
        );
    });
}

/// By IPv6, in a network namespace, and where a child has the connections and outlives the process that is named.
#[test]
fn servers_elsewhere_see_what_is_set_and_undone() {
    with_bpf_file_system(|| {
        for place in
            [OptionServerPlace::LoopbackOfIpv6, OptionServerPlace::OwnNamespace, OptionServerPlace::Child]
        {
            let Some(mut server) = OptionServer::start(place) else { continue };
            let mut client = server.connect();
            let target = target(&[server.id()], server.address.port());
            let Some(changes) = planned("nodelay", &target, "on") else { return };
            let journal = SharedJournal::default();
            let mut switch = journal.switch();
            on(&mut switch, &changes);
            let mut later = server.connect();
            assert!(client.seen().no_delay && later.seen().no_delay, "{place:?}");
            journal.kill(switch);
            if place == OptionServerPlace::Child {
                server.kill_first_process();
            }
            let taken = taken_back(&journal.switch().off());
            assert_eq!(taken, SocketsTakenBack { listening: 1, connected: 2, of_server: 0 }, "{place:?}");
            assert!(!client.seen().no_delay && !later.seen().no_delay, "{place:?}");
        }
    });
}

#[test]
fn a_server_that_is_gone_leaves_nothing_to_undo() {
    with_bpf_file_system(|| {
        let Some(server) = OptionServer::start(OptionServerPlace::OwnNamespace) else { return };
        let Some(changes) = planned("nodelay", &target(&[server.id()], server.address.port()), "on") else {
            return;
        };
        let journal = SharedJournal::default();
        let mut switch = journal.switch();
        on(&mut switch, &changes);
        // The switch holds the namespace of the server; a program that was killed does not.
        journal.kill(switch);
        drop(server);
        let undone = journal.switch().off();
        assert!(matches!(&undone[..], [UndoneChange { outcome: UndoOutcome::Gone, .. }]), "{undone:?}");
        assert!(journal.is_empty() && !folder_of(&changes).exists());
    });
}

#[test]
fn another_program_at_the_same_port_is_told() {
    let Some(server) = OptionServer::start(OptionServerPlace::Loopback) else { return };
    let second = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
    let second = second.expect("a socket can be made");
    sockopt::set_socket_reuseport(&second, true).expect("it has this option");
    sockopt::set_socket_reuseaddr(&second, true).expect("it has this option");
    rustix::net::bind(&second, &server.address).expect("both share the port");
    let plan = |processes: &[u32]| {
        let target = target(processes, server.address.port());
        knob("nodelay").expect("a knob").plan(&target, None)
    };
    assert!(plan(&[server.id()]).is_ok(), "the other one does not listen");
    rustix::net::listen(&second, 1).expect("both share the port");
    let own = std::process::id();
    let error = plan(&[server.id()]).expect_err("connections of both have the port");
    assert!(
        error.message.contains(&format!("process {own} (")) && error.message.contains("as well"),
        "{error}"
    );
    assert!(plan(&[own]).is_err());
    assert!(plan(&[server.id(), own]).is_ok(), "they are one server");
}

/// The knob sets subflows; the congestion control of a connection is that of its first one.
#[test]
fn connections_of_several_paths_are_found() {
    with_bpf_file_system(|| {
        let socket = || {
            let protocol = Some(rustix::net::ipproto::MPTCP);
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, protocol)
        };
        let Ok(listener) = socket() else { return testkit::skip("the kernel has no MPTCP") };
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        rustix::net::bind(&listener, &any_port).expect("there is a port");
        rustix::net::listen(&listener, 8).expect("it is bound");
        let listener = TcpListener::from(listener);
        let address = listener.local_addr().expect("it is bound");
        let client = socket().expect("there was one before");
        rustix::net::connect(&client, &address).expect("it listens");
        let (accepted, _) = listener.accept().expect("somebody connects");
        let _other_client = TcpStream::connect(address).expect("it listens");
        let (plain, _) = listener.accept().expect("somebody connects");
        let before = congestion_control(&accepted);
        let value = if before == "reno" { "cubic" } else { "reno" };
        let target = target(&[std::process::id()], address.port());
        let Some(changes) = planned("socket-congestion-control", &target, value) else { return };
        let mut switch = SharedJournal::default().switch();
        on(&mut switch, &changes);
        assert_eq!([&accepted, &plain].map(congestion_control), [value, value]);
        let taken = taken_back(&switch.off());
        assert_eq!(taken, SocketsTakenBack { listening: 0, connected: 2, of_server: 0 });
        assert_eq!([&accepted, &plain].map(congestion_control), [before.as_str(), &before]);
    });
}

#[test]
fn thousands_of_connections_are_set_and_given_back() {
    const CONNECTIONS: usize = 5000;
    with_bpf_file_system(|| {
        let limit = getrlimit(Resource::Nofile);
        if limit.maximum.is_some_and(|most| most < 2 * CONNECTIONS as u64 + 100) {
            return testkit::skip("a process may not have so many sockets here (RLIMIT_NOFILE)");
        }
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
        let mut server = OwnServer::new();
        let accepted: Vec<TcpStream> = (0..CONNECTIONS).map(|_| server.another()).collect();
        let Some(changes) = planned("nodelay", &server.target(), "on") else { return };
        let journal = SharedJournal::default();
        let mut switch = journal.switch();
        assert_eq!(switch.is_set(&changes), Ok(false));
        let begun = Instant::now();
        on(&mut switch, &changes);
        let set = begun.elapsed();
        assert!(accepted.iter().all(no_delay));
        let begun = Instant::now();
        let taken = taken_back(&switch.off());
        let given_back = begun.elapsed();
        assert_eq!(taken, SocketsTakenBack { listening: 1, connected: CONNECTIONS as u64 + 1, of_server: 0 });
        assert!(!accepted.iter().any(no_delay));
        let pass = switch.socket_totals().and_then(|totals| totals.pass_duration());
        let mut said = std::io::stdout();
        writeln!(said, "{CONNECTIONS} connections: set {set:?}, given back {given_back:?}, pass {pass:?}")
            .expect("it is open");
    });
}

/// Checks in a guest, whose kernel has CONFIG_FUNCTION_TRACER, so that the server's own calls are seen.
const CHECKS: [GuestCheck; 6] = [
    ("all_sockets", all_sockets_of_a_server_are_set_and_given_back),
    ("killed", what_was_set_when_the_program_was_killed_is_undone_once),
    ("cut_short", taking_back_goes_on_where_it_was_cut_short),
    ("set_again", what_the_server_sets_is_set_again_and_is_what_it_has_in_the_end),
    ("alike", what_the_server_sets_alike_stays),
    ("congestion_control", congestion_control_is_that_of_connections),
];

/// Boots a guest of this kernel that runs the test with this name, and the checks in it.
fn expect_all_in_guest(kernel: &GuestKernel, test: &str) {
    if be_first_program(|| run_checks(&CHECKS)) {
        return;
    }
    let Some(ip) = testkit::program("ip") else { return };
    let guest = Guest {
        kernel,
        cpus: 1,
        program: &std::env::current_exe().expect("it is running"),
        arguments: &["--exact", test, "--nocapture"],
        others: &[ip],
        modules: &["net/ipv4/tcp_bbr"],
        cache: Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    let Some(figures) = guest.play() else { return };
    println!("{figures}");
    assert_eq!(figures.skipped(), Vec::<&str>::new());
    figures.expect_passed(&CHECKS);
}

/// Linux 6.1, the oldest that programs may set TCP_NODELAY in.
#[test]
fn debian_12() {
    expect_all_in_guest(&GuestKernel::DEBIAN_12, "debian_12");
}
