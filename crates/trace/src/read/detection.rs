//! What each parser thinks of a line, for telling formats apart.

pub(crate) use super::text::is_csv_header;
pub(crate) use super::vscsi::is_vscsi;

use super::blkparse::{self, Event};
use super::text::{ArrivalHex, Msr, Spc};
use super::{LineParser, Parsed};
use crate::Format;

/// Whether a line belongs to a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Understood,
    NotOurs,
}

/// Whether `line` is a record of `format`, one of the formats without a mark at the beginning.
pub(crate) fn verdict(format: Format, line: &[u8]) -> Verdict {
    let understood = match format {
        Format::ArrivalHex => holds_request(&ArrivalHex.parse(line)),
        Format::Msr => holds_request(&Msr.parse(line)),
        Format::Spc => holds_request(&Spc.parse(line)),
        Format::Blkparse => !matches!(blkparse::event(line), Err(_) | Ok(Event::Summary)),
        Format::Parquet | Format::Csv | Format::Fio | Format::Vscsi => false,
    };
    if understood { Verdict::Understood } else { Verdict::NotOurs }
}

fn holds_request(parsed: &Result<Parsed, &'static str>) -> bool {
    matches!(parsed, Ok(Parsed::Request(_)))
}
