//! How well the ideal model predicts the response times of a real disk, and what it costs.
//!
//! `cargo bench -p tailwright-sim --bench ideal`

use flate2::read::GzDecoder;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::num::NonZeroUsize;
use std::time::Instant;
use tailwright_sim::ideal::{Distribution, Order, Station};
use tailwright_sim::source::{Demand, Source, scale};
use units::{Nanos, Percentile};

fn main() {
    speed();
    let Some(ios) = ios() else { return };
    let responses = ios.iter().map(|io| io.response).collect();
    let measured = Distribution::new(responses).expect("not empty");
    println!("\n{} I/Os of an NVMe disk during a boot; times in µs", ios.len());
    definition(&ios);
    println!("\n{:<46}{:>9}{:>9}{:>10}{:>10}{:>9}", "station", "mean", "p50", "p99", "p99.9", "distance");
    show("measured", &measured, &measured);
    println!("service as recorded:");
    compare(&measured, &recorded(&ios), &[1, 2, 4]);
    println!("service constant, the mean of the recorded:");
    let mean = ios.iter().map(|io| io.service.0).sum::<u64>() / ios.len() as u64;
    compare(&measured, &demands(&ios, |_| Nanos(mean)), &[1, 2, 4]);
    println!("service drawn from I/Os of the same kind that were alone:");
    compare(&measured, &alone(&ios), &[1, 2, 4, 8, 16, 32, 64]);
    one_by_one(&ios);
}

struct Io {
    arrival: Nanos,
    end: Nanos,
    response: Nanos,
    service: Nanos,
    bytes: u64,
    read: bool,
    was_alone: bool,
}

/// All, by arrival; `None`, loudly, where the data is absent.
fn ios() -> Option<Vec<Io>> {
    let path = testkit::shared("data/windows_boot_nvme/io.csv.gz")?;
    let lines = BufReader::new(GzDecoder::new(File::open(path).expect("it exists"))).lines();
    let io = |line: std::io::Result<String>| {
        let line = line.expect("readable");
        let fields: Vec<&str> = line.split(',').collect();
        let time =
            |place: usize, unit: &str| format!("{}{unit}", fields[place]).parse::<Nanos>().expect("a time");
        Io {
            arrival: time(0, "s"),
            end: time(1, "s"),
            response: time(2, "us"),
            service: time(3, "us"),
            bytes: fields[4].parse().expect("a size"),
            read: fields[6] == "R",
            was_alone: fields[7] == "0" && fields[8] == "0",
        }
    };
    Some(lines.skip(1).map(io).collect())
}

/// The recorded service time is no property of the device.
fn definition(ios: &[Io]) {
    let mut by_end: Vec<&Io> = ios.iter().collect();
    by_end.sort_by_key(|io| io.end);
    let mut previous = Nanos::ZERO;
    let mut same = 0;
    for io in by_end {
        let since = io.end - io.arrival.max(previous).min(io.end);
        previous = io.end;
        same += usize::from(since.0.abs_diff(io.service.0) <= 200);
    }
    println!(
        "recorded service = end − the later of arrival and previous end, to 0.2 µs, for {:.2} % of the I/Os",
        100.0 * same as f64 / ios.len() as f64
    );
    let demands = recorded(ios);
    println!(
        "utilisation of one worker by it: {:.1} %",
        100.0 * scale::utilisation(&demands, 1).expect("spread")
    );
}

fn demands(ios: &[Io], mut service: impl FnMut(&Io) -> Nanos) -> Vec<Demand> {
    ios.iter().map(|io| Demand { arrival: io.arrival, service: service(io) }).collect()
}

fn recorded(ios: &[Io]) -> Vec<Demand> {
    demands(ios, |io| io.service)
}

/// Response times of I/Os that neither found nor left another one, by direction and power of two of the size;
/// where fewer than ten were alone, those of the next smaller size that has them, or larger.
fn alone(ios: &[Io]) -> Vec<Demand> {
    let kind = |io: &Io| (io.read, io.bytes.max(1).ilog2());
    let mut samples: BTreeMap<(bool, u32), Vec<Nanos>> = BTreeMap::new();
    for io in ios.iter().filter(|io| io.was_alone) {
        samples.entry(kind(io)).or_default().push(io.response);
    }
    samples.retain(|_, sample| sample.len() >= 10);
    println!(
        "  ({} I/Os were alone, in {} kinds)",
        ios.iter().filter(|io| io.was_alone).count(),
        samples.len()
    );
    let mut random = StdRng::seed_from_u64(1);
    demands(ios, |io| {
        let (read, size) = kind(io);
        let below = samples.range((read, 0)..=(read, size)).next_back();
        let (_, sample) = below.or_else(|| samples.range((read, size)..).next()).expect("some were alone");
        sample[random.random_range(0..sample.len())]
    })
}

fn compare(measured: &Distribution, demands: &[Demand], workers: &[usize]) {
    for &workers in workers {
        let load = scale::utilisation(demands, workers).expect("spread");
        for order in Order::ALL {
            if workers == 1 && order == Order::RandomWorker {
                continue;
            }
            let station = Station { workers: NonZeroUsize::new(workers).expect("some"), order };
            let predicted = station.distribution(demands.iter().copied(), 1).expect("sorted").expect("some");
            show(&format!("  {workers} × {order}, load {load:.2}"), &predicted, measured);
        }
    }
}

fn show(name: &str, of: &Distribution, measured: &Distribution) {
    let at = |percent| of.percentile(Percentile::new(percent).expect("a percentile")).0 as f64 / 1e3;
    let [p50, p99, p999] = [50.0, 99.0, 99.9].map(at);
    let distance = of.distance(measured);
    println!("{name:<46}{:>9.1}{p50:>9.1}{p99:>10.1}{p999:>10.1}{distance:>9.4}", of.mean().0 * 1e6);
}

/// Request by request.
fn one_by_one(ios: &[Io]) {
    let station = Station { workers: NonZeroUsize::MIN, order: Order::Fifo };
    let predicted = station.latencies(recorded(ios), 0).expect("sorted");
    let errors = predicted.iter().zip(ios).map(|(predicted, io)| Nanos(predicted.0.abs_diff(io.response.0)));
    let errors = Distribution::new(errors.collect()).expect("some");
    let at = |percent| errors.percentile(Percentile::new(percent).expect("a percentile"));
    println!(
        "\n1 × fifo, service as recorded: error per I/O: p50 {}, p90 {}, p99 {}",
        at(50.0),
        at(90.0),
        at(99.0)
    );
}

fn speed() {
    const COUNT: usize = 2_000_000;
    println!("{:<22}{:>14}{:>9}", "M/M/c, load 0.9", "requests/s", "ratio");
    let mut first = None;
    for workers in [1usize, 4, 64, 1024] {
        let service = "exp(1ms)".parse().expect("a law");
        let arrival: tailwright_sim::source::Arrival = "poisson(1/s)".parse().expect("a process");
        let arrival = arrival.at_utilisation(0.9, workers, &service).expect("positive");
        let demands: Vec<Demand> =
            Source { arrival, service }.demands(1).expect("valid").take(COUNT).collect();
        for order in Order::ALL {
            let station = Station { workers: NonZeroUsize::new(workers).expect("some"), order };
            let (begin, mut sum) = (Instant::now(), 0u64);
            station.starts(demands.iter().copied(), 1, |_, _, start| sum ^= start.0).expect("sorted");
            let rate = COUNT as f64 / begin.elapsed().as_secs_f64();
            assert!(sum != 1, "the starts are used");
            let ratio = rate / *first.get_or_insert(rate);
            println!("{:<22}{:>12.1} M{ratio:>9.2}", format!("{workers} × {order}"), rate / 1e6);
        }
    }
}
