//! Results of the tests of assumptions, as tables, as JSON, and as a file of groups.

use cli::terminal::{Align, TextTable};
use operation::document::document;
use operation::text::time;
use plan::assumptions::{
    AssumptionReport, ComparedScale, ModelPrice, PairAssessment, RecordedStream, StreamAssessment,
    StreamChange, Untested,
};
use plan::cluster::group_cell;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use units::plural;

/// Results with their settings.
pub(crate) struct AssumptionsView<'a> {
    pub(crate) streams: &'a [RecordedStream],
    pub(crate) report: &'a AssumptionReport,
    /// Empty where traces alone were tested.
    pub(crate) prices: &'a [ModelPrice],
}

/// Pairs and reasons in the table; the JSON has all.
const PAIRS_SHOWN: usize = 20;

impl AssumptionsView<'_> {
    fn name(&self, stream: usize) -> &str {
        &self.streams[stream].name
    }

    fn dependent(&self) -> Vec<&PairAssessment> {
        let mut pairs: Vec<&PairAssessment> =
            self.report.pairs.iter().filter(|pair| pair.is_dependent()).collect();
        let p_value = |pair: &PairAssessment| pair.outcome.as_ref().map_or(1.0, |found| found.p_value);
        pairs.sort_by(|a, b| p_value(a).total_cmp(&p_value(b)));
        pairs
    }
}

/// The tables for people.
pub(crate) fn text(view: &AssumptionsView) -> String {
    let mut text = independence(view);
    text.push('\n');
    text.push_str(&stationarity(view));
    if !view.prices.is_empty() {
        text.push('\n');
        text.push_str(&prices(view));
    }
    text
}

fn independence(view: &AssumptionsView) -> String {
    let compared = view.report.pairs.iter().filter(|pair| pair.outcome.is_ok()).count();
    let dependent = view.dependent();
    let mut text = format!(
        "Independence: {compared} of {} compared; busy together: {}.\n",
        plural(view.report.pairs.len(), "pair"),
        dependent.len()
    );
    if !dependent.is_empty() {
        text.push_str(&dependent_pairs(view, &dependent));
    }
    text.push_str(&by_chance(view));
    for (reason, pairs) in untested_pairs(view) {
        text.push_str(&format!("Not compared: {} ({reason})\n", few(&pairs)));
    }
    for group in &view.report.groups {
        let names: Vec<&str> = group.iter().map(|&member| view.name(member)).collect();
        text.push_str(&format!("Proposed group: {}\n", names.join(", ")));
    }
    text
}

fn dependent_pairs(view: &AssumptionsView, dependent: &[&PairAssessment]) -> String {
    let mut table = TextTable::new(&[
        ("pair", Align::Left),
        ("p-value", Align::Right),
        ("windows of", Align::Right),
        ("correlation", Align::Right),
        ("by chance", Align::Right),
        ("both busy", Align::Right),
    ]);
    for pair in dependent.iter().take(PAIRS_SHOWN) {
        let Ok(found) = &pair.outcome else { continue };
        let at = found.at_clearest();
        table.row(vec![
            format!("{}, {}", view.name(pair.a), view.name(pair.b)),
            p_value(found.p_value),
            time(at.window_s),
            format!("{:.3}", at.correlation),
            format!("{:.3}", at.correlation_by_chance),
            at.busy_together.map_or("-".to_owned(), |factor| format!("{factor:.1}x")),
        ]);
    }
    let mut text = table.answered_by(&["p-value", "correlation"]).render();
    if dependent.len() > PAIRS_SHOWN {
        text.push_str(&format!("and {} more (--json lists them)\n", dependent.len() - PAIRS_SHOWN));
    }
    text
}

/// Describes the correlation that chance alone explains, at the shortest and the longest windows.
fn by_chance(view: &AssumptionsView) -> String {
    let scales: Vec<&[ComparedScale]> = view
        .report
        .pairs
        .iter()
        .filter_map(|pair| pair.outcome.as_ref().ok().map(|found| &found.scales[..]))
        .collect();
    let (Some(shortest), Some(longest)) =
        (median_by_chance(&scales, 0), median_by_chance(&scales, usize::MAX))
    else {
        return String::new();
    };
    format!(
        "Windows of {} to {}; a typical pair correlates by chance up to {:.3} in the shortest, {:.3} in the longest.\n",
        time(shortest.window_s),
        time(longest.window_s),
        shortest.correlation_by_chance,
        longest.correlation_by_chance
    )
}

/// The scale with this index, or the last, of the pair with the median correlation by chance there.
fn median_by_chance(pairs: &[&[ComparedScale]], index: usize) -> Option<ComparedScale> {
    let mut scales: Vec<ComparedScale> =
        pairs.iter().filter_map(|scales| scales.get(index.min(scales.len() - 1)).copied()).collect();
    scales.sort_by(|a, b| a.correlation_by_chance.total_cmp(&b.correlation_by_chance));
    scales.get(scales.len() / 2).copied()
}

/// The pairs that were not compared, by reason.
fn untested_pairs(view: &AssumptionsView) -> BTreeMap<String, Vec<String>> {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in &view.report.pairs {
        if let Err(why) = pair.outcome {
            let names = format!("{} and {}", view.name(pair.a), view.name(pair.b));
            reasons.entry(reason(why)).or_default().push(names);
        }
    }
    reasons
}

/// One pair by name, more as a number.
fn few(pairs: &[String]) -> String {
    match pairs {
        [one] => one.clone(),
        [first, ..] => format!("{}, such as {first}", plural(pairs.len(), "pair")),
        [] => String::new(),
    }
}

/// Describes the reason for a missing test.
fn reason(why: Untested) -> String {
    match why {
        Untested::NoCommonClock => {
            "nothing says that the traces count from the same origin; --one-clock does".to_owned()
        }
        Untested::OwnOrigin => "a trace in a format whose instants count from its first request".to_owned(),
        Untested::OtherTimes => "recorded at other times".to_owned(),
        Untested::SameTrace => "the same trace twice".to_owned(),
        Untested::TooFewRequests { needed, .. } => format!("fewer than {needed} requests"),
        Untested::TooShort(needed) => format!("recorded for less than {}", time(needed)),
        Untested::LongMemory(block) => format!("parts of {} are still alike", time(block)),
    }
}

fn stationarity(view: &AssumptionsView) -> String {
    let streams = &view.report.streams;
    let is_changed = |outcome: &Result<StreamChange, Untested>| outcome.is_ok_and(|found| found.changed);
    let changed =
        streams.iter().filter(|stream| is_changed(&stream.work) || is_changed(&stream.bursts)).count();
    let untested = streams.iter().filter(|stream| stream.work.is_err() || stream.bursts.is_err()).count();
    let mut text = format!(
        "Stationarity: {} of {} changed within; {untested} not tested in full.\n",
        changed,
        plural(streams.len(), "trace")
    );
    let mut table = TextTable::new(&[
        ("workload", Align::Left),
        ("work", Align::Left),
        ("p-value", Align::Right),
        ("bursts", Align::Left),
        ("p-value", Align::Right),
    ]);
    for (stream, StreamAssessment { work, bursts }) in view.streams.iter().zip(streams) {
        let [work, bursts] = [work, bursts].map(change_cells);
        table.row([vec![stream.name.clone()], work, bursts].concat());
    }
    text.push_str(&table.answered_by(&["work", "bursts"]).render());
    text
}

fn change_cells(outcome: &Result<StreamChange, Untested>) -> Vec<String> {
    match outcome {
        Ok(found) if found.changed => {
            vec![format!("{:.2}x from {}", found.ratio, time(found.at.as_secs())), p_value(found.p_value)]
        }
        Ok(found) => vec!["steady".to_owned(), p_value(found.p_value)],
        Err(why) => vec![reason(*why), "-".to_owned()],
    }
}

fn p_value(p: f64) -> String {
    if p < 0.001 { format!("{p:.5}") } else { format!("{p:.3}") }
}

fn prices(view: &AssumptionsView) -> String {
    let mut table = TextTable::new(&[
        ("servers by", Align::Left),
        ("all independent", Align::Right),
        ("refused", Align::Right),
        ("with groups", Align::Right),
        ("refused", Align::Right),
        ("bounds in groups", Align::Right),
    ]);
    for price in view.prices {
        table.row(vec![
            price.model.name().to_owned(),
            price.servers_independent.to_string(),
            price.refused[0].to_string(),
            price.servers_grouped.to_string(),
            price.refused[1].to_string(),
            largest_factor(view, price),
        ]);
    }
    table.answered_by(&["with groups", "all independent"]).render()
}

/// By how much the bounds of members of groups grow at most, when all workloads share one server.
fn largest_factor(view: &AssumptionsView, price: &ModelPrice) -> String {
    let grouped = |workload: usize| view.report.groups.iter().any(|group| group.contains(&workload));
    let members = price.workloads.iter().filter(|of| grouped(of.workload) && of.independent_s.is_finite());
    let factors = members.map(|of| of.grouped_s / of.independent_s);
    factors.max_by(f64::total_cmp).map_or("-".to_owned(), |factor| format!("up to {factor:.2}x"))
}

/// The groups as the table that `--groups` reads.
pub(crate) fn groups_table(view: &AssumptionsView) -> String {
    let mut text = "workload,group\n".to_owned();
    for (number, group) in view.report.groups.iter().enumerate() {
        for &member in group {
            text.push_str(&format!("{},{}\n", group_cell(view.name(member)), number + 1));
        }
    }
    text
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AssumptionsDocument<'a> {
    one_clock: bool,
    false_discoveries: f64,
    recordings: Vec<RecordingDocument<'a>>,
    pairs: Vec<PairDocument<'a>>,
    groups: Vec<Vec<&'a str>>,
    traces: Vec<StreamDocument<'a>>,
    prices: Vec<PriceDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct RecordingDocument<'a> {
    from_s: f64,
    until_s: f64,
    traces: Vec<&'a str>,
}

#[derive(Serialize, JsonSchema)]
struct PairDocument<'a> {
    traces: [&'a str; 2],
    /// Null where it was compared.
    untested: Option<String>,
    dependent: Option<bool>,
    p_value: Option<f64>,
    clearest_window_s: Option<f64>,
    scales: &'a [ComparedScale],
}

#[derive(Serialize, JsonSchema)]
struct StreamDocument<'a> {
    name: &'a str,
    work: ChangeDocument,
    bursts: ChangeDocument,
}

#[derive(Default, Serialize, JsonSchema)]
struct ChangeDocument {
    /// Null where it was tested.
    untested: Option<String>,
    changed: Option<bool>,
    p_value: Option<f64>,
    at_s: Option<f64>,
    ratio: Option<f64>,
    block_s: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct PriceDocument<'a> {
    model: &'static str,
    servers_independent: usize,
    refused_independent: usize,
    servers_grouped: usize,
    refused_grouped: usize,
    bounds: Vec<BoundPriceDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct BoundPriceDocument<'a> {
    workload: &'a str,
    /// Null without a bound.
    independent_s: Option<f64>,
    grouped_s: Option<f64>,
}

/// Everything that was found, for machines.
pub(crate) fn json(view: &AssumptionsView) -> String {
    let report = view.report;
    let names = |members: &[usize]| members.iter().map(|&member| view.name(member)).collect::<Vec<_>>();
    let recordings = report.recordings.iter().map(|recording| RecordingDocument {
        from_s: recording.from.as_secs(),
        until_s: recording.until.as_secs(),
        traces: names(&recording.members),
    });
    let traces = view.streams.iter().zip(&report.streams).map(|(stream, found)| StreamDocument {
        name: &stream.name,
        work: change_document(&found.work),
        bursts: change_document(&found.bursts),
    });
    document(&AssumptionsDocument {
        one_clock: report.settings.one_clock,
        false_discoveries: report.settings.false_discoveries,
        recordings: recordings.collect(),
        pairs: report.pairs.iter().map(|pair| pair_document(view, pair)).collect(),
        groups: report.groups.iter().map(|group| names(group)).collect(),
        traces: traces.collect(),
        prices: view.prices.iter().map(|price| price_document(view, price)).collect(),
    })
}

fn pair_document<'a>(view: &'a AssumptionsView, pair: &'a PairAssessment) -> PairDocument<'a> {
    let found = pair.outcome.as_ref();
    PairDocument {
        traces: [view.name(pair.a), view.name(pair.b)],
        untested: found.err().map(|why| reason(*why)),
        dependent: found.ok().map(|found| found.dependent),
        p_value: found.ok().map(|found| found.p_value),
        clearest_window_s: found.ok().map(|found| found.at_clearest().window_s),
        scales: found.map_or(&[], |found| &found.scales),
    }
}

fn change_document(outcome: &Result<StreamChange, Untested>) -> ChangeDocument {
    match outcome {
        Err(why) => ChangeDocument { untested: Some(reason(*why)), ..ChangeDocument::default() },
        Ok(found) => ChangeDocument {
            untested: None,
            changed: Some(found.changed),
            p_value: Some(found.p_value),
            at_s: Some(found.at.as_secs()),
            ratio: finite(found.ratio),
            block_s: Some(found.block_s),
        },
    }
}

fn price_document<'a>(view: &'a AssumptionsView, price: &ModelPrice) -> PriceDocument<'a> {
    let bounds = price.workloads.iter().map(|of| BoundPriceDocument {
        workload: view.name(of.workload),
        independent_s: finite(of.independent_s),
        grouped_s: finite(of.grouped_s),
    });
    PriceDocument {
        model: price.model.name(),
        servers_independent: price.servers_independent,
        refused_independent: price.refused[0],
        servers_grouped: price.servers_grouped,
        refused_grouped: price.refused[1],
        bounds: bounds.collect(),
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
