//! A controller with a host that the test plays itself: reports and answers of its agent are requests of HTTP.

use super::servers::Running;
use super::{Folder, Outcome, openapi};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

const CLUSTER: &str = r#"
safety_margin = 1.1
[[server]]
class = "cache"
count = 1
storage = "cache.json"
network = "1Gbps"
best_effort_request = "4KiB"
"#;

const PROFILE: &str = r#"{ "format": "tailwright-device-1", "name": "cache", "device": { "ssd": { "bandwidth": [
    { "request_bytes": 1024, "read_bytes_per_s": 100e6, "write_bytes_per_s": 100e6 } ] } } }"#;

pub(crate) const HOSTS: &str = r#"
[[host]]
name = "here"
device.lo = "1Gbps"
[[server]]
name = "cache-1"
host = "here"
address = ["127.0.0.1"]
[server.storage]
profile = "cache.json"
front = [{ protocol = "memcached", listen = "127.0.0.1:11612", forward = "127.0.0.1:11611" }]
"#;

/// Writes the files of the cluster, with this hosts file, and a trace of a workload.
pub(crate) fn write_cluster(folder: &Folder, hosts: &str) {
    folder.write("cluster.toml", CLUSTER);
    folder.write("cache.json", PROFILE);
    folder.write("hosts.toml", hosts);
    let generated =
        ["trace", "generate", "poisson", "--rate", "200/s", "--duration", "20s", "--size", "1KiB"];
    folder.run(&[&generated[..], &["--seed", "1", "-o", "mail.csv"]].concat()).expect_code(0);
}

/// Starts a verb in a folder, which says on standard error that it is ready with a line that contains `ready`.
pub(crate) fn start(folder: &Folder, arguments: &[&str], ready: &str) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(arguments)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut said = String::new();
    while !said.lines().last().unwrap_or_default().contains(ready) {
        assert!(lines.read_line(&mut said).expect("text") > 0, "it has ended: {said}");
    }
    // Nothing of it is lost on a full pipe.
    std::thread::spawn(move || lines.lines().map_while(Result::ok).for_each(drop));
    Running(child)
}

/// An answer of HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Returns a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// Returns the name and the value of the cookie that is set.
    pub(crate) fn cookie(&self) -> String {
        let cookie = self.header("set-cookie").unwrap_or_else(|| panic!("a cookie: {self:?}"));
        cookie.split(';').next().expect("a pair").to_owned()
    }
}

/// A controller, and the agent of its only host.
pub(crate) struct Service {
    pub(crate) folder: Folder,
    pub(crate) address: SocketAddr,
    pub(crate) controller: Option<Running>,
    /// Arguments of the controller beside its address.
    arguments: Vec<String>,
    ticket: Value,
    applied: u64,
}

impl Service {
    /// Starts a controller, describes its cluster, and reports from its host.
    pub(crate) fn start() -> Self {
        Self::start_with(Folder::new(), &[])
    }

    /// Starts in a folder, with more arguments of the controller.
    pub(crate) fn start_with(folder: Folder, arguments: &[&str]) -> Self {
        write_cluster(&folder, HOSTS);
        let address = testkit::free_address();
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let mut service =
            Self { folder, address, controller: None, arguments, ticket: Value::Null, applied: 0 };
        service.run_controller();
        let describe =
            ["describe", "--class-file", "cluster.toml", "--hosts", "hosts.toml", "--assume-network"];
        service.ctl(&describe).expect_code(0);
        service.issue("here", &["--for-agent", "here"]);
        service.report(&Value::Null);
        service.report(&Value::Null);
        service
    }

    /// Starts the controller, after an end if there was one.
    pub(crate) fn run_controller(&mut self) {
        self.controller = None;
        let listen = self.address.to_string();
        let own = self.arguments.iter().map(String::as_str).collect::<Vec<_>>();
        let controller = [&["controller", "cluster", "--listen", &listen][..], &own].concat();
        self.controller = Some(start(&self.folder, &controller, "listening on"));
    }

    pub(crate) fn ctl(&self, arguments: &[&str]) -> Outcome {
        self.ctl_as("cluster/operator", arguments)
    }

    /// Runs `ctl` with the token of a file, without its ending.
    pub(crate) fn ctl_as(&self, token: &str, arguments: &[&str]) -> Outcome {
        let url = format!("http://{}", self.address);
        let fixed = ["--controller", &url, "--token-file", &format!("{token}.token")];
        self.folder.run(&[&["ctl"][..], arguments, &fixed[..]].concat())
    }

    /// Issues a token and keeps it in a file of its name.
    pub(crate) fn issue(&self, name: &str, role: &[&str]) {
        let issued = self.ctl(&[&["token", name][..], role].concat()).expect_code(0).stdout;
        self.folder.write(&format!("{name}.token"), &issued);
    }

    pub(crate) fn token(&self, name: &str) -> String {
        self.folder.read(&format!("{name}.token")).trim().to_owned()
    }

    /// Asks for a workload of a tenant, from an address of its own. Returns what `ctl` says.
    pub(crate) fn request(&self, tenant: &str, name: &str, slo: &str, address: &str) -> Outcome {
        let asked = ["request", name, slo, "mail.csv", "--address", address, "--no-wait", "--tenant", tenant];
        self.ctl(&asked)
    }

    /// Reports what the host enforces, with a refusal or null. Returns the epoch that is wanted, if it is another.
    pub(crate) fn report(&mut self, refused: &Value) -> Option<u64> {
        self.send_report(refused, &json!([]))
    }

    /// Reports what proxies counted.
    pub(crate) fn observe(&mut self, observations: &Value) {
        self.send_report(&Value::Null, observations);
    }

    fn send_report(&mut self, refused: &Value, observations: &Value) -> Option<u64> {
        let report = json!({
            "cluster": null,
            "ticket": self.ticket,
            "mode": "applying",
            "abilities": { "storage": ["cache-1"], "network": false },
            "applied": self.applied,
            "refused": refused,
            "advice": null,
            "observations": observations,
        });
        let token = format!("authorization: Bearer {}", self.token("here"));
        let headers = [token.as_str(), "content-type: application/json"];
        let answer = self.send("POST", "/v1/agent/report", &headers, &report.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer: Value = serde_json::from_str(&answer.body).expect("JSON");
        self.ticket = answer["ticket"].clone();
        answer["assignment"]["epoch"].as_u64()
    }

    /// Loses what the host enforces, and reports that.
    pub(crate) fn fall_back(&mut self) {
        self.applied = 0;
        self.report(&Value::Null);
    }

    /// Confirms everything that is wanted.
    pub(crate) fn apply(&mut self) {
        while let Some(epoch) = self.report(&Value::Null) {
            self.applied = epoch;
        }
    }

    /// Refuses what is wanted.
    pub(crate) fn refuse(&mut self, reason: &str) {
        let wanted = self.report(&Value::Null).expect("an assignment");
        self.report(&json!({ "epoch": wanted, "reason": reason }));
    }

    /// Opens a connection and sends a request.
    pub(crate) fn connect(&self, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the controller listens");
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for header in headers {
            head += &format!("{header}\r\n");
        }
        let length = body.len();
        let sent = format!("{head}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(sent.as_bytes()).expect("the controller reads");
        stream
    }

    /// Sends a request, and judges the answer by the description of the interface.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut text = String::new();
        self.connect(method, path, headers, body).read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("a head: {text}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let answer = Answer { status, head: head.to_owned(), body: body.to_owned() };
        openapi::check_answer(method, path, status, answer.header("content-type"), &answer.body);
        answer
    }

    /// Signs in with a token and returns the header with the cookie.
    pub(crate) fn sign_in(&self, token: &str) -> String {
        let form = ["content-type: application/x-www-form-urlencoded"];
        let answer = self.send("POST", "/sign-in", &form, &format!("token={}", self.token(token)));
        assert_eq!(answer.status, 303, "{answer:?}");
        format!("cookie: {}", answer.cookie())
    }
}

/// The events of a stream, as they come: kind, position and data.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    /// Opens the stream.
    pub(crate) fn open(service: &Service, path: &str, headers: &[&str]) -> Self {
        let mut stream = BufReader::new(service.connect("GET", path, headers, ""));
        let mut line = String::new();
        stream.read_line(&mut line).expect("a status");
        assert!(line.contains(" 200 "), "{line}");
        while line.trim() != "" {
            line.clear();
            stream.read_line(&mut line).expect("a head");
        }
        Self(stream)
    }
}

impl Iterator for Events {
    type Item = (String, u64, String);

    /// Waits for the next event; none at the end of the stream.
    fn next(&mut self) -> Option<Self::Item> {
        let mut kind = String::new();
        let mut seq = 0;
        let mut data = String::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // Sizes of chunks are lines without a colon.
            match line.trim_end().split_once(": ") {
                Some(("event", value)) => value.clone_into(&mut kind),
                Some(("id", value)) => seq = value.parse().expect("a position"),
                Some(("data", value)) => value.clone_into(&mut data),
                _ if line.trim().is_empty() && !kind.is_empty() => return Some((kind, seq, data)),
                _ => {}
            }
        }
    }
}
