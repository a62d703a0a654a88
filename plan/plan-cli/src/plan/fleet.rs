//! The servers of each class and their prices, beside those of one class alone.

use cli::terminal::{Align, TextTable};
use operation::text::{amount, percent};
use plan::planning::{ClassAlone, ClassUse, FleetPrices, PlannedCluster};
use plot::{Block, Cell, Column, Table, Unit};
use units::plural;

/// Cell of what was not planned.
const NOT_PLANNED: &str = "–";

/// A row for each class, and what the prices show; empty if servers have none.
pub(crate) fn text(planned: &PlannedCluster) -> String {
    let Some(fleet) = &planned.fleet else { return String::new() };
    let mut table = TextTable::new(&[
        ("class", Align::Left),
        ("price each", Align::Right),
        ("servers", Align::Right),
        ("price", Align::Right),
        ("alone", Align::Right),
        ("alone price", Align::Right),
    ]);
    for class in &fleet.classes {
        let mut row = vec![class.class.clone(), amount(class.price_each)];
        row.push(format!("{} of {}", class.servers, class.count));
        row.push(amount(class.price));
        row.extend(alone(class));
        table.row(row);
    }
    let mut text = table.answered_by(&["servers", "price"]).render();
    evidence(planned, fleet).iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
    text.push('\n');
    text
}

/// Servers and price of a class alone.
fn alone(class: &ClassUse) -> [String; 2] {
    match class.alone {
        None => [NOT_PLANNED; 2].map(str::to_owned),
        Some(ClassAlone { servers, price, workloads_refused: 0 }) => [servers.to_string(), amount(price)],
        Some(ClassAlone { workloads_refused, .. }) => {
            [format!("{workloads_refused} refused"), NOT_PLANNED.to_owned()]
        }
    }
}

/// Sentences that compare the price with those of one class, of the lower bound and of missing servers.
pub(crate) fn evidence(planned: &PlannedCluster, fleet: &FleetPrices) -> Vec<String> {
    let mut sentences = Vec::new();
    let is_whole = planned.placement.refused.is_empty();
    if is_whole && let Some((class, alone)) = fleet.cheapest_alone() {
        let servers = format!("{} of class '{}' alone", plural(alone.servers, "server"), class.class);
        sentences.push(if fleet.price < alone.price * (1.0 - 1e-9) {
            let less = percent(1.0 - fleet.price / alone.price);
            format!("These servers cost {less} less than the cheapest of one class, {servers}.")
        } else if fleet.price > alone.price * (1.0 + 1e-9) {
            let more = percent(fleet.price / alone.price - 1.0);
            format!("These servers cost {more} more than {servers}, of which there are {}.", class.count)
        } else {
            format!("No cheaper mix was found than {servers}.")
        });
    }
    if is_whole && planned.changed.is_none() {
        sentences.push(if fleet.is_least() {
            "No servers are cheaper: the price is at the lower bound.".to_owned()
        } else {
            format!(
                "Cheaper servers were not found; they may exist down to {}.",
                amount(fleet.price_lower_bound)
            )
        });
    }
    if !fleet.missing.is_empty() {
        let more = fleet.missing.iter().map(|missing| {
            let servers = plural(missing.count, "more server");
            format!("{servers} of class '{}' for {}", missing.class, amount(missing.price))
        });
        let more: Vec<String> = more.collect();
        sentences
            .push(format!("All workloads that some class suits are admitted with {}.", more.join(" and ")));
    }
    sentences
}

/// The same for a page.
pub(crate) fn blocks(planned: &PlannedCluster, fleet: &FleetPrices) -> Vec<Block> {
    let mut table = Table::new([
        Column::name("class"),
        Column::number("price each"),
        Column::number("servers"),
        Column::number("of"),
        Column::number("price"),
        Column::number("alone"),
        Column::number("alone price"),
    ]);
    for class in &fleet.classes {
        let mut cells =
            vec![Cell::text(&class.class), Cell::keyed(amount(class.price_each), class.price_each)];
        cells.push(Cell::number(class.servers as f64, Unit::Plain));
        cells.push(Cell::number(class.count as f64, Unit::Plain));
        cells.push(Cell::keyed(amount(class.price), class.price));
        cells.extend(alone(class).map(Cell::text));
        table.push(cells);
    }
    let mut blocks = vec![table.into()];
    blocks.extend(evidence(planned, fleet).into_iter().map(Block::paragraph));
    blocks
}
