//! What was seen of block devices: who waited how long for which device, behind whom, and how long that took.

use crate::observe::doubts::skipped_words;
use cli::terminal::TextTable;
use observe::{BlockReport, BlockRequester, BlockTimes, TimeBehind, WaitSums};
use operation::document::document;
use operation::text::time;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use units::plural;

/// Rows of the table for people; JSON has all.
const ROWS_MAX: usize = 20;

/// Where version 2 of control groups may be.
const CGROUP_ROOTS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

#[derive(Serialize, JsonSchema)]
pub(crate) struct BlockDocument {
    observed_s: f64,
    requesters: Vec<RequesterFields>,
    lost_requests: u64,
    /// Runs of the BPF programs that the kernel skipped: up to as many events are missing.
    skipped_runs: u64,
}

#[derive(Serialize, JsonSchema)]
struct RequesterFields {
    device: String,
    operation: String,
    /// The number of the process.
    process: u32,
    /// The name of the thread that handed the requests in, which is not always that of its process.
    name: String,
    cgroup: Option<String>,
    cgroup_id: u64,
    requests: u64,
    failed: u64,
    bytes: u64,
    queue: TimeFields,
    at_device: TimeFields,
    /// What the time in queues and at the device went to, over all requests.
    waits: WaitFields,
    /// The same over the slowest hundredth of them.
    slowest: WaitFields,
}

#[derive(Serialize, JsonSchema)]
struct WaitFields {
    requests: u64,
    /// The requests' own parts of the device.
    own_s: f64,
    /// In queues while no request was at the device.
    device_idle_s: f64,
    /// While it is not known which requests were at the device.
    not_seen_s: f64,
    behind: Vec<BehindFields>,
}

#[derive(Serialize, JsonSchema)]
struct BehindFields {
    operation: String,
    /// The number of the process.
    process: u32,
    name: String,
    cgroup_id: u64,
    /// In queues while the device was theirs.
    queue_s: f64,
    /// At the device, and their part of it.
    at_device_s: f64,
}

#[derive(Serialize, JsonSchema)]
struct TimeFields {
    sum_s: f64,
    mean_s: f64,
    p50_s: f64,
    p99_s: f64,
    p99_9_s: f64,
    max_s: f64,
}

/// The observation as one object.
pub(crate) fn json(report: &BlockReport) -> String {
    let all = report.seen.statistics.by_device_time();
    document(&BlockDocument {
        observed_s: report.duration.as_secs_f64(),
        requesters: all.into_iter().map(|(who, times)| requester(report, who, times)).collect(),
        lost_requests: report.lost,
        skipped_runs: report.skipped_runs,
    })
}

fn requester(report: &BlockReport, who: &BlockRequester, times: &BlockTimes) -> RequesterFields {
    let those_at_device = report.seen.contention.requesters(who.device);
    RequesterFields {
        device: who.device.to_string(),
        operation: who.operation.to_string(),
        process: who.process,
        name: who.name.clone(),
        cgroup: cgroup(who.cgroup),
        cgroup_id: who.cgroup,
        requests: times.requests,
        failed: times.failed,
        bytes: times.bytes,
        queue: time_fields(times.queue_ns, times.requests, |quantile| times.queue_at(quantile)),
        at_device: time_fields(times.device_ns, times.requests, |quantile| times.device_at(quantile)),
        waits: wait_fields(those_at_device, times.waits.all()),
        slowest: wait_fields(those_at_device, &times.waits.slowest()),
    }
}

fn wait_fields(those_at_device: &[BlockRequester], sums: &WaitSums) -> WaitFields {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let behind = |(place, time): (&usize, &TimeBehind)| {
        let whom = &those_at_device[*place];
        BehindFields {
            operation: whom.operation.to_string(),
            process: whom.process,
            name: whom.name.clone(),
            cgroup_id: whom.cgroup,
            queue_s: seconds(time.queued),
            at_device_s: seconds(time.shared),
        }
    };
    WaitFields {
        requests: sums.requests,
        own_s: seconds(sums.own),
        device_idle_s: seconds(sums.idle),
        not_seen_s: seconds(sums.unseen),
        behind: sums.behind.iter().map(behind).collect(),
    }
}

fn time_fields(sum: u64, requests: u64, at: impl Fn(f64) -> u64) -> TimeFields {
    let seconds = |quantile| at(quantile) as f64 / 1e9;
    let sum_s = sum as f64 / 1e9;
    TimeFields {
        sum_s,
        mean_s: sum_s / requests.max(1) as f64,
        p50_s: seconds(0.5),
        p99_s: seconds(0.99),
        p99_9_s: seconds(0.999),
        max_s: seconds(1.0),
    }
}

/// The table for people, those first that had a device for the longest time.
pub(crate) fn text(report: &BlockReport) -> String {
    let all = report.seen.statistics.by_device_time();
    let requests: u64 = all.iter().map(|(_, times)| times.requests).sum();
    let counted = plural(requests, "request");
    let mut text = format!("block devices: {counted} in {}\n", time(report.duration.as_secs_f64()));
    if !all.is_empty() {
        text += &format!("\n{}", table(&all));
    }
    if all.len() > ROWS_MAX {
        text += &format!("and {} more, which --json has\n", all.len() - ROWS_MAX);
    }
    let waits = waits(report, &all);
    if !waits.is_empty() {
        text += &format!("\ntime behind whom, mean of a request\n\n{}", waits_table(waits));
    }
    if report.lost > 0 {
        text += &format!("{} could not be reported\n", plural(report.lost, "request"));
    }
    if report.skipped_runs > 0 {
        text += &format!("{}\n", skipped_words(report.skipped_runs));
    }
    text
}

fn table(all: &[(&BlockRequester, &BlockTimes)]) -> String {
    let row = |(who, times): &(&BlockRequester, &BlockTimes)| {
        let mut cells = vec![
            who.device.to_string(),
            who.operation.to_string(),
            format!("{} ({})", who.name, who.process),
        ];
        cells.push(times.requests.to_string());
        cells.extend([0.5, 0.99].map(|quantile| nanoseconds(times.queue_at(quantile))));
        cells.extend([0.5, 0.99, 1.0].map(|quantile| nanoseconds(times.device_at(quantile))));
        cells
    };
    let headings =
        ["device", "op", "thread (process)", "requests", "queue p50", "p99", "device p50", "p99", "max"];
    TextTable::of_rows(&headings, 3, all.iter().take(ROWS_MAX).map(row))
        .answered_by(&["thread (process)", "p99", "requests"])
        .render()
}

/// What requests of somebody waited for, with the sum over all of them.
struct WaitRow {
    sum: u64,
    cells: Vec<String>,
}

/// The largest waits of all requesters.
fn waits(report: &BlockReport, all: &[(&BlockRequester, &BlockTimes)]) -> Vec<WaitRow> {
    let mut rows: Vec<WaitRow> = all.iter().flat_map(|(who, times)| waits_of(report, who, times)).collect();
    rows.sort_by(|a, b| b.sum.cmp(&a.sum).then_with(|| a.cells.cmp(&b.cells)));
    rows.truncate(ROWS_MAX);
    rows
}

fn waits_of(report: &BlockReport, who: &BlockRequester, times: &BlockTimes) -> Vec<WaitRow> {
    let sums = times.waits.all();
    let slowest = times.waits.slowest();
    let row = |behind: String, sum: u64, of_slowest: u64| {
        let mut cells = vec![who.device.to_string(), sender(who), behind];
        cells.push(nanoseconds(sum / sums.requests.max(1)));
        cells.push(nanoseconds(of_slowest / slowest.requests.max(1)));
        cells.push(format!("{:.1}%", 100.0 * sum as f64 / sums.total().max(1) as f64));
        WaitRow { sum, cells }
    };
    let those_at_device = report.seen.contention.requesters(who.device);
    let behind = |(place, time): (&usize, &TimeBehind)| {
        let of_slowest = slowest.behind.get(place).map_or(0, TimeBehind::total);
        row(sender(&those_at_device[*place]), time.total(), of_slowest)
    };
    let mut rows: Vec<WaitRow> = sums.behind.iter().map(behind).collect();
    rows.push(row("its own part".to_owned(), sums.own, slowest.own));
    rows.push(row("nobody: device idle".to_owned(), sums.idle, slowest.idle));
    rows.push(row("not seen".to_owned(), sums.unseen, slowest.unseen));
    rows.retain(|row| row.sum > 0);
    rows
}

/// Who sends which operation.
fn sender(who: &BlockRequester) -> String {
    format!("{} by {} ({})", who.operation, who.name, who.process)
}

fn waits_table(rows: Vec<WaitRow>) -> String {
    let headings = ["device", "requests", "behind", "mean", "slowest 1%", "of their time"];
    TextTable::of_rows(&headings, 3, rows.into_iter().map(|row| row.cells))
        .answered_by(&["behind", "mean", "of their time"])
        .render()
}

fn nanoseconds(count: u64) -> String {
    time(count as f64 / 1e9)
}

/// The path of a control group, if it is still there.
fn cgroup(id: u64) -> Option<String> {
    CGROUP_ROOTS.iter().map(Path::new).find(|root| root.join("cgroup.procs").exists()).and_then(|root| {
        if fs::metadata(root).ok().map(|found| std::os::unix::fs::MetadataExt::ino(&found)) == Some(id) {
            return Some("/".to_owned());
        }
        let path = folder_with(root.to_owned(), id)?;
        Some(format!("/{}", path.strip_prefix(root).ok()?.display()))
    })
}

/// The folder below `root` with an inode.
fn folder_with(root: PathBuf, inode: u64) -> Option<PathBuf> {
    let mut left = vec![root];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.ino() == inode {
                    return Some(entry.path());
                }
                left.push(entry.path());
            }
        }
    }
    None
}
