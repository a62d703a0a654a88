//! The price of a cause is what p99 is when the cause is really removed: the server runs with it, the replay predicts p99
//! without it, and then the server runs without it. Takes root.
//!
//! The p99 of a few seconds is itself uncertain, and more so beside other programs. So each of eight cells fails only if all
//! of its repeats are off by a factor of two in the same direction, and all repeats together if their median is certain to
//! be off by more than a fifth. `cargo bench -p observe --bench price` has the whole table.

mod cell;
mod clients;
mod injected;
mod table;

use cell::{Cell, Server};
use confidence::median_ranks;
use injected::Injected;
use observe::{AttachedProbes, ProbeSettings};
use std::time::{Duration, Instant};
use table::{HEAD, Row, TOLERANCE, Verdict, median};

/// Repeats of a cell, and the time of each run.
const REPEATS: u64 = 4;
const TIME: Duration = Duration::from_millis(800);

/// No cell begins later than this: on a machine where runs have to be repeated, the rest is left out.
const BUDGET: Duration = Duration::from_secs(150);

/// Factor by which noise does not put all repeats of a cell off in the same direction.
const GROSS: f64 = 2.0;

/// Confidence with which all repeats together have to show that prices are off.
const CONFIDENCE: f64 = 0.99;

const CONNECTIONS: [usize; 4] = [1, 2, 8, 32];

/// Cells that have to be measured before they say anything together, of eight.
const CELLS_MIN: usize = 4;

#[test]
fn a_price_is_what_removing_the_cause_brings() {
    if let Err(error) = AttachedProbes::attach(&ProbeSettings::of_ports([1])) {
        return testkit::skip(&error.to_string());
    }
    for program in ["memcached", "nginx", "taskset", "chrt"] {
        if testkit::program(program).is_none() {
            return;
        }
    }
    if cell::server_cpu() == 0 {
        return testkit::skip("one CPU: clients and server would be in each other's way");
    }
    println!("{HEAD}");
    let begin = Instant::now();
    let mut rows: Vec<Row> = Vec::new();
    for (number, injected) in Injected::ALL.into_iter().enumerate() {
        for (place, server) in Server::ALL.into_iter().enumerate() {
            // Each number of connections with each server.
            let connections = CONNECTIONS[(number + 2 * place) % CONNECTIONS.len()];
            let cell = Cell { injected, server, connections };
            if begin.elapsed() > BUDGET {
                testkit::skip(&format!("the machine is too busy for {cell:?}"));
                continue;
            }
            let row = Row::measure(cell, REPEATS, TIME);
            println!("{}", row.line());
            rows.push(row);
        }
    }
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    let gross: Vec<&Row> = rows.iter().filter(|row| row.is_beyond(GROSS)).collect();
    assert!(gross.iter().all(|row| row.verdict() == Verdict::NotMeasured), "{gross:#?}");
    let without_number = count(Verdict::NoNumber);
    assert!(without_number * 2 <= rows.len(), "{without_number} of {} cells have no number", rows.len());
    let measured = rows.len() - without_number - count(Verdict::NotMeasured);
    if measured < CELLS_MIN {
        let reasons: Vec<&String> = rows.iter().flat_map(|row| &row.failed).collect();
        return testkit::skip(&format!("{measured} cells could be measured: {reasons:#?}"));
    }
    // Noise hides much in one cell, and little in all of them together.
    let mut ratios: Vec<f64> = rows.iter().flat_map(Row::ratios).collect();
    ratios.sort_by(f64::total_cmp);
    let (low, high) = median_ranks(ratios.len(), CONFIDENCE).expect("four cells have enough repeats");
    let [low, high] = [low, high].map(|rank| ratios[rank - 1]);
    println!(
        "predicted ÷ measured in {} repeats: median {:.2} ({low:.2} to {high:.2})",
        ratios.len(),
        median(&ratios)
    );
    assert!(low <= TOLERANCE && high >= 1.0 / TOLERANCE, "{ratios:?}");
}
