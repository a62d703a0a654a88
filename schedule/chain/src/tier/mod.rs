//! A tier: a service in a separate process that spends the CPU time stated in requests and calls the next
//! tier.
//!
//! It reads its settings from standard input and reports on standard output, one line of JSON each. It
//! first reports its port, then, after its settings, that it is ready, and at the end of its input its
//! visits. It ends with its input, and with the process that started it.

mod admission;
mod downstream;
mod protocol;
mod service;

pub(crate) use protocol::{LoggedVisit, TierPort, TierReady, TierReport, TierSettings};

use admission::AdmissionGate;
use machine::offspring;
use machine::scheduling::{self, SchedulingPolicy, ThreadScheduling};
use model::OperationError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use service::TierService;
use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

/// The real-time priority of tiers under SCHED_RR; the load has a higher one.
pub(crate) const ROUND_ROBIN_PRIORITY: u32 = 1;

/// Runs a tier until the standard input ends.
///
/// # Errors
/// When it cannot listen, set its scheduling, or parse its settings.
pub fn run_tier() -> Result<(), OperationError> {
    offspring::die_with_parent().map_err(|error| lacking("its end with its parent", &error))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| lacking("a port", &error))?;
    let port = listener.local_addr().map_err(|error| lacking("a port", &error))?.port();
    say(&TierPort { port })?;
    let mut input = io::stdin().lock();
    let settings: TierSettings = hear(&mut input)?;
    be_scheduled(&settings).map_err(|error| lacking("its scheduling", &error))?;
    let gate = AdmissionGate::new(&settings);
    say(&TierReady { lacks: gate.lacks() })?;
    let service = Arc::new(TierService::new(settings, gate));
    let accepting = Arc::clone(&service);
    std::thread::spawn(move || accepting.accept(&listener));
    // Input after the settings is ignored; only its end matters.
    io::copy(&mut input.take(u64::MAX), &mut io::sink()).map_err(|error| lacking("its input", &error))?;
    say(&service.report())
}

/// Sets CPUs and scheduling class of this thread, inherited by all threads that it starts.
fn be_scheduled(settings: &TierSettings) -> io::Result<()> {
    let thread = scheduling::own_thread();
    scheduling::set_cpus(thread, &settings.cpus)?;
    if settings.mode == crate::ScheduleMode::RoundRobin {
        let round_robin = ThreadScheduling::real_time(SchedulingPolicy::RoundRobin, ROUND_ROBIN_PRIORITY);
        scheduling::set_scheduling(thread, &round_robin)?;
    }
    Ok(())
}

fn say(message: &impl Serialize) -> Result<(), OperationError> {
    let mut line = serde_json::to_string(message).expect("plain data serialises");
    line.push('\n');
    let mut output = io::stdout().lock();
    output
        .write_all(line.as_bytes())
        .and_then(|()| output.flush())
        .map_err(|error| lacking("its output", &error))
}

fn hear<T: DeserializeOwned>(input: &mut impl BufRead) -> Result<T, OperationError> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| lacking("its input", &error))?;
    serde_json::from_str(&line).map_err(|error| {
        OperationError::input(format_args!("a tier was told '{}': {error}", line.trim()))
            .hint("`tailwright schedule bench` starts tiers; they are of no use alone")
    })
}

fn lacking(what: &str, error: &io::Error) -> OperationError {
    OperationError::machine(format_args!("a tier cannot have {what}: {error}"))
}
