//! Flows: the numbers by which the queue knows workloads.
//!
//! A flow is a workload; its number stays the same as long as the proxy runs, whatever policies come and go. The control
//! requests of a workload are a flow of their own, whose number has [`CONTROL_FLOW`] added, and so are its requests that
//! are larger than what has a level ([`OVERSIZED_FLOW`]), which no rules name: they are best effort and nobody waits
//! behind them.

/// The bit that tells the flow of a workload's control requests from that of its data.
pub(super) const CONTROL_FLOW: u32 = 1 << 31;
/// The bit that tells the flow of a workload's requests that are too large for a level.
pub(super) const OVERSIZED_FLOW: u32 = 1 << 30;
/// The flow of clients that no entry of the deployment names: the largest number without the bits.
pub(super) const UNKNOWN_FLOW: u32 = OVERSIZED_FLOW - 1;

/// The name that stands for all clients that no entry of the deployment names.
pub const UNKNOWN_WORKLOAD: &str = "(unknown)";

/// The flow of the workload's data, from any of its flows.
pub(super) fn data_flow(flow: u32) -> u32 {
    flow & !(CONTROL_FLOW | OVERSIZED_FLOW)
}

/// The names of workloads; the number of a flow is the position of its name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WorkloadNames(Vec<String>);

impl WorkloadNames {
    /// The flow of a workload, which gets the next number if it has none.
    pub(super) fn flow(&mut self, name: &str) -> u32 {
        let position = self.0.iter().position(|known| known == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        u32::try_from(position).expect("fewer workloads than 2³¹")
    }

    /// The name of a flow's workload; `None` for unknown clients.
    pub(super) fn name(&self, flow: u32) -> Option<&str> {
        self.0.get(data_flow(flow) as usize).map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
