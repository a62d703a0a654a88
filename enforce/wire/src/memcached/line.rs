//! Lines, their words and numbers.

use crate::ProtocolError;
use crate::fields::HeadError;

/// The search for the end of a line, which looks at each byte once however many pieces the line arrives in.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LineSearch {
    /// The bytes at the start of the buffer in which no end of line was found.
    searched: usize,
}

impl LineSearch {
    /// The first line of the buffer with its end, if it has at most `max` bytes.
    pub(super) fn first_line<'a>(&mut self, buffer: &'a [u8], max: usize) -> Result<&'a [u8], HeadError> {
        let from = self.searched.min(buffer.len());
        let until = buffer.len().min(max);
        if let Some(place) = buffer[from..until].iter().position(|&byte| byte == b'\n') {
            return Ok(&buffer[..=from + place]);
        }
        self.searched = until;
        if until == max {
            let field = "memcached line in bytes";
            let max = max as u64;
            return Err(ProtocolError::AboveLimit { field, max, found: max + 1 }.into());
        }
        Err(HeadError::NeedMore(buffer.len() + 1))
    }
}

/// Reads a decimal number of 64 bits, in at most 20 digits.
pub(super) fn number(word: Option<&[u8]>, field: &'static str) -> Result<u64, ProtocolError> {
    let error = ProtocolError::Line { field, expected: "a number" };
    let word = word.ok_or(error)?;
    if word.is_empty() || word.len() > 20 || !word.iter().all(u8::is_ascii_digit) {
        return Err(error);
    }
    value_of(word).ok_or(error)
}

/// The value of decimal digits, if 64 bits hold it.
fn value_of(digits: &[u8]) -> Option<u64> {
    let with_digit = |value: u64, digit: &u8| value.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    digits.iter().try_fold(0, with_digit)
}

/// A number as the functions of C read it that memcached calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LooseNumber {
    pub(super) is_negative: bool,
    pub(super) magnitude: u64,
    /// Every reader of numbers would read the same: at most 20 digits, perhaps behind a minus sign.
    pub(super) is_plain: bool,
}

/// Reads a number behind white space and a sign, which ends with the word or at white space in it.
pub(super) fn loose_number(word: &[u8]) -> Option<LooseNumber> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = word.iter().position(|byte| !is_space(byte))?;
    let (is_negative, digits) = match &word[start..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let count = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    if count == 0 || digits.get(count).is_some_and(|byte| !is_space(byte)) {
        return None;
    }
    let magnitude = value_of(&digits[..count])?;
    let is_plain = count <= 20 && word.len() == count + usize::from(is_negative);
    Some(LooseNumber { is_negative, magnitude, is_plain })
}

/// The words of a line, which are separated by spaces and nothing else.
pub(super) fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_searched_twice() {
        let mut search = LineSearch::default();
        let mut buffer = vec![b'x'; 100];
        assert!(matches!(search.first_line(&buffer, 200), Err(HeadError::NeedMore(101))));
        // These bytes were searched: a change behind the search's back goes unseen.
        buffer[50] = b'\n';
        buffer.extend(b"yy\nzz");
        assert_eq!(search.first_line(&buffer, 200).unwrap().len(), 103);
    }

    #[test]
    fn numbers_are_plain() {
        let read = |word: &str| number(Some(word.as_bytes()), "n").ok();
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        for bad in ["", "+1", "-1", "1x", "0x1", "1\t", "18446744073709551616", "000000000000000000001"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn loose_numbers_are_those_of_c() {
        let read = |word: &[u8]| {
            loose_number(word).map(|number| (number.is_negative, number.magnitude, number.is_plain))
        };
        assert_eq!(read(b"5"), Some((false, 5, true)));
        assert_eq!(read(b"-5"), Some((true, 5, true)));
        for odd in [&b"+5"[..], b"\t5", b"5\t", b"5\tx", b"\x0b+5\r", b"000000000000000000000005"] {
            assert_eq!(read(odd), Some((false, 5, false)), "{odd:?}");
        }
        for bad in [&b""[..], b"x", b"5x", b"0x5", b"- 5", b"\t", b"18446744073709551616"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn words_are_separated_by_spaces_alone() {
        let split = |line: &[u8]| words(line).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(split(b"  a  b\tc \r\n"), [&b"a"[..], b"b\tc"]);
        assert_eq!(split(b"a\r\r\n"), [&b"a\r"[..]]);
        assert!(split(b"\r\n").is_empty());
    }
}
