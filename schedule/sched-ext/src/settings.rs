//! What a user decides about the scheduler.

use model::OperationError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The kernel ends the scheduler when a thread that wants to run did not for so long, if nobody says otherwise.
pub const DEFAULT_WATCHDOG: Duration = Duration::from_secs(20);

/// The bounds of that time; the kernel takes no more.
const WATCHDOG_LEAST: Duration = Duration::from_secs(1);
const WATCHDOG_MOST: Duration = Duration::from_secs(30);

/// What may change while the scheduler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldestFirstSettings {
    /// c: how many of the oldest requests share the CPUs of a queue, at least 1. With one queue for all CPUs fewer than CPUs
    /// count as as many.
    pub oldest: u32,
    /// The share of each CPU, in thousandths from 1 to 999, that threads without a request have before the others.
    pub untagged_permille: u32,
    /// The most that these take of it at once.
    pub untagged_burst: Duration,
    /// How long a thread runs before another one of the c oldest; the kernel looks at it each tick.
    pub slice: Duration,
    /// Who has waited for this long has a slice out of turn.
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
    /// Complains about settings with which the scheduler would not work.
    ///
    /// # Errors
    /// Says which one and what is expected.
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

    /// Complains about settings with which the kernel would end the scheduler before a thread has a slice out of turn.
    ///
    /// # Errors
    /// Says which one and what is expected.
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

/// How threads with requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLayout {
    /// A queue for each CPU, each with its c oldest; a CPU without work takes from others. For threads that stay on CPUs.
    PerCpu,
    /// One queue for all CPUs with c oldest altogether.
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
