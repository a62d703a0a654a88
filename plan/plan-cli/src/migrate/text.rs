//! Steps of a migration as text.

use cli::terminal::{Align, TextTable, pasted_path};
use operation::text::percent;
use plan::planning::{MigrationPlan, MigrationStage, PolicyCopy, StageKind};
use std::path::Path;
use units::{ByteRate, Bytes};

/// Names in a line, at most.
const NAMED_MAX: usize = 8;

/// Returns the answer, the steps, and what to do next.
pub(crate) fn text(plan: &MigrationPlan, folder: Option<&Path>) -> String {
    let mut text = sentence(&plan.summary());
    if let Some(seconds) = plan.copies_s.filter(|seconds| *seconds > 0.0) {
        text.push_str(&format!("Copies take at least {} together.\n", duration(seconds)));
    }
    for (names, words) in [
        (
            &plan.leaving,
            "are promised nothing any more; stop them, or let them run as best effort, before step 1",
        ),
        (&plan.arriving, "may begin after the last step"),
        (&plan.broken_before, "do not hold their SLOs now, by the old policy and these inputs"),
    ] {
        if !names.is_empty() {
            text.push_str(&format!("{} {words}.\n", listed(names)));
        }
    }
    for renamed in &plan.renamed {
        text.push_str(&format!(
            "'{}' of the new policy is '{}' here: fewer bytes move.\n",
            renamed.was, renamed.name
        ));
    }
    if plan.steps.is_empty() {
        return text;
    }
    text.push('\n');
    text.push_str(&table(plan));
    let copies = plan.steps.iter().filter(|step| step.kind == StageKind::Copy);
    for step in copies {
        text.push('\n');
        step.copies.iter().for_each(|copy| text.push_str(&described(step, copy)));
    }
    text.push_str("\nnext:\n");
    match folder {
        None => text.push_str("  the same command with -o steps, which writes the policy of each step\n"),
        Some(folder) => {
            let file = pasted_path(&folder.join(plan.steps[0].file_name()));
            text.push_str(&format!("  tailwright apply {file} --hosts hosts.toml --dry-run\n"));
        }
    }
    text
}

/// A sentence with a capital letter and a full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.\n", first.unwrap_or_default(), letters.as_str())
}

fn table(plan: &MigrationPlan) -> String {
    let mut table = TextTable::new(&[
        ("step", Align::Right),
        ("", Align::Left),
        ("changes", Align::Left),
        ("takes", Align::Right),
        ("worst slack", Align::Right),
        ("of", Align::Left),
    ]);
    for step in &plan.steps {
        table.row(vec![
            step.number.to_string(),
            action(step),
            listed(&step.servers_changed),
            step.takes_s.map_or_else(String::new, duration),
            step.slack.map_or_else(String::new, percent),
            step.tightest.clone().unwrap_or_default(),
        ]);
    }
    table.without_first(&["of", "worst slack"]).answered_by(&["", "changes", "takes"]).render()
}

fn action(step: &MigrationStage) -> String {
    let names: Vec<String> = step.copies.iter().map(|copy| copy.workload.clone()).collect();
    match step.kind {
        StageKind::MakeRoom => "limits make room".to_owned(),
        StageKind::Copy => format!("copy {}", listed(&names)),
        StageKind::Switch => format!("switch {}", listed(&names)),
        StageKind::Settle => "limits settle".to_owned(),
    }
}

/// Instructions for a copy.
fn described(step: &MigrationStage, copy: &PolicyCopy) -> String {
    let rate = ByteRate::from_bytes_per_sec(copy.rate_bytes_per_s).expect("a copy has a rate");
    let takes = copy.takes_s.map_or_else(String::new, |seconds| format!(", {} at least", duration(seconds)));
    format!(
        "step {}: copy {} from {} to {} at up to {rate} in requests of up to {}{takes}; it reads as '{}' and writes as \
         '{}'.\n",
        step.number,
        copy.workload,
        copy.from,
        copy.to,
        Bytes(copy.request_bytes),
        copy.reads_as,
        copy.writes_as
    )
}

fn listed(names: &[String]) -> String {
    match names.len().saturating_sub(NAMED_MAX) {
        more if more > 1 => format!("{} and {more} more", names[..NAMED_MAX].join(", ")),
        _ => names.join(", "),
    }
}

/// A duration in the units that people plan by.
fn duration(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    match minutes {
        short if short < 2.0 => format!("{seconds:.0} s"),
        minutes if minutes < 120.0 => format!("{minutes:.0} min"),
        minutes if minutes < 2880.0 => format!("{:.1} h", minutes / 60.0),
        minutes => format!("{:.1} days", minutes / 1440.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_units_of_plans() {
        let said = [59.0, 600.0, 9000.0, 864_000.0].map(duration);
        assert_eq!(said, ["59 s", "10 min", "2.5 h", "10.0 days"]);
        assert_eq!(sentence("nothing changes"), "Nothing changes.\n");
    }
}
