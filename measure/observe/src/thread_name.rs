//! Names of threads, which whoever runs the thread chooses.

/// The name in the kernel's `comm`, fit to be printed: what is no text, controls a terminal or changes the direction of
/// text is U+FFFD.
pub(crate) fn thread_name(comm: &[u8; 16]) -> String {
    let length = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    let is_hostile = |character: char| {
        character.is_control()
            || matches!(character, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    String::from_utf8_lossy(&comm[..length]).replace(is_hostile, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_reaches_a_terminal_as_a_command() {
        let named = |bytes: &[u8]| {
            let mut comm = [0; 16];
            comm[..bytes.len()].copy_from_slice(bytes);
            thread_name(&comm)
        };
        assert_eq!(named(b"kworker/0:1"), "kworker/0:1");
        assert_eq!(named(b"sixteen bytes xy"), "sixteen bytes xy");
        assert_eq!(named(b"\x1b[2J\n\r\t\x07\x7f"), "\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}");
        // The C1 control character CSI, the direction of text, and what is no text.
        assert_eq!(named("a\u{9b}31m\u{202e}".as_bytes()), "a\u{fffd}31m\u{fffd}");
        assert_eq!(named(b"a\xffb\0c"), "a\u{fffd}b");
    }
}
