//! Traffic from requests, and its halves.

mod support;

use model::{Job, PerStage, Stage};
use tailwright_predict::{Traffic, TrafficError};
use units::Nanos;

fn job(arrival: u64, work: u64) -> Job {
    Job { arrival: Nanos(arrival), work: PerStage::from_fn(|_| Nanos(work)) }
}

#[test]
fn rejects_what_is_not_traffic() {
    assert_eq!(Traffic::of_jobs(Vec::new()), Err(TrafficError::Empty));
    assert_eq!(Traffic::of_jobs(vec![job(5, 1), job(4, 1)]), Err(TrafficError::Unsorted(1)));
    assert_eq!(Traffic::new(vec![job(0, 1), job(9, 1)], Nanos(8)), Err(TrafficError::ShortPeriod));
}

#[test]
fn counts_time_from_the_first_arrival() {
    let traffic = Traffic::of_jobs(vec![job(100, 3), job(200, 3), job(400, 3)]).unwrap();
    assert_eq!(traffic.jobs()[2].arrival, Nanos(300));
    // Two gaps in 300 ns: the next round starts after another 150 ns.
    assert_eq!(traffic.period(), Nanos(450));
    assert!((traffic.utilisation()[Stage::Storage] - 9.0 / 450.0).abs() < 1e-12);
    assert_eq!(Traffic::of_jobs(vec![job(7, 3)]).unwrap().period(), Nanos(1_000_000_000));
}

#[test]
fn halves_hold_every_job_once() {
    let Some(all) = support::published(support::Through::Server) else { return };
    for real in all {
        let [first, second] = real.traffic.halves().expect("ten minutes of requests");
        assert_eq!(first.jobs().len() + second.jobs().len(), real.traffic.jobs().len(), "{}", real.name);
        assert!(first.period() >= Nanos(real.traffic.period().0 / 2), "{}", real.name);
    }
}
