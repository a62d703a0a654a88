//! A plan beside those of other methods, as a table.

use crate::terminal::{Align, TextTable};
use workflow::planning::{MethodComparison, OrderComparison};
use workflow::text::time;

/// The table for people, a row per method, with its two orders side by side.
pub(crate) fn table(rows: &[MethodComparison], workloads: usize) -> String {
    let mut table = TextTable::new(&[
        ("policy", Align::Left),
        ("first fit", Align::Right),
        ("admitted", Align::Right),
        ("CPU", Align::Right),
        ("best order", Align::Right),
        ("admitted", Align::Right),
        ("CPU", Align::Right),
    ]);
    for row in rows {
        let mut cells = vec![row.policy_name.clone()];
        for one in [row.first_fit, row.best_order] {
            cells.extend(one.map_or_else(|| ["–"; 3].map(str::to_owned), |one| order_cells(&one, workloads)));
        }
        table.row(cells);
    }
    format!(
        "servers by first fit in order of arrival, and in the best order that is found:\n{}",
        table.render()
    )
}

fn order_cells(one: &OrderComparison, workloads: usize) -> [String; 3] {
    let admitted = format!("{} of {workloads}", one.workloads_admitted);
    [one.servers_used.to_string(), admitted, time(one.cpu_s)]
}
