//! Long lists of keys, which a proxy sends to the server in parts.

/// The most keys of one part: enough to make the cost of a request small beside them, and few enough for requests of
/// other clients to come in between soon.
pub(super) const KEYS_PER_PART: u32 = 64;

/// The longest key in bytes.
pub(super) const KEY_LEN_MAX: usize = 250;

/// A search for the end of a part. It looks at each byte once, however many pieces the line arrives in.
#[derive(Debug, Default)]
pub(super) struct KeyScan {
    /// The first byte that was not looked at.
    at: usize,
    /// Complete keys.
    keys: u32,
    /// Bytes of the key that is not complete.
    key_len: usize,
}

/// The end of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyListPart {
    /// In front of another key, which begins here.
    More { end: usize, keys: u32 },
    /// At the end of the line, behind its last byte.
    Last { end: usize, keys: u32 },
    /// At a zero byte, which is the end of the line for memcached.
    Zero { at: usize, keys: u32 },
    /// A key is too long.
    LongKey,
    /// The buffer ends first.
    Open,
}

impl KeyScan {
    /// A search that begins here in the buffer.
    pub(super) fn from(at: usize) -> Self {
        Self { at, ..Self::default() }
    }

    /// Goes on in a buffer that has grown.
    pub(super) fn advance(&mut self, buffer: &[u8]) -> KeyListPart {
        while let Some(&byte) = buffer.get(self.at) {
            let is_end = byte == b'\n';
            match byte {
                b' ' | b'\n' if self.key_len > 0 => {
                    let is_cut = is_end && buffer[self.at - 1] == b'\r';
                    let len = self.key_len - usize::from(is_cut);
                    if len > KEY_LEN_MAX {
                        return KeyListPart::LongKey;
                    }
                    self.keys += u32::from(len > 0);
                    self.key_len = 0;
                }
                b' ' | b'\n' => {}
                0 => {
                    let keys = self.keys + u32::from(self.key_len > 0);
                    return KeyListPart::Zero { at: self.at, keys };
                }
                b'\r' if self.key_len == 0 && self.keys == KEYS_PER_PART => match buffer.get(self.at + 1) {
                    None => return KeyListPart::Open,
                    // The end of the line, not a key.
                    Some(b'\n') => {}
                    Some(_) => return KeyListPart::More { end: self.at, keys: self.keys },
                },
                _ if self.key_len == 0 && self.keys == KEYS_PER_PART => {
                    return KeyListPart::More { end: self.at, keys: self.keys };
                }
                _ => self.key_len += 1,
            }
            // A carriage return may follow the longest key.
            if self.key_len > KEY_LEN_MAX + 1 {
                return KeyListPart::LongKey;
            }
            self.at += 1;
            if is_end {
                return KeyListPart::Last { end: self.at, keys: self.keys };
            }
        }
        KeyListPart::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(list: &[u8]) -> KeyListPart {
        let whole = KeyScan::default().advance(list);
        let mut bytewise = KeyScan::default();
        let pieces = (1..=list.len()).map(|len| bytewise.advance(&list[..len]));
        let found = pieces.into_iter().find(|part| *part != KeyListPart::Open).unwrap_or(KeyListPart::Open);
        assert_eq!(found, whole, "pieces do not matter: {list:?}");
        whole
    }

    #[test]
    fn parts_end_in_front_of_a_key() {
        assert_eq!(part(b" a  b\r\n"), KeyListPart::Last { end: 7, keys: 2 });
        assert_eq!(part(b"a\n"), KeyListPart::Last { end: 2, keys: 1 });
        assert_eq!(part(b"a\r\r\n"), KeyListPart::Last { end: 4, keys: 1 });
        assert_eq!(part(b"a b"), KeyListPart::Open);
        assert_eq!(part(b"a b\0c\n"), KeyListPart::Zero { at: 3, keys: 2 });
        let list = "k ".repeat(64).into_bytes();
        let with = |end: &[u8]| part(&[&list, end].concat());
        assert_eq!(with(b"\r\n"), KeyListPart::Last { end: 130, keys: 64 });
        assert_eq!(with(b"\rx\n"), KeyListPart::More { end: 128, keys: 64 });
        assert_eq!(with(b" x\n"), KeyListPart::More { end: 129, keys: 64 });
        assert_eq!(with(b" \r"), KeyListPart::Open);
        let long = [&b"k".repeat(250)[..], b"\r\n"].concat();
        assert_eq!(part(&long), KeyListPart::Last { end: 252, keys: 1 });
        assert_eq!(part(&[b"k", &long[..]].concat()), KeyListPart::LongKey);
        assert_eq!(part(&[b"k", &long[..250], b" "].concat()), KeyListPart::LongKey);
    }
}
