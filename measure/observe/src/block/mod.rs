//! Requests of block devices: how long each waited for its device, behind whom, and how long that took, by process,
//! control group, device and operation.

mod contention;
mod event;
mod observer;
mod probe;
mod statistics;
mod waits;

pub use contention::{BlockContention, BlockWaits, WAITED_FOR_MAX};
pub use event::{BlockDevice, BlockEvent, BlockOperation, BlockPhase, BlockRequester};
pub use observer::BlockObserver;
pub use probe::{AttachedBlockProbes, BlockReport, BlockSettings, observe_block};
pub use statistics::{BlockStatistics, BlockTimes};
pub use waits::{BlockWaitSums, TimeBehind, WaitSums};
