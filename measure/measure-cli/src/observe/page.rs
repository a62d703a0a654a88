//! What was seen of a live server as a page: measured beside ideal, where the time went, what variance is worth.

use crate::observe::text::ObservedServer;
use crate::observe::{
    causes as observed_causes, cost as observed_cost, counters as observed_counters,
    doubts as observed_doubts, ideal as observed_ideal, text as observed,
};
use cli::page_table::table;
use cli::shares;
use measure::observation::{
    Finding, IdealComparison, IdealServer, ServerObservation, StagesNear, VarianceView,
};
use observe::{Cause, CauseReport, CounterReport, ProbeSettings, STAGE_NAMES, StageProfile};
use operation::text::{percent, time};
use plot::{Axis, Bars, Block, Chart, Distribution, KeyFigure, Page, Series, Unit};
use sim::ideal::LatencyDistribution;
use units::{Percentile, plural};

/// The page about an observation.
pub(crate) fn html(server: ObservedServer<'_>) -> String {
    let ObservedServer { asked, observation, joining_ns } = server;
    let statistics = &observation.report.statistics;
    let names: Vec<String> = asked.ports.iter().map(u16::to_string).collect();
    let mut page =
        Page::new(format!("Port {} observed", names.join(", "))).lead(answer(&observation.finding));
    page = page.section("", answer_blocks(asked, observation));
    if let Some(ideal) = &observation.ideal {
        page = page.section("", [key_figures(ideal)]);
    }
    let stages = statistics.stages();
    if statistics.count() > 0 {
        page = page
            .section(
                "What the tail is made of",
                cause_blocks(&observation.report.causes, &observation.report.counters),
            )
            .section("Where the time goes", near_blocks(&observation.near))
            .section("What varies", stage_blocks(&stages));
    }
    if let Some(ideal) = &observation.ideal {
        page = page.section("Measured and ideal", ideal_blocks(ideal));
    }
    if let Some(ideal) = &observation.ideal {
        let note = observed_ideal::variance_note(&ideal.moments, observation.variance.as_ref());
        page = page.section("What variance is worth", variance_blocks(note, observation.variance.as_ref()));
    }
    let counters = observed_counters::text(&observation.report.counters);
    if !counters.is_empty() {
        page = page.section("What counters of the kernel say", [Block::Preformatted(counters)]);
    }
    let doubts = observed_doubts::doubts(asked, &observation.report);
    let certainty =
        if doubts.is_empty() { "Nothing was guessed, unseen or lost.".to_owned() } else { doubts };
    let certainty = format!("{certainty}{}", observed_cost::cost_lines(&observation.report, joining_ns));
    let page = page.section("How sure this is", [Block::Preformatted(certainty)]);
    cli::page::document(page.footer(plural(statistics.count(), "request")))
}

/// The sentence, up to the command that it ends with.
fn answer(finding: &Finding) -> String {
    let sentence = finding.sentence_and_command().0;
    if sentence.starts_with("p99") {
        return sentence.to_owned();
    }
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The command to paste, what was not seen, and what was observed.
fn answer_blocks(asked: &ProbeSettings, observation: &ServerObservation) -> Vec<Block> {
    let command = observation.finding.sentence_and_command().1;
    // A paragraph, whose words wrap on a narrow screen.
    let command = command.map(|command| Block::paragraph(format!("`{command}`")));
    let mut blocks: Vec<Block> = command.into_iter().collect();
    let caveats = &observation.finding.caveats;
    blocks.extend(caveats.iter().map(|caveat| Block::paragraph(format!("Not seen: {}.", caveat.words))));
    blocks.push(Block::paragraph(lead(asked, observation)));
    blocks
}

fn lead(asked: &ProbeSettings, observation: &ServerObservation) -> String {
    let report = &observation.report;
    let mut seen = format!("{}, {} a second", observed::extent(report), observed::rate(report));
    let ports = observed::ports_words(asked).map(str::to_owned);
    for words in observed::share_words(asked).into_iter().chain(ports) {
        seen += &format!("; {words}");
    }
    seen.push('.');
    for line in observed_doubts::left_out(report).lines() {
        seen += &format!(" {line}.");
    }
    let Some(p99) = observation.ideal.as_ref().zip(Percentile::new(99.0)) else { return seen };
    let (ideal, p99) = p99;
    format!(
        "{seen} The measured p99 from the network stack (T1) to the device (T6) is {}; queueing alone makes it {} for \
         these arrivals with one queue and constant service, {} with the measured service, {} with a queue for each worker.",
        ideal.measured.percentile(p99),
        ideal.ideal[0].percentile(p99),
        ideal.ideal[1].percentile(p99),
        ideal.ideal[2].percentile(p99),
    )
}

fn key_figures(ideal: &IdealComparison) -> Block {
    let mut figures = Vec::new();
    for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)] {
        if let Some(percentile) = Percentile::new(percent) {
            let factor = ideal.factor(0, percentile);
            figures.push(KeyFigure::new(format!("{factor:.1}×"), format!("{name} ÷ ideal of one queue")));
        }
    }
    figures.push(KeyFigure::new(percent(ideal.utilisation.min(1.0)), "workers busy"));
    figures.into()
}

fn ideal_blocks(ideal: &IdealComparison) -> Vec<Block> {
    let lines = IdealServer::ALL.iter().zip(&ideal.ideal).map(|(server, line)| (server.name(), line));
    let lines = std::iter::once(("measured", &ideal.measured)).chain(lines);
    let lines = shares::without_duplicates(lines.map(|(name, line)| (name.to_owned(), ccdf(line))));
    let x = shares::latency_axis("latency T6 − T1", lines.iter().map(|(_, line)| line.as_slice()), None);
    let chart = Chart::new("", x, Axis::log("share of requests at least as long", Unit::Percent));
    let chart = chart.all(lines.into_iter().map(|(name, line)| Series::line(name, line)));
    let mut blocks = vec![
        Block::paragraph(
            "Between the ideals stand the variance of service and the split into queues; between the last \
             of them and what was measured stands everything that is not queueing: wake-ups, other processes, interrupts, \
             the order of service.",
        ),
        chart.note(shares::READING).into(),
        table(&observed_ideal::ideal_headings(), 1, observed_ideal::ideal_rows(ideal)).into(),
    ];
    blocks.extend(observed_ideal::notes(ideal).into_iter().map(Block::paragraph));
    blocks
}

/// At most a few hundred points of the share that takes longer, those of the tail exactly.
fn ccdf(latencies: &LatencyDistribution) -> Vec<(f64, f64)> {
    let seconds = latencies.values().iter().map(|latency| latency.as_secs());
    let points = Distribution::from_samples(seconds).ccdf();
    let count = points.len();
    let mut next_share = f64::INFINITY;
    let mut kept = Vec::new();
    for (place, (at, share)) in points.into_iter().enumerate() {
        if share <= next_share || place + 1 == count {
            kept.push((at, share));
            next_share = share * 0.97;
        }
    }
    kept
}

fn near_blocks(near: &[StagesNear]) -> Vec<Block> {
    if near.is_empty() {
        return vec![Block::paragraph("There are too few requests for percentiles.")];
    }
    let mut shares = Bars::stacked(
        "Share of the latency near a percentile",
        ("share of T6 − T0", Unit::Percent),
        STAGE_NAMES,
    );
    let mut headings = vec!["near", "T6 − T0", "requests"];
    headings.extend(STAGE_NAMES);
    let mut rows = Vec::new();
    for at in near {
        let sum: f64 = at.means.iter().sum();
        let parts = at.means.map(|mean| if sum > 0.0 { mean / sum } else { 0.0 });
        shares = shares.row(format!("{} {}", at.percentile, at.latency), parts);
        let mut row = vec![at.percentile.to_owned(), at.latency.to_string(), at.requests.to_string()];
        row.extend(at.means.map(|mean| time(mean / 1e9)));
        rows.push(row);
    }
    vec![
        Block::paragraph(
            "The requests whose latency is near a percentile, and the mean time that they spent in each stage. A part that \
             is long in the lower rows and short in the upper ones makes the tail.",
        ),
        shares
            .note(
                "A row is all of the latency near its percentile: what grows from row to row makes the tail.",
            )
            .into(),
        table(&headings, 1, rows).into(),
    ]
}

/// The causes that have a colour of their own in the chart; the rest are one.
const COLOURED_CAUSES: usize = 6;

fn cause_blocks(report: &CauseReport, counters: &CounterReport) -> Vec<Block> {
    if report.percentiles.is_empty() {
        return vec![Block::paragraph("There are too few requests for percentiles.")];
    }
    let shown = observed_causes::shown(report);
    let coloured = &shown[..shown.len().min(COLOURED_CAUSES)];
    let names = coloured.iter().map(|cause| cause.name()).chain(["all others"]);
    let title = "Share of the latency near a percentile, by cause";
    let mut bars = Bars::stacked(title, ("share of T6 − T0", Unit::Percent), names);
    for near in &report.percentiles {
        let parts: Vec<f64> = coloured.iter().map(|cause: &Cause| near.share(*cause)).collect();
        let others = (1.0 - parts.iter().sum::<f64>()).max(0.0);
        bars = bars.row(near.name, parts.into_iter().chain([others]));
    }
    vec![
        Block::paragraph(
            "What the time of the requests near a percentile was spent on, and what the percentile would be without \
             (w/o): a replay in which the time of one cause is taken out, with what it delayed. Times are means, and add \
             up to the latency.",
        ),
        bars.note("A row is all of the latency near its percentile, divided by what the time went to.")
            .into(),
        table(&observed_causes::HEADINGS, 1, observed_causes::rows(report)).into(),
        Block::Preformatted(observed_causes::notes(report, counters)),
    ]
}

fn stage_blocks(stages: &[StageProfile]) -> Vec<Block> {
    let mut ranked: Vec<&StageProfile> = stages.iter().collect();
    ranked.sort_by(|a, b| b.share_of_variance.total_cmp(&a.share_of_variance));
    let mut bars = Bars::grouped(
        "Share of each stage",
        ("share of T6 − T0", Unit::Percent),
        ["of the variance", "of the mean"],
    );
    for stage in ranked {
        bars = bars.row(stage.name, [stage.share_of_variance.max(0.0), stage.share_of_mean.max(0.0)]);
    }
    vec![
        Block::paragraph(format!(
            "Shares of the variance are Cov(X, T) ÷ Var(T) and add up to 1; a stage that is short when the others are long has \
             a negative one, drawn as none. Here {}.",
            observed::ranking(stages).trim_end()
        )),
        bars.note("Where the first bar is much longer than the second, the stage matters more for the tail than for the mean.")
            .into(),
        table(&observed::STAGE_HEADINGS, 1, observed::stage_rows(stages)).into(),
    ]
}

fn variance_blocks(note: String, view: Option<&VarianceView>) -> Vec<Block> {
    let mut blocks = vec![Block::paragraph(note)];
    if let Some(view) = view {
        blocks.push(Block::paragraph(
            "By the formula of Pollaczek and Khinchine (Gandhi and Suresh, Eq. 3), for a worker with its even share of \
             the requests: the mean latency when service varies less, and by how much the mean service time could rise \
             in exchange, until the mean latency is what it is now.",
        ));
        blocks.push(table(&observed_ideal::CUT_HEADINGS, 1, observed_ideal::cut_rows(view)).into());
    }
    blocks
}
