//! Tests of what happens in real time, on a machine that does other things as well.

use std::io::Write;
use std::time::{Duration, Instant};

/// Number of rounds in which a test measures an effect in real time, and of rounds that must show it.
///
/// Other programs on the machine can hide an effect in a round. A test that is content with one good
/// round of many would also pass if the effect were lost most of the time. Therefore most rounds must
/// show it, and each run reports their number.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Number of rounds, all of which run.
    pub count: usize,
    /// The number of rounds that must show the effect.
    pub must_hold: usize,
}

impl Rounds {
    /// Runs all rounds. A round without the effect returns its observation as an error. Writes one line
    /// with the number of good rounds to standard error, past test capture.
    ///
    /// # Panics
    /// When fewer rounds than `must_hold` show the effect; the message has the observations of the
    /// others.
    pub fn check(self, mut round: impl FnMut() -> Result<(), String>) {
        let Self { count, must_hold } = self;
        let misses: Vec<String> = (0..count).filter_map(|_| round().err()).collect();
        let held = count - misses.len();
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Written directly: eprintln! would be captured and lost for passing tests.
        let _ = writeln!(std::io::stderr(), "ROUNDS {test}: held in {held} of {count} rounds");
        assert!(held >= must_hold, "held in {held} of {count} rounds, expected {must_hold}: {misses:#?}");
    }
}

/// Time between two looks at a condition: short beside what tests wait for, long beside a look.
const POLL: Duration = Duration::from_millis(1);

/// Waits until `condition` holds, which may take up to `limit`.
///
/// # Panics
/// When it does not hold by then, with `what` was waited for.
pub fn wait_until(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        std::thread::park_timeout(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round that misses the effect in the rounds with these numbers.
    fn missing(numbers: &'static [usize]) -> impl FnMut() -> Result<(), String> {
        let mut number = 0;
        move || {
            number += 1;
            if numbers.contains(&number) { Err(format!("missed in round {number}")) } else { Ok(()) }
        }
    }

    #[test]
    fn most_rounds_are_enough() {
        Rounds { count: 5, must_hold: 3 }.check(missing(&[1, 5]));
    }

    #[test]
    #[should_panic(expected = "held in 2 of 5 rounds, expected 3")]
    fn few_rounds_are_not() {
        Rounds { count: 5, must_hold: 3 }.check(missing(&[2, 3, 4]));
    }

    #[test]
    fn a_condition_that_comes_true_ends_the_wait() {
        let start = Instant::now();
        wait_until(Duration::from_secs(60), "two milliseconds pass", || {
            start.elapsed() >= Duration::from_millis(2)
        });
        assert!(start.elapsed() >= Duration::from_millis(2));
    }

    #[test]
    #[should_panic(expected = "never: not within 3ms")]
    fn a_condition_that_stays_false_fails_the_test() {
        wait_until(Duration::from_millis(3), "never", || false);
    }
}
