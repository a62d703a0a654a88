//! Commands as a line of words, with quotes and escapes, as servers split it.

/// The words of a line, up to its first zero byte. A server waits for another line behind that, so that nothing is lost.
///
/// # Errors
/// When quotes have no end, or no space behind their end.
pub(super) fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, ()> {
    let end = line.iter().position(|&byte| byte == 0).unwrap_or(line.len());
    let mut rest = &line[..end];
    let mut words = Vec::new();
    loop {
        let Some(start) = rest.iter().position(|&byte| !is_space(byte)) else { return Ok(words) };
        let (word, behind) = next_word(&rest[start..])?;
        words.push(word);
        rest = behind;
    }
}

/// `isspace` of C, which includes the vertical tab.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Reads the word at the start of `text`, and returns what is behind it.
fn next_word(text: &[u8]) -> Result<(Vec<u8>, &[u8]), ()> {
    let mut word = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => break,
            b'"' | b'\'' => {
                at = quoted(text, at, byte, &mut word)?;
                // A word may begin without quotes, and ends with them.
                if text.get(at).is_some_and(|&next| !is_space(next)) {
                    return Err(());
                }
                break;
            }
            byte => word.push(byte),
        }
    }
    Ok((word, &text[at..]))
}

/// Reads up to the end of quotes that begin in front of `at`, and returns the place behind it.
fn quoted(text: &[u8], mut at: usize, quote: u8, word: &mut Vec<u8>) -> Result<usize, ()> {
    loop {
        let &byte = text.get(at).ok_or(())?;
        at += 1;
        if byte == quote {
            return Ok(at);
        }
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        let Some(&escaped) = text.get(at) else {
            word.push(byte);
            continue;
        };
        if quote == b'\'' {
            // Only the quote itself can be escaped.
            if escaped == b'\'' {
                at += 1;
            }
            word.push(if escaped == b'\'' { escaped } else { byte });
            continue;
        }
        let digits = text.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let hex = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        if escaped == b'x'
            && let Some(value) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())
        {
            word.push(value);
            at += 3;
            continue;
        }
        word.push(match escaped {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 0x08,
            b'a' => 0x07,
            other => other,
        });
        at += 1;
    }
}

/// Encodes words as an array of bulk strings.
pub(super) fn as_array(words: &[Vec<u8>]) -> Vec<u8> {
    let mut array = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        array.extend(format!("${}\r\n", word.len()).as_bytes());
        array.extend(word);
        array.extend(b"\r\n");
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &[u8]) -> Result<Vec<String>, ()> {
        Ok(words(line)?.iter().map(|word| word.escape_ascii().to_string()).collect())
    }

    #[test]
    fn lines_are_split_as_servers_do() {
        let rows: [(&[u8], &[&str]); 12] = [
            (b"", &[]),
            (b" \t\x0b ", &[]),
            (b"GET k", &["GET", "k"]),
            (b"  set  k\tv\r", &["set", "k", "v"]),
            (b"\"\" ''", &["", ""]),
            (b"\"sub\\x73cribe\" a", &["subscribe", "a"]),
            (b"ab\"cd\" e", &["abcd", "e"]),
            (b"'it\\'s' '\\x41\\n'", &["it\\'s", "\\\\x41\\\\n"]),
            (b"\"\\n\\r\\t\\b\\a\\q\\xzz\\x4\"", &["\\n\\r\\t\\x08\\x07qxzzx4"]),
            (b"a\x0bb", &["a\\x0bb"]),
            (b"get a\0b c", &["get", "a"]),
            (b"\"a\"\x0bb", &["a", "b"]),
        ];
        for (line, expected) in rows {
            let expected: Vec<String> = expected.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(split(line), Ok(expected), "{}", line.escape_ascii());
        }
        for line in [&b"\"a"[..], b"'a", b"\"a\"b", b"'a'b", b"\"a\\", b"\"a\0\""] {
            assert_eq!(split(line), Err(()), "{}", line.escape_ascii());
        }
        assert_eq!(as_array(&[b"GET".to_vec(), Vec::new()]), b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n");
    }
}
