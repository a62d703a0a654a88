//! Causes that can be removed again.

use crate::cell::{Server, server_cpu};
use crate::clients::{Random, be_on_time, connection_from, read_all, sleep_until};
use observe::{Cause, TakenOut};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};
use testkit::live_servers::RunningServer;

/// The server is stopped for 20 ms, twice a second.
const PULSES: Duration = Duration::from_millis(500);
const STOP_TIME: Duration = Duration::from_millis(20);

/// A hog with a real-time priority runs for 5 ms, ten times in a second.
const FIFO_PULSES: Duration = Duration::from_millis(100);
const FIFO_TIME: Duration = Duration::from_millis(5);

/// The ordinary hog runs for half of the time.
const HOG_PULSES: Duration = Duration::from_millis(200);
const HOG_TIME: Duration = Duration::from_millis(100);

/// The client that floods the server sends many requests at once, over so many connections, this often.
const FLOODING: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const FLOOD_CONNECTIONS: usize = 4;
const FLOOD_PULSES: Duration = Duration::from_millis(50);

/// So many requests come at once that they take several milliseconds.
const fn flood_requests(server: Server) -> usize {
    match server {
        Server::Memcached => 1_000,
        Server::Nginx => 200,
    }
}

/// Nice value of servers and hogs, and the longest that they take to start.
const NICE: &str = "-5";
const START_TIME: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Injected {
    Hog,
    FifoHog,
    Stop,
    Flood,
}

impl Injected {
    pub(crate) const ALL: [Self; 4] = [Self::Hog, Self::FifoHog, Self::Stop, Self::Flood];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hog => "hog",
            Self::FifoHog => "FIFO hog",
            Self::Stop => "SIGSTOP",
            Self::Flood => "flood",
        }
    }

    /// Tells if other programs of the machine can be kept from the server without keeping the cause from it.
    pub(crate) fn server_is_real_time(self) -> bool {
        self != Self::Hog
    }

    /// Begins, until it is over; returns what is to be taken out of the requests.
    pub(crate) fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        server: &RunningServer,
        kind: Server,
        is_over: &'scope AtomicBool,
        seed: u64,
    ) -> Result<TakenOut, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
        // Of nginx, the worker.
        let serving = *server.process_ids().last().ok_or("the server has ended")?;
        match self {
            Self::Hog | Self::FifoHog => {
                let (policy, every, time) = match self {
                    Self::Hog => (&["yes"][..], HOG_PULSES, HOG_TIME),
                    _ => (&["chrt", "-f", "80", "yes"][..], FIFO_PULSES, FIFO_TIME),
                };
                let cpu = server_cpu().to_string();
                let words = [&["-c", &cpu], policy].concat();
                let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
                let hog = own_session("taskset", &words).map_err(|error| error.to_string())?;
                let process = hog.id();
                signal(process, Signal::STOP);
                scope.spawn(move || {
                    be_on_time();
                    pulse(is_over, every, time, seed, |is_on| {
                        signal(process, if is_on { Signal::CONT } else { Signal::STOP });
                    });
                    drop(Ended(hog));
                });
                Ok(TakenOut::Process(process))
            }
            Self::Stop => {
                scope.spawn(move || {
                    be_on_time();
                    pulse(is_over, PULSES, STOP_TIME, seed, |is_on| {
                        signal(serving, if is_on { Signal::STOP } else { Signal::CONT });
                    });
                });
                Ok(TakenOut::Cause(Cause::Stopped))
            }
            Self::Flood => {
                scope.spawn(move || flood(address, kind, is_over, seed));
                Ok(TakenOut::Client(FLOODING.into()))
            }
        }
    }
}

/// A process that ends with the value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(process: u32, signal: Signal) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw).expect("it has a number");
    kill_process(process, signal).expect("it has not ended");
}

/// Switches on and off. The distances vary, as otherwise the same requests are always hit.
fn pulse(is_over: &AtomicBool, every: Duration, time: Duration, seed: u64, switch: impl Fn(bool)) {
    let mut random = Random(seed ^ 0x5EED);
    while !is_over.load(Ordering::Relaxed) {
        let pause = every.saturating_sub(time);
        sleep_until(Instant::now() + pause / 2 + random.exponential(pause / 2).min(pause));
        let begin = Instant::now();
        switch(true);
        sleep_until(begin + time);
        switch(false);
    }
}

fn flood(server: SocketAddr, kind: Server, is_over: &AtomicBool, seed: u64) {
    let streams: Vec<_> = (0..FLOOD_CONNECTIONS).map(|_| connection_from(FLOODING, server)).collect();
    std::thread::scope(|scope| {
        for stream in &streams {
            scope.spawn(|| read_all(stream));
        }
        let requests = kind.request().repeat(flood_requests(kind) / FLOOD_CONNECTIONS);
        let mut random = Random(seed ^ 0xF100D);
        while !is_over.load(Ordering::Relaxed) {
            sleep_until(Instant::now() + random.exponential(FLOOD_PULSES).min(4 * FLOOD_PULSES));
            for mut stream in &streams {
                stream.write_all(&requests).expect("the server reads");
            }
        }
        for stream in &streams {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    });
}

/// Starts a program in a session of its own, which the scheduler gives a larger share of a CPU than others that want it: as
/// ordinary programs, the server and what is injected are then disturbed mostly by each other.
pub(crate) fn own_session(program: &str, words: &[String]) -> std::io::Result<Child> {
    let mut command = Command::new("setsid");
    command.args(["setpriv", "--pdeathsig", "KILL", program]).args(words);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let begin = Instant::now();
    // It is in the session once `setsid` has become the program.
    let name = || std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default();
    while ["setsid", "price", "setpriv"].iter().any(|before| name().starts_with(before))
        && begin.elapsed() < START_TIME
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Without automatic groups, the nice value alone counts.
    let _ = std::fs::write(format!("/proc/{}/autogroup", child.id()), NICE);
    let _ = Command::new("renice")
        .args(["-n", NICE, "-p", &child.id().to_string()])
        .stdout(Stdio::null())
        .status();
    Ok(child)
}
