//! The keys of a workload's values.

use arrivals::split_seed;
use std::io::Write as _;

/// Format of the keys of a workload. The size of the value is part of the key, so that values of
/// different sizes never share a key. Two workloads never share a key either: names that are equal once
/// shortened and stripped of unusual characters differ in the hash of the full name.
#[derive(Debug, Clone)]
pub(crate) struct KeyFormat {
    prefix: String,
    /// The length of every key in bytes; `None` where keys are as short as they can be.
    key_size: Option<usize>,
}

impl KeyFormat {
    /// The keys of the workload with this name. Keys of a given size leave the name out, for it to fit.
    pub(crate) fn new(workload_name: &str, key_size: Option<usize>) -> Self {
        let bytes = workload_name.bytes();
        let hash = bytes.clone().fold(0u64, |hash, byte| split_seed(hash, byte.into()));
        let prefix = match key_size {
            Some(_) => format!("{hash:016x}"),
            None => format!("tw:{}:{hash:x}", bytes.take(60).map(plain_character).collect::<String>()),
        };
        Self { prefix, key_size }
    }

    /// Replaces `key` by the key of a value.
    pub(crate) fn write(&self, key: &mut Vec<u8>, size: u32, number: u64) {
        key.clear();
        write!(key, "{}:{size}:{number}", self.prefix).expect("a vector takes what is written");
        if let Some(key_size) = self.key_size {
            assert!(key.len() <= key_size, "the least size of keys has room for all of them");
            key.resize(key_size, b'.');
        }
    }
}

/// A character that is allowed in memcached keys and easy to type.
fn plain_character(byte: u8) -> char {
    let is_plain = byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if is_plain { char::from(byte) } else { '.' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_size_that_was_asked_for_and_stay_apart() {
        let key = |name: &str, key_size, size, number| {
            let mut key = b"what was here before".to_vec();
            KeyFormat::new(name, key_size).write(&mut key, size, number);
            String::from_utf8(key).expect("plain characters")
        };
        assert_eq!(key("a b", None, 5, 7), format!("tw:a.b:{:x}:5:7", hash("a b")));
        assert_eq!(key(&"x".repeat(500), Some(64), 1024, 3).len(), 64);
        let largest = key("a", Some(40), u32::MAX, u64::from(u32::MAX));
        assert_eq!(largest, format!("{:016x}:4294967295:4294967295..", hash("a")));
        let all = [
            key("a b", Some(64), 5, 7),
            key("a.b", Some(64), 5, 7),
            key("a.b", Some(64), 57, 7),
            key("a.b", Some(64), 5, 77),
        ];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{all:?}");
    }

    fn hash(name: &str) -> u64 {
        name.bytes().fold(0, |hash, byte| split_seed(hash, byte.into()))
    }
}
