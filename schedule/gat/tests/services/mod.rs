//! Real services in other languages, and a stranger that records what it receives.

mod java;
mod opentelemetry;

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

pub(super) use java::{JavaBuild, java};

/// Hosts that may see tags: the services, by their address; the stranger is called by name.
pub(super) const HOSTS: &str = "127.0.0.1";

/// Go builds only from local sources, and caches its results.
pub(super) const GO_SETTINGS: [(&str, &str); 3] =
    [("GOPROXY", "off"), ("GOTOOLCHAIN", "local"), ("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go"))];

#[derive(Debug, Clone)]
pub(super) enum Language {
    Python(PathBuf),
    Node(PathBuf),
    /// The program that was built from the example.
    Go(PathBuf),
    Java(JavaBuild),
    /// Java with OpenTelemetry's agent beside ours.
    JavaWithOpenTelemetry(JavaBuild),
    /// Flask under `opentelemetry-instrument`, without a change of code: the folder of its programs.
    PythonWithOpenTelemetry(PathBuf),
}

/// A service that ends on drop.
pub(super) struct Service {
    pub(super) child: Child,
    pub(super) port: u16,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn bindings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings")
}

/// Oldest supported version of Go, as in the binding's go.mod.
const GO_LEAST: u32 = 21;

/// Returns a supported Go; skipped with a message if none is installed.
pub(super) fn go() -> Option<PathBuf> {
    let go = testkit::program("go")?;
    let said = Command::new(&go).arg("version").envs(GO_SETTINGS).output().expect("go starts").stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    if go_minor(&said).is_some_and(|minor| minor < GO_LEAST) {
        testkit::skip(&format!("go is older than 1.{GO_LEAST}, which Debian 13 has: {}", said.trim()));
        return None;
    }
    Some(go)
}

/// Parses the 19 of `go version go1.19.8 linux/amd64`.
fn go_minor(said: &str) -> Option<u32> {
    let version = said.split(' ').find_map(|word| word.strip_prefix("go1."))?;
    version.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
}

impl Language {
    /// Returns the installed languages; the others are skipped with a message.
    pub(super) fn installed(folder: &Path) -> Vec<Self> {
        [Self::python(), Self::node(), Self::go(folder), Self::java()].into_iter().flatten().collect()
    }

    pub(super) fn python() -> Option<Self> {
        testkit::program("python3").map(Self::Python)
    }

    pub(super) fn node() -> Option<Self> {
        testkit::program("node").map(Self::Node)
    }

    /// Builds the Go example in `folder`.
    pub(super) fn go(folder: &Path) -> Option<Self> {
        let program = folder.join("service");
        let mut build = Command::new(go()?);
        build.current_dir(bindings().join("go")).arg("build").arg("-o").arg(&program).arg("./example");
        assert!(build.envs(GO_SETTINGS).status().expect("go starts").success());
        Some(Self::Go(program))
    }

    pub(super) fn java() -> Option<Self> {
        java().map(Self::Java)
    }

    fn command(&self, role: &str) -> Command {
        match self {
            Self::Python(python) => {
                let mut command = Command::new(python);
                command.args(["-B", "example_service.py", role, HOSTS]);
                command.current_dir(bindings().join("python"));
                command
            }
            Self::Node(node) => {
                let mut command = Command::new(node);
                command.args(["--require", "./tailwright-gat.js", "example-service.js"]);
                command.envs([("TAILWRIGHT_ROLE", role), ("TAILWRIGHT_HOSTS", HOSTS)]);
                if role == "edge" {
                    command.env("TAILWRIGHT_SLOS", "./example-slos.js");
                }
                command.current_dir(bindings().join("node"));
                command
            }
            Self::Go(program) => {
                let mut command = Command::new(program);
                command.args([role, HOSTS]);
                command
            }
            Self::Java(build) => build.service(role),
            Self::JavaWithOpenTelemetry(build) => build.service_with_opentelemetry(role),
            Self::PythonWithOpenTelemetry(programs) => {
                opentelemetry::command(programs, role, "example_flask.py")
            }
        }
    }

    pub(super) fn start(&self, role: &str, urls: &[String]) -> Service {
        let mut command = self.command(role);
        // Proxy settings are for calls to the outside.
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(name);
        }
        let mut child = command.args(urls).stdout(Stdio::piped()).spawn().expect("the service starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        output.read_line(&mut line).expect("the service tells its port");
        Service {
            child,
            port: line.trim().parse().unwrap_or_else(|_| panic!("{self:?} did not start: {line:?}")),
        }
    }
}

/// Starts a server that answers every request with an empty object, and passes on the headers received.
pub(super) fn stranger() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let (heads, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let head = read_head(&mut stream);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
            if heads.send(head).is_err() {
                return;
            }
        }
    });
    (port, received)
}

fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("heads are text")
}

/// Returns the values of all baggage headers of a message.
pub(super) fn baggage(head: &str) -> Vec<String> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let ours = fields.filter(|(name, _)| name.eq_ignore_ascii_case("baggage"));
    ours.map(|(_, value)| value.trim().to_owned()).collect()
}

/// Sends a request with these headers. Returns the answer, and the baggage of the reply.
pub(super) fn ask(port: u16, headers: &str) -> (Value, Vec<String>) {
    ask_for("/", port, headers)
}

pub(super) fn ask_for(path: &str, port: u16, headers: &str) -> (Value, Vec<String>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the service listens");
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("the service reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("the service answers");
    let (head, body) = reply.split_once("\r\n\r\n").expect("there is a body");
    assert!(head.contains("200 OK"), "{reply}");
    // Chunked or not, the object is the only part with braces.
    let object = &body[body.find('{').expect("an object")..=body.rfind('}').expect("an object")];
    (serde_json::from_str(object).unwrap_or_else(|error| panic!("{error}: {reply}")), baggage(head))
}
