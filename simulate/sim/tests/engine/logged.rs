//! Single requests of a run against Lindley's equation and against the measures.

use crate::support::{SERVICE, entry, exponential, single};
use discipline::serve::DisciplineSpec;
use sim::engine::{Histogram, MeasurementWindow, NetworkStation, QueueingNetwork, SimulationEngine};
use units::Nanos;

#[test]
fn passages_follow_lindley() {
    let network = single(1, DisciplineSpec::Fifo);
    let entries = || vec![entry(3, 0.8, |random| exponential(random, 1.0))];
    let window = MeasurementWindow { warm_up: 100, ..MeasurementWindow::of_requests(5000) };
    let (measures, passages) =
        SimulationEngine::new(&network, entries(), 1).unwrap().run_logged(window).unwrap();
    assert_eq!(measures, SimulationEngine::new(&network, entries(), 1).unwrap().run(window).unwrap());
    assert_eq!(passages.len(), 5000);
    let mut response = Histogram::default();
    for pair in passages.windows(2) {
        let [before, after] = pair else { unreachable!("pairs") };
        let done = after.done.expect("all are complete");
        // FIFO: service begins when the one before has left, if it is not gone yet.
        let begins = before.done.expect("all are complete").max(after.arrival);
        assert!(done > begins && (done - begins).0 < 100 * 1_000_000 && before.arrival <= after.arrival);
        assert_eq!(after.stations, [done - after.arrival]);
    }
    passages.iter().for_each(|at| response.record((at.done.unwrap() - at.arrival).0));
    assert_eq!(response, measures.response);
}

#[test]
fn a_window_of_time_has_the_requests_that_arrive_within_it() {
    let station = |name| NetworkStation::new(name, 1, DisciplineSpec::Fifo);
    let network = QueueingNetwork::chain(vec![station("first"), station("second")]);
    let span = (Nanos(200_000_000), Nanos(900_000_000));
    let window = MeasurementWindow { span: Some(span), ..MeasurementWindow::of_requests(0) };
    let load = vec![entry(4, 0.5, |_| 1.0)];
    let (measures, passages) = SimulationEngine::new(&network, load, 1).unwrap().run_logged(window).unwrap();
    assert!(passages.iter().all(|at| (span.0..span.1).contains(&at.arrival)));
    assert!(passages.len() as u64 == measures.arrivals && passages.len() > 200);
    for at in &passages {
        // Nothing between the stations, and no queue at the second behind equal services.
        assert_eq!(at.stations.iter().map(|time| time.0).sum::<u64>(), (at.done.unwrap() - at.arrival).0);
        assert!((at.stations[1].as_secs() * 1e9 - SERVICE).abs() < 1.0);
    }
}
