//! Memory shared by the scheduler and its controlling processes.

use crate::layout::{
    CONTROL_WORDS, CPU_BYTES, CPU_STATISTICS, CPUS_MAX, EXIT_KIND, EXIT_MESSAGE, EXIT_REASON,
    OLDEST_AND_SHARE, PATIENCE_NS, RUNNING_AND_OVERDUE_MS, SLICE_NS, UNTAGGED_BURST_NS,
};
use crate::replay::{high, low};
use crate::settings::OldestFirstSettings;
use machine::bpf::{BpfMap, MappedWords};
use model::OperationError;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Files of the pinned maps, in the folder of [`sched_hint`].
pub(crate) const CONTROL_FILE: &str = "control";
pub(crate) const CPUS_FILE: &str = "cpus";

/// Counters of the scheduler on all CPUs since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuStatistics {
    /// CPU time of threads with a request, nanoseconds.
    pub tagged_ns: u64,
    /// CPU time of threads without a request, nanoseconds.
    pub untagged_ns: u64,
    /// CPU time of kernel threads bound to one CPU, nanoseconds.
    pub kernel_thread_ns: u64,
    /// Number of choices among threads with requests.
    pub choices: u64,
    /// Number of choices that switched to another thread.
    pub turns: u64,
    /// Number of running threads interrupted by an arrival.
    pub kicks: u64,
    /// Number of slices out of turn, for threads that had waited for the patience.
    pub rescues: u64,
    /// Number of threads that an idle CPU took from another one.
    pub steals: u64,
}

/// Settings and counters of an attached scheduler, for any process with access to its files.
#[derive(Debug)]
pub struct SchedulerControl {
    control: MappedWords,
    cpus: MappedWords,
    slots: MappedWords,
}

impl SchedulerControl {
    /// Opens the maps that a scheduler has pinned in this folder.
    ///
    /// # Errors
    /// If no scheduler is attached, or its folder is not readable.
    pub fn open(folder: &Path) -> Result<Self, OperationError> {
        let opened = |name| BpfMap::open(&folder.join(name));
        let opened = opened(CONTROL_FILE)
            .and_then(|control| Self::of(&control, &opened(CPUS_FILE)?, &opened(sched_hint::SLOTS_FILE)?));
        let control = opened.map_err(|error| {
            OperationError::machine(format_args!("no scheduler found in {}: {error}", folder.display()))
                .hint("`tailwright schedule kernel run` starts one, as root")
        })?;
        if control.is_scheduling() {
            return Ok(control);
        }
        Err(OperationError::machine(format_args!("the scheduler of {} has ended", folder.display()))
            .hint("`tailwright schedule kernel run` starts one, as root"))
    }

    pub(crate) fn of(control: &BpfMap, cpus: &BpfMap, slots: &BpfMap) -> io::Result<Self> {
        let control = control.map_memory()?;
        let cpus = cpus.map_memory()?;
        let slots = slots.map_memory()?;
        let is_whole = control.len() >= CONTROL_WORDS && cpus.len() >= words(CPU_BYTES) * words(CPUS_MAX * 8);
        if is_whole { Ok(Self { control, cpus, slots }) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Returns true while the scheduler is attached.
    pub fn is_scheduling(&self) -> bool {
        self.slots[0].load(Relaxed) == sched_hint::ALIVE
    }

    pub(crate) fn mark_scheduling(&self, is_scheduling: bool) {
        self.slots[0].store(if is_scheduling { sched_hint::ALIVE } else { 0 }, Relaxed);
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> OldestFirstSettings {
        let word = |word: usize| self.control[word].load(Relaxed);
        OldestFirstSettings {
            oldest: low(word(OLDEST_AND_SHARE)),
            untagged_permille: high(word(OLDEST_AND_SHARE)),
            untagged_burst: Duration::from_nanos(word(UNTAGGED_BURST_NS)),
            slice: Duration::from_nanos(word(SLICE_NS)),
            patience: Duration::from_nanos(word(PATIENCE_NS)),
        }
    }

    /// Returns the time that a runnable thread may wait before the kernel ends the scheduler.
    pub fn watchdog(&self) -> Duration {
        Duration::from_millis(u64::from(high(self.control[RUNNING_AND_OVERDUE_MS].load(Relaxed)))) * 2
    }

    /// Stores the watchdog's timeout before the scheduler starts.
    pub(crate) fn put_watchdog(&self, watchdog: Duration) {
        let overdue_ms = u64::try_from(watchdog.as_millis() / 2).unwrap_or(u64::from(u32::MAX));
        self.control[RUNNING_AND_OVERDUE_MS].store(overdue_ms << 32, Relaxed);
    }

    /// Changes the settings from the scheduler's next decision on.
    ///
    /// # Errors
    /// If a setting is out of range; then nothing changes.
    pub fn set(&self, settings: &OldestFirstSettings) -> Result<(), OperationError> {
        settings.check_under(self.watchdog())?;
        let put = |word: usize, value: u64| self.control[word].store(value, Relaxed);
        put(UNTAGGED_BURST_NS, nanos(settings.untagged_burst));
        put(SLICE_NS, nanos(settings.slice));
        put(PATIENCE_NS, nanos(settings.patience));
        put(OLDEST_AND_SHARE, u64::from(settings.untagged_permille) << 32 | u64::from(settings.oldest));
        Ok(())
    }

    /// Returns the counters since the start, summed over all CPUs.
    pub fn statistics(&self) -> CpuStatistics {
        let mut sum = CpuStatistics::default();
        for cpu in self.cpus.chunks_exact(words(CPU_BYTES)) {
            let counters = [
                &mut sum.tagged_ns,
                &mut sum.untagged_ns,
                &mut sum.kernel_thread_ns,
                &mut sum.choices,
                &mut sum.turns,
                &mut sum.kicks,
                &mut sum.rescues,
                &mut sum.steals,
            ];
            for (counter, word) in counters.into_iter().zip(&cpu[CPU_STATISTICS..]) {
                *counter += word.load(Relaxed);
            }
        }
        sum
    }

    /// Returns the kernel's number and explanation of the end. `None` while the scheduler is attached.
    pub(crate) fn exit(&self) -> Option<(u32, String)> {
        let kind = low(self.control[EXIT_KIND].load(Relaxed));
        let reason = self.text(EXIT_REASON);
        let message = self.text(EXIT_MESSAGE);
        let text = if message.is_empty() { reason } else { format!("{reason}: {message}") };
        (kind > 0).then_some((kind, text))
    }

    pub(crate) fn log_length(&self) -> u64 {
        self.control[crate::layout::LOG_NEXT].load(Relaxed)
    }

    fn text(&self, range: std::ops::Range<usize>) -> String {
        let bytes: Vec<u8> = self.control[range]
            .iter()
            .flat_map(|word| word.load(Relaxed).to_ne_bytes())
            .take_while(|byte| *byte > 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn words(bytes: u32) -> usize {
    usize::try_from(bytes / 8).expect("a pointer has more bits")
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
