//! `tailwright trace`: look at, convert, cut, merge and generate request traces.

mod callgraph;
mod generate;
mod info;
mod report;
mod rewrite;

use crate::exit::Answer;
use crate::terminal::progress;
use indicatif::ProgressBar;
use model::{OperationError, Request};
use std::path::{Path, PathBuf};
use trace::{OpenOptions, TraceError, TraceErrorKind, TraceFormat, TraceReader, TraceWriter};

#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Formats, detected from content: parquet (native), csv (with header), arrival-hex \
    (arrival_ns,0xsize,DiskRead|DiskWrite|Get|Put),\nmsr (MSR Cambridge), spc (UMass), fio (iolog v2, v3), blkparse \
    (text), vscsi (CloudPhysics). gzip and zstd are\ntransparent; - is the standard input or output.\n\n\
    Examples:\n  tailwright trace info web.csv.gz --report web.html\n  \
    tailwright trace convert web.csv.gz -o web.parquet\n  \
    tailwright trace generate poisson --rate 500/s --duration 60s -o t.parquet"
)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Rates, sizes and burstiness, as a table, JSON or a page with plots
    Info(info::InfoArgs),
    /// Write a trace in another format, and optionally at another speed
    Convert(rewrite::ConvertArgs),
    /// Cut a window of time out of a trace
    Slice(rewrite::SliceArgs),
    /// Merge traces into one in order of arrival
    Merge(rewrite::MergeArgs),
    /// Generate a synthetic trace
    Generate(generate::GenerateArgs),
    /// Services, operations and self times in distributed traces
    Callgraph(callgraph::CallGraphArgs),
}

pub(crate) fn run(args: &TraceArgs) -> Result<Answer, OperationError> {
    match &args.command {
        Command::Info(args) => info::run(args),
        Command::Convert(args) => rewrite::convert(args),
        Command::Slice(args) => rewrite::slice(args),
        Command::Merge(args) => rewrite::merge(args),
        Command::Generate(args) => generate::run(args),
        Command::Callgraph(args) => callgraph::run(args),
    }
}

/// How traces are read.
#[derive(Debug, Clone, clap::Args)]
struct InputArgs {
    /// Format of the input, instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    format: Option<TraceFormat>,
    /// Skip and count malformed and out-of-order requests instead of failing
    #[arg(long)]
    lenient: bool,
    /// Restore the order of a nearly sorted trace, where a request is at most N requests late
    #[arg(long, value_name = "N", default_value_t = 0)]
    sort_window: usize,
}

/// Where a trace goes.
#[derive(Debug, Clone, clap::Args)]
struct OutputArgs {
    /// File to write; .gz and .zst compress the text formats
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Format to write, instead of the one that the file name says
    #[arg(long = "as", value_name = "FORMAT")]
    as_format: Option<TraceFormat>,
}

impl InputArgs {
    fn options(&self) -> OpenOptions {
        OpenOptions { format: self.format, lenient: self.lenient, sort_window: self.sort_window }
    }

    fn open(&self, path: &Path) -> Result<TraceReader, OperationError> {
        trace::open(path, &self.options()).map_err(|error| failure(&error))
    }
}

impl OutputArgs {
    fn format(&self) -> Result<TraceFormat, OperationError> {
        let name = self.output.to_string_lossy();
        self.as_format.or_else(|| TraceFormat::from_file_name(&name)).ok_or_else(|| {
            OperationError::input(format!("{name}: the name does not say which format to write"))
                .hint(format!("add --as FORMAT, one of {}", TraceFormat::names()))
        })
    }

    /// Writes all of `requests` and says so.
    fn write(
        &self,
        requests: impl Iterator<Item = Result<Request, TraceError>>,
    ) -> Result<u64, OperationError> {
        let mut writer =
            TraceWriter::create(&self.output, self.format()?).map_err(|error| failure(&error))?;
        for request in requests {
            request.and_then(|request| writer.write(&request)).map_err(|error| failure(&error))?;
        }
        let count = writer.finish().map_err(|error| failure(&error))?;
        eprintln!("wrote {count} requests to {}", self.output.display());
        Ok(count)
    }
}

/// A trace's own message and hint; the machine is to blame when it has no room or no rights to write.
fn failure(error: &TraceError) -> OperationError {
    if error.file() == Path::new("-")
        && matches!(error.kind(), TraceErrorKind::Io(io) if io.kind() == std::io::ErrorKind::BrokenPipe)
    {
        // A reader that went away (`| head`) ends the program quietly.
        std::process::exit(0);
    }
    let machine = matches!(error.kind(), TraceErrorKind::Io(io)
        if matches!(io.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::ReadOnlyFilesystem));
    let failure = if machine { OperationError::machine(error) } else { OperationError::input(error) };
    failure.hint(error.hint())
}

/// A reader that moves a progress bar along, and says at its end what was passed over.
struct Watched {
    reader: TraceReader,
    bar: ProgressBar,
    since_update: u32,
}

impl Watched {
    fn new(reader: TraceReader, what: &str) -> Self {
        let bar = if reader.fraction().is_some() { progress(100, what, "%") } else { ProgressBar::hidden() };
        Self { reader, bar, since_update: 0 }
    }

    /// For one of many inputs, which have no bar of their own.
    fn without_bar(reader: TraceReader) -> Self {
        Self { reader, bar: ProgressBar::hidden(), since_update: 0 }
    }
}

/// Ends the bar and says what was passed over.
impl Drop for Watched {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        let (file, reader) = (self.reader.file().display(), &self.reader);
        if reader.skipped() > 0 {
            eprintln!("{file}: skipped {} malformed or out-of-order requests", reader.skipped());
        }
        if reader.ignored() > 0 {
            eprintln!("{file}: ignored {} records that are neither reads nor writes", reader.ignored());
        }
    }
}

impl Iterator for Watched {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.since_update += 1;
        if self.since_update == 1 << 15 {
            self.since_update = 0;
            let share = self.reader.fraction().unwrap_or(0.0);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            self.bar.set_position((share * 100.0) as u64);
        }
        self.reader.next()
    }
}
