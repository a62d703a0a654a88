//! Tries a knob on a live server: turns it on and off in random order under the present load, compares, and
//! undoes it.
//!
//! - [`KNOBS`]: settings, the stages and causes that they act on, and their costs. A [`Knob`] is a plan of
//!   changes.
//! - [`KnobSwitch`] makes changes and undoes them, from a [`Journal`] that is written before each of them: pure, over a
//!   [`SettingStore`] and a [`JournalFile`], so that it can be tested on a machine that fails.
//! - [`RecordedLoad`] is the load if it belongs to the experiment: restarted for each period if it is the
//!   knob.
//! - [`RoundTally`] compares periods: pure, and valid at any stopping time.
//! - [`run`] is the experiment, on [`LinuxSettings`] and requests that `observe` sees.
//!
//! A verdict is about the requests during the experiment, and later ones may differ. Knobs that act on new
//! connections need clients that reconnect.

mod cpu_list;
mod journal;
mod knob;
mod latency_window;
mod linux;
mod open_sockets;
mod recorded_load;
mod run;
mod setting;
mod switch;
mod tally;

pub use journal::{Journal, RecordedChange};
pub use knob::{KNOBS, Knob, KnobFlag, KnobObstacle, KnobTarget, knob, missing_right};
pub use latency_window::{PERCENTILES, PeriodResult, ResourceUse};
pub use linux::{
    LinuxJournal, LinuxSettings, SocketClaim, UndoneJournals, UnreadJournal, boot, claim_sockets,
    default_state_folder, identity, is_alive, open_journal, open_load_journal, threads, undo_journals,
};
pub use open_sockets::{NetworkNamespace, ServerSockets, SocketOption, SocketTotals, SocketsTakenBack};
pub use recorded_load::RecordedLoad;
pub use run::{
    ExperimentEnd, ExperimentHost, ExperimentProgress, ExperimentReport, ExperimentSettings, KnobArm, run,
};
pub use setting::{
    FileForm, OFF, ON, PlannedChange, ProcessIdentity, Setting, SettingStore, ThreadAspect, ThreadIdentity,
};
pub use switch::{JournalFile, KnobSwitch, UndoOutcome, UndoneChange};
pub use tally::{KnobComparison, KnobVerdict, RoundTally, StatisticShift};
