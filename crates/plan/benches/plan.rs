//! Scratch.
use model::*;
use std::time::Instant;
use tailwright_plan::*;
use units::*;
use workload::*;

fn load(sustained: bool, reduce: Option<usize>, cut: Option<f64>, bcut: Option<f64>) -> Instance {
    let dir = testkit::shared("traces").unwrap();
    let profile = workload::device::StorageProfile::from_json(
        &std::fs::read_to_string(dir.join("ssd-profile.json")).unwrap(),
    )
    .unwrap();
    let slos = std::fs::read_to_string(dir.join("slos.csv")).unwrap();
    let norm = Normalisation { network: "125MB/s".parse().unwrap(), safety_margin: 1.0, sustained };
    let workloads = slos
        .lines()
        .skip(1)
        .map(|line| {
            let f: Vec<&str> = line.split(',').collect();
            let mut b = FootprintBuilder::new(Default::default(), &profile);
            for r in trace::open(&dir.join(f[2]), &Default::default()).unwrap() {
                b.push(&r.unwrap()).unwrap();
            }
            let fp = b.finish().unwrap();
            let mut on = norm.apply_reduced(&fp, |_, e| match (reduce, bcut) {
                (None, _) => e.clone(),
                (Some(k), None) => e.reduce(std::num::NonZeroUsize::new(k).unwrap()),
                (Some(k), Some(_)) => {
                    e.reduce_within(&workload::burst::Reduction::to(std::num::NonZeroUsize::new(k).unwrap()))
                }
            });
            if let Some(c) = cut {
                on.curves = on.curves.map(|a| {
                    calculus::ArrivalCurve::new(
                        a.vertices().iter().copied().filter(|v| v.duration <= c).collect(),
                        0.0,
                    )
                    .unwrap()
                });
            }
            Workload {
                name: f[1].into(),
                slo: Slo::new(f[3].parse().unwrap(), Seconds(f[4].parse().unwrap())).unwrap(),
                on: vec![on],
            }
        })
        .collect();
    Instance::new(vec![Class { name: "ssd".into(), count: 62, base_latency: 0.0 }], workloads, 0.999, 0.999)
        .unwrap()
}
fn show(name: &str, i: &Instance) {
    println!("variant {name}");

    let order: Vec<usize> = (0..i.workloads.len()).collect();
    for (m, fast) in [
        (Method::Exact, false),
        (Method::Relaxed, false),
        (Method::Relaxed, true),
        (Method::EffectiveBest, false),
    ] {
        let p = place_first_fit(i, m, &order, fast);
        print!("{} {fast} {}; ", m.name(), p.servers.len());
    }
    println!();
}
fn main() {
    let base = load(true, None, None, None);
    for m in [Method::Exact, Method::Relaxed] {
        let t = Instant::now();
        let mut spent = 0;
        let p = place(&base, m, Order::Best, Effort::for_workloads(41), &mut |p| {
            if p.spent / 1000 != spent / 1000 {
                println!("{p:?}");
            }
            spent = p.spent;
            true
        });
        println!(
            "best {} {:?} {} servers, lb {:?} spent {spent}",
            m.name(),
            t.elapsed(),
            p.servers.len(),
            lower_bound(&base, m)
        );
        for s in &p.servers {
            s.verify(&base).unwrap();
        }
    }
    let t = Instant::now();
    let order: Vec<usize> = (0..base.workloads.len()).collect();
    place_first_fit(&base, Method::Exact, &order, false);
    println!("exact {:?}", t.elapsed());
    let mut x = 12345u64;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    for n in [100usize, 1000] {
        let slos = [0.1, 0.15, 0.25, 0.5, 1.0];
        let mut w = Vec::new();
        while w.len() < n {
            let mut one = base.workloads[(next() % 41) as usize].clone();
            one.slo = Slo::new(one.slo.percentile, Seconds(slos[(next() % 5) as usize])).unwrap();
            one.name = format!("w{}", w.len());
            let single = Instance::new(
                vec![Class { name: "ssd".into(), count: 1, base_latency: 0.0 }],
                vec![one.clone()],
                0.999,
                0.999,
            )
            .unwrap();
            if Method::Exact.fit(&single, 0, vec![0]).is_ok() {
                w.push(one);
            }
        }
        let t = Instant::now();
        let i =
            Instance::new(vec![Class { name: "ssd".into(), count: n, base_latency: 0.0 }], w, 0.999, 0.999)
                .unwrap();
        println!("{n}: instance {:?}", t.elapsed());
        let order: Vec<usize> = (0..n).collect();
        let t = Instant::now();

        let p = place_first_fit(&i, Method::Exact, &order, false);
        println!("{n}: exact first fit {:?} {}", t.elapsed(), p.servers.len());
        let t = Instant::now();
        println!(
            "{:?} {:?} {:?}",
            lower_bound(&i, Method::Exact),
            lower_bound(&i, Method::Relaxed),
            t.elapsed()
        );
        let t = Instant::now();
        let p = place(&i, Method::Exact, Order::Best, Effort::for_workloads(n), &mut |_| true);
        println!("{n}: exact best {:?} {}", t.elapsed(), p.servers.len());
        if n < 1000 {
            let t = Instant::now();
            let p = place_first_fit(&i, Method::Relaxed, &order, true);
            println!("{n}: wc fff {:?} {}", t.elapsed(), p.servers.len());
        }
    }
}
