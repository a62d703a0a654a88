//! `tailwright observe` for people who watch: a page on a terminal, lines without one, metrics for Prometheus. Takes root.

mod support;

use measure::observation::PublishedMetrics;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use support::Folder;
use support::observer::echo_server;
use support::scraped::{check_dashboard, example, parsed_by_python, samples, scrape};
use support::servers::signal;
use testkit::Terminal;

/// Far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(120);

/// An echo server, and a client that asks it without pause until the value is dropped.
struct BusyServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    client: Option<JoinHandle<()>>,
}

impl BusyServer {
    fn start() -> Self {
        let address = echo_server();
        Self { address, stop: Arc::default(), asked: Arc::default(), client: None }
    }

    /// Begins to ask, when the observation has begun.
    fn ask(&mut self) {
        let address = self.address;
        let stop = Arc::clone(&self.stop);
        let asked = Arc::clone(&self.asked);
        self.client = Some(thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("the server listens");
            stream.set_nodelay(true).expect("a TCP socket has this option");
            while !stop.load(Ordering::Relaxed) {
                let mut byte = [7];
                stream.write_all(&byte).expect("the server reads");
                stream.read_exact(&mut byte).expect("the server answers");
                asked.fetch_add(1, Ordering::Relaxed);
                thread::park_timeout(Duration::from_millis(1));
            }
        }));
    }

    /// Stops asking; how often was asked.
    fn end(&mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(client) = self.client.take() {
            client.join().expect("the client does not panic");
        }
        self.asked.load(Ordering::Relaxed)
    }
}

/// What a terminal shows after all that was written to it, by an emulator that is not ours.
struct ShownTerminal {
    terminal: Terminal,
    emulator: vt100::Parser,
}

impl ShownTerminal {
    fn open(columns: u16, rows: u16) -> Self {
        let terminal = Terminal::open(columns, rows);
        Self { terminal, emulator: vt100::Parser::new(rows, columns, 0) }
    }

    fn observe(&self, port: u16, more: &[&str]) -> Child {
        self.terminal
            .command(Path::new(env!("CARGO_BIN_EXE_tailwright")))
            .args(["observe", "--port", &port.to_string()])
            .args(more)
            .spawn()
            .expect("setsid runs")
    }

    /// Reads until the screen is as asked.
    fn wait_for(&mut self, what: &str, shown: impl Fn(&vt100::Screen) -> bool) {
        while !shown(self.emulator.screen()) {
            let some = self.terminal.read_some();
            assert!(!some.is_empty(), "{what}: it ended with {}", self.emulator.screen().contents());
            self.emulator.process(&some);
        }
    }

    /// Reads until the programs have ended; then the first screen is there with its cursor.
    fn end(self, child: Child, code: i32) -> String {
        self.end_somehow(child, Some(code))
    }

    /// The same, for programs that a signal may end.
    fn end_somehow(mut self, mut child: Child, code: Option<i32>) -> String {
        let rest = self.terminal.read_all();
        self.emulator.process(rest.as_bytes());
        let screen = self.emulator.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{}", screen.contents());
        assert_eq!(child.wait().expect("it ends").code(), code, "{}", screen.contents());
        rest
    }
}

/// Whether the page is there with requests on it.
fn has_page(screen: &vt100::Screen) -> bool {
    let text = screen.contents();
    screen.alternate_screen()
        && ["whole run", "transmit", "lost events", "of var"].iter().all(|part| text.contains(part))
}

/// A server that is asked without pause, where pages on terminals can be tried.
fn server_and_terminals() -> Option<BusyServer> {
    if testkit::program("setsid").is_none() || !Folder::new().may_observe() {
        return None;
    }
    let mut server = BusyServer::start();
    server.ask();
    Some(server)
}

#[test]
fn a_terminal_shows_a_page_and_is_as_before_whatever_ends_it() {
    let Some(mut server) = server_and_terminals() else { return };
    for (columns, rows, how) in [(80, 24, "Ctrl-C"), (40, 16, "TERM"), (100, 40, "HUP")] {
        let mut shown = ShownTerminal::open(columns, rows);
        let before = format!("{:?}", shown.terminal.settings());
        let child = shown.observe(server.address.port(), &[]);
        shown.wait_for("the page", has_page);
        assert!(shown.emulator.screen().hide_cursor());
        match how {
            "Ctrl-C" => shown.terminal.type_in("\u{3}"),
            name => signal(&child, name),
        }
        assert_eq!(before, format!("{:?}", shown.terminal.settings()), "{how}");
        let rest = shown.end(child, 0);
        assert!(
            rest.contains("it was stopped") && rest.contains("what the tail is made of"),
            "{how}: {rest}"
        );
    }
    server.end();
}

#[test]
fn a_page_fits_a_terminal_that_changes() {
    let Some(mut server) = server_and_terminals() else { return };
    let mut shown = ShownTerminal::open(120, 40);
    let child = shown.observe(server.address.port(), &["--for", "60s"]);
    shown.wait_for("the page", |screen| has_page(screen) && screen.contents().contains("run: mean"));
    shown.terminal.resize(50, 20);
    shown.emulator.screen_mut().set_size(20, 50);
    shown.wait_for("the narrow page", |screen| {
        let text = screen.contents();
        has_page(screen)
            && !text.contains("run: mean")
            && text.lines().next().is_some_and(|line| line.starts_with("port"))
    });
    shown.terminal.type_in("\u{3}");
    shown.end(child, 0);
    server.end();
}

#[test]
fn ctrl_z_shows_the_shell_and_the_page_comes_back() {
    let Some(mut server) = server_and_terminals() else { return };
    let mut shown = ShownTerminal::open(80, 24);
    let child = shown.observe(server.address.port(), &[]);
    shown.wait_for("the page", has_page);
    shown.terminal.type_in("\u{1a}");
    shown.wait_for("the first screen", |screen| !screen.alternate_screen() && !screen.hide_cursor());
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    testkit::wait_until(LIMIT, "it is stopped", || state().contains(") T "));
    signal(&child, "CONT");
    shown.wait_for("the page again", has_page);
    shown.terminal.type_in("\u{3}");
    shown.end(child, 0);
    server.end();
}

#[test]
fn a_quit_leaves_the_first_screen() {
    let Some(mut server) = server_and_terminals() else { return };
    let mut shown = ShownTerminal::open(80, 24);
    let child = shown.observe(server.address.port(), &[]);
    shown.wait_for("the page", has_page);
    shown.terminal.type_in("\u{1c}");
    shown.end_somehow(child, None);
    server.end();
}

#[test]
fn an_error_is_said_on_the_first_screen() {
    let Some(mut server) = server_and_terminals() else { return };
    let folder = Folder::new();
    let gone = folder.join("gone");
    std::fs::create_dir(&gone).expect("it is ours");
    let file = gone.join("live.prom");
    let mut shown = ShownTerminal::open(80, 24);
    let child = shown.observe(server.address.port(), &["--prometheus-file", &file.display().to_string()]);
    shown.wait_for("the page", has_page);
    // The file is replaced each second, perhaps while its folder is emptied.
    testkit::wait_until(LIMIT, "the folder is gone", || {
        std::fs::remove_dir_all(&gone).is_ok() || !gone.exists()
    });
    let rest = shown.end(child, 3);
    let left = rest.find("\u{1b}[?1049l").expect("the first screen");
    assert!(rest[left..].contains("error: "), "{rest}");
    server.end();
}

#[test]
fn without_a_terminal_there_are_lines_or_nothing() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let mut server = BusyServer::start();
    server.ask();
    let port = server.address.port().to_string();
    let quiet = folder.run(&["observe", "--port", &port, "--for", "1200ms"]).expect_code(0);
    assert_eq!(quiet.stderr.lines().count(), 1, "{}", quiet.stderr);
    let lines =
        folder.run(&["observe", "--port", &port, "--for", "2500ms", "--live", "always"]).expect_code(0);
    let said: Vec<&str> = lines.stderr.lines().collect();
    assert!(said.len() >= 2 && said[1].starts_with("0:00:0") && said[1].contains("p99.9"), "{said:?}");
    assert!(!lines.stderr.contains('\u{1b}') && !lines.stdout.contains('\u{1b}'), "{said:?}");
    server.end();
}

/// The program with metrics on a port of its choice, and where these are.
fn listening(port: u16, more: &[&str]) -> (Child, SocketAddr) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(["observe", "--json", "--listen", "127.0.0.1:0", "--port", &port.to_string()])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut said = BufReader::new(child.stderr.as_mut().expect("it is piped"));
    let mut address = None;
    let mut line = String::new();
    while !line.starts_with("observing") {
        line.clear();
        said.read_line(&mut line).expect("stderr can be read");
        assert!(!line.is_empty(), "it ended");
        if let Some(place) = line.strip_prefix("metrics: http://") {
            address = place.trim_end().strip_suffix("/metrics").and_then(|place| place.parse().ok());
        }
    }
    assert!(line.contains("until Ctrl-C"), "{line}");
    (child, address.expect("it said where"))
}

#[test]
fn scrapers_read_what_is_seen_and_cannot_disturb() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let mut server = BusyServer::start();
    let port = server.address.port();
    let (child, address) = listening(port, &[]);
    server.ask();
    let series = format!("tailwright_request_duration_seconds_count{{port=\"{port}\"}}");
    // Clients that never finish, never read, or send what is no request.
    let mut rude: Vec<TcpStream> = Vec::new();
    for number in 0..40 {
        let mut stream = TcpStream::connect(address).expect("the endpoint listens");
        let text = match number % 3 {
            0 => "GET /metrics HTTP/1.1\r\nX: ".to_owned(),
            1 => "GET /".to_owned() + &"x".repeat(100_000),
            _ => "\u{0}\u{1}\r\n\r\n".to_owned(),
        };
        // Some are closed before they have written all.
        let _ = stream.write_all(text.as_bytes());
        rude.push(stream);
    }
    let mut before: BTreeMap<String, f64> = BTreeMap::new();
    testkit::wait_until(LIMIT, "requests are counted", || {
        let mut stream = TcpStream::connect(address).expect("the endpoint listens");
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut answer = String::new();
        if stream.read_to_string(&mut answer).is_err() || !answer.starts_with("HTTP/1.1 200") {
            return false;
        }
        let now = samples(answer.split_once("\r\n\r\n").expect("a head").1);
        // The answer is about the last part of the observation alone.
        for (series, value) in before.iter().filter(|(series, _)| !series.starts_with("tailwright_tail_")) {
            assert!(
                series.contains("_ratio") || now[series] >= *value,
                "{series} fell from {value} to {}",
                now[series]
            );
        }
        before.extend(now);
        before[&series] > 200.0
    });
    drop(rude);
    let page = scrape(address);
    if let Some(families) = parsed_by_python(&page) {
        assert!(families.contains("tailwright_request_duration_seconds histogram seconds"), "{families}");
        assert!(families.contains("tailwright_build info"), "{families}");
    }
    let asked = server.end();
    let last = samples(&scrape(address));
    assert!(last["tailwright_observer_cpu_seconds_total"] > 0.0, "{last:?}");
    signal(&child, "TERM");
    let output = child.wait_with_output().expect("the program ends");
    let view: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let requests = view["requests"].as_u64().expect("a number");
    assert!(last[&series] <= requests as f64, "{view}");
    // On a machine with too much to do, events may be lost; then they are counted.
    assert!(requests == asked as u64 || view["lost_events"].as_u64() != Some(0), "{asked} asked: {view}");
}

#[test]
fn scrapers_read_the_answer_and_its_next_step() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let mut server = BusyServer::start();
    let (child, address) = listening(server.address.port(), &[]);
    assert!(!scrape(address).contains("tailwright_tail_"), "no part is over");
    server.ask();
    let mut page = String::new();
    testkit::wait_until(LIMIT, "the first part is over", || {
        page = scrape(address);
        page.contains("tailwright_tail_finding{")
    });
    let values = samples(&page);
    assert!(values["tailwright_tail_requests"] > 1000.0, "{page}");
    assert!(
        values["tailwright_tail_p99_seconds"] > 1e-6 && values["tailwright_tail_p99_seconds"] < 60.0,
        "{page}"
    );
    assert!((0.0..=1.0).contains(&values["tailwright_tail_cause_ratio"]), "{page}");
    let words = page.lines().find(|line| line.starts_with("tailwright_tail_finding{")).expect("it is there");
    let is_unusual = values["tailwright_tail_unusual"] == 1.0;
    assert_eq!(words.contains("verdict=\"unusual\""), is_unusual, "{words}");
    assert_eq!(is_unusual, is_unusual && !words.contains("next=\"\""), "{words}");
    assert!(!words.contains("spent_on=\"\"") && !words.contains("cause=\"\""), "{words}");
    if let Some(families) = parsed_by_python(&page) {
        assert!(families.contains("tailwright_tail_finding gauge"), "{families}");
        assert!(families.contains("tailwright_steal_seconds counter seconds"), "{families}");
    }
    server.end();
    signal(&child, "TERM");
    child.wait_with_output().expect("the program ends");
}

/// Datagrams that the kernel drops at the socket of a stopped server are counted during the observation.
#[test]
fn scrapers_read_what_the_kernel_dropped() {
    let folder = Folder::new();
    if testkit::program("memcached").is_none() || !folder.may_observe() {
        return;
    }
    let address = testkit::free_address();
    let port = address.port().to_string();
    let mut server = Command::new("memcached")
        .args(["-u", "nobody", "-l", "127.0.0.1", "-p", &port, "-U", &port])
        .spawn()
        .expect("memcached starts");
    drop(testkit::connect_when_ready(&mut server, || TcpStream::connect(address)));
    let (child, metrics) = listening(address.port(), &[]);
    let series = format!("tailwright_udp_drops_total{{port=\"{port}\"}}");
    assert_eq!(samples(&scrape(metrics))[&series], 0.0);
    signal(&server, "STOP");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    socket.connect(address).expect("the server has an address");
    for _ in 0..20_000 {
        let _ = socket.send(b"\0\x01\0\0\0\x01\0\0get nothing\r\n");
    }
    testkit::wait_until(LIMIT, "drops are counted", || samples(&scrape(metrics))[&series] > 0.0);
    signal(&server, "CONT");
    server.kill().expect("a child can be killed");
    server.wait().expect("a killed child ends");
    signal(&child, "INT");
    child.wait_with_output().expect("the program ends");
}

#[test]
fn metrics_go_on_when_the_server_ends() {
    let folder = Folder::new();
    if testkit::program("memcached").is_none() || !folder.may_observe() {
        return;
    }
    let address = testkit::free_address();
    let (child, metrics) = listening(address.port(), &[]);
    let series = format!("tailwright_request_duration_seconds_count{{port=\"{}\"}}", address.port());
    for count in 1..=2 {
        let mut server = Command::new("memcached")
            .args(["-u", "nobody", "-l", "127.0.0.1", "-p", &address.port().to_string()])
            .spawn()
            .expect("memcached starts");
        let mut stream = testkit::connect_when_ready(&mut server, || TcpStream::connect(address));
        stream.write_all(b"get nothing\r\n").expect("the server reads");
        stream.read_exact(&mut [0; 5]).expect("the server answers");
        server.kill().expect("a child can be killed");
        server.wait().expect("a killed child ends");
        drop(stream);
        // The last request of a connection is known to be whole when the connection is closed.
        testkit::wait_until(LIMIT, "it is counted", || {
            samples(&scrape(metrics))[&series] >= f64::from(count)
        });
    }
    signal(&child, "INT");
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn addresses_are_checked_before_anything_begins() {
    let folder = Folder::new();
    for wrong in ["nowhere", "localhost:9464", "9464"] {
        let refused = folder.run(&["observe", "--port", "1", "--listen", wrong]).expect_code(2);
        assert!(refused.stderr.contains("expected IP:PORT, such as 127.0.0.1:9464"), "{}", refused.stderr);
    }
    assert_eq!(folder.run(&["observe", "--block", "--listen", "127.0.0.1:0"]).code, 2);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("a listener has an address").to_string();
    let refused =
        folder.run(&["observe", "--port", "1", "--for", "10ms", "--listen", &address]).expect_code(3);
    assert!(refused.stderr.contains(&address) && refused.stderr.contains("hint"), "{}", refused.stderr);
    let open = folder.run(&["observe", "--port", "1", "--for", "10ms", "--listen", "0.0.0.0:0"]);
    assert!(open.stderr.contains("warning: whoever reaches 0.0.0.0"), "{}", open.stderr);
    let own = folder.run(&["observe", "--port", "1", "--for", "10ms", "--listen", "[::1]:0"]);
    assert!(!own.stderr.contains("whoever reaches"), "{}", own.stderr);
}

#[test]
fn a_strict_parser_reads_the_page() {
    let page = PublishedMetrics::new([80, 443]).page();
    if let Some(families) = parsed_by_python(&page) {
        for family in [
            "tailwright_request_duration_seconds histogram seconds 200",
            "tailwright_stage_product_square_seconds counter square_seconds 14",
            "tailwright_unjoined counter  5",
            "tailwright_observer_cpu_seconds counter seconds 1",
        ] {
            assert!(families.lines().any(|line| line == family), "{family}: {families}");
        }
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    check_dashboard("grafana/observe.json", &PublishedMetrics::new([80]).page(), 10);
}

#[test]
fn the_unit_has_the_two_capabilities_and_an_option_that_is_there() {
    let path = example("systemd/tailwright-observe.service");
    let unit = std::fs::read_to_string(&path).expect("the example is there");
    let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    assert_eq!(value("AmbientCapabilities"), Some("CAP_BPF CAP_PERFMON"));
    assert_eq!(value("CapabilityBoundingSet"), Some("CAP_BPF CAP_PERFMON"));
    let command = value("ExecStart").and_then(|line| line.strip_prefix("/usr/bin/tailwright "));
    let args: Vec<&str> = command.expect("the program").split(' ').chain(["--duration", "0s"]).collect();
    // The time is refused after all else was understood.
    let outcome = Folder::new().run(&args).expect_code(2);
    assert!(outcome.stderr.contains("--duration: expected a time"), "{}", outcome.stderr);
    let Some(analyze) = testkit::program("systemd-analyze") else { return };
    let folder = Folder::new();
    let copy = folder.join("tailwright-observe.service");
    let here = unit.replace("/usr/bin/tailwright", env!("CARGO_BIN_EXE_tailwright"));
    std::fs::write(&copy, here).expect("it is ours");
    let verified = Command::new(analyze).arg("verify").arg(&copy).output().expect("it runs");
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(!said.contains("tailwright-observe.service:"), "{said}");
}
