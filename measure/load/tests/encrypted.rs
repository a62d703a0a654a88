//! TLS, HTTP/2 and gRPC against real servers: nginx, memcached, and gRPC's own server.

mod common;

use common::nginx::{Certificate, Nginx};
use common::{Server, options, play, poisson, workload};
use load::{CertificateCheck, LoadOptions, LoadReport, LoadTarget, OfferedLoad};
use model::{Op, OperationError, RequestOutcome};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use units::Bytes;

/// The target at `url`, whose certificate has to be from the authority in `file`.
fn trusting(url: &str, file: &Path) -> LoadTarget {
    checked(url, CertificateCheck::Authorities(file.to_owned()))
}

fn checked(url: &str, wanted: CertificateCheck) -> LoadTarget {
    let mut target: LoadTarget = url.parse().unwrap();
    if let LoadTarget::Tls { check, .. } = &mut target {
        *check = wanted;
    }
    target
}

fn count(report: &LoadReport, is_counted: impl Fn(RequestOutcome) -> bool) -> usize {
    report.observations.requests.iter().filter(|request| is_counted(request.outcome)).count()
}

fn done(report: &LoadReport) -> usize {
    count(report, |outcome| matches!(outcome, RequestOutcome::Done(_)))
}

fn reads(rate: f64, duration_ms: u64) -> Vec<model::Request> {
    let requests = poisson(rate, duration_ms, 3, &[10_000]).into_iter();
    requests.map(|request| model::Request { op: Op::Read, ..request }).collect()
}

fn closed(in_flight: u32, op: Op, size: u64) -> OfferedLoad {
    OfferedLoad::Closed { in_flight, op, size: Bytes(size), sequential: false }
}

/// Plays nothing, so that connections are set up only.
fn refusal(target: LoadTarget) -> OperationError {
    play(vec![workload("w", target, 1, OfferedLoad::Open(Vec::new()))], &options(1)).unwrap_err()
}

/// Every request is answered and counted by nginx, once and in the version that was asked for, also when the server
/// ends connections in between: after 300 requests by `Connection: close` or GOAWAY.
#[test]
fn nginx_counts_what_is_counted_here() {
    let Some(nginx) = Nginx::start("keepalive_requests 300;") else { return };
    let authority = &nginx.certificate.authority;
    for (scheme, server, version) in [
        ("http", nginx.plain, "HTTP/1.1"),
        ("http+h2", nginx.plain_two, "HTTP/2.0"),
        ("https", nginx.tls, "HTTP/1.1"),
        ("https+h1", nginx.tls_two, "HTTP/1.1"),
        ("https", nginx.tls_two, "HTTP/2.0"),
        ("https+h2", nginx.tls_two, "HTTP/2.0"),
    ] {
        let requests = reads(2000.0, 700);
        let total = requests.len();
        let target = trusting(&format!("{scheme}://{server}/file"), authority);
        nginx.take_log(0);
        let report =
            play(vec![workload("w", target, 2, OfferedLoad::Open(requests))], &options(700)).unwrap();
        assert_eq!(
            (done(&report), report.observations.requests.len()),
            (total, total),
            "{scheme}: {:?}",
            report.warnings
        );
        assert!(report.counters[0].disconnects >= 2, "{scheme}: {:?}", report.counters);
        let log = nginx.take_log(total);
        assert!(log.iter().all(|line| *line == format!("{version} 200")), "{scheme}: {:?}", log.first());
        assert_eq!(log.len(), total, "{scheme}");
    }
}

/// A closed loop keeps going when the server ends connections.
#[test]
fn closed_loops_outlive_connections() {
    let Some(nginx) = Nginx::start("keepalive_requests 50;") else { return };
    for target in [format!("http://{}/file", nginx.plain), format!("http+h2://{}/file", nginx.plain_two)] {
        nginx.take_log(0);
        let report =
            play(vec![workload("w", target.parse().unwrap(), 1, closed(8, Op::Read, 1))], &options(500))
                .unwrap();
        let all = report.observations.requests.len();
        assert_eq!(done(&report), all, "{target}: {:?}", report.warnings);
        assert!(report.counters[0].reconnects >= 3, "{target}: {:?}", report.counters);
        assert_eq!(nginx.take_log(all).len(), all, "{target}");
        // Of requests that were answered with the end of a connection, too, each started another.
        let last_tenth = report.observed_duration.0 / 10 * 9;
        let late = report.observations.requests.iter().filter(|request| request.intended.0 > last_tenth);
        assert!(late.count() >= 8, "{target}");
    }
}

#[test]
fn errors_are_counted() {
    let Some(nginx) = Nginx::start("") else { return };
    let authority = &nginx.certificate.authority;
    for url in [format!("https+h1://{}/no", nginx.tls), format!("https+h2://{}/no", nginx.tls_two)] {
        let target = trusting(&url, authority);
        let report = play(vec![workload("w", target, 1, closed(4, Op::Read, 1))], &options(50)).unwrap();
        let failed = count(&report, |outcome| matches!(outcome, RequestOutcome::Failed(_)));
        assert_eq!(failed, report.observations.requests.len(), "{url}");
        assert!(
            failed > 4 && report.warnings.iter().any(|why| why.contains("status 404")),
            "{:?}",
            report.warnings
        );
        let log = nginx.take_log(failed);
        assert_eq!(log.iter().filter(|line| line.ends_with(" 404")).count(), failed, "{url}");
    }
}

/// Bodies that are larger than the windows of the server arrive whole.
#[test]
fn large_bodies() {
    let Some(nginx) = Nginx::start("http2_max_concurrent_streams 8;") else { return };
    let authority = &nginx.certificate.authority;
    for (scheme, server) in
        [("http+h2", nginx.plain_two), ("https+h2", nginx.tls_two), ("https+h1", nginx.tls)]
    {
        let target = trusting(&format!("{scheme}://{server}/put/{scheme}"), authority);
        let report =
            play(vec![workload("w", target, 2, closed(32, Op::Write, 1 << 20))], &options(300)).unwrap();
        let all = report.observations.requests.len();
        assert!(
            all >= 32 && done(&report) == all,
            "{scheme}: {} of {all}: {:?}",
            done(&report),
            report.warnings
        );
        assert_eq!(nginx.stored(scheme).len(), 1 << 20, "{scheme}");
        let read = trusting(&format!("{scheme}://{server}/put/{scheme}"), authority);
        let report =
            play(vec![workload("w", read, 1, closed(32, Op::Read, 1 << 20))], &options(300)).unwrap();
        let all = report.observations.requests.len();
        assert!(
            all >= 32 && done(&report) == all,
            "{scheme}: {} of {all}: {:?}",
            done(&report),
            report.warnings
        );
    }
}

/// nginx refuses streams beyond its limit; here, no request is refused.
#[test]
fn requests_wait_for_the_servers_limit_of_streams() {
    let Some(nginx) = Nginx::start("http2_max_concurrent_streams 3;") else { return };
    let target: LoadTarget = format!("http+h2://{}/file", nginx.plain_two).parse().unwrap();
    let report = play(vec![workload("w", target, 1, closed(64, Op::Read, 1))], &options(300)).unwrap();
    let all = report.observations.requests.len();
    assert!(all > 100 && done(&report) == all, "{} of {all}: {:?}", done(&report), report.warnings);
}

#[test]
fn certificates_and_protocols_that_do_not_fit_are_explained() {
    let Some(nginx) = Nginx::start("") else { return };
    let authority = &nginx.certificate.authority;
    let other = tempfile::tempdir().unwrap();
    let stranger = Certificate::make(other.path(), "DNS:example.org").unwrap();
    let Nginx { plain, tls, tls_two, .. } = nginx;
    let url = format!("https://{tls}/");
    for (target, message, hint) in [
        (trusting(&url, &stranger.authority), "authority that is not trusted", "ca_file"),
        (url.parse().unwrap(), "authority that is not trusted", "insecure = true"),
        (
            named("other.example", trusting(&url, authority)),
            "is for localhost, 127.0.0.1, not for other.example",
            "insecure",
        ),
        (trusting(&format!("https+h2://{tls}/"), authority), "no HTTP/2", "https+h1://"),
        (trusting(&format!("grpcs://{tls}/a.B/C"), authority), "no HTTP/2", "https"),
        (trusting(&format!("https://{plain}/"), authority), "does not answer with TLS", "http://"),
        (format!("http+h2://{plain}/").parse().unwrap(), "does not answer by HTTP/2", "http://"),
        (trusting(&url, &stranger.key), "no certificate", "PEM"),
        (trusting(&url, Path::new("/nowhere")), "cannot be read", "PEM"),
    ] {
        let error = refusal(target);
        let found = error.hint.as_deref().unwrap_or_default();
        assert!(error.message.contains(message) && found.contains(hint), "{message}, {hint}: {error:?}");
        assert!(error.message.starts_with("workload w: "), "{error:?}");
    }
    let any = checked(&format!("https://{tls_two}/file"), CertificateCheck::Nothing);
    let report = play(vec![workload("w", any, 1, closed(1, Op::Read, 1))], &options(20)).unwrap();
    assert!(done(&report) > 0);
}

/// The target under another name than that of its address.
fn named(other: &str, mut target: LoadTarget) -> LoadTarget {
    if let LoadTarget::Tls { name, .. } = &mut target {
        *name = other.to_owned();
    }
    target
}

#[test]
fn memcached_inside_tls() {
    let folder = tempfile::tempdir().unwrap();
    let Some(certificate) = Certificate::make(folder.path(), "IP:127.0.0.1") else { return };
    let files =
        format!("ssl_chain_cert={},ssl_key={}", certificate.chain.display(), certificate.key.display());
    let server = Server::start("memcached", |port| {
        ["-l", "127.0.0.1", "-u", "root", "-Z", "-o", &files, "-p", &port.to_string()]
            .map(String::from)
            .to_vec()
    });
    let Some(server) = server else { return };
    let target = trusting(&format!("memcached+tls://{}?keys=20", server.address), &certificate.authority);
    let requests = poisson(2000.0, 500, 11, &[100, 20_000]);
    let total = requests.len();
    let verified = LoadOptions { verify_data: true, ..options(500) };
    let report = play(vec![workload("w", target, 3, OfferedLoad::Open(requests))], &verified).unwrap();
    assert_eq!((done(&report), report.comparison.mismatches), (total, 0), "{:?}", report.warnings);
    assert!(report.comparison.bytes > Bytes(1 << 20), "{:?}", report.comparison);
}

/// A server of gRPC's Python package, whose protocol is that of its C core.
struct GrpcServer {
    child: Child,
    folder: tempfile::TempDir,
    address: SocketAddr,
}

impl GrpcServer {
    fn start(certificate: Option<&Certificate>) -> Option<Self> {
        testkit::program("../lib/python3/dist-packages/grpc/__init__.py")?;
        let folder = tempfile::tempdir().unwrap();
        let address = testkit::free_address();
        // Debian's package is for Debian's Python.
        let mut command = Command::new("/usr/bin/python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/grpc_server.py"));
        command.arg(address.to_string()).arg(folder.path().join("count"));
        command.args(certificate.iter().flat_map(|certificate| [&certificate.key, &certificate.chain]));
        let mut child = command.stdin(Stdio::null()).spawn().expect("Python starts");
        testkit::connect_when_ready(&mut child, || TcpStream::connect(address));
        Some(Self { child, folder, address })
    }

    /// Number of calls so far.
    fn calls(&self) -> usize {
        usize::try_from(std::fs::metadata(self.folder.path().join("count")).unwrap().len()).unwrap()
    }
}

impl Drop for GrpcServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A call of a method with a message.
fn call(url: &str, sent: &[u8]) -> LoadTarget {
    let mut target: LoadTarget = url.parse().unwrap();
    let inner = if let LoadTarget::Tls { target, .. } = &mut target { &mut **target } else { &mut target };
    if let LoadTarget::Grpc { message, .. } = inner {
        *message = sent.to_vec();
    }
    target
}

#[test]
fn grpc() {
    let folder = tempfile::tempdir().unwrap();
    let Some(certificate) = Certificate::make(folder.path(), "IP:127.0.0.1") else { return };
    for certificate in [None, Some(&certificate)] {
        let Some(server) = GrpcServer::start(certificate) else { return };
        let scheme = if certificate.is_some() { "grpcs" } else { "grpc" };
        let target = |method: &str, message: &[u8]| {
            let mut target = call(&format!("{scheme}://{}/test.Service/{method}", server.address), message);
            if let (LoadTarget::Tls { check, .. }, Some(certificate)) = (&mut target, certificate) {
                *check = CertificateCheck::Authorities(certificate.authority.clone());
            }
            target
        };
        let play_for =
            |target, offered| play(vec![workload("w", target, 2, offered)], &options(400)).unwrap();
        // Every call is answered, and the server has seen each once.
        for (method, message) in
            [("Echo", &b"hello"[..]), ("Echo", b""), ("Sized", b"300000"), ("Slow", b"x")]
        {
            let before = server.calls();
            let requests = reads(100.0, 400);
            let total = requests.len();
            let report = play_for(target(method, message), OfferedLoad::Open(requests));
            assert_eq!(
                (done(&report), server.calls() - before),
                (total, total),
                "{method}: {:?}",
                report.warnings
            );
        }
        let report = play_for(target("Refuse", b""), closed(4, Op::Read, 0));
        let all = report.observations.requests.len();
        assert!(all > 4 && done(&report) == 0, "{all}");
        let expected = "grpc-status 5 (NOT_FOUND): no such thing";
        assert!(report.warnings.iter().any(|why| why.contains(expected)), "{:?}", report.warnings);
        let report = play_for(target("Missing", b""), closed(1, Op::Read, 0));
        assert_eq!(done(&report), 0);
        assert!(report.warnings.iter().any(|why| why.contains("(UNIMPLEMENTED)")), "{:?}", report.warnings);
    }
}

/// An HTTP server that is none of gRPC fails calls, also with a status that is a success of HTTP.
#[test]
fn http_is_no_grpc() {
    let Some(nginx) = Nginx::start("") else { return };
    // A request by POST of a file that is there has the status 405.
    let target = call(&format!("grpc://{}/a.B/C", nginx.plain_two), b"");
    let report = play(vec![workload("w", target, 1, closed(2, Op::Read, 0))], &options(50)).unwrap();
    assert_eq!(done(&report), 0);
    assert!(report.warnings.iter().any(|why| why.contains("HTTP status 40")), "{:?}", report.warnings);
}
