//! `tailwright experiment` with options of a server's open sockets, which the server itself looks at. Takes root.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use support::Folder;
use support::servers::signal;
use testkit::{OptionServer, SeenOptions};

const LIMIT: Duration = Duration::from_secs(120);

/// The server, with a client that asks a thousand times a second until the value is dropped.
struct AskedServer {
    server: OptionServer,
    seen: Arc<Mutex<Option<SeenOptions>>>,
    is_over: Arc<AtomicBool>,
}

impl AskedServer {
    /// `None`, with a line that says why, without Python or where observing is refused.
    fn start(folder: &Folder) -> Option<Self> {
        let outcome = folder.run(&["observe", "--port", "1", "--duration", "10ms"]);
        if outcome.code == 3 {
            testkit::skip(outcome.stderr.lines().next().unwrap_or("observing is refused"));
            return None;
        }
        let server = OptionServer::start()?;
        let (seen, is_over) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
        let (shown, told, mut client) = (Arc::clone(&seen), Arc::clone(&is_over), server.connect());
        std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                *shown.lock().unwrap_or_else(PoisonError::into_inner) = client.ask();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Some(Self { server, seen, is_over })
    }

    /// Whether the server answers small requests at once.
    fn is_undelayed(&self) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().is_some_and(|seen| seen.no_delay)
    }

    fn begin(&self, folder: &Folder) -> Child {
        let mut command = testkit::command_with_signals(env!("CARGO_BIN_EXE_tailwright"));
        command.args(["experiment", "nodelay", "--period", "3s", "--guard", "100ms", "--state"]);
        command.arg(state(folder)).args(["--pid", &self.server.id().to_string()]);
        command.args(["--port", &self.server.address.port().to_string()]);
        let child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        testkit::wait_until(LIMIT, "the server sees the knob on", || self.is_undelayed());
        child
    }
}

impl Drop for AskedServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// A folder for journals that nobody else may change.
fn state(folder: &Folder) -> String {
    let path = folder.join("state");
    std::fs::create_dir_all(&path).expect("it is ours");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("it is ours");
    path.display().to_string()
}

#[test]
fn open_sockets_are_undone_after_a_kill() {
    let folder = Folder::new();
    let Some(server) = AskedServer::start(&folder) else { return };
    let mut child = server.begin(&folder);
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");
    let mut during = server.server.connect();
    assert!(during.seen().no_delay, "it inherits from the listening socket");
    let undone = folder.run(&["experiment", "--undo", "--state", &state(&folder)]).expect_code(0);
    for what in ["TCP_NODELAY of socket", "TCP_NODELAY of later sockets"] {
        assert!(undone.stdout.contains(&format!("restored: {what}")), "{}", undone.stdout);
    }
    testkit::wait_until(LIMIT, "the server sees the knob off", || !server.is_undelayed());
    assert!(!during.seen().no_delay && !server.server.connect().seen().no_delay);
}

#[test]
fn signals_undo_options_of_open_sockets() {
    let folder = Folder::new();
    let Some(server) = AskedServer::start(&folder) else { return };
    let child = server.begin(&folder);
    signal(&child, "TERM");
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    testkit::wait_until(LIMIT, "the server sees the knob off", || !server.is_undelayed());
    assert!(!server.server.connect().seen().no_delay);
    assert_eq!(folder.read("state/experiment.jsonl"), "");
}

#[test]
fn an_experiment_with_open_sockets_comes_to_its_end() {
    let folder = Folder::new();
    let Some(server) = AskedServer::start(&folder) else { return };
    let (process, port) = (server.server.id().to_string(), server.server.address.port().to_string());
    let state = state(&folder);
    let args = ["experiment", "nodelay", "--pid", &process, "--port", &port, "--state", &state, "--json"];
    let more = ["--period", "100ms", "--guard", "50ms", "--max-periods", "12"];
    let outcome = folder.run(&[&args[..], &more[..]].concat());
    assert!(outcome.code <= 1, "{}", outcome.stderr);
    let view = outcome.json();
    assert!(view["rounds"].as_u64().is_some_and(|rounds| rounds >= 5), "{view}");
    assert_eq!(view["not_undone"].as_array().map(Vec::len), Some(0), "{view}");
    testkit::wait_until(LIMIT, "the server sees the knob off", || !server.is_undelayed());
    let again =
        folder.run(&["experiment", "nodelay=0", "--pid", &process, "--port", &port, "--state", &state]);
    assert!(again.expect_code(2).stderr.contains("it is so already"));
}

#[test]
fn rights_that_sockets_take_are_named_before_anything_is_changed() {
    let folder = Folder::new();
    let Some(server) = AskedServer::start(&folder) else { return };
    if testkit::program("setpriv").is_none() {
        return;
    }
    let copy = folder.join("tailwright");
    std::fs::copy(env!("CARGO_BIN_EXE_tailwright"), &copy).expect("the program can be copied");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    std::fs::create_dir(folder.join("nobody")).expect("it is ours");
    std::os::unix::fs::chown(folder.join("nobody"), Some(65534), Some(65534)).expect("root may");
    let as_nobody = |knob: &str, rights: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args([&format!("--inh-caps=-all,{rights}"), &format!("--ambient-caps=-all,{rights}")]);
        command.arg(&copy).args(["experiment", knob, "--pid", &server.server.id().to_string(), "--port"]);
        command.args([&server.server.address.port().to_string(), "--period", "100ms", "--guard", "50ms"]);
        let output = command.args(["--max-periods", "12", "--state"]).arg(folder.join("nobody")).output();
        let output = output.expect("setpriv runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = as_nobody("nodelay", "+bpf,+perfmon");
    assert!(code == Some(3) && said.contains("CAP_SYS_PTRACE"), "{said}");
    let (code, said) = as_nobody("socket-busy-poll", "+bpf,+perfmon,+sys_ptrace,+dac_read_search");
    assert!(code == Some(3) && said.contains("CAP_NET_ADMIN"), "{said}");
    assert!(!server.is_undelayed());
    // With just those it works.
    let (code, said) = as_nobody("nodelay", "+bpf,+perfmon,+sys_ptrace,+dac_read_search");
    assert!(matches!(code, Some(0 | 1)), "{said}");
    testkit::wait_until(LIMIT, "the server sees the knob off", || !server.is_undelayed());
}
