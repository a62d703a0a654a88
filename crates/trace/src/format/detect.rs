//! Which format a file is in, from its beginning: marks that only one format has, then the format that
//! understands most of the first lines, then the name.

use super::Format;
use crate::read::detection::{self, Verdict};
use std::path::Path;

/// How much of a file is looked at, after decompression.
pub(crate) const DETECT_BYTES: usize = 1 << 14;
const LINES: usize = 64;

/// The format of a file that begins with `head`; `None` when nothing fits.
pub(crate) fn detect(head: &[u8], name: &Path) -> Option<Format> {
    let named = name.file_name().and_then(|name| Format::from_file_name(&name.to_string_lossy()));
    if head.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    if head.starts_with(b"fio version ") {
        return Some(Format::Fio);
    }
    if detection::is_vscsi(head) {
        return Some(Format::Vscsi);
    }
    by_lines(head, named).or(named)
}

/// The line format that understands most lines at the beginning.
fn by_lines(head: &[u8], named: Option<Format>) -> Option<Format> {
    let lines = || head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    if lines().next().is_some_and(detection::is_csv_header) {
        return Some(Format::Csv);
    }
    const CANDIDATES: [Format; 4] = [Format::ArrivalHex, Format::Msr, Format::Spc, Format::Blkparse];
    let score = |format: Format| {
        let understood = lines()
            .take(LINES)
            .filter(|line| detection::verdict(format, line) == Verdict::Understood)
            .count();
        (understood, named == Some(format))
    };
    let best = CANDIDATES.into_iter().max_by_key(|&format| score(format))?;
    (score(best).0 > 0).then_some(best)
}
