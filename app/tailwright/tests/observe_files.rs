//! What `tailwright observe` makes of a live server's requests: the ideal, a page, traces and logs. Takes root.

mod support;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::Folder;
use support::cluster::PROFILE;
use support::observer::{self, printed_document};
use support::servers::signal;

/// Bytes of requests and answers.
const REQUEST_BYTES: usize = 40;
const ANSWER_BYTES: usize = 700;

/// A server in a thread for each connection. It gives long answers to requests of [`REQUEST_BYTES`] and one byte to
/// those of [`ANSWER_BYTES`], which begin with another letter.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("a listener has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client connects");
            stream.set_nodelay(true).expect("a TCP socket has this option");
            std::thread::spawn(move || {
                let mut buffer = [0; ANSWER_BYTES];
                while let Ok(1..) = stream.read(&mut buffer[..1]) {
                    let (rest, answer) =
                        if buffer[0] == b'r' { (REQUEST_BYTES, ANSWER_BYTES) } else { (ANSWER_BYTES, 1) };
                    stream.read_exact(&mut buffer[1..rest]).expect("the whole request comes");
                    stream.write_all(&buffer[..answer]).expect("the client reads");
                }
            });
        }
    });
    address
}

/// Reads, and a write after every third.
fn ask(server: SocketAddr, reads: usize) -> usize {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let mut answer = [0; ANSWER_BYTES];
    for number in 0..reads {
        stream.write_all(&[b'r'; REQUEST_BYTES]).expect("the server reads");
        stream.read_exact(&mut answer).expect("the server answers");
        if number % 3 == 0 {
            stream.write_all(&[b'w'; ANSWER_BYTES]).expect("the server reads");
            stream.read_exact(&mut answer[..1]).expect("the server answers");
        }
    }
    reads + reads.div_ceil(3)
}

/// The program, observing a port for a minute, with files in a folder; returns once it does.
fn observing(folder: &Folder, port: u16, more: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    command.current_dir(folder.path());
    observer::observing(command, port, &[&["--json"], more].concat())
}

fn stop(child: Child, name: &str, code: i32) -> Value {
    signal(&child, name);
    printed_document(child, code)
}

#[test]
fn what_was_recorded_is_a_trace_for_the_other_verbs() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = server();
    for (signal, file) in [("INT", "live.csv"), ("TERM", "live.parquet")] {
        let child = observing(&folder, server.port(), &["--record", file]);
        let sent = ask(server, 600);
        let view = stop(child, signal, 0);
        assert_eq!(view["requests"].as_u64(), Some(sent as u64), "{view}");
        assert_eq!(
            (view["recorded_requests"].as_u64(), view["recorded_late"].as_u64()),
            (Some(sent as u64), Some(0))
        );
        let info = folder.run(&["trace", "info", file, "--json"]).expect_code(0).json();
        assert_eq!(info["count"].as_u64(), Some(sent as u64), "{info}");
        let reader = trace::open(&folder.join(file), &trace::OpenOptions::default()).expect("it is a trace");
        let writes =
            reader.filter(|request| request.as_ref().is_ok_and(|request| request.op == model::Op::Write));
        assert_eq!(writes.count(), 200, "{file}");
        folder.write("ssd.json", PROFILE);
        folder.write(
            "slos.csv",
            &format!("order,workload,trace,slo_percentile,slo_latency_s,note\n0,live,{file},99.9,1,x\n"),
        );
        let cluster = ["--slos", "slos.csv", "--storage", "ssd.json", "--network", "125MB/s", "--json"];
        let bounds = folder.run(&[&["bound"], &cluster[..]].concat()).expect_code(0).json();
        let bound = bounds["workloads"][0]["bound_s"].as_f64().expect("a bound");
        assert!(bound > 0.0 && bound < 1.0, "{bounds}");
        let plan =
            folder.run(&[&["plan", "--max-servers", "1"], &cluster[..]].concat()).expect_code(0).json();
        assert_eq!(plan["workloads_admitted"].as_u64(), Some(1), "{plan}");
    }
}

#[test]
fn a_recording_without_requests_is_no_file() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let child = observing(&folder, 1, &["--record", "live.csv", "--hdr", "live.hlog"]);
    assert!(!folder.join("live.csv").exists(), "whole or not there");
    let view = stop(child, "INT", 1);
    assert_eq!((view["requests"].as_u64(), view["ideal"].is_null()), (Some(0), true));
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("it is ours")
        .flatten()
        .map(|file| file.file_name())
        .collect();
    assert_eq!(left, ["live.hlog"]);
}

#[test]
fn logs_and_pages_have_every_request() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = server();
    let files =
        ["--hdr", "l.hlog", "--prometheus-file", "l.prom", "--slowest", "l.json", "--slowest-requests", "7"];
    let child = observing(&folder, server.port(), &[&files[..], &["--report", "l.html"]].concat());
    let sent = ask(server, 900);
    let view = stop(child, "INT", 0);
    assert_eq!(view["requests"].as_u64(), Some(sent as u64), "{view}");
    let ended = format!("tailwright_request_duration_seconds_count{{port=\"{}\"}} {sent}\n", server.port());
    assert!(folder.read("l.prom").contains(&ended), "{}", folder.read("l.prom"));
    let slowest: Value = serde_json::from_str(&folder.read("l.json")).expect("it is JSON");
    let events = slowest["traceEvents"].as_array().expect("a list");
    let whole: Vec<&Value> = events.iter().filter(|event| event["name"] == "request").collect();
    let max = view["latency_from_t1"]["max_s"].as_f64().expect("a number");
    assert_eq!(whole.len(), 7);
    let first = whole[0]["args"]["latency_from_t1_s"].as_f64().expect("a number");
    assert!((first / max - 1.0).abs() < 1e-9, "{first} {max}");
    let page = folder.read("l.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("one queue, constant service"), "{page}");
    support::browser::judge(&folder, "l.html", "observe");
    let log = folder.read("l.hlog");
    assert!(log.lines().any(|line| line.contains(",HIST")), "{log}");
}

/// Instant, client and cause of each request of a file of observations, by a reader that is not ours.
fn further_columns(path: &Path) -> Vec<(u64, String, String)> {
    let file = std::fs::File::open(path).expect("the file is there");
    let reader = SerializedFileReader::new(file).expect("it is Parquet");
    let row = |row: Result<Row, ParquetError>| {
        let mut found = (0, String::new(), String::new());
        for (name, value) in row.expect("it is whole").get_column_iter() {
            match (name.as_str(), value) {
                ("arrival_unix_ns", Field::ULong(arrival)) => found.0 = *arrival,
                ("client", Field::Str(client)) => found.1.clone_from(client),
                ("cause", Field::Str(cause)) => found.2.clone_from(cause),
                _ => {}
            }
        }
        found
    };
    reader.get_row_iter(None).expect("it has rows").map(row).collect()
}

/// Every request of a file has the instant, client and cause of its own, and other verbs read it as before.
#[test]
fn requests_in_a_file_have_instant_client_and_cause() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = server();
    let begin = machine::clock::real_time();
    let child = observing(&folder, server.port(), &["-o", "live.parquet"]);
    let clients: Vec<_> = (0..2).map(|_| std::thread::spawn(move || ask(server, 200))).collect();
    let sent: usize = clients.into_iter().map(|client| client.join().expect("a client does not panic")).sum();
    let view = stop(child, "INT", 0);
    let end = machine::clock::real_time();
    assert_eq!(view["requests"].as_u64(), Some(sent as u64), "{view}");
    let path = folder.join("live.parquet");
    let rows = trace::observations::read(&path).expect("it is read");
    let further = further_columns(&path);
    let arrivals: Vec<u64> = further.iter().map(|(arrival, ..)| *arrival).collect();
    assert_eq!((arrivals.len(), rows.requests.len()), (sent, sent));
    assert!(arrivals.iter().all(|arrival| (begin..end).contains(arrival)), "{begin} {arrivals:?} {end}");
    for (arrival, row) in arrivals.iter().zip(&rows.requests) {
        assert_eq!(arrival - arrivals[0], row.intended.0, "both count the same time");
    }
    let clients: BTreeSet<&str> = further.iter().map(|(_, client, _)| client.as_str()).collect();
    assert!(
        clients.len() == 2 && clients.iter().all(|client| client.starts_with("127.0.0.1:")),
        "{clients:?}"
    );
    let known: Vec<&str> = observe::Cause::ALL.map(observe::Cause::name).to_vec();
    assert!(further.iter().all(|(.., cause)| known.contains(&cause.as_str())), "{further:?}");
    let slo = format!("port-{}=50% < 1h", server.port());
    folder.run(&["verify", "live.parquet", "--slo", &slo]).expect_code(0);
}

#[test]
fn what_was_seen_is_printed_when_a_file_fails() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = server();
    std::fs::create_dir(folder.join("gone")).expect("it is ours");
    let child = observing(&folder, server.port(), &["--hdr", "gone/l.hlog", "--record", "live.csv"]);
    let sent = ask(server, 30);
    std::fs::remove_dir_all(folder.join("gone")).expect("it is ours");
    let view = stop(child, "INT", 3);
    assert_eq!(view["requests"].as_u64(), Some(sent as u64), "{view}");
    assert_eq!(view["recorded_requests"].as_u64(), Some(sent as u64), "{view}");
    assert!(folder.join("live.csv").exists(), "the other file is there");
}

#[test]
fn a_file_that_fails_is_the_reason_of_the_end() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = server();
    std::fs::create_dir(folder.join("gone")).expect("it is ours");
    let mut child = observing(&folder, server.port(), &["--prometheus-file", "gone/l.prom"]);
    std::fs::remove_dir_all(folder.join("gone")).expect("it is ours");
    // The file is replaced while requests come.
    while child.try_wait().expect("it is our child").is_none() {
        ask(server, 30);
    }
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let view: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!(view["ended"], "a file could not be written", "{view}");
}

/// A recording goes on when its disk fails, as when that is full, and what is missing is a failure in the end.
#[test]
fn a_recording_in_which_requests_are_missing_is_a_failure() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = server();
    let mut child = observing(&folder, server.port(), &["--record", "rec"]);
    std::fs::remove_dir_all(folder.join("rec")).expect("it is ours");
    let sent = ask(server, 30);
    let mut line = String::new();
    let stderr = child.stderr.as_mut().expect("it is piped");
    BufReader::new(stderr).read_line(&mut line).expect("stderr can be read");
    assert!(line.contains("it goes on when it can"), "{line}");
    signal(&child, "INT");
    let output = child.wait_with_output().expect("the program ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(&format!("rec: {sent} more requests could not be recorded")), "{said}");
    let view: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!((view["requests"].as_u64(), view["recorded_requests"].as_u64()), (Some(sent as u64), Some(0)));
}

#[test]
fn ideals_stand_beside_what_was_measured() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = server();
    let child = observing(&folder, server.port(), &[]);
    let clients: Vec<_> = (0..3).map(|_| std::thread::spawn(move || ask(server, 900))).collect();
    let sent: usize = clients.into_iter().map(|client| client.join().expect("a client does not panic")).sum();
    let view = stop(child, "INT", 0);
    let ideal = &view["ideal"];
    assert_eq!(
        (ideal["requests"].as_u64(), ideal["workers"].as_u64()),
        (Some(sent as u64), Some(3)),
        "{ideal}"
    );
    assert_ne!(ideal["clients"]["verdict"], "open", "each client waits for its answer: {ideal}");
    let p99 = |name: &str| ideal[name]["latency"]["p99_s"].as_f64().expect("a number");
    // Three workers for three clients that wait: nobody queues behind anybody.
    assert_eq!(p99("one_queue"), p99("queue_per_worker"), "{ideal}");
    let measured = ideal["measured"]["p99_s"].as_f64().expect("a number");
    assert!(measured >= p99("one_queue") && p99("one_queue") > 0.0, "{ideal}");
    let factor = ideal["one_queue"]["factor"]["p99"].as_f64().expect("a number");
    assert!((factor - measured / p99("one_queue")).abs() < 1e-6 * factor, "{ideal}");
    let variance = &view["variance"];
    assert!(variance["mean_wait_s"].as_f64().is_some_and(|wait| wait > 0.0), "{variance}");
}

#[test]
fn what_begins_under_load_is_true_from_its_first_request() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = server();
    let ended = Arc::new(AtomicBool::new(false));
    let client = std::thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            while !ended.load(Ordering::Relaxed) {
                ask(server, 3000);
            }
        }
    });
    let port = server.port().to_string();
    let mut busy_rounds = 0;
    // Beside other load, nothing or little may be asked in so short a time.
    for _ in 0..25 {
        let outcome = folder.run(&["observe", "--port", &port, "--duration", "200ms", "--json"]);
        if outcome.code == 1 {
            continue;
        }
        let view = outcome.expect_code(0).json();
        let clients = &view["ideal"]["clients"];
        // Who waits for each answer sends nothing before it has left.
        assert_eq!(clients["overlapping"].as_u64(), Some(0), "{clients}");
        busy_rounds += usize::from(clients["overlapping_expected"].as_f64().is_some_and(|many| many > 100.0));
        if busy_rounds == 5 {
            break;
        }
    }
    assert_eq!(busy_rounds, 5, "rounds in which requests of independent clients would have overlapped");
    ended.store(true, Ordering::Relaxed);
    client.join().expect("the client does not panic");
}

#[test]
fn what_cannot_be_written_is_said_at_once() {
    let folder = Folder::new();
    for (args, part) in [
        (&["--record", "live.txt"][..], "format of trace"),
        (&["--record", "no/such/live.csv"], "no/such"),
        (&["--hdr", "no/such/live.hlog"], "latency log"),
        (&["--prometheus-file", "no/such/x.prom"], "metrics"),
        (&["--slowest", "no/such/x.json"], "slowest"),
        (&["--report", "no/such/x.html"], "report"),
        (&["--hdr", "a", "--slowest", "a"], "expected another file"),
        (&["--hdr", "a", "--report", "./a"], "expected another file"),
        (&["-o", "live.csv"], "ends in .parquet"),
        (&["--mean-service", "0s"], "a time such as 8us"),
        (&["--slowest-requests", "5"], "--slowest"),
        (&["--workers", "0"], "--workers"),
    ] {
        let all = [&["observe", "--port", "80", "--duration", "10ms"], args].concat();
        let outcome = folder.run(&all);
        assert!(outcome.code == 2 || outcome.code == 3, "{args:?}: {}", outcome.code);
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
}
