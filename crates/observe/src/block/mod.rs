//! Requests of block devices: how long each waited for its device and how long that took, by process, control group,
//! device and operation.

mod event;
mod probe;
mod statistics;

pub use event::{BLOCK_EVENT_BYTES, BlockDevice, BlockEvent, BlockOperation};
pub use probe::{AttachedBlockProbes, BlockReport, BlockSettings, observe_block};
pub use statistics::{BlockRequester, BlockStatistics, BlockTimes};
