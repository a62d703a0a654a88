//! A plan for people: who fits where, with which limits, and what changes.

use crate::plan::{comparison, fleet, survival, table};
use cli::terminal::answered_after_s;
use operation::text::time;
use plan::planning::{MovedWorkload, PlanRun, default_costs, describe_default_costs};

/// Returns the text about a plan; `all` lists every workload.
pub(crate) fn text(run: &PlanRun, all: bool) -> String {
    let planned = &run.planned;
    let mut text = format!(
        "{}; {} planned in {}.\n\n",
        run.summary(),
        planned.recipe.method.name(),
        time(answered_after_s())
    );
    text.push_str(&fleet::text(planned));
    let detailed = all || planned.instance.workloads.len() <= table::DETAILED_MAX;
    text.push_str(&table::plan(planned, detailed));
    if !detailed {
        text.push_str("(--all lists every workload)\n");
    }
    text.push_str(&table::hosts(planned));
    if !planned.placement.refused.is_empty() {
        let has_table = !planned.placement.servers.is_empty();
        text.push_str(if has_table { "\n" } else { "" });
        text.push_str(&table::refused(planned, detailed));
    }
    if let Some(survived) = &run.survival {
        text.push('\n');
        text.push_str(&survival::text(survived, detailed));
    }
    text.push_str(&describe_default_costs(&default_costs(run)));
    if let Some(changed) = &planned.changed {
        let list = if changed.servers.is_empty() { "none".to_owned() } else { changed.servers.join(", ") };
        text.push_str(&format!("\nservers that change: {list}\n"));
        text.push_str(&moves(&changed.moved));
    }
    if !run.compared.is_empty() {
        text.push('\n');
        text.push_str(&comparison::table(&run.compared, planned.instance.workloads.len()));
    }
    text
}

/// A line for each workload that cannot stay where it was.
pub(crate) fn moves(moved: &[MovedWorkload]) -> String {
    let mut text = String::new();
    for MovedWorkload { name, from, to } in moved {
        let to = to.as_ref().map_or_else(|| "nowhere".to_owned(), |server| format!("to {server}"));
        text.push_str(&format!(
            "{name} moves from {from} {to}: {from} cannot meet its SLOs with it any more\n"
        ));
    }
    text
}
