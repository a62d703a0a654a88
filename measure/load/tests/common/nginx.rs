//! nginx with one site on several ports: with and without TLS and HTTP/2.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A certificate that an authority of its own has signed, in a folder.
pub struct Certificate {
    pub authority: PathBuf,
    pub chain: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    /// Makes a certificate for these names, such as `DNS:localhost,IP:127.0.0.1`.
    pub fn make(folder: &Path, names: &str) -> Option<Self> {
        let openssl = testkit::program("openssl")?;
        let run = |arguments: &str| {
            let mut command = Command::new(&openssl);
            command.args(arguments.split_whitespace()).current_dir(folder);
            let output = command.output().expect("openssl starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let new = "req -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256";
        run(&format!("{new} -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"));
        run(&format!("{new} -subj /CN=server -keyout server.key -out server.csr"));
        std::fs::write(folder.join("names"), format!("subjectAltName={names}\n")).unwrap();
        run(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem",
        );
        let file = |name| folder.join(name);
        Some(Self { authority: file("ca.pem"), chain: file("server.pem"), key: file("server.key") })
    }
}

/// nginx, which ends with this value.
pub struct Nginx {
    child: Child,
    folder: tempfile::TempDir,
    pub certificate: Certificate,
    /// HTTP/1.1 without TLS.
    pub plain: SocketAddr,
    /// HTTP/2 without TLS.
    pub plain_two: SocketAddr,
    /// HTTP/1.1 with TLS.
    pub tls: SocketAddr,
    /// HTTP/1.1 and HTTP/2 with TLS.
    pub tls_two: SocketAddr,
}

impl Nginx {
    /// Serves `/file` of 10,000 bytes, and PUT below `/put/`. `settings` are directives of `http`.
    pub fn start(settings: &str) -> Option<Self> {
        let program = testkit::program("nginx")?;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        // A temporary folder is private, and nginx's workers would lose the rights of root.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let certificate = Certificate::make(path, "DNS:localhost,IP:127.0.0.1")?;
        std::fs::create_dir_all(path.join("www/put")).unwrap();
        std::fs::write(path.join("www/file"), vec![b'x'; 10_000]).unwrap();
        let [plain, plain_two, tls, tls_two] = std::array::from_fn(|_| testkit::free_address());
        let shown = path.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {shown}/{name};\n"))
            .concat();
        let configuration = format!(
            "daemon off; master_process off; pid {shown}/pid; error_log {shown}/log; events {{}}\n\
             http {{ {temporary} log_format short '$server_protocol $status'; access_log {shown}/access short;\n\
             ssl_certificate {chain}; ssl_certificate_key {key}; client_max_body_size 0; {settings}\n\
             server {{ listen {plain}; listen {plain_two} http2; listen {tls} ssl; listen {tls_two} ssl http2;\n\
             root {shown}/www; location /put/ {{ dav_methods PUT; }} }} }}",
            chain = certificate.chain.display(),
            key = certificate.key.display(),
        );
        std::fs::write(path.join("conf"), configuration).unwrap();
        let mut command = Command::new(program);
        command.arg("-p").arg(path).arg("-c").arg(path.join("conf")).arg("-e").arg(path.join("log"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("nginx starts");
        testkit::connect_when_ready(&mut child, || TcpStream::connect(tls_two));
        Some(Self { child, folder, certificate, plain, plain_two, tls, tls_two })
    }

    /// The number of its only process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Returns the lines of the access log, `HTTP/2.0 200` each, once there are `expected`, or after five seconds
    /// those that there are, and empties it. A line is written after its answer was sent.
    pub fn take_log(&self, expected: usize) -> Vec<String> {
        let path = self.folder.path().join("access");
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let text = std::fs::read_to_string(&path).unwrap();
            if text.lines().count() >= expected || Instant::now() >= end {
                std::fs::write(&path, "").unwrap();
                return text.lines().map(str::to_owned).collect();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Bytes that were stored by PUT below `/put/`.
    pub fn stored(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join("www/put").join(name)).unwrap()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
