#[path = "../tests/support/mod.rs"]
mod support;
use calculus::snc::*;
use model::Stage;
use std::sync::Arc;
use workload::mmpp::*;
use units::Nanos;
fn fit(real: &support::Real, stage: Stage, o: FitOptions) -> Arc<dyn Envelope> {
    let mut f = Fitter::new(o);
    for j in real.traffic.jobs() { f.push(j.arrival, j.work[stage].0 as f64 / 1e9); }
    let p = f.finish().unwrap();
    let step = p.step.0 as f64 / 1e9;
    let states = p.states.iter().map(|s| MarkovState { per_step: s.rate * step, mean_work: s.mean_work }).collect();
    let q = SquareMatrix::from_fn(p.states.len(), |i, j| p.states[i].next[j]);
    let m = MarkovArrivals::new(states, q, step, Prefactor::Dropped).unwrap();
    Arc::new(RateTable::new(Grid { low: 0.05, per_decade: 100, points: 801 }, &m))
}
fn main() {
    let mut o = FitOptions::PUBLISHED;
    if let Some(a) = std::env::args().nth(1) { o.states_max = a.parse().unwrap(); }
    let all = support::published(support::Through::Link).unwrap();
    for r in all.iter().take(8) {
        let mut f = Fitter::new(o);
        for j in r.traffic.jobs() { f.push(j.arrival, j.work[Stage::NetworkIn].0 as f64 / 1e9); }
        let p = f.finish().unwrap();
        println!("{} states {} util {:?}", r.name, p.states.len(), r.traffic.utilisation());
    }
    let step = Step::new(1e-5).unwrap();
    let net = |idx: &[usize], prio: &dyn Fn(usize)->u32, group: &dyn Fn(usize)->usize| -> Vec<Network> {
        [Stage::NetworkIn, Stage::NetworkOut].iter().map(|&st| {
            let flows = idx.iter().enumerate().map(|(k, &i)| Flow { arrivals: ArrivalProcess::source(&all[i].name, Source(group(k)), fit(&all[i], st, o)), priority: prio(k), from: 0, to: 0 }).collect();
            Network::new(vec![ServiceProcess::constant("S", 1.0)], vec![ServiceProcess::constant("V", 1.0)], flows).unwrap()
        }).collect()
    };
    let lat = |n: &[Network], k, ord, eps: [f64;2]| -> Option<f64> {
        let mut t = 0.0;
        for (n, e) in n.iter().zip(eps) { t += n.latency(k, ord, e, step)?.iter().map(|b| b.latency).sum::<f64>(); }
        Some(t * 1e3)
    };
    // one-queue latency
    let one = |idx: &[usize], k: usize, group: &dyn Fn(usize)->usize, eps: [f64;2]| -> Option<f64> {
        let mut t = 0.0;
        for (st, e) in [Stage::NetworkIn, Stage::NetworkOut].iter().zip(eps) {
            let ps: Vec<_> = idx.iter().enumerate().map(|(q,&i)| ArrivalProcess::source(&all[i].name, Source(group(q)), fit(&all[i], *st, o))).collect();
            let others: Vec<_> = ps.iter().enumerate().filter(|(q,_)| *q<k).map(|(_,p)| p.clone()).collect();
            let s = ServiceProcess::constant("S", 1.0);
            let s = if others.is_empty() { s } else { s.leftover(&aggregate_in_groups(&others)) };
            t += LatencyQuery { arrivals: ps[k].clone(), service: s, exceeded: e, step }.solve()?.latency;
        }
        Some(t*1e3)
    };
    for n in [1usize, 2, 4, 8] {
        let idx: Vec<usize> = (0..n).collect();
        let nw = net(&idx, &|k| k as u32, &|k| k);
        for (name, e) in [("half", [5e-4, 5e-4]), ("1.5", [1e-3, 5e-4])] {
            println!("n={n} {name}: one queue {:?}, two: hop {:?} conv {:?} agg {:?}", one(&idx, n-1, &|k| k, e),
              lat(&nw, n-1, Order::HopByHop, e), lat(&nw, n-1, Order::Convolution, e), lat(&nw, n-1, Order::AggregateFirst, e));
        }
    }
    let idx: Vec<usize> = (0..8).collect();
    for e in [1e-1, 1e-2, 1e-3] { println!("eps {e} one queue half {:?} 1.5 {:?}", one(&idx, 7, &|k| k, [e/2.0, e/2.0]), one(&idx, 7, &|k| k, [e, e/2.0])); }
    for dep in [0usize, 2, 3, 4] {
        let g = |k: usize| if k < dep { 0 } else { k };
        let g2 = |k: usize| if k >= 4 - dep { 0 } else { k + 1 };
        let idx = [2usize; 4];
        println!("dep {dep} one queue first {:?} last {:?}", one(&idx, 3, &g, [5e-4, 5e-4]), one(&idx, 3, &g2, [5e-4, 5e-4]));
        println!("dep {dep} one queue first {:?} last {:?}", one(&idx, 3, &g, [1e-3, 5e-4]), one(&idx, 3, &g2, [1e-3, 5e-4]));
        if dep > 0 { break; }
    }
}
