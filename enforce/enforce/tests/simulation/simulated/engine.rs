//! The proxies in worlds: the one under test, and one that only passes bytes on.

use super::configuration::{Configuration, SERVER, profile};
use super::loops::{LATE_NS, SimulatedLoops};
use super::plan::WorldPlan;
use super::system::{SimulatedStream, SimulatedSystem};
use enforce::deployment::Deployment;
use enforce::storage::{
    HandOverDocument, LoopedSystem, ProxyEngine, ProxyOptions, ProxySnapshot, ProxyStream, StreamInterest,
    StreamRole, StreamToken, System, SystemEvent,
};
use model::{OperationError, Policy};
use serde_json::Value;
use std::io::{self, IoSlice};

/// A proxy in a world.
pub trait ProxyUnderTest {
    /// Another proxy can take its connections over.
    const CAN_HAND_OVER: bool = false;
    /// Starts a proxy.
    fn begin(system: SimulatedSystem, plan: &WorldPlan, configuration: Configuration) -> Self;
    /// Waits once, and does all work possible then.
    fn round(&mut self) -> io::Result<bool>;
    /// Replaces policy and deployment.
    fn configure(&mut self, policy: Option<&Policy>, deployment: Deployment) -> Result<bool, OperationError>;
    /// Accepts no more connections, and ends once everything is answered.
    fn drain(&mut self);
    /// Returns true if it has ended.
    fn is_stopped(&self) -> bool;
    /// Returns its counters.
    fn snapshot(&self) -> ProxySnapshot;
    /// Checks its invariants.
    fn check_invariants(&self);
    /// Comes to rest within this time, to hand over.
    fn hold(&mut self, _: u64) {}
    /// Returns true if it can hand over.
    fn is_at_rest(&self) -> bool {
        false
    }
    /// Returns true if it did not come to rest in time.
    fn is_hold_late(&self) -> bool {
        true
    }
    /// Ends sessions that wait for their clients. Returns true if it can then hand over.
    fn leave_clients_behind(&mut self) -> bool {
        false
    }
    /// Serves on.
    fn go_on(&mut self) {}
    /// Hands over to another proxy, which begins with a document as text.
    #[must_use]
    fn succeeded(self, other: Self, spoil: impl FnOnce(&mut Value)) -> Self;
}

/// A system over a world.
pub trait WorldSystem: System {
    /// Gives connections to another proxy; loops do not.
    const GIVES_CONNECTIONS: bool;

    fn of(system: SimulatedSystem, plan: &WorldPlan) -> Self;
}

impl WorldSystem for SimulatedSystem {
    const GIVES_CONNECTIONS: bool = true;

    fn of(system: SimulatedSystem, _: &WorldPlan) -> Self {
        system
    }
}

impl WorldSystem for LoopedSystem<SimulatedSystem, SimulatedLoops> {
    const GIVES_CONNECTIONS: bool = false;

    fn of(system: SimulatedSystem, plan: &WorldPlan) -> Self {
        system.0.borrow_mut().orders_late_ns = LATE_NS;
        Self::new(system, SimulatedLoops::new(plan.seed))
    }
}

impl<S: WorldSystem> ProxyUnderTest for ProxyEngine<S> {
    const CAN_HAND_OVER: bool = S::GIVES_CONNECTIONS;

    fn begin(system: SimulatedSystem, plan: &WorldPlan, configuration: Configuration) -> Self {
        let deployment = configuration.deployment(plan);
        let mut options = ProxyOptions::new(SERVER, deployment, configuration.policy(plan), profile(plan));
        options.connections_max = plan.connections;
        Self::new(S::of(system, plan), plan.fronts.clone(), &options)
            .expect("the configurations of worlds are right")
    }

    fn round(&mut self) -> io::Result<bool> {
        self.round()
    }

    fn configure(&mut self, policy: Option<&Policy>, deployment: Deployment) -> Result<bool, OperationError> {
        self.configure(policy, Some(deployment))
    }

    fn drain(&mut self) {
        self.drain();
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped()
    }

    fn snapshot(&self) -> ProxySnapshot {
        self.snapshot()
    }

    fn check_invariants(&self) {
        self.check_invariants();
    }

    fn hold(&mut self, within: u64) {
        self.hold(within);
    }

    fn is_at_rest(&self) -> bool {
        self.is_at_rest()
    }

    fn is_hold_late(&self) -> bool {
        self.is_hold_late()
    }

    fn leave_clients_behind(&mut self) -> bool {
        self.leave_clients_behind()
    }

    fn go_on(&mut self) {
        self.go_on();
    }

    fn succeeded(mut self, mut other: Self, spoil: impl FnOnce(&mut Value)) -> Self {
        let mut document = serde_json::to_value(self.document()).expect("it is plain data");
        spoil(&mut document);
        let document: HandOverDocument = serde_json::from_value(document).expect("it was written so");
        other.adopt(document, self.into_streams()).expect("it is of this version");
        other.begin_adopted();
        other
    }
}

/// A proxy that passes bytes on at once, without knowledge of requests.
#[derive(Debug)]
pub struct PassThrough {
    system: SimulatedSystem,
    pairs: Vec<Option<PassedPair>>,
    is_stopped: bool,
}

/// The two connections of a client, and bytes on their way between them.
#[derive(Debug)]
struct PassedPair {
    streams: [SimulatedStream; 2],
    /// Bytes read from each side and not yet written to the other.
    held: [Vec<u8>; 2],
    /// True for a side that has ended, and true if the other was notified.
    has_ended: [bool; 2],
    was_told: [bool; 2],
    is_made: bool,
}

impl PassedPair {
    /// Moves available bytes from one side to the other; an error ends the pair.
    fn pass(&mut self, from: usize) -> io::Result<()> {
        let mut piece = [0; 4096];
        while self.held[from].len() < 64 << 10 && !self.has_ended[from] {
            match self.streams[from].read(&mut piece) {
                Ok(0) => self.has_ended[from] = true,
                Ok(count) => self.held[from].extend(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        while !self.held[from].is_empty() {
            match self.streams[1 - from].write_vectored(&[IoSlice::new(&self.held[from])]) {
                Ok(count) => drop(self.held[from].drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.has_ended[from] && !self.was_told[from] {
            self.was_told[from] = true;
            self.streams[1 - from].shutdown_write()?;
        }
        Ok(())
    }

    fn interest(&self, side: usize) -> StreamInterest {
        StreamInterest {
            readable: self.is_made && !self.has_ended[side] && self.held[side].len() < 64 << 10,
            writable: !self.held[1 - side].is_empty() || (side == 1 && !self.is_made),
        }
    }
}

impl PassThrough {
    fn accept(&mut self, front: usize) {
        let Ok((client, peer)) = self.system.accept(front) else {
            return;
        };
        let Ok(server) = self.system.connect(front, Some(peer)) else { return };
        let streams = [client, server];
        let held = [Vec::new(), Vec::new()];
        let ended = [false; 2];
        self.pairs.push(Some(PassedPair {
            streams,
            held,
            has_ended: ended,
            was_told: ended,
            is_made: false,
        }));
        self.serve(self.pairs.len() - 1);
    }

    fn serve(&mut self, slot: usize) {
        let Some(pair) = &mut self.pairs[slot] else { return };
        let passed = pair.streams[1].finish_connecting();
        let passed = match passed {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                pair.is_made = true;
                pair.pass(0).and_then(|()| pair.pass(1))
            }
        };
        let mut is_over = passed.is_err() || pair.was_told == [true; 2];
        for side in 0..2 {
            let interest = pair.interest(side);
            let slot = u32::try_from(slot).expect("there are few");
            let token = StreamToken {
                slot,
                serial: 0,
                role: if side == 0 { StreamRole::Client } else { StreamRole::Server },
            };
            is_over |= self.system.watch(&mut pair.streams[side], token, interest).is_err();
        }
        if is_over {
            self.pairs[slot] = None;
        }
    }
}

impl ProxyUnderTest for PassThrough {
    fn begin(system: SimulatedSystem, _: &WorldPlan, _: Configuration) -> Self {
        Self { system, pairs: Vec::new(), is_stopped: false }
    }

    fn round(&mut self) -> io::Result<bool> {
        let mut events = Vec::new();
        self.system.wait(None, 0, &mut events)?;
        for event in events {
            match event {
                SystemEvent::Incoming(front) => self.accept(front),
                SystemEvent::Stream { token, .. } => self.serve(token.slot as usize),
                SystemEvent::Orders => {}
            }
        }
        Ok(false)
    }

    fn configure(&mut self, _: Option<&Policy>, deployment: Deployment) -> Result<bool, OperationError> {
        let is_known = deployment.servers.iter().any(|server| server.name == SERVER);
        if is_known { Ok(true) } else { Err(OperationError::input("there is no such server")) }
    }

    fn drain(&mut self) {
        self.system.stop_listening();
        self.is_stopped = true;
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn snapshot(&self) -> ProxySnapshot {
        let connections = self.pairs.iter().flatten().count() as u64;
        ProxySnapshot { connections, ..ProxySnapshot::default() }
    }

    fn check_invariants(&self) {}

    fn succeeded(self, _: Self, _: impl FnOnce(&mut Value)) -> Self {
        self
    }
}
