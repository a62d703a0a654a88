//! How wide the output is and whether it has colours, decided once.
//!
//! - Width: `COLUMNS` where it is set to a number; otherwise that of the terminal, 80 columns where it does not
//!   say (0 rows or columns); without a terminal 100 columns, so that a file looks the same wherever it was made. `--wide`
//!   lifts the limit.
//! - Colours: where there is a terminal, unless `NO_COLOR` is set and not empty; `CLICOLOR_FORCE` (not empty, not 0) has
//!   them everywhere.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// Columns of what is no terminal.
const COLUMNS_WITHOUT_TERMINAL: usize = 100;
/// Nothing readable fits into fewer columns.
const COLUMNS_MIN: usize = 40;

/// Whether lines may be as long as they like.
static IS_WIDE: OnceLock<bool> = OnceLock::new();

/// Lifts the limit on the width of the output. Called once, before anything is printed.
pub fn be_wide() {
    // Set twice it would be the same.
    let _ = IS_WIDE.set(true);
}

/// The columns that standard output has; none where there is no limit.
pub(crate) fn width() -> Option<usize> {
    let is_wide = *IS_WIDE.get_or_init(|| false);
    (!is_wide).then(|| columns().unwrap_or(COLUMNS_WITHOUT_TERMINAL).max(COLUMNS_MIN))
}

/// The columns of standard error where that is a terminal; none where lines are not to be wrapped.
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

/// The width of a terminal; none where there is none.
fn columns_of(stream: impl AsFd) -> Option<usize> {
    machine::terminal::size(stream).map(|size| size.columns)
}

/// Whether a stream has colours.
pub(super) fn has_colours(stream: &impl IsTerminal) -> bool {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_forced = variable("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    is_forced || (variable("NO_COLOR").is_none() && stream.is_terminal())
}
