//! Summary of a trace: as a table, a row of a table, and JSON.

use cli::terminal::{Align, TextTable};
use plan::trace_files::InspectedTrace;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use trace::stats::{self, TraceStatistics};
use units::{ByteRate, Seconds};

/// Shares of requests whose sizes are reported.
const SIZE_QUANTILES: [(&str, f64); 5] =
    [("p1", 0.01), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];
const COMMON_SIZES: usize = 5;

/// Three decimals or so, a dash for what a short trace does not determine.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}

pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", 100.0 * share))
}

pub(crate) fn request_rate(stats: &TraceStatistics) -> String {
    stats.requests_per_sec.map_or_else(|| "-".to_owned(), |rate| format!("{}/s", number(Some(rate))))
}

pub(crate) fn byte_rate(rate: Option<f64>) -> String {
    rate.and_then(ByteRate::from_bytes_per_sec).map_or_else(|| "-".to_owned(), |rate| rate.to_string())
}

pub(crate) fn hurst(stats: &TraceStatistics) -> String {
    match stats.hurst {
        Ok(hurst) => {
            format!("{:.3} ± {:.3} (from {} to {})", hurst.h, hurst.standard_error, hurst.from, hurst.to)
        }
        Err(fault) => format!("- ({fault})"),
    }
}

/// A quantity and its value, in order: the terminal and the report show the same.
pub(crate) fn quantities(trace: &InspectedTrace) -> Vec<(String, String)> {
    let stats = &trace.stats;
    let mut rows = vec![
        ("format".to_owned(), trace.format.to_string()),
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

/// The table of one trace.
pub(crate) fn text(trace: &InspectedTrace) -> String {
    let mut table = TextTable::new(&[(&trace.file, Align::Left), ("", Align::Left)]);
    for (name, value) in quantities(trace) {
        table.row(vec![name, value]);
    }
    table.render()
}

/// The table of several traces, a row for each.
pub(crate) fn overview_table() -> TextTable {
    TextTable::new(&[
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
    .answered_by(&["requests", "peak/mean 1s", "req/s"])
}

/// A trace as a row of [`overview_table`].
pub(crate) fn overview_row(trace: &InspectedTrace) -> Vec<String> {
    let stats = &trace.stats;
    let second = stats.binned_counts.last();
    let name =
        Path::new(&trace.file).file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
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

/// Summary of a trace.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TraceDocument<'a> {
    /// The path of the trace as it was given.
    file: String,
    /// The format that it was read as.
    trace_format: &'static str,
    /// Number of malformed or out-of-order requests that were skipped.
    skipped: u64,
    /// Number of records that are neither reads nor writes.
    ignored: u64,
    /// Number of requests.
    count: u64,
    /// The sum of their sizes.
    bytes: f64,
    first_arrival_s: f64,
    duration_s: f64,
    /// Null where all arrive at one instant.
    requests_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
    /// The share of reads among the requests, 0 to 1.
    read_share: f64,
    /// Share of reads among the bytes; null without bytes.
    read_share_bytes: Option<f64>,
    size_mean_bytes: f64,
    /// Percentiles of sizes, by name.
    size_quantiles_bytes: BTreeMap<&'static str, u64>,
    /// True if every size is counted separately.
    sizes_exact: bool,
    sizes_most_common: Vec<stats::SizeCount>,
    /// The squared coefficient of variation of the gaps between arrivals; 1 for a Poisson process.
    gap_squared_variation: Option<f64>,
    at_scales: &'a [stats::BinnedCounts],
    /// Null where it cannot be estimated.
    hurst: Option<stats::HurstEstimate>,
    /// Number of requests with an offset on the device.
    with_offset: u64,
    /// Number of requests with a response time.
    with_response: u64,
}

/// One object of all quantities, in one line.
pub(crate) fn json(trace: &InspectedTrace) -> String {
    let stats = &trace.stats;
    let size_quantiles_bytes = SIZE_QUANTILES.map(|(name, q)| (name, stats.sizes.quantile(q).0)).into();
    operation::document::line(&TraceDocument {
        file: trace.file.clone(),
        trace_format: trace.format.name(),
        skipped: trace.skipped,
        ignored: trace.ignored,
        count: stats.count,
        bytes: stats.bytes as f64,
        first_arrival_s: stats.first.as_secs(),
        duration_s: (stats.last - stats.first).as_secs(),
        requests_per_s: stats.requests_per_sec,
        bytes_per_s: stats.bytes_per_sec,
        read_share: stats.read_share,
        read_share_bytes: stats.read_share_bytes,
        size_mean_bytes: stats.bytes as f64 / stats.count as f64,
        size_quantiles_bytes,
        sizes_exact: stats.sizes.exact,
        sizes_most_common: stats.sizes.most_common(COMMON_SIZES),
        gap_squared_variation: stats.interarrival_scv,
        at_scales: &stats.binned_counts,
        hurst: stats.hurst.ok(),
        with_offset: stats.with_offset,
        with_response: stats.with_response,
    })
}
