//! A plan beside those of other methods, as a table.

use cli::terminal::{Align, TextTable};
use operation::text::{amount, time};
use plan::planning::MethodComparison;

/// Cell of an order that was not tried.
const NOT_TRIED: &str = "–";

/// The table for people, a row per method, with its two orders side by side and the CPU time of both together.
pub(crate) fn table(rows: &[MethodComparison], workloads: usize) -> String {
    let is_priced = is_priced(rows);
    let mut columns = vec![("policy", Align::Left)];
    for order in ["first fit", "best order"] {
        columns.push((order, Align::Right));
        if is_priced {
            columns.push(("price", Align::Right));
        }
        columns.push(("admitted", Align::Right));
    }
    columns.push(("CPU", Align::Right));
    let mut table = TextTable::new(&columns);
    for row in rows {
        let mut cells = vec![row.policy_name.clone()];
        let orders = [row.first_fit, row.best_order];
        for one in orders {
            let servers = one.map(|one| one.servers_used.to_string());
            let price = is_priced.then(|| one.and_then(|one| one.price).map(amount));
            let admitted = one.map(|one| format!("{} of {workloads}", one.workloads_admitted));
            let of_order = [Some(servers), price, Some(admitted)].into_iter().flatten();
            cells.extend(of_order.map(|cell| cell.unwrap_or_else(|| NOT_TRIED.to_owned())));
        }
        let tried: Vec<f64> = orders.iter().flatten().map(|one| one.cpu_s).collect();
        cells.push(if tried.is_empty() { NOT_TRIED.to_owned() } else { time(tried.iter().sum()) });
        table.row(cells);
    }
    let mut text = format!(
        "servers by first fit in order of arrival, and in the best order that is found:\n{}",
        table.answered_by(&["first fit", "best order", "admitted"]).render()
    );
    notes(rows).for_each(|note| text.push_str(&format!("{note}\n")));
    text
}

fn is_priced(rows: &[MethodComparison]) -> bool {
    let orders = rows.iter().flat_map(|row| [row.first_fit, row.best_order]);
    orders.flatten().any(|one| one.price.is_some())
}

/// Why methods have fewer servers than `tailwright`, a line for each.
pub(crate) fn notes(rows: &[MethodComparison]) -> impl Iterator<Item = String> {
    let fewer = if is_priced(rows) { "cheaper" } else { "fewer" };
    rows.iter().filter_map(move |row| Some(format!("{fewer} by {}: {}", row.policy_name, row.note.as_ref()?)))
}
