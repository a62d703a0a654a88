//! Outcomes of orders of arrival, compared with the offline optimum.

use crate::procedures::Decider;
use crate::support::{quantile, sorted};
use crate::world::{Arrival, World, met};
use placement::admission::largest_prefix;
use sim::Alignment;
use std::time::{Duration, Instant};

/// Outcome of an order.
pub(crate) struct Run {
    order: usize,
    admitted: usize,
    bytes: f64,
    met: [usize; 2],
    time: Duration,
}

pub(crate) struct Row {
    name: String,
    runs: Vec<Run>,
}

impl Row {
    fn print(&self) {
        let of = |value: &dyn Fn(&Run) -> f64| sorted(self.runs.iter().map(value));
        let three = |values: Vec<f64>| [0.25, 0.5, 0.75].map(|part| quantile(&values, part));
        let [low, median, high] = three(of(&|r| r.admitted as f64));
        let [_, bytes, _] = three(of(&|r| r.bytes / 1e6));
        let total: usize = self.runs.iter().map(|r| r.admitted).sum();
        let share = |which: usize| {
            100.0 * self.runs.iter().map(|r| r.met[which]).sum::<usize>() as f64 / total.max(1) as f64
        };
        let clean = self.runs.iter().filter(|r| r.met[0] == r.admitted).count();
        let time = of(&|r| r.time.as_secs_f64() * 1e3);
        println!(
            "{:22} {:>6} {:>7.0} {:>7.0} {:>7.0} {:>9.0} | {:>8.3}% {:>8.3}% {:>9} | {:>9.3} ms {:>9.3} ms",
            self.name,
            self.runs.len(),
            low,
            median,
            high,
            bytes,
            share(0),
            share(1),
            format!("{clean}/{}", self.runs.len()),
            quantile(&time, 0.5),
            quantile(&time, 1.0)
        );
    }
}

pub(crate) fn print_rows(rows: &[Row]) {
    println!(
        "{:22} {:>6} {:>7} {:>7} {:>7} {:>9} | {:>9} {:>9} {:>9} | {:>12} {:>12}",
        "procedure",
        "orders",
        "p25",
        "median",
        "p75",
        "MB",
        "met, half",
        "3 minutes",
        "clean",
        "per decision",
        "worst order"
    );
    rows.iter().filter(|row| !row.runs.is_empty()).for_each(Row::print);
}

/// Runs the deciders over orders of arrival and prints results on the way.
pub(crate) fn compare(
    world: &World,
    procedures: &[Box<dyn Decider>],
    orders: usize,
    seed: u64,
    optima: usize,
    draw: impl Fn(u64) -> Vec<Arrival>,
) {
    let mut rows: Vec<Row> = procedures.iter().map(|o| Row { name: o.name(), runs: Vec::new() }).collect();
    rows.push(Row { name: "OPT (on unseen)".into(), runs: Vec::new() });
    let every = orders.div_ceil(4);
    for order in 0..orders {
        let order_seed = seed.wrapping_mul(1_000_003) + order as u64;
        let arrivals = draw(order_seed);
        for (procedure, row) in
            procedures.iter().zip(&mut rows).filter(|(procedure, _)| order < procedure.orders())
        {
            let start = Instant::now();
            let admitted = procedure.decide(&arrivals);
            let time = start.elapsed() / u32::try_from(arrivals.len()).expect("few arrivals");
            row.runs.push(run(world, &arrivals, &admitted, order, order_seed, time));
        }
        if order < optima {
            let run = optimum(world, &arrivals, order, order_seed);
            rows.last_mut().expect("pushed above").runs.push(run);
        }
        if (order + 1) % every == 0 || order + 1 == orders {
            println!("\nafter {} orders", order + 1);
            print_rows(&rows);
        }
    }
    against_optimum(&rows);
}

pub(crate) fn run(
    world: &World,
    arrivals: &[Arrival],
    admitted: &[bool],
    order: usize,
    seed: u64,
    time: Duration,
) -> Run {
    let inside: Vec<&Arrival> =
        arrivals.iter().zip(admitted).filter(|(_, inside)| **inside).map(|(a, _)| a).collect();
    let count = |met: &Vec<bool>| met.iter().filter(|met| **met).count();
    let met = if inside.is_empty() { [0, 0] } else { world.judge(&inside, seed).each_ref().map(count) };
    let bytes = inside.iter().map(|a| world.bytes[a.trace]).sum();
    Run { order, admitted: inside.len(), bytes, met, time }
}

/// Thesis §4.4.2; judged in the very alignment in which it is found.
pub(crate) fn optimum(world: &World, arrivals: &[Arrival], order: usize, seed: u64) -> Run {
    let holds = |n: usize| {
        let inside: Vec<&Arrival> = arrivals[..n].iter().collect();
        let Some(system) = world.system(&inside) else { return false };
        let shifts = Alignment::Random { seed, index: 0 }.shifts(&system);
        met(&system, &shifts, &inside).iter().all(|met| *met)
    };
    let start = Instant::now();
    let best = largest_prefix(arrivals.len(), 6, holds);
    let time = start.elapsed() / u32::try_from(best.judged.max(1)).expect("few");
    let admitted: Vec<bool> = (0..arrivals.len()).map(|i| i < best.length).collect();
    run(world, arrivals, &admitted, order, seed, time)
}

/// Medians of admitted ÷ optimum over the orders that have one.
pub(crate) fn against_optimum(rows: &[Row]) {
    let Some(best) = rows.last().filter(|row| !row.runs.is_empty()) else { return };
    println!("\nadmitted and bytes ÷ OPT, medians over its orders");
    for row in rows {
        let pairs =
            || row.runs.iter().filter_map(|r| Some((r, best.runs.iter().find(|b| b.order == r.order)?)));
        let ratio = sorted(pairs().map(|(r, b)| r.admitted as f64 / b.admitted as f64));
        let bytes = sorted(pairs().map(|(r, b)| r.bytes / b.bytes));
        println!("{:22} {:>6.2} {:>6.2}", row.name, quantile(&ratio, 0.5), quantile(&bytes, 0.5));
    }
}
