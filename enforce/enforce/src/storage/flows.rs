//! Flows: the numbers by which the queue identifies workloads.
//!
//! A flow is a workload; its number stays the same while the proxy runs, across policies. The control
//! requests of a workload are a separate flow, whose number has [`CONTROL_FLOW`] added. So are its
//! requests that are too large for a level ([`OVERSIZED_FLOW`]); no rules name these, so they are best
//! effort and no other request waits behind them.

/// Bit that distinguishes the flow of a workload's control requests from that of its data.
pub(super) const CONTROL_FLOW: u32 = 1 << 31;
/// Bit of the flow of a workload's requests that are too large for a level.
pub(super) const OVERSIZED_FLOW: u32 = 1 << 30;
/// Flow of clients that no entry of the deployment names: the largest number without the bits.
pub(super) const UNKNOWN_FLOW: u32 = OVERSIZED_FLOW - 1;

/// The name that stands for all clients that no entry of the deployment names.
pub const UNKNOWN_WORKLOAD: &str = "(unknown)";

/// Returns the flow of the workload's data, for any of its flows.
pub(super) fn data_flow(flow: u32) -> u32 {
    flow & !(CONTROL_FLOW | OVERSIZED_FLOW)
}

/// Names of workloads; the number of a flow is the position of its name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WorkloadNames(Vec<String>);

impl WorkloadNames {
    /// Returns the flow of a workload, assigning the next number if it has none.
    pub(super) fn flow(&mut self, name: &str) -> u32 {
        let position = self.0.iter().position(|known| known == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        u32::try_from(position).expect("fewer workloads than 2³¹")
    }

    /// Returns the name of a flow's workload; `None` for unknown clients.
    pub(super) fn name(&self, flow: u32) -> Option<&str> {
        self.0.get(data_flow(flow) as usize).map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
