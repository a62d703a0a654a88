//! A plan beside those of other methods, as a table.

use crate::terminal::{Align, TextTable};
use workflow::planning::MethodComparison;
use workflow::text::time;

/// The table for people, a row per method.
pub(crate) fn table(rows: &[MethodComparison], workloads: usize) -> String {
    let mut table = TextTable::new(&[
        ("policy", Align::Left),
        ("servers", Align::Right),
        ("admitted", Align::Right),
        ("CPU", Align::Right),
    ]);
    for row in rows {
        table.row(vec![
            row.policy_name.clone(),
            row.servers_used.to_string(),
            format!("{} of {workloads}", row.workloads_admitted),
            time(row.cpu_s),
        ]);
    }
    table.render()
}
