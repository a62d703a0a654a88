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
            let (field, max) = ("memcached line in bytes", max as u64);
            return Err(ProtocolError::AboveLimit { field, max, found: max + 1 }.into());
        }
        Err(HeadError::NeedMore(buffer.len() + 1))
    }
}

/// Reads a decimal number of at most 19 digits, which always fits.
pub(super) fn number(word: Option<&[u8]>, field: &'static str) -> Result<u64, ProtocolError> {
    let error = ProtocolError::Line { field, expected: "a number" };
    let word = word.ok_or(error)?;
    if word.is_empty() || word.len() > 19 || !word.iter().all(u8::is_ascii_digit) {
        return Err(error);
    }
    Ok(word.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

/// The words of a line, which are separated by spaces.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.trim_ascii_end().split(|&byte| byte == b' ').filter(|word| !word.is_empty())
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
        assert_eq!(read("9999999999999999999"), Some(9_999_999_999_999_999_999));
        for bad in ["", "+1", "-1", "1x", "0x1", "10000000000000000000"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
