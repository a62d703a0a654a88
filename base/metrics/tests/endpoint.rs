//! The endpoint against clients that behave, and against those that do not.

use metrics::{EndpointLimits, MetricsEndpoint};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

fn open(limits: EndpointLimits) -> MetricsEndpoint {
    let scrapes = Arc::new(AtomicU64::new(0));
    let page = move || format!("scrapes_total {}\n# EOF\n", scrapes.fetch_add(1, Ordering::Relaxed) + 1);
    MetricsEndpoint::open("127.0.0.1:0".parse().expect("an address"), limits, page).expect("a port is free")
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the endpoint listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket has this option");
    stream
}

/// Reads until the connection ends; a reset ends it as well.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert!(matches!(error.kind(), ErrorKind::ConnectionReset), "{error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    // A refused connection may be closed before the request is written.
    let _ = stream.write_all(request.as_bytes());
    rest(stream)
}

fn scrape(address: SocketAddr) -> String {
    ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
}

#[test]
fn it_answers_as_http_asks() {
    let endpoint = open(EndpointLimits::default());
    let first = scrape(endpoint.address());
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    assert!(first.contains("application/openmetrics-text; version=1.0.0"), "{first}");
    assert!(first.ends_with("scrapes_total 1\n# EOF\n"), "{first}");
    assert!(scrape(endpoint.address()).contains("scrapes_total 2"), "made anew each time");
    for (request, status) in [
        ("GET /metrics?name[]=x HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
        ("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
        ("GET / HTTP/1.0\r\n\r\n", "200"),
        ("GET /other HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "405"),
        ("\u{1}\u{2}nonsense\r\n\r\n", "400"),
    ] {
        let found = ask(endpoint.address(), request);
        assert!(found.split(' ').nth(1) == Some(status), "{request:?}: {found}");
    }
}

#[test]
fn huge_heads_are_refused() {
    let endpoint = open(EndpointLimits::default());
    let long = "x".repeat(1 << 20);
    for request in [
        format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("GET /metrics HTTP/1.1\r\nX: {long}\r\n\r\n"),
        format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100_000)),
    ] {
        let found = ask(endpoint.address(), &request);
        assert!(!found.contains("scrapes_total"), "{found}");
    }
    assert!(scrape(endpoint.address()).contains("scrapes_total 1"), "nobody was served before");
}

#[test]
fn clients_that_never_finish_make_room_for_others() {
    let limits = EndpointLimits {
        connections: 3,
        head: Duration::from_millis(200),
        connection: Duration::from_millis(400),
    };
    let endpoint = open(limits);
    let mut slow: Vec<TcpStream> = (0..8).map(|_| connect(endpoint.address())).collect();
    for stream in &mut slow {
        // Those beyond the third have been closed, or will be.
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nX-Slow: ");
    }
    testkit::wait_until(LIMIT, "somebody else is served", || {
        scrape(endpoint.address()).contains("scrapes_total")
    });
    for stream in slow {
        let found = rest(stream);
        assert!(!found.contains("scrapes_total"), "{found}");
    }
}

#[test]
fn a_client_that_does_not_read_is_closed() {
    const LONG: usize = 16 << 20;
    let limits = EndpointLimits {
        connections: 1,
        connection: Duration::from_millis(300),
        ..EndpointLimits::default()
    };
    let asked = AtomicU64::new(0);
    let page = move || match asked.fetch_add(1, Ordering::Relaxed) {
        0 => "x".repeat(LONG),
        _ => "short".to_owned(),
    };
    let endpoint = MetricsEndpoint::open("127.0.0.1:0".parse().expect("an address"), limits, page)
        .expect("a port is free");
    let mut stream = connect(endpoint.address());
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("the endpoint reads");
    stream.read_exact(&mut [0; 1]).expect("the answer begins");
    testkit::wait_until(LIMIT, "its place is free", || scrape(endpoint.address()).ends_with("short"));
    assert!(rest(stream).len() < LONG, "the answer was cut");
}

#[test]
fn it_ends_with_its_value_and_frees_the_port() {
    let endpoint = open(EndpointLimits::default());
    let address = endpoint.address();
    let open_connection = connect(address);
    drop(endpoint);
    assert_eq!(rest(open_connection), "");
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let endpoint = open(EndpointLimits::default());
    let again = MetricsEndpoint::open(endpoint.address(), EndpointLimits::default(), String::new);
    assert_eq!(again.map(|_| ()).map_err(|error| error.kind()), Err(ErrorKind::AddrInUse));
}
