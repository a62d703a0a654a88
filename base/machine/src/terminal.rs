//! Properties of a terminal: its size, and its foreground process group.

use rustix::fd::AsFd;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Characters in a row.
    pub columns: usize,
    /// The number of rows.
    pub rows: usize,
}

impl TerminalSize {
    /// Size that programs assume if the terminal does not report one.
    pub const USUAL: Self = Self { columns: 80, rows: 24 };
}

/// Returns the size of the terminal behind a file; `None` if it is not a terminal. A dimension reported
/// as zero is taken from [`TerminalSize::USUAL`].
pub fn size(file: impl AsFd) -> Option<TerminalSize> {
    let said = tcgetwinsize(file).ok()?;
    let or_usual = |said: u16, usual| if said > 0 { said.into() } else { usual };
    let TerminalSize { columns, rows } = TerminalSize::USUAL;
    Some(TerminalSize { columns: or_usual(said.ws_col, columns), rows: or_usual(said.ws_row, rows) })
}

/// Returns true if this process is in the foreground of the terminal behind a file, which it is unless a
/// shell has put it in the background. False if the terminal is not its controlling one.
pub fn is_foreground(file: impl AsFd) -> bool {
    tcgetpgrp(file).is_ok_and(|group| group == getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_no_terminal() {
        let file = tempfile::tempfile().expect("a file");
        assert_eq!((size(&file), is_foreground(&file)), (None, false));
    }
}
