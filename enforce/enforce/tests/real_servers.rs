//! Real servers and unmodified clients with a proxy in between: reads return the written data.

mod proxy;

use proxy::{Running, Server, say};
use std::process::Command;

/// Returns bytes without a pattern.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn memcached_keeps_what_it_was_given() {
    let Some(server) = Server::memcached() else { return };
    let proxy = Running::plain("memcached", server.address);
    let mut client = proxy.connect();
    assert!(say(&mut client, b"version\r\n", b"\r\n").starts_with(b"VERSION"));
    for size in [0, 1, 1000, 70_000, 1_000_000, 3_000_000] {
        let value = noise(size, 3);
        let mut set = format!("set key{size} 0 0 {size}\r\n").into_bytes();
        set.extend(&value);
        assert_eq!(say(&mut client, &[&set[..], b"\r\n"].concat(), b"\r\n"), b"STORED\r\n");
        let got = say(&mut client, format!("get key{size}\r\n").as_bytes(), b"END\r\n");
        let head = format!("VALUE key{size} 0 {size}\r\n");
        assert_eq!(got, [head.as_bytes(), &value, b"\r\nEND\r\n"].concat());
    }
    // Pipelined, with silent requests among them: answers come in order.
    let got = say(
        &mut client,
        b"set a 0 0 1 noreply\r\n1\r\nget a\r\nset a 0 0 1\r\n2\r\nget a\r\nmn\r\n",
        b"MN\r\n",
    );
    let expected: &[u8] = b"VALUE a 0 1\r\n1\r\nEND\r\nSTORED\r\nVALUE a 0 1\r\n2\r\nEND\r\nMN\r\n";
    assert_eq!(got, expected);
    // More silent requests than may be outstanding.
    let quiet: String = (0..500).map(|number| format!("mg none{number} v q\r\n")).collect();
    assert_eq!(say(&mut client, format!("{quiet}mn\r\n").as_bytes(), b"MN\r\n"), b"MN\r\n");
    drop(client);
    let report = proxy.drain();
    assert_eq!((report.snapshot.cut, report.snapshot.buffered_bytes, report.snapshot.outstanding), (0, 0, 0));
    assert!(report.snapshot.workloads[0].requests > 500);
}

#[test]
fn nbdcopy_writes_and_reads_an_image() {
    let Some(server) = Server::nbdkit("memory 32M") else { return };
    let Some(nbdcopy) = testkit::program("nbdcopy") else { return };
    let proxy = Running::plain("nbd", server.address);
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let copy = folder.path().join("copy");
    let data = noise(32 << 20, 5);
    std::fs::write(&image, &data).unwrap();
    let uri = format!("nbd://{}", proxy.address);
    let run = |args: &[&std::ffi::OsStr]| {
        let done = Command::new(&nbdcopy).args(["--connections=4", "--requests=16"]).args(args).status();
        assert!(done.expect("nbdcopy runs").success());
    };
    run(&[image.as_ref(), uri.as_ref()]);
    run(&[uri.as_ref(), copy.as_ref()]);
    assert!(std::fs::read(&copy).unwrap() == data, "every byte is what was written");
    let report = proxy.drain();
    assert_eq!((report.snapshot.cut, report.snapshot.buffered_bytes, report.snapshot.outstanding), (0, 0, 0));
    let seen = &report.snapshot.workloads[0];
    assert!(seen.bytes >= 64 << 20 && seen.control > 0, "{seen:?}");
}

#[test]
fn qemu_writes_zeroes_and_reads() {
    let Some(server) = Server::nbdkit("memory 32M") else { return };
    let Some(qemu_io) = testkit::program("qemu-io") else { return };
    let proxy = Running::plain("nbd", server.address);
    let uri = format!("nbd://{}", proxy.address);
    let commands = [
        "write -P 0x5a 1M 3M",
        "aio_write -P 0x11 8M 64k",
        "aio_write -P 0x22 9M 64k",
        "aio_flush",
        "read -P 0x5a 1M 3M",
        "read -P 0x11 8M 64k",
        "read -P 0x22 9M 64k",
        "write -z 2M 1M",
        "discard 8M 64k",
        "read -P 0 2M 1M",
        "read -P 0x5a 3M 1M",
        "flush",
    ];
    let mut command = Command::new(qemu_io);
    command.args(["-f", "raw"]).args(commands.iter().flat_map(|line| ["-c", line])).arg(&uri);
    let output = command.output().expect("qemu-io runs");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && !said.contains("ailed"), "{said}");
    let report = proxy.drain();
    assert_eq!((report.snapshot.cut, report.snapshot.buffered_bytes, report.snapshot.outstanding), (0, 0, 0));
    assert!(report.snapshot.workloads[0].bytes >= 8 << 20);
}
