//! `tailwright load` as users run it: files, exit codes, and once for real.

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use support::Folder;

/// A server that speaks enough of memcached for `set` and `get`, on a free port.
fn memcached() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let values =
        std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeMap::<String, Vec<u8>>::new()));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let values = values.clone();
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
                    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
                    let reply = if words[0] == "set" {
                        let mut value = vec![0; words[4].parse::<usize>().unwrap() + 2];
                        std::io::Read::read_exact(&mut lines, &mut value).unwrap();
                        values.lock().unwrap().insert(words[1].clone(), value);
                        b"STORED\r\n".to_vec()
                    } else {
                        let values = values.lock().unwrap();
                        let value = &values[&words[1]];
                        let head = format!("VALUE {} 0 {}\r\n", words[1], value.len() - 2);
                        [head.as_bytes(), value, b"END\r\n"].concat()
                    };
                    if stream.write_all(&reply).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    port
}

fn folder(workload: &str) -> (Folder, u16) {
    let folder = Folder::new();
    let port = memcached();
    let file = format!(
        "duration = \"1s\"\nverify_data = true\n[[workload]]\nname = \"web\"\n\
         target = \"memcached://127.0.0.1:{port}?keys=5\"\n{workload}\n"
    );
    folder.write("load.toml", &file);
    (folder, port)
}

const POISSON: &str = "connections = 2\narrivals = \"poisson(500/s)\"\nsize = \"1KiB\"\nreads = 0.7";

#[test]
fn every_request_is_in_the_files() {
    let (folder, _) = folder(POISSON);
    let args = [
        "load",
        "load.toml",
        "--json",
        "-o",
        "run.parquet",
        "--hdr-folder",
        "logs",
        "--set",
        "warm_up=100ms",
    ];
    let outcome = folder.run(&args).expect_code(0);
    let view = outcome.json();
    let web = &view["workloads"][0];
    let requests = web["requests"].as_u64().unwrap();
    assert!((300..700).contains(&requests), "{view}");
    assert_eq!((web["failed"].as_u64(), web["lost"].as_u64()), (Some(0), Some(0)));
    assert_eq!(view["compared"]["mismatches"], 0);
    assert!(view["compared"]["bytes"].as_u64().unwrap() > 100 << 10);
    let observed = trace::observations::read(&folder.join("run.parquet")).unwrap();
    assert_eq!((observed.requests.len() as u64, observed.workloads), (requests, vec!["web".to_owned()]));
    let log = folder.read("logs/web.hlog");
    assert_eq!(log.lines().filter(|line| line.contains("HIST")).count(), 1, "{log}");
    let table = folder.run(&["load", "load.toml", "--set", "duration=100ms"]).expect_code(0).stdout;
    assert!(table.starts_with("workload") && table.contains("\nweb "), "{table}");
}

#[test]
fn a_trace_is_replayed_at_its_speed() {
    let (folder, _) = folder("trace = \"t.csv\"\nspeed = 2.0\nstart = \"1s\"\nrequests = 3");
    folder.write(
        "t.csv",
        "arrival_s,op,size_bytes\n10.0,read,100\n11.2,read,100\n11.4,write,200\n11.8,read,300\n11.9,read,300\n",
    );
    folder.run(&["load", "load.toml", "-o", "run.parquet"]).expect_code(0);
    let observed = trace::observations::read(&folder.join("run.parquet")).unwrap().requests;
    let at: Vec<(u64, u64)> =
        observed.iter().map(|request| (request.intended.0 / 1_000_000, request.size.0)).collect();
    // The window begins at 11.0: the first of it keeps its distance, what follows comes at twice the speed.
    assert_eq!(at, [(200, 100), (300, 200), (500, 300)]);
}

#[test]
fn faults_say_where_and_whose_they_are() {
    for (workload, set, code, part) in [
        ("size = \"1KiB\"", "", 2, "size and reads go with arrivals"),
        ("arrivals = \"poisson(500/s)\"", "", 2, "arrivals need a size"),
        ("arrivals = \"often\"\nsize = \"1KiB\"", "", 2, "line 6"),
        ("connections = 2", "", 2, "expected one of: trace; arrivals and size; closed"),
        ("trace = \"nowhere.csv\"", "", 2, "nowhere.csv"),
        ("speed = 2\nclosed = { outstanding = 1, op = \"read\", size = \"1KiB\" }", "", 2, "about a trace"),
        (POISSON, "workload.web.connections=0", 2, "workload web: 0 connections"),
        (POISSON, "workload.web.requests_per_connection=[3, 2]", 2, "connections without requests"),
        (POISSON, "workload.mail.size=4KiB", 2, "no element 'mail'"),
        (POISSON, "workload.web.target=gopher://x", 2, "expected a target such as"),
        (POISSON, "workload.web.netns=not-there", 3, "not-there cannot be entered"),
        (POISSON, "workload.web.target=memcached://127.0.0.1:1", 3, "127.0.0.1:1 cannot be reached"),
    ] {
        let (folder, _) = folder(workload);
        let mut args = vec!["load", "load.toml"];
        if !set.is_empty() {
            args.extend(["--set", set]);
        }
        let outcome = folder.run(&args).expect_code(code);
        assert!(
            outcome.stderr.contains(part) && outcome.stderr.contains("hint"),
            "{part}: {}",
            outcome.stderr
        );
    }
}

/// The server is not to blame for a limit of this process.
#[test]
fn too_few_open_files_are_named_as_the_reason() {
    let folder = Folder::new();
    let port = memcached();
    folder.write(
        "load.toml",
        &format!(
            "duration = \"1s\"\n[[workload]]\nname = \"web\"\nconnections = 100\narrivals = \"poisson(500/s)\"\n\
             size = \"1KiB\"\ntarget = \"memcached://127.0.0.1:{port}?keys=5\"\n"
        ),
    );
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" load load.toml", env!("CARGO_BIN_EXE_tailwright")])
        .current_dir(folder.path())
        .output()
        .expect("a shell runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("ulimit -n") && !said.contains("is the server running"), "{said}");
}

/// What is copied from the help is a load file: no line of a comment is broken.
#[test]
fn the_file_in_the_help_is_toml_in_80_columns() {
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(["load", "--help"])
        .env("COLUMNS", "80")
        .output()
        .expect("the program runs");
    let help = String::from_utf8(help.stdout).expect("help is text");
    let file = help.split("A load file:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let file = file.expect("the help has a load file");
    assert!(file.lines().all(|line| line.chars().count() <= 80), "{file}");
    // Everything in it is understood; only its trace is missing.
    let folder = Folder::new();
    folder.write("load.toml", file);
    let outcome = folder.run(&["load", "load.toml"]).expect_code(2);
    assert!(outcome.stderr.contains("mail.parquet"), "{}", outcome.stderr);
}
