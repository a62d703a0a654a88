//! Measured latencies beside those that the arrivals alone would have caused, and what variance is worth.

use cli::terminal::TextTable;
use measure::observation::{
    ClientLoop, IdealComparison, IdealServer, ServerObservation, TrafficMoments, VarianceView,
};
use operation::text::{percent, time};
use sim::ideal::LatencyDistribution;
use units::{Nanos, Percentile, plural};

/// The percentiles of the tables; the last one is the maximum.
pub(super) const COLUMNS: [(&str, f64); 5] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9), ("max", 100.0)];

/// A percentile in seconds, or the mean without one.
pub(super) fn seconds_at(latencies: &LatencyDistribution, percent: Option<f64>) -> f64 {
    match percent.and_then(Percentile::new) {
        Some(percentile) => latencies.percentile(percentile).as_secs(),
        None => latencies.mean().0,
    }
}

/// How many times the ideal of a server the measured percentile is.
pub(super) fn factor(ideal: &IdealComparison, server: usize, percent: f64) -> f64 {
    Percentile::new(percent).map_or(f64::NAN, |percentile| ideal.factor(server, percentile))
}

/// The CPUs of this machine that this process may use.
pub(super) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The tables and notes for people, 80 columns wide; nothing without requests.
pub(super) fn text(observation: &ServerObservation) -> String {
    let Some(ideal) = &observation.ideal else { return String::new() };
    let mut text = format!("\n{}", ideal_table(ideal).render());
    for note in notes(ideal) {
        text += &wrapped(&note);
    }
    text += &format!("\n{}", wrapped(&variance_note(&ideal.moments, observation.variance.as_ref())));
    if let Some(view) = &observation.variance {
        text += &cut_table(view).render();
    }
    text
}

/// The rows of latencies and factors.
pub(crate) fn ideal_rows(ideal: &IdealComparison) -> Vec<Vec<String>> {
    let row = |name: &str, latencies: &LatencyDistribution| {
        let times = COLUMNS.map(|(_, percent)| time(seconds_at(latencies, Some(percent))));
        std::iter::once(name.to_owned()).chain(times).collect::<Vec<String>>()
    };
    let mut rows = vec![row("measured", &ideal.measured)];
    for (server, latencies) in IdealServer::ALL.iter().zip(&ideal.ideal) {
        rows.push(row(server.name(), latencies));
    }
    let gap = |(_, percent)| {
        let [measured, ideal] = [&ideal.measured, &ideal.ideal[0]].map(|one| seconds_at(one, Some(percent)));
        if measured < ideal { format!("-{}", time(ideal - measured)) } else { time(measured - ideal) }
    };
    rows.push(std::iter::once("gap to the first".to_owned()).chain(COLUMNS.map(gap)).collect());
    for (server, name) in
        ["factor over the first", "factor over the second", "factor over the third"].iter().enumerate()
    {
        let factors = COLUMNS.map(|(_, percent)| format!("{:.2}", factor(ideal, server, percent)));
        rows.push(std::iter::once((*name).to_owned()).chain(factors).collect());
    }
    rows
}

/// The headings of [`ideal_rows`].
pub(crate) fn ideal_headings() -> Vec<&'static str> {
    std::iter::once("ideal of T6-T1").chain(COLUMNS.map(|(name, _)| name)).collect()
}

fn ideal_table(ideal: &IdealComparison) -> TextTable {
    TextTable::of_rows(&ideal_headings(), 1, ideal_rows(ideal)).answered_by(&["p99", "p50", "p99.9"])
}

/// What the ideal rests on, in sentences.
pub(crate) fn notes(ideal: &IdealComparison) -> Vec<String> {
    let mut notes = vec![workers_note(ideal), service_note(ideal)];
    if ideal.utilisation >= 1.0 {
        notes.push(
            "That is more than the workers can do: the ideal latencies grow for as long as it lasts, and are those of \
             this observation only."
                .to_owned(),
        );
    }
    notes.push(clients_note(ideal));
    if (ideal.measured.count() as u64) < ideal.requests_seen {
        notes.push(format!(
            "Of {}, {} are in this table: those of whole seconds, evenly spread, without the first tenth of each.",
            plural(ideal.requests_seen, "request"),
            ideal.measured.count()
        ));
    }
    notes
}

fn workers_note(ideal: &IdealComparison) -> String {
    let workers = ideal.workers.get();
    let threads = ideal.threads;
    let cpus = cpus();
    let given = if workers == threads {
        format!("{} answered", plural(threads, "thread"))
    } else {
        format!("{} by --workers, {} answered", plural(workers, "worker"), plural(threads, "thread"))
    };
    // What arrives may be more than they can do, but nothing is busy for more than all of the time.
    let busy = if ideal.utilisation <= 1.0 {
        format!("busy for {} of the time", percent(ideal.utilisation))
    } else {
        format!("asked for {:.1} times what they can do meanwhile", ideal.utilisation)
    };
    let mut note = format!("{given}, {busy}, on a machine of {}.", plural(cpus, "CPU"));
    if workers > cpus {
        note += &format!(
            " Workers that need a CPU all the time cannot be more than there are: --workers {cpus} has their ideal."
        );
    }
    note
}

fn service_note(ideal: &IdealComparison) -> String {
    let service = &ideal.service;
    if let Some(given) = service.given {
        return format!("Service takes {given} by --mean-service; measured times are scaled to it.");
    }
    let stack = Nanos(service.stack);
    let between = match service.between_answers {
        Some(between) => format!(
            "; answers for which a request was waiting were {} apart ({})",
            time(between / 1e9),
            plural(service.waiting, "time")
        ),
        None => String::new(),
    };
    let [least, most] = [0, 1].map(|end| time(seconds_at(&ideal.ideal_range[end], Some(99.0))));
    format!(
        "Service is the time in which a worker was busy with a request: {} on average, half of them at most {}{between}. \
         The network stack adds {stack}. With service times in this range, the p99 of the first row is {least} to {most}; --mean-service TIME \
         sets the mean that was measured at saturation.",
        time(service.busy_mean / 1e9),
        time(service.busy_median / 1e9),
    )
}

/// What the clients are, and what the ideal assumes of them.
fn clients_note(ideal: &IdealComparison) -> String {
    let clients = &ideal.clients;
    let connections = plural(clients.connections, "connection");
    let overlapping = plural(clients.overlapping, "request");
    match clients.verdict() {
        ClientLoop::Closed => format!(
            "{} a closed loop: on a connection the next request follows the answer to the one before, and \
             {overlapping} on {connections} came before it, where {:.0} would have if they did not wait. Arrivals follow the server's own \
             latency: a faster server would be asked sooner, and waits that a slow one causes are not in its arrivals. The \
             ideal is that of these arrivals, not of these clients.",
            clients_with(clients.closed_share),
            clients.overlapping_expected,
        ),
        ClientLoop::Open => format!(
            "{} an open loop: requests on {connections} come whenever they come, not after the answer to the one before. \
             The ideal is that of these arrivals.",
            clients_with(clients.open_loop_share),
        ),
        ClientLoop::Unknown => format!(
            "Whether the {connections} wait for answers before they send more cannot be told: requests of clients that do \
             are {}, of clients that do not {}. The ideal assumes that these arrivals would come from a faster server, too.",
            percent(clients.closed_share),
            percent(clients.open_loop_share),
        ),
    }
}

/// The clients that a verdict is about.
fn clients_with(share: f64) -> String {
    if share > 0.9995 {
        return "The clients are".to_owned();
    }
    format!("Clients with {} of the requests are", percent(share))
}

/// What varies, and what waits.
pub(crate) fn variance_note(moments: &TrafficMoments, view: Option<&VarianceView>) -> String {
    let varies = format!(
        "C2 of gaps between arrivals {:.2} (at each worker {:.2}), of service {:.2}. Mean wait measured {}",
        moments.gaps_scv,
        moments.worker_gaps_scv,
        moments.service_scv(),
        time(moments.measured_wait / 1e9)
    );
    match view {
        Some(view) => format!(
            "{varies}; by Pollaczek-Khinchine {} for a worker that is busy for {}, by Kingman with these gaps {}.",
            time(view.wait / 1e9),
            percent(view.queue.utilisation()),
            time(view.wait_with_gaps / 1e9),
        ),
        None => format!("{varies}; the workers have no steady state that a formula could be about."),
    }
}

/// The headings of [`cut_rows`].
pub(crate) const CUT_HEADINGS: [&str; 4] =
    ["variance of service", "mean latency", "change", "as good as now if the mean rises by"];

/// What a cut of the variance is worth, by Eq. 3 of Gandhi and Suresh.
pub(crate) fn cut_rows(view: &VarianceView) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["as it is".to_owned(), time(view.latency / 1e9), String::new(), String::new()]];
    rows.extend(view.cuts.iter().map(|cut| {
        vec![
            format!("{:.0}% less", cut.cut * 100.0),
            time(cut.latency / 1e9),
            percent(cut.latency / view.latency - 1.0),
            percent(cut.mean_rise),
        ]
    }));
    rows
}

fn cut_table(view: &VarianceView) -> TextTable {
    TextTable::of_rows(&CUT_HEADINGS, 1, cut_rows(view)).answered_by(&["mean latency", "change"])
}

/// Text in lines of 80 columns.
pub(super) fn wrapped(text: &str) -> String {
    wrapped_at(text, 80).join("\n") + "\n"
}

/// Text in lines of so many columns, unless a word is longer.
pub(super) fn wrapped_at(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
