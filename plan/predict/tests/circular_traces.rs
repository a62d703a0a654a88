//! The rules of circular traces where the models rely on them, and the halves of real ones.

mod support;

use model::{CircularTrace, CircularTraceError, Job, PerStage, Stage};
use units::Nanos;

fn job(arrival: u64, work: u64) -> Job {
    Job { arrival: Nanos(arrival), work: PerStage::from_fn(|_| Nanos(work)) }
}

#[test]
fn rejects_what_is_not_traffic() {
    assert_eq!(CircularTrace::<Job>::repeating(Vec::new()), Err(CircularTraceError::Empty));
    assert_eq!(CircularTrace::repeating(vec![job(5, 1), job(4, 1)]), Err(CircularTraceError::Unsorted(1)));
    assert_eq!(
        CircularTrace::from_first_arrival(vec![job(0, 1), job(9, 1)], Nanos(8)),
        Err(CircularTraceError::Period)
    );
}

#[test]
fn counts_time_from_the_first_arrival() {
    let traffic = CircularTrace::repeating(vec![job(100, 3), job(200, 3), job(400, 3)]).unwrap();
    assert_eq!(traffic.items()[2].arrival, Nanos(300));
    // Two gaps in 300 ns: the next round starts after another 150 ns.
    assert_eq!(traffic.period(), Nanos(450));
    assert!((traffic.utilisation()[Stage::Storage] - 9.0 / 450.0).abs() < 1e-12);
    assert_eq!(CircularTrace::repeating(vec![job(7, 3)]).unwrap().period(), Nanos(1_000_000_000));
}

#[test]
fn halves_hold_every_job_once() {
    let Some(all) = support::published(support::Through::Server) else { return };
    for real in all {
        let [first, second] = real.traffic.halves().expect("ten minutes of requests");
        assert_eq!(first.items().len() + second.items().len(), real.traffic.items().len(), "{}", real.name);
        assert!(first.period() >= Nanos(real.traffic.period().0 / 2), "{}", real.name);
    }
}
