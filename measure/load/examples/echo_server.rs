//! A null RPC server: threads that send back what they receive, as in *Tales of the Tail*, section 3.1.1.
//!
//! ```sh
//! cargo run --release -p load --example echo_server -- 127.0.0.1:7007 --threads 4 --work 20us
//! ```
//!
//! Each connection belongs to one of the threads, which serves its connections in the order in which
//! input is found. With `--per-connection` every connection has a thread of its own. `--work` is the time
//! for which a thread computes for each piece that it reads.

use std::io;
use std::net::TcpListener;
use std::time::Duration;
use testkit::null_rpc::NullRpcServer;
use units::Nanos;

const USAGE: &str = "usage: echo_server ADDRESS [--threads N | --per-connection] [--work TIME]";

fn main() -> io::Result<()> {
    let Some((address, server)) = settings(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    let listener = TcpListener::bind(&address)?;
    println!("listening on {}", listener.local_addr()?);
    server.serve(&listener)
}

fn settings(mut arguments: impl Iterator<Item = String>) -> Option<(String, NullRpcServer)> {
    let address = arguments.next()?;
    let mut server = NullRpcServer { threads: Some(1), work: Duration::ZERO, read_bytes: 64 << 10 };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--per-connection" => server.threads = None,
            "--threads" => {
                server.threads = Some(arguments.next()?.parse().ok().filter(|count| *count > 0)?);
            }
            "--work" => server.work = Duration::from_nanos(arguments.next()?.parse::<Nanos>().ok()?.0),
            _ => return None,
        }
    }
    Some((address, server))
}
