//! Dump requests.
use tailwright_observe::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let settings = ObservationSettings { probes: ProbeSettings{ports:[a[1].parse().unwrap()].into(), share:1.0, ring_bytes: 1<<23}, duration: std::time::Duration::from_secs(a[2].parse().unwrap()), cost_duration: std::time::Duration::from_secs(a.get(4).map_or(0,|x|x.parse().unwrap())) };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let v = a.get(3).is_some_and(|x|x=="v");
    let r = observe(&settings, &stop, || eprintln!("attached"), &mut |r| if v { println!("{:?} {} {} {:?} {}->{} {:?}", r.peer, r.points[0], r.points[7], r.stages(), r.request_bytes, r.answer_bytes, r.quality)}).map_err(|e| {eprintln!("{e}"); std::process::exit(3)}).unwrap();
    println!("{} requests {:?} {:?} lost {} events {} {:?} {:?} cost {:?} readers {:?}", r.statistics.count(), r.statistics.from_stack(), r.counts, r.lost_events, r.events, r.duration, r.end, r.cost, r.readers.len());
    for s in r.statistics.stages() { println!("{s:?}"); }
    for s in r.statistics.flagged() { println!("{s:?}"); }
}
