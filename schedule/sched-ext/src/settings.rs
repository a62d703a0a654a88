//! Settings of the scheduler.

use model::OperationError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Default time a runnable thread may wait before the kernel ends the scheduler.
pub const DEFAULT_WATCHDOG: Duration = Duration::from_secs(20);

/// Range of that time; the kernel's maximum is 30 s.
const WATCHDOG_LEAST: Duration = Duration::from_secs(1);
const WATCHDOG_MOST: Duration = Duration::from_secs(30);

/// Settings that can change while the scheduler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldestFirstSettings {
    /// c: number of the oldest requests that share the CPUs of a queue, at least 1. With one queue for all
    /// CPUs, values below the number of CPUs count as that number.
    pub oldest: u32,
    /// Share of each CPU reserved for threads without a request, in thousandths from 1 to 999.
    pub untagged_permille: u32,
    /// Maximum CPU time that these take in a row.
    pub untagged_burst: Duration,
    /// Time slice of each of the c oldest; checked by the kernel at each tick.
    pub slice: Duration,
    /// A request that has waited this long runs one slice ahead of the others.
    pub patience: Duration,
}

impl Default for OldestFirstSettings {
    fn default() -> Self {
        Self {
            oldest: 3,
            untagged_permille: 100,
            untagged_burst: Duration::from_millis(20),
            slice: Duration::from_millis(4),
            patience: Duration::from_secs(2),
        }
    }
}

impl OldestFirstSettings {
    /// Checks that the scheduler works with these settings.
    ///
    /// # Errors
    /// Names the invalid setting and its range.
    pub fn check(&self) -> Result<(), OperationError> {
        let bad = |what: &str| Err(OperationError::input(what));
        if self.oldest == 0 {
            return bad("the number of the oldest that share CPUs must be at least 1");
        }
        if !(1..=999).contains(&self.untagged_permille) {
            return bad("the share of threads without a request must be between 0.1 % and 99.9 %");
        }
        if !within(self.slice, Duration::from_micros(100), Duration::from_millis(100)) {
            return bad("the slice must be between 100us and 100ms");
        }
        if !within(self.untagged_burst, self.slice, Duration::from_secs(1)) {
            return bad(
                "the slice must not be longer than what threads without a request may have at once (20ms, if not set)",
            );
        }
        if !within(self.patience, Duration::from_millis(10), Duration::from_secs(10)) {
            return bad(
                "the patience must be between 10ms and 10s, so that the kernel's watchdog is not the first",
            );
        }
        Ok(())
    }

    /// Checks also that the kernel's watchdog leaves time for a slice out of turn.
    ///
    /// # Errors
    /// Names the invalid setting and its range.
    pub fn check_under(&self, watchdog: Duration) -> Result<(), OperationError> {
        self.check()?;
        if !within(watchdog, WATCHDOG_LEAST, WATCHDOG_MOST) {
            return Err(OperationError::input("the watchdog's time must be between 1s and 30s"));
        }
        if self.patience > watchdog / 2 {
            return Err(OperationError::input(format_args!(
                "the patience must be at most half of the watchdog's time, which is {watchdog:?}"
            ))
            .hint("give a shorter --patience or a longer --watchdog"));
        }
        Ok(())
    }
}

fn within(time: Duration, least: Duration, most: Duration) -> bool {
    (least..=most).contains(&time)
}

/// Arrangement of run queues for threads with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLayout {
    /// One queue per CPU, each with its c oldest; an idle CPU steals from others. Suits threads that stay on
    /// CPUs.
    PerCpu,
    /// One queue for all CPUs, with c oldest in total.
    Shared,
}

impl FromStr for QueueLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "per-cpu" => Ok(Self::PerCpu),
            "shared" => Ok(Self::Shared),
            _ => Err(format!("'{text}': expected per-cpu or shared")),
        }
    }
}

impl fmt::Display for QueueLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerCpu => "per-cpu",
            Self::Shared => "shared",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_checked() {
        let good = OldestFirstSettings::default();
        assert!(good.check().is_ok());
        for bad in [
            OldestFirstSettings { oldest: 0, ..good },
            OldestFirstSettings { untagged_permille: 0, ..good },
            OldestFirstSettings { untagged_permille: 1000, ..good },
            OldestFirstSettings { slice: Duration::ZERO, ..good },
            OldestFirstSettings { untagged_burst: Duration::from_millis(3), ..good },
            OldestFirstSettings { patience: Duration::from_secs(60), ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        for (watchdog, is_good) in
            [(500, false), (3999, false), (4000, true), (30_000, true), (30_001, false)]
        {
            assert_eq!(good.check_under(Duration::from_millis(watchdog)).is_ok(), is_good, "{watchdog}");
        }
        for layout in [QueueLayout::PerCpu, QueueLayout::Shared] {
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
    }
}
