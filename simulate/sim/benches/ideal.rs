//! Cost of the ideal model: starts alone, and a full summary.
//!
//! `cargo bench -p sim --bench ideal`

use arrivals::{TimedRequest, TimedRequestSource};
use sim::ideal::{IdealStation, ServiceOrder, StationRun, Summary};
use std::num::NonZeroUsize;
use std::time::Instant;

const COUNT: usize = 2_000_000;

fn main() {
    println!("{:<22}{:>14}{:>9}{:>16}{:>9}", "M/M/c, load 0.9", "starts/s", "ratio", "summarised/s", "ratio");
    let mut first = None;
    for workers in [1usize, 4, 64, 1024] {
        let service = "exp(1ms)".parse().expect("a law");
        let arrival: arrivals::ArrivalPattern = "poisson(1/s)".parse().expect("a process");
        let arrival = arrival.at_utilisation(0.9, workers, &service).expect("positive");
        let demands: Vec<TimedRequest> = TimedRequestSource { arrivals: arrival, service }
            .requests(1)
            .expect("valid")
            .take(COUNT)
            .collect();
        for order in ServiceOrder::ALL {
            let station = IdealStation { workers: NonZeroUsize::new(workers).expect("some"), order };
            let starts = starts(station, &demands);
            let whole = whole(station, &demands);
            let base = *first.get_or_insert(starts);
            let name = format!("{workers} × {order}");
            let ratio = starts / base;
            let of_whole = whole / base;
            println!("{name:<22}{:>12.1} M{ratio:>9.2}{:>14.1} M{of_whole:>9.2}", starts / 1e6, whole / 1e6);
        }
    }
}

fn starts(station: IdealStation, demands: &[TimedRequest]) -> f64 {
    let begin = Instant::now();
    let mut sum = 0u64;
    station.starts(demands.iter().copied(), 1, |_, _, start| sum ^= start.0).expect("sorted");
    assert!(sum != 1, "the starts are used");
    COUNT as f64 / begin.elapsed().as_secs_f64()
}

fn whole(station: IdealStation, demands: &[TimedRequest]) -> f64 {
    let begin = Instant::now();
    let mut play = StationRun::new(station, 1, 0, Summary::of_one_stream());
    demands.iter().for_each(|demand| play.arrive(*demand).expect("sorted"));
    assert_eq!(play.finish().count(), COUNT as u64);
    COUNT as f64 / begin.elapsed().as_secs_f64()
}
