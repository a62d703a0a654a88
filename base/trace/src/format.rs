//! The trace formats, and the constants of their specifications that readers and writers share.

use std::fmt;
use std::str::FromStr;

/// Nanoseconds in a tick of Windows file time, the unit of MSR traces.
pub(crate) const FILETIME_TICK_NS: u64 = 100;
/// Bytes in a block of SPC traces and in a sector of blkparse and vscsi traces.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// The first line of a fio iolog of version 3.
pub(crate) const FIO_HEADER_V3: &[u8] = b"fio version 3 iolog";
/// The first four bytes of a Parquet file.
pub(crate) const PARQUET_MAGIC: &[u8] = b"PAR1";

/// A trace format. Times are normalised to integer nanoseconds. Formats whose origin is an epoch
/// ([`TraceFormat::Msr`], [`TraceFormat::Vscsi`], recordings and tcpdump) are rebased so that the first
/// request arrives at zero; the others keep the origin of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceFormat {
    /// Tailwright's native format: columns `arrival_ns`, `size_bytes`, `op`, `offset`, `response_ns`.
    Parquet,
    /// CSV with a header that names the columns; the native column names, and the common names for the
    /// same things with other units (such as `t_init_s`, `bytes`, `io_us`).
    Csv,
    /// `arrival_ns,size_hex,DiskRead|DiskWrite|Get|Put` without header and without offsets.
    ArrivalHex,
    /// MSR Cambridge: `filetime,host,disk,Read|Write,offset,size,response`, times in 100 ns.
    Msr,
    /// UMass / Storage Performance Council: `asu,lba,size,r|w,seconds`, blocks of 512 bytes.
    Spc,
    /// fio iolog, version 2 (times only from `wait` records, read as fio 3.33 replays them) or 3 (microseconds).
    Fio,
    /// The default text output of `blkparse`: `Q` events are arrivals (`D` where there are none), `C` events are
    /// completions.
    Blkparse,
    /// CloudPhysics vscsi binary records, version 1 or 2.
    Vscsi,
    /// A recording of `proxy --record` or `observe --record`: a folder, or one of its segments; see
    /// [`recording`](crate::recording).
    Recording,
    /// Text output of `tcpdump -tt -n`, with or without `-q`: the data that a client sends before the server answers is a
    /// request.
    Tcpdump,
    /// Token buckets of requests, from which the reader makes the trace that uses them up.
    Limits,
}

impl TraceFormat {
    /// All formats, in the order in which the documentation lists them.
    pub const ALL: [Self; 11] = [
        Self::Parquet,
        Self::Csv,
        Self::ArrivalHex,
        Self::Msr,
        Self::Spc,
        Self::Fio,
        Self::Blkparse,
        Self::Vscsi,
        Self::Recording,
        Self::Tcpdump,
        Self::Limits,
    ];

    /// Returns the name of the format in flags and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::ArrivalHex => "arrival-hex",
            Self::Msr => "msr",
            Self::Spc => "spc",
            Self::Fio => "fio",
            Self::Blkparse => "blkparse",
            Self::Vscsi => "vscsi",
            Self::Recording => "recording",
            Self::Tcpdump => "tcpdump",
            Self::Limits => "limits",
        }
    }

    /// Returns true if traces can be written in this format.
    pub fn is_writable(self) -> bool {
        !matches!(self, Self::Blkparse | Self::Vscsi | Self::Recording | Self::Tcpdump | Self::Limits)
    }

    /// Returns true if times count from an epoch, so that readers rebase them to the first request.
    pub fn has_epoch(self) -> bool {
        matches!(self, Self::Msr | Self::Vscsi | Self::Recording | Self::Tcpdump)
    }

    /// The names of all formats, separated by commas.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The names of the formats that can be written, separated by commas.
    pub fn names_written() -> String {
        let written: Vec<_> =
            Self::ALL.into_iter().filter(|format| format.is_writable()).map(Self::name).collect();
        written.join(", ")
    }

    /// Returns the format that the extension of a file name suggests; an extension for compression is
    /// skipped.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        let (_, ending) = name.rsplit_once('.')?;
        Some(match ending {
            "parquet" => Self::Parquet,
            "csv" => Self::Csv,
            "hex" => Self::ArrivalHex,
            "msr" => Self::Msr,
            "spc" => Self::Spc,
            "iolog" | "fio" => Self::Fio,
            "blkparse" => Self::Blkparse,
            "tcpdump" => Self::Tcpdump,
            "limits" => Self::Limits,
            "vscsi" | "vscsitrace" | "vscsi1" | "vscsi2" => Self::Vscsi,
            _ => return None,
        })
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TraceFormat {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let meant = operation::text::meant_word(text, Self::ALL.map(Self::name));
            format!("unknown trace format '{text}': expected one of {}{meant}", Self::names())
        })
    }
}
