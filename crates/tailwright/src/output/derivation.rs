//! The derivation of one bound for people.

use crate::terminal::{Align, TextTable};
use workflow::planning::{GuaranteeDerivation, ServerNeighbour, StageDelay};
use workflow::text::{percent, time};

/// Milliseconds with four decimals, so that the columns can be added up by hand.
fn ms(seconds: f64) -> String {
    format!("{:.4}", seconds * 1e3)
}

/// A fraction in percent with four decimals.
fn fine(fraction: f64) -> String {
    format!("{:.4}%", fraction * 100.0)
}

/// The derivation for people: priority, company, terms and limits.
pub(crate) fn text(e: &GuaranteeDerivation) -> String {
    let mut text = format!(
        "{} on {} is promised {} < {}; its SLO is {}, so {} ({}) are to spare.\n\n",
        e.workload,
        e.server,
        e.slo.percentile,
        time(e.bound_s),
        time(e.slo_s),
        time(e.slack_s),
        percent(e.slack_s / e.slo_s)
    );
    text.push_str(&priority(e));
    text.push_str(&company(e));
    text.push_str(&terms(e));
    text.push_str(&limits(e));
    text
}

fn priority(e: &GuaranteeDerivation) -> String {
    let count = |keep: &dyn Fn(&&ServerNeighbour) -> bool| e.company.iter().filter(keep).count();
    format!(
        "Priority {}: the tighter the SLO, the higher the priority; 0 is served first.\nOn {}, {} of the others have \
         a tighter SLO, {} the same and {} a looser one.\n\n",
        e.priority,
        e.server,
        count(&|n| n.priority < e.priority),
        count(&|n| n.priority == e.priority && n.name != e.workload),
        count(&|n| n.priority > e.priority),
    )
}

/// Who contributes which burst and which rate.
fn company(e: &GuaranteeDerivation) -> String {
    let mut text = String::from(
        "At each stage a request waits for the bursts of the same and higher priorities, served with what the\n\
         rates of the higher priorities leave (Eq. 5.5): sum of bursts / (1 - sum of higher rates).\n\n",
    );
    let mut columns = vec![("workload", Align::Left), ("prio", Align::Right), ("SLO", Align::Left)];
    for (burst, rate) in [("in ms", "in rate"), ("storage ms", "storage rate"), ("out ms", "out rate")] {
        columns.extend([(burst, Align::Right), (rate, Align::Right)]);
    }
    let mut table = TextTable::new(&columns);
    for n in e.company.iter().filter(|n| n.priority <= e.priority) {
        let mut row = vec![n.name.clone(), n.priority.to_string(), n.slo.to_string()];
        for stage in 0..3 {
            let rate = if n.priority < e.priority { fine(n.rates[stage]) } else { "-".to_owned() };
            row.extend([ms(n.bursts[stage]), rate]);
        }
        table.row(row);
    }
    let mut sums = vec!["sum".to_owned(), String::new(), String::new()];
    for step in &e.stages {
        sums.extend([ms(step.burst_at_or_above), fine(step.rate_above)]);
    }
    table.row(sums);
    text.push_str(&table.render());
    text.push('\n');
    text
}

/// Term by term to the bound.
fn terms(e: &GuaranteeDerivation) -> String {
    let mut table = TextTable::new(&[("term", Align::Left), ("", Align::Right), ("ms", Align::Right)]);
    for step in &e.stages {
        let quotient = format!("{} / (1 - {:.6})", ms(step.burst_at_or_above), step.rate_above);
        table.row(vec![format!("waiting at {}", step.stage), quotient, ms(step.delay_s)]);
    }
    for step in e.stages.iter().filter(|step| step.shaping_s > 0.0) {
        table.row(vec![
            format!("waiting in its own limiter at {}", step.stage),
            "(its r-b curve - burst) / rate".into(),
            ms(step.shaping_s),
        ]);
    }
    table.row(vec!["idle storage".into(), "device profile".into(), ms(e.base_s)]);
    table.row(vec!["bound".into(), "sum".into(), ms(e.bound_s)]);
    table.row(vec!["SLO".into(), e.slo.to_string(), ms(e.slo_s)]);
    table.row(vec!["to spare".into(), String::new(), ms(e.slack_s)]);
    format!("{}\n", table.render())
}

/// The chosen limits against the r-b curves.
fn limits(e: &GuaranteeDerivation) -> String {
    let mut text = String::from(
        "Its limits: a token bucket per stage, on its r-b curve, so that the limiter delays nothing that looks\n\
         like its trace. A lower rate would need a larger burst:\n",
    );
    let mut columns = vec![("", Align::Left), ("mean rate", Align::Right)];
    columns.extend([
        ("rate", Align::Right),
        ("burst ms", Align::Right),
        ("r-b curve: rate -> ms", Align::Left),
    ]);
    let mut table = TextTable::new(&columns);
    for step in &e.stages {
        let mut row =
            vec![format!("  {}", step.stage), fine(step.mean_rate), fine(step.rate), ms(step.burst)];
        row.push(curve(step));
        table.row(row);
    }
    text.push_str(&table.render());
    text
}

fn curve(step: &StageDelay) -> String {
    let points: Vec<String> =
        step.curve.iter().map(|(rate, burst)| format!("{} -> {}", percent(*rate), ms(*burst))).collect();
    points.join(", ")
}
