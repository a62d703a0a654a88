//! One cell of the table of prices: a server is observed with a cause and without it, in turn.

use crate::clients::{self, Load};
use crate::injected::{self, Injected};
use machine::affinity;
use observe::{
    IntendedWaits, ObservationReport, ObservationSettings, ProbeSettings, Protocol, ReplayedPercentile,
    TakenOut, observe,
};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::live_servers::{RunningServer, nginx_folder};

/// Place of p99 among the percentiles of a counterfactual.
const P99: usize = 1;

/// Requests per second of the clients whose latencies are compared, over all of their connections.
const RATE: f64 = 3_000.0;

/// Time after the clients in which an observation ends by itself.
const SLACK: Duration = Duration::from_secs(10);

/// Attempts at a run until one is undisturbed.
const ATTEMPTS: usize = 3;

/// Share of the time that the hypervisor may take from the server's CPU: half of what p99 is about.
const STOLEN_SHARE_MAX: f64 = 0.005;

/// Unit of times in `/proc/stat`.
const TICK: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Memcached,
    Nginx,
}

impl Server {
    pub(crate) const ALL: [Self; 2] = [Self::Memcached, Self::Nginx];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memcached => "memcached",
            Self::Nginx => "nginx",
        }
    }

    fn protocol(self) -> Protocol {
        match self {
            Self::Memcached => Protocol::Memcached,
            Self::Nginx => Protocol::Http1,
        }
    }

    pub(crate) fn request(self) -> &'static [u8] {
        match self {
            Self::Memcached => b"get key\r\n",
            Self::Nginx => b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) injected: Injected,
    pub(crate) server: Server,
    pub(crate) connections: usize,
}

/// p99 with the cause, predicted without it, and measured without it, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared {
    pub(crate) with: u64,
    pub(crate) predicted: ReplayedPercentile,
    pub(crate) without: u64,
}

/// Report of a run, and the way to take out what was injected.
struct Run {
    report: ObservationReport,
    taken_out: TakenOut,
}

impl Cell {
    /// Observes a server with the cause and without it, each for this time and with the same arrivals. An error says
    /// what kept the cell from being measured.
    pub(crate) fn compare(self, time: Duration, seed: u64) -> Result<Compared, String> {
        let cpu = server_cpu();
        // Clients and the observer stay away from the server.
        affinity::pin(0).map_err(|error| error.to_string())?;
        let server = self.start(cpu)?;
        let with = self.undisturbed(&server, Some(self.injected), time, seed)?;
        let without = self.undisturbed(&server, None, time, seed)?;
        let predicted = with.report.causes.without(with.taken_out);
        let predicted = predicted.ok_or_else(|| format!("{:?} was not seen", with.taken_out))?;
        let actual = without.report.causes.without(TakenOut::Nothing).ok_or("no request was seen")?;
        Ok(Compared {
            with: predicted.measured[P99],
            predicted: predicted.percentiles[P99],
            without: actual.measured[P99],
        })
    }

    fn start(self, cpu: usize) -> Result<RunningServer, String> {
        let port = testkit::free_address().port();
        let mut words = vec!["-c".to_owned(), cpu.to_string()];
        if self.injected.server_is_real_time() {
            words.extend(["chrt", "-f", "50"].map(str::to_owned));
        }
        let folder = match self.server {
            Server::Memcached => {
                let port = port.to_string();
                let own = ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-t", "1", "-U", "0", "-p", &port];
                words.extend(own.map(str::to_owned));
                None
            }
            Server::Nginx => {
                let site = |place: &str| format!("server {{ listen 127.0.0.1:{port}; root {place}; }}");
                let folder = nginx_folder(1, site, &[("index.html", &[b'x'; 1_000])]);
                let configuration = folder.path().join("nginx.conf").display().to_string();
                words.extend(["nginx".to_owned(), "-c".to_owned(), configuration]);
                Some(folder)
            }
        };
        let child = injected::own_session("taskset", &words).map_err(|error| error.to_string())?;
        let mut server = RunningServer::new(child, port, folder);
        testkit::connect_when_ready(server.child(), || TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
        Ok(server)
    }

    /// A run in which the hypervisor takes little time from the server's CPU: it stops a server as SIGSTOP does.
    fn undisturbed(
        self,
        server: &RunningServer,
        injected: Option<Injected>,
        time: Duration,
        seed: u64,
    ) -> Result<Run, String> {
        let mut stolen = 0;
        for _ in 0..ATTEMPTS {
            let before = stolen_ticks();
            let run = self.run(server, injected, time, seed)?;
            stolen = stolen_ticks().saturating_sub(before);
            if TICK * stolen <= time.mul_f64(STOLEN_SHARE_MAX) {
                return Ok(run);
            }
        }
        Err(format!("the hypervisor took {:?} from the server's CPU", TICK * stolen))
    }

    fn run(
        self,
        server: &RunningServer,
        injected: Option<Injected>,
        time: Duration,
        seed: u64,
    ) -> Result<Run, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
        let probes = ProbeSettings {
            protocol: Some(self.server.protocol()),
            ..ProbeSettings::of_ports([server.port()])
        };
        let settings = ObservationSettings {
            probes,
            duration: time + SLACK,
            cost_duration: Duration::ZERO,
            intended_waits: IntendedWaits::Included,
            cost_limit: None,
        };
        let request = self.server.request();
        let load = Load { server: address, request, connections: self.connections, rate: RATE, time, seed };
        let stop = AtomicBool::new(false);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut running = None;
            let attached = || {
                running = Some(scope.spawn(|| {
                    std::thread::scope(|scope| {
                        let injecting = injected
                            .map(|injected| injected.start(scope, server, self.server, &is_over, seed))
                            .transpose();
                        clients::open_loop(&load);
                        is_over.store(true, Ordering::Relaxed);
                        stop.store(true, Ordering::Relaxed);
                        injecting
                    })
                }));
            };
            let report = observe(&settings, &stop, attached, &mut |_| {});
            let running = running.ok_or("observing did not begin")?;
            let taken_out = running.join().map_err(|_| "clients failed")??;
            let report = report.map_err(|error| error.to_string())?;
            if report.lost_events > 0 {
                return Err(format!("{} events were lost", report.lost_events));
            }
            Ok(Run { report, taken_out: taken_out.unwrap_or(TakenOut::Nothing) })
        })
    }
}

/// The CPU that servers and what is injected have to themselves, as far as priorities give it to them: the last one. To be
/// asked before the calling thread is kept from it.
pub(crate) fn server_cpu() -> usize {
    static CPU: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(0, |count| count.get() - 1));
    *CPU
}

/// Steal time of the server's CPU since boot, in hundredths of a second.
fn stolen_ticks() -> u32 {
    let name = format!("cpu{} ", server_cpu());
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(&name)).unwrap_or_default();
    line.split_whitespace().nth(8).and_then(|word| word.parse().ok()).unwrap_or(0)
}
