//! Settings and counters of the kernel scheduler, as text and as JSON.

use operation::document::document;
use sched_ext::{CpuStatistics, OldestFirstSettings};
use schemars::JsonSchema;
use serde::Serialize;
use units::Nanos;

/// Settings of the kernel scheduler, and its counters on all CPUs since its start.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KernelSchedulerDocument {
    /// Number of the oldest requests that share the CPUs of a queue.
    oldest: u32,
    /// Share of each CPU reserved for threads without a request, 0 to 1.
    untagged_share: f64,
    /// Time slice of each of the oldest, seconds.
    slice_s: f64,
    /// A request that has waited this long runs one slice ahead of the others, seconds.
    patience_s: f64,
    /// CPU time of threads with a request, seconds.
    tagged_s: f64,
    /// CPU time of threads without a request, seconds.
    untagged_s: f64,
    /// CPU time of kernel threads bound to one CPU, seconds.
    kernel_thread_s: f64,
    /// Number of choices among threads with requests.
    choices: u64,
    /// Number of choices that switched to another thread.
    turns: u64,
    /// Number of running threads interrupted by an arrival.
    kicks: u64,
    /// Number of slices out of turn, for threads that had waited for the patience.
    rescues: u64,
    /// Number of threads that an idle CPU took from another one.
    steals: u64,
}

/// Returns settings and counters as a JSON object.
pub(crate) fn json(settings: &OldestFirstSettings, statistics: &CpuStatistics) -> String {
    document(&KernelSchedulerDocument {
        oldest: settings.oldest,
        untagged_share: f64::from(settings.untagged_permille) / 1000.0,
        slice_s: settings.slice.as_secs_f64(),
        patience_s: settings.patience.as_secs_f64(),
        tagged_s: Nanos(statistics.tagged_ns).as_secs(),
        untagged_s: Nanos(statistics.untagged_ns).as_secs(),
        kernel_thread_s: Nanos(statistics.kernel_thread_ns).as_secs(),
        choices: statistics.choices,
        turns: statistics.turns,
        kicks: statistics.kicks,
        rescues: statistics.rescues,
        steals: statistics.steals,
    })
}

/// Returns settings and counters as text.
pub(crate) fn text(settings: &OldestFirstSettings, statistics: &CpuStatistics) -> String {
    let OldestFirstSettings { oldest, untagged_permille, slice, patience, .. } = settings;
    let seconds = |nanos: u64| Nanos(nanos).to_string();
    format!(
        "the {oldest} oldest; untagged {} % of each CPU first; slice {slice:?}; patience {patience:?}\n\
         CPU time: requests {}, untagged {}, kernel threads {}\n\
         choices {}, of another thread {}; interrupted by arrivals {}; out of turn {}; taken from other CPUs {}\n",
        f64::from(*untagged_permille) / 10.0,
        seconds(statistics.tagged_ns),
        seconds(statistics.untagged_ns),
        seconds(statistics.kernel_thread_ns),
        statistics.choices,
        statistics.turns,
        statistics.kicks,
        statistics.rescues,
        statistics.steals,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_in_the_document_under_its_unit() {
        let statistics = CpuStatistics { tagged_ns: 2_500_000_000, steals: 7, ..CpuStatistics::default() };
        let printed = json(&OldestFirstSettings::default(), &statistics);
        let found: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
        assert_eq!(found["format"], "tailwright.schedule-kernel");
        assert_eq!((&found["tagged_s"], &found["steals"]), (&2.5.into(), &7.into()));
        let format = crate::documents().into_iter().find(|format| format.name == "schedule-kernel");
        let schema = serde_json::to_value(format.expect("it has a schema").schema).expect("schemas are JSON");
        let required = schema["required"].as_array().expect("all fields are required");
        assert!(required.iter().all(|name| found.get(name.as_str().expect("a name")).is_some()), "{found}");
        assert_eq!(required.len(), found.as_object().expect("an object").len());
    }
}
