//! A log on standard error that hostile clients cannot flood: a limited number of lines per second, and
//! the number of dropped ones.

/// Maximum number of lines per second: enough to follow events, and readable on a terminal.
const LINES_PER_SECOND_MAX: u32 = 20;

/// A log with a bound on lines per second.
#[derive(Debug, Default)]
pub(super) struct RateLimitedLog {
    /// Second since the proxy started to which the counters apply.
    second: u64,
    written: u32,
    left_out: u64,
}

impl RateLimitedLog {
    /// Writes a line, unless too many were written in this second; `line` is only called if it is
    /// written.
    pub(super) fn write(&mut self, now_ns: u64, line: impl FnOnce() -> String) {
        let second = now_ns / 1_000_000_000;
        if second != self.second {
            if self.left_out > 0 {
                eprintln!("proxy: {}", units::plural(self.left_out, "more line"));
            }
            *self = Self { second, ..Self::default() };
        }
        if self.written < LINES_PER_SECOND_MAX {
            self.written += 1;
            eprintln!("proxy: {}", line());
        } else {
            self.left_out += 1;
        }
    }
}
