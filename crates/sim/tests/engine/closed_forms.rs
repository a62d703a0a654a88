//! Queues whose response times are known.

use crate::support::{SERVICE, entry, exponential, single};
use discipline::serve::Kind;
use tailwright_sim::engine::{Engine, Window};
use units::Percentile;

#[test]
fn mm1_has_an_exponential_response_time() {
    let network = single(1, Kind::Fifo);
    let load = vec![entry(7, 0.7, |random| exponential(random, 1.0))];
    let measures = Engine::new(&network, load, 0).unwrap().run(Window::of(400_000)).unwrap();
    // Rate 1 − ρ per service time: mean 1/0.3, p-quantile −ln(1 − p)/0.3.
    let mean = measures.response.mean().unwrap() / SERVICE;
    assert!((mean * 0.3 - 1.0).abs() < 0.03, "{mean}");
    for percent in [50.0, 90.0, 99.0] {
        let p = Percentile::new(percent).unwrap();
        let exact = -(1.0 - p.fraction()).ln() / 0.3;
        let got = measures.response.percentile(p).unwrap().0 as f64 / SERVICE;
        assert!((got / exact - 1.0).abs() < 0.06, "p{percent}: {got} instead of {exact}");
    }
    assert_eq!((measures.arrivals, measures.unfinished), (400_000, 0));
    assert!((measures.stations[0].present_mean / (0.7 / 0.3) - 1.0).abs() < 0.04);
    assert!((measures.stations[0].offered / 0.7 - 1.0).abs() < 0.01);
}
