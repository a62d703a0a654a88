//! A server's own access control works as without a proxy, by `source`, `announce` and `allow` of a
//! front. Hosts are network namespaces; routes are those of docs/reference/proxy.md.

mod proxy;
mod traffic;

use enforce::deployment::Deployment;
use enforce::storage::{Proxy, ProxyOptions};
use proxy::{Running, profile, say};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use traffic::{Testbed, lacking, within};

/// As in docs/reference/proxy.md: answers to clients from a server on the proxy's host go to the proxy.
const ROUTES_ON_ONE_HOST: [&str; 4] = [
    "rule add from 127.0.0.0/8 iif lo lookup 123",
    "route add local 0.0.0.0/0 dev lo table 123",
    "-6 rule add from ::1 iif lo lookup 123",
    "-6 route add local ::/0 dev lo table 123",
];
/// Answers from a server on another host go to the proxy's sockets.
const MARKS: &str = "add table inet proxy
add chain inet proxy answers { type filter hook prerouting priority mangle; }
add rule inet proxy answers socket transparent 1 meta mark set 1
";
const ROUTES_OF_MARKS: [&str; 2] =
    ["rule add fwmark 1 lookup 123", "route add local 0.0.0.0/0 dev lo table 123"];
const FRONT: u16 = 11211;
const SERVER: u16 = 21211;

/// A connection as seen by the server: its source, and its first bytes.
type Seen = (SocketAddr, Vec<u8>);

fn testbed(hosts: &[&str]) -> Option<Testbed> {
    match lacking() {
        Some(lack) => {
            testkit::skip(&lack);
            None
        }
        None => Some(Testbed::new(hosts)),
    }
}

fn lines(testbed: &Testbed, host: &str, lines: &[&str]) {
    lines.iter().for_each(|line| drop(testbed.run(&format!("ip -n {} {line}", testbed.netns(host)))));
}

/// Starts a memcached-like server that answers `version`, and reports its connections.
fn witness(netns: &str, at: SocketAddr) -> Receiver<Seen> {
    let (sender, seen) = channel();
    let listener = within(netns, move || TcpListener::bind(at).expect("the address is free")).join().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let peer = stream.peer_addr().expect("it is connected");
                let mut is_first = true;
                let mut line = Vec::new();
                let mut byte = [0];
                while stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    line.push(byte[0]);
                    if !line.ends_with(b"version\r\n") {
                        continue;
                    }
                    if std::mem::take(&mut is_first) {
                        let _ = sender.send((peer, line.clone()));
                    }
                    line.clear();
                    let _ = stream.write_all(b"VERSION 1\r\n");
                }
            });
        }
    });
    seen
}

/// Returns hosts with a front for memcached for each tuple, with its further fields. Each client has a connection to
/// the server of its own.
fn hosts(fronts: &[(SocketAddr, SocketAddr, &str)]) -> String {
    let mut text = String::new();
    for (listen, forward, fields) in fronts {
        text += &format!(
            "{{ protocol = \"memcached\", listen = \"{listen}\", forward = \"{forward}\", share = false, {fields} }},"
        );
    }
    format!(
        "host = [{{ name = \"here\", device.lo = \"1Gbps\" }}]\n[[server]]\nname = \"ssd\"\nhost = \"here\"\n\
         address = [\"10.0.0.1\"]\n[server.storage]\nprofile = \"none\"\nfront = [{text}]"
    )
}

fn options(hosts: &str) -> ProxyOptions {
    let deployment = Deployment::parse(hosts).unwrap_or_else(|error| panic!("{error}\n{hosts}"));
    ProxyOptions::new("ssd", deployment, None, profile())
}

fn start(netns: &str, hosts: &str) -> Running {
    let options = options(hosts);
    within(netns, move || Running::start(options)).join().expect("the proxy starts")
}

/// Opens a connection from a port of a host, 0 for any.
fn connect(netns: &str, port: u16, to: SocketAddr) -> TcpStream {
    let stream = within(netns, move || {
        let (family, any): (_, IpAddr) = match to {
            SocketAddr::V4(_) => (AddressFamily::INET, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (AddressFamily::INET6, Ipv6Addr::UNSPECIFIED.into()),
        };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        rustix::net::bind(&socket, &SocketAddr::new(any, port)).expect("the port is free");
        rustix::net::connect(&socket, &to).expect("the proxy listens");
        TcpStream::from(socket)
    });
    let stream = stream.join().expect("a client connects");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("only so that a test that fails ends");
    stream
}

fn ask_version(stream: &mut TcpStream) {
    assert_eq!(say(stream, b"version\r\n", b"\r\n"), b"VERSION 1\r\n");
}

/// Returns true if the proxy closes the connection without an answer.
fn is_turned_away(mut stream: TcpStream) -> bool {
    // Either the write or the following read may find the connection closed.
    let _ = stream.write_all(b"version\r\n");
    !stream.read(&mut [0]).is_ok_and(|read| read > 0)
}

#[test]
fn a_server_sees_what_the_front_says() {
    let Some(testbed) = testbed(&["client", "store"]) else { return };
    lines(&testbed, "store", &ROUTES_ON_ONE_HOST);
    let store = testbed.network.host("store").expect("it is there");
    for (ip, loopback) in [(IpAddr::from(store.ipv4), "127.0.0.1"), (IpAddr::from(store.ipv6), "::1")] {
        let forward = SocketAddr::new(loopback.parse().unwrap(), SERVER);
        let seen = witness(&store.netns, forward);
        for (port, source) in (FRONT..).zip(["proxy", "reserved", "client"]) {
            let front = SocketAddr::new(ip, port);
            let proxy = start(&store.netns, &hosts(&[(front, forward, &format!("source = \"{source}\""))]));
            for port in [700, 50_000] {
                let mut client = connect(testbed.netns("client"), port, front);
                ask_version(&mut client);
                let (peer, _) = seen.recv().expect("the server was asked");
                match source {
                    "client" => assert_eq!(peer, client.local_addr().unwrap()),
                    _ => {
                        assert_eq!(peer.ip(), forward.ip());
                        assert_eq!(peer.port() < 1024, source == "reserved", "{peer}");
                    }
                }
            }
            assert_eq!(proxy.drain().snapshot.cut, 0);
        }
    }
}

/// A client may use one port for two fronts. Its connections to a server cannot both have it, and the
/// second gets another port that only root may use.
#[test]
fn a_port_that_is_taken_is_replaced_by_one_of_its_kind() {
    let Some(testbed) = testbed(&["client", "store"]) else { return };
    lines(&testbed, "store", &ROUTES_ON_ONE_HOST);
    let forward = SocketAddr::from(([127, 0, 0, 1], SERVER));
    let seen = witness(testbed.netns("store"), forward);
    let fronts = [FRONT, FRONT + 100].map(|port| SocketAddr::new(testbed.ipv4("store"), port));
    let _proxy =
        start(testbed.netns("store"), &hosts(&fronts.map(|front| (front, forward, "source = \"client\""))));
    for port in [700, 50_000] {
        let mut clients = fronts.map(|front| connect(testbed.netns("client"), port, front));
        clients.iter_mut().for_each(ask_version);
        let [(first, _), (second, _)] = [(); 2].map(|()| seen.recv().expect("the server was asked"));
        assert_eq!(first, SocketAddr::new(testbed.ipv4("client"), port));
        assert_eq!(second.ip(), first.ip());
        assert!(second.port() != port && (second.port() < 1024) == (port < 1024), "{second}");
    }
}

#[test]
fn a_server_on_another_host_sees_the_client() {
    let Some(testbed) = testbed(&["client", "proxy", "server"]) else { return };
    lines(&testbed, "proxy", &ROUTES_OF_MARKS);
    let rules = testbed.state.with_extension("nft");
    std::fs::write(&rules, MARKS).expect("a file");
    testbed.run(&format!("ip netns exec {} nft -f {}", testbed.netns("proxy"), rules.display()));
    let to_client = format!("route add {} via {}", testbed.ipv4("client"), testbed.ipv4("proxy"));
    lines(&testbed, "server", &[&to_client]);
    let forward = SocketAddr::new(testbed.ipv4("server"), SERVER);
    let seen = witness(testbed.netns("server"), forward);
    let front = SocketAddr::new(testbed.ipv4("proxy"), FRONT);
    let _proxy = start(testbed.netns("proxy"), &hosts(&[(front, forward, "source = \"client\"")]));
    let mut client = connect(testbed.netns("client"), 0, front);
    ask_version(&mut client);
    assert_eq!(seen.recv().expect("the server was asked").0, client.local_addr().unwrap());
}

/// Parses the fields of a PROXY header by its specification. Returns them and the bytes behind it.
fn header(bytes: &[u8]) -> (SocketAddr, SocketAddr, &[u8]) {
    let (signature, rest) = bytes.split_at(12);
    assert_eq!(signature, [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]);
    assert_eq!(rest[0] >> 4, 2, "the version");
    assert_eq!(rest[0] & 15, 1, "on behalf of a client");
    let len = usize::from(rest[2]) << 8 | usize::from(rest[3]);
    let (fields, payload) = rest[4..].split_at(len);
    assert_eq!(rest[1] & 15, 1, "a stream");
    let width = match rest[1] >> 4 {
        1 => 4,
        2 => 16,
        other => panic!("family {other}"),
    };
    let ip = |at: usize| match <[u8; 16]>::try_from(&fields[at..at + width]) {
        Ok(octets) => IpAddr::from(octets),
        Err(_) => IpAddr::from(<[u8; 4]>::try_from(&fields[at..at + width]).expect("four bytes")),
    };
    let port = |at: usize| u16::from(fields[at]) << 8 | u16::from(fields[at + 1]);
    let ports = 2 * width;
    (SocketAddr::new(ip(0), port(ports)), SocketAddr::new(ip(width), port(ports + 2)), payload)
}

#[test]
fn a_server_is_told_of_the_client_before_its_first_byte() {
    let Some(testbed) = testbed(&["client", "store"]) else { return };
    let store = testbed.network.host("store").expect("it is there");
    let forward = SocketAddr::from(([127, 0, 0, 1], SERVER));
    let seen = witness(&store.netns, forward);
    // It listens at all addresses, of both families.
    let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, FRONT));
    let proxy = start(&store.netns, &hosts(&[(everywhere, forward, "announce = true")]));
    for ip in [IpAddr::from(store.ipv4), IpAddr::from(store.ipv6)] {
        let front = SocketAddr::new(ip, FRONT);
        let mut client = connect(testbed.netns("client"), 0, front);
        ask_version(&mut client);
        let (peer, said) = seen.recv().expect("the server was asked");
        assert_eq!(peer.ip(), forward.ip());
        assert_eq!(header(&said), (client.local_addr().unwrap(), front, &b"version\r\n"[..]));
    }
    assert_eq!(proxy.drain().snapshot.cut, 0);
}

#[test]
fn who_is_not_allowed_does_not_connect() {
    let Some(testbed) = testbed(&["client", "stranger", "store"]) else { return };
    let forward = SocketAddr::from(([127, 0, 0, 1], SERVER));
    let seen = witness(testbed.netns("store"), forward);
    let front = SocketAddr::new(testbed.ipv4("store"), FRONT);
    let allowing = |host: &str| hosts(&[(front, forward, &format!("allow = [\"{}\"]", testbed.ipv4(host)))]);
    let proxy = start(testbed.netns("store"), &allowing("client"));
    let mut client = connect(testbed.netns("client"), 0, front);
    ask_version(&mut client);
    let mut count = 0;
    let mut turn_away = |host: &str| {
        assert!(is_turned_away(connect(testbed.netns(host), 0, front)), "{host}");
        count += 1;
        assert_eq!(proxy.remote.status().expect("it runs").turned_away, count);
    };
    turn_away("stranger");
    // The other way round, while it runs: connected clients are cut off.
    let deployment = Deployment::parse(&allowing("stranger")).expect("a hosts file");
    assert_eq!(proxy.remote.configure(None, Some(deployment)), Ok(true));
    assert!(is_turned_away(client), "it was connected");
    turn_away("client");
    ask_version(&mut connect(testbed.netns("stranger"), 0, front));
    // A policy alone does not change that.
    assert_eq!(proxy.remote.configure(None, None), Ok(false));
    turn_away("client");
    drop(seen.recv().expect("the client"));
    drop(seen.recv().expect("the stranger"));
    assert!(seen.try_recv().is_err(), "the server has seen nobody else");
}

#[test]
fn a_hosts_file_with_other_fronts_is_refused_while_it_runs() {
    let forward = testkit::free_address();
    let text = |fields: &str| hosts(&[(SocketAddr::from(([127, 0, 0, 1], 0)), forward, fields)]);
    let proxy = Running::start(options(&text("")));
    for other in
        [text("source = \"reserved\""), text("announce = true"), text("").replace("memcached", "nbd")]
    {
        let refused = proxy.remote.configure(None, Some(Deployment::parse(&other).expect("a hosts file")));
        assert!(refused.is_err_and(|error| error.message.contains("other fronts")), "{other}");
    }
    let same = Deployment::parse(&text("")).expect("a hosts file");
    assert_eq!(proxy.remote.configure(None, Some(same)), Ok(false));
}

/// Returns the result of `Proxy::bind` in a thread that has only these capabilities.
fn bind_with(kept: CapabilitySet, hosts: &str) -> Result<Vec<&'static str>, String> {
    let options = options(hosts);
    let bound = std::thread::spawn(move || {
        let all = capabilities(None).expect("the thread's own");
        let kept = kept & all.permitted;
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: all.inheritable };
        set_capabilities(None, sets).expect("giving up is allowed");
        Proxy::bind(options).map(|proxy| proxy.capabilities().iter().copied().collect())
    });
    bound
        .join()
        .expect("no panic")
        .map_err(|error| format!("{}; {}", error.message, error.hint.unwrap_or_default()))
}

#[test]
fn missing_privileges_are_named_at_the_start() {
    if !enforce::command::may_configure_networks() {
        return testkit::skip("without root there is no privilege to give up");
    }
    let text = |source: &str| {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        hosts(&[(listen, testkit::free_address(), &format!("source = \"{source}\""))])
    };
    let none = CapabilitySet::empty();
    assert_eq!(bind_with(none, &text("proxy")), Ok(vec![]));
    for source in ["reserved", "client"] {
        let needed = bind_with(CapabilitySet::all(), &text(source)).expect("root may");
        let said = bind_with(none, &text(source)).expect_err("it takes a privilege");
        assert!(needed.iter().all(|name| said.contains(name)), "{said}");
    }
    // The capabilities reported as required are sufficient.
    assert!(bind_with(CapabilitySet::NET_BIND_SERVICE, &text("reserved")).is_ok());
    assert!(bind_with(CapabilitySet::NET_BIND_SERVICE | CapabilitySet::NET_RAW, &text("client")).is_ok());
    assert!(bind_with(CapabilitySet::NET_RAW, &text("client")).is_err());
}
