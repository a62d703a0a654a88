//! Access to Linux settings, and storage of the journal.

mod energy;
mod io_scheduler;
mod journal_file;
mod later_threads;
mod process;
mod slice;
mod sockets;
mod store;
mod thread_settings;
mod user_command;

pub(crate) use energy::{EnergyMeter, EnergyReading, POWERCAP};
pub use journal_file::{
    LinuxJournal, UndoneJournals, UnreadJournal, default_state_folder, open_journal, open_load_journal,
    undo_journals,
};
pub use process::{boot, identity, is_alive, threads};
pub(crate) use process::{capabilities, cpu_time_ns, scheduling_limits};
pub(crate) use slice::default_slice_ns;
pub use sockets::{SocketClaim, claim_sockets};
pub(crate) use sockets::{server_sockets, socket_place_unusable, unusable};
pub use store::LinuxSettings;
pub(crate) use user_command::LoadCommand;
