//! Shared parts of verbs: the terminal and its tables, arguments with units, exit codes, signals, and the small print
//! of pages.

pub mod choice;
pub mod exit;
pub mod interrupt;
pub mod live_screen;
pub mod page;
pub mod page_table;
pub mod quantities;
pub mod scrape;
pub mod shares;
pub mod terminal;

/// Returns an interval by its ends, or one of them if they read alike.
pub fn from_to(low: String, high: &str) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_one_reading_is_a_value() {
        assert_eq!(from_to("7ms".to_owned(), "7ms"), "7ms");
        assert_eq!(from_to("7ms".to_owned(), "8ms"), "7ms to 8ms");
    }
}
