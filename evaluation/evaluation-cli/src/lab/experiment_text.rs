//! Text about experiments with real requests: the plan made before the run, and the results.

use lab::experiment::{
    CasePlan, CaseRun, CopyThroughput, ExperimentPlan, PolicyName, RunSettings, WorkloadResult, forecast,
};
use measure_cli::verify::text::{table, verdict, verdict_row};
use operation::document::document;
use operation::text::time;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Nanos, plural};
use verify::Verdict;

/// A case under a policy.
pub(crate) struct PlayedCase {
    /// Index among the planned cases.
    pub(crate) case: usize,
    pub(crate) policy: PolicyName,
    /// Results of each tenant.
    pub(crate) rows: Vec<WorkloadResult>,
    /// Throughput of the copy.
    pub(crate) beside: Option<CopyThroughput>,
    pub(crate) played: CaseRun,
}

/// An experiment that was played, or a part of it.
pub(crate) struct ExperimentView<'a> {
    pub(crate) planned: &'a ExperimentPlan,
    pub(crate) settings: RunSettings,
    /// The cases that were played, in that order.
    pub(crate) done: &'a [PlayedCase],
}

/// SLOs that a policy meets, over all cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlosMet {
    pub(crate) policy: PolicyName,
    pub(crate) met: usize,
    pub(crate) not_met: usize,
    /// All verdicts: met, not met and open.
    pub(crate) all: usize,
}

impl SlosMet {
    pub(crate) fn is_all_met(&self) -> bool {
        self.met == self.all
    }

    /// Neither met nor not met for sure.
    pub(crate) fn open(&self) -> usize {
        self.all - self.met - self.not_met
    }

    fn words(self) -> String {
        let open = if self.open() == 0 { String::new() } else { format!(" ({} open)", self.open()) };
        format!("{} {} of {}{open}", self.policy.name(), self.met, self.all)
    }
}

impl ExperimentView<'_> {
    /// The SLOs that count and are met, by policy in the order in which they were played.
    pub(crate) fn kept(&self) -> Vec<SlosMet> {
        let mut all: Vec<SlosMet> = Vec::new();
        for done in self.done {
            let case = &self.planned.cases[done.case];
            let rows = done.rows.iter().enumerate().filter(|(at, _)| case.promises(*at));
            let verdicts: Vec<Verdict> = rows.map(|(_, row)| row.judgement.verdict).collect();
            let at = all.iter().position(|kept| kept.policy == done.policy).unwrap_or(all.len());
            if at == all.len() {
                all.push(SlosMet { policy: done.policy, met: 0, not_met: 0, all: 0 });
            }
            let count = |verdict| verdicts.iter().filter(|found| **found == verdict).count();
            all[at].met += count(Verdict::Met);
            all[at].not_met += count(Verdict::NotMet);
            all[at].all += verdicts.len();
        }
        all
    }

    /// Returns true if no tenant is refused or misbehaves.
    fn counts_all(&self) -> bool {
        let mut played = self.done.iter().map(|done| &self.planned.cases[done.case]);
        played.all(|case| (0..case.slos.len()).all(|tenant| case.promises(tenant)))
    }

    /// Describes the SLOs met, in sentences.
    pub(crate) fn lead(&self) -> String {
        lead(self.kept(), if self.counts_all() { "" } else { " that count" })
    }

    /// Describes the observed time: one for all policies, or the shortest and longest if a run was cut short.
    pub(crate) fn observed(&self) -> String {
        let observed = || self.done.iter().map(|done| done.played.report.observed_duration);
        observed_words(observed().min(), observed().max())
    }
}

fn observed_words(shortest: Option<Nanos>, longest: Option<Nanos>) -> String {
    let in_words = |time_ns: Option<Nanos>| time(time_ns.unwrap_or(Nanos::ZERO).as_secs());
    // Ends of runs differ by less than a tenth of a second.
    let tenth = |time_ns: Option<Nanos>| time_ns.map(|time_ns| time_ns.0.div_ceil(100_000_000));
    match tenth(shortest) == tenth(longest) {
        true => format!("{} observed for each policy", in_words(shortest)),
        false => format!("{} to {} observed, by policy", in_words(shortest), in_words(longest)),
    }
}

/// Describes a set of verdicts in sentences: the policies that meet all SLOs, and the numbers of the others. A policy with
/// an undecided SLO counts neither as meeting all nor as missing one. `whose` names the SLOs that count.
fn lead(mut kept: Vec<SlosMet>, whose: &str) -> String {
    kept.sort_by_key(|kept| std::cmp::Reverse((kept.met, kept.policy == PolicyName::Tailwright)));
    let slos = kept.first().map_or(0, |kept| kept.all);
    if kept.iter().any(|other| other.all != slos) {
        let counts: Vec<String> = kept.iter().copied().map(SlosMet::words).collect();
        return format!("Not every policy was run in every case. SLOs met: {}.", counts.join(", "));
    }
    let (all, rest): (Vec<SlosMet>, Vec<SlosMet>) = kept.iter().partition(|kept| kept.is_all_met());
    let names: Vec<&str> = all.iter().map(|kept| kept.policy.name()).collect();
    let may_meet = rest.iter().any(|kept| kept.not_met == 0);
    let who = match (names.as_slice(), may_meet) {
        ([], true) => "No policy is shown to meet".to_owned(),
        ([], false) => "No policy meets".to_owned(),
        ([one], _) => format!("{one} meets"),
        ([some @ .., last], _) => format!("{} and {last} meet", some.join(", ")),
    };
    let what = match slos {
        1 => format!("the SLO{whose}"),
        _ => format!("all {}{whose}", plural(slos, "SLO")),
    };
    let counts: Vec<String> = rest.iter().copied().map(SlosMet::words).collect();
    match (counts.is_empty(), names.is_empty()) {
        (true, _) => format!("{who} {what}."),
        (false, true) => format!("{who} {what}: {}.", counts.join(", ")),
        (false, false) => format!("{who} {what}. Others: {}.", counts.join(", ")),
    }
}

/// Returns the name of a case; that of the experiment if it is the only case.
pub(crate) fn case_name<'a>(planned: &ExperimentPlan, case: &'a CasePlan) -> &'a str {
    if case.case.name.is_empty() { planned.experiment.name } else { case.case.name }
}

/// Describes the analysis's answer: all SLOs are met, or not.
pub(crate) fn admits(case: &CasePlan) -> &'static str {
    if case.admits_all { "the analysis admits all" } else { "the analysis does not admit all" }
}

/// Names of the columns of [`plan_rows`], the first of words.
pub(crate) const PLAN: [&str; 8] =
    ["workload", "load", "requests/s", "time scale", "SLO", "bound", "priority", "limits"];

/// Returns a row per tenant of the plan.
pub(crate) fn plan_rows(case: &CasePlan) -> Vec<Vec<String>> {
    let tenants = case.case.tenants.iter().zip(&case.sent).zip(&case.policy.workloads);
    let row = |((tenant, sent), decided): (
        (&lab::experiment::ExperimentTenant, &lab::experiment::ScaledTrace),
        _,
    )| {
        let decided: &model::PolicyWorkload = decided;
        vec![
            tenant.name.to_owned(),
            format!("{:.0}%", tenant.load * 100.0),
            format!("{:.1}", sent.trace.items().len() as f64 / sent.trace.period().as_secs()),
            format!("{:.4}", sent.time_scale),
            decided.slo.to_string(),
            decided.bound_s.map_or_else(|| "refused".to_owned(), time),
            decided.priority.map_or_else(String::new, |priority| priority.to_string()),
            decided.limits.len().to_string(),
        ]
    };
    tenants.map(row).collect()
}

/// Plan of a tenant, as JSON.
#[derive(Serialize, JsonSchema)]
struct PlannedTenantDocument<'a> {
    name: &'a str,
    load: f64,
    requests_per_s: f64,
    slo: String,
    /// Null for one that is refused.
    bound_s: Option<f64>,
}

/// Plan of a case, as JSON.
#[derive(Serialize, JsonSchema)]
struct PlannedCaseDocument<'a> {
    case: &'a str,
    admits_all: bool,
    workloads: Vec<PlannedTenantDocument<'a>>,
}

/// Plan of an experiment, as JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LabPlanDocument<'a> {
    /// The experiment that would be run.
    experiment: &'a str,
    /// Plan of each of its cases.
    cases: Vec<PlannedCaseDocument<'a>>,
}

/// Formats the plan of an experiment as JSON.
pub(crate) fn plan_json(planned: &ExperimentPlan) -> String {
    let mut cases = Vec::new();
    for case in &planned.cases {
        let tenants = case.case.tenants.iter().zip(&case.sent).zip(&case.policy.workloads);
        let workloads = tenants.map(|((tenant, sent), decided)| PlannedTenantDocument {
            name: tenant.name,
            load: tenant.load,
            requests_per_s: sent.trace.items().len() as f64 / sent.trace.period().as_secs(),
            slo: decided.slo.to_string(),
            bound_s: decided.bound_s,
        });
        let admits_all = case.admits_all;
        let case = case_name(planned, case);
        cases.push(PlannedCaseDocument { case, admits_all, workloads: workloads.collect() });
    }
    document(&LabPlanDocument { experiment: planned.experiment.name, cases })
}

/// Formats the plan of an experiment as text.
pub(crate) fn plan_text(planned: &ExperimentPlan) -> String {
    let mut text = format!("{}\n{}\n", planned.experiment.title, planned.setting());
    for case in &planned.cases {
        let rows = table(&PLAN, 1, plan_rows(case));
        text += &format!("\n{}: {}\n{rows}", case_name(planned, case), admits(case));
    }
    text
}

/// Lists the verdicts that a run of this length leaves open in simulation, with the length that would
/// decide each.
pub(crate) fn forecast_text(
    planned: &ExperimentPlan,
    policies: &[PolicyName],
    settings: &RunSettings,
) -> String {
    let mut open = Vec::new();
    for case in &planned.cases {
        for policy in policies {
            let found = forecast(planned, case, *policy, settings.warm_up, settings.duration);
            let counted = found.iter().enumerate().filter(|(tenant, _)| case.promises(*tenant));
            for (_, tenant) in counted.filter(|(_, tenant)| tenant.judgement.verdict == Verdict::TooFew) {
                let takes = tenant.decides_after.map(|takes| time(takes.as_secs()));
                let takes = takes.unwrap_or_else(|| "no length is known".to_owned());
                let name = case_name(planned, case);
                open.push(format!("{name}/{} under {} ({takes})", tenant.name, policy.name()));
            }
        }
    }
    let observed = time(settings.duration.as_secs());
    match open.is_empty() {
        true => format!("\nIn simulation, {observed} were enough to decide every SLO that counts.\n"),
        false => {
            format!("\nIn simulation, {observed} left open (and what may decide): {}.\n", open.join(", "))
        }
    }
}

/// Verdicts, and what they come from.
pub(crate) fn text(view: &ExperimentView) -> String {
    const HEADINGS: [&str; 8] =
        ["policy", "workload", "verdict", "SLO", "measured", "interval", "requests", "it takes"];
    let all = view.done.iter().flat_map(|done| done.rows.iter().enumerate().map(move |row| (done.case, row)));
    let rows = all.map(|(case, (tenant, row))| {
        // The row already has the name, with that of the case; the numbers over, failed and lost are
        // omitted.
        let [_, verdict, slo, measured, interval, requests, .., needed] = &verdict_row(&row.finding)[..]
        else {
            unreachable!("as many cells as verify shows");
        };
        let counts = view.planned.cases[case].promises(tenant);
        let verdict = if counts { verdict.clone() } else { format!("({verdict})") };
        let cells = [slo, measured, interval, requests, needed].map(String::clone);
        [vec![row.policy.to_owned(), row.name.clone(), verdict], cells.to_vec()].concat()
    });
    let note = match view.counts_all() {
        true => "",
        false => {
            "(in brackets: an SLO that does not count, of a workload that sends more than planned or is not admitted)\n"
        }
    };
    format!("{}{note}\n{}\n", table(&HEADINGS, 4, rows), view.lead())
}

/// Returns advice for open verdicts.
pub(crate) fn advice(view: &ExperimentView) -> Vec<&'static str> {
    let open = || view.done.iter().flat_map(|done| &done.rows).map(|row| &row.finding);
    let is_short =
        |found: &verify::Finding| found.judgement.verdict == Verdict::TooFew && !found.is_spoiled();
    let mut advice = Vec::new();
    if open().any(verify::Finding::is_spoiled) {
        advice.push("requests were sent too late for some verdicts: end other programs on this machine, and run again");
    }
    if open().any(is_short) {
        advice.push("there are too few requests for some verdicts: a longer --duration tells more");
    }
    advice
}

/// Returns one line about a played case, as progress.
pub(crate) fn line(planned: &ExperimentPlan, done: &PlayedCase) -> String {
    let each = done.rows.iter().map(|row| {
        let measured = row.judgement.measured_s.map_or_else(|| "no answer".to_owned(), time);
        format!("{} {measured} ({})", row.finding.name, verdict(&row.finding))
    });
    let copy =
        done.beside.map_or_else(String::new, |copy| format!("; the copy {:.0} requests/s", copy.per_s));
    let case = case_name(planned, &planned.cases[done.case]);
    format!("{case} {}: {}{copy}", done.policy.name(), each.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(policy: PolicyName, met: usize, all: usize) -> SlosMet {
        SlosMet { policy, met, not_met: all - met, all }
    }

    /// An open verdict does not count as a missed SLO, under any policy.
    #[test]
    fn an_open_verdict_is_not_a_missed_slo() {
        let open = |policy, met, not_met, all| SlosMet { policy, met, not_met, all };
        let ours = open(PolicyName::Tailwright, 1, 0, 2);
        let said = lead(vec![kept(PolicyName::Edf, 0, 2), ours], "");
        assert_eq!(said, "No policy is shown to meet all 2 SLOs: tailwright 1 of 2 (1 open), edf 0 of 2.");
        let missed = open(PolicyName::Tailwright, 0, 1, 2);
        let said = lead(vec![kept(PolicyName::Edf, 1, 2), missed], "");
        assert_eq!(said, "No policy meets all 2 SLOs: edf 1 of 2, tailwright 0 of 2 (1 open).");
        let said = lead(vec![kept(PolicyName::Edf, 2, 2), ours], "");
        assert_eq!(said, "edf meets all 2 SLOs. Others: tailwright 1 of 2 (1 open).");
    }

    /// Titles also stand above unexpected results, so none claims that a policy meets its SLOs.
    #[test]
    fn titles_of_experiments_claim_no_result() {
        for experiment in lab::experiment::EXPERIMENTS {
            for claim in ["only", "meets", "keeps", "misses", "wins", "kept"] {
                let has_word = experiment.title.split(' ').any(|word| word == claim);
                assert!(!has_word, "{}: {}", experiment.name, experiment.title);
            }
        }
    }

    #[test]
    fn an_interrupted_run_does_not_speak_for_policies_that_it_did_not_play() {
        let whole = vec![kept(PolicyName::None, 1, 2), kept(PolicyName::Tailwright, 2, 2)];
        assert_eq!(lead(whole, ""), "tailwright meets all 2 SLOs. Others: none 1 of 2.");
        let part = vec![kept(PolicyName::None, 2, 2), kept(PolicyName::Tailwright, 1, 1)];
        let said = lead(part, "");
        assert!(said.contains("none 2 of 2, tailwright 1 of 1") && !said.contains("meet all"), "{said}");
        let seconds = |s: u64| Some(Nanos(s * 1_000_000_000));
        assert_eq!(observed_words(seconds(60), seconds(60)), "60s observed for each policy");
        assert_eq!(observed_words(seconds(3), seconds(60)), "3s to 60s observed, by policy");
    }
}
