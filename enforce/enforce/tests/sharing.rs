//! Clients of memcached share connections to the server: few of them, with the answers of each client for itself, and
//! none where the server wants to know its clients.

mod proxy;

use enforce::storage::ProxyOptions;
use proxy::{Running, Server, deployment, profile};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Sends a request and reads lines up to one of these.
fn ask(stream: &mut TcpStream, request: &[u8], ends: &[&str]) -> String {
    stream.write_all(request).expect("the proxy reads");
    let mut answer = String::new();
    let mut byte = [0];
    while !(answer.ends_with('\n') && ends.iter().any(|end| answer.lines().last() == Some(end))) {
        stream.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error} behind {answer:?}"));
        answer.push(char::from(byte[0]));
    }
    answer
}

/// Connections that a memcached has now, the asking one and its listener included.
fn connections_of(server: &Server) -> u64 {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let stats = ask(&mut stream, b"stats\r\n", &["END"]);
    let count = stats.lines().find_map(|line| line.strip_prefix("STAT curr_connections ")).expect("a count");
    count.trim().parse().unwrap()
}

#[test]
fn two_hundred_clients_share_a_few_connections() {
    let Some(server) = Server::memcached() else { return };
    let base = connections_of(&server);
    let proxy = Running::plain("memcached", server.address);
    let mut clients: Vec<TcpStream> = (0..200).map(|_| proxy.connect()).collect();
    for round in 0..5 {
        for (number, client) in clients.iter_mut().enumerate() {
            let value = format!("{number}:{round}");
            let set = format!("set key{number} 0 0 {}\r\n{value}\r\n", value.len());
            client.write_all(format!("{set}get key{number}\r\n").as_bytes()).unwrap();
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let value = format!("{number}:{round}");
            let expected = format!("STORED\r\nVALUE key{number} 0 {}\r\n{value}\r\nEND\r\n", value.len());
            assert_eq!(ask(client, b"", &["END"]), expected);
        }
    }
    let shared = connections_of(&server) - base;
    assert!((1..=16).contains(&shared), "200 clients have {shared} connections to the server");
    // A client whose request depends on its connection gets one, and keeps its order.
    let answer = ask(&mut clients[0], b"get key0\r\nverbosity 1\r\nget key0\r\nmn\r\n", &["MN"]);
    assert_eq!(answer, "VALUE key0 0 3\r\n0:4\r\nEND\r\nOK\r\nVALUE key0 0 3\r\n0:4\r\nEND\r\nMN\r\n");
    assert!(connections_of(&server) - base <= shared + 1);
    drop(clients);
    let report = proxy.drain();
    assert_eq!((report.snapshot.cut, report.snapshot.buffered_bytes, report.snapshot.outstanding), (0, 0, 0));
}

#[test]
fn without_sharing_each_client_has_a_connection() {
    let Some(server) = Server::memcached() else { return };
    let base = connections_of(&server);
    let hosts = proxy::apart(deployment("memcached", server.address, "", ""));
    let proxy = Running::start(ProxyOptions::new("ssd", hosts, None, profile()));
    let mut clients: Vec<TcpStream> = (0..20).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        assert_eq!(ask(client, b"get none\r\n", &["END"]), "END\r\n");
    }
    assert_eq!(connections_of(&server) - base, 20);
}

#[test]
fn clients_of_a_server_that_wants_passwords_stay_apart() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "user:word\n").unwrap();
    let args = format!("-u root -l 127.0.0.1 -p PORT -U 0 -Y {}", file.path().display());
    let Some(server) = Server::start("memcached", &args) else { return };
    let proxy = Running::plain("memcached", server.address);
    for _ in 0..3 {
        let mut known = proxy.connect();
        let mut unknown = proxy.connect();
        assert_eq!(ask(&mut known, b"set x 0 0 9\r\nuser word\r\n", &["STORED"]), "STORED\r\n");
        assert_eq!(ask(&mut known, b"set secret 0 0 1\r\ns\r\n", &["STORED"]), "STORED\r\n");
        assert_eq!(ask(&mut known, b"get secret\r\n", &["END"]), "VALUE secret 0 1\r\ns\r\nEND\r\n");
        let refusal = "CLIENT_ERROR unauthenticated";
        assert_eq!(ask(&mut unknown, b"get secret\r\n", &[refusal]), format!("{refusal}\r\n"));
        assert_eq!(ask(&mut known, b"get secret\r\n", &["END"]), "VALUE secret 0 1\r\ns\r\nEND\r\n");
    }
}

/// Length from which a line server sends an answer in two halves, with a pause between them.
const LONG: usize = 1000;

/// A server of this test on a thread for each connection, which answers lines, by the number of the connection.
fn line_server(
    answer: impl Fn(u64, &str) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let number = counted.fetch_add(1, SeqCst);
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while let Some(Ok(line)) = lines.next() {
                    let Some(said) = answer(number, line.trim_end()) else { return };
                    let (first, second) = said.split_at(if said.len() < LONG { 0 } else { said.len() / 2 });
                    let is_gone = (&stream).write_all(first).is_err();
                    if !first.is_empty() {
                        std::thread::sleep(Duration::from_millis(200));
                    }
                    if is_gone || (&stream).write_all(second).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, count)
}

/// Servers of other make may know no version, or hang up at it: nothing of their clients is lost.
#[test]
fn a_server_without_a_version_is_not_shared() {
    for version in [None, Some(b"ERROR\r\n".to_vec()), Some(Vec::new())] {
        let is_silent = version.as_ref().is_some_and(Vec::is_empty);
        let (address, connections) = line_server(move |_, line| match line {
            "version" => version.clone(),
            _ => Some(b"END\r\n".to_vec()),
        });
        let proxy = Running::plain("memcached", address);
        let mut clients: Vec<TcpStream> = (0..10).map(|_| proxy.connect()).collect();
        for client in &mut clients {
            client.write_all(b"get a\r\nget b\r\n").unwrap();
        }
        for client in &mut clients {
            assert_eq!(ask(client, b"", &["END"]), "END\r\n");
            assert_eq!(ask(client, b"", &["END"]), "END\r\n");
        }
        assert!(connections.load(SeqCst) >= 11, "each has a connection, and one was tried");
        assert_eq!(proxy.drain().snapshot.cut, 0, "silent: {is_silent}");
    }
}

/// Keeps a slow request of a client outstanding, and counts how often its connection ends.
fn ask_slowly(proxy: &Running, is_over: &AtomicBool) -> u64 {
    let mut ends = 0;
    let mut stream = proxy.connect();
    while !is_over.load(SeqCst) {
        stream.write_all(b"get slow\r\n").unwrap();
        if stream.read_exact(&mut [0; 5]).is_err() {
            ends += 1;
            stream = proxy.connect();
        }
    }
    ends
}

/// A request at which the server hangs up ends the clients that wait on the same connection. Then nothing is shared
/// for a minute, and it ends its own client only.
#[test]
fn a_request_that_breaks_connections_breaks_a_shared_one_once() {
    let (address, _) = line_server(|_, line| match line {
        "version" => Some(b"VERSION 1.6\r\n".to_vec()),
        "get poison" => None,
        _ => {
            std::thread::sleep(Duration::from_millis(3));
            Some(b"END\r\n".to_vec())
        }
    });
    let proxy = Running::plain("memcached", address);
    let is_over = AtomicBool::new(false);
    let poison = || {
        let mut poisoned = proxy.connect();
        poisoned.write_all(b"get poison\r\n").unwrap();
        assert_eq!(poisoned.read(&mut [0]).unwrap(), 0);
    };
    let count = |poisons: usize| {
        is_over.store(false, SeqCst);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(|| ask_slowly(&proxy, &is_over))).collect();
            for _ in 0..poisons {
                std::thread::sleep(Duration::from_millis(40));
                poison();
            }
            is_over.store(true, SeqCst);
            clients.into_iter().map(|client| client.join().unwrap()).sum::<u64>()
        })
    };
    let ended = count(1);
    println!("the first one ended {ended} of 4 others");
    assert_eq!(count(10), 0, "afterwards it ends its own client only");
}

/// A client gets a connection of its own only when the answers over shared ones have arrived to the last byte.
#[test]
fn a_reply_on_its_way_stays_whole_when_its_client_leaves() {
    let long = format!("VA {LONG}\r\n{}\r\n", "x".repeat(LONG));
    let answer = long.clone();
    let (address, connections) = line_server(move |_, line| match line {
        "version" => Some(b"VERSION 1.6\r\n".to_vec()),
        "mg long v" => Some(answer.clone().into_bytes()),
        _ if line.starts_with("set") => Some(Vec::new()),
        _ => Some(b"STORED\r\n".to_vec()),
    });
    let proxy = Running::plain("memcached", address);
    let mut client = proxy.connect();
    client.write_all(b"mg long v\r\n").unwrap();
    let mut head = [0; 10];
    client.read_exact(&mut head).unwrap();
    // The second request is too long to be shared.
    let value = "y".repeat(40_000);
    let rest = ask(&mut client, format!("set y 0 0 40000\r\n{value}\r\n").as_bytes(), &["STORED"]);
    assert_eq!(format!("{}{rest}", String::from_utf8_lossy(&head)), format!("{long}STORED\r\n"));
    assert_eq!(connections.load(SeqCst), 2, "a shared one, and its own");
}

/// While connections are begun that never open, sharing ends. A client with requests on an open one gets its answers
/// in order.
#[test]
fn answers_stay_in_order_when_sharing_ends() {
    let (address, _) = line_server(|number, line| match line.split_once(' ') {
        None if number > 0 => Some(Vec::new()),
        None => Some(b"VERSION 1.6\r\n".to_vec()),
        Some((_, key)) => {
            // So slow that others want another connection.
            std::thread::sleep(Duration::from_micros(1500));
            Some(format!("VALUE {key} 0 1\r\nx\r\nEND\r\n").into_bytes())
        }
    });
    let proxy = Running::plain("memcached", address);
    std::thread::scope(|scope| {
        for client in 0..6 {
            let proxy = &proxy;
            scope.spawn(move || {
                let mut stream = proxy.connect();
                let begun = Instant::now();
                let mut number = 0;
                let key = |number: u32| format!("{client}:{number}");
                stream.write_all(format!("get {}\r\n", key(0)).as_bytes()).unwrap();
                while begun.elapsed() < Duration::from_millis(2500) {
                    // The next request is sent before the answer to the last one.
                    stream.write_all(format!("get {}\r\n", key(number + 1)).as_bytes()).unwrap();
                    let expected = format!("VALUE {} 0 1\r\nx\r\nEND\r\n", key(number));
                    assert_eq!(ask(&mut stream, b"", &["END"]), expected);
                    number += 1;
                }
                assert!(number > 20, "client {client} had {number} answers");
                assert_eq!(ask(&mut stream, b"", &["END"]).lines().count(), 3);
            });
        }
    });
    assert_eq!(proxy.drain().snapshot.cut, 0);
}

/// A client that does not read large values holds up others of its kind for seconds at most.
#[test]
fn a_client_that_reads_nothing_holds_up_others_for_a_moment() {
    let Some(server) = Server::memcached() else { return };
    let mut direct = TcpStream::connect(server.address).unwrap();
    let value = vec![b'x'; 7 << 20];
    let head = format!("set large 0 0 {}\r\n", value.len());
    let set = [head.as_bytes(), &value, b"\r\n"].concat();
    assert_eq!(ask(&mut direct, &set, &["STORED"]), "STORED\r\n");
    let proxy = Running::plain("memcached", server.address);
    let mut other = proxy.connect();
    assert_eq!(ask(&mut other, b"get none\r\n", &["END"]), "END\r\n");
    let mut deaf: Vec<TcpStream> = (0..8).map(|_| proxy.connect()).collect();
    for stream in &mut deaf {
        stream.write_all(b"get large\r\n").unwrap();
    }
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(4) {
        let asked = Instant::now();
        assert_eq!(ask(&mut other, b"get none\r\n", &["END"]), "END\r\n");
        longest = longest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(longest < Duration::from_secs(3), "it waited for {longest:?}");
}

/// A server of this test whose values are so long, whatever is asked for, except for keys that are not there.
fn server_of_long_values(len: usize) -> SocketAddr {
    const PIECE: usize = 1 << 20;
    let serve = move |mut stream: TcpStream| -> std::io::Result<()> {
        let piece = vec![b'x'; PIECE];
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        while let Some(Ok(line)) = lines.next() {
            let (head, end): (String, &[u8]) = match line.trim_end() {
                "version" => ("VERSION 1.6\r\n".to_owned(), b""),
                "get none" => ("END\r\n".to_owned(), b""),
                "get long" => (format!("VALUE long 0 {len}\r\n"), b"\r\nEND\r\n"),
                _ => (format!("VA {len}\r\n"), b"\r\n"),
            };
            stream.write_all(head.as_bytes())?;
            if !end.is_empty() {
                (0..len / PIECE).try_for_each(|_| stream.write_all(&piece))?;
            }
            stream.write_all(end)?;
        }
        Ok(())
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A client that reads nothing of a long reply is cut off, and later also one that always reads a little: by its own
/// pauses it would take more than twice as long as it may. The one that waits behind it is served.
#[test]
fn a_client_that_reads_slowly_is_cut_off_later() {
    const LEN: usize = 512 << 20;
    const PIECE: usize = 200 << 10;
    const PAUSE: Duration = Duration::from_millis(10);
    let server = server_of_long_values(LEN);
    let [proxy, other] = [(); 2].map(|()| Running::plain("memcached", server));
    let mut slow = proxy.connect();
    let mut behind = proxy.connect();
    let mut deaf = other.connect();
    assert_eq!(ask(&mut slow, b"get none\r\n", &["END"]), "END\r\n");
    slow.write_all(b"get long\r\n").unwrap();
    slow.read_exact(&mut [0; 100]).unwrap();
    // There is no other connection yet.
    behind.write_all(b"get none\r\n").unwrap();
    deaf.write_all(b"mg long v\r\n").unwrap();
    let count = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut count = 0;
            let mut piece = vec![0; PIECE];
            while count < LEN
                && let Ok(read @ 1..) = slow.read(&mut piece)
            {
                count += read;
                std::thread::sleep(PAUSE);
            }
            count
        });
        testkit::wait_until(Duration::from_secs(60), "the end of a client that reads nothing", || {
            other.remote.status().unwrap().cut == 1
        });
        assert!(!reader.is_finished(), "a client that reads something has more time");
        reader.join().unwrap()
    });
    println!("the slow one got {} of {} MiB", count >> 20, LEN >> 20);
    assert!(count < LEN, "it held up others for as long as it liked");
    assert_eq!(ask(&mut behind, b"", &["END"]), "END\r\n");
    assert_eq!(proxy.remote.status().unwrap().cut, 1);
}
