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

/// Threads do little: the default of 2 MiB would only be address space.
const STACK_BYTES: usize = 256 << 10;
/// A request that says that it was sent longer ago, ten minutes, is not believed.
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

    /// Takes connections for ever. A client whose connection gets no thread is hung up on.
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
        let (mut input, mut thread) = (Vec::new(), WorkingThread::new());
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

    /// Does what a request asks for, here and by calling the next tier, and returns the status of the answer.
    fn serve(&self, head: &RoutedHead, thread: &mut WorkingThread) -> u16 {
        let now = clock::now();
        // When the caller had sent it: reading it may have waited for a CPU.
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
        let (mut arrival, mut visits) = (arrival, Vec::with_capacity(hops.len()));
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

    /// What the tier has seen until now.
    pub(super) fn report(&self) -> TierReport {
        TierReport {
            visits: self.visits.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            cpu_ns: cpu_time::of_process(),
            limit: self.gate.limit(),
        }
    }
}
