//! A real NBD server and real clients, with this parser between them: every byte belongs to a frame, the data
//! arrives, and the export is known by name.

mod common;
#[path = "common/nbd_server.rs"]
mod nbd_server;
#[path = "common/relay.rs"]
mod relay;

use common::Watch;
use nbd_server::NbdProcess;
use relay::{Relay, moved};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use wire::nbd::client::{self, ClientHandshake, ExportOption, HandshakeStep};
use wire::nbd::{Framing, NbdParser};
use wire::{Extent, ParseStep, ParserLimits, ProtocolParser, ReplyExpectation, ReplyHead};

/// Files in the server's folder are its exports.
fn serve_files() -> Option<NbdProcess> {
    NbdProcess::start(|folder| {
        let exports = folder.join("exports");
        std::fs::create_dir(&exports).unwrap();
        for export in ["tank", "other"] {
            std::fs::write(exports.join(export), vec![0; 4 << 20]).unwrap();
        }
        vec!["file".into(), format!("dir={}", exports.display())]
    })
}

/// Runs `client` against a listener that passes every connection on to the server; what was seen on each.
fn between(server: &mut NbdProcess, client: &mut Command) -> Vec<Watch> {
    let path = server.folder().join("proxy");
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let mut child = client.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the client starts");
    listener.set_nonblocking(true).unwrap();
    let mut connections = Vec::new();
    let status = loop {
        match listener.accept() {
            Ok((near, _)) => {
                near.set_nonblocking(false).unwrap();
                let far = server.connect();
                connections.push(Relay::start(near, far, Watch::nbd()));
            }
            Err(_) => std::thread::yield_now(),
        }
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert!(status.success(), "{client:?}: {status}");
    connections.into_iter().map(Relay::finish).collect()
}

fn uri(folder: &Path) -> String {
    format!("nbd+unix:///tank?socket={}", folder.join("proxy").display())
}

#[test]
fn copies_there_and_back() {
    let Some(program) = testkit::program("nbdcopy") else { return };
    let Some(mut server) = serve_files() else { return };
    let bytes: Vec<u8> =
        (0..4u32 << 20).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[1] | 1).collect();
    let here = server.folder().join("here");
    let back = server.folder().join("back");
    std::fs::write(&here, &bytes).unwrap();
    let uri = uri(server.folder());
    let watches = between(&mut server, Command::new(&program).arg("--flush").arg(&here).arg(&uri));
    assert_eq!(moved(&watches), (0, bytes.len() as u64));
    assert!(watches.iter().all(|watch| watch.wire.export_name() == Some(b"tank")));
    let watches = between(&mut server, Command::new(&program).arg(&uri).arg(&back));
    assert_eq!(moved(&watches).0, bytes.len() as u64);
    assert!(watches.iter().all(|watch| watch.wire.in_flight() == 0));
    assert!(std::fs::read(back).unwrap() == bytes, "the data is the same");
}

#[test]
fn lists_exports() {
    let Some(program) = testkit::program("nbdinfo") else { return };
    let Some(mut server) = serve_files() else { return };
    let uri = uri(server.folder());
    let watches = between(&mut server, Command::new(program).arg("--list").arg("--json").arg(uri));
    let options: usize = watches.iter().map(|watch| watch.requests().len()).sum();
    assert!(options > 4, "a list, and information on each export: {options}");
}

#[test]
fn qemu_reads_and_writes() {
    let Some(program) = testkit::program("qemu-io") else { return };
    let Some(mut server) = serve_files() else { return };
    let uri = uri(server.folder());
    let commands = [
        "write -P 5 4096 65536",
        "read -P 5 4096 65536",
        "write -z 8192 4096",
        "read -P 0 8192 4096",
        "discard 0 4096",
        "flush",
        "aio_write -P 7 1M 1M",
        "aio_read 0 1M",
        "aio_flush",
    ];
    let mut client = Command::new(program);
    client.args(["-f", "raw"]);
    for command in commands {
        client.args(["-c", command]);
    }
    let watches = between(&mut server, client.arg(uri));
    let (read, written) = moved(&watches);
    assert!(read >= 65_536 + 4096 + (1 << 20) && written >= 65_536 + 4096 + (1 << 20), "{read} {written}");
    assert!(watches.iter().all(|watch| watch.wire.in_flight() == 0));
}

/// Sends what `out` holds and reads until `done` has what it wants.
fn exchange<T>(
    stream: &mut UnixStream,
    out: &mut Vec<u8>,
    input: &mut Vec<u8>,
    mut done: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> Option<T>,
) -> T {
    loop {
        stream.write_all(out).unwrap();
        out.clear();
        if let Some(result) = done(input, out) {
            return result;
        }
        if out.is_empty() {
            let mut piece = [0; 3000];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "the server hung up");
            input.extend(&piece[..read]);
        }
    }
}

#[test]
fn the_client_here_is_understood() {
    let Some(mut server) = serve_files() else { return };
    for (ask, structured) in [
        (ExportOption::Go, false),
        (ExportOption::Go, true),
        (ExportOption::ExportName, false),
        (ExportOption::ExportName, true),
    ] {
        let mut stream = server.connect();
        let mut handshake = ClientHandshake::new(b"other", ask);
        if structured {
            handshake = handshake.with_structured_replies();
        }
        let mut input = Vec::new();
        let mut out = Vec::new();
        let export = exchange(&mut stream, &mut out, &mut input, |input, out| {
            loop {
                match handshake.advance(input, out).expect("the export is granted") {
                    HandshakeStep::NeedMore { .. } => return None,
                    HandshakeStep::Used(used) => drop(input.drain(..used)),
                    HandshakeStep::Done { used, export } => {
                        input.drain(..used);
                        return Some(export);
                    }
                }
            }
        });
        assert_eq!(export.size, 4 << 20);
        assert_eq!(export.framing, if structured { Framing::Structured } else { Framing::Simple });
        write_and_read(&mut stream, NbdParser::after_handshake(ParserLimits::NBD, export.framing));
    }
}

/// The next reply with the bytes behind its head, when all of it is there.
fn reply(
    wire: &mut NbdParser,
    input: &mut Vec<u8>,
    waiting: &mut Option<(ReplyHead, Extent)>,
) -> Option<(ReplyHead, Extent, Vec<u8>)> {
    if waiting.is_none() {
        match wire.next_reply(input).expect("well-formed") {
            ParseStep::Message { message, extent } => *waiting = Some((message, extent)),
            _ => return None,
        }
    }
    let (_, extent) = (*waiting)?;
    let len = usize::try_from(extent.len.0).unwrap();
    if input.len() < len {
        return None;
    }
    let (reply, extent) = waiting.take()?;
    let bytes = input.drain(..len).skip(extent.head).collect();
    Some((reply, extent, bytes))
}

fn write_and_read(stream: &mut UnixStream, mut wire: NbdParser) {
    let mut input = Vec::new();
    let mut out = Vec::new();
    let data: Vec<u8> = (0..200_000u32).map(|n| (n % 251).to_le_bytes()[0]).collect();
    let mut ask = |wire: &mut NbdParser, id: u64, encode: &dyn Fn(&mut Vec<u8>)| {
        encode(&mut out);
        let Ok(ParseStep::Message { message, extent }) = wire.next_request(&out) else { panic!("a request") };
        assert_eq!((message.id, extent.len.0), (id, out.len() as u64));
        let mut waiting = None;
        let mut got = Vec::new();
        exchange(stream, &mut out, &mut input, |input, _| {
            while let Some((reply, extent, bytes)) = reply(wire, input, &mut waiting) {
                assert!(reply.is_solicited && !reply.is_error && reply.id == id);
                got.extend(bytes);
                if extent.last {
                    return Some(());
                }
            }
            None
        });
        got
    };
    assert!(ask(&mut wire, 1, &|out| client::write(out, 1, 8192, &data)).is_empty());
    assert!(ask(&mut wire, 2, &|out| client::flush(out, 2)).is_empty());
    assert!(ask(&mut wire, 3, &|out| client::read(out, 3, 8192, 200_000)) == data, "the data comes back");
    assert_eq!(wire.in_flight(), 0);
    client::disconnect(&mut out, 4);
    assert!(
        matches!(wire.next_request(&out), Ok(ParseStep::Message { message, .. }) if message.reply == ReplyExpectation::Never)
    );
    stream.write_all(&out).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "the server hangs up");
}
