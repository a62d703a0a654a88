//! `tailwright trace info`.

use super::{InputArgs, Watched, failure, report};
use crate::exit::Answer;
use crate::terminal::{Align, Table, print};
use model::OperationError;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use trace::stats::{self, TraceStatistics};
use trace::{TraceError, TraceFormat};
use units::{ByteRate, Bytes, Seconds};

/// Shares of requests whose sizes are reported.
const SIZE_QUANTILES: [(&str, f64); 5] =
    [("p1", 0.01), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];
const COMMON_SIZES: usize = 5;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Burstiness, for reading the table: a Poisson stream has squared variation 1, dispersion 1 at \
    every scale and\na Hurst parameter of 0.5; larger is burstier.\n\nExamples:\n  \
    tailwright trace info web.csv.gz\n  tailwright trace info web.csv.gz --report web.html\n  \
    tailwright trace info traces/*.csv.gz\n  zcat web.csv.gz | tailwright trace info - --json"
)]
pub(super) struct InfoArgs {
    /// Traces; several are listed one per line
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// One JSON object per trace
    #[arg(long)]
    json: bool,
    /// Also write a page with plots (for one trace)
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
}

/// A trace and what was found in it.
pub(super) struct Found {
    pub(super) file: String,
    pub(super) format: TraceFormat,
    pub(super) skipped: u64,
    pub(super) ignored: u64,
    pub(super) stats: TraceStatistics,
}

pub(super) fn run(args: &InfoArgs) -> Result<Answer, OperationError> {
    if args.report.is_some() && args.files.len() > 1 {
        return Err(OperationError::input("--report describes one trace").hint("run it once per trace"));
    }
    let mut overview = overview_table();
    for file in &args.files {
        let found = look(file, &args.input)?;
        if let Some(path) = &args.report {
            report::write(path, &found)?;
        }
        if args.json {
            print(&format!("{}\n", to_json(&found)));
        } else if args.files.len() == 1 {
            print(&details(&found));
        } else {
            overview.row(overview_row(&found));
        }
    }
    if !args.json && args.files.len() > 1 {
        print(&overview.render());
    }
    Ok(Answer::Yes)
}

fn look(file: &Path, input: &InputArgs) -> Result<Found, OperationError> {
    let mut watched = Watched::new(input.open(file)?, "reading");
    let stats = stats::collect(&mut watched).map_err(|error: TraceError| failure(&error))?;
    let reader = &watched.reader;
    let stats =
        stats.ok_or_else(|| OperationError::input(format!("{}: the trace is empty", file.display())))?;
    Ok(Found {
        file: file.display().to_string(),
        format: reader.format(),
        skipped: reader.skipped(),
        ignored: reader.ignored(),
        stats,
    })
}

/// Three decimals or so, a dash for what a short trace does not determine.
pub(super) fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", 100.0 * share))
}

pub(super) fn request_rate(stats: &TraceStatistics) -> String {
    stats.requests_per_sec.map_or_else(|| "-".to_owned(), |rate| format!("{}/s", number(Some(rate))))
}

pub(super) fn byte_rate(rate: Option<f64>) -> String {
    rate.and_then(ByteRate::from_bytes_per_sec).map_or_else(|| "-".to_owned(), |rate| rate.to_string())
}

pub(super) fn hurst(stats: &TraceStatistics) -> String {
    match stats.hurst {
        Ok(hurst) => {
            format!("{:.3} ± {:.3} (from {} to {})", hurst.h, hurst.standard_error, hurst.from, hurst.to)
        }
        Err(fault) => format!("- ({fault})"),
    }
}

/// A quantity and its value, in order: the terminal and the report show the same.
pub(super) fn quantities(found: &Found) -> Vec<(String, String)> {
    let stats = &found.stats;
    let mut rows = vec![
        ("format".to_owned(), found.format.to_string()),
        ("requests".to_owned(), stats.count.to_string()),
        ("duration".to_owned(), Seconds((stats.last - stats.first).as_secs()).to_string()),
        ("first arrival".to_owned(), Seconds(stats.first.as_secs()).to_string()),
        ("request rate".to_owned(), request_rate(stats)),
        ("byte rate".to_owned(), byte_rate(stats.bytes_per_sec)),
        ("reads (requests)".to_owned(), percent(Some(stats.read_share))),
        ("reads (bytes)".to_owned(), percent(stats.read_share_bytes)),
        ("mean size".to_owned(), format!("{:.0}B", stats.bytes as f64 / stats.count as f64)),
    ];
    for (name, q) in SIZE_QUANTILES {
        rows.push((format!("size {name}"), stats.sizes.quantile(q).to_string()));
    }
    let share = |count: u64| percent(Some(count as f64 / stats.count as f64));
    let common = stats.sizes.most_common(COMMON_SIZES);
    let common: Vec<String> = common.iter().map(|c| format!("{} {}", c.size, share(c.count))).collect();
    rows.push(("most common sizes".to_owned(), common.join(", ")));
    rows.push(("squared variation of gaps".to_owned(), number(stats.interarrival_scv)));
    for at in &stats.binned_counts {
        rows.push((format!("peak to mean at {}", at.bin_length), number(at.peak_to_mean)));
    }
    for at in &stats.binned_counts {
        rows.push((format!("dispersion at {}", at.bin_length), number(at.dispersion)));
    }
    rows.push(("Hurst parameter".to_owned(), hurst(stats)));
    let recorded = |count: u64| if count == stats.count { "all".to_owned() } else { share(count) };
    rows.push(("offsets recorded".to_owned(), recorded(stats.with_offset)));
    rows.push(("response times recorded".to_owned(), recorded(stats.with_response)));
    rows
}

fn details(found: &Found) -> String {
    let mut table = Table::new(&[(&found.file, Align::Left), ("", Align::Left)]);
    for (name, value) in quantities(found) {
        table.row(vec![name, value]);
    }
    table.render()
}

fn overview_table() -> Table {
    Table::new(&[
        ("trace", Align::Left),
        ("requests", Align::Right),
        ("duration", Align::Right),
        ("req/s", Align::Right),
        ("bytes", Align::Right),
        ("reads", Align::Right),
        ("p50 size", Align::Right),
        ("gap C²", Align::Right),
        ("peak/mean 1s", Align::Right),
        ("IDC 1s", Align::Right),
        ("Hurst", Align::Right),
    ])
}

fn overview_row(found: &Found) -> Vec<String> {
    let stats = &found.stats;
    let second = stats.binned_counts.last();
    let name =
        Path::new(&found.file).file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    vec![
        name,
        stats.count.to_string(),
        Seconds((stats.last - stats.first).as_secs()).to_string(),
        number(stats.requests_per_sec),
        byte_rate(stats.bytes_per_sec),
        percent(Some(stats.read_share)),
        stats.sizes.quantile(0.5).to_string(),
        number(stats.interarrival_scv),
        number(second.and_then(|at| at.peak_to_mean)),
        number(second.and_then(|at| at.dispersion)),
        stats.hurst.map_or_else(|_| "-".to_owned(), |h| format!("{:.2} ± {:.2}", h.h, h.standard_error)),
    ]
}

fn to_json(found: &Found) -> Value {
    let stats = &found.stats;
    let bytes = |Bytes(bytes): Bytes| bytes;
    let quantiles: serde_json::Map<String, Value> = SIZE_QUANTILES
        .iter()
        .map(|(name, q)| ((*name).to_owned(), bytes(stats.sizes.quantile(*q)).into()))
        .collect();
    let common: Vec<Value> = stats
        .sizes
        .most_common(COMMON_SIZES)
        .iter()
        .map(|c| json!({ "size_bytes": bytes(c.size), "count": c.count }))
        .collect();
    let at = |at: &stats::BinnedCounts| {
        json!({ "scale_s": at.bin_length.as_secs(), "bins": at.bins, "peak_to_mean": at.peak_to_mean,
            "dispersion": at.dispersion })
    };
    let hurst = stats.hurst.ok().map(|h| {
        json!({ "h": h.h, "standard_error": h.standard_error, "from_s": h.from.as_secs(), "to_s": h.to.as_secs() })
    });
    json!({
        "file": found.file,
        "format": found.format.name(),
        "skipped": found.skipped,
        "ignored": found.ignored,
        "count": stats.count,
        "bytes": stats.bytes as f64,
        "first_arrival_s": stats.first.as_secs(),
        "duration_s": (stats.last - stats.first).as_secs(),
        "requests_per_s": stats.requests_per_sec,
        "bytes_per_s": stats.bytes_per_sec,
        "read_share": stats.read_share,
        "read_share_bytes": stats.read_share_bytes,
        "size_mean_bytes": stats.bytes as f64 / stats.count as f64,
        "size_quantiles_bytes": quantiles,
        "sizes_exact": stats.sizes.exact,
        "sizes_most_common": common,
        "gap_squared_variation": stats.interarrival_scv,
        "at_scales": stats.binned_counts.iter().map(at).collect::<Vec<_>>(),
        "hurst": hurst,
        "with_offset": stats.with_offset,
        "with_response": stats.with_response,
    })
}
