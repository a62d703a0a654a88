//! Width of the output and its use of colours, decided once.
//!
//! - Width: `COLUMNS` if it is a number; otherwise the terminal's width, or 80 columns if the terminal
//!   reports 0. Without a terminal 100 columns, so that a file does not depend on where it was written.
//!   `--wide` lifts the limit.
//! - Colours: on a terminal, unless `NO_COLOR` is set and not empty. `CLICOLOR_FORCE` (not empty, not 0)
//!   turns them on everywhere.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// Width of output that is not a terminal.
const COLUMNS_WITHOUT_TERMINAL: usize = 100;
/// Minimum width: nothing readable fits into fewer columns.
const COLUMNS_MIN: usize = 40;

/// True if `--wide` lifts the limit on line length.
static IS_WIDE: OnceLock<bool> = OnceLock::new();

/// Lifts the limit on the width of the output. Called once, before anything is printed.
pub fn be_wide() {
    // A second call sets the same value.
    let _ = IS_WIDE.set(true);
}

/// Returns the width of standard output; none without a limit.
pub(crate) fn width() -> Option<usize> {
    let is_wide = *IS_WIDE.get_or_init(|| false);
    (!is_wide).then(|| columns().unwrap_or(COLUMNS_WITHOUT_TERMINAL).max(COLUMNS_MIN))
}

/// Returns the width of standard error if that is a terminal; none if lines are not wrapped.
pub(super) fn talk_width() -> Option<usize> {
    let columns = columns_of(std::io::stderr())?;
    Some(columns_set().unwrap_or(columns).max(COLUMNS_MIN))
}

/// Returns the columns of the terminal on standard output, or those that `COLUMNS` sets; none without either.
pub fn columns() -> Option<usize> {
    columns_set().or_else(|| columns_of(std::io::stdout()))
}

fn columns_set() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok()?.trim().parse().ok();
    columns.filter(|columns| *columns > 0)
}

/// Returns the width of a terminal; none if the stream is not one.
fn columns_of(stream: impl AsFd) -> Option<usize> {
    machine::terminal::size(stream).map(|size| size.columns)
}

/// Returns true if a stream gets colours.
pub(super) fn has_colours(stream: &impl IsTerminal) -> bool {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_forced = variable("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    is_forced || (variable("NO_COLOR").is_none() && stream.is_terminal())
}
