//! Faults of a simulated world, their rates and counts.

use super::dice::Dice;

/// Kinds of faults, as indices of rates and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A read returns fewer bytes than there are.
    PartialRead,
    /// A write takes fewer bytes than there is room for.
    PartialWrite,
    /// A call would block although bytes or space are available.
    SpuriousWouldBlock,
    /// A wait returns early, without events, as after a signal.
    EarlyWakeUp,
    /// A wait reports only some of the pending events.
    WithheldEvents,
    /// The proxy does not run for a while, up to seconds.
    ClockJump,
    /// A connection of a client is reset.
    ClientReset,
    /// A connection to the server is reset.
    ServerReset,
    /// A client hangs up in the middle of a message.
    ClientHangUp,
    /// A client reads nothing for a while.
    ClientStall,
    /// A client stops in the middle of a request for a while.
    HalfRequest,
    /// A server reads nothing for a while.
    ServerStall,
    /// The device is idle for a while.
    DeviceStall,
    /// The server loses a request and never answers it.
    LostReply,
    /// The server stops, and starts again later.
    ServerRestart,
    /// A connection to the server is refused.
    ConnectRefused,
    /// A connection to the server is established late.
    ConnectSlow,
    /// A connection to the server is never established.
    ConnectNever,
    /// A connection to the server cannot even be begun.
    ConnectFails,
    /// No more files may be opened when a client is accepted.
    AcceptNoFiles,
    /// The client has gone before it is accepted.
    AcceptAborted,
    /// The kernel cannot watch a connection.
    WatchFails,
    /// A policy or a deployment is replaced.
    Configuration,
    /// An invalid policy is offered.
    WrongConfiguration,
    /// The proxy drains and starts again.
    ProxyDrain,
    /// The proxy stops at once and starts again.
    ProxyStop,
    /// The server calls its client.
    Callback,
    /// A hostile client sends invalid bytes.
    HostileBytes,
    /// For a while the process may open hardly more files than it has open.
    FilesRunOut,
    /// Another proxy takes over from the running one, or tries to.
    TakeOver,
}

pub const FAULT_KINDS: usize = FaultKind::TakeOver as usize + 1;

impl FaultKind {
    pub const ALL: [Self; FAULT_KINDS] = [
        Self::PartialRead,
        Self::PartialWrite,
        Self::SpuriousWouldBlock,
        Self::EarlyWakeUp,
        Self::WithheldEvents,
        Self::ClockJump,
        Self::ClientReset,
        Self::ServerReset,
        Self::ClientHangUp,
        Self::ClientStall,
        Self::HalfRequest,
        Self::ServerStall,
        Self::DeviceStall,
        Self::LostReply,
        Self::ServerRestart,
        Self::ConnectRefused,
        Self::ConnectSlow,
        Self::ConnectNever,
        Self::ConnectFails,
        Self::AcceptNoFiles,
        Self::AcceptAborted,
        Self::WatchFails,
        Self::Configuration,
        Self::WrongConfiguration,
        Self::ProxyDrain,
        Self::ProxyStop,
        Self::Callback,
        Self::HostileBytes,
        Self::FilesRunOut,
        Self::TakeOver,
    ];

    /// Returns the number of chances per fault of a kind in a world that has it.
    fn usual_rate(self) -> u64 {
        match self {
            Self::PartialRead | Self::PartialWrite => 4,
            Self::SpuriousWouldBlock | Self::EarlyWakeUp | Self::WithheldEvents => 12,
            Self::ClockJump => 3000,
            // Chances of these come with each fault event scheduled in the world.
            Self::ClientReset | Self::ServerReset | Self::DeviceStall => 3,
            // Chances of these come with each step of the server on a connection.
            Self::ServerStall => 200,
            Self::ServerRestart => 12,
            Self::Configuration | Self::WrongConfiguration | Self::FilesRunOut | Self::TakeOver => 2,
            Self::ProxyDrain | Self::ProxyStop => 12,
            Self::Callback => 2,
            // Chances of these come with each request.
            Self::ClientHangUp => 300,
            Self::ClientStall | Self::HalfRequest => 60,
            Self::LostReply => 600,
            Self::HostileBytes => 1,
            // Chances of these come with each connection.
            Self::ConnectRefused | Self::ConnectNever | Self::ConnectFails => 12,
            Self::ConnectSlow => 4,
            Self::AcceptNoFiles | Self::AcceptAborted | Self::WatchFails => 12,
        }
    }

    /// Returns true if promises about latency hold despite it.
    fn is_harmless_to_others(self) -> bool {
        !matches!(
            self,
            Self::ClockJump
                | Self::ServerReset
                | Self::ServerStall
                | Self::DeviceStall
                | Self::LostReply
                | Self::ServerRestart
                | Self::ConnectRefused
                | Self::ConnectSlow
                | Self::ConnectNever
                | Self::ConnectFails
                | Self::AcceptNoFiles
                | Self::AcceptAborted
                | Self::FilesRunOut
                | Self::WatchFails
                | Self::Configuration
                | Self::ProxyDrain
                | Self::ProxyStop
                | Self::TakeOver
        )
    }
}

/// Rates and counts of faults.
#[derive(Debug, Clone)]
pub struct FaultLog {
    rates: [u64; FAULT_KINDS],
    /// Number of faults of each kind.
    pub counts: [u64; FAULT_KINDS],
}

impl FaultLog {
    /// Draws the rates. Each kind of fault is in every second world only: one kind may mask a violation
    /// that another world without it shows. A calm world has no faults that would excuse a late answer to
    /// the client with the highest priority.
    pub fn random(dice: &mut Dice, is_calm: bool) -> Self {
        // The latest kinds do not shift the choices of older worlds, whose seeds find mistakes.
        let mut apart = dice.clone();
        let rates = FaultKind::ALL.map(|kind| {
            let is_late = matches!(kind, FaultKind::FilesRunOut | FaultKind::TakeOver);
            let dice = if is_late { &mut apart } else { &mut *dice };
            let is_present = dice.one_in(2) && (!is_calm || kind.is_harmless_to_others());
            if is_present { kind.usual_rate() * dice.between(1, 4) } else { 0 }
        });
        Self { rates, counts: [0; FAULT_KINDS] }
    }

    /// Returns rates and counts of a world without faults.
    pub fn none() -> Self {
        Self { rates: [0; FAULT_KINDS], counts: [0; FAULT_KINDS] }
    }

    /// Returns true if a fault happens now, and counts it.
    pub fn strikes(&mut self, kind: FaultKind, dice: &mut Dice) -> bool {
        let happens = dice.one_in(self.rates[kind as usize]);
        self.counts[kind as usize] += u64::from(happens);
        happens
    }

    /// Counts a fault that was decided elsewhere.
    pub fn count(&mut self, kind: FaultKind) {
        self.counts[kind as usize] += 1;
    }

    /// Returns true if the world has faults of a kind.
    pub fn has(&self, kind: FaultKind) -> bool {
        self.rates[kind as usize] > 0
    }
}
