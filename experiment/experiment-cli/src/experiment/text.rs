//! Report of an experiment: verdict, evidence, and doubts.

use crate::experiment::knobs::undone_line;
use cli::from_to;
use cli::terminal::TextTable;
use experiment::{
    ExperimentEnd, ExperimentReport, ExperimentSettings, Knob, KnobComparison, KnobVerdict, PERCENTILES,
    PeriodResult, SocketTotals, StatisticShift,
};
use operation::document::document;
use operation::text::{percent, time};
use schemars::JsonSchema;
use serde::Serialize;
use units::plural;

/// Spread of arrival rates between periods above which the load is called unsteady.
const SPREAD_MAX: f64 = 0.25;
/// Minimum number of requests beyond the percentile in a period; with fewer, single requests decide it.
const BEYOND_MIN: f64 = 10.0;

/// A finished experiment.
pub(crate) struct TriedKnob<'a> {
    pub(crate) knob: &'static Knob,
    pub(crate) values: &'a [Option<String>],
    pub(crate) settings: &'a ExperimentSettings,
    pub(crate) report: &'a ExperimentReport,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct TriedDocument<'a> {
    knob: &'static str,
    ports: Vec<u16>,
    percentile: f64,
    confidence: f64,
    period_s: f64,
    guard_s: f64,
    seed: u64,
    rounds: usize,
    void_rounds: u64,
    took_s: f64,
    ended: String,
    /// Processes of --pid that have ended.
    ended_processes: Vec<u32>,
    values: Vec<ComparedValue>,
    /// Rounds of periods, that with the knob off first.
    periods: &'a [Vec<PeriodResult>],
    /// Results of an incomplete last round in the same order; null for incomplete periods.
    unfinished_round: &'a [Option<PeriodResult>],
    arrivals_vary_by: Option<f64>,
    late_requests: u64,
    unanswered_requests: u64,
    lost_events: u64,
    /// Number of periods without energy.
    periods_without_energy: u64,
    /// Reason why they have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy_unknown: Option<String>,
    different_from_asked: Vec<String>,
    not_undone: Vec<String>,
    /// Changes of open sockets, if the knob is an option of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    sockets: Option<ChangedSockets>,
}

/// Changes of open sockets, with the time that they took.
#[derive(Serialize, JsonSchema)]
struct ChangedSockets {
    #[serde(flatten)]
    totals: SocketTotals,
    /// Mean time of a pass.
    pass_s: Option<f64>,
}

/// A value of the knob, compared with the knob off.
#[derive(Serialize, JsonSchema)]
struct ComparedValue {
    value: String,
    #[serde(flatten)]
    comparison: KnobComparison,
}

/// Formats a knob with its value as a user writes it.
pub(crate) fn label(knob: &Knob, value: Option<&str>) -> String {
    match value.or(knob.default) {
        Some(value) if !value.is_empty() => format!("{}={value}", knob.name),
        _ => knob.name.to_owned(),
    }
}

/// Formats the ports as a list.
pub(crate) fn ports(settings: &ExperimentSettings) -> String {
    settings.ports.iter().map(u16::to_string).collect::<Vec<String>>().join(",")
}

/// Formats the difference relative to the value without the knob, with its sign.
fn relative(shift: &StatisticShift) -> String {
    shift.relative.map_or("-".to_owned(), signed_percent)
}

/// Formats a share with its sign, in percent.
pub(crate) fn signed_percent(share: f64) -> String {
    format!("{}{}", if share > 0.0 { "+" } else { "" }, percent(share))
}

fn verdict(verdict: KnobVerdict) -> &'static str {
    match verdict {
        KnobVerdict::Helps => "helps",
        KnobVerdict::Harms => "harms",
        KnobVerdict::NotShown => "no difference shown",
    }
}

impl TriedKnob<'_> {
    /// Describes the end of the experiment.
    fn ended(&self) -> String {
        let ended = &self.report.ended_processes;
        let reason = match self.report.end {
            ExperimentEnd::Decided => "it is decided",
            ExperimentEnd::RoundsUsed => "--max-periods reached",
            ExperimentEnd::Stopped => "it was stopped",
            ExperimentEnd::ServerEnded if (1..self.settings.processes.len()).contains(&ended.len()) => {
                let ids: Vec<String> = ended.iter().map(|process| process.id.to_string()).collect();
                return match &ids[..] {
                    [id] => format!("process {id} of the server ended"),
                    _ => format!("processes {} of the server ended", ids.join(", ")),
                };
            }
            ExperimentEnd::ServerEnded => "the server ended",
            ExperimentEnd::LoadEnded => "the load ended",
            ExperimentEnd::ChangedByOthers => "another program changed what it sets",
            ExperimentEnd::UndoFailed => "undoing it failed after a period",
            ExperimentEnd::Failed => "something failed",
        };
        reason.to_owned()
    }

    /// Returns true if a value was shown to help.
    pub(crate) fn helps(&self) -> bool {
        self.comparisons().iter().any(|(_, comparison)| comparison.verdict == KnobVerdict::Helps)
    }

    /// Returns the compared values with their labels.
    fn comparisons(&self) -> Vec<(String, KnobComparison)> {
        let compared = |(index, value): (usize, &Option<String>)| {
            Some((label(self.knob, value.as_deref()), self.report.tally.comparison(index)?))
        };
        self.values.iter().enumerate().filter_map(compared).collect()
    }

    fn percentile(&self) -> String {
        format!("p{}", self.settings.percent)
    }

    /// Formats the experiment as one JSON object.
    pub(crate) fn json(&self) -> String {
        let settings = self.settings;
        let report = self.report;
        let values = self.comparisons().into_iter();
        document(&TriedDocument {
            knob: self.knob.name,
            ports: settings.ports.iter().copied().collect(),
            percentile: settings.percent,
            confidence: settings.confidence,
            period_s: settings.period.as_secs_f64(),
            guard_s: settings.guard.as_secs_f64(),
            seed: settings.seed,
            rounds: report.tally.rounds().len(),
            void_rounds: report.void_rounds,
            took_s: report.duration.as_secs_f64(),
            ended: self.ended(),
            ended_processes: report.ended_processes.iter().map(|process| process.id).collect(),
            values: values.map(|(value, comparison)| ComparedValue { value, comparison }).collect(),
            periods: report.tally.rounds(),
            unfinished_round: &report.unfinished_round,
            arrivals_vary_by: report.tally.load_spread(),
            late_requests: report.late,
            unanswered_requests: report.unanswered,
            lost_events: report.lost_events,
            periods_without_energy: report.periods_without_energy,
            energy_unknown: report.energy_unknown.clone(),
            different_from_asked: report.different.iter().cloned().collect(),
            not_undone: report
                .not_undone
                .iter()
                .map(|undone| undone_line(undone).trim_end().to_owned())
                .collect(),
            sockets: report.sockets.map(changed_sockets),
        })
    }

    /// Formats verdicts as sentences, and tables of at most 100 columns.
    pub(crate) fn text(&self) -> String {
        let report = self.report;
        let comparisons = self.comparisons();
        let mut text: String =
            comparisons.iter().map(|(label, comparison)| self.headline(label, comparison)).collect();
        if comparisons.is_empty() {
            text += "no round was completed: nothing can be said\n";
        }
        text += &format!(
            "{} of {} periods of {} in {}; ended because {}\n",
            plural(report.tally.rounds().len(), "round"),
            self.values.len() + 1,
            time(self.settings.period.as_secs_f64()),
            time((report.duration.as_secs_f64() * 10.0).round() / 10.0),
            self.ended(),
        );
        for (label, comparison) in &comparisons {
            text += &format!("\n{}", self.table(label, comparison));
        }
        if !comparisons.is_empty() {
            text += "\noff, on: medians over periods. difference, ÷ off: what the rounds show, each compared with itself;\n\
                     where the load changes from round to round these may be other numbers than from off and on.\n";
            if text.contains('?') {
                text += "?: the interval has no end on this side; it takes more rounds.\n";
            }
        }
        let has_energy = comparisons.iter().any(|(_, comparison)| comparison.energy_per_request_j.is_some());
        if let (false, false, Some(why)) = (comparisons.is_empty(), has_energy, &report.energy_unknown) {
            text += &format!("energy of requests: not readable here: {why}\n");
        }
        text += &report.sockets.as_ref().map_or(String::new(), sockets_line);
        text + &self.doubts(&comparisons)
    }

    /// Describes the verdict on a value in one or two sentences.
    fn headline(&self, label: &str, comparison: &KnobComparison) -> String {
        let KnobComparison { tested, visible_ns, .. } = comparison;
        let name = self.percentile();
        let size = time(rounded(tested.shift.abs()));
        let interval = interval(tested, &nanoseconds);
        let confident = percent(self.settings.confidence);
        let share = tested.relative.map_or("-".to_owned(), signed_percent);
        match comparison.verdict {
            KnobVerdict::Helps if tested.shift < 0.0 => {
                format!("{label} helps: {name} is {size} shorter ({share}; with {confident} {interval})\n")
            }
            KnobVerdict::Harms if tested.shift > 0.0 => {
                format!("{label} harms: {name} is {size} longer ({share}; with {confident} {interval})\n")
            }
            // Later rounds, played for other values, may point the other way.
            KnobVerdict::Helps | KnobVerdict::Harms => format!(
                "{label} {}, as earlier rounds have shown; over all rounds {name} differs by {} ({share})\n",
                verdict(comparison.verdict),
                nanoseconds(tested.shift),
            ),
            KnobVerdict::NotShown => match visible_ns {
                Some(visible) => format!(
                    "{label}: no difference shown; a difference of {name} of {} ({}) or more would have been detected\n",
                    nanoseconds(*visible),
                    percent(visible / tested.off.max(1.0)),
                ),
                None => format!(
                    "{label}: no difference shown; with so few rounds no difference could have been detected\n"
                ),
            },
        }
    }

    fn table(&self, label: &str, comparison: &KnobComparison) -> String {
        let row = |name: String, shift: &StatisticShift, show: &dyn Fn(f64) -> String| {
            let signed = |value: f64| if value > 0.0 { format!("+{}", show(value)) } else { show(value) };
            vec![
                name,
                show(shift.off),
                show(shift.on),
                signed(shift.shift),
                relative(shift),
                interval(shift, show),
            ]
        };
        let mut rows = vec![row(format!("{}, tested", self.percentile()), &comparison.tested, &nanoseconds)];
        rows.push(row("mean".into(), &comparison.mean_ns, &nanoseconds));
        for (percent, shift) in PERCENTILES.iter().zip(&comparison.percentiles_ns) {
            let name = if *percent >= 100.0 { "max".to_owned() } else { format!("p{percent}") };
            rows.push(row(name, shift, &nanoseconds));
        }
        rows.push(row("requests/s".into(), &comparison.rate, &|rate| format!("{rate:.1}")));
        if let Some(cpu) = &comparison.cpu_per_request_ns {
            rows.push(row("CPU/request".into(), cpu, &nanoseconds));
        }
        if let Some(energy) = &comparison.energy_per_request_j {
            rows.push(row("energy/request".into(), energy, &joules));
        }
        let table = TextTable::of_rows(&[label, "off", "on", "difference", "÷ off", "interval"], 1, rows);
        table.answered_by(&["difference", "÷ off", "interval"]).render()
    }

    /// Describes reasons to doubt the answer; empty if there are none.
    fn doubts(&self, comparisons: &[(String, KnobComparison)]) -> String {
        let report = self.report;
        let mut lines = Vec::new();
        for (label, _) in comparisons.iter().filter(|(_, comparison)| comparison.changes_load) {
            lines.push(format!("{label} changes how many requests arrive: latencies are of different loads"));
        }
        let spread = report.tally.load_spread().filter(|spread| *spread > SPREAD_MAX);
        lines.extend(spread.map(|spread| {
            format!(
                "the load was not steady: with the knob off it varied by {} between periods",
                percent(spread)
            )
        }));
        lines.extend(self.few_requests());
        lines.extend(self.idle_processes());
        for (count, noun, one, several) in [
            (
                report.late,
                "request",
                "was answered after its period was judged: a longer --guard helps",
                "were answered after their period was judged: a longer --guard helps",
            ),
            (report.unanswered, "request", "was not seen to be answered", "were not seen to be answered"),
            (report.lost_events, "event", "was lost", "were lost"),
            (
                report.void_rounds,
                "round",
                "does not count: nothing arrived in one of its periods",
                "do not count: nothing arrived in one of their periods",
            ),
        ] {
            if count > 0 {
                lines.push(format!("{} {}", plural(count, noun), if count == 1 { one } else { several }));
            }
        }
        let has_energy = comparisons.iter().any(|(_, comparison)| comparison.energy_per_request_j.is_some());
        if let (true, Some(why)) = (has_energy, &report.energy_unknown) {
            let count = plural(report.periods_without_energy, "period");
            lines.push(format!("{count} without energy, whose rounds are not in energy/request: {why}"));
        }
        let measured = report.unfinished_round.iter().flatten().count();
        if measured > 0 {
            let all = self.values.len() + 1;
            lines.push(format!("an unfinished round, {measured} of its {all} periods, does not count"));
        }
        let was_on = !report.tally.rounds().is_empty();
        lines.extend(report.sockets.iter().flat_map(|totals| socket_doubts(totals, was_on)));
        lines.extend(report.different.iter().cloned());
        lines.extend(report.not_undone.iter().map(|undone| undone_line(undone).trim_end().to_owned()));
        if lines.is_empty() {
            return String::new();
        }
        format!("\nless certain:\n{}", lines.iter().map(|line| format!("  {line}\n")).collect::<String>())
    }

    /// Warns if the processes use hardly any CPU while requests are answered, as when other processes answer
    /// them.
    fn idle_processes(&self) -> Option<String> {
        let used = self.report.tally.rounds().iter().flatten().map(|period| period.used.cpu_ns);
        let is_idle = used.sum::<Option<u64>>() == Some(0) && !self.report.tally.rounds().is_empty();
        let processes: Vec<String> =
            self.settings.processes.iter().map(|process| process.id.to_string()).collect();
        (is_idle && !processes.is_empty()).then(|| {
            format!(
                "process {} used less CPU time than the kernel counts: if others answer the requests, name those with --pid",
                processes.join(",")
            )
        })
    }

    fn few_requests(&self) -> Option<String> {
        let fewest = self.report.tally.rounds().iter().flatten().map(|period| period.requests).min()?;
        let beyond = fewest as f64 * (1.0 - self.settings.percent / 100.0);
        (beyond < BEYOND_MIN).then(|| {
            format!(
                "a period has {}, {beyond:.1} beyond {}: a longer --period helps",
                plural(fewest, "request"),
                self.percentile()
            )
        })
    }
}

fn changed_sockets(totals: SocketTotals) -> ChangedSockets {
    let pass_s = totals.pass_duration().map(|duration| duration.as_secs_f64());
    ChangedSockets { totals, pass_s }
}

/// Describes the changes of open sockets in one line.
fn sockets_line(totals: &SocketTotals) -> String {
    let mut line = format!(
        "sockets: {} and {} changed at a time",
        plural(totals.listening, "listening one"),
        plural(totals.connected, "connected one"),
    );
    if totals.set_again > 0 {
        line += &format!(", set again {} where the server had changed it", plural(totals.set_again, "time"));
    }
    if let Some(duration) = totals.pass_duration() {
        line += &format!("; a pass over all took {}", nanoseconds(duration.as_secs_f64() * 1e9));
    }
    line + "\n"
}

/// Returns reasons to doubt an experiment with open sockets; `was_on`: the knob was set at least once.
fn socket_doubts(totals: &SocketTotals, was_on: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if totals.not_set > 0 {
        lines.push(format!("{} did not take the value", plural(totals.not_set, "socket")));
    } else if was_on && totals.listening + totals.connected == 0 {
        lines.push("no socket was changed: each had the value already".to_owned());
    }
    if !totals.is_server_seen {
        let what = "this kernel does not report the server's own setsockopt calls: where the server has set the same value as the knob, \
                    undo restores the earlier one";
        lines.push(what.to_owned());
    }
    lines
}

fn nanoseconds(value: f64) -> String {
    time(rounded(value))
}

/// Formats joules with a prefix, in four digits.
fn joules(value: f64) -> String {
    let (unit, name) = match value.abs() {
        size if size >= 1.0 => (1.0, "J"),
        size if size >= 1e-3 => (1e-3, "mJ"),
        _ => (1e-6, "µJ"),
    };
    let scaled = value / unit;
    let decimals = match scaled.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.decimals$} {name}")
}

/// Converts nanoseconds to seconds, without insignificant digits.
fn rounded(nanoseconds: f64) -> f64 {
    let unit = 10f64.powf((nanoseconds.abs().max(1.0).log10() - 3.0).floor().max(0.0));
    (nanoseconds / unit).round() * unit / 1e9
}

fn interval(shift: &StatisticShift, show: &dyn Fn(f64) -> String) -> String {
    let end = |value: f64| if value.is_finite() { show(value) } else { "?".to_owned() };
    from_to(end(shift.low), &end(shift.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{ResourceUse, RoundTally};
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn settings() -> ExperimentSettings {
        ExperimentSettings {
            ports: BTreeSet::from([80]),
            processes: Vec::new(),
            percent: 99.0,
            period: Duration::from_secs(2),
            guard: Duration::from_millis(500),
            drain: Duration::ZERO,
            confidence: 0.95,
            rounds_max: 40,
            seed: 1,
            ring_bytes: 0,
        }
    }

    /// Eight rounds with 2 mJ per request with the knob off and 3 mJ with it on, or without energy for a
    /// reason.
    fn report(energy_unknown: Option<String>) -> ExperimentReport {
        let period = |millijoules: u64| {
            let energy_uj = energy_unknown.is_none().then_some(millijoules * 1_000_000);
            let used = ResourceUse { cpu_ns: None, energy_uj };
            PeriodResult::of(vec![5000; 1000], 99.0, 2.0, used).expect("there are requests")
        };
        let mut tally = RoundTally::new(1, 0.95);
        for _ in 0..8 {
            tally.add(vec![period(2), period(3)]);
        }
        ExperimentReport {
            tally,
            unfinished_round: Vec::new(),
            end: ExperimentEnd::RoundsUsed,
            ended_processes: Vec::new(),
            failure: None,
            duration: Duration::from_secs(40),
            void_rounds: 0,
            late: 0,
            unanswered: 0,
            lost_events: 0,
            periods_without_energy: if energy_unknown.is_none() { 0 } else { 16 },
            energy_unknown,
            different: BTreeSet::new(),
            not_undone: Vec::new(),
            sockets: None,
        }
    }

    fn shown(report: &ExperimentReport) -> (String, serde_json::Value) {
        let settings = settings();
        let values = [None];
        let knob = experiment::knob("nothing").expect("a knob");
        let tried = TriedKnob { knob, values: &values, settings: &settings, report };
        (tried.text(), serde_json::from_str(&tried.json()).expect("it is JSON"))
    }

    #[test]
    fn energy_is_reported_as_cpu_time_is() {
        let (text, json) = shown(&report(None));
        let line = text.lines().find(|line| line.contains("energy/request")).expect("a row");
        for part in ["2.00 mJ", "3.00 mJ", "+1.00 mJ", "+50"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!text.contains("not readable"), "{text}");
        let energy = &json["values"][0]["energy_per_request_j"];
        for (field, expected) in [("off", 0.002), ("on", 0.003), ("difference", 0.001), ("low", 0.001)] {
            let seen = energy[field].as_f64().expect("a number");
            assert!((seen - expected).abs() < 1e-9, "{field}: {energy}");
        }
        assert_eq!((&json["periods"][0][1]["energy_j"], json.get("energy_unknown")), (&3.0.into(), None));
    }

    #[test]
    fn energy_that_is_not_known_has_its_reason() {
        let (text, json) = shown(&report(Some("/zones: Permission denied".into())));
        assert!(text.contains("energy of requests: not readable here: /zones: Permission denied"), "{text}");
        assert!(!text.contains("energy/request"), "{text}");
        assert!(json["values"][0]["energy_per_request_j"].is_null(), "{json}");
        assert_eq!(json["energy_unknown"], "/zones: Permission denied");
    }

    #[test]
    fn periods_without_energy_are_counted_and_the_others_compared() {
        let mut report = report(None);
        let used = ResourceUse::default();
        let gap = PeriodResult::of(vec![5000; 1000], 99.0, 2.0, used).expect("there are requests");
        let whole = report.tally.rounds()[0][0].clone();
        report.tally.add(vec![whole, gap]);
        report.periods_without_energy = 1;
        report.energy_unknown = Some("/zone: it was reset".into());
        let (text, json) = shown(&report);
        let line = text.lines().find(|line| line.contains("energy/request")).expect("a row");
        assert!(line.contains("2.00 mJ") && line.contains("+1.00 mJ"), "{line}");
        assert!(text.contains("1 period without energy") && text.contains("/zone: it was reset"), "{text}");
        assert_eq!(json["periods_without_energy"], 1, "{json}");
        assert!(json["values"][0]["energy_per_request_j"]["off"].is_f64(), "{json}");
    }

    #[test]
    fn what_ended_early_has_what_was_measured_until_then() {
        let process = |id| experiment::ProcessIdentity { id, start: 1 };
        let mut report = report(None);
        report.end = ExperimentEnd::ServerEnded;
        report.ended_processes = vec![process(11)];
        report.unfinished_round = vec![None, Some(report.tally.rounds()[0][1].clone())];
        let settings = ExperimentSettings { processes: vec![process(7), process(11)], ..settings() };
        let values = [None];
        let knob = experiment::knob("nothing").expect("a knob");
        let tried = TriedKnob { knob, values: &values, settings: &settings, report: &report };
        let text = tried.text();
        assert!(text.contains("ended because process 11 of the server ended"), "{text}");
        assert!(text.contains("an unfinished round, 1 of its 2 periods, does not count"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&tried.json()).expect("it is JSON");
        assert_eq!(json["ended_processes"], serde_json::json!([11]));
        assert!(json["unfinished_round"][0].is_null() && json["unfinished_round"][1]["requests"] == 1000);
        report.ended_processes = vec![process(7), process(11)];
        let tried = TriedKnob { knob, values: &values, settings: &settings, report: &report };
        assert!(tried.text().contains("ended because the server ended"));
    }

    #[test]
    fn one_of_a_thing_is_not_called_several() {
        let told = |n| {
            let counted =
                ExperimentReport { late: n, unanswered: n, lost_events: n, void_rounds: n, ..report(None) };
            let knob = experiment::knob("nothing").expect("a knob");
            TriedKnob { knob, values: &[None], settings: &settings(), report: &counted }.text()
        };
        let one = told(1);
        let two = told(2);
        for line in
            ["1 request was answered", "1 request was not seen", "1 event was lost", "1 round does not"]
        {
            assert!(one.contains(line), "{line}: {one}");
        }
        for line in
            ["2 requests were answered", "2 requests were not seen", "2 events were lost", "2 rounds do not"]
        {
            assert!(two.contains(line), "{line}: {two}");
        }
    }

    #[test]
    fn processes_that_answer_no_request_are_told() {
        let told = |cpu_ns: [u64; 2], ids: &[u32]| {
            let mut report = report(None);
            report.tally = RoundTally::new(1, 0.95);
            let period = |cpu_ns| {
                let used = ResourceUse { cpu_ns: Some(cpu_ns), energy_uj: None };
                PeriodResult::of(vec![5000; 1000], 99.0, 2.0, used).expect("there are requests")
            };
            report.tally.add(cpu_ns.map(period).into());
            let processes = ids.iter().map(|id| experiment::ProcessIdentity { id: *id, start: 1 }).collect();
            let settings = ExperimentSettings { processes, ..settings() };
            let knob = experiment::knob("nothing").expect("a knob");
            TriedKnob { knob, values: &[None], settings: &settings, report: &report }.text()
        };
        let line = "process 7,11 used less CPU time than the kernel counts: if others answer the requests, name those with --pid";
        assert!(told([0, 0], &[7, 11]).contains(line));
        assert!(!told([0, 10_000_000], &[7]).contains("CPU time than"));
        assert!(!told([0, 0], &[]).contains("CPU time than"), "none was named");
    }

    #[test]
    fn what_was_done_with_open_sockets_is_told() {
        let totals = SocketTotals {
            listening: 1,
            connected: 8,
            set_again: 1,
            is_server_seen: true,
            passes: 4,
            duration: Duration::from_millis(8),
            ..SocketTotals::default()
        };
        let told = |sockets| shown(&ExperimentReport { sockets: Some(sockets), ..report(None) });
        let (text, json) = told(totals);
        let line = "sockets: 1 listening one and 8 connected ones changed at a time, set again 1 time where the server \
                    had changed it; a pass over all took 2ms\n";
        assert!(text.contains(line), "{text}");
        assert!(!text.contains("each had the value") && !text.contains("this kernel"), "{text}");
        assert_eq!((&json["sockets"]["set_again"], &json["sockets"]["pass_s"]), (&1.into(), &0.002.into()));
        let (text, _) = told(SocketTotals { not_set: 2, is_server_seen: false, ..totals });
        assert!(text.contains("2 sockets did not take the value") && text.contains("this kernel"), "{text}");
        let (text, _) = told(SocketTotals::default());
        assert!(text.contains("each had the value already"), "{text}");
        let tally = RoundTally::new(1, 0.95);
        let failed = ExperimentReport { sockets: Some(SocketTotals::default()), tally, ..report(None) };
        assert!(!shown(&failed).0.contains("each had"), "the knob could not be turned on");
        assert!(shown(&report(None)).1.get("sockets").is_none());
    }

    #[test]
    fn joules_have_a_prefix() {
        for (value, text) in [
            (0.0, "0.00 µJ"),
            (1.234e-6, "1.23 µJ"),
            (-0.045_67, "-45.7 mJ"),
            (0.1234, "123 mJ"),
            (12.34, "12.3 J"),
        ] {
            assert_eq!(joules(value), text);
        }
    }
}
