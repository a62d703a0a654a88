//! What the guest prints: a line `FIGURE name value` for each figure.

use std::collections::BTreeMap;
use std::fmt;

/// The figures of a guest by name.
#[derive(Debug)]
pub(crate) struct Figures {
    values: BTreeMap<String, String>,
    console: String,
}

impl Figures {
    /// Reads what a guest printed. One that did not come to its end is a failure.
    pub(crate) fn read(console: &str) -> Self {
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

    pub(crate) fn text(&self, name: &str) -> &str {
        self.values.get(name).unwrap_or_else(|| panic!("the guest did not print {name}:\n{}", self.console))
    }

    pub(crate) fn number(&self, name: &str) -> f64 {
        let text = self.text(name);
        text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.iter().try_for_each(|(name, value)| writeln!(f, "{name} {value}"))?;
        // Words of choices that are wrong, and of ends that are errors.
        self.console.lines().filter(|line| line.contains(": ")).try_for_each(|line| writeln!(f, "{line}"))
    }
}
