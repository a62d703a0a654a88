//! CPU use of unrelated processes, which disturbs a benchmark.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A clock tick of `/proc`, in seconds.
const TICK_S: f64 = 0.01;
/// PID of kthreadd. Its children, kernel threads, are not counted: they work on behalf of processes.
const KERNEL_THREADS: u32 = 2;

/// CPU time of the processes of others until an instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OthersMark {
    at: Instant,
    ticks: u64,
}

impl OthersMark {
    /// Returns their CPU use so far.
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), ticks: ticks_of_others(std::process::id()) }
    }

    /// Returns their CPU use since the mark, in CPUs.
    pub(crate) fn share_since(self) -> f64 {
        let ticks = ticks_of_others(std::process::id()).saturating_sub(self.ticks);
        ticks as f64 * TICK_S / self.at.elapsed().as_secs_f64()
    }
}

/// Waits until others use at most `share` of a CPU, or the time is over.
pub(crate) fn wait_for_quiet(share: f64, limit: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        let mark = OthersMark::now();
        std::thread::park_timeout(Duration::from_millis(500));
        if mark.share_since() <= share {
            return;
        }
    }
}

/// CPU time, of ended children as well, of all processes but one and its descendants, in ticks.
fn ticks_of_others(own: u32) -> u64 {
    let mut processes: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        processes.extend(parent_and_ticks(&stat).map(|of_process| (id, of_process)));
    }
    let belongs = |mut id: u32| {
        while let Some((parent, _)) = processes.get(&id) {
            if id == own || id == KERNEL_THREADS {
                return true;
            }
            id = *parent;
        }
        false
    };
    let others = processes.iter().filter(|(id, _)| !belongs(**id));
    others.map(|(_, (_, ticks))| *ticks).sum()
}

/// The parent of a process, and the sum of fields 14 to 17 of proc(5).
fn parent_and_ticks(stat: &str) -> Option<(u32, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let times = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok());
    Some((fields.get(1)?.parse().ok()?, times.sum()))
}
