//! `tailwright controller`, `agent` and `ctl` with TLS, judged by curl and openssl: certificates that are renewed, end, or
//! are not trusted, and clients that speak something else.

mod support;

use serde_json::Value;
use std::fs::File;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::authority::{Authority, ENDED, VALID};
use support::servers::{Running, memcached};
use support::service::{HOSTS, write_cluster};
use support::{Folder, Outcome};

/// Only a guard against tests that never end.
const TIMEOUT: Duration = Duration::from_secs(60);

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts the program in a folder, with what it says in a file.
fn start(folder: &Folder, log: &str, arguments: &[&str]) -> Running {
    let said = File::create(folder.join(log)).expect("ours");
    let child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(arguments)
        .current_dir(folder.path())
        .env("COLUMNS", "300")
        .stdout(Stdio::null())
        .stderr(said)
        .spawn();
    Running(child.expect("the program starts"))
}

/// Starts the controller of a folder with the identity in `live.pem` and `live.key`.
fn controller(folder: &Folder, address: SocketAddr) -> Running {
    let listen = address.to_string();
    let identity = ["--tls-certificate", "live.pem", "--tls-key", "live.key"];
    let arguments = [&["controller", "cluster", "--listen", &listen][..], &identity].concat();
    let running = start(folder, "controller.log", &arguments);
    wait_for("the controller", || folder.read("controller.log").contains("listening on"));
    running
}

/// Makes a server's certificate that of the controller.
fn use_identity(folder: &Folder, name: &str) {
    for ending in ["key", "pem"] {
        replace(folder, &format!("{name}.{ending}"), &format!("live.{ending}"));
    }
}

/// Replaces a file as a whole.
fn replace(folder: &Folder, by: &str, file: &str) {
    std::fs::copy(folder.join(by), folder.join("new")).expect("ours");
    std::fs::rename(folder.join("new"), folder.join(file)).expect("ours");
}

fn output(folder: &Folder, program: &str, arguments: &[&str]) -> (bool, String) {
    let done = Command::new(program).args(arguments).current_dir(folder.path()).stdin(Stdio::null()).output();
    let done = done.expect("it starts");
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    (done.status.success(), said.into_owned())
}

fn ctl(folder: &Folder, url: &str, more: &[&str]) -> Outcome {
    let fixed = ["ctl", "list", "tokens", "--token-file", "cluster/operator.token", "--controller", url];
    folder.run(&[&fixed[..], more].concat())
}

/// Returns the serial number of a certificate as openssl prints it: of a file, or of what a server shows.
fn serial(folder: &Folder, of: &str) -> String {
    let command = if of.contains(':') {
        format!("openssl s_client -connect {of} </dev/null 2>/dev/null | openssl x509 -noout -serial")
    } else {
        format!("openssl x509 -noout -serial -in {of}")
    };
    output(folder, "sh", &["-c", &command]).1.trim().to_owned()
}

#[test]
fn curl_and_openssl_trust_the_controller() {
    let folder = Folder::new();
    let Some(authority) = Authority::make(&folder, "our") else { return };
    if testkit::program("curl").is_none() {
        return;
    }
    authority.certify("here", "IP:127.0.0.1", VALID);
    use_identity(&folder, "here");
    let address = testkit::free_address();
    let running = controller(&folder, address);
    // A client that says nothing delays no other.
    let _silent = TcpStream::connect(address).expect("it listens");

    let url = format!("https://{address}");
    let health = format!("{url}/healthz");
    for version in [&["--tlsv1.3"][..], &["--tlsv1.2", "--tls-max", "1.2"]] {
        let asked = [&["-sS", "--cacert", "our-root.pem", &health][..], version].concat();
        assert_eq!(output(&folder, "curl", &asked), (true, "ok\n".to_owned()));
    }
    let (is_trusted, said) = output(&folder, "curl", &["-sS", &health]);
    assert!(!is_trusted && said.contains("certificate"), "{said}");
    let connect =
        ["s_client", "-connect", &address.to_string(), "-CAfile", "our-root.pem", "-alpn", "http/1.1"];
    let (_, said) = output(&folder, "openssl", &connect);
    assert!(
        said.contains("Verify return code: 0 (ok)") && said.contains("ALPN protocol: http/1.1"),
        "{said}"
    );

    // A browser keeps its session for TLS alone.
    let token = format!("token={}", folder.read("cluster/operator.token").trim());
    let sign_in = format!("{url}/sign-in");
    let (_, said) =
        output(&folder, "curl", &["-sSi", "--cacert", "our-root.pem", "--data-urlencode", &token, &sign_in]);
    assert!(said.contains("303") && said.contains("; Secure"), "{said}");

    // Clients without TLS are told, also those that send a body.
    let plain = format!("http://{address}");
    for more in [&[][..], &["--data-binary", "@our-root.pem"]] {
        let asked = [&["-sS", "-w", "%{http_code}", &plain][..], more].concat();
        let (_, said) = output(&folder, "curl", &asked);
        assert!(said.contains("this port speaks TLS") && said.ends_with("400"), "{said}");
    }
    let refused = ctl(&folder, &plain, &[]).expect_code(2).stderr;
    assert!(refused.contains("this port speaks TLS") && refused.contains("https://"), "{refused}");

    let named = ["--ca-file", "our-root.pem"];
    ctl(&folder, &url, &named).expect_code(0);
    let strange = ctl(&folder, &url, &[]);
    if Path::new("/etc/ssl/certs/ca-certificates.crt").exists() {
        assert_eq!(strange.code, 3, "{}", strange.stderr);
        assert!(strange.stderr.contains("an authority that is not trusted"), "{}", strange.stderr);
        assert!(strange.stderr.contains("--ca-file"), "{}", strange.stderr);
    }
    let system = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(["ctl", "list", "tokens", "--token-file", "cluster/operator.token", "--controller", &url])
        .env("SSL_CERT_FILE", "our-root.pem")
        .current_dir(folder.path())
        .output()
        .expect("it starts");
    assert!(system.status.success(), "{}", String::from_utf8_lossy(&system.stderr));
    let other = ctl(&folder, &format!("https://localhost:{}", address.port()), &named).expect_code(3).stderr;
    assert!(other.contains("its certificate is for 127.0.0.1, not for localhost"), "{other}");
    let ended = running;
    ended.signal("TERM");
    assert!(ended.ends_well());

    // A server that sends its own certificate alone, and one without TLS.
    replace(&folder, "here-alone.pem", "live.pem");
    let running = controller(&folder, address);
    let alone = ctl(&folder, &url, &named).expect_code(3).stderr;
    assert!(alone.contains("not trusted") && alone.contains("those between"), "{alone}");
    drop(running);
    let listen = address.to_string();
    let _plain = start(&folder, "plain.log", &["controller", "cluster", "--listen", &listen]);
    wait_for("the controller", || folder.read("plain.log").contains("listening on"));
    let plain = ctl(&folder, &url, &named).expect_code(3).stderr;
    assert!(plain.contains("does not answer with TLS"), "{plain}");
}

#[test]
fn what_cannot_be_served_or_is_not_safe_is_refused() {
    let folder = Folder::new();
    let Some(authority) = Authority::make(&folder, "our") else { return };
    authority.certify("here", "IP:127.0.0.1", VALID);
    authority.certify("there", "IP:127.0.0.1", VALID);
    let protect = ["pkcs8", "-topk8", "-in", "here.key", "-out", "secret.key", "-passout", "pass:abcd"];
    assert!(output(&folder, "openssl", &protect).0);
    for (certificate, key, part) in [
        ("here.pem", "there.key", "the key in there.key is not that of the certificate in here.pem"),
        ("here.pem", "nowhere.key", "nowhere.key: No such file"),
        ("nowhere.pem", "here.key", "nowhere.pem: No such file"),
        ("here.key", "here.key", "here.key: there is no certificate"),
        ("here.pem", "here.pem", "here.pem: there is no private key that can be read"),
        ("here.pem", "secret.key", "without a passphrase"),
    ] {
        let identity = ["--tls-certificate", certificate, "--tls-key", key];
        let refused = folder.run(&[&["controller", "cluster"][..], &identity].concat()).expect_code(2).stderr;
        assert!(refused.contains(part), "{part}: {refused}");
        assert!(!folder.join("cluster").exists(), "nothing is begun before the identity is there");
    }
    folder.run(&["controller", "cluster", "--tls-key", "here.key"]).expect_code(2);

    // Tokens do not pass a network as plain text by accident.
    let refused = folder.run(&["controller", "cluster", "--listen", "0.0.0.0:0"]).expect_code(2).stderr;
    assert!(refused.contains("--tls-certificate") && refused.contains("--plain-http"), "{refused}");
    let any = SocketAddr::from(([0, 0, 0, 0], testkit::free_address().port())).to_string();
    let _open = start(&folder, "open.log", &["controller", "cluster", "--listen", &any, "--plain-http"]);
    wait_for("the controller", || folder.read("open.log").contains("listening on"));
    let url = format!("http://{any}");
    let refused = ctl(&folder, &url, &[]).expect_code(2).stderr;
    assert!(refused.contains("others could read the token"), "{refused}");
    let token = ["--token-file", "cluster/operator.token", "--memory", "memory"];
    let agent = [&["agent", "--controller", &url][..], &token].concat();
    let refused = folder.run(&agent).expect_code(2).stderr;
    assert!(refused.contains("others could read the token"), "{refused}");
    ctl(&folder, &url, &["--plain-http"]).expect_code(0);
    ctl(&folder, "ftp://127.0.0.1", &[]).expect_code(2);
    ctl(&folder, "https://127.0.0.1:1", &["--ca-file", "here.key"]).expect_code(2);
}

/// A host with its agent.
struct Host {
    folder: Folder,
    url: String,
}

impl Host {
    fn ctl(&self, arguments: &[&str]) -> Outcome {
        let fixed = ["--controller", &self.url, "--token-file", "cluster/operator.token"];
        let trust = ["--ca-file", "trusted.pem"];
        self.folder.run(&[&["ctl"][..], arguments, &fixed, &trust].concat())
    }

    fn request(&self, name: &str, address: &str) -> Outcome {
        self.ctl(&["request", name, "99% < 100ms", "mail.csv", "--address", address, "--tenant", "shop"])
    }

    /// Names of the workloads that the proxy keeps on its disk.
    fn enforced(&self) -> Vec<String> {
        let saved = std::fs::read_to_string(self.folder.join("state/proxy-cache-1/policy.json"));
        let saved: Value = serde_json::from_str(&saved.expect("a policy")).expect("whole or absent");
        let workloads = saved["policy"]["workloads"].as_array().expect("a policy");
        workloads.iter().map(|workload| workload["name"].as_str().expect("a name").to_owned()).collect()
    }
}

/// A stream of events by curl, which is open for the whole test.
fn watch(host: &Host) -> Child {
    let token = format!("authorization: Bearer {}", host.folder.read("cluster/operator.token").trim());
    let url = format!("{}/v1/watch", host.url);
    Command::new("curl")
        .args(["-sSN", "--cacert", "our-root.pem", "-H", &token, &url])
        .current_dir(host.folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl starts")
}

#[test]
fn a_certificate_is_renewed_and_ends_under_way() {
    let Some((_memcached, forward)) = memcached() else { return };
    if testkit::program("curl").is_none() {
        return;
    }
    let folder = Folder::new();
    let front = testkit::free_address();
    let hosts = HOSTS.replace("127.0.0.1:11612", &front.to_string());
    write_cluster(&folder, &hosts.replace("127.0.0.1:11611", &forward.to_string()));
    let Some(authority) = Authority::make(&folder, "our") else { return };
    for (name, validity) in [("first", VALID), ("second", VALID), ("ended", ENDED)] {
        authority.certify(name, "IP:127.0.0.1", validity);
    }
    let other = Authority::make(&folder, "other").expect("openssl is here");
    other.certify("third", "IP:127.0.0.1", VALID);
    use_identity(&folder, "first");
    replace(&folder, "our-root.pem", "trusted.pem");
    let address = testkit::free_address();
    let host = Host { folder, url: format!("https://{address}") };
    let folder = &host.folder;
    let running = controller(folder, address);
    let described = ["describe", "--class-file", "cluster.toml", "--hosts", "hosts.toml", "--assume-network"];
    host.ctl(&described).expect_code(0);
    let token = host.ctl(&["token", "here", "--for-agent", "here"]).expect_code(0).stdout;
    folder.write("here.token", &token);
    let proxy = ["proxy", "--hosts", "hosts.toml", "--server", "cache-1", "--state", "state"];
    let _proxy = start(folder, "proxy.log", &proxy);
    wait_for("the proxy", || folder.read("proxy.log").contains("listening on"));
    let to = ["agent", "--controller", &host.url, "--token-file", "here.token", "--state", "state"];
    let trust = ["--memory", "memory", "--ca-file", "trusted.pem", "--enforce"];
    let _agent = start(folder, "agent.log", &[&to[..], &trust].concat());
    wait_for("the agent", || host.ctl(&["list", "agents"]).stdout.contains("applying"));
    host.request("mail", "127.0.0.2").expect_code(0);
    let mut stream = watch(&host);

    // Between the two files of a renewal the first pair stays in use.
    let shown = address.to_string();
    replace(folder, "second.key", "live.key");
    wait_for("a warning", || folder.read("controller.log").contains("the certificate in use stays"));
    assert_eq!(serial(folder, &shown), serial(folder, "first.pem"));
    replace(folder, "second.pem", "live.pem");
    wait_for("the second certificate", || serial(folder, &shown) == serial(folder, "second.pem"));
    let said = folder.read("controller.log");
    assert!(said.contains("the certificate was renewed; it ends 2099-12-31 23:59:59 UTC"), "{said}");
    // The agent and the stream keep their connections.
    host.request("web", "127.0.0.3").expect_code(0);
    let mut events = String::new();
    let mut out = stream.stdout.take().expect("it is piped");
    while !events.contains("\"web\"") {
        let mut bytes = [0; 4096];
        let length = out.read(&mut bytes).expect("the stream");
        assert!(length > 0, "the stream has ended: {events}");
        events += &String::from_utf8_lossy(&bytes[..length]);
    }
    let _ = (stream.kill(), stream.wait());

    // A certificate that ends: the controller says so, clients refuse it, and the proxy keeps what it has.
    drop(running);
    use_identity(folder, "ended");
    let _running = controller(folder, address);
    wait_for("a warning", || {
        folder
            .read("controller.log")
            .contains("the certificate ended 2024-02-01 00:00:00 UTC, and clients refuse it")
    });
    let refused = host.ctl(&["list", "workloads"]).expect_code(3).stderr;
    assert!(refused.contains("its certificate has expired") && refused.contains("renew"), "{refused}");
    wait_for("the agent's words", || folder.read("agent.log").contains("its certificate has expired"));
    assert_eq!(host.enforced(), ["shop/mail", "shop/web"]);

    // Another authority: agents trust it once it is in their file, without a restart.
    use_identity(folder, "third");
    wait_for("the third certificate", || serial(folder, &shown) == serial(folder, "third.pem"));
    wait_for("the agent's words", || folder.read("agent.log").contains("an authority that is not trusted"));
    assert_eq!(host.enforced(), ["shop/mail", "shop/web"]);
    replace(folder, "other-root.pem", "trusted.pem");
    wait_for("trust", || folder.read("agent.log").contains("the trusted authorities have changed"));
    host.request("files", "127.0.0.4").expect_code(0);
    assert_eq!(host.enforced(), ["shop/mail", "shop/web", "shop/files"]);
}
