//! Each format by example: lines as their tools write them, and their meaning.

mod common;

use model::{Op, Request};
use std::path::Path;
use trace::{OpenOptions, TraceError, TraceErrorKind, TraceFormat, TracePosition, read_bytes};
use units::{Bytes, Nanos};

fn request(ns: u64, size: u64, op: Op, offset: Option<u64>, response: Option<u64>) -> Request {
    Request { arrival: Nanos(ns), size: Bytes(size), op, offset, response: response.map(Nanos) }
}

/// Detected format and requests.
fn read(content: &[u8]) -> Result<(TraceFormat, Vec<Request>), TraceError> {
    let reader = read_bytes(content.to_vec(), Path::new("example"), &OpenOptions::default())?;
    let format = reader.format();
    Ok((format, reader.collect::<Result<_, _>>()?))
}

/// Returns the requests read leniently, and the numbers of skipped and ignored ones.
fn read_leniently(content: &[u8]) -> (Vec<Request>, u64, u64) {
    let options = OpenOptions { lenient: true, ..OpenOptions::default() };
    let mut reader = read_bytes(content.to_vec(), Path::new("example"), &options).unwrap();
    let requests = reader.by_ref().collect::<Result<_, _>>().unwrap();
    (requests, reader.skipped(), reader.ignored())
}

#[test]
fn arrival_hex() {
    let text = b"564037000,0x00001000,DiskWrite\n564243000,0x00000600,DiskRead\n";
    let expected = vec![
        request(564_037_000, 4096, Op::Write, None, None),
        request(564_243_000, 1536, Op::Read, None, None),
    ];
    assert_eq!(read(text).unwrap(), (TraceFormat::ArrivalHex, expected.clone()));
    // The same of an object store.
    assert_eq!(read(b"564037000,0x1000,Put\n564243000,0x600,Get\n").unwrap().1, expected);
    // Line ends of other systems, and none at all.
    assert_eq!(read(b"564037000,0x1000,DiskWrite\r\n564243000,0x600,DiskRead").unwrap().1, expected);
}

#[test]
fn csv_finds_columns_by_name_in_any_order() {
    let text = b"op,comment,size_bytes,arrival_ns\nread,x,4096,5\nwrite,,512,7\nflush,,0,8\n";
    let expected = vec![request(5, 4096, Op::Read, None, None), request(7, 512, Op::Write, None, None)];
    assert_eq!(read(text).unwrap(), (TraceFormat::Csv, expected));
    let text = b"arrival_us,bytes,type,offset,response_ms\n1.5,4096,R,,2\n2,512,W,1024,\n";
    let expected = vec![
        request(1500, 4096, Op::Read, None, Some(2_000_000)),
        request(2000, 512, Op::Write, Some(1024), None),
    ];
    assert_eq!(read(text).unwrap(), (TraceFormat::Csv, expected));
}

#[test]
fn msr_cambridge_is_rebased_to_the_first_request() {
    let text = b"128166372003061629,hm,1,Read,383496192,32768,413\n\
                 128166372016382155,hm,1,Write,2822144,4096,52\n";
    let expected = vec![
        request(0, 32_768, Op::Read, Some(383_496_192), Some(41_300)),
        request(1_332_052_600, 4096, Op::Write, Some(2_822_144), Some(5200)),
    ];
    assert_eq!(read(text).unwrap(), (TraceFormat::Msr, expected));
}

#[test]
fn umass_spc() {
    let text =
        b"0,20941264,8192,W,0.551706,Alpha/NT\n0,20939840,8192,r,0.554041\n1,3436288,15872,w,1.011732\n";
    let expected = vec![
        request(551_706_000, 8192, Op::Write, Some(20_941_264 * 512), None),
        request(554_041_000, 8192, Op::Read, Some(20_939_840 * 512), None),
        request(1_011_732_000, 15_872, Op::Write, Some(3_436_288 * 512), None),
    ];
    assert_eq!(read(text).unwrap(), (TraceFormat::Spc, expected));
}

#[test]
fn fio_version_2_takes_its_times_from_waits() {
    let text = b"fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n\
                 /dev/sda wait 1500\n/dev/sda write 8192 512\n/dev/sda sync\n/dev/sda wait 500\n\
                 /dev/sda read 4096 4096\n/dev/sda close\n";
    let expected = vec![
        request(0, 4096, Op::Read, Some(0), None),
        request(1_500_000, 512, Op::Write, Some(8192), None),
        request(2_000_000, 4096, Op::Read, Some(4096), None),
    ];
    assert_eq!(read(text).unwrap(), (TraceFormat::Fio, expected));
    assert_eq!(read_leniently(text).2, 1, "the sync is ignored and counted");
}

#[test]
fn fio_version_2_without_waits_has_no_times() {
    let text = b"fio version 2 iolog\nf add\nf open\nf read 0 4096\nf write 0 512\nf close\n";
    let error = read(text).unwrap_err();
    assert!(matches!(error.kind(), TraceErrorKind::Untimed), "{error}");
    assert!(error.hint().contains("--lenient"));
    assert!(read_leniently(text).0.iter().all(|request| request.arrival == Nanos::ZERO));
}

#[test]
fn fio_version_3_counts_microseconds() {
    let text = b"fio version 3 iolog\n2 nvme0n1 add\n872 nvme0n1 open\n878 nvme0n1 write 0 16384\n\
                 891 nvme0n1 trim 0 4096\n893 nvme0n1 read 16384 4096\n10001677 nvme0n1 close\n";
    let expected = vec![
        request(878_000, 16_384, Op::Write, Some(0), None),
        request(893_000, 4096, Op::Read, Some(16_384), None),
    ];
    assert_eq!(read(text).unwrap(), (TraceFormat::Fio, expected));
}

const BLKPARSE: &[u8] = b"  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]
  8,0    3        3     0.000006137   697  G   W 223490 + 8 [kjournald]
  8,0    3        4     0.000010000   697  Q   W 223498 + 8 [kjournald]
  8,0    3        5     0.000012000   697  M   W 223498 + 8 [kjournald]
  8,0    1        1     0.000020000   700  Q  RA 1000 + 16 [dd]
  8,0    1        2     0.000030000   700  Q FWS [kworker/1:1]
  8,0    1        3     0.000031000   700  Q   D 5000 + 8 [fstrim]
  8,0    3        6     0.000101829     0  C   W 223490 + 16 [0]
  8,0    1        4     0.000220000     0  C  RA 1000 + 16 [0]
  8,0    1        5     0.000300000   700  Q   R 64 + 8 [dd]
CPU3 (8,0):
 Reads Queued:           2,       12KiB\t Writes Queued:           2,        8KiB
Total (8,0):
";

#[test]
fn blkparse_answers_merged_requests_together() {
    let expected = vec![
        request(1829, 4096, Op::Write, Some(223_490 * 512), Some(100_000)),
        request(10_000, 4096, Op::Write, Some(223_498 * 512), Some(91_829)),
        request(20_000, 8192, Op::Read, Some(1000 * 512), Some(200_000)),
        request(300_000, 4096, Op::Read, Some(64 * 512), None),
    ];
    assert_eq!(read(BLKPARSE).unwrap(), (TraceFormat::Blkparse, expected));
    assert_eq!(read_leniently(BLKPARSE).2, 2, "the flush and the discard are ignored and counted");
}

fn vscsi_v2(command: u16, len: u32, block: u64, us: u64, response_us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend_from_slice(&command.to_le_bytes());
    record.extend_from_slice(&0x0200u16.to_le_bytes());
    record.extend_from_slice(&7u32.to_le_bytes());
    record.extend_from_slice(&len.to_le_bytes());
    record.extend_from_slice(&1u32.to_le_bytes());
    for value in [block, us, response_us] {
        record.extend_from_slice(&value.to_le_bytes());
    }
    record
}

fn vscsi_v1(command: u16, len: u32, block: u64, us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    for value in [7u32, len, 1] {
        record.extend_from_slice(&value.to_le_bytes());
    }
    record.extend_from_slice(&command.to_le_bytes());
    record.extend_from_slice(&0x0100u16.to_le_bytes());
    for value in [block, us] {
        record.extend_from_slice(&value.to_le_bytes());
    }
    record
}

#[test]
fn vscsi_versions_1_and_2() {
    let epoch = 1_300_000_000_000_000;
    let v2 = [
        vscsi_v2(0x28, 4096, 8, epoch, 250),
        vscsi_v2(0x35, 0, 0, epoch + 5, 9),
        vscsi_v2(0x8a, 512, 9, epoch + 10, 100),
    ];
    let expected = vec![
        request(0, 4096, Op::Read, Some(4096), Some(250_000)),
        request(10_000, 512, Op::Write, Some(9 * 512), Some(100_000)),
    ];
    assert_eq!(read(&v2.concat()).unwrap(), (TraceFormat::Vscsi, expected));
    let v1 = [vscsi_v1(0x28, 4096, 8, epoch), vscsi_v1(0x2a, 512, 9, epoch + 10)];
    let expected = vec![
        request(0, 4096, Op::Read, Some(4096), None),
        request(10_000, 512, Op::Write, Some(9 * 512), None),
    ];
    assert_eq!(read(&v1.concat()).unwrap(), (TraceFormat::Vscsi, expected));
    let mut cut = v2.concat();
    cut.pop();
    let error = read(&cut).unwrap_err();
    assert!(matches!(error.kind(), TraceErrorKind::Truncated(_)), "{error}");
    assert_eq!(error.position(), TracePosition::Record(3));
}

#[test]
fn errors_say_where_what_and_what_to_do() {
    let cases: [(&[u8], &str, &str); 6] = [
        (b"", "empty", "check"),
        (b"hello\nworld\n", "cannot tell the format", "--format"),
        (
            b"1,0x10,DiskRead\n2,16,DiskRead\n3,0x10,DiskRead\n",
            "line 2: expected arrival_ns,size_hex",
            "--lenient",
        ),
        (
            b"5,0x10,DiskRead\n4,0x10,DiskRead\n",
            "line 2: expected arrivals that do not decrease",
            "--sort-window",
        ),
        (b"arrival_ns,size_bytes,op\n1,x,read\n", "line 2: expected a size in whole bytes", "--lenient"),
        (b"arrival_ns,size_bytes,op\n", "the trace is empty", "check"),
    ];
    for (content, message, hint) in cases {
        let error = read(content).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("example") && text.contains(message), "{text}");
        assert!(error.hint().contains(hint), "{}", error.hint());
    }
}

#[test]
fn a_missing_file_and_a_folder_are_said_to_be_so() {
    for (path, message) in [("/nonexistent/trace.csv", "No such file"), ("/", "found a folder")] {
        let error = trace::open(Path::new(path), &OpenOptions::default()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn lenient_counts_what_it_skips() {
    let text = b"1,0x10,DiskRead\nnoise\n5,0x10,DiskRead\n3,0x10,DiskWrite\n6,0x10,DiskRead\n";
    let (requests, skipped, _) = read_leniently(text);
    assert_eq!((requests.len(), skipped), (3, 2));
    let only_noise = b"1,0x10,DiskRead\n".repeat(2);
    let skipped = 0;
    assert_eq!(read_leniently(&only_noise).1, skipped);
}

#[test]
fn a_sorting_window_restores_nearly_sorted_traces() {
    let text = b"2,0x10,DiskRead\n1,0x20,DiskRead\n4,0x10,DiskRead\n3,0x10,DiskRead\n";
    let options = OpenOptions { sort_window: 1, ..OpenOptions::default() };
    let reader = read_bytes(text.to_vec(), Path::new("example"), &options).unwrap();
    let arrivals: Vec<u64> = reader.map(|request| request.unwrap().arrival.0).collect();
    assert_eq!(arrivals, [1, 2, 3, 4]);
}

#[test]
fn a_line_without_end_is_malformed_rather_than_held_in_memory() {
    let mut text = b"1,0x10,DiskRead\n".to_vec();
    text.extend(std::iter::repeat_n(b'x', 1 << 20));
    text.extend_from_slice(b"\n2,0x10,DiskRead\n");
    let error = read(&text).unwrap_err();
    assert!(error.to_string().contains("line 2: expected a line of at most"), "{error}");
    let (requests, skipped, _) = read_leniently(&text);
    assert_eq!((requests.len(), skipped), (2, 1));
}

#[test]
fn cut_off_compressed_files_say_so_and_keep_their_beginning_when_lenient() {
    let folder = common::Folder::new();
    let requests: Vec<Request> = (0..20_000u64)
        .map(|n| request(n * n % 1000 + n * 1000, n * 7919 % 100_000, Op::Read, Some(n), None))
        .collect();
    for (name, format) in
        [("t.csv.gz", TraceFormat::Csv), ("t.csv.zst", TraceFormat::Csv), ("t.parquet", TraceFormat::Parquet)]
    {
        let path = folder.file(name);
        common::write(&path, format, &requests).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() * 2 / 3]).unwrap();
        let error = common::read(&path, &OpenOptions::default()).unwrap_err();
        assert!(matches!(error.kind(), TraceErrorKind::Truncated(_)), "{name}: {error}");
        if format == TraceFormat::Csv {
            let lenient = OpenOptions { lenient: true, ..OpenOptions::default() };
            let some = common::read(&path, &lenient).unwrap().len();
            assert!((1000..20_000).contains(&some), "{name}: {some}");
        }
    }
}

/// Lines as tcpdump 4.99 writes them, from an NFS client whose port is below the server's.
const TCPDUMP: &str = "\
tcpdump: verbose output suppressed, use -v[v]... for full protocol decode
listening on eth0, link-type EN10MB (Ethernet), snapshot length 262144 bytes
1700000000.000100 IP 10.0.0.1.871 > 10.0.0.9.2049: tcp 144
1700000000.000150 ARP, Request who-has 10.0.0.9 tell 10.0.0.1, length 28
1700000000.000200 IP 10.0.0.9.2049 > 10.0.0.1.871: tcp 0
1700000000.000300 IP 10.0.0.9.2049 > 10.0.0.1.871: tcp 1448
1700000000.000310 IP 10.0.0.9.2049 > 10.0.0.1.871: tcp 2776
1700000000.000400 eth0  In  IP6 fd00::7.40000 > fd00::9.2049: Flags [P.], seq 1:1449, ack 1, win 512, length 1448
1700000000.000500 IP 10.0.0.1.871 > 10.0.0.9.2049: tcp 120
1700000000.000600 eth0  Out IP6 fd00::9.2049 > fd00::7.40000: Flags [P.], seq 1:41, ack 1449, win 512, length 40
1700000000.000700 IP 10.0.0.9.2049 > 10.0.0.1.871: tcp 60
7 packets captured
";

#[test]
fn tcpdump_joins_packets_to_requests() {
    let expected = vec![
        request(0, 4224, Op::Read, None, Some(210_000)),
        request(300_000, 1448, Op::Write, None, Some(200_000)),
        request(400_000, 120, Op::Write, None, Some(200_000)),
    ];
    assert_eq!(read(TCPDUMP.as_bytes()).unwrap(), (TraceFormat::Tcpdump, expected));
    let error = read(format!("{TCPDUMP}12:00:00.1 IP a > b: tcp 3\n").as_bytes()).unwrap_err();
    assert!(
        error.to_string().contains("line 13") && error.to_string().contains("tcpdump -tt -n -q"),
        "{error}"
    );
}

#[test]
fn tcpdump_tells_servers_and_clients_apart() {
    let folder = common::Folder::new();
    let path = folder.file("capture");
    let text = format!("{TCPDUMP}1700000001.0 IP 10.0.0.1.5000 > 10.0.0.9.11211: tcp 30\n")
        .replace("7 packets captured\n", "");
    std::fs::write(&path, text).unwrap();
    let count = |selection: &str| {
        let name = std::path::PathBuf::from(format!("{}#{selection}", path.display()));
        let read: Result<Vec<_>, _> = trace::open(&name, &OpenOptions::default()).unwrap().collect();
        read.map(|requests| requests.len()).map_err(|error| error.to_string())
    };
    assert_eq!((count("port-2049"), count("port-11211")), (Ok(3), Ok(1)));
    assert_eq!((count("client=10.0.0.1"), count("client=fd00::7"), count("*")), (Ok(3), Ok(1), Ok(4)));
    assert!(count("port-80").is_err());
    assert!(read(&std::fs::read(&path).unwrap()).unwrap_err().to_string().contains("of one workload"));
}

/// Endless pipelining, connections without end and answers without requests take bounded memory and end.
#[test]
fn tcpdump_without_end_is_bounded() {
    let mut text = String::new();
    for number in 0u32..150_000 {
        let [_, a, b, c] = number.to_be_bytes();
        text.push_str(&format!(
            "1.{number:06} IP 10.{a}.{b}.{c}.4000 > 10.255.0.1.2049: tcp 18446744073709551615\n"
        ));
        text.push_str(&format!("1.{number:06} IP 10.255.0.1.2049 > 11.{a}.{b}.{c}.4000: tcp 1\n"));
    }
    let (format, requests) = read(text.as_bytes()).unwrap();
    assert_eq!((format, requests.len()), (TraceFormat::Tcpdump, 150_000));
}
