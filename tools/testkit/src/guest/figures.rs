//! Output of a guest: a line `FIGURE name value` for each figure.

use std::collections::BTreeMap;
use std::fmt;

/// The figures that a guest printed, by name.
#[derive(Debug)]
pub struct GuestFigures {
    values: BTreeMap<String, String>,
    console: String,
}

impl GuestFigures {
    /// Reads the output of a guest, and fails if the guest did not complete its checks.
    pub(super) fn read(console: &str) -> Self {
        let mut values = BTreeMap::new();
        for line in console.lines() {
            // The first line follows output of the firmware.
            let Some((_, figure)) = line.split_once("FIGURE ") else { continue };
            if let Some((name, value)) = figure.trim_end().split_once(' ') {
                values.insert(name.to_owned(), value.to_owned());
            }
        }
        assert!(console.contains("GUEST DONE"), "the guest did not come to its end:\n{console}");
        Self { values, console: console.to_owned() }
    }

    /// The value of a figure, as it was printed.
    ///
    /// # Panics
    /// When the guest did not print it.
    #[track_caller]
    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).unwrap_or_else(|| panic!("the guest did not print {name}:\n{}", self.console))
    }

    /// Returns the value of a numeric figure.
    ///
    /// # Panics
    /// When the guest did not print it, or it is not a number.
    #[track_caller]
    pub fn number(&self, name: &str) -> f64 {
        let text = self.text(name);
        text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    }

    /// Returns the lines with which tests in the guest were skipped.
    pub fn skipped(&self) -> Vec<&str> {
        self.console.lines().filter(|line| line.contains("SKIPPED ")).collect()
    }
}

impl fmt::Display for GuestFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.iter().try_for_each(|(name, value)| writeln!(f, "{name} {value}"))?;
        // Messages about wrong choices, errors and failed checks.
        let says = |line: &&str| line.contains(": ") || line.contains("GUEST FAILED");
        self.console.lines().filter(says).try_for_each(|line| writeln!(f, "{line}"))
    }
}
