//! Prices of causes against their real removal, for each cause, server and number of connections: the table of
//! `evaluation/results/observe.md`. Takes root, and about 25 minutes; `cargo bench -p observe --bench price -- 3` has
//! three repeats of each cell.

#[path = "../tests/price_live/cell.rs"]
mod cell;
#[path = "../tests/price_live/clients.rs"]
mod clients;
#[path = "../tests/price_live/injected.rs"]
mod injected;
#[path = "../tests/price_live/table.rs"]
mod table;

use cell::{Cell, Server};
use injected::Injected;
use std::time::Duration;
use table::{HEAD, Row, TOLERANCE, Verdict, median};

const REPEATS: u64 = 5;
const TIME: Duration = Duration::from_secs(3);

fn main() {
    let repeats = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(REPEATS);
    println!("{HEAD}");
    let mut rows = Vec::new();
    for injected in Injected::ALL {
        for server in Server::ALL {
            for connections in [1, 2, 8, 32] {
                let row = Row::measure(Cell { injected, server, connections }, repeats, TIME);
                println!("{}", row.line());
                row.failed.iter().for_each(|reason| eprintln!("not measured: {reason}"));
                rows.push(row);
            }
        }
    }
    for verdict in [Verdict::Within, Verdict::Off, Verdict::Noise, Verdict::NoNumber, Verdict::NotMeasured] {
        println!("{verdict:?}: {}", rows.iter().filter(|row| row.verdict() == verdict).count());
    }
    let mut ratios: Vec<f64> = rows.iter().flat_map(Row::ratios).collect();
    ratios.sort_by(f64::total_cmp);
    let within = ratios.iter().filter(|ratio| (1.0 / TOLERANCE..=TOLERANCE).contains(*ratio)).count();
    println!("median of {} ratios: {:.2}; {within} within the tolerance", ratios.len(), median(&ratios));
}
