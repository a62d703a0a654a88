//! Load on real servers: from a load file to observations and what they say.

mod file;
mod logs;
mod run;
mod summary;

pub use file::LoadFile;
pub use logs::{interval_log_paths, write_interval_logs};
pub use run::play_load;
pub use summary::{WorkloadLoadSummary, summarise_load};
