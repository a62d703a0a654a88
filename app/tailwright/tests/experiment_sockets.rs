//! `tailwright experiment` with options of the open sockets of real servers, looked at by their owners and by `ss`. Takes
//! root.

mod support;

use rustix::net::sockopt;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;
use support::Folder;
use support::servers::signal;
use testkit::live_servers::RunningServer;
use testkit::{OptionServer, OptionServerPlace, wait_until, with_bpf_file_system};

const LIMIT: Duration = Duration::from_secs(60);

/// Clients that ask again and again on connections that are kept, and connect anew when they are closed.
struct AskingClients {
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl AskingClients {
    fn of_nginx(address: SocketAddr, count: usize) -> Self {
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        Self::new(address, count, request, |reader| {
            let mut line = String::new();
            let mut length = 0;
            while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                if line == "\r\n" {
                    let mut body = vec![0; length];
                    return reader.read_exact(&mut body).is_ok();
                }
                let value = line.strip_prefix("Content-Length: ").map(str::trim);
                length = value.and_then(|value| value.parse().ok()).unwrap_or(length);
                line.clear();
            }
            false
        })
    }

    fn of_options(address: SocketAddr, count: usize) -> Self {
        let answer = |reader: &mut BufReader<TcpStream>| {
            reader.read_line(&mut String::new()).is_ok_and(|read| read > 0)
        };
        Self::new(address, count, "options\n", answer)
    }

    fn new(
        address: SocketAddr,
        count: usize,
        request: &'static str,
        answer: fn(&mut BufReader<TcpStream>) -> bool,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let client = |told: Arc<AtomicBool>| {
            spawn(move || {
                while !told.load(Ordering::Relaxed) {
                    let Ok(stream) = TcpStream::connect(address) else { continue };
                    let mut stream = BufReader::new(stream);
                    while !told.load(Ordering::Relaxed) {
                        let is_sent = stream.get_mut().write_all(request.as_bytes()).is_ok();
                        if !is_sent || !answer(&mut stream) {
                            break;
                        }
                        sleep(Duration::from_millis(1));
                    }
                }
            })
        };
        let clients = (0..count).map(|_| client(Arc::clone(&is_over))).collect();
        Self { is_over, clients }
    }
}

impl Drop for AskingClients {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.clients.drain(..).for_each(|client| client.join().unwrap_or_default());
    }
}

/// nginx with one page.
fn nginx() -> Option<RunningServer> {
    testkit::live_servers::nginx()
}

/// TCP_NODELAY of the connections at a port that processes have open, looked at by duplicates of their descriptors.
fn no_delays(processes: &[u32], port: u16) -> Vec<bool> {
    let mut all = Vec::new();
    for process in processes {
        let pid = i32::try_from(*process).ok().and_then(Pid::from_raw).expect("a number of a process");
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let numbers = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let duplicates =
            numbers.filter_map(|number| pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty()).ok());
        all.extend(
            duplicates
                .filter(|socket| is_connected_at(socket, port))
                .filter_map(|socket| sockopt::tcp_nodelay(socket).ok()),
        );
    }
    all
}

fn is_connected_at(socket: &OwnedFd, port: u16) -> bool {
    let address = rustix::net::getsockname(socket).ok().and_then(|own| SocketAddr::try_from(own).ok());
    address.is_some_and(|own| own.port() == port) && rustix::net::getpeername(socket).is_ok()
}

/// An experiment in periods that a test has time to look into.
fn begin(folder: &Folder, knob: &str, process: u32, port: u16) -> Child {
    let command = testkit::command_with_signals(env!("CARGO_BIN_EXE_tailwright"));
    begin_by(command, folder, knob, process, port)
}

/// The same, by a command that begins the program with the arguments that it is given.
fn begin_by(mut command: Command, folder: &Folder, knob: &str, process: u32, port: u16) -> Child {
    command.args(["experiment", knob, "--period", "1s", "--guard", "100ms", "--state"]);
    command.arg(folder.state()).args(["--pid", &process.to_string(), "--port", &port.to_string()]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

fn kill(mut child: Child) {
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");
}

/// nginx sets TCP_NODELAY of a connection once, when it has had a request. Its workers are replaced while the knob is on,
/// the program is killed, and what is undone is undone for those of before and those of now.
#[test]
fn nginx_is_reloaded_while_its_sockets_are_set() {
    with_bpf_file_system(|| {
        let folder = Folder::new();
        let Some(server) = nginx() else { return };
        if !folder.may_observe() {
            return;
        }
        let port = server.port();
        let id = server.id();
        let clients = AskingClients::of_nginx(SocketAddr::from(([127, 0, 0, 1], port)), 4);
        let seen = || no_delays(&server.process_ids(), port);
        let all = |wanted: bool| {
            let seen = seen();
            seen.len() >= 4 && seen.iter().all(|no_delay| *no_delay == wanted)
        };
        wait_until(LIMIT, "nginx sets it itself", || all(true));
        let child = begin(&folder, "nodelay=off", id, port);
        wait_until(LIMIT, "it is off", || all(false));
        let old = server.process_ids();
        server.signal("HUP");
        wait_until(LIMIT, "there are other workers", || {
            old.iter().skip(1).all(|old| !server.process_ids().contains(old))
        });
        wait_until(LIMIT, "it is off", || all(false));
        kill(child);
        let undo = || folder.run(&["experiment", "--undo", "--state", &folder.state()]).expect_code(0).stdout;
        let said = undo();
        assert!(said.starts_with(&format!("restored: TCP_NODELAY of sockets at port {port} ")), "{said}");
        wait_until(LIMIT, "it is as nginx sets it", || all(true));
        assert!(undo().starts_with("there is nothing to undo"));
        drop(clients);
    });
}

/// The lines of `ss` about connections at a port.
fn connections_by_ss(port: u16) -> Vec<String> {
    let output =
        Command::new("ss").args(["-Hti", "state", "established"]).arg(format!("sport = :{port}")).output();
    let said = String::from_utf8(output.expect("ss runs").stdout).expect("it is text");
    // The second line of each has its congestion control.
    said.lines().filter(|line| line.starts_with('\t')).map(str::to_owned).collect()
}

#[test]
fn congestion_control_is_seen_by_ss_and_undone_by_a_signal() {
    with_bpf_file_system(|| {
        let folder = Folder::new();
        let (Some(server), Some(_)) =
            (OptionServer::start(OptionServerPlace::Loopback), testkit::program("ss"))
        else {
            return;
        };
        if !folder.may_observe() {
            return;
        }
        let before = server.connect().seen().congestion_control;
        let value = if before == "reno" { "cubic" } else { "reno" };
        let clients = AskingClients::of_options(server.address, 3);
        let port = server.address.port();
        let all = |name: &str| {
            let seen = connections_by_ss(port);
            seen.len() >= 3 && seen.iter().all(|line| line.split_whitespace().next() == Some(name))
        };
        wait_until(LIMIT, "clients have connected", || all(&before));
        let child = begin(&folder, &format!("socket-congestion-control={value}"), server.id(), port);
        wait_until(LIMIT, "connections have it", || all(value));
        signal(&child, "TERM");
        let output = child.wait_with_output().expect("the program ends");
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(all(&before), "{:?}", connections_by_ss(port));
        assert_eq!(folder.read("state/experiment.jsonl"), "");
        drop(clients);
    });
}

#[test]
fn an_experiment_with_open_sockets_comes_to_its_end() {
    with_bpf_file_system(|| {
        let folder = Folder::new();
        let Some(server) = OptionServer::start(OptionServerPlace::Loopback) else { return };
        if !folder.may_observe() {
            return;
        }
        let clients = AskingClients::of_options(server.address, 3);
        let process = server.id().to_string();
        let port = server.address.port().to_string();
        let state = folder.state();
        let of_server = ["experiment", "nodelay", "--pid", &process, "--port", &port, "--state", &state];
        let short = ["--period", "100ms", "--guard", "50ms", "--max-periods", "12"];
        let outcome = folder.run(&[&of_server[..], &short, &["--json"]].concat());
        assert!(outcome.code <= 1, "{}", outcome.stderr);
        let view = outcome.json();
        assert!(view["rounds"].as_u64().is_some_and(|rounds| rounds >= 5), "{view}");
        assert_eq!(view["not_undone"].as_array().map(Vec::len), Some(0), "{view}");
        assert_eq!(
            (&view["sockets"]["listening"], &view["sockets"]["not_set"]),
            (&1.into(), &0.into()),
            "{view}"
        );
        assert!(view["sockets"]["connected"].as_u64().is_some_and(|count| count >= 3), "{view}");
        assert!(!server.connect().seen().no_delay);
        let again =
            folder.run(&["experiment", "nodelay=off", "--pid", &process, "--port", &port, "--state", &state]);
        assert!(again.expect_code(2).stderr.contains("it is so already"));
        let elsewhere =
            folder.run(&["experiment", "nodelay", "--pid", &process, "--port", "1", "--state", &state]);
        assert!(elsewhere.expect_code(2).stderr.contains("does not listen at TCP port 1"));
        drop(clients);
    });
}

/// Two would take each other's values for those of the server, whatever journals they have.
#[test]
fn one_experiment_at_a_time_sets_an_option_of_the_same_sockets() {
    with_bpf_file_system(|| {
        let first_folder = Folder::new();
        let second_folder = Folder::new();
        let Some(server) = OptionServer::start(OptionServerPlace::Loopback) else { return };
        if !first_folder.may_observe() {
            return;
        }
        let clients = AskingClients::of_options(server.address, 3);
        let process = server.id();
        let port = server.address.port();
        let is_on = || server.connect().seen().no_delay;
        let first = begin(&first_folder, "nodelay=on", process, port);
        wait_until(LIMIT, "it is on", is_on);
        let by = |holder: &Child| {
            format!("another experiment (process {}) is about TCP_NODELAY at port {port}", holder.id())
        };
        let id = process.to_string();
        let number = port.to_string();
        let state = second_folder.state();
        let second = ["experiment", "nodelay=off", "--pid", &id, "--port", &number, "--state", &state];
        let said = second_folder.run(&second).expect_code(3).stderr;
        assert!(said.contains(&by(&first)), "{said}");
        // What a killed one has left may be set otherwise, but is not taken back meanwhile.
        wait_until(LIMIT, "it is on", is_on);
        kill(first);
        let second = begin(&second_folder, "nodelay=off", process, port);
        wait_until(LIMIT, "it is off", || !is_on());
        let undo = || first_folder.run(&["experiment", "--undo", "--state", &first_folder.state()]);
        let undone = undo().expect_code(3);
        assert!(undone.stdout.contains(&by(&second)), "{}", undone.stdout);
        assert!(undone.stderr.contains("hint: wait until it has ended"), "{}", undone.stderr);
        signal(&second, "TERM");
        second.wait_with_output().expect("the program ends");
        assert!(is_on(), "as the killed one left it");
        let undone = undo().expect_code(0).stdout;
        assert!(undone.starts_with("restored: TCP_NODELAY") && !is_on(), "{undone}");
        drop(clients);
    });
}

/// A container has a file system of BPF of its own, or one is mounted over that of before.
#[test]
fn records_are_found_where_another_process_has_them_mounted() {
    with_bpf_file_system(|| {
        let folder = Folder::new();
        let Some(server) = OptionServer::start(OptionServerPlace::Loopback) else { return };
        if !folder.may_observe() || testkit::program("nsenter").is_none() {
            return;
        }
        let clients = AskingClients::of_options(server.address, 3);
        let process = server.id();
        let port = server.address.port();
        let is_on = || server.connect().seen().no_delay;
        let undo = || folder.run(&["experiment", "--undo", "--state", &folder.state()]).expect_code(0).stdout;
        for (is_container_there, said) in [(true, "restored: TCP_NODELAY"), (false, "gone: TCP_NODELAY")] {
            let mut container = Command::new("unshare");
            let script = "mount -t bpf bpf /sys/fs/bpf && echo && exec cat";
            container.args(["--mount", "sh", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut container = container.spawn().expect("unshare runs");
            let mut is_mounted = [0];
            let output = container.stdout.as_mut().expect("it is a pipe");
            output.read_exact(&mut is_mounted).expect("root may mount it");
            let mut inside = Command::new("nsenter");
            inside.args(["--mount", "--target", &container.id().to_string()]);
            inside.arg(env!("CARGO_BIN_EXE_tailwright"));
            let child = begin_by(inside, &folder, "nodelay=on", process, port);
            wait_until(LIMIT, "it is on", is_on);
            kill(child);
            if !is_container_there {
                container.kill().expect("a child can be killed");
                container.wait().expect("a killed child ends");
            }
            let undone = undo();
            assert!(undone.starts_with(said), "{undone}");
            assert_eq!(is_on(), !is_container_there, "{undone}");
            drop(container.stdin.take());
            container.wait().expect("it ends with its input");
        }
        drop(clients);
    });
}

/// A run of the program with what `script` does to mounts before, and as this user with these rights. Its code and errors.
fn with_mounts(script: &str, as_user: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{script} && exec \"$@\""), "sh"]);
    let output = command.args(as_user).args(arguments).output().expect("unshare runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_is_missing_is_named_before_anything_is_changed() {
    with_bpf_file_system(|| {
        let folder = Folder::new();
        let Some(server) = OptionServer::start(OptionServerPlace::Loopback) else { return };
        if testkit::program("setpriv").is_none() || !folder.may_observe() {
            return;
        }
        let copy = folder.join("tailwright");
        let state = folder.join("nobody");
        std::fs::copy(env!("CARGO_BIN_EXE_tailwright"), &copy).expect("the program can be copied");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
        std::fs::create_dir(&state).expect("it is ours");
        std::os::unix::fs::chown(&state, Some(65534), Some(65534)).expect("root may");
        let process = server.id().to_string();
        let port = server.address.port().to_string();
        let [copy, state] = [copy, state].map(|path| path.display().to_string());
        let of_server =
            [&copy, "experiment", "nodelay", "--pid", &process, "--port", &port, "--state", &state];
        let short = ["--period", "50ms", "--guard", "20ms", "--max-periods", "12"];
        let arguments = [&of_server[..], &short].concat();
        let as_nobody = |mounts: &str, rights: &str| {
            let [inherited, ambient] = ["inh", "ambient"].map(|set| format!("--{set}-caps=-all{rights}"));
            let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", &inherited, &ambient];
            with_mounts(mounts, &user, &arguments)
        };
        let open = "mount -t bpf -o mode=1777 bpf /sys/fs/bpf";
        let closed = "mount -t bpf -o mode=0700 bpf /sys/fs/bpf";
        let all = ",+sys_ptrace,+dac_read_search,+bpf,+perfmon";
        for (mounts, rights, said) in [
            (open, "", "+sys_ptrace,+dac_read_search"),
            (open, ",+sys_ptrace,+dac_read_search", "CAP_BPF and CAP_PERFMON"),
            (open, ",+sys_ptrace,+dac_read_search,+bpf", "takes CAP_PERFMON"),
            (closed, all, "/sys/fs/bpf: Permission denied"),
            ("umount --all-targets /sys/fs/bpf", all, "mount -t bpf bpf /sys/fs/bpf"),
        ] {
            let (code, told) = as_nobody(mounts, rights);
            assert!(code == Some(3) && told.contains(said), "{mounts}, {rights}: {told}");
        }
        assert!(!server.connect().seen().no_delay);
        // With just these it works.
        let clients = AskingClients::of_options(server.address, 2);
        let (code, told) = as_nobody(open, all);
        assert!(matches!(code, Some(0 | 1)), "{told}");
        assert!(!server.connect().seen().no_delay);
        drop(clients);
    });
}
