//! The threads of a tier: one for each connection, each with one request at a time.

use super::admission::AdmissionGate;
use super::downstream::DownstreamCalls;
use super::protocol::{LoggedVisit, TierReport, TierSettings};
use crate::http::{self, RoutedHead};
use crate::spin::WorkingThread;
use gat::{InnerTier, TagCodec};
use machine::{clock, cpu_time};
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use units::Nanos;

/// The threads need little stack: the default of 2 MiB would only waste address space.
const STACK_BYTES: usize = 256 << 10;
/// Maximum credible time since the sending of a request: ten minutes.
const SENT_BEFORE_NS_MAX: u64 = 600_000_000_000;

/// A tier that takes requests.
#[derive(Debug)]
pub(super) struct TierService {
    tier: usize,
    gate: AdmissionGate,
    downstream: DownstreamCalls,
    inner: Mutex<InnerTier>,
    visits: Mutex<Vec<LoggedVisit>>,
}

impl TierService {
    pub(super) fn new(settings: TierSettings, gate: AdmissionGate) -> Self {
        Self {
            tier: settings.tier,
            gate,
            downstream: DownstreamCalls::new(settings.tiers),
            inner: Mutex::default(),
            visits: Mutex::default(),
        }
    }

    /// Accepts connections for ever. If no thread can be started for a connection, it is closed.
    pub(super) fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            let service = Arc::clone(self);
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            // A connection that breaks is the client's matter.
            let _ = thread.spawn(move || service.serve_connection(stream));
        }
    }

    fn serve_connection(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut input = Vec::new();
        let mut thread = WorkingThread::new();
        loop {
            let mut answer = Vec::new();
            match http::read_request(&mut stream, &mut input) {
                Ok(Some(head)) => http::write_answer(&mut answer, self.serve(&head, &mut thread)),
                Ok(None) => return Ok(()),
                Err(error) => {
                    http::write_answer(&mut answer, 400);
                    stream.write_all(&answer)?;
                    return Err(error);
                }
            }
            stream.write_all(&answer)?;
        }
    }

    /// Performs a request's work here and calls the next tier. Returns the status of the answer.
    fn serve(&self, head: &RoutedHead, thread: &mut WorkingThread) -> u16 {
        let now = clock::now();
        // The caller's sending time, because reading the request may have waited for a CPU.
        let arrival =
            head.sent_ns.filter(|sent| (now.saturating_sub(SENT_BEFORE_NS_MAX)..=now).contains(sent));
        let arrival = arrival.unwrap_or(now);
        let here = head.route.iter().enumerate();
        let here = here
            .take_while(|(at, hop)| hop.tier == self.tier && (*at == 0 || hop.wait > Nanos::ZERO))
            .count();
        let (hops, rest) = head.route.split_at(here);
        if hops.is_empty() {
            return 400;
        }
        let values = head.baggage.iter().map(Vec::as_slice);
        let received = TagCodec::baggage().read(values);
        let tag =
            self.inner.lock().unwrap_or_else(PoisonError::into_inner).receive(received, clock::real_time());
        let key = self.gate.key(tag);
        let permit = self.gate.enter(key);
        let mut arrival = arrival;
        let mut visits = Vec::with_capacity(hops.len());
        for hop in hops {
            if hop.wait > Nanos::ZERO {
                arrival = self.gate.wait(&permit, hop.wait);
            }
            let runs = thread.spend(hop.work.0);
            let end = clock::now();
            visits.push(LoggedVisit { request: head.number, key: key.0, arrival, end, runs });
        }
        // The call of the next tier is not part of the work here: it waits without a CPU.
        drop(permit);
        self.visits.lock().unwrap_or_else(PoisonError::into_inner).extend(visits);
        let Some(next) = rest.first() else { return 200 };
        let mut request = Vec::new();
        let onward = RoutedHead { route: rest.to_vec(), sent_ns: Some(clock::now()), ..head.clone() };
        http::write_request(&mut request, &onward, tag);
        self.downstream.call(next.tier, &request).unwrap_or(502)
    }

    /// Returns the visits so far.
    pub(super) fn report(&self) -> TierReport {
        TierReport {
            visits: self.visits.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            cpu_ns: cpu_time::of_process(),
            limit: self.gate.limit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::ScheduleMode;
    use crate::sender::send;
    use crate::workload::{ChainClass, ChainEntry, ChainRequest, ChainTier, ChainWorkload};
    use sim::pool_tiers::RouteHop;
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;
    use std::sync::atomic::AtomicBool;

    const WORK: Nanos = Nanos(100_000);
    const BEHIND_NS: i64 = 1_200_000_000_000;

    /// Three entries, whose clocks are right, half a second ahead and twenty minutes behind, with
    /// requests of each in turn.
    fn workload() -> ChainWorkload {
        let request = |number: usize| ChainRequest {
            arrival: Nanos(1_000_000 * number as u64),
            entry: number % 3,
            class: 0,
            route: vec![RouteHop { tier: 0, wait: Nanos::ZERO, work: WORK }],
        };
        let entry = |skew_ns| ChainEntry { window: None, skew_ns };
        ChainWorkload {
            tiers: vec![ChainTier { name: "a".into(), workers: 1 }],
            entries: [0, 500_000_000, -BEHIND_NS].map(entry).to_vec(),
            classes: vec![ChainClass { name: "all".into(), slo: None }],
            requests: (0..60).map(request).collect(),
            serialised: 0,
        }
    }

    #[test]
    fn a_tier_sees_the_clock_of_the_entry_and_latency_is_by_the_true_one() {
        let settings = TierSettings {
            tier: 0,
            cpus: BTreeSet::from([0]),
            mode: ScheduleMode::OldestAdmission,
            limit: Some(1),
            tiers: Vec::new(),
        };
        let gate = AdmissionGate::new(&settings);
        let service = Arc::new(TierService::new(settings, gate));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = Arc::clone(&service);
        std::thread::spawn(move || accepting.accept(&listener));

        let workload = workload();
        let real_time = clock::real_time();
        let sent = send(&workload, &[address], (clock::now(), real_time), &AtomicBool::new(false));
        let sent = sent.unwrap().unwrap();

        let visits = service.report().visits;
        assert_eq!(visits.len(), workload.requests.len());
        for visit in visits {
            let request = &workload.requests[usize::try_from(visit.request).unwrap()];
            let true_start = real_time + request.arrival.0;
            let skew_ns = workload.entries[request.entry].skew_ns;
            assert_eq!(visit.key, true_start.saturating_add_signed(skew_ns), "{request:?}");
        }
        for (request, answer) in workload.requests.iter().zip(&sent.answers) {
            let latency_ns = answer.unwrap().0 - request.arrival.0;
            // Reading a request counts as at most half of its work.
            assert!(
                (WORK.0 / 2..BEHIND_NS.unsigned_abs()).contains(&latency_ns),
                "{latency_ns}: {request:?}"
            );
        }
    }
}
