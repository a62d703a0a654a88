//! A running observation as a page that fits a terminal, and as one line where there is none.

use crate::observe::ideal::wrapped_at;
use cli::terminal::TextTable;
use machine::terminal::TerminalSize;
use measure::observation::LiveView;
use observe::{JoinCounts, LatencyProfile, RequestStatistics, STAGE_NAMES, STAGES, StageProfile};
use operation::text::percent;
use std::time::Duration;
use units::{Seconds, plural};

/// What the page says besides the numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LiveFrame {
    /// What is observed, such as `port 11211`.
    pub(crate) subject: String,
    /// Which part of the connections is observed, if not all are.
    pub(crate) share: Option<String>,
    /// How much of one CPU this process took in the last second, as a fraction; `None` at the beginning.
    pub(crate) cpu_share: Option<f64>,
}

/// How much of the stages is told; from the widest to the narrowest.
const STAGE_FORMS: [StageForm; 5] = [
    StageForm { has_run: true, has_p50: true, has_mean: true },
    StageForm { has_run: true, has_p50: false, has_mean: true },
    StageForm { has_run: false, has_p50: true, has_mean: true },
    StageForm { has_run: false, has_p50: false, has_mean: true },
    StageForm { has_run: false, has_p50: false, has_mean: false },
];

/// Which columns a table of stages has.
#[derive(Debug, Clone, Copy)]
struct StageForm {
    /// Those of the whole run beside those of the last seconds.
    has_run: bool,
    /// Whether the median is there.
    has_p50: bool,
    /// Whether the mean is there.
    has_mean: bool,
}

/// The page: no line is wider and there are no more lines than the terminal has.
pub(crate) fn page(frame: &LiveFrame, view: &LiveView<'_>, size: TerminalSize) -> Vec<String> {
    let mut lines = vec![head(frame, view)];
    lines.extend(frame.share.iter().flat_map(|share| wrapped_at(share, size.columns)));
    lines.push(String::new());
    lines.extend(first_that_fits(size.columns, (0..3).map(|left_out| latencies(view, left_out))));
    lines.push(String::new());
    lines.extend(first_that_fits(size.columns, STAGE_FORMS.into_iter().map(|form| stages(view, form))));
    lines.push(String::new());
    let last = doubts(view).into_iter().chain(frame.cpu_share.map(|share| cost(view, share)));
    lines.extend(last.flat_map(|line| wrapped_at(&line, size.columns)));
    if lines.len() > size.rows {
        lines.retain(|line| !line.is_empty());
    }
    lines.truncate(size.rows);
    lines.into_iter().map(|line| cut(&line, size.columns)).collect()
}

/// One line for the last second, where there is no terminal.
pub(crate) fn line(view: &LiveView<'_>) -> String {
    let latency = view.recent.from_stack();
    let mut line = format!(
        "{}  last {}s: {}  p50 {}  p99 {}  p99.9 {}  unjoined {}  lost {}",
        clock(view.progress.elapsed),
        view.recent_seconds,
        rate(view.recent, view.recent_seconds as f64),
        nanoseconds(latency.p50),
        nanoseconds(latency.p99),
        nanoseconds(latency.p999),
        unjoined(view.progress.counts),
        view.progress.lost_events,
    );
    if view.progress.skipped_runs > 0 {
        line += &format!("  skipped {}", view.progress.skipped_runs);
    }
    line
}

fn head(frame: &LiveFrame, view: &LiveView<'_>) -> String {
    let requests = plural(view.progress.statistics.count(), "request");
    let elapsed = clock(view.progress.elapsed);
    format!("{}  {elapsed}  {requests}  Ctrl-C ends it with the whole page", frame.subject)
}

/// Hours, minutes and seconds.
fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn rate(statistics: &RequestStatistics, seconds: f64) -> String {
    let per_second = if seconds > 0.0 { statistics.count() as f64 / seconds } else { 0.0 };
    format!("{per_second:.1}/s")
}

/// T6 − T1 of the last seconds and of the run, without so many of the least important columns.
fn latencies(view: &LiveView<'_>, left_out: usize) -> String {
    let seconds = view.progress.elapsed.as_secs_f64();
    let recent_seconds = view.recent_seconds as f64;
    let rows = [
        (format!("last {}s", view.recent_seconds), view.recent, recent_seconds),
        ("whole run".to_owned(), view.progress.statistics, seconds),
    ];
    let mut headings = vec!["T6-T1", "rate", "p50", "p99", "p99.9", "mean", "max"];
    headings.truncate(headings.len() - left_out);
    let row = |(name, statistics, seconds): (String, &RequestStatistics, f64)| {
        let LatencyProfile { mean, p50, p99, p999, max, .. } = statistics.from_stack();
        let times = [p50, p99, p999].map(nanoseconds);
        let mut cells = vec![name, rate(statistics, seconds)];
        cells.extend(times.into_iter().chain([time(mean / 1e9), nanoseconds(max)]));
        cells.truncate(headings.len());
        cells
    };
    TextTable::of_rows(&headings, 1, rows.map(row)).answered_by(&["p99", "rate", "p50"]).render()
}

/// A row per stage, in the order in which a request passes them.
fn stages(view: &LiveView<'_>, form: StageForm) -> String {
    let mut headings = vec!["stage"];
    let mut parts: Vec<(&str, Vec<StageProfile>)> = vec![("mean", view.recent.stages())];
    if form.has_run {
        parts.push(("run: mean", view.progress.statistics.stages()));
    }
    for (mean, _) in &parts {
        headings.extend(form.has_mean.then_some(*mean));
        headings.extend(form.has_p50.then_some("p50"));
        headings.extend(["p99", "of var"]);
    }
    let rows = (0..STAGES).map(|stage| {
        let mut cells = vec![STAGE_NAMES[stage].to_owned()];
        for (_, profiles) in &parts {
            let StageProfile { times, share_of_variance, .. } = profiles[stage];
            cells.extend(form.has_mean.then(|| time(times.mean / 1e9)));
            cells.extend(form.has_p50.then(|| nanoseconds(times.p50)));
            cells.extend([nanoseconds(times.p99), percent(share_of_variance)]);
        }
        cells
    });
    TextTable::of_rows(&headings, 1, rows).answered_by(&["p99", "of var"]).render()
}

/// What joining events takes, and what the programs in the kernel took while that was measured.
fn cost(view: &LiveView<'_>, joining: f64) -> String {
    let joining = format!("joining events takes {} of one CPU", percent(joining));
    match view.progress.cost {
        Some(cost) => {
            let kernel = cost.run_ns as f64 / 1e9 / cost.duration.as_secs_f64();
            format!("{joining}; programs in the kernel took {}", percent(kernel))
        }
        None => format!("{joining}; programs in the kernel are not in this"),
    }
}

fn doubts(view: &LiveView<'_>) -> Vec<String> {
    let JoinCounts { unanswered, unrequested, unseen_arrivals, discarded, unseen_reads, .. } =
        view.progress.counts;
    let mut lines = vec![format!("lost events: {} of {}", view.progress.lost_events, view.progress.events)];
    if view.progress.skipped_runs > 0 {
        lines.push(format!("skipped runs of BPF programs: {}", view.progress.skipped_runs));
    }
    lines.push(format!(
        "not joined: {} ({unanswered} unanswered, {unrequested} answers to requests not seen, \
         {unseen_arrivals} arrivals unseen, {discarded} given up)",
        unjoined(view.progress.counts)
    ));
    if unseen_reads > 0 {
        lines.push(format!("taken by calls that are not seen: {unseen_reads}"));
    }
    lines
}

fn unjoined(counts: JoinCounts) -> u64 {
    counts.unanswered + counts.unrequested + counts.unseen_arrivals + counts.discarded + counts.unseen_reads
}

/// The lines of the first text whose lines are at most so wide, or of the last.
fn first_that_fits(columns: usize, texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines = Vec::new();
    for text in texts {
        lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
        if lines.iter().all(|line| line.chars().count() <= columns) {
            break;
        }
    }
    lines
}

/// The beginning of a line, with an ellipsis where something is left out.
fn cut(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    let kept = line.chars().take(columns.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// Three significant digits are enough for numbers that change each second.
fn time(seconds: f64) -> String {
    let scale = if seconds > 0.0 { 10f64.powf(2.0 - seconds.log10().floor()) } else { 1.0 };
    Seconds((seconds * scale).round() / scale).to_string()
}

fn nanoseconds(count: u64) -> String {
    time(count as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::{CounterReport, ObservationProgress, ObservedRequest, POINTS, RequestQuality};

    fn statistics(requests: u64) -> RequestStatistics {
        let mut statistics = RequestStatistics::default();
        for n in 0..requests {
            let mut points = [1_000; POINTS];
            for (at, point) in points.iter_mut().enumerate().skip(1) {
                *point += at as u64 * 1_234_567 * (n % 97 + 1);
            }
            statistics.add(&ObservedRequest {
                points,
                first_wire: points[0],
                last_awaited_write: points[6],
                peer: ([10, 0, 0, 1], 5).into(),
                port: 80,
                udp: false,
                request_bytes: 20,
                answer_bytes: 100,
                reader: 1,
                writer: 1,
                quality: RequestQuality::default(),
                held_up: observe::HeldUpTime::default(),
            });
        }
        statistics
    }

    fn with_view<T>(requests: u64, look: impl FnOnce(&LiveView<'_>) -> T) -> T {
        let recent = statistics(requests / 3);
        let statistics = statistics(requests);
        let counts = JoinCounts { unanswered: 1_234_567, unrequested: 89_012, ..JoinCounts::default() };
        let elapsed = Duration::from_secs(360_000);
        let progress = ObservationProgress {
            statistics: &statistics,
            counts,
            events: 123_456_789_012,
            lost_events: 3_456_789,
            skipped_runs: 5_678,
            readers: 4,
            elapsed,
            cost: None,
            counters: &CounterReport::default(),
        };
        look(&LiveView { progress, recent: &recent, recent_seconds: 10, process_cpu_ns: 5 })
    }

    fn frame() -> LiveFrame {
        let share = Some("about 50% of TCP connections observed; rates are of these".to_owned());
        LiveFrame { subject: "port 11211".to_owned(), share, cpu_share: Some(0.0312) }
    }

    #[test]
    fn it_fits_whatever_the_terminal() {
        for requests in [0, 1, 1_000] {
            with_view(requests, |view| {
                for columns in [1, 2, 20, 40, 60, 80, 100, 200] {
                    for rows in [1, 5, 16, 24, 60] {
                        let page = page(&frame(), view, TerminalSize { columns, rows });
                        assert!(page.len() <= rows, "{page:#?}");
                        for line in &page {
                            assert!(line.chars().count() <= columns, "{columns}: {line}");
                        }
                    }
                }
            });
        }
    }

    #[test]
    fn the_usual_terminal_has_all_that_is_asked_for() {
        with_view(1_000, |view| {
            let text = page(&frame(), view, TerminalSize::USUAL).join("\n");
            for part in [
                "last 10s",
                "whole run",
                "p99.9",
                "of var",
                "run: mean",
                "transmit",
                "not joined: 1323579",
                "lost events: 3456789",
                "skipped runs of BPF programs: 5678",
                "about 50% of TCP connections",
                "joining events takes 3.12% of one CPU; programs in the kernel",
            ] {
                assert!(text.contains(part), "{part}:\n{text}");
            }
            assert!(text.replace('\n', " ").contains("0 arrivals unseen, 0 given up)"), "{text}");
            let narrow = page(&frame(), view, TerminalSize { columns: 40, rows: 24 }).join("\n");
            for part in ["p99", "of var", "receive-queue", "lost events"] {
                assert!(narrow.contains(part), "{part}:\n{narrow}");
            }
            assert!(
                !line(view).contains('\n') && line(view).starts_with("100:00:00  last 10s: "),
                "{}",
                line(view)
            );
            assert!(line(view).ends_with("lost 3456789  skipped 5678"), "{}", line(view));
            let progress = ObservationProgress { skipped_runs: 0, ..view.progress };
            let none = LiveView { progress, ..*view };
            let said = [line(&none), page(&frame(), &none, TerminalSize::USUAL).join("\n")];
            assert!(said.iter().all(|text| !text.contains("skipped")), "{said:?}");
        });
    }
}
