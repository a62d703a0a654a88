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
            let mut on = norm.apply_reduced(&fp, |e| match (reduce, bcut) {
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
    lower_bounds(i);
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
    let base = load(false, None, None, None);
    show("base", &base);
    let base = load(true, None, None, None);
    let t = Instant::now();
    show("sustained", &base);
    println!("{:?}", t.elapsed());
    let order: Vec<usize> = (0..base.workloads.len()).collect();
    let t = Instant::now();
    place_first_fit(&base, Method::Exact, &order, false);
    println!("exact {:?}", t.elapsed());
}
