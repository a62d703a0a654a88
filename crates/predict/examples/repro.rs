#[path = "../tests/support/mod.rs"]
mod support;
use calculus::snc::*;
use model::Stage;
use std::sync::Arc;
use workload::mmpp::*;
use units::Nanos;
fn fit(real: &support::Real, stage: Stage, o: FitOptions) -> Arc<dyn Envelope> {
    let mut f = Fitter::new(o);
    let off: u64 = std::env::args().nth(2).map_or(0, |x| x.parse().unwrap());
    let first = [("C0",0u64)];let _=first;
    if off>0 { f = f.from_origin(units::Nanos(0)); }
    let shift = if off == 1 { std::fs::read_to_string("/tmp/first.txt").unwrap().lines().find_map(|l| l.split_once(' ').filter(|(n,_)| *n == real.name).map(|(_,v)| v.parse::<u64>().unwrap())).unwrap() } else { off };
    for j in real.traffic.jobs() { f.push(units::Nanos(j.arrival.0 + shift), j.work[stage].0 as f64 / 1e9); }
    if off == 2 || off == 3 || off == 4 {
        f = Fitter::new(o).from_origin(Nanos(0));
        let (mut start, mut k) = (0u64, 0u64);
        for j in real.traffic.jobs() {
            let t = j.arrival.0;
            if off == 2 && t >= start + 1_000_000_000 { start = t; k += 1; }
            if off == 3 { while t > start + 1_000_000_000 { start += 1_000_000_000; k += 1; } }
            if off == 4 && t >= start + 1_000_000_000 { k += (t - start) / 1_000_000_000; start = t; }
            f.push(Nanos(k * 1_000_000_000), j.work[stage].0 as f64 / 1e9);
        }
    }
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
    for n in [2usize, 8] {
        let idx: Vec<usize> = (0..n).collect();
        let nw = net(&idx, &|k| k as u32, &|k| k);
        let e = [5e-4, 5e-4];
        let w = |o| lat(&nw, n-1, o, e).unwrap();
        println!("n={n} : hop {:?} conv {:?} agg {:?}", if n == 2 {w(Order::HopByHop)} else {0.0}, if n == 2 {w(Order::Convolution)} else {0.0}, w(Order::AggregateFirst));
    }
    for dep in [0usize, 2, 3, 4] {
        let g2 = |k: usize| if k >= 4 - dep { 0 } else { k + 1 };
        let g1 = |k: usize| if k < dep { 0 } else { k + 1 };
        let nw = net(&[2; 4], &|k| k as u32, &g2);
        let nv = net(&[2; 4], &|k| k as u32, &g1);
        for e in [[5e-4, 5e-4], [1e-3, 5e-4]] {
        println!("dep {dep} two agg last {:?} first {:?}", lat(&nw, 3, Order::AggregateFirst, e), lat(&nv, 3, Order::AggregateFirst, e)); }
    }
}
