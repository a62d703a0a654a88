//! Real clients of the emulated SSD read back what they write; also clients that violate the protocol.

use lab::device::{LinearServiceTime, SsdModel};
use lab::nbd::{ExportedVolume, NbdServer, NbdServerConfig};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use units::Nanos;
use wire::nbd::client::{self, ClientHandshake, ExportOption, HandshakeStep};
use wire::nbd::protocol::{REQUEST_MAGIC, SIMPLE_REPLY_MAGIC};

const SIZE: u64 = 8 << 20;

fn model() -> SsdModel {
    let service_time = LinearServiceTime::new(Nanos(20_000), 100);
    SsdModel { channels: 4, read: service_time, write: service_time, bandwidth: None }
}

/// A server with two exports, and the lines that it logs.
fn server() -> (NbdServer, Arc<Mutex<Vec<String>>>) {
    let export = |name: &str, size| ExportedVolume { name: name.to_owned(), size };
    let config = NbdServerConfig {
        model: model(),
        exports: vec![export("tank", SIZE), export("small", 1000)],
        spin: Nanos(0),
    };
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = logged.clone();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let append = Box::new(move |line: &str| log.lock().expect("nobody panics").push(line.to_owned()));
    (NbdServer::start(listener, config, append).expect("a server"), logged)
}

fn uri(server: &NbdServer, export: &str) -> String {
    format!("nbd://{}/{export}", server.address())
}

/// Runs a client program, which must succeed, and returns its output.
fn run(program: &PathBuf, args: &[&str]) -> String {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output().expect("a client starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program:?} {args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &errors
}

#[test]
fn nbdinfo_sees_the_exports() {
    let Some(program) = testkit::program("nbdinfo") else { return };
    let (server, logged) = server();
    let list = run(&program, &["--list", "--json", &uri(&server, "")]);
    for text in ["\"tank\"", "\"small\"", "8388608", "\"export-size\": 1000", "\"can_trim\": true"] {
        assert!(list.contains(text), "{text} in {list}");
    }
    assert_eq!(run(&program, &["--size", &uri(&server, "small")]).trim(), "1000");
    assert_eq!(
        run(&program, &["--size", &uri(&server, "")]).trim(),
        SIZE.to_string(),
        "the first by default"
    );
    assert_eq!(*logged.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn nbdcopy_there_and_back() {
    let Some(program) = testkit::program("nbdcopy") else { return };
    let (server, _) = server();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("here");
    let back = folder.path().join("back");
    let mut bytes: Vec<u8> =
        (0..4u32 << 20).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[1] | 1).collect();
    // A hole, which the client may not send.
    bytes[1 << 20..2 << 20].fill(0);
    bytes.resize(8 << 20, 0);
    std::fs::write(&here, &bytes).unwrap();
    run(&program, &["--flush", here.to_str().unwrap(), &uri(&server, "tank")]);
    run(&program, &[&uri(&server, "tank"), back.to_str().unwrap()]);
    assert!(std::fs::read(back).unwrap() == bytes, "the data is the same");
}

#[test]
fn qemu_reads_and_writes() {
    let Some(program) = testkit::program("qemu-io") else { return };
    let (server, _) = server();
    let mut args = vec!["-f", "raw"];
    let commands = [
        "write -P 5 4096 65536",
        "read -P 5 4096 65536",
        "write -z 8192 4096",
        "read -P 0 8192 4096",
        "read -P 5 12288 4096",
        "discard 4096 4096",
        "read -P 0 4096 8192",
        "flush",
        "aio_write -P 7 1M 1M",
        "aio_flush",
        "aio_read -P 7 1M 1M",
        "aio_flush",
    ];
    commands.iter().for_each(|command| args.extend(["-c", command]));
    let uri = uri(&server, "tank");
    args.push(&uri);
    let output = run(&program, &args);
    assert!(!output.contains("verification failed") && !output.contains("error"), "{output}");
}

/// A client past its handshake.
fn connect(server: &NbdServer, export: &str, ask: ExportOption) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let mut handshake = ClientHandshake::new(export.as_bytes(), ask).with_structured_replies();
    let mut input = Vec::new();
    let mut out = Vec::new();
    loop {
        match handshake.advance(&input, &mut out).expect("the export is granted") {
            HandshakeStep::Used(used) => drop(input.drain(..used)),
            HandshakeStep::Done { used, .. } => {
                assert_eq!(used, input.len(), "the server waits for a command");
                return stream;
            }
            HandshakeStep::NeedMore { .. } => {
                stream.write_all(&out).unwrap();
                out.clear();
                let mut piece = [0; 500];
                let read = stream.read(&mut piece).unwrap();
                assert!(read > 0, "the server hung up");
                input.extend(&piece[..read]);
            }
        }
    }
}

/// The error and cookie of the next reply.
fn reply(stream: &mut TcpStream) -> (u32, u64) {
    let mut head = [0; 16];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..4], SIMPLE_REPLY_MAGIC.to_be_bytes());
    let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
    (error, u64::from_be_bytes(head[8..].try_into().unwrap()))
}

#[test]
fn an_acknowledged_write_is_what_another_connection_reads() {
    let (server, _) = server();
    let mut one = connect(&server, "tank", ExportOption::Go);
    let mut other = connect(&server, "tank", ExportOption::ExportName);
    for round in 0..50u8 {
        let mut out = Vec::new();
        client::write(&mut out, 1, 65_530, &[round; 100]);
        one.write_all(&out).unwrap();
        assert_eq!(reply(&mut one), (0, 1));
        out.clear();
        client::read(&mut out, 2, 65_530, 100);
        other.write_all(&out).unwrap();
        assert_eq!(reply(&mut other), (0, 2));
        let mut data = [255; 100];
        other.read_exact(&mut data).unwrap();
        assert_eq!(data, [round; 100]);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_the_connection_goes_on() {
    let (server, _) = server();
    let mut stream = connect(&server, "small", ExportOption::Go);
    let mut out = Vec::new();
    client::read(&mut out, 1, 999, 2);
    client::write(&mut out, 2, 1000, &[1]);
    client::read(&mut out, 3, u64::MAX, 2);
    // No such command.
    out.extend(REQUEST_MAGIC.to_be_bytes());
    out.extend([0, 0, 0, 77]);
    out.extend([0; 20]);
    client::flush(&mut out, 5);
    client::read(&mut out, 6, 999, 1);
    stream.write_all(&out).unwrap();
    let replies: Vec<_> = (0..6).map(|_| reply(&mut stream)).collect();
    assert_eq!(replies, [(22, 1), (28, 2), (22, 3), (22, 0), (0, 5), (0, 6)]);
}

#[test]
fn a_half_closed_connection_gets_its_answers() {
    let (server, logged) = server();
    let mut stream = connect(&server, "tank", ExportOption::Go);
    let mut out = Vec::new();
    (0..20).for_each(|cookie| client::read(&mut out, cookie, 0, 4096));
    stream.write_all(&out).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 20 * (16 + 4096));
    // Again by GO instead of EXPORT_NAME.
    let mut stream = connect(&server, "tank", ExportOption::Go);
    client::disconnect(&mut out, 99);
    stream.write_all(&out).unwrap();
    all.clear();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 20 * (16 + 4096));
    assert_eq!(*logged.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn a_slow_reader_costs_itself_only() {
    let (server, _) = server();
    let mut slow = connect(&server, "tank", ExportOption::Go);
    // Far more than is held for a client or fits into sockets: 40 × 4 MiB. Nothing is taken.
    let mut out = Vec::new();
    (0..40).for_each(|cookie| client::read(&mut out, cookie, 0, 4 << 20));
    slow.write_all(&out).unwrap();
    let mut other = connect(&server, "tank", ExportOption::Go);
    for cookie in 0..100 {
        out.clear();
        client::read(&mut out, cookie, 0, 512);
        other.write_all(&out).unwrap();
        assert_eq!(reply(&mut other), (0, cookie));
        other.read_exact(&mut [0; 512]).unwrap();
    }
    // Late is not never.
    let mut data = vec![0; 4 << 20];
    for cookie in 0..40 {
        assert_eq!(reply(&mut slow), (0, cookie));
        slow.read_exact(&mut data).unwrap();
    }
}

#[test]
fn what_breaks_the_protocol_is_cut_off_with_a_line() {
    let (server, logged) = server();
    let greeting = |stream: &mut TcpStream| stream.read_exact(&mut [0; 18]).unwrap();
    let mut flags = TcpStream::connect(server.address()).unwrap();
    greeting(&mut flags);
    flags.write_all(&[255; 4]).unwrap();
    let mut long = TcpStream::connect(server.address()).unwrap();
    greeting(&mut long);
    long.write_all(&[&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 7, 255, 255, 255, 255]].concat()).unwrap();
    let mut magic = connect(&server, "tank", ExportOption::Go);
    magic.write_all(&[1; 28]).unwrap();
    let mut giant = connect(&server, "tank", ExportOption::Go);
    let head: [&[u8]; 4] = [&REQUEST_MAGIC.to_be_bytes(), &[0, 0, 0, 1], &[0; 16], &[255; 4]];
    giant.write_all(&head.concat()).unwrap();
    for mut stream in [flags, long, magic, giant] {
        // A reset is as good an end.
        assert!(!matches!(stream.read(&mut [0; 1]), Ok(1..)), "the server hangs up");
    }
    drop(connect(&server, "tank", ExportOption::Go));
    let logged = logged.lock().unwrap().join("\n");
    for text in
        ["client flags 0xffffffff", "option magic", "request magic 0x1010101", "a write of 4294967295 bytes"]
    {
        assert!(logged.contains(text), "{text} in {logged}");
    }
}

#[test]
fn many_clients_come_and_go() {
    let (server, _) = server();
    for _ in 0..20 {
        let mut streams: Vec<TcpStream> =
            (0..30).map(|_| connect(&server, "tank", ExportOption::ExportName)).collect();
        let mut out = Vec::new();
        client::write(&mut out, 1, 0, &[1; 5000]);
        streams.iter_mut().for_each(|stream| stream.write_all(&out).unwrap());
        // Every second one without waiting for its answer.
        streams.iter_mut().step_by(2).for_each(|stream| assert_eq!(reply(stream), (0, 1)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// After any input, the server serves the next client.
    #[test]
    fn arbitrary_bytes(
        greets in any::<bool>(),
        grants in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let (server, _) = server();
        let mut stream = if grants {
            connect(&server, "tank", ExportOption::Go)
        } else {
            TcpStream::connect(server.address()).unwrap()
        };
        let magic = if grants { REQUEST_MAGIC.to_be_bytes().to_vec() } else { b"\0\0\0\x03IHAVEOPT".to_vec() };
        let sent = if greets { [magic, bytes].concat() } else { bytes };
        // The server may have hung up before all of it was sent.
        let _ = stream.write_all(&sent);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
        drop(connect(&server, "tank", ExportOption::Go));
    }
}
