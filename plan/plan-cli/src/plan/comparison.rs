//! A plan beside those of other methods, as a table.

use cli::terminal::{Align, TextTable};
use operation::text::time;
use plan::planning::{MethodComparison, OrderComparison};

/// Cell of an order that was not tried.
const NOT_TRIED: &str = "–";

/// The table for people, a row per method, with its two orders side by side and the CPU time of both together.
pub(crate) fn table(rows: &[MethodComparison], workloads: usize) -> String {
    let mut table = TextTable::new(&[
        ("policy", Align::Left),
        ("first fit", Align::Right),
        ("admitted", Align::Right),
        ("best order", Align::Right),
        ("admitted", Align::Right),
        ("CPU", Align::Right),
    ]);
    for row in rows {
        let mut cells = vec![row.policy_name.clone()];
        let orders = [row.first_fit, row.best_order];
        for one in orders {
            cells.extend(
                one.map_or_else(|| [NOT_TRIED; 2].map(str::to_owned), |one| cells_of(&one, workloads)),
            );
        }
        let tried: Vec<f64> = orders.iter().flatten().map(|one| one.cpu_s).collect();
        cells.push(if tried.is_empty() { NOT_TRIED.to_owned() } else { time(tried.iter().sum()) });
        table.row(cells);
    }
    format!(
        "servers by first fit in order of arrival, and in the best order that is found:\n{}",
        table.answered_by(&["first fit", "best order", "admitted"]).render()
    )
}

fn cells_of(one: &OrderComparison, workloads: usize) -> [String; 2] {
    [one.servers_used.to_string(), format!("{} of {workloads}", one.workloads_admitted)]
}
