//! What the guest prints: a line `FIGURE name value` for each figure.

use std::collections::BTreeMap;
use std::fmt;

/// The figures that a guest printed, by name.
#[derive(Debug)]
pub struct GuestFigures {
    values: BTreeMap<String, String>,
    console: String,
}

impl GuestFigures {
    /// Reads what a guest printed. One that did not come to its end is a failure.
    pub(super) fn read(console: &str) -> Self {
        let mut values = BTreeMap::new();
        for line in console.lines() {
            // The first line comes after what the firmware printed.
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

    /// The value of a figure that is a number.
    ///
    /// # Panics
    /// When the guest did not print it, or it is no number.
    #[track_caller]
    pub fn number(&self, name: &str) -> f64 {
        let text = self.text(name);
        text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    }

    /// What tests in the guest said that they skip.
    pub fn skipped(&self) -> Vec<&str> {
        self.console.lines().filter(|line| line.contains("SKIPPED ")).collect()
    }
}

impl fmt::Display for GuestFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.iter().try_for_each(|(name, value)| writeln!(f, "{name} {value}"))?;
        // Words of choices that are wrong, of ends that are errors, and of checks that have failed.
        let says = |line: &&str| line.contains(": ") || line.contains("GUEST FAILED");
        self.console.lines().filter(says).try_for_each(|line| writeln!(f, "{line}"))
    }
}
