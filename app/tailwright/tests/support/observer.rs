//! `tailwright observe` as a process that runs beside its test, and a server for it.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

/// The program, observing a port for a minute; returns once it does.
pub(crate) fn observing(mut command: Command, port: u16, more: &[&str]) -> Child {
    command.args(["observe", "--duration", "60s", "--port", &port.to_string()]).args(more);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut line = String::new();
    let stderr = child.stderr.as_mut().expect("it is piped");
    BufReader::new(stderr).read_line(&mut line).expect("stderr can be read");
    assert!(line.starts_with("observing"), "{line}");
    child
}

/// The document that it prints when it ends, judged by its schema.
#[track_caller]
pub(crate) fn printed_document(child: Child, code: i32) -> Value {
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    let document = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    super::schema::check_document(&document);
    document
}

/// An echo server that answers each byte, in a thread of this process for each connection.
pub(crate) fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("a listener has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client connects");
            std::thread::spawn(move || {
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
            });
        }
    });
    address
}
