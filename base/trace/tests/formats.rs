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
fn csv_is_separated_by_commas_semicolons_or_tabs() {
    let text = "arrival_ns,size_bytes,op,offset\n5,4096,read,\n7,512,write,8\n";
    let expected = read(text.as_bytes()).unwrap();
    assert_eq!(expected.1.len(), 2);
    for separator in [";", "\t"] {
        assert_eq!(read(text.replace(',', separator).as_bytes()).unwrap(), expected, "{separator:?}");
    }
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

/// Times as fio 3.33 replays them: milliseconds since the start of the job, none in the past.
#[test]
fn fio_version_2_takes_its_times_from_waits() {
    let text = b"fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n\
                 /dev/sda wait 500 0\n/dev/sda write 8192 512\n/dev/sda sync\n/dev/sda wait 1000 0\n\
                 /dev/sda read 4096 4096\n/dev/sda wait 400 0\n/dev/sda read 0 512\n/dev/sda close\n";
    let ms = 1_000_000;
    let expected = vec![
        request(0, 4096, Op::Read, Some(0), None),
        request(500 * ms, 512, Op::Write, Some(8192), None),
        request(1000 * ms, 4096, Op::Read, Some(4096), None),
        request(1000 * ms, 512, Op::Read, Some(0), None),
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
    assert!(error.to_string().contains("line 13") && error.to_string().contains("tcpdump -tt -n"), "{error}");
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
    assert_eq!((count("client=fd00::7"), count("*")), (Ok(1), Ok(4)));
    // Requests of a client to two servers are no trace.
    assert!(count("client=10.0.0.1").unwrap_err().contains("at one server"));
    let at = |port: u16| count(&format!("client=10.0.0.1@10.0.0.9:{port}"));
    assert_eq!((at(2049), at(11211)), (Ok(2), Ok(1)));
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

/// A request is complete when all its sectors are, in whatever parts and order.
#[test]
fn blkparse_waits_for_all_parts_of_a_split_request() {
    let text =
        b"8,16 0 1 0.010000000 7 Q WS 8192 + 1024 [fio]\n8,16 0 2 0.010010000 7 X WS 8192 / 8704 [fio]\n\
        8,16 0 3 0.010100000 7 D WS 8192 + 512 [fio]\n8,16 0 4 0.010200000 7 D WS 8704 + 512 [fio]\n\
        8,16 0 5 0.010300000 7 Q WS 20000 + 8 [fio]\n\
        8,16 0 6 0.011000000 0 C WS 8704 + 512 [0]\n8,16 0 7 0.012000000 0 C WS 8192 + 100 [0]\n\
        8,16 0 8 0.013000000 0 C WS 20000 + 8 [0]\n8,16 0 9 0.015000000 0 C WS 8292 + 412 [0]\n";
    let expected = vec![
        request(10_000_000, 524_288, Op::Write, Some(8192 * 512), Some(5_000_000)),
        request(10_300_000, 4096, Op::Write, Some(20_000 * 512), Some(2_700_000)),
    ];
    assert_eq!(read(text).unwrap().1, expected);
}

#[test]
fn blkparse_skips_passthrough_commands() {
    let text =
        b"8,16 0 1 0.000000000 7 Q RS 2048 + 8 [Web Content]\n8,16 0 2 0.000200000 0 C RS 2048 + 8 [0]\n\
        8,16 0 3 0.001000000 7 D R 36 (12 00 00 00 24 00 ..) [smartd]\n\
        8,16 0 4 0.001200000 0 C R (12 00 00 00 24 00 ..) [0]\n\
        8,16 0 5 0.010000000 7 Q R 8192 + 8 [Web Content]\n8,16 0 6 0.011000000 0 C R 8192 + 8 [0]\n";
    let expected = vec![
        request(0, 4096, Op::Read, Some(2048 * 512), Some(200_000)),
        request(10_000_000, 4096, Op::Read, Some(8192 * 512), Some(1_000_000)),
    ];
    assert_eq!(read(text).unwrap().1, expected);
}

/// One request of a mapped device is two queued ones, on it and below it.
#[test]
fn blkparse_counts_a_request_of_stacked_devices_once() {
    let text = "253,0 0 1 0.000000000 7 Q R 2048 + 8 [fio]\n8,0 0 2 0.000001000 7 A R 4096 + 8 <- (253,0) 2048\n\
        8,0 0 3 0.000001500 7 Q R 4096 + 8 [fio]\n8,0 0 4 0.000003000 7 D R 4096 + 8 [fio]\n\
        8,0 0 5 0.000200000 0 C R 4096 + 8 [0]\n253,0 0 6 0.000201000 0 C R 2048 + 8 [0]\n";
    let upper = request(0, 4096, Op::Read, Some(2048 * 512), Some(201_000));
    let lower = request(1500, 4096, Op::Read, Some(4096 * 512), Some(198_500));
    assert_eq!(read(text.as_bytes()).unwrap().1, [upper]);
    // Without the remapping it is not known that the two are one: the user names the device.
    let unknown = text.replace(" A ", " G ");
    assert!(read(unknown.as_bytes()).unwrap_err().to_string().contains("'253,0' and '8,0'"));
    let folder = common::Folder::new();
    for (text, name) in [(text, "known"), (&unknown, "unknown")] {
        let path = folder.file(name);
        std::fs::write(&path, text).unwrap();
        let of = |selection: &str| {
            let name = std::path::PathBuf::from(format!("{}#{selection}", path.display()));
            trace::open(&name, &OpenOptions::default()).unwrap().collect::<Result<Vec<_>, _>>()
        };
        let selected =
            |requests: &[Request]| requests.iter().map(|r| (r.offset, r.response)).collect::<Vec<_>>();
        assert_eq!(selected(&of("253,0").unwrap()), selected(&[upper]), "{name}");
        assert_eq!(selected(&of("8,0").unwrap()), selected(&[lower]), "{name}");
        // Two devices of which neither is known to be the other are two servers.
        assert_eq!(of("client=fio").is_ok_and(|requests| requests.len() == 1), name == "known");
        assert_eq!(of("client=fio@253,0").unwrap().len(), 1);
    }
}

/// Dispatches are arrivals where nothing was queued, and not because a trace begins in the middle.
#[test]
fn blkparse_without_queued_requests_takes_dispatches() {
    let event = |n: u64, action: &str, sector: u64| {
        format!("8,16 0 {n} 0.{:09} 7 {action} R {sector} + 8 [fio]\n", n * 1000)
    };
    let dispatched = event(1, "D", 8)
        + &event(2, "C", 8)
        + &event(3, "D", 16)
        + &event(4, "R", 16)
        + &event(4, "D", 16)
        + &event(5, "C", 16);
    let content = dispatched.clone().into_bytes();
    let mut reader = read_bytes(content, Path::new("x"), &OpenOptions::default()).unwrap();
    let requests: Vec<Request> = reader.by_ref().map(Result::unwrap).collect();
    let responses: Vec<_> = requests.iter().map(|request| request.response.unwrap().0).collect();
    assert_eq!(responses, [1000, 2000], "a second dispatch is a requeued request");
    assert!(reader.remarks()[0].contains("(D)"), "{:?}", reader.remarks());
    let in_the_middle = dispatched + &event(6, "Q", 24) + &event(7, "D", 24) + &event(8, "C", 24);
    assert_eq!(read(in_the_middle.as_bytes()).unwrap().1.len(), 1);
    let completed: String = (1..9).map(|n| event(n, "C", 8 * n)).collect();
    let error = read(completed.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("neither queued (Q) nor dispatched (D)"), "{error}");
    assert!(error.hint().contains("blktrace -a"), "{}", error.hint());
}

/// Completions that cut requests into ever smaller parts take bounded time.
#[test]
fn blkparse_of_overlapping_parts_ends() {
    let mut text = String::new();
    for n in 0..100_000u64 {
        text.push_str(&format!("8,0 0 1 {}.0 7 Q R {} + 1000000 [x]\n", n, n % 7));
        text.push_str(&format!("8,0 0 1 {}.5 7 C R {} + 1 [x]\n", n, n % 1000 * 2));
    }
    assert_eq!(read(text.as_bytes()).unwrap().1.len(), 100_000);
}

/// Arrival and response in milliseconds, size and direction.
type Exchange = (u64, u64, Op, Option<u64>);

fn exchanges(lines: &[&str]) -> Result<Vec<Exchange>, String> {
    let text: String = lines.iter().map(|line| format!("17000000{line}\n")).collect();
    let (format, requests) = read(text.as_bytes()).map_err(|error| error.to_string())?;
    assert_eq!(format, TraceFormat::Tcpdump);
    let ms = |ns: u64| ns / 1_000_000;
    Ok(requests
        .iter()
        .map(|r| (ms(r.arrival.0), r.size.0, r.op, r.response.map(|time| ms(time.0))))
        .collect())
}

#[test]
fn tcpdump_takes_who_opens_or_speaks_first_for_the_client() {
    let expected = Ok(vec![(0, 300, Op::Write, Some(1)), (10, 300, Op::Write, Some(1))]);
    let spoken = [
        "00.010 IP 10.0.0.1.33000 > 10.0.0.9.50051: tcp 300",
        "00.011 IP 10.0.0.9.50051 > 10.0.0.1.33000: tcp 40",
        "00.020 IP 10.0.0.1.33000 > 10.0.0.9.50051: tcp 300",
        "00.021 IP 10.0.0.9.50051 > 10.0.0.1.33000: tcp 40",
    ];
    assert_eq!(exchanges(&spoken), expected);
    // A server that speaks first, whose client was seen to open the connection, with and without flags.
    let greeting = "00.005 IP 10.0.0.9.50051 > 10.0.0.1.33000: tcp 20";
    let flags = [
        "00.001 IP 10.0.0.1.33000 > 10.0.0.9.50051: Flags [S], seq 99, win 65535, length 0",
        "00.002 IP 10.0.0.9.50051 > 10.0.0.1.33000: Flags [S.], seq 5, ack 100, win 65535, length 0",
    ];
    assert_eq!(exchanges(&[&flags[..], &[greeting], &spoken].concat()), expected);
    assert_eq!(exchanges(&[&flags[1..], &[greeting], &spoken].concat()), expected);
    let empty = [
        "00.001 IP 10.0.0.1.33000 > 10.0.0.9.50051: tcp 0",
        "00.002 IP 10.0.0.9.50051 > 10.0.0.1.33000: tcp 0",
        "00.003 IP 10.0.0.1.33000 > 10.0.0.9.50051: tcp 0",
    ];
    assert_eq!(exchanges(&[&empty[..], &[greeting], &spoken].concat()), expected);
    // A server below all ports of clients, captured in the middle of an answer.
    let low = |line: &str| line.replace("50051", "9000").replace("33000", "40000");
    let middle: Vec<String> = [&[greeting], &spoken[..]].concat().into_iter().map(low).collect();
    let middle: Vec<&str> = middle.iter().map(String::as_str).collect();
    assert_eq!(exchanges(&middle), expected);
    // A server that is known from an earlier connection.
    let second = [
        "00.030 IP 10.0.0.9.50051 > 10.0.0.2.33001: tcp 40",
        "00.040 IP 10.0.0.2.33001 > 10.0.0.9.50051: tcp 300",
    ];
    assert_eq!(exchanges(&[&spoken[..], &second].concat()).unwrap()[2], (30, 300, Op::Write, None));
}

#[test]
fn tcpdump_lines_that_cannot_be_parsed_are_errors() {
    for (line, remedy) in [
        ("00.01 IP app-1.lan.40000 > store.lan.nfs: tcp 144", "tcpdump -tt -n"),
        ("00.01 IP 10.0.0.1.40000 > 10.0.0.9.nfs: tcp 144", "tcpdump -tt -n"),
        ("00.01 IP app.4000 > 10.0.0.9.2049: Flags [P.], seq 1:3, ack 1, win 5, length 2", "tcpdump -tt -n"),
        ("00.01 IP 10.0.0.1.5000 > 10.0.0.9.2049: 140 getattr fh 0,1/2", "-q"),
    ] {
        let error = exchanges(&[line, "00.02 IP 10.0.0.1.5000 > 10.0.0.9.2049: tcp 10"]).unwrap_err();
        assert!(error.contains("line 1") && error.contains(remedy), "{error}");
    }
    let others = [
        "00.01 IP 10.0.0.1 > 10.0.0.9: ICMP echo request, id 1, seq 1, length 64",
        "00.01 IP app-1.lan > store.lan: ICMP echo request, id 1, seq 1, length 64",
        "00.01 ARP, Request who-has 10.0.0.9 tell 10.0.0.1, length 28",
        "00.02 IP 10.0.0.1.5000 > 10.0.0.9.2049: tcp 10",
    ];
    assert_eq!(exchanges(&others).unwrap().len(), 1);
}

#[test]
fn tcpdump_counts_a_packet_that_is_captured_twice_once() {
    let write = Ok(vec![(0, 1448, Op::Write, Some(201))]);
    let quiet = [
        "00.000 IP 10.0.0.7.40000 > 10.0.0.9.11211: tcp 1448",
        "00.200 IP 10.0.0.7.40000 > 10.0.0.9.11211: tcp 1448",
        "00.201 IP 10.0.0.9.11211 > 10.0.0.7.40000: tcp 8",
    ];
    assert_eq!(exchanges(&quiet), write, "without sequence numbers");
    let segments = [
        "00.000 IP 10.0.0.7.40000 > 10.0.0.9.11211: tcp 1448",
        "00.001 IP 10.0.0.7.40000 > 10.0.0.9.11211: tcp 1448",
        "00.201 IP 10.0.0.9.11211 > 10.0.0.7.40000: tcp 8",
    ];
    assert_eq!(exchanges(&segments), Ok(vec![(0, 2896, Op::Write, Some(201))]), "two segments");
    let packet = |time: &str, flags: &str| {
        format!(
            "{time} IP 10.0.0.7.40000 > 10.0.0.9.11211: Flags [P.], seq {flags}, ack 1, win 9, length 1448"
        )
    };
    let answer = "00.201 IP 10.0.0.9.11211 > 10.0.0.7.40000: Flags [P.], seq 1:9, ack 1449, win 9, length 8";
    let fast = [packet("00.000", "1:1449"), packet("00.003", "1:1449"), packet("00.300", "1:1449")];
    assert_eq!(
        exchanges(&[&fast[0], &fast[1], answer, &fast[2]]),
        write,
        "by sequence number, before and after"
    );
    let devices = [
        "00.000 eth0  In  IP 10.0.0.7.40000 > 10.0.0.9.11211: tcp 1448",
        "00.000 docker0 Out IP 10.0.0.7.40000 > 10.0.0.9.11211: tcp 1448",
        "00.201 veth1 P   IP 10.0.0.9.11211 > 10.0.0.7.40000: tcp 8",
        "00.201 eth0  Out IP 10.0.0.9.11211 > 10.0.0.7.40000: tcp 8",
    ];
    assert_eq!(exchanges(&devices), write, "printed for each device");
    let mirrored: Vec<String> = (0..10)
        .flat_map(|n| {
            let request = format!("0{n}.0000 IP 10.0.0.7.40000 > 10.0.0.9.11211: tcp 30");
            let answer = format!("0{n}.0050 IP 10.0.0.9.11211 > 10.0.0.7.40000: tcp 100");
            [
                request.clone(),
                request.replace(".0000", ".0001"),
                answer.clone(),
                answer.replace(".0050", ".0051"),
            ]
        })
        .collect();
    let mirrored: Vec<&str> = mirrored.iter().map(String::as_str).collect();
    let read = exchanges(&mirrored).unwrap();
    assert!(read.len() == 10 && read.iter().all(|&(_, size, ..)| size == 100), "mirrored: {read:?}");
}

#[test]
fn byte_order_marks_and_blanks_are_no_content() {
    let plain = b"arrival_us,size,op\n0,4096,read\n1000,4096,write\n";
    let expected = read(plain).unwrap();
    assert_eq!(read(&[b"\xef\xbb\xbf", &plain[..]].concat()).unwrap(), expected);
    assert_eq!(read(b"arrival_us , size,op\n 0, 4096 ,read\n1000\t,4096, write \n").unwrap(), expected);
    let hex = b"0,0x10,DiskRead\n5,0x10,DiskRead\n";
    assert_eq!(read(&[b"\xef\xbb\xbf", &hex[..]].concat()).unwrap(), read(hex).unwrap());
    let fio = b"fio version 3 iolog\n1 f read 0 4096\n";
    assert_eq!(read(&[b"\xef\xbb\xbf", &fio[..]].concat()).unwrap(), read(fio).unwrap());
}

#[test]
fn files_that_are_something_else_are_named_with_the_command_that_helps() {
    let cases: [(&[u8], &str, &str); 9] = [
        (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", "capture of packets", "tcpdump -tt -n -r"),
        (b"\x0a\x0d\x0d\x0a\x1c\0\0\0", "capture of packets", "tcpdump -tt -n -r"),
        (
            b"1.000000 00:00:00:00:00:01 > 00:00:00:00:00:02, ethertype IPv4 (0x0800), length 102: 10.0.0.7.50000 > 10.0.0.1.2049: Flags [P.], seq 1:37, ack 1, win 1, length 36\n",
            "tcpdump -e",
            "without -e",
        ),
        (
            b"1.000000 IP (tos 0x0, ttl 64, id 1, offset 0, flags [DF], proto TCP (6), length 88)\n    10.0.0.7.50000 > 10.0.0.1.2049: Flags [P.], cksum 0x1 (correct), seq 1:37, ack 1, win 1, length 36\n",
            "tcpdump -v",
            "without -v",
        ),
        (b"\x07tae\0\0\0\0", "blktrace", "blkparse -i"),
        (b"\xff\xfea\0r\0", "UTF-16", "iconv"),
        (b"{\"resourceSpans\":[]}", "spans", "trace callgraph"),
        (b"[[{\"traceId\":\"a\"}]]", "spans", "trace callgraph"),
        (b"{\"servers\": 3}", "JSON document", "trace-formats.md"),
    ];
    for (content, what, remedy) in cases {
        let error = read(content).unwrap_err();
        assert!(
            error.to_string().contains(what) && error.hint().contains(remedy),
            "{error}: {}",
            error.hint()
        );
    }
}

/// From a public trace of LVM on a partition: the partition has remaps, but no queued requests.
#[test]
fn blkparse_follows_remaps_through_a_partition() {
    let text = b"253,0 0 1 0.000000000 7 Q R 11460712 + 32 [fio]\n8,2 0 2 0.000001000 7 A R 11461096 + 32 <- (253,0) 11460712\n\
        8,0 0 3 0.000002000 7 A R 13560296 + 32 <- (8,2) 11461096\n8,0 0 4 0.000003000 7 Q R 13560296 + 32 [fio]\n\
        8,0 0 5 0.000200000 0 C R 13560296 + 32 [0]\n253,0 0 6 0.000201000 0 C R 11460712 + 32 [0]\n";
    assert_eq!(read(text).unwrap().1, [request(0, 16_384, Op::Read, Some(11_460_712 * 512), Some(201_000))]);
}

/// A completion of sectors that several requests have is that of the latest: one that was lost is not found
/// in a much later one.
#[test]
fn blkparse_gives_a_completion_to_one_request() {
    let lost = "8,0 0 1 0.000000000 7 Q W 80 + 8 [jbd2]\n8,0 0 2 10.000000000 7 Q W 80 + 8 [jbd2]\n\
        8,0 0 3 10.000200000 0 C W 80 + 8 [0]\n";
    let requests = read(lost.as_bytes()).unwrap().1;
    assert_eq!(requests.iter().map(|r| r.response).collect::<Vec<_>>(), [None, Some(Nanos(200_000))]);
    let both = "8,0 0 1 0.000000000 7 Q R 80 + 8 [a]\n8,0 1 1 0.000001000 8 Q R 84 + 8 [b]\n\
        8,0 0 2 0.000100000 0 C R 84 + 8 [0]\n8,0 0 3 0.009000000 0 C R 80 + 8 [65531]\n";
    let mut reader = read_bytes(both.as_bytes().to_vec(), Path::new("x"), &OpenOptions::default()).unwrap();
    let responses: Vec<_> = reader.by_ref().map(|request| request.unwrap().response).collect();
    assert_eq!(responses, [Some(Nanos(9_000_000)), Some(Nanos(99_000))]);
    assert!(reader.remarks()[0].contains("with an error: 1;"), "{:?}", reader.remarks());
}

#[test]
fn blkparse_outputs_begin_and_end_with_lines_of_their_own() {
    let events = "8,0 0 1 0.000000000 7 Q R 80 + 8 [fio]\n8,0 0 2 0.000100000 0 C R 80 + 8 [0]\n";
    let whole = format!(
        "Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n{events}fio (1507)\n Reads Queued: 1, 4KiB\n\
         CPU0 (8,0):\n Reads Queued: 1, 4KiB\nTotal (8,0):\n\nThroughput (R/W): 1KiB/s / 0KiB/s\n"
    );
    assert_eq!(read(whole.as_bytes()).unwrap().1.len(), 1);
    let later = events.replace("0.000", "7.000");
    assert_eq!(
        read(format!("{whole}{later}").as_bytes()).unwrap().1.len(),
        2,
        "a second output behind the first"
    );
    assert!(read(format!("{later}{whole}").as_bytes()).unwrap_err().to_string().contains("do not decrease"));
}

#[test]
fn tcpdump_answers_may_be_slow_and_end_in_silence() {
    let slow = [
        "00.000 IP 10.0.0.1.700 > 10.0.0.9.2049: tcp 128",
        "05.000 IP 10.0.0.2.700 > 10.0.0.9.2049: tcp 128",
        "05.001 IP 10.0.0.9.2049 > 10.0.0.2.700: tcp 256",
        "11.000 IP 10.0.0.2.700 > 10.0.0.9.2049: tcp 128",
        "11.001 IP 10.0.0.9.2049 > 10.0.0.2.700: tcp 256",
        "12.000 IP 10.0.0.9.2049 > 10.0.0.1.700: tcp 256",
    ];
    let read = exchanges(&slow).unwrap();
    assert_eq!((read[0], read.len()), ((0, 256, Op::Read, Some(12_000)), 3), "whatever others do meanwhile");
    let closing = [
        "00.000 IP 10.0.0.1.40000 > 10.0.0.9.443: tcp 100",
        "00.001 IP 10.0.0.9.443 > 10.0.0.1.40000: tcp 5000",
        "65.001 IP 10.0.0.9.443 > 10.0.0.1.40000: tcp 31",
    ];
    assert_eq!(exchanges(&closing), Ok(vec![(0, 5000, Op::Read, Some(1))]));
}

#[test]
fn tcpdump_keeps_equal_packets_that_are_no_copies() {
    let numbered = |n: u32, device: &str, first: u32| {
        format!(
            "00.0{n}0 {device} In IP 10.0.0.7.40000 > 10.0.0.9.11211: Flags [P.], seq {first}:{}, ack 1, win 9, length 20",
            first + 20
        )
    };
    let answer = |n: u32, first: u32| {
        format!(
            "00.0{n}1 eth0 Out IP 10.0.0.9.11211 > 10.0.0.7.40000: Flags [P.], seq {first}:{}, ack 21, win 9, length 100",
            first + 100
        )
    };
    // Two links of a bond in turn, each packet on the bond, too; then one link goes away.
    let lines: Vec<String> = (0..6)
        .flat_map(|n| {
            let first = 1 + 20 * n;
            let link = if n % 2 == 0 { "eth0" } else { "eth1" };
            [numbered(n, link, first), numbered(n, "bond0", first), answer(n, 1 + 100 * n)]
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let read = exchanges(&lines).unwrap();
    assert!(
        read.len() == 6 && read.iter().all(|&(_, size, _, response)| (size, response) == (100, Some(1))),
        "{read:?}"
    );
    let datagrams = |n: u32| format!("0{n}.000 IP 10.0.0.7.40000 > 10.0.0.9.8125: UDP, length 64");
    let segments = |n: u32| format!("0{n}.000 IP 10.0.0.7.40000 > 10.0.0.9.2003: tcp 128");
    let sum = |line: &dyn Fn(u32) -> String| {
        let lines: Vec<String> = (0..10).map(line).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        exchanges(&lines).unwrap().iter().map(|&(_, size, ..)| size).sum::<u64>()
    };
    assert_eq!(sum(&datagrams), 640, "datagrams are not retransmitted by the kernel");
    assert_eq!(sum(&segments), 128 * 9, "a stream without answers: only the second looks retransmitted");
    let doubling: Vec<String> = ["00.0", "00.2", "00.6", "01.4", "03.0"]
        .map(|at| format!("{at} IP 10.0.0.7.40000 > 10.0.0.9.2003: tcp 128"))
        .to_vec();
    let doubling: Vec<&str> = doubling.iter().map(String::as_str).collect();
    assert_eq!(exchanges(&doubling).unwrap()[0].1, 128, "waits that double");
}

#[test]
fn tcpdump_says_what_it_guessed_and_skips_other_protocols() {
    let numbered = "    1  1700000000.010 IP 10.0.0.1.33000 > 10.0.0.9.50051: tcp 300\n";
    assert!(read(numbered.as_bytes()).unwrap_err().to_string().contains("tcpdump -tt -n"));
    let lines = "1700000000.001 LLDP, length 60: store\n1700000000.002 IP bad-hlen 16\n\
        1700000000.003 IP 10.0.0.1.5000 > 10.0.0.9.6000: sctp (1) [INIT]\n\
        1700000000.004 IP 10.0.0.1.5000 > 10.0.0.9.6000: [|tcp]\n\
        1700000000.010 IP 10.0.0.1.33000 > 10.0.0.9.50051: tcp 300\n\
        1700000000.011 IP 10.0.0.9.50051 > 10.0.0.1.33000: tcp 40\n";
    let mut reader = read_bytes(lines.as_bytes().to_vec(), Path::new("x"), &OpenOptions::default()).unwrap();
    assert_eq!(reader.by_ref().map(Result::unwrap).count(), 1);
    assert_eq!(reader.ignored(), 4);
    assert!(reader.remarks()[0].contains("sent first"), "{:?}", reader.remarks());
    let dns = [
        "00.01 IP 10.0.0.1.5000 > 10.0.0.9.53: 7+ A? store.lan. (29)",
        "00.02 IP 10.0.0.9.53 > 10.0.0.1.5000: 7 1/0/0 A 10.0.0.3 (45)",
    ];
    assert_eq!(exchanges(&dns), Ok(vec![(0, 45, Op::Read, Some(10))]));
}

#[test]
fn csv_takes_quotes_and_latencies_in_any_unit() {
    let expected = read(b"arrival_us,size,op,response_us\n0,4096,read,2000\n").unwrap();
    assert_eq!(
        read(b"\"arrival_us\",\"size\",\"op\",\"latency_ms\"\n\"0\",\"4096\",\"read\",\"2\"\n").unwrap(),
        expected
    );
    let log = read(b"0, 22333, 1, 4096, 0\n282, 42332, 1, 4096, 0\n").unwrap_err();
    assert!(log.to_string().contains("fio") && log.hint().contains("write_iolog"), "{log}: {}", log.hint());
}
