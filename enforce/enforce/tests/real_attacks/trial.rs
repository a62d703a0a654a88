//! One attack: the priority client alone and beside it, through the proxy and directly.

use crate::attacks::{LARGE, LARGE_KEY, RealAttack};
use crate::processes::{RoleProcess, cpu_time, memory_mib};
use crate::proxy::{Server, say};
use crate::victim::{KEY, VALUE, VictimSample, measure};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Above the proxy: the server is not under test, and a device has processors of its own.
const SERVER_FIFO: u32 = 40;

fn start_server(attack: RealAttack, is_realtime: bool) -> Option<Server> {
    let server = start_ordinary(attack)?;
    if is_realtime {
        let priority = SERVER_FIFO.to_string();
        let id = server.id().to_string();
        // Refused without the privilege, as the summary says of the client.
        let _ = Command::new("chrt").args(["-a", "-f", "-p", &priority, &id]).stderr(Stdio::null()).status();
    }
    Some(server)
}

fn start_ordinary(attack: RealAttack) -> Option<Server> {
    if attack.is_nbd() {
        return Server::start_quietly("nbdkit", "-f -i 127.0.0.1 -p PORT -t 4 memory 128M");
    }
    let arguments = "-u root -l 127.0.0.1 -p PORT -U 0 -t 4 -m 512 -c 8192 -I 2m";
    let server = Server::start_quietly("memcached", arguments)?;
    let mut stream = TcpStream::connect(server.address).expect("the server listens");
    for (key, value) in [(KEY, VALUE), (LARGE_KEY, &[b'l'; LARGE][..])] {
        let set = format!("set {key} 0 0 {}\r\n", value.len());
        let stored = say(&mut stream, &[set.as_bytes(), value, b"\r\n"].concat(), b"\r\n");
        assert_eq!(stored, b"STORED\r\n");
    }
    Some(server)
}

/// A server with its values, and a proxy before it.
pub struct RealGround {
    attack: RealAttack,
    is_realtime: bool,
    server: Server,
    proxy: RoleProcess,
    front: SocketAddr,
    itself: &'static [&'static str],
}

/// The client alone and beside the attack.
pub struct PairedSample {
    pub alone: VictimSample,
    pub beside: VictimSample,
}

impl PairedSample {
    pub fn ratio(&self) -> f64 {
        self.beside.p99() / self.alone.p99()
    }
}

/// A round through the proxy and one without it.
pub struct RealRound {
    pub proxied: PairedSample,
    /// The same attack on the server itself; none where it attacks the proxy only.
    pub direct: Option<PairedSample>,
    /// Its p99 waiting in the proxy beside the attack, and at the server.
    pub waiting_ms: f64,
    pub served_ms: f64,
    pub memory_mib: f64,
    /// CPU time of server, proxy and attackers beside the attack, per second.
    pub server_cpu: f64,
    pub proxy_cpu: f64,
    pub attack_cpu: f64,
}

impl RealGround {
    /// Starts server and proxy; `is_realtime`: the server under real-time priority, if permitted. `itself`: arguments
    /// with which this program plays a role. `None` without the server.
    pub fn start(attack: RealAttack, is_realtime: bool, itself: &'static [&'static str]) -> Option<Self> {
        let server = start_server(attack, is_realtime)?;
        let protocol = if attack.is_nbd() { "nbd" } else { "memcached" };
        let (proxy, front) = RoleProcess::proxy(protocol, server.address, attack.files(), itself);
        Some(Self { attack, is_realtime, server, proxy, front, itself })
    }

    /// Measures the client alone and then beside the attack. Also returns the proxy's memory in MiB beside it, and the
    /// CPU time of server, proxy and attackers, per second.
    fn pair(&mut self, target: SocketAddr, time: Duration) -> (PairedSample, [f64; 4]) {
        let is_nbd = self.attack.is_nbd();
        let alone = measure(target, is_nbd, time);
        self.proxy.mark();
        let attackers = RoleProcess::attack(self.attack, target, self.itself);
        let ids = [self.server.id(), self.proxy.id(), attackers.id()];
        let before = ids.map(cpu_time);
        let begun = Instant::now();
        let beside = measure(target, is_nbd, time);
        let elapsed = begun.elapsed().as_secs_f64();
        let used = [0, 1, 2].map(|place| (cpu_time(ids[place]) - before[place]).as_secs_f64() / elapsed);
        let memory = memory_mib(self.proxy.id());
        drop(attackers);
        // Connections of the attackers end.
        std::thread::sleep(Duration::from_millis(500));
        (PairedSample { alone, beside }, [memory, used[0], used[1], used[2]])
    }

    /// Measures a round, and ends proxy and server.
    pub fn round(mut self, time: Duration, compares: bool) -> RealRound {
        let (proxied, [memory_mib, server_cpu, proxy_cpu, attack_cpu]) = self.pair(self.front, time);
        let is_compared = compares && self.attack != RealAttack::FewFiles;
        let direct = is_compared.then(|| {
            // Clients that hang up end nbdkit now and then.
            self.server = start_server(self.attack, self.is_realtime).expect("it was there before");
            self.pair(self.server.address, time).0
        });
        let [waiting_ms, served_ms] = self.proxy.stages();
        RealRound { proxied, direct, memory_mib, server_cpu, proxy_cpu, attack_cpu, waiting_ms, served_ms }
    }
}
