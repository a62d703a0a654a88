//! Stored bytes in words: as people write capacities.

use units::Bytes;

/// Decimal units of bytes, the largest first.
const UNITS: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];

/// Returns an amount of stored bytes as a value of a cluster file, at most as large as it is: exact if it is a round
/// number of decimal or binary units, and otherwise with three decimals, rounded down.
pub(crate) fn stored(bytes: u64) -> String {
    let Some((unit, scale)) = UNITS.into_iter().find(|(_, scale)| bytes >= *scale) else {
        return Bytes(bytes).to_string();
    };
    let thousandths = bytes / (scale / 1000);
    let is_exact = bytes.is_multiple_of(scale / 1000);
    let binary = Bytes(bytes).to_string();
    if !is_exact && binary.contains('i') && binary.len() <= "1023GiB".len() {
        return binary;
    }
    let decimal = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    format!("{}{unit}", decimal.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_round_and_never_too_large() {
        for (bytes, text) in [
            (0, "0B"),
            (120_000_000_000, "120GB"),
            (1_500_000_000_000, "1.5TB"),
            (300 << 30, "300GiB"),
            (33_333_333_333, "33.333GB"),
            (99_999_999_999, "99.999GB"),
            (512, "512B"),
        ] {
            assert_eq!(stored(bytes), text);
            let read: Bytes = text.parse().unwrap();
            assert!(read.0 <= bytes && bytes - read.0 <= bytes / 1000, "{text}");
        }
    }
}
