//! Text about a cluster run: the plan, and bound, measurement and SLO side by side.

use cli::from_to;
use lab::cluster_run::ClusterHalves;
use lab::experiment::RunSettings;
use measure_cli::verify::guarantees::limit_words;
use measure_cli::verify::text::{lead, table, verdict};
use model::Policy;
use operation::text::time;
use units::{Nanos, plural};
use verify::{Finding, Findings, OverallVerdict};

/// Describes the plan, and the verdicts that a run of this length leaves open in simulation.
pub(crate) fn plan_text(
    policy: &Policy,
    halves: &ClusterHalves,
    settings: &RunSettings,
    open: &[(String, Option<Nanos>)],
) -> String {
    let mut text = format!(
        "{} on {}, planned from the first half of each trace.\n",
        plural(policy.workloads.iter().filter(|workload| workload.admitted).count(), "workload"),
        plural(policy.servers.len(), "server")
    );
    for server in &policy.servers {
        let Some(class) = halves.class(&server.class) else { continue };
        let used = server.enforcement.map_or_else(String::new, |used| {
            format!(
                "; at most {} at it, {} kept free of best effort",
                plural(used.outstanding, "request"),
                used.reserve
            )
        });
        text += &format!("{}: emulated SSD, {}{used}\n", server.name, class.model);
    }
    for workload in policy.workloads.iter().filter(|workload| !workload.admitted) {
        text += &format!("{} is not admitted and sends nothing\n", workload.name);
    }
    if halves.duration() < settings.warm_up + settings.duration {
        text += &format!("the other halves last {} and are repeated\n", time(halves.duration().as_secs()));
    }
    let observed = time(settings.duration.as_secs());
    let takes = |takes: &Option<Nanos>| {
        takes.map_or_else(|| "no length is known".to_owned(), |takes| time(takes.as_secs()))
    };
    let open: Vec<String> = open.iter().map(|(name, after)| format!("{name} ({})", takes(after))).collect();
    text + &match open.is_empty() {
        true => format!(
            "In simulation, {observed} were enough to decide every SLO; the real run may need longer.\n\n"
        ),
        false => {
            format!("In simulation, {observed} left open (and what may decide): {}.\n\n", open.join(", "))
        }
    }
}

/// Describes the inputs of the plan, and the load of each workload.
pub(crate) fn origin(settings: &RunSettings, safety_margin: f64, policy: &Policy) -> String {
    format!(
        "Planned from the first half of each trace with a safety margin of {safety_margin}. The second half was sent to \
         emulated SSDs behind proxies and links with the policy's priorities and limits, on one machine: {} on {}, \
         observed for {} after {} of warm-up. A best-effort workload copy-N reads from server N as fast as it may; it \
         has no SLO.",
        plural(policy.workloads.iter().filter(|workload| workload.admitted).count(), "workload"),
        plural(policy.servers.len(), "server"),
        time(settings.duration.as_secs()),
        time(settings.warm_up.as_secs())
    )
}

/// Bound, measurement and SLO of every workload, and the answer.
pub(crate) fn text(policy: &Policy, findings: &Findings) -> String {
    const HEADINGS: [&str; 10] = [
        "workload",
        "verdict",
        "server",
        "SLO",
        "bound",
        "measured",
        "interval",
        "longest",
        "of the bound",
        "beyond it",
    ];
    let rows = findings.workloads.iter().map(|found| {
        let server = policy.workloads.iter().find(|workload| workload.name == found.name);
        row(found, server.and_then(|workload| workload.server.clone()).unwrap_or_default())
    });
    let broken: u64 = broken_bounds(findings).map(|(_, beyond)| beyond).sum();
    let bounds = match broken {
        0 => "No request of a workload within its limits took longer than its bound.".to_owned(),
        _ => {
            let who: Vec<String> = broken_bounds(findings)
                .map(|(found, beyond)| format!("{} ({beyond})", findings.label(found)))
                .collect();
            format!("Bounds broken within limits: {}.", who.join(", "))
        }
    };
    let limits = limit_words(findings);
    let head = lead(Some(&policy.policy_name), findings);
    format!("{}\n{head}.\n{bounds}\n{limits}\n", table(&HEADINGS, 3, rows))
}

fn row(found: &Finding, server: String) -> Vec<String> {
    let seconds = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), time);
    let bound = found.bound.map(|bound| bound.bound_s);
    let share = bound.zip(found.max_s).map(|(bound, longest)| format!("{:.0}%", longest / bound * 100.0));
    vec![
        found.name.clone(),
        verdict(found).to_owned(),
        server,
        found.objective().to_string(),
        seconds(bound),
        seconds(found.judgement.measured_s),
        from_to(seconds(found.judgement.ci_low_s), &seconds(found.judgement.ci_high_s)),
        seconds(found.max_s),
        share.unwrap_or_else(|| "–".to_owned()),
        found.bound.map_or_else(|| "–".to_owned(), |bound| bound.beyond.to_string()),
    ]
}

/// Workloads with requests beyond a bound that holds for them, and how many those are.
fn broken_bounds(findings: &Findings) -> impl Iterator<Item = (&Finding, u64)> {
    let beyond = |found: &Finding| found.bound.map_or(0, |bound| bound.beyond_within_limits);
    findings.workloads.iter().map(move |found| (found, beyond(found))).filter(|(_, beyond)| *beyond > 0)
}

/// Returns true if all workloads were admitted, all SLOs are met, and no bound is broken.
pub(crate) fn is_kept(findings: &Findings) -> bool {
    findings.workloads.iter().all(|found| found.admitted)
        && findings.overall() == OverallVerdict::AllMet
        && broken_bounds(findings).next().is_none()
}
