//! Bytes that programs exchange: a mark that says what they are, whole numbers of variable length, and a checksum.
//!
//! Equal values have equal bytes. Reading trusts nothing: damaged, truncated or invented bytes give an error, and
//! memory stays below that of the input.

use std::fmt;

/// Bytes of a checksum.
const CHECKSUM: usize = 8;

/// The bytes are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedBytes(String);

impl DamagedBytes {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for DamagedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DamagedBytes {}

/// Returns marked bytes with a checksum.
pub(crate) fn sealed(mark: &[u8; 4], write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = mark.to_vec();
    write(&mut bytes);
    let sum = blake3::hash(&bytes);
    bytes.extend(&sum.as_bytes()[..CHECKSUM]);
    bytes
}

/// Appends a whole number: seven bits a byte, the lowest first.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Bytes with the right mark and checksum, without those that were read.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Checks mark and checksum; `name` names what is expected.
    pub(crate) fn open(bytes: &'a [u8], mark: &[u8; 4], name: &str) -> Result<Self, DamagedBytes> {
        let Some(rest) = bytes.strip_prefix(&mark[..3]) else {
            return Err(DamagedBytes::new(format_args!("the bytes are no {name}")));
        };
        match rest.first() {
            Some(version) if *version != mark[3] => {
                let version = version.escape_ascii();
                let read = mark[3].escape_ascii();
                return Err(DamagedBytes::new(format_args!(
                    "{name} of version {version}: expected version {read}; write it and read it by one version of Tailwright"
                )));
            }
            _ => {}
        }
        let (body, sum) = bytes
            .split_last_chunk::<CHECKSUM>()
            .filter(|(body, _)| body.len() >= mark.len())
            .ok_or_else(|| DamagedBytes::new(format_args!("{name}: truncated")))?;
        if blake3::hash(body).as_bytes()[..CHECKSUM] != sum[..] {
            return Err(DamagedBytes::new(format_args!(
                "{name}: damaged or truncated, the checksum differs"
            )));
        }
        Ok(Self(&body[mark.len()..]))
    }

    /// Reads a whole number.
    pub(crate) fn number(&mut self) -> Result<u64, DamagedBytes> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or_else(ends)?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if *byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DamagedBytes::new("a number exceeds 64 bits"))
    }

    /// Reads this many bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DamagedBytes> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(ends)?;
        self.0 = rest;
        Ok(*array)
    }

    /// Bytes that are left.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Checks that nothing is left.
    pub(crate) fn end(self) -> Result<(), DamagedBytes> {
        if self.0.is_empty() { Ok(()) } else { Err(DamagedBytes::new("there are bytes after the end")) }
    }
}

fn ends() -> DamagedBytes {
    DamagedBytes::new("the bytes end too early")
}

/// Tests of what a checksum hides from tests from outside.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(number in any::<u64>(), shift in 0..64_u32) {
            let number = number >> shift;
            let bytes = sealed(b"tst1", |bytes| put(bytes, number));
            let mut reader = Reader::open(&bytes, b"tst1", "test").unwrap();
            prop_assert_eq!(reader.number().unwrap(), number);
            reader.end().unwrap();
        }

        #[test]
        fn arbitrary_bytes_are_numbers_or_errors(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut reader = Reader(&bytes);
            let _ = reader.number();
        }
    }

    #[test]
    fn what_is_something_else_is_named() {
        let good = sealed(b"tst1", |bytes| put(bytes, 5));
        let said = |bytes: &[u8]| Reader::open(bytes, b"tst1", "test").unwrap_err().to_string();
        assert_eq!(said(b""), "the bytes are no test");
        assert_eq!(said(b"tst"), "test: truncated");
        assert_eq!(said(b"tst1"), "test: truncated");
        assert_eq!(
            said(b"tst2"),
            "test of version 2: expected version 1; write it and read it by one version of Tailwright"
        );
        assert!(said(&good[..good.len() - 1]).contains("checksum"));
        let mut changed = good;
        changed[4] ^= 1;
        assert!(said(&changed).contains("checksum"));
        assert!(Reader(&[0xff; 9]).number().is_err());
        assert!(Reader(&[0xff; 10]).number().is_err());
        assert!(Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).number().is_err());
    }
}
