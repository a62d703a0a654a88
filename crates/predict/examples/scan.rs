//! scan
#[path = "../tests/support/mod.rs"]
mod support;
use tailwright_predict::*;
use model::PerStage;
use units::*;
fn main() {
    let all = support::published(support::Through::Link).unwrap();
    let m = PublishedSnc { client_link: true, ..Default::default() };
    let p = Percentile::new(99.9).unwrap();
    for off in (0..1000).step_by(20) {
        let s = m.sketch_after(&all[2].traffic, Nanos(off * 1_000_000));
        let f = |dep: usize| { let ms: Vec<_> = (0..4).map(|k| Member { sketch: &s, priority: PerStage::from_fn(|_| k as u32), group: if k < dep { 0 } else { k + 1 }, percentile: p }).collect();
          m.predict(&ms).iter().map(|x| x.unwrap().bound*1e3).fold(0.0, f64::max) };
        let a = m.sketch_after(&all[0].traffic, Nanos(off * 1_000_000));
        let b = m.sketch_after(&all[1].traffic, Nanos(off * 1_000_000));
        let g = |x: [&PublishedSketch; 2]| m.predict(&x.iter().enumerate().map(|(k,s)| Member { sketch: *s, priority: PerStage::from_fn(|_| k as u32), group: k, percentile: p }).collect::<Vec<_>>())[1].unwrap().bound*1e3;
        println!("{off} {:.2} {:.2} {:.2} {:.2}   {:.2} {:.2}", f(0), f(2), f(3), f(4), g([&a,&b]), g([&b,&a]));
    }
}
