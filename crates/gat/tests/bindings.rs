//! Tags from service to service in other languages: real services, whose order is turned so that each language is the edge
//! once, and a stranger, who must never see a tag.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{SystemTime, UNIX_EPOCH};

/// The services may see tags, by their address; the stranger is called by name.
const HOSTS: &str = "127.0.0.1";

/// How far the clocks that languages offer are from ours: Node's has milliseconds.
const CLOCK_NS: u64 = 2_000_000;

/// Go builds from what is here alone, and keeps what it has built.
const GO_SETTINGS: [(&str, &str); 3] =
    [("GOPROXY", "off"), ("GOTOOLCHAIN", "local"), ("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go"))];

#[derive(Debug, Clone)]
enum Language {
    Python(PathBuf),
    Node(PathBuf),
    /// The program that was built from the example.
    Go(PathBuf),
}

/// A service that ends with the value.
struct Service {
    child: Child,
    port: u16,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bindings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings")
}

impl Language {
    /// Those that are installed; the others are skipped aloud.
    fn installed(folder: &Path) -> Vec<Self> {
        let find = |name: &str| {
            let found = machine::programs::find(name);
            if found.is_none() {
                testkit::skip(&format!("{name} is not installed"));
            }
            found
        };
        let go = find("go").map(|go| {
            let program = folder.join("service");
            let mut build = Command::new(go);
            build.current_dir(bindings().join("go")).arg("build").arg("-o").arg(&program).arg("./example");
            build.envs(GO_SETTINGS);
            assert!(build.status().expect("go starts").success());
            Self::Go(program)
        });
        [find("python3").map(Self::Python), find("node").map(Self::Node), go].into_iter().flatten().collect()
    }

    fn start(&self, role: &str, urls: &[String]) -> Service {
        let mut command = match self {
            Self::Python(python) => {
                let mut command = Command::new(python);
                command
                    .args(["-B", "example_service.py", role, HOSTS])
                    .current_dir(bindings().join("python"));
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
        };
        // Proxies are for calls to the world.
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

/// Answers everybody with an empty object, and hands out the headers that it was sent.
fn stranger() -> (u16, Receiver<String>) {
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

/// The values of all baggage headers of a message.
fn baggage(head: &str) -> Vec<String> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let ours = fields.filter(|(name, _)| name.eq_ignore_ascii_case("baggage"));
    ours.map(|(_, value)| value.trim().to_owned()).collect()
}

/// Sends a request with these headers; what the service answers, and the baggage of the reply.
fn ask(port: u16, headers: &str) -> (Value, Vec<String>) {
    ask_for("/", port, headers)
}

fn ask_for(path: &str, port: u16, headers: &str) -> (Value, Vec<String>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the service listens");
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("the service reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("the service answers");
    let (head, body) = reply.split_once("\r\n\r\n").expect("there is a body");
    assert!(head.contains("200 OK"), "{reply}");
    // Chunked or not, the object is all that has braces.
    let object = &body[body.find('{').expect("an object")..=body.rfind('}').expect("an object")];
    (serde_json::from_str(object).unwrap_or_else(|error| panic!("{error}: {reply}")), baggage(head))
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(since.as_nanos()).expect("it is before 2554")
}

fn start(answer: &Value) -> u64 {
    answer["start"].as_str().and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

/// An edge, then services inside, each of which calls the next and a stranger.
fn check_chain(languages: &[Language]) {
    let (stranger, seen) = stranger();
    let mut services: Vec<Service> = Vec::new();
    for (at, language) in languages.iter().enumerate().rev() {
        let next = services.last().map(|service| format!("http://127.0.0.1:{}/", service.port));
        let urls: Vec<String> = next.into_iter().chain([format!("http://localhost:{stranger}/")]).collect();
        services.push(language.start(if at == 0 { "edge" } else { "inner" }, &urls));
    }
    let (inner, edge) = (services[0].port, services[services.len() - 1].port);

    let before = now_ns() - CLOCK_NS;
    let (answer, reply) =
        ask(edge, "Baggage: tailwright-start=1, user=7\r\nbaggage: %74ailwright-start=2\r\n");
    let stamped = start(&answer);
    assert!(
        (before..=now_ns() + CLOCK_NS).contains(&stamped),
        "{languages:?}: a client's start counts: {answer}"
    );
    assert_eq!(answer["baggage"], format!("tailwright-start={stamped},user=7"), "{languages:?}");
    assert_eq!(reply, ["reply=1"], "{languages:?}");
    let mut hop = &answer["called"][0];
    for _ in 1..languages.len() {
        assert_eq!(hop["baggage"], format!("tailwright-start={stamped},own=1"), "{languages:?}");
        assert_eq!(start(hop), stamped, "{languages:?}");
        hop = &hop["called"][0];
    }
    for _ in languages {
        assert_eq!(baggage(&seen.recv().expect("the stranger was called")), ["own=1"], "{languages:?}");
    }

    // The edge knows the SLO of a class; a client's deadline does not count.
    for (path, slo_ns) in [("/soon", 50_000_000), ("/later", 5_000_000_000)] {
        let (answer, _) = ask_for(path, edge, "baggage: tailwright-start=1,tailwright-deadline=2\r\n");
        let (start, due) = (start(&answer), start(&answer) + slo_ns);
        let tag = format!("tailwright-start={start},tailwright-deadline={due}");
        assert_eq!(answer["baggage"], tag, "{languages:?} {path}");
        let mut hop = &answer["called"][0];
        for _ in 1..languages.len() {
            assert_eq!(hop["baggage"], format!("{tag},own=1"), "{languages:?} {path}");
            hop = &hop["called"][0];
        }
    }

    // A service inside accepts what may be, and nothing else.
    let possible = now_ns() - 1_000_000_000;
    assert_eq!(start(&ask(inner, &format!("baggage: tailwright-start={possible}\r\n")).0), possible);
    for absurd in ["18446744073709551616", "9223372036854775807", "-1", "1e3", ""] {
        let before = now_ns() - CLOCK_NS;
        let answer = ask(inner, &format!("baggage: tailwright-start={absurd}\r\n")).0;
        assert!((before..=now_ns() + CLOCK_NS).contains(&start(&answer)), "{languages:?} {absurd}: {answer}");
    }
}

#[test]
fn tags_pass_from_language_to_language() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut languages = Language::installed(folder.path());
    for _ in 0..languages.len() {
        check_chain(&languages);
        languages.rotate_left(1);
    }
}

#[test]
fn the_cases_of_all_languages() {
    let test = |program: &str, folder: &str, args: &[&str]| {
        let Some(path) = machine::programs::find(program) else {
            return testkit::skip(&format!("{program} is not installed"));
        };
        let mut command = Command::new(path);
        let output = command
            .args(args)
            .current_dir(bindings().join(folder))
            .envs(GO_SETTINGS)
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{program}: {output:?}");
    };
    test("python3", "python", &["-B", "test_cases.py"]);
    for file in ["test-cases.js", "test-keys.js", "test-hooks.js"] {
        test("node", "node", &[file]);
    }
    test("go", "go", &["test", "./..."]);
}
