//! Numbers of things, with their nouns.

use std::fmt::Display;

/// Writes a number with its noun, to which an s is added unless there is one of them: `1 server`, `2 servers`.
pub fn plural<N: Display + PartialEq + From<u8> + Copy>(number: N, noun: &str) -> String {
    if number == N::from(1) { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_agrees_with_its_number() {
        let said = [plural(1_u64, "server"), plural(0_usize, "server"), plural(2.5, "request")];
        assert_eq!(said, ["1 server", "0 servers", "2.5 requests"]);
    }
}
